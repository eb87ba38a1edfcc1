"""`graphldp.run` on a graph by its name: the one that stands in the data folder, downloaded first where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphldp.experiment.running import RunResult
from graphldp.experiment.running import run as run_graph
from graphldp.stages.download import obtain
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir

__all__ = ["run"]


def run(graph: Any, method: str = "lpgnn", *, data: Path | str = "data", **options: Any) -> RunResult:
    """Run one method on a graph, or on a data set by its name; everything else is `graphldp.experiment.run`'s.

    Args:
        graph: a data set's name, a `graphldp.graph.Graph`, a torch_geometric `Data`, or (features, edges, labels).
        method: the recipe's name, as `ldp list methods` has it.
        data: the folder in which graphs stand that are given by name.
        options: as `graphldp.experiment.run` takes them.
    """
    if isinstance(graph, str):
        folder = graph_dir(Path(data), graph)
        if not folder.exists():
            obtain(graph, Path(data))
        graph = read_graph(folder)
    return run_graph(graph, method, **options)
