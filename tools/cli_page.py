"""Write docs/cli.md from the app, or with --check say whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from graphldp.cli.app import COMMANDS, build
from graphldp.cli.command import EXAMPLES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
HEAD = """# Command line

Written from the app by `make docs`; `ldp COMMAND --help` says the same.

Results go to standard output, progress and notes to standard error. A mistake is one line on standard error and exit
code 2, Ctrl-C is 130, a defect of the program is 1, and so is a table that moved (`ldp tables --check`). `NO_COLOR`
is respected; where the output is no terminal, progress is a few plain lines. `--quiet` (`-q`) and `--debug` may stand
before or after the command.

An option stands once in a line; several budgets, mechanisms, methods or depths are separated by commas
(`--epsilon 0.1,1`). Options that take `KEY=VALUE` may stand several times. What is written has the format that its
name ends in.
"""


def page() -> str:
    """Return the page's text."""
    group: Any = typer.main.get_command(build())
    parts = [HEAD, f"## ldp\n\n{_table(group)}"]
    for panel, names in COMMANDS.items():
        parts.append(f"## {panel}\n")
        parts += [_section(name, group.commands[name]) for name in names]
    return "\n".join(parts).rstrip() + "\n"


def _section(name: str, command: Any) -> str:
    arguments = [item.name for item in command.params if item.param_type_name == "argument"]
    usage = " ".join(["ldp", name, *(word.upper() for word in arguments), "[OPTIONS]"])
    return f"### {name}\n\n`{usage}`\n\n{command.help.strip()}\n\n{_shown(name)}{_table(command)}"


def _shown(name: str) -> str:
    lines = [f"{line}  # {words}" for line, words in EXAMPLES.get(name, ())]
    return "\n".join(["```sh", *lines, "```", "", ""]) if lines else ""


def _table(command: Any) -> str:
    rows = ["| option | default | meaning |", "| --- | --- | --- |"]
    rows += [
        f"| {_names(item)} | {_default(item)} | {_text(item.help or '')} |"
        for item in command.params
        if item.name not in ("install_completion", "show_completion")
    ]
    return "\n".join(rows) + "\n"


def _names(item: Any) -> str:
    if item.param_type_name == "argument":
        return f"`{item.name.upper()}`"
    return ", ".join(f"`{word}`" for word in [*item.opts, *item.secondary_opts])


def _default(item: Any) -> str:
    if item.required:
        return "required"
    default = getattr(item.default, "value", item.default)
    if default is None or default is False or default == [] or callable(default):
        return ""
    return f"`{default}`"


def _text(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(
            0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is old: run `make docs`"
        )
    PAGE.write_text(page(), encoding="utf-8")
