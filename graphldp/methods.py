"""The named recipes: what the device sends, how the server calibrates it, what it learns with.

A method is an entry here. It appears in `ldp list methods`, in the pipeline's grid, in tables and on the report page
by its name alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphldp.errors import OptionError, unknown_name

__all__ = ["Method", "method", "names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One recipe.

    Attributes:
        name: as tables and options write it.
        summary: two lines for `ldp list methods`.
        mechanism: what the device sends unless another mechanism is asked for; empty where nothing is sent.
        mechanisms: the only mechanisms that make sense, or empty where any does.
        propagates: whether the server filters the estimates over the graph (K is then searched) before it learns.
        model: the backbone; empty where nothing is learned.
        reference: where it was published.
    """

    name: str
    summary: str
    mechanism: str
    mechanisms: tuple[str, ...] = ()
    propagates: bool = True
    model: str = "gcn"
    reference: str = ""

    def steps(self, searched: tuple[int, ...]) -> tuple[int, ...]:
        """Return the filter depths K that a search may try."""
        return tuple(searched) if self.propagates else (0,)

    def choose(self, mechanism: str | None) -> str:
        """Return the mechanism to use; one that the method cannot mean is an error."""
        if mechanism is None or mechanism == self.mechanism:
            return self.mechanism
        if not self.model:
            if mechanism == "none":  # as tables and metadata write it
                return self.mechanism
            raise OptionError(f"method {self.name!r} sends nothing, so it takes no mechanism; got {mechanism!r}")
        if self.mechanisms and mechanism not in self.mechanisms:
            raise OptionError(
                f"method {self.name!r} means mechanism {' or '.join(self.mechanisms)}, got {mechanism!r}; "
                "for other mechanisms use base or lpgnn"
            )
        return mechanism

    def cell_name(self, mechanism: str) -> str:
        """Return the row's name: the method's, with the mechanism's behind it where it is not the usual one."""
        return self.name if mechanism == self.mechanism else f"{self.name}-{mechanism}"


_METHODS = {
    entry.name: entry
    for entry in (
        Method(
            name="majority",
            summary="Predicts the commonest class of the training labels. Nobody sends anything, nothing is learned.",
            mechanism="",
            propagates=False,
            model="",
        ),
        Method(
            name="structure",
            summary="The floor: the whole pipeline on reports of a fair coin (epsilon 0), with everybody's search.",
            mechanism="null",
            mechanisms=("null",),
        ),
        Method(
            name="base",
            summary="The reports as they are, rectified and not filtered, into the backbone.",
            mechanism="mb",
            propagates=False,
            reference="the papers' BASE",
        ),
        Method(
            name="lpgnn",
            summary="Rectified reports, summed over K steps of the graph (KProp), into the backbone.",
            mechanism="mb",
            reference="Sajadmanesh & Gatica-Perez, CCS 2021",
        ),
        Method(
            name="nonpriv",
            summary="The ceiling: the whole pipeline on everybody's true features (epsilon infinite), same search.",
            mechanism="identity",
            mechanisms=("identity",),
        ),
    )
}


def names() -> list[str]:
    """Return the methods' names, the floor first and the ceiling last."""
    return list(_METHODS)


def method(name: str) -> Method:
    """Return the method of that name; an unknown name is an error that lists the valid ones."""
    if name not in _METHODS:
        raise unknown_name("method", name, _METHODS)
    return _METHODS[name]
