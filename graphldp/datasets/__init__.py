"""The graphs: a registry of public ones, pure parsers of their files, a synthetic family, and people's own.

Everything here turns bytes or arrays into a `graphldp.graph.Graph`; fetching and storing are the stages' work. The
registry alone is imported here, so that listing the names stays quick; the parsers are in the submodules.
"""

from __future__ import annotations

from graphldp.datasets.options import DatasetOptions, with_settings
from graphldp.datasets.registry import DatasetSpec, Expected, PinnedFile, names, spec, title

__all__ = ["DatasetOptions", "DatasetSpec", "Expected", "PinnedFile", "names", "spec", "title", "with_settings"]
