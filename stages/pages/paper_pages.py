"""A page for each paper: what of it is here, how to make each table and figure again, and what came out.

docs/papers/NAME.md is written from the paper's YAML, from results/reproduce, and from the claims and errata.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphldp.evaluation import Interval
from graphldp.measures import measures_of, tasks
from graphldp.stages.claim_rules import VERDICTS, Judged
from graphldp.stages.claims import counts, judge
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.grids.paper_numbers import Paper, load_papers
from graphldp.stages.grids.protocols import protocol, protocol_names
from graphldp.stages.grids.targets import PaperTarget, targets
from graphldp.stages.pages.errata import ERRATA
from graphldp.stages.pages.reproduced import Line, folder_of, lines_of
from graphldp.stages.pages.tables import span

__all__ = ["PaperCounts", "outdated_papers", "paper_page", "tally", "write_papers"]

_SHARES = {one.name for one in (measures_of(name).headline for name in tasks()) if one.unit}
_NOTE = "Written by `ldp results` from papers/{name}.yaml and results/reproduce; do not edit."


def write_papers(papers: Path, results: Path, docs: Path) -> list[Path]:
    """Write a page for each paper; return their paths."""
    pages = _pages(papers, results, docs)
    for path, text in pages.items():
        write_text(path, text)
    return list(pages)


def outdated_papers(papers: Path, results: Path, docs: Path) -> list[Path]:
    """Return the pages that say something else than what stands in papers and results."""
    pages = _pages(papers, results, docs)
    return [path for path, text in pages.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]


def _pages(papers: Path, results: Path, docs: Path) -> dict[Path, str]:
    judged, every = judge(papers, results), targets(papers)
    return {
        docs / "papers" / f"{path.stem}.md": paper_page(path, every, judged, results)
        for path in sorted(papers.glob("*.yaml"))
    }


def paper_page(path: Path, every: Sequence[PaperTarget], judged: Sequence[Judged], results: Path) -> str:
    """Return a paper's page."""
    paper = Paper.from_yaml(path)
    name, short = paper.paper, paper.short
    lines = [f"# {short}", "", f"{paper.title}. {paper.reference}.", "", _NOTE.format(name=name), ""]
    lines += ["## What of it is here", "", *(f"- {one}" for one in paper.here), ""]
    own = [one for one in every if one.paper == name]
    lines += ["## Tables and figures", ""]
    heads = (
        "what",
        "made again by",
        "beside a row",
        "within its interval",
        "distance, their protocol",
        "distance, ours",
    )
    lines += [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]  # fmt: skip
    lines += [_row(one, results) for one in own]
    lines += [
        "", "Beside a row: printed numbers that have one, of all that are printed. Within: those that lie in the",
        "interval under the paper's own protocol. Distance: in points, the mean over these rows. A figure prints no",
        "numbers.", "",
    ]  # fmt: skip
    lines += _bridge(own, results)
    left = [f"- Figure {figure}: {why}" for figure, why in paper.figures.items() if why]
    lines += ["Not made again:", "", *left, ""] if left else []
    if name in protocol_names(path.parent):
        lines += [
            "## Its protocol", "", f"`--protocol {name}` on `ldp run`, `ldp search` and `ldp experiment`; "
            "`ldp reproduce` has it as a column.", "", "| place | value | source |", "| --- | --- | --- |",
        ]  # fmt: skip
        for one in protocol(name, path.parent).entries:
            value = ", ".join(map(_text, one.value)) if isinstance(one.value, list | tuple) else _text(one.value)
            lines.append(f"| `{one.place}` | {value} | {one.source} |")
        lines.append("")
    mine = [one for one in judged if one.claim.paper == name]
    if mine:
        theirs, ours = counts(mine)
        lines += ["## Its claims", "", "| verdict | under its protocol | under ours |", "| --- | --- | --- |"]
        lines += [f"| {verdict} | {theirs[verdict]} | {ours[verdict]} |" for verdict in VERDICTS]
        lines += ["", "Each one with its numbers: [claims](../claims.md).", ""]
    errata = [one.key for one in ERRATA if short.lower() in one.where.lower()]
    if errata:
        links = ", ".join(f"[{key}](../errata.md#{key.lower()})" for key in errata)
        lines += ["## Where it is wrong", "", f"Errata: {links}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _row(target: PaperTarget, results: Path) -> str:
    what = f"{target.place}: {target.title}".replace("|", "/")
    made = target.trains or target.measured.file
    command = f"`ldp reproduce {target.key}`" if made else f"`{target.measured.command}`"
    found = _found(target, results)
    if not found and target.measured.page:
        page = Path(os.path.relpath(target.measured.page, "docs/papers")).as_posix()
        return f"| [{what}]({page}) | {command} | measured | | | |"
    if not found:
        return f"| {what} | {command} | not run | | | |"
    profile, lines = found
    printed = [line for line in lines if line.printed]
    ran = [line for line in printed if line.ran]
    folder = f"../../results/reproduce/{target.slug}/{profile}"
    if target.steps or not printed:
        figure = (
            f", [figure]({folder}/figure.svg)" if (folder_of(target, profile, results) / "figure.svg").is_file() else ""
        )
        return f"| [{what}]({folder}/table.md){figure} | {command} | {profile} | | | |"
    within = [line.within for line in ran if line.within is not None]
    distances = [
        f"{sum(gaps) / len(gaps):.1f}" if (gaps := _gaps(ran, column)) else "" for column in ("theirs", "ours")
    ]
    return (
        f"| [{what}]({folder}/table.md) | {command} | "
        f"{len(ran)} of {len(printed)}, {profile} | "
        f"{sum(within)} of {len(within)} | {' | '.join(distances)} |"
    )


def _bridge(own: Sequence[PaperTarget], results: Path) -> list[str]:
    """Return the way from a headline number to ours, step by step, where it was run."""
    target = next((one for one in own if one.steps), None)
    found = None if target is None else _found(target, results)
    if target is None or found is None:
        return []
    profile, steps = found
    head = f"{target.title} (printed {steps[0].printed}, profile {profile}):"
    rows = [f"| {line.place} | {span(line.theirs)} | {span(line.apart, sign=True)} |" for line in steps]
    return [head, "", "| step | so far | this step |", "| --- | --- | --- |", *rows, ""]


def _gaps(lines: Sequence[Line], column: str) -> list[float]:
    found: list[tuple[Line, Interval | None]] = [
        (line, getattr(line, column)) for line in lines if line.metric in _SHARES
    ]
    return [abs(one.mean - float(line.printed)) for line, one in found if one is not None]


def _found(target: PaperTarget, results: Path) -> tuple[str, list[Line]] | None:
    for profile in ("paper", "quick"):
        if lines := lines_of(folder_of(target, profile, results) / "table.csv"):
            return profile, lines
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCounts:
    """What was made again, counted.

    Attributes:
        printed: the numbers that the papers print.
        beside: those of them that stand beside a number of ours.
        theirs: those of these that have an interval under the paper's own protocol.
        within: those of these that lie in its interval.
        graphs: the data sets that the numbers beside are of.
        figures, drawn: the papers' figures, and those that stand here.
        profiles: those that the numbers are of.
    """

    printed: int
    beside: int
    theirs: int
    within: int
    graphs: tuple[str, ...]
    figures: int
    drawn: int
    profiles: tuple[str, ...]


def tally(papers: Path, results: Path) -> PaperCounts:
    """Count what stands in a folder of results."""
    known = load_papers(papers)
    printed = {(one.file, one.row) for one in known.entries} | {(one.file, one.row) for one in known.alone}
    beside: dict[tuple[str, int], str] = {}
    theirs: set[tuple[str, int]] = set()
    within: set[tuple[str, int]] = set()
    profiles: set[str] = set()
    drawn = 0
    for target in targets(papers):
        found = _found(target, results)
        drawn += _is_figure(target) and (found is not None or _draws(target, papers))
        if target.steps or found is None:
            continue
        for line in found[1]:
            file = next((one.file for one in target.printed if one.metric.endswith("_gain") == line.gain), "")
            if line.number is None or not line.ran:
                continue
            place = file, line.number
            beside[place] = line.dataset
            profiles.add(found[0])
            theirs |= {place} if line.within is not None else set()
            within |= {place} if line.within else set()
    figures = sum(len(Paper.from_yaml(path).figures) for path in papers.glob("*.yaml"))
    return PaperCounts(
        printed=len(printed), beside=len(beside), theirs=len(theirs), within=len(within),
        graphs=tuple(sorted(set(beside.values()))), figures=figures, drawn=drawn, profiles=tuple(sorted(profiles)),
    )  # fmt: skip


def _draws(target: PaperTarget, papers: Path) -> bool:
    """Whether the page of a figure that is measured elsewhere shows a drawing."""
    path = papers.parent / target.measured.page
    return path.is_file() and ".svg)" in path.read_text(encoding="utf-8")


def _is_figure(target: PaperTarget) -> bool:
    return not target.printed and not target.steps
