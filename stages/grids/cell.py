"""An entry of a table, by what it is: all that a stage has to know of it. No grid is read here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphldp import methods
from graphldp.experiment.options import Further

__all__ = ["Axes", "Cell", "value_text"]

Axes: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One entry of the table: a data set, a row and a budget; in an experiment also a place on its axes.

    Attributes:
        dataset: the graph, by its name.
        epsilon: the budget.
        method: by its registered name; empty where people report once, for whatever method.
        mechanism: by its registered name; the method's own if left out.
        name: the row's; method and mechanism if left out.
        options: the mechanism's further options.
        changes: what is changed in the method, as `Method.but` takes it.
        places: what is different in the parameters, by dotted name (`train.train_fraction`).
        axes: the value on each axis that this cell has, in the experiment's order.
        setting: those of the axes that every row of the same table shares, floor and ceiling included.
        data: options of the data set.
        further: what people are asked for beside features.
    """

    dataset: str
    epsilon: float
    method: str = ""
    mechanism: str = ""
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes = ()
    setting: Axes = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    further: Further = field(default_factory=Further)

    @property
    def recipe(self) -> methods.Method:
        """Its method, with what is changed in it."""
        return methods.method(self.method).but(self.changes)

    def whole(self) -> Cell:
        """Return the cell with what was left out."""
        recipe = self.recipe
        mechanism = recipe.choose(self.mechanism or None)
        return dataclasses.replace(self, mechanism=mechanism, name=self.name or recipe.cell_name(mechanism))

    @property
    def graph(self) -> str:
        """The name of its graph: one with other options than its data set's own has them in its name."""
        return "-".join([self.dataset, *(f"{name}{value_text(value)}" for name, value in self.data.items())])


def value_text(value: Any) -> str:
    """Return an axis's value as tables and file names write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
