"""What a row of a table is, in a sentence, and where the docs say more: for the report page."""

from __future__ import annotations

import inspect

from graphldp.client import lookup
from graphldp.methods import method

__all__ = ["mechanism_sentence", "method_page", "method_sentence"]

_PAGES = {  # below docs; of a method that is not here, the page on what is learned
    **dict.fromkeys(("coin", "coin-hoa", "labels", "spectral", "pagerank", "links", "surroundings"), "floor.md"),
    **dict.fromkeys(("structure", "nonpriv", "features", "roles", "label-propagation"), "floor.md"),
    **dict.fromkeys(("togl-fda", "togl-sma"), "selection.md"),
    **dict.fromkeys(("votes", "frontier"), "frontier.md"),
    **dict.fromkeys(("lpgnn", "upgnet-nh", "upgnet-hn"), "calibration.md"),
    **dict.fromkeys(("base", "majority"), "tables.md"),
    **dict.fromkeys(("blocks", "blocks-votes", "pooled", "mlp", "solitude", "hogs", "heterorr"), "links.md"),
    "rgnn": "labels.md",
    "ppgnn": "papers/ppgnn.md",
    "ldpge": "papers/ldpge.md",
}


def method_sentence(name: str) -> str:
    """Return what a method does."""
    return method(name).summary


def method_page(name: str) -> str:
    """Return the page of the docs about a method, below their folder."""
    return _PAGES.get(name, "learning.md")


def mechanism_sentence(name: str) -> str:
    """Return the first sentence of what a mechanism's class says of it."""
    return (inspect.getdoc(lookup(name)) or "").partition("\n")[0].rstrip(".") + "."
