"""Mechanisms that were broken on purpose, each in one place: the audit convicts every one of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphldp import randomness
from graphldp.audit import AuditOptions, audit_mechanism
from graphldp.client import directed, draws, levels, vote
from graphldp.client.laws.density import Density
from graphldp.client.laws.sets import Meeting, support_law
from graphldp.client.mechanisms import featurerr, mlr, olh
from graphldp.client.mechanisms.lp import Laplace
from graphldp.client.protocol import Sampled
from graphldp.client.randomiser import Randomiser, uniform
from graphldp.client.reports import Reports
from graphldp.client.sampling import gather, is_sparse
from graphldp.client.vector import VectorMechanism

protocol = importlib.import_module("graphldp.client.protocol")  # the package exports a function of that name
Patch = pytest.MonkeyPatch
QUICK = AuditOptions(dimensions=4, samples=4000)


def shared(patch: Patch, every: int = 1) -> None:
    """One uniform number for all values of a report; of every report, or of some."""

    def sample(self: Any, x: Any, rng: Any) -> Any:
        u = uniform(rng, np.shape(x))
        if u.ndim == 2:
            u[::every] = u[::every, :1]
        return self.invert(x, u)

    patch.setattr(Randomiser, "sample", sample)


def same_noise(patch: Patch, one: int, two: int) -> None:
    """Two people have the same noise."""

    def sample(self: Any, x: Any, rng: Any) -> Any:
        u = uniform(rng, np.shape(x))
        if len(u) > max(one, two):
            u[two] = u[one]
        return self.invert(x, u)

    patch.setattr(Randomiser, "sample", sample)


def reports_change(patch: Patch, change: Callable[[Any, Any, Any, Any], Any], owner: Any = VectorMechanism) -> None:
    """Reports are changed by what the features are."""
    right = owner.perturb

    def perturb(self: Any, features: Any, rng: Any, *rest: Any, **more: Any) -> Reports:
        return change(self, features, right(self, features, rng, *rest, **more), rng)

    patch.setattr(owner, "perturb", perturb)


def own(features: Any, reports: Reports) -> Any:
    """Return the values that were reported about."""
    dense = features.toarray() if is_sparse(features) else np.asarray(features)
    return dense if reports.index is None else np.take_along_axis(dense, reports.index.astype(np.int64), axis=1)


def in_clear(rows: Callable[[int], Any]) -> Callable[..., Reports]:
    def change(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
        value, which = reports.value.copy(), rows(reports.nodes)
        value[which] = np.where(own(features, reports)[which] > 0, 1, -1)
        return replace(reports, value=value)

    return change


def an_ordinary_value(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    return replace(reports, value=np.where(own(features, reports) == 0.123, np.int8(1), reports.value))


def wider(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    large = bool((np.abs(own(features, reports)) > 10).any())
    return replace(reports, value=reports.value.astype(np.int16 if large else np.int8))


def mean_in_meta(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    return replace(reports, meta={**reports.meta, "mean": float(np.clip(own(features, reports), -9, 9).mean())})


def again(self: Any, features: Any, reports: Reports, rng: Any, rows: Any, factor: float = 2.0) -> Reports:
    """Some people's values are drawn with more budget."""
    more = replace(self.base, epsilon=self.base.epsilon * factor)
    return replace(reports, value=np.where(rows, more.sample(own(features, reports), rng), reports.value))


def beyond_a_block(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    return again(self, features, reports, rng, np.arange(reports.nodes)[:, None] >= 2**16)


def near_a_half(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    return again(self, features, reports, rng, np.abs(own(features, reports) - 0.5) < 0.1)


def sparse_with_more(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    return again(self, features, reports, rng, is_sparse(features))


def present_ones(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    """Of sparse features, dimensions are chosen among those that are there."""
    if not is_sparse(features) or reports.index is None:
        return reports
    index = np.array([np.sort(np.argsort(row == 0, kind="stable")[: reports.m]) for row in features.toarray()])
    value = self.base.sample(gather(features, index.astype(np.int32)), rng)
    return replace(reports, index=index.astype(np.int32), value=value)


def fixed_for_nobody(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    if not is_sparse(features) or reports.index is None:
        return reports
    index = reports.index.copy()
    index[np.diff(features.indptr) == 0] = np.arange(reports.m)
    return replace(reports, index=index)


def fewer_values(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    if not is_sparse(features) or reports.index is None:
        return reports
    index = reports.index.copy()
    index[np.diff(features.indptr) == 0, -1] = -1
    return replace(reports, index=index)


def no_clamp(patch: Patch) -> None:
    """Law and sampler take values outside of the range as they are."""

    def unit(self: Any, x: Any) -> Any:
        finite = np.clip(np.asarray(x, dtype=np.float64), -1e6, 1e6)
        return 2 * (finite - self.low) / (self.high - self.low) - 1

    patch.setattr(Randomiser, "_unit", unit)


def more_elsewhere(patch: Patch) -> None:
    right = protocol.build

    def build(name: str, epsilon: float, low: float, high: float, options: Any) -> Any:
        return right(name, epsilon if (low, high) == (-1, 1) else 2 * epsilon, low, high, options)

    patch.setattr(protocol, "build", build)


def whole_budget_each(patch: Patch) -> None:
    """Every one of the m values of mlr has the whole budget."""
    right = mlr.sampled

    def sampled(label: str, whole: Any, dimensions: int, m: int, fill: str, given: Any) -> Any:
        made = right(label, whole, dimensions, m, fill, given)
        return replace(made, inner=replace(made.inner, epsilon=whole.epsilon))

    patch.setattr(mlr, "sampled", sampled)


def share_0_in_clear(patch: Patch) -> None:
    def change(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
        value, without = reports.value.copy(), np.array(self.theta) == 0
        z = (np.clip(own(features, reports), self.low, self.high) - self.low) / (self.high - self.low)
        value[:, without] = np.clip(np.ceil(self.bins * z), 1, self.bins)[:, without]
        return replace(reports, value=value)

    reports_change(patch, change, featurerr.FeatureRR)


def vote_with_more(patch: Patch) -> None:
    """The sampler of votes, not its law."""
    right = vote.Vote.perturb

    def perturb(self: Any, features: Any, rng: Any) -> Reports:
        more = support_law(1.5 * self.epsilon, self.classes, 1, self.m, 1)
        patch.setattr(vote.Vote, "choice", property(lambda _: more.meeting))
        try:
            return right(self, features, rng)
        finally:
            patch.setattr(vote.Vote, "choice", CHOICE)

    patch.setattr(vote.Vote, "perturb", perturb)


CHOICE = vote.Vote.choice


def vote_claims_less(patch: Patch) -> None:
    """Law and sampler of votes alike."""
    patch.setattr(vote.Vote, "_law", property(lambda self: support_law(1.5 * self.epsilon, self.classes, 1, self.m, 1)))


def round_with_more(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    return again(self.device, features, reports, rng, True, 1.5)


def largest(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
    """The dimensions beside the ranked ones are those with the largest values."""
    dense = np.nan_to_num(features.toarray() if is_sparse(features) else np.array(features), posinf=9e9, neginf=-9e9)
    size = np.abs(np.clip(dense, self.device.low, self.device.high))
    size[:, list(self.fixed())] = np.inf
    index = np.sort(np.argsort(-size, axis=1, kind="stable")[:, : reports.m], axis=1).astype(np.int32)
    return replace(reports, index=index, value=self.device.base.sample(gather(features, index), rng))


def set_in_a_thousand(patch: Patch) -> None:
    """One person of 1,000 sends a set with as many of her own features as fit."""
    right = Meeting.sample

    def sample(self: Any, x: Any, rng: Any) -> Any:
        met = right(self, x, rng)
        met[500::1000] = met.max(initial=0)
        return met

    patch.setattr(Meeting, "sample", sample)


def function_by_feature(patch: Patch) -> None:
    """Which hash function is sent follows from the feature: even numbers for even features."""
    right = olh.OptimalLocalHashing._send

    class Even:
        def __init__(self, rng: Any, drawn: Any) -> None:
            self.rng, self.drawn, self.random, self.first = rng, drawn, rng.random, True

        def integers(self, low: int, high: int, size: Any) -> Any:
            out, first = self.rng.integers(low, high, size), self.first
            self.first = False
            return out - out % 2 + self.drawn % 2 if first else out

    patch.setattr(olh.OptimalLocalHashing, "_send", lambda self, drawn, rng: right(self, drawn, Even(rng, drawn)))


def budgets_above(patch: Patch) -> None:
    """Everybody has the budget of the level above hers, in claim and sampler alike."""
    above = property(lambda self: tuple(self.epsilon * 2.0 ** (step + 1) for step in range(self.levels)))
    patch.setattr(levels.Personalised, "budgets", above)


class Seeded(randomness.SecureSource):
    """A secure source that is not."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(5)

    def random(self, size: Any) -> Any:
        return self._rng.random(size)

    def integers(self, low: int, high: int, size: Any) -> Any:
        return self._rng.integers(low, high, size)


class Coarse(randomness.SecureSource):
    """Numbers of 24 bits."""

    def random(self, size: Any) -> Any:
        return np.floor(super().random(size) * 2**24) / 2**24


class Remainder(randomness.SecureSource):
    """Integers by the remainder of 32 bits."""

    def integers(self, low: int, high: int, size: Any) -> Any:
        return low + super().integers(0, 2**32, size) % (high - low)


def source_is(cls: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(randomness, "SecureSource", cls)


def changed(change: Callable[..., Any], owner: Any = VectorMechanism) -> Callable[[Patch], None]:
    return lambda patch: reports_change(patch, change, owner)


def tail_is(function: Callable[[Any, Any], Any]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(draws, "uniform", function)


# What is broken; in which rows it shows, one of each kind of law; what the verdict has to say.
MUTANTS: dict[str, tuple[Callable[[Patch], None], list[tuple[str, float]], str]] = {
    "one number for all values": (shared, [("1b", 1.0), ("cldp", 5.0)], "two values of a"),
    "one number for every second": (lambda p: shared(p, 2), [("pm", 1.0)], "two values of a report"),
    "two neighbours with one noise": (lambda p: same_noise(p, 0, 1), [("mb", 1.0)], "rows 0 and 1 of"),
    "two strangers with one noise": (lambda p: same_noise(p, 17, 4001), [("pm", 1.0)], "rows 17 and 4001 of"),
    "last row in clear": (changed(in_clear(lambda n: slice(n - 1, n))), [("mb", 1.0)], "row 19999 of"),
    "one in 1000 in clear": (changed(in_clear(lambda n: slice(500, n, 1000))), [("mb", 1.0)], "sends the same"),
    "more budget beyond 65,536": (changed(beyond_a_block), [("mb", 1.0)], "beyond 65,536"),
    "more noise beyond 65,536": (
        changed(beyond_a_block),
        [("lp", 1.0)],
        "follow the law ((dense): row 65536",
    ),
    "0.123 in clear": (changed(an_ordinary_value), [("mb", 1.0)], "value 0.123"),
    "more budget near a half": (changed(near_a_half), [("mb", 5.0)], "twentieth of the range"),
    "int16 for large values": (changed(wider), [("mb", 1.0)], "the value depends on the data"),
    "mean in the metadata": (changed(mean_in_meta), [("mb", 1.0)], "the meta depends on the data"),
    "sparse: present dimensions": (changed(present_ones), [("mb", 1.0)], "how often"),
    "sparse: fixed for nobody": (changed(fixed_for_nobody), [("mb", 1.0)], "how often"),
    "sparse: fewer values": (changed(fewer_values), [("mb", 1.0)], "missing, doubled or out of order"),
    "sparse: more budget": (changed(sparse_with_more), [("pm", 1.0)], "(sparse"),
    "no clamp": (no_clamp, [("mb", 1.0), ("lp", 1.0)], "does not follow the law"),
    "unbounded noise": (
        lambda p: p.setattr(Density, "_round", lambda self, y: np.rint(y / self.step) * self.step),
        [("lp", 1.0), ("ag", 1.0)],
        "distance inf",
    ),
    "Laplace scale of [-1, 1] elsewhere": (
        lambda p: p.setattr(Laplace, "_spread", property(lambda self: 2 / self.epsilon / self._half)),
        [("lp", 1.0)],
        "on [0, 5]",
    ),
    "more budget on other ranges": (more_elsewhere, [("mb", 1.0), ("lp", 0.1)], "on [0, 5]"),
    "sets: one in 1000 always meets": (set_in_a_thousand, [("privset", 1.0)], "row modulo 1,000 500"),
    "olh: the function follows from the feature": (function_by_feature, [("olh", 1.0)], "does not follow the law"),
    "levels: the budget of the one above": (budgets_above, [("ppm-public", 1.0)], "users of level 1 lose 2"),
    "mlr: the budget m times": (whole_budget_each, [("mlr", 1.0)], "2 times the claimed"),
    "featurerr: share 0 in clear": (share_0_in_clear, [("featurerr", 1.0)], "with theta"),
    "votes: more in the sampler": (vote_with_more, [("vote", 1.0), ("survey", 1.0)], "does not follow the law"),
    "votes: more in the law": (vote_claims_less, [("vote", 1.0)], "1.5 times the claimed 1"),
    "second round: more budget": (
        changed(round_with_more, directed.DirectedMechanism),
        [("rounds", 1.0)],
        "second round: does not keep its claim",
    ),
    "second round: largest values": (
        changed(largest, directed.DirectedMechanism),
        [("rounds", 1.0)],
        "largest value is reported",
    ),
    "secure source: seeded": (source_is(Seeded), [("mb", 1.0)], "the same numbers twice"),
    "secure source: 24 bits": (source_is(Coarse), [("mb", 1.0)], "of the secure source's numbers"),
    "secure source: remainder": (source_is(Remainder), [("mb", 1.0)], "of the secure source's integers"),
    "uniform numbers without a tail": (tail_is(lambda source, shape: source.random(shape)), [("mb", 1.0)], "no small"),
    "uniform numbers in float32": (
        tail_is(lambda source, shape: uniform(source, shape).astype(np.float32).astype(np.float64)),
        [("mb", 1.0)],
        "uniform numbers have 24 bits",
    ),
}
FAST = ("one number for all values", "last row in clear", "int16 for large values", "votes: more in the law")
CASES = [
    pytest.param(what, name, epsilon, marks=() if what in FAST and (name, epsilon) == rows[0] else pytest.mark.slow)
    for what, (_, rows, _) in MUTANTS.items()
    for name, epsilon in rows
]


@pytest.mark.parametrize(("what", "name", "epsilon"), CASES)
def test_a_mutant_is_convicted(what: str, name: str, epsilon: float, monkeypatch: Patch) -> None:
    mutate, _, words = MUTANTS[what]
    mutate(monkeypatch)
    row = audit_mechanism(name, epsilon, QUICK)
    assert row.fails
    assert words in row.verdict, row.verdict


@pytest.mark.slow
@pytest.mark.parametrize(("name", "factor"), [("mb", 1.1), ("pm", 1.05)])
def test_a_little_more_budget_for_the_whole_vector_is_noticed(name: str, factor: float, monkeypatch: Patch) -> None:
    def change(self: Any, features: Any, reports: Reports, rng: Any) -> Reports:
        return again(self, features, reports, rng, True, factor)

    options = AuditOptions()
    assert audit_mechanism(name, 1.0, options).noticed <= factor
    reports_change(monkeypatch, change, Sampled)
    assert audit_mechanism(name, 1.0, options).fails


@pytest.mark.slow
def test_a_dimension_that_is_chosen_too_often_is_noticed_from_a_share_on(monkeypatch: Patch) -> None:
    right = protocol.choose

    def choose(nodes: int, dimensions: int, m: int, source: Any) -> Any:
        index = right(nodes, dimensions, m, source)
        if m == 1:  # dimension 0 by 3 % too often, of 4: every 133rd report
            index[::133] = 0
        return index

    monkeypatch.setattr(protocol, "choose", choose)
    row = audit_mechanism("mb", 1.0, replace(QUICK, samples=600_000))
    assert row.fails
    assert "does not follow the law" in row.verdict
