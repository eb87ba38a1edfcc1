"""Command influence: what a trained model tells of people's links, over true ones and over estimated graphs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp.adversary.bounds import advantage_bound
from graphldp.adversary.links import LinkAttack
from graphldp.adversary.teller import attack_model, people_of_links
from graphldp.client.links import Neighbours, link_mechanism, link_names
from graphldp.errors import DataError, OptionError
from graphldp.evaluation import Interval
from graphldp.experiment.running import run
from graphldp.graph import Graph
from graphldp.progress import Progress
from graphldp.randomness import generator
from graphldp.stages.attack import percent, write_rows
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.pages.wording import counted
from graphldp.trusted import CURATORS

__all__ = ["HEADS", "PEOPLE", "InfluenceRow", "cells", "influence", "markdown", "write_influence"]

PEOPLE = 120
_SEEDS, _POINTS, _EPOCHS = 2, 2, 200  # of each model: final runs, points of its search, epochs at most
_ABOUT = (
    "GCN is trained on everybody's true features over each graph, and then asked: one person's features grow by a "
    "hundredth, and whose answers move? (LinkTeller; all that counts is who is linked in truth.) `area` is under the "
    "curve of true over false positives, `precision` that of as many guesses as there are links among the people, "
    "`advantage` true less false positives of these guesses, and `at most` what epsilon of a relationship allows on "
    "average. A mechanism runs at the epsilon of a bit that makes the relationship lose as much, with the estimator "
    "that is its own. `features alone` is a perceptron, which no link reaches."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluenceRow:
    """What one model tells.

    Attributes:
        dataset: the graph.
        row: over which links it was trained.
        epsilon: what is lost about one relationship; infinite where links are public, 0 where none has a part.
        score: the model's row: its test accuracy.
        attack: how well links were guessed; None where the mechanism cannot be run at this budget.
        why: the reason.
    """

    dataset: str
    row: str
    epsilon: float
    score: Interval | None = None
    attack: LinkAttack | None = None
    why: str = ""

    @property
    def bound(self) -> float:
        """The largest advantage that epsilon allows on average."""
        return advantage_bound(self.epsilon)


def influence(
    dataset: str,
    epsilons: Sequence[float],
    *,
    data: Path,
    people: int = PEOPLE,
    root: int = 0,
    progress: Progress | None = None,
) -> list[InfluenceRow]:
    """Return what a model tells over public links, over none, and over each way's graph at each budget."""
    graph = read_graph(graph_dir(data, dataset))
    lists = Neighbours.of_edges(graph.edges, graph.nodes)
    who = people_of_links(lists, generator(root, "influence", graph.name), people)
    if not len(who):
        raise DataError(f"graph {graph.name} has no links, so there is none to find")
    ways = list(_ways(graph, epsilons))
    out = []
    for count, (name, epsilon, method, asked) in enumerate(ways, start=1):
        try:
            found = run(
                graph, method, epsilon=math.inf, mechanism="identity", seeds=_SEEDS, search_seeds=1, points=_POINTS,
                epochs=_EPOCHS, patience=20, steps=[0], references=False, seed=root, **asked,
            )  # fmt: skip
            out.append(
                InfluenceRow(
                    dataset=graph.name, row=name, epsilon=epsilon, score=found.score, attack=attack_model(found, who)
                )
            )
        except OptionError as error:  # at this budget the mechanism would report more than fits
            out.append(InfluenceRow(dataset=graph.name, row=name, epsilon=epsilon, why=str(error)))
        if progress:
            progress(count, len(ways), f"{name} at epsilon {epsilon:g}")
    return out


def _ways(graph: Graph, epsilons: Sequence[float]) -> Iterator[tuple[str, float, str, Mapping[str, Any]]]:
    """Yield each model's name, the epsilon of a relationship, its method, and what is asked beside features."""
    yield "public links", math.inf, "base", {}
    yield "features alone", 0.0, "mlp", {}
    for epsilon in epsilons:
        for name in link_names():
            whole = link_mechanism(name, 1.0, graph.nodes).relationship_epsilon
            yield name, epsilon, "base", {"links": name, "epsilon_links": epsilon / whole}
        for name in CURATORS:
            yield f"{name}, a curator", epsilon, "base", {"links": name, "epsilon_links": epsilon}


HEADS = ("epsilon", "links", "accuracy", "area", "precision", "advantage", "at most")


def cells(row: InfluenceRow) -> list[str]:
    """Return a row as a table shows it; shares in percent."""
    attack = row.attack
    if attack is None or row.score is None:
        return [f"{row.epsilon:g}", row.row, "refused", "", "", "", percent(row.bound)]
    shares = [percent(one) for one in (attack.precision, attack.advantage, row.bound)]
    return [f"{row.epsilon:g}", row.row, f"{row.score.mean:.1f}", f"{attack.area:.3f}", *shares]


def markdown(rows: Sequence[InfluenceRow], command: str) -> str:
    """Return the page: how links were sought, and a table for each graph."""
    text = ["# What a trained model tells of links", "", *textwrap.wrap(f"`{command}`: {_ABOUT}", 120)]
    for dataset in dict.fromkeys(row.dataset for row in rows):
        own = [row for row in rows if row.dataset == dataset]
        seen = next(row.attack for row in own if row.attack is not None)
        text += [
            "",
            f"## {dataset}",
            "",
            f"{counted(seen.links, 'link')} among {counted(seen.pairs, 'pair')} of people.",
            "",
        ]
        text += ["| " + " | ".join(HEADS) + " |", "| ---: | --- |" + " ---: |" * (len(HEADS) - 2)]
        text += ["| " + " | ".join(cells(row)) + " |" for row in own]
        text += ["", *(f"- {row.row} at {row.epsilon:g}: {row.why}" for row in own if row.why)]
    return "\n".join(text).rstrip() + "\n"


def write_influence(rows: Sequence[InfluenceRow], folder: Path, command: str) -> list[Path]:
    """Write all rows as CSV, and a page."""
    nan = math.nan
    table = [
        {
            "dataset": row.dataset,
            "epsilon": row.epsilon,
            "row": row.row,
            "accuracy": row.score.mean if row.score else nan,
            **{name: getattr(row.attack, name, nan) for name in ("area", "precision", "advantage", "links", "pairs")},
            "bound": row.bound,
            "why": row.why,
        }
        for row in rows
    ]
    out = [folder / "influence.csv", folder / "influence.md"]
    write_rows(out[0], table)
    write_text(out[1], markdown(rows, command))
    return out
