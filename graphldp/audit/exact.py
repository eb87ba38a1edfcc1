"""The exact privacy loss: of one value from its law, and of a whole report by enumerating it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.law import grid_inputs, outputs
from graphldp.client import Randomiser, VectorMechanism
from graphldp.errors import OptionError

__all__ = ["Loss", "joint_loss", "joint_outcomes", "scalar_loss", "worst"]

Floats: TypeAlias = NDArray[np.float64]

_MOST_CELLS = 40_000_000  # inputs x reports of one enumeration
_MOST_OUTPUTS = 14  # of one coordinate in the enumeration of a density's joint report


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A privacy loss and where it is attained: log P[output | first] - log P[output | second] = value."""

    value: float
    first: str
    second: str
    output: str

    def text(self) -> str:
        """Return 'output 1 is e^1 times as likely under 1 as under -1'."""
        if math.isinf(self.value):
            return f"output {self.output} is possible under {self.first} and impossible under {self.second}"
        return f"output {self.output} is e^{self.value:.6g} times as likely under {self.first} as under {self.second}"


def worst(logs: Floats) -> tuple[float, int, int, int]:
    """Return the largest log ratio over pairs of rows (inputs) and all columns (outputs), with its three indices.

    A column that no input reaches (-inf everywhere) is no output.
    """
    top, bottom = logs.max(axis=0), logs.min(axis=0)
    gap = np.where(np.isneginf(top), 0.0, np.where(np.isneginf(bottom), np.inf, top - np.maximum(bottom, -1e308)))
    column = int(np.argmax(gap))
    value, own = float(gap[column]), logs[:, column]
    # Of equally bad inputs the first and the last one: the two that differ most.
    slack = 1e-12 * (1 + abs(value)) if np.isfinite(value) else 0.0
    high = np.flatnonzero(own >= own.max() - slack)
    low = np.flatnonzero(own <= own.min() + slack)
    pairs = [(abs(int(i) - int(j)), int(i), int(j)) for i in (high[0], high[-1]) for j in (low[0], low[-1])]
    _, first, second = max(pairs)
    return value, first, second, column


def scalar_loss(base: Randomiser) -> Loss:
    """Return the largest log ratio of the law over a grid of inputs with both ends and all (or a grid of) outputs."""
    inputs = grid_inputs(base)
    reports = outputs(base, inputs)
    with np.errstate(divide="ignore"):
        logs = base.log_law(reports[None, :], inputs[:, None])
    value, first, second, output = worst(logs)
    return Loss(value=value, first=_short(inputs[first]), second=_short(inputs[second]), output=_short(reports[output]))


def joint_outcomes(base: Randomiser, inputs: Floats) -> Floats:
    """Return the outputs of one coordinate that an enumeration needs.

    Outputs with the same probabilities under all inputs are one outcome. Of a law with many different ones (Laplace)
    those are kept that are worst for some pair of inputs.
    """
    reports = outputs(base, inputs)
    with np.errstate(divide="ignore"):
        logs = base.log_law(reports[None, :], inputs[:, None])
    reports, logs = reports[~np.isneginf(logs).all(axis=0)], logs[:, ~np.isneginf(logs).all(axis=0)]
    _, keep = np.unique(np.round(logs, 9), axis=1, return_index=True)
    if len(keep) > _MOST_OUTPUTS:
        capped = np.maximum(logs, -1e300)
        keep = np.unique(
            [int(np.argmax(capped[i] - capped[j])) for i, j in itertools.permutations(range(len(inputs)), 2)]
        )
    return reports[np.sort(keep)]


def joint_loss(device: VectorMechanism, count: int = 3) -> Loss:
    """Return the loss of everything that leaves the device, by enumerating all of it for all pairs of records.

    A record is any vector over `count` values of the range; a report is a set of m indices and a value for each. Its
    probability is written out here: the set has probability 1/C(d, m) whatever the record is (the audit's test of the
    indices checks that of the shipped sampler), and the values are independent given the set. Nothing is assumed
    about which record or which report is the worst.
    """
    base, d, m = device.base, device.dimensions, device.m
    values = np.linspace(base.low, base.high, count)
    reports = joint_outcomes(base, values)
    records = np.array(list(itertools.product(range(count), repeat=d)))
    answers = np.array(list(itertools.product(range(len(reports)), repeat=m)))
    sets = list(itertools.combinations(range(d), m))
    if len(records) * len(answers) > _MOST_CELLS:
        raise OptionError(
            f"enumerating {len(records)} records x {len(answers)} answers needs too much memory; "
            f"use at most 4 dimensions, got {d}"
        )
    with np.errstate(divide="ignore"):
        logs = base.log_law(reports[None, :], values[:, None])
    found = Loss(value=-1.0, first="", second="", output="")
    for chosen in sets:
        total = np.full((len(records), len(answers)), -math.log(len(sets)))
        for place, dimension in enumerate(chosen):
            total += logs[records[:, dimension][:, None], answers[:, place][None, :]]
        value, first, second, output = worst(total)
        if value > found.value:
            found = Loss(
                value=value,
                first=_vector(values[records[first]]),
                second=_vector(values[records[second]]),
                output=f"{_vector(reports[answers[output]])} in dimensions {_vector(np.array(chosen))}",
            )
    return found


def _short(value: float) -> str:
    return f"{float(value):.6g}"


def _vector(values: NDArray[np.generic]) -> str:
    return "(" + ", ".join(_short(float(v)) for v in values) + ")"
