"""What a person sees: two consoles and a progress bar that also reads well in a log file.

Results go to `out` (standard output), everything about the work itself to `err` (standard error), so that a script can
read the one and a person the other. Colour follows `NO_COLOR` and the terminal, as rich does.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column, Table
from rich.text import Text

__all__ = [
    "Bar",
    "arguments",
    "err",
    "figures",
    "fitted",
    "is_muted",
    "is_quiet",
    "left_out",
    "mute",
    "note",
    "noting",
    "out",
    "progress",
    "remember",
    "set_quiet",
    "want_traceback",
    "wants_traceback",
]

_WIDE = 110  # from which on a bar is long and has its unit
_TOO_SOON = 5.0  # seconds, within which what has been done says nothing of the rest
_SHORTEST = 10  # of a text that was cut
_PLAIN_WIDTH = 160  # where there is no terminal to fit: wide enough that a table's line stays one line
# Between two lines of progress where there is no terminal.
_PLAIN_SECONDS = float(os.environ.get("LDP_PROGRESS_SECONDS", "10"))


@dataclass(slots=True)
class _State:
    """The command line, its two global options, and whether another process speaks; one run of one process."""

    quiet: bool = False
    debug: bool = False
    muted: bool = False
    arguments: tuple[str, ...] = ()


_state = _State()


def _console(stream: TextIO, *, stderr: bool) -> Console:
    """Return a console that fits its terminal, or one with a fixed width where the output is a file or a pipe."""
    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else _PLAIN_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


out = _console(sys.stdout, stderr=False)
err = _console(sys.stderr, stderr=True)


def set_quiet(quiet: bool) -> None:
    """Say whether progress and notes are to be left out (`--quiet`); results and errors never are."""
    _state.quiet = quiet


def is_quiet() -> bool:
    """Return whether `--quiet` was given."""
    return _state.quiet


def mute(muted: bool = True) -> None:
    """Print nothing at all from now on, as another process does it; or print again."""
    _state.muted = out.quiet = muted


def is_muted() -> bool:
    """Return whether another process speaks for this one."""
    return _state.muted


def remember(arguments: Sequence[str]) -> None:
    """Keep the arguments of this command line."""
    _state.arguments = tuple(arguments)


def arguments() -> tuple[str, ...]:
    """Return the arguments of this command line."""
    return _state.arguments


def want_traceback(debug: bool) -> None:
    """Say whether a failure is to show its traceback (`--debug`)."""
    _state.debug = debug


def wants_traceback() -> bool:
    """Return whether `--debug` was given."""
    return _state.debug


def figures(
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    text: int,
    spare: Sequence[str] = (),
    rest: str = "--json",
) -> None:
    """Print a table of figures as a result, the first columns being `text`; what it means goes to the notes.

    `spare` columns are left out, in this order, where the terminal is too narrow for all, and with them the notes
    `COLUMN: ...` that explain them; `rest` is the option that shows them.
    """

    def build(without: Sequence[str]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        shown = [position for position, name in enumerate(names) if name not in without]
        for position in shown:
            table.add_column(names[position], justify="left" if position < text else "right", no_wrap=True)
        for row in rows:
            table.add_row(*(row[position] for position in shown))
        return table

    table, gone = fitted(build, spare)
    out.print(title, markup=False, style="bold")
    out.print(table)
    for line in notes:
        if line.partition(":")[0] not in gone:
            note(line)
    left_out(gone, rest)


def fitted(build: Callable[[Sequence[str]], Table], spare: Sequence[str]) -> tuple[Table, Sequence[str]]:
    """Return a table without as few of its spare columns, in this order, as let it fit the terminal; and which.

    `build` makes it without the columns that it is given. Where all of them are not enough, cells get several lines.
    """
    from rich.measure import Measurement

    room = out.options.update(max_width=10_000)
    there = {column.header for column in build(()).columns}
    spare = [name for name in spare if name in there]
    for count in range(len(spare) + 1):
        table = build(spare[:count])
        if Measurement.get(out, room, table).maximum <= out.width:
            return table, spare[:count]
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    return table, spare


def left_out(columns: Collection[str], rest: str = "--json") -> None:
    """Say which columns a terminal had no room for, and what shows them."""
    if columns:
        note(f"left out to fit {out.width} columns: {', '.join(columns)}; {rest} has all")


def note(text: str) -> None:
    """Print one line about the work on standard error, unless `--quiet`."""
    if not (_state.quiet or _state.muted):
        err.print(text, markup=False, soft_wrap=not err.is_terminal)  # a terminal would break words


def noting() -> Callable[[str], None] | None:
    """Return what prints notes in any process; None where nothing is to be printed: another one is not told of that."""
    return None if _state.quiet or _state.muted else note


class Bar:
    """One piece of work that advances. Call it as `bar(done, total, text)`, or count with `bar.advance()`."""

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        self.description = description
        self.total = total
        self.unit = unit
        self.done = 0.0
        self.text = ""
        self._start = time.monotonic()
        self._heard: float | None = None  # when work was first heard of
        # From where on the pace counts: when it was, and what was done by then. Preparing tells nothing of it, nor does
        # what an earlier process has done.
        self._from = (self._start, 0.0)

    def advance(self, k: float = 1, **info: object) -> None:
        """Count `k` more units as done; `info` is shown beside the bar (`loss=0.53`)."""
        self._heard = self._heard or self._start
        self._take(self.done + k, self.total, _words(info))

    def __call__(self, done: float, total: float | None = None, text: str = "") -> None:
        """Take over a stage's own count: the callback that stages accept as `progress`."""
        self._take(done, self.total if total is None else total, text)

    def _take(self, done: float, total: float | None, text: str) -> None:
        if self._heard is None:
            now = time.monotonic()
            at_once = now - self._start < _TOO_SOON
            self._heard = now if at_once or not done else self._start
            if at_once or not done:
                self._from = (now, done)
        self.done, self.total, self.text = done, total, text
        self._show()

    def _show(self) -> None:
        """Show what has changed, where anything is shown."""

    def elapsed(self) -> float:
        """Return for how many seconds it has gone on."""
        return time.monotonic() - self._start

    def left(self) -> float | None:
        """Return how many seconds are left at the pace so far; None where that can't be told yet."""
        now = time.monotonic()
        if self.total is None or self._heard is None or now - self._heard < _TOO_SOON:
            return None
        gone, here = now - self._from[0], self.done - self._from[1]
        return None if here <= 0 else gone * (self.total - self.done) / here


class _TerminalBar(Bar):
    """A bar that is redrawn in place."""

    def __init__(self, description: str, total: float | None, unit: str, screen: Progress) -> None:
        super().__init__(description, total, unit)
        self._screen = screen
        self._task: TaskID = screen.add_task(description, total=total, text="", unit=unit, left=self.left)

    def _show(self) -> None:
        self._screen.update(self._task, completed=self.done, total=self.total, text=self.text)


class _LineBar(Bar):
    """Plain lines: at most one every ten seconds, and one at the end if there was any or the work took as long."""

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        super().__init__(description, total, unit)
        self._last = self._start

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._last >= _PLAIN_SECONDS:
            self._last = now
            self._print()

    def close(self) -> None:
        """Say how it ended, if it took long enough for anybody to wonder."""
        if self.elapsed() >= _PLAIN_SECONDS:
            self._print()

    def _print(self) -> None:
        count = f"{self.done:.0f}" if self.total is None else f"{self.done:.0f}/{self.total:.0f}"
        line, left = f"{self.description}: {count} {self.unit}, {_clock(self.elapsed())}", self.left()
        if left:
            line += f", about {_clock(left)} left"
        err.print(f"{line}, {self.text}" if self.text else line, markup=False, soft_wrap=True)


@contextlib.contextmanager
def progress(description: str, total: float | None = None, unit: str = "steps") -> Iterator[Bar]:
    """Show how far a piece of work is: a bar with an estimate on a terminal, plain lines elsewhere, nothing if quiet.

    The total may be unknown (None) until the first call that brings it. If quiet, what other libraries write on
    standard error meanwhile is left out, too.
    """
    if _state.quiet:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
            yield Bar(description, total, unit)
    elif _state.muted:
        yield Bar(description, total, unit)
    elif err.is_terminal and not err.is_dumb_terminal:
        with Progress(*_columns(err.width), console=err, transient=True) as screen:
            yield _TerminalBar(_cut(description, max(16, err.width // 5)), total, unit, screen)
    else:
        lines = _LineBar(description, total, unit)
        yield lines
        lines.close()


def _columns(width: int) -> tuple[ProgressColumn, ...]:
    """Return what a bar shows: bar, count and time left whole at any width, and of the words what there is room for."""

    def whole() -> Column:
        return Column(no_wrap=True)

    bar = 40 if width >= _WIDE else 12
    shown: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False, table_column=whole()),
        BarColumn(bar_width=bar, table_column=whole()),
        MofNCompleteColumn(table_column=whole()),
    ]
    if width >= _WIDE:
        shown.append(TextColumn("{task.fields[unit]}", markup=False, table_column=whole()))
    shown += [TimeElapsedColumn(table_column=whole()), _Left(table_column=whole())]
    # 11 for a count, 7 for each time, 8 for a unit, and a space before each column.
    taken = max(16, width // 5) + bar + 11 + 2 * 8 + 6 + (9 if width >= _WIDE else 0)
    return (*shown, _TextBeside(max(0, width - taken)))


class _Left(ProgressColumn):
    """The time left, as the lines elsewhere have it: at the pace of the whole, not at that of the last half minute."""

    def render(self, task: Task) -> Text:
        left = 0.0 if task.finished else task.fields["left"]()
        return Text("-:--:--" if left is None else str(timedelta(seconds=round(left))), style="progress.remaining")


class _TextBeside(ProgressColumn):
    """The words beside a bar, cut to the room that the rest leaves."""

    def __init__(self, room: int) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._room = room

    def render(self, task: Task) -> Text:
        return Text(_cut(str(task.fields["text"]), self._room))


def _cut(text: str, room: int) -> str:
    """Return a text of at most so many characters; nothing where hardly any of it would be left."""
    if len(text) <= room:
        return text
    return "" if room < _SHORTEST else f"{text[: room - 1]}…"


def _words(info: Mapping[str, object]) -> str:
    """Return 'loss 0.53, epoch 7'."""
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in info.items()
    )


def _clock(seconds: float) -> str:
    """Return '8 s' or '3 min 20 s'."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
