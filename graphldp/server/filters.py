"""The papers' filters by name: each is a list of coefficients on S, and nothing else.

=========  ======================================  ====================================
none       theta = (1)                             the estimates as they are
kprop      theta_K = 1                             LPGNN; UPGNet calls it SKA
hoa        theta_1 = ... = theta_K = 1/K           UPGNet
ppr        theta_k = alpha (1-alpha)^k             LDP-GE, to a stated tolerance
push       the same, by backward push              LDP-GE, Algorithm 3
residual   K steps with a residual connection      UPGNet, Figure 9
flexprop   theta_K = 1, on the weighted mean       PPGNN
=========  ======================================  ====================================
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from graphldp.errors import OptionError
from graphldp.registry import Registry, check_options
from graphldp.server.calibration import WEIGHTINGS, Calibration

__all__ = [
    "SHARED_OPTIONS",
    "FilterEntry",
    "filter_entry",
    "filter_names",
    "flexprop",
    "hoa",
    "kprop",
    "make_filter",
    "none",
    "ppr",
    "ppr_terms",
    "push",
    "residual",
]

RESIDUALS = ("input", "previous")
EXPANSIONS = ("power", "chebyshev", "auto")
_ROUNDING = 2.0**-24  # of one float32 operation


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def none(**options: Any) -> Calibration:
    """Return the filter that leaves the estimates alone: K = 0."""
    return Calibration(coefficients=(1.0,), **options)


def kprop(steps: int, **options: Any) -> Calibration:
    """Return LPGNN's KProp: the sum aggregation S^K, all weight on the last power. K = 0 leaves the estimates alone."""
    return Calibration(coefficients=(0.0,) * _whole("steps", steps, 0) + (1.0,), **options)


def hoa(steps: int, **options: Any) -> Calibration:
    """Return UPGNet's high-order aggregator: the mean of S^1, ..., S^K, without self-loops (Algorithm 1).

    K = 0, which the paper's grid has, is an empty sum; as in its figures it leaves the estimates alone.
    """
    count = _whole("steps", steps, 0)
    if options.get("self_loops"):
        raise OptionError("hoa aggregates without self-loops (UPGNet, Algorithm 1); use kprop for a filter with them")
    if count == 0:
        return Calibration(coefficients=(1.0,), **options)
    return Calibration(coefficients=(0.0,) + (1 / count,) * count, **options)


def ppr_terms(decay: float, tolerance: float) -> int:
    """Return the last power K that personalised PageRank needs: the rest, (1-decay)^(K+1), is at most the tolerance."""
    if not 0 < decay < 1:
        raise OptionError(f"decay (alpha of personalised PageRank) must be between 0 and 1, got {decay}")
    if not 0 < tolerance < 1:
        raise OptionError(f"tolerance must be between 0 and 1, got {tolerance}")
    return max(0, math.ceil(math.log(tolerance) / math.log1p(-decay) - 1e-9) - 1)


def ppr(decay: float = 0.1, tolerance: float = 1e-4, expansion: str = "power", **options: Any) -> Calibration:
    """Return personalised PageRank, sum_k alpha (1-alpha)^k S^k, to a tolerance.

    `power` cuts the sum where at most `tolerance` of the weight is left. Each power of S is at most 1 in the norm that
    its normalisation keeps, so what is cut off moves the result by no more than tolerance times the largest value:
    |D^-r (exact - result)| <= tolerance max |D^-r x|, entry by entry.

    `chebyshev` is the polynomial of least degree whose Chebyshev series leaves at most `tolerance` of
    alpha / (1 - (1-alpha) s) for every s from -1 to 1, where S has its eigenvalues: a fourth of the steps at alpha 0.1.
    The bound is then one of lengths: the Euclidean norm of D^(1/2-r) (exact - result) is at most tolerance times that
    of D^(1/2-r) x. Its coefficients alternate and grow as alpha falls; where float32 would lose the tolerance in
    adding them up it is refused, and `auto` takes the power series there.
    """
    if expansion not in EXPANSIONS:
        raise OptionError(
            f"expansion of personalised PageRank must be one of {', '.join(EXPANSIONS)}; got {expansion!r}"
        )
    powers = np.arange(ppr_terms(decay, tolerance) + 1)
    theta = decay * (1 - decay) ** powers
    if expansion != "power":
        shorter = _chebyshev(decay, tolerance)
        kept = float(np.abs(shorter).sum()) * _ROUNDING <= tolerance
        if expansion == "chebyshev" and not kept:
            raise OptionError(
                f"with decay {decay} float32 cannot add up the Chebyshev polynomial to tolerance {tolerance}; use "
                "expansion 'power' or 'auto'"
            )
        theta = shorter if kept else theta
    return Calibration(coefficients=tuple(float(value) for value in theta), decay=decay, **options)


def _chebyshev(decay: float, tolerance: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the coefficients, on the powers of s, of a short polynomial near decay / (1 - (1-decay) s) on [-1, 1]."""
    rest = 1 - decay
    root = math.sqrt(1 - rest * rest)
    ratio = (1 - root) / rest  # the series' coefficients fall by it: a_k = 2 decay / root ratio^k, half of it for k = 0
    left = 2 * decay / root / (1 - ratio)
    degree = max(0, math.ceil(math.log(tolerance / left) / math.log(ratio)) - 1)
    series = 2 * decay / root * ratio ** np.arange(degree + 1)
    series[0] /= 2
    return np.asarray(np.polynomial.chebyshev.cheb2poly(series), dtype=np.float64)


def push(decay: float = 0.1, r_max: float = 1e-4, tolerance: float = 1e-4, **options: Any) -> Calibration:
    """Return personalised PageRank by backward push (LDP-GE, Algorithm 3): residues up to `r_max` are left unpushed.

    r_max is on the scale of the estimates. The result is within r_max degree^r of the exact one, entry by entry. The
    coefficients describe the same filter to `tolerance`; they are what a learner would use that does not push.
    """
    if not 0 < r_max < math.inf:
        raise OptionError(f"r_max must be above 0, got {r_max}; for the exact filter use ppr")
    return ppr(decay, tolerance, **options).but(r_max=float(r_max))


def residual(steps: int, strength: float = 0.1, source: str = "input", **options: Any) -> Calibration:
    """Return K steps with a residual connection of the given strength beta; both kinds are polynomials of S.

    `input`: H <- (1-beta) S H + beta X, as in the work that UPGNet's Figure 9 cites (Liu et al. 2021):
        theta_k = beta (1-beta)^k below K, and theta_K = (1-beta)^K.
    `previous`: H <- (1-beta) S H + beta H: theta_k = binom(K, k) (1-beta)^k beta^(K-k).
    """
    count = _whole("steps", steps, 0)
    if not 0 <= strength <= 1:
        raise OptionError(f"strength of the residual connection must be from 0 to 1, got {strength}")
    if source not in RESIDUALS:
        raise OptionError(f"source of the residual connection must be one of {', '.join(RESIDUALS)}; got {source!r}")
    rest = 1 - strength
    if source == "input":
        theta = [strength * rest**k for k in range(count)] + [rest**count]
    else:
        theta = [math.comb(count, k) * rest**k * strength ** (count - k) for k in range(count + 1)]
    return Calibration(coefficients=tuple(theta), **options)


def flexprop(steps: int, weighting: str = "level", **options: Any) -> Calibration:
    """Return PPGNN's FlexProp: S^K with S the mean over neighbours weighted by reported level (Eq. 12).

    `variance` weights by the inverse variance of each node's report, which the paper derives as optimal (Eq. 11) and
    then replaces by the level. Levels are decoded before they weight anything; see `level_weights`.
    """
    if weighting == "none" or weighting not in WEIGHTINGS:
        raise OptionError(f"weighting of flexprop must be one of {', '.join(WEIGHTINGS[1:])}; got {weighting!r}")
    options = {"normalization": "mean", "self_loops": True, **options}
    return kprop(steps, weighting=weighting, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterEntry:
    """One registered filter.

    Attributes:
        name: as `--filter` takes it.
        summary: one line.
        build: returns the calibration; its own parameters are the filter's options.
        reference: where it was published.
    """

    name: str
    summary: str
    build: Callable[..., Calibration]
    reference: str

    @property
    def options(self) -> tuple[str, ...]:
        """The filter's own options; every filter takes the fields of `Calibration` besides."""
        parameters = inspect.signature(self.build).parameters.values()
        return tuple(p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD)


FILTERS = Registry(
    "filter",
    {
        entry.name: entry
        for entry in (
            FilterEntry(name="none", summary="The estimates as they are.", build=none, reference="the papers' BASE"),
            FilterEntry(
                name="kprop",
                summary="S^K: all weight on the nodes K steps away.",
                build=kprop,
                reference="Sajadmanesh & Gatica-Perez, CCS 2021; UPGNet's SKA",
            ),
            FilterEntry(
                name="hoa",
                summary="The mean of S, ..., S^K, without self-loops.",
                build=hoa,
                reference="UPGNet, Algorithm 1",
            ),
            FilterEntry(
                name="ppr",
                summary="Personalised PageRank with decay alpha, by power iteration to a tolerance.",
                build=ppr,
                reference="LDP-GE, Eq. 17",
            ),
            FilterEntry(
                name="push",
                summary="Personalised PageRank by backward push with threshold r_max.",
                build=push,
                reference="LDP-GE, Algorithm 3",
            ),
            FilterEntry(
                name="residual",
                summary="K steps with a residual connection to the input or to the step before.",
                build=residual,
                reference="UPGNet, Figure 9; Liu et al., NeurIPS 2021",
            ),
            FilterEntry(
                name="flexprop",
                summary="K steps of the mean weighted by reported level, or by inverse variance.",
                build=flexprop,
                reference="PPGNN, Algorithm 4",
            ),
        )
    },
)
SHARED_OPTIONS = ("normalization", "convolution", "self_loops", "before", "after", "shrinkage")


def filter_names() -> list[str]:
    """Return the registered filters' names, the simplest first."""
    return list(FILTERS)


def filter_entry(name: str) -> FilterEntry:
    """Return the filter of that name; an unknown name is an error that lists the valid ones."""
    return FILTERS[name]


def make_filter(name: str, **options: Any) -> Calibration:
    """Return the calibration of that filter; an option that it does not have is an error that lists those it has."""
    entry = filter_entry(name)
    valid = (*entry.options, *SHARED_OPTIONS)
    parameters = inspect.signature(entry.build).parameters
    check_options(f"filter {name}", options, valid)
    for key, value in options.items():
        number = key == "convolution" or (key in parameters and parameters[key].annotation == "float")
        if number and (isinstance(value, bool) or not isinstance(value, Real)):
            raise OptionError(f"{key} must be a number, got {value!r}")
    missing = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        and parameter.name not in options
    ]
    if missing:
        raise OptionError(f"filter {name} needs {', '.join(missing)}")
    return entry.build(**options)
