"""Privacy levels: what is lost as printed, what the two repairs keep, and what a server makes of the reports."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from client_laws import ALPHA, Z, chi_square

from graphldp.client import DISTRIBUTIONS, mechanism, protocol
from graphldp.client.levels import probabilities
from graphldp.client.mechanisms.ppm_safe import SafePersonalised
from graphldp.errors import DataError, OptionError
from graphldp.randomness import SecureSource, generator
from graphldp.server import rectify

NAMES = ("ppm", "ppm-public", "ppm-safe", "pldp")


# What is true of the mechanism as printed


def test_the_printed_magnitudes_name_the_level() -> None:
    # d = 1433, gamma 1/2, budgets 1, 2, 4, 8, 16.
    printed = protocol("ppm", 1.0, 1433)
    sizes = [printed.magnitude(level) for level in range(1, 6)]
    np.testing.assert_allclose(sizes, [5850.9, 3100.9, 1881.6, 1486.5, 549.0], atol=0.06)
    assert [printed._esw(level).radius for level in range(1, 6)] == [1, 1, 0, 0, 0]
    assert [printed._esw(level).outputs for level in range(1, 6)] == [7, 7, 5, 5, 5]
    assert printed.privacy_loss() == math.inf
    assert "names the level" in printed.claim.reason


def test_for_the_features_alone_the_printed_mechanism_costs_its_share() -> None:
    printed = protocol("ppm", 2.0, 100, gamma=0.3)
    for level in range(1, 6):
        assert printed.level_loss(level) == pytest.approx(0.7 * 2.0 * 2 ** (level - 1), rel=1e-9)


def test_one_printed_report_tells_the_level() -> None:
    printed = protocol("ppm", 1.0, 50)
    true = np.repeat(np.arange(1, 6), 40).astype(np.int32)
    reports = printed.perturb(np.zeros((200, 50)), generator(0), level=true)
    sizes = np.abs(reports.value[:, 0])
    guess = 1 + np.abs(sizes[:, None] - [printed.magnitude(t) for t in range(1, 6)]).argmin(axis=1)
    np.testing.assert_array_equal(guess, true)


def test_with_one_level_there_is_nothing_to_hide_and_the_printed_claim_holds() -> None:
    printed = protocol("ppm", 1.0, 20, levels=1)
    assert printed.keeps_claim
    assert printed.privacy_loss() == pytest.approx(0.5)


# What the safe variant keeps


@pytest.mark.parametrize(("epsilon", "gamma", "levels"), [(1.0, 0.5, 2), (0.4, 0.2, 3), (3.0, 0.7, 3)])
def test_the_safe_pair_loss_is_what_brute_force_over_all_reports_finds(
    epsilon: float, gamma: float, levels: int
) -> None:
    d = 3
    safe = protocol("ppm-safe", epsilon, d, gamma=gamma, levels=levels)
    esw = mechanism("esw", gamma * epsilon, 1, levels)
    vectors = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    largest, claimed = 0.0, gamma * epsilon + (1 - gamma) * epsilon * 2 ** (levels - 1)
    for one, other in itertools.product(range(1, levels + 1), repeat=2):
        for sent in esw.support(1):
            m = safe.m_of(int(esw.decode(sent)))
            laws = [mechanism("mb", (1 - gamma) * epsilon * 2 ** (t - 1) / m) for t in (one, other)]
            level_gap = float(esw.log_law(sent, one) - esw.log_law(sent, other))
            for chosen in itertools.combinations(range(d), m):
                for signs in itertools.product([-1.0, 1.0], repeat=m):
                    a, b = (law.log_law(np.array(signs), vectors[:, chosen]).sum(axis=1) for law in laws)
                    largest = max(largest, level_gap + float(a.max() - b.min()))
    assert safe.privacy_loss() == pytest.approx(largest, rel=1e-9)
    assert safe.privacy_loss() <= claimed
    assert safe.claim.epsilon == pytest.approx(claimed)


def test_the_safe_reports_have_no_size_and_their_length_follows_the_reported_level() -> None:
    safe = protocol("ppm-safe", 1.0, 60)
    reports = safe.perturb(np.zeros((500, 60)), generator(0))
    assert set(np.unique(reports.value)) <= {-1, 0, 1}
    decoded = mechanism("esw", 0.5, 1, 5).decode(reports.level)
    np.testing.assert_array_equal((reports.index >= 0).sum(axis=1), [safe.m_of(int(t)) for t in decoded])
    np.testing.assert_array_equal(reports.value != 0, reports.index >= 0)


def test_the_reported_level_follows_its_law_and_not_the_features() -> None:
    safe = protocol("ppm-safe", 2.0, 10)
    esw = mechanism("esw", 1.0, 1, 5)
    for value in (-1.0, 1.0):
        level = np.full(20_000, 2, dtype=np.int32)
        sent = safe.perturb(np.full((20_000, 10), value), generator(1), level=level).level
        counts = np.bincount(sent, minlength=int(esw.outputs) + 1)[1:]
        assert chi_square(counts, 20_000 * esw.pmf(esw.support(2), 2)) > ALPHA
        assert chi_square(counts, 20_000 * esw.pmf(esw.support(4), 4)) < ALPHA


def test_unbiased_weights_are_unbiased_for_every_level_and_plug_in_ones_for_the_average_user() -> None:
    free = protocol("ppm-safe", 8.0, 30, weights="unbiased")
    assert free.level_weights()[1] == "unbiased"
    for level in range(1, 6):
        assert free.level_bias(level, 1.0) == pytest.approx(0, abs=1e-6)
    plug = protocol("ppm-safe", 8.0, 30, weights="plug-in")
    assert plug.bias(1.0) == pytest.approx(0, abs=1e-12)
    assert plug.level_bias(1, 1.0) < -0.05
    assert plug.level_bias(5, 1.0) > 0.0


def test_exploding_weights_are_given_up_unless_asked_for() -> None:
    # At epsilon 0.01 the unbiased weights' second moment is 1.4e13, that of known levels 2.3e8 at most.
    safe = protocol("ppm-safe", 0.01, 1433)
    forced = protocol("ppm-safe", 0.01, 1433, weights="unbiased")
    assert safe.level_weights()[1] == "plug-in"
    public = float(protocol("ppm-public", 0.01, 1433).variance(0.0))
    assert float(forced.variance(0.0)) == pytest.approx(1.37e13, rel=5e-3)
    assert float(protocol("mb", 0.005, 1433).variance(0.0)) == pytest.approx(2.3e8, rel=1e-2)
    assert float(safe.variance(0.0)) < 10 * public


# What is common to all


@pytest.mark.parametrize("name", NAMES)
def test_budgets_double_with_the_level_and_are_told(name: str) -> None:
    built = protocol(name, 1.5, 40, levels=4, distribution="bimodal")
    if name != "ppm-safe":
        np.testing.assert_allclose(built.budgets, 1.5 * np.array([1, 2, 4, 8]))
    meta = built.meta()
    assert meta["epsilon"] == 1.5
    assert meta["epsilon_mean"] == pytest.approx((built.budgets[0] + built.budgets[3]) / 2)
    assert meta["epsilon_max"] == built.claim.epsilon >= max(built.budgets)


@pytest.mark.parametrize(
    ("epsilon", "stated"),
    [(1.0, [8.03, 8.19, 8.37, 8.48, 8.48]), (0.1, [0.553]), (2.0, [16.7])],
)
def test_what_users_of_each_level_spend_is_the_largest_loss_of_the_joint_law(
    epsilon: float, stated: list[float]
) -> None:
    """Enumerated: reported level, dimensions and signs, for users of every level at the corners and the middle."""
    built = protocol("ppm-safe", epsilon, 2)
    assert isinstance(built, SafePersonalised)
    table, widths = built._channel()
    corners = [np.array(x) for x in itertools.product((-1.0, 0.0, 1.0), repeat=2)]
    laws = {}
    for level, x in itertools.product(range(1, 6), range(len(corners))):
        log = []
        for sent, m in enumerate(widths):
            budget = built._features(level) / m
            for chosen in itertools.combinations(range(2), m):
                for signs in itertools.product((-1, 1), repeat=m):
                    chance = [
                        0.5 + s * corners[x][j] / 2 * math.tanh(budget / 2) for j, s in zip(chosen, signs, strict=True)
                    ]
                    log.append(table[level - 1, sent] - math.log(math.comb(2, m)) + sum(map(math.log, chance)))
        laws[level, x] = np.array(log)
    assert all(np.exp(law).sum() == pytest.approx(1) for law in laws.values())
    true = [
        max(np.abs(laws[level, x] - other).max() for x in range(len(corners)) for other in laws.values())
        for level in range(1, 6)
    ]
    np.testing.assert_allclose(built.budgets, true, rtol=1e-9)
    np.testing.assert_allclose(true[: len(stated)], stated, rtol=2e-3)
    assert max(true) <= built.claim.epsilon


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("distribution", [*DISTRIBUTIONS, "level-2"])
def test_levels_are_drawn_from_the_public_distribution(name: str, distribution: str) -> None:
    built = protocol(name, 1.0, 8, distribution=distribution)
    counts = np.bincount(built.assign(20_000, generator(1), None), minlength=6)[1:]
    expected = 20_000 * probabilities(distribution, 5)
    assert (counts[expected == 0] == 0).all()
    assert chi_square(counts[expected > 0], expected[expected > 0]) > ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_right_for_users_of_every_level(name: str) -> None:
    d, nodes = 5, 12_000
    options = {"weights": "unbiased"} if name == "ppm-safe" else {}
    built = protocol(name, 4.0, d, low=0.0, high=2.0, **options)
    x = np.tile(np.array([0.0, 0.5, 1.0, 1.7, 2.0]), (nodes, 1))
    for level in (1, 3, 5):
        reports = built.perturb(x, generator(3, name), level=np.full(nodes, level, dtype=np.int32))
        values = rectify(reports).dense().astype(float)
        error = values.std(axis=0) / math.sqrt(nodes)
        assert (np.abs(values.mean(axis=0) - x[0]) < Z * error + 1e-4).all()


@pytest.mark.parametrize("name", ["ppm-public", "pldp"])
def test_public_levels_are_reported_and_each_keeps_its_own_budget(name: str) -> None:
    built = protocol(name, 1.0, 200)
    given = np.array([1, 5, 3, 3, 2, 4], dtype=np.int64)
    reports = built.perturb(np.zeros((6, 200)), generator(0), level=given)
    np.testing.assert_array_equal(reports.level, given)
    np.testing.assert_array_equal((reports.index >= 0).sum(axis=1), [built.m_of(int(t)) for t in given])
    for level in range(1, 6):
        assert built.level_loss(level) <= 2 ** (level - 1) * (1 + 1e-9)
    assert built.privacy_loss() == pytest.approx(16.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("level", "message"),
    [
        (np.array([0, 1, 2]), r"outside 1\.\.5"),
        (np.array([1, 6, 2]), r"outside 1\.\.5; mend it, or set the option levels"),
        (np.array([1, 2]), "3 nodes need 3 privacy levels"),
        (np.array([1.0, 2.0, 3.0]), "must be whole numbers"),
    ],
)
def test_wrong_levels_are_refused(name: str, level: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        protocol(name, 1.0, 4).perturb(np.zeros((3, 4)), generator(0), level=level)


def test_mechanisms_without_levels_refuse_them() -> None:
    for name in ("mb", "featurerr"):
        with pytest.raises(OptionError, match="use ppm-public or ppm-safe"):
            protocol(name, 1.0, 4).perturb(np.zeros((3, 4)), generator(0), level=np.ones(3, dtype=int))
    with pytest.raises(DataError, match=r"outside 1\.\.5"):
        mechanism("esw", 1.0, 1, 5).sample([1, 9], generator(0))
    with pytest.raises(OptionError, match="whole privacy levels"):
        mechanism("esw", 1.0, 1.5, 5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": 0}, "levels must be a whole number from 1"),
        ({"levels": 2.5}, "levels must be a whole number"),
        ({"distribution": "normal"}, "distribution must be one of uniform, strict, relaxed, bimodal"),
        ({"colour": 1}, "has no option 'colour'"),
        ({"m_rule": "best"}, "m_rule must be one of"),
    ],
)
def test_bad_options_are_refused(name: str, options: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        protocol(name, 1.0, 6, **options)


@pytest.mark.parametrize("gamma", [0.0, 1.0, -1, "half", float("nan")])
@pytest.mark.parametrize("name", ["ppm", "ppm-safe"])
def test_the_level_and_the_features_both_need_a_share(name: str, gamma: object) -> None:
    with pytest.raises(OptionError, match="gamma must be"):
        protocol(name, 1.0, 6, gamma=gamma)


def test_an_m_of_the_callers_own_is_refused() -> None:
    with pytest.raises(OptionError, match="m follows from the level"):
        protocol("ppm-public", 1.0, 60, m=3)


@pytest.mark.parametrize("name", NAMES)
def test_the_secure_source_serves_personalised_mechanisms(name: str) -> None:
    built = protocol(name, 1.0, 9)
    reports = built.perturb(np.zeros((50, 9)), SecureSource())
    assert rectify(reports).dense().shape == (50, 9)


# Heterogeneous


def test_feature_shares_follow_the_scores() -> None:
    built = protocol("featurerr", 2.0, 4, importance=[4, 3, 2, 1], gamma=1.0)
    np.testing.assert_allclose(built.theta, [0.4, 0.3, 0.2, 0.1], rtol=1e-12)
    sensitive = protocol("featurerr", 2.0, 4, sensitivity=[1, 2, 3, 4], gamma=0.0)
    np.testing.assert_allclose(sensitive.theta, [0.4, 0.3, 0.2, 0.1], rtol=1e-12)
    even = protocol("featurerr", 2.0, 4)
    np.testing.assert_allclose(even.theta, [0.25] * 4)
    clipped = protocol("featurerr", 2.0, 3, importance=[1.0, -5.0, 1.0], gamma=1.0)
    np.testing.assert_allclose(clipped.theta, [0.5, 0.0, 0.5])
    for built_one in (built, sensitive, even, clipped):
        assert math.fsum(built_one.theta) <= 1
        assert built_one.privacy_loss() <= 2.0
        assert built_one.privacy_loss() == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("bins", [2, 3, 10, 60])
@pytest.mark.parametrize("share", [1e-3, 1.0, 30.0])
def test_a_features_exact_loss_is_its_share(bins: int, share: float) -> None:
    part = protocol("featurerr", share, 1, bins=bins)
    assert part.privacy_loss() == pytest.approx(share, rel=1e-9)
    law = part._feature(1.0)
    k, r = bins, math.exp(-share / (bins - 1))
    for t in (1, (k + 1) // 2, k):
        norm = sum(r ** abs(u - t) for u in range(1, k + 1))
        z = 2 * (t - 0.5) / k - 1
        np.testing.assert_allclose(
            law.pmf(np.arange(1, k + 1), z), r ** np.abs(np.arange(1, k + 1) - t) / norm, rtol=1e-9
        )


def test_values_go_to_their_bin_once() -> None:
    # As printed, closed bins in a loop send every value to the last bin.
    law = protocol("featurerr", 500.0, 1, low=0.0, high=1.0, bins=4)._feature(1.0)
    x = np.array([0.0, 0.1, 0.25, 0.26, 0.5, 0.75, 0.76, 1.0])
    np.testing.assert_array_equal(law.sample(x, generator(0)), [1, 1, 1, 2, 2, 3, 4, 4])


def test_features_without_a_share_are_not_looked_at() -> None:
    built = protocol("featurerr", 3.0, 2, theta=[1.0, 0.0], bins=3)
    nodes = 9000
    for x in (-1.0, 1.0):
        sent = built.perturb(np.full((nodes, 2), x), generator(0)).value
        assert chi_square(np.bincount(sent[:, 1], minlength=4)[1:], np.full(3, nodes / 3)) > ALPHA
        estimate = rectify(built.perturb(np.full((nodes, 2), x), generator(1))).dense()
        assert (estimate[:, 1] == 0.0).all()
        assert estimate[:, 0].mean() == pytest.approx(x, abs=Z * float(estimate[:, 0].std()) / math.sqrt(nodes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"importance": [1, 2]}, "importance needs 3 finite scores"),
        ({"sensitivity": [1, 2, float("nan")]}, "sensitivity needs 3 finite scores"),
        ({"importance": [-1, -1, -1], "gamma": 1.0}, "no feature a share above 0"),
        ({"gamma": 2}, "gamma must be from 0 to 1"),
        ({"theta": [0.5, 0.6, 0.1]}, "sum to at most 1"),
        ({"theta": [0.5, -0.1, 0.1]}, "at least 0"),
        ({"theta": [1, 0, 0], "importance": [1, 1, 1]}, "either theta or the scores"),
        ({"bins": 1}, "bins must be"),
        ({"m": 2}, "reports every dimension"),
    ],
)
def test_bad_scores_are_refused(options: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        protocol("featurerr", 1.0, 3, **options)
