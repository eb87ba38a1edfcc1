"""Matrices that are made when a wave needs them: the same training, a part of the memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from learn_factory import dense_inputs, make_run, small_problem

from graphldp.errors import DataError, OptionError
from graphldp.learn import Deferred, NodeInputs, Options, Problem, fit, resolve_device
from graphldp.learn import engine as engine_module
from graphldp.learn.engine import Trainer
from graphldp.learn.state import fingerprint

SHAPE = (40, 12)


class Made:
    """Counts how many matrices are made, and how many of them are held at once."""

    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(3)
        self.values = [dense_inputs(*SHAPE, rng).deviations for _ in range(count)]
        self.calls = [0] * count
        self.inputs = tuple(
            NodeInputs(deviations=Deferred(SHAPE, self._make(place), f"matrix {place}"), filtered=True)
            for place in range(count)
        )
        self.most = 0

    def _make(self, place: int):
        def make() -> np.ndarray:
            self.calls[place] += 1
            held = sum(one.deviations._made is not None for one in self.inputs)
            self.most = max(self.most, held + 1)
            return self.values[place]

        return make


def problem_with(inputs: tuple[NodeInputs, ...]) -> tuple[Problem, np.ndarray]:
    problem, labels = small_problem(kinds=("dense",))
    return replace(problem, inputs=inputs), labels


def test_the_training_is_that_of_the_matrices_themselves() -> None:
    made = Made(3)
    problem, labels = problem_with(made.inputs)
    plain = replace(problem, inputs=tuple(NodeInputs(deviations=one, filtered=True) for one in made.values))
    runs = [make_run(problem, labels, seed) for seed in range(6)]
    options = Options(epochs=6)
    ours, theirs = fit(problem, runs, options), fit(plain, runs, options)
    np.testing.assert_array_equal(ours.validation_loss, theirs.validation_loss)
    np.testing.assert_array_equal(ours.outputs["classes"], theirs.outputs["classes"])
    assert made.calls == [1, 1, 1]
    assert all(one.deviations._made is None for one in made.inputs)  # none is left behind


def test_a_wave_holds_its_own_matrices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(4)
    problem, labels = problem_with(made.inputs)
    runs = [make_run(problem, labels, seed) for seed in range(8)]
    monkeypatch.setattr(engine_module, "DEFERRED_BYTES", 1)  # one run at a time is the least that there can be
    trainer = Trainer(problem, runs, Options(epochs=3), resolve_device("cpu"))
    assert sorted(run for wave in trainer.waves for run in wave) == list(range(8))
    assert len(trainer.waves) > 1
    outcome = trainer.fit()
    assert made.most == 1
    whole = fit(problem_with(Made(4).inputs)[0], runs, Options(epochs=3, max_memory=10**9))
    np.testing.assert_allclose(outcome.validation_loss, whole.validation_loss, rtol=1e-5)


def test_beside_sparse_ones_a_wave_still_counts_what_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(4)
    few = NodeInputs(deviations=sp.csr_array(made.values[0] * (np.abs(made.values[0]) > 2)), filtered=True)
    problem, labels = problem_with((*made.inputs, few))
    runs = [replace(make_run(problem, labels, seed), inputs=seed % 5) for seed in range(10)]
    monkeypatch.setattr(engine_module, "DEFERRED_BYTES", 1)
    trainer = Trainer(problem, runs, Options(epochs=3), resolve_device("cpu"))
    assert trainer.order.order == "propagate"
    assert len(trainer.waves) > 1
    alone = [trainer._estimate([r]) for r in range(5)]
    assert min(alone[:4]) > alone[4]
    trainer.fit()
    assert made.most == 1


def test_a_limit_that_was_given_is_kept() -> None:
    problem, labels = problem_with(Made(2).inputs)
    runs = [make_run(problem, labels, seed) for seed in range(2)]
    with pytest.raises(OptionError, match="is too little for a single run"):
        fit(problem, runs, Options(epochs=1, max_memory=100))


def test_a_state_is_of_matrices_with_the_same_mark() -> None:
    problem, labels = problem_with(Made(1).inputs)
    run = make_run(problem, labels, 0)
    other = NodeInputs(deviations=Deferred(SHAPE, lambda: np.zeros(SHAPE, np.float32), "another"), filtered=True)
    marks = {fingerprint(one, [run], Options()) for one in (problem, replace(problem, inputs=(other,)))}
    assert len(marks) == 2


def test_what_cannot_be() -> None:
    zeros = np.zeros(SHAPE, np.float32)
    with pytest.raises(DataError, match="must be filtered already"):
        NodeInputs(deviations=Deferred(SHAPE, lambda: zeros, "x"))
    for wrong in (zeros[:, :3], np.full(SHAPE, np.nan, np.float32)):
        problem, labels = problem_with((NodeInputs(deviations=Deferred(SHAPE, lambda: wrong, "x"), filtered=True),))  # noqa: B023
        with pytest.raises(DataError, match=r"inputs must be finite and \(40, 12\)"):
            fit(problem, [make_run(problem, labels, 0)], Options(epochs=1))
