"""A figure of a table as SVG, written directly: same bytes everywhere, light and dark, legible at phone width.

Methods are points with their intervals, joined over the budget and moved a little sideways so that they do not hide
each other. The floor (`structure`) and the ceiling (`nonpriv`) are level lines in a band of their interval. An
experiment with an axis of its own has that axis in place of the budget; where floor and ceiling move along it, they
are lines too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from graphldp.evaluation import Interval
from graphldp.measures import Measure
from graphldp.stages.tables import Result, Row, Section, number, short

__all__ = ["FIGURE_CSS", "Picture", "budget_figure", "gain_bar", "nice_ticks", "pictures"]

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


_EPSILON = "epsilon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What one figure shows: the tables that it draws together, and what runs along its foot.

    Attributes:
        slug: for file names and anchors.
        axis: `epsilon`, or an axis of the experiment by its full name.
        sections: one table, or one for each value of an axis that floor and ceiling share.
    """

    slug: str
    sections: tuple[Section, ...]
    axis: str = _EPSILON

    @property
    def measure(self) -> Measure:
        """What runs up its side."""
        return self.sections[0].measure

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.measure.name}-{self.slug}.svg"

    @property
    def rows(self) -> list[Row]:
        """What is drawn beside floor and ceiling; further references have no place among budgets."""
        rows = [row for section in self.sections for row in section.private]
        return [row for row in rows if self.axis != _EPSILON or 0 < row.epsilon < math.inf]

    @property
    def values(self) -> tuple[str, ...]:
        """The places along the foot, as texts."""
        if self.axis == _EPSILON:
            found = sorted({row.epsilon for row in self.rows})
            return tuple(map(number, found)) or ("1",)
        rows = (row for section in self.sections for row in section.rows)
        return tuple(dict.fromkeys(value for row in rows for name, value in row.axes if name == self.axis))

    @property
    def shared(self) -> bool:
        """Whether floor and ceiling have a value of their own at every place."""
        return self.axis in dict(self.sections[0].setting)

    def places(self, row: Row) -> tuple[str, ...]:
        """Return where a row is drawn: at its own place, or everywhere if it has none."""
        own = number(row.epsilon) if self.axis == _EPSILON else dict(row.axes).get(self.axis)
        return self.values if own is None else (own,)

    def series(self) -> dict[str, list[tuple[str, Row]]]:
        """Return the private rows by what they are called here, each as its points from left to right."""
        rows = self.rows
        budgets = len({row.epsilon for row in rows}) > 1 and self.axis != _EPSILON
        fixed = {name for name, _ in self.sections[0].setting} | {self.axis}
        out: dict[str, list[tuple[str, Row]]] = {}
        for row in rows:
            parts = [row.name, *(f"{short(name)} {value}" for name, value in row.axes if name not in fixed)]
            parts += [f"epsilon {number(row.epsilon)}"] if budgets else []
            out.setdefault(", ".join(parts), []).extend((place, row) for place in self.places(row))
        order = self.values.index
        for points in out.values():
            points.sort(key=lambda point: order(point[0]))
        return {name + points[-1][1].mark: points for name, points in out.items()}

    def reference(self, method: str) -> list[tuple[str, Row]]:
        """Return the floor, the ceiling or the commonest class at every place."""
        if self.shared:
            return [(dict(one.setting)[self.axis], one.reference(method)) for one in self.sections]
        return [(place, self.sections[0].reference(method)) for place in self.values]


def pictures(result: Result) -> list[Picture]:
    """Return the figures of a result: one for each table, or for all the tables along an axis that they share."""
    groups: dict[tuple[str, ...], list[Section]] = {}
    for section in result.sections:
        rest = section.setting[1:]
        groups.setdefault((section.place, *(f"{short(name)}{value}" for name, value in rest)), []).append(section)
    out = []
    for key, sections in groups.items():
        first = sections[0]
        axes = [*(name for name, _ in first.setting[:1]), *first.own_axes, _EPSILON]
        out.append(Picture(slug="-".join(key), sections=tuple(sections), axis=axes[0]))
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """The plot's rectangle and its two scales."""

    left: float
    right: float
    top: float
    bottom: float
    low: float
    high: float
    axis: str
    values: tuple[str, ...]
    measure: Measure

    def x(self, value: str) -> float:
        inset = 0.09 * (self.right - self.left)
        if len(self.values) == 1:
            return (self.left + self.right) / 2
        if self.axis == _EPSILON:
            first, last = math.log10(float(self.values[0])), math.log10(float(self.values[-1]))
            share = (math.log10(float(value)) - first) / (last - first)
        else:
            share = self.values.index(value) / (len(self.values) - 1)
        return self.left + inset + share * (self.right - self.left - 2 * inset)

    @property
    def foot(self) -> str:
        """What stands under the axis."""
        if self.axis == _EPSILON:
            return f"epsilon of one user{' (log scale)' if len(self.values) > 1 else ''}"
        return f"{short(self.axis)}{' (values evenly spaced)' if len(self.values) > 2 else ''}"

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


def budget_figure(shown: Section | Picture, *, width: int, standalone: bool = True) -> str:
    """Return the headline against epsilon for one table, or what a picture asks for; `standalone` brings the style."""
    picture = shown if isinstance(shown, Picture) else Picture(slug=shown.slug, sections=(shown,))
    section, series = picture.sections[0], picture.series()
    low, high, hidden = _range(picture)
    height = 420 if width >= 600 else 380
    wide = width >= 600
    longest = max(len(name) for name in (*series, "structure"))
    margin = 34 + 7.6 * (longest + (5 if wide else 0))
    frame = _Frame(
        left=38,
        right=width - margin,
        top=34,
        bottom=height - 50,
        low=low,
        high=high,
        axis=picture.axis,
        values=picture.values,
        measure=picture.measure,
    )
    parts = _axes(frame, section.reference("majority") if hidden else None)
    labels = []
    for method in ("nonpriv", "structure", "majority"):
        if method not in hidden:
            points = picture.reference(method)
            drawn, label = _moving(points, frame) if picture.shared else _level(points[0][1], frame)
            parts += drawn
            labels.append(label)
    for place, (name, points) in enumerate(series.items()):
        drawn, label = _line(name, points, place, len(series), frame)
        parts += drawn
        labels.append(label)
    parts += _margin(_spread(labels, frame.top, frame.bottom), frame, values=wide)
    name = f"figure-{escape(picture.slug)}-{width}"
    against, what = short(picture.axis), picture.measure.label
    what = what[:1].upper() + what[1:]
    style = f"<style>{FIGURE_CSS}</style>" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="{name}-title {name}-text">{style}'
        f'<title id="{name}-title">{escape(what)} against {escape(against)} on {escape(section.place)}</title>'
        f'<desc id="{name}-text">{escape(_description(picture))}</desc>\n' + "\n".join(parts) + "\n</svg>\n"
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


def _range(picture: Picture) -> tuple[float, float, set[str]]:
    """Return the axis and what it leaves out: a majority far off would flatten everything that matters."""
    one = picture.measure
    drawn = [row for section in picture.sections for row in section.rows if row.role != "majority"]
    low = min(_reach(row)[0] for row in drawn)
    high = max(_reach(row)[1] for row in drawn)
    pad = max(0.08 * (high - low), 0.005 * one.factor)
    ends = [_reach(row) for _, row in picture.reference("majority")]
    majority = min(end for end, _ in ends), max(end for _, end in ends)
    room = 0.5 * (high - low) + pad
    hidden = majority[0] < low - room or majority[1] > high + room
    if not hidden:
        low, high = min(low, majority[0]), max(high, majority[1])
    least, most = one.factor * one.low, one.factor * one.high
    return max(least, low - pad), min(most, high + pad), {"majority"} if hidden else set()


def _reach(row: Row) -> tuple[float, float]:
    interval = row.score
    return (interval.low, interval.high) if interval.known else (interval.mean, interval.mean)


def _axes(frame: _Frame, below: Row | None) -> list[str]:
    one, left_out = frame.measure, ""
    if below is not None:
        side = "below" if below.score.mean < frame.low else "above"
        left_out = f"; majority ({below.mean_text}) lies {side}"
    parts = [f'<text class="muted" font-size="12.5" x="4" y="16">test {one.axis}{left_out}</text>']
    for tick in nice_ticks(frame.low, frame.high):
        y = _n(frame.y(tick))
        parts.append(f'<path class="grid" d="M{_n(frame.left)} {y}H{_n(frame.right)}"/>')
        parts.append(
            f'<text class="muted" font-size="12" text-anchor="end" x="{_n(frame.left - 7)}" y="{y}" '
            f'dy="4">{number(tick)}</text>'
        )
    room = -math.inf
    for value in frame.values:
        x, need = frame.x(value), max(30.0, 7.2 * len(value))
        parts.append(f'<path stroke="var(--muted)" d="M{_n(x)} {_n(frame.bottom)}v5"/>')
        if x - room >= need:  # a label that would touch its neighbour is left out, its tick stays
            room = x
            parts.append(
                f'<text font-size="12.5" text-anchor="middle" x="{_n(x)}" y="{_n(frame.bottom + 20)}">'
                f"{escape(value)}</text>"
            )
    parts.append(f'<path stroke="var(--muted)" d="M{_n(frame.left)} {_n(frame.bottom)}H{_n(frame.right)}"/>')
    parts.append(
        f'<text class="muted" font-size="12.5" text-anchor="middle" x="{_n((frame.left + frame.right) / 2)}" '
        f'y="{_n(frame.bottom + 41)}">{escape(frame.foot)}</text>'
    )
    return parts


def _level(row: Row, frame: _Frame) -> tuple[list[str], _Label]:
    y = frame.y(row.score.mean)
    low, high = _reach(row)
    dashes = f' stroke-dasharray="{_DASHES[row.role]}"' if _DASHES[row.role] else ""
    parts = [
        f'<rect fill="var(--band)" opacity="0.16" x="{_n(frame.left)}" y="{_n(frame.y(high))}" '
        f'width="{_n(frame.right - frame.left)}" height="{_n(frame.y(low) - frame.y(high))}"/>',
        f'<path stroke="var(--ink)" stroke-width="1.6"{dashes} d="M{_n(frame.left)} {_n(y)}H{_n(frame.right)}"/>',
    ]
    return parts, _Label(
        text=row.name,
        value=row.mean_text,
        colour="var(--ink)",
        from_x=frame.right,
        from_y=y,
        y=y,
        strong=True,
    )


def _moving(points: Sequence[tuple[str, Row]], frame: _Frame) -> tuple[list[str], _Label]:
    """Draw a reference that is measured anew at every place: a line in the band of its intervals."""
    spots = [(frame.x(place), row) for place, row in points]
    last = spots[-1][1]
    dashes = f' stroke-dasharray="{_DASHES[last.role]}"' if _DASHES[last.role] else ""
    highs = [f"{_n(x)} {_n(frame.y(_reach(row)[1]))}" for x, row in spots]
    lows = [f"{_n(x)} {_n(frame.y(_reach(row)[0]))}" for x, row in reversed(spots)]
    trail = "L".join(f"{_n(x)} {_n(frame.y(row.score.mean))}" for x, row in spots)
    parts = [
        f'<path fill="var(--band)" opacity="0.16" d="M{"L".join([*highs, *lows])}Z"/>',
        f'<path fill="none" stroke="var(--ink)" stroke-width="1.6"{dashes} d="M{trail}"/>',
    ]
    y = frame.y(last.score.mean)
    return parts, _Label(
        text=last.name,
        value=last.mean_text,
        colour="var(--ink)",
        from_x=spots[-1][0],
        from_y=y,
        y=y,
        strong=True,
    )


def _line(
    name: str, spots: Sequence[tuple[str, Row]], place: int, count: int, frame: _Frame
) -> tuple[list[str], _Label]:
    colour = f"var(--s{place % _SERIES})"
    marker = _MARKERS[place % len(_MARKERS)]
    gaps = [frame.x(b) - frame.x(a) for a, b in zip(frame.values, frame.values[1:], strict=False)]
    room = min([8.0 * max(count - 1, 1), *(0.6 * gap for gap in gaps)])
    shift = (place - (count - 1) / 2) * room / max(count - 1, 1)
    points = [(frame.x(value) + shift, frame.y(row.score.mean), row) for value, row in spots]
    parts = [f'<g fill="{colour}" stroke="{colour}">']
    trail = "L".join(f"{_n(x)} {_n(y)}" for x, y, _ in points)
    parts.append(f'<path fill="none" stroke-width="1.4" opacity="0.75" d="M{trail}"/>')
    for x, y, row in points:
        if row.score.known:
            top, bottom = frame.y(row.score.high), frame.y(row.score.low)
            parts.append(
                f'<path fill="none" stroke-width="1.8" d="M{_n(x)} {_n(top)}V{_n(bottom)}M{_n(x - 3)} {_n(top)}h6'
                f'M{_n(x - 3)} {_n(bottom)}h6"/>'
            )
        parts.append(f'<path stroke="none" transform="translate({_n(x)} {_n(y)})" d="{marker}"/>')
    parts.append("</g>")
    x, y, last = points[-1]
    return parts, _Label(
        text=name,
        value=last.mean_text,
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


def _description(picture: Picture) -> str:
    """Say the figure in words, for people who do not see it."""
    at = short(picture.axis)
    lines = {row.name: picture.reference(row.method) for row in picture.sections[0].rows if row.role != "private"}
    if picture.shared:
        lines |= picture.series()
        words = []
    else:
        words = [f"{name} {points[0][1].mean_text}" for name, points in lines.items()]
        lines = picture.series()
    words += [
        f"{name} " + ", ".join(f"{row.mean_text} at {at} {place}" for place, row in points)
        for name, points in lines.items()
    ]
    return "; ".join(words) + "."


def _n(value: float) -> str:
    """Return a coordinate with one decimal: enough for a screen, and the same text on every machine."""
    return f"{round(value, 1) + 0.0:g}"
