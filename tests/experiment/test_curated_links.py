"""Links that a trusted curator has, and HeteroRR as a row: whose promise it is, what it costs, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, small_graph, small_params, store

import graphldp
from graphldp.client import from_meta
from graphldp.client.mechanisms.featurerr import shares
from graphldp.errors import OptionError
from graphldp.experiment.conversation import conversation_of
from graphldp.experiment.options import Further, Settings
from graphldp.experiment.scored import ScoredRounds
from graphldp.experiment.server_view import server_view_of
from graphldp.ledger import ledger_from_meta
from graphldp.methods import method
from graphldp.server import rectify
from graphldp.server.sensitivity import feature_sensitivity
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import perturb_method
from graphldp.trusted import CURATORS

EDGERR = Further(links="edgerr", epsilon_links=2.0, link_options=(("rho", 0.3), ("steps", 200)))


@pytest.mark.parametrize("name", CURATORS)
def test_a_curator_makes_the_servers_graph_and_his_promise_is_of_its_own_kind(name: str) -> None:
    graph = small_graph()
    settings = Settings(further=Further(links=name, epsilon_links=6.0))
    server_view = server_view_of(graph, settings)
    known = server_view.known(0)
    assert known.nodes == graph.nodes
    assert server_view.questions(0) == ()  # nobody sends anything
    assert not np.array_equal(known.edges, server_view.known(1).edges)
    np.testing.assert_array_equal(known.edges, server_view_of(small_graph(), settings).known(0).edges)  # addressed
    (spend,) = server_view.ledger("content", [0]).spends
    assert (spend.per, spend.epsilon, spend.what) == ("edge, from a trusted curator", 6.0, "links")
    assert "a curator sees all links" in server_view.forecast()


def test_public_links_stay_and_private_ones_are_drawn_anew() -> None:
    graph = small_graph()
    few, every = (
        server_view_of(
            graph, Settings(further=dataclasses.replace(EDGERR, link_options=(("rho", rho), ("steps", 200))))
        ).known(0)
        for rho in (0.1, 1.0)
    )
    true = set(map(tuple, graph.edges.T.tolist()))
    kept = [len(true & set(map(tuple, one.edges.T.tolist()))) / len(true) for one in (few, every)]
    assert kept[0] > 0.8
    assert kept[1] < 0.6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"links": "edgerr", "link_options": {"rho": 0}}, "rho, the share of links that are private"),
        ({"links": "privhrg", "link_options": {"rho": 0.5}}, "rho"),
        ({"links": "lapgraph", "link_options": {"report": "both"}}, "report"),
        ({"links": "edgrr"}, "edgerr"),
    ],
)
def test_what_a_curator_has_not_is_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said) as caught:
        graphldp.run(small_graph(), "base", epsilon=1.0, epsilon_links=1.0, seeds=2, points=1, epochs=2, **options)
    assert "\n" not in str(caught.value)


def test_nobody_reports_where_a_curator_has_the_links(tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(OptionError, match="nobody reports any"):
        perturb_method(
            Cell(dataset=NAME, method="lpgnn", epsilon=1.0), data=tmp_path, settings=small_params(further=EDGERR)
        )
    with pytest.raises(OptionError, match="by what people report of them"):
        graphldp.run(
            small_graph(), "hogs", epsilon=1.0, links="lapgraph", epsilon_links=1.0, seeds=2, points=1, epochs=2
        )


def test_sensitivity_is_what_neighbours_tell() -> None:
    graph = small_graph(nodes=90)
    column = (graph.labels == 0).astype(np.float32)  # linked people are mostly of one class
    rng = np.random.default_rng(0)
    import scipy.sparse as sp

    features = np.zeros((90, graph.dimensions), dtype=np.float32)
    features[:, 0] = column
    features[:, 1] = rng.random(90) < 0.5
    own = dataclasses.replace(graph, features=sp.csr_array(features))
    exact = conversation_of(own, method("base"), "identity", float("inf"), Settings())
    (asked,) = exact.questions(0)
    found = feature_sensitivity(own, rectify(asked.answers))
    adjacency = own.adjacency().toarray().astype(float)
    for place in (0, 1):
        away = features[:, place] - features[:, place].mean()
        expected = (adjacency * np.outer(away, away)).sum() / adjacency.sum() / features[:, place].var()
        assert found[place] == pytest.approx(np.clip(expected, 0, 1), abs=1e-5)
    assert found[0] > found[1] + 0.2
    np.testing.assert_array_equal(found[2:], 0)
    nobody = dataclasses.replace(own, edges=np.empty((2, 0), np.int32))
    assert not feature_sensitivity(nobody, rectify(asked.answers)).any()


def test_the_second_round_has_the_printed_shares_and_both_rounds_stand_in_the_ledger() -> None:
    graph, recipe = small_graph(), method("heterorr")
    settings = small_params(further=EDGERR)
    rounds = conversation_of(graph, recipe, "featurerr", 4.0, settings)
    assert isinstance(rounds, ScoredRounds)
    first, second = rounds.questions(0)
    scores = rounds.scores(first.answers, 0)
    theta = shares(graph.dimensions, gamma=0.5, **{name: np.array(value) for name, value in scores.items()})
    device = from_meta(dict(second.answers.meta))
    np.testing.assert_allclose(device.theta, theta)  # type: ignore[attr-defined]
    assert device.epsilon == pytest.approx(0.7 * 4.0)
    spent = ledger_from_meta([rounds.meta("x", [0])]).once()
    assert spent.total().epsilon == pytest.approx(4.0)
    assert sum(device.privacy_loss() for device in (rounds.device, device)) <= 4.0 * (1 + 1e-9)


def test_no_test_label_and_no_true_link_moves_what_people_are_asked() -> None:
    graph, settings = small_graph(), small_params(further=EDGERR)
    rounds = conversation_of(graph, method("heterorr"), "featurerr", 4.0, settings)
    first, second = rounds.questions(0)
    from graphldp.experiment.parts import split_of

    test = split_of(graph, settings, 0).test
    labels = graph.labels.copy()
    labels[test] = (labels[test] + 1) % graph.classes
    other = dataclasses.replace(graph, labels=labels)
    again = conversation_of(other, method("heterorr"), "featurerr", 4.0, settings).questions(0)
    np.testing.assert_array_equal(again[0].answers.value, first.answers.value)
    np.testing.assert_array_equal(again[1].answers.value, second.answers.value)


def test_heterorr_is_a_row_in_memory_and_as_an_artifact(tmp_path: Path) -> None:
    found = graphldp.run(
        small_graph(), "heterorr", epsilon=8.0, seeds=2, points=1, epochs=4, links="edgerr", epsilon_links=1.0,
        link_options={"rho": 0.2},
    )  # fmt: skip
    assert "features 2.4 + features 5.6 = 8.0" in found.spent.text()
    assert "from a trusted curator: links 1.0" in found.spent.text()
    store(tmp_path)
    path = perturb_method(Cell(dataset=NAME, method="heterorr", epsilon=8.0), data=tmp_path, settings=small_params())
    first, second = AnswersFile(path, "x").questions(0)
    assert (first.answers.meta["mechanism"], second.answers.meta["mechanism"]) == ("mb", "featurerr")
    for options, said in (({"gamma": 2.0}, "gamma"), ({"first": 0}, "first"), ({"score_by": "luck"}, "score_by")):
        with pytest.raises(OptionError, match=said):
            method("heterorr").but(options)
    with pytest.raises(OptionError, match="follows from the first round"):
        conversation_of(small_graph(), method("heterorr"), "featurerr", 4.0, Settings(), {"importance": [1.0] * 24})
