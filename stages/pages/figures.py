"""A figure of a table as SVG, written directly: same bytes everywhere, light and dark, legible at phone width.

Every private row has a panel of its own: its gain over the floor along the budget, with intervals, and the other rows
in grey behind it. The floor is the line at zero and the ceiling a dashed one, so that twenty rows within a point of
each other can still be read. An experiment with an axis of its own has that axis in place of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from graphldp.evaluation import Interval
from graphldp.measures import Measure
from graphldp.methods import Role, reference
from graphldp.stages.pages.tables import Result, Section, TableRow, number, signed
from graphldp.stages.pages.wording import at, axis_title, short

__all__ = [
    "FIGURE_CSS",
    "FILE_CSS",
    "Panel",
    "Picture",
    "budget_figure",
    "figure_svg",
    "gain_bar",
    "nice_ticks",
    "panels",
    "pictures",
    "reach_text",
]

# Colours that people with colour-blindness can tell apart (Okabe and Ito's), darkened for white and lightened for
# black paper. What is above the floor also points up, and what is below it down, so nothing rests on colour alone.
FIGURE_CSS = """\
.figure{--sheet:#fff;--ink:#1c2024;--muted:#5b636c;--grid:#e3e6e9;--s0:#0066a8;--s1:#c24e00;--same:#5b636c;--above:#006b4d;\
--below:#b8420a;--behind:#c9ced3;font-family:system-ui,-apple-system,"Segoe UI",Roboto,\
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.figure text{fill:var(--ink)}.figure .muted{fill:var(--muted)}.figure .grid{stroke:var(--grid)}
.figure .strong{font-weight:600}.figure .behind{stroke:var(--behind);fill:none}
@media(prefers-color-scheme:dark){.figure{--sheet:#1a1d20;--ink:#e8eaed;--muted:#a3abb4;--grid:#32373d;--s0:#6cb6f0;--s1:#f59056;\
--same:#a3abb4;--above:#52d0a5;--below:#f79a6b;--behind:#4a5158}}
"""
# A browser shows a file of its own on white, whichever colours the reader prefers: light text brings its dark sheet.
FILE_CSS = f"{FIGURE_CSS}.figure{{background:var(--sheet)}}\n"
_MARKERS = {
    "above": "M0-5.4L5 4H-5Z",
    "below": "M0 5.4L5-4H-5Z",
    "same": "M0-3.6A3.6 3.6 0 1 1 0 3.6A3.6 3.6 0 1 1 0-3.6Z",
    "unknown": "M-3.5-3.5H3.5V3.5H-3.5Z",
}
_WIDE, _HIGH, _LINE, _GAP = 206, 152, 16, 14  # a panel, a line of its name, what lies between panels
_LEFT, _RIGHT, _FOOT = 34, 8, 38
_LETTERS = 21  # of a name in one line of a panel
_FAR, _CEILING_FAR = 0.65, 0.6  # what must be left of the axis to the others, for a row or the ceiling to lie on it


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
    def title(self) -> str:
        """What it shows, in words."""
        one = self.measure
        units = f"{one.difference} of test {one.label}" if one.difference else f"test {one.label}"
        evenly = " (evenly spaced)" if self.axis != _EPSILON and len(self.values) > 2 else ""
        return f"Gain over the floor in {units}, against {axis_title(self.axis)}{evenly}"

    @property
    def rows(self) -> list[TableRow]:
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

    def places(self, row: TableRow) -> tuple[str, ...]:
        """Return where a row is drawn: at its own place, or everywhere if it has none."""
        own = number(row.epsilon) if self.axis == _EPSILON else dict(row.axes).get(self.axis)
        return self.values if own is None else (own,)

    def series(self) -> dict[str, list[tuple[str, TableRow]]]:
        """Return the private rows by what they are called here, each as its points from left to right."""
        rows = self.rows
        budgets = len({row.epsilon for row in rows}) > 1 and self.axis != _EPSILON
        fixed = {name for name, _ in self.sections[0].setting} | {self.axis}
        out: dict[str, list[tuple[str, TableRow]]] = {}
        for row in rows:
            parts = [row.name, *(at(name, value) for name, value in row.axes if name not in fixed)]
            parts += [f"epsilon {number(row.epsilon)}"] if budgets else []
            out.setdefault(", ".join(parts), []).extend((place, row) for place in self.places(row))
        order = self.values.index
        for points in out.values():
            points.sort(key=lambda point: order(point[0]))
        return {name + points[-1][1].mark: points for name, points in out.items()}

    def reference(self, role: Role) -> list[tuple[str, TableRow]]:
        """Return the floor, the ceiling or the commonest class at every place."""
        return self.level(reference(role).name)

    def level(self, method: str) -> list[tuple[str, TableRow]]:
        """Return the row of a method that has one budget, at every place."""
        places = [dict(one.setting)[self.axis] for one in self.sections] if self.shared else self.values
        sections = self.sections if self.shared else self.sections[:1] * len(self.values)
        rows = [next(row for row in one.rows if row.method == method) for one in sections]
        return list(zip(places, rows, strict=True))


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
class _Scale:
    """What all panels of a picture share.

    Attributes:
        axis, values: what runs along the foot.
        low, high: the ends of the gain that are drawn.
        lines: how many lines the longest name takes.
        measure: of what the gain is.
    """

    axis: str
    values: tuple[str, ...]
    low: float
    high: float
    lines: int
    measure: Measure

    @property
    def top(self) -> float:
        return _LINE * self.lines + 8

    @property
    def bottom(self) -> float:
        return self.top + _HIGH - _FOOT

    @property
    def height(self) -> float:
        return self.top + _HIGH

    def x(self, value: str) -> float:
        inset = 14
        if len(self.values) == 1:
            return (_LEFT + _WIDE - _RIGHT) / 2
        if self.axis == _EPSILON:
            first, last = math.log10(float(self.values[0])), math.log10(float(self.values[-1]))
            share = (math.log10(float(value)) - first) / (last - first)
        else:
            share = self.values.index(value) / (len(self.values) - 1)
        return _LEFT + inset + share * (_WIDE - _LEFT - _RIGHT - 2 * inset)

    def y(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.bottom - share * (self.bottom - self.top)

    @property
    def foot(self) -> str:
        """What stands under the axis."""
        if self.axis == _EPSILON:
            return f"epsilon{', log scale' if len(self.values) > 1 else ''}"
        return axis_title(self.axis)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One row of a table along the foot of a picture.

    Attributes:
        name: what the row is called, with its dagger.
        place: its number among the panels.
        points: where it was measured.
        parts: its drawing, from its own corner on.
        height: of the drawing.
    """

    name: str
    place: int
    points: tuple[tuple[str, TableRow], ...]
    parts: tuple[str, ...]
    height: float

    @property
    def svg(self) -> str:
        """The drawing by itself; its style is that of the page."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {_WIDE} {self.height:g}" '
            f'aria-hidden="true">{"".join(self.parts)}</svg>'
        )

    @property
    def exact(self) -> list[tuple[str, str, str]]:
        """What it shows in digits: the place, the score and the gain, each with its interval."""
        return [(place, row.shown(row.score), row.shown(row.gain, sign=True)) for place, row in self.points]


def panels(picture: Picture) -> list[Panel]:
    """Return a picture's panels, in the order of the table."""
    series, ceiling = picture.series(), picture.reference(Role.CEILING)
    low, high = _range(picture)
    names = {name: _lines(name) for name in series}
    lines = max((len(found) for found in names.values()), default=1)
    scale = _Scale(
        axis=picture.axis, values=picture.values, low=low, high=high, lines=lines, measure=picture.measure
    )  # fmt: skip
    behind = [_trail(points, scale) for points in series.values()]
    out = []
    for place, (name, points) in enumerate(series.items()):
        others = [
            f'<path class="behind" data-row="{other}" d="{path}"/>'
            for other, path in enumerate(behind)
            if other != place and path
        ]
        parts = [*_frame(names[name], scale), *others, *_ceiling(ceiling, scale), *_row(points, scale)]
        out.append(Panel(name=name, place=place, points=tuple(points), parts=tuple(parts), height=scale.height))
    return out


def budget_figure(shown: Section | Picture, *, width: int = 760) -> str:
    """Return all panels of one table, or of what a picture asks for, as one file with its style."""
    picture = shown if isinstance(shown, Picture) else Picture(slug=shown.slug, sections=(shown,))
    found, section = panels(picture), picture.sections[0]
    columns = max(1, min(len(found), (width + _GAP) // (_WIDE + _GAP)))
    step = (found[0].height if found else 0) + _GAP
    height = 30 + step * math.ceil(len(found) / columns)
    parts = [
        f'<g transform="translate({(one.place % columns) * (_WIDE + _GAP)} {30 + one.place // columns * step:g})">'
        f"{''.join(one.parts)}</g>"
        for one in found
    ]
    title = f"{picture.title} on {section.where}"
    heading = f'<text class="muted" font-size="12.5" x="4" y="16">{escape(title)}</text>'
    return figure_svg(
        f"figure-{picture.slug}", title, _description(picture), [heading, *parts], width=width, height=height
    )


def figure_svg(
    name: str, title: str, words: str, parts: Sequence[str], *, width: float, height: float, style: str = FILE_CSS
) -> str:
    """Return a drawing with what it is called and what it says in words; `style` is that of a file by itself."""
    key, css = escape(name), f"<style>{style}</style>" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-labelledby="{key}-title {key}-text">{css}'
        f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-text">{escape(words)}</desc>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
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


def reach_text(picture: Picture) -> str:
    """Return what a picture leaves out because it lies beyond its axis, in words; empty where nothing does."""
    low, high = _range(picture)
    ceiling = [row.gain for _, row in picture.reference(Role.CEILING) if row.gain is not None]
    digits = picture.measure.digits
    out = []
    if ceiling and not all(low <= gain.mean <= high for gain in ceiling):
        means = sorted({signed(gain.mean, digits) for gain in ceiling}, key=lambda text: float(text.replace("−", "-")))
        ends = means[0] if len(means) == 1 else f"{means[0]} to {means[-1]}"
        out.append(f"The ceiling, {ends}, lies beyond the panels.")
    far = [name for name, points in picture.series().items() if any(_beyond(row, low, high) for _, row in points)]
    if far:
        out.append(f"An arrow at the edge, with its number, is a gain beyond it: {', '.join(far)}.")
    return " ".join(out)


def _beyond(row: TableRow, low: float, high: float) -> bool:
    return row.gain is not None and not low <= row.gain.mean <= high


def _range(picture: Picture) -> tuple[float, float]:
    """Return the ends of the axis: zero and nearly all rows lie within; what is far off would flatten all others."""
    one = picture.measure
    reach = [(min(low), max(high)) for low, high in (_ends(points) for points in picture.series().values()) if low]
    least = 0.005 * one.factor
    ends = sorted(reach, key=lambda pair: pair[0])
    low = min([0.0, *(pair[0] for pair in reach)])
    high = max([0.0, *(pair[1] for pair in reach)])
    for _ in range(len(reach) // 4):  # at most a quarter of the rows may be told by an arrow
        rest = ends[1:]
        without = min([0.0, *(pair[0] for pair in rest)])
        if high - without >= _FAR * (high - low):
            break
        ends, low = rest, without
    ceiling = [row.gain.mean for _, row in picture.reference(Role.CEILING) if row.gain is not None]
    top = max([high, *ceiling])
    if high - low >= _CEILING_FAR * (top - low):
        high = top
    pad = max(0.06 * (high - low), least)
    return low - pad, high + pad


def _ends(points: Sequence[tuple[str, TableRow]]) -> tuple[list[float], list[float]]:
    gains = [row.gain for _, row in points if row.gain is not None]
    lows = [gain.low if gain.known else gain.mean for gain in gains]
    return lows, [gain.high if gain.known else gain.mean for gain in gains]


def _lines(name: str) -> list[str]:
    """Return a name in lines that fit a panel, broken behind commas."""
    out = [""]
    for part in name.split(", "):
        longer = f"{out[-1]}, {part}" if out[-1] else part
        if out[-1] and len(longer) > _LETTERS:
            out.append(part)
        else:
            out[-1] = longer
    return out


def _frame(name: Sequence[str], scale: _Scale) -> list[str]:
    """Return a panel's name, its grid and its foot."""
    start = scale.top - 10 - _LINE * (len(name) - 1)
    squeezed = f' textLength="{_WIDE - _LEFT - 2}" lengthAdjust="spacingAndGlyphs"'
    parts = [
        f'<text class="strong" font-size="13.5" x="{_LEFT}" y="{_n(start + _LINE * place)}"'
        f"{squeezed if len(line) > _LETTERS else ''}>{escape(line)}</text>"
        for place, line in enumerate(name)
    ]
    for tick in nice_ticks(scale.low, scale.high, 4):
        y = _n(scale.y(tick))
        kind = 'stroke="var(--ink)" stroke-width="1.2"' if tick == 0 else 'class="grid"'
        parts.append(f'<path {kind} d="M{_LEFT} {y}H{_WIDE - _RIGHT}"/>')
        words = number(abs(tick)) if tick == 0 else f"{'+' if tick > 0 else '−'}{number(abs(tick))}"
        parts.append(
            f'<text class="muted" font-size="13" text-anchor="end" x="{_LEFT - 5}" y="{y}" dy="4">{words}</text>'
        )
    room = -math.inf
    for value in scale.values:
        x, need = scale.x(value), max(26.0, 7.4 * len(value))
        parts.append(f'<path stroke="var(--muted)" d="M{_n(x)} {_n(scale.bottom)}v4"/>')
        if x - room >= need:  # a label that would touch its neighbour is left out, its tick stays
            room = x
            parts.append(
                f'<text class="muted" font-size="13" text-anchor="middle" x="{_n(x)}" y="{_n(scale.bottom + 17)}">'
                f"{escape(value)}</text>"
            )
    middle = (_LEFT + _WIDE - _RIGHT) / 2
    parts.append(
        f'<text class="muted" font-size="12.5" text-anchor="middle" x="{_n(middle)}" y="{_n(scale.bottom + 33)}">'
        f"{escape(scale.foot)}</text>"
    )
    return parts


def _trail(points: Sequence[tuple[str, TableRow]], scale: _Scale) -> str:
    """Return a row's line; of one place, a short stroke."""
    spots = [(scale.x(place), scale.y(row.gain.mean)) for place, row in points if row.gain is not None]
    if len(spots) == 1:
        return f"M{_n(spots[0][0] - 14)} {_n(spots[0][1])}h28"
    return f"M{'L'.join(f'{_n(x)} {_n(y)}' for x, y in spots)}" if spots else ""


def _ceiling(points: Sequence[tuple[str, TableRow]], scale: _Scale) -> list[str]:
    """Return the ceiling's line, where all of it lies within."""
    gains = [(place, row.gain.mean) for place, row in points if row.gain is not None]
    if not gains or not all(scale.low <= gain <= scale.high for _, gain in gains):
        return []
    style = 'fill="none" stroke="var(--ink)" stroke-width="1.2" stroke-dasharray="5 4"'
    if len({gain for _, gain in gains}) == 1:
        return [f'<path {style} d="M{_LEFT} {_n(scale.y(gains[0][1]))}H{_WIDE - _RIGHT}"/>']
    return [f'<path {style} d="M{"L".join(f"{_n(scale.x(place))} {_n(scale.y(gain))}" for place, gain in gains)}"/>']


def _row(points: Sequence[tuple[str, TableRow]], scale: _Scale) -> list[str]:
    """Return a row's own line, and its points with their intervals: each by the side of the floor on which it is."""
    path = _trail(points, scale) if len(points) > 1 else ""
    parts = [f'<path fill="none" stroke="var(--same)" stroke-width="1.4" d="{path}"/>'] if path else []
    far: dict[int, list[float]] = {}
    for place, row in points:
        gain = row.gain
        if gain is None:
            continue
        x, y, side = scale.x(place), scale.y(gain.mean), gain.against(0.0)
        colour = f"var(--{side})" if side in ("above", "below") else "var(--same)"
        if not scale.low <= gain.mean <= scale.high:
            sign = 1 if gain.mean < scale.low else -1
            parts.append(f'<path fill="{colour}" d="M{_n(x)} {_n(y)}l-5 {-8 * sign}h10Z"/>')
            far.setdefault(sign, []).append(gain.mean)
            continue
        if gain.known:
            top, bottom = scale.y(gain.high), scale.y(gain.low)
            parts.append(f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{_n(x)} {_n(top)}V{_n(bottom)}"/>')
        parts.append(f'<path fill="{colour}" transform="translate({_n(x)} {_n(y)})" d="{_MARKERS[side]}"/>')
    for sign, gains in far.items():
        texts = dict.fromkeys(signed(gain, scale.measure.digits) for gain in (min(gains), max(gains)))
        y = scale.bottom - 14 if sign == 1 else scale.top + 22
        parts.append(
            f'<text font-size="13" text-anchor="middle" x="{_n((_LEFT + _WIDE - _RIGHT) / 2)}" y="{_n(y)}" '
            'paint-order="stroke" stroke="var(--sheet)" stroke-width="5">'
            f"{' to '.join(texts)}</text>"
        )
    return parts


def _description(picture: Picture) -> str:
    """Say the figure in words, for people who do not see it."""
    where = axis_title(picture.axis)
    lines = {row.name: picture.level(row.method) for row in picture.sections[0].rows if row.role is not Role.PRIVATE}
    if picture.shared:
        lines |= picture.series()
        words = []
    else:
        words = [f"{name} {points[0][1].mean_text}" for name, points in lines.items()]
        lines = picture.series()
    words += [
        f"{name} " + ", ".join(f"{row.mean_text} at {where} {place}" for place, row in points)
        for name, points in lines.items()
    ]
    return "; ".join(words) + "."


def _n(value: float) -> str:
    """Return a coordinate with one decimal: enough for a screen, and the same text on every machine."""
    return f"{round(value, 1) + 0.0:g}"
