"""Where each artifact stands below the data folder."""

from __future__ import annotations

from pathlib import Path

from graphldp.ledger import epsilon_text
from graphldp.measures import DEFAULT_TASK

__all__ = [
    "calibrated_path",
    "directed_name",
    "floor_path",
    "graph_dir",
    "reports_path",
    "resume_path",
    "runs_path",
    "sources_path",
    "stored_graphs",
    "survey_path",
    "trials_path",
]


def graph_dir(data: Path, dataset: str) -> Path:
    """Return the folder of a Graph artifact."""
    return data / "graphs" / dataset


def sources_path(data: Path, name: str) -> Path:
    """Return the record of where a graph's files came from, and how it is made again.

    It stands outside the artifact, which is the same whichever source gave the files.
    """
    return data / "raw" / "sources" / f"{name}.json"


def stored_graphs(data: Path) -> tuple[str, ...]:
    """Return the names of the Graph artifacts that are there, sorted."""
    return tuple(sorted(path.parent.name for path in graph_dir(data, "x").parent.glob("[!.]*/graph.json")))


def reports_path(data: Path, dataset: str, mechanism: str, epsilon: float) -> Path:
    """Return the file of a Reports artifact."""
    return data / "perturbed" / dataset / mechanism / f"eps={epsilon_text(epsilon)}.parquet"


def directed_name(mechanism: str, score_by: str) -> str:
    """Return under which name a second round's reports stand: those of another ranking are other reports."""
    return f"{mechanism}-{score_by}"


def calibrated_path(data: Path, dataset: str, name: str, epsilon: float) -> Path:
    """Return the file of a Calibrated artifact; `name` is the arm's name."""
    return data / "denoised" / dataset / name / f"eps={epsilon_text(epsilon)}.parquet"


def survey_path(data: Path, dataset: str, name: str, epsilon: float) -> Path:
    """Return the file of a Survey artifact; `name` is the arm's name."""
    return data / "surveyed" / dataset / name / f"eps={epsilon_text(epsilon)}.parquet"


def runs_path(data: Path, dataset: str, name: str, epsilon: float, task: str = DEFAULT_TASK) -> Path:
    """Return the file of a Runs artifact; `name` is the arm's name."""
    return data / "runs" / dataset / _row(name, task) / f"eps={epsilon_text(epsilon)}.parquet"


def resume_path(data: Path, dataset: str, name: str, epsilon: float, task: str = DEFAULT_TASK) -> Path:
    """Return where an interrupted training leaves what it had reached."""
    return data / "resume" / dataset / _row(name, task) / f"eps={epsilon_text(epsilon)}.safetensors"


def floor_path(data: Path, dataset: str, fingerprint: str) -> Path:
    """Return the file of what one learner that nobody tells anything has made of a graph."""
    return data / "floors" / dataset / f"{fingerprint}.json"


def trials_path(data: Path, dataset: str, name: str, epsilon: float, task: str = DEFAULT_TASK) -> Path:
    """Return the file of a Trials artifact; `name` is the row's name."""
    return data / "trials" / dataset / _row(name, task) / f"eps={epsilon_text(epsilon)}.parquet"


def _row(name: str, task: str) -> Path:
    """Return a row's place: tasks other than the default one have a folder of their own."""
    return Path(name) if task == DEFAULT_TASK else Path(task) / name
