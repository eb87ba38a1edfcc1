"""The exact privacy loss: of one value from its law, and of a whole report by enumerating it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.law import Outcomes, loss_outcomes
from graphldp.client import Randomiser
from graphldp.errors import OptionError

__all__ = ["Loss", "joint_loss", "scalar_loss", "worst"]

Floats: TypeAlias = NDArray[np.float64]

_MOST_CELLS = 40_000_000  # inputs x reports of one enumeration
_MOST_OUTPUTS = 14  # of one coordinate in the enumeration of a joint report
_MOST_PAIRS = 2  # of positions with laws of their own, whose worst pairs of values the records are made of
_NEGLIGIBLE = 1e-290  # a cell whose probability is rounding


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
    """Return the largest log ratio of the law over a grid of inputs with both ends, and the reports.

    A real-valued report counts as what is sent: a whole number of grid steps.
    """
    law = loss_outcomes(base)
    value, first, second, output = worst(_sent(law))
    return Loss(
        value=value,
        first=short(law.inputs[first]),
        second=short(law.inputs[second]),
        output=short(law.y[output]),
    )


def joint_loss(bases: Sequence[Randomiser], m: int, count: int = 3) -> Loss:
    """Return the loss of everything that leaves a device with m of d dimensions, by enumerating all of it.

    A record is any vector over a few values of the range: `count` evenly spaced ones, and the two that are the worst
    for one value alone, out of all that the mechanism compares. A report is a set of m indices and a value for each.
    Its probability is written out here: the set has probability 1/C(d, m) whatever the record is, and the values are
    independent given the set (the audit's tests check both of the shipped sampler). Nothing is assumed about which
    record or which report is the worst.

    Args:
        bases: the randomiser of each dimension, with its share of the budget.
        m: how many of them are reported.
        count: values of the range, evenly spaced with both ends.
    """
    distinct = list(dict.fromkeys(bases))
    laws = {base: loss_outcomes(base) for base in distinct}
    pairs = [law.inputs[list(worst(_sent(law))[1:3])] for law in laws.values()][:_MOST_PAIRS]
    values = np.unique(np.concatenate([np.linspace(bases[0].low, bases[0].high, count), *pairs]))
    tables = {base: _joint_outcomes(laws[base], values) for base in distinct}
    records = np.array(list(itertools.product(range(len(values)), repeat=len(bases))))
    sets = list(itertools.combinations(range(len(bases)), m))
    found = Loss(value=-1.0, first="", second="", output="")
    for chosen in sets:
        answers = np.array(list(itertools.product(*(range(len(tables[bases[j]][0])) for j in chosen))))
        if len(records) * len(answers) > _MOST_CELLS:
            raise OptionError(
                f"enumerating {len(records)} records x {len(answers)} answers needs too much memory; use at most 4 "
                f"dimensions, got {len(bases)}"
            )
        total = np.full((len(records), len(answers)), -math.log(len(sets)))
        for position, dimension in enumerate(chosen):
            logs = tables[bases[dimension]][1]
            total += logs[records[:, dimension][:, None], answers[:, position][None, :]]
        value, first, second, output = worst(total)
        if value > found.value:
            sent = [tables[bases[j]][0][answers[output, position]] for position, j in enumerate(chosen)]
            found = Loss(
                value=value,
                first=vector(values[records[first]]),
                second=vector(values[records[second]]),
                output=f"{vector(np.array(sent))} in dimensions {vector(np.array(chosen))}",
            )
    return found


def _joint_outcomes(law: Outcomes, values: Floats) -> tuple[Floats, Floats]:
    """Return the outputs of one coordinate that an enumeration needs, and their log probabilities for these values.

    Outputs with the same probability ratios under all values are one outcome. Of a law with many different ones
    (Laplace) those are kept that are worst for some pair of values.
    """
    logs = _sent(law)[[int(np.argmin(np.abs(law.inputs - value))) for value in values]]
    keep = np.flatnonzero(~np.isneginf(logs).all(axis=0))
    with np.errstate(invalid="ignore"):
        ratios = np.nan_to_num(logs[:, keep] - logs[:, keep].max(axis=0), neginf=-1e300)
    _, first = np.unique(np.round(ratios, 9), axis=1, return_index=True)
    if len(first) > _MOST_OUTPUTS:
        pairs = itertools.permutations(range(len(values)), 2)
        first = np.unique([int(np.argmax(ratios[i] - ratios[j])) for i, j in pairs])
    chosen = keep[np.sort(first)]
    return law.y[chosen], logs[:, chosen]


def _sent(law: Outcomes) -> Floats:
    """Return log probabilities; an outcome that is rounding under every input is never sent."""
    return np.where((law.mass.max(axis=0) < _NEGLIGIBLE)[None, :], -np.inf, law.log_mass)


def short(value: float) -> str:
    """Return a number in at most six digits."""
    return f"{float(value):.6g}"


def vector(values: NDArray[np.generic]) -> str:
    """Return '(1, -1, 0)'."""
    return "(" + ", ".join(short(float(v)) for v in values) + ")"
