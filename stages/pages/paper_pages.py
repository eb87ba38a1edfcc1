"""A page for each paper: what of it is here, how to make each table and figure again, and what came out.

docs/papers/NAME.md is written from the paper's YAML, from results/reproduce, and from the claims and errata.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphldp.measures import measures_of, tasks
from graphldp.stages.claims import VERDICTS, Judged, counts, judge
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.grids.paper_numbers import load_papers
from graphldp.stages.grids.protocols import protocol, protocol_names
from graphldp.stages.grids.targets import Target, targets
from graphldp.stages.grids.yamls import read_paper
from graphldp.stages.pages.errata import ERRATA

__all__ = ["outdated_papers", "paper_page", "tally", "write_papers"]

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


def paper_page(path: Path, every: Sequence[Target], judged: Sequence[Judged], results: Path) -> str:
    """Return a paper's page."""
    paper = read_paper(path)
    name, short = str(paper["paper"]), str(paper["short"])
    lines = [f"# {short}", "", f"{paper['title']}. {paper['reference']}.", "", _NOTE.format(name=name), ""]
    lines += ["## What of it is here", "", *(f"- {one}" for one in paper.get("here", [])), ""]
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
    left = [f"- Figure {one['figure']}: {one['why']}" for one in paper["figures"] if "why" in one]
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
        found = counts(mine)
        lines += ["## Its claims", "", "| verdict | under its protocol | under ours |", "| --- | --- | --- |"]
        lines += [f"| {verdict} | {found['theirs'][verdict]} | {found['ours'][verdict]} |" for verdict in VERDICTS]
        lines += ["", "Each one with its numbers: [claims](../claims.md).", ""]
    errata = [one.key for one in ERRATA if short.lower() in one.where.lower()]
    if errata:
        links = ", ".join(f"[{key}](../errata.md#{key.lower()})" for key in errata)
        lines += ["## Where it is wrong", "", f"Errata: {links}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _row(target: Target, results: Path) -> str:
    what = f"{target.place}: {target.title}".replace("|", "/")
    command = f"`ldp reproduce {target.key}`" if target.trains else f"`{target.measured.get('command', '')}`"
    found = _found(target, results)
    if not found:
        return f"| {what} | {command} | not run | | | |"
    profile, rows = found
    printed = [row for row in rows if row["printed"]]
    ran = [row for row in printed if row["theirs"] or row["ours"]]
    if target.steps or not printed:
        return f"| [{what}](../../results/reproduce/{target.slug}/{profile}/table.md) | {command} | {profile} | | | |"
    within = [row for row in ran if row["within"]]
    distances = [
        f"{sum(gaps) / len(gaps):.1f}" if (gaps := _gaps(ran, column)) else "" for column in ("theirs", "ours")
    ]
    return (
        f"| [{what}](../../results/reproduce/{target.slug}/{profile}/table.md) | {command} | "
        f"{len(ran)} of {len(printed)}, {profile} | "
        f"{sum(row['within'] == 'true' for row in within)} of {len(within)} | {' | '.join(distances)} |"
    )


def _gaps(rows: Sequence[Mapping[str, str]], column: str) -> list[float]:
    points = [row for row in rows if row["metric"] in _SHARES and row[column]]
    return [abs(float(row[column]) - float(row["printed"])) for row in points]


def _found(target: Target, results: Path) -> tuple[str, list[dict[str, str]]] | None:
    for profile in ("paper", "quick"):
        path = results / "reproduce" / target.slug / profile / "table.csv"
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as handle:
                return profile, list(csv.DictReader(handle))
    return None


def tally(papers: Path, results: Path) -> tuple[int, int, int]:
    """Return how many numbers the papers print, how many stand beside a row, and how many of these lie within."""
    known = load_papers(papers)
    printed = {(one.file, one.row) for one in known.entries} | {(one.file, one.row) for one in known.alone}
    beside: set[tuple[str, int]] = set()
    within: set[tuple[str, int]] = set()
    for target in targets(papers):
        if target.steps:
            continue
        found = _found(target, results)
        for row in found[1] if found else []:
            gain = row["metric"].endswith("gain")
            file = next((one.file for one in target.printed if one.metric.endswith("_gain") == gain), "")
            if row["number"] and row["theirs"] + row["ours"]:
                beside.add((file, int(row["number"])))
                if row["within"] == "true":
                    within.add((file, int(row["number"])))
    return len(printed), len(beside), len(within)
