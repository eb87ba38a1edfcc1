"""A paper's protocol: every entry with its place and source, and two columns that differ in nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from graphldp.errors import DataError, OptionError
from graphldp.stages.grids.params import Params, RowParams
from graphldp.stages.grids.protocols import Entry, Protocol, protocol, protocol_names
from graphldp.stages.grids.targets import PROFILES, PaperTarget, TargetCell, find, protocol_of, targets

PAPERS = Path(__file__).parents[3] / "papers"
SPENT = {"seeds", "search.strategy", "search.points", "search.seeds"}  # what a profile says
ALL = targets(PAPERS)


def test_papers_say_how_they_train_and_each_entry_has_a_source() -> None:
    assert protocol_names(PAPERS) == ["heterorr", "ldpge", "ppgnn", "togl", "upgnet"]
    for name in protocol_names(PAPERS):
        found = protocol(name, PAPERS)
        assert {"train.hidden", "train.activation", "train.epochs", "train.standardize", "search.learning_rate",
                "selection", "seeds"} <= {one.place for one in found.entries}  # fmt: skip
        for one in found.entries:
            assert bool(one.cited) != bool(one.unstated), one.place


def _facts(params: Params, made: TargetCell) -> dict[str, Any]:
    """Return all that decides a cell, by place."""
    own = params.of(made.cell)
    out: dict[str, Any] = {"seeds": own.seeds, "seed": own.seed}
    for part in ("train", "search"):
        out |= {f"{part}.{key}": value for key, value in dataclasses.asdict(getattr(own, part)).items()}
    axes = out.pop("search.options")
    out |= {f"axis.{key}": list(values) for key, values in axes.items()}
    out |= {f"mechanism.{key}": value for key, value in made.cell.options.items()}
    out |= {f"method.{key}": value for key, value in made.cell.changes.items()}
    return out


@pytest.mark.parametrize("target", [one for one in ALL if one.trains and not one.steps], ids=lambda one: one.key)
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda one: one.name)
def test_the_two_columns_differ_in_what_the_protocol_names_alone(target: PaperTarget, profile: Any) -> None:
    given = protocol_of(target, PAPERS)
    named = {one.place for one in given.entries} | SPENT
    columns = target.columns(profile, given, target.graphs()[:1])
    (theirs, made), (ours, mine) = columns["theirs"], columns["ours"]
    by_row = {(one.asked.label, one.cell.epsilon, one.cell.axes): one for one in mine if one.asked is not None}
    differing: set[str] = set()
    for one in made:
        assert one.asked is not None
        other = by_row[one.asked.label, one.cell.epsilon, one.cell.axes]
        assert one.cell.mechanism == other.cell.mechanism
        if not target.readings:
            assert one.cell.method == other.cell.method
        first, second = _facts(theirs, one), _facts(ours, other)
        differ = {key for key in {*first, *second} if first.get(key) != second.get(key)}
        assert differ <= named, (one.asked.label, differ - named)
        differing |= differ
    assert "train.standardize" in differing
    assert theirs.train.standardize is False


def test_a_row_takes_what_it_has_and_leaves_open() -> None:
    togl = protocol("togl", PAPERS)
    plain = togl.row(RowParams(method="base", mechanism="lp"))
    assert (plain.options, plain.set) == ({}, {})  # every dimension is reported: there is no m
    asked = togl.row(RowParams(method="togl-sma", mechanism="pm", set={"method.rho": 0.0}))
    assert asked.options == {"m_rule": "2/5"}
    assert asked.set == {
        "method.rho": 0.0, "method.m_from": "total", "method.rectification": "paper", "method.score_steps": 3,
    }  # fmt: skip
    searched = protocol("ppgnn", PAPERS).row(RowParams(method="ppgnn", mechanism="ppm"))
    assert searched.search["options"] == {"gamma": [0.1, 0.3, 0.5, 0.7, 0.9]}
    assert searched.options["levels"] == 6
    floor = RowParams(method="structure", mechanism="null")
    assert togl.row(floor) == floor


def test_a_bridge_sets_back_one_thing_after_the_other() -> None:
    (bridge,) = find("togl:bridge", PAPERS)
    columns = bridge.columns(PROFILES["quick"], protocol_of(bridge, PAPERS), ["cora"])
    inputs = [(params.train.hidden, params.train.standardize, made[0].cell.method) for params, made in columns.values()]
    assert inputs == [
        (64, False, "base"), (64, False, "base"), (16, False, "base"), (16, True, "base"), (16, True, "lpgnn"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"place": "train.width", "value": 3, "cited": "1"}, "unknown key .*train.width"),
        ({"place": "train.hidden", "value": 3}, "either cited by section or unstated"),
        ({"place": "train.hidden", "value": 3, "cited": "1", "unstated": "x"}, "either cited by section or unstated"),
        ({"place": "hidden", "value": 3, "cited": "1"}, "no place of a protocol"),
        ({"place": "selection", "value": "test loss", "cited": "1"}, "selected by validation loss here"),
        ({"place": "seeds", "value": 0, "cited": "1"}, "seeds is a number of runs"),
        ({"place": "axis.gamma", "value": 0.5, "cited": "1"}, "list of values"),
        ({"value": 3, "cited": "1"}, r"protocol\[0\] lacks place"),
    ],
)
def test_an_entry_that_says_nothing_of_use_is_refused(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    import yaml

    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"paper": "p", "short": "P", "protocol": [entry]}))
    with pytest.raises((DataError, OptionError), match=message):
        protocol("p", tmp_path)


def test_unknown_names_and_folders_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="unknown protocol 'tgol'"):
        protocol("tgol", PAPERS)
    with pytest.raises(OptionError, match="does not exist; a protocol stands in the folder of papers"):
        protocol("togl", tmp_path / "none")


def test_without_leaves_out_a_part_or_a_place() -> None:
    entries = (Entry(place="train.hidden", value=8, cited="1"), Entry(place="search.points", value=8, cited="1"))
    one = Protocol(paper="p", short="P", entries=entries)
    assert [left.place for left in one.without("search").entries] == ["train.hidden"]
    assert [left.place for left in one.without("train.hidden").entries] == ["search.points"]


@pytest.mark.parametrize(("text", "key"), [("togl:17", "togl:table17"), ("upgnet:Fig. 6", "upgnet:figure6")])
def test_an_address_may_be_written_short(text: str, key: str) -> None:
    assert [one.key for one in find(text, PAPERS)] == [key]


def test_addresses_that_are_none() -> None:
    assert len(find("all", PAPERS)) == len(ALL)
    assert {one.paper for one in find("togl", PAPERS)} == {"togl"}
    with pytest.raises(OptionError, match="unknown paper 'tgol'"):
        find("tgol:17", PAPERS)
    with pytest.raises(OptionError, match="unknown target 'togl:99'"):
        find("togl:99", PAPERS)
