"""Anybody's function: honest ones pass, wrong ones are convicted with the inputs and the report that show it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphldp.audit import (
    BlackBoxOptions,
    Finding,
    audit_function,
    audit_gaussian,
    audit_same_law,
    audit_soft_threshold,
    audit_unbiased,
)
from graphldp.audit.reports import flatten, statistics, table
from graphldp.client import mechanism, protocol
from graphldp.errors import DataError, OptionError
from graphldp.stages.audit import audit_file

FAULTS = sorted((Path(__file__).resolve().parents[2] / "examples" / "published_faults").glob("r*.py"))
QUICK = BlackBoxOptions(samples=3000, search=400)
LARGE = {"r06_most_dimensions_of_anybody", "r12_both_reports_of_a_pair"}  # finite losses: counts must speak
INFINITE = {
    "r01_square_wave_overwritten",
    "r03_private_scaler",
    "r05_level_by_coins",
    "r08_range_from_the_data",
    "r11_tail_without_noise",
}


def response(x: float, epsilon: float, rng: Any) -> int:
    return 1 if rng.random() < 0.5 + x / 2 * math.tanh(epsilon / 2) else -1


def laplace(x: float, epsilon: float, rng: Any) -> float:
    return float(x + rng.laplace(0, 2 / epsilon))


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_every_published_fault_is_convicted(path: Path) -> None:
    options = BlackBoxOptions(samples=12_000, search=300) if path.stem in LARGE else QUICK
    (finding,) = audit_file(str(path), None, options)
    assert not finding.keeps, finding.verdict
    assert finding.infinite is (path.stem in INFINITE)
    if finding.bound is not None:
        assert finding.bound.convicting > 1.0
        assert finding.first != finding.second


def test_there_is_one_example_for_each_published_fault() -> None:
    assert [int(path.name[1:3]) for path in FAULTS] == list(range(1, 13))


@pytest.mark.parametrize("function", [response, laplace])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_honest_functions_pass(function: Any, epsilon: float) -> None:
    finding = audit_function(function, epsilon, QUICK)
    assert finding.keeps
    assert finding.bound is not None
    assert finding.bound.value <= epsilon


@pytest.mark.parametrize("name", ["pm", "mb", "hm"])
def test_our_own_mechanisms_pass_as_black_boxes(name: str) -> None:
    device = protocol(name, 1.0, 3)

    def one(x: np.ndarray, epsilon: float, rng: np.random.Generator) -> Any:
        return device.perturb(x[None, :], rng)

    finding = audit_function(one, 1.0, BlackBoxOptions(samples=2000, search=200, dimensions=3))
    assert finding.keeps, finding.verdict


def test_half_the_noise_is_convicted_with_a_bound_between_claim_and_truth() -> None:
    finding = audit_function(lambda x, e, rng: response(x, 2 * e, rng), 1.0, QUICK)
    assert not finding.keeps
    assert finding.bound is not None
    assert 1.0 < finding.bound.convicting < finding.bound.value < 2.0
    assert {finding.first, finding.second} == {"1", "-1"}


def test_an_atom_that_depends_on_the_value_is_seen() -> None:
    def leaky(x: float, epsilon: float, rng: Any) -> float:
        return x * math.pi if rng.random() < 0.2 else float(rng.normal())

    finding = audit_function(leaky, 1.0, QUICK)
    assert not finding.keeps
    assert finding.infinite


def test_the_number_of_entries_may_be_what_leaks() -> None:
    def by_count(x: float, epsilon: float, rng: Any) -> list[float]:
        return [float(rng.integers(0, 2)) for _ in range(3 if x > 0 else 4)]

    finding = audit_function(by_count, 2.0, QUICK)
    assert not finding.keeps


def test_a_failure_that_depends_on_the_input_is_a_finding() -> None:
    def fragile(x: float, epsilon: float, rng: Any) -> float:
        if x > 0.9:
            raise ValueError("out of range")
        return float(rng.random())

    finding = audit_function(fragile, 1.0, QUICK)
    assert not finding.keeps
    assert "ValueError for input 1: out of range" in finding.verdict


def test_a_function_that_never_works_is_the_callers_mistake() -> None:
    with pytest.raises(OptionError, match=r"gives no report for any input: TypeError"):
        audit_function(lambda x: x, 1.0, QUICK)  # type: ignore[arg-type, misc]


def test_inputs_cannot_be_changed_behind_our_back() -> None:
    def greedy(x: np.ndarray, epsilon: float, rng: Any) -> float:
        x[:] = 0.0
        return float(rng.random())

    records = (np.ones(2), -np.ones(2))
    audit_function(greedy, 1.0, BlackBoxOptions(samples=400, search=100, inputs=records))
    assert records[0].tolist() == [1.0, 1.0]


def test_the_same_seed_gives_the_same_finding() -> None:
    assert audit_function(laplace, 1.0, QUICK) == audit_function(laplace, 1.0, QUICK)


def test_unbiased_and_not() -> None:
    base = mechanism("pm", 1.0)
    good = audit_unbiased(lambda x, e, rng: base.sample(x, rng), 1.0, QUICK, name="pm")
    assert good.keeps
    bad = audit_unbiased(lambda x, e, rng: 0.8 * laplace(x, 20.0, rng), 1.0, QUICK, name="shrunk")
    assert not bad.keeps
    assert bad.measured == pytest.approx(0.2, abs=0.02)


def test_same_law_and_not() -> None:
    def check(function: Any) -> Finding:
        return audit_same_law(function, laplace, 1.0, QUICK, name="f", other="laplace")

    assert check(lambda x, e, rng: x - rng.laplace(0, 2 / e)).keeps
    assert not check(lambda x, e, rng: x + rng.laplace(0, 3 / e)).keeps
    assert not check(lambda x, e, rng: [x, x]).keeps


def test_gaussian_noise_is_judged_by_its_exact_delta() -> None:
    def classical(x: float, epsilon: float, rng: Any) -> float:
        return float(x + rng.normal(0.0, 2 * math.sqrt(2 * math.log(1.25e5)) / epsilon))

    assert audit_gaussian(classical, 1.0, 1e-5, 2.0, name="gm").keeps
    late = audit_gaussian(classical, 9.0, 1e-5, 2.0, name="gm")
    assert not late.keeps
    assert late.measured is not None
    assert late.measured > 1e-5


def test_soft_thresholds() -> None:
    def soft(x: np.ndarray, epsilon: float, rng: Any) -> np.ndarray:
        return np.sign(x) * np.maximum(np.abs(x) - 0.7, 0)

    assert audit_soft_threshold(soft, 1.0, name="soft").keeps
    hard = audit_soft_threshold(lambda x, e, rng: np.where(np.abs(x) > 0.7, x, 0), 1.0, name="hard")
    assert not hard.keeps


def test_reports_of_any_shape_become_numbers() -> None:
    assert flatten({"b": [1, True], "a": (2.5, None)})[1:2] == [2.5]
    assert flatten(np.array([[1, 2], [3, 4]])) == [1.0, 2.0, 3.0, 4.0]
    assert flatten("yes") == flatten("yes") != flatten("no")
    rows = table([[1.0], [2.0, 3.0]])
    assert np.isnan(rows.rows[0, 1])
    assert rows.lengths.tolist() == [1, 2]
    assert statistics(rows)["length"].tolist() == [1.0, 2.0]
    assert statistics(rows)["number of entries that are not 0"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("missing.py:f", DataError, "missing.py is not a file"),
        ("{file}:absent", OptionError, "has no function 'absent'; it has: f"),
        ("{file}", OptionError, "names no function in AUDIT"),
        ("{broken}:f", DataError, "cannot be loaded: ZeroDivisionError"),
    ],
)
def test_bad_targets(tmp_path: Path, target: str, error: type[Exception], words: str) -> None:
    (tmp_path / "mine.py").write_text("def f(x, epsilon, rng):\n    return 0\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    given = target.format(file=tmp_path / "mine.py", broken=tmp_path / "broken.py")
    with pytest.raises(error, match=words):
        audit_file(given, 1.0, QUICK)


@pytest.mark.parametrize("options", [{"samples": 1}, {"low": 1.0, "high": 0.0}, {"inputs": (1,)}, {"dimensions": True}])
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="audit: "):
        BlackBoxOptions(**options)
