"""Privacy levels: who has which budget, as public policy; and what all personalised mechanisms share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.coded import check_count
from graphldp.client.randomiser import Floats, check_budget, uniform
from graphldp.client.vector import VectorMechanism, log_sets
from graphldp.errors import DataError, OptionError
from graphldp.randomness import UniformSource

__all__ = ["DISTRIBUTIONS", "Personalised", "probabilities"]

DISTRIBUTIONS = ("uniform", "strict", "relaxed", "bimodal")


def probabilities(distribution: str, levels: int) -> Floats:
    """Return how likely each level is: all alike, all at the lowest, all at the highest, half at either end.

    `level-T` is everybody at level T.
    """
    out = np.zeros(levels)
    given = str(distribution)
    one = given.removeprefix("level-")
    if one != given and one.isdecimal() and 1 <= int(one) <= levels:
        out[int(one) - 1] = 1.0
        return out
    if distribution not in DISTRIBUTIONS:
        raise OptionError(
            f"distribution must be one of {', '.join(DISTRIBUTIONS)}, or level-T (T from 1 to {levels}) for "
            f"everybody at one level; got {distribution!r}. "
            "For levels of your own give them to perturb(features, rng, level)"
        )
    if distribution == "uniform":
        out[:] = 1 / levels
    if distribution in ("strict", "bimodal"):
        out[0] += 1.0
    if distribution in ("relaxed", "bimodal"):
        out[-1] += 1.0
    return np.asarray(out / out.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Personalised(VectorMechanism):
    """A vector mechanism whose users have levels 1..h with the budgets epsilon 2^(level-1).

    Attributes:
        levels: how many levels there are, the paper's h.
        distribution: from which levels are drawn where the caller gives none.
    """

    levels: int = 5
    distribution: str = "uniform"

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets of the privacy levels, lowest first."""
        return tuple(self.epsilon * 2.0**step for step in range(self.levels))

    @property
    def mean_epsilon(self) -> float:
        """The users' mean budget, under the public distribution of the levels."""
        return float(probabilities(self.distribution, self.levels) @ np.array(self.budgets))

    def assign(self, nodes: int, rng: UniformSource, level: ArrayLike | None) -> NDArray[np.int32]:
        """Return each node's true level: the given ones, checked, or a draw from the distribution."""
        if level is None:
            edges = np.cumsum(probabilities(self.distribution, self.levels))[:-1]
            return (np.searchsorted(edges, uniform(rng, nodes), side="right") + 1).astype(np.int32)
        given = np.asarray(level)
        if given.shape != (nodes,):
            raise DataError(f"{nodes} nodes need {nodes} privacy levels, got the shape {given.shape}")
        if given.dtype.kind not in "iu":
            raise DataError(f"privacy levels must be whole numbers, got the type {given.dtype}")
        if nodes and not (given.min() >= 1 and given.max() <= self.levels):
            raise DataError(f"a privacy level lies outside 1..{self.levels}; mend it, or set the option levels")
        return given.astype(np.int32)

    @property
    def level_offset(self) -> int:
        """How many codes lie below the one that stands for level 1 at its centre: 0 where levels are sent as they are.

        Where that depends on the level, it is that of the lowest.
        """
        return 0

    def level_variances(self) -> Floats:
        """Return the variance of the report of each level, lowest first, at the middle of the range."""
        raise OptionError(
            f"{self.name} reports have no variance of their own at each reported level: weight by level, or use "
            "ppm-public or pldp"
        )

    @abstractmethod
    def level_loss(self, level: int) -> float:
        """Return the exact loss, for the features alone, of a user of that level."""

    @abstractmethod
    def m_of(self, level: int) -> int:
        """Return how many dimensions a report of that (reported) level has."""

    def _level_bits(self) -> float:
        return math.log2(self.levels)

    def report_bits(self) -> float:
        """Return how many bits the longest report takes when it is coded without waste."""
        widest = max(self.m_of(level) for level in range(1, self.levels + 1))
        return self._level_bits() + log_sets(self.dimensions, widest) + widest

    def check(self) -> None:
        """Refuse options that do not fit; `build` calls it before anything is computed."""
        check_count(self.name, "levels", self.levels, 1, 64)
        probabilities(self.distribution, self.levels)
        check_budget(f"{self.name} (level {self.levels})", max(self.budgets))


def refuse_m(name: str, m: Any, computed: int) -> None:
    """Refuse an m of the caller's own: each level has one."""
    if m not in (None, computed):
        raise OptionError(f"{name}: m follows from the level by m_rule; leave it out, got {m!r}")


def padded(
    nodes: int, width: int, parts: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]], dtype: Any
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return one index and one value matrix from groups of nodes with reports of different lengths.

    A place that a node's report does not have holds the index -1 and the value 0.
    """
    index = np.full((nodes, width), -1, dtype=np.int32)
    value = np.zeros((nodes, width), dtype=dtype)
    for members, chosen, sent in parts:
        index[members, : chosen.shape[1]] = chosen
        value[members, : chosen.shape[1]] = sent
    return index, value
