"""params.yaml: read once, and refused in one line that names the key."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphldp.errors import OptionError
from graphldp.stages.params import Cell, Params, load, load_settings

ROOT = Path(__file__).parents[2]
SURVEY = {"teachers": 0.3, "first": 1, "narrowed": 2, "features": 50, "last": 5}
GRID: dict[str, Any] = {
    "seed": 3,
    "datasets": ["cora", "synthetic"],
    "epsilons": [0.1, 1],
    "seeds": 4,
    "mechanisms": ["mb", "pm"],
    "arms": [
        {"name": "base", "method": "base", "mechanism": "mb"},
        {"name": "lpgnn-pm", "method": "lpgnn", "mechanism": "pm"},
    ],
    "rounds": [
        {
            **{"name": "togl", "method": "togl-fda", "mechanism": "pm", "first": 0.5, "m_from": "round"},
            **{"score_by": "fda", "score_steps": 2, "rho": 1, "reuse": False},
        }
    ],
    "surveys": [{"name": "frontier", "method": "frontier", "mechanism": "privset", **SURVEY}],
    "references": [
        {"name": "structure", "method": "structure", "mechanism": "null", "epsilon": 0},
        {"name": "nonpriv", "method": "nonpriv", "mechanism": "identity", "epsilon": "inf"},
    ],
    "search": {"points": 2, "learning_rate": [0.01, "1e-3"], "steps": [0, 2]},
    "train": {"epochs": 50},
}


def written(folder: Path, grid: dict[str, Any] | str) -> Path:
    path = folder / "params.yaml"
    path.write_text(grid if isinstance(grid, str) else yaml.safe_dump(grid), encoding="utf-8")
    return path


def changed(place: str, value: Any) -> dict[str, Any]:
    """Return the grid with another value at a place such as `arms.0.name`; None takes it out."""
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
    assert params.references[1].epsilon == math.inf
    assert (params.train.epochs, params.train.hidden) == (50, 16)  # what is not said has its default


def test_cells_are_the_tables_entries(tmp_path: Path) -> None:
    cells = load(written(tmp_path, GRID)).cells()
    togl = {"score_by": "fda", "rho": 1.0, "reuse": False, "first": 0.5, "m_from": "round", "score_steps": 2}
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
        Cell(dataset="cora", name="frontier", method="frontier", mechanism="privset", epsilon=0.1, changes=SURVEY),
        Cell(dataset="cora", name="frontier", method="frontier", mechanism="privset", epsilon=1.0, changes=SURVEY),
    ]
    assert cells == one + [dataclasses.replace(cell, dataset="synthetic") for cell in one]


def test_the_projects_own_file_is_sound_and_is_the_default() -> None:
    params, default = load(ROOT / "params.yaml"), Params()
    for name in ("search", "train", "evaluate", "seed", "seeds"):
        assert getattr(params, name) == getattr(default, name), name  # so that commands work alike without the file


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("epsilon", 1, "unknown key 'epsilon'; did you mean 'epsilons'? Valid: seed, seeds, search"),
        ("search.point", 1, "unknown key 'search.point'; did you mean 'points'?"),
        ("train.learning_rate", 1, "unknown key 'train.learning_rate'"),
        ("arms.0.mechanisms", "mb", "unknown key 'arms[0].mechanisms'; did you mean 'mechanism'?"),
        ("arms.1.method", None, "arms[1] lacks method"),
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
        ("arms", {"base": "mb"}, "arms must be a list"),
        ("arms.0", "base", "arms[0] must be a mapping, got 'base'"),
    ],
)
def test_a_wrong_key_or_kind(place: str, value: Any, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, changed(place, value))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("seeds", 0, "seeds must be at least 1, got 0"),
        ("seed", -1, "seed must be at least 0, got -1"),
        ("epsilons", [1, 0], "epsilons must be finite and > 0, got 0.0; 0 and inf belong to the references"),
        ("epsilons", [-1], "epsilons must be finite and > 0, got -1.0"),
        ("epsilons", ["inf"], "epsilons must be finite and > 0, got inf"),
        ("epsilons", [1, "1.0"], "epsilons must be distinct, got [1.0, 1.0]"),
        ("datasets", ["cora", "cora"], "datasets must be distinct"),
        ("mechanisms", ["mb", "pm", "mb"], "mechanisms must be distinct"),
        ("search.points", 0, "search.points must be at least 1, got 0"),
        ("search.seeds", 0, "search.seeds must be at least 1, got 0"),
        ("search.learning_rate", [0.0, 1], "search.learning_rate must be finite and > 0, got 0.0"),
        ("search.weight_decay", [-0.1], "search.weight_decay must be finite and >= 0, got -0.1"),
        ("search.dropout", [1], "search.dropout must be in [0, 1), got 1.0"),
        ("search.steps", [-1], "search.steps must be >= 0, got -1"),
        ("search.dropout", [], "search.dropout must be distinct values, at least one, got []"),
        ("search.strategy", "gird", "unknown search.strategy 'gird'; did you mean 'grid'?"),
        ("search.space", "mine", "unknown search.space 'mine'"),
        ("search.eta", 1, "search.eta must be at least 2, got 1"),
        ("search.rungs", 0, "search.rungs must be at least 1, got 0"),
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
        ("evaluate", {"resamples": 99}, "evaluate.resamples must be at least 100, got 99"),
    ],
)
def test_a_number_out_of_range(place: str, value: Any, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, changed(place, value))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("arms.0.name", "lpgnn-pm", "two arms have the name 'lpgnn-pm'; each row needs a name of its own"),
        ("arms.0.name", "nonpriv", "two arms have the name 'nonpriv'"),
        ("arms.0.name", "majority", "two arms have the name 'majority'"),
        (
            "arms.0.name",
            "../base",
            "arms[0].name becomes a file's name: letters, digits, '.', '_' or '-', got '../base'",
        ),
        ("arms.0.name", "my base", "arms[0].name becomes a file's name"),
        ("arms.0.name", "", "arms[0].name becomes a file's name"),
        ("arms.0.method", "bas", "unknown method 'bas'; did you mean 'base'?"),
        ("arms.0.method", "majority", "arms[0]: majority is a row of every table by itself; leave it out"),
        ("arms.0.mechanism", "mbb", "arms[0].mechanism 'mbb' is not one of"),
        ("arms.0.mechanism", "lp", "arms[0].mechanism 'lp' must also stand under mechanisms, which are perturbed"),
        ("arms.0.epsilon", 1, "arms[0].epsilon: the arms share `epsilons`; a fixed budget belongs under references"),
        ("references.0.epsilon", None, "references[0] needs its epsilon (0 for the floor, inf for the ceiling)"),
        ("references.0.mechanism", "mb", "method 'structure' means mechanism null, got 'mb'"),
        ("search.points", 9, "search.points is 9, but base has only 8 points to try; add values or lower it"),
    ],
)
def test_a_row_that_cannot_be(place: str, value: Any, words: str, tmp_path: Path) -> None:
    grid = changed(place, value)
    if place == "search.points":
        grid["search"] |= {"weight_decay": [0.1, 0.2], "dropout": [0.1, 0.2]}
    assert words in refused(tmp_path, grid)


TWICE = "people of togl-sma report in two rounds, so its rows stand under rounds, not under"
IN_TURN = "people of votes are asked in turn, so its rows stand under surveys, not under"


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("arms.0.method", "togl-sma", f"arms[0]: {TWICE} arms"),
        (
            "references.0",
            {"name": "x", "method": "togl-sma", "mechanism": "pm", "epsilon": 1},
            f"references[0]: {TWICE}",
        ),
        ("surveys.0", {"name": "x", "method": "togl-sma", "mechanism": "pm", **SURVEY}, f"surveys[0]: {TWICE} surveys"),
        ("arms.0.method", "votes", f"arms[0]: {IN_TURN} arms"),
        ("rounds.0.method", "votes", f"rounds[0]: {IN_TURN} rounds"),
        ("rounds.0.method", "lpgnn", "rounds[0]: people of lpgnn report once, so its rows stand under arms, not under"),
        ("surveys.0.method", "base", "surveys[0]: people of base report once, so its rows stand under arms, not under"),
        ("rounds.0.rho", None, "rounds[0] lacks rho"),
        ("rounds.0.rho", 2, "rounds[0]: rho (the ranked features' share of the second round) is from 0 to 1, got 2.0"),
        ("rounds.0.first", "half", "rounds[0].first must be a number, got 'half'"),
        ("rounds.0.reuse", "no", "rounds[0].reuse must be true or false, got 'no'"),
        ("rounds.0.m_from", "half", "rounds[0]: m_from must be one of round, total; got 'half'"),
        ("rounds.0.score_by", "fad", "rounds[0]: unknown score_by 'fad'; did you mean 'fda'?"),
        ("rounds.0.set", {"method.rho": 1}, "unknown key 'rounds[0].set'"),
        ("surveys.0.teachers", None, "surveys[0] lacks teachers"),
        ("surveys.0.teachers", 1, "surveys[0]: teachers is a share above 0 and below 1, got 1.0"),
        ("surveys.0.narrowed", 2.5, "surveys[0].narrowed must be a whole number, got 2.5"),
        ("surveys.0.last", 0, "surveys[0]: last must be a whole number of at least 1, got 0"),
        ("surveys.0.gate", 3, "unknown key 'surveys[0].gate'"),
        ("surveys.0.epsilon", 1, "unknown key 'surveys[0].epsilon'"),
        ("surveys.0.name", "togl", "two arms have the name 'togl'"),
        (
            "train.task",
            "regression",
            "rounds[0]: method 'togl-fda' is directed by the classes of training nodes",
        ),
    ],
)
def test_a_row_in_the_wrong_list_or_with_a_wrong_part(place: str, value: Any, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, changed(place, value))


def test_rows_need_no_mechanism_that_is_perturbed_for_the_arms(tmp_path: Path) -> None:
    """Rounds and surveys ask people themselves: neither pm nor privset has to be perturbed for them."""
    grid = changed("arms.1.mechanism", "mb") | {"mechanisms": ["mb"]}
    assert [arm.mechanism for arm in load(written(tmp_path, grid)).rows().values()] == ["mb", "mb", "pm", "privset"]


def test_null_is_a_name_and_has_to_be_quoted(tmp_path: Path) -> None:
    text = (ROOT / "params.yaml").read_text(encoding="utf-8").replace('"null"', "null")
    words = refused(tmp_path, text)
    assert 'references[0].mechanism must be text, got None; quote it ("null" is a name here)' in words


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


@pytest.mark.parametrize(("left", "lacking"), [([], "structure and nonpriv"), (["structure"], "nonpriv")])
def test_a_table_without_floor_or_ceiling_is_refused_before_anything_runs(
    left: list[str], lacking: str, tmp_path: Path
) -> None:
    grid = {**GRID, "references": [row for row in GRID["references"] if row["method"] in left]}
    assert f"references lacks {lacking}: every table has its floor" in refused(tmp_path, grid)


def test_a_cell_needs_no_sound_rows(tmp_path: Path) -> None:
    path = written(tmp_path, changed("arms.0.method", "nosuch"))
    with pytest.raises(OptionError, match="nosuch"):
        load(path)
    assert load_settings(path).search == load(written(tmp_path, GRID)).search
    with pytest.raises(OptionError, match="unknown key 'seedz'"):
        load_settings(written(tmp_path, {**GRID, "seedz": 1}))
