"""The search alone as an artifact: found again, gone on with, and never twice."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from cell_factory import NAME, files, run, small_params, store

from graphldp import methods
from graphldp.errors import OptionError
from graphldp.experiment import cell as learning
from graphldp.experiment.options import SearchParams
from graphldp.experiment.search_space import SearchedRow
from graphldp.stages import search as trials
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.search import ranking, search


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path)
    return tmp_path


def params_of(**changes: Any) -> Params:
    params = small_params(epochs=18)
    options = {"train.hidden": (3, 5)}
    search = {"points": 4, "options": options, **changes}
    return dataclasses.replace(params, search=dataclasses.replace(params.search, **search))


def searched(data: Path, params: Params | None = None, **options: Any) -> Path:
    return search(
        Cell(dataset=NAME, method="lpgnn", epsilon=2.0),
        data=data,
        params=params or params_of(),
        device="cpu",
        **options,
    )


def test_a_search_that_is_there_is_not_done_again(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = searched(data)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(learning, "fit", lambda *_, **__: pytest.fail("trained"))
        assert searched(data) == path
        with pytest.raises(pytest.fail.Exception):  # another search is
            searched(data, params_of(points=3))
        patch.setattr(trials, "code_hash", lambda kind: "other code")
        with pytest.raises(pytest.fail.Exception):
            searched(data)
    assert path.read_bytes() == before
    path.unlink()
    assert searched(data).read_bytes() == before


@pytest.mark.parametrize("call", [1, 8, 15, 22, 30])
def test_stopped_it_goes_on_and_ends_as_if_it_had_not(call: int, data: Path, tmp_path: Path) -> None:
    whole = searched(data, output=tmp_path / "whole.parquet").read_bytes()
    left = [call]

    def press(done: int, total: int, text: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        searched(data, output=tmp_path / "part.parquet", progress=press)
    assert not (tmp_path / "part.parquet").exists()
    assert [name for name in files(tmp_path) if name.startswith(".part.resume")]
    assert searched(data, output=tmp_path / "part.parquet").read_bytes() == whole
    assert not [name for name in files(tmp_path) if "resume" in name]


def test_trials_are_ranked_by_their_mean_loss(data: Path) -> None:
    path = searched(data)
    found = ranking(path)
    losses = [one["validation_loss"] for one in found]
    assert losses == sorted(losses)
    assert len(found) == 4
    assert found[0]["train.hidden"] == read_meta(path, "x")["chosen_point"]["options"]["train.hidden"]


def compared(data: Path, **options: Any) -> Path:
    """Search a method that chooses among learners, and compares them on the final seeds."""
    params = options.pop("params", None) or small_params(epochs=12, seeds=4)
    return search(
        Cell(dataset=NAME, method="structure", epsilon=0.0), data=data, params=params, device="cpu", **options
    )


@pytest.mark.parametrize("root", range(3))
def test_learners_are_compared_as_run_compares_them(
    root: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = dataclasses.replace(small_params(epochs=12, seeds=4), seed=root)
    (whole,) = run(NAME, "structure", None, 0.0, data=data, params=params, device="cpu", references=False)
    monkeypatch.setattr(learning, "final_scores", lambda *_: pytest.fail("opened test labels"))
    calls: list[tuple[int, int]] = []
    path = compared(data, params=params, progress=lambda done, total, _: calls.append((done, total)))
    meta = read_meta(path, "x")
    assert meta["chosen_point"] == whole.chosen
    assert meta["seeds"] == 4
    rows = read_table(path, "x").to_pylist()
    assert {row["seed"] for row in rows if row["role"] == "playoff"} == {0, 1, 2, 3}
    assert not [name for name in rows[0] if name.startswith("test_accuracy")]
    assert {row["role"] for row in rows} == {"search", "playoff"}
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1]


@pytest.mark.slow
def test_a_choice_by_loss_alone_would_be_another_one(data: Path) -> None:
    """What the test above compares is not the same anyway."""
    chosen = [
        (read_meta(path, "x")["chosen_point"], ranking(path)[0])
        for path in (
            compared(data, params=dataclasses.replace(small_params(epochs=12, seeds=4), seed=root)) for root in range(3)
        )
    ]
    assert any(point["options"]["learner"] != best["learner"] for point, best in chosen)


def test_more_final_seeds_are_another_search_where_they_choose(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(data)
    searched(data)
    monkeypatch.setattr(learning, "fit", lambda *_, **__: pytest.fail("trained"))
    searched(data, dataclasses.replace(params_of(), seeds=9))
    with pytest.raises(pytest.fail.Exception):
        compared(data, params=small_params(epochs=12, seeds=5))


@pytest.mark.parametrize("place", ["1 of", "3 of"])
def test_a_comparison_is_gone_on_with(place: str, data: Path, tmp_path: Path) -> None:
    whole = compared(data, output=tmp_path / "whole.parquet").read_bytes()

    def press(done: int, total: int, text: str) -> None:
        if f", {place} " in text and "learners" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compared(data, output=tmp_path / "part.parquet", progress=press)
    assert compared(data, output=tmp_path / "part.parquet").read_bytes() == whole


# papers' grids --------------------------------------------------------------------------------------------------------

WITH_GRID = [name for name in methods.names() if methods.method(name).grid]


def test_papers_that_name_a_grid() -> None:
    assert WITH_GRID == ["ppgnn", "upgnet-nh", "upgnet-hn", "ldpge", "togl-fda", "togl-sma"]


@pytest.mark.parametrize("name", WITH_GRID)
def test_a_papers_grid_is_searched_where_it_is_asked_for(name: str) -> None:
    recipe = methods.method(name)
    mechanism = "ppm-safe" if name == "ppgnn" else recipe.mechanism
    row = SearchedRow(recipe=recipe, mechanism=mechanism)
    search = SearchParams(points=8, space="paper")
    axes, left_out = row.axes(search)
    assert not left_out, "each of a paper's axes is an option that the method has"
    grid = dict(recipe.grid)
    points = row.plan(search, 0)
    assert len(points) == 8
    for point in points:
        for axis, values in grid.items():
            found = dict(point.options)[axis] if axis in axes else getattr(point, axis)
            assert found in values
    assert row.plan(SearchParams(points=8), 0) != points


def test_rows_without_a_papers_grid_search_the_shared_space() -> None:
    row = SearchedRow(recipe=methods.method("structure"), mechanism="null")
    assert row.plan(SearchParams(space="paper"), 0) == row.plan(SearchParams(), 0)


def test_stored_depths_win_over_a_papers() -> None:
    row = SearchedRow(recipe=methods.method("upgnet-hn"), mechanism="mb", depths=(3,))
    assert {point.steps for point in row.plan(SearchParams(points=8, space="paper"), 0)} == {3}


@pytest.mark.slow
def test_papers_spaces_have_the_same_budget(data: Path) -> None:
    params = small_params(seeds=2)
    params = dataclasses.replace(params, search=dataclasses.replace(params.search, space="paper", points=4))
    rows = run(NAME, "upgnet-hn", None, 2.0, data=data, params=params)
    assert {row.search["points"] for row in rows if row.search} == {4}
    own = next(row for row in rows if row.name == "upgnet-hn")
    assert "method.after" in own.chosen["options"]
    assert all("method.after" not in row.chosen.get("options", {}) for row in rows if row is not own)


def test_an_m_beyond_the_graphs_features_is_one_line(data: Path) -> None:
    params = small_params(points=1)
    params = dataclasses.replace(params, search=dataclasses.replace(params.search, space="paper", points=7))
    with pytest.raises(OptionError, match="m must be"):
        run(NAME, "ldpge", None, 2.0, data=data, params=params, references=False)
