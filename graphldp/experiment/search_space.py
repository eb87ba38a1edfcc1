"""What a row of a table searches: the axes that it has of those that were asked for, and its points.

An axis is a common one (learning rate, weight decay, dropout, K), an option of the mechanism (`m`), a part of the
method (`method.decay`), or an option of the model and the loop (`train.hidden`): written as `--set` writes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from graphldp.client import option_names
from graphldp.errors import OptionError, did_you_mean
from graphldp.experiment.options import DROP, SearchParams
from graphldp.methods import PREFIX, Method, part_of
from graphldp.points import AXES, Point, Space, grid, points
from graphldp.server import filter_entry
from graphldp.server.filters import SHARED_OPTIONS

__all__ = ["LOOP", "TRAIN", "SearchedRow", "check_axes", "check_grids", "own_search", "sorted_out"]

TRAIN = "train."
LOOP = ("model", "patience")
# Options on which depends what other options there are.
_STRUCTURAL = ("method.filter", "method.evidence", "train.model")


def sorted_out(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the mechanism's options, the method's and the training's, the last two without their prefix."""
    own: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    training: dict[str, Any] = {}
    for name, value in options.items():
        key = part_of(name)
        if key is not None:
            changes[key] = value
        elif name.startswith(TRAIN):
            training[name.removeprefix(TRAIN)] = value
        else:
            own[name] = value
    return own, changes, training


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedRow:
    """What there is to search in a row: its method, its mechanism, and its model unless a point has another.

    `depths` are those that stored estimates were made for, whatever a paper's grid says. With `drop`, labels are noisy,
    and how they are learned from can be searched.
    """

    recipe: Method
    mechanism: str
    model: str = ""
    depths: tuple[int, ...] | None = None
    drop: bool = False

    def recipe_of(self, beside: Mapping[str, Any]) -> Method:
        """Return the recipe with the filter, or the evidence, that a point has."""
        structure = {key: beside[PREFIX + key] for key in ("filter", "evidence") if PREFIX + key in beside}
        return self.recipe.but({key: value for key, value in structure.items() if key in self._calibrated(self.recipe)})

    def has(self, name: str, beside: Mapping[str, Any]) -> bool:
        """Whether the option means anything in this row, beside a point's other options."""
        if name.startswith(TRAIN):
            return name.removeprefix(TRAIN) in self._trained(beside)
        key = part_of(name)
        return name in option_names(self.mechanism) if key is None else key in self._calibrated(self.recipe_of(beside))

    def names(self) -> tuple[str, ...]:
        """Return the names of all options that a point may have here."""
        calibrated = (PREFIX + key for key in self._calibrated(self.recipe))
        return (*option_names(self.mechanism), *calibrated, *(TRAIN + key for key in self._trained({})))

    def _trained(self, beside: Mapping[str, Any]) -> tuple[str, ...]:
        from graphldp.learn.models import model as build  # torch, which a server that only denoises does without

        model = str(beside.get("train.model") or self.model)
        own = [one.name for one in fields(type(build(model or self.recipe.model)))]  # type: ignore[arg-type]
        return tuple(key for key in (*LOOP, *own, *DROP) if self.drop or key not in DROP)

    def _calibrated(self, recipe: Method) -> tuple[str, ...]:
        if recipe.learners:  # each of them has a space of its own
            return ()
        if recipe.evidence:
            from graphldp.server.evidence import evidence_class

            own = [one.name for one in fields(evidence_class(recipe.evidence))]  # type: ignore[arg-type]
            return ("evidence", *own, *recipe.asking_options())
        thresholds = ("before", "after") if recipe.asking is None or recipe.asking.thresholds else ()
        tau = ("tau",) if recipe.threshold else ()
        options = [key for key in (*filter_entry(recipe.filter).options, *SHARED_OPTIONS) if key != "steps"]
        # What only `before` and `after` mean by these names is no option of a filter.
        own = [key for key in options if key not in ("before", "after", "tau")]
        return (*recipe.asking_options(), *thresholds, *tau, "filter", *own)

    def combinations(self, axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
        """Yield every choice of the options on which depends what other options there are."""
        names = [name for name in _STRUCTURAL if name in axes]
        for values in product(*(axes[name] for name in names)):
            yield dict(zip(names, values, strict=True))

    def space(self, search: SearchParams) -> SearchParams:
        """Return the search with the space that this row has: its paper's, where that is asked for and there is one."""
        if search.space != "paper" or not self.recipe.grid:
            return search
        grid = dict(self.recipe.grid)
        common: dict[str, Any] = {name: grid.pop(name) for name in AXES if name in grid}
        if self.depths is not None:
            common["steps"] = self.depths
        return dataclasses.replace(search, **common, options={**grid, **search.options})

    def axes(self, search: SearchParams) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
        """Return the further axes that this row searches, and the names of those that it lacks."""
        asked = {**dict(self.recipe.axes), **self.space(search).options}
        kept = {
            name: tuple(values)
            for name, values in asked.items()
            if any(self.has(name, choice) for choice in self.combinations(asked))
        }
        return kept, tuple(sorted(set(asked) - set(kept)))

    def settle(self, point: Point) -> Point:
        """Return the point without options that mean nothing beside its others."""
        beside = dict(point.options)
        options = tuple((name, value) for name, value in point.options if self.has(name, beside))
        steps = point.steps if self.recipe_of(dict(options)).propagates else 0
        return replace(point, options=options, steps=steps)

    def _space(self, search: SearchParams) -> tuple[Space, Callable[[Point], Point] | None]:
        """Return the space, and what settles its points."""
        axes, own = self.axes(search)[0], self.space(search)
        deep = any(self.recipe_of(choice).propagates for choice in self.combinations(axes))
        space = Space(
            learning_rate=own.learning_rate,
            weight_decay=own.weight_decay,
            dropout=own.dropout,
            steps=tuple(own.steps) if deep else (0,),
            options=tuple(axes.items()),
        )
        return space, self.settle if axes else None

    def grid(self, search: SearchParams) -> tuple[Point, ...]:
        """Return every point that the row has."""
        return grid(*self._space(search))

    def plan(self, search: SearchParams, seed: int) -> tuple[Point, ...]:
        """Return the points that the row tries: as many as every other row."""
        if search.strategy == "grid":
            return self.grid(search)
        space, settle = self._space(search)
        return points(space, search.points, seed, settle)

    def plan_or_grid(self, search: SearchParams, seed: int) -> tuple[Point, ...]:
        """Return the same, or where the row has fewer points than that all of them."""
        found = self.grid(search)
        return found if len(found) <= search.points else self.plan(search, seed)


def own_search(recipe: Method, search: SearchParams) -> SearchParams:
    """Return the search of one of several learners: further axes are its own, and those of the model and the loop."""
    own = dict(recipe.axes)
    options = {name: values for name, values in search.options.items() if name.startswith(TRAIN) and name not in own}
    return dataclasses.replace(search, options=options)


def check_axes(search: SearchParams, rows: Sequence[SearchedRow]) -> None:
    """Refuse an axis that none of the rows has: a name that was misspelt would else be left out everywhere."""
    for name in search.options:
        if all(name in row.axes(search)[1] for row in rows):
            near = (*AXES, *(known for row in rows for known in row.names()))
            hint = did_you_mean(name, near) or ";"
            raise OptionError(
                f"search.options has {name!r}, which no row of the table has{hint} a mechanism's option stands by its "
                f"name, a method's as {PREFIX}KEY, a model's as {TRAIN}KEY"
            )


def check_grids(grids: Mapping[str, Sequence[Point]]) -> None:
    """Refuse grids of different sizes: a row with more points would be searched harder than the others."""
    sizes = {name: len(points) for name, points in grids.items()}
    if len(set(sizes.values())) > 1:
        most, least = max(sizes, key=lambda name: sizes[name]), min(sizes, key=lambda name: sizes[name])
        raise OptionError(
            f"search.strategy grid tries {sizes[most]} points of {most} and {sizes[least]} of {least}; every row of a "
            "table has the same budget, so search a space that all of them have, or take the strategy random"
        )
