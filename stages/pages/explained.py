"""What a row of a table is, in a sentence, and where the docs say more: for the report page."""

from __future__ import annotations

import inspect

from graphldp.client import lookup
from graphldp.methods import method

__all__ = ["mechanism_sentence", "method_page", "method_sentence"]


def method_sentence(name: str) -> str:
    """Return what a method does."""
    return method(name).summary


def method_page(name: str) -> str:
    """Return the page of the docs about a method, below their folder."""
    return method(name).page


def mechanism_sentence(name: str) -> str:
    """Return the first sentence of what a mechanism's class says of it."""
    return (inspect.getdoc(lookup(name)) or "").partition("\n")[0].rstrip(".") + "."
