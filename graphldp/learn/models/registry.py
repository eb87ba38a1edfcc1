"""Backbones by name."""

from __future__ import annotations

from typing import Any

from graphldp.learn.models.base import Backbone
from graphldp.registry import Registry

__all__ = ["model", "models", "register"]

MODELS: Registry[type[Backbone]] = Registry("model")
register = MODELS.register


def models() -> tuple[str, ...]:
    """Return the registered names, sorted."""
    return tuple(MODELS)


def model(name: str, **options: Any) -> Backbone:
    """Return the backbone of that name with its options, for example `model('gcn', hidden=64)`."""
    return MODELS.make(name, options)
