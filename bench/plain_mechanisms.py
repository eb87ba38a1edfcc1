"""The plain dense way of perturbing a feature matrix: what published code does, in torch, in our own words.

Every step makes an n x d matrix: the features, random numbers whose m largest choose the dimensions, the mask, the
probabilities or densities of all features, their draws, and the masked result.
"""

from __future__ import annotations

import math

import torch


def chosen(x: torch.Tensor, m: int) -> torch.Tensor:
    top = torch.rand_like(x).topk(m, dim=1).indices
    return torch.zeros_like(x, dtype=torch.bool).scatter(1, top, True)


def multi_bit(x: torch.Tensor, epsilon: float, m: int) -> torch.Tensor:
    mask = chosen(x, m)
    e = math.exp(epsilon / m)
    sign = 2 * torch.bernoulli((x * (e - 1) + 1) / (e + 1)) - 1
    return mask * sign


def piecewise(x: torch.Tensor, epsilon: float, m: int) -> torch.Tensor:
    mask = chosen(x, m)
    s = math.exp(epsilon / m / 2)
    reach = (s + 1) / (s - 1)
    z = 2 * x - 1
    left = (reach + 1) / 2 * z - (reach - 1) / 2
    right = left + reach - 1
    inside = torch.rand_like(x) < s / (s + 1)
    near = left + torch.rand_like(x) * (right - left)
    far = torch.rand_like(x) * (reach + 1) - reach
    far = torch.where(far < left, far, far + (right - left))
    y = torch.where(inside, near, far)
    return mask * (y + 1) / 2


MECHANISMS = {"mb": multi_bit, "pm": piecewise}
