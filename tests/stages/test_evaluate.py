from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from runs_factory import MEANS, grid, write_grid, write_runs

from graphldp.errors import ArtifactError
from graphldp.evaluation import Confidence, mean_interval, paired_difference
from graphldp.stages.evaluate import evaluate, measure
from graphldp.stages.files.artifacts import read_table
from graphldp.stages.files.paths import runs_path
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.findings import find
from graphldp.stages.pages.tables import Result, TableRow

PAPERS = Path(__file__).parents[2] / "papers"
ONE = grid(epsilons=(1.0,))


def _cell(params: Params, name: str) -> Cell:
    return next(cell for cell in params.cells() if cell.name == name)


def _row(result: Result, name: str, epsilon: float | None = None) -> TableRow:
    return next(row for row in result.rows if row.name == name and epsilon in (None, row.epsilon))


def _accuracy(data: Path, cell: Cell) -> np.ndarray:
    table = read_table(runs_path(data, cell.dataset, cell.name, cell.epsilon), "x").to_pydict()
    pairs = zip(table["role"], table["test_accuracy"], strict=True)
    return np.array([value for role, value in pairs if role == "final"])


def test_rows_stand_between_floor_and_ceiling_by_budget(tmp_path: Path) -> None:
    params = grid(epsilons=(3.0, 0.1))
    write_grid(tmp_path, params)
    result = measure(params, tmp_path, PAPERS)
    names = [(row.name, row.epsilon) for row in result.rows]
    rows = ["base", "lpgnn", "lpgnn-pm", "lpgnn-lp"]
    assert names == [
        ("majority", 0.0),
        ("structure", 0.0),
        *((name, 0.1) for name in rows),
        *((name, 3.0) for name in rows),
        ("nonpriv", math.inf),
    ]


def test_numbers_are_those_of_the_paired_interval(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    row = _row(measure(ONE, tmp_path, PAPERS), "lpgnn")
    ours = _accuracy(tmp_path, _cell(ONE, "lpgnn"))
    floor = _accuracy(tmp_path, _cell(ONE, "structure"))
    ceiling = _accuracy(tmp_path, _cell(ONE, "nonpriv"))
    options = Confidence()
    assert row.score == mean_interval(ours, options).scaled(100.0)
    assert row.gain == paired_difference(ours, floor, options).scaled(100.0)
    assert row.gap == paired_difference(ours, ceiling, options).scaled(100.0)
    assert row.score.mean == pytest.approx(100 * ours.mean())


def test_every_row_says_what_was_spent_and_on_what(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    result = measure(ONE, tmp_path, PAPERS)
    assert {row.name: row.spent for row in result.rows} == {
        "majority": "nothing",
        "structure": "nothing",
        "base": "features 1.0",
        "lpgnn": "features 1.0",
        "lpgnn-pm": "features 1.0",
        "lpgnn-lp": "features 1.0",
        "nonpriv": "features, unprotected",
    }
    assert _row(result, "structure").gain is None
    assert _row(result, "nonpriv").gap is None
    assert _row(result, "majority").steps == ()
    assert _row(result, "lpgnn").steps == (16,)


def test_where_users_spend_unlike_budgets_their_mean_and_the_largest_stand_beside_the_nominal_one(
    tmp_path: Path,
) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "lpgnn"), seeds=10, meta={"epsilon_mean": 3.6, "epsilon_max": 8.5})
    row = _row(measure(ONE, tmp_path, PAPERS), "lpgnn")
    assert (row.epsilon, row.mean_epsilon, row.max_epsilon) == (1.0, 3.6, 8.5)


def test_runs_are_chosen_by_what_they_say_not_by_their_names(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    lpgnn, base = _cell(ONE, "lpgnn"), _cell(ONE, "base")
    first, second = (runs_path(tmp_path, "cora", cell.name, 1.0) for cell in (lpgnn, base))
    swap = tmp_path / "swap"
    first.rename(swap)
    second.rename(first)
    swap.rename(second)
    result = measure(ONE, tmp_path, PAPERS)
    assert _row(result, "lpgnn").score.mean == pytest.approx(100 * MEANS["lpgnn"], abs=1.0)
    assert _row(result, "base").score.mean == pytest.approx(100 * MEANS["base"], abs=1.0)


def test_a_missing_cell_names_itself_and_its_command(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    runs_path(tmp_path, "cora", "lpgnn-pm", 1.0).unlink()
    with pytest.raises(ArtifactError) as caught:
        measure(ONE, tmp_path, PAPERS)
    message = str(caught.value)
    assert "lpgnn-pm (lpgnn, pm) on cora at epsilon 1" in message
    assert "ldp train --dataset cora --method lpgnn --mechanism pm --epsilon 1`" in message
    assert "\n" not in message


def test_another_epsilon_does_not_stand_in(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    with pytest.raises(ArtifactError, match="at epsilon 2"):
        measure(grid(epsilons=(1.0, 2.0)), tmp_path, PAPERS)


def test_two_files_for_one_cell_are_refused(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "lpgnn"), seeds=10, path=tmp_path / "runs" / "cora" / "old" / "copy.parquet")
    with pytest.raises(ArtifactError, match=r"both hold lpgnn on cora at epsilon 1; delete"):
        measure(ONE, tmp_path, PAPERS)


def test_too_few_runs_are_refused(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "base"), seeds=9)
    with pytest.raises(ArtifactError, match="9 final runs, the grid asks for 10"):
        measure(ONE, tmp_path, PAPERS)


def test_other_splits_are_refused(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "base"), seeds=10, columns={"test_nodes": [678] * 12})
    with pytest.raises(ArtifactError, match="other splits"):
        measure(ONE, tmp_path, PAPERS)


@pytest.mark.parametrize(("key", "value"), [("root", 1), ("input", "sha256:other"), ("train", {"hidden": 32})])
def test_another_seed_graph_or_fraction_is_refused(tmp_path: Path, key: str, value: object) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "base"), seeds=10, meta={key: value})
    with pytest.raises(ArtifactError, match=rf"other splits .*differ in {key}"):
        measure(ONE, tmp_path, PAPERS)


def test_another_search_budget_is_refused(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "lpgnn"), seeds=10, meta={"search": {"points": 48, "seeds": 2}})
    with pytest.raises(ArtifactError, match="one search budget"):
        measure(ONE, tmp_path, PAPERS)


@pytest.mark.parametrize("bad", [None, math.nan, 84.2, -0.1])
def test_a_final_run_without_a_sound_accuracy_is_refused(tmp_path: Path, bad: float | None) -> None:
    write_grid(tmp_path, ONE)
    values = [None, None, *[0.8] * 9, bad]
    write_runs(tmp_path, _cell(ONE, "base"), seeds=10, columns={"test_accuracy": values})
    with pytest.raises(ArtifactError, match="without a test accuracy"):
        measure(ONE, tmp_path, PAPERS)


def test_a_foreign_file_among_the_runs_is_refused(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "base"), seeds=10, meta={"kind": "reports"})
    with pytest.raises(ArtifactError, match="of kind 'reports'"):
        measure(ONE, tmp_path, PAPERS)


def test_same_runs_same_bytes_and_nothing_half_written(tmp_path: Path) -> None:
    write_grid(tmp_path / "data", ONE)
    evaluate(ONE, tmp_path / "data", tmp_path / "one", PAPERS)
    evaluate(ONE, tmp_path / "data", tmp_path / "two", PAPERS)
    names = sorted(str(path.relative_to(tmp_path / "one")) for path in (tmp_path / "one").rglob("*.*"))
    assert names == [
        "figures/accuracy-cora.svg",
        "metrics.json",
        "plots/accuracy.csv",
        "report.html",
        "tables/made.json",
        "tables/main.csv",
        "tables/main.md",
        "tables/main.tex",
    ]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_papers_numbers_stand_where_they_may(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    result = measure(ONE, tmp_path, PAPERS)
    printed = {row.name: [paper.text for paper in row.papers] for row in result.rows if row.papers}
    assert printed == {"base": ["78.9", "78.9 ± 1.2"], "lpgnn": ["78.9 ± 1.2"], "lpgnn-lp": ["39.7 ± 3.0"]}
    assert result.notes == ()


def test_without_papers_the_table_says_so(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    result = measure(ONE, tmp_path, tmp_path / "nowhere")
    assert all(row.papers == () for row in result.rows)
    assert "No folder 'nowhere' of papers was found" in result.notes[0]


def test_progress_counts_every_cell(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE)
    seen: list[tuple[int, int, str]] = []
    measure(ONE, tmp_path, PAPERS, lambda *call: seen.append(call))
    total = len(ONE.cells())
    assert [(done, whole) for done, whole, _ in seen] == [(done, total) for done in range(1, total + 1)]
    assert any(text == "lpgnn at epsilon 1" for _, _, text in seen)


@pytest.mark.parametrize(
    ("claim", "keeps"),
    [
        ({"claimed": 1.0, "exact": 1.0, "text": ""}, True),
        ({"claimed": 1.0, "exact": 2.0, "text": "twice"}, False),
        ({"claimed": 1.0, "exact": 1.0, "keeps": False, "text": "a coordinate leaks"}, False),
        ({"claimed": "inf", "exact": "inf", "text": ""}, True),
        (None, True),
    ],
)
def test_a_broken_claim_marks_its_row(tmp_path: Path, claim: dict[str, object] | None, keeps: bool) -> None:
    write_grid(tmp_path, ONE)
    write_runs(tmp_path, _cell(ONE, "lpgnn"), seeds=10, meta={"mechanism_claim": claim})
    row = _row(measure(ONE, tmp_path, PAPERS), "lpgnn")
    assert row.claim.keeps is keeps
    assert row.label == ("lpgnn" if keeps else "lpgnn †")
    if claim and not keeps:
        assert row.claim.text == claim["text"]


def _finding(tmp_path: Path, means: dict[str, float], seeds: int = 10) -> str:
    params = grid(epsilons=(1.0,), seeds=seeds)
    write_grid(tmp_path, params, means)
    found = find(measure(params, tmp_path, PAPERS).sections[0])
    return "\n".join([found.headline, *found.sentences])


LOW = {"base": 0.80, "lpgnn": 0.82, "lpgnn-pm": 0.82, "lpgnn-lp": 0.81}


def test_finding_when_nothing_beats_the_floor(tmp_path: Path) -> None:
    text = _finding(tmp_path, LOW)
    assert text.startswith("On Cora no private method does measurably better than using nobody’s features at all.")
    assert "measurably below it" in text
    assert "Of 4 private results, none is above the floor and 4 are below it." in text


def test_a_table_with_a_setting_reads_as_a_sentence(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE, LOW)
    section = dataclasses.replace(measure(ONE, tmp_path, PAPERS).sections[0], labelled="5 % of the labels")
    assert find(section).headline.startswith("On Cora, 5 % of the labels, no private method does")


def test_finding_when_one_beats_the_floor(tmp_path: Path) -> None:
    text = _finding(tmp_path, LOW | {"lpgnn": 0.857})
    assert text.startswith("On Cora only 1 of 4 private results is measurably better")
    assert "The best private result is lpgnn at epsilon 1 with 85." in text
    assert "of what the features are worth" in text


def test_finding_names_no_row_as_the_best_that_spends_more_than_it_says(tmp_path: Path) -> None:
    write_grid(tmp_path, ONE, LOW)
    broken = {"mechanism_claim": {"claimed": 1.0, "exact": 2.0, "text": "twice"}}
    write_runs(tmp_path, _cell(ONE, "lpgnn"), seeds=10, mean=0.857, meta=broken)
    found = find(measure(ONE, tmp_path, PAPERS).sections[0])
    assert found.best is not None
    assert found.best.name != "lpgnn"
    assert any("Rows marked † use mb" in sentence for sentence in found.sentences)


def test_finding_when_all_beat_the_floor(tmp_path: Path) -> None:
    text = _finding(tmp_path, dict.fromkeys(LOW, 0.857))
    assert text.startswith("On Cora every private method does measurably better")
    assert "Below means" not in text


def test_finding_when_the_features_themselves_are_worth_nothing(tmp_path: Path) -> None:
    assert "is not measurable: there is nothing to win." in _finding(tmp_path, LOW | {"nonpriv": 0.846})
    few = dataclasses.replace(ONE, seeds=3)
    write_grid(tmp_path / "few", few, LOW | {"nonpriv": 0.9})
    said = find(measure(few, tmp_path / "few", PAPERS).sections[0]).sentences[0]
    assert "of too few runs to say whether there is anything to win." in said
    against = _finding(tmp_path, LOW | {"nonpriv": 0.70})
    assert (
        "is against the features: what had learned more from them on the validation part does less than the" in against
    )


def test_finding_warns_of_a_floor_that_learned_nothing(tmp_path: Path) -> None:
    text = _finding(tmp_path, LOW | {"structure": 0.302})
    assert text.startswith("On Cora every private method does measurably better than using nobody’s features at all,")
    assert "but that floor is no better than guessing the commonest class." in text
    assert "search it longer before reading a gain" in text


def test_finding_does_not_warn_of_a_floor_that_learned(tmp_path: Path) -> None:
    assert "guessing" not in _finding(tmp_path, LOW | {"lpgnn": 0.857})


def test_finding_with_one_run_claims_nothing(tmp_path: Path) -> None:
    text = _finding(tmp_path, {"lpgnn": 0.95}, seeds=1)
    assert text.startswith("On Cora there are fewer than 5 runs per result, too few to tell any two of them apart.")
    assert "measurably" not in text
    assert "nan" not in text


def test_one_run_writes_everything_without_an_interval(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,), seeds=1)
    write_grid(tmp_path / "data", params)
    evaluate(params, tmp_path / "data", tmp_path / "results", PAPERS)
    for path in (tmp_path / "results").rglob("*.*"):
        assert "nan" not in path.read_text(encoding="utf-8").lower(), path
    json.loads((tmp_path / "results" / "metrics.json").read_text(encoding="utf-8"))
