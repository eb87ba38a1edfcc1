"""`--set key=value`: options that only some mechanisms, methods or data sets have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import typer

from graphldp.errors import OptionError

__all__ = ["Settings", "mechanism_of", "parse", "parts"]

Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="A further option as KEY=VALUE; may be given several times.", metavar="KEY=VALUE"),
]


def parse(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Return the pairs as a dictionary; values are JSON where they can be read so, and text otherwise."""
    out: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (equals and key.strip()):
            raise OptionError(f"--set takes KEY=VALUE, got {pair!r}")
        if key.strip() in out:
            raise OptionError(f"--set gives {key.strip()!r} twice; leave one out")
        try:
            out[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            out[key.strip()] = value
    return out


def mechanism_of(settings: dict[str, Any], given: str | None) -> str | None:
    """Take the mechanism out of the settings: `--set mechanism=pm` is `--mechanism pm`."""
    if "mechanism" not in settings:
        return given
    found = settings.pop("mechanism")
    if given is not None:
        raise OptionError(f"the mechanism is given twice, as --mechanism {given} and with --set; leave one out")
    return str(found)


def parts(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the mechanism's settings, and those of the calibration, which are written `denoise.KEY`."""
    prefix = "denoise."
    calibration = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
    return {key: value for key, value in settings.items() if not key.startswith(prefix)}, calibration
