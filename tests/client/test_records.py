"""Every row of a call, by itself: the map of its own uniform numbers, and nobody's record in anybody else's report.

Statistics see a fault that many rows share. Here the numbers that a call draws are kept, and each of its rows is
compared with what the law says that they select: the first row and the last, in every block, at every ordinary value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from client_cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

from graphldp.client import Randomiser, lookup, mechanism, names, protocol
from graphldp.client.directed import second_round
from graphldp.client.laws import normal
from graphldp.client.laws.sets import SetValued, _padded
from graphldp.client.mechanisms.olh import buckets_of
from graphldp.client.registry import NO_FEATURE
from graphldp.client.vote import Vote
from graphldp.randomness import generator

ROWS = 2**16 + 500  # beyond one block of 65,536
WHOLE = [name for name in names() if lookup(name).kind not in NO_FEATURE and name != "identity"]
SETS = [name for name in WHOLE if issubclass(lookup(name), SetValued)]
LEVELLED = ["ppm", "ppm-public", "ppm-safe", "pldp"]


class Kept:
    """A seeded source that keeps what it gave, and gives nothing so small that `uniform` draws it again."""

    def __init__(self, *address: str) -> None:
        self.rng = generator(0, *address)
        self.random_drawn: list[np.ndarray] = []
        self.integers_drawn: list[np.ndarray] = []

    def random(self, size: Any) -> np.ndarray:
        self.random_drawn.append(np.maximum(self.rng.random(size), 2.0**-12))
        return self.random_drawn[-1].copy()  # noise is computed in place

    def integers(self, low: int, high: int, size: Any) -> np.ndarray:
        self.integers_drawn.append(self.rng.integers(low, high, size))
        return self.integers_drawn[-1]


def device(name: str, epsilon: float, dimensions: int, **options: Any):
    budget = {"null": 0.0}.get(name, epsilon)
    return protocol(name, budget, dimensions, 0.0, 1.0, **{**CASES[name].options, **options})


def everybody(dimensions: int, rows: int = ROWS) -> np.ndarray:
    """Return values to three digits, so that each occurs, half of them 0; and a few far outside of the range."""
    rng = generator(0, "records", dimensions)
    x = rng.integers(0, 1001, (rows, dimensions)) / 1000
    x[rng.random(x.shape) < 0.4] = 0.0
    x[rows // 2, 0], x[rows // 3, 0], x[rows // 4, -1] = 1e6, np.inf, -40000.0
    return x


def finite_map(law: Randomiser, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the report of u by the law's masses alone: the rarest report has the smallest u."""
    values, which = np.unique(np.clip(x, law.low, law.high), return_inverse=True)
    places = law.support(values)
    mass = law.pmf(places, values[:, None])
    order = np.argsort(mass, axis=-1, kind="stable")
    edges = np.cumsum(np.take_along_axis(mass, order, axis=-1), axis=-1)
    which = which.reshape(x.shape)
    pick = np.zeros(x.shape, dtype=int)
    for k in range(places.shape[-1] - 1):
        pick += u >= edges[which, k]
    return places[which, order[which, pick]]


def bits_map(law: Any, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the number whose bits u selects, one by one."""
    one, zero = law._exponents()
    code = np.rint(np.clip((x - law.low) / (law.high - law.low), 0, 1) * (2**law.bits - 1)).astype(int)
    out = np.zeros(x.shape, dtype=int)
    for k in range(law.bits):
        true = (code >> (law.bits - 1 - k)) & 1
        chance = 1 / (1 + np.exp(-np.where(true == 1, one[k], -zero[k])))
        sent = np.where(chance <= 0.5, u[..., k] < chance, u[..., k] >= 1 - chance)
        out = 2 * out + sent
    return out


def window_map(law: Any, z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the report before rounding: the whole support for the smallest u, the window around the value else."""
    whole = law._reach * (2 * u / law._rest - 1)
    window = law._slope * z + law._half_width * (2 * (u - law._rest) / (1 - law._rest) - 1)
    return np.where(u < law._rest, whole, window)


def density_map(law: Any, x: np.ndarray, u: np.ndarray, signs: np.ndarray | None) -> np.ndarray:
    """Return the report on the grid."""
    middle, half = (law.low + law.high) / 2, (law.high - law.low) / 2
    z = np.clip((np.clip(x, law.low, law.high) - middle) / half, -1, 1)
    if law.name == "lp":
        y = z - signs * 2 / law.epsilon * np.log(u)
    elif signs is not None:
        y = z + signs * law._spread * normal.upper_quantile(u / 2)
    elif law.name == "hm":
        share = np.exp(-law.epsilon / 2)
        two = finite_map(law._duchi, z, np.minimum(u / share, 1.0))
        y = np.where(u < share, two, window_map(law._pm, z, np.maximum(u - share, 0) / (1 - share)))
    else:
        y = window_map(law, z, u)
    return middle + half * law.step * np.clip(np.rint(y / law.step), -law.steps, law.steps)


def signs_of(words: list[np.ndarray], counts: list[int]) -> np.ndarray:
    bits = [np.unpackbits(word.astype(np.uint32).view(np.uint8))[:n] for word, n in zip(words, counts, strict=True)]
    return np.concatenate(bits).astype(float) * 2 - 1


def expected(law: Any, x: np.ndarray, source: Kept) -> np.ndarray:
    """Return the reports that the kept numbers select for these values, all of them drawn in one go or in blocks."""
    drawn = [part.reshape(-1) for part in source.random_drawn]
    u = np.concatenate(drawn)
    if hasattr(law, "bits"):
        return bits_map(law, x, u.reshape(*x.shape, law.bits))
    if law.finite:
        return finite_map(law, x, u.reshape(x.shape))
    signs = None
    if law.name in ("lp", "gm", "ag"):
        words = source.integers_drawn[-len(drawn) :]
        signs = signs_of(words, [part.size for part in drawn]).reshape(x.shape)
    return density_map(law, x, u.reshape(x.shape), signs)


def alike(law: Any, sent: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return where the reports are the wanted ones, to float32."""
    close = 1e-5 * np.abs(wanted) + 1e-7
    return np.abs(sent.astype(float) - wanted.astype(law.dtype).astype(float)) <= close


SAMPLED = [n for n in WHOLE if n not in (*SETS, *LEVELLED, "featurerr")]


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("name", [*SAMPLED, "featurerr"])
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_every_row_is_what_its_own_numbers_select(name: str, epsilon: float, form: str) -> None:
    dimensions = 3
    built, x = device(name, epsilon, dimensions), everybody(dimensions)
    source = Kept("rows", name)
    sent = built.perturb(sp.csr_array(x) if form == "sparse" else x, source)
    law = built._feature(built.theta[0]) if name == "featurerr" else built.base
    # A law of its own with the share of the budget that the claim allows, from which nothing of `built` is taken.
    if lookup(name).kind == "scalar" and name not in ("null", "gm", "ag"):
        law = mechanism(name, epsilon / built.m, 0.0, 1.0, **CASES[name].options)
    assert sent.value.dtype == law.dtype
    assert sent.value.shape == (ROWS, built.m)
    if sent.index is not None:
        assert sent.index.dtype == np.int32
        x = np.take_along_axis(x, sent.index, axis=1)
    right = alike(law, sent.value, expected(law, x, source))
    assert right.all()


@pytest.mark.parametrize("name", LEVELLED)
def test_every_row_of_every_level_is_what_its_own_numbers_select(name: str) -> None:
    dimensions, rows = 3, 20_000
    built, x = device(name, 1.0, dimensions, levels=2), everybody(3, 20_000)
    level = np.arange(rows) % 2 + 1
    source = Kept("levels", name)
    sent = built.perturb(x, source, level)
    seen = np.zeros(rows, dtype=bool)
    drawn = [part for part in source.random_drawn if part.ndim == 2]
    assert sent.value.dtype == (np.int8 if name in ("ppm-public", "ppm-safe") else np.float32)
    groups = [(m, t) for m in sorted({built.m_of(t) for t in (1, 2)}) for t in (1, 2)]
    if name != "ppm-safe":
        groups = [(built.m_of(t), t) for t in (1, 2)]
    for (m, t), u in zip(groups, drawn, strict=True):
        width = (sent.index >= 0).sum(axis=1)
        members = np.flatnonzero((level == t) & (width == m))
        assert len(members) == len(u)
        chosen = np.take_along_axis(x[members], sent.index[members][:, :m], axis=1)
        base = {"ppm": "duchi", "pldp": "pm"}.get(name, "mb")
        budget = 2.0 ** (t - 1) * (0.5 if name in ("ppm", "ppm-safe") else 1.0)
        law = mechanism(base, budget / m, 0.0, 1.0)
        source.random_drawn = [u]
        wanted = expected(law, chosen, source)
        if name == "ppm":
            wanted = 0.5 + dimensions / m * (wanted - 0.5)
        assert alike(law, sent.value[members][:, :m], wanted).all()
        seen[members] = True
    assert seen.all()


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_every_persons_set_is_met_as_her_own_number_says(name: str, epsilon: float) -> None:
    # Everybody has as many features as sets are padded to, so that all of them are asked about her own items alone.
    dimensions, pad, rows = 7, (2 if name == "privset" else 1), ROWS
    built = protocol(name, epsilon, dimensions, 0.0, 1.0, pad=pad)
    order = np.argsort(generator(0, "sets").random((rows, dimensions)), axis=1)[:, :pad]
    x = np.zeros((rows, dimensions))
    np.put_along_axis(x, order, 1.0, axis=1)
    source = Kept("sets", name)
    sent = built.perturb(x, source)
    choice = built.choice
    if name == "oue":
        u = np.concatenate([part for part in source.random_drawn if part.shape[1:] == (dimensions,)])
        wanted = u < np.where(x == 1, 0.5, 1 / (1 + np.exp(epsilon)))
        assert sent.value.dtype == np.int8
        assert (sent.value == wanted).all()
        return
    u = np.concatenate([part for part in source.random_drawn if part.ndim == 1])
    assert u.shape == (rows,)
    met = finite_map(choice, np.zeros(rows), u)
    if name == "olh":
        assert (sent.value.dtype, sent.value.shape) == (np.int32, (rows, 2))
        found = buckets_of(sent.value[:, 0], order[:, 0], built.buckets) == sent.value[:, 1]
    else:
        assert (sent.value.dtype, sent.index.dtype) == (np.int8, np.int32)
        found = sum((sent.index == order[:, [k]]).any(axis=1).astype(int) for k in range(pad))
    assert (found == met).all()


# one person's record --------------------------------------------------------------------------------------------------


def differing(one: Any, two: Any) -> set[int]:
    """Return the rows in which two reports differ; their forms may not."""
    rows: set[int] = set()
    for part in ("value", "index", "level"):
        a, b = getattr(one, part), getattr(two, part)
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            rows |= set(np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1)).tolist())
    assert one.meta == two.meta
    return rows


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("form", ["dense", "sparse", "stored twice"])
@settings(max_examples=12, derandomize=True, deadline=None, database=None)
@given(data=st.data())
def test_one_persons_record_changes_her_own_report_alone(name: str, form: str, data: st.DataObject) -> None:
    rows, dimensions = 12, 9
    built = device(name, data.draw(st.sampled_from([0.5, 8.0])), dimensions)
    ordinary = [0.0, 1.0] if name in SETS else [0.0, 1.0, 0.123, 0.5, 1e9, -3.0, 5e-324, np.inf]
    before = np.array(data.draw(st.lists(st.sampled_from(ordinary), min_size=dimensions, max_size=dimensions)))
    after = np.array(data.draw(st.lists(st.sampled_from(ordinary), min_size=dimensions, max_size=dimensions)))
    who = data.draw(st.sampled_from([0, 5, rows - 1]))
    x = np.where(generator(1, "others").random((rows, dimensions)) < 0.4, 1.0, 0.0)

    def reports(record: np.ndarray) -> Any:
        features = x.copy()
        features[who] = record
        if form == "dense":
            return built.perturb(features, generator(0, name))
        sparse = sp.csr_array(features)
        if form == "stored twice":  # each value in two halves
            sparse = sp.csr_array(
                (np.repeat(sparse.data / 2, 2), np.repeat(sparse.indices, 2), 2 * sparse.indptr), shape=x.shape
            )
        return built.perturb(sparse, generator(0, name))

    assert differing(reports(before), reports(after)) <= {who}


@settings(max_examples=20, derandomize=True, deadline=None, database=None)
@given(st.sampled_from([0, 6, 11]), st.lists(st.sampled_from([0.0, 0.123, 1.0, 7.0]), min_size=9, max_size=9))
def test_a_second_round_and_a_vote_tell_of_nobody_else(who: int, record: list[float]) -> None:
    x = generator(1, "others").random((12, 9))
    other = x.copy()
    other[who] = record
    weights = generator(1, "weights").normal(size=(9, 4))
    for asked in (
        second_round("pm", 8.0, 9, 0.0, 1.0, ranking=range(9), m=4),
        Vote.of(1.0, weights, weights[0], 0.0, 1.0),
    ):
        assert differing(*(asked.perturb(part, generator(0)) for part in (x, other))) <= {who}


def test_of_many_features_each_is_kept_as_often_as_another() -> None:
    # Five features and a padding of two: ten pairs, each with 1/10; and with fewer than the padding all of them.
    count = 40_000
    indptr = np.arange(count + 1) * 5
    owned = np.tile(np.arange(5, dtype=np.int32), count)
    found = np.sort(_padded(indptr, owned, 2, 9, generator(0, "pairs")), axis=1)
    pairs, times = np.unique(found, axis=0, return_counts=True)
    assert len(pairs) == 10
    assert np.abs(times - count / 10).max() < 6 * np.sqrt(count / 10)
    few = _padded(np.array([0, 1, 1]), np.array([4], dtype=np.int32), 3, 9, generator(0))
    assert np.sort(few, axis=1).tolist() == [[4, 10, 11], [9, 10, 11]]


# second rounds and votes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_every_row_of_a_second_round_is_what_its_own_numbers_select(rho: float) -> None:
    x, source = everybody(6), Kept("second round")
    asked = second_round("pm", 8.0, 6, 0.0, 1.0, ranking=range(6), rho=rho, first=0.25, m=4)
    sent = asked.perturb(x, source)
    law = mechanism("pm", 6.0 / 4, 0.0, 1.0)
    chosen = np.take_along_axis(x, sent.index, axis=1)
    assert alike(law, sent.value, expected(law, chosen, source)).all()


def test_every_vote_names_its_own_class_as_its_own_number_says() -> None:
    x, source = everybody(5), Kept("vote")
    weights = generator(1, "classes").normal(size=(5, 7))
    asked = Vote.of(2.0, weights, weights[0], 0.0, 1.0)
    sent = asked.perturb(x, source)
    own = np.argmax(np.clip(x, 0, 1) @ weights - weights[0], axis=1)
    u = next(part for part in source.random_drawn if part.ndim == 1)
    met = finite_map(asked.choice, np.zeros(len(x)), u)
    assert (sent.value.dtype, sent.value.shape) == (np.int16, (len(x), asked.m))
    np.testing.assert_array_equal((sent.value == own[:, None]).any(axis=1), met == 1)
