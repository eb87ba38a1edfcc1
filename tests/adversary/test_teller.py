"""LinkTeller on models that were trained here: what they pass messages over is what it finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cell_factory import small_graph

import graphldp
from graphldp.adversary.links import influence_attack
from graphldp.adversary.teller import attack_model, people_of_links
from graphldp.client.links import Neighbours
from graphldp.errors import OptionError
from graphldp.randomness import generator

SMALL = {"seeds": 2, "search_seeds": 1, "points": 1, "epochs": 40, "references": False}


def lists() -> Neighbours:
    graph = small_graph()
    return Neighbours.of_edges(graph.edges, graph.nodes)


def trained(method: str = "base", **asked):  # type: ignore[no-untyped-def]
    return graphldp.run(small_graph(), method, epsilon=math.inf, mechanism="identity", steps=[0], **SMALL, **asked)


def test_a_model_tells_of_the_links_that_it_was_trained_over() -> None:
    people = people_of_links(lists(), generator(0, "who"), 60)
    public = attack_model(trained(), people)
    assert public.pairs == 60 * 59 // 2
    assert public.area > 0.75
    alone = attack_model(trained("mlp"), people)
    assert (alone.area, alone.advantage) == (0.5, 0.0)
    near = attack_model(trained(links="rr", epsilon_links=14.0), people)
    assert near.area == pytest.approx(public.area, abs=0.05)
    far = attack_model(trained(links="rr", epsilon_links=0.01), people)
    assert far.area < 0.6
    assert far.advantage < 0.2


def test_the_answers_are_those_of_the_model_on_its_own_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trained(links="rr", epsilon_links=4.0)  # a graph of its own for each run
    seen = {}

    def kept(answers, features, neighbours, people, *, delta):  # type: ignore[no-untyped-def]
        seen.update(said=answers(features), neighbours=neighbours)
        return influence_attack(answers, features, neighbours, people, delta=delta)

    monkeypatch.setattr("graphldp.adversary.teller.influence_attack", kept)
    attack_model(found, np.arange(40))
    np.testing.assert_allclose(seen["said"], found.predict().probabilities, atol=1e-6)  # dense and sparse products
    np.testing.assert_array_equal(seen["neighbours"].indices, lists().indices)


def test_people_are_ends_of_links_each_once() -> None:
    found = people_of_links(lists(), generator(0, "who"), 30)
    assert len(np.unique(found)) == len(found) == 30
    assert (np.diff(found) > 0).all()
    inside = np.isin(lists().rows(), found) & np.isin(lists().indices, found)
    assert inside.sum() >= 2 * 14  # of 30 ends at least 14 links are whole
    everybody = people_of_links(lists(), generator(0, "who"), 10_000)
    assert set(everybody) == set(lists().indices)


def test_filtered_features_are_not_what_a_person_sends() -> None:
    with pytest.raises(OptionError, match="filtered before"):
        attack_model(trained("upgnet-hn", after=0.3), np.arange(40))
