"""Backbones: one file each. Each module of this folder is imported, which registers its backbone."""

import importlib
import pkgutil

from graphldp.learn.models.base import Backbone
from graphldp.learn.models.registry import model, models, register

for _module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["Backbone", "model", "models", "register"]
