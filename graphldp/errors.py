"""Errors that a person can act on: what is wrong, which value, what to do instead.

Every one of them is a `GraphLDPError`; the command line prints its one line and exits with code 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "ArtifactError",
    "DataError",
    "DownloadError",
    "GraphLDPError",
    "MissingExtraError",
    "OptionError",
    "ProcessError",
    "did_you_mean",
    "near_names",
    "unknown_name",
]


_NEAR = 0.65  # how alike two names are, from 0 to 1, before one is taken for a slip of the other


class GraphLDPError(Exception):
    """Something that the caller can mend; its message says how."""


class OptionError(GraphLDPError, ValueError):
    """An option has a value that its rule does not admit."""


class DataError(GraphLDPError, ValueError):
    """Input data breaks a rule of its format (a dangling edge, a NaN, a value outside the declared range)."""


class ArtifactError(GraphLDPError):
    """A stored file is missing, damaged, or not the one that was asked for."""


class DownloadError(GraphLDPError):
    """No source gave a file whose content fits its pinned hash."""


class ProcessError(GraphLDPError):
    """Another process of the same training ended before its time; the message says why, as far as it is known."""


class MissingExtraError(GraphLDPError):
    """A command needs an optional part of the installation."""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> OptionError:
    """Return the error for a name that is not registered: it lists the valid ones and the nearest match."""
    names = sorted(valid)
    return OptionError(f"unknown {kind} {name!r}{did_you_mean(name, names) or '.'} Valid: {', '.join(names)}")


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return '; did you mean ...?' with the nearest of the valid names; empty where none is near."""
    near = near_names(name, valid)
    return f"; did you mean {near[0]!r}?" if near else ""


def near_names(name: str, valid: Iterable[str]) -> list[str]:
    """Return the valid names that a slip could have turned into this one, the nearest first; case is no matter."""
    folded = {one.casefold(): one for one in valid}
    return [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, cutoff=_NEAR)]
