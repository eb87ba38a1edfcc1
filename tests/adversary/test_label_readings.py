"""How often labels are known from noisy ones: what each way gives, written out on a small graph."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cell_factory import small_graph

from graphldp.adversary.label_readings import read_labels
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.randomness import generator
from graphldp.splits import random_split


def sent_by(epsilon: float):  # type: ignore[no-untyped-def]
    graph = small_graph()
    question = LabelQuestion(epsilon=epsilon, classes=graph.classes)
    answers = np.asarray(question.perturb(graph.labels, generator(0, "sent", epsilon)).value)[:, 0]
    split = random_split(np.arange(graph.nodes), generator(0, "split"), train=0.5, validation=0.25)
    return graph, question, dataclasses.replace(graph, labels=answers.astype(np.int32)), split


@pytest.mark.parametrize("epsilon", [0.7, 2.0])
def test_every_way_is_the_one_written_out(epsilon: float) -> None:
    graph, question, known, split = sent_by(epsilon)
    found = {one.name: one for one in read_labels(question, known, split, graph.labels, [0, 2])}
    true, own = graph.labels[split.train], known.labels[split.train]
    assert found["as sent"].right == (own == true).mean()

    ones = np.zeros((graph.nodes, graph.classes))
    heard = np.concatenate([split.train, split.validation])
    ones[heard, known.labels[heard]] = 1
    adjacency = graph.adjacency().toarray().astype(float)
    degree = adjacency.sum(axis=1)
    root = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0.0)
    mass = np.linalg.matrix_power(root[:, None] * adjacency * root, 2) @ ones
    guess = np.where(mass.sum(axis=1) > 0, mass.argmax(axis=1), known.labels)[split.train]
    assert found["propagated, 2"].right == (guess == true).mean()
    assert found["propagated, 0"].right == found["as sent"].right

    walk = (adjacency + np.eye(graph.nodes)) / (degree + 1)[:, None]
    shares = walk @ walk @ ones
    likeliest = shares.argmax(axis=1)[split.train]  # the channel undone moves no order
    assert found["frequencies, 2"].right == pytest.approx((likeliest == true).mean())


def test_no_answer_of_the_tested_and_no_validation_truth_is_read() -> None:
    graph, question, known, split = sent_by(1.0)
    first = read_labels(question, known, split, graph.labels, [2])
    other, truth = known.labels.copy(), graph.labels.copy()
    other[split.test] = (other[split.test] + 1) % graph.classes
    truth[split.test], truth[split.validation] = 0, 0
    moved = dataclasses.replace(known, labels=other)
    assert read_labels(question, moved, split, truth, [2]) == first


def test_epsilon_bounds_what_one_answer_tells_and_not_what_neighbours_do() -> None:
    graph, question, known, split = sent_by(0.01)
    found = {one.name: one for one in read_labels(question, known, split, graph.labels, [2])}
    prior = np.bincount(graph.labels[split.train]).max() / len(split.train)
    for name in ("as sent", "best guess"):
        assert prior < found[name].bound < prior + 0.01
    assert found["propagated, 2"].bound is None
