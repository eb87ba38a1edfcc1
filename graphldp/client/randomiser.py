"""The scalar randomiser: one value in, one report out, with its exact output law.

A mechanism's file states its law once. Everything else is derived from the law: the sampler is tested against it, the
privacy loss is computed from it, the server inverts its mean, the best number of sampled dimensions minimises its
variance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.draws import uniform
from graphldp.client.registry import lookup, option_values, own_options
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = [
    "HIGHEST",
    "LOWEST",
    "Floats",
    "Randomiser",
    "build",
    "check_budget",
    "check_number",
    "check_range",
    "plain",
    "settled",
    "uniform",
]

Floats: TypeAlias = NDArray[np.float64]
LOSS_INPUTS = 41  # grid points of the input range over which the loss is maximised; the ends are among them
# The budgets, of a whole report and of each reported value, that float64 can keep. A probability near 1/2 is known to
# 1e-16, about a hundred-thousandth of the lowest budget; at the highest the rarest report has e^-540, which `uniform`
# can still draw.
LOWEST, HIGHEST = 1e-10, 500.0
_RESOLVED = 2**14  # float32 numbers that a range must have
_FARTHEST = 1e20  # the reports of the smallest budgets go 1e17 times as far
_ROUNDING = 4e-15  # the error of a loss, which is a difference of logarithms; and that relative to it


def plain(value: Any) -> Any:
    """Return Python's number for numpy's, so that no arithmetic is done in fewer bits than float64 has."""
    if isinstance(value, np.floating):
        return float(value)
    return value.item() if isinstance(value, np.integer | np.bool_) else value


def check_number(name: str, option: str, value: Any) -> float:
    """Return a real number as float64 holds it; anything else is refused (a bool is none)."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        raise OptionError(f"{name}: {option} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise OptionError(f"{name}: {option} must be a number that float64 can hold, got a larger one") from None


def check_budget(name: str, epsilon: Any) -> float:
    """Return the budget as float64 holds it; one that float64 probabilities cannot keep is refused."""
    budget = check_number(name, "epsilon", epsilon)
    if not 0 < budget < math.inf:
        raise OptionError(
            f"{name}: epsilon must be finite and > 0, got {budget}; to send nothing about the data use "
            "mechanism 'null' (epsilon 0), to send the data itself 'identity' (epsilon inf)"
        )
    if budget < LOWEST:
        raise OptionError(
            f"{name}: epsilon must be at least {LOWEST:g} for each reported value, got {budget:g}: float64 cannot keep "
            "a smaller one; spend more, report fewer dimensions, or use mechanism 'null' (epsilon 0)"
        )
    if budget > HIGHEST:
        raise OptionError(
            f"{name}: epsilon must be at most {HIGHEST:g}, got {budget:g}: the rarest report would never be drawn in "
            "float64, and the loss be infinite; spend less, or use mechanism 'identity' (epsilon inf)"
        )
    return budget


def check_range(name: str, low: float, high: float) -> None:
    """Refuse a range that is none, and one of which float32, in which reports and estimates are, tells too few values.

    What float32 moves is then less than a 2^-15th of the range, far below any noise, and no report overflows.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise OptionError(f"{name}: needs finite low < high, got low {low} and high {high}")
    farthest = max(abs(low), abs(high))
    if farthest > _FARTHEST:
        raise OptionError(
            f"{name}: the range {low} to {high} goes beyond {_FARTHEST:g}, where noisy reports leave float32; map your "
            "values to [0, 1]"
        )
    count = (high - low) / float(np.spacing(np.float32(farthest)))
    if count < _RESOLVED:
        raise OptionError(
            f"{name}: the range {low} to {high} has only {max(1, int(count))} float32 numbers, in which reports are "
            "sent; shift your values to [0, 1]"
        )


def settled(loss: float, epsilon: float) -> float:
    """Return a loss that was computed from a law; one that exceeds the budget by rounding alone is the budget."""
    return epsilon if epsilon < loss <= epsilon + _ROUNDING * (1 + epsilon) else loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Randomiser(ABC):
    """A local randomiser of one value in [low, high].

    Subclasses state the law of the report for the unit value z = 2(x-low)/(high-low) - 1 in [-1, 1].

    Class attributes:
        kind: `scalar`; `level` for a randomiser of privacy levels, `label` for one of labels.
        finite: the law is a probability mass on a few outputs; otherwise a density, rounded to a grid.
        scaled: reports live on the data's scale (mapped back from [-1, 1]); otherwise they are bare symbols.
        every_dimension: the vector form reports all d dimensions with a share of the budget each, not m of them.
        deterministic: the report is the value itself.
        unbiased: the mean of `estimate` is the value.
        rectified: a server divides by the probability of being sampled; otherwise it takes reports as they are.
        own_budget: the only budget there is, of one that has no other; None where any can be asked for.
        draws: uniform numbers per report.
    """

    epsilon: float
    low: float = -1.0
    high: float = 1.0

    name: ClassVar[str]
    kind: ClassVar[str] = "scalar"
    finite: ClassVar[bool]
    scaled: ClassVar[bool] = True
    every_dimension: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False
    own_budget: ClassVar[float | None] = None
    unbiased: ClassVar[bool] = True
    rectified: ClassVar[bool] = True
    dtype: ClassVar[Any] = np.float32

    def __post_init__(self) -> None:
        check_number(self.name, "epsilon", self.epsilon)
        self._check_epsilon()
        for number in ("epsilon", "low", "high"):
            # Numpy's shorter floats would make the arithmetic that follows as coarse as they are.
            object.__setattr__(self, number, check_number(self.name, number, getattr(self, number)))
        check_range(self.name, self.low, self.high)

    def _check_epsilon(self) -> None:
        check_budget(self.name, self.epsilon)

    # The law, on the unit scale -------------------------------------------------------------------------------

    @abstractmethod
    def _log_law(self, y: Floats, z: Floats) -> Floats:
        """Return the log of the pmf (finite) or the ideal pdf of the unit report y given the unit value z."""

    @abstractmethod
    def _support(self, z: Floats) -> Floats:
        """Return the outputs (finite) or the two ends of the support (density), along a new last axis."""

    @abstractmethod
    def _mean(self, z: Floats) -> Floats:
        """Return the mean of the unit report."""

    @abstractmethod
    def _variance(self, z: Floats) -> Floats:
        """Return the variance of the unit report."""

    @abstractmethod
    def _invert(self, z: Floats, u: Floats) -> Floats:
        """Return the unit report that the uniform number u in (0, 1) selects."""

    def _loss_inputs(self) -> Floats:
        """Return the unit values among whose pairs the largest loss is attained."""
        return np.linspace(-1.0, 1.0, LOSS_INPUTS)

    # The law, on the data's scale -----------------------------------------------------------------------------

    @property
    def draws(self) -> int:
        """How many uniform numbers one report takes."""
        return 1

    @property
    def delta(self) -> float:
        """The delta of the claim; 0 for pure local differential privacy."""
        return 0.0

    @property
    def outputs(self) -> float:
        """How many different reports there are."""
        return float(self._support(np.zeros(())).shape[-1])

    @property
    def _half(self) -> float:
        return self.high / 2 - self.low / 2

    @property
    def _scale(self) -> float:
        return self._half if self.scaled else 1.0

    @property
    def _shift(self) -> float:
        return self.low / 2 + self.high / 2 if self.scaled else 0.0

    def _unit(self, x: ArrayLike) -> Floats:
        # Infinite and out-of-range values end at -1 or 1; low and high themselves map to exactly -1 and 1.
        z = np.array(x, dtype=np.float64)
        np.clip(z, self.low, self.high, out=z)
        z -= self.low
        z /= self._half
        z -= 1.0
        return np.clip(z, -1.0, 1.0, out=z)

    def sample(self, x: ArrayLike, rng: UniformSource) -> NDArray[Any]:
        """Return one report for each value, drawn from the law."""
        shape = np.shape(x) if self.draws == 1 else (*np.shape(x), self.draws)
        return self.invert(x, uniform(rng, shape))

    def invert(self, x: ArrayLike, u: ArrayLike) -> NDArray[Any]:
        """Return the report that the uniform number u in (0, 1) selects for the value x.

        Over u uniform on (0, 1) the result follows the law; it need not be increasing in u. Where `draws` is not 1,
        u has that many numbers along a last axis.
        """
        return self._send(self._invert(self._unit(x), np.asarray(u, dtype=np.float64)))

    def _send(self, y: Floats) -> NDArray[Any]:
        return np.asarray(self._shift + self._scale * y).astype(self.dtype)

    def support(self, x: ArrayLike = 0.0) -> Floats:
        """Return the possible reports (finite laws) or the ends of their interval, along a new last axis."""
        return self._shift + self._scale * self._support(self._unit(x))

    def log_law(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the log of `pmf` (finite laws) or `pdf`, exact where those underflow."""
        unit = (np.asarray(y, dtype=np.float64) - self._shift) / self._scale
        with np.errstate(divide="ignore"):
            out = self._log_law(*np.broadcast_arrays(unit, self._unit(x)))
        return np.asarray(out) if self.finite else np.asarray(out) - math.log(self._scale)

    def pmf(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the probability of the report y given the value x."""
        return np.exp(self.log_law(y, x))

    def pdf(self, y: ArrayLike, x: ArrayLike) -> Floats:
        """Return the density of the report y given the value x."""
        raise OptionError(f"{self.name} has finitely many outputs: use pmf(y, x)")

    def mean(self, x: ArrayLike) -> Floats:
        """Return the mean of the report given the value x (before any rectification)."""
        return self._shift + self._scale * self._mean(self._unit(x))

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of the report given the value x (before any rectification)."""
        return self._scale**2 * self._variance(self._unit(x))

    def _loss_table(self) -> tuple[Floats, Floats, Floats]:
        """Return unit values, unit reports and the log law (values by reports, up to a constant of each report)."""
        z = self._loss_inputs()
        outputs = np.unique(self._support(z))
        with np.errstate(divide="ignore"):
            logs = self._log_law(*np.broadcast_arrays(outputs[None, :], z[:, None]))
        return z, outputs, logs

    def privacy_loss(self) -> float:
        """Return the largest log ratio of the law over pairs of inputs and all outputs, computed from the law."""
        return settled(float(_gaps(self._loss_table()[2]).max()), self.epsilon)

    def worst_pair(self) -> tuple[float, float, float]:
        """Return two values and the report whose odds between them are largest: where the loss is attained."""
        z, outputs, logs = self._loss_table()
        report = int(np.argmax(_gaps(logs)))
        likely, unlikely = (float(z[pick(logs[:, report])]) for pick in (np.argmax, np.argmin))
        middle = self.low / 2 + self.high / 2
        return middle + self._half * likely, middle + self._half * unlikely, self._shift + self._scale * outputs[report]

    def vector_loss(self, count: int) -> float:
        """Return the exact loss of `count` independent reports about as many values of one record."""
        return count * self.privacy_loss()

    # What the server derives from the law ---------------------------------------------------------------------

    def estimate(self, report: ArrayLike) -> Floats:
        """Return the estimate of the value: the inverse of the mean's line through both ends of the range."""
        values = np.asarray(report, dtype=np.float64)
        if not self.rectified:
            return self.low / 2 + self.high / 2 + self._half * (values - self._shift) / self._scale
        at_low, at_high = (float(v) for v in self.mean(np.array([self.low, self.high])))
        return self.low + (self.high - self.low) * ((values - at_low) / (at_high - at_low))

    def estimate_mean(self, x: ArrayLike) -> Floats:
        """Return the mean of `estimate` of the report given the value x; x itself where `unbiased`."""
        return self.estimate(self.mean(x))

    def estimate_variance(self, x: ArrayLike) -> Floats:
        """Return the variance of `estimate` of the report given the value x."""
        slope = float(self.estimate(self._shift + self._scale) - self.estimate(self._shift)) / self._scale
        return self.variance(x) * slope**2

    def options(self) -> dict[str, Any]:
        """Return the options beyond epsilon and the range, as JSON-able values."""
        return option_values(self, Randomiser)


def _gaps(logs: Floats) -> Floats:
    """Return the largest difference within each column (a report) over the rows (the values); 0 if never sent."""
    reached = np.isfinite(logs.max(axis=0))
    return np.where(reached, logs.max(axis=0) - np.where(reached, logs.min(axis=0), 0.0), 0.0)


def build(name: str, epsilon: float, low: float, high: float, options: Mapping[str, Any]) -> Randomiser:
    """Return the randomiser of that name; an option that it does not have is an error that lists those it has."""
    cls = lookup(name)
    if not issubclass(cls, Randomiser):
        raise OptionError(f"{name} randomises a whole vector, not one value: use protocol({name!r}, ...)")
    check_options(name, options, own_options(cls, Randomiser))
    return cls(epsilon=epsilon, low=low, high=high, **{key: plain(value) for key, value in options.items()})
