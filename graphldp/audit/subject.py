"""What is audited, by name: a mechanism taken apart into pieces whose laws are scalar laws at known positions.

Most mechanisms are one piece: m of d dimensions, or all of them, each through a scalar randomiser. One with public
privacy levels is a piece for each level. One that hides a level in its report, or sends a random set, has no such
pieces: its report is audited as a whole. What people are asked beside a mechanism's report (`vote`, `rounds`,
`survey`) is audited under a name of its own; where that takes several answers, it is made of several subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Randomiser, Reports, lookup, mechanism, names, protocol
from graphldp.client.directed import DirectedMechanism, first_round, second_round
from graphldp.client.levels import Personalised
from graphldp.client.links import link_mechanism
from graphldp.client.registry import NO_FEATURE
from graphldp.client.vote import Vote
from graphldp.errors import OptionError, unknown_name
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = ["FEW", "LEVELS", "AuditSetting", "Piece", "Subject", "small_directed", "subject_names", "subject_of"]

Floats: TypeAlias = NDArray[np.float64]

LEVELS = 5  # of a randomiser of privacy levels, or of labels
CLASSES = 4  # of a vote
FEW = 4  # dimensions of the records that every report about which can be counted
_NOTHING = 1e-10  # the budget of a feature whose share is 0: its law is that of a number drawn without looking


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSetting:
    """What is declared beside a budget.

    Attributes:
        dimensions: how many features a person has.
        low, high: the range of a feature.
        options: the mechanism's options.
    """

    dimensions: int
    low: float = -1.0
    high: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[float, float]:
        """The range."""
        return self.low, self.high

    def few(self, dimensions: int) -> AuditSetting:
        """Return the setting for at most so many dimensions; options that say more than these allow say less."""
        options = dict(self.options)
        few = min(dimensions, self.dimensions)
        for name in ("m", "pad", "overlap"):
            if isinstance(options.get(name), int):
                options[name] = min(options[name], few)
        for name in ("theta", "importance", "sensitivity"):
            if isinstance(options.get(name), list | tuple):
                options[name] = list(options[name])[:few]
        return replace(self, dimensions=few, options=options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Positions with scalar laws that are reported together.

    Attributes:
        label: which users it is for; empty if for all.
        epsilon: what they are promised.
        bases: the scalar randomiser of each dimension, with its share of the budget.
        m: how many dimensions are reported.
        perturb: the shipped sampler, for these users.
        inclusion: the probability of each dimension to be reported, where they are not alike.
    """

    label: str
    epsilon: float
    bases: tuple[Randomiser, ...]
    m: int
    perturb: Callable[[Any, UniformSource], Reports]
    inclusion: tuple[float, ...] = ()

    @property
    def chances(self) -> Floats:
        """The probability of each dimension to be reported."""
        d = len(self.bases)
        return np.array(self.inclusion) if self.inclusion else np.full(d, self.m / d)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A mechanism at a budget, ready to be audited.

    Attributes:
        name: registered name.
        epsilon, delta: the claim.
        keeps, reason: what the mechanism itself says of its claim.
        dimensions, m: of a report.
        stated: the exact loss by the mechanism's own account.
        bits: size of a report.
        pieces: see `Piece`; empty for a report that can only be looked at as a whole.
        device: the mechanism itself; None for a randomiser of levels or labels.
        personal: whether users have different budgets.
        answers: the subjects that it is made of, by what they are asked; empty for a single answer.
        everybody: whether everybody gives all of these answers, so that their losses add up, or just one of them.
    """

    name: str
    epsilon: float
    delta: float
    keeps: bool
    reason: str
    dimensions: int
    m: int
    stated: float
    bits: float
    pieces: tuple[Piece, ...]
    device: Any = None
    personal: bool = False
    answers: tuple[tuple[str, Subject], ...] = ()
    everybody: bool = True


def subject_names() -> list[str]:
    """Return everything that can be audited: the mechanisms, and what else people are asked."""
    return sorted([*names(), *_QUESTIONS])


def subject_of(name: str, epsilon: float, setting: AuditSetting) -> Subject:
    """Return what is registered under that name, taken apart."""
    if name in _QUESTIONS:
        return _QUESTIONS[name](epsilon, setting)
    if name not in names():
        raise unknown_name("mechanism", name, subject_names())
    if lookup(name).kind in NO_FEATURE:
        return _number_subject(name, epsilon, setting)
    return _device_subject(name, _protocol(name, epsilon, setting))


def _protocol(name: str, epsilon: float, setting: AuditSetting) -> Any:
    return protocol(name, epsilon, setting.dimensions, *setting.ends, **setting.options)


def _device_subject(name: str, device: Any) -> Subject:
    claim = device.claim
    return Subject(
        name=name,
        epsilon=claim.epsilon,
        delta=claim.delta,
        keeps=claim.keeps,
        reason=claim.reason,
        dimensions=device.dimensions,
        m=device.m,
        stated=device.privacy_loss(),
        bits=device.report_bits(),
        pieces=_pieces(device),
        device=device,
        personal=len(device.budgets) > 1,
    )


def _number_subject(name: str, epsilon: float, setting: AuditSetting) -> Subject:
    if setting.ends != (-1.0, 1.0) or setting.options:
        what = {"level": "privacy levels", "label": "labels"}[lookup(name).kind]
        raise OptionError(f"{name} randomises {what} 1 to {LEVELS}: it takes no range and no options here")
    base = mechanism(name, epsilon, 1, LEVELS)

    def perturb(levels: Floats, rng: UniformSource) -> Reports:
        return Reports(value=base.sample(levels, rng))

    return Subject(
        name=name,
        epsilon=base.epsilon,
        delta=0.0,
        keeps=True,
        reason="",
        dimensions=1,
        m=1,
        stated=base.privacy_loss(),
        bits=float(np.log2(base.outputs)),
        pieces=(Piece(label="", epsilon=base.epsilon, bases=(base,), m=1, perturb=perturb),),
    )


def _vote_subject(epsilon: float, setting: AuditSetting) -> Subject:
    """A vote on classes, by weights with which every class is somebody's."""
    d = setting.dimensions
    weights = np.cos(np.outer(np.arange(d) + 1, 1 + 2 * np.arange(CLASSES)))
    check_options("vote", setting.options, ["m"])
    middle = (setting.low + setting.high) / 2
    device = Vote.of(epsilon, weights, middle * weights.sum(axis=0), *setting.ends, **setting.options)
    return Subject(
        name="vote",
        epsilon=device.claim.epsilon,
        delta=0.0,
        keeps=device.claim.keeps,
        reason=device.claim.reason,
        dimensions=d,
        m=device.m,
        stated=device.privacy_loss(),
        bits=device.report_bits(),
        pieces=(),
        device=device,
    )


def _rounds_subject(epsilon: float, setting: AuditSetting) -> Subject:
    """Two rounds: half of the budget on random dimensions, half on the best of a ranking and random others."""
    options = dict(setting.options)
    name = options.pop("mechanism", "pm")
    rho = options.pop("rho", 0.5)
    first = options.pop("first", 0.5)
    d = setting.dimensions
    # m is chosen by the budget, and small budgets direct nothing: two dimensions at least, one of them ranked.
    one = first_round(name, epsilon, d, *setting.ends, first=first, **options)
    options.setdefault("m", max(2, one.m))
    ranking = tuple(int(j) for j in (3 * np.arange(d) + 1) % d) if d % 3 else tuple(range(d))[::-1]
    two = second_round(name, epsilon, d, *setting.ends, ranking=ranking, rho=rho, first=first, **options)
    answers = (("first round", _device_subject(name, one)), ("second round", _directed_subject(two)))
    return _together("rounds", float(epsilon), answers, everybody=True)


def _directed_subject(device: DirectedMechanism) -> Subject:
    inner = device.device
    base = _device_subject(inner.name, inner)
    pieces = (
        Piece(
            label="",
            epsilon=inner.epsilon,
            bases=(inner.base,) * inner.dimensions,
            m=inner.m,
            perturb=device.perturb,
            inclusion=tuple(device.inclusion().tolist()),
        ),
    )
    return replace(base, stated=device.privacy_loss(), pieces=pieces, device=device)


def small_directed(device: DirectedMechanism, few: int) -> Subject:
    """Return a second round of few dimensions, with the same budget and options, one of its dimensions ranked."""
    inner: Any = device.device
    few = min(few, inner.dimensions)
    options = {**inner.options(), "m": min(max(2, inner.m), max(1, few - 1))}
    small = protocol(inner.name, inner.epsilon, few, inner.low, inner.high, **options)
    ranking = tuple(range(few))[::-1]
    return _directed_subject(DirectedMechanism(device=small, ranking=ranking, rho=device.rho))


def _survey_subject(epsilon: float, setting: AuditSetting) -> Subject:
    """A survey: some are asked for all features, some for those found telling, and the others for a vote."""
    from graphldp.experiment.survey import Survey  # a whole experiment, which no other subject needs

    options = dict(setting.options)
    name = options.pop("mechanism", "privset")
    about = replace(setting, options=options)
    sizes = sorted({setting.dimensions, *(max(2, size) for size in Survey().sizes(setting.dimensions))}, reverse=True)
    asked = [(f"{size} features", subject_of(name, epsilon, about.few(size))) for size in sizes]
    vote = ("a vote", _vote_subject(epsilon, replace(setting, options={})))
    return _together("survey", float(epsilon), (*asked, vote), everybody=False)


def _together(name: str, epsilon: float, answers: tuple[tuple[str, Subject], ...], *, everybody: bool) -> Subject:
    parts = [part for _, part in answers]
    total = sum if everybody else max
    return Subject(
        name=name,
        epsilon=epsilon,
        delta=total(part.delta for part in parts),
        keeps=all(part.keeps for part in parts),
        reason="; ".join(part.reason for part in parts if part.reason),
        dimensions=parts[0].dimensions,
        m=max(part.m for part in parts),
        stated=total(part.stated for part in parts),
        bits=total(part.bits for part in parts),
        pieces=(),
        answers=answers,
        everybody=everybody,
    )


def _links_subject(name: str, epsilon: float, setting: AuditSetting) -> Subject:
    """Links of one person to as many others as there are dimensions: a list with a bit for each."""
    options = dict(setting.options)
    device = link_mechanism(name, epsilon, setting.dimensions + 1, options.pop("report", "lower"), **options)
    return Subject(
        name=f"links-{name}",
        epsilon=device.claim.epsilon,
        delta=0.0,
        keeps=device.claim.keeps,
        reason=device.claim.reason,
        dimensions=setting.dimensions,
        m=setting.dimensions,
        stated=device.privacy_loss(),
        bits=device.report_bits(),
        pieces=(),
        device=device,
    )


_QUESTIONS: dict[str, Callable[[float, AuditSetting], Subject]] = {
    "links-blink": partial(_links_subject, "blink"),
    "links-dprr": partial(_links_subject, "dprr"),
    "links-rr": partial(_links_subject, "rr"),
    "rounds": _rounds_subject,
    "survey": _survey_subject,
    "vote": _vote_subject,
}


def _pieces(device: Any) -> tuple[Piece, ...]:
    d = device.dimensions
    if isinstance(device, Personalised):
        return tuple(
            Piece(
                label=f"level {level}",
                epsilon=device.epsilon * 2.0 ** (level - 1),  # by the definition of levels, not as the device has it
                bases=(part.base,) * d,
                m=part.m,
                perturb=partial(_of_level, device, level, part.m),
            )
            for level, part in enumerate(device.parts, start=1)
        )
    by_place = {
        int(place): replace(device.base, epsilon=_NOTHING) if base is None else base
        for base, places in device.scalars()
        for place in places
    }
    if not by_place:
        return ()
    bases = tuple(by_place.get(place, device.base) for place in range(d))
    return (Piece(label="", epsilon=device.epsilon, bases=bases, m=device.m, perturb=device.perturb),)


def _of_level(device: Any, level: int, m: int, features: Any, rng: UniformSource) -> Reports:
    """Return the reports of users of one level, without the places that only longer reports use."""
    reports = device.perturb(features, rng, level=np.full(features.shape[0], level))
    beyond = reports.index[:, m:]
    if (beyond >= 0).any() or (reports.index[:, :m] < 0).any():
        raise AssertionError(f"{device.name}: a report of level {level} does not have {m} entries")
    return Reports(index=reports.index[:, :m], value=reports.value[:, :m], meta=reports.meta)
