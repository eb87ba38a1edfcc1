from __future__ import annotations

import dataclasses
import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from learn_factory import make_run, plain_fit, shift_of, small_problem, varied_runs

from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.learn import Interrupted, NodeInputs, Options, Outcome, Problem, Run, Split, State, fit, random_split

CLOSE = {"rtol": 2e-3, "atol": 2e-4}


def same(left: Outcome, right: Outcome) -> None:
    """Equal to the last bit."""
    for field in dataclasses.fields(Outcome):
        one, other = getattr(left, field.name), getattr(right, field.name)
        if isinstance(one, dict) and field.name != "record":
            assert one.keys() == other.keys()
            for name in one:
                assert one[name].tobytes() == other[name].tobytes(), name
        elif field.name != "record":
            assert one.tobytes() == other.tobytes(), field.name


def alike(outcome: Outcome, position: int, other: Outcome, place: int = 0) -> None:
    """Equal up to the order of float32 sums."""
    assert outcome.best_epoch[position] == other.best_epoch[place]
    assert outcome.epochs[position] == other.epochs[place]
    np.testing.assert_allclose(outcome.validation_loss[position], other.validation_loss[place], rtol=1e-4)
    assert outcome.validation_accuracy[position] == pytest.approx(other.validation_accuracy[place])
    for name, value in outcome.parameters.items():
        np.testing.assert_allclose(value[position], other.parameters[name][place], **CLOSE, err_msg=name)


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize("kinds", [("sparse", "sparse"), ("dense", "sparse")])
def test_each_run_equals_the_plain_way(order: str, kinds: tuple[str, ...]) -> None:
    problem, labels = small_problem(kinds=kinds)
    runs = varied_runs(problem, labels)
    outcome = fit(problem, runs, Options(epochs=40, patience=None, order=order), device="cpu")
    assert outcome.record["chain"]["order"] == order
    for r, run in enumerate(runs):
        plain = plain_fit(problem, run, epochs=40)
        assert outcome.best_epoch[r] == plain.best_epoch
        assert outcome.epochs[r] == 40
        assert outcome.validation_loss[r] == pytest.approx(plain.validation_loss, rel=1e-4)
        assert outcome.validation_accuracy[r] == pytest.approx(plain.validation_accuracy)
        for name, value in plain.parameters.items():
            np.testing.assert_allclose(outcome.parameters[name][r], value, **CLOSE, err_msg=f"run {r} {name}")
        np.testing.assert_array_equal(outcome.predictions[r], plain.predictions)


def test_runs_with_splits_of_different_sizes_equal_the_plain_way() -> None:
    problem, labels = small_problem()
    runs = []
    for r, run in enumerate(varied_runs(problem, labels, count=4)):
        split = random_split(
            range(problem.nodes), np.random.default_rng(r), train=0.1 + 0.2 * r, validation=0.25 - 0.05 * r
        )
        runs.append(dataclasses.replace(run, split=split, labels=split.visible(labels)))
    assert len({len(run.split.train) for run in runs}) == len({len(run.split.validation) for run in runs}) == 4
    outcome = fit(problem, runs, Options(epochs=15, patience=None), device="cpu")
    for r, run in enumerate(runs):
        plain = plain_fit(problem, run, epochs=15)
        assert outcome.validation_loss[r] == pytest.approx(plain.validation_loss, rel=1e-4)
        assert outcome.validation_accuracy[r] == pytest.approx(plain.validation_accuracy)
        for name, value in plain.parameters.items():
            np.testing.assert_allclose(outcome.parameters[name][r], value, **CLOSE, err_msg=f"run {r} {name}")


def test_each_run_stops_like_the_plain_way() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=8)
    outcome = fit(problem, runs, Options(epochs=120, patience=5), device="cpu")
    plain = [plain_fit(problem, run, epochs=120, patience=5) for run in runs]
    assert [one.epochs for one in plain] == outcome.epochs.tolist()
    assert [one.best_epoch for one in plain] == outcome.best_epoch.tolist()
    # The point of the test: runs that end at different epochs, so that the batch shrinks more than once.
    assert len(set(outcome.epochs.tolist())) > 3
    assert outcome.epochs.max() < 120
    for r, one in enumerate(plain):
        for name, value in one.parameters.items():
            np.testing.assert_allclose(outcome.parameters[name][r], value, **CLOSE)


def test_batched_equals_single() -> None:
    problem, labels = small_problem(kinds=("sparse", "dense", "sparse"))
    runs = varied_runs(problem, labels, count=6)
    options = Options(epochs=30, patience=8)
    together = fit(problem, runs, options, device="cpu")
    for r, run in enumerate(runs):
        alike(together, r, fit(problem, [run], options, device="cpu"))


def test_the_order_of_the_runs_does_not_matter() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels)
    options = Options(epochs=20)
    one, other = fit(problem, runs, options, device="cpu"), fit(problem, runs[::-1], options, device="cpu")
    for r in range(len(runs)):
        alike(one, r, other, len(runs) - 1 - r)


def test_waves_equal_one_batch() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=7)
    whole = fit(problem, runs, Options(epochs=25, patience=6), device="cpu")
    split = fit(problem, runs, Options(epochs=25, patience=6, max_memory=110_000), device="cpu")
    assert whole.record["waves"] == [7]
    assert len(split.record["waves"]) >= 3
    for r in range(len(runs)):
        alike(whole, r, split, r)
        np.testing.assert_array_equal(whole.predictions[r], split.predictions[r])


def test_repeated_is_the_same_to_the_last_bit() -> None:
    problem, labels = small_problem(nodes=300, dimensions=50)
    runs = varied_runs(problem, labels, count=6)
    options = Options(epochs=30, patience=10)
    torch.manual_seed(1)
    first = fit(problem, runs, options, device="cpu")
    torch.manual_seed(2)
    state = torch.random.get_rng_state()
    same(first, fit(problem, runs, options, device="cpu"))
    assert torch.equal(state, torch.random.get_rng_state()), "the global generator was used"


class StopAt:
    """A progress callback that presses Ctrl-C at some call."""

    def __init__(self, call: int, how: str = "raise"):
        self.call, self.how, self.calls = call, how, 0

    def __call__(self, done: int, total: int, text: str) -> None:
        self.calls += 1
        if self.calls == self.call:
            if self.how == "raise":
                raise KeyboardInterrupt
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("how", ["raise", "signal"])
@pytest.mark.parametrize("memory", [None, 110_000])
@pytest.mark.parametrize("call", [1, 9, 28])
def test_resumed_equals_uninterrupted(how: str, memory: int | None, call: int) -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=6)
    options = Options(epochs=40, patience=15, max_memory=memory)
    whole = fit(problem, runs, options, device="cpu")
    with pytest.raises(Interrupted) as caught:
        fit(problem, runs, options, device="cpu", progress=StopAt(call, how))
    assert isinstance(caught.value, KeyboardInterrupt)
    data = caught.value.state.to_bytes()
    same(whole, fit(problem, runs, options, device="cpu", state=State.from_bytes(data)))
    # A state can be used twice: continuing from it does not change it.
    same(whole, fit(problem, runs, options, device="cpu", state=caught.value.state))
    assert caught.value.state.to_bytes() == data


def test_interrupting_again_and_again_still_ends_the_same() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=4)
    options = Options(epochs=12, patience=None)
    whole, state, stops = fit(problem, runs, options, device="cpu"), None, 0
    while True:
        try:
            outcome = fit(problem, runs, options, device="cpu", state=state, progress=StopAt(4))
        except Interrupted as stop:
            state, stops = stop.state, stops + 1
            assert stops < 20
        else:
            break
    # Each attempt makes 3 of the 12 epochs; the fourth ends before its fourth call but for the closing one.
    assert stops == 4
    same(whole, outcome)


def test_ctrl_c_in_the_last_epoch_is_not_lost() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=2)
    options = Options(epochs=3, patience=None)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        fit(problem, runs, options, device="cpu", progress=StopAt(4, "signal"))
    assert signal.getsignal(signal.SIGINT) is handler


def test_trains_outside_the_main_thread() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=2)
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(fit(problem, runs, Options(epochs=3), device="cpu")))
    thread.start()
    thread.join()
    same(found[0], fit(problem, runs, Options(epochs=3), device="cpu"))


def test_a_state_fits_only_its_own_training() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=3)
    with pytest.raises(Interrupted) as caught:
        fit(problem, runs, Options(epochs=9), device="cpu", progress=StopAt(3))
    state = caught.value.state
    others = [
        (problem, runs, Options(epochs=10)),
        (problem, runs[::-1], Options(epochs=9)),
        (problem, [dataclasses.replace(runs[0], learning_rate=0.5), *runs[1:]], Options(epochs=9)),
        (small_problem(seed=5)[0], runs, Options(epochs=9)),
    ]
    for other in others:
        with pytest.raises(OptionError, match="belongs to other data, runs or options"):
            fit(*other, device="cpu", state=state)
    data = state.to_bytes()
    for broken in (b"", data[:50], data[:-7], b"x" * 100):
        with pytest.raises(ArtifactError, match="not a whole training state"):
            State.from_bytes(broken)


def test_the_best_parameters_are_those_of_the_best_epoch() -> None:
    """Training exactly as long as the best epoch ends at the same parameters: the snapshot is no alias."""
    problem, labels = small_problem()
    run = make_run(problem, labels, 3, learning_rate=0.05, dropout=0.5)
    whole = fit(problem, [run], Options(epochs=60, patience=None), device="cpu")
    best = int(whole.best_epoch[0])
    assert 1 < best < 60
    short = fit(problem, [run], Options(epochs=best, patience=None), device="cpu")
    assert short.best_epoch[0] == best
    assert short.validation_loss[0] == whole.validation_loss[0]
    for name, value in whole.parameters.items():
        np.testing.assert_array_equal(value, short.parameters[name])
    np.testing.assert_array_equal(whole.predictions, short.predictions)


def test_a_run_that_diverges_fails_alone() -> None:
    problem, labels = small_problem()
    good = varied_runs(problem, labels, count=4)
    bad = make_run(problem, labels, 9, learning_rate=1e30, coefficients=(0.0, 1.0))
    options = Options(epochs=20, patience=None)
    alone = fit(problem, good, options, device="cpu")
    mixed = fit(problem, [*good[:2], bad, *good[2:]], options, device="cpu")
    assert mixed.failed.tolist() == [False, False, True, False, False]
    for r, position in enumerate([0, 1, 3, 4]):
        alike(mixed, position, alone, r)
    assert len(mixed.record["failed"]) == 1
    assert mixed.record["failed"][0].startswith("run 2: the loss was not finite")
    assert mixed.epochs[2] < 20
    for value in mixed.parameters.values():
        assert np.isfinite(value).all()
    assert (mixed.predictions[2] >= 0).all()


def test_a_run_that_never_was_finite_keeps_its_first_parameters() -> None:
    problem, labels = small_problem()
    huge = NodeInputs(deviations=np.full((problem.nodes, problem.dimensions), 3e38, dtype=np.float32))
    problem = dataclasses.replace(problem, inputs=(huge,))
    outcome = fit(problem, [make_run(problem, labels, 0)], Options(epochs=5), device="cpu")
    assert outcome.failed.tolist() == [True]
    assert outcome.best_epoch.tolist() == [0]
    assert np.isinf(outcome.validation_loss[0])


def test_progress_tells_epochs_runs_and_loss() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=4)
    calls: list[tuple[int, int, str]] = []
    outcome = fit(
        problem,
        runs,
        Options(epochs=7, patience=None, max_memory=110_000),
        device="cpu",
        progress=lambda *call: calls.append(call),
    )
    total = 7 * len(outcome.record["waves"])
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == total
    assert {call[1] for call in calls} == {total}
    assert "of 4 runs training, best validation loss" in calls[5][2]
    assert f"epoch {calls[5][0] % 7} of 7, " in calls[5][2]
    assert "epoch" not in calls[-1][2]
    assert calls[5][2].startswith("wave 1 of ")


def tiny(nodes: int, edges: list[tuple[int, int]], classes: int = 2) -> Problem:
    adjacency = sp.lil_array((nodes, nodes), dtype=np.float32)
    for u, v in edges:
        adjacency[u, v] = adjacency[v, u] = 1
    matrix = sp.csr_array(adjacency)
    rng = np.random.default_rng(0)
    inputs = (
        NodeInputs(deviations=sp.csr_array(rng.standard_normal((nodes, 4)).astype(np.float32)), fill=0.5),
        NodeInputs(deviations=rng.standard_normal((nodes, 4)).astype(np.float32)),
    )
    return Problem(shift=shift_of(matrix), adjacency=matrix, inputs=inputs, classes=classes)


@pytest.mark.parametrize(
    ("problem", "train", "validation", "labels"),
    [
        pytest.param(tiny(5, [(0, 1), (1, 2)]), [0, 1], [2, 3], [0, 1, 0, 1, 1], id="isolated node"),
        pytest.param(tiny(5, []), [0, 1], [2, 3], [0, 1, 0, 1, 1], id="no edges"),
        pytest.param(tiny(4, [(0, 1), (2, 3)], classes=1), [0, 1], [2], [0, 0, 0, 0], id="one class"),
        pytest.param(tiny(5, [(0, 4)], classes=3), [0, 1, 2], [3], [0, 1, 2, 1, 0], id="class missing in validation"),
        pytest.param(tiny(2, [(0, 1)]), [0], [1], [0, 1], id="two nodes"),
    ],
)
@pytest.mark.parametrize("inputs", [0, 1])
def test_small_graphs(
    problem: Problem, train: list[int], validation: list[int], labels: list[int], inputs: int
) -> None:
    rest = sorted(set(range(problem.nodes)) - set(train) - set(validation))
    split = Split(train=np.array(train), validation=np.array(validation), test=np.array(rest, dtype=int))
    run = Run(
        inputs=inputs,
        split=split,
        labels=split.visible(np.array(labels)),
        seed=3,
        dropout=0.5,
        weight_decay=0.01,
        coefficients=(0.0, 0.5, 0.5),
    )
    outcome = fit(problem, [run, run], Options(epochs=15, patience=None), device="cpu")
    plain = plain_fit(problem, run, epochs=15)
    for r in range(2):
        assert outcome.validation_loss[r] == pytest.approx(plain.validation_loss, rel=1e-4, abs=1e-7)
        assert not outcome.failed[r]
    assert outcome.predictions.shape == (2, problem.nodes)
    assert outcome.predictions.max() < problem.classes


def test_a_graph_of_one_node_has_nothing_to_select_by() -> None:
    problem = tiny(1, [])
    split = Split(train=np.array([0]), validation=np.array([], dtype=int), test=np.array([], dtype=int))
    run = Run(inputs=0, split=split, labels=split.visible(np.array([1])), seed=0)
    with pytest.raises(DataError, match="no validation nodes"):
        fit(problem, [run], Options(epochs=2), device="cpu")


def test_what_does_not_fit_is_refused() -> None:
    problem, labels = small_problem()
    run = make_run(problem, labels, 0)
    with pytest.raises(DataError, match="no runs were given"):
        fit(problem, [], Options(), device="cpu")
    none = np.array([], dtype=int)
    split = Split(train=none, validation=run.split.validation, test=run.split.test)
    with pytest.raises(DataError, match="no train nodes"):
        fit(problem, [dataclasses.replace(run, split=split)], device="cpu")
    with pytest.raises(DataError, match="must be hidden"):
        fit(problem, [dataclasses.replace(run, labels=labels)], device="cpu")
    with pytest.raises(DataError, match=r"needs a label in 0\.\.2"):
        fit(problem, [dataclasses.replace(run, labels=np.full(problem.nodes, -1))], device="cpu")
    with pytest.raises(OptionError, match="names inputs 7, but there are 2"):
        fit(problem, [dataclasses.replace(run, inputs=7)], device="cpu")
    with pytest.raises(OptionError, match=r"max_memory 10 bytes is too little for a single run; raise it to \d+"):
        fit(problem, [run], Options(max_memory=10), device="cpu")
