"""The m-of-d protocol: which dimensions, with which budget, from which input; its exact loss; the server's side."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from client_cases import CASES
from client_laws import ALPHA, Z, chi_square

from graphldp.client import M_RULES, best_m, from_meta, lookup, mechanism, names, protocol
from graphldp.client.laws.gaussian import epsilon_of
from graphldp.client.laws.sets import SetValued
from graphldp.client.registry import NO_FEATURE
from graphldp.client.sampling import choose
from graphldp.errors import DataError, OptionError
from graphldp.randomness import SecureSource, generator
from graphldp.server import rectify

SETS = [name for name in names() if issubclass(lookup(name), SetValued)]  # their inputs are two-valued: test_sets.py
VECTORS = [name for name in names() if lookup(name).kind not in NO_FEATURE and name not in SETS]
RANGE = {name: {"low": 0.0} for name in SETS}
SAMPLED = [name for name in VECTORS if lookup(name).kind == "scalar" and not lookup(name).every_dimension]


def device(name: str, epsilon: float = 1.0, dimensions: int = 6, **options: object):
    case = CASES[name]
    budget = case.budgets[0] if name in ("null", "identity") else epsilon
    return protocol(name, budget, dimensions, **{**case.options, **options})


def stored(data: list[float], indices: list[int], indptr: list[int], shape: tuple[int, int]) -> object:
    """Return three arrays as they come, without scipy's checks."""

    class Stored:
        def __init__(self) -> None:
            self.data, self.indices, self.indptr = np.array(data), np.array(indices), np.array(indptr)
            self.shape = shape

    return Stored()


def features(nodes: int = 40, dimensions: int = 6, *, two_valued: bool = False) -> np.ndarray:
    if two_valued:
        return np.where(generator(0, "sets").random((nodes, dimensions)) < 0.3, 1.0, 0.0)
    x = generator(0, "features").uniform(-1.0, 1.0, (nodes, dimensions))
    x[generator(0, "zeros").random(x.shape) < 0.5] = 0.0
    return x


@pytest.mark.parametrize("name", [*VECTORS, *SETS])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 5.0, 100.0])
def test_the_exact_loss_of_a_whole_report_keeps_the_claim(name: str, epsilon: float) -> None:
    if epsilon == 100.0 and name in ("gm", "ppm", "ppm-public", "ppm-safe", "pldp"):
        with pytest.raises(OptionError, match=r"use 'ag'|\(level 5\): epsilon must be at most 500, got "):
            device(name, epsilon)
        return
    built = device(name, epsilon)
    if name == "ppm":
        assert built.privacy_loss() == math.inf
        assert not built.keeps_claim
    else:
        assert built.privacy_loss() <= built.claim.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", ["mb", "duchi", "to"])
@pytest.mark.parametrize(("d", "m"), [(2, 1), (3, 2), (4, 3), (3, 3)])
def test_the_joint_loss_is_what_brute_force_over_all_reports_finds(name: str, d: int, m: int) -> None:
    built = protocol(name, 1.3, d, m=m)
    symbols = built.base.support(0.0)
    largest = 0.0
    vectors = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=d)))
    for chosen in itertools.combinations(range(d), m):
        for sent in itertools.product(symbols, repeat=m):
            logs = built.base.log_law(np.array(sent), vectors[:, chosen]).sum(axis=1)
            if np.isfinite(logs).any():  # else it is never sent
                largest = max(largest, float(logs.max() - logs.min()))
    assert largest == pytest.approx(built.privacy_loss(), rel=1e-12)
    assert largest == pytest.approx(1.3, rel=1e-9)


@pytest.mark.parametrize(("d", "m"), [(5, 1), (5, 2), (6, 4), (7, 3), (200, 3), (6, 6)])
def test_every_set_of_dimensions_is_equally_likely(d: int, m: int) -> None:
    chosen = choose(30_000, d, m, generator(0, "sets", d, m))
    assert (np.diff(chosen, axis=1) > 0).all()
    assert chosen.min() >= 0
    assert chosen.max() < d
    counts = np.bincount(chosen.reshape(-1), minlength=d)
    if m < d:
        # Draws without replacement vary less than the multinomial: stretch the deviations before the chi-square.
        expected = np.full(d, 30_000 * m / d)
        stretched = expected + (counts - expected) / math.sqrt((d - m) / (d - 1) if m > 1 else 1.0)
        assert chi_square(stretched, expected) > ALPHA
    if d < 10:
        sets, tally = np.unique(chosen, axis=0, return_counts=True)
        assert len(sets) == math.comb(d, m)
        assert chi_square(tally, np.full(len(sets), 30_000 / len(sets))) > ALPHA


@pytest.mark.parametrize("name", SAMPLED)
def test_the_chosen_dimensions_do_not_depend_on_the_data(name: str) -> None:
    built = device(name, m=2)
    x = features()
    index = built.perturb(x, generator(3)).index
    np.testing.assert_array_equal(built.perturb(-x, generator(3)).index, index)
    np.testing.assert_array_equal(built.perturb(np.zeros_like(x), generator(3)).index, index)


@pytest.mark.parametrize("name", [*VECTORS, *SETS])
def test_sparse_unsorted_and_dense_features_give_the_same_bytes(name: str) -> None:
    built, x = device(name, **RANGE.get(name, {})), features(two_valued=name in SETS)
    dense = built.perturb(x, generator(1, name))
    sparse = sp.csr_array(x)
    shuffled = sparse.copy()
    for row in range(x.shape[0]):
        part = slice(shuffled.indptr[row], shuffled.indptr[row + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    shuffled.has_sorted_indices = False
    for other in (sparse, shuffled, np.asfortranarray(x)):
        reports = built.perturb(other, generator(1, name))
        if name == "identity":
            np.testing.assert_array_equal(rectify(reports).dense(), rectify(dense).dense())
            continue
        assert reports.value.tobytes() == dense.value.tobytes()
        assert (reports.index is None) == (dense.index is None)
        if dense.index is not None:
            assert reports.index.tobytes() == dense.index.tobytes()
        assert reports.meta == dense.meta


@pytest.mark.parametrize("name", [*VECTORS, *SETS])
def test_what_is_stored_in_parts_is_their_sum(name: str) -> None:
    # Features 2 and 4 of every node are stored in two parts, apart from each other.
    built, x = device(name, **RANGE.get(name, {})), features(two_valued=name in SETS)
    x[:, [2, 4]] = 1.0
    parts = np.full((len(x), 4), 0.5) if name not in SETS else np.ones((len(x), 4))
    index = np.concatenate([np.tile([4, 2], (len(x), 1)), np.tile([0, 1, 3, 5], (len(x), 1)), [[2, 4]] * len(x)], 1)
    data = np.concatenate([parts[:, :2], x[:, [0, 1, 3, 5]], parts[:, 2:]], axis=1)
    twice = stored(data.reshape(-1), index.reshape(-1), np.arange(len(x) + 1) * 8, x.shape)
    one, two = (built.perturb(given, generator(4)) for given in (sp.csr_array(x), twice))
    np.testing.assert_array_equal(rectify(two).dense(), rectify(one).dense())
    if name != "identity":
        assert one.value.tobytes() == two.value.tobytes()


@pytest.mark.parametrize("name", [*VECTORS, *SETS])
def test_seeds_give_bytes_and_other_seeds_other_bytes(name: str) -> None:
    built, x = device(name, **RANGE.get(name, {})), features(two_valued=name in SETS)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, two, three = (built.perturb(x, generator(seed)) for seed in (1, 1, 2))
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert one.value.tobytes() == two.value.tobytes()
    if name != "identity":
        assert one.value.tobytes() != three.value.tobytes()
        secure = [built.perturb(x, SecureSource()).value.tobytes() for _ in range(2)]
        assert secure[0] != secure[1]


@pytest.mark.parametrize("name", [name for name in VECTORS if name not in ("identity", "null")])
def test_another_record_leaves_everybody_elses_law_as_it_was(name: str) -> None:
    # Node 0 stands first, or last after others whose features differ: her reports have the same law.
    built = device(name, 3.0, 4)
    nodes = 6000
    mine, others = np.full((nodes, 4), 0.9), np.full((nodes, 4), -0.7)
    first = np.concatenate([mine, np.zeros_like(others)])
    last = np.concatenate([others, mine])
    one = rectify(built.perturb(first, generator(1, name))).dense()[:nodes]
    two = rectify(built.perturb(last, generator(2, name))).dense()[nodes:]
    for column in (0, 3):
        a, b = one[:, column].astype(float), two[:, column].astype(float)
        error = math.sqrt((a.var() + b.var()) / nodes) + 1e-9
        assert abs(a.mean() - b.mean()) < Z * error
        assert abs(np.mean(a > a.mean()) - np.mean(b > a.mean())) < Z * math.sqrt(0.5 / nodes)


@pytest.mark.parametrize("name", [name for name in VECTORS if name not in ("identity",)])
def test_no_noise_is_shared_between_nodes_or_columns(name: str) -> None:
    built = device(name, 2.0, 4, **({"m": 4} if name in SAMPLED else {}))
    reports = built.perturb(np.zeros((4000, 4)), generator(7, name))
    noise = rectify(reports).dense().astype(float)
    noise = noise - noise.mean(axis=0)
    if name.startswith(("ppm", "pldp")):
        noise = np.sign(noise)  # their sizes differ by level; the m-of-d choice makes their squares dependent
    between = np.corrcoef(noise.T)[np.triu_indices(4, 1)]
    along = [np.corrcoef(noise[:-1, j], noise[1:, j])[0, 1] for j in range(4)]
    limit = Z / math.sqrt(4000)
    if not name.startswith(("ppm", "pldp")):
        assert np.abs(between).max() < limit
    assert np.abs(along).max() < limit


@pytest.mark.parametrize("name", [name for name in VECTORS if name not in ("identity",)])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("fill", ["mid", "zero"])
def test_the_estimate_has_the_stated_bias_and_variance(name: str, epsilon: float, fill: str) -> None:
    options = {} if name in ("featurerr", "ppm", "ppm-safe") else {"fill": fill}
    if name in SAMPLED:
        options["m"] = 2
    built = device(name, epsilon, 4, low=-0.5, high=1.5, **options)
    nodes = 20_000
    levels = sp.csr_array(np.tile(np.array([-0.5, 0.0, 0.9, 1.5]), (nodes, 1)))
    estimate = rectify(built.perturb(levels, generator(11, name, epsilon)))
    values = estimate.dense().astype(np.float64)
    for column, x in enumerate([-0.5, 0.0, 0.9, 1.5]):
        drawn = values[:, column]
        mean, variance = x + float(built.bias(x)), float(built.variance(x))
        assert abs(drawn.mean() - mean) < Z * math.sqrt(variance / nodes) + 1e-4 * math.sqrt(variance) + 1e-6
        spread = math.sqrt(max(np.mean((drawn - mean) ** 4) - variance**2, 0) / nodes)
        assert abs(np.mean((drawn - mean) ** 2) - variance) < Z * spread + 1e-3 * variance + 1e-9
        if getattr(lookup(name), "unbiased", name in ("mlr", "ppm", "ppm-public", "pldp")):
            assert built.bias(x) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", [*VECTORS, *SETS])
def test_metadata_rebuilds_an_equal_mechanism(name: str) -> None:
    import json

    built = device(name, 2.5, 9, **RANGE.get(name, {}))
    reports = built.unfold(built.perturb(features(5, 9, two_valued=name in SETS), generator(0)))
    meta = json.loads(json.dumps(dict(reports.meta)))
    again = from_meta(meta)
    assert again.meta() == built.meta()
    assert again.privacy_loss() == built.privacy_loss()
    np.testing.assert_array_equal(again.estimate(reports), built.estimate(reports))


def test_multi_dimensional_is_multi_bit_when_its_base_is_the_sign() -> None:
    x = features(300, 20)
    plain, wrapped = protocol("mb", 5.0, 20), protocol("mlr", 5.0, 20, base="mb")
    one, two = plain.perturb(x, generator(1)), wrapped.perturb(x, generator(1))
    assert one.value.tobytes() == two.value.tobytes()
    assert one.index.tobytes() == two.index.tobytes()
    duchi = protocol("mlr", 5.0, 20)
    three = duchi.perturb(x, generator(1))
    assert plain.m == wrapped.m == duchi.m
    np.testing.assert_array_equal(np.sign(three.value), one.value)
    np.testing.assert_allclose(rectify(three).dense(), rectify(one).dense(), rtol=1e-5)
    np.testing.assert_allclose(duchi.variance(0.3), plain.variance(0.3))
    # PPM* is this around Laplace: far better than Laplace in every dimension.
    assert protocol("mlr", 5.0, 20, base="lp").variance(0.0) < protocol("lp", 5.0, 20).variance(0.0) / 2


def test_one_bit_times_its_factor_is_multi_bit_with_every_dimension() -> None:
    x = features(50, 8)
    one, many = protocol("1b", 2.0, 8), protocol("mb", 2.0, 8, m=8)
    a, b = one.perturb(x, generator(1)), many.perturb(x, generator(1))
    assert a.value.tobytes() == b.value.tobytes()
    factor = 1 / math.tanh(2.0 / 8 / 2)
    np.testing.assert_allclose(rectify(a).dense() * factor, rectify(b).dense(), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        ("mb", (3.0571, 5.3199)),
        ("pm", (3.4162, 5.9233)),
        ("hm", (3.0446, 5.2787)),
        ("pm-sub", (3.5013, 6.0856)),
        ("sw", (3.0428, 5.2649)),
    ],
)
def test_the_best_m_switches_where_it_should(name: str, switches: tuple[float, ...]) -> None:
    for m, switch in enumerate(switches, start=1):
        assert best_m(name, switch - 2e-3, 1433) == m
        assert best_m(name, switch + 2e-3, 1433) == m + 1


def test_the_best_share_of_laplace_is_the_root_of_eight() -> None:
    for m, switch in ((1, 4.0), (2, 6.9282)):
        assert protocol("mlr", switch - 1e-3, 50, base="lp").m == m
        assert protocol("mlr", switch + 1e-3, 50, base="lp").m == m + 1


@pytest.mark.parametrize("name", ["mb", "pm", "sw", "hm", "to", "pm-sub", "duchi"])
def test_the_chosen_m_has_the_smallest_worst_variance_of_all(name: str) -> None:
    for epsilon in (0.3, 3.2, 7.7, 14.0):
        worst = [float(np.max(protocol(name, epsilon, 12, m=m).variance([0.0, 1.0]))) for m in range(1, 13)]
        # The rule minimises the variance at the end of the range, where it is largest but for sampling.
        ends = [float(protocol(name, epsilon, 12, m=m).variance(1.0)) for m in range(1, 13)]
        assert best_m(name, epsilon, 12) == 1 + int(np.argmin(ends))
        assert worst[int(np.argmin(ends))] <= 1.1 * min(worst)


@pytest.mark.parametrize(
    ("name", "rule", "cost"),
    [("mb", "1/2.18", 0.32), ("mb", "1/2.2", 0.35), ("pm", "2/5", 0.29), ("sw", "2/5", None), ("mb", "5/11", 0.35)],
)
def test_what_the_papers_floor_rules_cost(name: str, rule: str, cost: float | None) -> None:
    d, extra = 1433, []
    for epsilon in np.arange(2.2, 12.0, 0.02):
        best = protocol(name, float(epsilon), d)
        floor = protocol(name, float(epsilon), d, m_rule=rule)
        assert floor.m == max(1, math.floor(epsilon * M_RULES[rule] + 1e-12))
        extra.append(float(floor.variance(1.0) / best.variance(1.0)) - 1)
    assert min(extra) >= -1e-12
    assert max(extra) > 0.15
    if cost is not None:
        assert max(extra) == pytest.approx(cost, abs=0.02)


def test_variance_on_the_unit_interval_depends_on_the_fill() -> None:
    # d = 1433, epsilon 1: the figures for the middle and for zero as the fill of unreported dimensions.
    mid, zero = (protocol("mb", 1.0, 1433, 0.0, 1.0, m=1, fill=fill) for fill in ("mid", "zero"))
    assert float(mid.variance(0.0)) == pytest.approx(1677.3, abs=0.1)
    assert float(zero.variance(0.0)) == pytest.approx(1319.3, abs=0.1)
    assert float(zero.variance(1.0)) == pytest.approx(2751.3, abs=0.1)


@pytest.mark.parametrize("composition", ["joint", "split"])
@pytest.mark.parametrize("name", ["gm", "ag"])
def test_gaussian_vectors_keep_epsilon_and_delta_together(name: str, composition: str) -> None:
    built = protocol(name, 1.0, 50, delta=1e-5, composition=composition)
    assert built.delta == built.claim.delta == built.meta()["delta"] == 1e-5
    scale = float(built.variance(0.0)) ** 0.5
    # The worst pair of vectors differs by the whole range in all 50 coordinates: 2 sqrt(50) in the Euclidean norm.
    assert built.privacy_loss() == pytest.approx(epsilon_of(1e-5, 2 * math.sqrt(50) / scale), rel=1e-9)
    assert built.privacy_loss() <= 1.0
    if name == "ag" and composition == "joint":
        assert built.privacy_loss() == pytest.approx(1.0, rel=1e-6)
    # Jointly the noise grows with the root of d; d shares of epsilon and delta need nearly d times as much.
    assert scale / float(protocol(name, 1.0, 1, delta=1e-5).variance(0.0)) ** 0.5 == pytest.approx(
        {"joint": 50**0.5, "split": 50 * (1.2 if name == "gm" else 1.05)}[composition], rel=0.1
    )


def test_hds_is_the_square_wave_unrectified() -> None:
    d, k, epsilon = 30, 20, 2.0
    raw, rectified = protocol("hds", epsilon, d), protocol("hds-rectified", epsilon, d)
    assert raw.m == rectified.m == k
    x = features(200, d)
    one, two = raw.perturb(x, generator(1)), rectified.perturb(x, generator(1))
    assert one.value.tobytes() == two.value.tobytes()
    factor = float(mechanism("sw", epsilon / k).mean(1.0)) * k / d
    np.testing.assert_allclose(rectify(one).dense(), factor * rectify(two).dense(), rtol=1e-4, atol=1e-6)
    assert float(raw.bias(1.0)) == pytest.approx(factor - 1)
    assert float(rectified.bias(1.0)) == pytest.approx(0, abs=1e-12)
    best = protocol("sw", epsilon, d)
    assert float(best.variance(0.0)) < float(rectified.variance(0.0))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_not_a_number_is_refused_without_printing_a_value(kind: str) -> None:
    x = np.full((4, 6), 0.123456)
    x[2, 1] = x[2, 3] = x[3, 0] = np.nan
    with pytest.raises(DataError, match=r"2 node\(s\) hold NaN; fill them in") as caught:
        device("mb").perturb(sp.csr_array(x) if kind == "sparse" else x, generator(0))
    assert "0.123456" not in str(caught.value)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((3, 5)), "5 dimensions, the mechanism was made for 6"),
        (np.zeros(6), "must be a matrix"),
        (np.array([["a"] * 6]), "must be numbers"),
        (sp.csc_array(np.zeros((3, 6))), r"convert with \.tocsr"),
        (sp.csr_array((np.array([np.inf, -np.inf]), [1, 1], [0, 2]), shape=(1, 6)), r"1 node\(s\) hold NaN"),
        (stored([1.0, 1.0], [1, 6], [0, 2], (1, 6)), r"outside 0\.\.5; mend their indices"),
        (stored([1.0, 1.0], [-1, 3], [0, 2], (1, 6)), r"outside 0\.\.5; mend their indices"),
    ],
)
def test_features_of_the_wrong_form_are_refused(x: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        device("mb").perturb(x, generator(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon must be finite and > 0, got 0.*'null'"),
        ({"epsilon": -1.0}, "epsilon must be finite and > 0, got -1"),
        ({"epsilon": float("nan")}, "epsilon must be finite and > 0, got nan"),
        ({"epsilon": math.inf}, "'identity'"),
        ({"epsilon": "1"}, "epsilon must be a number, got '1'"),
        ({"epsilon": True}, "epsilon must be a number"),
        ({"m": 7}, "m must be a whole number from 1 to the 6 dimensions, got 7"),
        ({"m": 0}, "m must be a whole number from 1"),
        ({"m": 2.5}, "m must be a whole number"),
        ({"low": 1.0, "high": 1.0}, "needs finite low < high, got low 1.0 and high 1.0"),
        ({"low": 2.0, "high": 1.0}, "needs finite low < high"),
        ({"high": float("nan")}, "needs finite low < high"),
        ({"dimensions": 0}, "dimensions must be a whole number of at least 1, got 0"),
        ({"m_rule": "best"}, "m_rule must be one of optimal"),
        ({"fill": "one"}, "fill must be one of mid, zero"),
        ({"colour": 1}, "mb has no option 'colour'; it has: m, fill, m_rule"),
    ],
)
def test_bad_options_get_one_line_with_the_remedy(options: dict[str, object], message: str) -> None:
    given = {"epsilon": 1.0, "dimensions": 6, **options}
    with pytest.raises(OptionError, match=message) as caught:
        protocol("mb", **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in (*VECTORS, *SETS) if name not in ("identity", "null")])
@pytest.mark.parametrize("epsilon", [0, -2.0, float("nan"), "much"])
def test_no_mechanism_takes_a_budget_that_is_none(name: str, epsilon: object) -> None:
    with pytest.raises(OptionError, match="epsilon must be"):
        protocol(name, epsilon, 5, **CASES[name].options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lp", {"m": 2}, "lp reports every dimension: m must be left out"),
        ("pm", {"grid": 0.0}, "grid must be finite and > 0"),
        ("pm", {"grid": 1e-40}, "finer than float64"),
        ("ag", {"delta": 0.0}, "delta must be > 0 and < 1, got 0.0; without a delta use 'lp'"),
        ("ag", {"delta": 1.5}, "delta must be > 0 and < 1"),
        ("ag", {"composition": "strong"}, "composition must be one of joint, split"),
        ("gm", {"epsilon": 20.0}, "use 'ag'"),
        ("cldp", {"bins": 1}, "bins must be a whole number from 2"),
        ("ome", {"bits": 0}, "bits must be a whole number from 1"),
        ("latent", {"tilt": 0.5}, "tilt must be at least 0 and below 1/2"),
        ("mlr", {"base": "ag"}, "has a delta"),
        ("mlr", {"base": "identity"}, "base must be a scalar mechanism with a budget"),
        ("mlr", {"base": "ppm"}, "base must be a scalar mechanism"),
        ("mlr", {"base": "nothing"}, "unknown mechanism"),
        ("identity", {"epsilon": 1.0}, "identity: epsilon must be inf"),
        ("null", {"epsilon": 1.0}, "null: epsilon must be 0"),
    ],
)
def test_each_mechanism_refuses_options_that_it_cannot_honour(name: str, options: dict, message: str) -> None:
    given = {"epsilon": 1.0, "dimensions": 6, **options}
    with pytest.raises(OptionError, match=message):
        protocol(name, **given)


def test_the_goodness_of_fit_rejects_a_sampler_that_leaves_the_last_coordinate_untouched() -> None:
    built = protocol("mb", 1.0, 5, m=5)
    x = np.full((20_000, 5), 0.8)
    value = built.perturb(x, generator(1)).value.copy()

    def p_value(column: int) -> float:
        counts = np.array([(value[:, column] == s).sum() for s in (-1, 1)])
        return chi_square(counts, 20_000 * built.base.pmf([-1, 1], 0.8))

    assert min(p_value(column) for column in range(5)) > ALPHA
    value[:, -1] = 1
    assert p_value(4) < ALPHA
