"""Reports of many devices as one collection: in the graph's order, each person's once, links by the graph's numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.client import Reports, protocol
from graphldp.errors import ArtifactError, DataError
from graphldp.experiment.conversation import LINKS, Question
from graphldp.experiment.devices import release_meta
from graphldp.graph import Graph
from graphldp.ledger import Ledger, spends_of
from graphldp.merging import merged_meta, merged_questions, node_of_names, place_of_nodes

NAMES = ("ada", "bea", "cleo", "dora", "eva")
PARTS = ([3, 0], [4], [2, 1])  # which nodes report in which collection, in their order there


def small_graph() -> Graph:
    return Graph(
        name="small",
        features=sp.csr_array(np.zeros((5, 3), dtype=np.float32)),
        edges=np.empty((2, 0), dtype=np.int32),
        labels=np.zeros(5, dtype=np.int32),
        classes=2,
        low=0.0,
        high=1.0,
        node_ids=NAMES,
    )


def question(name: str, answers: Reports, **more: bool) -> Question:
    return Question(name=name, people=np.arange(answers.nodes), features=np.arange(3), answers=answers, **more)


def some(reports: Reports, nodes: Sequence[int]) -> Reports:
    level = None if reports.level is None else reports.level[nodes]
    return dataclasses.replace(reports, index=np.asarray(reports.index)[nodes], value=reports.value[nodes], level=level)


def merged(parts: Sequence[Reports], numbers: Sequence[int] = (), name: str = "features") -> Question:
    place = place_of_nodes([(f"file {k}", [NAMES[node] for node in own]) for k, own in enumerate(PARTS)], small_graph())
    asked = [(question(name, part, further=name == LINKS),) for part in parts]
    (found,) = merged_questions(asked, [len(own) for own in PARTS], place, np.array(numbers, dtype=np.int64))
    return found


def test_what_was_sent_in_parts_is_what_was_sent_at_once() -> None:
    whole = protocol("ppm-public", 1.0, 3, 0.0, 1.0, levels=3).perturb(np.eye(5, 3), np.random.default_rng(0))
    found = merged([some(whole, own) for own in PARTS])
    assert found.people.tolist() == [0, 1, 2, 3, 4]
    for part in ("index", "value", "level"):
        np.testing.assert_array_equal(getattr(found.answers, part), getattr(whole, part))


def test_links_are_named_by_the_graphs_numbers_and_nobody_else_is_named() -> None:
    # Six people were declared; number 2 is no node, so that 3, 4 and 5 are the nodes 2, 3 and 4.
    sent = [
        Reports(index=np.array([[2, 3], [5, -1]], dtype=np.int32), value=np.array([[0.5, 1.5], [2.5, 0.0]])),
        Reports(index=np.array([[0, 1, 4]], dtype=np.int32), value=np.array([[1.0, 2.0, 3.0]])),
        Reports(index=np.array([[2], [-1]], dtype=np.int32), value=np.array([[9.0], [0.0]])),
    ]
    found = merged(sent, [0, 1, -1, 2, 3, 4], name=LINKS).answers
    assert found.index.tolist() == [[4, -1, -1], [-1, -1, -1], [-1, -1, -1], [2, -1, -1], [0, 1, 3]]
    values = np.where(np.asarray(found.index) >= 0, found.value, 0.0)
    assert values.tolist() == [[2.5, 0, 0], [0, 0, 0], [0, 0, 0], [1.5, 0, 0], [1, 2, 3]]
    assert found.meta["nodes"] == 5


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([("a", NAMES), ("b", ["cleo"])], "b: 'cleo' has a report in a already, and has spent twice"),
        ([("a", [*NAMES, "fay"])], "a: 'fay' is no node of small"),
        ([("a", NAMES[:4])], "1 of the 5 nodes of small has no report, the first is 'eva'"),
    ],
)
def test_everybody_has_one_report(names: list[tuple[str, Sequence[str]]], words: str) -> None:
    with pytest.raises(DataError, match=words):
        place_of_nodes(names, small_graph())


def test_numbers_of_people_in_another_order_are_refused() -> None:
    assert node_of_names(["ada", "fay", "cleo"], small_graph()).tolist() == [0, -1, 2]
    with pytest.raises(ArtifactError, match="stand in another order"):
        node_of_names(["cleo", "ada"], small_graph())


def test_a_merged_release_has_the_mean_budget_of_all_its_people() -> None:
    device = protocol("ppm-public", 1.0, 3, 0.0, 1.0, levels=2)
    facts = {"input": None, "random": {"reproducible": True}}
    levels = [np.array(own, dtype=np.int32) for own in ([1, 1], [2], [1, 2])]
    metas = [release_meta(device, len(own), (0,), facts, level=own) for own in levels]
    meta = merged_meta(metas, small_graph())
    mean = (3 * device.meta()["budgets"][0] + 2 * device.meta()["budgets"][1]) / 5
    assert meta["epsilon_mean"] == pytest.approx(mean)
    (spend,) = Ledger.from_json(meta["ledger"]).spends
    assert (spend.mean, spend.source) == (pytest.approx(mean), meta["release"])


@pytest.mark.parametrize(
    "more",
    [{"draws": ("0", "1")}, {"delta": 1e-5}, {"max": 2.0}, {"epsilon": 1.5}, {"per": "edge"}, {"known": False}],
    ids=lambda more: next(iter(more)),
)
def test_people_who_have_not_spent_the_same_are_not_merged(more: dict[str, object]) -> None:
    """The merged file says of everybody what the first file says of its people."""
    facts = {"input": None, "random": {"reproducible": True}}
    metas = [release_meta(protocol("mb", 1.0, 3, 0.0, 1.0), nodes, (0,), facts) for nodes in (2, 3)]
    assert Ledger.from_json(merged_meta(metas, small_graph())["ledger"]).spends[0].epsilon == 1.0
    (spend,) = spends_of(metas[1])
    metas[1]["ledger"] = Ledger(spends=(dataclasses.replace(spend, **more),)).as_json()
    with pytest.raises(ArtifactError, match="the files' people have not spent the same"):
        merged_meta(metas, small_graph())
