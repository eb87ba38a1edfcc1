from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.adversary import Entries, InformedSets, Tally, facts_of, reader_of
from graphldp.audit.sets import support_law
from graphldp.client import Reports, protocol
from graphldp.client.directed import second_round
from graphldp.errors import DataError, OptionError

EVERY = ("mb", "pm", "hds", "lp", "sw", "featurerr", "latent", "ppm", "ppm-safe", "ppm-public", "pldp", "null")
SETS = ("oue", "subset", "olh", "privset")


def features(nodes: int = 20_000, dimensions: int = 5, share: float = 0.3) -> np.ndarray:
    return (np.random.default_rng(1).random((nodes, dimensions)) < share).astype(np.float64)


@pytest.mark.parametrize("name", [*EVERY, *SETS])
def test_guesses_from_reports_come_out_as_the_law_says(name: str) -> None:
    # Simulation against the exact law, for the guess that only asks which side is likelier.
    x = features()
    options = {"pad": 5} if name in SETS else {}
    device = protocol(name, 0.0 if name == "null" else 2.0, 5, 0.0, 1.0, **options)
    reports = device.perturb(x, np.random.default_rng(2))
    (fact,) = facts_of(x, [3])
    reader = reader_of(device)
    channel, odds = reader.channel(fact), reader.odds(Entries.of(device, reports), fact)
    tally = Tally(len(x))
    tally.add(fact, odds > math.log((1 - fact.prior) / fact.prior), odds > 0)
    advantage, accuracy = tally.advantage, tally.accuracy
    assert abs(advantage.value - channel.advantage()) <= 4 * advantage.error + 1e-12
    assert abs(accuracy.value - channel.success(fact.prior)) <= 4 * accuracy.error + 1e-12
    if device.privacy_loss() < 5:  # the mean of e^odds where the fact does not hold is 1; it needs no rare outcome here
        assert np.exp(odds[~fact.holds]).mean() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", SETS)
def test_the_law_counts_who_has_more_than_the_padding(name: str) -> None:
    x = features(nodes=60_000, share=0.6)
    device = protocol(name, 4.0, 5, 0.0, 1.0, pad=2)
    entries = Entries.of(device, device.perturb(x, np.random.default_rng(2)))
    (fact,) = facts_of(x, [3])
    tally = Tally(len(x))
    odds = reader_of(device, x).odds(entries, fact)
    tally.add(fact, odds > 0, odds > 0)
    law, naive = (reader.channel(fact).advantage() for reader in (reader_of(device, x), reader_of(device)))
    assert abs(tally.advantage.value - law) <= 4 * tally.advantage.error
    assert naive > law + 10 * tally.advantage.error


def test_a_directed_round_shows_what_it_asks_everybody_for() -> None:
    x = features(dimensions=8)
    directed = second_round("mb", 8.0, 8, 0.0, 1.0, ranking=[5, 1, 0, 2, 3, 4, 6, 7], rho=0.5, m=2)
    base = directed.parts[0].base
    asked, other = facts_of(x, [5, 6])
    reader = reader_of(directed)
    both = base.pmf(1.0, 1.0) - base.pmf(1.0, 0.0)
    assert reader.channel(asked).advantage() == pytest.approx(both)
    assert reader.channel(other).advantage() == pytest.approx(both / 7)
    odds = reader.odds(Entries.of(directed, directed.perturb(x, np.random.default_rng(0))), asked)
    assert np.abs(odds) == pytest.approx(np.full(len(x), base.privacy_loss()))


def test_the_report_that_is_the_data_tells_everything() -> None:
    x = features(nodes=50)
    device = protocol("identity", math.inf, 5, 0.0, 1.0)
    (fact,) = facts_of(sp.csr_array(x), [1])
    odds = reader_of(device).odds(Entries.of(device, device.perturb(sp.csr_array(x), np.random.default_rng(0))), fact)
    assert ((odds > 0) == fact.holds).all()
    assert reader_of(device).channel(fact).advantage() == 1


def test_a_value_that_no_mechanism_sends_is_refused() -> None:
    device = protocol("mb", 1.0, 3, 0.0, 1.0, m=3)
    (fact,) = facts_of(features(nodes=10, dimensions=3), [0])
    other = Reports(value=np.full((10, 3), 7, dtype=np.int8), index=np.tile(np.arange(3, dtype=np.int32), (10, 1)))
    with pytest.raises(DataError, match="never sends"):
        reader_of(device).odds(Entries.of(device, other), fact)


def test_facts_of_numbers_are_about_the_median() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random(1001), np.ones(1001), (rng.random(1001) < 0.9).astype(float)])
    number, constant, common = facts_of(x, [0, 1, 2])
    assert number.holds.sum() == 500
    assert (number.holds == (x[:, 0] > np.median(x[:, 0]))).all()
    assert len(number.yes) == 64
    assert sum(share for _, share in number.yes) == pytest.approx(1)
    assert not constant.varies
    assert (common.holds == (x[:, 2] == 1)).all()
    assert common.no == ((0.0, 1.0),)
    with pytest.raises(DataError, match="no attribute 3: they have the numbers 0 to 2"):
        facts_of(x, [3])


def test_numbers_on_either_side_are_mixed_by_their_shares() -> None:
    x = np.array([[0.0], [0.2], [0.2], [0.9], [1.0], [1.0]])
    (fact,) = facts_of(x, [0])
    device = protocol("mb", 1.0, 1, 0.0, 1.0, m=1)
    at = [float(device.base.pmf(1.0, value)) for value in x.ravel()]
    channel = reader_of(device).channel(fact)
    assert channel.advantage() == pytest.approx(np.mean(at[3:]) - np.mean(at[:3]))


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("name", SETS)
def test_who_knows_the_rest_of_a_set_reads_it_by_its_law(name: str, epsilon: float) -> None:
    # Three attributes, padded to two items: every set and every report, against the audit's own account of the law.
    device = protocol(name, epsilon, 3, 0.0, 1.0, pad=2)
    records = [np.array(record) for record in itertools.product((0, 1), repeat=3)]
    x = np.repeat(np.array(records, dtype=np.float64), 300, axis=0)
    reports = device.perturb(x, np.random.default_rng(0))
    entries = Entries.of(device, reports)
    informed = InformedSets.of(device, entries, x)
    masks = _masks(device, reports)
    for attribute, fact in enumerate(facts_of(x, range(3))):
        odds = informed.odds(fact)
        for record in records:
            rows = np.flatnonzero((x == record).all(axis=1))
            has, lacks = record.copy(), record.copy()
            has[attribute], lacks[attribute] = 1, 0
            yes, no = support_law(device, tuple(has)), support_law(device, tuple(lacks))
            expected = np.log(yes[masks[rows]]) - np.log(no[masks[rows]])
            assert odds[rows] == pytest.approx(expected, abs=1e-9)
            assert np.abs(odds[rows]).max() <= device.privacy_loss() + 1e-9


def _masks(device: object, reports: Reports) -> np.ndarray:
    from graphldp.audit.sets import set_law_of

    return set_law_of(device).supported(reports)


@pytest.mark.parametrize("name", SETS)
def test_knowing_the_rest_never_harms_the_attacker(name: str) -> None:
    x = features(share=0.5)
    device = protocol(name, 3.0, 5, 0.0, 1.0, pad=3)
    entries = Entries.of(device, device.perturb(x, np.random.default_rng(3)))
    (fact,) = facts_of(x, [0])
    alone, informed = Tally(len(x)), Tally(len(x))
    alone_odds, odds = reader_of(device).odds(entries, fact), InformedSets.of(device, entries, x).odds(fact)
    alone.add(fact, alone_odds > 0, alone_odds > 0)
    informed.add(fact, odds > 0, odds > 0)
    assert informed.advantage.value >= alone.advantage.value - 3 * alone.advantage.error


def test_a_mechanism_nobody_can_read_is_refused_with_its_name() -> None:
    class Strange:
        name = "strange"
        parts = ()
        scalars = list

    with pytest.raises(OptionError, match="no attack on strange is known"):
        reader_of(Strange())  # type: ignore[arg-type]
