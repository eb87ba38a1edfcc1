"""Stage denoise: answers in, Calibrated out. The server's side begins here; all of it is post-processing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphldp import __version__, methods
from graphldp.errors import OptionError
from graphldp.experiment.estimates import calibration_of
from graphldp.experiment.options import Further
from graphldp.experiment.server_view import ServerView
from graphldp.ledger import epsilon_text
from graphldp.progress import Progress
from graphldp.server import Estimate, Filtered
from graphldp.stages.files.answers import check_asked, conversation_in, open_answers, with_draws
from graphldp.stages.files.artifacts import ParquetSink, file_hash
from graphldp.stages.files.belong import FEATURES_HASH, check_graph
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import PUBLIC, calibrated_path, graph_dir
from graphldp.stages.files.reports import CARRIED, CalibratedFile, write_calibrated
from graphldp.stages.grids.cell import Cell
from graphldp.stages.pages.wording import counted

__all__ = ["denoise", "make_command", "materialize"]


def make_command(dataset: str, method: str, mechanism: str, epsilon: float, further: Further = PUBLIC) -> str:
    """Return the command that makes a Calibrated artifact."""
    command = f"ldp denoise --dataset {dataset} --method {method} --mechanism {mechanism}"
    return f"{command} --epsilon {epsilon_text(epsilon)}{further.command()}"


def denoise(
    cell: Cell,
    *,
    data: Path,
    steps: Sequence[int],
    reports: Path | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Rectify every seed's answers and write them with the filter that the method means.

    The cell's `changes` replace parts of the method: `filter`, `before`, `after`, the filter's own options, and what of
    the way of asking comes after the answers. `reports` is what `ldp perturb` wrote, where it isn't in its usual place.
    """
    if not methods.method(cell.method).model:
        raise OptionError(f"method {cell.method!r} sends nothing, so there is nothing to denoise")
    dataset, method, epsilon, further = cell.dataset, cell.method, cell.epsilon, cell.further
    recipe, mechanism = cell.recipe, cell.whole().mechanism
    if not recipe.calibrates:
        raise OptionError(
            f"method {method!r} learns from answers as they are, so nothing is calibrated: train from what `ldp "
            f"perturb --method {method}` writes"
        )
    graph = read_graph(graph_dir(data, dataset), features=False)
    source = open_answers(dataset, recipe, mechanism, epsilon, data, reports, further=further)
    changes = {**source.meta.get("changes", {}), **cell.changes}
    recipe = methods.method(method).but(changes)
    check_asked(source.path, source.meta, recipe)
    check_graph(source.path, source.meta, graph, data, f"make it again with `{with_draws(source.make, source.meta)}`")
    asked, tried = conversation_in(source.meta, graph, recipe), recipe.steps(tuple(steps))
    listen = source.further_questions
    view = ServerView(graph=graph, further=further, root=0, listen=listen, linked=not recipe.alone)
    filters = [calibration_of(recipe, k, asked.device, view.sample, whole=not view.private_links) for k in tried]
    meta: dict[str, Any] = {
        "kind": "calibrated",
        "method": method,
        "name": recipe.cell_name(mechanism),
        "fill": asked.device.fill_value,
        "steps": list(tried),
        "filters": [one.meta() for one in filters],
        "reports": file_hash(source.path),
        "library": __version__,
        **{key: source.meta[key] for key in CARRIED},
        **changed(recipe, changes),
        **({} if recipe.asking is None else {"rounds": asdict(recipe.asking)}),
        **({"further": further.facts()} if further.asked else {}),
        **{key: source.meta[key] for key in ("selection", FEATURES_HASH) if key in source.meta},
    }

    def runs() -> Iterator[tuple[int, Estimate]]:
        seeds = source.says.seeds
        for count, seed in enumerate(seeds, start=1):
            yield seed, asked.estimate(source.questions(seed), filters[0])
            if progress:
                progress(count, len(seeds), f"{mechanism} at epsilon {epsilon_text(epsilon)}")

    target = output or calibrated_path(data, dataset, recipe.cell_name(mechanism), epsilon, further)
    write_calibrated(target, runs(), meta)
    return target


def changed(recipe: methods.Method, changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what an artifact says of a recipe beyond its name: what was changed in it, and its evidence."""
    out: dict[str, Any] = {"changes": dict(changes)} if changes else {}
    return out | ({"evidence": {"name": recipe.evidence, **dict(recipe.options)}} if recipe.evidence else {})


def materialize(
    calibrated: Path, *, data: Path, steps: int | None = None, seed: int = 0, output: Path, max_memory: float = 4e9
) -> Path:
    """Write one seed's calibrated embedding as a dense Parquet table (node, f0, f1, ...) for use elsewhere.

    `steps` is needed where the artifact leaves the filter's depth to a search. The embedding is refused where its
    n x d floats would not fit `max_memory` bytes.
    """
    file = CalibratedFile(calibrated, "ldp denoise")
    meta, nodes, dimensions = file.meta, file.says.nodes, file.says.dimensions
    if steps is None:
        if len(file.steps) != 1:
            raise OptionError(f"the filter's depth is open: choose --steps from {list(file.steps)}")
        (steps,) = file.steps
    need = 4 * nodes * dimensions * 2
    if need > max_memory:
        raise OptionError(
            f"the embedding of {counted(nodes, 'node')} x {counted(dimensions, 'dimension')} needs {need / 1e9:.3g} "
            f"GB, the limit is {max_memory / 1e9:.3g} GB; raise it with --max-memory, or train on the sparse artifact "
            "instead"
        )
    graph = read_graph(graph_dir(data, file.says.dataset), features=False)
    check_graph(calibrated, meta, graph, data, "perturb and denoise again, or give back the graph it was made for")
    if steps not in file.steps:
        raise OptionError(f"{calibrated} was made for the depths {list(file.steps)}, not {steps}; denoise again")
    estimate = file.load(seed)
    rest = file.filters()[steps].but(before=0.0)
    embedding = Filtered.of(estimate, rest, rest.operator(graph, estimate.weights)).dense()
    columns: dict[str, Any] = {"node": pa.array(np.arange(len(embedding), dtype=np.int32))}
    columns |= {f"f{j}": pa.array(np.ascontiguousarray(embedding[:, j])) for j in range(embedding.shape[1])}
    facts = {key: meta[key] for key in ("dataset", "method", "mechanism", "epsilon", "claim", "reports", "library")}
    table = pa.table(columns)
    with ParquetSink(output, table.schema, {"kind": "embedding", "steps": steps, "seed": seed, **facts}) as sink:
        sink.write(table)
    return output
