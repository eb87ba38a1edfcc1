"""The recipes by name, and what each of them can mean."""

from __future__ import annotations

import dataclasses

import pytest

from graphldp import client, methods
from graphldp.errors import OptionError
from graphldp.learn import models
from graphldp.methods import Method


def test_every_recipe_names_what_exists() -> None:
    assert methods.names()[0] == "majority"
    assert methods.names()[-1] == "nonpriv"
    for name in methods.names():
        recipe = methods.method(name)
        assert recipe.name == name
        assert recipe.summary.endswith(".")
        for mechanism in (recipe.mechanism, *recipe.mechanisms):
            assert mechanism in client.names() or (not recipe.model and mechanism == ""), (name, mechanism)
        assert recipe.model == "" or recipe.model in models()
        # What a method means unless another is asked for has to be one of those that it can mean.
        assert not recipe.mechanisms or recipe.mechanism in recipe.mechanisms


def test_a_recipe_is_a_constant() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        methods.method("lpgnn").mechanism = "pm"  # type: ignore[misc]


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(OptionError) as error:
        methods.method("lpgn")
    assert "unknown method 'lpgn'; did you mean 'lpgnn'?" in str(error.value)
    for name in methods.names():
        assert name in str(error.value)


def test_floor_and_ceiling_take_no_other_mechanism() -> None:
    floor, ceiling = methods.method("structure"), methods.method("nonpriv")
    assert (floor.choose(None), floor.choose("null")) == ("null", "null")
    assert (ceiling.choose(None), ceiling.choose("identity")) == ("identity", "identity")
    for recipe, other in ((floor, "mb"), (ceiling, "null"), (ceiling, "pm")):
        with pytest.raises(
            OptionError, match=f"method '{recipe.name}' means mechanism {recipe.mechanism}, got '{other}'"
        ):
            recipe.choose(other)


def test_who_sends_nothing_takes_no_mechanism() -> None:
    majority = methods.method("majority")
    assert majority.choose(None) == ""
    assert majority.choose("none") == ""  # as the metadata of its runs say it
    with pytest.raises(OptionError, match="method 'majority' sends nothing, so it takes no mechanism; got 'mb'"):
        majority.choose("mb")


def test_a_row_is_named_after_its_mechanism_where_it_is_not_the_usual_one() -> None:
    recipe = methods.method("lpgnn")
    assert recipe.choose(None) == "mb"
    assert recipe.cell_name("mb") == "lpgnn"
    assert recipe.choose("pm") == "pm"
    assert recipe.cell_name("pm") == "lpgnn-pm"


def test_only_methods_that_propagate_search_a_depth() -> None:
    assert methods.method("lpgnn").steps((0, 2, 16)) == (0, 2, 16)
    assert methods.method("structure").steps((0, 2, 16)) == (0, 2, 16)
    assert methods.method("base").steps((0, 2, 16)) == (0,)
    assert Method(name="x", summary="", mechanism="mb", propagates=False).steps(()) == (0,)


def test_tau_is_the_threshold_that_a_method_has() -> None:
    assert methods.method("upgnet-nh").but({"tau": 0.25}).before == 0.25
    assert methods.method("upgnet-nh").but({"tau": 0.25}).after == 0
    assert methods.method("upgnet-hn").but({"tau": 0}).after == 0
    with pytest.raises(OptionError, match="'upgnet-nh' has it given as before; say before"):
        methods.method("upgnet-nh").but({"tau": 0.25, "before": 0.5})
    with pytest.raises(OptionError, match="tau is a share tau of the boundary, from 0 to below 1; got 1"):
        methods.method("upgnet-hn").but({"tau": 1})
    with pytest.raises(OptionError, match="and 'togl-fda' has none"):
        methods.method("togl-fda").but({"tau": 0.5})


def test_togls_own_grid_has_its_depth_before_scoring_and_none_behind() -> None:
    for name in ("togl-fda", "togl-sma"):
        grid = dict(methods.method(name).grid)
        assert grid["steps"] == (0,)
        assert grid["method.score_steps"] == (0, 1, 2, 3, 4, 5)


def test_ldpge_has_a_run_without_privacy_and_a_bias() -> None:
    recipe = methods.method("ldpge")
    assert recipe.choose("identity") == "identity"
    assert dict(recipe.axes)["train.bias"] == (True,)


def test_flexprop_counts_the_node_itself_unless_told_otherwise() -> None:
    device = client.protocol("ppm-public", 1.0, 8, 0.0, 1.0)
    assert methods.method("ppgnn").calibration(2, device, 4.0).self_loops
    assert not methods.method("ppgnn").but({"self_loops": False}).calibration(2, device, 4.0).self_loops
    assert not methods.method("lpgnn").calibration(2, device, 4.0).self_loops
