from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from learn_factory import small_problem, varied_runs
from test_engine import StopAt, alike, same

from graphldp.learn import Backbone, Interrupted, Options, State, fit, model, parallel
from graphldp.learn.engine import Trainer
from graphldp.learn.parallel import group_count, side_by_side, spread, thread_share, work


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spread even small runs over threads, and look after them often."""
    monkeypatch.setattr(parallel, "LEAST_UNITS", 1)
    monkeypatch.setattr(parallel, "POLL_SECONDS", 0.001)
    torch.set_num_threads(3)


def test_how_many_groups() -> None:
    units = parallel.LEAST_UNITS
    assert group_count(10, units, 1) == 1
    assert group_count(10, units, 4) == 4
    assert group_count(2, units, 4) == 2
    assert group_count(10, units // 4, 4) == 2
    assert group_count(10, 1, 4) == 1
    assert group_count(100, units, 64) == parallel.MOST_GROUPS
    # Threads within a group: no more than there are, and none for a small group.
    assert thread_share(1, 4 * units, 8) == 4
    assert thread_share(2, 100 * units, 8) == 4
    assert thread_share(1, units // 2, 8) == 1
    assert thread_share(4, 100 * units, 2) == 1
    assert spread([5, 3, 1, 0, 4], 2) == [[5, 1, 4], [3, 0]]


def test_a_long_walk_is_worth_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [work(100, hops) for hops in (0, 2, 16)] == [100, 150, 500]
    torch.set_num_threads(4)
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=6)
    # Together the runs have the hidden units of one group.
    monkeypatch.setattr(parallel, "LEAST_UNITS", 6 * problem.nodes * problem.classes)

    def groups(net: Backbone) -> int:
        trainer = Trainer(problem, runs, Options(model=net), torch.device("cpu"))
        return len(trainer._groups(0))

    assert groups(model("gcn", layers=1)) == 1
    assert [groups(model("sgc", steps=steps)) for steps in (2, 4, 8)] == [1, 2, 3]
    assert groups(model("ssgc")) == 4


@pytest.mark.parametrize("name", ["sgc", "ssgc"])
def test_walks_in_groups_equal_runs_alone(name: str, groups: None) -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=5)
    options = Options(model=model(name), epochs=20, patience=8)
    together = fit(problem, runs, options, device="cpu")
    torch.set_num_threads(1)
    for r, run in enumerate(runs):
        alike(together, r, fit(problem, [run], options, device="cpu"), 0)


def test_groups_equal_one_batch(groups: None) -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=7)
    options = Options(epochs=30, patience=8)
    spread_out = fit(problem, runs, options, device="cpu")
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)
    whole = fit(problem, runs, options, device="cpu")
    for r in range(len(runs)):
        alike(spread_out, r, whole, r)
        np.testing.assert_array_equal(spread_out.predictions[r], whole.predictions[r])


def test_groups_repeat_to_the_last_bit(groups: None) -> None:
    problem, labels = small_problem(nodes=300, dimensions=50)
    runs = varied_runs(problem, labels, count=7)
    first = fit(problem, runs, Options(epochs=20, patience=8), device="cpu")
    for _ in range(3):
        same(first, fit(problem, runs, Options(epochs=20, patience=8), device="cpu"))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["raise", "signal"])
@pytest.mark.parametrize("memory", [None, 110_000])
def test_interrupted_groups_resume(groups: None, how: str, memory: int | None) -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=7)
    options = Options(epochs=60, patience=None, max_memory=memory)
    whole = fit(problem, runs, options, device="cpu")
    state, stops = None, 0
    while True:
        try:
            found = fit(
                problem, runs, options, device="cpu", state=state, progress=StopAt(3, how) if stops < 4 else None
            )
        except Interrupted as stop:
            stops += 1
            state = State.from_bytes(stop.state.to_bytes())
        else:
            break
    assert stops == 4
    same(whole, found)


@pytest.mark.parametrize("least", [1, 2**17])
def test_the_number_of_threads_is_left_as_it_was(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, and in threads that start later; whether the runs were spread (least 1) or stayed on one thread."""
    monkeypatch.setattr(parallel, "LEAST_UNITS", least)
    torch.set_num_threads(3)
    problem, labels = small_problem()
    fit(problem, varied_runs(problem, labels, count=4), Options(epochs=2), device="cpu")
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), later) == (3, [3])


def test_a_task_that_fails_stops_the_others() -> None:
    def failing(stop: Callable[[], bool]) -> None:
        raise ZeroDivisionError("in a thread")

    seen = threading.Event()

    def patient(stop: Callable[[], bool]) -> None:
        for _ in range(2000):
            if stop():
                seen.set()
                return
            time.sleep(0.005)

    with pytest.raises(ZeroDivisionError, match="in a thread"):
        side_by_side([patient, failing], lambda: False, 1)
    assert seen.is_set()
    assert torch.get_num_threads() == 1


def test_a_second_ctrl_c_ends_the_tasks_too() -> None:
    """An exception in the waiting thread leaves no thread behind."""
    ended = []

    def patient(stop: Callable[[], bool]) -> None:
        while not stop():
            time.sleep(0.005)
        ended.append(1)

    def tick() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side([patient, patient], tick, 1)
    assert len(ended) == 2
