"""k-ary randomised response: randomise a label."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.coded import WholeNumber, check_count
from graphldp.client.randomiser import Floats
from graphldp.client.registry import Claim, register
from graphldp.client.reports import Reports
from graphldp.errors import DataError
from graphldp.randomness import UniformSource, drawn_from

__all__ = ["LabelQuestion", "LabelRandomisedResponse"]


@register("krr")
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRandomisedResponse(WholeNumber):
    r"""A label low..high, k = high - low + 1 classes, is sent as it is with probability p, else as any other one.

    Formula: p = e/(e + k - 1), q = 1/(e + k - 1) with e = e^epsilon; reports 1..k: P[u | label t] = p if u = t, else q.
    Claim: epsilon-LDP for the label, among the labels low..high. That a person has a label is not hidden.
    Estimator: (1[u = t] - q)/(p - q) is 1 for the label and 0 for the others on average; `estimate` inverts the line of
        the mean.
    Reference: Kairouz, Bonawitz and Ramage, ICML 2016; LPGNN, Section 4.
    Deviations: none.
    """

    kind: ClassVar[str] = "label"
    unbiased: ClassVar[bool] = True
    word: ClassVar[str] = "label"

    @property
    def chances(self) -> tuple[float, float]:
        """The probabilities p that the label is sent, and q that a certain other one is."""
        decay = math.exp(-self.epsilon)
        total = 1.0 + (self.values - 1) * decay
        return 1.0 / total, decay / total

    def _table(self) -> Floats:
        # Relative to e^epsilon, so that no budget overflows.
        total = math.log1p((self.values - 1) * math.exp(-self.epsilon))
        return np.asarray(np.where(np.eye(self.values, dtype=bool), 0.0, -self.epsilon) - total)

    def decode(self, report: ArrayLike) -> NDArray[np.int64]:
        """Return the label low..high that a report names."""
        return np.asarray(report, dtype=np.int64) - 1 + int(self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelQuestion:
    """The question for a person's label, one of 0..classes-1, answered with `krr`.

    Attributes:
        epsilon: the budget of the answer.
        classes: how many labels there are (public).
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        check_count("krr", "the number of classes", self.classes, 2)
        object.__setattr__(self, "epsilon", self.law.epsilon)

    @property
    def law(self) -> LabelRandomisedResponse:
        """The law of an answer."""
        return LabelRandomisedResponse(epsilon=self.epsilon, low=0.0, high=float(self.classes - 1))

    @property
    def claim(self) -> Claim:
        """What the answer promises."""
        return Claim(
            epsilon=self.epsilon,
            unit="one node's label",
            neighbours="any two labels",
            unprotected="that the node has a label, its features, its links, the number of nodes",
            arithmetic="float64 probabilities; answers are whole numbers",
            outside="a label that is none of the classes is refused",
        )

    def privacy_loss(self) -> float:
        """Return the exact loss of the answer."""
        return self.law.privacy_loss()

    def perturb(self, labels: ArrayLike, rng: UniformSource | None = None) -> Reports:
        """Return one answer per person, a label 0..classes-1. No message names a label that was given."""
        rng = drawn_from(rng)
        own = np.asarray(labels)
        if own.ndim != 1 or own.dtype.kind not in "iu":
            raise DataError(f"labels must be one whole number per person, got {own.dtype} of shape {own.shape}")
        named = self.law.decode(self.law.sample(own, rng))
        return Reports(value=named.astype(np.int16)[:, None], meta=self.meta())

    def report_bits(self) -> float:
        """Return how many bits one answer takes."""
        return math.log2(self.classes)

    def meta(self) -> dict[str, Any]:
        """Return the public facts about the answers."""
        return {
            "question": "labels",
            "what": "labels",
            "randomiser": "krr",
            "epsilon": self.epsilon,
            "delta": 0.0,
            "classes": self.classes,
            "claim": asdict(self.claim),
        }
