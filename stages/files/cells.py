"""Cells of tables, computed once: found by all that decides their numbers, or computed and kept.

`ldp train`, `ldp experiment` and the pipeline look here first. A cell is claimed while it is computed, so
that two processes on one folder share the work; a claim ends with its process, and another one goes on from where an
interrupted cell was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphldp import __version__
from graphldp.errors import ArtifactError
from graphldp.experiment.cell import learn_cell
from graphldp.experiment.options import Settings
from graphldp.experiment.plan import CellPlan
from graphldp.experiment.resources import Resources
from graphldp.experiment.result import CellResult, Checkpoint, Pause
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.learn import resolve_device
from graphldp.progress import Progress
from graphldp.stages.code import code_hash
from graphldp.stages.files.artifacts import Room, read_meta, read_table, table_bytes
from graphldp.stages.files.checkpoints import Keeper
from graphldp.stages.files.runs import runs_schema
from graphldp.stages.files.shared_work import claimed

__all__ = ["ROOM", "Cells", "cell_mark", "kept", "mark_of", "not_lost"]

ROOM = 2 * 2**20  # bytes; what a cell leaves took up to 0.15 million where it was looked at


def cell_mark(
    plan: CellPlan, settings: Settings, content: str, device: str = "auto", max_memory: int | None = None
) -> str:
    """Return a hash of all that decides a cell's numbers: reports, points, settings, graph, code, kind of device.

    `content` is the hash of the graph. A limit of memory may make batches of nodes, which are other updates. What a row
    is called is no part of it.
    """
    whole = {id(setup): setup.facts(content, settings) for setup in plan.setups}
    facts = [
        [[point.values(), whole[id(setup)]] for point, setup in zip(plan.points, plan.setups, strict=True)],
        [dataclasses.asdict(learner) for learner in plan.learners],
        {"seed": settings.seed, "seeds": settings.seeds},
        {part: dataclasses.asdict(getattr(settings, part)) for part in ("search", "train")},
        [resolve_device(device).type, max_memory],
        plan.server_view.facts() if plan.server_view.replaces else {},
    ]
    return mark_of(facts, content)


def mark_of(facts: Any, content: str) -> str:
    """Return a hash of JSON-able facts, of a graph, and of the code that trains."""
    whole = plain([facts, content, code_hash("train"), __version__])
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


class Cells:
    """The cells that are kept below a data folder."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "cells"

    def learn(
        self,
        graph: Graph,
        plan: CellPlan,
        settings: Settings,
        content: str,
        *,
        device: str = "auto",
        resources: Resources | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> CellResult:
        """Return what a cell has become, computed if it is not there; interrupted, it goes on where it was.

        Args:
            graph: the graph.
            plan: what the cell tries.
            settings: seeds, search and training.
            content: the hash of the graph.
            device: where to compute.
            resources: what the machine gives.
            progress: is told (done, total, text).
            whole: whether the final models are wanted, which are not kept.
        """
        resources = resources or Resources()
        mark = cell_mark(plan, settings, content, device, resources.max_memory)
        with self._claimed(mark, resources):
            if not whole and _agreed(self._path(mark).exists(), resources):
                found = self._get(mark, plan)
                if found is not None:
                    return found
            with kept(self._path(mark), self._folder / f"{mark}.resume.safetensors", mark, resources) as (pause, keep):
                if whole and pause.checkpoint is None:
                    pause = dataclasses.replace(pause, checkpoint=self._searched(mark, resources))
                result = learn_cell(
                    graph,
                    plan,
                    settings,
                    device=device,
                    resources=resources,
                    pause=pause,
                    progress=progress,
                    whole=whole,
                )
                if resources.leads:
                    keep(*self._table(result, settings.train.task))
        return result

    def free(self, mark: str) -> bool:
        """Return whether nobody is computing a cell."""
        claim = self._folder / f"{mark}.claim"
        if not claim.exists():
            return True
        with contextlib.suppress(FileNotFoundError), claimed(claim, wait=False, create=False) as mine:
            return mine
        return True

    def _path(self, mark: str) -> Path:
        return self._folder / f"{mark}.parquet"

    def _get(self, mark: str, plan: CellPlan) -> CellResult | None:
        """Return a cell that is there; None of a file that is damaged, which is computed again."""
        path = self._path(mark)
        try:
            meta, rows = read_meta(path, "ldp train"), read_table(path, "ldp train").to_pylist()
        except ArtifactError:
            return None
        place = next(row["point"] for row in rows if row["role"] == "final")
        return CellResult(
            rows=rows,
            chosen=plan.points[place].values(),
            steps=plan.points[place].steps,
            setup=plan.setups[place],
            records=meta["records"],
            record=meta["record"],
            learners=tuple(meta["learners"]),
        )

    def _searched(self, mark: str, resources: Resources) -> Checkpoint | None:
        """Return a cell that is there as where its final runs begin: these alone are trained again for their models."""
        found = None
        if resources.leads and self._path(mark).exists():
            with contextlib.suppress(ArtifactError):
                meta, rows = read_meta(self._path(mark), "ldp train"), read_table(self._path(mark), "ldp train")
                tried = [row for row in rows.to_pylist() if row["role"] != "final"]
                found = Checkpoint(fingerprint=mark, phase="final", rows=tried, records=meta["records"], state=None)
        return _in_all(found, resources)

    def _table(self, result: CellResult, task: str) -> tuple[pa.Table, dict[str, Any]]:
        schema = runs_schema(task)
        columns = {field.name: [row[field.name] for row in result.rows] for field in schema}
        facts = {"kind": "cell", "records": list(result.records), "record": result.record}
        facts |= {"learners": list(result.learners), "library": __version__}
        return pa.table(columns, schema=schema), facts

    @contextlib.contextmanager
    def _claimed(self, mark: str, resources: Resources) -> Iterator[None]:
        """Hold a cell's claim; where another process has it, wait for that one to end."""
        if not resources.leads:
            yield
            return
        claim = self._folder / f"{mark}.claim"
        for left in sorted(self._folder.glob("*.claim")):  # of processes that were killed
            with contextlib.suppress(OSError), claimed(left, wait=False, create=False) as nobodys:
                if nobodys:
                    left.unlink()
        with claimed(claim, wait=True):
            try:
                yield
            finally:
                # Who waits for it may hold a claim whose file is gone, and looks first whether the cell is there.
                with contextlib.suppress(OSError):
                    claim.unlink()


def _agreed(mine: bool, resources: Resources) -> bool:
    """Return whether it is so in all processes that share the runs."""
    return mine if resources.processes is None else all(resources.processes.gather(b"1" if mine else b""))


@contextlib.contextmanager
def kept(path: Path, stops: Path, mark: str, resources: Resources) -> Iterator[tuple[Pause, Callable[..., None]]]:
    """Have room for what work leaves, from its beginning on: its result, or where it was stopped.

    Args:
        path: where the result is to stand.
        stops: where the state of a training that was stopped stands, and its facts beside it.
        mark: what decides the result.
        resources: what the machine gives.

    Yields:
        Where the work goes on, which is the first process's place in all of them, and what writes its result: a table
        with its metadata, after which it does not go on any more.
    """
    room = Room(path, ROOM) if resources.leads else None
    keeper = Keeper(stops, room, resources.note)

    def keep(table: pa.Table, meta: Mapping[str, Any]) -> None:
        assert room is not None
        room.write(path, table_bytes(table, meta))
        keeper.clear()

    try:
        found = _in_all(keeper.load(mark) if resources.leads else None, resources)
        yield (
            Pause(
                checkpoint=found,
                on_stop=keeper.save if resources.leads else None,
                on_way=keeper.pass_by if resources.leads else None,
                fingerprint=mark,
            ),
            keep,
        )
    finally:
        if room is not None:
            room.leave()


@contextlib.contextmanager
def not_lost(data: Path) -> Iterator[None]:
    """Where what was trained cannot be written, say that it is kept, and where."""
    try:
        yield
    except ArtifactError as error:
        raise ArtifactError(f"{error}. What was trained is kept in {data / 'cells'}: run the same again") from error


def _in_all(found: Checkpoint | None, resources: Resources) -> Checkpoint | None:
    """Return what the first process has found, in all of them."""
    if resources.processes is None:
        return found
    data = resources.processes.gather(b"" if found is None else found.to_bytes())[0]
    return Checkpoint.from_bytes(data) if data else None
