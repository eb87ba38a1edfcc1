"""Graphs that the loaders of PyG and ogb fetch: turned into ours, without their caches of pickled tensors.

Their files are not pinned; what was read is recorded by its sha256.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.datasets.arrays import from_arrays
from graphldp.datasets.options import LabelledRange, ValueRange
from graphldp.datasets.registry import DatasetSpec
from graphldp.errors import DownloadError, MissingExtraError, OptionError
from graphldp.graph import Graph

__all__ = ["KINDS", "load", "raw_files"]

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # features, edges, labels


def load(spec: DatasetSpec, folder: Path, *, name: str, options: ValueRange) -> Graph:
    """Return a graph through its library's own loader, which keeps its raw files in `folder`.

    A folder that is there already is used as it is, so raw files can also be put there by hand.
    """
    reader = KINDS[spec.kind]
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


def _ppi(folder: Path, options: ValueRange) -> Arrays:
    """Return the 24 graphs of the three splits as one, with one of the 121 functions as the class."""
    from torch_geometric.datasets import PPI

    assert isinstance(options, LabelledRange)
    with _unprocessed(folder):
        parts = [_arrays(data) for split in ("train", "val", "test") for data in PPI(str(folder), split=split)]
    functions = parts[0][2].shape[1]
    if not options.label < functions:
        raise OptionError(f"label must be in 0..{functions - 1}, got {options.label}")
    starts = np.cumsum([0] + [len(features) for features, _, _ in parts])
    return (
        np.concatenate([features for features, _, _ in parts]),
        np.concatenate([edges + start for (_, edges, _), start in zip(parts, starts[:-1], strict=True)], axis=1),
        np.concatenate([labels[:, options.label] for _, _, labels in parts]),
    )


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


KINDS: Mapping[str, Callable[[Path, ValueRange], Arrays]] = {
    "flickr": _flickr,
    "reddit": _reddit,
    "ppi": _ppi,
    "ogbn-arxiv": _arxiv,
}
