"""Graphs whose files are not pinned, most of them as the loaders of PyG and ogb fetch them, without pickled caches.

What was read is recorded by its sha256. PPI's archive comes from the mirror or from its public address, and is read by
our own parser.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from graphldp.datasets.arrays import from_arrays
from graphldp.datasets.options import LabelledRange, ValueRange
from graphldp.datasets.ppi import FILES as PPI_FILES
from graphldp.datasets.ppi import parse_ppi
from graphldp.datasets.registry import DatasetSpec, PinnedFile
from graphldp.errors import DataError, DownloadError, MissingExtraError, OptionError
from graphldp.graph import Graph
from graphldp.progress import Progress
from graphldp.stages.files.fetch import FetchOptions, fetch_unpinned

__all__ = ["KINDS", "load", "raw_files"]

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # features, edges, labels


# Its bytes were never at hand here, so that there is no hash to compare with.
_PPI = PinnedFile(repository="loaders", commit="ppi", path="ppi.zip", blob="")
_PPI_ADDRESS = "https://data.dgl.ai/dataset/ppi.zip"


def load(
    spec: DatasetSpec,
    folder: Path,
    *,
    name: str,
    options: ValueRange,
    fetching: FetchOptions | None = None,
    progress: Progress | None = None,
) -> Graph:
    """Return a graph through its library's own loader, which keeps its raw files in `folder`.

    A folder that is there already is used as it is, so raw files can also be put there by hand.
    """
    if spec.kind == "ppi":
        with _whole(folder) as place:
            files = _ppi_files(place, fetching, progress)
        assert isinstance(options, LabelledRange)
        try:
            return parse_ppi(files, name=name, options=options, provenance=spec.provenance(options))
        except DataError as error:
            raise DataError(f"{spec.name}: {error}; delete {folder} to fetch its files again") from error
    reader = LOADERS[spec.kind]
    with _whole(folder) as place, contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        # What the loader's authors should change is nothing that its users can.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        try:
            features, edges, labels = reader(place, options)
        except (ImportError, OptionError, MissingExtraError):
            raise
        except Exception as error:  # a foreign loader may fail in any way; its traceback stays chained
            reason = " ".join(str(error).split()) or type(error).__name__
            raise DownloadError(
                f"the loader of {spec.name} failed ({reason}). Check the network and run the command again, or put its "
                f"raw files under {folder}; if they are there, they may be damaged: delete them"
            ) from error
    return from_arrays(
        name=name,
        features=features,
        edges=edges,
        labels=labels,
        value_range=(options.low, options.high),
        provenance=spec.provenance(options),
    )


def raw_files(folder: Path) -> tuple[Path, ...]:
    """Return the raw files that a loader has left in its folder, sorted."""
    return tuple(sorted(path for path in folder.rglob("raw/*") if path.is_file()))


@contextlib.contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """Yield `folder` if it is there, else a temporary one that takes its name on success: loaders do not resume."""
    if folder.exists():
        yield folder
        return
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def _unprocessed(folder: Path) -> Iterator[None]:
    """Let PyG read its raw files anew and leave no second copy: its cache is a pickle that nobody verifies."""
    shutil.rmtree(folder / "processed", ignore_errors=True)
    try:
        yield
    finally:
        shutil.rmtree(folder / "processed", ignore_errors=True)


def _arrays(data: Any) -> Arrays:
    return data.x.numpy(), data.edge_index.numpy(), data.y.numpy()


def _flickr(folder: Path, options: ValueRange) -> Arrays:
    from torch_geometric.datasets import Flickr

    with _unprocessed(folder):
        return _arrays(Flickr(str(folder))[0])


def _reddit(folder: Path, options: ValueRange) -> Arrays:
    from torch_geometric.datasets import Reddit

    with _unprocessed(folder):
        return _arrays(Reddit(str(folder))[0])


def _ppi_files(folder: Path, fetching: FetchOptions | None, progress: Progress | None) -> dict[str, bytes]:
    """Return PPI's files; the archive is fetched and unpacked where they are not there."""
    raw = folder / "raw"
    if not raw.is_dir():
        archive = folder / _PPI.name
        fetch_unpinned(_PPI, _PPI_ADDRESS, archive, options=fetching, progress=progress)
        try:
            with zipfile.ZipFile(archive) as opened:
                found = {Path(one).name: one for one in opened.namelist()}
                contents = {file: opened.read(found[file]) for file in PPI_FILES}
        except (zipfile.BadZipFile, KeyError) as error:
            raise DownloadError(f"{_PPI.name} does not hold PPI's files ({error})") from error
        raw.mkdir()
        for file, content in contents.items():
            (raw / file).write_bytes(content)
        archive.unlink()
    missing = [file for file in PPI_FILES if not (raw / file).is_file()]
    if missing:
        raise DownloadError(f"{raw} lacks {missing[0]}; put PPI's files there, or delete the folder to fetch them")
    return {file: (raw / file).read_bytes() for file in PPI_FILES}


def _arxiv(folder: Path, options: ValueRange) -> Arrays:
    try:
        from ogb.nodeproppred import NodePropPredDataset
    except ImportError as error:
        raise MissingExtraError(
            f"ogbn-arxiv needs ogb, which is not installed ({error}); run: pip install ogb"
        ) from error
    # ogb's own cache is a pickle that newer torch refuses to read.
    cache = folder / "ogbn_arxiv" / "processed" / "data_processed"
    cache.unlink(missing_ok=True)
    try:
        graph, labels = NodePropPredDataset("ogbn-arxiv", root=str(folder))[0]
    finally:
        cache.unlink(missing_ok=True)
    return graph["node_feat"], graph["edge_index"], labels


LOADERS: Mapping[str, Callable[[Path, ValueRange], Arrays]] = {
    "flickr": _flickr,
    "reddit": _reddit,
    "ogbn-arxiv": _arxiv,
}
KINDS = (*LOADERS, "ppi")
