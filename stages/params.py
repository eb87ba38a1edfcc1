"""params.yaml: the grid of the default pipeline, read once and checked before anything runs."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from graphldp import methods
from graphldp.client import names as mechanism_names
from graphldp.errors import OptionError
from graphldp.experiment.conversation import check_classes
from graphldp.experiment.options import HALF, SearchParams, Settings, TrainParams, check_settings
from graphldp.experiment.rounds import Rounds
from graphldp.experiment.survey import Survey
from graphldp.points import AXES

if TYPE_CHECKING:
    from graphldp.experiment.space import Row

__all__ = [
    "Arm",
    "Axes",
    "Cell",
    "EvaluateParams",
    "Params",
    "RoundsArm",
    "SurveyArm",
    "build",
    "check",
    "check_numbers",
    "load",
    "load_settings",
    "read_yaml",
    "typed",
    "value_text",
    "with_axes",
]

Axes: TypeAlias = tuple[tuple[str, Any], ...]
# torch, which has these, is not needed to read a grid.


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One method with one mechanism: a row of the table for each budget. A reference has its one budget with it.

    Attributes:
        name: the row's.
        method, mechanism: by their registered names.
        epsilon: of a reference, its budget.
        options: in an experiment, further options of the mechanism (`m: 4`).
        set: in an experiment, what is changed in the method (`method.rho: 1.0`).
        search: in an experiment, the places of the search's space that differ for this arm (`steps: [1, 2]`).
        vary: in an experiment, which of its axes this arm has; all where it does not say.
    """

    name: str
    method: str
    mechanism: str
    epsilon: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    vary: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsArm:
    """A row of a method with two rounds. `dvc.yaml` names every part of these in its commands, so none has a default.

    Attributes:
        name: the row's.
        method, mechanism: by their registered names.
        first, m_from, score_by, score_steps, rho, reuse: as `graphldp.experiment.rounds.Rounds` has them; its printed
            `rectification` is for experiments.
    """

    name: str
    method: str
    mechanism: str
    first: float
    m_from: str
    score_by: str
    score_steps: int
    rho: float
    reuse: bool

    def arm(self) -> Arm:
        """Return the same row as experiments write it."""
        return _written(self, Rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyArm:
    """A row of a method that asks people in turn; none of its parts has a default, as with two rounds.

    Attributes:
        name: the row's.
        method, mechanism: by their registered names.
        teachers, first, narrowed, features, last: as `graphldp.experiment.survey.Survey` has them.
    """

    name: str
    method: str
    mechanism: str
    teachers: float
    first: float
    narrowed: int
    features: int
    last: int

    def arm(self) -> Arm:
        """Return the same row as experiments write it."""
        return _written(self, Survey)


def _written(row: RoundsArm | SurveyArm, plan: type[Any]) -> Arm:
    """Return a row as experiments write it: the parts of its plan stand under `set`."""
    own = {part.name for part in dataclasses.fields(row)}
    changes = {f"method.{part.name}": getattr(row, part.name) for part in dataclasses.fields(plan) if part.name in own}
    return Arm(name=row.name, method=row.method, mechanism=row.mechanism, set=changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One entry of the table: a data set, an arm and a budget; in an experiment also a place on its axes.

    Attributes:
        options: the mechanism's further options.
        changes: what is changed in the method, as `Method.but` takes it.
        places: what is different in the parameters, by dotted name (`train.train_fraction`).
        axes: the value on each axis that this cell has, in the experiment's order.
        setting: those of the axes that every row of the same table shares, floor and ceiling included.
        data: options of the data set.
    """

    dataset: str
    name: str
    method: str
    mechanism: str
    epsilon: float
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes = ()
    setting: Axes = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def graph(self) -> str:
        """The name of its graph: one with other options than its data set's own has them in its name."""
        return "-".join([self.dataset, *(f"{name}{value_text(value)}" for name, value in self.data.items())])


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateParams:
    """How means become intervals."""

    resamples: int = 1000
    confidence: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Params(Settings):
    """The whole file.

    Attributes:
        datasets, epsilons: each row stands for each of them.
        mechanisms: what is perturbed for the arms.
        arms: rows whose people report once; `rounds`, twice; `surveys`, once each, one after the other.
        references: rows with a budget of their own.
        evaluate: how means become intervals.
    """

    datasets: tuple[str, ...] = ("cora",)
    epsilons: tuple[float, ...] = (1.0,)
    mechanisms: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = ()
    rounds: tuple[RoundsArm, ...] = ()
    surveys: tuple[SurveyArm, ...] = ()
    references: tuple[Arm, ...] = ()
    evaluate: EvaluateParams = field(default_factory=EvaluateParams)

    def cells(self) -> list[Cell]:
        """Return every cell of the table: of each data set the commonest class, the references, the arms."""
        return list(self._cells())

    def rows(self) -> dict[str, Arm]:
        """Return every row but the references by its place in the file, in the order of the table."""
        lists: tuple[tuple[str, tuple[Arm, ...]], ...] = (
            ("arms", self.arms),
            ("rounds", tuple(row.arm() for row in self.rounds)),
            ("surveys", tuple(row.arm() for row in self.surveys)),
        )
        return {f"{name}[{index}]": arm for name, arms in lists for index, arm in enumerate(arms)}

    def of(self, cell: Cell) -> Params:
        """Return the parameters that hold for a cell."""
        changed: dict[str, dict[str, Any]] = {}
        for place, value in cell.places.items():
            part, _, key = place.partition(".")
            changed.setdefault(part, {})[key] = value
        parts = {part: dataclasses.replace(getattr(self, part), **values) for part, values in changed.items()}
        return dataclasses.replace(self, **parts) if parts else self

    def _cells(self) -> Iterator[Cell]:
        for dataset in self.datasets:
            yield Cell(dataset=dataset, name="majority", method="majority", mechanism="none", epsilon=0.0)
            pairs = [(arm, arm.epsilon) for arm in self.references]
            pairs += [(arm, epsilon) for arm in self.rows().values() for epsilon in self.epsilons]
            for arm, epsilon in pairs:
                assert epsilon is not None
                yield Cell(
                    dataset=dataset, name=arm.name, method=arm.method, mechanism=arm.mechanism, epsilon=epsilon,
                    changes={name.removeprefix("method."): value for name, value in arm.set.items()},
                )  # fmt: skip


def with_axes(search: SearchParams, axes: Mapping[str, Any]) -> SearchParams:
    """Return the search with other values on some axes: common ones by their name, any others among its options."""
    common = {name: values for name, values in axes.items() if name in AXES}
    rest = {name: values for name, values in axes.items() if name not in AXES}
    options = {**search.options, **_axes(rest, "search.options")}
    return dataclasses.replace(search, **typed(SearchParams, common, "search."), options=options)


def value_text(value: Any) -> str:
    """Return an axis's value as tables and file names write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


class _TwiceError(yaml.constructor.ConstructorError):
    """A key stands twice."""


class _Loader(yaml.SafeLoader):
    """YAML in which no key stands twice: the last one would win without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping."""
        names = [str(key.value) for key, _ in node.value]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise _TwiceError(None, None, f"the key {twice[0]!r} stands twice", node.start_mark)
        out: dict[Any, Any] = super().construct_mapping(node, deep)
        return out


def load(path: Path) -> Params:
    """Read and check the file; whatever does not fit is one line that names the key."""
    raw = read_yaml(path, "run where it is, or name the file with --params")
    try:
        params: Params = build(Params, raw, "")
        rows = {f"references[{index}]": arm for index, arm in enumerate(params.references)} | params.rows()
        for place, arm in rows.items():
            _check_list(arm, place)
        check(params)
        for place, arm in rows.items():
            _check_pipeline(params, arm, place)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None
    return params


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


def read_yaml(path: Path, remedy: str) -> Any:
    """Return what a YAML file holds; `remedy` is said where there is no such file."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader) or {}
    except FileNotFoundError:
        raise OptionError(f"{path} does not exist; {remedy}") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is not YAML: it is not UTF-8") from None
    except yaml.YAMLError as error:
        raise OptionError(f"{path} is not YAML: {_yaml_reason(error)}") from None


def _yaml_reason(error: yaml.YAMLError) -> str:
    """Return what is wrong, and in which line, without the piece of the file that the reader would quote."""
    mark = getattr(error, "problem_mark", None)
    place = "" if mark is None else f" in line {mark.line + 1}"
    told = (yaml.scanner.ScannerError, yaml.parser.ParserError, _TwiceError)
    return f"{error.problem if isinstance(error, told) else 'it cannot be read'}{place}"


def build(cls: type[Any], raw: Any, place: str) -> Any:
    """Return a dataclass from a mapping; keys are the dataclass's own, values have the field's type."""
    values = typed(cls, raw, place)
    missing = [
        item.name
        for item in dataclasses.fields(cls)
        if item.name not in raw and item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise OptionError(f"{place.rstrip('.') or 'the file'} lacks {', '.join(missing)}")
    return cls(**values)


def typed(cls: type[Any], raw: Any, place: str) -> dict[str, Any]:
    """Return those of a dataclass's fields that a mapping gives, each with its field's type."""
    if not isinstance(raw, Mapping):
        # Whoever names the wrong file may have named people's data: none of a whole file is printed.
        got = f"got {raw!r}" if place else "and it is not; name a file of parameters"
        raise OptionError(f"{place.rstrip('.') or 'the file'} must be a mapping, {got}")
    known = {item.name: item for item in dataclasses.fields(cls)}
    for key in raw:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise OptionError(f"unknown key {place + str(key)!r}{hint} Valid: {', '.join(known)}")
    return {key: _value(str(known[key].type), value, place + key) for key, value in raw.items()}


_REFERENCES = ("structure", "nonpriv")
_GRID = ("datasets", "epsilons", "mechanisms", "arms", "rounds", "surveys", "references")  # what makes a table
_PEOPLE = {"rounds": "report in two rounds", "surveys": "are asked in turn"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ROWS: dict[str, type[Any]] = {cls.__name__: cls for cls in (Arm, RoundsArm, SurveyArm)}
_NESTED: dict[str, type[Any]] = {cls.__name__: cls for cls in (SearchParams, TrainParams, EvaluateParams)}


def _value(kind: str, value: Any, place: str) -> Any:
    if kind.startswith("Mapping[str, tuple["):
        return _axes(value, place)
    if kind.startswith("Mapping["):
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise OptionError(f"{place} must be a mapping of names to values, got {value!r}")
        return dict(value)
    if kind in _NESTED:
        return build(_NESTED[kind], value, place + ".")
    if kind.startswith("tuple["):
        if not isinstance(value, list):
            raise OptionError(f"{place} must be a list, got {value!r}")
        inner = kind.removeprefix("tuple[").split(",")[0]
        if inner in _ROWS:
            return tuple(build(_ROWS[inner], part, f"{place}[{i}].") for i, part in enumerate(value))
        return tuple(_value(inner, part, f"{place}[{i}]") for i, part in enumerate(value))
    if kind == "float | str" and value == HALF:
        return value
    if kind.startswith("float"):
        return _number(value, place, f", or {HALF}" if kind == "float | str" else "")
    if kind == "int":
        if isinstance(value, bool) or not isinstance(value, int):
            raise OptionError(f"{place} must be a whole number, got {value!r}")
        return value
    if kind == "bool":
        if not isinstance(value, bool):
            raise OptionError(f"{place} must be true or false, got {value!r}")
        return value
    if not isinstance(value, str):
        raise OptionError(f'{place} must be text, got {value!r}; quote it ("null" is a name here)')
    return value


def _axes(value: Any, place: str) -> dict[str, tuple[Any, ...]]:
    """Return further axes of a search: a mapping of names to lists of values."""
    if not isinstance(value, Mapping):
        raise OptionError(f"{place} must be a mapping of option names to lists of values, got {value!r}")
    for name, values in value.items():
        if not isinstance(values, list) or not values:
            raise OptionError(f"{place}.{name} must be a list of at least one value, got {values!r}")
        twice = len({json.dumps(one, default=str) for one in values}) < len(values)
        if twice:
            raise OptionError(f"{place}.{name} must be distinct values, got {values}")
    return {str(name): tuple(values) for name, values in value.items()}


def _number(value: Any, place: str, other: str = "") -> float:
    if isinstance(value, str):  # YAML 1.1 reads inf and 1e-6 as text
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise OptionError(f"{place} must be a number{other}, got {value!r}")
    return float(value)


def check(params: Params) -> None:
    """Check what one field alone cannot tell."""
    for index, arm in enumerate(params.references):
        _check_arm(arm, f"references[{index}]", reference=True)
    for place, arm in params.rows().items():
        _check_arm(arm, place, reference=False)
    arms = (*params.references, *params.rows().values())
    given = {arm.method for arm in params.references}
    lacking = [method for method in _REFERENCES if params.rows() and method not in given]
    if lacking:
        raise OptionError(
            f'references lacks {" and ".join(lacking)}: every table has its floor (structure, mechanism "null", '
            "epsilon 0) and its ceiling (nonpriv, mechanism identity, epsilon inf)"
        )
    names = ["majority", *(arm.name for arm in arms)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(f"two arms have the name {twice[0]!r}; each row needs a name of its own")
    for name in ("datasets", "epsilons", "mechanisms"):
        values = getattr(params, name)
        if len(set(values)) < len(values):
            raise OptionError(f"{name} must be distinct, got {list(values)}")
    bad = [epsilon for epsilon in params.epsilons if not 0 < epsilon < math.inf]
    if bad:
        raise OptionError(f"epsilons must be finite and > 0, got {bad[0]}; 0 and inf belong to the references")
    check_numbers(params)
    for arm in arms:
        _check_space(params, arm)
    if params.search.options:
        from graphldp.experiment.space import check_axes

        check_axes(params.search, [_searched(params, arm) for arm in arms])
    if params.search.strategy == "grid":
        from graphldp.experiment.space import check_grids

        check_grids({arm.name: _searched(params, arm).grid(_search_of(params, arm)) for arm in arms})


def check_numbers(params: Params) -> None:
    """Check every number and word by itself."""
    check_settings(params)
    evaluate = params.evaluate
    if evaluate.resamples < 100:
        raise OptionError(f"evaluate.resamples must be at least 100, got {evaluate.resamples}")
    if not 0 < evaluate.confidence < 1:
        raise OptionError(f"evaluate.confidence must be in (0, 1), got {evaluate.confidence}")


def _searched(params: Params, arm: Arm) -> Row:
    """Return what there is to search in an arm."""
    from graphldp.experiment.space import Row

    changes = {name.removeprefix("method."): value for name, value in arm.set.items()}
    recipe = methods.method(arm.method).but(changes)
    return Row(recipe=recipe, mechanism=arm.mechanism, model=params.train.model)


def _search_of(params: Params, arm: Arm) -> SearchParams:
    """Return the search with what is different for an arm."""
    return dataclasses.replace(params.search, **typed(SearchParams, arm.search, "search."))


def _check_space(params: Params, arm: Arm) -> None:
    """Refuse a search that has fewer points to try for an arm than every arm is to try."""
    search = _search_of(params, arm)
    recipe = methods.method(arm.method)
    sizes = (search.learning_rate, search.weight_decay, search.dropout, recipe.steps(search.steps))
    for name, values in zip(("learning_rate", "weight_decay", "dropout", "steps"), sizes, strict=True):
        if not values or len(set(values)) < len(values):
            raise OptionError(f"search.{name} must be distinct values, at least one, got {list(values)}")
    if search.options or recipe.axes or (search.strategy, search.space) != ("random", "shared"):
        _searched(params, arm).plan(search, params.train.epochs, params.seed)
        return
    size = math.prod(len(values) for values in sizes)
    if size < search.points:
        raise OptionError(
            f"search.points is {search.points}, but {arm.name} has only {size} points to try; add values or lower it"
        )


def _check_list(arm: Arm, place: str) -> None:
    """Refuse a row that stands in another list than its method's people answer for, or one without sense in its own."""
    key, recipe = place.partition("[")[0], methods.method(arm.method)
    own = recipe.rows_under
    if own != key and {own, key} & _PEOPLE.keys():
        people = _PEOPLE.get(own, "report once")
        raise OptionError(f"{place}: people of {arm.method} {people}, so its rows stand under {own}, not under {key}")
    if key in _PEOPLE:
        try:
            recipe.but({name.removeprefix("method."): value for name, value in arm.set.items()})
        except OptionError as error:
            raise OptionError(f"{place}: {error}") from None


def _check_pipeline(params: Params, arm: Arm, place: str) -> None:
    """Refuse what `dvc.yaml` cannot run: its stages know a method, a mechanism, a budget, and what people are asked."""
    key = place.partition("[")[0]
    further = ("options", "search") if key in _PEOPLE else ("options", "set", "search")
    given = [name for name in further if getattr(arm, name)]
    given += [] if arm.vary is None else ["vary"]
    if given:
        raise OptionError(f"{place}.{given[0]} belongs to an experiment's file: see `ldp experiment --list`")
    if key in _PEOPLE:
        try:
            check_classes(methods.method(arm.method), params.train)
        except OptionError as error:
            raise OptionError(f"{place}: {error}") from None
    if key == "arms" and arm.mechanism not in params.mechanisms:
        raise OptionError(f"{place}.mechanism {arm.mechanism!r} must also stand under mechanisms, which are perturbed")


def _check_arm(arm: Arm, place: str, *, reference: bool) -> None:
    if not _NAME.fullmatch(arm.name):
        raise OptionError(f"{place}.name becomes a file's name: letters, digits, '.', '_' or '-', got {arm.name!r}")
    recipe = methods.method(arm.method)
    if not recipe.model:
        raise OptionError(f"{place}: {arm.method} is a row of every table by itself; leave it out")
    if arm.mechanism not in mechanism_names():
        raise OptionError(f"{place}.mechanism {arm.mechanism!r} is not one of {', '.join(mechanism_names())}")
    recipe.choose(arm.mechanism)
    if reference and arm.epsilon is None:
        raise OptionError(f"{place} needs its epsilon (0 for the floor, inf for the ceiling)")
    if not reference and arm.epsilon is not None:
        raise OptionError(f"{place}.epsilon: the arms share `epsilons`; a fixed budget belongs under references")
