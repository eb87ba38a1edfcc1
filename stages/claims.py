"""What the papers claim in their texts, each claim judged on numbers that were made again here.

A claim is judged under its paper's protocol and under ours, on `results/reproduce`; what follows from a mechanism's law
is judged on the law. A verdict is `holds`, `does not hold`, `cannot be told here` or `not testable`, with its reason.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graphldp.datasets import names as dataset_names
from graphldp.errors import DataError
from graphldp.evaluation import Interval
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.grids.targets import not_at_hand
from graphldp.stages.grids.yamls import read_paper
from graphldp.stages.pages.docs_numbers import expected_error, raw_variance, scalar_variance
from graphldp.stages.pages.errata import ERRATA
from graphldp.stages.pages.tables import span

__all__ = [
    "TOLERANCE",
    "VERDICTS",
    "Claimed",
    "Judged",
    "claims_csv",
    "claims_page",
    "counts",
    "judge",
    "stale_page",
    "write_claims",
]

HOLDS, FAILS, UNKNOWN, UNTESTABLE = VERDICTS = ("holds", "does not hold", "cannot be told here", "not testable")
TOLERANCE = 1.5  # points by which a number that a text calls "about" may be off
_WIDE = 3.0  # an interval that reaches further to each side tells nothing of such a number
_COMPARED = ("duchi", "pm", "hm", "to", "pm-sub", "lp", "latent", "ome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A claim as the paper has it."""

    number: int
    paper: str
    where: str
    dataset: str
    metric: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with its verdicts, under the paper's protocol and under ours, and the reasons.

    Attributes:
        target: what `ldp reproduce` makes of it; empty where no run is needed.
        profile: which profile's numbers were looked at; empty where none were.
        beside: what has to be known of it.
        leading: the claim in short, of those on which most depends; empty of the others.
    """

    claim: Claimed
    theirs: str
    ours: str
    theirs_why: str
    ours_why: str
    target: str = ""
    profile: str = ""
    beside: str = ""
    leading: str = ""


def judge(papers: Path, results: Path) -> list[Judged]:
    """Return every claim of the papers' list with its verdicts."""
    path = papers / "claims.csv"
    if not path.is_file():
        raise DataError(f"{path} does not exist; name the folder of papers with --papers")
    claims = _claims(path)
    rules = read_paper(papers / "claims" / "rules.yaml")
    numbers = [int(rule["claim"]) for rule in rules]
    if numbers != [one.number for one in claims]:
        raise DataError(
            f"{papers / 'claims' / 'rules.yaml'} judges {len(numbers)} claims, {path} has {len(claims)}, in their order"
        )
    return [_judged(claim, rule, results) for claim, rule in zip(claims, rules, strict=True)]


def _claims(path: Path) -> list[Claimed]:
    with path.open(encoding="utf-8", newline="") as handle:
        return [
            Claimed(
                number=place, paper=row["paper"], where=row["where"], dataset=row["dataset"], metric=row["metric"],
                value=float(row["value"]), text=row["text_summary"],
            )
            for place, row in enumerate(csv.DictReader(handle), start=1)
        ]  # fmt: skip


def _judged(claim: Claimed, rule: Mapping[str, Any], results: Path) -> Judged:
    kind, beside = str(rule["kind"]), str(rule.get("beside", ""))
    if kind == "open":
        verdict, why = _open(rule)
        return Judged(claim=claim, theirs=verdict, ours=verdict, theirs_why=why, ours_why=why, beside=beside)
    if kind in ("variance", "error", "file"):
        verdict, why = {"variance": _variance, "error": _error, "file": _file}[kind](claim, rule, results)
        return Judged(claim=claim, theirs=verdict, ours=verdict, theirs_why=why, ours_why=why, beside=beside)
    if "datasets" in rule:
        return _over(claim, rule, results, beside)
    profile, rows = _table(results, str(rule["target"]), str(rule["dataset"]))
    found = {}
    for column in ("theirs", "ours"):
        try:
            found[column] = _JUDGES[kind](claim, rule, rows, column)
        except LookupError:
            found[column] = (UNKNOWN, f"not run here; `ldp reproduce {rule['target']} --datasets {rule['dataset']}`")
    return Judged(
        claim=claim, theirs=found["theirs"][0], ours=found["ours"][0], theirs_why=found["theirs"][1],
        ours_why=found["ours"][1], target=str(rule["target"]), profile=profile, beside=beside,
        leading=str(rule.get("leading", "")),
    )  # fmt: skip


def _over(claim: Claimed, rule: Mapping[str, Any], results: Path, beside: str) -> Judged:
    """Judge a claim about a mean over data sets, on those of them that were run."""
    tables = {name: _table(results, str(rule["target"]), str(name)) for name in rule["datasets"]}
    found, profiles = {}, set()
    for column in ("theirs", "ours"):
        gains = {}
        for name, (profile, rows) in tables.items():
            try:
                one, other = (_one(rows, column, rule[row], rule["epsilon"]) for row in ("row", "less"))
            except LookupError:
                continue
            gains[name] = _less(one, other)
            profiles.add(profile)
        if not gains:
            why = f"not run here; `ldp reproduce {rule['target']} --datasets {rule['datasets'][0]}`"
            found[column] = (UNKNOWN, why)
            continue
        mean = _mean(list(gains.values()))
        verdict = _verdict(mean, claim.value, rule["how"])
        words = f"{rule['row']} less {rule['less']}, over {', '.join(gains)}: {span(mean, sign=True)}"
        found[column] = (verdict, f"{words}; claimed {rule['how']} {claim.value:g}")
    return Judged(
        claim=claim, theirs=found["theirs"][0], ours=found["ours"][0], theirs_why=found["theirs"][1],
        ours_why=found["ours"][1], target=str(rule["target"]), profile=" and ".join(sorted(profiles)), beside=beside,
        leading=str(rule.get("leading", "")),
    )  # fmt: skip


def _mean(gains: Sequence[Interval]) -> Interval:
    """Return the mean of differences on several data sets, which are independent."""
    mean = sum(one.mean for one in gains) / len(gains)
    down, up = (
        math.hypot(*(getattr(one, end) - one.mean for one in gains)) / len(gains) for end in ("low", "high")
    )  # fmt: skip
    return Interval(mean=mean, low=mean - down, high=mean + up, runs=min(one.runs for one in gains))


def _open(rule: Mapping[str, Any]) -> tuple[str, str]:
    if "why" in rule:
        return UNTESTABLE, str(rule["why"])
    name = str(rule["dataset"])
    assert name in dataset_names()
    return UNKNOWN, f"{name} was {not_at_hand(name)}"


def _table(results: Path, target: str, dataset: str) -> tuple[str, list[dict[str, str]]]:
    """Return the rows of a target that hold numbers of a data set, of the larger profile that has any."""
    for profile in ("paper", "quick"):
        path = results / "reproduce" / target.replace(":", "-") / profile / "table.csv"
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as handle:
                rows = [row for row in csv.DictReader(handle) if row["dataset"] == dataset and row["theirs"]]
            if rows:
                return profile, [{**row, "profile": profile} for row in rows]
    return "", []


def _one(
    rows: Sequence[Mapping[str, str]], column: str, row: str, epsilon: float | None = None, place: str | None = None
) -> Interval:
    """Return a row's interval in a column; the largest budget where it has one that the others do not."""
    fits = [one for one in rows if one["row"] == row and not one["metric"].endswith("gain")]
    fits = [one for one in fits if place is None or one["place"] == place]
    same = [one for one in fits if epsilon is None or math.isclose(float(one["epsilon"]), epsilon)]
    fits = same or [one for one in fits if one["epsilon"] == "inf"]
    if not fits or not fits[0][column]:
        raise LookupError(row)
    return Interval(
        mean=float(fits[0][column]),
        low=float(fits[0][f"{column}_low"] or "nan"),
        high=float(fits[0][f"{column}_high"] or "nan"),
        runs=int(fits[0]["runs"]),
    )


def _less(one: Interval, other: Interval) -> Interval:
    """Return the difference; its ends as if the two were independent, which is cautious: they share their splits."""
    mean = one.mean - other.mean
    down = math.hypot(one.mean - one.low, other.high - other.mean)
    up = math.hypot(one.high - one.mean, other.mean - other.low)
    return Interval(mean=mean, low=mean - down, high=mean + up, runs=min(one.runs, other.runs))


def _verdict(found: Interval, value: float, how: str, tolerance: float = TOLERANCE) -> str:
    if how == "about":
        if found.low > value + tolerance or found.high < value - tolerance:
            return FAILS
        wide = max(found.high - found.mean, found.mean - found.low) > _WIDE * tolerance / TOLERANCE
        return HOLDS if abs(found.mean - value) <= tolerance and not wide else UNKNOWN
    above = how in ("above", "at least")
    side = found.against(value)
    if side in ("same", "unknown"):
        return UNKNOWN
    return HOLDS if (side == "above") == above else FAILS


def _gain(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    others = rule["less"] if isinstance(rule["less"], list) else [rule["less"]]
    one = _one(rows, column, rule["row"], rule["epsilon"])
    found = {name: _less(one, _one(rows, column, name, rule["epsilon"])) for name in others}
    name, gain = min(found.items(), key=lambda item: item[1].mean)
    verdict = _verdict(gain, claim.value, rule["how"])
    return verdict, f"{rule['row']} less {name}: {span(gain, sign=True)}; claimed {rule['how']} {claim.value:g}"


def _score(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    found = _one(rows, column, rule["row"], rule["epsilon"], rule.get("place"))
    return _verdict(found, claim.value, rule["how"]), f"{span(found)}; claimed {rule['how']} {claim.value:g}"


def _deviation(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    from scipy.special import stdtrit

    found = _one(rows, column, rule["row"], rule["epsilon"])
    # Half of Student's interval is the deviation over the root of the number of runs, times a quantile.
    deviation = (found.high - found.low) / 2 * math.sqrt(found.runs) / float(stdtrit(found.runs - 1, 0.975))
    verdict = HOLDS if abs(deviation - claim.value) <= rule["tolerance"] else FAILS
    return verdict, f"a standard deviation over runs of about {deviation:.1f}; claimed {claim.value:g}"


def _along(rule: Mapping[str, Any], rows: Any, column: str, epsilon: float) -> dict[float, Interval]:
    places = [
        one["place"] for one in rows if one["row"] == rule["row"] and math.isclose(float(one["epsilon"]), epsilon)
    ]
    own = [place for place in dict.fromkeys(places) if place.startswith(f"{rule['axis']} ")]
    if not own:
        raise LookupError(rule["axis"])
    return {float(place.split()[-1]): _one(rows, column, rule["row"], epsilon, place) for place in own}


def _ran(rule: Mapping[str, Any], rows: Any) -> list[float]:
    """Return those of a rule's budgets that were run: a small profile has fewer."""
    there = {float(one["epsilon"]) for one in rows if one["row"] == rule["row"]}
    found = [epsilon for epsilon in rule["epsilons"] if any(math.isclose(epsilon, one) for one in there)]
    if not found:
        raise LookupError(rule["row"])
    return found


def _best(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    verdicts, words = [], []
    for epsilon in _ran(rule, rows):
        found = _along(rule, rows, column, epsilon)
        top = max(found, key=lambda value: found[value].mean)
        claimed = {value for value in found if (value <= claim.value if rule.get("at_most") else value == claim.value)}
        equal = any(found[value].high >= found[top].low for value in found if (value in claimed) != (top in claimed))
        verdicts.append(HOLDS if top in claimed and not equal else UNKNOWN if equal else FAILS)
        words.append(f"epsilon {epsilon:g}: best at {top:g} ({span(found[top])})")
    return _worst(verdicts), "; ".join(words) + f"; claimed {claim.value:g}"


def _within(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    low, high = rule["between"]
    found = _along(rule, rows, column, rule["epsilons"][0])
    top = max(found, key=lambda value: found[value].mean)
    inside = {value for value in found if low <= value <= high}
    equal = any(found[value].high >= found[top].low for value in found if (value in inside) != (top in inside))
    verdict = UNKNOWN if equal else HOLDS if top in inside else FAILS
    return verdict, f"best at {top:g} ({span(found[top])}); claimed between {low:g} and {high:g}" + (
        "; places inside and outside cannot be told apart" if equal else ""
    )


def _spread(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    verdicts, words = [], []
    for epsilon in _ran(rule, rows):
        found = _along(rule, rows, column, epsilon)
        top, bottom = (pick(found.values(), key=lambda one: one.mean) for pick in (max, min))
        spread = _less(top, bottom)
        verdicts.append(HOLDS if spread.mean <= claim.value else _verdict(spread, claim.value, "below"))
        words.append(f"epsilon {epsilon:g}: {spread.mean:.1f}")
    return _worst(verdicts), f"best less worst, {'; '.join(words)}; claimed at most {claim.value:g}"


def _rises(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    found = _along(rule, rows, column, rule["epsilon"])
    last, top = max(found), max(found, key=lambda value: found[value].mean)
    verdict = HOLDS if last == top else UNKNOWN if found[last].high >= found[top].low else FAILS
    return verdict, f"best at {top:g} ({span(found[top])}), at {last:g} {span(found[last])}"


def _near(claim: Claimed, rule: Mapping[str, Any], rows: Any, column: str) -> tuple[str, str]:
    gaps = {
        epsilon: [
            _less(_one(rows, column, other, epsilon), _one(rows, column, rule["row"], epsilon))
            for other in rule["others"]
        ]
        for epsilon in (rule["far"], rule["near"])
    }
    behind = all(gap.low > TOLERANCE for gap in gaps[rule["far"]])
    level = all(gap.low <= TOLERANCE for gap in gaps[rule["near"]])
    words = "; ".join(
        f"epsilon {epsilon:g}: behind by {' and '.join(span(gap) for gap in found)}" for epsilon, found in gaps.items()
    )
    return (HOLDS if behind and level else FAILS), words


def _worst(verdicts: Sequence[str]) -> str:
    return max(verdicts, key=[HOLDS, UNKNOWN, FAILS].index)


_JUDGES = {
    "gain": _gain, "score": _score, "deviation": _deviation, "best": _best, "within": _within, "spread": _spread,
    "rises": _rises, "near": _near,
}  # fmt: skip


def _file(claim: Claimed, rule: Mapping[str, Any], results: Path) -> tuple[str, str]:
    path = results / str(rule["file"])
    rows: list[dict[str, str]] = []
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as handle:
            rows = [
                row for row in csv.DictReader(handle) if all(row[key] == value for key, value in rule["where"].items())
            ]
    if not rows:
        return UNKNOWN, f"not measured here; `{rule['command']}`"
    factor, column = float(rule.get("factor", 1)), str(rule["column"])
    mean = factor * float(rows[0][column])
    found = Interval.of_error(mean, factor * float(rows[0].get(f"{column}_error") or 0))
    verdict = _verdict(found, claim.value, rule["how"], float(rule.get("tolerance", TOLERANCE)))
    return verdict, f"{mean:.3g}; claimed {rule['how']} {claim.value:g}"


def _variance(claim: Claimed, rule: Mapping[str, Any], results: Path) -> tuple[str, str]:
    """Compare what the square wave sends with the others' unbiased estimates of one value, as the paper does."""
    low, high = str(rule["low"]), str(rule["high"])
    grid = np.linspace(0.05, claim.value, 100)
    above = [
        float(epsilon) for epsilon in grid if raw_variance(low, float(epsilon)) >= scalar_variance(high, float(epsilon))
    ]
    if above:
        return (
            FAILS,
            f"from the laws: at epsilon {above[0]:.2f} the worst variance of {low} is no longer below that of {high}",
        )
    return (
        HOLDS,
        f"from the laws: what {low} sends has the lower worst variance up to {claim.value:g}; it is biased (E29)",
    )


def _error(claim: Claimed, rule: Mapping[str, Any], results: Path) -> tuple[str, str]:
    """Compare expected errors as the paper does: FeatureRR's bins as they are, the others rectified."""
    if "below" in rule:
        grid = np.geomspace(0.05, float(rule["below"]), 8)
        ratios = [_errors(float(e))[1] / _errors(float(e))[0] for e in grid]
        verdict = HOLDS if max(ratios) < 1.1 else FAILS
        return (
            verdict,
            f"from the laws: below {rule['below']:g} the best other has {min(ratios):.1f} to {max(ratios):.1f} times "
            "its error, which is more than marginal",
        )
    grid = np.geomspace(float(rule["from"]), float(rule["to"]), 24)
    behind = [float(e) for e in grid if _errors(float(e))[0] > _errors(float(e))[1]]
    if behind:
        return FAILS, f"from the laws: at epsilon {behind[0]:.2g} another mechanism's worst expected error is lower"
    return HOLDS, "from the laws: lowest everywhere in between, its biased bins against unbiased estimates (errata E37)"


@cache
def _errors(epsilon: float) -> tuple[float, float]:
    own = expected_error("featurerr", epsilon, raw=True)
    return own, min(expected_error(name, epsilon) for name in _COMPARED)


def counts(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """Return how many claims have each verdict, by protocol."""
    theirs, ours = Counter(one.theirs for one in judged), Counter(one.ours for one in judged)
    return {"theirs": {name: theirs[name] for name in VERDICTS}, "ours": {name: ours[name] for name in VERDICTS}}


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
    found = counts(judged)
    lines = [
        "# Claims", "",
        "What the texts of the papers claim with a number, judged on numbers that were made again here. Written by",
        "`ldp claims`; do not edit. Runs are those of `ldp reproduce`, under the paper's own protocol and under ours:",
        "a verdict may depend on it.", "",
        f'A number that the text calls "about" holds where ours is within {TOLERANCE:g} points of it, and does not',
        "where our whole interval is further away; a bound holds where the whole interval lies on its side. The",
        "interval of a difference takes the two rows as independent, which is cautious. What cannot be told says why:",
        "the data are not at hand, it was not run, or the interval is too wide.", "",
        "| verdict | under the paper's protocol | under ours |", "| --- | --- | --- |",
        *(f"| {name} | {found['theirs'][name]} | {found['ours'][name]} |" for name in VERDICTS), "",
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
