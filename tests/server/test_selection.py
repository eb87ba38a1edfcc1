"""Two rounds: their budget, what a device reports, unbiased rectification, and the figures about a selection."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from graphldp.client import lookup, names, protocol
from graphldp.client.directed import DirectedMechanism, directed_from_meta, first_round, second_round
from graphldp.client.registry import NO_FEATURE
from graphldp.errors import DataError, OptionError
from graphldp.randomness import SecureSource, generator
from graphldp.server import (
    Estimate,
    Filtered,
    attribute_accuracy,
    combine_rounds,
    degree_correlation,
    mean_jaccard,
    none,
    rectify,
    rectify_directed,
)
from graphldp.server.selection import directed_variance

D = 12
RANKING = (7, 2, 9, 4, 0, 1, 11)
MECHANISMS = ("pm", "mb", "sw", "cldp", "duchi", "hm", "mlr")
LEVELLED = ("ppm-public", "pldp")


def directed(name: str, epsilon: float = 12.0, rho: float = 0.5, **options: object) -> DirectedMechanism:
    return second_round(name, epsilon, D, 0.0, 1.0, ranking=RANKING, rho=rho, **options)


@pytest.mark.parametrize("name", [*MECHANISMS, *LEVELLED])
@pytest.mark.parametrize(("epsilon", "first"), [(1.0, 0.5), (9.0, 0.5), (6.0, 0.3), (0.01, 0.7)])
@pytest.mark.parametrize("m_from", ["round", "total"])
def test_two_rounds_spend_epsilon_in_total(name: str, epsilon: float, first: float, m_from: str) -> None:
    if name in LEVELLED and m_from == "total":
        with pytest.raises(OptionError, match="each level's budget"):
            first_round(name, epsilon, 400, 0.0, 1.0, first=first, m_from=m_from)
        return
    one = first_round(name, epsilon, 400, 0.0, 1.0, first=first, m_from=m_from)
    two = second_round(name, epsilon, 400, 0.0, 1.0, ranking=range(400), first=first, m_from=m_from)
    assert one.epsilon + two.epsilon == pytest.approx(epsilon, rel=1e-12)
    whole = protocol(name, epsilon, 400, 0.0, 1.0)
    # The exact losses of the laws, added up, do not exceed what one report of the whole budget has.
    spent = one.privacy_loss() + two.privacy_loss()
    assert spent <= (1 + 1e-9) * max(whole.budgets)
    if name in ("pm", "mb", "duchi"):
        assert spent == pytest.approx(epsilon, rel=1e-2)
    assert two.claim == two.device.claim


def test_m_follows_the_rounds_budget_unless_it_is_asked_otherwise() -> None:
    epsilon = 12.0
    assert first_round("mb", epsilon, 400).m == protocol("mb", epsilon / 2, 400).m
    assert directed("mb").device.m == protocol("mb", epsilon / 2, D).m
    of_total = first_round("mb", epsilon, 400, m_from="total")
    assert of_total.m == protocol("mb", epsilon, 400).m > first_round("mb", epsilon, 400).m
    assert of_total.epsilon == epsilon / 2
    paper = first_round("pm", 15.0, 400, m_from="total", m_rule="2/5")
    assert paper.m == 6
    assert first_round("pm", 15.0, 400, m_rule="2/5").m == 3
    assert first_round("pm", 15.0, 400, m=5, m_from="total").m == 5


def test_the_fixed_dimensions_are_the_best_of_the_ranking() -> None:
    cases = {(4, 0.5): (2, 7), (4, 0.74): (2, 7), (4, 1.0): (2, 4, 7, 9), (4, 0.0): (), (1, 0.9): (), (1, 1.0): (7,)}
    for (m, rho), fixed in cases.items():
        one = directed("mb", rho=rho, m=m)
        assert one.fixed() == fixed
        assert one.inclusion().sum() == pytest.approx(m)
    # 0.1 * 3 * 10 in floating point is below 3.
    assert directed("mb", m=10, rho=0.3).fixed_count() == 3


@pytest.mark.parametrize(("m", "rho"), [(4, 0.5), (3, 1.0), (2, 0.0), (8, 0.3)])
def test_a_device_reports_the_fixed_dimensions_and_a_uniform_set_of_others(m: int, rho: float) -> None:
    one = directed("mb", rho=rho, m=m)
    index = one.index(30000, generator(0, "index"))
    assert index.shape == (30000, m)
    assert (np.diff(index, axis=1) > 0).all()
    counts = np.bincount(index.ravel(), minlength=D)
    assert (counts[list(one.fixed())] == 30000).all()
    others = np.setdiff1d(np.arange(D), one.fixed())
    drawn = m - len(one.fixed())
    if drawn:
        expected = np.full(len(others), 30000 * drawn / len(others))
        spread = expected * (1 - drawn / len(others))
        assert (np.abs(counts[others] - expected) < 5.5 * np.sqrt(spread)).all()
        # Sets, not only dimensions, are uniform.
        pairs = np.unique(np.sort(index, axis=1), axis=0, return_counts=True)[1]
        assert stats.chisquare(pairs).pvalue > 1e-6
    else:
        assert not counts[others].any()


def test_the_dimensions_depend_on_no_data() -> None:
    one = directed("pm", m=4)
    sent = [one.perturb(np.full((50, D), x), generator(0, "same")) for x in (0.0, 1.0)]
    assert np.array_equal(sent[0].index, sent[1].index)
    assert not np.array_equal(sent[0].value, sent[1].value)
    sparse = one.perturb(sp.csr_array(np.full((50, D), 1.0)), generator(0, "same"))
    assert np.array_equal(sparse.value, sent[1].value)
    assert one.perturb(np.zeros((5, D)), SecureSource()).index.shape == (5, 4)


def reports_of(one: DirectedMechanism, x: np.ndarray, trial: int):
    level = (np.arange(len(x)) % len(one.parts) + 1).astype(np.int32) if len(one.parts) > 1 else None
    return one.perturb(x, generator(0, "unbiased", one.device.name, trial), level)


@pytest.mark.parametrize("name", ["pm", "mb", "sw", "ppm-public", "pldp"])
def test_round_two_is_unbiased_with_each_dimensions_own_probability(name: str) -> None:
    extra = {"levels": 3} if name in LEVELLED else {"m": 4}
    one = directed(name, epsilon=8.0, rho=0.5, **extra)
    nodes = 60000
    row = np.linspace(0, 1, D)
    reports = reports_of(one, np.tile(row, (nodes, 1)), 0)
    estimate = rectify_directed(reports).dense().astype(float)
    level = np.ones(nodes, dtype=int) if reports.level is None else reports.level
    for number in range(1, len(one.parts) + 1):
        mine = estimate[level == number]
        variance = np.array([directed_variance(one, x, number)[j] for j, x in enumerate(row)])
        deviation = np.sqrt(variance / len(mine))
        assert (np.abs(mine.mean(axis=0) - row) < 5.5 * deviation + 1e-6).all(), number
        np.testing.assert_allclose(mine.var(axis=0), variance, rtol=0.08)
    # The paper's d/m for everybody inflates the fixed dimensions and shrinks the others.
    printed = rectify_directed(reports, "paper").dense().astype(float)
    for j in np.flatnonzero(row != 0.5):
        number = len(one.parts)
        mine = printed[level == number, j].mean() - 0.5
        m, chance = one.parts[-1].m, one.inclusion(number)[j]
        assert mine / (row[j] - 0.5) == pytest.approx(chance * D / m, abs=0.5)
    fixed = one.fixed(len(one.parts))[0]
    assert abs(printed[level == len(one.parts), fixed].mean() - row[fixed]) > 0.1


def test_the_variance_of_round_two_is_that_of_round_one_where_nothing_is_fixed() -> None:
    one = directed("mb", rho=0.0, m=3)
    np.testing.assert_allclose(directed_variance(one, 0.7), float(one.device.variance(0.7)))
    all_fixed = directed_variance(directed("mb", rho=1.0, m=3), 0.7)
    assert np.isinf(all_fixed).sum() == D - 3


def test_reports_survive_their_metadata_and_a_plain_server_refuses_them() -> None:
    for name in (*MECHANISMS, *LEVELLED):
        one = directed(name)
        level = np.ones(9, dtype=np.int32) if name in LEVELLED else None
        reports = one.perturb(np.zeros((9, D)), generator(0, name), level)
        again = directed_from_meta(json.loads(json.dumps(dict(reports.meta))))
        assert (again.device, again.rho) == (one.device, one.rho)
        assert [again.fixed(t) for t in range(1, len(one.parts) + 1)] == [
            one.fixed(t) for t in range(1, len(one.parts) + 1)
        ]
        with pytest.raises(OptionError, match="ranking"):
            rectify(reports)
    plain = protocol("mb", 1.0, D).perturb(np.zeros((3, D)), generator(0, "mb"))
    with pytest.raises(OptionError, match="no ranking"):
        rectify_directed(plain)


def test_both_rounds_together_are_unbiased_and_better_than_either() -> None:
    nodes, row = 40000, np.linspace(0, 1, D)
    x = np.tile(row, (nodes, 1))
    one, two = first_round("mb", 8.0, D, 0.0, 1.0, m=3), directed("mb", epsilon=8.0, m=3, rho=0.4)
    first = rectify(one.perturb(x, generator(0, "first")))
    second = rectify_directed(two.perturb(x, generator(0, "second")))
    both = combine_rounds(first, second, one, two)
    dense = both.dense().astype(float)
    weight = 1 / float(one.variance(0.5)) + 1 / directed_variance(two, 0.5)
    assert (np.abs(dense.mean(axis=0) - row) < 5.5 * np.sqrt(1.5 / weight / nodes)).all()
    middle = 6  # the closest to 1/2, for which the weights are the best
    assert dense.var(axis=0)[middle] < second.dense().var(axis=0)[middle]
    assert dense.var(axis=0)[middle] < first.dense().var(axis=0)[middle]
    expected = 1 / (1 / float(one.variance(0.5)) + 1 / directed_variance(two, 0.5))
    np.testing.assert_allclose(dense.var(axis=0)[middle], expected[middle], rtol=0.05)
    assert both.matrix.has_sorted_indices
    assert both.fill == 0.5


def test_what_the_second_round_never_reports_is_the_first_rounds() -> None:
    x = np.random.default_rng(0).random((200, D))
    one, two = first_round("mb", 8.0, D, 0.0, 1.0, m=3), directed("mb", epsilon=8.0, m=3, rho=1.0)
    first = rectify(one.perturb(x, generator(0, "first")))
    second = rectify_directed(two.perturb(x, generator(0, "second")))
    both = combine_rounds(first, second, one, two).dense()
    never = np.setdiff1d(np.arange(D), two.fixed())
    np.testing.assert_allclose(both[:, never], first.dense()[:, never], rtol=1e-6)
    assert not np.allclose(both[:, list(two.fixed())], first.dense()[:, list(two.fixed())])
    with pytest.raises(DataError, match="do not fit"):
        combine_rounds(Estimate(matrix=first.matrix, fill=0.0), second, one, two)


def test_mechanisms_that_cannot_be_directed_say_so() -> None:
    for name in names():
        cls = lookup(name)
        if cls.kind in NO_FEATURE or name in (*MECHANISMS, *LEVELLED, "null", "identity"):
            continue
        if cls.kind == "scalar" and not cls.every_dimension:
            assert directed(name, m=3).fixed_count() == 1
            continue
        with pytest.raises(OptionError, match="direct"):
            directed(name)


def test_where_everything_is_reported_every_probability_is_1() -> None:
    one = directed("mb", m=D)
    assert (one.inclusion() == 1).all()
    assert (one.index(4, generator(0, "all")) == np.arange(D)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: directed("mb", rho=1.1), "rho"),
        (lambda: directed("mb", rho=float("nan")), "rho"),
        (lambda: directed("mb", epsilon=float("inf")), "finite budget"),
        (lambda: directed("mb", epsilon=0.0), "finite budget"),
        (lambda: directed("mb", first=1.0), "first"),
        (lambda: directed("mb", m_from="both"), "m_from"),
        (lambda: directed("lp"), "every dimension"),
        (lambda: second_round("mb", 1.0, D, ranking=(3, 3), rho=1.0, m=2), "twice"),
        (lambda: second_round("mb", 1.0, D, ranking=(3, D), rho=1.0, m=2), "from 0 to 11"),
        (lambda: second_round("mb", 1.0, D, ranking=(3,), rho=1.0, m=2), "names 1 dimensions, 2 are needed"),
        (lambda: directed("pldp").perturb(np.zeros((3, D)), generator(0, "x")), "levels of the first"),
        (lambda: directed("mb").perturb(np.zeros((3, D)), generator(0, "x"), np.ones(3, int)), "no privacy levels"),
        (lambda: rectify_directed(reports_of(directed("mb"), np.zeros((3, D)), 0), "mean"), "rectification"),
    ],
)
def test_options_out_of_range_are_refused(make: object, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make()


def test_stability_is_the_mean_overlap_of_all_pairs() -> None:
    assert mean_jaccard([{1, 2, 3}, {1, 2, 3}]) == 1
    assert mean_jaccard([{1, 2}, {3, 4}]) == 0
    assert mean_jaccard([(1, 2, 3), (2, 3, 4), (9,)]) == pytest.approx((0.5 + 0 + 0) / 3)
    with pytest.raises(DataError, match="at least two"):
        mean_jaccard([{1}])


def test_fairness_is_pearsons_correlation_with_the_degree() -> None:
    rng = np.random.default_rng(0)
    degree = rng.integers(1, 30, 200)
    values = rng.random((200, 5)) + np.outer(degree, [0, 0.05, -0.05, 0, 0])
    values[:, 4] = 3.0
    ours = degree_correlation(values, degree, [1, 2, 0, 4])
    expected = [stats.pearsonr(values[:, j], degree)[0] for j in (1, 2, 0)]
    np.testing.assert_allclose(ours[:3], expected)
    assert ours[3] == 0
    np.testing.assert_allclose(degree_correlation(sp.csr_array(values), degree, [1, 2, 0, 4]), ours)
    with pytest.raises(DataError, match="200 degrees"):
        degree_correlation(values, degree[:5], [0])


def test_the_utility_of_one_attribute_is_a_linear_discriminants_accuracy() -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 240, p=[0.2, 0.3, 0.5])
    x = rng.normal(size=(240, 4)) + np.outer(labels, [2.0, 0.5, 0, 0])
    x[:, 3] = 1.0
    one = Filtered.of(Estimate(matrix=sp.csr_array(x.astype(np.float32)), fill=0.0), none(), sp.csr_array((240, 240)))
    train, scored = np.arange(120), np.arange(120, 240)
    ours = attribute_accuracy(one, labels, train, scored, max_memory=4 * 3 * 240 * 3)
    for j in range(3):
        model = LinearDiscriminantAnalysis(solver="lsqr").fit(x[train, j : j + 1], labels[train])
        assert ours[j] == pytest.approx(model.score(x[scored, j : j + 1], labels[scored]), abs=0.009)
    assert ours[3] == np.mean(labels[scored] == np.bincount(labels[train]).argmax())
    assert ours[0] > ours[1] > ours[3]
    with pytest.raises(DataError, match="scored on"):
        attribute_accuracy(one, labels, train, [])
