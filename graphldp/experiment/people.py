"""Which of the people are trained on, selected by and tested on, seed by seed: the same for every method of a table.

What directs questions needs it as well as what learns, so that it stands apart from models and the library they need.
"""

from __future__ import annotations

import numpy as np

from graphldp.errors import DataError, OptionError
from graphldp.experiment.options import INDUCTIVE, Settings, TrainParams
from graphldp.graph import Graph
from graphldp.measures import measures_of, tasks
from graphldp.randomness import generator
from graphldp.splits import Apart, Split, random_split, set_apart
from graphldp.tasks.base import TaskEntry

__all__ = ["apart_of", "split_of"]


def split_of(graph: Graph, params: Settings, seed: int) -> Split:
    """Return the split of a seed: the same for every method of a table.

    It is of the nodes with a label, whatever is learned; where nobody has one and none is learned, it is of all nodes.
    Apart (`train.split: inductive`), it is the one that the data set's files have, if they have one.
    """
    labelled, entry = np.flatnonzero(graph.labels >= 0), measures_of(params.train.task)
    _check_labels(graph, entry)
    if not labelled.size and (graph.label_sets is not None or (entry.target is not None and not entry.classes)):
        labelled = np.arange(graph.nodes)
    if graph.parts is not None and _own_parts(graph, params):
        return Split(**{name: labelled[graph.parts[labelled] == k] for k, name in enumerate(_PARTS)})
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


def _check_labels(graph: Graph, entry: TaskEntry) -> None:
    """Refuse a task that learns classes where nodes have sets of labels, and one of sets where they have classes."""
    if entry.classes and graph.label_sets is not None:
        raise DataError(
            f"a node of {graph.name} has a set of {graph.label_sets.shape[1]} yes/no labels and no class: learn task "
            "multi-label, or take one of them as the class (`ldp download ppi --set label=K`)"
        )
    if entry.sets and graph.label_sets is None:
        raise DataError(
            f"a node of {graph.name} has no set of labels, which task {entry.task!r} learns; take a data set that has "
            "them, as ppi, or another task"
        )


_PARTS = ("train", "validation", "test")


def _own_parts(graph: Graph, params: Settings) -> bool:
    """Whether the parts of a data set's files are taken; shares of them that somebody asks for are refused."""
    train = params.train
    if train.split != INDUCTIVE:
        return False
    usual = TrainParams()
    for name in ("train_fraction", "validation_fraction"):
        if getattr(train, name) != getattr(usual, name):
            raise OptionError(
                f"train.{name} has no meaning for {graph.name} with train.split inductive, whose parts are those of "
                "its files; leave it out, or use split random"
            )
    return True


def _without_classes() -> str:
    return " and ".join(entry.title for entry in map(measures_of, tasks()) if not entry.classes and not entry.sets)


def apart_of(graph: Graph, params: Settings, seed: int) -> Apart | None:
    """Return who is in which part where each part is a graph of its own; None where all are in one."""
    if params.train.split != INDUCTIVE:
        return None
    if graph.parts is not None and _own_parts(graph, params):
        return Apart(**{name: np.flatnonzero(graph.parts == k) for k, name in enumerate(_PARTS)})
    rng = generator(params.seed, "apart", graph.name, seed)
    return set_apart(split_of(graph, params, seed), graph.nodes, rng)
