"""The scalar randomiser: one value in, one report out, with its exact output law.

A mechanism's file states its law once. Everything else is derived from the law: the sampler is tested against it, the
privacy loss is computed from it, the server inverts its mean, the best number of sampled dimensions minimises its
variance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import OptionError, unknown_name
from graphldp.randomness import UniformSource

__all__ = ["Claim", "Randomiser", "lookup", "names", "register", "uniform"]

Floats: TypeAlias = NDArray[np.float64]
_LOSS_INPUTS = 41  # grid points of the input range over which the loss is maximised; the ends are among them


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a mechanism promises, to whom, and under which assumptions.

    Attributes:
        epsilon: the privacy loss that no pair of neighbouring records exceeds.
        delta: the probability mass that may exceed it; 0 for pure local differential privacy.
        unit: what one record is.
        neighbours: which two records must be hard to tell apart.
        unprotected: what the report does not hide.
        arithmetic: the arithmetic for which the claim holds.
        outside: what happens to values outside the declared range.
    """

    epsilon: float
    delta: float = 0.0
    unit: str = "one node's whole feature vector"
    neighbours: str = "any two feature vectors"
    unprotected: str = "edges, labels, the number of nodes"
    arithmetic: str = "float64 probabilities"
    outside: str = "values are clamped to [low, high] first; NaN is refused"


def uniform(source: UniformSource, shape: int | tuple[int, ...]) -> Floats:
    """Return uniform numbers in (0, 1) that are also uniform in their small tail.

    A plain 53-bit draw below 2^-12 is replaced by a finer one, again and again, so that an event of probability
    e^-50 happens with that probability and not never, nor at 2^-53. How often this happens depends on no input.
    """
    draws = np.asarray(source.random(shape))
    flat = draws.reshape(-1)
    small = np.flatnonzero(flat < 2.0**-12)
    scale = 2.0**-12
    while small.size:
        flat[small] = scale * source.random(small.size)
        small = small[flat[small] < scale * 2.0**-12]
        scale *= 2.0**-12
        if scale < 1e-290:
            flat[small] = scale
            break
    return draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomiser(ABC):
    """A local randomiser of one value in [low, high].

    Subclasses state the law of the report for the unit value z = 2(x-low)/(high-low) - 1 in [-1, 1]. `finite` says
    whether the law is a probability mass on a few outputs or a density. `scaled` says whether reports live on the
    data's scale (they are mapped back from [-1, 1]) or are bare symbols such as a sign.
    """

    epsilon: float
    low: float = -1.0
    high: float = 1.0

    name: ClassVar[str]
    finite: ClassVar[bool]
    scaled: ClassVar[bool] = True
    every_dimension: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.float32

    def __post_init__(self) -> None:
        self._check_epsilon()
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise OptionError(f"{self.name}: needs finite low < high, got low {self.low} and high {self.high}")

    def _check_epsilon(self) -> None:
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float | np.floating | np.integer):
            raise OptionError(f"{self.name}: epsilon must be a number, got {self.epsilon!r}")
        if not 0 < self.epsilon < math.inf:
            raise OptionError(
                f"{self.name}: epsilon must be finite and > 0, got {self.epsilon}; to send nothing about the data use "
                "mechanism 'null' (epsilon 0), to send the data itself 'identity' (epsilon inf)"
            )

    # The law, on the unit scale -------------------------------------------------------------------------------

    @abstractmethod
    def _log_law(self, y: Floats, z: Floats) -> Floats:
        """Return the log of the pmf or pdf of the unit report y given the unit value z."""

    @abstractmethod
    def _support(self, z: Floats) -> Floats:
        """Return the outputs (finite) or the two ends of the support (density), along a new last axis."""

    @abstractmethod
    def _breaks(self, z: Floats) -> Floats:
        """Return the unit reports between which the law is smooth, along a new last axis."""

    @abstractmethod
    def _mean(self, z: Floats) -> Floats:
        """Return the mean of the unit report; affine in z."""

    @abstractmethod
    def _variance(self, z: Floats) -> Floats:
        """Return the variance of the unit report."""

    @abstractmethod
    def _invert(self, z: Floats, u: Floats) -> Floats:
        """Return the unit report that the uniform number u in (0, 1) selects."""

    # The law, on the data's scale -----------------------------------------------------------------------------

    @property
    def _half(self) -> float:
        return (self.high - self.low) / 2

    @property
    def _scale(self) -> float:
        return self._half if self.scaled else 1.0

    @property
    def _shift(self) -> float:
        return (self.low + self.high) / 2 if self.scaled else 0.0

    def _unit(self, x: ArrayLike) -> Floats:
        values = np.asarray(x, dtype=np.float64)
        z = (np.clip(values, self.low, self.high) - self.low) / self._half - 1.0
        return np.asarray(np.clip(z, -1.0, 1.0))

    def sample(self, x: ArrayLike, rng: UniformSource) -> NDArray[Any]:
        """Return one report for each value, drawn from the law."""
        return self.invert(x, uniform(rng, np.shape(x)))

    def invert(self, x: ArrayLike, u: ArrayLike) -> NDArray[Any]:
        """Return the report that the uniform number u in (0, 1) selects for the value x.

        Over u uniform on (0, 1) the result follows the law; it need not be increasing in u.
        """
        y = self._invert(self._unit(x), np.asarray(u, dtype=np.float64))
        return np.asarray(self._shift + self._scale * y).astype(self.dtype)

    def support(self, x: ArrayLike = 0.0) -> Floats:
        """Return the possible reports (finite laws) or the ends of their interval, along a new last axis."""
        return self._shift + self._scale * self._support(self._unit(x))

    def log_law(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the log of `pmf` or `pdf`, exact where those underflow."""
        unit = (np.asarray(y, dtype=np.float64) - self._shift) / self._scale
        with np.errstate(divide="ignore"):
            out = self._log_law(*np.broadcast_arrays(unit, self._unit(x)))
        return np.asarray(out) if self.finite else np.asarray(out) - math.log(self._scale)

    def pmf(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the probability of the report y given the value x."""
        if not self.finite:
            raise OptionError(f"{self.name} has a density: use pdf(y, x)")
        return np.exp(self.log_law(y, x))

    def pdf(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the density of the report y given the value x."""
        if self.finite:
            raise OptionError(f"{self.name} has finitely many outputs: use pmf(y, x)")
        return np.exp(self.log_law(y, x))

    def mean(self, x: ArrayLike) -> Floats:
        """Return the mean of the report given the value x (before any rectification)."""
        return self._shift + self._scale * self._mean(self._unit(x))

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of the report given the value x (before any rectification)."""
        return self._scale**2 * self._variance(self._unit(x))

    def privacy_loss(self) -> float:
        """Return the largest log ratio of the law over pairs of inputs and all outputs, computed from the law.

        Inputs are a grid of the range with both ends; outputs are all of them (finite), or the breaks of all those
        inputs and the middles between them: where a density is smooth, its ratio is largest at one of these.
        """
        z = np.linspace(-1.0, 1.0, _LOSS_INPUTS)
        if self.finite:
            outputs = np.unique(self._support(z))
        else:
            edges = np.unique(np.concatenate([self._breaks(z).reshape(-1), self._support(z).reshape(-1)]))
            edges = edges[np.isfinite(edges)]
            # The breaks themselves too: at a large budget a window is narrower than the grid of float64.
            outputs = np.unique(np.concatenate([edges, (edges[:-1] + edges[1:]) / 2]))
        with np.errstate(divide="ignore"):
            logs = self._log_law(*np.broadcast_arrays(outputs[None, :], z[:, None]))
        reached = logs.max(axis=0)
        return float(np.max(np.where(np.isfinite(reached), reached - logs.min(axis=0), 0.0)))

    # What the server derives from the law ---------------------------------------------------------------------

    def estimate(self, report: ArrayLike) -> Floats:
        """Return the unbiased estimate of the value: the inverse of the mean's line, applied to the report."""
        at_low, at_high = (float(v) for v in self.mean(np.array([self.low, self.high])))
        values = np.asarray(report, dtype=np.float64)
        return self.low + (self.high - self.low) * ((values - at_low) / (at_high - at_low))

    def estimate_variance(self, x: ArrayLike) -> Floats:
        """Return the variance of `estimate` of the report given the value x."""
        at_low, at_high = (float(v) for v in self.mean(np.array([self.low, self.high])))
        return self.variance(x) * ((self.high - self.low) / (at_high - at_low)) ** 2

    def options(self) -> dict[str, Any]:
        """Return the options beyond epsilon and the range, as JSON-able values."""
        shared = {field.name for field in fields(Randomiser)}
        return {key: value for key, value in asdict(self).items() if key not in shared}


_REGISTRY: dict[str, type[Randomiser]] = {}
R = TypeVar("R", bound=type[Randomiser])


def register(name: str) -> Callable[[R], R]:
    """Register a scalar randomiser under a literal name."""

    def add(cls: R) -> R:
        if name in _REGISTRY:
            raise ValueError(f"mechanism {name!r} is registered twice: {_REGISTRY[name].__name__} and {cls.__name__}")
        cls.name = name
        _REGISTRY[name] = cls
        return cls

    return add


def names() -> list[str]:
    """Return the registered mechanisms' names, sorted."""
    return sorted(_REGISTRY)


def lookup(name: str) -> type[Randomiser]:
    """Return the class registered under a name; an unknown name is an error that lists the valid ones."""
    if name not in _REGISTRY:
        raise unknown_name("mechanism", name, _REGISTRY)
    return _REGISTRY[name]


def build(name: str, epsilon: float, low: float, high: float, options: Mapping[str, Any]) -> Randomiser:
    """Return the randomiser of that name; an option that it does not have is an error that lists those it has."""
    cls = lookup(name)
    shared = {field.name for field in fields(Randomiser)}
    own = [field.name for field in fields(cls) if field.name not in shared]
    for key in options:
        if key not in own:
            raise OptionError(f"{name} has no option {key!r}; it has: {', '.join(own) or 'none'}")
    return cls(epsilon=epsilon, low=low, high=high, **options)
