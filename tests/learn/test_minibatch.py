"""Batches of nodes: equal to the full batch where they hold everything, and to the plain way where they do not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from learn_factory import adjacency_of, filtered_dense, make_run, shift_of, small_problem, varied_runs
from test_engine import StopAt, alike, same

from graphldp.errors import OptionError
from graphldp.learn import (
    Deferred,
    Interrupted,
    MessageGraph,
    NodeInputs,
    Options,
    Outcome,
    Problem,
    Run,
    State,
    Values,
    edge_split,
    fit,
    model,
    random_split,
    task,
)
from graphldp.learn.minibatch import AUTO_SIZE, BatchTrainer, _Some
from graphldp.learn.models.gcn import gcn_norm
from graphldp.learn.row_store import filtered_columns
from graphldp.learn.sparse import Csr

CPU = torch.device("cpu")
DECOUPLED = ("sgc", "ssgc", "mlp", "appnp")


def still(runs: list[Run]) -> list[Run]:
    """Return the runs without dropout."""
    return [dataclasses.replace(run, dropout=0.0) for run in runs]


def both(problem: Problem, runs: list[Run], options: Options, size: int) -> tuple[Outcome, Outcome]:
    full = fit(problem, runs, options, device="cpu")
    return full, fit(problem, runs, dataclasses.replace(options, batch_size=size), device="cpu")


# equal to the full batch ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECOUPLED)
@pytest.mark.parametrize("kinds", [("sparse", "sparse"), ("dense", "sparse")])
def test_a_batch_of_all_nodes_is_the_full_batch(name: str, kinds: tuple[str, ...]) -> None:
    problem, labels = small_problem(kinds=kinds)
    runs = still(varied_runs(problem, labels, count=7))
    full, batched = both(problem, runs, Options(model=model(name), epochs=40, patience=8), problem.nodes)
    assert len(set(full.epochs.tolist())) > 1
    for r in range(len(runs)):
        alike(full, r, batched, r)
        assert full.metrics["macro_f1"][r] == pytest.approx(batched.metrics["macro_f1"][r])
    np.testing.assert_array_equal(full.predictions, batched.predictions)
    assert batched.record["chain"]["order"] == "rows"
    assert batched.record["batches"]["updates"] == [1]
    assert "batches" not in full.record


def test_splits_of_different_sizes() -> None:
    problem, labels = small_problem()
    runs = []
    for r, run in enumerate(still(varied_runs(problem, labels, count=4))):
        split = random_split(range(problem.nodes), np.random.default_rng(r), train=0.1 + 0.2 * r, validation=0.2)
        runs.append(dataclasses.replace(run, split=split, labels=split.visible(labels)))
    assert len({len(run.split.train) for run in runs}) == 4
    full, batched = both(problem, runs, Options(model=model("mlp"), epochs=15), problem.nodes)
    for r in range(len(runs)):
        alike(full, r, batched, r)
    # Runs that need another number of updates are in other batches.
    some = fit(problem, runs, Options(model=model("mlp"), epochs=15, batch_size=10), device="cpu")
    assert some.record["batches"]["updates"] == sorted({-(-len(run.split.train) // 10) for run in runs})
    for r, run in enumerate(runs):
        alike(some, r, fit(problem, [run], Options(model=model("mlp"), epochs=15, batch_size=10), device="cpu"))


@pytest.mark.parametrize("size", [3, 16, 1000])
@pytest.mark.parametrize("options", [{}, {"layers": 1}, {"steps": 0}])
def test_appnp_is_the_full_batch_whatever_is_read_at_once(size: int, options: dict[str, Any]) -> None:
    problem, labels = small_problem()
    runs = still(varied_runs(problem, labels, count=5))
    full, batched = both(problem, runs, Options(model=model("appnp", **options), epochs=20, patience=6), size)
    for r in range(len(runs)):
        alike(full, r, batched, r)
    np.testing.assert_array_equal(full.predictions, batched.predictions)
    assert batched.record["batches"]["updates"] == [1]


def test_appnp_drops_the_same_units_in_both_passes() -> None:
    """Batches of a multiple of 8 numbers take the same random bytes as the full batch."""
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=5)
    assert any(run.dropout for run in runs)
    full, batched = both(problem, runs, Options(model=model("appnp", hidden=8), epochs=15, patience=None), 7)
    for r in range(len(runs)):
        alike(full, r, batched, r)


def test_inputs_that_are_filtered_already() -> None:
    problem, labels = small_problem(kinds=("dense", "dense"))
    inputs = tuple(dataclasses.replace(one, filtered=True) for one in problem.inputs)
    problem = dataclasses.replace(problem, inputs=inputs)
    runs = still([make_run(problem, labels, seed, coefficients=(0.0, 1.0)) for seed in range(4)])
    for name in DECOUPLED:
        full, batched = both(problem, runs, Options(model=model(name), epochs=10), problem.nodes)
        for r in range(len(runs)):
            alike(full, r, batched, r)


def test_inputs_that_are_made_when_they_are_needed() -> None:
    problem, labels = small_problem(kinds=("dense", "dense"))
    made: list[int] = []

    def deferred(place: int) -> NodeInputs:
        matrix = problem.inputs[place].dense()

        def make() -> np.ndarray[Any, np.dtype[np.float32]]:
            made.append(place)
            return matrix.copy()

        return NodeInputs(deviations=Deferred(matrix.shape, make, str(place)), filtered=True)

    problem = dataclasses.replace(problem, inputs=(deferred(0), deferred(1)))
    runs = still([make_run(problem, labels, seed) for seed in range(4)])
    full, batched = both(problem, runs, Options(model=model("mlp"), epochs=10), problem.nodes)
    assert sorted(made) == [0, 0, 1, 1]  # once for each training, and not once for each epoch
    for r in range(len(runs)):
        alike(full, r, batched, r)


def test_runs_on_graphs_of_their_own() -> None:
    problem, labels = small_problem()
    rng = np.random.default_rng(5)
    graphs = [problem.graph(0)]
    graphs += [MessageGraph(shift=shift_of(one), adjacency=one) for one in [adjacency_of(40, 90, rng) for _ in "ab"]]
    problem = Problem.over(graphs, problem.inputs, problem.classes)
    runs = [dataclasses.replace(run, graph=r % 3) for r, run in enumerate(still(varied_runs(problem, labels, count=6)))]
    for name in ("sgc", "appnp"):
        full, batched = both(problem, runs, Options(model=model(name), epochs=10), problem.nodes)
        for r in range(len(runs)):
            alike(full, r, batched, r)


@pytest.mark.parametrize("name", ["regression", "multi-task"])
def test_other_tasks_of_nodes(name: str) -> None:
    problem, labels = small_problem()
    numbers = np.random.default_rng(3).normal(50, 20, problem.nodes)
    runs = [
        dataclasses.replace(run, targets=Values.visible(run.split, numbers, standardize=True))
        for run in still(varied_runs(problem, labels, count=4))
    ]
    full, batched = both(problem, runs, Options(model=model("mlp"), task=task(name), epochs=12), problem.nodes)
    np.testing.assert_allclose(full.validation_loss, batched.validation_loss, rtol=1e-4)
    np.testing.assert_allclose(full.outputs["values"], batched.outputs["values"], rtol=1e-3, atol=1e-2)
    for metric, values in full.metrics.items():
        np.testing.assert_allclose(values, batched.metrics[metric], rtol=1e-3)
    some = fit(problem, runs, Options(model=model("mlp"), task=task(name), epochs=12, batch_size=7), device="cpu")
    assert np.isfinite(some.validation_loss).all()


# equal to the plain way -----------------------------------------------------------------------------------------------


def test_each_node_is_in_one_update_of_an_epoch() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=3)
    trainer = BatchTrainer(problem, runs, Options(model=model("sgc"), batch_size=6), CPU, size=6)
    batch = _Some(trainer, range(3))
    updates = trainer.updates(runs[0])
    assert updates == 4  # 20 training nodes
    for epoch in range(2):
        orders = batch.orders(epoch)
        parts = [batch.chosen(orders, number, updates) for number in range(updates)]
        for r, run in enumerate(runs):
            seen = np.concatenate([nodes[r][: sizes[r]] for nodes, sizes in parts])
            assert sorted(seen) == sorted(run.split.train)
        assert {size for _, sizes in parts for size in sizes} == {5}
    assert batch.orders(0)[0].tolist() != batch.orders(1)[0].tolist()
    assert batch.orders(0)[0].tolist() != batch.orders(0)[1].tolist()


@pytest.mark.parametrize("name", ["sgc", "ssgc"])
def test_batches_equal_the_plain_way(name: str) -> None:
    """A linear model on powers that are computed by definition, one update after the other with torch.optim."""
    problem, labels = small_problem()
    runs = still(varied_runs(problem, labels, count=4))
    net = model(name, steps=2)
    options = Options(model=net, epochs=6, patience=None, batch_size=6)
    found = fit(problem, runs, options, device="cpu")
    trainer = BatchTrainer(problem, runs, options, CPU, size=6)
    batch = _Some(trainer, range(len(runs)))
    hop = gcn_norm(problem.adjacency)
    for r, run in enumerate(runs):
        x = filtered_dense(problem, run)
        one, two = hop @ x, hop @ (hop @ x)
        x = two if name == "sgc" else 0.05 * x + 0.95 / 2 * (one + two)
        start = trainer.initial([r])
        weight, bias = (start[part][0].double().requires_grad_() for part in ("weight1", "bias1"))
        optimizer = torch.optim.Adam([weight, bias], lr=run.learning_rate, weight_decay=run.weight_decay)
        losses = []
        for epoch in range(6):
            orders = batch.orders(epoch)
            for number in range(4):
                nodes = batch.chosen(orders, number, 4)[0][r]
                optimizer.zero_grad()
                logits = torch.from_numpy(x[nodes]) @ weight + bias
                torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels[nodes])).backward()
                optimizer.step()
            held = run.split.validation
            logits = (torch.from_numpy(x[held]) @ weight + bias).detach()
            losses.append(float(torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels[held]))))
        assert found.validation_loss[r] == pytest.approx(min(losses), rel=1e-4)
        assert found.best_epoch[r] == 1 + int(np.argmin(losses))


def test_filters_in_blocks_are_the_filters_by_definition() -> None:
    problem, labels = small_problem(kinds=("sparse", "dense"))
    filters = [(1.0,), (0.0, 0.0, 1.0), (0.3, 0.0, 0.4), (0.0, 0.0, 0.0, 0.0)]
    walk = (0.2, 0.0, 0.8)
    shift, hop = Csr.of(problem.shift, CPU), gcn_norm(problem.adjacency)
    for place, inputs in enumerate(problem.inputs):
        run = make_run(problem, labels, place)
        # One column at a time, some of them, and all at once.
        for limit in (4 * problem.nodes * 6, 4 * problem.nodes * 30, None):
            chains = [(one, walk) for one in filters]
            out = [np.full((problem.nodes, problem.dimensions), np.nan) for _ in filters]
            blocks = 0
            for columns, parts in filtered_columns(
                inputs, shift, Csr.of(sp.csr_array(hop), CPU), chains, device=CPU, max_memory=limit
            ):
                blocks += 1
                for target, part in zip(out, parts, strict=True):
                    assert part.dtype == np.float32
                    target[:, columns] = part
            assert blocks == (problem.dimensions if limit == 960 else 3 if limit else 1)
            for target, coefficients in zip(out, filters, strict=True):
                x = filtered_dense(problem, dataclasses.replace(run, coefficients=coefficients))
                np.testing.assert_allclose(target, 0.2 * x + 0.8 * (hop @ (hop @ x)), rtol=1e-4, atol=1e-5)
    with pytest.raises(OptionError, match="a single column of 40 nodes takes 480 bytes with its powers"):
        next(filtered_columns(problem.inputs[0], shift, None, [((0.0, 1.0), (1.0,))], device=CPU, max_memory=400))


# the loop -------------------------------------------------------------------------------------------------------------


def batches(**changes: Any) -> Options:
    return Options(**{"model": model("mlp"), "epochs": 20, "patience": 6, "batch_size": 6, **changes})


@pytest.mark.parametrize("name", DECOUPLED)
def test_batched_equals_single(name: str) -> None:
    problem, labels = small_problem(kinds=("sparse", "dense", "sparse"))
    runs = varied_runs(problem, labels, count=6)
    options = batches(model=model(name))
    together = fit(problem, runs, options, device="cpu")
    for r, run in enumerate(runs):
        alike(together, r, fit(problem, [run], options, device="cpu"))


def test_repeated_and_resumed_are_the_same_to_the_last_bit() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=5)
    options = batches(patience=None)
    whole = fit(problem, runs, options, device="cpu")
    state, stops = None, 0
    while stops < 3:
        with pytest.raises(Interrupted) as stop:
            fit(problem, runs, options, device="cpu", progress=StopAt(4), state=state)
        state, stops = State.from_bytes(stop.value.state.to_bytes()), stops + 1
    same(whole, fit(problem, runs, options, device="cpu", state=state))
    same(whole, fit(problem, runs, options, device="cpu"))


def test_waves_of_batches() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=7)
    whole = fit(problem, runs, batches(), device="cpu")
    split = fit(problem, runs, batches(max_memory=60_000), device="cpu")
    assert len(split.record["waves"]) > 1
    for r in range(len(runs)):
        alike(whole, r, split, r)


def test_a_run_that_fails_ends_alone() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels, count=3)
    runs[1] = dataclasses.replace(runs[1], learning_rate=1e38)
    outcome = fit(problem, runs, batches(), device="cpu")
    assert outcome.failed.tolist() == [False, True, False]


# when -----------------------------------------------------------------------------------------------------------------


def test_batches_where_nothing_else_fits() -> None:
    problem, labels = small_problem(nodes=3000, dimensions=4)
    runs = [make_run(problem, labels, seed) for seed in range(2)]
    options = Options(model=model("mlp", hidden=64), epochs=3)
    with pytest.raises(OptionError, match="too little for a single run"):
        fit(problem, runs, dataclasses.replace(options, model=model("gcn", hidden=64), max_memory=5_000_000))
    outcome = fit(problem, runs, dataclasses.replace(options, max_memory=5_000_000), device="cpu")
    found = outcome.record["batches"]
    assert (found["size"], found["automatic"], found["in_files"]) == (AUTO_SIZE, True, False)
    assert "batches" not in fit(problem, runs, options, device="cpu").record


def test_what_has_no_batches_is_refused() -> None:
    problem, _ = small_problem()
    split = edge_split(np.stack(sp.triu(problem.adjacency).nonzero()), problem.nodes, np.random.default_rng(0))
    half = sp.coo_array((np.ones(split.train.shape[1]), tuple(split.train)), shape=problem.adjacency.shape).tocsr()
    graph = sp.csr_array(half + half.T, dtype=np.float32)
    problem = Problem(shift=shift_of(graph), adjacency=graph, inputs=problem.inputs, classes=1)
    linked = Run(inputs=0, seed=0, targets=split.visible())
    options = batches(task=task("link-prediction"))
    with pytest.raises(OptionError, match="link-prediction looks at pairs of nodes, and trains in full batch alone"):
        fit(problem, [linked], options)
    with pytest.raises(OptionError, match="are not targets of single nodes"):
        split.visible().part(np.arange(3))
    for bad in (-1, -5):
        with pytest.raises(OptionError, match=f"batch_size must be >= 1, or 0 for all nodes at once, got {bad}"):
            batches(batch_size=bad)


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "gin"])
def test_only_four_backbones_are_decoupled(name: str) -> None:
    assert model(name).decoupled() is None
    for other in DECOUPLED:
        assert model(other).decoupled() is not None
