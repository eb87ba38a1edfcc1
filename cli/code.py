"""`ldp code`: what a kind of stage runs, as one small file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphldp.cli import console

__all__ = ["register"]


def code(
    kind: Annotated[
        str, typer.Argument(help="perturb, select, survey, denoise or train: a stage code-KIND of the pipeline.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the hashes.", dir_okay=False)],
    pipeline: Annotated[
        Path, typer.Option("--pipeline", help="The file that lists the modules.", dir_okay=False)
    ] = Path("dvc.yaml"),
) -> None:
    """Hash the modules that a kind of stage runs, so that its stages run again when one of them changes.

    The pipeline's first stages do this. Comments, docstrings and layout are left out: they change no number.
    """
    from graphldp.stages import code as stage

    path = stage.code(kind, pipeline, output)
    console.out.print(f"{path}: the modules of {kind}, hashed", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("code")(code)
