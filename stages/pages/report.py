"""The report page: one HTML file that opens from disk, on a phone and on paper, in light and dark.

It needs no network, and all of it is there without the script, which lets a reader leave rows out of the figures. Its
words come from the rules of `findings`, its numbers from the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template

from graphldp.datasets import title
from graphldp.evaluation import FEW, Interval
from graphldp.methods import Role, references
from graphldp.stages.pages.explained import mechanism_sentence, method_page, method_sentence
from graphldp.stages.pages.figures import FIGURE_CSS, Panel, Picture, gain_bar, panels, reach_text
from graphldp.stages.pages.findings import Headline, find, spending
from graphldp.stages.pages.maps import Map, drawn, map_figure, maps
from graphldp.stages.pages.tables import (
    DAGGER,
    Column,
    Result,
    Section,
    TableRow,
    daggers,
    footnotes,
    marks,
    number,
    shown_in,
    signed,
    table_columns,
)
from graphldp.stages.pages.wording import at, axis_title, counted, listed

__all__ = ["page_columns", "report_page"]

_HERE = Path(__file__).parent
_OPEN = (  # a table that scrolls in its own frame, by keyboard too, where it does not fit
    '<div class="framed scroll" role="region" tabindex="0" aria-label="table"><table class="stack" role="table">'
)
_ALIGNED = {"num": "num", "num gain-cell": "num", "bars": "bars"}  # whose headings are set as their cells are
_VERDICTS = {"above": "above the floor", "below": "below the floor", "same": "within noise", "unknown": ""}
_MANY = 6  # links, or tables, side by side
_PUBLIC = {"links": "who is linked to whom, how many links somebody has", "labels": "the labels used to train"}
_WIDTHS = {"wide": 1040, "middle": 640, "narrow": 356}  # one drawing each for a desk, a tablet and a phone


def report_page(result: Result) -> str:
    """Return the whole page."""
    template = Template((_HERE / "report.html").read_text(encoding="utf-8"))
    css = (_HERE / "report.css").read_text(encoding="utf-8") + FIGURE_CSS
    findings = [find(section) for section in result.sections]
    pictures = {picture.sections[0].slug: picture for picture in drawn(result)}
    names = list(dict.fromkeys(title(section.dataset) for section in result.sections))
    lead = (
        "People perturb their own features before they send them. The question is what those noisy reports add to what "
        "a learner reaches with none of them: the floor."
    )
    return template.substitute(
        version=escape(result.version),
        seed=result.seed,
        title=escape(result.title) if result.experiment else f"What private features add on {_listed(names)}",
        lead=escape(result.about) or lead,
        css=css.strip(),
        pages=_pages(result),
        jump=_jump(result) if len(result.sections) > 1 else "",
        sections="".join(map(_map, maps(result)))
        + "\n".join(
            _section(section, finding, result, pictures.get(section.slug), reading)
            for section, finding, reading in zip(result.sections, findings, _readings(result), strict=True)
        ),
        rows=_rows(result),
        measured=_measured(result),
        privacy=_privacy(result),
        papers=_papers(result),
        again=_again(result),
        code=escape(_code(result)),
    )


def _up(result: Result) -> str:
    """Return the way from the page to the folder of all results: an experiment's page lies in a folder below it."""
    return "../" if result.experiment else ""


def _docs(result: Result) -> str:
    return f"{_up(result)}../docs/"


def _pages(result: Result) -> str:
    """Return the way to the other pages: all results, the papers', the docs."""
    up, docs = _up(result), _docs(result)
    links = [
        (f"{up}index.html", "All results"),
        (f"{up}index.html#table-{result.experiment or 'results'}", "This table, to sort and filter"),
        (f"{up}index.html#papers", "The papers made again"),
        *([(f"{up}report.html", "The default table")] if result.experiment else []),
        ("#rows", "What the rows are"),
        (f"{docs}tables.md", "How to read a table"),
    ]
    listed = "".join(f'<li><a href="{escape(where)}">{escape(words)}</a></li>' for where, words in links)
    return f'<nav aria-label="Pages"><ul>{listed}</ul></nav>'


def _jump(result: Result) -> str:
    """Return the way to each table; of many, folded."""
    links = "".join(
        f'<li><a href="#{escape(section.slug)}">{escape(section.title)}</a></li>' for section in result.sections
    )
    listed = f"<ul>{links}</ul>"
    if len(result.sections) > _MANY:
        listed = f"<details><summary>{len(result.sections)} tables</summary>{listed}</details>"
    return f'<nav aria-label="Tables">{listed}</nav>'


def _readings(result: Result) -> list[str]:
    """Return for each table how to read it, where the one before does not say the same."""
    said = [replace(result, sections=(section,)).reading for section in result.sections]
    return [one if place == 0 or one != said[place - 1] else "" for place, one in enumerate(said)]


def _section(section: Section, finding: Headline, result: Result, picture: Picture | None, reading: str) -> str:
    """Return a table's section; the picture of several tables stands in the first one's."""
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in finding.sentences)
    figure = _figure(picture, result) if picture is not None else ""
    return (
        f'<section class="finding" id="{escape(section.slug)}">\n<h2>{escape(finding.headline)}</h2>\n'
        f"{_tiles(section, finding)}\n{sentences}\n{figure}"
        f"<h3>Every result</h3>\n{_table(section, reading)}\n{_notes(section)}\n</section>"
    )


def _map(shown: Map) -> str:
    """Return the section of a map, in front of its tables."""
    drawings = "".join(
        f'<div class="{kind}">{map_figure(shown, width=width, standalone=False)}</div>'
        for kind, width in _WIDTHS.items()
    )
    bits = (
        " The last panel has bits, of one person: what her words say of her class, the most that any report of that "
        "epsilon can say, and what one report of a mechanism says where it can be computed."
        if any(not panel.across for panel in shown.panels)
        else ""
    )
    caption = (
        f"Each number is a mean gain over the floor at the same place, in {escape(shown.measure.step)}; bold where its "
        "whole interval lies on one side of zero. The floor’s own panel has its "
        f"{escape(shown.measure.label)}, and the ceiling’s the gain of everybody’s true features.{bits}"
    )
    return (
        f'<section class="finding" id="map-{escape(shown.slug)}">\n<h2>{escape(shown.title)}</h2>\n'
        f'<div class="framed"><figure>{drawings}<figcaption>{caption}</figcaption></figure></div>\n</section>\n'
    )


def _figure(picture: Picture, result: Result) -> str:
    """Return a panel for each row, with its exact values for whoever points at it or reaches it by keyboard."""
    found = panels(picture)
    drawn = "".join(_panel(one, picture) for one in found)
    return (
        f'<div class="framed"><figure class="plot"><div class="panels" role="group" '
        f'aria-label="{escape(picture.title)}; each row can be focused">{drawn}</div>'
        f"<figcaption>{_caption(picture, result)}{_idle(picture)}</figcaption></figure></div>\n"
    )


def _panel(one: Panel, picture: Picture) -> str:
    measure, axis = picture.measure, axis_title(picture.axis)
    heads = (axis, measure.axis, f"gain, {measure.step}")
    said = "; ".join(f"at {axis} {place} {score}, gain {gain}" for place, score, gain in one.exact)
    lines = [heads, *one.exact]
    cells = "".join(
        "<span>" + "</span><span>".join(escape(text) for text in line) + "</span>" for line in lines
    )  # not a table: what it says stands in the table below, and in the label
    return (
        f'<div class="panel" tabindex="0" role="img" data-row="{one.place}" data-name="{escape(one.name)}" '
        f'aria-label="{escape(one.name)}: {escape(said)}">{one.svg}'
        f'<div class="exact" aria-hidden="true"><b>{escape(one.name)}</b><div class="values">{cells}</div></div></div>'
    )


def _caption(picture: Picture, result: Result) -> str:
    confidence = f"{100 * result.confidence.level:g} %"
    text = (
        f"{picture.title}: a panel for each row, the others in grey behind it. Means of differences within the same "
        f"split, with {confidence} intervals. The line at 0 is structure, the floor; the dashed one is nonpriv, the "
        "ceiling. A triangle that points up is measurably above the floor, one that points down measurably below it, a "
        "dot is neither. Exact values: point at a panel, or reach it with the tab key."
    )
    return " ".join(filter(None, [escape(text), escape(reach_text(picture))]))


def _idle(picture: Picture) -> str:
    """Return which of a picture's methods are drawn where a part of them does nothing."""
    found: dict[str, dict[str, list[bool]]] = {}
    for name, points in picture.series().items():
        for said in {row.degenerate for _, row in points if row.degenerate}:
            found.setdefault(said, {})[name] = [row.degenerate == said for _, row in points]
    where = {said: "every place" if all(map(all, names.values())) else "some places" for said, names in found.items()}
    return "".join(f" At {where[said]} of {_listed(names)}: {escape(said)}." for said, names in found.items())


def _tiles(section: Section, finding: Headline) -> str:
    floor, ceiling, one = section.reference(Role.FLOOR), section.reference(Role.CEILING), section.measure
    tiles = [("floor", "Nobody’s features", "the floor, epsilon 0", floor)]
    if finding.best is not None:
        best = finding.best
        called = f"{section.named(best)}{best.mark}, {spending(best).removeprefix('at ')}"
        own = best.same_as == section.reference(Role.FLOOR).name
        label = "Best private result" if section.perturbed else "Best result"
        tiles.append(("best", label, f"{called}{', with the runs of the floor' * own}", best))
    tiles.append(("ceiling", "Everybody’s true features", "the ceiling, no privacy", ceiling))
    parts = []
    for kind, label, what, row in tiles:
        mean, low, high = (f"{end:.{one.digits}f}" for end in (row.score.mean, row.score.low, row.score.high))
        ends = f"{low} to {high}" if row.score.known else "one run, no interval"
        parts.append(
            f'<div class="tile {kind}"><dt>{label}<br>{escape(what)}</dt><dd><div class="big">{mean}'
            f'<small> {escape(one.unit or one.label)}</small></div><div class="under">{ends}</div></dd></div>'
        )
    return f'<dl class="tiles">{"".join(parts)}</dl>'


def _table(section: Section, reading: str) -> str:
    shown = page_columns(section)
    heads = "".join(
        f'<th role="columnheader" scope="col"{_attribute("class", _ALIGNED.get(column.kind, ""))}>'
        f"{escape(column.heading)}</th>"
        for column in shown
    )
    bodies = []
    for heading, rows in groupby(section.rows, key=_group):
        lines = "".join(_line(row, shown) for row in rows)
        bodies.append(
            f'<tbody role="rowgroup"><tr role="row" class="group"><th role="rowheader" scope="rowgroup" '
            f'colspan="{len(shown)}">{heading}</th></tr>{lines}</tbody>'
        )
    caption = (
        f"{escape(section.title)}: means of {counted(section.runs, 'run')} on shared splits, with intervals; the same "
        f"search of {counted(section.points, 'point')} for every trained row"
    )
    notes = (
        f'<div class="notes"><p>{escape(reading)} Above or below the floor: the whole interval of the gain lies '
        "on that side of zero. K is the number of propagation steps that the search chose.</p></div>"
    )
    return (
        f"{_OPEN}<caption>{caption}</caption>"
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>{"".join(bodies)}</table></div>'
        + notes
        * bool(reading)
    )


def _limit(section: Section) -> float:
    """Return where the pictures of gains end: a little beyond the ceiling, so that one bad row flattens no other."""
    ceiling = section.reference(Role.CEILING).gain
    worth = 0.0 if ceiling is None else abs(ceiling.high if ceiling.known else ceiling.mean)
    return max(1.25 * worth, 0.005 * section.measure.factor)


def _group(row: TableRow) -> str:
    """Return the heading under which a row stands: what one user spends."""
    if row.role is Role.PRIVATE and row.epsilon == math.inf:
        return "<b>epsilon inf</b>: features public"
    if row.role is Role.PRIVATE:
        return f"<b>epsilon {number(row.epsilon)}</b> per user"
    if row.role is Role.CEILING:
        return "<b>epsilon inf</b>: features as they are, unprotected"
    return "<b>epsilon 0</b>: no features, nothing spent"


def _plainly(row: TableRow) -> bool:
    """Whether all of a row's budget is spent once and on features, as its heading lets one think."""
    return row.role is not Role.PRIVATE or row.spent == f"features {row.epsilon}"


def page_columns(section: Section) -> tuple[Column, ...]:
    """Return the columns of a section's table; their texts are HTML, the first one's a row's name."""
    letters, limit = marks(section.rows), _limit(section)

    def bar(row: TableRow) -> str:
        return gain_bar(row.gain, limit) if row.gain is not None and row.role is not Role.GUESS else ""

    def paper(row: TableRow) -> str:
        if not row.papers:
            return ""
        return f"<span>{escape(row.papers[0].text)}<sup>{letters[row.papers[0].note]}</sup></span>"

    def mean(column: Column) -> Callable[[TableRow], str]:
        found, sign = column.interval, column.key != section.measure.name
        return lambda row: "" if found is None else _number(row, found(row), sign=sign)

    def plain(column: Column) -> Callable[[TableRow], str]:
        return lambda row: escape(column.says("html", row))

    def verdict(row: TableRow) -> str:
        return _verdict(row, section)

    own = {"row": lambda row: f"{_named(row)}{_about(row, section)}", "bars": bar, "verdict": verdict, "paper": paper}
    printed = any(row.papers for row in section.rows)
    return tuple(
        replace(
            column, heading=column.head("html"), headings={}, texts={},
            text=own.get(column.key) or (plain if column.interval is None else mean)(column),
        )
        for column in shown_in("html", table_columns(section.measures, (), section))
        if column.key != "paper" or printed
    )  # fmt: skip


def _named(row: TableRow) -> str:
    """Return a row's name, as a link to what its method is."""
    return f'<a href="#method-{escape(row.method)}">{escape(row.name)}</a>{escape(row.mark)}'


def _attribute(name: str, value: str) -> str:
    return f' {name}="{escape(value)}"' if value else ""


def _line(row: TableRow, shown: Sequence[Column]) -> str:
    name, *others = shown
    cells = "".join(
        f'<td role="cell"{_attribute("class", column.kind)}{_attribute("data-label", column.label)}>'
        f"{column.text(row)}</td>"
        for column in others
    )
    return f'<tr role="row"><th role="rowheader" scope="row">{name.text(row)}</th>{cells}</tr>'


def _verdict(row: TableRow, section: Section) -> str:
    """Return on which side of the floor a private row is, or that it is the floor or the ceiling itself."""
    if row.role is Role.FLOOR:
        return '<span class="verdict">the floor</span>'
    if row.role is Role.CEILING:
        return '<span class="verdict">the ceiling</span>'
    if row.same_as and row.same_as == section.reference(Role.FLOOR).name:
        return '<span class="verdict">the floor’s runs</span>'
    side = row.gain.against(0.0) if row.gain is not None else "unknown"
    judged = row.gain is not None and row.role is Role.PRIVATE and _VERDICTS[side]
    return f'<span class="verdict {side}">{_VERDICTS[side]}</span>' if judged else ""


def _about(row: TableRow, section: Section) -> str:
    """Return a row's mechanism, place on the axes, depth and remark, in small type behind its name."""
    parts = [] if row.role is Role.GUESS else [row.mechanism]
    parts += [at(name, value) for name, value in row.axes if name in section.own_axes]
    parts += [f"K {row.steps_text}"] if row.steps else []
    parts += [] if _plainly(row) else [f"spent on {row.spent}"]
    parts += [row.remark] if row.remark else []
    return f'<span class="about">{escape(", ".join(parts))}</span>' if parts else ""


def _number(row: TableRow, interval: Interval | None, *, sign: bool = False) -> str:
    """Return a mean and its ends as the table sets them."""
    mean, _, ends = row.shown(interval, sign=sign).partition(" ")
    if not mean:
        return ""
    tail = f'<span class="ends">{ends}</span>' if ends else ""
    return f'<span class="value"><span class="mean">{mean}</span>{tail}</span>'


def _notes(section: Section) -> str:
    letters = marks(section.rows)
    lines = [f"<sup>{letters[note]}</sup> {escape(note)}" for note, _ in footnotes(section.rows)]
    lines += [f"{DAGGER} {escape(reason)}" for reason in daggers(section.rows)]
    return f'<div class="notes">{"".join(f"<p>{line}</p>" for line in lines)}</div>' if lines else ""


def _rows(result: Result) -> str:
    """Say of each method and mechanism of the page what it is, with the page of the docs about it."""
    docs, rows = _docs(result), list(result.rows)
    methods = dict.fromkeys(row.method for row in rows)
    mechanisms = dict.fromkeys(row.mechanism for row in rows if row.role is Role.PRIVATE)
    lines = [
        f'<dt id="method-{escape(name)}"><a href="{docs}{method_page(name)}">{escape(name)}</a></dt>'
        f"<dd>{escape(method_sentence(name))}</dd>"
        for name in methods
    ]
    noise = [
        f'<dt><a href="{docs}mechanisms/{escape(name)}.md">{escape(name)}</a></dt>'
        f"<dd>{escape(mechanism_sentence(name))}</dd>"
        for name in mechanisms
    ]
    own = f'<h3>What perturbs the features</h3><dl class="what">{"".join(noise)}</dl>' if noise else ""
    return f'<dl class="what">{"".join(lines)}</dl>{own}'


def _code(result: Result) -> str:
    """Return which code made the runs, and which the page: from the runs' files, and from git where it knows."""
    made = [f"{str(code).removeprefix('sha256:')[:12]}" for code in result.made.get("code", []) if code]
    parts = [f"runs by code {', '.join(made)}"] if made else []
    parts += [f"page by commit {result.commit}"] if result.commit else []
    return " · ".join(parts)


def _measured(result: Result) -> str:
    models = sorted({row.model for row in result.rows if row.role is not Role.GUESS})
    items = [
        f"Model: {_listed(models)}. Validation loss alone chooses hyper-parameters and the best epoch; the labels of "
        "test nodes choose nothing and are looked at once, at the end.",
        "Each learner of the floor was searched as hard as every method, and the best of them is the floor: one that "
        "was not tuned would be easy to beat.",
        f"Intervals: {result.confidence.words}, of the mean over runs. Gains and gaps are "
        "differences within the same split, so what a lucky split does to both cancels.",
        f"Below {FEW} runs nothing is said to be above or below the floor: an interval of so few is wide, or narrow by "
        "chance.",
        "What the intervals do not cover: runs share one graph, so their splits overlap, and nothing is corrected for "
        "the number of rows compared. A verdict that hangs on a hair is no verdict.",
    ]
    items += list(result.notes)
    every = "".join(f"<li>{escape(section.protocol)}</li>" for section in result.sections)
    common = f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"
    if len(result.sections) <= _MANY:
        return f"<ul>{every}</ul>{common}"
    head = f"How each of the {len(result.sections)} tables was made"
    return f"{common}<details><summary>{head}</summary><ul>{every}</ul></details>"


def _privacy(result: Result) -> str:
    epsilons = sorted({row.epsilon for row in result.rows if row.role is Role.PRIVATE and math.isfinite(row.epsilon)})
    odds = "".join(
        f"<li>epsilon {number(epsilon)}: at most {_times(epsilon)} times as likely</li>" for epsilon in epsilons
    )
    broken = list(dict.fromkeys(reason for section in result.sections for reason in daggers(section.rows)))
    marked = (
        f"<p>{DAGGER} marks mechanisms that do not keep their claim: {escape('; '.join(broken))}</p>" if broken else ""
    )
    disclosed = dict.fromkeys(section.measures.disclosed for section in result.sections)
    numbers = "".join(f"<p>{escape(text)}</p>" for text in disclosed if text)
    own = [row for row in result.rows if row.role is Role.PRIVATE and row.max_epsilon > row.total.epsilon]
    levels = dict.fromkeys(row.name for row in own)
    unlike = (
        f"<p>In {_listed(levels)} people have budgets of their own, and what holds for somebody is her own epsilon: "
        "the row says the largest.</p>"
        if levels
        else ""
    )
    protected = (
        "<p>Each person’s device perturbs her own feature row and sends only the noisy report. Whatever two rows she "
        "might have had, any report is at most e<sup>epsilon</sup> times as likely under one as under the other, "
        f'whatever else the server knows:</p><ul class="odds">{odds}</ul>{unlike}'
        "<p><strong>Protected:</strong> the features of one person, all of them together, for one report. What is "
        "computed from the reports afterwards (calibration, training, prediction) spends nothing more. A second report "
        "of the same person would add its epsilon to the first.</p>"
        if epsilons
        else "<p>Features are public here: nothing protects them.</p>"
    )
    asked = [name for name in ("links", "labels") if any(name in section.asked for section in result.sections)]
    beside = "".join(
        f"<p><strong>{name.capitalize()} are private here,</strong> with an epsilon of their own beside that of "
        "features. How, and at which epsilon: under “How it was measured”.</p>"
        for name in asked
    )
    open_to_all = [_PUBLIC[name] for name in ("links", "labels") if name not in asked]
    guessed = (
        " What the features would say can in part be guessed from these; the floor shows how far, and epsilon promises "
        "nothing about that guess."
        if epsilons
        else ""
    )
    known = f"<p><strong>Not protected:</strong> {', and '.join(open_to_all)}. The server knows them here.{guessed}</p>"
    return f"{protected}{beside}{known * bool(open_to_all)}{numbers}{marked}"


def _times(epsilon: float) -> str:
    """Return e^epsilon, rounded up so that it stays a bound."""
    value = math.exp(epsilon)
    digits = max(0, 2 - math.floor(math.log10(value)))
    rounded = math.ceil(value * 10**digits - 1e-9) / 10**digits
    return f"{rounded:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{rounded:,.0f}"


def _papers(result: Result) -> str:
    rows = [row for row in result.rows if row.papers]
    if not rows:
        return "<p>No paper whose numbers are here prints one for any cell of this table.</p>"
    places = list(dict.fromkeys(paper.note for row in rows for paper in row.papers))
    letters = {note: chr(ord("a") + place) for place, note in enumerate(places)}
    lines = []
    for row in rows:
        for paper in row.papers:
            one = row.measures.headline
            difference = signed(row.score.mean - float(paper.value), one.digits)
            lines.append(
                f'<tr role="row"><th role="rowheader" scope="row">{escape(row.label)}'
                f'<span class="about">{escape(row.where)}, epsilon {number(row.epsilon)}</span></th>'
                f'<td role="cell" class="num" data-label="ours">{one.number(row.score.mean)}</td>'
                f'<td role="cell" class="num" data-label="printed">{escape(paper.text)}</td>'
                f'<td role="cell" class="num" data-label="ours minus printed">{difference}</td>'
                f'<td role="cell" class="where" data-label="where"><span>{escape(paper.reference)}'
                f"<sup>{letters[paper.note]}</sup></span></td></tr>"
            )
    kinds = (("Ours", ""), ("Our mean", "num"), ("Printed", "num"), ("Difference", "num"), ("Where", ""))
    heads = "".join(f'<th role="columnheader" scope="col" class="{kind}">{head}</th>' for head, kind in kinds)
    unprinted = [
        one.name for one in references() if not any(row.papers for row in result.rows if row.method == one.name)
    ]
    absent = f"<p>No paper whose numbers are here prints one for {_listed(unprinted)}.</p>" if unprinted else ""
    notes = "".join(f"<p><sup>{letters[note]}</sup> {escape(note)}</p>" for note in places)
    sources = sorted({f"{paper.paper}: {paper.source}" for row in rows for paper in row.papers})
    notes += "".join(f"<p>{escape(source)}</p>" for source in sources)
    return (
        "<p>Copied as printed. The papers’ splits, searches and scales of inputs are their own, so a difference is "
        "information, not a test.</p>"
        f"{_OPEN}<caption>Our mean beside printed numbers, the "
        f'closest comparison first</caption><thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(lines)}</tbody></table></div><div class="notes">{absent}{notes}</div>'
    )


def _again(result: Result) -> str:
    tables = [
        f"{escape(name)} ({', '.join(_link(f'tables/{name}.{form}', form) for form in ('csv', 'md', 'tex'))})"
        for name in result.tables
    ]
    figures = [*(one.file for one in drawn(result)), *(one.file for one in maps(result))]
    shown = [_link(f"figures/{name}", name.removesuffix(".svg")) for name in figures]
    if len(shown) > _MANY:
        pictures = f"</p><details><summary>{len(shown)} figures</summary><p>{', '.join(shown)}</p></details><p>"
    else:
        pictures = f"Figures: {', '.join(shown)}. " if shown else ""
    beside = f"{_link('metrics.json')}, {_link(f'plots/{result.measures.headline.name}.csv')}"
    if result.experiment:
        name = escape(result.experiment)
        commands = (
            f"ldp experiment {name}   # every cell that is out of date, then this page\n"
            f"ldp tables --check --results results/{name}   # which cells left their committed interval"
        )
        grid = f"experiments/{name}.yaml"
    else:
        commands = (
            "dvc repro            # every stage that is out of date, then this page\n"
            "ldp evaluate         # this page and the tables, from runs that are there\n"
            "ldp tables --check   # which cells left their committed interval"
        )
        grid = "params.yaml"
    return (
        f"<pre>{commands}</pre>"
        f"<p>The grid is <code>{grid}</code>. The same runs and the same code give the same bytes, this page included. "
        f"Tables: {', '.join(tables)}. {pictures}Also {beside}.</p>"
    )


def _link(where: str, words: str = "") -> str:
    return f'<a href="{escape(where)}">{escape(words or where)}</a>'


def _listed(parts: Iterable[str]) -> str:
    return listed([escape(part) for part in parts])
