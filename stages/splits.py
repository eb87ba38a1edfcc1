"""Which nodes each seed trains on, is selected by, and is tested on."""

from __future__ import annotations

import numpy as np

from graphldp.errors import DataError
from graphldp.graph import Graph
from graphldp.randomness import generator
from graphldp.splits import Split, random_split
from graphldp.stages.params import Params

__all__ = ["split_of"]


def split_of(graph: Graph, params: Params, seed: int) -> Split:
    """Return the split of a seed: the same for every method of a table."""
    labelled = np.flatnonzero(graph.labels >= 0)
    if labelled.size < 3:
        raise DataError(
            f"graph {graph.name} has {labelled.size} nodes with a label; to train, to validate and to test it needs 3"
        )
    return random_split(
        labelled,
        generator(params.seed, "split", graph.name, seed),
        train=params.train.train_fraction,
        validation=params.train.validation_fraction,
    )
