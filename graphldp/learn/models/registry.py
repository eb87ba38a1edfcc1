"""Backbones by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from graphldp.errors import OptionError, unknown_name
from graphldp.learn.models.base import Backbone

__all__ = ["model", "models", "register"]

_MODELS: dict[str, type[Backbone]] = {}
Class = TypeVar("Class", bound=type[Backbone])


def register(name: str) -> Callable[[Class], Class]:
    """Register a backbone class under a name; a name is given once."""

    def decorate(cls: Class) -> Class:
        if name in _MODELS:
            raise ValueError(f"the model name {name!r} is registered twice")
        cls.name = name
        _MODELS[name] = cls
        return cls

    return decorate


def models() -> tuple[str, ...]:
    """Return the registered names, sorted."""
    return tuple(sorted(_MODELS))


def model(name: str, **options: Any) -> Backbone:
    """Return the backbone of that name with its options, for example `model('gcn', hidden=64)`."""
    if name not in _MODELS:
        raise unknown_name("model", name, _MODELS)
    cls = _MODELS[name]
    valid = [one.name for one in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for option in options:
        if option not in valid:
            raise OptionError(f"model {name!r} has no option {option!r}. Valid: {', '.join(sorted(valid))}")
    return cls(**options)
