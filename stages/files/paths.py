"""Where each artifact stands below the data folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from graphldp.experiment.options import Further
from graphldp.ledger import epsilon_text
from graphldp.measures import DEFAULT_TASK
from graphldp.stages.files.leftovers import bring_back

if TYPE_CHECKING:
    from graphldp.stages.grids.cell import Cell

PUBLIC = Further()  # nobody is asked for anything beside features

__all__ = [
    "NAME",
    "answers_of",
    "answers_path",
    "calibrated_of",
    "calibrated_path",
    "cell_file",
    "cell_path",
    "floor_path",
    "graph_dir",
    "reports_path",
    "runs_path",
    "sources_path",
    "stored_graphs",
    "trials_path",
]


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # what a graph may be called


def graph_dir(data: Path, dataset: str) -> Path:
    """Return the folder of a Graph artifact.

    One that a killed process had set aside, to write another one in its place, gets its name back first.
    """
    path = data / "graphs" / dataset
    if not path.exists():
        bring_back(path.parent)
    return path


def sources_path(data: Path, name: str) -> Path:
    """Return the record of where a graph's files came from, and how it is made again.

    It stands outside the artifact, which is the same whichever source gave the files.
    """
    return data / "raw" / "sources" / f"{name}.json"


def stored_graphs(data: Path) -> tuple[str, ...]:
    """Return the names of the Graph artifacts that are there, sorted."""
    return tuple(sorted(path.parent.name for path in graph_dir(data, "x").parent.glob("[!.]*/graph.json")))


def reports_path(data: Path, dataset: str, mechanism: str, epsilon: float) -> Path:
    """Return the file of what people report once: it depends on the mechanism alone, and rows share it."""
    return data / "perturbed" / dataset / mechanism / f"eps={epsilon_text(epsilon)}.parquet"


def answers_path(data: Path, dataset: str, name: str, epsilon: float, further: Further = PUBLIC) -> Path:
    """Return the file of the answers to several questions; `name` is the row's name."""
    return data / "perturbed" / dataset / name / _file(epsilon, further)


def calibrated_path(data: Path, dataset: str, name: str, epsilon: float, further: Further = PUBLIC) -> Path:
    """Return the file of a Calibrated artifact; `name` is the arm's name."""
    return data / "denoised" / dataset / name / _file(epsilon, further)


def runs_path(
    data: Path, dataset: str, name: str, epsilon: float, task: str = DEFAULT_TASK, further: Further = PUBLIC
) -> Path:
    """Return the file of a Runs artifact; `name` is the arm's name."""
    return data / "runs" / dataset / _row(name, task) / _file(epsilon, further)


def _file(epsilon: float, further: Further) -> str:
    """Return the name of a file of that budget, with those of further questions before it."""
    places = [f"{name}={epsilon_text(value)}" for name, value in further.budgets().items()]
    return f"{','.join([*places, f'eps={epsilon_text(epsilon)}'])}.parquet"


def floor_path(data: Path, dataset: str, fingerprint: str) -> Path:
    """Return the file of what one learner that nobody tells anything has made of a graph."""
    return data / "floors" / dataset / f"{fingerprint}.json"


def trials_path(data: Path, dataset: str, name: str, epsilon: float, task: str = DEFAULT_TASK) -> Path:
    """Return the file of a Trials artifact; `name` is the row's name."""
    return data / "trials" / dataset / _row(name, task) / f"eps={epsilon_text(epsilon)}.parquet"


def _row(name: str, task: str) -> Path:
    """Return a row's place: tasks other than the default one have a folder of their own."""
    return Path(name) if task == DEFAULT_TASK else Path(task) / name


def cell_file(cell: Cell) -> str:
    """Return the name of a cell's file in its row's folder."""
    from graphldp.stages.grids.cell import value_text

    place = [f"{name}={value_text(value)}" for name, value in cell.axes]
    return f"{','.join([*place, f'eps={epsilon_text(cell.epsilon)}'])}.parquet"


def cell_path(folder: Path, cell: Cell) -> Path:
    """Return the file of a cell's runs."""
    return folder / "runs" / cell.graph / cell.name / cell_file(cell)


def answers_of(data: Path, cell: Cell) -> Path:
    """Return where the answers stand that a cell is learned from."""
    from graphldp import methods

    recipe = methods.method(cell.method).but(cell.changes)
    if recipe.asking is None and not cell.options and not cell.further.asked:
        return reports_path(data, cell.graph, cell.mechanism, cell.epsilon)
    return answers_path(data, cell.graph, cell.name, cell.epsilon).with_name(cell_file(cell))


def calibrated_of(data: Path, cell: Cell) -> Path:
    """Return where a cell's calibrated answers stand."""
    return calibrated_path(data, cell.graph, cell.name, cell.epsilon).with_name(cell_file(cell))
