"""Filtered inputs in files: blocks of columns come in, rows are read, and memory holds neither.

Both are Arrow files, mapped into memory. The blocks are written as they come, one record batch each; once all are there
they are transposed, some rows at a time, into record batches of whole rows, so that a node's features lie side by side
and a batch of nodes touches few pages.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphldp.stages.files.artifacts import writable

__all__ = ["ArrowStores"]

# Bytes that are transposed at a time.
PIECE = 2**25


class ArrowStores:
    """Makes stores of rows in a folder of its own, which is gone with all of them at the end. Use as a context.

    Args:
        parent: where the folder is made once it is needed: on a disk with room for every matrix, not in memory.
    """

    def __init__(self, parent: Path):
        self._parent = parent
        self._folder: Path | None = None
        self._count = 0

    def __enter__(self) -> ArrowStores:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __call__(self, nodes: int, dimensions: int) -> _Writer:
        """Return a store to be written."""
        if self._folder is None:
            self._parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=".rows-", dir=self._parent))
        self._count += 1
        return _Writer(self._folder / f"{self._count}.arrow", nodes, dimensions)


class _Writer:
    """Takes blocks of columns."""

    def __init__(self, path: Path, nodes: int, dimensions: int):
        self._path, self._shape = path, (nodes, dimensions)
        self._blocks: list[tuple[slice, Path]] = []

    def write(self, columns: slice, block: NDArray[np.float32]) -> None:
        """Write a block; all of them together are as large as the matrix."""
        path = self._path.with_suffix(f".{columns.start}")
        _write(path, block.shape[1], [block])
        self._blocks.append((columns, path))

    def finish(self) -> _Rows:
        """Transpose the blocks, and drop them."""
        nodes, dimensions = self._shape
        step = max(1, PIECE // (4 * max(1, dimensions)))
        mapped = [(columns, _Mapped(path)) for columns, path in self._blocks]

        def pieces() -> Any:
            for start in range(0, nodes, step):
                rows = np.empty((min(step, nodes - start), dimensions), dtype=np.float32)
                for columns, block in mapped:
                    rows[:, columns] = block.parts[0][start : start + step]
                    block.release()
                yield rows

        _write(self._path, dimensions, pieces())
        for _, block in mapped:
            block.close()
        for _, path in self._blocks:
            path.unlink()
        return _Rows(self._path, self._shape, step)


class _Rows:
    """A matrix in a file that gives rows."""

    def __init__(self, path: Path, shape: tuple[int, int], step: int):
        self.shape = shape
        self._path, self._step = path, step
        self._mapped = _Mapped(path)

    def take(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return rows, from the record batches in which they lie."""
        out = np.empty((len(nodes), self.shape[1]), dtype=np.float32)
        where = nodes // self._step
        for part in np.unique(where):
            chosen = np.flatnonzero(where == part)
            out[chosen] = self._mapped.parts[part][nodes[chosen] - part * self._step]
            self._mapped.release()
        return out

    def close(self) -> None:
        """Remove the file."""
        self._mapped.close()
        self._path.unlink(missing_ok=True)


def _write(path: Path, width: int, parts: Any) -> None:
    """Write rows of one width, a record batch for each part."""
    schema = pa.schema([("row", pa.list_(pa.float32(), width))])
    with writable(str(path.parent)), pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for part in parts:
            flat = pa.array(np.ascontiguousarray(part, dtype=np.float32).reshape(-1))
            column = pa.FixedSizeListArray.from_arrays(flat, width)
            writer.write_batch(pa.record_batch([column], schema=schema))


class _Mapped:
    """An Arrow file of rows, mapped into memory.

    Attributes:
        parts: its record batches, each a matrix; views of the file.
    """

    def __init__(self, path: Path):
        with path.open("rb") as handle:
            self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        self.parts = _matrices(self._map)

    def release(self) -> None:
        """Let the pages go; the system reads them again when they are looked at."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Drop the views, and with them the map."""
        self.parts = []
        self._map.madvise(mmap.MADV_DONTNEED)


def _matrices(mapped: mmap.mmap) -> list[NDArray[np.float32]]:
    reader = pa.ipc.open_file(pa.py_buffer(mapped))
    out = []
    for number in range(reader.num_record_batches):
        column = reader.get_batch(number).column(0)
        out.append(column.flatten().to_numpy().reshape(len(column), column.type.list_size))
    return out
