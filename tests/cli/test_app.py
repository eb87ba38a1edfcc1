"""The frame of `ldp`: help, global options, and that every failure is one line with the right exit code."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

import graphldp
from graphldp.cli import app, console
from graphldp.cli.command import EXAMPLES, PANELS
from graphldp.cli.failures import describe
from graphldp.errors import ArtifactError, OptionError
from graphldp.learn.parallel import deferred_interrupt

LDP = [sys.executable, "-m", "graphldp.cli"]
SLOW_MODULES = ("torch", "scipy", "pyarrow", "pandas", "numpy", "matplotlib", "torch_geometric", "sklearn", "dvc")


def fails(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def test_help_names_every_command_in_its_panel(ldp) -> None:
    answer = ldp("--help")
    assert answer.code == 0
    for panel, names in app.COMMANDS.items():
        assert (f"─ {panel} ─" in answer.out) == (panel != app.HIDDEN)
        for name in names:
            assert bool(re.search(rf"│ {name} +\S", answer.out)) == (name not in ("code", "docs")), name
    assert "ldp run -d cora -e 1" in answer.out


def test_every_command_module_is_registered() -> None:
    folder = Path(app.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "def register(app" in path.read_text(encoding="utf-8")}
    commands = app.build().registered_commands
    assert [command.name for command in commands] == [name for names in app.COMMANDS.values() for name in names]
    assert {command.callback.__module__.rpartition(".")[2] for command in commands if command.callback} == modules


@pytest.mark.parametrize("name", [name for names in app.COMMANDS.values() for name in names])
def test_every_command_has_help(ldp, name: str) -> None:
    answer = ldp(name, "--help")
    assert answer.code == 0
    assert f"Usage: ldp {name}" in answer.out
    assert answer.err == ""


def test_without_arguments_help_is_shown(ldp) -> None:
    assert ldp() == ldp("--help")


def test_version(ldp) -> None:
    assert ldp("--version").out == f"graphldp {graphldp.__version__}\n"


def test_help_imports_nothing_slow() -> None:
    program = "import sys; from graphldp.cli.app import main; main(['--help']); print('MODULES', *sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(run.stdout.partition("MODULES ")[2].split())
    assert "graphldp.cli.list" in loaded
    assert not loaded.intersection(SLOW_MODULES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspec"], "No such command 'inspec'. Did you mean 'inspect'? See 'ldp --help'"),
        (["list", "mechanism"], "'mechanism' is not one of"),
        (["list"], "Missing argument"),
        (["list", "methods", "--jsn"], "No such option: --jsn"),
        (["--nonsense"], "No such option: --nonsense"),
    ],
)
def test_a_mistake_in_the_command_line_is_one_line(ldp, arguments: list[str], words: str) -> None:
    answer = ldp(*arguments)
    assert answer.code == 2
    assert answer.line.startswith("error: ")
    assert words in answer.line
    assert "--help'" in answer.line
    assert answer.out == ""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OptionError("epsilon must be > 0, got -1"), 2, "error: epsilon must be > 0, got -1"),
        (ArtifactError("two\n  lines"), 2, "error: two lines"),
        (KeyboardInterrupt(), 130, "interrupted: ldp probe stopped; nothing half-written"),
        (
            OSError(errno.ENOSPC, "No space left on device", "x.parquet"),
            2,
            "error: x.parquet cannot be written: no space left on device; make room, or work in another place",
        ),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch"),
            2,
            "error: ldp probe needs torch, which is not installed; run: pip install 'graphldp[learn]'",
        ),
        (
            ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow.parquet"),
            2,
            "error: ldp probe needs pyarrow, which is not installed; run: pip install 'graphldp[cli]'",
        ),
        (
            ModuleNotFoundError("No module named 'yaml'", name="yaml"),
            2,
            "error: ldp probe needs yaml, which is not installed; run: pip install 'graphldp[pipeline]'",
        ),
        (
            MemoryError("Unable to allocate 7 TiB"),
            2,
            "error: ldp probe ran out of memory (Unable to allocate 7 TiB); use fewer seeds or a smaller graph",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
            2,
            "error: ldp probe ran out of memory (DefaultCPUAllocator: can't allocate memory: you tried); "
            "use fewer seeds or a smaller graph",
        ),
        (
            ZeroDivisionError("division by zero"),
            1,
            "error: ldp probe failed through a defect of graphldp (ZeroDivisionError: division by zero); see --debug",
        ),
        (
            ModuleNotFoundError("No module named 'graphldp.nothing'", name="graphldp.nothing"),
            1,
            "error: ldp probe failed through a defect of graphldp "
            "(ModuleNotFoundError: No module named 'graphldp.nothing'); see --debug",
        ),
    ],
)
def test_a_failure_is_one_line(ldp, command, error: BaseException, code: int, line: str) -> None:
    command(fails(error))
    answer = ldp("probe")
    assert (answer.code, answer.line, answer.out) == (code, line, "")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("data/graphs/.z.a-host.6756.partial", "data/graphs/z cannot be written"),
        ("data/graphs/.a.b.a-host.6756.partial/edges.parquet", "data/graphs/a.b cannot be written"),
        ("data/pyg/.ppi.partial", "data/pyg/ppi cannot be written"),
        ("data/cells", "data/cells cannot be written"),
        (None, "nothing can be written"),
    ],
)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_where_nothing_can_be_written_the_line_names_what_was_to_be(path: str | None, said: str, number: int) -> None:
    error = OSError(number, os.strerror(number), path) if path else OSError(number, os.strerror(number))
    line = f"error: {said}: {os.strerror(number).lower()}; make room, or work in another place"
    assert describe(error, "ldp import") == (line, 2)


@pytest.mark.parametrize("name", ["train", "search", "experiment", "reproduce"])
def test_a_command_that_keeps_what_it_had_reached_says_so(name: str) -> None:
    said = f"interrupted: ldp {name} stopped; nothing half-written; the same command goes on from there"
    assert describe(KeyboardInterrupt(), f"ldp {name}") == (said, 130)


@pytest.mark.parametrize("where", [("--debug", "probe"), ("probe", "--debug")])
def test_debug_shows_the_traceback(ldp, command, where: tuple[str, ...]) -> None:
    command(fails(OptionError("wrong")))
    answer = ldp(*where)
    assert answer.code == 2
    assert answer.err.startswith("Traceback")
    assert answer.err.endswith("error: wrong\n")
    assert "Traceback" not in ldp("probe").err  # and is forgotten by the next command line


def test_quiet_leaves_out_notes_and_nothing_else(ldp, command) -> None:
    def body() -> None:
        console.note("working")
        console.out.print("result")

    command(body)
    assert (ldp("probe").err, ldp("probe").out) == ("working\n", "result\n")
    assert (ldp("probe", "--quiet").err, ldp("probe", "--quiet").out) == ("", "result\n")


def test_words_after_a_double_dash_are_no_options(ldp) -> None:
    answer = ldp("inspect", "--", "--debug")
    assert answer.line.startswith("error: --debug does not exist")


PROBE = """
    import sys, time, types
    from graphldp.cli import app
    probe = types.ModuleType("graphldp.cli.probe")
    def body():
        print("ready", flush=True)
        time.sleep(60)
    probe.register = lambda target: target.command("probe")(body)
    sys.modules["graphldp.cli.probe"] = probe
    app.COMMANDS["Probe"] = ("probe",)
    sys.exit(app.main(["probe"]))
"""


def test_a_training_that_is_told_to_end_ends_its_epoch_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside an epoch the parameters are half updated, and the batch would be lost."""
    said: list[bool] = []

    def run(arguments: list[str]) -> int:
        with deferred_interrupt() as pressed:
            os.kill(os.getpid(), signal.SIGTERM)
            said.append(pressed())
        return 0

    monkeypatch.setattr(app, "_run", run)
    assert app.main(["list"]) == 0
    assert said == [True]


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, 130, "interrupted: ldp probe stopped; nothing half-written\n"),
        (signal.SIGTERM, 130, "interrupted: ldp probe stopped; nothing half-written\n"),
    ],
)
def test_a_signal_ends_in_one_line(number: int, code: int, line: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROBE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_falls_into_a_callback_is_heard(number: int, command: Callable[..., None], ldp) -> None:
    went_on = []

    class Gone:
        pass

    def body() -> None:
        one = Gone()
        kept = weakref.ref(one, lambda ref: signal.raise_signal(number))
        del one
        for _ in range(200):
            time.sleep(0.05)
        went_on.append(kept)

    command(body)
    answer = ldp("probe")
    assert (answer.code, answer.line) == (130, "interrupted: ldp probe stopped; nothing half-written")
    assert not went_on


@pytest.mark.parametrize("kind", [["list", "datasets"], ["list", "datasets", "--json"], ["--help"]])
def test_a_reader_that_leaves_is_no_error(kind: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        run = subprocess.run([*LDP, *kind], stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(write)
    assert run.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_a_printing_command_is_no_error(unbuffered: str) -> None:
    program = (
        textwrap.dedent(PROBE).replace('print("ready", flush=True)', 'print("ready")').replace("sleep(60)", "sleep(0)")
    )
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    read, write = os.pipe()
    os.close(read)
    try:
        run = subprocess.run(
            [sys.executable, "-c", program],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            timeout=60,
        )
    finally:
        os.close(write)
    assert (run.returncode, run.stderr) == (1, "")


@pytest.mark.slow
def test_completion_of_words_of_registered_names_and_of_stored_graphs(tmp_path: Path) -> None:
    def complete(line: str) -> list[str]:
        environment = {
            **os.environ,
            "_LDP_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        run = subprocess.run(
            ["ldp"],
            executable=str(Path(sys.executable).with_name("ldp")),
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return run.stdout.split()

    assert complete("ldp ins") == ["inspect"]
    assert complete("ldp list me") == ["mechanisms", "methods"]
    for place in ("data/graphs/cobbler", "elsewhere/graphs/cooper"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "graph.json").touch()
    assert complete("ldp perturb --dataset co") == ["co-cs", "co-phy", "cobbler", "cora"]
    assert complete("ldp train --data elsewhere --dataset coo") == ["cooper"]
    assert complete("ldp download cob") == ["cobbler"]


def test_a_terminal_that_lacks_a_sign_shows_another() -> None:
    program = (
        "import sys, typer; from graphldp.cli import app, console\n"
        "app.build = lambda name: made\n"
        "made = typer.Typer()\n"
        "@made.callback()\ndef top() -> None: ...\n"
        "@made.command()\ndef probe() -> None: console.out.print('nobody\\u2019s data')\n"
        "sys.exit(app.main(['probe']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"nobody?s data\n"), done.stderr


def _commands() -> dict[str, object]:
    found = typer.main.get_command(app.build()).commands  # type: ignore[attr-defined]
    assert isinstance(found, dict)
    return found


def test_one_command_is_made_alone_and_is_the_same(ldp) -> None:
    for name, command in _commands().items():
        (alone,) = typer.main.get_command(app.build(name)).commands.values()  # type: ignore[attr-defined]
        assert alone.name == name
        assert [one.opts for one in alone.params] == [one.opts for one in command.params]  # type: ignore[attr-defined]
        assert (alone.help, alone.epilog) == (command.help, command.epilog)  # type: ignore[attr-defined]
    assert "evaluate" in ldp("--help", "perturb").out  # who asks about all is told of all
    assert "evaluate" not in ldp("--quiet", "perturb", "--help").out


def test_every_command_has_examples_that_can_be_typed(ldp) -> None:
    commands = _commands()
    assert set(EXAMPLES) == {name for panel, names in app.COMMANDS.items() for name in names if panel != app.HIDDEN}
    for name, lines in EXAMPLES.items():
        for line, words in lines:
            start, own, *rest = shlex.split(line)
            assert (start, own) == ("ldp", name)
            command = commands[name]
            values, left, _ = command.make_parser(typer.Context(command)).parse_args(rest)  # type: ignore[attr-defined]
            missing = {one.name for one in command.params if one.required} - set(values)  # type: ignore[attr-defined]
            assert not missing, line
            assert left == []
            assert words
    assert "ldp audit mb pm -e 0.1,1" in ldp("audit", "--help").out


def test_every_option_of_a_long_help_stands_in_a_group() -> None:
    named = {name for names in PANELS.values() for name in names}
    there: set[str] = set()
    for name, command in _commands().items():
        options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]  # type: ignore[attr-defined]
        there |= {word.removeprefix("--") for one in options for word in one.opts}
        loose = [one.name for one in options if one.rich_help_panel is None]
        assert not loose or len(options) <= 10, (name, loose)
    assert named <= there


def test_quiet_may_stand_anywhere_in_every_command() -> None:
    for name in EXAMPLES:
        for flag in ("-q", "--quiet"):
            assert app._hoist([name, "--data", "x", flag]) == [flag, name, "--data", "x"]
    for command in _commands().values():  # none takes it for something else
        assert not any("-q" in one.opts for one in command.params)  # type: ignore[attr-defined]
