"""Learning from labels that went through a channel: targets, loss, what is said of accuracy, what is not accepted."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.errors import OptionError
from graphldp.learn import NodeInputs, Problem, Run, Split
from graphldp.learn.tasks.metrics import macro_f1
from graphldp.learn.tasks.private import (
    BARRED,
    LabelChannel,
    PrivateClasses,
    PrivateClassification,
    spreading,
    true_accuracy,
    true_macro_f1,
)
from graphldp.randomness import generator

CPU = torch.device("cpu")
LABELS = np.array([0, 1, 2, 1, -1, 0])
SPLIT = Split(train=[0, 1, 2], validation=[3, 5], test=[4])


def path_of(nodes: int, alone: int = 0) -> sp.csr_array:
    """Return a path of nodes, the last `alone` of which have no neighbour."""
    u = np.arange(nodes - 1 - alone)
    matrix = sp.coo_array((np.ones(len(u)), (u, u + 1)), shape=(nodes, nodes))
    return sp.csr_array(matrix + matrix.T)


def problem(adjacency: sp.csr_array, classes: int = 3) -> Problem:
    nodes = adjacency.shape[0]
    inputs = NodeInputs(deviations=np.zeros((nodes, 1), dtype=np.float32))
    return Problem(shift=sp.csr_array(adjacency), adjacency=adjacency, inputs=(inputs,), classes=classes)


def objective(channel: LabelChannel, adjacency: sp.csr_array, labels: np.ndarray = LABELS) -> PrivateClasses:
    run = Run(inputs=0, seed=0, split=SPLIT, labels=labels)
    return PrivateClasses([run, run], CPU, channel, problem(adjacency))


@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("correction", [True, False])
def test_the_loss_is_drop_as_it_is_printed(steps: int, correction: bool) -> None:
    channel = LabelChannel(keep=0.6, stray=0.2, steps=steps, correction=correction)
    adjacency = path_of(6, alone=1)
    outputs = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(1), requires_grad=True)
    found = objective(channel, adjacency).loss(outputs, {})

    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    root = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0.0)
    walk = np.linalg.matrix_power(root[:, None] * adjacency.toarray() * root, steps)
    onehot = np.zeros((6, 3))
    onehot[LABELS >= 0, LABELS[LABELS >= 0]] = 1.0
    mass = walk @ onehot
    transition = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    for run in range(2):
        chance = torch.softmax(outputs[:, run], dim=1).detach().numpy().astype(np.float64)
        sent = chance @ transition if correction else chance
        far = walk @ sent
        losses = []
        for node in SPLIT.train:
            reached = mass[node].sum() > 0
            row, target = (far[node], mass[node].argmax()) if reached else (sent[node], LABELS[node])
            losses.append(-math.log(row[target]))
        assert found[run].item() == pytest.approx(np.mean(losses), rel=1e-5)
    found.sum().backward()
    assert torch.isfinite(outputs.grad).all()


def test_whom_no_label_reaches_keeps_her_own() -> None:
    channel = LabelChannel(keep=0.6, stray=0.2, steps=2)
    none = sp.csr_array((6, 6))
    outputs = torch.zeros(6, 2, 3)
    outputs[:, 0, 0] = 5.0
    loss = objective(channel, none).loss(outputs, {})
    chance = torch.softmax(torch.tensor([5.0, 0.0, 0.0]), dim=0).numpy()
    sent = 0.2 + 0.4 * chance
    assert loss[0].item() == pytest.approx(np.mean([-math.log(sent[label]) for label in (0, 1, 2)]), rel=1e-5)
    assert spreading(none).nnz == 0


def test_what_is_said_of_noisy_labels_is_unbiased_for_the_true_ones() -> None:
    rng, classes, count = np.random.default_rng(0), 4, 60_000
    truth = rng.choice(classes, count, p=[0.5, 0.2, 0.2, 0.1])
    guess = np.where(rng.random(count) < 0.7, truth, rng.integers(0, classes, count))
    question = LabelQuestion(epsilon=1.5, classes=classes)
    noisy = question.perturb(truth, generator(0)).value[:, 0].astype(np.int64)
    channel = LabelChannel(keep=question.law.chances[0], stray=question.law.chances[1])
    assert true_accuracy(np.mean(noisy == guess), channel) == pytest.approx(np.mean(truth == guess), abs=0.01)
    assert true_macro_f1(noisy, guess, channel) == pytest.approx(macro_f1(truth, guess), abs=0.015)
    assert abs(macro_f1(noisy, guess) - macro_f1(truth, guess)) > 0.1  # as it stands, it is another number


def test_an_epoch_that_knows_the_noise_is_not_accepted() -> None:
    channel = LabelChannel(keep=0.6, stray=0.2)
    rules = objective(channel, path_of(6))

    def loss(right: list[int]) -> float:
        outputs = torch.zeros(6, 2, 3)
        for node in range(6):
            own = max(LABELS[node], 0)
            outputs[node, :, own if node in right else (own + 1) % 3] = 4.0
        return float(rules.validate(outputs, {})[0][0])

    assert loss([0, 3]) < BARRED  # a third in training, half in validation: 0.33 < 0.63, 0.5 < 0.6
    assert loss([3, 5]) >= BARRED  # both of the validation part: 1 > 0.6
    assert loss([0, 1, 3]) >= BARRED  # two thirds in training: 0.67 > 0.63
    accuracy = rules.validate(torch.zeros(6, 2, 3), {})[1]["accuracy"]
    assert accuracy == pytest.approx([(0.5 - 0.2) / 0.4] * 2)  # node 5 has label 0, the first of equal ones


def test_propagated_labels_are_learned_in_full_batch_alone() -> None:
    assert PrivateClassification(channel=LabelChannel(keep=0.6, stray=0.2)).by_node
    assert not PrivateClassification(channel=LabelChannel(keep=0.6, stray=0.2, steps=1)).by_node


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"keep": 0.2, "stray": 0.3}, "kept more often"),
        ({"steps": -1}, "label_steps must be a whole number"),
        ({"steps": True}, "label_steps must be a whole number"),
        ({"correction": "forward"}, "label_correction is true or false"),
    ],
)
def test_what_is_no_channel_is_refused(given: dict, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        LabelChannel(**{"keep": 0.6, "stray": 0.2, **given})
