"""Run `ldp` in this process, and commands that do whatever a test wants."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from graphldp.cli import app, console


@dataclass(frozen=True)
class Answer:
    """What a command line gave back."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The only line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


@pytest.fixture
def ldp(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Answer]]:
    """Return a function that runs one command line."""

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = app.main([str(argument) for argument in arguments])
        text = capsys.readouterr()
        return Answer(code, text.out, text.err)

    yield run
    console.set_quiet(False)
    console.want_traceback(False)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Return a function that registers `ldp probe`, whose body is the test's."""

    def add(body: Callable[[], None]) -> None:
        module = types.ModuleType("graphldp.cli.probe")
        module.register = lambda target: target.command("probe")(body)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "graphldp.cli.probe", module)
        monkeypatch.setattr(app, "COMMANDS", {**app.COMMANDS, "Probe": ("probe",)})

    return add
