"""The app `ldp`: which commands there are, the global options, and what becomes of a failure."""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from graphldp import __version__
from graphldp.cli import console, processes
from graphldp.cli.command import EXAMPLES, Command, examples
from graphldp.cli.failures import FAULT, INTERRUPTED, REFUSED, complain, describe
from graphldp.errors import did_you_mean
from graphldp.interrupts import terminated_as_interrupted

__all__ = ["COMMANDS", "HIDDEN", "build", "main"]

# Every command's module has its name and `register(app)`; this is also their order in the help.
HIDDEN = "For work on graphldp"  # in docs/cli.md, and not in --help
COMMANDS = {
    "Pipeline (one command per stage)": ("download", "perturb", "select", "denoise", "train", "evaluate"),
    "Without the pipeline": ("run", "search", "experiment", "split", "tables", "reproduce", "claims", "results"),
    "Your own people": ("import", "merge", "predict", "ledger"),
    "What there is": ("list", "inspect"),
    "What mechanisms and attackers do": ("audit", "calibration", "attack", "selection", "links", "labels", "influence"),
    HIDDEN: ("code", "docs"),
}
_HOME = {"import": "download"}  # the commands that live in another command's module
_GLOBAL_FLAGS = ("--debug", "--quiet", "-q")
_HELP = (
    "Locally private graph learning: people perturb their own data, an untrusted server calibrates the reports over "
    "the public graph and learns from them."
)


_EXAMPLES = (
    EXAMPLES["run"][0],
    EXAMPLES["import"][0],
    EXAMPLES["perturb"][0],
    ("ldp tables", "the table of the pipeline"),
)


def build(only: str = "") -> typer.Typer:
    """Return the app with every command registered in its help panel; or with one: all take longer than most run."""
    app = typer.Typer(
        name="ldp",
        help=_HELP,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        epilog=examples(_EXAMPLES),
    )
    app.callback()(_globals)
    panels = {name: panel for panel, names in COMMANDS.items() for name in names}
    for module in dict.fromkeys(_HOME.get(name, name) for name in ([only] if only else panels)):
        importlib.import_module(f"graphldp.cli.{module}").register(app)
    order = list(panels)
    if only:
        app.registered_commands = [command for command in app.registered_commands if command.name == only]
    app.registered_commands.sort(key=lambda command: order.index(command.name or ""))
    for command in app.registered_commands:
        command.rich_help_panel = panels[command.name or ""]
        command.hidden = command.rich_help_panel == HIDDEN
        command.cls = Command
        command.epilog = examples(EXAMPLES.get(command.name or "", ()))
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; every failure becomes one line on standard error."""
    given = _hoist(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal or a pipe of another encoding shows `?` for what it does not have, and no command fails of it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    name = f"ldp {_command_of(given)}".rstrip()
    console.remember(given)
    console.mute(_command_of(given) in processes.COMMANDS and processes.follows())
    try:
        with terminated_as_interrupted():  # a killed stage tidies up as an interrupted one does
            code = _run(given or ["--help"])
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; without this, the interpreter complains when it flushes at exit.
        # The code is the one that typer and rich give when they notice it first.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAULT
    except typer.TyperException as error:
        return _usage(error)
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        if console.wants_traceback():
            traceback.print_exception(error)
        line, code = describe(error, name)
        _complain(line)
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code, and nothing else gives it
        _complain(describe(KeyboardInterrupt(), name)[0])
    return code


def _run(arguments: list[str]) -> int:
    command = typer.main.get_command(build(_only(arguments)))
    code = command.main(arguments, prog_name="ldp", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _globals(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=lambda v: _version(v)),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")] = False,
) -> None:
    console.want_traceback(debug)
    console.set_quiet(quiet)


def _version(asked: bool) -> None:
    if asked:
        console.out.print(f"graphldp {__version__}", highlight=False)
        raise typer.Exit


def _hoist(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the global flags first: people also write them after the command, or as in `-qe 1`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [part for word in arguments[:end] for part in _apart(word)]
    flags = [word for word in words if word in _GLOBAL_FLAGS]
    return [*flags, *(word for word in words if word not in _GLOBAL_FLAGS), *arguments[end:]]


def _apart(word: str) -> list[str]:
    """Return a word with the short flags that take no value, and stand before another letter, by themselves."""
    flag = re.match(r"-[qh](?=[A-Za-z])", word)
    return [word] if flag is None else [flag[0], *_apart(f"-{word[2:]}")]


def _only(arguments: Sequence[str]) -> str:
    """Return the command, if there is one of that name and nothing before it asks about all of them."""
    name = next((word for word in arguments if word not in _GLOBAL_FLAGS), "")
    return name if any(name in names for names in COMMANDS.values()) else ""


def _command_of(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


def _usage(error: typer.TyperException) -> int:
    """Print a mistake in the command line as one line; an empty message means that the help was printed instead."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if message:
        message = _nearest(_plainly(message, error))
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "ldp"
        end = " See" if message.endswith("?") else "; see"
        _complain(f"error: {message.replace('Value error, ', '')}{end} '{path} --help'")
    return REFUSED


def _plainly(message: str, error: BaseException) -> str:
    """Return a message about a value in plain words, and with the value, where its author left both out."""
    found = re.search(r"Input should be (?:a valid (\w+)|((?:greater|less) than)).*$", message)
    told = getattr(error.__cause__ or error.__context__, "errors", None)
    if found is None or told is None:
        return message
    kind = {"integer": "a whole number", None: ""}.get(found[1], f"a {found[1]}")
    what = f"needs {kind}" if kind else f"must be {message[found.start(2) :]}"
    return f"{message[: found.start()]}{what}, got {told()[0]['input']!r}"


def _nearest(message: str) -> str:
    """Return the message with the nearest of the words that an option takes, where it was none of them.

    Of names that are near an unknown option's, one without dashes is an argument's, which is given without its name.
    """
    option = re.search(r"No such option: --(\S+) \(Possible options: (.*)\)$", message)
    if option is not None and not any(name.startswith("-") for name in option[2].split(", ")):
        given = option[2].split(", ")[0]
        return f"{message[: option.start(2)].rpartition(' (')[0]}: give {given.upper()} itself, without --{given}"
    found = re.search(r"'([^']*)' is not one of ((?:'[^']*'(?:, )?)+)$", message)
    return message if found is None else message + did_you_mean(found[1], re.findall("'([^']*)'", found[2]))


def _complain(line: str) -> None:
    """Print the line, unless another process of the same command does."""
    if processes.started_here() or not console.is_muted():
        complain(line)
