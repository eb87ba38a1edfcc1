from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphldp.adversary import (
    BLIND,
    OPEN,
    Channel,
    advantage_bound,
    area_bound,
    facts_of,
    posterior_bound,
    reader_of,
    success_bound,
)
from graphldp.client import lookup, names, protocol
from graphldp.client.registry import NO_FEATURE
from graphldp.errors import DataError, OptionError

EPSILONS = (0.0, 0.01, 0.5, 1.0, 3.0, 10.0)
PRIORS = (0.01, 0.3, 0.5, 0.9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior", PRIORS)
def test_randomised_response_reaches_every_bound(epsilon: float, prior: float) -> None:
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    channel = Channel.of([keep, 1 - keep], [1 - keep, keep])
    assert channel.success(prior) == pytest.approx(success_bound(prior, epsilon), rel=1e-12)
    assert channel.success(prior) == pytest.approx(max(prior, 1 - prior, keep), rel=1e-12)
    assert channel.advantage() == pytest.approx(advantage_bound(epsilon), abs=1e-12)
    assert channel.posterior(prior) == pytest.approx(posterior_bound(prior, epsilon), rel=1e-12)
    assert channel.area() == pytest.approx(area_bound(epsilon), rel=1e-12)
    assert channel.loss() == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
def test_no_law_within_the_guarantee_exceeds_a_bound_and_one_reaches_it(epsilon: float, delta: float) -> None:
    # All laws of two outcomes on a fine grid: the guarantee itself says which of them it allows.
    grid = np.linspace(0, 1, 401)
    false, true = (part.ravel() for part in np.meshgrid(grid, grid))
    slack, ratio = 1e-9, math.exp(epsilon)
    fits = np.ones(len(false), dtype=bool)
    for one, two in ((false, true), (true, false), (1 - false, 1 - true), (1 - true, 1 - false)):
        fits &= two <= ratio * one + delta + slack
    false, true = false[fits], true[fits]
    for prior in PRIORS:
        best = (prior * true + (1 - prior) * (1 - false)).max()
        assert best <= success_bound(prior, epsilon, delta) + 1e-6
        assert best >= success_bound(prior, epsilon, delta) - 6e-3
    assert (true - false).max() <= advantage_bound(epsilon, delta) + 1e-6
    assert (true - false).max() >= advantage_bound(epsilon, delta) - 6e-3


def test_bounds_refuse_what_is_no_probability_and_no_budget() -> None:
    with pytest.raises(OptionError, match=r"from 0 to 1, got 1\.5"):
        success_bound(1.5, 1.0)
    with pytest.raises(OptionError, match="epsilon must be >= 0, got -1"):
        advantage_bound(-1.0)
    with pytest.raises(OptionError, match="delta is from 0 to 1, got 2"):
        area_bound(1.0, 2.0)
    assert posterior_bound(0.1, 1.0, 1e-6) == 1.0
    assert advantage_bound(math.inf) == 1.0


def test_a_channel_joins_what_says_the_same_and_keeps_every_figure() -> None:
    rng = np.random.default_rng(0)
    no, yes = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    split = Channel.of(np.concatenate([no / 2, no / 2]), np.concatenate([yes / 2, yes / 2]))
    assert len(split.no) == 6
    brute = sum(max(0.2 * b, 0.8 * a) for a, b in zip(no, yes, strict=True))
    assert split.success(0.2) == pytest.approx(brute)
    pairs = [(a, b, c, d) for (a, b), (c, d) in itertools.product(zip(no, yes, strict=True), repeat=2)]
    wins = sum(a * d * ((c * b < d * a) + 0.5 * (c * b == d * a)) for a, b, c, d in pairs)
    assert split.area() == pytest.approx(wins)
    assert split.advantage() == pytest.approx(np.abs(no - yes).sum() / 2)


def test_two_looks_are_the_product_of_their_laws() -> None:
    one, two = Channel.of([0.7, 0.3], [0.2, 0.8]), Channel.of([0.6, 0.1, 0.3], [0.1, 0.1, 0.8])
    both = one.then(two)
    brute = np.abs(np.outer(one.no, two.no) - np.outer(one.yes, two.yes)).sum() / 2
    assert both.advantage() == pytest.approx(brute)
    assert one.then(BLIND).advantage() == pytest.approx(one.advantage())
    assert one.then(OPEN).advantage() == pytest.approx(1.0)
    shown = Channel.either([(0.25, one), (0.75, BLIND)])
    assert shown.advantage() == pytest.approx(one.advantage() / 4)


def test_shortening_a_long_law_costs_next_to_nothing() -> None:
    x = np.linspace(-8, 8, 20_001)
    no, yes = np.exp(-((x + 0.2) ** 2) / 2), np.exp(-((x - 0.2) ** 2) / 2)
    long = Channel.of(no / no.sum(), yes / yes.sum())
    assert long.then(BLIND).advantage() == pytest.approx(long.advantage(), rel=1e-3)
    assert long.then(BLIND).advantage() <= long.advantage() + 1e-12


def test_a_channel_refuses_what_is_no_law() -> None:
    with pytest.raises(DataError, match=r"adding up to 1; got 0\.9"):
        Channel.of([0.5, 0.4], [0.5, 0.5])


def _every() -> list[str]:
    return [name for name in names() if lookup(name).kind not in NO_FEATURE]


@pytest.mark.parametrize("name", _every())
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_no_report_says_more_of_an_attribute_than_its_loss_allows(name: str, epsilon: float) -> None:
    budget = {"null": 0.0, "identity": math.inf, "gm": min(epsilon, 1.0)}.get(name, epsilon)
    device = protocol(name, budget, 6, 0.0, 1.0)
    features = np.zeros((10, 6))
    features[:3, 2] = 1.0
    (fact,) = facts_of(features, [2])
    channel = reader_of(device).channel(fact)
    loss, delta = device.privacy_loss(), device.delta
    assert channel.no.sum() == pytest.approx(1, abs=1e-6)
    assert channel.yes.sum() == pytest.approx(1, abs=1e-6)
    assert channel.advantage() <= advantage_bound(loss, delta) + 1e-7
    assert channel.success(fact.prior) <= success_bound(fact.prior, loss, delta) + 1e-7
    assert channel.area() <= area_bound(loss, delta) + 1e-7
    assert channel.posterior(fact.prior) <= posterior_bound(fact.prior, loss, delta) + 1e-7
    assert channel.success(fact.prior) >= fact.commonest - 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_one_bit_alone_reaches_the_bound_through_the_whole_path(epsilon: float) -> None:
    device = protocol("mb", epsilon, 1, 0.0, 1.0, m=1)
    (fact,) = facts_of(np.array([[1.0], [0.0], [0.0], [0.0]]), [0])
    channel = reader_of(device).channel(fact)
    assert channel.advantage() == pytest.approx(advantage_bound(epsilon), rel=1e-9)
    assert channel.success(fact.prior) == pytest.approx(success_bound(fact.prior, epsilon), rel=1e-9)
    assert channel.posterior(fact.prior) == pytest.approx(posterior_bound(fact.prior, epsilon), rel=1e-9)
