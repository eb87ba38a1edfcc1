"""Rows of the audit: over the whole registry, and for mechanisms that were broken on purpose."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import re
import signal
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from graphldp.audit import AuditOptions, audit_mechanism, audit_rows, mechanisms
from graphldp.audit.conduct import Calls
from graphldp.audit.mechanisms import audit_subject, budgets
from graphldp.audit.subject import AuditSetting, Piece, subject_names, subject_of
from graphldp.audit.whole import whole_law
from graphldp.client import Reports, names, protocol
from graphldp.client.mechanisms.mb import MultiBit
from graphldp.errors import OptionError
from graphldp.interrupts import terminated_as_interrupted

QUICK = AuditOptions(dimensions=4, samples=12_000)
FULL = AuditOptions()
full = functools.cache(lambda name, epsilon: audit_mechanism(name, epsilon, FULL))  # rows are frozen
MARKED = {"ppm"}  # the errata name it: E5, E7


@pytest.mark.slow
@pytest.mark.parametrize("name", subject_names())
def test_every_mechanism_keeps_its_claim_or_says_that_it_does_not(name: str) -> None:
    for epsilon in budgets(name, [1.0]):
        row = full(name, epsilon)
        assert not row.fails, row.verdict
        assert row.empirical.value <= row.exact
        assert row.marked is (name in MARKED)
        assert row.keeps is not row.marked
        assert row.empirical.value <= row.promised or row.marked
        assert not row.open
        assert math.isfinite(row.bits)
        assert row.bits > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", names("scalar"))
def test_variance_and_bias_agree_with_the_mechanisms_own_formulas(name: str) -> None:
    for epsilon in budgets(name, [1.0]):
        row, device = full(name, epsilon), protocol(name, epsilon, FULL.dimensions)
        inputs = np.linspace(-1, 1, 201)
        assert row.variance_worst == pytest.approx(float(np.max(device.variance(inputs))), rel=2e-3, abs=1e-9)
        assert row.bias <= float(np.abs(device.bias(inputs)).max()) * 1.01 + 1e-5


@pytest.mark.slow
def test_the_same_seed_gives_the_same_row() -> None:
    assert audit_mechanism("pm", 1.0, QUICK) == audit_mechanism("pm", 1.0, QUICK)
    assert audit_mechanism("pm", 1.0, QUICK) != audit_mechanism("pm", 1.0, replace(QUICK, seed=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overstated(MultiBit):
    """A multi-bit mechanism that samples with twice the budget of its law."""

    def _invert(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        return MultiBit(epsilon=2 * self.epsilon)._invert(z, u)


def broken(**changes: Any) -> Any:
    subject = subject_of("mb", 1.0, AuditSetting(dimensions=4, options={"m": 2}))
    piece = subject.pieces[0]
    return replace(subject, pieces=(replace(piece, **changes),))


def test_a_sampler_that_is_not_its_law_fails() -> None:
    base = Overstated(epsilon=0.5)
    device = protocol("mb", 1.0, 4, m=2)

    def perturb(features: np.ndarray, rng: np.random.Generator) -> Reports:
        reports = device.perturb(features, rng)
        return Reports(index=reports.index, value=base.sample(np.take_along_axis(features, reports.index, 1), rng))

    row = audit_subject(broken(bases=(base,) * 4, perturb=perturb), 1.0, QUICK)
    assert row.fails
    assert "the sampler does not follow the law" in row.verdict
    assert "samples alone show at least 1." in row.verdict


def test_a_budget_that_is_not_divided_fails_with_its_witness() -> None:
    base = MultiBit(epsilon=1.0)
    piece = Piece(
        label="", epsilon=1.0, bases=(base,) * 4, m=4, perturb=lambda x, rng: Reports(value=base.sample(x, rng))
    )
    subject = replace(subject_of("mb", 1.0, AuditSetting(dimensions=4)), pieces=(piece,), m=4, stated=4.0)
    row = audit_subject(subject, 1.0, QUICK)
    assert row.fails
    assert "exact loss 4, 4 times the claimed 1" in row.verdict
    assert "samples alone show at least" in row.verdict
    assert "as likely under" in row.verdict


def test_the_printed_ppm_is_convicted_by_law_and_by_samples() -> None:
    row = audit_mechanism("ppm", 0.1, QUICK)
    assert row.exact == row.enumerated == math.inf
    assert row.marked
    assert not row.fails
    assert row.empirical.convicting > row.epsilon
    assert row.reason
    assert "impossible under" in row.worst
    assert row.fit.follows


def test_a_mark_excuses_the_loss_and_nothing_else() -> None:
    row = full("ppm", 1.0)
    assert not row.fails
    assert replace(row, fit=replace(row.fit, cells=0.0)).fails
    assert replace(row, enumerated=3.0).fails
    assert replace(row, marked=False).fails


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_safe_ppm_is_enumerated_over_features_and_levels(epsilon: float) -> None:
    row = audit_mechanism("ppm-safe", epsilon, QUICK)
    assert row.enumerated == pytest.approx(row.stated, rel=1e-9)
    assert row.enumerated <= row.epsilon


@pytest.mark.parametrize("name", ["ppm", "ppm-safe"])
def test_a_single_level_hides_nothing_and_is_looked_at_as_a_whole_like_several(name: str) -> None:
    row = audit_mechanism(name, 2.0, replace(QUICK, options={"levels": 1}))
    assert row.enumerated == pytest.approx(row.stated, rel=1e-9)
    assert row.keeps


def test_whole_laws_have_mass_1_and_only_known_mechanisms() -> None:
    for name in ("ppm", "ppm-safe"):
        law = whole_law(protocol(name, 2.0, 3), ((1.0, -0.2, 0.0), 3))
        assert math.fsum(math.exp(log) for log in law.values()) == pytest.approx(1, abs=1e-12)
    with pytest.raises(OptionError, match="unknown law of a whole report 'mb'"):
        whole_law(protocol("mb", 1.0, 2), ((1.0, 1.0), 1))


def test_a_refused_budget_is_reported_and_does_not_stop_the_table() -> None:
    found = audit_rows(["gm"], [1.0, 10.0], QUICK)
    assert [row.nominal for row in found.rows] == [1.0]
    assert found.refused[0][:2] == ("gm", 10.0)
    assert "use 'ag'" in found.refused[0][2]


@pytest.mark.parametrize("options", [{"dimensions": 1}, {"samples": 10}, {"seed": -1}])
def test_bad_options(options: dict[str, int]) -> None:
    with pytest.raises(OptionError, match="audit: "):
        AuditOptions(**options)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan])
def test_bad_budgets(epsilon: float) -> None:
    with pytest.raises(OptionError, match="epsilon must be a number of at least 0"):
        audit_rows(["mb"], [epsilon], QUICK)


# The least and the largest that are audited, and where laws change their form; 1 is above.
BUDGETS = [1e-6, 5.0, 100.0]
LEVELS = ("ppm", "ppm-public", "ppm-safe", "pldp")  # with up to 16 times as much for the highest level
REFUSED = {("gm", 100.0): "gm: its formula is not valid at epsilon 100.0"}
REFUSED |= {(name, 100.0): f"{name} (level 5): epsilon must be at most 500, got" for name in LEVELS}
CHOICES = [(name, epsilon) for name in subject_names() for epsilon in BUDGETS if budgets(name, [epsilon]) == [epsilon]]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), [case for case in CHOICES if case not in REFUSED])
def test_no_correct_mechanism_is_accused_at_any_budget(
    name: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether more than 65,536 people are treated alike, and two of them share their noise, is no matter of the budget:
    # those calls are made at 1.
    monkeypatch.setattr(mechanisms, "Calls", functools.partial(Calls, rows=20_000, equal=0))
    row = audit_mechanism(name, epsilon, QUICK)
    assert not row.fails, row.verdict
    assert row.empirical.value <= row.exact


@pytest.mark.parametrize(("name", "epsilon"), REFUSED)
def test_a_budget_that_a_mechanism_refuses_is_skipped_with_its_words(name: str, epsilon: float) -> None:
    found = audit_rows([name, "null"], [epsilon], replace(QUICK, samples=1000))
    assert [row.mechanism for row in found.rows] == ["null"]
    ((who, at, words),) = found.refused
    assert (who, at) == (name, epsilon)
    assert words.startswith(REFUSED[name, epsilon])
    with pytest.raises(OptionError, match="^" + re.escape(REFUSED[name, epsilon])):
        audit_mechanism(name, epsilon, QUICK)


@pytest.mark.parametrize(("name", "epsilon"), [("mb", 1e-6), ("cldp", 1e-6)])
def test_tests_without_power_are_a_verdict_of_their_own(name: str, epsilon: float) -> None:
    row = audit_mechanism(name, epsilon, replace(QUICK, samples=2000))
    assert not row.fails
    assert not row.keeps
    assert row.verdict.startswith("no power: a budget 1.5 times as large moves probabilities so little that about ")
    assert row.open.endswith("more than is feasible")


def test_more_samples_help_where_they_are_asked_for() -> None:
    few = audit_mechanism("cldp", 0.01, replace(QUICK, dimensions=1433, samples=2000))
    assert few.open
    assert few.power is not None
    assert few.noticed > 1.5
    assert not mechanisms._by_samples(replace(few.power, wrong_budget=False), 2.0).wrong_budget
    assert mechanisms._by_samples(replace(few.power, wrong_budget=False), 1.4).wrong_budget


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), [("pldp", 30.0), ("sw", 100.0), ("hds", 100.0)])
def test_windows_that_float64_hardly_sees_are_enumerated(name: str, epsilon: float) -> None:
    row = audit_mechanism(name, epsilon, replace(QUICK, samples=2000))
    assert not row.fails, row.verdict
    assert row.enumerated == pytest.approx(row.stated, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mb", "featurerr", "privset"])
def test_real_dimensions(name: str) -> None:
    row = audit_mechanism(name, 1.0, AuditOptions(dimensions=1433, samples=4000))
    assert not row.fails, row.verdict


@pytest.mark.parametrize(("name", "options"), [("pm", {"m": 3, "grid": 0.25}), ("vote", {"m": 2})])
def test_a_declared_range_and_declared_options_are_those_of_the_row(name: str, options: dict[str, Any]) -> None:
    row = audit_mechanism(name, 1.0, replace(QUICK, low=3.0, high=7.0, options=options, samples=2000))
    assert row.keeps, row.verdict
    assert row.m == options["m"]
    if name == "pm":
        assert "7" in row.worst or "3" in row.worst


def test_a_range_that_means_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="it takes no range"):
        audit_mechanism("esw", 1.0, replace(QUICK, low=0.0))


def test_both_rounds_add_up_and_a_survey_asks_once() -> None:
    rounds, survey = full("rounds", 1.0), full("survey", 1.0)
    assert rounds.exact == pytest.approx(1.0, rel=1e-9)
    assert survey.exact == pytest.approx(1.0, rel=1e-9)


def test_somebody_who_is_asked_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphldp.server import voting

    right = voting.teachers_and_voters

    def twice(*given: Any) -> Any:
        teachers, voters = right(*given)
        return teachers, np.append(voters, teachers[:1])

    monkeypatch.setattr(voting, "teachers_and_voters", twice)
    row = audit_mechanism("survey", 1.0, replace(QUICK, samples=2000))
    assert row.fails
    assert "somebody is asked twice" in row.verdict


def long(cell: tuple[str, float], options: AuditOptions) -> str:
    time.sleep(30)
    return "nothing"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_audit_that_is_stopped_waits_for_none_of_its_processes(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphldp.audit.mechanisms._cell", long)
    start = time.monotonic()
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        audit_rows(["mb", "pm", "duchi"], [1.0], QUICK, processes=2)
    assert time.monotonic() - start < 10
    assert not multiprocessing.active_children()
