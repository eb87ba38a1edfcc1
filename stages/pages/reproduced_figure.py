"""The figure of a target: what its rows reach along the budget or along an axis, data set by data set.

Drawn of a table's lines, under the paper's protocol and under ours side by side, on one scale for each data set. Where
there is one place alone, rows are bars by data set; where a paper shows gains, gains are drawn and zero is a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from graphldp.datasets import title as name_of
from graphldp.evaluation import Interval
from graphldp.stages.grids.targets import PaperTarget
from graphldp.stages.pages.figures import FILE_CSS, figure_svg, nice_ticks
from graphldp.stages.pages.tables import number, span

if TYPE_CHECKING:
    from graphldp.stages.pages.reproduced import Line

__all__ = ["target_figure"]

_COLUMNS = (("theirs", "their protocol"), ("ours", "ours"))
_WIDE, _HIGH, _LEFT, _RIGHT, _FOOT, _TOP = 380, 230, 44, 12, 42, 26  # a panel and what lies around its axes
_INSET, _WIDEST = 22, 48.0  # of a curve's ends from its panel's, and a bar with its gap at most
_KEY, _LINE, _LETTERS = 22, 18, 112  # the height of a line of the key and of the title, and its letters
# Okabe and Ito's colours and as many markers, so that no row is told by colour alone.
_STYLE = """\
.figure{--c0:#0066a8;--c1:#c24e00;--c2:#007d5a;--c3:#a8487f;--c4:#8a6a00;--c5:#3d8fc4;--c6:#777f88}
@media(prefers-color-scheme:dark){.figure{--c0:#6cb6f0;--c1:#f59056;--c2:#3fc79a;--c3:#e592c2;--c4:#dcb63c;\
--c5:#a5d8f7;--c6:#a3abb4}}
.figure .band{fill:var(--muted);opacity:.16}.figure .level{stroke:var(--muted);fill:none}
"""
_MARKERS = (
    "M-3.5 0A3.5 3.5 0 1 0 3.5 0A3.5 3.5 0 1 0-3.5 0Z", "M-3.3-3.3H3.3V3.3H-3.3Z", "M0-4.6L4.4 3.4H-4.4Z",
    "M0-4.8L4.4 0 0 4.8-4.4 0Z", "M0 4.6L4.4-3.4H-4.4Z", "M-4-1.4H-1.4V-4H1.4V-1.4H4V1.4H1.4V4H-1.4V1.4H-4Z",
    "M-4-2.5H4V2.5H-4Z",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """A result at a place along the foot."""

    series: str
    x: str
    found: Interval
    gain: bool

    @property
    def words(self) -> str:
        return f"{self.series}, {self.x}: {span(self.found, sign=self.gain)}"


def target_figure(target: PaperTarget, lines: Sequence[Line]) -> str:
    """Return a figure's drawing; empty for a table, a bridge, and where nothing has been run."""
    ran = [line for line in lines if line.theirs is not None or line.ours is not None]
    if target.printed or target.steps or not ran:
        return ""
    gains = bool(target.gains)
    shown = [line for line in ran if line.metric.endswith("gain") == gains] or ran
    bars = len({_at(line, shown) for line in shown}) == 1
    groups = [shown] if bars else [[one for one in shown if one.dataset == name] for name in _names(shown)]
    names = list(dict.fromkeys(_series(line, shown) for line in shown))
    key, height = _key(names, 2 * _WIDE)
    title = f"{target.heading}: {target.title}"
    heading = f'<text class="muted" font-size="12.5" x="4" y="14">{escape(_short(title))}</text>'
    parts = []
    for place, group in enumerate(groups):
        top = 2 * _LINE + height + place * _HIGH
        for column, (attribute, called) in enumerate(_there(shown)):
            where = called if bars else f"{name_of(group[0].dataset)}, {called}"
            drawn = _panel(group, shown, names, attribute, where, bars=bars)
            parts.append(f'<g transform="translate({column * _WIDE} {top})">{"".join(drawn)}</g>')
    whole = 2 * _LINE + height + len(groups) * _HIGH
    parts = [heading, f'<g transform="translate(0 {_LINE})">{key}</g>', *parts]
    return figure_svg(target.slug, title, _words(shown), parts, width=2 * _WIDE, height=whole, style=FILE_CSS + _STYLE)


def _there(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Return the columns that hold anything; what is measured without training is under no protocol."""
    there = [one for one in _COLUMNS if any(getattr(line, one[0]) is not None for line in lines)]
    return there if len(there) > 1 else [(name, "measured") for name, _ in there]


def _short(title: str) -> str:
    return title if len(title) <= _LETTERS else f"{title[: _LETTERS - 1].rpartition(' ')[0]} …"


def _names(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line.dataset for line in lines))


def _at(line: Line, lines: Sequence[Line]) -> str:
    """Return where along the foot a line stands: its place on the axis, or its budget."""
    return line.place if any(one.place for one in lines) else number(line.epsilon or 0.0)


def _series(line: Line, lines: Sequence[Line]) -> str:
    """Return which curve a line is of: its row, and its budget where the foot is another axis."""
    budgets = {one.epsilon for one in lines if one.epsilon != math.inf}
    along = any(one.place for one in lines)
    return f"{line.row}, epsilon {number(line.epsilon or 0.0)}" if along and len(budgets) > 1 else line.row


def _key(names: Sequence[str], width: float) -> tuple[str, float]:
    """Return the names beside their markers, in as many lines as they take, and how high that is."""
    parts, x, row = [], 8.0, 0
    for place, name in enumerate(names):
        need = 30 + 7.6 * len(name)
        if x > 8.0 and x + need > width:
            x, row = 8.0, row + 1
        y = 14 + _KEY * row
        parts.append(
            f'<path fill="var(--c{place % 7})" transform="translate({x + 6:g} {y})" d="{_MARKERS[place % 7]}"/>'
            f'<text font-size="13" x="{x + 16:g}" y="{y + 4}">{escape(name)}</text>'
        )
        x += need
    return "".join(parts), float(_KEY * (row + 1))


def _ends(found: Interval) -> tuple[float, float]:
    return (found.low, found.high) if found.known else (found.mean, found.mean)


def _levels(group: Sequence[Line], column: str, *, bars: bool) -> list[tuple[str, Interval]]:
    """Return the floor and the ceiling of a data set, which are ours: behind our own column alone."""
    if bars or column != "ours":
        return []
    found = [(name, getattr(group[0], name)) for name in ("floor", "ceiling")]
    return [(name, one) for name, one in found if one is not None]


def _panel(
    group: Sequence[Line], shown: Sequence[Line], names: Sequence[str], column: str, title: str, *, bars: bool
) -> list[str]:
    """Return one panel: curves of a data set, or all data sets as groups of bars."""
    feet = [name_of(one) for one in _names(group)] if bars else list(dict.fromkeys(_at(line, shown) for line in group))
    points = [
        _Point(
            series=_series(line, shown),
            x=name_of(line.dataset) if bars else _at(line, shown),
            found=getattr(line, column),
            gain=line.metric.endswith("gain"),
        )
        for line in group
        if getattr(line, column) is not None
    ]
    both = [found for line in group for name, _ in _COLUMNS if (found := getattr(line, name)) is not None]
    levels = _levels(group, column, bars=bars)
    ends = [end for one in (*both, *(one for _, one in _levels(group, "ours", bars=bars))) for end in _ends(one)]
    if any(line.metric.endswith("gain") for line in group):
        ends.append(0.0)
    low, high = min(ends), max(ends)
    pad = max(0.06 * (high - low), 0.5 if high > 2 else 0.005)
    # A bar's length says how much it is, so that it begins at zero.
    low, high = (min(0.0, low - pad if low < 0 else 0.0) if bars else low - pad), high + pad

    def y(value: float) -> float:
        return _TOP + (_HIGH - _FOOT - _TOP) * (high - value) / (high - low)

    room, count = _WIDE - _LEFT - _RIGHT, max(1, len(feet))

    def x(foot: str) -> float:
        place = feet.index(foot)
        if bars:
            return _LEFT + room * (place + 0.5) / count
        share = place / (count - 1) if count > 1 else 0.5
        return _LEFT + _INSET + share * (room - 2 * _INSET)

    parts = [f'<text class="strong" font-size="13.5" x="{_LEFT}" y="16">{escape(title)}</text>']
    for tick in nice_ticks(low, high, 4):
        parts.append(f'<path class="grid" d="M{_LEFT} {y(tick):.1f}H{_WIDE - _RIGHT}"/>')
        parts.append(
            f'<text class="muted" font-size="12" text-anchor="end" x="{_LEFT - 5}" y="{y(tick):.1f}" dy="4">'
            f"{number(tick).replace('-', '−')}</text>"
        )
    if low < 0 < high:
        parts.append(f'<path stroke="var(--ink)" d="M{_LEFT} {y(0):.1f}H{_WIDE - _RIGHT}"/>')
    for name, level in levels:
        bottom, top = _ends(level)
        parts.append(
            f'<rect class="band" x="{_LEFT}" width="{_WIDE - _LEFT - _RIGHT}" y="{y(top):.1f}" '
            f'height="{max(1.0, y(bottom) - y(top)):.1f}"/>'
            f'<path class="level"{" stroke-dasharray=" + chr(34) + "5 4" + chr(34) if name == "ceiling" else ""} '
            f'd="M{_LEFT} {y(level.mean):.1f}H{_WIDE - _RIGHT}"/>'
            f'<text class="muted" font-size="11.5" text-anchor="end" x="{_WIDE - _RIGHT - 2}" '
            f'y="{y(level.mean) + (13 if name == "floor" else -3):.1f}">{name}</text>'
        )
    step = min(_WIDEST, 0.8 * room / count / max(1, len(names))) if bars else 0.0
    for foot in feet:
        words = foot.rpartition(" ")[2] if not bars and any(line.place for line in shown) else foot
        parts.append(
            f'<text class="muted" font-size="12" text-anchor="middle" x="{x(foot):.1f}" '
            f'y="{_HIGH - _FOOT + 17}">{escape(words)}</text>'
        )
    parts.append(
        f'<text class="muted" font-size="12" text-anchor="middle" x="{(_LEFT + _WIDE - _RIGHT) / 2:g}" '
        f'y="{_HIGH - _FOOT + 34}">{escape(_foot(shown, bars=bars))}</text>'
    )
    for place, name in enumerate(names):
        own = [one for one in points if one.series == name]
        spots = [(x(one.x) + (step * (place - (len(names) - 1) / 2)), y(one.found.mean), one) for one in own]
        if not bars and len(spots) > 1:
            path = "L".join(f"{left:.1f} {up:.1f}" for left, up, _ in spots)
            parts.append(f'<path fill="none" stroke="var(--c{place % 7})" stroke-width="1.6" d="M{path}"/>')
        for left, up, one in spots:
            parts += _mark(left, up, one, place, y, bars=bars, width=0.8 * step, foot=y(max(low, 0.0)))
    return parts


def _mark(
    left: float, up: float, one: _Point, place: int, y: object, *, bars: bool, width: float, foot: float
) -> list[str]:
    """Return a point with its interval, or a bar from the foot on."""
    assert callable(y)
    low, high = (y(end) for end in _ends(one.found))
    colour = f"var(--c{place % 7})"
    title = f"<title>{escape(one.words)}</title>"
    parts = []
    if bars:
        parts.append(
            f'<rect fill="{colour}" opacity=".55" x="{left - width / 2:.1f}" width="{width:.1f}" '
            f'y="{min(up, foot):.1f}" height="{abs(foot - up):.1f}">{title}</rect>'
        )
    if one.found.known:
        parts.append(f'<path stroke="{colour}" stroke-width="1.6" d="M{left:.1f} {high:.1f}V{low:.1f}"/>')
    spot = f'transform="translate({left:.1f} {up:.1f})" d="{_MARKERS[place % 7]}"'
    return [*parts, f'<path fill="{colour}" {spot}>{title}</path>']


def _foot(lines: Sequence[Line], *, bars: bool) -> str:
    """Return what runs along the foot."""
    if bars:
        return f"data set, at epsilon {number(lines[0].epsilon or 0.0)}"
    named = [line.place for line in lines if line.place]
    return f"{named[0].rpartition(' ')[0].replace('_', ' ')}, evenly spaced" if named else "epsilon, evenly spaced"


def _words(lines: Sequence[Line]) -> str:
    """Say the figure in words, for people who do not see it."""
    return "; ".join(
        f"{name_of(line.dataset)}, {_series(line, lines)}, {_at(line, lines)}: "
        + ", ".join(f"{span(getattr(line, name))} {words}" for name, words in _there(lines))
        for line in lines
    )
