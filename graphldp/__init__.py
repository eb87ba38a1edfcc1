"""Locally private graph learning: what a device reports, what a server computes from it, and what that is worth.

`graphldp.client` runs on a person's device, on numpy alone. `graphldp.server` is what an untrusted server computes
from reports over the public graph, `graphldp.learn` trains on it, `graphldp.datasets` reads public graphs.
`graphldp.experiment` runs a method on a graph, and `graphldp.run` is that in one call. Importing `graphldp` itself
imports none of them.
"""

from typing import Any

__all__ = ["__version__", "run"]

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """Return what there is to be used, `run` as well before it was asked for."""
    return [*globals(), "run"]


def __getattr__(name: str) -> Any:
    """Return `run` once it is asked for: it needs torch, which a device has not."""
    if name != "run":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    # Graphs by name stand in files, which the library knows nothing of.
    return import_module("graphldp.stages.run").run
