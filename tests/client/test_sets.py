"""Mechanisms for sets: their laws by brute force, their moments, their samplers, and what they refuse."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from graphldp.audit.sets import support_law
from graphldp.client import protocol
from graphldp.client.laws.sets import best_size, total_variance
from graphldp.client.mechanisms.olh import buckets_of
from graphldp.client.sampling import choose
from graphldp.errors import DataError, OptionError
from graphldp.randomness import SecureSource, generator
from graphldp.server import rectify

NAMES = ("olh", "oue", "privset", "subset")
Z = 6.0


def people(record: list[int], count: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    return np.tile(np.where(np.array(record) == 1, high, low), (count, 1))


# the law --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 9.0])
@pytest.mark.parametrize(("d", "pad"), [(2, 1), (3, 2), (4, 2), (4, 3), (5, 2), (4, 4)])
def test_the_exact_loss_is_that_of_the_law_written_out(name: str, epsilon: float, d: int, pad: int) -> None:
    built = protocol(name, epsilon, d, 0.0, 1.0, pad=pad)
    laws = np.array([support_law(built, record) for record in itertools.product((0, 1), repeat=d)])
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-12)
    reached = laws.max(axis=0) > 0
    largest = float(np.log(laws[:, reached].max(axis=0) / laws[:, reached].min(axis=0)).max())
    assert largest == pytest.approx(built.privacy_loss(), rel=1e-9)
    assert largest <= epsilon * (1 + 1e-9)
    if name in ("privset", "olh") or (name == "subset" and built.m >= pad) or (name == "oue" and d >= 2 * pad):
        assert largest == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize(("overlap", "m"), [(1, 1), (1, 3), (2, 2), (2, 4), (3, 4)])
def test_privset_keeps_its_budget_at_every_overlap(epsilon: float, overlap: int, m: int) -> None:
    built = protocol("privset", epsilon, 5, 0.0, 1.0, pad=3, overlap=overlap, m=m)
    laws = np.array([support_law(built, record) for record in itertools.product((0, 1), repeat=5)])
    gap = np.log(laws.max(axis=0)[laws.max(axis=0) > 0] / laws.min(axis=0)[laws.max(axis=0) > 0])
    assert float(gap.max()) == pytest.approx(epsilon, rel=1e-9)
    assert built.privacy_loss() == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_estimate_is_unbiased_by_the_law_written_out(name: str, epsilon: float) -> None:
    built = protocol(name, epsilon, 4, -1.0, 2.0, pad=3)
    bits = (np.arange(2**built.domain if name == "olh" else 16)[:, None] >> np.arange(4)) & 1
    values = built.fill_value + bits * (float(built.base.estimate(1.0)) - built.fill_value)
    for record in itertools.product((0, 1), repeat=4):
        law = support_law(built, record)
        x = np.where(np.array(record) == 1, 2.0, -1.0)
        mean = law @ values
        if sum(record) <= 3:
            np.testing.assert_allclose(mean, x, atol=1e-9)
            np.testing.assert_allclose(law @ (values - mean) ** 2, built.variance(x), rtol=1e-9)
        else:  # one more than the padding: each is kept in three of four cases
            np.testing.assert_allclose(mean, -1.0 + 3.0 * 0.75, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 10.0, 100.0, 500.0])
def test_no_budget_overflows(name: str, epsilon: float) -> None:
    built = protocol(name, epsilon, 50, 0.0, 1.0)
    assert 0 < built.privacy_loss() <= epsilon * (1 + 1e-9)
    assert np.isfinite(built.variance(np.array([0.0, 1.0]))).all()
    sent = built.perturb(people([1] * 5 + [0] * 45, 7), generator(0))
    assert np.isfinite(rectify(sent).dense()).all()


LARGE = [20.0, 41.0, 45.0, 48.0, 50.0, 100.0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", LARGE)
@pytest.mark.parametrize("dimensions", [6, 50, 1433])
def test_the_rarest_choice_is_made_with_its_own_probability(name: str, epsilon: float, dimensions: int) -> None:
    choice = protocol(name, epsilon, dimensions, 0.0, 1.0).choice
    for x in (-1.0, 1.0):
        places = choice.support(x)
        mass = choice.pmf(places, x)
        assert mass.sum() == pytest.approx(1, rel=1e-12)
        if np.allclose(mass, 0.5):  # an own bit of `oue`: neither outcome is the rarer one
            continue
        rarest = int(np.argmin(np.where(mass > 0, mass, 2.0)))
        sent = choice.invert(np.full(2, x), mass[rarest] * np.array([1 - 1e-9, 1 + 1e-9]))
        assert (sent == places[rarest]).tolist() == [True, False]


@pytest.mark.parametrize("epsilon", LARGE)
@pytest.mark.parametrize("dimensions", [50, 1433])
def test_a_hash_tells_another_bucket_as_often_as_its_budget_says(epsilon: float, dimensions: int) -> None:
    built = protocol("olh", epsilon, dimensions, 0.0, 1.0)
    # How much of (0, 1) tells another bucket: bisected on the map itself, on the logarithm of u.
    likely, seldom = 0.0, -650.0
    for _ in range(200):
        middle = (likely + seldom) / 2
        likely, seldom = (likely, middle) if built.choice.invert(0.0, math.exp(middle)) == 0 else (middle, seldom)
    assert math.log1p(-math.exp(likely)) - (likely - math.log(built.buckets - 1)) == pytest.approx(epsilon, rel=1e-12)
    assert built.privacy_loss() == pytest.approx(epsilon, rel=1e-14)


@pytest.mark.parametrize("epsilon", LARGE)
def test_no_chance_of_an_item_is_lost_at_a_large_budget(epsilon: float) -> None:
    # Of 8 items m = 1 is named: another one than the drawn item with (1 - P[drawn])/7.
    own, other = protocol("subset", epsilon, 7, 0.0, 1.0, pad=1, m=1).item_chances()
    assert own == pytest.approx(1, rel=1e-6)
    assert other == pytest.approx(math.exp(-epsilon) / (1 + 7 * math.exp(-epsilon)), rel=1e-9, abs=0)


def test_the_published_numbers_of_a_single_item() -> None:
    e = math.exp(1.2)
    subset = protocol("subset", 1.2, 99, 0.0, 1.0, pad=1)
    assert subset.m in (math.floor(100 / (e + 1)), math.ceil(100 / (e + 1)))
    own, other = subset.item_chances()
    k = subset.m
    assert own == pytest.approx(k * e / (k * e + 100 - k), rel=1e-12)
    assert other == pytest.approx((k - own) / 99, rel=1e-12)
    assert protocol("oue", 1.2, 99, 0.0, 1.0).item_chances() == pytest.approx((0.5, 1 / (e + 1)))
    olh = protocol("olh", 1.2, 99, 0.0, 1.0)
    assert olh.buckets == round(e) + 1
    assert olh.item_chances() == pytest.approx((e / (e + olh.buckets - 1), 1 / olh.buckets))
    # Variance of a frequency estimate of an absent item (Wang et al. 2017): 4 e/(e-1)^2 for OUE.
    assert float(protocol("oue", 1.2, 99, 0.0, 1.0, pad=1).variance(0.0)) == pytest.approx(4 * e / (e - 1) ** 2)


@pytest.mark.parametrize("name", ["privset", "subset"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
def test_the_chosen_size_has_the_smallest_variance_of_all(name: str, epsilon: float) -> None:
    d, pad = 40, 4
    built = protocol(name, epsilon, d, 0.0, 1.0, pad=pad)
    size, overlaps = (pad, range(1, pad + 1)) if name == "privset" else (1, [1])
    every = [(total_variance(epsilon, d + pad, size, k, t), k, t) for t in overlaps for k in range(t, d + 1)]
    best = min(every)
    mine = total_variance(epsilon, d + pad, size, built.m, getattr(built, "overlap", 1))
    assert mine == pytest.approx(best[0], rel=1e-12)
    for t in overlaps:
        assert best_size(epsilon, d + pad, size, t, d)[0] == pytest.approx(min(e[0] for e in every if e[2] == t))


def test_all_items_at_once_say_more_than_one_of_them() -> None:
    for epsilon, least in ((1.0, 10), (3.0, 10), (5.0, 4)):
        whole, one = (protocol(name, epsilon, 1433, 0.0, 1.0) for name in ("privset", "subset"))
        assert float(one.variance(0.0)) > least * float(whole.variance(0.0))
        assert whole.privacy_loss() == pytest.approx(epsilon)


# the sampler ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("record", [[1, 0, 1, 0, 0, 1], [1, 1, 1, 1, 0, 1], [0] * 6])
def test_simulated_moments_are_the_stated_ones(name: str, epsilon: float, record: list[int]) -> None:
    built = protocol(name, epsilon, 6, 0.0, 1.0, pad=3)
    count = 30_000
    values = rectify(built.perturb(people(record, count), generator(3, name, epsilon))).dense().astype(float)
    keep = min(1.0, 3 / max(1, sum(record)))
    for column, there in enumerate(record):
        share = there * keep
        chance = built.base.absent + share * (built.base.present - built.base.absent)
        variance = chance * (1 - chance) / (built.base.present - built.base.absent) ** 2
        drawn = values[:, column]
        assert abs(drawn.mean() - share) < Z * math.sqrt(variance / count) + 1e-6
        if sum(record) <= 3:
            assert variance == pytest.approx(float(built.variance(float(there))))


@pytest.mark.parametrize("name", NAMES)
def test_people_share_no_noise_and_the_order_of_people_changes_nobodys_law(name: str) -> None:
    built = protocol(name, 2.0, 5, 0.0, 1.0, pad=2)
    mine, others = people([1, 0, 0, 1, 0], 8000), people([0, 1, 1, 1, 1], 8000)
    one = rectify(built.perturb(np.concatenate([mine, others]), generator(1))).dense()[:8000].astype(float)
    two = rectify(built.perturb(np.concatenate([others, mine]), generator(2))).dense()[8000:].astype(float)
    for column in range(5):
        error = math.sqrt((one[:, column].var() + two[:, column].var()) / 8000)
        assert abs(one[:, column].mean() - two[:, column].mean()) < Z * error
        assert abs(np.corrcoef(one[:-1, column], one[1:, column])[0, 1]) < Z / math.sqrt(8000)


@pytest.mark.parametrize("name", ["subset", "privset"])
def test_reports_are_sets_of_features_without_dummies(name: str) -> None:
    built = protocol(name, 1.0, 30, 0.0, 1.0, pad=10)
    sent = built.perturb(np.zeros((500, 30)), generator(0))
    assert sent.index is not None
    assert sent.value.dtype == np.int8
    assert sent.index.max() < 30
    used = sent.index >= 0
    assert (np.diff(used.astype(int), axis=1) <= 0).all()  # unused places come last
    assert (used.sum(axis=1) <= built.m).all()
    assert (used.sum(axis=1) < built.m).any()
    assert ((sent.value == 1) == used).all()
    for index in sent.index:
        assert (np.diff(index[index >= 0]) > 0).all()


def test_the_size_of_a_set_does_not_show_in_the_size_of_a_report() -> None:
    built = protocol("privset", 3.0, 40, 0.0, 1.0, pad=10)
    empty, full = (rectify(built.perturb(people(r, 20_000), generator(4))).dense() for r in ([0] * 40, [1] * 40))
    # What is seen of an empty set and of one with ten features is at most e^3 apart in any event; of their sizes too.
    sizes = [(np.abs(part - part.min()) > 1e-6).sum(axis=1) for part in (empty, full)]
    for size in range(built.m + 1):
        one, two = ((s == size).mean() for s in sizes)
        assert one <= math.exp(3.0) * two + 0.01
        assert two <= math.exp(3.0) * one + 0.01


def test_a_hash_is_a_random_function_and_its_seed_is_drawn_uniformly() -> None:
    seeds = generator(0, "hash").integers(0, 2**31, 40_000)
    for g in (2, 4, 21):
        one, two = (buckets_of(seeds, np.full(1, item), g) for item in (3, 1400))
        table = np.histogram2d(one, two, bins=[np.arange(g + 1)] * 2)[0]
        assert stats.chisquare(table.reshape(-1)).pvalue > 1e-7
        spread = buckets_of(np.array([7]), np.arange(40_000), g)
        assert stats.chisquare(np.bincount(spread, minlength=g)).pvalue > 1e-7
    sent = protocol("olh", 1.0, 9, 0.0, 1.0).perturb(people([1, 1] + [0] * 7, 40_000), generator(5))
    assert stats.kstest(sent.value[:, 0] / 2**31, "uniform").pvalue > 1e-7
    built = protocol("olh", 1.0, 9, 0.0, 1.0)
    with pytest.raises(OptionError, match="unfold the reports first"):
        built.estimate(sent)
    unfolded = built.unfold(sent)
    assert built.unfold(unfolded) is unfolded
    for node in range(20):
        inside = [
            j
            for j in range(9)
            if buckets_of(sent.value[node : node + 1, 0], np.array([j]), 4)[0] == sent.value[node, 1]
        ]
        assert unfolded.index[node][unfolded.index[node] >= 0].tolist() == inside


@pytest.mark.parametrize("name", NAMES)
def test_many_people_are_drawn_in_blocks_and_a_wide_domain_fits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = protocol(name, 1.0, 60, 0.0, 1.0, pad=4)
    x = sp.random_array((300, 60), density=0.05, format="csr", rng=np.random.default_rng(0))
    x.data[:] = 1.0
    monkeypatch.setattr("graphldp.client.laws.sets._BLOCK", 400)
    monkeypatch.setattr("graphldp.client.mechanisms.olh._BLOCK", 400)
    sent = built.perturb(x, generator(1))
    assert sent.nodes == 300
    assert rectify(sent).dense().shape == (300, 60)
    assert built.perturb(x[:0], generator(1)).nodes == 0
    assert rectify(built.perturb(x[:0], generator(1))).dense().shape == (0, 60)
    assert built.perturb(x, SecureSource()).nodes == 300


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_neither_there_nor_not_are_refused_in_one_line(name: str) -> None:
    built = protocol(name, 1.0, 4, 0.0, 1.0)
    for features in (np.array([[0, 1, 0.5, 0], [0, 0, 0, 1.0]]), sp.csr_array(np.array([[0, 1, 0.5, 0]]))):
        with pytest.raises(DataError, match=r"1 node\(s\) have values between 0 and 1; use pm or mb") as caught:
            built.perturb(features, generator(0))
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="range begins at -1"):
        protocol(name, 1.0, 4).perturb(sp.csr_array(np.eye(4)), generator(0))
    with pytest.raises(OptionError, match="has no privacy levels"):
        built.perturb(np.zeros((2, 4)), generator(0), level=[1, 1])


@pytest.mark.parametrize("name", NAMES)
def test_values_outside_the_range_count_as_its_ends(name: str) -> None:
    built = protocol(name, 1.0, 4, 0.0, 1.0)
    inside, outside = np.array([[0, 1, 0, 1.0]]), np.array([[-5, 7, -np.inf, np.inf]])
    one, two = (built.perturb(x, generator(1)) for x in (inside, outside))
    assert one.value.tobytes() == two.value.tobytes()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("subset", {"pad": 0}, "pad must be a whole number from 1"),
        ("subset", {"m": 0}, "m must be a whole number from 1 to 6"),
        ("subset", {"overlap": 2}, "has no option 'overlap'; it has: pad"),
        ("privset", {"overlap": 7, "pad": 3}, "overlap must be a whole number from 1 to 3"),
        ("privset", {"overlap": 3, "m": 2}, "overlap must be a whole number from 1 to 2"),
        ("privset", {"m": 7}, "m must be a whole number from 1 to 6"),
        ("oue", {"m": 3}, "oue reports every dimension: m must be left out, or be 6"),
        ("olh", {"m": 2}, "olh reports one bucket: m must be left out, or be 1"),
    ],
)
def test_options_that_cannot_be_meant(name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        protocol(name, 1.0, 6, 0.0, 1.0, **options)


def test_a_set_is_never_larger_than_all_features() -> None:
    assert protocol("privset", 1.0, 6, 0.0, 1.0).pad == 6
    assert protocol("privset", 1.0, 600, 0.0, 1.0).pad == 20


def test_choosing_from_a_complement_is_uniform() -> None:
    built = protocol("subset", 1.0, 5, 0.0, 1.0, pad=1, m=2)
    sent = built.perturb(people([0, 0, 1, 0, 0], 40_000), generator(8))
    without = sent.index[~(sent.index == 2).any(axis=1)]
    pairs, counts = np.unique(without[(without >= 0).all(axis=1)], axis=0, return_counts=True)
    assert len(pairs) == 6
    assert stats.chisquare(counts).pvalue > 1e-7
    assert choose(3, 5, 2, generator(0)).shape == (3, 2)


def test_which_hash_function_a_person_uses_follows_from_nothing_she_has() -> None:
    device = protocol("olh", 1.0, 40, 0.0, 1.0)
    one, two = np.zeros((50, 40)), np.zeros((50, 40))
    one[:, ::2] = two[:, 1::2] = 1.0
    functions = [np.asarray(device.perturb(x, generator(5)).value)[:, 0] for x in (one, two, sp.csr_array(two))]
    np.testing.assert_array_equal(functions[0], functions[1])
    np.testing.assert_array_equal(functions[0], functions[2])
    assert len(np.unique(functions[0])) == 50
