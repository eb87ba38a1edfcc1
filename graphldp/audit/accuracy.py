"""Variance and bias of what the server makes of a report, by summing over the law."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphldp.audit.law import grid_inputs, moments
from graphldp.audit.subject import Subject

__all__ = ["accuracy"]

_VARIANCE_INPUTS = 21


def accuracy(subject: Subject) -> tuple[float, float, float]:
    """Return worst and mean variance and the largest bias of a coordinate's estimate, by summing over the law.

    Averaged over the levels' public distribution and over the features, where these differ.
    """
    device = subject.device
    inputs = grid_inputs(subject.pieces[0].bases[0], _VARIANCE_INPUTS)
    if subject.pieces[0].bases[0].deterministic:
        return 0.0, 0.0, 0.0
    weights = _piece_weights(subject)
    fill = getattr(device, "device", device).fill_value if device is not None else 0.0
    table: dict[Any, tuple[float, float]] = {}
    variances, biases = np.zeros(len(inputs)), np.zeros(len(inputs))
    for piece, weight in zip(subject.pieces, weights, strict=True):
        rectified = piece.m < len(piece.bases) and piece.bases[0].rectified
        for base, share in zip(piece.bases, piece.chances.tolist(), strict=True):
            scale = 1 / share if rectified and share > 0 else 1.0
            for place, x in enumerate(inputs):
                if (base, x) not in table:
                    found = moments(base, float(x))
                    table[base, x] = found.estimate_mean, found.estimate_variance
                mean, variance = table[base, x]
                centre = scale * share * (mean - fill)
                square = scale**2 * share * (variance + (mean - fill) ** 2)
                part = weight / len(piece.bases)
                variances[place] += part * (square - centre**2)
                biases[place] += part * (fill + centre - x)
    spacing = np.gradient(inputs)
    return float(variances.max()), float(np.average(variances, weights=spacing)), float(np.abs(biases).max())


def _piece_weights(subject: Subject) -> list[float]:
    if len(subject.pieces) == 1:
        return [1.0]
    from graphldp.client.levels import probabilities

    return [float(p) for p in probabilities(subject.device.distribution, len(subject.pieces))]
