"""Processes that share the runs of a training: the same plan, the same bytes, and an end for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from learn_factory import small_problem, varied_runs
from test_engine import StopAt, same

from graphldp.errors import ProcessError
from graphldp.learn import Interrupted, Options, Outcome, State, engine, fit, model, parallel
from graphldp.learn.processes import FAILED, DistributedProcesses, Processes


class Table:
    """What processes of a test share: threads of this one, each with a `Seat`."""

    def __init__(self, size: int):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=30)
        self.data: list[bytes] = [b""] * size
        self.stopped = threading.Event()


class Seat(Processes):
    """One process of one thread."""

    def __init__(self, table: Table, rank: int):
        self.table, self.rank, self.size = table, rank, table.size

    @property
    def threads(self) -> int:
        return self.size

    def gather(self, data: bytes, tick: Callable[[], Any] | None = None) -> list[bytes]:
        self.table.data[self.rank] = data
        self.table.barrier.wait()
        out = list(self.table.data)
        self.table.barrier.wait()
        return out

    def stop(self) -> None:
        self.table.stopped.set()

    def stopping(self) -> bool:
        return self.table.stopped.is_set()


def together(size: int, work: Callable[[Processes], Any]) -> list[Any]:
    """Do the work in every one of several processes, and return what came of it: a result or an exception."""
    table = Table(size)
    out: list[Any] = [None] * size

    def one(rank: int) -> None:
        torch.set_num_threads(1)
        try:
            out[rank] = work(Seat(table, rank))
        except BaseException as error:
            out[rank] = error
            if not isinstance(error, Interrupted | ProcessError):  # these reach every process
                table.barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


@pytest.fixture(autouse=True)
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spread even small runs, and look after them often."""
    monkeypatch.setattr(parallel, "LEAST_UNITS", 1)
    monkeypatch.setattr(parallel, "POLL_SECONDS", 0.001)


def one_process(threads: int, *arguments: Any, **options: Any) -> Outcome:
    torch.set_num_threads(threads)
    return fit(*arguments, device="cpu", **options)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("memory", [None, 110_000])
def test_processes_equal_one_process_to_the_last_bit(size: int, memory: int | None) -> None:
    problem, labels = small_problem(nodes=60)
    runs = varied_runs(problem, labels, count=7)
    options = Options(epochs=40, patience=6, max_memory=memory)
    found = together(size, lambda processes: fit(problem, runs, options, device="cpu", processes=processes))
    whole = one_process(size, problem, runs, options)
    for outcome in found:
        assert isinstance(outcome, Outcome), outcome
        same(whole, outcome)
        assert outcome.record == whole.record
    assert (len(whole.record["waves"]) > 1) == (memory is not None)


def test_each_process_trains_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=6)
    trained: dict[int, list[int]] = {0: [], 1: []}
    plain = engine.Trainer._train_group

    def counted(self: engine.Trainer, state: Any, group: Any, stop: Any) -> None:
        trained[self.processes.rank] += group.runs
        plain(self, state, group, stop)

    monkeypatch.setattr(engine.Trainer, "_train_group", counted)
    together(2, lambda processes: fit(problem, runs, Options(epochs=3), device="cpu", processes=processes))
    assert len(trained[0]) == len(trained[1]) == 3
    assert sorted(trained[0] + trained[1]) == list(range(6))


def test_more_processes_than_runs() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=2)
    found = together(4, lambda processes: fit(problem, runs, Options(epochs=8), device="cpu", processes=processes))
    whole = one_process(4, problem, runs, Options(epochs=8))
    for outcome in found:
        same(whole, outcome)


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("memory", [None, 110_000])
def test_one_interrupt_stops_all_and_any_number_goes_on(who: int, memory: int | None) -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=6)
    options = Options(epochs=50, patience=None, max_memory=memory)
    whole = one_process(2, problem, runs, options)

    def work(processes: Processes) -> Outcome:
        stop = StopAt(7) if processes.rank == who else None
        return fit(problem, runs, options, device="cpu", processes=processes, progress=stop)

    stops = together(2, work)
    assert all(isinstance(stop, Interrupted) for stop in stops), stops
    states = [stop.state.to_bytes() for stop in stops]
    assert states[0] == states[1]
    state = State.from_bytes(states[0])
    assert max(group.epoch for group in state.groups) > 0
    assert min(group.epoch for group in state.groups) < 50
    for outcome in together(
        2, lambda processes: fit(problem, runs, options, device="cpu", processes=processes, state=state)
    ):
        same(whole, outcome)
    same(whole, one_process(2, problem, runs, options, state=state))


def test_processes_that_train_different_things_are_refused() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=4)
    found = together(
        2, lambda processes: fit(problem, runs, Options(epochs=5 + processes.rank), device="cpu", processes=processes)
    )
    assert all(isinstance(error, ProcessError) for error in found)
    assert "the processes train different things" in str(found[0])


@pytest.mark.parametrize("name", ["gat", "sgc"])
def test_other_backbones(name: str) -> None:
    problem, labels = small_problem()
    runs: Sequence[Any] = varied_runs(problem, labels, count=4)
    options = Options(model=model(name), epochs=6)
    found = together(2, lambda processes: fit(problem, runs, options, device="cpu", processes=processes))
    whole = one_process(2, problem, runs, options)
    np.testing.assert_array_equal(whole.predictions, found[1].predictions)
    same(whole, found[0])


class Store(dict[str, str]):
    """What processes leave for one another, as torch's store has it."""

    def compare_set(self, key: str, expected: str, value: str) -> None:
        assert expected == ""
        self.setdefault(key, value)

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def wait(self, keys: list[str], timeout: object) -> None:
        pass

    def check(self, keys: list[str]) -> bool:
        return all(key in self for key in keys)

    def get(self, key: str) -> bytes:  # type: ignore[override]
        return self[key].encode()


@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_is_no_failure(rank: int) -> None:
    store = Store()
    leaving, other = (DistributedProcesses(torch.device("cpu")) for _ in range(2))
    for process, place in ((leaving, rank), (other, 1 - rank)):
        process._store, process.rank, process.size = store, place, 2
    agreed = KeyboardInterrupt()
    agreed.__cause__ = Interrupted.__new__(Interrupted)
    for stop in (agreed, agreed.__cause__):
        leaving._farewell(stop)
        assert not store  # the other one may still be on its way to the same end
    leaving._farewell(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        other._look()
    store.clear()
    leaving._farewell(ValueError("lost"))
    assert store[FAILED].endswith("failed: ValueError: lost")
    with pytest.raises(ProcessError, match="failed: ValueError: lost"):
        other._look()
