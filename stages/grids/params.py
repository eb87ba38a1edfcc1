"""A grid: params.yaml, or a file of experiments/, read once and checked before anything runs.

Every data set has its floor (`structure`), its ceiling (`nonpriv`) and the commonest class (`majority`); a file lists
the other rows. Each stands for every budget, and for every place on its own axes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphldp import methods
from graphldp.client import names as mechanism_names
from graphldp.client import own_budget
from graphldp.errors import OptionError, did_you_mean, unknown_name
from graphldp.experiment.conversation import check_classes
from graphldp.experiment.options import Further, SearchParams, Settings, TrainParams, check_settings
from graphldp.methods import Role
from graphldp.points import AXES
from graphldp.stages.grids.cell import Axes, Cell, value_text
from graphldp.stages.grids.yamls import INSTEAD, OTHERWISE, axis_values, build, read_yaml, typed
from graphldp.stages.pages.wording import counted

if TYPE_CHECKING:
    from graphldp.experiment.search_space import SearchedRow

__all__ = [
    "EXPERIMENTS",
    "PARAMS",
    "EvaluateParams",
    "Params",
    "RowParams",
    "axes_of",
    "check",
    "check_numbers",
    "experiments",
    "find",
    "load",
    "load_settings",
    "with_axes",
]

PARAMS = Path("params.yaml")
EXPERIMENTS = Path("experiments")
# A value's place begins with one of these. `train`, `data` and `links` (options of how links are told) change who
# learns from what, for every row of a table alike: its floor and ceiling are measured anew for each value. The others
# change a private method and leave both as they are.
_SHARED = ("train", "data", "links")
_TOLD = ("labels", "links")  # what people may be asked for beside features
_OWN = ("method", "search", "mechanism")
_SCALAR = int | float | str | bool
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowParams:
    """One method with one mechanism: a row of the table for each budget; with `null` and `identity` for their own.

    Attributes:
        method, mechanism: by their registered names; the method's own mechanism if left out.
        name: the row's; method and mechanism if left out.
        options: further options of the mechanism (`m: 4`).
        set: what is changed in the method (`method.rho: 1.0`).
        search: the places of the search's space that differ for this row (`steps: [1, 2]`).
        vary: which of the file's axes this row has; all where it does not say.
    """

    method: str
    mechanism: str = ""
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    vary: tuple[str, ...] | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """What is changed in the method, as `Method.but` takes it."""
        return {_key(name): value for name, value in self.set.items()}

    def budgets(self, epsilons: tuple[float, ...]) -> tuple[float, ...]:
        """Return the budgets at which the row stands: those of all, or the one that its mechanism has."""
        own = own_budget(self.mechanism)
        return epsilons if own is None else (own,)

    def whole(self) -> RowParams:
        """Return the row with what was left out."""
        recipe = methods.method(self.method)
        mechanism = self.mechanism or recipe.mechanism
        vary = None if self.vary is None else tuple(map(_full, self.vary))
        return dataclasses.replace(self, mechanism=mechanism, name=self.name or recipe.cell_name(mechanism), vary=vary)


def _references() -> list[RowParams]:
    """Return the rows that every table has by itself and that learn something."""
    return [
        RowParams(name=one.name, method=one.name, mechanism=one.mechanism) for one in methods.references() if one.model
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateParams:
    """How means become intervals."""

    confidence: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Params(Settings):
    """The whole file.

    Attributes:
        name: the file's, without its ending; empty of params.yaml, whose results stand in results/ itself.
        title: one line, for lists and the report page.
        about: what it shows, and which of a paper's tables or claims it corresponds to.
        datasets, epsilons: each row stands for each of them.
        labels, epsilon_labels: how labels are reported (`krr`), and the budgets of a label: a table for each of them,
            in which the ceiling alone has true labels. Left out, labels are public.
        links, epsilon_links, link_options: the same for links (`blink`), with how they are reported and estimated.
        rows: the rows of the table, beside its floor, its ceiling and the commonest class.
        vary: the axes: a value's place (`train.train_fraction`, `method.rho`, `search.steps`, `data.structure`, or an
            option of the mechanism) and the values to try. Several axes are tried in every combination.
        overrides: by data set, what is different in its training (`train.train_fraction: 0.05`).
        data: options of the data sets, where they differ from their own: of all (`nodes`), or of one of them
            (`synthetic.nodes`).
        evaluate: how means become intervals.
    """

    name: str = field(default="", metadata={INSTEAD: "a grid's name is its file's; leave it out"})
    further: Further = field(
        default_factory=Further, metadata={INSTEAD: "say labels and epsilon_labels, links and epsilon_links"}
    )
    title: str = ""
    about: str = ""
    datasets: tuple[str, ...] = ("cora",)
    epsilons: tuple[float, ...] = (1.0,)
    labels: str = ""
    epsilon_labels: tuple[float, ...] = ()
    links: str = ""
    epsilon_links: tuple[float, ...] = ()
    link_options: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[RowParams, ...] = ()
    vary: Mapping[str, Any] = field(default_factory=dict, metadata={OTHERWISE: ("axes", "axis")})
    overrides: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    evaluate: EvaluateParams = field(default_factory=EvaluateParams)

    def cells(self) -> list[Cell]:
        """Return every cell: of each data set and setting the commonest class, floor and ceiling, then the rows."""
        return list(self._cells())

    def of(self, cell: Cell) -> Params:
        """Return the parameters that hold for a cell."""
        changed: dict[str, dict[str, Any]] = {}
        for place, value in cell.places.items():
            changed.setdefault(_part(place), {})[_key(place)] = value
        parts = {part: dataclasses.replace(getattr(self, part), **values) for part, values in changed.items()}
        parts |= {"further": cell.further} if cell.further != self.further else {}
        return dataclasses.replace(self, **parts) if parts else self

    @property
    def asked(self) -> dict[str, tuple[float, ...]]:
        """The budgets of what people are asked for beside features: an axis that all rows of a table share."""
        names = [f"epsilon_{name}" for name in _TOLD if getattr(self, name)]
        return {name: getattr(self, name) for name in names}

    def further_at(self, setting: Axes) -> Further:
        """Return what people are asked for beside features in a table."""
        budgets = {name: value for name, value in setting if name in self.asked}
        ways = {name: getattr(self, name) for name in (budget.removeprefix("epsilon_") for budget in budgets)}
        options = {**self.link_options, **{_key(name): value for name, value in setting if _part(name) == "links"}}
        return Further(**ways, **budgets, link_options=tuple(options.items()) if self.links else ())

    def _cells(self) -> Iterator[Cell]:
        shared = _product({**self.asked, **{name: v for name, v in self.vary.items() if _part(name) in _SHARED}})
        own = {name: values for name, values in self.vary.items() if _part(name) in _OWN}
        guess = methods.reference(Role.GUESS).name
        for dataset, setting in itertools.product(self.datasets, shared):
            start = Cell(
                dataset=dataset,
                name=guess,
                method=guess,
                mechanism="none",
                epsilon=0.0,
                places=dict(self.overrides.get(dataset, {}))
                | {name: value for name, value in setting if _part(name) == "train"},
                axes=setting,
                setting=setting,
                data={**self._data_of(dataset), **{_key(k): value for k, value in setting if _part(k) == "data"}},
                further=self.further_at(setting),
            )
            yield start
            for row in _references():
                one = start
                if methods.role_of(row.method) is Role.CEILING:
                    one = dataclasses.replace(start, further=Further())
                for epsilon in row.budgets(()):
                    yield _with(one, row, epsilon, ())
            for row in self.rows:
                axes = {name: values for name, values in own.items() if row.vary is None or name in row.vary}
                for values, epsilon in itertools.product(_product(axes), row.budgets(self.epsilons)):
                    yield _with(start, row, epsilon, values)

    def _data_of(self, dataset: str) -> dict[str, Any]:
        """Return the options of a data set, without its name."""
        common = {name: value for name, value in self.data.items() if not _key(name)}
        return common | {
            _key(name): value for name, value in self.data.items() if _key(name) and _part(name) == dataset
        }


def _product(axes: Mapping[str, Any]) -> list[Axes]:
    """Return every combination of one value for each axis."""
    return [tuple(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _with(start: Cell, row: RowParams, epsilon: float, values: Axes) -> Cell:
    """Return the row's cell at a budget and a place on its own axes."""
    by_part: dict[str, dict[str, Any]] = {part: {} for part in _OWN}
    for name, value in values:
        by_part[_part(name)][_key(name)] = value
    search = {**row.search, **{key: [value] for key, value in by_part["search"].items()}}
    places = {f"search.{key}": value for key, value in typed(SearchParams, search, "search.").items()}
    return dataclasses.replace(
        start,
        name=row.name,
        method=row.method,
        mechanism=row.mechanism,
        epsilon=epsilon,
        options={**row.options, **by_part["mechanism"]},
        changes={**row.changes, **by_part["method"]},
        places={**start.places, **places},
        axes=(*start.axes, *values),
    )


def _part(name: str) -> str:
    return name.partition(".")[0]


def _key(name: str) -> str:
    return name.partition(".")[2]


def _full(name: str) -> str:
    """Return an axis's name with its part: an option of the mechanism may go without, and so may the depth K."""
    if "." in name:
        return name
    return f"search.{name}" if name == "steps" else f"mechanism.{name}"


def with_axes(search: SearchParams, axes: Mapping[str, Any]) -> SearchParams:
    """Return the search with other values on some axes: common ones by their name, any others among its options."""
    common = {name: values for name, values in axes.items() if name in AXES}
    rest = {name: values for name, values in axes.items() if name not in AXES}
    options = {**search.options, **axis_values(rest, "search.options")}
    return dataclasses.replace(search, **typed(SearchParams, common, "search."), options=options)


def experiments(folder: Path = EXPERIMENTS) -> list[str]:
    """Return the experiments that there are."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def find(name: str, folder: Path = EXPERIMENTS) -> Path:
    """Return the file of an experiment that is given by its name or its file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path
    path = folder / f"{name}.yaml"
    if not path.exists():
        there = experiments(folder)
        if not there:
            raise OptionError(f"{folder} holds no experiment {name!r}, nor any other; run where it is, or name a file")
        raise unknown_name("experiment", name, there)
    return path


def load(path: Path) -> Params:
    """Read and check the file; whatever does not fit is one line that names the key."""
    default = path.name == PARAMS.name
    remedy = "run where it is, or name the file with --params" if default else "see `ldp experiment --list`"
    raw = read_yaml(path, remedy)
    try:
        params: Params = build(Params, raw)
        params = dataclasses.replace(
            params,
            name="" if default else path.stem,
            vary=axes_of(params.vary),
            rows=_rows(params),
            overrides=_overrides(params) if params.datasets else {},
        )
        _check_grid(params)
        if not default and not params.title.strip():
            raise OptionError("title must say in one line what the experiment is")
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None
    return params


def _rows(params: Params) -> tuple[RowParams, ...]:
    """Return the rows with what was left out."""
    out = []
    for index, row in enumerate(params.rows):
        try:
            out.append(row.whole())
        except OptionError as error:
            raise OptionError(f"rows[{index}]: {error}") from None
    return tuple(out)


def axes_of(vary: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return axes by their full names, each with its values as their fields have them."""
    out: dict[str, tuple[Any, ...]] = {}
    for given, values in vary.items():
        name = _full(given)
        if name == "mechanism.epsilon":
            raise OptionError("vary.epsilon: budgets stand under `epsilons`")
        if _part(name) not in (*_SHARED, *_OWN) or not _PLAIN.fullmatch(_key(name)):
            raise OptionError(
                f"vary.{given} is no place: {', '.join(f'{part}.KEY' for part in (*_SHARED, *_OWN))}, or an option of "
                "the mechanism"
            )
        if not isinstance(values, list) or not values:
            raise OptionError(f"vary.{given} must be a list of at least one value, got {values!r}")
        wrong = [value for value in values if not isinstance(value, _SCALAR)]
        if wrong:
            raise OptionError(f"vary.{given} must hold numbers, words or true and false, got {wrong[0]!r}")
        if name in out or len(set(map(value_text, values))) < len(values):
            raise OptionError(f"vary.{given} must be distinct values, once; got {values}")
        out[name] = tuple(values)
        kinds = {"train": TrainParams, "search": SearchParams}
        if _part(name) in kinds:
            listed = _part(name) == "search"
            parsed = [
                typed(kinds[_part(name)], {_key(name): [value] if listed else value}, f"{_part(name)}.")[_key(name)]
                for value in values
            ]
            out[name] = tuple(value[0] if listed else value for value in parsed)
    return out


def _overrides(params: Params) -> dict[str, dict[str, Any]]:
    out = {}
    for dataset, own in params.overrides.items():
        if dataset not in params.datasets:
            hint = did_you_mean(str(dataset), params.datasets)
            raise OptionError(f"overrides.{dataset} is no data set here: {', '.join(params.datasets)}{hint}")
        if not isinstance(own, Mapping):
            raise OptionError(f"overrides.{dataset} must be a mapping of train.KEY to values, got {own!r}")
        for place in own:
            if _part(str(place)) != "train" or not _key(str(place)):
                raise OptionError(f"overrides.{dataset}: only places of train differ by data set, got {place!r}")
            if place in params.vary:
                raise OptionError(f"overrides.{dataset}: {place} is an axis; leave one out")
        found = typed(TrainParams, {_key(place): value for place, value in own.items()}, f"overrides.{dataset}.train.")
        out[dataset] = {f"train.{key}": value for key, value in found.items()}
    return out


def _check_grid(params: Params) -> None:
    """Check rows, axes and every cell."""
    check(params)
    for name, value in params.data.items():
        if _key(name) and _part(name) not in params.datasets:
            raise OptionError(f"data.{name} is of no data set here: {', '.join(params.datasets)}")
        if not isinstance(value, _SCALAR):
            raise OptionError(f"data.{name} must be a number, a word, or true or false, got {value!r}")
        if f"data.{_key(name) or name}" in params.vary:
            raise OptionError(f"data.{name} is given, and it is an axis; leave one out")
    for index, row in enumerate(params.rows):
        place = f"rows[{index}]"
        for name in row.vary or ():
            if name not in params.vary:
                raise OptionError(f"{place}.vary: {name} is no axis; vary has {', '.join(params.vary) or 'none'}")
        for name in ("points", "seeds", "strategy", "space"):
            if name in row.search:
                raise OptionError(f"{place}.search.{name}: every row has the same budget of search; leave it out")
        for name in (*row.options, *row.set):
            full = name if "." in name else f"mechanism.{name}"
            if full in params.vary and (row.vary is None or full in row.vary):
                raise OptionError(f"{place}: {name} is given, and it is an axis; leave one out, or set the row's vary")
    for cell in params.cells():
        recipe = methods.method(cell.method)
        if not recipe.model:
            continue
        own = params.of(cell)
        recipe = recipe.but(cell.changes)
        row = RowParams(
            name=cell.name, method=cell.method, mechanism=cell.mechanism,
            set={f"method.{key}": value for key, value in cell.changes.items()},
        )  # fmt: skip
        check_numbers(own)
        _check_space(own, row)
        if recipe.role is Role.PRIVATE:
            try:
                check_classes(recipe, own.train)
            except OptionError as error:
                raise OptionError(f"row {cell.name}: {error}") from None


def load_settings(path: Path) -> Params:
    """Read seeds, search and training of the file, for one cell; its rows are not read, and need not be sound."""
    raw = read_yaml(path, "run where it is, or name the file with --params")
    try:
        if isinstance(raw, Mapping):
            raw = {key: value for key, value in raw.items() if key not in _GRID}
        params: Params = build(Params, raw, "")
        check_numbers(params)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None
    return params


# What makes a table of cells.
_GRID = (
    {one.name for one in dataclasses.fields(Params)}
    - {one.name for one in dataclasses.fields(Settings)}
    - {"name", "evaluate"}
)


def check(params: Params) -> None:
    """Check what one field alone cannot tell."""
    for index, row in enumerate(params.rows):
        _check_row(row, f"rows[{index}]")
    names = [*(one.name for one in methods.references()), *(row.name for row in params.rows)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(f"two rows have the name {twice[0]!r}; each needs a name of its own")
    if not params.datasets:
        raise OptionError("datasets must be a list of at least one, got none")
    if not params.epsilons and any(own_budget(row.mechanism) is None for row in params.rows):
        raise OptionError("epsilons must be a list of at least one budget for these rows, got none")
    for name in ("datasets", "epsilons"):
        values = getattr(params, name)
        if len(set(values)) < len(values):
            raise OptionError(f"{name} must be distinct, got {list(values)}")
    for name in _TOLD:
        how, budgets = getattr(params, name), getattr(params, f"epsilon_{name}")
        if how and not budgets:
            raise OptionError(f"epsilon_{name} must be a list of at least one budget, got none")
        if budgets and not how:
            raise OptionError(f"epsilon_{name} are budgets of private {name}: say with {name} how they are reported")
        if len(set(budgets)) < len(budgets):
            raise OptionError(f"epsilon_{name} must be distinct, got {list(budgets)}")
    if (params.link_options or any(_part(name) == "links" for name in params.vary)) and not params.links:
        raise OptionError("link_options are of private links: say with links how they are reported")
    for _, setting in _product_of(params):
        params.further_at(setting)
    bad = [epsilon for epsilon in params.epsilons if not 0 < epsilon < math.inf]
    if bad:
        raise OptionError(f"epsilons must be finite and > 0, got {bad[0]}; floor and ceiling have 0 and inf")
    check_numbers(params)
    every = (*_references(), *params.rows)
    for row in every:
        _check_space(params, row)
    from graphldp.experiment.search_space import check_axes

    check_axes(params.search, [_searched(params, row) for row in every])
    for index, row in enumerate(params.rows):
        own = row.search.get("options", {})
        try:
            check_axes(dataclasses.replace(params.search, options=own), [_searched(params, row)])
        except OptionError as error:
            raise OptionError(f"rows[{index}].{error}") from None
    if params.search.strategy == "grid":
        from graphldp.experiment.search_space import check_grids

        check_grids({row.name: _searched(params, row).grid(_search_of(params, row)) for row in every})


def _product_of(params: Params) -> list[tuple[int, Axes]]:
    """Return every place on the axes of what people are asked for beside features."""
    return list(enumerate(_product(params.asked)))


def check_numbers(params: Params) -> None:
    """Check every number and word by itself."""
    check_settings(params)
    evaluate = params.evaluate
    if not 0 < evaluate.confidence < 1:
        raise OptionError(f"evaluate.confidence must be in (0, 1), got {evaluate.confidence}")


def _searched(params: Params, row: RowParams) -> SearchedRow:
    """Return what there is to search in a row."""
    from graphldp.experiment.search_space import SearchedRow

    recipe = methods.method(row.method).but(row.changes)
    return SearchedRow(recipe=recipe, mechanism=row.mechanism, model=params.train.model, drop=bool(params.labels))


def _search_of(params: Params, row: RowParams) -> SearchParams:
    """Return the search with what is different for a row."""
    return dataclasses.replace(params.search, **typed(SearchParams, row.search, "search."))


def _check_space(params: Params, row: RowParams) -> None:
    """Refuse a search that has fewer points to try for a row than every row is to try."""
    search = _search_of(params, row)
    recipe = methods.method(row.method)
    sizes = (search.learning_rate, search.weight_decay, search.dropout, recipe.steps(search.steps))
    for name, values in zip(("learning_rate", "weight_decay", "dropout", "steps"), sizes, strict=True):
        if not values or len(set(values)) < len(values):
            raise OptionError(f"search.{name} must be distinct values, at least one, got {list(values)}")
    if search.options or recipe.axes or (search.strategy, search.space) != ("random", "shared"):
        _searched(params, row).plan(search, params.seed)
        return
    size = math.prod(len(values) for values in sizes)
    if size < search.points:
        raise OptionError(
            f"search.points is {search.points}, but {row.name} has only {counted(size, 'point')} to try; add values "
            "or lower it"
        )


def _check_row(row: RowParams, place: str) -> None:
    if not _NAME.fullmatch(row.name):
        raise OptionError(f"{place}.name becomes a file's name: letters, digits, '.', '_' or '-', got {row.name!r}")
    recipe = methods.method(row.method)
    if recipe.role is not Role.PRIVATE:
        raise OptionError(f"{place}: {row.method} is a row of every table by itself; leave it out")
    if row.mechanism not in mechanism_names():
        raise OptionError(f"{place}.mechanism {row.mechanism!r} is not one of {', '.join(mechanism_names())}")
    recipe.choose(row.mechanism)
    for name in row.set:
        if _part(name) != "method" or not _key(name):
            raise OptionError(f"{place}.set: what changes a method is written method.KEY, got {name!r}")
