"""Claims about a randomiser other than its epsilon: unbiased, one law, a Gaussian's delta, a soft threshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphldp.audit.blackbox import BlackBox, BlackBoxOptions, Finding, _text, draw, inputs_of
from graphldp.audit.budget import ALPHA
from graphldp.audit.gaussian import gaussian_delta
from graphldp.audit.reports import flatten
from graphldp.errors import OptionError
from graphldp.randomness import generator

__all__ = ["PROPERTIES", "audit_gaussian", "audit_same_law", "audit_soft_threshold", "audit_unbiased"]

PROPERTIES = ("privacy", "unbiased", "same-law", "gaussian", "soft-threshold")
_DELTA_TOLERANCE = 1e-3  # relative: more than the rounding of anybody's sigma explains


class UnitNoise:
    """A generator whose normal numbers are all 1: what comes out of it is the scale of the noise."""

    def standard_normal(self, size: Any = None) -> Any:
        """Return ones."""
        return 1.0 if size is None else np.ones(size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Return loc + scale."""
        return loc + scale * self.standard_normal(size)


def audit_unbiased(function: BlackBox, epsilon: float, options: BlackBoxOptions, *, name: str) -> Finding:
    """Return whether the mean of the reports is the input, entry by entry."""
    from scipy.stats import norm

    inputs = inputs_of(options)
    worst: tuple[float, str] = (1.0, "")
    largest, tests = 0.0, 0
    for place, x in enumerate(inputs):
        rows = draw(function, x, epsilon, options.samples, generator(options.seed, "audit", name, "bias", place)).rows
        truth = np.array(flatten(x))
        if rows.shape[1] != len(truth):
            raise OptionError(
                f"audit: {name} reports {rows.shape[1]} numbers about an input of {len(truth)}; only an estimate of "
                "the input itself can be unbiased"
            )
        bias = rows.mean(axis=0) - truth
        spread = np.maximum(rows.std(axis=0) / math.sqrt(len(rows)), 1e-300)
        p = 2 * norm.sf(np.abs(bias) / spread)
        tests += len(truth)
        entry = int(np.argmin(p))
        largest = max(largest, float(np.abs(bias[p * len(inputs) * len(truth) < ALPHA]).max(initial=0.0)))
        if p[entry] <= worst[0]:
            worst = (
                float(p[entry]),
                f"entry {entry} of input {_text(x)} is {truth[entry]:.6g}, the mean of {len(rows)} reports "
                f"{rows[:, entry].mean():.6g} (standard error {spread[entry]:.2g})",
            )
    keeps = worst[0] * tests >= ALPHA
    verdict = "no bias found" if keeps else f"is biased: {worst[1]}"
    return Finding(name=name, property="unbiased", claimed="unbiased", keeps=keeps, verdict=verdict, measured=largest)


def audit_same_law(
    function: BlackBox, reference: BlackBox, epsilon: float, options: BlackBoxOptions, *, name: str, other: str
) -> Finding:
    """Return whether the reports of two functions follow one law, entry by entry."""
    from scipy.stats import ks_2samp

    inputs = inputs_of(options)
    lowest, where, tests = 1.0, "", 0
    for place, x in enumerate(inputs):
        mine = draw(function, x, epsilon, options.samples, generator(options.seed, "audit", name, "law", place)).rows
        own = draw(reference, x, epsilon, options.samples, generator(options.seed, "audit", other, "law", place)).rows
        if mine.shape != own.shape:
            lowest, where = 0.0, f"reports of input {_text(x)} have {mine.shape[1]} and {own.shape[1]} numbers"
            continue
        for entry in range(mine.shape[1]):
            p = float(ks_2samp(mine[:, entry], own[:, entry], method="asymp").pvalue)
            tests += 1
            if p < lowest:
                lowest = p
                where = (
                    f"entry {entry} for input {_text(x)}: standard deviation {mine[:, entry].std():.4g} and "
                    f"{own[:, entry].std():.4g}, p {p:.1e}"
                )
    keeps = lowest * max(1, tests) >= ALPHA
    verdict = f"no difference from {other} found" if keeps else f"does not have the law of {other}: {where}"
    return Finding(
        name=name, property="same-law", claimed=f"the law of {other}", keeps=keeps, verdict=verdict, measured=lowest
    )


def audit_gaussian(
    function: BlackBox, epsilon: float, delta: float, sensitivity: float, *, name: str, x: float = 0.0
) -> Finding:
    """Return whether a mechanism that adds one normal number keeps (epsilon, delta); exact, no samples.

    The function gets a generator whose normal numbers are 1, so its report minus the input is its sigma.
    """
    if not 0 < delta < 1:
        raise OptionError(f"audit: a Gaussian's claim needs a delta between 0 and 1, got {delta}")
    sigma = flatten(function(x, epsilon, UnitNoise()))[0] - x  # type: ignore[arg-type]
    if not sigma > 0:
        raise OptionError(f"audit: {name} adds no normal noise to its input (scale {sigma}); nothing to audit")
    exact = gaussian_delta(epsilon, sigma, sensitivity)
    keeps = exact <= delta * (1 + _DELTA_TOLERANCE)
    verdict = f"sigma {sigma:.9g} gives delta {exact:.4g} at epsilon {epsilon:g}, claimed {delta:.4g}"
    return Finding(
        name=name,
        property="gaussian",
        claimed=f"epsilon {epsilon:g}, delta {delta:g}",
        keeps=keeps,
        verdict=("keeps its claim: " if keeps else "does not keep its claim: ") + verdict,
        measured=exact,
    )


def audit_soft_threshold(function: BlackBox, epsilon: float, *, name: str, reach: float = 4.0) -> Finding:
    """Return whether the function is v -> sign(v) max(|v| - t, 0) for one t, on a grid of values."""
    rng = generator(0, "audit", name, "threshold")
    values = np.linspace(-reach, reach, 81)
    got = np.array([flatten(function(np.array([v]), epsilon, rng))[0] for v in values])
    threshold = float(values[-1] - got[-1])
    wanted = np.sign(values) * np.maximum(np.abs(values) - threshold, 0)
    error = np.abs(got - wanted)
    place = int(np.argmax(error))
    keeps = bool(error[place] <= 1e-6 * reach)
    verdict = (
        f"is the soft threshold at {threshold:.6g}"
        if keeps
        else f"is not a soft threshold: {values[-1]:.6g} becomes {got[-1]:.6g}, a threshold of {threshold:.6g}, but "
        f"{values[place]:.6g} becomes {got[place]:.6g} instead of {wanted[place]:.6g}"
    )
    return Finding(
        name=name,
        property="soft-threshold",
        claimed="soft threshold",
        keeps=keeps,
        verdict=verdict,
        measured=float(error[place]),
    )
