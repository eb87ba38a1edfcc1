"""FlexProp's node weights from levels and from the mechanisms' laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_graphs import adjacency

from graphldp.client import Reports, protocol
from graphldp.errors import DataError, OptionError
from graphldp.randomness import generator
from graphldp.server import Filtered, decode_levels, flexprop, kprop, node_weights, normalised, rectify

LEVELS = np.array([1, 3, 2, 1, 3, 3, 2, 1, 1, 2, 3, 1], dtype=np.int32)


def reports(name: str, epsilon: float = 0.5, **options: object) -> Reports:
    device = protocol(name, epsilon, 40, 0.0, 1.0, levels=3, **options)
    return device.perturb(np.full((12, 40), 0.5), generator(0, name), LEVELS)


def test_levels_are_decoded_before_they_weight() -> None:
    reported = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert decode_levels(reported, 5, offset=2).tolist() == [1, 1, 1, 2, 3, 4, 5, 5, 5]
    assert node_weights(reports("ppm-public"), "level").tolist() == LEVELS.tolist()
    assert node_weights(reports("ppm-public"), "none") is None


@pytest.mark.parametrize("name", ["ppm", "ppm-safe"])
def test_a_randomised_level_is_decoded_by_its_own_offset(name: str) -> None:
    sent = reports(name, epsilon=0.01)
    # At this budget b is 1 of 3 levels, so reports run from 1 to 5 and weights from 1 to 3.
    marked = replace(sent, level=np.array([1, 2, 3, 4, 5] * 2 + [1, 2], dtype=np.int32))
    assert node_weights(marked, "level").tolist() == [1, 1, 2, 3, 3] * 2 + [1, 1]


def test_variance_weights_are_the_laws_own_and_are_not_the_levels() -> None:
    sent = reports("ppm-public", epsilon=0.01)
    parts = [protocol("mb", 0.01 * 2**step, 40, 0.0, 1.0) for step in range(3)]
    expected = [1 / float(parts[level - 1].variance(0.5)) for level in LEVELS]
    ours = node_weights(sent, "variance")
    np.testing.assert_allclose(ours, expected)
    # At a small budget the variance falls with its square, so weighting by level is far from optimal.
    np.testing.assert_allclose(ours / ours[0], 4.0 ** (LEVELS - 1), rtol=1e-3)
    as_printed = node_weights(reports("ppm", epsilon=0.01), "variance")
    assert set(np.round(as_printed / as_printed.min())) <= {1, 4, 16}


def test_inverse_variance_beats_the_level_and_the_plain_mean_in_the_measured_error() -> None:
    rng = np.random.default_rng(0)
    matrix = adjacency("plain", 12)
    device = protocol("ppm-public", 0.1, 30, 0.0, 1.0, levels=3)
    x = rng.random((12, 30))
    totals = {"none": 0.0, "level": 0.0, "variance": 0.0}
    for trial in range(60):
        sent = device.perturb(x, generator(0, "trial", trial), LEVELS)
        one = rectify(sent)
        for weighting in totals:
            operator = normalised(matrix, convolution=0, weights=node_weights(sent, weighting))
            calibration = kprop(1, normalization="mean") if weighting == "none" else flexprop(1, weighting)
            gap = Filtered.of(one, calibration, operator).dense() - operator @ x
            totals[weighting] += float((gap**2).sum())
    assert totals["variance"] < 0.97 * totals["level"] < 0.95 * totals["none"]


@pytest.mark.parametrize(
    ("reported", "levels", "offset", "error", "words"),
    [
        ([0, 1], 3, 0, DataError, "outside 1..3"),
        ([1, 6], 3, 1, DataError, "outside 1..5"),
        ([1.5, 2.0], 3, 0, DataError, "whole number"),
        ([[1, 2]], 3, 0, DataError, "whole number"),
        ([1, 2], 0, 0, OptionError, "levels"),
        ([1, 2], 3, -1, OptionError, "offset"),
    ],
)
def test_levels_that_cannot_be_are_refused(
    reported: list, levels: int, offset: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        decode_levels(np.array(reported), levels, offset)


def test_what_cannot_be_weighted_is_refused() -> None:
    plain = protocol("mb", 1.0, 40).perturb(np.zeros((12, 40)), generator(0, "mb"))
    with pytest.raises(OptionError, match="mb reports no level"):
        node_weights(plain, "level")
    with pytest.raises(OptionError, match="weight by level"):
        node_weights(reports("ppm-safe"), "variance")
    with pytest.raises(OptionError, match="weighting must be one of"):
        node_weights(plain, "levels")
