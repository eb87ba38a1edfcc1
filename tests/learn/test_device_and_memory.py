from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from learn_factory import make_run, small_problem

from graphldp.errors import OptionError
from graphldp.learn import NodeInputs, Options, fit, model, resolve_device
from graphldp.learn.engine import Trainer
from graphldp.learn.memory import estimate_memory, waves
from graphldp.learn.state import fingerprint


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto") == torch.device("cpu")
    assert resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(OptionError, match="device 'cuda' is not available"):
        resolve_device("cuda")
    with pytest.raises(OptionError, match="device 'mps' is not available"):
        resolve_device("mps")
    with pytest.raises(OptionError, match="device must be one of auto, cpu, cuda, mps, got 'tpu'"):
        resolve_device("tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == torch.device("cuda")


def test_waves_keep_the_order_and_the_limit() -> None:
    def estimate(some: list[int]) -> int:
        return 5 + 10 * len(some)

    assert waves(range(5), estimate, None) == [[0, 1, 2, 3, 4]]
    assert waves([3, 1, 4, 0, 2], estimate, 25) == [[3, 1], [4, 0], [2]]
    assert waves(range(3), estimate, 15) == [[0], [1], [2]]
    with pytest.raises(OptionError, match=r"raise it to 15 or more \(0.001 GB\)"):
        waves(range(3), estimate, 14)


def test_the_estimate_grows_with_runs_and_with_filtered_inputs() -> None:
    problem, labels = small_problem()
    runs = [make_run(problem, labels, seed) for seed in range(4)]

    def estimate(count: int, materialised: bool = False) -> int:
        return estimate_memory(problem, runs[:count], width=16, parameters=1000, materialised=materialised)

    assert estimate(2) - estimate(1) == estimate(3) - estimate(2) > 4 * 8 * 1000
    # Two inputs, one filter.
    assert estimate(4, True) - estimate(3, True) == estimate(3, True) - estimate(2, True)
    assert estimate(2, True) - estimate(1, True) > estimate(3, True) - estimate(2, True)


def test_attention_is_counted_edge_by_edge() -> None:
    """GAT keeps a share for each edge, head and run; with as few nodes the other backbones keep nothing more."""
    problem, labels = small_problem()
    edges = problem.adjacency.nnz + problem.nodes
    runs = [make_run(problem, labels, seed) for seed in range(3)]

    def more(name: str, **options: object) -> int:
        """Return what is counted for each run's edges, beside what is needed for all of them together."""
        backbone = model(name, **options)
        assert not backbone.deeper()
        sizes = [
            estimate_memory(problem, some, width=16, parameters=1000, materialised=False, model=one)
            for some in (runs[:2], runs)
            for one in (None, backbone)
        ]
        together = [backbone.working_memory(edges, problem.classes, count) for count in (2, 3)]
        return (sizes[3] - sizes[2] - together[1]) - (sizes[1] - sizes[0] - together[0])

    assert more("gat", heads=4) == 4 * edges * (4 + 1)
    assert more("gat", heads=2, output_heads=3) == 4 * edges * (2 + 3)
    assert more("gat", heads=4, attention_dropout=True) == 3 * more("gat", heads=4)
    assert [more("gcn"), more("sage"), more("gin", mlp_layers=1), more("sgc")] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "shallow", "deep"),
    [
        ("gcn", {"layers": 2}, {"layers": 6}),
        ("sage", {"layers": 2}, {"layers": 6}),
        ("gat", {"layers": 2}, {"layers": 6}),
        ("gin", {"layers": 2}, {"layers": 6}),
        ("gin", {"mlp_layers": 1}, {"mlp_layers": 4}),
        ("appnp", {"layers": 2}, {"layers": 6}),
        ("mlp", {"layers": 2}, {"layers": 6}),
    ],
)
def test_what_further_layers_keep_is_counted(name: str, shallow: dict[str, int], deep: dict[str, int]) -> None:
    """Against what autograd says that an update keeps; the gradients themselves come on top of it."""
    problem, labels = small_problem(nodes=300)
    runs = [make_run(problem, labels, seed, dropout=0.5) for seed in range(2)]
    kept, counted = [], []
    for options in (shallow, deep):
        trainer = Trainer(problem, runs, Options(model=model(name, **options)), torch.device("cpu"))
        batch, parameters = trainer.batch([0, 1]), trainer.initial([0, 1])
        for value in parameters.values():
            value.requires_grad_()
        found: dict[int, int] = {}

        def pack(tensor: torch.Tensor, found: dict[int, int] = found) -> torch.Tensor:
            found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        batch.noise.start(0)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            outputs = trainer.model.head(parameters, batch, trainer.model.trunk(parameters, batch), batch.noise)
        assert outputs.requires_grad
        kept.append(sum(found.values()))
        counted.append(trainer._estimate([0, 1]))
    assert kept[1] - kept[0] < counted[1] - counted[0] < 8 * (kept[1] - kept[0])


def test_telling_trainings_apart_copies_no_inputs() -> None:
    problem, labels = small_problem(nodes=200, dimensions=2000)
    problem = replace(problem, inputs=(NodeInputs(deviations=np.ones((200, 2000), dtype=np.float32)),))
    run = make_run(problem, labels, 0)
    tracemalloc.start()
    try:
        fingerprint(problem, [run], Options())
        assert tracemalloc.get_traced_memory()[1] < 4 * 200 * 2000 / 2
    finally:
        tracemalloc.stop()


def test_gat_in_waves_equals_one_batch() -> None:
    """The limit lets all runs train at once but for their shares of attention."""
    problem, labels = small_problem()
    runs = [make_run(problem, labels, seed, dropout=0.25) for seed in range(6)]
    backbone = model("gat", hidden=2, heads=8)
    size = sum(math.prod(one.shape) for one in backbone.parameters(problem.dimensions, problem.classes).values())
    plain = estimate_memory(problem, runs, width=16, parameters=size, materialised=False)
    whole = fit(problem, runs, Options(model=backbone, epochs=12), device="cpu")
    split = fit(problem, runs, Options(model=backbone, epochs=12, max_memory=plain), device="cpu")
    assert whole.record["waves"] == [6]
    assert len(split.record["waves"]) > 1
    np.testing.assert_array_equal(whole.best_epoch, split.best_epoch)
    np.testing.assert_allclose(whole.validation_loss, split.validation_loss, rtol=1e-4)
    np.testing.assert_array_equal(whole.predictions, split.predictions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
        ({"patience": 0}, "patience must be >= 1"),
        ({"order": "fastest"}, "order must be one of auto, propagate, materialise, got 'fastest'"),
        ({"max_memory": 0}, "max_memory must be >= 1 byte, got 0"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Options(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be finite and > 0, got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be finite and > 0, got nan"),
        ({"weight_decay": -1.0}, "weight_decay must be finite and >= 0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"coefficients": ()}, "filter coefficients must be one or more finite numbers"),
        ({"coefficients": (float("inf"),)}, "filter coefficients must be one or more finite numbers"),
    ],
)
def test_runs_are_checked(options: dict[str, object], message: str) -> None:
    problem, labels = small_problem()
    with pytest.raises(OptionError, match=message):
        make_run(problem, labels, 0, **options)


def test_what_waiting_runs_keep_is_counted() -> None:
    """Each run's best parameters and predictions stay until the end, whichever wave is in training."""
    problem, labels = small_problem()
    runs = [make_run(problem, labels, seed) for seed in range(50)]
    options = Options(model=model("gcn"))
    few, many = (Trainer(problem, runs[:count], options, torch.device("cpu")) for count in (2, 50))
    kept = 4 * few._numbers() + 4 * problem.nodes
    assert many._estimate([0, 1]) == few._estimate([0, 1]) + 48 * kept
