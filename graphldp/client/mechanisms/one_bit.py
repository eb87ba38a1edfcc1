"""One-bit: a random sign for every dimension, taken as if it were the value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphldp.client.laws.finite import Signs
from graphldp.client.registry import register

__all__ = ["OneBit"]


@register("1b")
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBit(Signs):
    r"""One sign for each of the d dimensions with epsilon/d each, used unrectified: the papers' 1B rows.

    Formula: P[+1] = 1/2 + z/2 tanh(epsilon/2), the law of `mb`.
    Claim: epsilon-LDP for one value; a vector's d signs with epsilon/d each are epsilon-LDP together.
    Estimator: the sign, stretched to the range: mean z tanh(epsilon/2), so biased towards the middle; variance
        1 - z^2 tanh(epsilon/2)^2. Divided by tanh(epsilon/2) it is `mb` with m = d.
    Reference: Ding et al., Collecting Telemetry Data Privately, NeurIPS 2017, Section 3; PPGNN II-D and TOGL Eq. 10
        print it without the rectification.
    Deviations: none; the bias is the papers'.
    """

    scaled: ClassVar[bool] = False
    every_dimension: ClassVar[bool] = True
    unbiased: ClassVar[bool] = False
    rectified: ClassVar[bool] = False
    dtype: ClassVar[Any] = np.int8
