"""An experiment's file: what it means, and what is refused in one line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphldp.errors import OptionError
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params, experiments, find, load

ROOT = Path(__file__).parents[2]
GRID: dict[str, Any] = {
    "title": "Two rows",
    "datasets": ["cora"],
    "epsilons": [1, 3],
    "rows": [
        {"name": "lpgnn", "method": "lpgnn", "mechanism": "mb"},
        {"name": "togl", "method": "togl-fda", "mechanism": "pm"},
    ],
    "search": {"points": 2},
}


def loaded(folder: Path, **changes: Any) -> Params:
    path = folder / "two.yaml"
    path.write_text(yaml.safe_dump({**GRID, **changes}, sort_keys=False), encoding="utf-8")
    return load(path)


def refused(folder: Path, **changes: Any) -> str:
    with pytest.raises(OptionError) as error:
        loaded(folder, **changes)
    line = str(error.value)
    assert "\n" not in line
    assert line.startswith(str(folder / "two.yaml"))
    return line


def of(cells: list[Cell], name: str) -> list[Cell]:
    return [cell for cell in cells if cell.name == name]


def test_floor_and_ceiling_are_there_by_themselves(tmp_path: Path) -> None:
    cells = loaded(tmp_path).cells()
    assert [(cell.name, cell.epsilon) for cell in cells] == [
        *(("majority", 0.0), ("structure", 0.0), ("nonpriv", math.inf)),
        *(("lpgnn", 1.0), ("lpgnn", 3.0), ("togl", 1.0), ("togl", 3.0)),
    ]
    assert all(cell.axes == cell.setting == () for cell in cells)


def test_an_arm_searches_further_axes_of_its_own(tmp_path: Path) -> None:
    rows = [{**GRID["rows"][0], "search": {"steps": [1, 2], "options": {"method.after": [0.1, 0.3]}}}, GRID["rows"][1]]
    experiment = loaded(tmp_path, rows=rows, epsilons=[1])
    found = {cell.name: experiment.of(cell).search for cell in experiment.cells()}
    assert found["lpgnn"].options == {"method.after": (0.1, 0.3)}
    assert found["lpgnn"].steps == (1, 2)
    assert found["togl"].options == found["structure"].options == {}
    for name in ("strategy", "space"):
        bad = [{**GRID["rows"][0], "search": {name: "grid"}}]
        assert "every row has the same budget of search" in refused(tmp_path, rows=bad)


def test_an_axis_of_the_training_has_a_floor_at_every_value(tmp_path: Path) -> None:
    experiment = loaded(tmp_path, vary={"train.train_fraction": [0.05, "0.5"]})
    cells = experiment.cells()
    for name in ("majority", "structure", "nonpriv"):
        assert [cell.setting for cell in of(cells, name)] == [
            (("train.train_fraction", 0.05),),
            (("train.train_fraction", 0.5),),
        ]
    assert len(of(cells, "lpgnn")) == 4
    assert [experiment.of(cell).train.train_fraction for cell in of(cells, "structure")] == [0.05, 0.5]
    assert experiment.of(cells[0]).train.epochs == experiment.train.epochs


def test_an_axis_of_a_method_leaves_floor_and_ceiling_alone(tmp_path: Path) -> None:
    rows = [GRID["rows"][1], {**GRID["rows"][0], "vary": []}]
    cells = loaded(tmp_path, rows=rows, vary={"method.rho": [0.0, 1.0]}, epsilons=[1]).cells()
    assert len(of(cells, "structure")) == len(of(cells, "lpgnn")) == 1
    assert [(cell.changes, cell.axes, cell.setting) for cell in of(cells, "togl")] == [
        ({"rho": value}, (("method.rho", value),), ()) for value in (0.0, 1.0)
    ]


def test_axes_are_tried_in_every_combination(tmp_path: Path) -> None:
    rows = [{**GRID["rows"][0], "options": {"fill": "zero"}, "search": {"dropout": [0.5]}}]
    experiment = loaded(tmp_path, rows=rows, vary={"m": [1, 2], "steps": [2, 8]}, epsilons=[1])
    cells = of(experiment.cells(), "lpgnn")
    assert [(cell.options["m"], experiment.of(cell).search.steps) for cell in cells] == [
        (1, (2,)),
        (1, (8,)),
        (2, (2,)),
        (2, (8,)),
    ]
    assert cells[0].axes == (("mechanism.m", 1), ("search.steps", 2))
    assert all(cell.options["fill"] == "zero" for cell in cells)
    assert all(experiment.of(cell).search.dropout == (0.5,) for cell in cells)


def test_a_data_sets_options_make_another_graph(tmp_path: Path) -> None:
    ask: dict[str, Any] = {"vary": {"data.features": [0.1, 0.5]}, "data": {"nodes": 200}, "datasets": ["synthetic"]}
    cells = loaded(tmp_path, **ask).cells()
    assert {cell.graph for cell in cells} == {"synthetic-nodes200-features0.1", "synthetic-nodes200-features0.5"}
    assert {cell.dataset for cell in cells} == {"synthetic"}
    assert {cell.graph for cell in loaded(tmp_path).cells()} == {"cora"}


def test_an_option_of_one_data_set_leaves_the_others_alone(tmp_path: Path) -> None:
    ask: dict[str, Any] = {"datasets": ["cora", "synthetic"], "data": {"synthetic.nodes": 200, "synthetic.words": 5}}
    cells = loaded(tmp_path, **ask).cells()
    assert {cell.graph for cell in cells} == {"cora", "synthetic-nodes200-words5"}
    assert {tuple(cell.data.items()) for cell in cells} == {(), (("nodes", 200), ("words", 5))}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"title": " "}, "title must say in one line what the experiment is"),
        ({"name": "x"}, "unknown key 'name': a grid's name is its file's; leave it out"),
        ({"mechanisms": ["mb"]}, "unknown key 'mechanisms'"),
        ({"abuot": "x"}, "unknown key 'abuot'; did you mean 'about'?"),
        ({"vary": {"epsilon": [1]}}, "vary.epsilon: budgets stand under `epsilons`"),
        ({"vary": {"evaluate.confidence": [1]}}, "vary.evaluate.confidence is no place: train.KEY, data.KEY"),
        ({"vary": {"train.fraction": [1]}}, "unknown key 'train.fraction'; did you mean 'train_fraction'?"),
        ({"vary": {"train.train_fraction": ["x"]}}, "train.train_fraction must be a number, got 'x'"),
        ({"vary": {"train.train_fraction": [0.5, 0.9]}}, "their sum is < 1; got 0.9 and 0.25"),
        ({"data": {"synthetic.nodes": 9}}, "data.synthetic.nodes is of no data set here: cora"),
        ({"data": {"nodes": [9]}}, "data.nodes must be a number, a word, or true or false, got [9]"),
        (
            {"data": {"cora.nodes": 9}, "vary": {"data.nodes": [9, 8]}},
            "data.cora.nodes is given, and it is an axis; leave one out",
        ),
        ({"vary": {"k": []}}, "vary.k must be a list of at least one value, got []"),
        ({"vary": {"k": [1, 1]}}, "vary.k must be distinct values, once; got [1, 1]"),
        ({"vary": {"k": [[1]]}}, "vary.k must hold numbers, words or true and false, got [1]"),
        ({"datasets": []}, "datasets must be a list of at least one, got none"),
        ({"epsilons": []}, "epsilons must be a list of at least one budget for these rows, got none"),
        ({"vary": {"method.rho": [0.5]}}, "method 'lpgnn' has no option 'rho'"),
        ({"vary": {"method.rho": [2.0]}, "rows": GRID["rows"][1:]}, "is from 0 to 1, got 2.0"),
        ({"rows": [{**GRID["rows"][0], "vary": ["rho"]}]}, "rows[0].vary: mechanism.rho is no axis; vary has none"),
        ({"rows": [{**GRID["rows"][0], "set": {"rho": 1}}]}, "what changes a method is written method.KEY, got 'rho'"),
        ({"rows": [{**GRID["rows"][0], "search": {"points": 1}}]}, "every row has the same budget of search"),
        ({"rows": [{**GRID["rows"][0], "search": {"stesp": [1]}}]}, "unknown key 'search.stesp'; did you mean"),
        ({"rows": [{**GRID["rows"][0], "options": {"m": 1}}], "vary": {"m": [1]}}, "m is given, and it is an axis"),
        ({"search": {"points": 9}, "vary": {"steps": [1]}}, "search.points is 9, but lpgnn has only 8 points to try"),
    ],
)
def test_what_cannot_be(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, **changes)


def test_an_experiment_is_found_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="holds no experiment 'two', nor any other"):
        find("two", tmp_path)
    loaded(tmp_path)
    assert experiments(tmp_path) == ["two"]
    assert find("two", tmp_path) == tmp_path / "two.yaml"
    assert find("a/b.yaml", tmp_path) == Path("a/b.yaml")
    with pytest.raises(OptionError, match="unknown experiment 'tow'; did you mean 'two'"):
        find("tow", tmp_path)


@pytest.mark.parametrize("name", experiments(ROOT / "experiments"))
def test_the_projects_own_files_are_sound(name: str) -> None:
    experiment = load(ROOT / "experiments" / f"{name}.yaml")
    assert experiment.about.strip(), "an experiment says what it shows"
    assert experiment.rows
