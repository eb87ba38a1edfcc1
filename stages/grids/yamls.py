"""YAML into dataclasses: every key known, every value of its type, every error one line that names the place."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import yaml

from graphldp.errors import DataError, OptionError, did_you_mean
from graphldp.experiment.options import HALF

__all__ = ["EMPTY", "INSTEAD", "OTHERWISE", "axis_values", "build", "read_paper", "read_yaml", "typed"]

# In a field's metadata: what to write instead of it, where it is no key of a file; what else it may be called; and
# whether it may be null.
INSTEAD, OTHERWISE, EMPTY = "instead", "otherwise", "empty"


class _TwiceError(yaml.constructor.ConstructorError):
    """A key stands twice."""


class _Once(yaml.constructor.SafeConstructor):
    """YAML in which no key stands twice: the last one would win without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping."""
        names = [str(key.value) for key, _ in node.value]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise _TwiceError(None, None, f"the key {twice[0]!r} stands twice", node.start_mark)
        out: dict[Any, Any] = super().construct_mapping(node, deep)
        return out


class _Loader(_Once, yaml.SafeLoader):
    """The reader whose words of what is wrong are plain."""


class _FastLoader(_Once, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same language, read ten times as fast."""


def read_yaml(path: Path, remedy: str) -> Any:
    """Return what a YAML file holds; `remedy` is said where there is no such file."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader) or {}
    except FileNotFoundError:
        raise OptionError(f"{path} does not exist; {remedy}") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is not YAML: it is not UTF-8; save it as UTF-8") from None
    except yaml.YAMLError as error:
        raise OptionError(f"{path} is not YAML: {_yaml_reason(error)}") from None


def read_paper(path: Path) -> Any:
    """Return what a paper's file holds, to be looked at and not to be changed: each text is parsed once."""
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DataError(f"{path} is not valid YAML: {_yaml_reason(error)}") from error


@lru_cache(maxsize=16)
def _parsed(text: str) -> Any:
    return yaml.load(text, _FastLoader)


def _yaml_reason(error: yaml.YAMLError) -> str:
    """Return what is wrong, and in which line, without the piece of the file that the reader would quote."""
    mark = getattr(error, "problem_mark", None)
    place = "" if mark is None else f" in line {mark.line + 1}"
    told = (yaml.scanner.ScannerError, yaml.parser.ParserError, _TwiceError)
    return f"{error.problem if isinstance(error, told) else 'it cannot be read'}{place}"


def build(cls: type[Any], raw: Any, place: str = "") -> Any:
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
    kinds = _kinds(cls)  # type: ignore[arg-type]
    items = {item.name: item for item in dataclasses.fields(cls)}
    known = [name for name, item in items.items() if INSTEAD not in item.metadata]
    for key in raw:
        if key in items and key not in known:
            raise OptionError(f"unknown key {place + key!r}: {items[key].metadata[INSTEAD]}")
        if key not in known:
            also = [name for name in known if key in items[name].metadata.get(OTHERWISE, ())]
            hint = did_you_mean(also[0] if also else str(key), known) or "."
            raise OptionError(f"unknown key {place + str(key)!r}{hint} Valid: {', '.join(known)}")
    return {
        key: None if value is None and EMPTY in items[key].metadata else _value(kinds[key], value, place + key)
        for key, value in raw.items()
    }


@cache
def _kinds(cls: type[Any]) -> dict[str, Any]:
    return get_type_hints(cls)


def _value(kind: Any, value: Any, place: str) -> Any:
    """Return a value as its field's type has it."""
    if kind is Any:
        return value
    if kind == Mapping[str, tuple[Any, ...]]:
        return axis_values(value, place)
    if get_origin(kind) is Mapping:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise OptionError(f"{place} must be a mapping of names to values, got {value!r}")
        return dict(value)
    if dataclasses.is_dataclass(kind):
        return build(kind, value, place + ".")  # type: ignore[arg-type]
    if get_origin(kind) is UnionType:
        return _one_of(get_args(kind), value, place)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise OptionError(f"{place} must be a list, got {value!r}")
        inner = get_args(kind)[0]
        return tuple(_value(inner, part, f"{place}[{i}]") for i, part in enumerate(value))
    if kind is float:
        return _number(value, place)
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise OptionError(f"{place} must be a whole number, got {value!r}")
        return value
    if kind is bool:
        if not isinstance(value, bool):
            raise OptionError(f"{place} must be true or false, got {value!r}")
        return value
    if not isinstance(value, str):
        raise OptionError(f'{place} must be text, got {value!r}; quote it ("null" is a name here)')
    return value


def _one_of(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    """Return a value of a field that may be left empty, be one or several, or be a number or the word `half`."""
    several = next((kind for kind in kinds if get_origin(kind) is tuple), None)
    if several is not None and isinstance(value, list):
        return _value(several, value, place)
    if value == HALF and str in kinds:
        return value
    first = next(kind for kind in kinds if kind is not NoneType)
    return _number(value, place, f", or {HALF}") if first is float and str in kinds else _value(first, value, place)


def axis_values(value: Any, place: str) -> dict[str, tuple[Any, ...]]:
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
