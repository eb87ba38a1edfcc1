"""From a dataset's files to its Graph, whichever its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphldp.datasets.canonical import canonical
from graphldp.datasets.cora_wheel import parse_cora_wheel
from graphldp.datasets.musae import parse_musae
from graphldp.datasets.npz import parse_npz
from graphldp.datasets.options import DatasetOptions, LargestClasses, Synthetic, Traffic, ValueRange
from graphldp.datasets.planetoid import parse_planetoid
from graphldp.datasets.registry import DatasetSpec
from graphldp.datasets.synthetic import synthetic_graph
from graphldp.datasets.wheels import CORA_NODES
from graphldp.errors import OptionError
from graphldp.graph import Graph

__all__ = ["parse"]


def parse(
    spec: DatasetSpec, files: Mapping[str, bytes], *, name: str | None = None, options: DatasetOptions | None = None
) -> Graph:
    """Return the graph of a registered dataset from the verified contents of its files (file name to bytes).

    `name` is what the graph is called if not as its dataset. Datasets whose files are fetched by another library's
    loader are not read here, but by `graphldp.datasets.arrays.from_arrays`.
    """
    chosen = spec.options if options is None else options
    if type(chosen) is not type(spec.options):
        raise OptionError(f"{spec.name} takes {type(spec.options).__name__}, got {type(chosen).__name__}")
    common: dict[str, Any] = {"name": name or spec.name, "provenance": spec.provenance(chosen)}
    match spec.kind:
        case "planetoid":
            return _citations(spec, files, chosen, common)
        case "npz":
            return parse_npz(files, **common)
        case "musae":
            quantiles = chosen.classes if isinstance(chosen, Traffic) else 0
            largest = chosen.largest_classes if isinstance(chosen, LargestClasses) else 0
            return parse_musae(files, dataset=spec.name, quantiles=quantiles, largest_classes=largest, **common)
        case "synthetic":
            assert isinstance(chosen, Synthetic)
            return synthetic_graph(chosen, **common)
        case kind:
            raise OptionError(f"{spec.name} (kind {kind}) is read by the loader of another library, not from files")


def _citations(
    spec: DatasetSpec, files: Mapping[str, bytes], options: DatasetOptions, common: Mapping[str, Any]
) -> Graph:
    if spec.name != "cora":
        low, high = (options.low, options.high) if isinstance(options, ValueRange) else (spec.low, spec.high)
        return parse_planetoid(files, dataset=spec.name, low=low, high=high, **common)
    # Cora alone has two sources that list its nodes differently; the canonical order makes them one graph.
    if CORA_NODES in files:
        return canonical(parse_cora_wheel(files, **common))
    return canonical(parse_planetoid(files, dataset=spec.name, low=spec.low, high=spec.high, **common))
