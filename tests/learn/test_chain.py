from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from learn_factory import (
    adjacency_of,
    dense_inputs,
    filtered_dense,
    make_run,
    shift_of,
    small_problem,
    sparse_inputs,
    varied_runs,
)
from numpy.typing import NDArray

from graphldp.errors import DataError, OptionError
from graphldp.learn import NodeInputs, Options, Problem, chain, choose_order, fit, inputs
from graphldp.learn.inputs import Projection
from graphldp.learn.sparse import Csr, SparseMatrix, product

CPU = torch.device("cpu")
FILTERS = [(1.0,), (2.0,), (0.0, 1.0), (0.5, 0.5), (0.0, 0.0, 1.0), (0.1, 0.2, 0.3, 0.4, 0.0), (1.0, -2.0, 0.0, 3.0)]


def directed(problem: Problem) -> Problem:
    """The same problem with an S that is not symmetric: a forgotten transpose shows."""
    rng = np.random.default_rng(3)
    n = problem.nodes
    matrix = sp.random_array((n, n), density=0.1, rng=rng, format="csr", dtype=np.float32)
    return dataclasses.replace(problem, shift=sp.csr_array(matrix))


@pytest.mark.parametrize("theta", FILTERS)
@pytest.mark.parametrize("cache", [0, 2**20])
@pytest.mark.parametrize("place", ["new", "in place", "view", "view in place"])
def test_filter_equals_its_definition(
    theta: tuple[float, ...], cache: int, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "CACHE_BYTES", cache)
    rng = np.random.default_rng(0)
    shift = sp.csr_array(sp.random_array((20, 20), density=0.2, rng=rng, dtype=np.float32))
    matrix = torch.from_numpy(rng.standard_normal((20, 70)).astype(np.float32))
    expected, power = np.zeros((20, 70)), matrix.numpy().astype(float)
    for value in theta:
        expected += value * power
        power = shift @ power
    wide = torch.full((20, 100), 7.0)
    if place.startswith("view"):
        wide[:, 16:86] = matrix
        given = wide[:, 16:86] if place == "view in place" else matrix
        out = chain.filtered(Csr.of(shift, CPU), given, theta, out=wide[:, 16:86] if given is matrix else given)
        assert (wide[:, :16] == 7).all()
        assert (wide[:, 86:] == 7).all()
        np.testing.assert_allclose(wide[:, 16:86].numpy(), expected, rtol=1e-4, atol=1e-5)
    else:
        before = matrix.clone()
        out = chain.filtered(Csr.of(shift, CPU), matrix, theta, out=matrix if place == "in place" else None)
        assert place == "in place" or torch.equal(matrix, before)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
    ones = sum(value * np.linalg.matrix_power(shift.toarray().astype(float), k) for k, value in enumerate(theta))
    np.testing.assert_allclose(chain.filtered_ones(shift, theta), ones.sum(axis=1), rtol=1e-6)


def rounding(shift: sp.csr_array, matrix: NDArray[np.float32], theta: tuple[float, ...]) -> NDArray[np.float64]:
    """How far two orders of the same float32 sums can be apart, for each result.

    A sum of m products has an error of at most m u times the sum of their magnitudes, whatever its order (Higham,
    Accuracy and Stability, 3.1); a power adds the products of a row, its coefficient's term, and the errors so far.
    """
    unit = np.finfo(np.float32).eps / 2
    longest = int(np.diff(shift.indptr).max()) + 2
    size, power = np.zeros(matrix.shape), np.abs(matrix).astype(float)
    for value in theta:
        size += abs(value) * power
        power = abs(shift).astype(float) @ power
    return np.asarray(2 * 1.01 * (len(theta) * longest + 1) * unit * size)


@pytest.mark.parametrize("theta", FILTERS)
@pytest.mark.parametrize("width", [1, 7, 32, 33, 40, 47, 48, 64, 71, 160])
def test_a_column_is_filtered_alike_whatever_stands_beside_it(theta: tuple[float, ...], width: int) -> None:
    """Up to rounding: the vendor's product may sum a column in another order where more or fewer stand beside it."""
    rng = np.random.default_rng(1)
    graph = sp.csr_array(sp.random_array((50, 50), density=0.2, rng=rng, dtype=np.float32))
    shift = Csr.of(graph, CPU)
    matrix = rng.standard_normal((50, width)).astype(np.float32)
    whole = chain.filtered(shift, torch.from_numpy(matrix), theta).numpy()
    bound = rounding(graph, matrix, theta)
    # Wide enough for rounding, and too narrow for anything else: a column's neighbour is far outside of it.
    assert width == 1 or (np.abs(whole - np.roll(whole, 1, axis=1)) > bound).mean() > 0.99
    for start in range(0, width, 16):
        part = np.ascontiguousarray(matrix[:, start : start + 16])
        alone = chain.filtered(shift, torch.from_numpy(part), theta).numpy()
        apart = np.abs(alone.astype(float) - whole[:, start : start + 16])
        assert (apart <= bound[:, start : start + 16]).all()


@pytest.mark.parametrize("own", [0.0, 0.3])
@pytest.mark.parametrize("steps", range(1, 18))
def test_a_walk_of_even_shares_equals_its_definition(steps: int, own: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    # Scaled so that its powers neither grow nor vanish.
    matrix = sp.csr_array(sp.random_array((50, 50), density=0.1, rng=rng, dtype=np.float32) / 3)
    given = torch.from_numpy(rng.standard_normal((50, 35)).astype(np.float32))
    before, expected, power = given.clone(), own * given.numpy().astype(float), given.numpy().astype(float)
    for _ in range(steps):
        power = matrix @ power
        expected += power / steps
    added, multiply = [], Csr.multiply

    def counted(*arguments: Any, **options: Any) -> torch.Tensor:
        added.append(options.get("add") is not None)
        return multiply(*arguments, **options)

    monkeypatch.setattr(Csr, "multiply", counted)
    shares = (own,) + (1 / steps,) * steps
    shift = Csr.of(matrix, CPU)
    found = chain.walked(shift, given, shares)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(given, before)
    # Two blocks of columns: as many products as steps in each, and few of them add something.
    assert len(added) == 2 * steps
    assert steps < 2 or sum(added) <= 4 * np.log2(steps)
    alone = chain.walked(shift, given[:, 20:21].contiguous(), shares)
    apart = (alone - found[:, 20:21]).abs().numpy()
    assert (apart <= rounding(matrix, given[:, 20:21].numpy(), shares)).all()


@pytest.mark.parametrize("theta", FILTERS)
def test_a_walk_of_other_shares_is_the_filter(theta: tuple[float, ...]) -> None:
    rng = np.random.default_rng(3)
    shift = Csr.of(sp.csr_array(sp.random_array((50, 50), density=0.2, rng=rng, dtype=np.float32)), CPU)
    given = torch.from_numpy(rng.standard_normal((50, 35)).astype(np.float32))
    assert torch.equal(chain.walked(shift, given, theta), chain.filtered(shift, given, theta))


@pytest.mark.parametrize(
    ("nodes", "width"), [(10, 0), (10, 1), (10, 33), (10, 80), (10**5, 33), (10**5, 47), (10**5, 48)]
)
def test_blocks_are_the_columns(nodes: int, width: int) -> None:
    some = list(chain.blocks(nodes, width))
    assert [column for one in some for column in range(one.start, one.stop)] == list(range(width))
    least = chain.BLOCK // 2 if nodes == 10**5 else 1
    assert all(least <= one.stop - one.start < chain.BLOCK + least for one in some) or width < least


def test_few_columns_even_out() -> None:
    def sizes(width: int) -> list[int]:
        return [one.stop - one.start for one in chain.blocks(10, width)]

    assert [sizes(width) for width in (32, 35, 36, 37, 70, 68)] == [
        [32],
        [18, 17],
        [18, 18],
        [32, 5],
        [32, 32, 6],
        [32, 18, 18],
    ]


@pytest.mark.parametrize("order", ["materialise", "propagate"])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_runs_with_the_same_inputs_and_filter_take_as_many_products_as_one(
    kind: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, labels = small_problem(kinds=(kind,))
    calls: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        whole = getattr(owner, name)

        def call(*given: Any, **options: Any) -> Any:
            calls[name] += 1
            return whole(*given, **options)

        monkeypatch.setattr(owner, name, call)

    for owner, name in ((inputs, "product"), (inputs, "filtered"), (Csr, "multiply")):
        counted(owner, name)

    def work(count: int) -> tuple[set[type], Counter[str]]:
        calls.clear()
        runs = [make_run(problem, labels, r, coefficients=(0.5, 0.25, 0.25)) for r in range(count)]
        projection = Projection(problem, runs, SparseMatrix.of(problem.shift, CPU), order, CPU)
        projection(torch.randn(count, problem.dimensions, 5, requires_grad=True)).sum().backward()
        return {type(part) for part in projection.parts}, Counter(calls)

    alone, together = work(1), work(6)
    assert together == alone
    assert alone[1].total() > 2
    written_out = kind == "dense" or order == "materialise"
    assert alone[0] == {inputs.DensePart if written_out else inputs.SparsePart}


@pytest.mark.parametrize("order", ["propagate", "materialise"])
@pytest.mark.parametrize(
    ("kinds", "full"),
    [
        (("sparse",), (0,)),
        (("dense",), (0,)),
        (("sparse", "dense"), (0, 0)),
        (("dense", "sparse", "dense", "sparse"), (0, 0, 0, 0)),
        (("sparse", "sparse", "sparse"), (3, 3, 3)),
        (("sparse", "sparse", "dense", "sparse"), (2, 0, 0, 4)),
    ],
)
def test_both_orders_equal_the_definition(order: str, kinds: tuple[str, ...], full: tuple[int, ...]) -> None:
    problem, labels = small_problem(kinds=kinds)
    inputs = [dataclasses.replace(one, full=columns) for one, columns in zip(problem.inputs, full, strict=True)]
    problem = directed(dataclasses.replace(problem, inputs=inputs))
    runs = [make_run(problem, labels, r, coefficients=FILTERS[r % 4]) for r in range(9)]
    # Runs in any order, not only in the engine's.
    projection = Projection(problem, runs, SparseMatrix.of(problem.shift, CPU), order, CPU)
    torch.manual_seed(0)
    weight = torch.randn(9, problem.dimensions, 5, requires_grad=True)
    gradient = torch.randn(problem.nodes, 9, 5)
    out = projection(weight)
    out.backward(gradient)
    assert weight.grad is not None
    for r, run in enumerate(runs):
        matrix = filtered_dense(problem, run)
        np.testing.assert_allclose(
            out[:, r].detach().numpy(), matrix @ weight[r].detach().numpy(), rtol=1e-3, atol=1e-4
        )
        np.testing.assert_allclose(
            weight.grad[r].numpy(), matrix.T @ gradient[:, r].numpy(), rtol=1e-3, atol=1e-4, err_msg=f"run {r}"
        )


def test_inputs_are_left_as_they_were() -> None:
    problem, labels = small_problem(kinds=("dense", "sparse"))
    before = [np.array(problem.inputs[0].deviations), problem.inputs[1].deviations.toarray()]
    for order in ("propagate", "materialise"):
        fit(problem, varied_runs(problem, labels), Options(epochs=3, order=order), device="cpu")
    np.testing.assert_array_equal(problem.inputs[0].deviations, before[0])
    np.testing.assert_array_equal(problem.inputs[1].deviations.toarray(), before[1])


def test_read_only_and_strided_inputs() -> None:
    problem, labels = small_problem(kinds=("dense",))
    values = np.asfortranarray(problem.inputs[0].deviations)
    values.setflags(write=False)
    other = dataclasses.replace(problem, inputs=(NodeInputs(deviations=values, fill=0.25),))
    runs = varied_runs(problem, labels, count=3)
    for order in ("propagate", "materialise"):
        options = Options(epochs=3, order=order)
        one, two = fit(problem, runs, options, device="cpu"), fit(other, runs, options, device="cpu")
        np.testing.assert_array_equal(one.parameters["weight1"], two.parameters["weight1"])


def test_inputs_that_are_filtered_already_are_not_filtered_again() -> None:
    problem, labels = small_problem(kinds=("sparse",))
    run = make_run(problem, labels, 0, coefficients=(0.0, 0.0, 1.0))
    done = NodeInputs(deviations=filtered_dense(problem, run).astype(np.float32), filtered=True)
    one = fit(problem, [run], Options(epochs=10), device="cpu")
    two = fit(dataclasses.replace(problem, inputs=(done,)), [run], Options(epochs=10), device="cpu")
    np.testing.assert_allclose(one.parameters["weight1"], two.parameters["weight1"], rtol=1e-3, atol=1e-5)
    assert two.record["chain"]["reason"] == "the inputs are already filtered"
    # The same matrix kept sparse, alone and beside the dense one.
    few = NodeInputs(deviations=sp.csr_array(done.deviations), filtered=True)
    three = fit(dataclasses.replace(problem, inputs=(few,)), [run], Options(epochs=10), device="cpu")
    np.testing.assert_allclose(three.parameters["weight1"], two.parameters["weight1"], rtol=1e-3, atol=1e-5)
    both = dataclasses.replace(problem, inputs=(few, done))
    runs = [dataclasses.replace(run, inputs=place) for place in (0, 1, 0)]
    for order in ("auto", "propagate", "materialise"):
        four = fit(both, runs, Options(epochs=10, order=order), device="cpu")
        np.testing.assert_allclose(four.parameters["weight1"][:1], two.parameters["weight1"], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(four.parameters["weight1"][1:2], two.parameters["weight1"], rtol=1e-3, atol=1e-5)


def shaped(nodes: int, dimensions: int, edges: int, *, dense: bool, m: int = 1) -> Problem:
    rng = np.random.default_rng(0)
    adjacency = adjacency_of(nodes, edges, rng)
    one = dense_inputs(nodes, dimensions, rng) if dense else sparse_inputs(nodes, dimensions, rng, m=m)
    return Problem(shift=shift_of(adjacency), adjacency=adjacency, inputs=(one,), classes=2)


def test_the_cheaper_order_is_chosen() -> None:
    labels = np.random.default_rng(0).integers(0, 2, 1000)

    def chosen(problem: Problem, steps: int, **options: object) -> str:
        runs = [make_run(problem, labels, r, coefficients=(0.0,) * steps + (1.0,)) for r in range(3)]
        return choose_order(problem, runs, **({"width": 16, "epochs": 100} | options)).order  # type: ignore[arg-type]

    wide_sparse = shaped(1000, 800, 2000, dense=False)
    assert chosen(wide_sparse, 16) == "propagate"
    # Every dimension reported, filtered 16 times: filtering once is cheaper than in each of 100 epochs.
    everything = shaped(1000, 100, 50_000, dense=True)
    assert chosen(everything, 16) == "materialise"
    assert chosen(everything, 16, epochs=1) == "propagate"
    size = 4 * 1000 * 100
    assert chosen(everything, 16, limit=size) == "materialise"
    assert chosen(everything, 16, limit=size - 1) == "propagate"
    assert chosen(wide_sparse, 16, order="materialise") == "materialise"
    with pytest.raises(OptionError, match="order 'materialise' needs 400000 bytes"):
        chosen(everything, 16, order="materialise", limit=size - 1)


def test_the_choice_is_recorded() -> None:
    problem, labels = small_problem()
    record = fit(problem, varied_runs(problem, labels), Options(epochs=2), device="cpu").record["chain"]
    assert record["order"] in ("propagate", "materialise")
    assert record["reason"] == "cheaper by the estimate"
    assert record["propagate_seconds"] > 0
    assert record["materialise_seconds"] > 0
    cheaper = "propagate" if record["propagate_seconds"] <= record["materialise_seconds"] else "materialise"
    assert record["order"] == cheaper
    # 4 bytes for each of nodes x dimensions, for each pair of inputs and filter among the 5 runs.
    assert record["materialised_bytes"] == 4 * 40 * 12 * 5
    assert record["limit"] is None


def test_the_limit_that_decided_is_recorded() -> None:
    problem, labels = small_problem()
    runs = varied_runs(problem, labels)
    record = fit(problem, runs, Options(epochs=2, max_memory=10**9), device="cpu").record
    assert (record["max_memory"], record["chain"]["limit"]) == (10**9, 5 * 10**8)
    found = choose_order(problem, runs, width=16, epochs=500, limit=4 * 40 * 12 * 5 - 1).record()
    assert found["limit"] == found["materialised_bytes"] - 1
    assert found["reason"] == "the filtered inputs would not fit into the memory limit"


@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_product_and_its_gradient(compressed: bool) -> None:
    """Also on devices that have no compressed products."""
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(sp.random_array((9, 13), density=0.3, rng=rng, dtype=np.float32))
    ours = SparseMatrix.of(matrix, CPU, compressed)
    hidden = torch.randn(13, 2, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    gradient = torch.randn(9, 2, 3, generator=torch.Generator().manual_seed(1))
    dense = torch.from_numpy(matrix.toarray())
    out = product(ours, hidden)
    torch.testing.assert_close(out, torch.einsum("ij,jrw->irw", dense, hidden))
    out.backward(gradient)
    torch.testing.assert_close(hidden.grad, torch.einsum("ij,irw->jrw", dense, gradient))
    add, target = torch.ones(9, 4), torch.full((9, 4), float("nan"))
    flat = torch.randn(13, 4, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(ours.forward.multiply(flat, out=target), dense @ flat)
    torch.testing.assert_close(ours.forward.multiply(flat, add=add, scale=3.0), dense @ flat + 3)
    torch.testing.assert_close(ours.forward.multiply(flat, out=add, add=add), dense @ flat + 1)


def test_symmetric_matrices_are_stored_once() -> None:
    adjacency = adjacency_of(30, 60, np.random.default_rng(0))
    symmetric = SparseMatrix.of(adjacency, CPU)
    assert symmetric.forward is symmetric.backward
    lower = SparseMatrix.of(sp.csr_array(sp.tril(adjacency)), CPU)
    assert lower.forward is not lower.backward


def test_problems_that_do_not_fit_together_are_refused() -> None:
    problem, _ = small_problem()
    n = problem.nodes
    looped = sp.csr_array(problem.adjacency + sp.eye_array(n))
    other = sparse_inputs(n, 3, np.random.default_rng(0))
    for change, message in [
        ({"adjacency": looped}, "plain one without self-loops"),
        ({"shift": sp.csr_array((3, 3))}, f"the shift must be {n} x {n}"),
        ({"inputs": ()}, "at least one input matrix"),
        ({"inputs": (problem.inputs[0], other)}, "inputs 1 have the shape"),
        ({"classes": 0}, "classes must be >= 1, got 0"),
        ({"shift": problem.shift * np.nan}, "the shift must be finite"),
    ]:
        with pytest.raises(DataError, match=message):
            dataclasses.replace(problem, **change)
    with pytest.raises(DataError, match="inputs must be finite"):
        NodeInputs(deviations=np.array([[np.nan]], dtype=np.float32))
