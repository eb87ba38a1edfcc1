"""A grid in one process: the pipeline's numbers, made once, and everything that is said of them."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cell_factory import NAME, accuracies, files, learn, small_params, store

from graphldp.errors import OptionError
from graphldp.methods import Role
from graphldp.stages import experiment as stage
from graphldp.stages.experiment import GridPlan, cell_path, home, plan, results_of, run_cells, write_results
from graphldp.stages.files import cells
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.files.runs import runs_schema
from graphldp.stages.grids.params import Params, load
from graphldp.stages.pages.figures import budget_figure, pictures
from graphldp.stages.pages.findings import find
from graphldp.stages.pages.tables import read_csv

PARAMS = small_params(seeds=2)
GRID: dict[str, Any] = {
    "title": "A small grid",
    "about": "What the tests look at.",
    "datasets": [NAME],
    "epsilons": [1, 3],
    "seeds": PARAMS.seeds,
    "rows": [
        {"name": "lpgnn", "method": "lpgnn", "mechanism": "mb"},
        {"name": "togl", "method": "togl-fda", "mechanism": "pm", "set": {"method.rho": 1.0}},
    ],
    "search": {
        "points": 3,
        "seeds": 2,
        "learning_rate": [0.05, 0.02],
        "weight_decay": [0.001],
        "dropout": [0.25, 0.5],
        "steps": [0, 2],
    },
    "train": {"hidden": 4, "epochs": 15, "patience": 8},
    "evaluate": {"confidence": 0.9},
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Made:
    """The grid's cells, the folder that they stand in, and what was said while they were made."""

    what: GridPlan
    data: Path
    calls: list[tuple[int, int, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The grid, made once: to be looked at and not to be changed."""
    folder, calls = tmp_path_factory.mktemp("made"), []
    store(folder)
    what = plan(grid(folder), folder)
    assert not any(what.done)
    run_cells(what, folder, "cpu", progress=lambda *call: calls.append(call))
    return Made(what, folder, calls)


@pytest.fixture
def again(made: Made, tmp_path: Path) -> Path:
    """A copy of the grid's folder, whose cells need not be made again."""
    return shutil.copytree(made.data, tmp_path / "again")


def grid(folder: Path, **changes: Any) -> Params:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**GRID, **changes}, sort_keys=False), encoding="utf-8")
    return load(path)


def whole(experiment: Params, data: Path, *only: str) -> GridPlan:
    what = plan(experiment, data, only)
    run_cells(what, data, "cpu")
    return what


def by_name(what: GridPlan) -> dict[str, Path]:
    return {f"{cell.name} {cell.epsilon:g}": path for cell, path in zip(what.cells, what.paths, strict=True)}


@pytest.mark.slow
def test_the_runs_are_those_of_the_pipeline(again: Path, data: Path) -> None:
    rows = [GRID["rows"][0], {"name": "ppgnn", "method": "ppgnn", "mechanism": "ppm-safe"}]
    found = by_name(whole(grid(again, rows=rows, epsilons=[1]), again))
    for name, method, mechanism, epsilon in (
        ("structure 0", "structure", "null", 0.0),
        ("nonpriv inf", "nonpriv", "identity", np.inf),
        ("lpgnn 1", "lpgnn", "mb", 1.0),
        ("ppgnn 1", "ppgnn", "ppm-safe", 1.0),
    ):
        theirs = learn(data, PARAMS, method, mechanism, epsilon, name=NAME)  # in a folder that knows no cell
        np.testing.assert_array_equal(accuracies(found[name]), accuracies(theirs), err_msg=name)
        ours, other = (read_meta(path, "") for path in (found[name], theirs))
        assert set(other) - set(ours) == {"calibrated"}  # there is no such file
        for key in set(other) - {"calibrated", "arm", "record"}:
            assert ours[key] == other[key], key
        assert set(ours) - set(other) == {"axes", "changes", "experiment", "fingerprint"}


@pytest.mark.slow
def test_the_schema_is_that_of_training(made: Made) -> None:
    import pyarrow.parquet as pq

    for path in made.what.paths:
        assert pq.read_schema(path).remove_metadata().equals(runs_schema("node-classification"))
        facts = json.loads(path.with_suffix(".time.json").read_text(encoding="utf-8"))
        assert facts["seconds"] > 0


@pytest.mark.slow
def test_two_rounds_are_in_the_ledger(made: Made) -> None:
    meta = read_meta(by_name(made.what)["togl 3"], "")
    assert [spend["epsilon"] for spend in meta["ledger"]] == [1.5, 1.5]
    assert len({spend["source"] for spend in meta["ledger"]}) == 2
    assert (meta["rounds"]["rho"], meta["changes"], meta["epsilon_exact"]) == (1.0, {"rho": 1.0}, pytest.approx(3.0))
    assert meta["selection"]["score_by"] == "fda"


@pytest.mark.slow
def test_what_is_there_is_not_made_again(again: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    what = plan(grid(again), again)
    assert all(what.done)
    assert not what.todo
    before = {path: path.read_bytes() for path in what.paths}
    monkeypatch.setattr(cells, "learn_cell", None)  # whoever computes anything fails
    run_cells(what, again, "cpu")
    assert {path: path.read_bytes() for path in what.paths} == before


@pytest.mark.slow
def test_every_part_of_what_decides_a_number_makes_it_anew(again: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def todo(**changes: Any) -> list[str]:
        return [f"{cell.name} {cell.epsilon:g}" for cell in plan(grid(again, **changes), again).todo]

    everything = todo(seed=1)
    assert len(everything) == len(grid(again).cells())
    assert todo(train={**GRID["train"], "epochs": 16}) == everything
    assert todo(search={**GRID["search"], "points": 4}) == everything[1:]  # the commonest class searches nothing
    assert todo(epsilons=[1, 3, 4]) == ["lpgnn 4", "togl 4"]
    assert todo(rows=[{**GRID["rows"][0], "options": {"m": 2}}, GRID["rows"][1]]) == ["lpgnn 1", "lpgnn 3"]
    assert todo(rows=[GRID["rows"][0], {**GRID["rows"][1], "set": {"method.rho": 0.5}}]) == ["togl 1", "togl 3"]
    assert todo(title="Other words", evaluate={"confidence": 0.8}) == []
    store(again, words=5.0)
    assert todo() == everything
    store(again)
    assert todo() == []
    monkeypatch.setattr(cells, "code_hash", lambda kind: "another version")
    assert todo() == everything


@pytest.mark.slow
def test_a_damaged_cell_is_made_again(again: Path) -> None:
    experiment = grid(again, epsilons=[1])
    what = plan(experiment, again)
    before = what.paths[-1].read_bytes()
    what.paths[-1].write_bytes(before[: len(before) // 2])
    assert plan(experiment, again).todo == what.cells[-1:]
    whole(experiment, again)
    assert what.paths[-1].read_bytes() == before


@pytest.mark.slow
def test_stopped_it_goes_on_with_the_cell_that_it_was_in(data: Path, made: Made) -> None:
    experiment = grid(data, epsilons=[1])

    def stop(done: int, total: int, text: str) -> None:
        if text.startswith("3 of 5"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cells(plan(experiment, data), data, "cpu", progress=stop)
    left = plan(experiment, data)
    assert left.done == (False, True, True, False, False)  # the floor, and the ceiling, which takes longest
    assert not [name for name in files(home(data, experiment)) if "partial" in name]
    run_cells(left, data, "cpu")
    never = by_name(made.what)
    for name, path in by_name(left).items():
        np.testing.assert_array_equal(accuracies(path), accuracies(never[name]), err_msg=name)


@pytest.mark.slow
def test_progress_goes_once_from_nothing_to_all(made: Made) -> None:
    calls = made.calls
    assert len({total for _, total, _ in calls}) == 1
    counts = [done for done, _, _ in calls]
    assert counts == sorted(counts)
    assert counts[-1] == calls[-1][1]
    assert calls[-1][2] == f"7 of 7: {NAME}, majority, epsilon 0"  # the least work last


def test_a_part_keeps_its_floor_and_ceiling(data: Path) -> None:
    experiment = grid(data, vary={"method.rho": [0.0, 1.0]}, rows=[{**GRID["rows"][0], "vary": []}, TOGL])

    def left(*only: str) -> list[str]:
        return [stage.cell_title(cell) for cell in plan(experiment, data, only).cells]

    ends = [f"{NAME}, majority, epsilon 0", f"{NAME}, structure, epsilon 0", f"{NAME}, nonpriv, epsilon inf"]
    assert left("row=lpgnn", "epsilon=1") == [*ends, f"{NAME}, lpgnn, epsilon 1"]
    assert left("row=togl", "rho=1", "epsilon=1,3") == [
        *ends,
        f"{NAME}, togl, rho = 1, epsilon 1",
        f"{NAME}, togl, rho = 1, epsilon 3",
    ]
    assert left("dataset=synthetic") == left()
    for only, words in (
        (("rows=lpgnn",), "unknown key of --only 'rows'; did you mean 'row'?"),
        (("row=togll",), "unknown row 'togll'; did you mean 'togl'?"),
        (("epsilon=2",), "unknown epsilon '2'. Valid: 1, 3"),
        (("arm",), "--only takes KEY=VALUE, got 'arm'"),
        (("row=lpgnn", "row=togl"), "leaves no row"),
    ):
        with pytest.raises(OptionError) as error:
            plan(experiment, data, only)
        assert words in str(error.value)


# Where it does not matter how well anything is learned.
FEW: dict[str, Any] = {
    "search": {**GRID["search"], "points": 1, "seeds": 1},
    "train": {**GRID["train"], "epochs": 5},
}
TOGL = {"name": "togl", "method": "togl-fda", "mechanism": "pm"}


@pytest.mark.slow
def test_everything_that_is_said_of_them(made: Made, tmp_path: Path) -> None:
    what = made.what
    found = results_of(what, made.data, tmp_path / "none")
    written = write_results(what, found, tmp_path / "results")
    folder = tmp_path / "results" / "small"
    assert {str(path.relative_to(folder)) for path in written} == set(files(folder))
    rows = read_csv((folder / "tables" / "main.csv").read_text(encoding="utf-8"))
    assert len(rows) == len(what.cells)
    for cell, path in zip(what.cells, what.paths, strict=True):
        (row,) = [one for one in rows if (one["row"], float(one["epsilon"])) == (cell.name, cell.epsilon)]
        assert float(row["accuracy"]) == pytest.approx(100 * accuracies(path).mean(), abs=0.006)
    text = (folder / "tables" / "main.md").read_text(encoding="utf-8")
    assert text.startswith("# A small grid\n\nWhat the tests look at.\n")
    took = json.loads((folder / "time.json").read_text(encoding="utf-8"))
    assert took["cells"] == 7
    assert took["seconds"] > 0
    assert f"7 cells took {took['seconds']:.1f} seconds in all" in text
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>A small grid</h1>" in page
    assert "ldp experiment small" in page
    assert "dvc repro" not in page


@pytest.mark.slow
def test_an_axis_is_a_column_and_has_its_own_floor(data: Path, tmp_path: Path) -> None:
    vary = {"train.train_fraction": [0.2, 0.5], "method.rho": [0.0, 1.0]}
    rows = [{**GRID["rows"][0], "vary": []}, TOGL]
    experiment = grid(data, vary=vary, rows=rows, epsilons=[3], **FEW)
    what = whole(experiment, data)
    assert len(set(what.paths)) == len(what.cells) == 2 * (3 + 1 + 2)
    found = results_of(what, data, tmp_path / "none")
    assert [section.title for section in found.sections] == [
        "Synthetic, 20 % of the labels",
        "Synthetic, 50 % of the labels",
    ]
    assert found.sections[0].sizes < found.sections[1].sizes
    write_results(what, found, tmp_path / "results")
    rows = read_csv((tmp_path / "results" / "small" / "tables" / "main.csv").read_text(encoding="utf-8"))
    assert [row["train.train_fraction"] for row in rows] == ["0.2"] * 6 + ["0.5"] * 6
    assert [row["method.rho"] for row in rows if row["row"] == "togl"] == ["0", "1"] * 2
    assert {row["method.rho"] for row in rows if row["row"] != "togl"} == {""}
    floors = [row["accuracy"] for row in rows if row["row"] == "structure"]
    assert floors[0] != floors[1]
    metrics = json.loads((tmp_path / "results" / "small" / "metrics.json").read_text(encoding="utf-8"))
    here = metrics[NAME]["train.train_fraction=0.2"]
    assert set(here) == {"majority", "structure", "nonpriv", "lpgnn", "method.rho=0", "method.rho=1"}
    assert here["method.rho=0"]["togl"]["3"]["accuracy"] == pytest.approx(float(rows[3]["accuracy"]), abs=0.01)

    (picture,) = pictures(found)  # both tables in one, along what floor and ceiling share
    assert (picture.axis, picture.values, picture.slug) == ("train.train_fraction", ("0.2", "0.5"), NAME)
    assert {name: [place for place, _ in points] for name, points in picture.series().items()} == {
        "togl, rho = 0": ["0.2", "0.5"],
        "togl, rho = 1": ["0.2", "0.5"],
        "lpgnn": ["0.2", "0.5"],
    }
    assert [f"{row.score.mean:.2f}" for _, row in picture.reference(Role.FLOOR)] == floors
    page = (tmp_path / "results" / "small" / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 2  # and, of two axes, a map in front
    assert page.count('<section class="finding"') == 3


@pytest.mark.slow
def test_a_methods_axis_is_the_foot_of_the_figure(again: Path, tmp_path: Path) -> None:
    rows = [{**GRID["rows"][0], "vary": []}, TOGL]
    what = whole(grid(again, vary={"method.rho": [1.0, 0.0]}, rows=rows), again)
    found = results_of(what, again, tmp_path / "none")
    (picture,) = pictures(found)
    points = picture.series()
    assert set(points) == {"lpgnn, epsilon 1", "lpgnn, epsilon 3", "togl, epsilon 1", "togl, epsilon 3"}
    assert [place for place, _ in points["togl, epsilon 1"]] == ["1", "0"]  # in the file's order
    first, second = points["lpgnn, epsilon 1"]  # without the axis: the same everywhere
    assert first[0] != second[0]
    assert first[1] is second[1]
    assert not picture.shared
    drawing = budget_figure(picture, width=760)
    assert "test accuracy, against rho on Synthetic" in drawing
    assert ">rho</text>" in drawing
    assert f"togl, epsilon 1 {points['togl, epsilon 1'][0][1].score.mean:.1f} at rho 1" in drawing
    best = find(found.sections[0]).best
    assert best is not None
    assert found.sections[0].called(best) in " ".join(find(found.sections[0]).sentences)


@pytest.mark.slow
def test_a_data_sets_options_are_made_where_they_are_asked_for(tmp_path: Path) -> None:
    rows = [GRID["rows"][0]]
    ask: dict[str, Any] = {"rows": rows, "epsilons": [1], "data": {"nodes": 90, "degree": 6.0}, **FEW}
    experiment = grid(tmp_path, vary={"data.features": [0.1, 0.9]}, **ask)
    what = whole(experiment, tmp_path)
    assert len(what.cells) == 8
    names = {path.parent.parent.name for path in what.paths}
    assert names == {f"{NAME}-nodes90-degree6-features{value}" for value in ("0.1", "0.9")}
    assert len({read_meta(path, "")["input"] for path in what.paths}) == 2
    assert all(plan(experiment, tmp_path).done)


def test_what_a_mechanism_does_not_have_shows_before_anything_is_trained(data: Path) -> None:
    rows = [GRID["rows"][0], {"name": "wrong", "method": "lpgnn", "mechanism": "pm", "options": {"mm": 3}}]
    experiment = grid(data, rows=rows)
    with pytest.raises(OptionError, match=f"small: {NAME}, wrong, epsilon 1: .*mm"):
        run_cells(plan(experiment, data), data, "cpu")
    assert not home(data, experiment).exists()


def test_the_file_of_a_cell_says_where_it_stands(data: Path) -> None:
    experiment = grid(data, vary={"m": [2]}, rows=[GRID["rows"][0]], epsilons=[0.1])
    assert cell_path(Path("x"), experiment.cells()[-1]) == Path(f"x/runs/{NAME}/lpgnn/mechanism.m=2,eps=0.1.parquet")


def test_progress_has_what_another_process_has_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_LOOK_SECONDS", -1.0)
    mine, theirs, outdated = (tmp_path / name for name in ("mine", "theirs", "outdated"))
    outdated.touch()
    os.utime(outdated, (1, 1))
    tally = stage._Tally({mine: 1, theirs: 20, outdated: 300})
    assert (tally.done(), tally.total) == (0, 321)  # a file of before is not of this run
    theirs.touch()
    os.utime(theirs, (2**32, 2**32))
    assert tally.done() == 20
    for _ in range(2):
        tally.finish(mine)
        tally.finish(theirs)
    assert tally.done() == 21


def test_the_floor_is_first_and_what_chooses_among_its_learners_next(tmp_path: Path) -> None:
    """And before it is there, last: another process is about to find out what these would."""
    rows = [{"name": name, "method": name} for name in ("frontier", "lpgnn")]
    left = list(grid(tmp_path, rows=rows, datasets=["cora", "citeseer"], epsilons=[1]).cells())

    def turns() -> list[str]:
        order = stage._in_turn(left, lambda cell: {"frontier": 2, "nonpriv": 9}.get(cell.method, 8))
        return [cell.method for cell in order if cell.dataset == "cora"]

    assert turns() == ["structure", "majority", "lpgnn", "nonpriv", "frontier"]
    left.remove(next(cell for cell in left if cell.method == "structure"))
    assert turns() == ["nonpriv", "frontier", "majority", "lpgnn"]
    left.remove(next(cell for cell in left if cell.method == "structure"))
    assert stage._in_turn(left, lambda cell: 1)[0].dataset == "cora"


@pytest.mark.parametrize(("split", "learners"), [("random", 8), ("inductive", 2)])
def test_a_row_weighs_by_its_features_and_the_floor_by_the_learners_that_it_has(
    split: str, learners: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ceiling's have features; what chooses among the floor's learners finds these there."""
    grid_ = grid(data, rows=[*GRID["rows"], {"name": "frontier", "method": "frontier", "mechanism": "privset"}])
    train = replace(grid_.train, split=split)
    sizes = stage.read_graph_meta(stage.graph_dir(data, NAME))

    def weights(features: int) -> dict[str, float]:
        monkeypatch.setattr(stage, "read_graph_meta", lambda _: replace(sizes, d=features))
        one = sizes.n + sizes.edges
        return {cell.name: stage._weight(data, cell, train) / one for cell in grid_.cells()}

    few, many = weights(100), weights(4700)
    assert few["structure"] == many["structure"] == learners
    assert few["frontier"] == many["frontier"] == 1
    assert many["lpgnn"] / few["lpgnn"] == pytest.approx(9.2, rel=0.05)
    assert many["nonpriv"] == pytest.approx((learners + 1) * many["lpgnn"], rel=0.15)  # those, and `features` alone
