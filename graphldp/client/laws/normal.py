"""The normal distribution in numpy alone: accurate tails, logarithms of tails, quantiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["cdf", "log_cdf", "upper_quantile"]

_erfc = np.frompyfunc(math.erfc, 1, 1)

# Rational approximations of the normal quantile with relative error about 1e-16: Wichura, Algorithm AS 241, PPND16
# (Applied Statistics 37, 1988). Highest power first.
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_MIDDLE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P[N <= x], with relative accuracy in the lower tail."""
    return np.asarray(_erfc(-np.asarray(x) / math.sqrt(2)), dtype=np.float64) / 2


def log_cdf(x: float) -> float:
    """Return log P[N <= x], also where that probability underflows."""
    if x > -30:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2) if x < 1 else math.log1p(-math.erfc(x / math.sqrt(2)) / 2)
    # The asymptotic series 1 - 1/x^2 + 3/x^4 - ...; its terms shrink below 1e-16 long before they grow.
    square = x * x
    term, total = 1.0, 1.0
    for k in range(1, 20):
        term *= -(2 * k - 1) / square
        total += term
    return -square / 2 - math.log(-x) - math.log(2 * math.pi) / 2 + math.log(total)


def upper_quantile(tail: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the x >= 0 with P[N > x] = tail, for tails in (0, 1/2]."""
    shape = tail.shape
    tail = tail.reshape(-1)
    q = 0.5 - tail
    r = np.multiply(q, q)
    np.subtract(0.180625, r, out=r)
    out = _ratio(_CENTRE, r)
    out *= q
    rare = np.flatnonzero(tail < 0.075)
    if rare.size:
        r = np.sqrt(-np.log(np.maximum(tail[rare], 1e-300)))
        value = _ratio(_MIDDLE, r - 1.6)
        far = np.flatnonzero(r > 5)
        if far.size:
            value[far] = _ratio(_FAR, r[far] - 5)
        out[rare] = value
    return np.maximum(out, 0.0, out=out).reshape(shape)


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: NDArray[np.float64]) -> NDArray[np.float64]:
    top, bottom = (_horner(part, r) for part in coefficients)
    top /= bottom
    return top


def _horner(coefficients: tuple[float, ...], r: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.full_like(r, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= r
        out += coefficient
    return out
