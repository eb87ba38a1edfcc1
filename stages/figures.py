"""The accuracy figure as SVG, written directly: same bytes everywhere, light and dark, legible at phone width.

Methods are points with their intervals, joined over the budget and moved a little sideways so that they do not hide
each other. The floor (`structure`) and the ceiling (`nonpriv`) are level lines in a band of their interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from graphldp.evaluation import Interval
from graphldp.stages.tables import Row, Section, number

__all__ = ["FIGURE_CSS", "accuracy_figure", "gain_bar", "nice_ticks"]

# Okabe and Ito's colours, which people with colour-blindness can tell apart, darkened for white and lightened for
# black paper. Markers differ too, so nothing rests on colour alone.
FIGURE_CSS = """\
.figure{--ink:#1c2024;--muted:#5b636c;--grid:#e3e6e9;--band:#5b636c;--s0:#0066a8;--s1:#c24e00;--s2:#007d5a;\
--s3:#a8487f;--s4:#8a6a00;--s5:#3d8fc4;--s6:#444a52;font-family:system-ui,-apple-system,"Segoe UI",Roboto,\
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.figure text{fill:var(--ink)}.figure .muted{fill:var(--muted)}.figure .grid{stroke:var(--grid)}
.figure .strong{font-weight:600}
@media(prefers-color-scheme:dark){.figure{--ink:#e8eaed;--muted:#a3abb4;--grid:#32373d;--band:#a3abb4;--s0:#6cb6f0;\
--s1:#f59056;--s2:#3fc79a;--s3:#e592c2;--s4:#dcb63c;--s5:#a5d8f7;--s6:#c4c9cf}}
"""
_SERIES = 7
_LABEL_GAP = 16.0
_MARKERS = (
    "M0-4.6A4.6 4.6 0 1 1 0 4.6A4.6 4.6 0 1 1 0-4.6Z",
    "M-4-4H4V4H-4Z",
    "M0-5.4L5 4H-5Z",
    "M0-5.6L5.6 0L0 5.6L-5.6 0Z",
    "M0 5.4L5-4H-5Z",
    "M-5-2H-2V-5H2V-2H5V2H2V5H-2V2H-5Z",
)
_DASHES = {"structure": "", "nonpriv": "7 4", "majority": "2 4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """The plot's rectangle and its two scales."""

    left: float
    right: float
    top: float
    bottom: float
    low: float
    high: float
    epsilons: tuple[float, ...]

    def x(self, epsilon: float) -> float:
        first, last = math.log10(self.epsilons[0]), math.log10(self.epsilons[-1])
        inset = 0.09 * (self.right - self.left)
        if first == last:
            return (self.left + self.right) / 2
        share = (math.log10(epsilon) - first) / (last - first)
        return self.left + inset + share * (self.right - self.left - 2 * inset)

    def y(self, value: float) -> float:
        return self.bottom - (value - self.low) / (self.high - self.low) * (self.bottom - self.top)


@dataclass(slots=True, kw_only=True)
class _Label:
    """A name in the right margin: where its line ends, and where the name may stand without hiding another."""

    text: str
    value: str
    colour: str
    from_x: float
    from_y: float
    y: float
    strong: bool
    marker: str = ""


def accuracy_figure(section: Section, *, width: int, standalone: bool = True) -> str:
    """Return accuracy against epsilon for one dataset; `standalone` brings the style with it."""
    series = _series(section)
    epsilons = tuple(sorted({row.epsilon for row in section.private})) or (1.0,)
    low, high, hidden = _range(section)
    height = 420 if width >= 600 else 380
    wide = width >= 600
    longest = max(len(row.label) for row in section.rows if row.role != "majority")
    margin = 34 + 7.6 * (longest + (5 if wide else 0))
    frame = _Frame(left=38, right=width - margin, top=34, bottom=height - 50, low=low, high=high, epsilons=epsilons)
    parts = _axes(frame, section.reference("majority") if hidden else None)
    labels = []
    for method in ("nonpriv", "structure", "majority"):
        if method not in hidden:
            drawn, label = _level(section.reference(method), frame)
            parts += drawn
            labels.append(label)
    for place, rows in enumerate(series):
        drawn, label = _line(rows, place, len(series), frame)
        parts += drawn
        labels.append(label)
    parts += _margin(_spread(labels, frame.top, frame.bottom), frame, values=wide)
    name = f"figure-{escape(section.dataset)}-{width}"
    style = f"<style>{FIGURE_CSS}</style>" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="{name}-title {name}-text">{style}'
        f'<title id="{name}-title">Accuracy against epsilon on {escape(section.dataset)}</title>'
        f'<desc id="{name}-text">{escape(_description(section))}</desc>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def gain_bar(gain: Interval, limit: float, *, width: int = 110, height: int = 18) -> str:
    """Return a table cell's picture of a gain: the interval as a bar, the mean as a dot, zero as a line.

    What lies beyond the limit becomes an arrow at the edge.
    """
    middle, half, line = width / 2, width / 2 - 6, height / 2

    def x(value: float) -> float:
        return middle + max(-1.0, min(1.0, value / limit)) * half

    parts = [f'<path class="zero" d="M{middle:g} 0V{height}"/>']
    if gain.known and abs(gain.mean) <= limit:
        parts.append(f'<path class="bar" d="M{_n(x(gain.low))} {line:g}H{_n(x(gain.high))}"/>')
    if abs(gain.mean) <= limit:
        parts.append(f'<circle cx="{_n(x(gain.mean))}" cy="{line:g}" r="3"/>')
    else:
        side = math.copysign(1.0, gain.mean)
        parts.append(f'<path class="beyond" d="M{_n(x(gain.mean))} {line:g}l{-7 * side:g}-4.5v9Z"/>')
    return (
        f'<svg class="gain {gain.against(0.0)}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


def nice_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return about `count` round numbers in [low, high]."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 10) for place in range(first, math.floor(high / step + 1e-9) + 1)]


def _series(section: Section) -> list[list[Row]]:
    """Return the private rows by name, each in the order of its budgets."""
    names = dict.fromkeys(row.name for row in section.private)
    return [sorted((row for row in section.private if row.name == name), key=lambda row: row.epsilon) for name in names]


def _range(section: Section) -> tuple[float, float, set[str]]:
    """Return the axis and what it leaves out: a majority far below would flatten everything that matters."""
    drawn = [row for row in section.rows if row.role != "majority"]
    low = min(_reach(row)[0] for row in drawn)
    high = max(_reach(row)[1] for row in drawn)
    pad = max(0.08 * (high - low), 0.5)
    majority = _reach(section.reference("majority"))
    hidden = majority[0] < low - 0.5 * (high - low) - pad
    if not hidden:
        low, high = min(low, majority[0]), max(high, majority[1])
    return max(0.0, low - pad), min(100.0, high + pad), {"majority"} if hidden else set()


def _reach(row: Row) -> tuple[float, float]:
    interval = row.accuracy
    return (interval.low, interval.high) if interval.known else (interval.mean, interval.mean)


def _axes(frame: _Frame, below: Row | None) -> list[str]:
    left_out = f"; majority ({below.accuracy.mean:.1f}) lies below" if below is not None else ""
    parts = [f'<text class="muted" font-size="12.5" x="4" y="16">test accuracy, %{left_out}</text>']
    for tick in nice_ticks(frame.low, frame.high):
        y = _n(frame.y(tick))
        parts.append(f'<path class="grid" d="M{_n(frame.left)} {y}H{_n(frame.right)}"/>')
        parts.append(
            f'<text class="muted" font-size="12" text-anchor="end" x="{_n(frame.left - 7)}" y="{y}" '
            f'dy="4">{number(tick)}</text>'
        )
    room = -math.inf
    for epsilon in frame.epsilons:
        x = frame.x(epsilon)
        parts.append(f'<path stroke="var(--muted)" d="M{_n(x)} {_n(frame.bottom)}v5"/>')
        if x - room >= 30:  # a label that would touch its neighbour is left out, its tick stays
            room = x
            parts.append(
                f'<text font-size="12.5" text-anchor="middle" x="{_n(x)}" y="{_n(frame.bottom + 20)}">'
                f"{number(epsilon)}</text>"
            )
    parts.append(f'<path stroke="var(--muted)" d="M{_n(frame.left)} {_n(frame.bottom)}H{_n(frame.right)}"/>')
    parts.append(
        f'<text class="muted" font-size="12.5" text-anchor="middle" x="{_n((frame.left + frame.right) / 2)}" '
        f'y="{_n(frame.bottom + 41)}">epsilon of one user{" (log scale)" if len(frame.epsilons) > 1 else ""}</text>'
    )
    return parts


def _level(row: Row, frame: _Frame) -> tuple[list[str], _Label]:
    y = frame.y(row.accuracy.mean)
    low, high = _reach(row)
    dashes = f' stroke-dasharray="{_DASHES[row.role]}"' if _DASHES[row.role] else ""
    parts = [
        f'<rect fill="var(--band)" opacity="0.16" x="{_n(frame.left)}" y="{_n(frame.y(high))}" '
        f'width="{_n(frame.right - frame.left)}" height="{_n(frame.y(low) - frame.y(high))}"/>',
        f'<path stroke="var(--ink)" stroke-width="1.6"{dashes} d="M{_n(frame.left)} {_n(y)}H{_n(frame.right)}"/>',
    ]
    return parts, _Label(
        text=row.name,
        value=f"{row.accuracy.mean:.1f}",
        colour="var(--ink)",
        from_x=frame.right,
        from_y=y,
        y=y,
        strong=True,
    )


def _line(rows: Sequence[Row], place: int, count: int, frame: _Frame) -> tuple[list[str], _Label]:
    colour = f"var(--s{place % _SERIES})"
    marker = _MARKERS[place % len(_MARKERS)]
    gaps = [frame.x(b) - frame.x(a) for a, b in zip(frame.epsilons, frame.epsilons[1:], strict=False)]
    room = min([8.0 * max(count - 1, 1), *(0.6 * gap for gap in gaps)])
    shift = (place - (count - 1) / 2) * room / max(count - 1, 1)
    points = [(frame.x(row.epsilon) + shift, frame.y(row.accuracy.mean), row) for row in rows]
    parts = [f'<g fill="{colour}" stroke="{colour}">']
    trail = "L".join(f"{_n(x)} {_n(y)}" for x, y, _ in points)
    parts.append(f'<path fill="none" stroke-width="1.4" opacity="0.75" d="M{trail}"/>')
    for x, y, row in points:
        if row.accuracy.known:
            top, bottom = frame.y(row.accuracy.high), frame.y(row.accuracy.low)
            parts.append(
                f'<path fill="none" stroke-width="1.8" d="M{_n(x)} {_n(top)}V{_n(bottom)}M{_n(x - 3)} {_n(top)}h6'
                f'M{_n(x - 3)} {_n(bottom)}h6"/>'
            )
        parts.append(f'<path stroke="none" transform="translate({_n(x)} {_n(y)})" d="{marker}"/>')
    parts.append("</g>")
    x, y, last = points[-1]
    return parts, _Label(
        text=last.label,
        value=f"{last.accuracy.mean:.1f}",
        colour=colour,
        from_x=x + 6,
        from_y=y,
        y=y,
        strong=False,
        marker=marker,
    )


def _spread(labels: list[_Label], top: float, bottom: float) -> list[_Label]:
    """Move names apart until none hides another, keeping their order."""
    labels = sorted(labels, key=lambda label: label.from_y)
    floor = top - 8
    for label in labels:
        label.y = max(label.y, floor)
        floor = label.y + _LABEL_GAP
    ceiling = bottom + 8
    for label in reversed(labels):
        label.y = min(label.y, ceiling)
        ceiling = label.y - _LABEL_GAP
    return labels


def _margin(labels: Sequence[_Label], frame: _Frame, *, values: bool) -> list[str]:
    parts = []
    start = frame.right + 16
    for label in labels:
        parts.append(
            f'<path fill="none" stroke="{label.colour}" stroke-width="0.8" opacity="0.55" '
            f'd="M{_n(label.from_x)} {_n(label.from_y)}L{_n(frame.right + 2)} {_n(label.from_y)}'
            f'L{_n(start - 4)} {_n(label.y)}"/>'
        )
        x = start
        if label.marker:
            parts.append(
                f'<path fill="{label.colour}" transform="translate({_n(start + 4)} {_n(label.y)})" d="{label.marker}"/>'
            )
            x += 13
        weight = ' class="strong"' if label.strong else ""
        value = f' <tspan class="muted" font-weight="400">{label.value}</tspan>' if values else ""
        parts.append(
            f'<text{weight} font-size="12.5" x="{_n(x)}" y="{_n(label.y)}" dy="4.3">{escape(label.text)}{value}</text>'
        )
    return parts


def _description(section: Section) -> str:
    """Say the figure in words, for people who do not see it."""
    words = [f"{row.name} {row.accuracy.mean:.1f}" for row in section.rows if row.role != "private"]
    words += [
        f"{rows[0].name} " + ", ".join(f"{row.accuracy.mean:.1f} at epsilon {number(row.epsilon)}" for row in rows)
        for rows in _series(section)
    ]
    return "; ".join(words) + "."


def _n(value: float) -> str:
    """Return a coordinate with one decimal: enough for a screen, and the same text on every machine."""
    return f"{round(value, 1) + 0.0:g}"
