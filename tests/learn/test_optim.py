from __future__ import annotations

import numpy as np
import torch

from graphldp.learn.optim import Adam

CPU = torch.device("cpu")


def test_each_run_equals_torch_adam() -> None:
    rates, decays = [0.1, 0.01, 0.003, 0.01], [0.0, 0.1, 0.01, 0.0]
    generator = torch.Generator().manual_seed(0)
    ours = {"weight": torch.randn(4, 6, 5, generator=generator), "bias": torch.randn(4, 5, generator=generator)}
    theirs = [{name: value[r].clone().requires_grad_() for name, value in ours.items()} for r in range(4)]
    optimizers = [
        torch.optim.Adam(list(one.values()), lr=rate, weight_decay=decay)
        for one, rate, decay in zip(theirs, rates, decays, strict=True)
    ]
    adam, (first, second) = Adam(rates, decays, CPU), Adam.moments(ours)
    for step in range(1, 51):
        gradients = {name: torch.randn(value.shape, generator=generator) for name, value in ours.items()}
        # Gradients over many magnitudes: the smallest make the epsilon in the denominator count.
        gradients["weight"] *= torch.logspace(-9, 2, 5)
        adam.step(step, ours, gradients, first, second)
        for r, (one, optimizer) in enumerate(zip(theirs, optimizers, strict=True)):
            for name, value in one.items():
                value.grad = gradients[name][r].clone()
            optimizer.step()
        for r, one in enumerate(theirs):
            for name, value in one.items():
                np.testing.assert_allclose(ours[name][r].numpy(), value.detach().numpy(), rtol=2e-4, atol=2e-5)


def test_a_gradient_of_zero_moves_nothing() -> None:
    values = {"weight": torch.ones(2, 3)}
    adam, (first, second) = Adam([0.1, 0.1], [0.0, 0.0], CPU), Adam.moments(values)
    for step in range(1, 4):
        adam.step(step, values, {"weight": torch.zeros(2, 3)}, first, second)
    assert torch.equal(values["weight"], torch.ones(2, 3))
