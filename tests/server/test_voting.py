"""Votes read by their law: against brute force, without leaks, and worth nothing where they say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import KINDS, adjacency, estimate, graph

from graphldp.client.vote import Vote
from graphldp.datasets.options import Synthetic
from graphldp.datasets.synthetic import synthetic_graph
from graphldp.errors import OptionError
from graphldp.randomness import generator
from graphldp.server import voting
from graphldp.server.evidence import EvidenceSetting, make_evidence
from graphldp.server.propagation import class_shares
from graphldp.server.voting import (
    Surveyed,
    check_survey,
    fused,
    likelihoods,
    memberships,
    named,
    neighbourhood,
    signal,
    teachers_and_voters,
    voting_shares,
)
from graphldp.splits import random_split, set_apart

HABITS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])  # for whom people of each class vote


def ballot(epsilon: float, m: int | None = None) -> Vote:
    """Return a vote for the feature that is there, of three."""
    return Vote.of(epsilon, np.eye(3), np.zeros(3), 0.0, 1.0, m)


def survey(votes: np.ndarray, vote: Vote, dimensions: int = 3) -> Surveyed:
    present, absent = vote.chances()
    nothing = sp.csr_array((len(votes), dimensions), dtype=np.float32)
    return Surveyed(matrix=nothing, fill=0.0, votes=votes.astype(np.int16), present=present, absent=absent)


def voters(count: int, vote: Vote, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Surveyed]:
    """Return classes, probabilities that are right on average, and what people of these classes answered."""
    rng = generator(seed, "voters")
    shares = rng.dirichlet(np.full(3, 0.5), count)
    own = (rng.random((count, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    choice = (rng.random((count, 1)) > np.cumsum(HABITS[own], axis=1)).sum(axis=1)
    return own, shares, survey(vote.perturb(np.eye(3)[choice], rng).value, vote)


# what a vote says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "m"), [(1.0, 1), (1.0, 2), (4.0, 1)])
def test_habits_are_found_from_hidden_votes_and_uncertain_classes(epsilon: float, m: int) -> None:
    vote = ballot(epsilon, m)
    _, shares, found = voters(150_000, vote)
    np.testing.assert_allclose(voting_shares(shares, named(found, 3), found.present, found.absent), HABITS, atol=0.05)


@pytest.mark.parametrize(("epsilon", "m"), [(0.7, 1), (0.7, 2), (3.0, 1)])
def test_the_likelihood_of_an_answer_is_its_probability_summed_over_votes(
    epsilon: float, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    vote = ballot(epsilon, m)
    monkeypatch.setattr(voting, "voting_shares", lambda *_: HABITS)
    sets = [(0,), (1,), (2,)] if m == 1 else [(0, 1), (0, 2), (1, 2)]
    found = likelihoods(survey(np.array([*sets, (-1,) * m]), vote), np.full((4, 3), 1 / 3))
    weight = np.array([[math.exp(epsilon) if v in chosen else 1.0 for chosen in sets] for v in range(3)])
    law = HABITS @ (weight / weight.sum(axis=1, keepdims=True))  # P[set | class]
    expected = law.T / law.T[:, :1]
    np.testing.assert_allclose(found[:3] / found[:3, :1], expected, rtol=1e-9)
    np.testing.assert_array_equal(found[3], 1.0)


def test_a_posterior_from_votes_is_calibrated() -> None:
    vote = ballot(2.0)
    own, shares, found = voters(60_000, vote)
    chance = shares * likelihoods(found, shares)
    chance /= chance.sum(axis=1, keepdims=True)
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (chance[:, 0] >= low) & (chance[:, 0] < low + 0.2)
        assert abs((own[inside] == 0).mean() - chance[inside, 0].mean()) < 0.03
    assert (chance.argmax(axis=1) == own).mean() > (shares.argmax(axis=1) == own).mean() + 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_speak_through_the_transitions_of_the_classes(kind: str) -> None:
    matrix = adjacency(kind)
    rng = generator(0, kind)
    shares, likelihood = rng.dirichlet(np.ones(3), 12), rng.uniform(0.2, 3, (12, 3))
    dense = matrix.toarray()
    pairs = np.zeros((3, 3))
    for i in range(12):
        for j in range(12):
            pairs += dense[i, j] * np.outer(shares[i], shares[j])
    transition = pairs / pairs.sum(axis=1, keepdims=True)
    expected = np.zeros((12, 3))
    for i in range(12):
        for j in range(12):
            for c in range(3):
                expected[i, c] += dense[i, j] * math.log(sum(transition[c, k] * likelihood[j, k] for k in range(3)))
    np.testing.assert_allclose(neighbourhood(matrix, shares, likelihood), expected, rtol=1e-9, atol=1e-12)


def test_votes_go_together_with_classes_or_with_nothing() -> None:
    _, shares, found = voters(3000, ballot(2.0))
    answers = named(found, 3)
    assert signal(shares, answers, generator(0, "a")) > 20
    mixed = [signal(shares, generator(s).permutation(answers), generator(s, "b")) for s in range(20)]
    assert max(mixed) < 4
    assert signal(np.full((50, 3), 1 / 3), answers[:50], generator(0)) == 0


# who is asked what ----------------------------------------------------------------------------------------------------


def test_everybody_is_asked_once_and_half_of_the_training_nodes_vote() -> None:
    shares = generator(0, "s").dirichlet(np.ones(4), 400)
    train = np.arange(0, 400, 10)
    shares[train] = np.eye(4)[0]
    teachers, rest = teachers_and_voters(shares, train, 0.5, generator(0, "g"))
    assert sorted([*teachers, *rest]) == list(range(400))
    assert len(teachers) == 200
    assert np.isin(train, teachers).sum() == 20
    others = np.setdiff1d(np.arange(400), train)
    known = shares.max(axis=1)
    assert known[np.intersect1d(others, teachers)].min() >= known[np.intersect1d(others, rest)].max()
    # In random order, so that the first of them are not better known than the last.
    assert abs(np.corrcoef(np.arange(200), known[teachers])[0, 1]) < 0.3
    for share, nodes in ((0.999, 3), (0.001, 50)):
        teachers, rest = teachers_and_voters(shares[:nodes], np.array([0]), share, generator(1))
        assert len(teachers) >= 2
        assert len(rest) >= 1


def test_of_many_training_nodes_few_vote() -> None:
    """Their class is known: those that show what votes are worth are enough, and the others teach."""
    shares = generator(0, "many").dirichlet(np.ones(3), 2000)
    teachers, rest = teachers_and_voters(shares, np.arange(1000), 0.5, generator(0))
    assert np.isin(rest, np.arange(1000)).sum() == 200
    assert len(teachers) == 1000


def test_memberships_hold_training_labels_and_nobody_elses() -> None:
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    train, small = np.arange(6), graph(np.zeros((12, 2)), adjacency("plain"), labels, 3)
    seen = np.where(np.arange(12) < 6, labels, -1)
    shares, evidence = memberships(small, seen, train, 3, generator(0))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares[:6], np.eye(3)[labels[:6]])
    wrong = np.where(np.arange(12) < 6, labels, (labels + 1) % 3)
    for one, two in zip((shares, evidence), memberships(small, wrong, train, 3, generator(0)), strict=True):
        np.testing.assert_array_equal(one, two)
    # A training node's own label is not in its row: one without neighbours has nothing there.
    lonely = np.array([*range(5), 11])
    shares, evidence = memberships(small, np.where(np.isin(np.arange(12), lonely), labels, -1), lonely, 3, generator(0))
    np.testing.assert_array_equal(evidence[11], 0.0)
    np.testing.assert_array_equal(shares[11], np.eye(3)[labels[11]])


# fusing ---------------------------------------------------------------------------------------------------------------


def test_weights_are_those_that_minimise_the_penalised_loss() -> None:
    rng = generator(0, "fuse")
    own = rng.integers(0, 3, 300)
    parts = [2.0 * np.eye(3)[own] * rng.random((300, 1)) + rng.normal(size=(300, 3)), rng.normal(size=(300, 3))]
    prior, train = np.full(3, 1 / 3), np.arange(0, 300, 2)
    posterior, weights = fused(parts, prior, own, train)

    def loss(w: np.ndarray) -> float:
        logits = w[0] * parts[0][train] + w[1] * parts[1][train] + np.log(prior)
        chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return float(-np.log(chance[np.arange(len(train)), own[train]]).mean() + 20 / len(train) * w[1] ** 2)

    for shift in ([0.02, 0], [-0.02, 0], [0, 0.02], [0.02, 0.02]):
        assert loss(weights) <= loss(np.maximum(weights + shift, 0)) + 1e-9
    np.testing.assert_allclose(posterior, weights[0] * parts[0] + weights[1] * parts[1] + np.log(prior))
    hidden = np.where(np.isin(np.arange(300), train), own, 0)
    np.testing.assert_array_equal(fused(parts, prior, hidden, train)[1], weights)


def test_evidence_that_says_nothing_weighs_nothing_and_evidence_that_tells_all_weighs_much() -> None:
    rng = generator(0, "weigh")
    own = rng.integers(0, 3, 400)
    labels, noise = rng.normal(size=(400, 3)) + np.eye(3)[own], rng.normal(size=(400, 3))
    telling = 3 * np.eye(3)[own] + rng.normal(size=(400, 3))
    train = np.arange(400)
    assert fused([labels, noise], np.full(3, 1 / 3), own, train)[1][1] < 0.1
    assert fused([labels, telling], np.full(3, 1 / 3), own, train)[1][1] > 0.5


# the evidence ---------------------------------------------------------------------------------------------------------


def setting(
    habits: np.ndarray | None, epsilon: float = 3.0, *, nodes: int = 600, apart: bool = False
) -> tuple[EvidenceSetting, np.ndarray, np.ndarray]:
    """Return a setting in which people vote by these habits; None has everybody vote at random.

    With `apart`, those who train, choose and are tested are in graphs of their own.
    """
    options = Synthetic(nodes=nodes, classes=3, degree=4.0, dimensions=9, words=3.0, structure=0.4)
    small = synthetic_graph(options, name="synthetic", provenance={})
    split = random_split(np.arange(nodes), generator(0, "split"), train=0.5 if apart else 0.25, validation=0.2)
    rng, vote = generator(0, "habits"), ballot(epsilon)
    chances = np.full((nodes, 3), 1 / 3) if habits is None else habits[small.labels]
    choice = (rng.random((nodes, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
    votes = vote.perturb(np.eye(3)[choice], rng).value.copy()
    votes[::3] = -1
    seen = None
    if apart:
        groups = set_apart(split, nodes, generator(0, "apart"))
        small, seen = groups.sever(small), groups.train
    found = EvidenceSetting.of(small, survey(votes, vote, 9), None, split.train, 5, seen)  # type: ignore[arg-type]
    return found, np.asarray(small.labels), split.test


def test_votes_make_the_posterior_better_and_random_ones_count_as_nothing() -> None:
    told, labels, test = setting(0.1 + 0.7 * np.eye(3))
    silent, _, _ = setting(None)
    evidence = make_evidence("votes")
    one, two = evidence.matrix(told), evidence.matrix(silent)
    assert one.shape == (600, 3)
    right = [(rows.argmax(axis=1) == labels)[test].mean() for rows in (one, two)]
    assert right[0] > right[1] + 0.04
    # Behind a closed gate stands what the labels say, and nothing of the votes.
    other, _, _ = setting(None, epsilon=0.5)
    np.testing.assert_array_equal(two, evidence.matrix(other))
    np.testing.assert_array_equal(two, make_evidence("votes", gate=1e9).matrix(told))


def test_all_evidence_stands_beside_the_fused() -> None:
    told, _, _ = setting(HABITS)
    whole = make_evidence("votes", kind="all").matrix(told)
    assert whole.shape == (600, 15)
    np.testing.assert_array_equal(whole[:, :3], make_evidence("votes").matrix(told))
    own = whole[:, 6:9]
    assert (own[::3] == 0).all()
    assert (own[1::3] != 0).any(axis=1).all()


def test_votes_of_people_who_were_not_seen_are_weighed_by_those_who_were() -> None:
    told, labels, test = setting(HABITS, epsilon=1.0, nodes=6000, apart=True)
    whole = make_evidence("votes", kind="all").matrix(told).astype(np.float64)
    assert whole.shape == (6000, 9)
    together, own, near = np.split(whole, 3, axis=1)
    np.testing.assert_array_equal(together, make_evidence("votes").matrix(told))
    # One log posterior that can be taken at its word: as sure as it is right of people to whom nothing was fitted.
    prior = class_shares(told.labels, told.train, 3)
    weights = np.linalg.lstsq(
        np.stack([own.ravel(), near.ravel()], axis=1), (together - np.log(prior) + np.log(prior).mean()).ravel()
    )[0]
    np.testing.assert_allclose(
        np.tensordot(weights, [own, near], 1) + np.log(prior) - np.log(prior).mean(), together, atol=1e-5
    )

    def wrong(logits: np.ndarray) -> float:
        chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return float(-np.log(chance[test, labels[test]]).mean())

    chance = np.exp(together) / np.exp(together).sum(axis=1, keepdims=True)
    sure = chance[test].max(axis=1)
    assert abs(sure.mean() - (chance.argmax(axis=1) == labels)[test].mean()) < 0.03
    assert wrong(together) < wrong(np.broadcast_to(np.log(prior), together.shape)) - 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "some"}, "kind must be one of fused, all"),
        ({"gate": -1}, "gate must be a number"),
        ({"x": 1}, "no option"),
    ],
)
def test_bad_options_of_the_evidence(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_evidence("votes", **options)


def test_an_estimate_of_features_is_no_survey() -> None:
    for one in (None, estimate()):
        with pytest.raises(OptionError, match="needs a survey"):
            check_survey(one)
