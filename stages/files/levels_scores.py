"""What some mechanisms need besides features: each person's privacy level, each feature's scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.graph import Graph
from graphldp.ledger import Ledger, Spend
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.files.own import read_columns
from graphldp.stages.pages.wording import counted

__all__ = ["Extras", "ScoresWithCost", "read_levels", "read_scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Files beside the features.

    Attributes:
        levels: `node`, `level`: the privacy level of every node, for personalised mechanisms.
        scores: `feature` with `importance`, `sensitivity` or both, for mechanisms that share the budget out by feature.
        scores_epsilon: what the scores have cost each person, where their file does not say it; 0 if they are public.
    """

    levels: Path | None = None
    scores: Path | None = None
    scores_epsilon: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresWithCost:
    """Scores of all features in the graph's order, and what finding them out has cost."""

    options: Mapping[str, Any]
    ledger: list[dict[str, Any]] = field(default_factory=list)


def read_levels(path: Path, graph: Graph) -> NDArray[np.int32]:
    """Return the level of every node of the graph, in its order."""
    table = read_columns(path, "levels", ("node", "level"))
    place = _places(path, table["node"], graph.node_ids, graph.nodes, "node")
    levels = _numbers(path, table["level"], "level")
    if not (levels == np.round(levels)).all():
        raise DataError(f"{path}: privacy levels must be whole numbers, 1 the strictest")
    out = np.empty(graph.nodes, dtype=np.int32)
    out[place] = levels
    return out


def read_scores(path: Path, graph: Graph, cost: float | None = None) -> ScoresWithCost:
    """Return the scores of every feature of the graph, and what finding them out has cost each person.

    A file that `ldp select` wrote brings its ledger with it. Of any other it is declared as `cost`, 0 where the scores
    are public; undeclared it is unknown, which the ledger says.
    """
    table = read_columns(path, "scores", ("feature",), ("importance", "sensitivity", "rank", "seed"))
    if "seed" in table.column_names and len(pc.unique(table["seed"])) > 1:
        raise DataError(f"{path} holds the scores of several seeds; make those of one, with `ldp select --seed 0`")
    place = _places(path, table["feature"], graph.feature_names, graph.dimensions, "feature")
    options: dict[str, Any] = {}
    for name in ("importance", "sensitivity"):
        if name in table.column_names:
            values = np.empty(graph.dimensions)
            values[place] = _numbers(path, table[name], name)
            options[name] = values.tolist()
    if not options:
        raise DataError(f"{path}: scores need a column importance or sensitivity, or both")
    return ScoresWithCost(options=options, ledger=_cost(path, cost, next(iter(options))))


def _cost(path: Path, cost: float | None, what: str) -> list[dict[str, Any]]:
    """Return what finding scores out has cost each person: what their file says, or what is declared, or unknown."""
    try:
        known = read_meta(path, "ldp select").get("ledger")
    except ArtifactError:
        known = None
    if known is not None:
        if cost is not None:
            raise OptionError(f"{path} says itself what its scores have cost: leave --scores-epsilon out")
        return list(known)
    if cost is None:
        return Ledger(spends=(Spend(what=what, epsilon=0.0, known=False),)).as_json()
    return Ledger(spends=(Spend(what=what, epsilon=cost),) if cost else ()).as_json()


def _places(path: Path, column: Any, known: tuple[str, ...] | None, count: int, what: str) -> NDArray[np.int64]:
    """Return each row's place in the graph's order; every one must be there, and once."""
    names = pa.array(known if known is not None else [str(place) for place in range(count)])
    place = pc.index_in(pc.cast(column, pa.string()), value_set=names)
    if place.null_count:
        row = int(np.flatnonzero(pc.is_null(place).to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{path}: row {row + 1} names a {what} that the graph does not have; leave it out")
    out = np.asarray(place.to_numpy(zero_copy_only=False), dtype=np.int64)
    if len(out) != count or len(np.unique(out)) != count:
        raise DataError(
            f"{path}: every one of the {counted(count, what)} needs one row, got {counted(len(out), 'row')}"
        )
    return out


def _numbers(path: Path, column: Any, name: str) -> NDArray[np.float64]:
    try:
        values = np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowException:
        raise DataError(f"{path}: the column {name!r} must hold numbers") from None
    if not np.isfinite(values).all():
        raise DataError(f"{path}: the column {name!r} holds a value that is missing or not finite")
    return values
