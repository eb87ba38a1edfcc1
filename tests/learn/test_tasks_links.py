"""Edge splits, leaks, and the batching of runs that have graphs of their own."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learn_factory import adjacency_of, shift_of
from sklearn import metrics
from task_factory import adjacency_from, graph_of, link_losses, link_runs, options_of, plain_scores, plain_task_fit

from graphldp.datasets.synthetic import synthetic
from graphldp.errors import DataError, OptionError
from graphldp.learn import (
    EdgeSplit,
    MessageGraph,
    NodeInputs,
    Options,
    Problem,
    Run,
    edge_split,
    fit,
    leaks,
    link_scores,
    model,
    models,
    score_links,
    task,
)
from graphldp.learn.engine import Trainer
from graphldp.learn.sparse import Pattern
from graphldp.learn.tasks import links
from graphldp.learn.tasks.links import Pairs, PairScores
from graphldp.server import shift

PARTS = ("train", "train_negative", "validation", "validation_negative", "test", "test_negative")
LINKS = task("link-prediction", width=5)


def graph_edges(nodes: int, edges: int, seed: int = 0) -> np.ndarray:
    found = adjacency_of(nodes, edges, np.random.default_rng(seed)).tocoo()
    return np.stack([found.row, found.col])[:, found.row < found.col]


def pair_set(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in pairs.T}


@settings(max_examples=60, deadline=None)
@given(nodes=st.integers(4, 60), density=st.floats(0.02, 0.6), seed=st.integers(0, 2**32))
def test_a_split_is_a_partition_with_as_many_non_edges(nodes: int, density: float, seed: int) -> None:
    every = np.stack(np.triu_indices(nodes, 1))
    edges = every[:, np.random.default_rng(seed).random(every.shape[1]) < density]
    count = edges.shape[1]
    if count < 3 or every.shape[1] - count < count:
        with pytest.raises(DataError, match=r"needs at least 3 edges|as many non-edges as edges"):
            edge_split(edges, nodes, np.random.default_rng(seed))
        return
    split = edge_split(edges, nodes, np.random.default_rng(seed))
    sets = {name: pair_set(getattr(split, name)) for name in PARTS}
    assert sets["train"] | sets["validation"] | sets["test"] == pair_set(edges)
    assert sum(len(one) for one in sets.values()) == 2 * count == len(set().union(*sets.values()))
    for part in ("train", "validation", "test"):
        assert len(sets[part]) == len(sets[f"{part}_negative"]) >= 1
        assert not sets[f"{part}_negative"] & pair_set(edges)
    assert all(u < v for one in sets.values() for u, v in one)
    assert (len(sets["validation"]), len(sets["test"])) == (max(1, count // 20), max(1, int(count * 0.1)))


def test_splits_are_reproducible_and_differ_by_seed() -> None:
    edges = graph_edges(100, 300)
    one, two, other = (edge_split(edges, 100, np.random.default_rng(seed)) for seed in (3, 3, 4))
    for name in PARTS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert pair_set(getattr(one, name)) != pair_set(getattr(other, name))
    assert one.visible().digest() == two.visible().digest() != other.visible().digest()
    # Whichever way round and in whichever order the edges come.
    again = edge_split(edges[::-1, ::-1], 100, np.random.default_rng(3))
    assert again.visible().digest() == one.visible().digest()


@pytest.mark.slow
@pytest.mark.parametrize("edges", [12, 30])
def test_non_edges_are_uniform(edges: int) -> None:
    """Both ways of drawing: a sparse graph's by chance, a dense graph's from the list."""
    nodes = 12
    pairs = graph_edges(nodes, edges, seed=1)
    count, free = pairs.shape[1], nodes * (nodes - 1) // 2 - pairs.shape[1]
    assert (free > 4 * count) == (edges == 12)
    drawn = np.zeros((nodes, nodes))
    repeats = 2000
    for seed in range(repeats):
        split = edge_split(pairs, nodes, np.random.default_rng(seed))
        for name in PARTS[1::2]:
            drawn[tuple(getattr(split, name))] += 1
    seen = drawn[np.triu_indices(nodes, 1)]
    assert (seen > 0).sum() == free
    expected = repeats * count / free
    assert np.abs(seen[seen > 0] - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize(
    ("edges", "nodes", "options", "error", "message"),
    [
        (
            np.empty((2, 0), int),
            5,
            {},
            DataError,
            "needs at least 3 edges, one for each part; .* has 0",
        ),
        (np.array([[0], [1]]), 2, {}, DataError, "at least 3 edges, one for each part; the graph has 1"),
        (np.stack(np.triu_indices(4, 1)), 4, {}, DataError, "the graph has 6 edges and 0 non-edges"),
        (np.array([[0, 1, 1, 0], [1, 0, 2, 3]]), 9, {}, DataError, "must stand once each"),
        (np.array([[0, 1, 2], [1, 2, 2]]), 9, {}, DataError, "hold a self-loop"),
        (np.array([[0, 1, 2], [1, 2, 9]]), 9, {}, DataError, r"name a node outside 0\.\.8"),
        (np.arange(3), 9, {}, DataError, r"need the shape 2 x K, got \(3,\)"),
        (np.array([[0, 1, 2], [1, 2, 3]]), 9, {"test": 0.0}, OptionError, "needs validation > 0, test > 0"),
        (np.array([[0, 1, 2], [1, 2, 3]]), 9, {"test": 0.99}, OptionError, "validation \\+ test < 1"),
    ],
)
def test_what_cannot_be_split_is_refused_in_one_line(
    edges: np.ndarray, nodes: int, options: dict[str, float], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        edge_split(edges, nodes, np.random.default_rng(0), **options)
    assert "\n" not in str(caught.value)


def test_a_split_with_a_pair_in_two_parts_is_refused() -> None:
    split = edge_split(graph_edges(30, 60), 30, np.random.default_rng(0))
    parts = {name: getattr(split, name) for name in PARTS}
    shared = np.concatenate([split.test[:, 1:], split.train_negative[::-1, :1]], axis=1)
    with pytest.raises(DataError, match="some pair is in it twice"):
        EdgeSplit(nodes=30, **(parts | {"test": shared}))
    with pytest.raises(DataError, match="needs test edges and as many non-edges"):
        EdgeSplit(nodes=30, **(parts | {"test": split.test[:, 1:]}))
    with pytest.raises(DataError, match="some pair is in it twice"):
        dataclasses.replace(split.visible(), validation=split.train[:, : split.validation.shape[1]])


def test_a_run_sees_nothing_of_the_test_part() -> None:
    split = edge_split(graph_edges(50, 150), 50, np.random.default_rng(0))
    links = split.visible()
    names = [field.name for field in dataclasses.fields(links) if field.name not in ("nodes", "_digest")]
    seen = {pair for name in names for pair in pair_set(getattr(links, name))}
    assert len(seen) == sum(getattr(links, name).shape[1] for name in names)
    assert not seen & (pair_set(split.test) | pair_set(split.test_negative))


def test_leaks_finds_every_edge_that_is_not_trained_on() -> None:
    graph = synthetic(nodes=80, degree=6.0, dimensions=8)
    split = edge_split(graph.edges, graph.nodes, np.random.default_rng(0))
    for view in (split, split.visible()):
        assert leaks(view, split.graph(graph).adjacency()).shape == (2, 0)
        assert leaks(view, shift(split.graph(graph), self_loops=True)).shape == (2, 0)
        found = leaks(view, graph.adjacency())
        assert pair_set(found) == pair_set(split.validation) | pair_set(split.test)
    # A single one; in one direction only; and stored as 0, which attention would still see.
    for value in (1.0, 0.0):
        u, v = split.test[:, 0]
        clean = split.graph(graph).adjacency().tocoo()
        planted = sp.csr_array(
            (np.append(clean.data, value), (np.append(clean.row, v), np.append(clean.col, u))), shape=clean.shape
        )
        assert pair_set(leaks(split, planted)) == {(u, v)}
    with pytest.raises(DataError, match="the split is of 80 nodes"):
        leaks(split, sp.csr_array((3, 3)))


@pytest.mark.parametrize("where", ["adjacency", "shift", "both"])
@pytest.mark.parametrize("part", ["test", "validation"])
def test_the_engine_refuses_a_planted_leak(where: str, part: str) -> None:
    problem, runs, splits = link_runs(graphs=2)
    split = splits[1]
    planted = adjacency_from(np.concatenate([split.train, getattr(split, part)[:, :1]], axis=1), split.nodes)
    clean = graph_of(split)
    leaking = MessageGraph(
        shift=clean.shift if where == "adjacency" else shift_of(planted),
        adjacency=clean.adjacency if where == "shift" else planted,
    )
    u, v = getattr(split, part)[:, 0]
    name = "filter's shift" if where == "shift" else "adjacency"
    message = rf"run 1: the {name} holds 1 pairs that are no training edges of its split \({u}-{v}\)"
    with pytest.raises(DataError, match=message):
        fit(Problem.over([graph_of(splits[0]), leaking], problem.inputs), runs, options_of(LINKS), device="cpu")


def test_the_graph_of_another_split_is_a_leak() -> None:
    problem, runs, _ = link_runs()
    with pytest.raises(DataError, match="no training edges of its split"):
        fit(problem, [dataclasses.replace(runs[0], graph=1)], options_of(LINKS), device="cpu")


def test_filtered_inputs_and_wrong_targets_are_refused() -> None:
    problem, runs, splits = link_runs(graphs=1)
    dense = NodeInputs(deviations=np.zeros((40, 3), np.float32), filtered=True)
    with pytest.raises(DataError, match="takes filtered inputs only with the matrix that they were filtered over"):
        fit(Problem.over([graph_of(splits[0])], [dense, dense]), runs, options_of(LINKS), device="cpu")
    with pytest.raises(DataError, match=r"needs targets=edge_split\(...\).visible\(\)"):
        fit(problem, [dataclasses.replace(runs[0], targets=None)], options_of(LINKS), device="cpu")
    with pytest.raises(DataError, match=r"labels outside train and validation must be hidden \(-1\)"):
        fit(problem, [dataclasses.replace(runs[0], labels=np.zeros(40, int))], options_of(LINKS), device="cpu")
    other = edge_split(graph_edges(30, 60), 30, np.random.default_rng(0)).visible()
    stray = dataclasses.replace(runs[0], targets=other)
    with pytest.raises(DataError, match=r"the split is of 30 nodes, the matrix has the shape \(40, 40\)"):
        fit(problem, [stray], options_of(LINKS), device="cpu")
    with pytest.raises(DataError, match="the edge split is of 30 nodes, the problem has 40"):
        stray.check_hidden(problem)
    with pytest.raises(OptionError, match="a run names graph 5, but there are 1"):
        fit(problem, [dataclasses.replace(runs[0], graph=5)], options_of(LINKS), device="cpu")


def filtered_by_hand(problem: Problem, run: Run, over: sp.csr_array | None) -> NodeInputs:
    one = problem.inputs[run.inputs]
    assert sp.issparse(one.deviations)
    every = (one.deviations.toarray() + one.fill).astype(np.float64)
    shift, theta = problem.graph(run.graph).shift, run.coefficients
    out = sum(value * (np.linalg.matrix_power(shift.toarray(), k) @ every) for k, value in enumerate(theta))
    return NodeInputs(deviations=np.asarray(out, np.float32), filtered=True, over=over)


def test_inputs_that_were_filtered_over_the_training_edges_are_as_good_as_the_filter() -> None:
    problem, runs, _ = link_runs()
    options = options_of(LINKS, epochs=12, patience=None)
    plain = fit(problem, runs, options, device="cpu")
    inputs = [filtered_by_hand(problem, run, problem.graph(run.graph).shift) for run in runs]
    graphs = [problem.graph(k) for k in range(3)]
    moved = [dataclasses.replace(run, inputs=place) for place, run in enumerate(runs)]
    found = fit(Problem.over(graphs, inputs), moved, options, device="cpu")
    np.testing.assert_allclose(found.validation_loss, plain.validation_loss, rtol=1e-4)


def test_a_leak_in_filtered_inputs_is_found() -> None:
    problem, runs, splits = link_runs(count=1, graphs=1)
    split = splits[0]
    planted = adjacency_from(np.concatenate([split.train, split.test[:, :1]], axis=1), split.nodes)
    inputs = [filtered_by_hand(problem, runs[0], planted)]
    u, v = split.test[:, 0]
    message = rf"the matrix that the inputs were filtered over holds 1 pairs that are no training edges .*\({u}-{v}\)"
    with pytest.raises(DataError, match=message):
        fit(Problem.over([problem.graph(0)], inputs), runs, options_of(LINKS, epochs=2), device="cpu")


def test_over_is_said_of_filtered_inputs_alone() -> None:
    problem, _, _ = link_runs(count=1, graphs=1)
    dense = np.zeros((40, 3), np.float32)
    for change in ({"filtered": False, "over": problem.shift}, {"filtered": True, "over": problem.shift[:5, :5]}):
        with pytest.raises(DataError, match="over is the 40 x 40 matrix that filtered inputs were filtered over"):
            NodeInputs(deviations=dense, **change)


def test_runs_on_one_split_are_one_batch() -> None:
    problem, runs, _ = link_runs(count=7)
    trainer = Trainer(problem, runs, options_of(LINKS), torch.device("cpu"))
    groups = [sorted(group.runs) for group in trainer._groups(0)]
    assert sorted(groups) == [[0, 3, 6], [1, 4], [2, 5]]


@pytest.mark.parametrize("loss", ["cross-entropy", "pairwise"])
def test_scores_of_the_test_part_equal_the_plain_way_and_sklearn(loss: str) -> None:
    problem, runs, splits = link_runs(count=4)
    options = options_of(task("link-prediction", width=5, loss=loss), epochs=20, patience=None)
    outcome = fit(problem, runs, options, device="cpu")
    found = score_links(problem, runs, options, outcome, splits, device="cpu")
    tests = [np.concatenate([split.test, split.test_negative], axis=1) for split in splits]
    scores = link_scores(problem, runs, options, outcome, tests, device="cpu")
    for r, (run, split) in enumerate(zip(runs, splits, strict=True)):
        plain = plain_task_fit(problem, run, options, link_losses(loss))
        head = {name: torch.from_numpy(value) for name, value in plain.parameters.items() if name.startswith("task_")}
        np.testing.assert_allclose(scores[r], plain_scores(plain.outputs, tests[r], head), rtol=5e-3, atol=5e-3)
        truth = np.repeat([1, 0], split.test.shape[1])
        assert found["auc"][r] == pytest.approx(metrics.roc_auc_score(truth, scores[r]))
        assert found["average_precision"][r] == pytest.approx(metrics.average_precision_score(truth, scores[r]))
        held = np.concatenate([split.validation, split.validation_negative], axis=1)
        again = plain_scores(plain.outputs, held, head)
        truth = np.repeat([1, 0], split.validation.shape[1])
        assert outcome.metrics["auc"][r] == pytest.approx(metrics.roc_auc_score(truth, again))
        assert outcome.metrics["average_precision"][r] == pytest.approx(metrics.average_precision_score(truth, again))


def test_only_the_split_that_was_trained_on_is_scored() -> None:
    problem, runs, splits = link_runs(count=2)
    options = options_of(LINKS, epochs=2)
    outcome = fit(problem, runs, options, device="cpu")
    with pytest.raises(DataError, match="run 0 was trained on another edge split"):
        score_links(problem, runs, options, outcome, splits[::-1], device="cpu")
    with pytest.raises(DataError, match="only a link predictor scores pairs"):
        link_scores(problem, runs, Options(), outcome, [splits[0].test] * 2, device="cpu")
    with pytest.raises(DataError, match="2 trained runs, but 2 runs and 1 sets of pairs"):
        link_scores(problem, runs, options, outcome, [splits[0].test], device="cpu")


@pytest.mark.parametrize("name", sorted(set(models()) - {"example-mlp"}))
def test_every_backbone_predicts_links(name: str) -> None:
    """Also with isolated nodes: some have no edge at all, others none that is trained on."""
    problem, runs, splits = link_runs(count=4, graphs=2, edges=30, isolated=5)
    assert (problem.adjacency.sum(axis=1) == 0).sum() > 5
    options = Options(model=model(name), task=task("link-prediction", width=4), epochs=10, patience=None)
    together = fit(problem, runs, options, device="cpu")
    assert not together.failed.any()
    found = score_links(problem, runs, options, together, splits, device="cpu")
    assert ((found["auc"] >= 0) & (found["auc"] <= 1)).all()
    alone = fit(problem, runs[1:2], options, device="cpu")
    assert together.validation_loss[1] == pytest.approx(alone.validation_loss[0], rel=1e-3)


@pytest.mark.parametrize("order", ["propagate", "materialise"])
def test_a_filter_is_that_of_the_runs_own_graph(order: str) -> None:
    """The same answer in both orders of the chain, where runs of one batch have different graphs."""
    problem, runs, _ = link_runs()
    options = options_of(LINKS, epochs=8, patience=None, order=order)
    outcome = fit(problem, runs, options, device="cpu")
    for r, run in enumerate(runs):
        plain = plain_task_fit(problem, run, options, link_losses("cross-entropy"))
        assert outcome.validation_loss[r] == pytest.approx(plain.validation_loss, rel=1e-4)


def test_link_prediction_learns() -> None:
    """Communities are linked inside: far better than chance on edges that no run has seen."""
    graph = synthetic(nodes=300, degree=12.0, dimensions=32, classes=4)
    split = edge_split(graph.edges, graph.nodes, np.random.default_rng(0))
    seen = split.graph(graph)
    inputs = NodeInputs(deviations=graph.features)
    problem = Problem.over([MessageGraph(shift=shift(seen), adjacency=seen.adjacency())], [inputs])
    runs = link_runs(count=2, graphs=1)[1]
    runs = [dataclasses.replace(run, inputs=0, targets=split.visible(), dropout=0.0, weight_decay=0.0) for run in runs]
    for loss in ("cross-entropy", "pairwise"):
        options = Options(model=model("gcn"), task=task("link-prediction", width=16, loss=loss), epochs=60)
        outcome = fit(problem, runs, options, device="cpu")
        scores = score_links(problem, runs, options, outcome, [split] * 2, device="cpu")
        assert (scores["auc"] > 0.6).all(), scores


@pytest.mark.parametrize("compressed", [True, False], ids=["compressed", "triples"])
@pytest.mark.parametrize("gathered", [1, 40, 2**17])
def test_scores_of_pairs_have_the_gradient_of_their_formula(
    compressed: bool, gathered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "GATHERED", gathered)
    found = Pattern.of
    monkeypatch.setattr(links, "Pattern", SimpleNamespace(of=lambda *given: found(*given, compressed=compressed)))
    # One pair twice, one the other way round, and somebody with herself.
    pairs = np.array([[0, 3, 3, 2, 5, 0, 4], [1, 2, 2, 3, 5, 6, 1]])
    torch.manual_seed(0)
    given = [torch.randn(shape, requires_grad=True) for shape in ((8, 3, 5), (3, 5), (3, 1))]
    outputs, weight, bias = given
    pull = torch.randn(7, 3)
    scores = PairScores(pairs, 8, torch.device("cpu"))(outputs, {"task_weight": weight, "task_bias": bias})
    plain = (outputs[pairs[0]] * outputs[pairs[1]] * weight).sum(dim=2) + bias[:, 0]
    torch.testing.assert_close(scores, plain)
    for one, other in zip(*(torch.autograd.grad((of * pull).sum(), given) for of in (scores, plain)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_losses_do_not_depend_on_a_common_shift() -> None:
    """Pairwise: only differences count, so that its head has no bias."""
    split = edge_split(graph_edges(20, 40), 20, np.random.default_rng(0))
    objective = Pairs(split.visible(), torch.device("cpu"), "pairwise")
    outputs = torch.randn(20, 2, 3, generator=torch.Generator().manual_seed(0))
    head = {"task_weight": torch.ones(2, 3)}
    plain = objective.loss(outputs, head)
    moved = objective.loss(outputs, head | {"task_bias": torch.full((2, 1), 3.0)})
    assert torch.allclose(plain, moved, rtol=1e-5)
    assert "task_bias" not in task("link-prediction", loss="pairwise").parameters()


def test_graphs_of_a_problem_are_checked() -> None:
    problem, _, splits = link_runs(graphs=2)
    good = graph_of(splits[0])
    with pytest.raises(DataError, match="a problem needs at least one graph"):
        Problem.over([], problem.inputs)
    with pytest.raises(DataError, match="the shift must be 40 x 40"):
        Problem.over([good, MessageGraph(shift=sp.csr_array((3, 3)), adjacency=good.adjacency)], problem.inputs)
    loops = sp.csr_array(good.adjacency + sp.eye_array(40))
    with pytest.raises(DataError, match="plain one without self-loops"):
        Problem.over([good, MessageGraph(shift=good.shift, adjacency=loops)], problem.inputs)
