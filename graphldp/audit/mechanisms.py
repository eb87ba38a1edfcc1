"""One row of the audit: a registered mechanism at a budget, from its law to its verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from graphldp.audit.accuracy import accuracy
from graphldp.audit.budget import ALPHA, LOSS_TOLERANCE, MAX_ROWS
from graphldp.audit.empirical import Bound, bound_of_scores, log_likelihood_ratio
from graphldp.audit.exact import Loss, joint_loss, scalar_loss
from graphldp.audit.fit import Fit, Power, fit, power
from graphldp.audit.gaussian import gaussian_delta, gaussian_epsilon, loss_distribution, numerical_epsilon
from graphldp.audit.law import outcomes
from graphldp.audit.sets import audit_sets
from graphldp.audit.subject import Piece, Subject, subject_of
from graphldp.audit.whole import audit_whole
from graphldp.client import lookup
from graphldp.client.sets import SetValued
from graphldp.errors import OptionError
from graphldp.randomness import generator

__all__ = ["Audit", "AuditOptions", "Row", "audit_mechanism", "audit_rows", "budgets"]

_FEW_DIMENSIONS = 3  # of the joint report that is enumerated
_CROSS_TOLERANCE = 1e-6  # between the mechanism's own loss and the enumeration, relative to 1 + the loss
_NUMERICAL_TOLERANCE = 5e-3  # the same for a privacy-loss distribution on a lattice, relative
_POWER_SAMPLES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """How an audit is run.

    Attributes:
        dimensions: how many features a node has.
        samples: how many reports each test draws.
        seed: the root of the audit's randomness; the same seed gives the same numbers.
    """

    dimensions: int = 8
    samples: int = 60_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("dimensions", 2), ("samples", 1000), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"audit: {name} must be a whole number of at least {least}, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the audit found about one mechanism at one budget.

    Attributes:
        mechanism, nominal: its name and the budget it was made for; for privacy levels, that of the lowest.
        epsilon, delta: what is claimed, for the whole report, at most for anybody.
        dimensions, m: features of a node, and how many of them are reported at most.
        exact: the exact privacy loss of the joint release, at the claimed delta, by the mechanism's own account.
        exact_delta: the exact delta at the claimed epsilon.
        enumerated: the loss found here by writing out the joint release in few dimensions (Gaussian noise: by its
            numerical privacy-loss distribution).
        stated: what the mechanism itself says for those dimensions.
        worst: the inputs and the output where the loss is attained, in words.
        empirical: 95 % lower bound on epsilon from samples alone, and the stricter one that a verdict may rest on.
        promised: what the users behind `empirical` are promised.
        fit: goodness of fit of the shipped sampler.
        power: whether the same tests reject wrong samplers; None where there is nothing to get wrong.
        variance_worst, variance_mean: of the server's estimate of one coordinate, unreported ones included.
        bias: largest absolute bias of that estimate.
        bits: size of one report.
        keeps: whether the claim held.
        marked: whether the mechanism itself says that its claim fails.
        reason: why, in its own words.
        verdict: the finding in one sentence.
    """

    mechanism: str
    nominal: float
    epsilon: float
    delta: float
    dimensions: int
    m: int
    exact: float
    exact_delta: float
    enumerated: float
    stated: float
    worst: str
    empirical: Bound
    promised: float
    fit: Fit
    power: Power | None
    variance_worst: float
    variance_mean: float
    bias: float
    bits: float
    keeps: bool
    marked: bool
    reason: str
    verdict: str

    @property
    def fails(self) -> bool:
        """Whether something is wrong that the mechanism does not say itself.

        A mark excuses a loss above the claim. It excuses neither a sampler that does not follow the law, nor a law
        whose loss is not the stated one, nor tests without power.
        """
        same = self.enumerated == self.stated or math.isclose(
            self.enumerated, self.stated, rel_tol=_NUMERICAL_TOLERANCE
        )
        sound = same and self.fit.follows and (self.power is None or self.power.shown)
        return not self.keeps and not (self.marked and sound)

    def as_json(self) -> dict[str, Any]:
        """Return the row as nested JSON-able values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """All rows, and the budgets that a mechanism itself refused, with its reason."""

    rows: tuple[Row, ...]
    refused: tuple[tuple[str, float, str], ...] = ()

    @property
    def fails(self) -> list[Row]:
        """The rows in which something is wrong that the mechanism does not say itself."""
        return [row for row in self.rows if row.fails]


def budgets(name: str, epsilons: Iterable[float]) -> list[float]:
    """Return the budgets at which a mechanism can be audited: its own where it has no choice."""
    fixed = {"null": 0.0, "identity": math.inf}
    lookup(name)
    return [fixed[name]] if name in fixed else list(epsilons)


def audit_rows(
    names: Iterable[str],
    epsilons: Iterable[float],
    options: AuditOptions,
    progress: Callable[[int, int, str], None] | None = None,
) -> Audit:
    """Return a row for each mechanism and budget, in that order."""
    given = list(epsilons)
    cells = [(name, epsilon) for name in names for epsilon in budgets(name, given)]
    if len(cells) > MAX_ROWS:
        raise OptionError(
            f"audit: {len(cells)} rows exceed the {MAX_ROWS} that its false-alarm budget covers; audit fewer at a time"
        )
    rows, refused = [], []
    for done, (name, epsilon) in enumerate(cells):
        if progress:
            progress(done, len(cells), f"{name} at {epsilon:g}")
        if math.isnan(epsilon) or epsilon < 0:
            raise OptionError(f"audit: epsilon must be a number of at least 0, got {epsilon}")
        try:
            subject = subject_of(name, epsilon, options.dimensions)
        except OptionError as error:
            if len(given) == 1:
                raise
            refused.append((name, epsilon, str(error)))
            continue
        rows.append(audit_subject(subject, epsilon, options))
    if progress:
        progress(len(cells), len(cells), "")
    return Audit(rows=tuple(rows), refused=tuple(refused))


def audit_mechanism(name: str, epsilon: float, options: AuditOptions) -> Row:
    """Return the row of one mechanism at one budget."""
    return audit_subject(subject_of(name, epsilon, options.dimensions), epsilon, options)


def audit_subject(subject: Subject, nominal: float, options: AuditOptions) -> Row:
    """Return the row of a mechanism that was taken apart."""
    if not subject.pieces:
        look = audit_sets if isinstance(subject.device, SetValued) else audit_whole
        found = look(subject, nominal, options.samples, options.seed)
        problems = [*found.problems, *_loss_problems(subject, subject.stated, 0.0)]
        return Row(
            **_shared(subject, nominal),
            exact_delta=0.0,
            enumerated=found.enumerated,
            stated=found.stated,
            worst=found.worst.text(),
            empirical=found.bound,
            promised=subject.epsilon,
            fit=found.fit,
            power=found.power,
            variance_worst=found.variance_worst,
            variance_mean=found.variance_mean,
            bias=found.bias,
            keeps=not problems,
            verdict=_verdict(subject, problems, found.worst.text()),
        )

    def rng(test: str) -> np.random.Generator:
        return generator(options.seed, "audit", subject.name, nominal, options.dimensions, test)

    exact, exact_delta, loss = _exact(subject)
    enumerated, stated = _enumerate(subject, nominal)
    sampled, shown = _fit(subject, options.samples, rng)
    piece = subject.pieces[-1]
    bound = _empirical(piece, options.samples, rng("empirical"))
    worst_variance, mean_variance, bias = accuracy(subject)
    problems = _loss_problems(subject, exact, exact_delta)
    problems += _other_problems(subject, enumerated, stated, sampled, shown, bound)
    return Row(
        **{**_shared(subject, nominal), "exact": exact},
        exact_delta=exact_delta,
        enumerated=enumerated,
        stated=stated,
        worst=loss.text(),
        empirical=bound,
        promised=piece.epsilon,
        fit=sampled,
        power=shown,
        variance_worst=worst_variance,
        variance_mean=mean_variance,
        bias=bias,
        keeps=not problems,
        verdict=_verdict(subject, problems, loss.text()),
    )


def _shared(subject: Subject, nominal: float) -> dict[str, Any]:
    return {
        "mechanism": subject.name,
        "nominal": nominal,
        "epsilon": subject.epsilon,
        "delta": subject.delta,
        "dimensions": subject.dimensions,
        "m": subject.m,
        "exact": subject.stated,
        "bits": subject.bits,
        "marked": not subject.keeps,
        "reason": subject.reason,
    }


def _exact(subject: Subject) -> tuple[float, float, Loss]:
    """Return the exact epsilon at the claimed delta, the exact delta at the claimed epsilon, and the worst case."""
    piece = subject.pieces[-1]
    loss = scalar_loss(piece.bases[0])
    if subject.delta == 0:
        return subject.stated, 0.0, loss
    sigma, sensitivity = _noise(piece)
    return (
        gaussian_epsilon(subject.delta, sigma, sensitivity),
        gaussian_delta(subject.epsilon, sigma, sensitivity),
        loss,
    )


def _noise(piece: Piece) -> tuple[float, float]:
    base = piece.bases[0]
    return math.sqrt(float(base.variance(base.low))), (base.high - base.low) * math.sqrt(piece.m)


def _enumerate(subject: Subject, nominal: float) -> tuple[float, float]:
    """Return the loss of the joint release in few dimensions, found here and as the mechanism states it."""
    if subject.pieces[0].bases[0].deterministic:
        return math.inf, subject.stated
    if subject.delta > 0:
        piece = subject.pieces[0]
        law = outcomes(piece.bases[0], [piece.bases[0].low, piece.bases[0].high])
        losses = loss_distribution(law.mass[1], law.mass[0], piece.m)
        return numerical_epsilon(*losses, subject.delta), subject.stated
    small = _small(subject, nominal)
    return max(joint_loss(piece.bases, piece.m).value for piece in small.pieces), small.stated


def _small(subject: Subject, nominal: float) -> Subject:
    """Return the mechanism for few dimensions, with at least two of them reported where that is free to choose."""
    if subject.device is None:
        return subject
    few = min(_FEW_DIMENSIONS, subject.dimensions)
    small = subject_of(subject.name, nominal, few)
    sampled = len(small.pieces) == 1 and small.m < few and 0 < nominal < math.inf
    return subject_of(subject.name, nominal, few, m=max(2, small.m)) if sampled else small


def _fit(subject: Subject, samples: int, rng: Callable[[str], np.random.Generator]) -> tuple[Fit, Power | None]:
    """Return the worst fit of all pieces, and the least power."""
    found, shown = Fit(), None
    count = len(subject.pieces)
    for piece in subject.pieces:
        share = max(1000, samples // count)
        one = fit(piece.bases, piece.perturb, share, rng(f"fit {piece.label}"))
        where = f"{piece.label} {one.where}".strip()
        found = replace(
            found,
            cells=min(found.cells, min(1.0, one.cells * count)),
            chi_square=min(found.chi_square, min(1.0, one.chi_square * count)),
            ks=min(found.ks, min(1.0, one.ks * count)),
            indices=min(found.indices, min(1.0, one.indices * count)),
            distance=max(found.distance, one.distance),
            where=where if one.p < found.p or not found.where else found.where,
        )
        base = piece.bases[0]
        if not base.deterministic and 0 < base.epsilon < math.inf:
            part = power(piece.bases, piece.perturb, min(share, _POWER_SAMPLES), rng(f"power {piece.label}"))
            shown = (
                part
                if shown is None
                else Power(
                    wrong_budget=shown.wrong_budget and part.wrong_budget,
                    untouched_last=_both(shown.untouched_last, part.untouched_last),
                )
            )
    return found, shown


def _both(one: bool | None, other: bool | None) -> bool | None:
    return one if other is None else other if one is None else one and other


def _empirical(piece: Piece, samples: int, rng: np.random.Generator) -> Bound:
    base = piece.bases[0]
    if base.deterministic:
        return Bound(value=0.0, convicting=0.0, event="no event: the report is the value itself")
    high, low = np.full(len(piece.bases), base.high), np.full(len(piece.bases), base.low)
    first = piece.perturb(np.tile(high, (samples, 1)), rng)
    second = piece.perturb(np.tile(low, (samples, 1)), rng)
    return bound_of_scores(
        log_likelihood_ratio(piece.bases, first, high, low),
        log_likelihood_ratio(piece.bases, second, high, low),
        name="log likelihood ratio",
    )


def _loss_problems(subject: Subject, exact: float, exact_delta: float) -> list[str]:
    found = []
    if not exact <= subject.epsilon + _slack(subject.epsilon):
        found.append(f"exact loss {_times(exact, subject.epsilon)}")
    if exact_delta > subject.delta * (1 + LOSS_TOLERANCE):
        found.append(f"exact delta {exact_delta:.3g} at the claimed epsilon, claimed {subject.delta:.3g}")
    return found


def _other_problems(
    subject: Subject, enumerated: float, stated: float, sampled: Fit, shown: Power | None, bound: Bound
) -> list[str]:
    found = []
    tolerance = _NUMERICAL_TOLERANCE * stated if subject.delta else _CROSS_TOLERANCE * (1 + stated)
    if math.isfinite(stated) and not abs(enumerated - stated) <= tolerance:
        found.append(f"the enumerated joint loss is {enumerated:.6g}, the mechanism states {stated:.6g}")
    if not sampled.follows:
        found.append(
            f"the sampler does not follow the law ({sampled.where}: p {sampled.p:.1e} against {ALPHA:.0e}, distance "
            f"{sampled.distance:.2g} of what is allowed)"
        )
    if shown is not None and not shown.shown:
        missed = [name for name in ("wrong_budget", "untouched_last") if getattr(shown, name) is False]
        found.append(f"the tests have no power against {' and '.join(missed)}: use more samples or fewer dimensions")
    promised = subject.pieces[-1].epsilon
    if subject.delta == 0 and bound.convicting > promised + _slack(promised):
        found.append(f"samples alone show at least {bound.convicting:.6g} ({bound.event})")
    return found


def _slack(epsilon: float) -> float:
    return LOSS_TOLERANCE * (1 + epsilon) if math.isfinite(epsilon) else 0.0


def _times(exact: float, claimed: float) -> str:
    if math.isinf(exact) or claimed == 0:
        return f"{exact:.6g}, claimed {claimed:g}"
    return f"{exact:.6g}, {exact / claimed:.3g} times the claimed {claimed:g}"


def _verdict(subject: Subject, problems: list[str], worst: str) -> str:
    if math.isinf(subject.epsilon):
        return "claims nothing"
    if not problems:
        return "keeps its claim"
    return "does not keep its claim: " + "; ".join(problems) + f"; {worst}"
