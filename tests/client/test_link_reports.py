"""Mechanisms for lists of neighbours: every report's law by enumeration, the loss of a bit and of a relationship."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from links_small import bits_of, every_list, every_report, law, lists, reports_of
from scipy import stats

from graphldp.client.links import (
    LinkMechanism,
    LinkReports,
    Neighbours,
    link_mechanism,
    link_mechanism_of,
    link_names,
    lookup_link,
)
from graphldp.client.links.draws import discrete_laplace, discrete_laplace_variance, log_discrete_laplace, places
from graphldp.errors import DataError, OptionError
from graphldp.randomness import SecureSource, generator

BITS = ("blink", "dprr", "rr")
WAYS = [(name, report) for name in BITS for report in ("lower", "both")]
EDGES = np.array([[0, 0, 1, 3], [1, 3, 3, 2]])  # of 5 people; nobody knows person 4


def mechanism(name: str, report: str, epsilon: float = 1.3, nodes: int = 4) -> LinkMechanism:
    return link_mechanism(name, epsilon, nodes, report, **({} if name == "rr" else {"degree_share": 0.4}))


def parts(reports: LinkReports, row: int) -> tuple[int | None, tuple[int, ...]]:
    bits = reports.indices[reports.indptr[row] : reports.indptr[row + 1]]
    return None if reports.degree is None else int(reports.degree[row]), tuple(bits.tolist())


def counted(built: LinkMechanism, graph: Neighbours, person: int, runs: int, seed: int) -> Counter[Any]:
    """Return how often a person sends which report, of everybody's reports in so many calls, which are made as one."""
    people = len(graph.owners)
    again = Neighbours(
        nodes=graph.nodes,
        owners=np.tile(graph.owners, runs),
        indptr=np.concatenate([[0], np.cumsum(np.tile(graph.degrees, runs))]),
        indices=np.tile(graph.indices, runs),
    )
    sent = built.perturb(again, generator(seed, built.name, built.report))
    return Counter(parts(sent, row) for row in range(person, people * runs, people))


@pytest.mark.parametrize(("name", "report"), WAYS)
def test_the_law_of_every_report_about_every_list_is_that_of_the_formulas(name: str, report: str) -> None:
    built = mechanism(name, report)
    for person in (0, 2, 3):
        for own in every_list(person, 4):
            for degree, bits in every_report(built, person, reach=1):
                log = built.log_law(reports_of(built, person, degree, bits), lists(person, own, 4))
                expected = law(built, person, own, degree, bits)
                assert math.exp(log[0]) == pytest.approx(expected, rel=1e-9, abs=1e-300)
            total = math.fsum(law(built, person, own, *out) for out in every_report(built, person, reach=50))
            assert total == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(("name", "report"), WAYS)
def test_the_loss_of_a_bit_and_of_a_relationship_is_the_largest_log_ratio_over_all_lists_and_reports(
    name: str, report: str
) -> None:
    built = mechanism(name, report)
    largest = 0.0
    for person in range(4):
        outputs = every_report(built, person, reach=3)
        laws = {own: np.array([law(built, person, own, *out) for out in outputs]) for own in every_list(person, 4)}
        for one, two in itertools.permutations(laws, 2):
            if len(set(one) ^ set(two)) == 1:
                there = laws[one] > 0
                largest = max(largest, float(np.log(laws[one][there] / laws[two][there]).max()))
    assert largest == pytest.approx(built.privacy_loss(), rel=1e-9)
    assert largest == pytest.approx(built.epsilon, rel=1e-9)
    # A relationship of persons 1 and 2 is a bit of both lists; their reports are independent.
    together = 0.0
    for mine, other in ((1, 2), (2, 1)):
        outputs = every_report(built, mine, reach=3)
        with_it = np.array([law(built, mine, (0, other), *out) for out in outputs])
        without = np.array([law(built, mine, (0,), *out) for out in outputs])
        together += float(np.log(with_it[with_it > 0] / without[with_it > 0]).max())
    assert together == pytest.approx(built.relationship_loss(), rel=1e-9)
    assert built.relationship_loss() == pytest.approx(built.relationship_epsilon, rel=1e-9)
    twice = 2 if report == "both" else 1
    assert built.relationship_epsilon == pytest.approx(2 * built.degree_epsilon + twice * built.bit_epsilon)


@pytest.mark.parametrize(("name", "report"), WAYS)
def test_reports_follow_the_law_degree_and_bits_together(name: str, report: str) -> None:
    built, runs, person = mechanism(name, report), 20_000, 3
    own = (0, 2)
    found = counted(built, Neighbours.of_edges(np.array([[0, 2, 0], [3, 3, 1]]), 4), person, runs, 1)
    outputs = [out for out in every_report(built, person, reach=60) if law(built, person, own, *out) * runs > 8]
    expected = runs * np.array([law(built, person, own, *out) for out in outputs])
    counts = np.array([found.get(out, 0) for out in outputs])
    assert _fits(counts, expected, runs) > 1e-6
    # The law of another list, and of another budget, are told apart from it.
    wrong = runs * np.array([law(built, person, (0, 1), *out) for out in outputs])
    assert _fits(counts, wrong, runs) < 1e-6
    weaker = mechanism(name, report, epsilon=1.8)
    assert _fits(counts, runs * np.array([law(weaker, person, own, *out) for out in outputs]), runs) < 1e-6


def _fits(counts: np.ndarray, expected: np.ndarray, runs: int) -> float:
    rest, rest_expected = runs - counts.sum(), runs - expected.sum()
    if rest_expected > 8:
        counts, expected = np.append(counts, rest), np.append(expected, rest_expected)
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


@pytest.mark.parametrize(("name", "report"), WAYS)
def test_what_others_have_on_their_lists_moves_nobody_elses_law(name: str, report: str) -> None:
    """Person 3's list is the same in both graphs, and all others' are changed."""
    built, runs = mechanism(name, report), 20_000
    one = Neighbours.of_edges(np.array([[0, 2], [3, 3]]), 4)
    two = Neighbours.of_edges(np.array([[0, 2, 0, 0, 1], [3, 3, 1, 2, 2]]), 4)
    counts: list[Counter[Any]] = []
    for number, graph in enumerate((one, two)):
        counts.append(counted(built, graph, 3, runs, number))
    common = [out for out in set(counts[0]) | set(counts[1]) if counts[0].get(out, 0) + counts[1].get(out, 0) > 20]
    table = np.array([[seen.get(out, 0) for out in common] for seen in counts])
    assert stats.chi2_contingency(table).pvalue > 1e-6


@pytest.mark.parametrize("report", ["lower", "both"])
def test_randomised_response_flips_the_same_bits_whatever_the_lists_hold(report: str) -> None:
    built = link_mechanism("rr", 1.0, 30, report)
    empty = Neighbours.of_edges(np.empty((2, 0), int), 30)
    full = Neighbours.of_edges(np.array(list(itertools.combinations(range(30), 2))).T, 30)
    flips, kept = (built.perturb(graph, generator(3, report)) for graph in (empty, full))
    for person in range(30):
        assert sorted(parts(flips, person)[1] + parts(kept, person)[1]) == bits_of(built, person)


@pytest.mark.parametrize("name", link_names())
@pytest.mark.parametrize("report", ["lower", "both"])
def test_nobody_is_reported_as_her_own_neighbour_and_reports_are_in_order(name: str, report: str) -> None:
    built = link_mechanism(name, 0.5, 5, report)
    for source in (generator(0, name), SecureSource()):
        sent = built.perturb(Neighbours.of_edges(EDGES, 5), source)
        assert len(sent.owners) == 5
        for person in range(5):
            bits = parts(sent, person)[1]
            assert set(bits) <= set(bits_of(built, person))
            assert list(bits) == sorted(set(bits))


@pytest.mark.parametrize("name", link_names())
@pytest.mark.parametrize("report", ["lower", "both"])
def test_one_person_on_her_device_reports_by_the_law_that_everybody_together_has(name: str, report: str) -> None:
    built = link_mechanism(name, 1.0, 5, report)
    alone = built.perturb(Neighbours.of_person(3, [2, 0, 1], 5), SecureSource())
    assert alone.owners.tolist() == [3]
    own = Neighbours.of_edges(EDGES, 5)
    together = built.perturb(own, generator(0, "law"))
    logs = built.log_law(together, own)
    for person in range(5):
        mine = own.indices[own.indptr[person] : own.indptr[person + 1]]
        part = slice(together.indptr[person], together.indptr[person + 1])
        one = LinkReports(
            nodes=5,
            owners=np.array([person], np.int32),
            indptr=np.array([0, part.stop - part.start]),
            indices=together.indices[part],
            degree=None if together.degree is None else together.degree[person : person + 1],
            value=None if together.value is None else together.value[part],
        )
        assert built.log_law(one, Neighbours.of_person(person, mine, 5))[0] == pytest.approx(logs[person])


def test_thinning_keeps_the_degree_in_the_mean() -> None:
    """By the law: somebody whose noisy degree is her degree reports that many links on average."""
    built = link_mechanism("dprr", 3.0, 400, "both")
    flip = 1 / (1 + math.exp(built.bit_epsilon))
    for degree in (1, 7, 40):
        keep = float(built.keeping(np.array([degree]))[0])
        assert keep < 1
        assert keep * (degree * (1 - flip) + (399 - degree) * flip) == pytest.approx(degree)
    assert built.keeping(np.array([-5, 0])).tolist() == [0.0, 0.0]
    star = Neighbours.of_edges(np.stack([np.zeros(40, int), np.arange(1, 41)]), 400)
    sent = [built.perturb(star, generator(2, run)).indptr[1] for run in range(400)]
    noise = math.sqrt(2 * math.exp(-built.degree_epsilon)) / (1 - math.exp(-built.degree_epsilon))
    assert abs(np.mean(sent) - 40) < 5 * math.hypot(noise, math.sqrt(40)) / 20
    assert built.expected_links(200 * 40) == pytest.approx(400 * 40, rel=0.01)
    assert link_mechanism("dprr", 3.0, 400).expected_links(200 * 40) == pytest.approx(200 * 40, rel=0.01)


@pytest.mark.parametrize("report", ["lower", "both"])
def test_noise_on_bits_follows_the_laplace_law_and_loses_its_epsilon(report: str) -> None:
    built = link_mechanism("laplace-bits", 2.0, 300, report)
    graph = Neighbours.of_edges(np.stack([np.zeros(299, int), np.arange(1, 300)]), 300)
    sent = built.perturb(graph, generator(0, "laplace", report))
    assert sent.links == built.bits == len(sent.value)
    owner = sent.owners[sent.rows()]
    true = (owner == 0) | (sent.indices == 0)
    noise = [sent.value[true == bit].astype(np.float64) - bit for bit in (0, 1)]
    for values in noise:
        assert stats.kstest(values, "laplace", args=(0, 0.5)).pvalue > 1e-6
        assert stats.kstest(values, "laplace", args=(0, 1.0)).pvalue < 1e-6
    assert stats.kstest(noise[0], "laplace", args=(0, 0.53)).pvalue < 1e-6
    assert built.privacy_loss() == pytest.approx(2.0, rel=1e-3)
    assert built.relationship_loss() == pytest.approx(built.privacy_loss() * (2 if report == "both" else 1))


@pytest.mark.slow
def test_sparse_coins_show_heads_with_their_chances() -> None:
    sizes, chances = np.array([3, 0, 1, 5]), np.array([0.5, 0.9, 0.97, 0.01])
    hits, runs = np.zeros((4, 5)), 20_000
    pairs = np.zeros((3, 3))
    rng = generator(0, "coins")
    for _ in range(runs):
        rows, where = places(sizes, chances, rng)
        assert (np.diff(rows * 10 + where) > 0).all()
        hits[rows, where] += 1
        first = where[rows == 0]
        pairs[np.ix_(first, first)] += 1
    for row, (size, chance) in enumerate(zip(sizes, chances, strict=True)):
        assert not hits[row, size:].any()
        for count in hits[row, :size]:
            assert stats.binomtest(int(count), runs, chance).pvalue > 1e-6
    for i, j in itertools.combinations(range(3), 2):  # independent of each other
        assert stats.binomtest(int(pairs[i, j]), runs, 0.25).pvalue > 1e-6


def test_rare_coins_are_drawn_at_their_chance_and_not_never() -> None:
    """A budget of 40: a coin of 4e-18, below what a plain number in [0, 1) tells."""
    chance, coins = math.exp(-40), 10**15
    rows, where = places(np.full(10_000, coins), np.full(10_000, chance), generator(0, "rare"))
    assert stats.poisson(10_000 * coins * chance).interval(1 - 1e-6)[0] <= len(rows)
    assert stats.poisson(10_000 * coins * chance).interval(1 - 1e-6)[1] >= len(rows)
    assert ((where >= 0) & (where < coins)).all()


@pytest.mark.parametrize("rate", [0.05, 0.4, 3.0])
def test_the_variance_of_a_degrees_noise_is_that_of_its_law(rate: float) -> None:
    values = np.arange(-3000, 3001)
    law = np.exp(log_discrete_laplace(rate, values))
    assert discrete_laplace_variance(rate) == pytest.approx(float((law * values**2).sum()), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 9.0])
def test_the_noise_of_a_degree_is_the_discrete_laplace_law(epsilon: float) -> None:
    draws = discrete_laplace(epsilon, 100_000, generator(0, "degree", epsilon))
    r = math.exp(-epsilon)
    k = np.arange(-3, 4)
    mass = (1 - r) / (1 + r) * r ** np.abs(k)
    counts = np.array([(draws == v).sum() for v in k])
    assert _fits(counts, 100_000 * mass, 100_000) > 1e-6


@pytest.mark.parametrize("name", link_names())
def test_metadata_makes_an_equal_mechanism_and_states_both_epsilons(name: str) -> None:
    built = link_mechanism(name, np.float32(1.5), np.int64(9), "both")
    assert link_mechanism_of(built.meta()) == built
    assert built.meta()["epsilon"] == 1.5
    assert built.meta()["epsilon_relationship"] == pytest.approx(3.0)
    assert f"{built.relationship_epsilon:g}" in built.claim.neighbours
    assert "whole list" in built.claim.unprotected


@pytest.mark.parametrize("name", link_names())
def test_a_mechanism_states_its_formula_claim_estimator_reference_and_deviations(name: str) -> None:
    text = lookup_link(name).__doc__
    places_ = [text.find(part) for part in ("Formula:", "Claim:", "Estimator:", "Reference:", "Deviations:")]
    assert -1 not in places_
    assert places_ == sorted(places_)


def test_expected_links_are_those_of_the_law() -> None:
    edges = np.array(list(itertools.combinations(range(40), 2))).T[:, ::9]
    for report in ("lower", "both"):
        built = link_mechanism("rr", 2.0, 40, report)
        sent = [built.perturb(Neighbours.of_edges(edges, 40), generator(5, report, k)).links for k in range(200)]
        assert abs(np.mean(sent) - built.expected_links(edges.shape[1])) < 5 * np.std(sent) / math.sqrt(200)


class Never:
    """A source of randomness that nobody may ask."""

    def random(self, size: object) -> np.ndarray:
        raise AssertionError

    integers = random


@pytest.mark.parametrize("name", ["blink", "rr", "laplace-bits"])
def test_what_would_not_fit_is_refused_before_anything_is_drawn(name: str) -> None:
    built = link_mechanism(name, 0.5, 50_000)
    nobody = Neighbours.of_edges(np.empty((2, 0), int), 50_000)
    with pytest.raises(
        OptionError, match=r"at epsilon 0\.5 about [\d,]+ (false links|numbers) would be reported"
    ) as told:
        built.perturb(nobody, Never())  # type: ignore[arg-type]
    wanted = float(re.search(r"about ([\d,]+) ", str(told.value))[1].replace(",", ""))  # type: ignore[index]
    allowed = float(re.search(r", or allow more with --link-option most=(\S+)$", str(told.value))[1])  # type: ignore[index]
    assert wanted < allowed < 1.11 * wanted
    assert "\n" not in str(told.value)
    small = link_mechanism("dprr", 0.5, 1000)
    ring = Neighbours.of_edges(np.stack([np.arange(1000), (np.arange(1000) + 1) % 1000]), 1000)
    with pytest.raises(OptionError, match="more than the 10 that are allowed"):
        small.perturb(ring, generator(0, "few"), most=10)


def test_bad_input_is_told_in_one_line_without_a_value() -> None:
    for edges, text in (
        ([[0, 1], [1, 0]], r"1 link\(s\) stand there more than once"),
        ([[2], [2]], r"1 link\(s\) join a person to herself"),
        ([[0], [7]], r"outside 0\.\.4"),
        ([[0.5], [1.0]], "whole numbers"),
        ([0, 1], "2 x E"),
    ):
        with pytest.raises(DataError, match=text):
            Neighbours.of_edges(np.array(edges), 5)
    for own, text in (([3], "names its owner"), ([1, 1], "twice"), ([9], r"outside 0\.\.4"), ([0.5], "whole numbers")):
        with pytest.raises(DataError, match=text):
            Neighbours.of_person(3, np.array(own), 5)
    assert Neighbours.of_person(3, [], 5).degrees.tolist() == [0]
    for call, text in (
        (lambda: link_mechanism("blonk", 1.0, 5), "did you mean 'blink'"),
        (lambda: link_mechanism("rr", 0.0, 5), "epsilon must be finite and > 0"),
        (lambda: link_mechanism("rr", 1.0, 1), "nodes must be a whole number from 2"),
        (lambda: link_mechanism("rr", 1.0, 5, "upper"), "report must be one of lower, both"),
        (lambda: link_mechanism("rr", 1.0, 5, degree_share=0.1), "has no option 'degree_share'"),
        (lambda: link_mechanism("blink", 1.0, 5, degree_share=1.0), "between 0 and 1"),
        (lambda: link_mechanism("laplace-bits", 1.0, 5, grid=-1), "grid must be finite"),
    ):
        with pytest.raises(OptionError, match=text):
            call()
    with pytest.raises(DataError, match="of 5 people, the mechanism was made for 6"):
        link_mechanism("rr", 1.0, 6).perturb(Neighbours.of_edges(EDGES, 5), generator(0, "x"))


def test_lists_of_some_people_are_their_own_rows() -> None:
    edges = np.array([[0, 1, 2, 0, 3], [1, 2, 3, 4, 4]])
    every = Neighbours.of_edges(edges, 6)
    some = Neighbours.of_people([1, 4, 5], edges, 6)
    np.testing.assert_array_equal(some.owners, [1, 4, 5])
    for place, owner in enumerate(some.owners):
        own = some.indices[some.indptr[place] : some.indptr[place + 1]]
        np.testing.assert_array_equal(own, every.indices[every.indptr[owner] : every.indptr[owner + 1]])
    nobody = Neighbours.of_people([2], np.empty((2, 0), np.int64), 6)
    assert nobody.degrees.tolist() == [0]
    with pytest.raises(DataError, match="in increasing order"):
        Neighbours.of_people([4, 1], edges, 6)


@pytest.mark.parametrize("name", ["rr", "blink", "dprr", "laplace-bits"])
@pytest.mark.parametrize("report", ["lower", "both"])
def test_the_law_of_one_device_is_that_of_her_list_alone(name: str, report: str) -> None:
    device = link_mechanism(name, 2.0, 6, report)
    edges = np.array([[0, 1, 2, 0, 3], [1, 2, 3, 4, 4]])
    others = np.array([[0, 1, 2, 0], [1, 2, 3, 4]])  # the last link is not of person 2
    sent = device.perturb(Neighbours.of_people([2], edges, 6), np.random.default_rng(0))
    assert sent.owners.tolist() == [2]
    one, two, person = (
        device.log_law(sent, lists)
        for lists in (
            Neighbours.of_people([2], edges, 6),
            Neighbours.of_people([2], others, 6),
            Neighbours.of_person(2, [1, 3], 6),
        )
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, person)
