"""results/index.html: one entry to all results. It opens from disk, without network, and all is there without scripts.

Nothing is computed here: what it shows are the CSV files of `results`, the errata, and the audit's table.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from graphldp import __version__
from graphldp.evaluation import MANY, Interval
from graphldp.measures import measures_of, tasks
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.commit import code_commit
from graphldp.stages.files.traces import FILE
from graphldp.stages.pages.errata import ERRATA, FAULTS
from graphldp.stages.pages.reproduced import Line, lines_of, protocol_words
from graphldp.stages.pages.tables import axis_columns, shown_in, span, table_columns
from graphldp.stages.pages.wording import counted

__all__ = ["Shown", "results_page", "write_page"]

_HERE = Path(__file__).parent
_PROTOCOL = "Their protocol: "
_VERDICT = ("theirs", "theirs_why", "ours", "ours_why")
_DIGITS = 12  # of a hash
_DIFFERENCES = ("gain", "gap")
_PROFILES = ("paper", "quick")  # the larger one first


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A table of the page.

    Attributes:
        anchor, title: what it is called.
        heads, rows: what stands in it.
        about: in small type behind the title.
        notes: in front of it.
        points: what its curves draw; empty where there are none.
        file: where it stands as CSV, from the page on.
        pages: what else is written about it, as places from the page on and words.
        code: which code made it, where its files say.
        group: the heading that it stands under, with others of the same; empty where it needs none.
    """

    anchor: str
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    about: str = ""
    notes: Sequence[str] = ()
    points: Sequence[Mapping[str, Any]] = ()
    file: str = ""
    pages: Sequence[tuple[str, str]] = ()
    code: str = ""
    group: str = ""


def write_page(results: Path, docs: Path) -> Path:
    """Write results/index.html, and return where."""
    path = results / "index.html"
    write_text(path, results_page(results, docs))
    return path


def results_page(results: Path, docs: Path) -> str:
    """Return the page of what stands in a folder of results; the audit's table is read from the docs."""
    parts = {
        "papers": ("The papers’ tables and figures", _reproduced(results, docs)),
        "claims": ("The papers’ claims", _claims(results)),
        "tables": ("Our own tables", _tables(results)),
        "privacy": ("What mechanisms spend", _privacy(docs / "privacy.md")),
        "errata": ("Errata", _errata()),
        "cost": ("What it cost", _cost(results)),
    }
    css = "".join((_HERE / name).read_text(encoding="utf-8") for name in ("report.css", "results_page.css"))
    return Template((_HERE / "results_page.html").read_text(encoding="utf-8")).substitute(
        version=escape(__version__),
        code=escape(f"commit {code_commit()}" if code_commit() else ""),
        docs=escape(Path(os.path.relpath(docs, results)).as_posix()),
        css=css.strip(),
        nav="".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, (title, _) in parts.items())
        + '<li><a href="report.html">The default table’s page</a></li>' * (results / "report.html").is_file(),
        sections="\n".join(_section(key, title, shown) for key, (title, shown) in parts.items()),
        script=_script().strip(),
    )


def _script() -> str:
    return (_HERE / "results_page.js").read_text(encoding="utf-8")


def _section(key: str, title: str, shown: Sequence[Shown]) -> str:
    parts, group = [], ""
    for one in shown:
        if one.group != group:
            group = one.group
            parts.append(f"<h3>{escape(group)}</h3>")
        parts.append(_details(one))
    body = "\n".join(parts) or "<p>Nothing yet.</p>"
    return f'<section id="{key}">\n<h2>{escape(title)}</h2>\n{body}\n</section>'


def _details(one: Shown) -> str:
    notes = "".join(map(_note, one.notes))
    places = [*([(one.file, one.file)] if one.file else []), *one.pages]
    links = [f'<a href="{escape(place)}">{escape(words)}</a>' for place, words in places]
    code = [f"runs by code {escape(one.code)}"] if one.code else []
    where = f'<p class="notes">{" · ".join([*links, *code])}</p>' if links or code else ""
    data = json.dumps(one.points, ensure_ascii=False).replace("</", "<\\/")
    curve = f'<div class="curve"><script type="application/json">{data}</script></div>' if one.points else ""
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in one.heads)
    lines = "".join("<tr>" + "".join(f"<td>{_linked(cell)}</td>" for cell in row) + "</tr>" for row in one.rows)
    return (
        f'<details id="{escape(one.anchor)}"><summary>{escape(one.title)} <small>{escape(one.about)}</small></summary>'
        f'<div class="body">{notes}{where}{curve}<div class="scroll" role="region" tabindex="0" '
        f'aria-label="{escape(one.title)}">'
        f'<table class="sorted"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div></div></details>'
    )


def _note(text: str) -> str:
    if text.startswith(_PROTOCOL):
        return f"<details><summary>Their protocol</summary><p>{_linked(text.removeprefix(_PROTOCOL))}</p></details>"
    return f"<p>{_linked(text)}</p>"


def _linked(text: str) -> str:
    """Return a text with its `code` set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _reproduced(results: Path, docs: Path) -> list[Shown]:
    out = []
    for folder in sorted((results / "reproduce").glob("*"), key=_counting):
        profile = next((name for name in _PROFILES if (folder / name / "table.csv").is_file()), None)
        if profile is None:
            continue
        lines, made = (
            lines_of(folder / profile / "table.csv"),
            json.loads((folder / profile / "time.json").read_bytes()),
        )
        bridge, short = folder.name.endswith("-bridge"), _shortly(made["title"])
        heads = [
            *("data", "row", "step" if bridge else "place", "epsilon", "metric", "printed"),
            *("so far" if bridge else "their protocol", "less printed", "ours"),
            *("this step" if bridge else "theirs less ours", "floor", "ceiling", "spent", "in each reading"),
            *("seconds", "remark"),
        ]
        cells = [_reproduced_row(line) for line in lines]
        kept = [place for place in range(len(heads)) if any(row[place] for row in cells)]
        shares = any(line.place for line in lines) or len({line.epsilon for line in lines}) > 1
        ran = sum(line.ran for line in lines)
        out.append(
            Shown(
                anchor=folder.name, title=f"{made['heading']}: {short}",
                about=f"{profile}, {ran} of {len(lines)} rows" if ran < len(lines) else profile,
                heads=[heads[place] for place in kept], rows=[[row[place] for place in kept] for row in cells],
                notes=[*_whole(short, made["title"]), *made["notes"], *_protocol(made)],
                points=_points(lines) if shares and not bridge else (),
                file=f"reproduce/{folder.name}/{profile}/table.csv",
                pages=[*_figure(folder / profile, results), *_paper_page(folder.name, results, docs)],
                code=str(made.get("code", ""))[:_DIGITS],
                group=str(made["heading"]).partition(" ")[0],
            )
        )  # fmt: skip
    return out


def _shortly(title: str) -> str:
    """Return what a figure shows without what stands in brackets or behind, which a heading has no room for."""
    head = re.split(r", (?:one panel|error bars|each)|: \(1\)|; ", title)[0]
    return re.sub(r" \([^()]*\)", "", head).rstrip(".")


def _whole(short: str, title: str) -> list[str]:
    """Return the title, where its short form leaves something out."""
    return [] if title.rstrip(".") == short else [title]


def _counting(folder: Path) -> list[Any]:
    """Return what puts Table 9 before Table 10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", folder.name)]


def _figure(folder: Path, results: Path) -> list[tuple[str, str]]:
    """Return where a table's figure stands, if it has one."""
    path = folder / "figure.svg"
    return [(path.relative_to(results).as_posix(), "as a figure")] * path.is_file()


def _paper_page(name: str, results: Path, docs: Path) -> list[tuple[str, str]]:
    """Return where the docs have a page about a table's paper, whose name the table's own begins with."""
    paper = name.partition("-")[0]
    if not (docs / "papers" / f"{paper}.md").is_file():
        return []
    return [(f"{Path(os.path.relpath(docs, results)).as_posix()}/papers/{paper}.md", "what of this paper is here")]


def _protocol(made: Mapping[str, Any]) -> list[str]:
    facts = protocol_words(made)
    return [f"{_PROTOCOL}{'; '.join(facts)}."] if facts else []


def _reproduced_row(line: Line) -> list[str]:
    means = [span(one, digits=line.digits) for one in (line.theirs, line.ours, line.floor, line.ceiling)]
    less, apart = (span(one, sign=True, digits=line.digits) for one in (line.to_printed, line.apart))
    took = [f"{seconds:.1f}" for seconds in (line.theirs_seconds, line.ours_seconds) if seconds is not None]
    return [
        line.dataset, line.row, line.place, line.epsilon_text, line.metric, line.printed_text, means[0], less, means[1],
        apart, *means[2:], "" if line.mean_epsilon is None else f"{line.mean_epsilon:.6g}", line.readings_text,
        " and ".join(took), "; ".join(filter(None, [line.remark, line.why])),
    ]  # fmt: skip


def _points(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return what the curves draw: along the axis of the target, or along the budget."""
    # A figure of gains shows these alone; a table has them beside.
    gains = any(line.gain for line in lines) and not any(line.printed for line in lines)
    return [
        {
            "data": line.dataset, "row": f"{line.row}, epsilon {line.epsilon_text}" if line.place else line.row,
            "x": line.place or line.epsilon_text, "theirs": _ends(line.theirs), "ours": _ends(line.ours),
            "floor": _ends(line.floor), "ceiling": _ends(line.ceiling), "digits": line.digits,
        }
        for line in lines if line.ran and line.gain == gains
    ]  # fmt: skip


def _ends(found: Interval | None) -> list[float | None] | None:
    if found is None:
        return None
    return [found.mean, *((found.low, found.high) if found.known else (None, None))]


def _claims(results: Path) -> list[Shown]:
    path = results / "claims.csv"
    if not path.is_file():
        return []
    rows = [[row[name] for name in ("number", "paper", "where", "claim", *_VERDICT, "beside")] for row in _read(path)]
    heads = ["#", "paper", "where", "claim", "their protocol", "reason", "ours", "reason under ours", "beside"]
    return [Shown(anchor="all-claims", title=counted(len(rows), "claim"), heads=heads, rows=rows, file="claims.csv")]


def _span(row: Mapping[str, str], name: str, digits: int) -> str:
    """Return a mean with its ends as people read it; a difference with its sign."""
    if not row.get(name):
        return ""
    mean, low, high = (float(row.get(f"{name}{end}") or "nan") for end in ("", "_low", "_high"))
    return span(Interval(mean=mean, low=low, high=high, runs=MANY), sign=name in _DIFFERENCES, digits=digits)


def _tables(results: Path) -> list[Shown]:
    out = []
    for folder in [results, *sorted(path for path in results.iterdir() if path.is_dir())]:
        path = folder / "tables" / "main.csv"
        if not path.is_file():
            continue
        rows = _read(path)
        known = list(map(measures_of, tasks()))
        entry = next((one for one in known if rows and one.headline.name in rows[0]), known[0])
        axes = axis_columns(rows[0]) if rows else []
        shown = shown_in("overview", table_columns(entry, axes))
        digits = entry.headline.digits
        cells = [
            [one.reads(row) if one.interval is None else _span(row, one.key, digits) for one in shown] for row in rows
        ]
        heads = [one.head("overview") for one in shown]
        name = "the default table" if folder == results else folder.name
        place = path.relative_to(results).as_posix()
        out.append(
            Shown(
                anchor=f"table-{folder.name}", title=name, about=counted(len(rows), "row"), heads=heads, rows=cells,
                file=place, code=_made_by(folder), pages=_pages(folder, results),
            )
        )  # fmt: skip
    return out


def _pages(folder: Path, results: Path) -> list[tuple[str, str]]:
    """Return where the report page of a folder of results stands."""
    path = folder / "report.html"
    return [(path.relative_to(results).as_posix(), "its page: figures, verdicts, how it was measured")] * path.is_file()


def _made_by(folder: Path) -> str:
    """Return the hash of the code that made a table's runs; empty where its folder does not say."""
    path = folder / FILE
    found = json.loads(path.read_bytes()).get("code", []) if path.is_file() else []
    return ", ".join(str(code)[:_DIGITS] for code in found)


def _privacy(path: Path) -> list[Shown]:
    if not path.is_file():
        return []
    out: list[Shown] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for place, line in enumerate(lines[:-1]):
        if line.startswith("| ") and re.fullmatch(r"\|[ :|-]+\|", lines[place + 1]):
            rows = []
            for row in lines[place + 2 :]:
                if not row.startswith("|"):
                    break
                rows.append(_cells(row))
            heads = _cells(line)
            out.append(
                Shown(anchor=f"privacy-{len(out)}", title=", ".join(heads[:4]), heads=heads, rows=rows,
                      about=counted(len(rows), "row"))
            )  # fmt: skip
    return out


def _cells(line: str) -> list[str]:
    return [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell.strip()) for cell in line.split("|")[1:-1]]


def _errata() -> list[Shown]:
    errata = [[one.key, one.where, one.claim, one.truth, one.here] for one in ERRATA]
    faults = [[one.key, one.where, one.fault, one.effect] for one in FAULTS]
    return [
        Shown(anchor="errata-papers", title=f"{len(errata)} of papers", rows=errata,
              heads=["#", "where", "printed", "true", "here"]),
        Shown(anchor="errata-code", title=f"{len(faults)} of published code", rows=faults,
              heads=["#", "where", "fault", "effect"]),
    ]  # fmt: skip


def _cost(results: Path) -> list[Shown]:
    rows = []
    for path in sorted(results.rglob("time.json")):
        facts = json.loads(path.read_bytes())
        seconds, cells = (
            sum(one.values()) if isinstance(one, dict) else one for one in (facts["seconds"], facts["cells"])
        )
        rows.append(
            [path.parent.relative_to(results).as_posix(), str(cells), f"{seconds:.0f}", str(facts.get("code", ""))[:12]]
        )
    if not rows:
        return []
    return [
        Shown(anchor="all-cost", title="Seconds of each grid", heads=["results", "cells", "seconds", "code"], rows=rows)
    ]
