"""One case class for each registered mechanism: its options in the tests, and its moments as the papers print them.

The printed forms are the oracles: written in e^epsilon as they stand, independent of the code under test, and used at
budgets at which they neither cancel nor overflow.
"""

from __future__ import annotations

from math import exp, log, sqrt, tanh
from typing import Any, ClassVar

import numpy as np

BUDGETS = (1e-6, 0.01, 1.0, 10.0, 100.0, 500.0)


class Case:
    """What the tests need to know of a mechanism beyond its registration."""

    name: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    budgets: ClassVar[tuple[float, ...]] = BUDGETS
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    tight: ClassVar[bool] = True  # the exact loss equals epsilon at moderate budgets
    wrong: ClassVar[float] = 1.5  # the fit must reject the law of this many times the budget
    power_at: ClassVar[float] = 1.0  # at this budget
    plain_inputs: ClassVar[bool] = True  # any value of the range may be tested

    @staticmethod
    def mean(z: np.ndarray, epsilon: float) -> np.ndarray | None:
        """Return the printed mean of the unit report, None where nothing is printed."""
        return None

    @staticmethod
    def variance(z: np.ndarray, epsilon: float) -> np.ndarray | None:
        """Return the printed variance of the unit report, None where nothing is printed."""
        return None


class MultiBit(Case):
    name = "mb"
    mean = staticmethod(lambda z, e: z * tanh(e / 2))
    variance = staticmethod(lambda z, e: 1 - z**2 * tanh(e / 2) ** 2)


class OneBit(MultiBit):
    name = "1b"


class Duchi(Case):
    name = "duchi"
    mean = staticmethod(lambda z, e: z)
    variance = staticmethod(lambda z, e: ((exp(e) + 1) / (exp(e) - 1)) ** 2 - z**2)


class Piecewise(Case):
    name = "pm"
    mean = staticmethod(lambda z, e: z)
    variance = staticmethod(lambda z, e: z**2 / (exp(e / 2) - 1) + (exp(e / 2) + 3) / (3 * (exp(e / 2) - 1) ** 2))


class PiecewiseSub(Case):
    name = "pm-sub"
    mean = staticmethod(lambda z, e: z)

    @staticmethod
    def variance(z, epsilon):
        e, s = exp(epsilon), exp(epsilon / 3)
        return z**2 * (s + 1) / (e - 1) + (s + e) * ((s + 1) ** 3 + e - 1) / (3 * s**2 * (e - 1) ** 2)


class SquareWave(Case):
    name = "sw"

    @staticmethod
    def b(epsilon):
        e = exp(epsilon)
        return (epsilon * e - e + 1) / (e * (e - epsilon - 1))

    @classmethod
    def mean(cls, z, epsilon):
        b, e = cls.b(epsilon), exp(epsilon)
        return z * b * (e - 1) / (b * e + 1)

    @classmethod
    def variance(cls, z, epsilon):
        b, e = cls.b(epsilon), exp(epsilon)
        c = b * (e - 1) / (b * e + 1)
        return (b**3 * e + 3 * b**2 + 3 * b + 1) / (3 * (b * e + 1)) + (c - c**2) * z**2


class HighDimensionalSquareWave(SquareWave):
    name = "hds"


class RectifiedSquareWave(SquareWave):
    name = "hds-rectified"


class Hybrid(Case):
    name = "hm"
    mean = staticmethod(lambda z, e: z)

    @staticmethod
    def variance(z, epsilon):
        e, s = exp(epsilon), exp(epsilon / 2)
        if epsilon <= 0.609353:
            return Duchi.variance(z, epsilon)
        return (s + 3) / (3 * s * (s - 1)) + (e + 1) ** 2 / (s * (e - 1) ** 2) + 0 * z


class ThreeOutputs(Case):
    name = "to"
    mean = staticmethod(lambda z, e: z)

    @staticmethod
    def zero(epsilon):
        """Return a as printed: the root of a cubic, in e = exp(epsilon)."""
        e = exp(epsilon)
        if e <= 2:
            return 0.0
        if e >= 5.53:
            return e / (e + 2)
        d0 = e**4 + 14 * e**3 + 50 * e**2 - 2 * e + 25
        d1 = -2 * e**6 - 42 * e**5 - 270 * e**4 - 404 * e**3 - 918 * e**2 + 30 * e - 250
        angle = np.pi / 3 + np.arccos(-d1 / (2 * d0**1.5)) / 3
        return -(-(e**2) - 4 * e - 5 + 2 * sqrt(d0) * np.cos(angle)) / 6

    @classmethod
    def variance(cls, z, epsilon):
        e, a = exp(epsilon), cls.zero(epsilon)
        size = e * (e + 1) / ((e - 1) * (e - a))
        return size**2 * (1 - a + a * (e - 1) / e * np.abs(z)) - z**2


class Laplace(Case):
    name = "lp"
    mean = staticmethod(lambda z, e: z)
    variance = staticmethod(lambda z, e: 8 / e**2 + 0 * z)


class ClassicalGaussian(Case):
    name = "gm"
    options: ClassVar[dict[str, Any]] = {"delta": 1e-6}
    budgets = (1e-6, 0.01, 1.0, 5.0)
    tight = False
    mean = staticmethod(lambda z, e: z)
    variance = staticmethod(lambda z, e: (2 * sqrt(2 * log(1.25 / 1e-6)) / e) ** 2 + 0 * z)


class AnalyticGaussian(Case):
    name = "ag"
    options: ClassVar[dict[str, Any]] = {"delta": 1e-6}
    tight = False  # to 1e-8 only: the noise is rounded up
    mean = staticmethod(lambda z, e: z)


class Condensed(Case):
    name = "cldp"
    options: ClassVar[dict[str, Any]] = {"bins": 6}

    @staticmethod
    def mean(z, epsilon):
        v = np.rint((z + 1) / 2 * 5)
        y = np.arange(6)
        mass = np.exp(-epsilon / 5 * np.abs(v[..., None] - y))
        return (mass * (y + 1)).sum(-1) / mass.sum(-1)


class OptimizedMultipleEncoding(Case):
    name = "ome"
    options: ClassVar[dict[str, Any]] = {"bits": 5}
    tight = False
    wrong = 2.0
    power_at = 4.0


class Latent(OptimizedMultipleEncoding):
    name = "latent"


class ExtendedSquareWave(Case):
    name = "esw"
    range = (1.0, 5.0)
    plain_inputs = False


class RandomisedResponse(Case):
    name = "krr"
    range = (0.0, 4.0)
    plain_inputs = False


class Identity(Case):
    name = "identity"
    budgets = (np.inf,)


class Null(Case):
    name = "null"
    budgets = (0.0,)
    tight = False
    mean = staticmethod(lambda z, e: 0 * z)
    variance = staticmethod(lambda z, e: 1 + 0 * z)


class MultiDimensional(Case):
    name = "mlr"
    options: ClassVar[dict[str, Any]] = {"base": "lp"}


class FeatureRR(Case):
    name = "featurerr"
    options: ClassVar[dict[str, Any]] = {"bins": 4}


class PersonalisedPerturbation(Case):
    name = "ppm"


class PublicLevels(Case):
    name = "ppm-public"


class PersonalisedLDP(Case):
    name = "pldp"


class SafePersonalised(Case):
    name = "ppm-safe"


class Subset(Case):
    """A mechanism for sets: its input is two-valued, and its exact loss is that of the padded set."""

    name = "subset"
    plain_inputs = False
    options: ClassVar[dict[str, Any]] = {"pad": 3}


class UnaryEncoding(Subset):
    name = "oue"


class LocalHashing(Subset):
    name = "olh"


class PrivSet(Subset):
    name = "privset"


def _found(cls: type[Case]) -> list[type[Case]]:
    return [found for child in cls.__subclasses__() for found in (child, *_found(child))]


CASES = {case.name: case for case in _found(Case)}
