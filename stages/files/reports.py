"""Reports and Calibrated artifacts: rows of (seed, node), one row group for each seed.

A fixed number of dimensions is reported by everybody, so the lists have one length. The seeds of a table's final runs
are 0, 1, ...; those of its search are -1, -2, ..., so that neither moves when the other's number changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphldp.client import Claim, Reports
from graphldp.errors import ArtifactError
from graphldp.experiment.devices import hash_of_names
from graphldp.ledger import Ledger
from graphldp.server import Calibration, Estimate
from graphldp.stages.files.artifacts import ParquetSink, expect, open_table, read_meta

__all__ = [
    "CARRIED",
    "CalibratedFile",
    "ReportsMeta",
    "SeedFile",
    "write_calibrated",
    "write_reports",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsMeta:
    """What reports say of themselves; estimates take it over from the reports that they were made of.

    Attributes:
        dataset, input: the graph's name, and the hash of what was perturbed; None where several files were merged.
        mechanism, options, epsilon: what people's devices ran.
        epsilon_exact, delta, claim: what one report costs by the mechanism's law, and what the mechanism promises.
        dimensions, low, high: how many features people have, and their declared range.
        m: how many of these a person reports.
        nodes, nodes_hash: how many people have reported, and the hash of their names in their order; no hash where
            the names stand beside the reports.
        seeds, deterministic: the draws that are there; of a mechanism without randomness, one that serves all.
        ledger: what everybody has spent in all.
        random: where the randomness came from.
    """

    dataset: str
    mechanism: str
    options: Mapping[str, Any]
    epsilon: float
    epsilon_exact: float
    delta: float
    dimensions: int
    m: int
    low: float
    high: float
    claim: Claim
    nodes: int
    seeds: tuple[int, ...]
    deterministic: bool
    input: str | None
    nodes_hash: str
    ledger: Ledger
    random: Mapping[str, Any]

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> ReportsMeta:
        """Read metadata, where an infinite budget is a word."""
        read: dict[str, Callable[[Any], Any]] = dict.fromkeys(("epsilon", "epsilon_exact", "delta"), float)
        read |= {"seeds": tuple, "ledger": Ledger.from_json}
        values = {"nodes_hash": "", **{key: value for key, value in meta.items() if key in CARRIED}}
        values |= {key: change(values[key]) for key, change in read.items()}
        claim = Claim(**values.pop("claim"))
        return cls(**values, claim=replace(claim, epsilon=float(claim.epsilon)))

    @property
    def reproducible(self) -> bool:
        """Whether the reports can be drawn again; what people have really sent cannot."""
        return bool(self.random.get("reproducible", True))


CARRIED = tuple(one.name for one in fields(ReportsMeta))
_INDEX, _WEIGHT, _ID = "index", "weight", "id"
_NODES_HASH = "nodes_hash"


def write_reports(
    path: Path,
    runs: Iterable[tuple[int, Reports]],
    meta: Mapping[str, Any],
    ids: Sequence[str] | None = None,
    *,
    new: bool = False,
) -> None:
    """Write reports one seed at a time; nothing stands under `path` until all are written.

    `ids` are the names under which people take part. They stand in a column, and no hash of them in the metadata.
    `new` says that nothing may have the file's name.
    """
    names = None if ids is None else np.asarray(ids, dtype=object)
    _write(path, ((seed, r.index, r.value, _extra(id=names, level=r.level)) for seed, r in runs), meta, new)


def write_calibrated(path: Path, runs: Iterable[tuple[int, Estimate]], meta: Mapping[str, Any]) -> None:
    """Write estimates one seed at a time."""
    _write(path, ((seed, *_rows(one), _extra(weight=one.weights)) for seed, one in runs), meta)


def _extra(**columns: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Return the columns that there are."""
    return {name: values for name, values in columns.items() if values is not None}


def _rows(estimate: Estimate) -> tuple[NDArray[np.int32] | None, NDArray[np.float32]]:
    """Return an estimate's indices (None where every dimension is there) and values as rectangles."""
    matrix = estimate.matrix
    nodes, dimensions = matrix.shape
    value = matrix.data.reshape(nodes, matrix.nnz // max(nodes, 1))
    return (None if value.shape[1] == dimensions else matrix.indices.reshape(value.shape)), value


def _write(
    path: Path,
    runs: Iterable[tuple[int, NDArray[np.int32] | None, NDArray[Any], dict[str, NDArray[Any]]]],
    meta: Mapping[str, Any],
    new: bool = False,
) -> None:
    sink: ParquetSink | None = None
    try:
        for seed, index, value, extra in runs:
            table = _table(seed, index, value, extra)
            if sink is None:
                sink = ParquetSink(path, table.schema, meta, noise=index is None and value.dtype.kind == "f", new=new)
            sink.write(table)
    except BaseException as error:
        if sink is not None:
            sink.__exit__(type(error), error, error.__traceback__)
        raise
    if sink is None:
        raise ArtifactError(f"{path}: there is no seed to write; ask for at least one")
    sink.__exit__(None, None, None)


def _table(
    seed: int, index: NDArray[np.int32] | None, value: NDArray[Any], extra: Mapping[str, NDArray[Any]]
) -> pa.Table:
    nodes, width = value.shape
    who = {"seed": np.full(nodes, seed, dtype=np.int32), "node": np.arange(nodes, dtype=np.int32)}
    columns: dict[str, Any] = {name: pa.array(numbers) for name, numbers in who.items()}
    columns |= {name: pa.array(numbers) for name, numbers in extra.items()}
    if index is not None:
        columns[_INDEX] = _lists(index, width)
    columns["value"] = _lists(value, width)
    return pa.table(columns)


def _lists(rows: NDArray[Any], width: int) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
    if not width:  # of features that are all 0; Parquet cannot hold lists of the fixed length 0
        return pa.ListArray.from_arrays(pa.array(np.zeros(len(rows) + 1, dtype=np.int32)), flat)
    item = pa.field("item", flat.type, nullable=False)
    return pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(item, width))


@dataclass(slots=True)
class SeedFile:
    """A file of (seed, node) rows, read one seed at a time."""

    kinds: ClassVar[tuple[str, ...]]
    path: Path
    make: str
    meta: dict[str, Any] = field(init=False)
    says: ReportsMeta = field(init=False)  # the same, of what every such file says
    ids: tuple[str, ...] | None = field(init=False, default=None)  # under which people take part, where it says so
    _file: pq.ParquetFile = field(init=False)

    def __post_init__(self) -> None:
        self.meta = read_meta(self.path, self.make)
        if self.meta.get("kind") not in self.kinds:
            expect(self.meta, self.path, self.make, kind=self.kinds[0])
        self._file = open_table(self.path, self.make)
        if _NODES_HASH not in self.meta and _ID in self._file.schema_arrow.names:
            self.ids = self._names()
            self.meta[_NODES_HASH] = hash_of_names(len(self.ids), self.ids)
        lacking = [key for key in CARRIED if key not in self.meta]
        if lacking:
            raise ArtifactError(
                f"{self.path} lacks {', '.join(lacking)}: another version of graphldp wrote it "
                f"({self.meta.get('library', 'unknown')}); make it again with `{self.make}`"
            )
        try:
            self.says = ReportsMeta.of(self.meta)
        except (TypeError, ValueError) as error:
            raise ArtifactError(
                f"{self.path} has damaged metadata ({error}); make it again with `{self.make}`"
            ) from error
        if self._file.num_row_groups != len(self.says.seeds):
            raise ArtifactError(f"{self.path} lacks some of its seeds; make it again with `{self.make}`")

    def _names(self) -> tuple[str, ...]:
        """Return the names of the nodes in their order; of several questions a person answers each under her name."""
        rows = self._file.read_row_group(0, columns=["node", _ID])
        named = dict(zip(rows["node"].to_pylist(), rows[_ID].to_pylist(), strict=True))
        return tuple(named[node] for node in sorted(named))

    def draw(self, seed: int) -> int:
        """Return under which seed the rows stand that serve this one."""
        # A mechanism without randomness is stored once and serves every seed; so does the one report that a person
        # really sends: another would spend her budget again.
        once = self.says.deterministic or not self.says.reproducible
        return self.says.seeds[0] if once else seed

    def group(self, seed: int) -> pa.Table:
        """Return the rows of one seed."""
        stored, wanted = list(self.says.seeds), self.draw(seed)
        if wanted not in stored:
            more = f"--seeds {seed + 1}" if seed >= 0 else f"--search-seeds {-seed}"
            raise ArtifactError(f"{self.path} has seeds {stored}, not {seed}; {self.more(more)}")
        try:
            table = self._file.read_row_group(stored.index(wanted))
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise ArtifactError(f"{self.path} is damaged ({reason}); run `{self.make}` again") from error
        return table

    def more(self, option: str) -> str:
        """Return what to do for more seeds."""
        return f"perturb again with {option}, for example `{self.make} {option}`"

    @staticmethod
    def rectangle(table: pa.Table, column: str) -> NDArray[Any]:
        """Return a column of lists of one length as an array."""
        lists = table.column(column).combine_chunks()
        values = np.asarray(lists.flatten().to_numpy(zero_copy_only=False))
        return values.reshape(len(lists), len(values) // max(len(lists), 1))


class CalibratedFile(SeedFile):
    """A Calibrated artifact."""

    kinds = ("calibrated",)

    def load(self, seed: int) -> Estimate:
        """Return the estimate of one seed."""
        import scipy.sparse as sp

        table = self.group(seed)
        value = self.rectangle(table, "value")
        nodes, width = value.shape
        if _INDEX in table.column_names:
            index = self.rectangle(table, _INDEX).reshape(-1)
        else:
            index = np.tile(np.arange(width, dtype=np.int32), nodes)
        kind = np.int32 if nodes * width < 2**31 else np.int64
        offsets = np.arange(nodes + 1, dtype=kind) * kind(width)
        matrix = sp.csr_array((value.reshape(-1), index, offsets), shape=(nodes, self.says.dimensions))
        weights = table.column(_WEIGHT).to_numpy() if _WEIGHT in table.column_names else None
        return Estimate(matrix=matrix, fill=float(self.meta["fill"]), weights=weights)

    @property
    def steps(self) -> tuple[int, ...]:
        """The depths for which there is a calibration."""
        return tuple(int(steps) for steps in self.meta["steps"])

    def filters(self) -> dict[int, Calibration]:
        """Return the calibrations by depth; what stands before the filter is behind the stored values."""
        return dict(zip(self.steps, map(Calibration.from_meta, self.meta["filters"]), strict=True))

    def more(self, option: str) -> str:
        """Return what to do for more seeds."""
        return f"perturb again with {option}, then run `{self.make}`"
