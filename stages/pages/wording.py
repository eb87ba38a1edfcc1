"""Counts, places on axes, and a search, in words, for tables and for the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["at", "axis_title", "counted", "listed", "short", "spoken"]

# An axis of a grid, by its whole or its last name: what stands over its values, and one of its values in words.
_AXES = {
    "train_fraction": ("share of labels", "{percent} % of the labels"),
    "steps": ("filter depth K", "filter depth K = {}"),
    "score_steps": ("depth K of the scoring", "scored at depth K = {}"),
    "m": ("features reported, m", "m = {} features reported"),
    "levels": ("privacy levels", "{} privacy levels"),
    "gamma": ("gamma", "gamma = {}"),
    "rho": ("rho", "rho = {}"),
    "before": ("threshold", "threshold {}"),
    "data.structure": ("signal of links", "signal of links {}"),
    "data.features": ("signal of features", "signal of features {}"),
    "epsilon": ("epsilon", "epsilon {}"),
    "epsilon_labels": ("epsilon of labels", "epsilon {} for labels"),
    "epsilon_links": ("epsilon of links", "epsilon {} for links"),
}


def counted(count: int, what: str) -> str:
    """Return '1 point' or '4 points'."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def listed(parts: Sequence[str]) -> str:
    """Return 'a', 'a and b', or 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), *parts[-1:]] if len(parts) > 1 else parts)


def spoken(search: Mapping[str, Any]) -> str:
    """Return in words what is unusual in a search, from what its artifact says; empty where nothing is."""
    parts = []
    if search.get("strategy") == "grid":
        parts.append("the whole grid")
    if search.get("space") == "paper":
        parts.append("each method in the space that its paper names, where it names one")
    options = sorted(search.get("options") or {})
    return "; ".join([*parts, *([f"also searched: {', '.join(options)}"] if options else [])])


def short(axis: str) -> str:
    """Return the last part of an axis's name, as in names of files: `rho` for `method.rho`."""
    return axis.rpartition(".")[2]


def axis_title(axis: str) -> str:
    """Return what stands over the values of an axis: 'share of labels' for `train.train_fraction`."""
    return _words(axis)[0]


def at(axis: str, value: str) -> str:
    """Return a place on an axis in words: '1 % of the labels' for `train.train_fraction` 0.01."""
    return _words(axis)[1].format(value, percent=_percent(value)) if value else ""


def _words(axis: str) -> tuple[str, str]:
    last = short(axis)
    return _AXES.get(axis) or _AXES.get(last) or (last, f"{last} {{}}")


def _percent(value: str) -> str:
    try:
        return f"{100 * float(value):g}"
    except ValueError:
        return value
