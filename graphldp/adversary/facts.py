"""What an attacker wants to know of each person: whether she has an attribute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError

__all__ = ["Fact", "Side", "facts_of"]

Floats: TypeAlias = NDArray[np.float64]
Side: TypeAlias = tuple[tuple[float, float], ...]  # values, each with its share

_MOST_VALUES = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fact:
    """Whether a person's value of one attribute is above its median; of a 0/1 attribute, whether she has it.

    Where more than half of the people share the largest value, the fact is to have that value.

    Attributes:
        attribute: which one.
        holds: of whom it holds.
        no, yes: the values on either side, each with its share: what an attacker knows of them beforehand.
    """

    attribute: int
    holds: NDArray[np.bool_]
    no: Side
    yes: Side

    @property
    def prior(self) -> float:
        """The share of people of whom it holds."""
        return float(self.holds.mean())

    @property
    def varies(self) -> bool:
        """Whether there is anything to be guessed."""
        return bool(self.no and self.yes)

    @property
    def commonest(self) -> float:
        """How often a guess is right that looks at nobody's report."""
        return max(self.prior, 1 - self.prior)


def facts_of(features: Any, attributes: Iterable[int]) -> list[Fact]:
    """Return the facts about these attributes; `features` is n x d, sparse or dense."""
    columns: Any = sp.csc_array(features) if sp.issparse(features) else np.asarray(features)
    nodes, dimensions = columns.shape
    if not nodes:
        raise DataError("an attack is on people: there is none")
    out = []
    for attribute in attributes:
        if not 0 <= attribute < dimensions:
            raise DataError(f"there is no attribute {attribute}: they have the numbers 0 to {dimensions - 1}")
        column = columns[:, [attribute]]
        values = np.ravel(column.toarray() if sp.issparse(column) else column).astype(np.float64)
        middle = np.median(values)
        holds = values > middle
        if not holds.any():
            holds = values >= middle
        out.append(Fact(attribute=int(attribute), holds=holds, no=_side(values[~holds]), yes=_side(values[holds])))
    return out


def _side(values: Floats) -> Side:
    """Return the values and their shares; of very many the middles of groups of equal size."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) > _MOST_VALUES:
        parts = np.array_split(np.sort(values), _MOST_VALUES)
        found, counts = np.array([float(np.median(part)) for part in parts]), np.array([len(part) for part in parts])
    return tuple((float(v), float(c / len(values))) for v, c in zip(found, counts, strict=True))
