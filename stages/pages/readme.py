"""The lines of README.md that count what the papers made again have come to; written, so that they cannot be wrong."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from graphldp.datasets.registry import title
from graphldp.stages.claim_rules import VERDICTS, Judged
from graphldp.stages.claims import counts, judge
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.grids.targets import PROFILES
from graphldp.stages.pages.paper_pages import tally

__all__ = ["counts_something", "outdated_readme", "readme_lines", "write_readme"]

_WIDE = 140  # letters of a line
BEGIN, END = "<!-- written by `ldp results` -->", "<!-- up to here -->"
_PAPERS = {"ppgnn": "PPGNN", "togl": "TOGL", "heterorr": "HeteroRR", "upgnet": "UPGNet", "ldpge": "LDP-GE"}


def readme_lines(papers: Path, results: Path) -> list[str]:
    """Return five lines: how many numbers and claims, and the claims on which most depends."""
    judged, found = judge(papers, results), tally(papers, results)
    theirs, ours = counts(judged)
    runs = ", ".join(f"`{name}`: {PROFILES[name].seeds}" for name in sorted(found.profiles, reverse=True))
    lines = [
        f"- Of {found.printed} printed numbers {found.beside} stand beside a row of `ldp reproduce` (runs of a row by "
        f"profile: {runs}), of {', '.join(map(title, found.graphs))}; {found.theirs} have an interval under the "
        f"paper's own protocol, and {found.within} of these lie in it. {found.drawn} of {found.figures} figures are "
        "there.",
        f"- Of {len(judged)} claims under the papers' own protocols {_counted(theirs)}; under ours {_counted(ours)}.",
    ]
    lines += [_claim(one) for one in judged if one.leading]
    return [textwrap.fill(line, _WIDE, subsequent_indent="  ", break_on_hyphens=False) for line in lines]


def _counted(found: Mapping[str, int]) -> str:
    verbs = ("hold", "do not", "cannot be told here", "cannot be tested")
    words = [f"{found[verdict]} {verb}" for verdict, verb in zip(VERDICTS, verbs, strict=True)]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _claim(one: Judged) -> str:
    head = f"- {_PAPERS[one.claim.paper]}, {one.claim.where}: {one.leading}. Under its own protocol"
    own = f"{head}: {one.theirs} ({one.theirs_why})"
    return f"{own}; under ours: {one.ours}" + (f" ({one.ours_why})." if one.ours_why != one.theirs_why else ".")


def counts_something(path: Path) -> bool:
    """Return whether a README has the two marks between which the counted lines belong."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return BEGIN in text and END in text.partition(BEGIN)[2]


def write_readme(papers: Path, results: Path, path: Path) -> Path:
    """Write the counted lines into a README, between its two marks."""
    write_text(path, _whole(path.read_text(encoding="utf-8"), readme_lines(papers, results)))
    return path


def outdated_readme(papers: Path, results: Path, path: Path) -> bool:
    """Return whether a README counts something else than what stands in the results, or nothing at all."""
    text = path.read_text(encoding="utf-8")
    return not counts_something(path) or text != _whole(text, readme_lines(papers, results))


def _whole(text: str, lines: list[str]) -> str:
    before, _, rest = text.partition(BEGIN)
    return "\n".join([f"{before}{BEGIN}", *lines, f"{END}{rest.partition(END)[2]}"])
