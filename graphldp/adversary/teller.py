"""LinkTeller on a model that was trained here: whose answers move when one person's features change.

The attacker sends features and sees class probabilities, and knows no link. What she finds are the links over which the
model passes messages: over public links these are people's own, and over an estimated graph no more than that graph
tells, which the epsilon of a relationship bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphldp.adversary.links import LinkAttack, influence_attack
from graphldp.client.links import Neighbours
from graphldp.errors import OptionError
from graphldp.experiment.running import RunResult
from graphldp.learn import NodeInputs, predictions
from graphldp.randomness import Source

__all__ = ["attack_model", "people_of_links"]

_FACTOR = 0.01  # by which a person's features grow: well above the rounding of float32


def people_of_links(lists: Neighbours, rng: Source, count: int) -> NDArray[np.int64]:
    """Return people among whom there are links and pairs without one: the ends of links drawn at random."""
    rows, others = lists.rows(), np.asarray(lists.indices, dtype=np.int64)
    once = np.flatnonzero(rows > others)
    order = once[np.argsort(rng.random(len(once)), kind="stable")]
    ends = np.stack([rows[order], others[order]], axis=1).reshape(-1)
    _, first = np.unique(ends, return_index=True)
    return np.sort(ends[np.sort(first)][:count]).astype(np.int64)


def attack_model(found: RunResult, people: NDArray[np.int64]) -> LinkAttack:
    """Return how well the influence of these people on each other's answers tells their true links.

    The model is the final one with the lowest validation loss, over the graph that it was trained on.
    """
    kept, cell = found.model(), found.row.cell
    if cell.problem is None:
        raise OptionError(f"{found.row.name} was not trained here, so it cannot be asked")
    final = [row["validation_loss"] for row in cell.rows if row["role"] == "final"]
    used = cell.runs[int(np.argmin(final))]
    inputs, graph = cell.problem.inputs[used.inputs], cell.problem.graph(used.graph)
    if inputs.filtered:
        raise OptionError(f"{found.row.name} takes features that were filtered before, which nobody can send")

    def answers(features: NDArray[np.float64]) -> NDArray[np.float64]:
        sent = NodeInputs(deviations=features.astype(np.float32), fill=inputs.fill)
        said = predictions(kept, sent, graph.shift, graph.adjacency, device=found.device).probabilities
        return np.asarray(said, dtype=np.float64)

    lists = Neighbours.of_edges(found.graph.edges, found.graph.nodes)
    return influence_attack(answers, inputs.dense(), lists, people, delta=_FACTOR)
