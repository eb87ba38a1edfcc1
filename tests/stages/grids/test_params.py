"""params.yaml: read once, and refused in one line that names the key."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphldp.errors import OptionError
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params, load, load_settings

ROOT = Path(__file__).parents[3]
ASKED = {"method.teachers": 0.3, "method.first": 1, "method.narrowed": 2}
GRID: dict[str, Any] = {
    "seed": 3,
    "datasets": ["cora", "synthetic"],
    "epsilons": [0.1, 1],
    "seeds": 4,
    "rows": [
        {"name": "base", "method": "base", "mechanism": "mb"},
        {"method": "lpgnn", "mechanism": "pm"},
        {"name": "togl", "method": "togl-fda", "set": {"method.rho": 1}},
        {"method": "frontier", "set": ASKED},
    ],
    "search": {"points": 2, "learning_rate": [0.01, "1e-3"], "steps": [0, 2]},
    "train": {"epochs": 50},
}


def written(folder: Path, grid: dict[str, Any] | str) -> Path:
    path = folder / "params.yaml"
    path.write_text(grid if isinstance(grid, str) else yaml.safe_dump(grid), encoding="utf-8")
    return path


def changed(place: str, value: Any) -> dict[str, Any]:
    """Return the grid with another value at a place such as `rows.0.name`; None takes it out."""
    out: Any = yaml.safe_load(yaml.safe_dump(GRID))
    *path, last = place.split(".")
    part = out
    for key in path:
        part = part[int(key) if isinstance(part, list) else key]
    key = int(last) if isinstance(part, list) else last
    if value is None:
        del part[key]
    else:
        part[key] = value
    return dict(out)


def refused(folder: Path, grid: dict[str, Any] | str) -> str:
    path = written(folder, grid)
    with pytest.raises(OptionError) as error:
        load(path)
    line = str(error.value)
    assert "\n" not in line
    assert line.startswith(f"{path}")
    return line


def test_what_the_file_says(tmp_path: Path) -> None:
    params = load(written(tmp_path, GRID))
    assert (params.seed, params.seeds, params.datasets) == (3, 4, ("cora", "synthetic"))
    assert params.epsilons == (0.1, 1.0)
    assert params.search.learning_rate == (0.01, 0.001)  # YAML 1.1 reads 1e-3 as text
    assert [(row.name, row.mechanism) for row in params.rows] == [
        *(("base", "mb"), ("lpgnn-pm", "pm"), ("togl", "pm"), ("frontier", "privset"))
    ]  # what was left out is the method's own
    assert (params.train.epochs, params.train.hidden) == (50, 16)  # what is not said has its default


def test_cells_are_the_tables_entries(tmp_path: Path) -> None:
    cells = load(written(tmp_path, GRID)).cells()
    togl, asked = {"rho": 1}, {"teachers": 0.3, "first": 1, "narrowed": 2}
    one = [
        Cell(dataset="cora", name="majority", method="majority", mechanism="none", epsilon=0.0),
        Cell(dataset="cora", name="structure", method="structure", mechanism="null", epsilon=0.0),
        Cell(dataset="cora", name="nonpriv", method="nonpriv", mechanism="identity", epsilon=math.inf),
        Cell(dataset="cora", name="base", method="base", mechanism="mb", epsilon=0.1),
        Cell(dataset="cora", name="base", method="base", mechanism="mb", epsilon=1.0),
        Cell(dataset="cora", name="lpgnn-pm", method="lpgnn", mechanism="pm", epsilon=0.1),
        Cell(dataset="cora", name="lpgnn-pm", method="lpgnn", mechanism="pm", epsilon=1.0),
        Cell(dataset="cora", name="togl", method="togl-fda", mechanism="pm", epsilon=0.1, changes=togl),
        Cell(dataset="cora", name="togl", method="togl-fda", mechanism="pm", epsilon=1.0, changes=togl),
        Cell(dataset="cora", name="frontier", method="frontier", mechanism="privset", epsilon=0.1, changes=asked),
        Cell(dataset="cora", name="frontier", method="frontier", mechanism="privset", epsilon=1.0, changes=asked),
    ]
    assert cells == one + [dataclasses.replace(cell, dataset="synthetic") for cell in one]


def test_the_projects_own_file_is_sound_and_says_what_it_changes() -> None:
    """Commands take the file where it is, so that little in it may differ from what they do without it."""
    params, default = load(ROOT / "params.yaml"), Params()
    for name in ("evaluate", "seed"):
        assert getattr(params, name) == getattr(default, name), name
    assert (params.seeds, params.search.points, params.search.seeds) == (5, 4, 1)  # a first look
    assert dataclasses.replace(params.search, points=8, seeds=2) == default.search
    assert dataclasses.replace(params.train, patience=50) == default.train


def test_a_data_set_may_be_learned_from_otherwise(tmp_path: Path) -> None:
    own = {"synthetic": {"train.train_fraction": 0.1, "train.validation_fraction": "half"}}
    params = load(written(tmp_path, {**GRID, "overrides": own}))
    found = {cell.dataset: params.of(cell).train for cell in params.cells()}
    assert (found["cora"].train_fraction, found["cora"].validation) == (0.5, 0.25)
    assert (found["synthetic"].train_fraction, found["synthetic"].validation) == (0.1, 0.05)
    assert all(cell.axes == () for cell in params.cells())  # it is the data set's own, and no axis of the table


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"citeseer": {"train.epochs": 1}}, "overrides.citeseer is no data set here: cora, synthetic"),
        (
            {"cora": {"search.points": 1}},
            "overrides.cora: only places of train differ by data set, got 'search.points'",
        ),
        ({"cora": {"train.epoch": 1}}, "unknown key 'overrides.cora.train.epoch'; did you mean 'epochs'?"),
        ({"cora": 1}, "overrides.cora must be a mapping of train.KEY to values, got 1"),
        ({"cora": {"train.epochs": 0}}, "train.epochs must be at least 1, got 0"),
    ],
)
def test_an_override_that_cannot_be(value: Any, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, {**GRID, "overrides": value})


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("epsilon", 1, "unknown key 'epsilon'; did you mean 'epsilons'? Valid: seed, seeds, search"),
        ("axes", {"m": [1]}, "unknown key 'axes'; did you mean 'vary'? Valid: seed, seeds, search, train, title"),
        ("further", {}, "unknown key 'further': say labels and epsilon_labels, links and epsilon_links"),
        ("references", [], "unknown key 'references'"),  # floor and ceiling stand in every table
        ("search.point", 1, "unknown key 'search.point'; did you mean 'points'?"),
        ("train.learning_rate", 1, "unknown key 'train.learning_rate'"),
        ("rows.0.mechanisms", "mb", "unknown key 'rows[0].mechanisms'; did you mean 'mechanism'?"),
        ("rows.1.method", None, "rows[1] lacks method"),
        ("seeds", "four", "seeds must be a whole number, got 'four'"),
        ("seeds", 2.5, "seeds must be a whole number, got 2.5"),
        ("seeds", True, "seeds must be a whole number, got True"),
        ("epsilons", 1, "epsilons must be a list, got 1"),
        ("epsilons", ["small"], "epsilons[0] must be a number, got 'small'"),
        ("epsilons", [1, math.nan], "epsilons[1] must be a number, got nan"),
        ("epsilons", [True], "epsilons[0] must be a number, got True"),
        ("datasets", "cora", "datasets must be a list, got 'cora'"),
        ("datasets", [1], "datasets[0] must be text, got 1"),
        ("train", [1], "train must be a mapping, got [1]"),
        ("train.standardize", "yes", "train.standardize must be true or false, got 'yes'"),
        ("rows", {"base": "mb"}, "rows must be a list"),
        ("rows.0", "base", "rows[0] must be a mapping, got 'base'"),
    ],
)
def test_a_wrong_key_or_kind(place: str, value: Any, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, changed(place, value))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("seeds", 0, "seeds must be at least 1, got 0"),
        ("seed", -1, "seed must be at least 0, got -1"),
        ("epsilons", [1, 0], "epsilons must be finite and > 0, got 0.0; floor and ceiling have 0 and inf"),
        ("epsilons", [-1], "epsilons must be finite and > 0, got -1.0"),
        ("epsilons", ["inf"], "epsilons must be finite and > 0, got inf"),
        ("epsilons", [1, "1.0"], "epsilons must be distinct, got [1.0, 1.0]"),
        ("datasets", ["cora", "cora"], "datasets must be distinct"),
        ("search.points", 0, "search.points must be at least 1, got 0"),
        ("search.seeds", 0, "search.seeds must be at least 1, got 0"),
        ("search.learning_rate", [0.0, 1], "search.learning_rate must be finite and > 0, got 0.0"),
        ("search.weight_decay", [-0.1], "search.weight_decay must be finite and >= 0, got -0.1"),
        ("search.dropout", [1], "search.dropout must be in [0, 1), got 1.0"),
        ("search.steps", [-1], "search.steps must be >= 0, got -1"),
        ("search.dropout", [], "search.dropout must be distinct values, at least one, got []"),
        ("search.strategy", "gird", "unknown search.strategy 'gird'; did you mean 'grid'?"),
        ("search.space", "mine", "unknown search.space 'mine'"),
        ("search.strategy", "halving", "unknown search.strategy 'halving'"),
        ("search.eta", 3, "unknown"),
        ("search.options", {"m": 1}, "search.options.m must be a list of at least one value, got 1"),
        ("search.options", {"m": []}, "search.options.m must be a list of at least one value, got []"),
        ("search.options", {"m": [1, 1]}, "search.options.m must be distinct values, got [1, 1]"),
        ("search.options", ["m"], "search.options must be a mapping of option names to lists of values, got ['m']"),
        ("search.options", {"method.rh": [1]}, "search.options has 'method.rh', which no row of the table has"),
        ("search.steps", [2, 2], "search.steps must be distinct values, at least one, got [2, 2]"),
        ("train.hidden", 0, "train.hidden must be at least 1, got 0"),
        (
            "train.activation",
            "gelu",
            "train.activation must be one of selu, relu, tanh, or empty for the backbone's own",
        ),
        ("train.epochs", 0, "train.epochs must be at least 1, got 0"),
        ("train.patience", 0, "train.patience must be at least 1, got 0"),
        ("train.train_fraction", 0, "train.train_fraction must be > 0, got 0.0"),
        ("train.validation_fraction", 0.5, "must leave nodes to test on, so their sum is < 1; got 0.5 and 0.5"),
        ("train.validation_fraction", "haf", "train.validation_fraction must be a number, or half, got 'haf'"),
        ("train.train_fraction", "half", "train.train_fraction must be a number, got 'half'"),
        ("train.split", "inductve", "unknown train.split 'inductve'; did you mean 'inductive'?"),
        ("evaluate", {"confidence": 95}, "evaluate.confidence must be in (0, 1), got 95.0"),
        ("evaluate", {"resamples": 99}, "unknown key 'evaluate.resamples'"),
    ],
)
def test_a_number_out_of_range(place: str, value: Any, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, changed(place, value))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("rows.0.name", "lpgnn-pm", "two rows have the name 'lpgnn-pm'; each needs a name of its own"),
        ("rows.0.name", "nonpriv", "two rows have the name 'nonpriv'"),
        ("rows.0.name", "majority", "two rows have the name 'majority'"),
        (
            "rows.0.name",
            "../base",
            "rows[0].name becomes a file's name: letters, digits, '.', '_' or '-', got '../base'",
        ),
        ("rows.0.name", "my base", "rows[0].name becomes a file's name"),
        ("rows.0.method", "bas", "unknown method 'bas'; did you mean 'base'?"),
        ("rows.0.method", "majority", "rows[0]: majority is a row of every table by itself; leave it out"),
        ("rows.0.mechanism", "mbb", "rows[0].mechanism 'mbb' is not one of"),
        ("rows.0.epsilon", 1, "unknown key 'rows[0].epsilon'"),
        ("rows.2.set", {"method.rho": 2}, "is from 0 to 1, got 2"),
        ("rows.2.set", {"method.m_from": "half"}, "m_from must be one of round, total; got 'half'"),
        ("rows.2.set", {"method.score_by": "fad"}, "unknown score_by 'fad'; did you mean 'fda'?"),
        ("rows.3.set", {"method.teachers": 1}, "teachers is a share above 0 and below 1, got 1"),
        ("rows.3.set", {"method.gate": 3}, "gate"),
        ("train.task", "regression", "row togl: method 'togl-fda' is directed by the classes of training nodes"),
        ("search.points", 9, "search.points is 9, but base has only 8 points to try; add values or lower it"),
    ],
)
def test_a_row_that_cannot_be(place: str, value: Any, words: str, tmp_path: Path) -> None:
    grid = changed(place, value)
    if place == "search.points":
        grid["search"] |= {"weight_decay": [0.1, 0.2], "dropout": [0.1, 0.2]}
    assert words in refused(tmp_path, grid)


def test_a_search_of_one_point_has_only_one_point(tmp_path: Path) -> None:
    grid = changed("search.points", 2)
    grid["search"] |= {"learning_rate": [0.1], "weight_decay": [0.1], "dropout": [0.1], "steps": [2]}
    assert "has only 1 point to try; add values or lower it" in refused(tmp_path, grid)


def test_null_is_a_name_and_has_to_be_quoted(tmp_path: Path) -> None:
    words = refused(tmp_path, {**GRID, "rows": [{"method": "base", "mechanism": None}]})
    assert 'rows[0].mechanism must be text, got None; quote it ("null" is a name here)' in words


def test_a_key_that_stands_twice(tmp_path: Path) -> None:
    assert "is not YAML: the key 'seeds' stands twice" in refused(tmp_path, "seeds: 3\nseed: 1\nseeds: 10\n")
    words = refused(tmp_path, "search:\n  points: 1\n  points: 2\n")
    assert "the key 'points' stands twice" in words
    assert "line 2" in words


def test_what_is_no_yaml(tmp_path: Path) -> None:
    assert "is not YAML" in refused(tmp_path, "seeds: [1, 2\nx: 1")
    assert "is not YAML" in refused(tmp_path, "seeds: !!python/object:os.system x")
    assert "the file must be a mapping, and it is not" in refused(tmp_path, "- a\n- b\n")
    for text in ("node,x\n1,98765\n", "node,x\n1,98765: 1: 2\n", "a: *98765\n", "x: !98765 y\n", "x: '98765\n"):
        assert "98765" not in refused(tmp_path, text)
    path = tmp_path / "params.yaml"
    path.write_bytes(b"seeds: \xff\xfe")
    with pytest.raises(OptionError, match="is not YAML"):
        load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="does not exist; run where it is, or name the file with --params"):
        load(tmp_path / "params.yaml")


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load(written(tmp_path, "# nothing\n")) == Params()


def test_a_cell_needs_no_sound_rows(tmp_path: Path) -> None:
    path = written(tmp_path, changed("rows.0.method", "nosuch"))
    with pytest.raises(OptionError, match="nosuch"):
        load(path)
    assert load_settings(path).search == load(written(tmp_path, GRID)).search
    with pytest.raises(OptionError, match="unknown key 'seedz'"):
        load_settings(written(tmp_path, {**GRID, "seedz": 1}))
