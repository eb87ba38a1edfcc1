"""What is audited: a mechanism taken apart into pieces whose laws are scalar laws at known positions.

Most mechanisms are one piece: m of d dimensions, or all of them, each through a scalar randomiser. One with public
privacy levels is a piece for each level. One that hides a level in its report, or sends a random set, has no such
pieces: its report is audited as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.client import Randomiser, Reports, lookup, mechanism, protocol
from graphldp.client.sets import SetValued

__all__ = ["LEVELS", "Piece", "Subject", "subject_of"]

Floats: TypeAlias = NDArray[np.float64]

LEVELS = 5  # of a randomiser of privacy levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Positions with scalar laws that are reported together.

    Attributes:
        label: which users it is for; empty if for all.
        epsilon: what they are promised.
        bases: the scalar randomiser of each dimension, with its share of the budget.
        m: how many dimensions are reported.
        perturb: the shipped sampler, for these users.
    """

    label: str
    epsilon: float
    bases: tuple[Randomiser, ...]
    m: int
    perturb: Callable[[Floats, np.random.Generator], Reports]


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
        device: the mechanism itself; None for a randomiser of levels.
        personal: whether users have different budgets.
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


def subject_of(name: str, epsilon: float, dimensions: int, **options: Any) -> Subject:
    """Return the mechanism of that name, taken apart."""
    if lookup(name).kind == "level":
        return _level_subject(name, epsilon)
    device = protocol(name, epsilon, dimensions, **options)
    claim = device.claim
    return Subject(
        name=name,
        epsilon=claim.epsilon,
        delta=claim.delta,
        keeps=claim.keeps,
        reason=claim.reason,
        dimensions=dimensions,
        m=device.m,
        stated=device.privacy_loss(),
        bits=device.report_bits(),
        pieces=_pieces(device),
        device=device,
        personal=len(device.budgets) > 1,
    )


def _level_subject(name: str, epsilon: float) -> Subject:
    base = mechanism(name, epsilon, 1, LEVELS)

    def perturb(levels: Floats, rng: np.random.Generator) -> Reports:
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


def _pieces(device: Any) -> tuple[Piece, ...]:
    d = device.dimensions
    if hasattr(device, "theta"):
        bases = tuple(device._feature(share) for share in device.theta)
        return (Piece(label="", epsilon=device.epsilon, bases=bases, m=d, perturb=device.perturb),)
    if hasattr(device, "parts"):
        return tuple(
            Piece(
                label=f"level {level}",
                epsilon=budget,
                bases=(part.base,) * d,
                m=part.m,
                perturb=partial(_of_level, device, level, part.m),
            )
            for level, (budget, part) in enumerate(zip(device.budgets, device.parts, strict=True), start=1)
        )
    if len(device.budgets) > 1 or isinstance(device, SetValued):
        return ()
    return (Piece(label="", epsilon=device.epsilon, bases=(device.base,) * d, m=device.m, perturb=device.perturb),)


def _of_level(device: Any, level: int, m: int, features: Floats, rng: np.random.Generator) -> Reports:
    """Return the reports of users of one level, without the places that only longer reports use."""
    reports = device.perturb(features, rng, level=np.full(len(features), level))
    beyond = reports.index[:, m:]
    if (beyond >= 0).any() or (reports.index[:, :m] < 0).any():
        raise AssertionError(f"{device.name}: a report of level {level} does not have {m} entries")
    return Reports(index=reports.index[:, :m], value=reports.value[:, :m], meta=reports.meta)
