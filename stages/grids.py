"""An experiment's file: a grid in the words of params.yaml, with arms of any options and axes other than epsilon."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphldp import methods
from graphldp.errors import OptionError, unknown_name
from graphldp.experiment.options import SearchParams, TrainParams
from graphldp.stages.params import Arm, Axes, Cell, Params, build, check, read_yaml, typed, value_text

__all__ = ["FOLDER", "Experiment", "find", "load_experiment", "names"]

FOLDER = Path("experiments")
REFERENCES = (
    Arm(name="structure", method="structure", mechanism="null", epsilon=0.0),
    Arm(name="nonpriv", method="nonpriv", mechanism="identity", epsilon=float("inf")),
)
# An axis is of one of these parts. `train` and `data` change who learns from what, for every row of a table alike:
# its floor and ceiling are measured anew for each value. The others change a private method and leave both as they are.
_SHARED = ("train", "data")
_OWN = ("method", "search", "mechanism")
_SCALAR = int | float | str | bool
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Params):
    """The whole file.

    Attributes:
        name: the file's, without its ending.
        title: one line, for lists and the report page.
        about: what it shows, and which of a paper's tables or claims it corresponds to.
        vary: the axes: a value's place (`train.train_fraction`, `method.rho`, `search.steps`, `data.structure`, or an
            option of the mechanism) and the values to try. Several axes are tried in every combination.
        data: options of the data sets, where they differ from their own: of all (`nodes`), or of one of them
            (`synthetic.nodes`).
    """

    name: str = ""
    title: str
    about: str = ""
    vary: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    references: tuple[Arm, ...] = REFERENCES

    def _cells(self) -> Iterator[Cell]:
        shared = _product({name: values for name, values in self.vary.items() if _part(name) in _SHARED})
        own = {name: values for name, values in self.vary.items() if _part(name) in _OWN}
        for dataset, setting in itertools.product(self.datasets, shared):
            start = Cell(
                dataset=dataset,
                name="majority",
                method="majority",
                mechanism="none",
                epsilon=0.0,
                places={name: value for name, value in setting if _part(name) == "train"},
                axes=setting,
                setting=setting,
                data={**self._data_of(dataset), **{_key(k): value for k, value in setting if _part(k) == "data"}},
            )
            yield start
            for arm in self.references:
                assert arm.epsilon is not None
                yield _with(start, arm, arm.epsilon, ())
            for arm in self.arms:
                axes = {name: values for name, values in own.items() if arm.vary is None or name in arm.vary}
                for values, epsilon in itertools.product(_product(axes), self.epsilons):
                    yield _with(start, arm, epsilon, values)

    def _data_of(self, dataset: str) -> dict[str, Any]:
        """Return the options of a data set, without its name."""
        common = {name: value for name, value in self.data.items() if not _key(name)}
        return common | {
            _key(name): value for name, value in self.data.items() if _key(name) and _part(name) == dataset
        }


def _product(axes: Mapping[str, Any]) -> list[Axes]:
    """Return every combination of one value for each axis."""
    return [tuple(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _with(start: Cell, arm: Arm, epsilon: float, values: Axes) -> Cell:
    """Return the arm's cell at a budget and a place on its own axes."""
    by_part: dict[str, dict[str, Any]] = {part: {} for part in _OWN}
    for name, value in values:
        by_part[_part(name)][_key(name)] = value
    search = {**arm.search, **{key: [value] for key, value in by_part["search"].items()}}
    places = {f"search.{key}": value for key, value in typed(SearchParams, search, "search.").items()}
    return dataclasses.replace(
        start,
        name=arm.name,
        method=arm.method,
        mechanism=arm.mechanism,
        epsilon=epsilon,
        options={**arm.options, **by_part["mechanism"]},
        changes={**{_key(name): value for name, value in arm.set.items()}, **by_part["method"]},
        places={**start.places, **places},
        axes=(*start.axes, *values),
    )


def _part(name: str) -> str:
    return name.partition(".")[0]


def _key(name: str) -> str:
    return name.partition(".")[2]


def names(folder: Path = FOLDER) -> list[str]:
    """Return the experiments that there are."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def find(name: str, folder: Path = FOLDER) -> Path:
    """Return the file of an experiment that is given by its name or its file."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path
    path = folder / f"{name}.yaml"
    if not path.exists():
        there = names(folder)
        if not there:
            raise OptionError(f"{folder} holds no experiment {name!r}, nor any other; run where it is, or name a file")
        raise unknown_name("experiment", name, there)
    return path


def load_experiment(path: Path) -> Experiment:
    """Read and check the file; whatever does not fit is one line that names the key."""
    raw = read_yaml(path, "see `ldp experiment --list`")
    try:
        if isinstance(raw, Mapping):
            whys = {"name": "the file's own", "mechanisms": "those of its arms"}
            whys |= dict.fromkeys(("rounds", "surveys"), "its rows of every kind under `arms`")
            given = [key for key in whys if key in raw]
            if given:
                why = whys[given[0]]
                raise OptionError(f"{given[0]}: an experiment has {why}; leave it out")
        out: Experiment = build(Experiment, raw, "")
        out = dataclasses.replace(out, name=path.stem, vary=_axes(out.vary), arms=_arms(out))
        check(out)
        _check(out)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None
    return out


def _arms(experiment: Experiment) -> tuple[Arm, ...]:
    """Return the arms with their axes by full name."""
    return tuple(
        arm if arm.vary is None else dataclasses.replace(arm, vary=tuple(map(_full, arm.vary)))
        for arm in experiment.arms
    )


def _full(name: str) -> str:
    """Return an axis's name with its part: an option of the mechanism may go without, and so may the depth K."""
    if "." in name:
        return name
    return f"search.{name}" if name == "steps" else f"mechanism.{name}"


def _axes(vary: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    out: dict[str, tuple[Any, ...]] = {}
    for given, values in vary.items():
        name = _full(given)
        methods.part_of(name)  # one that was written otherwise before says so itself
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


def _check(experiment: Experiment) -> None:
    if not experiment.title.strip():
        raise OptionError("title must say in one line what the experiment is")
    for name, value in experiment.data.items():
        if _key(name) and _part(name) not in experiment.datasets:
            raise OptionError(f"data.{name} is of no data set here: {', '.join(experiment.datasets)}")
        if not isinstance(value, _SCALAR):
            raise OptionError(f"data.{name} must be a number, a word, or true or false, got {value!r}")
        if f"data.{_key(name) or name}" in experiment.vary:
            raise OptionError(f"data.{name} is given, and it is an axis; leave one out")
    for index, arm in enumerate(experiment.arms):
        place = f"arms[{index}]"
        for name in arm.vary or ():
            if name not in experiment.vary:
                raise OptionError(f"{place}.vary: {name} is no axis; vary has {', '.join(experiment.vary) or 'none'}")
        for name in arm.set:
            if not methods.part_of(name):
                raise OptionError(f"{place}.set: what changes a method is written method.KEY, got {name!r}")
        for name in ("points", "seeds", "strategy", "eta", "rungs", "space"):
            if name in arm.search:
                raise OptionError(f"{place}.search.{name}: every arm has the same budget of search; leave it out")
        for name in (*arm.options, *arm.set):
            full = name if "." in name else f"mechanism.{name}"
            if full in experiment.vary and (arm.vary is None or full in arm.vary):
                raise OptionError(f"{place}: {name} is given, and it is an axis; leave one out, or set the arm's vary")
    for cell in experiment.cells():
        params = dataclasses.replace(experiment.of(cell), arms=(), references=())
        if cell.method != "majority":
            methods.method(cell.method).but(cell.changes)
            arm = Arm(name=cell.name, method=cell.method, mechanism=cell.mechanism, epsilon=cell.epsilon)
            params = dataclasses.replace(params, references=(arm,))
        check(params)
