from __future__ import annotations

import numpy as np
import pytest
import torch

from graphldp.learn.models.base import Parameter
from graphldp.learn.noise import DropoutNoise, initial_parameters

CPU = torch.device("cpu")


def masks(seeds: list[int], rates: list[float], epoch: int, nodes: int = 1000, width: int = 16) -> np.ndarray:
    noise = DropoutNoise(seeds, rates, CPU)
    noise.start(epoch)
    return noise(torch.ones(nodes, len(seeds), width)).numpy()


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.8, 0.999])
def test_units_are_dropped_with_the_rate_and_keep_their_mean(rate: float) -> None:
    drawn = masks([1], [rate], epoch=0, nodes=20_000)
    level = min(round(256 * rate), 255) / 256
    assert abs(level - rate) <= 1 / 256
    values = np.unique(drawn)
    np.testing.assert_allclose(values, [0, 1 / (1 - level)], rtol=1e-6)
    # Each of the 8 bytes of a word by itself: 40,000 draws each, 6 standard errors.
    flat = drawn[:, 0].reshape(-1, 8)
    for position in range(8):
        share = (flat[:, position] == 0).mean()
        assert abs(share - level) < 6 * np.sqrt(level * (1 - level) / len(flat)), position


def test_a_mask_depends_on_seed_and_epoch_alone() -> None:
    together = masks([5, 6, 7], [0.5, 0.25, 0.0], epoch=3)
    alone = masks([6], [0.25], epoch=3)
    np.testing.assert_array_equal(together[:, 1], alone[:, 0])
    assert (together[:, 2] == 1).all()
    others = [together[:, 0], together[:, 1], masks([6], [0.25], epoch=4)[:, 0], masks([5], [0.25], epoch=3)[:, 0]]
    assert len({(one > 0).tobytes() for one in others}) == 4


def test_masks_of_one_epoch_differ_and_repeat() -> None:
    noise = DropoutNoise([3], [0.5], CPU)
    drawn = []
    for _ in range(2):
        noise.start(8)
        drawn.append([noise(torch.ones(50, 1, 4)), noise(torch.ones(50, 1, 4))])
    assert not torch.equal(drawn[0][0], drawn[0][1])
    assert torch.equal(drawn[0][0], drawn[1][0])
    assert torch.equal(drawn[0][1], drawn[1][1])


def test_the_gradient_goes_through_the_same_mask() -> None:
    noise = DropoutNoise([3, 4], [0.5, 0.0], CPU)
    noise.start(0)
    hidden = torch.full((30, 2, 4), 3.0, requires_grad=True)
    out = noise(hidden)
    out.sum().backward()
    assert hidden.grad is not None
    torch.testing.assert_close(hidden.grad * 3, out.detach())


def test_without_dropout_nothing_is_drawn() -> None:
    noise = DropoutNoise([1, 2], [0.0, 0.001], CPU)
    noise.start(0)
    hidden = torch.ones(3, 2, 2)
    assert noise(hidden) is hidden


def test_initial_parameters_depend_on_the_seed_alone() -> None:
    shapes = {"a": Parameter((5, 4)), "b": Parameter((4, 5)), "zero": Parameter((3,), "zeros")}
    three, one = initial_parameters(shapes, [1, 2, 3]), initial_parameters(shapes, [2])
    for name, value in one.items():
        assert torch.equal(three[name][1], value[0])
    assert not torch.equal(three["a"][0], three["a"][1])
    assert not torch.equal(three["a"][0].flatten(), three["b"][0].flatten())
