"""Labels read as frequencies: the channel undone around a node and in clusters, and the loss of both."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from test_private_labels import LABELS, SPLIT, objective, path_of

from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.errors import OptionError
from graphldp.learn.tasks.private import LabelChannel, PrivateClassification
from graphldp.learn.tasks.proportions import as_chances, clusters, frequencies
from graphldp.randomness import generator

KEEP, STRAY = 0.6, 0.2


def test_chances_are_the_shares_with_the_channel_undone() -> None:
    true = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(as_chances(KEEP * true + STRAY * (1 - true), KEEP, STRAY), true)
    np.testing.assert_allclose(as_chances(np.array([0.7, 0.3, 0.0]), KEEP, STRAY), [5 / 6, 1 / 6, 0.0])  # cut at 0
    np.testing.assert_allclose(as_chances(np.full(3, 0.1), KEEP, STRAY), np.full(3, 1 / 3))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_frequencies_are_those_of_the_walk(steps: int) -> None:
    adjacency = path_of(6, alone=1)
    walk = adjacency.toarray() + np.eye(6)
    walk /= walk.sum(axis=1, keepdims=True)
    onehot = np.zeros((6, 3))
    onehot[LABELS >= 0, LABELS[LABELS >= 0]] = 1.0
    mass = np.linalg.matrix_power(walk, steps) @ onehot
    found = frequencies(adjacency, LABELS, 3, steps, KEEP, STRAY)
    for node in range(6):
        if mass[node].sum() == 0:
            np.testing.assert_allclose(found[node], np.full(3, 1 / 3))
        else:
            np.testing.assert_allclose(found[node], as_chances(mass[node] / mass[node].sum(), KEEP, STRAY), atol=1e-12)


def test_frequencies_of_many_noisy_labels_are_the_true_ones() -> None:
    rng, nodes = np.random.default_rng(0), 4000
    labels = np.where(np.arange(nodes) % 4 == 0, 1, 0)
    question = LabelQuestion(epsilon=1.0, classes=3)
    sent = np.asarray(question.perturb(labels, generator(0, "labels")).value)[:, 0]
    star = sp.lil_array((nodes, nodes))
    star[0, 1:] = star[1:, 0] = 1.0
    keep, stray = question.law.chances
    found = frequencies(sp.csr_array(star), sent, 3, 1, keep, stray)
    np.testing.assert_allclose(found[0], [0.75, 0.25, 0.0], atol=0.06)
    del rng


def test_clusters_are_linked_groups_of_about_the_size() -> None:
    rng = np.random.default_rng(1)
    blocks = [sp.csr_array(np.triu(rng.random((20, 20)) < 0.4, 1).astype(float)) for _ in range(5)]
    matrix = sp.csr_array(sp.block_diag(blocks))
    group = clusters(sp.csr_array(matrix + matrix.T), 20)
    sizes = np.bincount(group)
    assert sizes.min() >= 10
    assert sizes.max() <= 30
    assert sizes.sum() == 100
    assert len({tuple(np.unique(group[20 * k : 20 * k + 20])) for k in range(5)}) >= 4  # blocks are hardly mixed
    np.testing.assert_array_equal(clusters(sp.csr_array((7, 7)), 3) >= 0, True)  # of nobody's links, too
    np.testing.assert_array_equal(clusters(path_of(4), 10), 0)


# Of labels that are one class, or every class alike, undoing the channel changes nothing: the second ones are neither.
@pytest.mark.parametrize("labels", [LABELS, np.array([0, 0, 1, 1, -1, 0])], ids=["alike", "unlike"])
@pytest.mark.parametrize("steps", [0, 2])
def test_the_loss_is_of_nodes_and_of_clusters(steps: int, labels: np.ndarray) -> None:
    adjacency = path_of(6, alone=1)
    channel = LabelChannel(keep=KEEP, stray=STRAY, steps=steps, reconstruction=True, bags=3, bag_weight=0.5)
    outputs = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(1), requires_grad=True)
    found = objective(channel, adjacency, labels).loss(outputs, {})
    targets, group = frequencies(adjacency, labels, 3, steps, KEEP, STRAY), clusters(adjacency, 3)
    for run in range(2):
        chance = torch.softmax(outputs[:, run], dim=1).detach().numpy().astype(np.float64)
        expected = -np.mean([(targets[node] * np.log(chance[node])).sum() for node in SPLIT.train])
        for one in np.unique(group[SPLIT.train]):
            own = [node for node in SPLIT.train if group[node] == one]
            shares = np.bincount(labels[own], minlength=3) / len(own)
            bag = -(as_chances(shares, KEEP, STRAY) * np.log(chance[own].mean(axis=0))).sum()
            expected += 0.5 * len(own) / len(SPLIT.train) * bag
        assert found[run].item() == pytest.approx(expected, rel=1e-5)
    found.sum().backward()
    assert torch.isfinite(outputs.grad).all()


def test_clusters_alone_are_an_option_of_any_loss() -> None:
    adjacency = path_of(6)
    outputs = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(2))
    plain = objective(LabelChannel(keep=KEEP, stray=STRAY), adjacency).loss(outputs, {})
    both = objective(LabelChannel(keep=KEEP, stray=STRAY, bags=2), adjacency).loss(outputs, {})
    assert (both > plain).all()
    assert not PrivateClassification(channel=LabelChannel(keep=KEEP, stray=STRAY, bags=2)).by_node
    assert PrivateClassification(channel=LabelChannel(keep=KEEP, stray=STRAY, reconstruction=True)).by_node


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bags": 1}, "label_bags is how many people"),
        ({"bags": 2.5}, "label_bags is how many people"),
        ({"bag_weight": -1.0}, "label_bag_weight must be a finite number"),
        ({"reconstruction": "yes"}, "label_reconstruction is true or false"),
    ],
)
def test_options_that_are_none_are_one_line(options: dict, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        LabelChannel(keep=KEEP, stray=STRAY, **options)
