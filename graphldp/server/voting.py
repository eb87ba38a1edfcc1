r"""Asking people twice, each of them once: some about their features, the others for the class that these speak for.

    teachers    the half of the people whose class is best known from the graph and the training labels; they report
                features, first any, then the most telling ones (`class_means`)
    voters      the others, with the other half of the training nodes, or 200 of them; they are sent the classes'
                weights, and each reports the class that her own features speak for (`graphldp.client.vote`)

A vote S is evidence about its voter's class, and through the graph about her neighbours':

    P[S | class c] ~ 1 + (e^epsilon - 1) k_c(S)      k_c(S) the share of class c that votes for a class in S
    log sum_c' T_cc' P[S_j | c']                     of neighbour j; T_cc' how often a neighbour of class c has class c'

k and T follow from everybody's answers and probable classes. Nothing that a person says is used to read her own answer:
who teaches does not vote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph
from graphldp.server.adjacency import shift
from graphldp.server.estimate import Estimate
from graphldp.server.propagation import class_shares, cross_fitted, fitted_power, fold_of, log_evidence, spread

__all__ = [
    "CALIBRATING",
    "Surveyed",
    "centred",
    "check_survey",
    "fused",
    "likelihoods",
    "memberships",
    "named",
    "neighbourhood",
    "signal",
    "teachers_and_voters",
    "voting_shares",
]

Floats = NDArray[np.float64]

_DECAY, _STEPS, _FOLDS = 0.1, 50, 10
_LEAST = 0.15  # of the mean share of votes: no class is taken never to vote for another
_RIDGE = 2.0  # people's worth of the assumption that all classes vote alike
_PENALTY = 20.0  # labels' worth of the assumption that votes say nothing, for the square of each weight that they get
_SHUFFLES = 100
_RARE = 1e-3  # no class is ruled out by labels that were sent at random
CALIBRATING = 200  # training nodes at most that vote: their class is known, and they show what votes are worth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surveyed(Estimate):
    """What a survey has found: the classes that voters named, instead of anybody's features.

    Attributes:
        votes: n x m, the classes named; -1 for who was not asked.
        present, absent: the probabilities that a vote names the voter's class, and another one.
    """

    votes: NDArray[np.int16]
    present: float
    absent: float


def memberships(
    graph: Graph,
    labels: NDArray[np.integer[Any]],
    train: NDArray[np.integer[Any]],
    classes: int,
    rng: np.random.Generator,
    chances: tuple[float, float] | None = None,
) -> tuple[Floats, NDArray[np.float32]]:
    """Return everybody's class probabilities, and the log-odds behind them without the own label of training nodes.

    By label propagation, with a power that is fitted where the own label was left out; training nodes have their class.
    Labels that were sent as they are with the first of two `chances`, as a certain other with the second, are no
    classes: what the graph says of the labels is taken through them back to the classes, and the own label is evidence.
    """
    operator = shift(graph)
    folds = fold_of(train, graph.nodes, _FOLDS, rng)
    (mass,) = cross_fitted(
        lambda start: [spread(operator, start, decay=_DECAY, steps=_STEPS)], labels, train, classes, folds
    )
    prior = class_shares(labels, train, classes)
    evidence = log_evidence(mass, prior)
    shares = _softmax(fitted_power(evidence, prior, labels, train) * evidence.astype(np.float64) + np.log(prior))
    if chances is None:
        shares[train] = np.eye(classes)[labels[train]]
        return shares, evidence
    keep, stray = chances
    shares = np.maximum((shares - stray) / (keep - stray), _RARE)
    shares[train] *= np.where(np.eye(classes, dtype=bool)[labels[train]], keep, stray)
    return shares / shares.sum(axis=1, keepdims=True), evidence


def teachers_and_voters(
    shares: Floats, train: NDArray[np.integer[Any]], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return who is asked about features, in random order, and who votes. Public: no feature has a part in it.

    Half of the training nodes teach, and of the others those whose class is best known; the other half vote, so that
    a model can learn what votes are worth. For that 200 are enough: the rest of a larger half teaches.
    """
    nodes = len(shares)
    if nodes < 2:
        raise DataError(
            f"a survey needs somebody to teach and somebody to vote, got {nodes} person(s) to ask in the training "
            "nodes' graph; train on more of the people"
        )
    count = min(nodes - 1, max(2, round(share * nodes)))
    known = shares.max(axis=1) + 1e-9 * rng.random(nodes)
    mixed = rng.permutation(np.asarray(train, dtype=np.int64))
    voting = min(len(mixed) - len(mixed) // 2, CALIBRATING)
    known[mixed[: len(mixed) - voting]] += 2.0
    known[mixed[len(mixed) - voting :]] -= 2.0
    order = np.argsort(-known, kind="stable")
    return rng.permutation(order[:count]), np.sort(order[count:])


def named(survey: Surveyed, classes: int) -> Floats:
    """Return who named which class, n x classes; zeros for who was not asked."""
    out = np.zeros((len(survey.votes), classes))
    rows, places = np.nonzero(survey.votes >= 0)
    out[rows, survey.votes[rows, places]] = 1.0
    return out


def voting_shares(shares: Floats, answers: Floats, present: float, absent: float) -> Floats:
    """Return for which class the people of each class vote, before it is hidden: classes x classes, rows sum to 1.

    The regression of the answers on the voters' class probabilities, pulled towards all classes voting alike, with the
    mechanism's chances undone.
    """
    mean = answers.mean(axis=0)
    away = shares - shares.mean(axis=0)
    found = mean + np.linalg.solve(away.T @ away + _RIDGE * np.eye(shares.shape[1]), away.T @ (answers - mean))
    clear, average = ((part - absent) / (present - absent) for part in (found, mean))
    average = np.maximum(average, 0.0) + 1e-3
    clear = np.maximum(clear, _LEAST * average / average.sum())
    return np.asarray(clear / clear.sum(axis=1, keepdims=True))


def signal(shares: Floats, answers: Floats, rng: np.random.Generator) -> float:
    """Return by how many standard deviations answers and classes go together more than shuffled answers do."""
    away = shares - shares.mean(axis=0)

    def together(rows: Floats) -> float:
        return float(np.square(away.T @ rows).sum())

    shuffled = np.array([together(answers[rng.permutation(len(answers))]) for _ in range(_SHUFFLES)])
    spreads = float(shuffled.std())
    return (together(answers) - float(shuffled.mean())) / spreads if spreads > 0 else 0.0


def likelihoods(survey: Surveyed, shares: Floats, seen: NDArray[np.bool_] | None = None) -> Floats:
    """Return P[answer | class] of everybody, n x classes, up to a factor; ones for who was not asked.

    With `seen`, for which class people vote follows from these people's answers alone.
    """
    classes, width = shares.shape[1], survey.votes.shape[1]
    answers, asked = named(survey, classes), survey.votes[:, 0] >= 0
    out = np.ones(shares.shape)
    fitted = asked if seen is None else asked & seen
    if fitted.any():
        votes = voting_shares(shares[fitted], answers[fitted], survey.present, survey.absent)
        wrong = max(1 - survey.present, np.finfo(np.float64).eps)  # a chance that rounds to 0 is none to be sure of
        odds = survey.present / wrong * (classes - width) / width  # e^epsilon, by the law
        out[asked] = 1 + (odds - 1) * (answers[asked] @ votes.T)
    return out


def neighbourhood(adjacency: sp.csr_array, shares: Floats, likelihood: Floats) -> Floats:
    """Return the neighbours' answers as log evidence about each node's class, summed, n x classes.

    A neighbour's class is not the node's: it follows from it by the transitions between probable classes along edges,
    so that the answers speak on graphs whose neighbours differ, too. These are what `shares` say; who has none counts
    for nothing there.
    """
    transition = shares.T @ np.asarray(adjacency @ shares)
    transition = transition / np.maximum(transition.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(adjacency @ np.log(np.maximum(likelihood @ transition.T, 1e-300)))


def centred(rows: Floats) -> Floats:
    """Return log evidence with a mean of 0 over the classes."""
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def fused(
    parts: Sequence[Floats], prior: Floats, labels: NDArray[np.integer[Any]], train: NDArray[np.integer[Any]]
) -> tuple[Floats, Floats]:
    """Return one log posterior of several log evidences, and the weight of each.

    Evidence that repeats other evidence counts too much when it is added up. So each part has one weight, at least 0,
    fitted to the labels of training nodes, all but the first with a small penalty: few numbers, for few labels.
    """
    from scipy.optimize import minimize

    nodes = np.asarray(train, dtype=np.int64)
    own = np.asarray(labels)[nodes]
    rows = np.array([part[nodes] for part in parts], dtype=np.float64)
    truth = np.eye(len(prior))[own]
    penalty = _PENALTY / len(own)

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = np.tensordot(weights, rows, axes=1) + np.log(prior)
        chance = _softmax(logits)
        value = -float(np.log(chance[np.arange(len(own)), own] + 1e-300).mean())
        slope = np.array([float(((chance - truth) * part).sum()) / len(own) for part in rows])
        slope[1:] += 2 * penalty * weights[1:]
        return value + penalty * float(np.square(weights[1:]).sum()), slope

    start = np.zeros(len(parts))
    start[0] = 1.0
    bounds = [(0.0, 5.0)] + [(0.0, 2.0)] * (len(parts) - 1)
    weights = np.asarray(minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x, dtype=np.float64)
    return np.tensordot(weights, np.asarray(parts, dtype=np.float64), axes=1) + np.log(prior), weights


def check_survey(estimate: Estimate | None) -> Surveyed:
    """Return the survey's findings; an estimate of features is none."""
    if not isinstance(estimate, Surveyed):
        raise OptionError("the evidence of votes needs a survey: it goes with method frontier, which asks for votes")
    return estimate


def _softmax(logits: Floats) -> Floats:
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))
