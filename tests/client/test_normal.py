"""The normal distribution in numpy alone, against scipy's and against itself."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from graphldp.client.laws import normal


def test_quantiles_agree_with_scipy_in_the_centre_and_far_out() -> None:
    tail = np.concatenate([np.linspace(1e-4, 0.5, 5000), 10.0 ** np.linspace(-290, -4, 5000), [0.0749999, 0.0750001]])
    np.testing.assert_allclose(normal.upper_quantile(tail.copy()), -special.ndtri(tail), rtol=2e-14, atol=2e-16)
    assert normal.upper_quantile(np.array([0.5]))[0] == 0.0


def test_quantiles_keep_the_shape() -> None:
    assert normal.upper_quantile(np.full((2, 3), 0.1)).shape == (2, 3)
    assert normal.upper_quantile(np.array(0.1)).shape == ()


def test_the_distribution_function_is_accurate_in_its_lower_tail() -> None:
    x = np.linspace(-37, 8, 2001)
    np.testing.assert_allclose(normal.cdf(x), stats.norm.cdf(x), rtol=1e-12)


def test_logarithms_of_tails_do_not_underflow() -> None:
    for x in (-1e5, -500.0, -38.0, -30.001, -29.999, -5.0, -0.5, 0.0, 0.999, 1.001, 8.0, 30.0):
        np.testing.assert_allclose(normal.log_cdf(x), special.log_ndtr(x), rtol=1e-12)
