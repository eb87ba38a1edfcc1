"""Which nodes each seed trains on, is selected by, and is tested on."""

from __future__ import annotations

import numpy as np

from graphldp.errors import DataError
from graphldp.graph import Graph
from graphldp.randomness import generator
from graphldp.splits import Apart, Split, random_split, set_apart
from graphldp.stages.params import INDUCTIVE, Params

__all__ = ["apart_of", "split_of"]


def split_of(graph: Graph, params: Params, seed: int) -> Split:
    """Return the split of a seed: the same for every method of a table.

    It is of the nodes with a label, whatever is learned; where nobody has one and none is learned, it is of all nodes.
    """
    labelled = np.flatnonzero(graph.labels >= 0)
    if params.train.task == "regression" and not labelled.size:
        labelled = np.arange(graph.nodes)
    if labelled.size < 3:
        raise DataError(
            f"graph {graph.name} has {labelled.size} nodes with a label; to train, to validate and to test it needs 3"
            + ("" if labelled.size else ". Link prediction and regression need none")
        )
    return random_split(
        labelled,
        generator(params.seed, "split", graph.name, seed),
        train=params.train.train_fraction,
        validation=params.train.validation,
    )


def apart_of(graph: Graph, params: Params, seed: int) -> Apart | None:
    """Return who is in which part where each part is a graph of its own; None where all are in one."""
    if params.train.split != INDUCTIVE:
        return None
    rng = generator(params.seed, "apart", graph.name, seed)
    return set_apart(split_of(graph, params, seed), graph.nodes, rng)
