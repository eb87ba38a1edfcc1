"""Multi-dimensional local randomizer: the m-of-d protocol around any scalar randomiser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from graphldp.client.m_rules import choose_m
from graphldp.client.protocol import Sampled, sampled
from graphldp.client.randomiser import Randomiser, build
from graphldp.client.registry import lookup, register
from graphldp.client.vector import VectorMechanism, fill_of
from graphldp.errors import OptionError

__all__ = ["MultiDimensional", "scalar_base"]


def scalar_base(owner: str, base: Any, epsilon: float, low: float, high: float, options: dict[str, Any]) -> Randomiser:
    """Return the scalar randomiser that a vector mechanism wraps; it must have one value's budget and a pure claim."""
    cls = lookup(str(base))
    if cls.kind != "scalar" or cls.own_budget is not None:
        raise OptionError(f"{owner}: base must be a scalar mechanism with a budget, got {base!r}; try 'duchi' or 'lp'")
    whole = build(str(base), epsilon, low, high, options)
    if whole.delta:
        raise OptionError(f"{owner}: base {base!r} has a delta, which m shares of epsilon do not add up; try 'lp'")
    return whole


@register("mlr")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiDimensional(Sampled):
    r"""m of d dimensions, chosen without looking at the data, each through the scalar `base` with epsilon/m.

    Formula: the law of the base with epsilon/m in each of a uniform set of m dimensions.
    Claim: epsilon-LDP for the vector: m reports of epsilon/m each.
    Estimator: fill + d/m (estimate - fill) where reported, the fill elsewhere: unbiased for an unbiased base, with
        variance d/m E[(estimate - fill)^2] - (z - fill)^2.
    Reference: PPGNN, Algorithm 2 (base `duchi`, the default); PPM* of its Figure 4 is base `lp`.
    Deviations: the device sends the base's report, and the factor d/m is the server's. With base `duchi` or `mb` it is
        the multi-bit mechanism, law and estimate alike, which the paper means to improve on. m is the best for the
        base; the paper's rule is m_rule 1/2.2.
    """

    option_names: ClassVar[tuple[str, ...]] = ("m", "base", "fill", "m_rule")

    @classmethod
    def build(
        cls, epsilon: float, dimensions: int, low: float, high: float, m: int | None, options: dict[str, Any]
    ) -> VectorMechanism:
        """Return the mechanism around the option `base`, whose own options are passed on."""
        base = options.pop("base", "duchi")
        fill = fill_of(options.pop("fill", "mid"))
        rule = options.pop("m_rule", "optimal")
        whole = scalar_base("mlr", base, epsilon, low, high, options)
        given = {**whole.options(), "base": str(base)}
        return sampled("mlr", whole, dimensions, choose_m(whole, dimensions, m, rule), fill, given)
