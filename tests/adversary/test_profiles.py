from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.adversary import advantage_bound, profile_odds
from graphldp.audit.sets import support_law
from graphldp.client import protocol

NAMES = ("mb", "pm", "hds", "lp", "sw", "1b", "featurerr", "ppm-public", "privset", "oue", "olh", "subset")
OTHERS = np.roll(np.arange(6), 1)


def people(copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Return six profiles of four attributes, many people of each, and for everybody one of the next profile."""
    rows = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=float)
    kind = np.repeat(np.arange(6), copies)
    return rows[kind], OTHERS[kind] * copies + np.tile(np.arange(copies), 6)


@pytest.mark.parametrize("name", NAMES)
def test_odds_are_log_ratios_and_stay_within_the_loss(name: str) -> None:
    x, others = people(6000)
    options = {"pad": 2} if name in ("privset", "oue", "olh", "subset") else {}
    device = protocol(name, 1.5, 4, 0.0, 1.0, **options)
    reports = device.perturb(x, np.random.default_rng(0))
    odds = profile_odds(device, reports, x, others)
    assert odds is not None
    assert np.abs(odds).max() <= device.privacy_loss() + 1e-6
    # The mean of P[report | other] / P[report | own] under `own` is 1: true of the right ratio alone.
    for kind in range(6):
        own = slice(kind * 6000, (kind + 1) * 6000)
        if device.privacy_loss() < 4:
            ratios = np.exp(-odds[own])
            assert ratios.mean() == pytest.approx(1, abs=5 * ratios.std() / math.sqrt(6000) + 1e-9)
    told = np.sign(odds).mean()
    assert 0 < told <= advantage_bound(device.privacy_loss()) + 0.02
    sparse = profile_odds(device, reports, sp.csr_array(x), others)
    assert sparse is not None
    assert (sparse == odds).all()


def test_one_bit_of_two_people_reaches_the_bound() -> None:
    x = np.tile([[0.0], [1.0]], (50_000, 1))
    device = protocol("mb", 2.0, 1, 0.0, 1.0, m=1)
    reports = device.perturb(x, np.random.default_rng(0))
    odds = profile_odds(device, reports, x, np.arange(len(x)) ^ 1)
    assert odds is not None
    assert np.sign(odds).mean() == pytest.approx(advantage_bound(2.0), abs=0.01)


@pytest.mark.parametrize("name", ["oue", "subset", "olh", "privset"])
def test_sets_are_told_by_the_audits_law(name: str) -> None:
    from graphldp.audit.sets import set_law_of

    rows = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1], [0, 1, 0]], dtype=float)
    x, others = np.repeat(rows, 100, axis=0), np.arange(400)[::-1]
    device = protocol(name, 2.0, 3, 0.0, 1.0, pad=2)
    reports = device.perturb(x, np.random.default_rng(0))
    odds = profile_odds(device, reports, x, others)
    assert odds is not None
    masks = set_law_of(device).supported(reports)
    laws = [support_law(device, tuple(int(v) for v in row)) for row in rows]
    kind = np.repeat(np.arange(4), 100)
    expected = [
        math.log(laws[own][mask] / laws[other][mask])
        for own, other, mask in zip(kind, kind[others], masks, strict=True)
    ]
    assert odds == pytest.approx(expected, abs=1e-9)


def test_the_data_itself_tells_all_who_differ_and_nobody_else() -> None:
    x, others = people(3)
    others = others.copy()
    others[0] = 1  # another person of the same profile
    device = protocol("identity", math.inf, 4, 0.0, 1.0)
    for features in (x, sp.csr_array(x)):
        odds = profile_odds(device, device.perturb(features, np.random.default_rng(0)), features, others)
        assert odds is not None
        assert odds[0] == 0
        assert np.isinf(odds[1:]).all()


def test_what_cannot_be_said_is_left_out() -> None:
    x, others = people(3)
    hidden = protocol("ppm", 1.0, 4, 0.0, 1.0)
    assert profile_odds(hidden, hidden.perturb(x, np.random.default_rng(0)), x, others) is None
    many = np.random.default_rng(0).random((40, 4))
    device = protocol("mb", 1.0, 4, 0.0, 1.0)
    reports = device.perturb(many, np.random.default_rng(0))
    assert profile_odds(device, reports, many, np.roll(np.arange(40), 1)) is None
