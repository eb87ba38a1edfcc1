from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from learn_factory import make_run, small_problem

from graphldp.errors import OptionError
from graphldp.learn import Options, fit, model, resolve_device
from graphldp.learn.waves import estimate_memory, waves


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
        backbone = model(name, **options)
        sizes = [
            estimate_memory(problem, runs, width=16, parameters=1000, materialised=False, model=one)
            for one in (None, backbone)
        ]
        return sizes[1] - sizes[0]

    assert more("gat", heads=4) == 3 * 4 * edges * (4 + 1)
    assert more("gat", heads=2, layers=3, output_heads=3) == 3 * 4 * edges * (2 + 2 + 3)
    assert more("gat", heads=4, attention_dropout=True) > 2 * more("gat", heads=4)
    assert [more(name) for name in ("gcn", "sage", "gin", "sgc")] == [0, 0, 0, 0]


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
