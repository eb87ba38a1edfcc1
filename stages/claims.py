"""What the papers claim in their texts, each claim judged on numbers that were made again here.

A claim is judged under its paper's protocol and under ours, on `results/reproduce`; what follows from a mechanism's law
is judged on the law. A verdict is `holds`, `does not hold`, `cannot be told here` or `not testable`, with its reason.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from graphldp.errors import DataError
from graphldp.stages.claim_rules import FAILS, TOLERANCE, VERDICTS, Claimed, Judged, read_rules
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.pages.errata import ERRATA

__all__ = ["claims_csv", "claims_page", "counts", "judge", "stale_page", "write_claims"]


def judge(papers: Path, results: Path) -> list[Judged]:
    """Return every claim of the papers' list with its verdicts."""
    path = papers / "claims.csv"
    if not path.is_file():
        raise DataError(f"{path} does not exist; name the folder of papers with --papers")
    claims = _claims(path)
    rules = read_rules(papers / "claims" / "rules.yaml")
    numbers = [rule.claim for rule in rules]
    if numbers != [one.number for one in claims]:
        raise DataError(
            f"{papers / 'claims' / 'rules.yaml'} judges {len(numbers)} claims, {path} has {len(claims)}, in their order"
        )
    return [rule.judged(claim, results) for claim, rule in zip(claims, rules, strict=True)]


def _claims(path: Path) -> list[Claimed]:
    with path.open(encoding="utf-8", newline="") as handle:
        return [
            Claimed(
                number=place,
                value=float(row["value"]),
                text=row["text_summary"],
                **{name: row[name] for name in ("paper", "where", "dataset", "metric")},
            )
            for place, row in enumerate(csv.DictReader(handle), start=1)
        ]


def counts(judged: Sequence[Judged]) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many claims have each verdict, under their protocols and under ours."""
    theirs, ours = Counter(one.theirs for one in judged), Counter(one.ours for one in judged)
    return {name: theirs[name] for name in VERDICTS}, {name: ours[name] for name in VERDICTS}


_FIELDS = (
    "number",
    "paper",
    "where",
    "claim",
    "value",
    "theirs",
    "theirs_why",
    "ours",
    "ours_why",
    "target",
    "profile",
    "beside",
)


def claims_csv(judged: Sequence[Judged]) -> str:
    """Return the verdicts as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_FIELDS)
    for one in judged:
        claim = one.claim
        writer.writerow(
            [
                *(claim.number, claim.paper, claim.where, claim.text, f"{claim.value:g}", one.theirs, one.theirs_why),
                *(one.ours, one.ours_why, one.target, one.profile, one.beside),
            ]
        )  # fmt: skip
    return out.getvalue()


def claims_page(judged: Sequence[Judged]) -> str:
    """Return docs/claims.md."""
    theirs, ours = counts(judged)
    lines = [
        "# Claims", "",
        "What the texts of the papers claim with a number, judged on numbers that were made again here. Written by",
        "`ldp claims`; do not edit. Runs are those of `ldp reproduce`, under the paper's own protocol and under ours:",
        "a verdict may depend on it.", "",
        f'A number that the text calls "about" holds where ours is within {TOLERANCE:g} points of it, and does not',
        "where our whole interval is further away; a difference holds only where ours is measurably not 0, too. A",
        "bound holds where the whole interval lies on its side. The interval of a difference takes the two rows as",
        "independent, which is cautious. What cannot be told says why: the data are not at hand, it was not run, or",
        "the interval is too wide.", "",
        "| verdict | under the paper's protocol | under ours |", "| --- | --- | --- |",
        *(f"| {name} | {theirs[name]} | {ours[name]} |" for name in VERDICTS), "",
    ]  # fmt: skip
    shorts = {"ppgnn": "PPGNN", "togl": "TOGL", "heterorr": "HeteroRR", "upgnet": "UPGNet", "ldpge": "LDP-GE"}
    for paper in dict.fromkeys(one.claim.paper for one in judged):
        lines += [
            f"## {shorts[paper]}",
            "",
            "| # | where | claim | their protocol | ours |",
            "| --- | --- | --- | --- | --- |",
        ]
        for one in judged:
            if one.claim.paper == paper:
                run = f" ({one.profile})" if one.profile else ""
                cells = [
                    str(one.claim.number), one.claim.where, one.claim.text,
                    f"**{one.theirs}**: {one.theirs_why}{run}", f"**{one.ours}**: {one.ours_why}{run}",
                ]  # fmt: skip
                if one.theirs_why == one.ours_why:
                    cells[4] = "the same" if not one.theirs_why.startswith("not run") else f"**{one.ours}**"
                if one.beside:
                    cells[3] += f". {one.beside[:1].upper()}{one.beside[1:]}"
                lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("*:", "*:") for cell in cells) + " |")
        lines.append("")
    lines += [
        "## What they state without a number", "",
        "Of mechanisms, theorems and algorithms: what does not hold, and what does. Whole, with what is done here:",
        "[errata](errata.md).", "",
        "| # | where | stated | verdict |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    for erratum in ERRATA:
        cells = [
            f"[{erratum.key}](errata.md#{erratum.key.lower()})", erratum.where, erratum.claim,
            f"**{FAILS}**: {erratum.truth}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines).rstrip() + "\n"


def write_claims(papers: Path, results: Path, docs: Path) -> list[Path]:
    """Judge every claim and write results/claims.csv and docs/claims.md; return their paths."""
    judged = judge(papers, results)
    write_text(results / "claims.csv", claims_csv(judged))
    write_text(docs / "claims.md", claims_page(judged))
    return [results / "claims.csv", docs / "claims.md"]


def stale_page(papers: Path, results: Path, docs: Path) -> bool:
    """Return whether the committed page says something else than the committed numbers."""
    path = docs / "claims.md"
    return not path.is_file() or path.read_text(encoding="utf-8") != claims_page(judge(papers, results))
