"""Every claim has a verdict under both protocols, and a verdict follows from numbers and their uncertainty."""

from __future__ import annotations

import csv
import functools
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphldp.errors import DataError
from graphldp.evaluation import Interval
from graphldp.stages.claim_rules import VERDICTS, Judged
from graphldp.stages.claims import claims_csv, claims_page, counts, judge
from graphldp.stages.grids.targets import PROFILES, find, protocol_of
from graphldp.stages.grids.yamls import read_yaml
from graphldp.stages.pages.errata import ERRATA
from graphldp.stages.pages.paper_pages import outdated_papers, tally
from graphldp.stages.pages.readme import counts_something, outdated_readme, readme_lines, write_readme
from graphldp.stages.pages.reproduced import COLUMNS

ROOT = Path(__file__).parents[2]
PAPERS, RESULTS = ROOT / "papers", ROOT / "results"


def _write(results: Path, target: str, *rows: dict[str, str], profile: str = "quick") -> None:
    folder = results / "reproduce" / target.replace(":", "-") / profile
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _row(
    row: str, theirs: float, ours: float, half: float = 0.5, epsilon: str = "0.01", place: str = "", data: str = "cora"
) -> dict[str, str]:
    out = {"dataset": data, "row": row, "epsilon": epsilon, "place": place, "metric": "accuracy", "runs": "5"}
    for name, mean in (("theirs", theirs), ("ours", ours)):
        out |= {name: str(mean), f"{name}_low": str(mean - half), f"{name}_high": str(mean + half)}
    return out


# The five papers' files are read for each address: once is enough for all rules.
_target = functools.cache(lambda address: find(address, PAPERS)[0])


def _rules() -> list[dict[str, Any]]:
    """Return the rules that name a target."""
    return [rule for rule in read_yaml(PAPERS / "claims" / "rules.yaml", "") if "target" in rule]


def _of(results: Path, number: int) -> Judged:
    return judge(PAPERS, results)[number - 1]


@pytest.mark.slow
def test_without_any_results_every_claim_has_a_reason(tmp_path: Path) -> None:
    judged = judge(PAPERS, tmp_path)
    assert [one.claim.number for one in judged] == list(range(1, 64))
    for one in judged:
        assert {one.theirs, one.ours} <= set(VERDICTS)
        assert one.theirs_why.strip()
        assert one.ours_why.strip()
    assert sum(counts(judged)[0].values()) == 63
    assert "`ldp reproduce ppgnn:figure3 --datasets cora`" in judged[0].theirs_why
    assert "lastfm was not at hand" in judged[39].ours_why


@pytest.mark.parametrize(("entry", "message"), [
    ("{claim: 1, kind: gaim, dataset: cora}", "claim 1 has no kind 'gaim'; there are gain, mean gain"),
    ("{claim: 1, kind: open, dataset: lastfm, wy: none}", "claim 1, kind open: has no wy"),
    ("{claim: 1, kind: rises, target: 't', row: r, dataset: cora}", "claim 1, kind rises: lacks axis, epsilon"),
    ("{claim: 1, kind: open, dataset: lastfn}", "claim 1 names no data set: 'lastfn'"),
])  # fmt: skip
def test_a_rule_that_is_no_rule_is_refused(tmp_path: Path, entry: str, message: str) -> None:
    shutil.copytree(PAPERS / "claims", tmp_path / "claims")
    lines = (PAPERS / "claims.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "claims.csv").write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    (tmp_path / "claims" / "rules.yaml").write_text(f"- {entry}\n", encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        judge(tmp_path, RESULTS)


@pytest.mark.slow
def test_rules_name_targets_rows_and_axes_that_there_are() -> None:
    for rule in _rules():
        target = _target(rule["target"])
        labels = {one.label for one in target.asked}
        others = rule.get("less", rule.get("others", []))
        named = {rule["row"], *([others] if isinstance(others, str) else others)}
        assert named <= labels, (rule["claim"], named - labels)
        assert set(rule.get("datasets", [rule.get("dataset")])) <= set(target.graphs()), rule["claim"]
        if "axis" in rule:
            assert rule["axis"] in {name.rpartition(".")[2] for name in target.vary}, rule["claim"]


def test_a_verdict_depends_on_the_protocol(tmp_path: Path) -> None:
    _write(tmp_path, "ppgnn:table3", _row("PPM", 60.5, 85.3), _row("MB", 54.0, 85.4))
    one = _of(tmp_path, 3)  # about 7 points
    assert (one.theirs, one.ours, one.profile) == ("holds", "does not hold", "quick")
    assert one.theirs_why.startswith("PPM less MB: +6.5 [+5.8, +7.2]")


def test_an_interval_that_is_too_wide_tells_nothing(tmp_path: Path) -> None:
    _write(tmp_path, "ppgnn:table3", _row("PPM", 60.5, 85.3, half=4), _row("MB", 54.0, 85.4, half=4))
    assert _of(tmp_path, 3).theirs == "cannot be told here"


@pytest.mark.parametrize(("gain", "half", "verdict"), [
    (7.9, 1.0, "holds"), (-0.6, 2.0, "does not hold"), (4.0, 2.0, "cannot be told here"),
    (7.0, 2.5, "cannot be told here"), (12.0, 1.0, "does not hold"),
])  # fmt: skip
def test_a_number_holds_where_ours_is_near_it_and_not_where_the_interval_just_reaches_it(
    tmp_path: Path, gain: float, half: float, verdict: str
) -> None:
    _write(tmp_path, "ppgnn:table3", _row("PPM", 54.0 + gain, 85.3, half=half), _row("MB", 54.0, 85.4, half=half))
    assert _of(tmp_path, 3).theirs == verdict  # about 7 points


@pytest.mark.parametrize(("gain", "half", "verdict"), [(1.7, 0.5, "holds"), (0.6, 0.7, "cannot be told here")])
def test_a_difference_that_may_be_none_does_not_hold(tmp_path: Path, gain: float, half: float, verdict: str) -> None:
    rows = (_row(name, 60.0 + more, 60.0, epsilon="10", half=half) for name, more in (("SMA", gain), ("PCA", 0.0)))
    _write(tmp_path, "togl:table18", *rows)
    assert _of(tmp_path, 21).theirs == verdict  # about 1.7 points


def test_a_bound_holds_where_the_whole_interval_is_on_its_side(tmp_path: Path) -> None:
    for accuracy, verdict in ((60.0, "holds"), (65.9, "cannot be told here"), (80.0, "does not hold")):
        _write(
            tmp_path, "ldpge:figure2", _row("HDS", 60.0, 60.0, data="citeseer"),
            _row("without privacy", accuracy + 1.0, accuracy, epsilon="inf", data="citeseer"),
        )  # fmt: skip
        assert _of(tmp_path, 44).theirs == verdict, accuracy  # a loss below 7 points


def test_the_larger_profile_is_looked_at_first(tmp_path: Path) -> None:
    _write(tmp_path, "ppgnn:table3", _row("PPM", 60.5, 85.3), _row("MB", 54.0, 85.4))
    _write(tmp_path, "ppgnn:table3", _row("PPM", 60.5, 85.3), _row("MB", 60.0, 85.4), profile="paper")
    assert (_of(tmp_path, 3).theirs, _of(tmp_path, 3).profile) == ("does not hold", "paper")


@pytest.mark.parametrize(("peak", "half", "verdict"), [(0.5, 0.5, "holds"), (0.1, 0.5, "does not hold"),
                                                      (0.1, 9.0, "cannot be told here")])  # fmt: skip
def test_a_best_place_is_one_that_can_be_told_from_the_others(
    tmp_path: Path, peak: float, half: float, verdict: str
) -> None:
    rows = [
        _row("PPGNN", 80 if gamma == peak else 70, 70, half, epsilon, f"gamma {gamma:g}")
        for epsilon in ("0.01", "1") for gamma in (0.1, 0.5, 0.9)
    ]  # fmt: skip
    _write(tmp_path, "ppgnn:figure7b", *rows)
    assert _of(tmp_path, 5).theirs == verdict
    assert _of(tmp_path, 5).ours == "cannot be told here"


def test_what_follows_from_the_laws_needs_no_run(tmp_path: Path) -> None:
    found = {number: _of(tmp_path, number).theirs for number in (22, 23, 37, 38, 39)}
    assert found == {22: "does not hold", 23: "does not hold", 37: "holds", 38: "holds", 39: "holds"}


def test_a_mean_over_data_sets_takes_those_that_were_run(tmp_path: Path) -> None:
    pairs = (("cora", 82.0, 80.0, 0.3), ("citeseer", 71.0, 71.0, 0.4))
    rows = [
        _row(name, mean, mean, half, "10", data=data)
        for data, first, second, half in pairs for name, mean in (("FDA", first), ("MI", second))
    ]  # fmt: skip
    _write(tmp_path, "togl:table18", *rows[:2])
    assert _of(tmp_path, 20).theirs_why.startswith("FDA less MI, over cora: +2.0 [+1.6, +2.4]")
    assert _of(tmp_path, 20).theirs == "holds"
    _write(tmp_path, "togl:table18", *rows)
    one = _of(tmp_path, 20)  # sqrt(2 * 0.09 + 2 * 0.16) / 2 = 0.35 to each side
    assert one.theirs_why == "FDA less MI, over cora, citeseer: +1.0 [+0.6, +1.4]; claimed at least 1"
    assert one.theirs == "cannot be told here"


def test_the_page_and_the_file_hold_every_claim(tmp_path: Path) -> None:
    judged = judge(PAPERS, tmp_path)
    page = claims_page(judged)
    assert sum(line.startswith("| ") and line[2].isdigit() for line in page.splitlines()) == 63
    assert [f"| [{one.key}](errata.md#{one.key.lower()}) |" in page for one in ERRATA] == [True] * 43
    rows = list(csv.DictReader(claims_csv(judged).splitlines()))
    assert [row["number"] for row in rows] == [str(number) for number in range(1, 64)]
    assert Interval(mean=1, low=0, high=2, runs=10).known


def test_the_committed_pages_say_what_the_committed_numbers_say() -> None:
    judged = judge(PAPERS, RESULTS)
    assert (ROOT / "docs" / "claims.md").read_text(encoding="utf-8") == claims_page(judged), "run: ldp claims"
    assert (RESULTS / "claims.csv").read_text(encoding="utf-8") == claims_csv(judged), "run: ldp claims"
    assert outdated_papers(PAPERS, RESULTS, ROOT / "docs") == [], "run: ldp results"


def test_readme_counts_what_came_out(tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    assert not outdated_readme(PAPERS, RESULTS, readme), "run: ldp results"
    lines, found = readme_lines(PAPERS, RESULTS), tally(PAPERS, RESULTS)
    assert len(lines) == 5
    assert lines[0].startswith(f"- Of 409 printed numbers {found.beside} stand beside a row")
    assert f"and {found.within} of these lie in it" in " ".join(lines[0].split())
    verdicts, _ = counts(judge(PAPERS, RESULTS))
    assert f"{verdicts['holds']} hold, {verdicts['does not hold']} do not" in lines[1]
    other = tmp_path / "README.md"
    other.write_text(readme.read_text(encoding="utf-8").replace("- Of 409 printed", "- Of 410 printed"), "utf-8")
    assert outdated_readme(PAPERS, RESULTS, other)
    assert write_readme(PAPERS, RESULTS, other).read_bytes() == readme.read_bytes()
    other.write_text("# Another project\n", "utf-8")
    assert not counts_something(other)
    assert outdated_readme(PAPERS, RESULTS, other)


def test_a_deviation_is_taken_back_from_students_interval(tmp_path: Path) -> None:
    runs = [80.0, 80.4, 81.1, 79.7, 80.3]
    half = stats.t.ppf(0.975, 4) * np.std(runs, ddof=1) / math.sqrt(5)
    _write(tmp_path, "togl:table17", _row("SMA", float(np.mean(runs)), 80.0, half=float(half), epsilon="10"))
    one = _of(tmp_path, 15)
    assert f"of about {np.std(runs, ddof=1):.1f}; claimed 0.3" in one.theirs_why
    assert one.theirs == "holds"  # 0.5 is within 0.3 of it


def test_budgets_that_a_small_profile_leaves_out_are_left_out(tmp_path: Path) -> None:
    rows = [
        _row("HDS", 80 + 0.1 * m, 70, 0.1, epsilon, f"m {m}")
        for epsilon in ("1", "3") for m in (1, 10, 50)
    ]  # fmt: skip
    _write(tmp_path, "ldpge:figure3", *rows)
    one = _of(tmp_path, 58)
    assert one.theirs == "does not hold"
    assert "epsilon 1: 4.9; epsilon 3: 4.9" in one.theirs_why


@functools.cache
def _budgets(address: str, dataset: str) -> set[float]:
    """Return the budgets of a target's cells in the quick profile."""
    target = _target(address)
    _, made = target.columns(PROFILES["quick"], protocol_of(target, PAPERS), [dataset])["theirs"]
    return {one.cell.epsilon for one in made}


@pytest.mark.slow
def test_the_quick_profile_has_the_places_that_rules_name() -> None:
    for rule in _rules():
        there = _budgets(rule["target"], rule.get("datasets", [rule.get("dataset")])[0])
        named = {rule[key] for key in ("epsilon", "far", "near") if key in rule}
        assert named <= there, rule["claim"]
        assert there & set(rule.get("epsilons", there)), rule["claim"]
