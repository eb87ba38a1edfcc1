"""How a budget is shared out: every split spends the same total, and is compared on the stand-in's true labels."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from cell_factory import small_graph, small_params

from graphldp.errors import OptionError
from graphldp.experiment import cell
from graphldp.experiment.options import Settings
from graphldp.experiment.parts import split_of
from graphldp.experiment.split import Asked, Shares, Tried, shares_of, try_splits
from graphldp.methods import method
from graphldp.stages.split import split_figure

ASKED = Asked(recipe=method("lpgnn"), mechanism="mb", options={})
BOTH = dataclasses.replace(ASKED, links="blink", link_options=(("degree_share", 0.2), ("report", "both")))


def params(**changes: object) -> Settings:
    return small_params(**{"seeds": 2, "search_seeds": 1, "points": 1, "epochs": 8, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tried() -> Tried:
    return try_splits(small_graph(), BOTH, 6.0, shares_of(3), params())


def test_all_ways_to_share_a_budget_are_there_once() -> None:
    found = [(one.features, one.links, one.labels) for one in shares_of(3)]
    assert sorted(found) == [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 1, 1), (2, 0, 1)]
    assert all(one.parts == 4 for one in shares_of(4))
    assert [(one.features, one.links) for one in shares_of(2, labels=False)] == [(0, 2), (1, 1), (2, 0)]
    assert [(one.features, one.labels) for one in shares_of(3, links=False)] == [(1, 2), (2, 1)]
    assert Shares(features=1, links=1, labels=2).text == "features 25 %, links 25 %, labels 50 %"


@pytest.mark.parametrize("parts", [1, 0, 21, 2.5, True])
def test_too_few_and_too_many_parts_are_refused(parts: int) -> None:
    with pytest.raises(OptionError, match=r"in 2 to 20 parts"):
        shares_of(parts)


def test_with_everything_else_public_nothing_is_split() -> None:
    with pytest.raises(OptionError, match="nothing is to split"):
        shares_of(4, labels=False, links=False)


def test_every_split_spends_the_total_by_its_ledger(tried: Tried) -> None:
    for trial in tried.trials:
        spent = {one.what: one for one in trial.spent.spends}
        assert sum(one.epsilon for one in spent.values()) == pytest.approx(6.0)
        assert sorted(spent) == sorted(name for name in ("features", "labels", "links") if getattr(trial.shares, name))
        assert spent["labels"].epsilon == pytest.approx(2.0 * trial.shares.labels)
        if trial.shares.links:  # both ends send the bit and a degree: the relationship loses twice a bit's epsilon
            assert spent["links"].per == "edge"
            assert trial.relationship == pytest.approx(2.0 * trial.shares.links)
            assert trial.bit == pytest.approx(trial.relationship / 2)
        else:
            assert (trial.bit, trial.relationship) == (0.0, 0.0)


def test_the_figures_title_touches_no_label_and_its_numbers_stand_on_a_sheet(tried: Tried) -> None:
    text = split_figure(tried)
    tops = {words: float(y) for y, words in re.findall(r'<text[^>]* y="([\d.]+)">([^<]+)</text>', text)}
    title = next(y for words, y in tops.items() if words.startswith("Accuracy on"))
    assert tops["all to labels"] - title >= 18
    assert "Canvas" not in text  # white in a file of its own, whatever the reader prefers
    assert text.count('fill="var(--sheet)"') == len(tried.trials)


def test_a_bit_costs_what_the_mechanism_says() -> None:
    lower = dataclasses.replace(ASKED, links="blink", link_options=(("degree_share", 0.2),))
    assert lower.of_bit(90) == pytest.approx(1 / 1.2)  # the bit once, the degree by both ends
    assert dataclasses.replace(ASKED, links="rr").of_bit(90) == 1.0
    assert dataclasses.replace(ASKED, links="rr", link_options=(("report", "both"), ("most", 9.0))).of_bit(90) == 0.5


def test_who_is_not_asked_tells_nothing() -> None:
    graph = small_graph()
    without = ASKED.devices(graph, Shares(features=2, links=0, labels=1), 6.0, params())
    assert without.server_view.known(0).edges.shape[1] == 0
    assert without.recipe.name == "mlp"
    assert without.epsilon == 4.0
    silent = ASKED.devices(graph, Shares(features=0, links=2, labels=1), 6.0, params())
    assert (silent.mechanism, silent.epsilon) == ("null", 0.0)
    assert silent.setup({}).public
    floor = dataclasses.replace(ASKED, recipe=method("frontier"), mechanism="privset")
    assert floor.devices(graph, Shares(features=0, links=2, labels=1), 6.0, params()).recipe.name == "structure"
    public = dataclasses.replace(ASKED, links="", labels="")
    assert not public.devices(graph, Shares(features=1, links=0, labels=0), 6.0, params()).server_view.asked


def test_the_best_is_chosen_on_validation_people_by_their_true_labels(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = tried.trials[tried.best]
    assert best.validation.mean() == max(trial.validation.mean() for trial in tried.trials)
    cost = tried.cost(best)
    assert cost.mean == 0.0
    other = next(trial for trial in tried.trials if trial is not best)
    assert tried.cost(other).mean == pytest.approx(float((best.test - other.test).mean()))
    # What is predicted is compared with what is true, and not with what was sent.
    graph, settings = small_graph(), params()

    monkeypatch.setattr(cell, "fit", _with_truth(cell.fit, graph.labels))
    (knows,) = try_splits(graph, ASKED, 2.0, shares_of(2)[:1], settings).trials
    assert knows.validation.tolist() == [1.0, 1.0]
    assert knows.test.tolist() == [1.0, 1.0]
    assert len(split_of(graph, settings, 0).validation) > 0


def _with_truth(fit, labels):  # type: ignore[no-untyped-def]
    def answered(*given, **options):  # type: ignore[no-untyped-def]
        outcome = fit(*given, **options)
        outcome.outputs["classes"] = np.tile(labels, (len(outcome.outputs["classes"]), 1))
        return outcome

    return answered


@pytest.mark.parametrize("total", [0.0, -1.0, math.inf, math.nan, True])
def test_a_total_is_a_number_above_0(total: float) -> None:
    with pytest.raises(OptionError, match="the total epsilon must be a number above 0"):
        try_splits(small_graph(), ASKED, total, shares_of(2), params())


def test_tasks_without_labels_have_nothing_to_share() -> None:
    settings = params()
    other = dataclasses.replace(settings, train=dataclasses.replace(settings.train, task="link-prediction"))
    with pytest.raises(OptionError, match="has no labels to share a budget with"):
        try_splits(small_graph(), ASKED, 2.0, shares_of(2), other)
