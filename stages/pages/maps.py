"""A figure over two axes as SVG: for each method a map of the gain over the floor, its floor and ceiling beside it.

A cell of a map is a table's row at one place on both axes. Its number is the mean gain, its colour how large that is,
and bold type says that the whole interval lies on one side of zero. Where the task is a synthetic one, a last panel
has what reports can say of a class at all, in bits, at the same places of the axis that decides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from graphldp.measures import Measure
from graphldp.methods import Role
from graphldp.stages.pages.figures import FILE_CSS, Picture, figure_svg, pictures
from graphldp.stages.pages.tables import Background, Result, Section, TableRow, number, signed
from graphldp.stages.pages.wording import at, axis_title

__all__ = ["Map", "ShadedMap", "drawn", "map_figure", "maps"]

_CELL, _LINE, _LEFT, _TOP, _BOTTOM, _GAP = 46, 26, 54, 26, 40, 12
_STRONGEST = 0.5  # opacity of the largest gain: dark type stays legible on it


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadedMap:
    """One map: a number, and how strongly it is coloured, at each place.

    Attributes:
        title: whose.
        columns: what runs along its foot, and `rows` up its side.
        cells: by place: the text, the shade from -1 to 1, and whether it stands out.
        across: the name of what runs along its foot; empty where each column says itself what it is.
    """

    title: str
    across: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: Mapping[tuple[str, str], tuple[str, float, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """What one figure shows.

    Attributes:
        slug: for file names and anchors.
        place: of what data set and task.
        axes: the two axes by full name: along the foot, and up the side.
        panels: the floor, the ceiling, and every method at every budget.
        measure: of what the gains are.
        shared: whether every place has a floor of its own, so that each is a table.
    """

    slug: str
    place: str
    axes: tuple[str, str]
    panels: tuple[ShadedMap, ...]
    measure: Measure
    shared: bool

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"gain-{self.slug}.svg"

    @property
    def title(self) -> str:
        """What it is, as a heading."""
        one, other = map(axis_title, self.axes)
        return f"What features add to the floor on {self.place}, by {one} and {other}"


def maps(result: Result) -> list[Map]:
    """Return a map for each data set and task whose rows differ on two axes or more; the first two are its sides."""
    groups: dict[str, list[Section]] = {}
    for section in result.sections:
        groups.setdefault(section.place, []).append(section)
    out = []
    for place, sections in groups.items():
        rows = [row for section in sections for row in section.rows]
        axes = [axis for axis in result.axes if len(_values(rows, axis)) > 1]
        if len(axes) >= 2:
            out.append(_map(place, sections, rows, (axes[0], axes[1]), result.backgrounds))
    return out


def drawn(result: Result) -> list[Picture]:
    """Return the figures along one axis that are drawn: not those of tables which are each one place of a map."""
    covered = {one.slug for one in maps(result) if one.shared}
    return [picture for picture in pictures(result) if picture.sections[0].place not in covered]


def _values(rows: Sequence[TableRow], axis: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for row in rows for name, value in row.axes if name == axis))


def _map(
    place: str,
    sections: Sequence[Section],
    rows: Sequence[TableRow],
    axes: tuple[str, str],
    backgrounds: Sequence[Background],
) -> Map:
    across, up = (_values(rows, axis) for axis in axes)
    shared = set(axes) <= {name for name, _ in sections[0].setting}
    by_panel: dict[str, dict[tuple[str, str], TableRow]] = {}
    for row in sorted(
        rows, key=lambda row: (row.role is Role.PRIVATE, row.epsilon if row.role is Role.PRIVATE else 0.0)
    ):
        there = dict(row.axes)
        if not set(axes) <= there.keys() or row.role is Role.GUESS:
            continue
        rest = [at(name, value) for name, value in row.axes if name not in axes]
        budget = [f"epsilon {number(row.epsilon)}"] if row.role is Role.PRIVATE else []
        by_panel.setdefault(", ".join([row.label, *rest, *budget]), {})[there[axes[0]], there[axes[1]]] = row
    limit = max((abs(row.gain.mean) for found in by_panel.values() for row in found.values() if row.gain), default=0.0)
    panels = []
    for title, found in by_panel.items():
        role = next(iter(found.values())).role
        name = {Role.FLOOR: "structure, the floor itself", Role.CEILING: "nonpriv, the ceiling"}.get(role, title)
        cells = {spot: _cell(row, limit) for spot, row in found.items()}
        panels.append(ShadedMap(title=name, across=axis_title(axes[0]), columns=across, rows=up, cells=cells))
    panels += [_bits(one, up) for one in backgrounds if one.dataset == sections[0].dataset and axes[1] == one.axis]
    return Map(
        slug=place,
        place=sections[0].where,
        axes=axes,
        panels=tuple(panels),
        measure=sections[0].measure,
        shared=shared,
    )


def _cell(row: TableRow, limit: float) -> tuple[str, float, bool]:
    if row.gain is None:  # the floor: its own value, without a colour
        return row.mean_text, 0.0, False
    digits = row.measures.headline.digits
    stands_out = row.gain.against(0.0) in ("above", "below")
    return signed(row.gain.mean, digits), row.gain.mean / limit if limit else 0.0, stands_out


def _bits(one: Background, up: tuple[str, ...]) -> ShadedMap:
    cells = {
        (column, place): (f"{bits:.2g}" if bits >= 0.0005 else "0", 0.0, False)
        for place, values in one.values.items()
        for column, bits in zip(one.columns, values, strict=True)
    }
    return ShadedMap(title="bits that say the class", across="", columns=one.columns, rows=up, cells=cells)


def map_figure(shown: Map, *, width: int, standalone: bool = True) -> str:
    """Return the panels side by side, in as many lines as the width asks for; `standalone` brings the style."""
    lines: list[list[tuple[ShadedMap, float]]] = [[]]
    left = 0.0
    for panel in shown.panels:
        if lines[-1] and left + _wide(panel) > width:
            lines.append([])
            left = 0.0
        lines[-1].append((panel, left))
        left += _wide(panel) + _GAP
    parts, top = [], 0.0
    for line in lines:
        for panel, start in line:
            parts += _drawn(panel, shown.axes[1], start, top)
        top += max(_high(panel) for panel, _ in line) + _GAP
    height = top - _GAP
    name = f"map-{shown.slug}-{width}"
    title = f"{shown.title}, in {shown.measure.step} of test {shown.measure.label}"
    return figure_svg(
        name, title, _description(shown), parts, width=width, height=height, style=FILE_CSS if standalone else ""
    )


def _wide(panel: ShadedMap) -> float:
    return _LEFT + _CELL * len(panel.columns)


def _high(panel: ShadedMap) -> float:
    return _TOP + _LINE * len(panel.rows) + _BOTTOM


def _drawn(panel: ShadedMap, side: str, left: float, top: float) -> list[str]:
    start, head, count = left + _LEFT, top + _TOP, len(panel.rows)
    parts = [f'<text class="strong" font-size="12.5" x="{start:g}" y="{top + 15:g}">{escape(panel.title)}</text>']
    parts.append(
        f'<text class="muted" font-size="12" text-anchor="middle" '
        f'transform="translate({left + 12:g} {head + _LINE * count / 2:g}) rotate(-90)">'
        f"{escape(axis_title(side))}</text>"
    )
    for place, row in enumerate(reversed(panel.rows)):  # the largest value on top, as on any axis
        y = head + _LINE * place
        parts.append(_word(row, start - 6, y + _LINE / 2 + 4, "end"))
        for column, name in enumerate(panel.columns):
            found = panel.cells.get((name, row))
            if found is not None:
                parts += _square(found, start + _CELL * column, y)
    foot = head + _LINE * count
    for column, name in enumerate(panel.columns):
        x = start + _CELL * (column + 0.5)
        for line, word in enumerate(name.split("\n")):
            parts.append(_word(word, x, foot + 15 + 14 * line, "middle"))
    if panel.across:
        x = start + _CELL * len(panel.columns) / 2
        parts.append(
            f'<text class="muted" font-size="12" text-anchor="middle" x="{x:g}" y="{foot + 32:g}">'
            f"{escape(panel.across)}</text>"
        )
    return parts


def _word(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text font-size="12" text-anchor="{anchor}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _square(found: tuple[str, float, bool], x: float, y: float) -> list[str]:
    text, shade, stands_out = found
    colour = "var(--s0)" if shade > 0 else "var(--s1)"
    opacity = round(_STRONGEST * min(1.0, abs(shade)), 3)
    fill = f' fill="{colour}" fill-opacity="{opacity:g}"' if opacity else ' fill="none"'
    kind = ' class="strong"' if stands_out else ""
    return [
        f'<rect x="{x + 0.5:g}" y="{y + 0.5:g}" width="{_CELL - 1}" height="{_LINE - 1}" stroke="var(--grid)"{fill}/>',
        f'<text{kind} font-size="12" text-anchor="middle" x="{x + _CELL / 2:g}" y="{y + _LINE / 2:g}" dy="4">'
        f"{escape(text)}</text>",
    ]


def _description(shown: Map) -> str:
    """Say the figure in words, for people who do not see it."""
    side = axis_title(shown.axes[1])
    out = []
    for panel in shown.panels:
        lines = []
        for row in panel.rows:
            found = [
                f"{panel.cells[name, row][0]} at {' '.join([panel.across, *name.split()]).strip()}"
                for name in panel.columns
                if (name, row) in panel.cells
            ]
            lines.append(f"with {side} {row}: {', '.join(found)}")
        out.append(f"{panel.title}: {'; '.join(lines)}.")
    return " ".join(out)
