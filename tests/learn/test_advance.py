"""A training that waits at an epoch, lets runs go, and goes on: what remains becomes what it would have become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from learn_factory import small_problem, varied_runs

from graphldp.errors import OptionError
from graphldp.learn import Interrupted, Options, State, advance, fit
from graphldp.learn.engine import Trainer

EPOCHS = 24


def options(**changes: Any) -> Options:
    return Options(**{"epochs": EPOCHS, "patience": None, **changes})


def same(one: Any, two: Any, runs: list[int], *, exactly: bool = True) -> None:
    check = np.testing.assert_array_equal if exactly else np.testing.assert_allclose
    more = {} if exactly else {"rtol": 1e-4, "atol": 1e-6}
    np.testing.assert_array_equal(one.best_epoch[runs], two.best_epoch[runs])
    np.testing.assert_array_equal(one.epochs[runs], two.epochs[runs])
    check(one.validation_loss[runs], two.validation_loss[runs], **more)
    np.testing.assert_array_equal(one.predictions[runs], two.predictions[runs])
    for name in one.parameters:
        check(one.parameters[name][runs], two.parameters[name][runs], **more)


def memory(problem: Any, runs: list[Any]) -> int:
    """Return a limit within which the runs need several waves."""
    low, high = 1, 2**30
    while high - low > 1024:
        middle = (low + high) // 2
        try:
            trainer = Trainer(problem, runs, options(max_memory=middle), torch.device("cpu"))
        except OptionError:
            low = middle
            continue
        if len(trainer.waves) > 2:
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize("waves", [False, True])
@pytest.mark.parametrize("stops", [[7], [1, 2, 15], [EPOCHS], [EPOCHS + 9]])
def test_stops_on_the_way_change_nothing(stops: list[int], waves: bool) -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels)
    chosen = options(max_memory=memory(problem, runs) if waves else None)
    whole = fit(problem, runs, chosen, device="cpu")
    assert (len(whole.record["waves"]) > 1) == waves
    state = None
    for stop in stops:
        outcome, state = advance(problem, runs, chosen, until=stop, device="cpu", state=state)
        assert (outcome.epochs == min(stop, EPOCHS)).all()
        state = State.from_bytes(state.to_bytes())
    outcome, _ = advance(problem, runs, chosen, until=EPOCHS, device="cpu", state=state)
    same(outcome, whole, list(range(len(runs))))


def test_runs_that_are_dropped_stay_as_they_were_and_the_others_do_not_notice() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels)
    whole = fit(problem, runs, options(), device="cpu")
    early, state = advance(problem, runs, options(), until=8, device="cpu")
    state.drop([1, 3])
    assert all(not set(group.batch) & {1, 3} for group in state.groups)
    late, _ = advance(problem, runs, options(), until=EPOCHS, device="cpu", state=state)
    same(late, whole, [0, 2, 4], exactly=False)
    assert late.epochs.tolist() == [EPOCHS, 8, EPOCHS, 8, EPOCHS]
    np.testing.assert_array_equal(late.validation_loss[[1, 3]], early.validation_loss[[1, 3]])


def test_when_all_are_dropped_nothing_is_trained() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels)
    early, state = advance(problem, runs, options(), until=8, device="cpu")
    state.drop(range(len(runs)))
    late, left = advance(problem, runs, options(), until=EPOCHS, device="cpu", state=state)
    assert (late.epochs == 8).all()
    assert not left.groups
    np.testing.assert_array_equal(late.validation_loss, early.validation_loss)


def test_a_run_without_patience_left_does_not_begin_again() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels)
    chosen = options(patience=2, epochs=60)
    whole = fit(problem, runs, chosen, device="cpu")
    assert whole.epochs.min() < 60
    _, state = advance(problem, runs, chosen, until=int(whole.epochs.min()) + 1, device="cpu")
    late, _ = advance(problem, runs, chosen, until=60, device="cpu", state=state)
    same(late, whole, list(range(len(runs))))


def test_interrupted_between_two_stops_it_goes_on() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels)
    whole = fit(problem, runs, options(), device="cpu")
    _, state = advance(problem, runs, options(), until=6, device="cpu")

    def press(done: int, total: int, text: str) -> None:
        assert total == 18
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stop:
        advance(problem, runs, options(), until=18, device="cpu", state=state, progress=press)
    _, state = advance(problem, runs, options(), until=18, device="cpu", state=stop.value.state)
    outcome, _ = advance(problem, runs, options(), until=EPOCHS, device="cpu", state=state)
    same(outcome, whole, list(range(len(runs))))


def test_to_before_its_first_epoch_nothing_can_be_advanced() -> None:
    problem, labels = small_problem()
    with pytest.raises(OptionError, match="epoch 1 or later, got 0"):
        advance(problem, varied_runs(problem, labels), options(), until=0, device="cpu")
