"""Locally private graph learning: what a device reports, what a server computes from it, and what that is worth.

`graphldp.client` runs on a person's device, on numpy alone. `graphldp.server` is what an untrusted server computes
from reports over the public graph, `graphldp.learn` trains on it, `graphldp.datasets` reads public graphs.
Importing `graphldp` itself imports none of them.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
