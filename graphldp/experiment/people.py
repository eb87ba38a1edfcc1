"""Which of the people are trained on, selected by and tested on, seed by seed: the same for every method of a table.

What directs questions needs it as well as what learns, so that it stands apart from models and the library they need.
"""

from __future__ import annotations

import numpy as np

from graphldp.errors import DataError
from graphldp.experiment.options import INDUCTIVE, Settings
from graphldp.graph import Graph
from graphldp.measures import measures_of, tasks
from graphldp.randomness import generator
from graphldp.splits import Apart, Split, random_split, set_apart

__all__ = ["apart_of", "split_of"]


def split_of(graph: Graph, params: Settings, seed: int) -> Split:
    """Return the split of a seed: the same for every method of a table.

    It is of the nodes with a label, whatever is learned; where nobody has one and none is learned, it is of all nodes.
    """
    labelled, entry = np.flatnonzero(graph.labels >= 0), measures_of(params.train.task)
    if entry.target is not None and not entry.classes and not labelled.size:
        labelled = np.arange(graph.nodes)
    if labelled.size < 3:
        raise DataError(
            f"graph {graph.name} has {labelled.size} nodes with a label; to train, to validate and to test it needs 3"
            + ("" if labelled.size else f". {_without_classes().capitalize()} need none")
        )
    if entry.classes and len(np.unique(graph.labels[labelled])) < 2:
        raise DataError(
            f"graph {graph.name} has one class, so there is nothing to classify; give labels of two classes or more, "
            f"or learn another task: {_without_classes()} need no classes"
        )
    return random_split(
        labelled,
        generator(params.seed, "split", graph.name, seed),
        train=params.train.train_fraction,
        validation=params.train.validation,
    )


def _without_classes() -> str:
    return " and ".join(entry.title for entry in map(measures_of, tasks()) if not entry.classes)


def apart_of(graph: Graph, params: Settings, seed: int) -> Apart | None:
    """Return who is in which part where each part is a graph of its own; None where all are in one."""
    if params.train.split != INDUCTIVE:
        return None
    rng = generator(params.seed, "apart", graph.name, seed)
    return set_apart(split_of(graph, params, seed), graph.nodes, rng)
