"""HDS: the square wave on k of d dimensions, as LDP-GE uses it, and with the missing rectification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from graphldp.client.mechanisms.sw import SquareWave
from graphldp.client.registry import register

__all__ = ["HighDimensionalSquareWave", "RectifiedSquareWave"]


@register("hds")
@dataclass(frozen=True, slots=True, kw_only=True)
class HighDimensionalSquareWave(SquareWave):
    r"""The square wave's report for k of the d dimensions with epsilon/k each, taken as it is; 0 elsewhere.

    Formula: that of `sw` with epsilon/k; the unreported d - k dimensions count as the middle of the range.
    Claim: epsilon-LDP for the vector: k reports of epsilon/k, the k dimensions chosen without looking at the data.
    Estimator: none is applied. The mean is (k/d) C(epsilon/k) z: biased towards the middle by a known factor.
    Reference: LDP-GE, Algorithms 1 and 2, Lemma 1.
    Deviations: the law as printed; the published code draws its two outer pieces from other intervals than the paper
        and loses all privacy. k (option m) is 20 unless given; rounded to a public grid.
    """

    unbiased: ClassVar[bool] = False
    rectified: ClassVar[bool] = False
    default_m: ClassVar[int | None] = 20


@register("hds-rectified")
@dataclass(frozen=True, slots=True, kw_only=True)
class RectifiedSquareWave(SquareWave):
    r"""The reports of `hds`, divided by the factor (k/d) C(epsilon/k) that their mean is shrunk by.

    Formula: that of `sw` with epsilon/k for k of the d dimensions.
    Claim: epsilon-LDP for the vector, as for `hds`: rectifying is the server's work and costs nothing.
    Estimator: unbiased; the variance of `sw` under the m-of-d protocol with m = k.
    Reference: LDP-GE, Algorithms 1 and 2, and its Lemma 1 inverted.
    Deviations: the same k as `hds` (20 unless given), not the best one, so that the two rows differ in rectification
        alone; `sw` chooses the best. Rounded to a public grid.
    """

    default_m: ClassVar[int | None] = 20
