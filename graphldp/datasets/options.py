"""What a dataset lets its user choose: one frozen dataclass per kind, and how text becomes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from graphldp.errors import OptionError, unknown_name

__all__ = [
    "DatasetOptions",
    "LabelledRange",
    "LargestClasses",
    "NoOptions",
    "Synthetic",
    "Traffic",
    "ValueRange",
    "with_settings",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOptions:
    """The base of every dataset's options; a field's help is in its metadata."""

    def values(self) -> dict[str, int | float]:
        """Return the fields by name, whole numbers as int and others as float, however they were given."""
        kinds = get_type_hints(type(self))
        return {field.name: kinds[field.name](getattr(self, field.name)) for field in dataclasses.fields(self)}


def _help(text: str, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions(DatasetOptions):
    """There is nothing to choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic(DatasetOptions):
    """For pages whose label is a monthly traffic: the classes are its quantiles."""

    classes: int = _help("how many classes of equally many pages, by traffic", 2)

    def __post_init__(self) -> None:
        if not self.classes >= 2:
            raise OptionError(f"classes must be at least 2, got {self.classes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestClasses(DatasetOptions):
    """For graphs that some papers cut down to their largest classes."""

    largest_classes: int = _help("keep only the nodes of this many largest classes; 0 keeps all", 0)

    def __post_init__(self) -> None:
        if not (self.largest_classes == 0 or self.largest_classes >= 2):
            raise OptionError(f"largest_classes must be 0 (keep all) or at least 2, got {self.largest_classes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRange(DatasetOptions):
    """For real-valued features: the public range that values are clamped to. A declaration, not a measurement."""

    low: float = _help("the public lower bound of a value; values below are clamped", 0.0)
    high: float = _help("the public upper bound of a value; values above are clamped", 1.0)

    def __post_init__(self) -> None:
        if not -float("inf") < self.low < self.high < float("inf"):
            raise OptionError(f"the value range needs finite low < high, got low {self.low} and high {self.high}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRange(ValueRange):
    """For graphs with many yes/no labels per node: all of them as a set, or one of them as the class."""

    label: int = _help("which of the yes/no labels is the class; -1: none, and a node has the set of them", -1)

    def __post_init__(self) -> None:
        # Named, because a dataclass with slots is rebuilt and the short form of super() would not find it.
        ValueRange.__post_init__(self)
        if not self.label >= -1:
            raise OptionError(f"label must be at least 0, or -1 for a set of all labels, got {self.label}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic(DatasetOptions):
    """A contextual stochastic block model with bag-of-words features."""

    nodes: int = _help("how many nodes", 1000)
    classes: int = _help("how many classes", 4)
    degree: float = _help("mean number of neighbours", 10.0)
    structure: float = _help("how much an edge says of the classes of its ends: 0 nothing, 1 or -1 all", 0.7)
    features: float = _help("how much a word says of its node's class: 0 nothing, 1 all", 0.5)
    dimensions: int = _help("how many words the vocabulary has", 128)
    words: float = _help("how many words a node draws on average", 20.0)
    seed: int = _help("the root of its randomness", 0)

    def __post_init__(self) -> None:
        # With structure 1 all neighbours share the class; beyond half of all its pairs, drawing new ones gets slow.
        most = max(self.nodes // max(self.classes, 1) - 1, 0) / 2
        checks = (
            ("nodes", 1 <= self.nodes < 2**31, "must be in 1..2^31-1"),
            ("classes", 1 <= self.classes <= self.nodes, f"must be in 1..nodes ({self.nodes})"),
            ("degree", 0 <= self.degree <= most, f"must be in 0..{most:g}, which half of all pairs in a class give"),
            ("structure", -1 <= self.structure <= 1, "must be in -1..1"),
            ("structure", self.structure >= 0 or self.classes > 1, "below 0 needs at least 2 classes"),
            ("features", 0 <= self.features <= 1, "must be in 0..1"),
            ("dimensions", self.classes <= self.dimensions < 2**31, f"must be at least classes ({self.classes})"),
            ("words", 0 <= self.words * self.nodes < 2**30, "must be at least 0, in all below 2^30"),
            ("seed", self.seed >= 0, "must be at least 0"),
        )
        for name, holds, rule in checks:
            if not holds:
                raise OptionError(f"{name} {rule}, got {getattr(self, name)}")


OptionsT = TypeVar("OptionsT", bound=DatasetOptions)


def with_settings(options: OptionsT, settings: Mapping[str, Any], owner: str) -> OptionsT:
    """Return `options` with `settings` (name to value, or to its text) in place of the defaults."""
    kinds = get_type_hints(type(options))
    fields = [field.name for field in dataclasses.fields(options)]
    values = {}
    for name, value in settings.items():
        if not fields:
            raise OptionError(f"{owner} has no options, got {name}={value}")
        if name not in fields:
            raise unknown_name(f"option of {owner}", name, fields)
        values[name] = _convert(name, value, kinds[name])
    return dataclasses.replace(options, **values)


def _convert(name: str, value: Any, kind: type) -> int | float:
    try:
        if isinstance(value, bool):
            raise ValueError(value)
        if kind is float:
            return float(value)
        number = float(value)
        if not number.is_integer():
            raise ValueError(value)
        # Through float only what is written like one (1e6): a long seed would lose its last digits.
        return int(value) if str(value).strip().lstrip("-").isdigit() else int(number)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"{name} must be a {'whole ' if kind is int else ''}number, got {value!r}") from None
