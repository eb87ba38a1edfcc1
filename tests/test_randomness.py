"""Where random numbers come from: addresses for experiments, the operating system for people."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphldp.randomness import SecureSource, address_key, generator, seed_of

ADDRESS = ("perturb", "cora", "mb", 1.0, 0)
CHI_SQUARE = 60.0  # of 9 degrees of freedom: above it once in 10^9


def test_an_address_gives_the_same_numbers_everywhere() -> None:
    # Written down once: artifacts of earlier versions must be reproducible.
    assert generator(0, *ADDRESS).random(3).tolist() == [0.8483004800538856, 0.49446411377693045, 0.6633468020590659]
    assert address_key(0, *ADDRESS) == 0xC468D5128E3CBBF1A663A32D73AD98DB
    assert seed_of(0, *ADDRESS) == 7076398052342128120


def test_the_numbers_do_not_depend_on_what_was_drawn_before() -> None:
    first = generator(0, *ADDRESS).random(5)
    generator(0, "other").random(100)
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    np.testing.assert_array_equal(generator(0, *ADDRESS).random(5), first)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_every_part_of_an_address_counts() -> None:
    addresses: list[tuple[Any, ...]] = [
        (0, *ADDRESS),
        (1, *ADDRESS),
        (0, "perturb", "cora", "mb", 1.0, 1),
        (0, "perturb", "cora", "mb", 1.0, -1),
        (0, "perturb", "cora", "mb", 1.0 + 1e-15, 0),
        (0, "perturb", "cora", "pm", 1.0, 0),
        (0, "perturb", "core", "mb", 1.0, 0),
        (0, "perturb", "cora", "mb", 1.0),
        (0, "perturb", "cora", "mb", "1.0", 0),
        (0, "perturb", "coram", "b", 1.0, 0),
        (0, "perturb", "cora,mb", 1.0, 0),
        (0, "perturb", 'cora","mb', 1.0, 0),
        (0, *ADDRESS, 0),
    ]
    keys = [address_key(*address) for address in addresses]
    assert len(set(keys)) == len(keys)
    first = {tuple(generator(*address).random(2)) for address in addresses}
    assert len(first) == len(keys)


def test_a_number_is_one_however_it_is_written_and_no_text() -> None:
    assert address_key(0, 1) == address_key(0, 1.0) == address_key(0, np.float64(1))
    assert address_key(0, 1) != address_key(0, "1")
    assert address_key(0, math.inf) != address_key(0, -math.inf)
    assert address_key(0, math.inf) == address_key(0, float("inf"))


parts = st.text() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False)


@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.integers(0, 2**60), st.lists(parts, max_size=4), st.lists(parts, max_size=4))
def test_different_addresses_have_different_keys(root: int, one: list[Any], two: list[Any]) -> None:
    alike = [part if isinstance(part, str) else float(part) for part in one] == [
        part if isinstance(part, str) else float(part) for part in two
    ]
    assert (address_key(root, *one) == address_key(root, *two)) == alike
    assert 0 <= address_key(root, *one) < 2**128
    assert 0 <= seed_of(root, *one) < 2**63


def test_neighbouring_addresses_are_independent() -> None:
    draws = np.stack([generator(0, "x", run).random(2000) for run in range(30)])
    correlation = np.corrcoef(draws) - np.eye(30)
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)


# the operating system's -----------------------------------------------------------------------------------------------


def test_nobody_can_draw_secure_numbers_again() -> None:
    one, two = SecureSource(), SecureSource()
    assert not np.array_equal(one.random(4), two.random(4))
    assert not np.array_equal(one.random(4), one.random(4))
    assert not np.array_equal(one.integers(0, 2**32, 4), two.integers(0, 2**32, 4))


def test_secure_numbers_are_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: bytes([255]) * count)
    assert SecureSource().random(2).tolist() == [1 - 2.0**-53] * 2  # below 1, always
    monkeypatch.setattr(os, "urandom", bytes)
    assert SecureSource().random(2).tolist() == [0.0, 0.0]
    assert SecureSource().integers(3, 11, 2).tolist() == [3, 3]


def test_secure_uniform_numbers_fill_the_interval() -> None:
    draws = SecureSource().random((100, 400))
    assert draws.shape == (100, 400)
    assert draws.dtype == np.float64
    assert ((draws >= 0) & (draws < 1)).all()
    counts = np.histogram(draws, 10, (0, 1))[0]
    assert ((counts - 4000) ** 2 / 4000).sum() < CHI_SQUARE
    assert (draws * 2.0**53 % 1 == 0).all()  # multiples of 2^-53: the whole resolution, without rounding


@pytest.mark.parametrize("span", [1, 2, 3, 10, 1433, 2**31, 2**32])
def test_secure_integers_fill_their_range(span: int) -> None:
    draws = SecureSource().integers(-5, span - 5, (50, 80))
    assert draws.shape == (50, 80)
    assert draws.dtype == np.int64
    assert draws.min() >= -5
    assert draws.max() < span - 5
    if span == 10:
        counts = np.bincount((draws + 5).ravel(), minlength=10)
        assert ((counts - 400) ** 2 / 400).sum() < CHI_SQUARE


def test_integers_have_no_remainders_bias() -> None:
    """Of 2^32 draws and the span 3 * 2^30, a remainder would give the first third of the values twice as often."""
    span = 3 * 2**30
    draws = SecureSource().integers(0, span, 30_000)
    counts = np.histogram(draws, 3, (0, span))[0]
    assert ((counts - 10_000) ** 2 / 10_000).sum() < CHI_SQUARE


def test_draws_that_would_make_a_bias_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Times 3 * 2^30, every fourth word falls below the threshold 2^30 of the low half.
    answers = iter([[0, 1, 4, 5, 8], [9, 12, 13], [17]])
    monkeypatch.setattr(os, "urandom", lambda count: words(next(answers), count))
    assert SecureSource().integers(0, 3 * 2**30, 5).tolist() == [
        9 * 3 // 4,
        1 * 3 // 4,
        17 * 3 // 4,
        5 * 3 // 4,
        13 * 3 // 4,
    ]


def words(values: list[int], count: int) -> bytes:
    assert 4 * len(values) == count
    return np.array(values, dtype=np.uint32).tobytes()


@pytest.mark.parametrize(("low", "high"), [(0, 0), (3, 2), (0, 2**32 + 1)])
def test_integers_need_a_range(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="integers need 0 < high - low <= 2"):
        SecureSource().integers(low, high, 3)


def test_secure_sizes_may_be_empty() -> None:
    assert SecureSource().random((0, 3)).shape == (0, 3)
    assert SecureSource().integers(0, 5, 0).tolist() == []
