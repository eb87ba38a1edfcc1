"""How sure the most telling whole report makes, against every report that there is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pytest

from graphldp.adversary import Fact, SurestSets, facts_of, posterior_bound, reader_of
from graphldp.audit.law import outcomes
from graphldp.audit.sets import support_law
from graphldp.audit.whole import whole_law
from graphldp.client import protocol
from graphldp.client.levels import probabilities

Law: TypeAlias = dict[Any, float]
UNEQUAL = np.array([0.02, 0.3, 0.1, 0.45, 0.05, 0.2])


def people(shares: np.ndarray, nodes: int = 40) -> np.ndarray:
    """Return features in which attribute j is had by a share of `shares[j]`, to one part in `nodes`."""
    order = np.random.default_rng(0).permuted(np.tile(np.arange(nodes), (len(shares), 1)), axis=1).T
    return (order < np.rint(shares * nodes)).astype(np.float64)


def enumerated(law: Callable[[tuple[int, ...]], Law], shares: np.ndarray, attribute: int) -> float:
    """Return the largest chance of the attribute, over all reports, of people with independent attributes."""
    sides: tuple[Law, Law] = ({}, {})
    for record in itertools.product((0, 1), repeat=len(shares)):
        chance = np.prod([p if has else 1 - p for p, has in zip(shares, record, strict=True)])
        for report, mass in law(record).items():
            side = sides[record[attribute]]
            side[report] = side.get(report, 0.0) + chance * mass
    no, yes = sides
    return max(yes[report] / (yes[report] + no.get(report, 0.0)) for report in yes if yes[report] > 0)


def set_law(device: Any) -> Callable[[tuple[int, ...]], Law]:
    return lru_cache(lambda record: dict(enumerate(support_law(device, record).tolist())))


def scalar_law(device: Any) -> Callable[[tuple[int, ...]], Law]:
    """Return the law of m of d values from one symmetric randomiser: every set of dimensions, every value."""
    law = outcomes(device.base, [0.0, 1.0])

    def of(record: tuple[int, ...]) -> Law:
        found: Law = {}
        sets = list(itertools.combinations(range(device.dimensions), device.m))
        for chosen in sets:
            for values in itertools.product(range(len(law.y)), repeat=device.m):
                mass = np.prod([law.mass[record[j], v] for j, v in zip(chosen, values, strict=True)])
                found[chosen, values] = float(mass) / len(sets)
        return found

    return of


def levels_law(device: Any) -> Callable[[tuple[int, ...]], Law]:
    shares = probabilities(device.distribution, device.levels)

    def of(record: tuple[int, ...]) -> Law:
        found: Law = {}
        for level, share in enumerate(shares, start=1):
            for report, log in whole_law(device, (tuple(map(float, record)), level)).items():
                found[report] = found.get(report, 0.0) + share * float(np.exp(log))
        return found

    return of


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
@pytest.mark.parametrize("name", ["privset", "subset", "oue", "olh"])
def test_sets_of_all_sizes_and_shares(name: str, epsilon: float) -> None:
    dimensions, pad = (4, 2) if name == "olh" else (6, 3)
    device = protocol(name, epsilon, dimensions, 0.0, 1.0, pad=pad)
    law = set_law(device)
    for shares in (np.full(dimensions, 0.02), np.full(dimensions, 0.3), UNEQUAL[:dimensions]):
        sure = SurestSets(device, shares)
        for attribute in (0, 1):
            expected = enumerated(law, shares, attribute)
            found = sure.posterior(attribute, float(shares[attribute]))
            assert found == pytest.approx(expected, rel=1e-9)
            assert found <= posterior_bound(shares[attribute], device.privacy_loss()) + 1e-12


def test_one_bit_of_a_set_says_half_as_much_as_all_of_it() -> None:
    device = protocol("privset", 3.0, 6, 0.0, 1.0, pad=3)
    x = people(np.full(6, 0.02), nodes=50)
    (fact,) = facts_of(x, [0])
    reader = reader_of(device, x)
    assert reader.channel(fact).posterior(fact.prior) == pytest.approx(0.105, abs=0.005)
    assert reader.posterior(fact) == pytest.approx(0.2108, abs=1e-4)
    common = SurestSets(device, np.array([0.3, *[0.02] * 5]))
    assert common.posterior(0, 0.3) == pytest.approx(0.8487, abs=1e-4)


@pytest.mark.parametrize(("name", "expected"), [("privset", 0.968), ("oue", 0.922)])
def test_a_real_number_of_attributes(name: str, expected: float) -> None:
    device = protocol(name, 10.0, 1433, 0.0, 1.0)
    assert SurestSets(device, np.full(1433, 0.0127)).posterior(5, 0.0127) == pytest.approx(expected, abs=5e-4)


def test_no_mixture_of_the_commonest_and_the_rarest_is_missed_by_much() -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        m = int(rng.integers(1, 5))
        device = protocol("privset", float(rng.choice([0.5, 3.0, 8.0])), 4, 0.0, 1.0, pad=3, m=m)
        shares = rng.beta(0.5, 1.5, size=4)
        expected = enumerated(set_law(device), shares, 0)
        assert SurestSets(device, shares).posterior(0, float(shares[0])) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("name", "m"), [("mb", 1), ("mb", 2), ("to", 2), ("1b", 3)])
def test_of_m_values_one_is_all_that_tells(name: str, m: int) -> None:
    device = protocol(name, 3.0, 3, 0.0, 1.0, m=m)
    x = people(UNEQUAL[:3])
    for fact in facts_of(x, range(3)):
        assert reader_of(device, x).posterior(fact) == pytest.approx(
            enumerated(scalar_law(device), x.mean(axis=0), fact.attribute)
        )


@pytest.mark.parametrize("name", ["ppm", "ppm-safe"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_a_hidden_level_shows_in_the_other_signs(name: str, epsilon: float) -> None:
    device = protocol(name, epsilon, 3, 0.0, 1.0, levels=3)
    x = people(UNEQUAL[:3])
    facts = facts_of(x, range(3))
    reader = reader_of(device, x)
    for fact in facts:
        expected = enumerated(levels_law(device), x.mean(axis=0), fact.attribute)
        assert reader.posterior(fact) == pytest.approx(expected, rel=1e-9)
    if name == "ppm-safe" and epsilon == 8.0:
        assert any(reader.posterior(fact) > reader.channel(fact).posterior(fact.prior) + 1e-4 for fact in facts)


@pytest.mark.parametrize("name", ["privset", "ppm-safe", "mb"])
def test_without_features_all_attributes_are_as_common(name: str) -> None:
    device = protocol(name, 3.0, 5, 0.0, 1.0)
    x = people(np.full(5, 0.2))
    (fact,) = facts_of(x, [1])
    assert reader_of(device).posterior(fact) == pytest.approx(reader_of(device, x).posterior(fact))
    nobody = Fact(attribute=1, holds=np.zeros(40, dtype=bool), no=((0.0, 1.0),), yes=())
    if name != "mb":
        assert reader_of(device).posterior(nobody) == 0.0
