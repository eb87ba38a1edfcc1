"""Tables of tasks other than the default one: their headline, which end is the good one, and a file for each task."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from runs_factory import grid, write_runs

from graphldp.errors import ArtifactError
from graphldp.experiment.options import TrainParams
from graphldp.stages.evaluate import measure, write
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.findings import find
from graphldp.stages.pages.tables import Result, metrics, read_csv

PAPERS = Path(__file__).parents[2] / "papers"
MAE = {
    "majority": 0.6,
    "structure": 0.55,
    "nonpriv": 0.4,
    "base": 0.58,
    "lpgnn": 0.45,
    "lpgnn-pm": 0.55,
    "lpgnn-lp": 0.5,
}
AUC = {
    "majority": 0.5,
    "structure": 0.85,
    "nonpriv": 0.92,
    "base": 0.8,
    "lpgnn": 0.86,
    "lpgnn-pm": 0.85,
    "lpgnn-lp": 0.84,
}


def scattered(mean: float, seeds: int) -> list[Any]:
    return [None, None, *(mean + 0.001 * (seed - (seeds - 1) / 2) for seed in range(seeds))]


def numbers(data: Path, cell: Cell, seeds: int) -> None:
    mean = MAE[cell.name]
    columns = {
        "test_mae": scattered(mean, seeds),
        "test_rmse": scattered(1.2 * mean, seeds),
        "test_r2": scattered(1 - mean, seeds),
    }
    write_runs(data, cell, seeds=seeds, columns=columns, meta={"task": "regression"})


def links(data: Path, cell: Cell, seeds: int, task: str = "link-prediction") -> None:
    values = scattered(AUC[cell.name], seeds)
    columns = {"test_auc": values, "test_average_precision": values}
    columns |= {f"{part}_edges": [100] * len(values) for part in ("train", "validation", "test")}
    path = data / "runs" / "cora" / task / cell.name / f"eps={cell.epsilon}.parquet"
    write_runs(data, cell, seeds=seeds, columns=columns, meta={"task": task}, path=path)


def regression(folder: Path, seeds: int = 10) -> Result:
    params = dataclasses.replace(grid(epsilons=(1.0,), seeds=seeds), train=TrainParams(task="regression"))
    for cell in params.cells():
        numbers(folder, cell, seeds)
    return measure(params, folder, PAPERS)


def test_less_is_better_where_it_is(tmp_path: Path) -> None:
    (section,) = regression(tmp_path).sections
    rows = {row.name: row for row in section.rows}
    assert rows["lpgnn"].score.mean == pytest.approx(0.45)
    for name in ("lpgnn", "base", "nonpriv"):
        gain, gap = rows[name].gain, rows[name].gap
        assert gain is not None
        assert gain.mean == pytest.approx(MAE["structure"] - MAE[name])
        assert gap is None or gap.mean == pytest.approx(MAE["nonpriv"] - MAE[name])
    assert {name: one.mean for name, one in rows["base"].others.items()} == pytest.approx(
        {"rmse": 1.2 * MAE["base"], "r2": 1 - MAE["base"]}
    )
    finding = find(section)
    assert finding.best is rows["lpgnn"]
    assert (finding.above, finding.same, finding.below) == (2, 1, 1)
    text = " ".join(finding.sentences)
    assert "The graph and the numbers to learn alone, without a single feature of anybody, reach MAE 0.550" in text
    assert "That is all that features can win here: +0.150" in text
    assert "lpgnn at epsilon 1 with MAE 0.450, +0.100" in text


def test_every_text_is_about_the_headline(tmp_path: Path) -> None:
    result = regression(tmp_path)
    names = [str(path.relative_to(tmp_path / "out")) for path in write(result, tmp_path / "out")]
    assert names == [
        *("tables/main.csv", "tables/main.md", "tables/main.tex", "plots/mae.csv"),
        *("figures/mae-cora-regression.svg", "report.html", "tables/made.json", "metrics.json"),
    ]
    rows = read_csv((tmp_path / "out/tables/main.csv").read_text(encoding="utf-8"))
    (row,) = [row for row in rows if row["row"] == "lpgnn"]
    assert (row["mae"], row["gain"], row["rmse"], row["r2"]) == ("0.4500", "0.1000", "0.5400", "0.5500")
    assert not any("accuracy" in name for name in row)
    table = (tmp_path / "out/tables/main.md").read_text(encoding="utf-8")
    assert table.startswith("# MAE, gain over the floor, gap to the ceiling\n\nMAE (less is better), mean over runs")
    assert "0.450 [" in table
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "MAE (less is better)" in page
    assert "The number to learn is the l2 norm of the features of a person: private data" in page
    assert "ccuracy" not in (tmp_path / "out/figures/mae-cora-regression.svg").read_text(encoding="utf-8")
    assert metrics(result)["cora"]["task=regression"]["lpgnn"]["1"] == {"mae": 0.45, "gain": 0.1}


def both(folder: Path) -> tuple[Params, list[Cell]]:
    """Runs of two tasks on one data set, as an experiment over `train.task` has them."""
    params = grid(epsilons=(1.0,))
    plain = params.cells()
    axis = (("train.task", "link-prediction"),)
    other = [dataclasses.replace(cell, places=dict(axis), axes=axis, setting=axis) for cell in plain]
    for cell, twin in zip(plain, other, strict=True):
        write_runs(folder, cell, seeds=params.seeds)
        links(folder, twin, params.seeds)
    return params, [*plain, *other]


def test_two_tasks_are_two_tables(tmp_path: Path) -> None:
    params, cells = both(tmp_path)
    result = measure(params, tmp_path, PAPERS, cells=cells)
    assert [section.title for section in result.sections] == ["Cora", "Cora, link prediction"]
    assert list(result.tables) == ["main", "link-prediction"]
    assert [section.slug for section in result.sections] == ["cora", "cora-link-prediction"]
    write(result, tmp_path / "out")
    first, second = (
        read_csv((tmp_path / f"out/tables/{name}.csv").read_text(encoding="utf-8"))
        for name in ("main", "link-prediction")
    )
    assert [row["row"] for row in first] == [row["row"] for row in second]
    assert "train.task" not in first[0] | second[0]
    assert {row["row"]: float(row["auc"]) for row in second} == pytest.approx({name: 100 * AUC[name] for name in AUC})
    # What LDP-GE prints for its pipeline stands beside nothing else.
    assert {row["paper_auc"] for row in second} == {""}
    assert "100 edges to train, 100 to validate, 100 to test" in result.sections[1].protocol


def test_runs_of_another_task_do_not_stand_in(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,))
    for cell in params.cells():
        write_runs(tmp_path, cell, seeds=params.seeds)
    asked = dataclasses.replace(params, train=TrainParams(task="link-prediction"))
    with pytest.raises(ArtifactError, match="no runs of link prediction, majority") as caught:
        measure(asked, tmp_path, PAPERS)
    assert "--task link-prediction" in str(caught.value)
