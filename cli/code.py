"""`ldp code`: what each kind of stage runs, as small files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console

__all__ = ["register"]


def code(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder into which the hashes are written.", file_okay=False)
    ] = Path("data/code"),
) -> None:
    """Hash the modules that each kind of stage imports, so that its stages run again when one of them changes.

    The pipeline's first stage does this. Comments, docstrings and layout are left out: they change no number.
    """
    from graphldp.stages import code as stage

    for path in stage.code(output):
        console.out.print(f"{path}: the modules of {path.stem}, hashed", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("code")(code)
