"""A vote: which class a person's own features speak for, by weights that a server has published."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.client.laws.coded import check_count
from graphldp.client.laws.sets import SupportLaw, best_size, random_subsets, support_law
from graphldp.client.randomiser import Floats, Randomiser, check_budget, check_range, settled
from graphldp.client.registry import Claim
from graphldp.client.reports import Reports
from graphldp.client.sampling import check_features, rows
from graphldp.client.vector import log_sets
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource, drawn_from

__all__ = ["Vote"]

_BLOCK = 2**21  # values of dense features at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vote:
    r"""The class with the highest score of a person's own features, hidden in a random set of classes.

    Formula: v = argmax_c w_c . x - b_c, the first of equal ones; S is a set of m classes, P[S] proportional to
        e^epsilon if v is in S, else to 1. Sent: S. m minimises the variance of the classes' counts; at m = 1 it is
        k-ary randomised response.
    Claim: epsilon-LDP for one node's whole feature vector: v is a function of it, w and b are public, and no S is more
        than e^epsilon times as likely under one v as under another.
    Estimator: none of the features; P[S | class] follows from how often people of a class vote for which
        (`graphldp.server.voting`).
    Reference: Ye and Barg, Optimal Schemes for Discrete Distribution Estimation under LDP, 2018 (subset selection).
    Deviations: none.

    Attributes:
        epsilon: the budget of the whole answer.
        weights: d x classes.
        offsets: one number for each class.
        low, high: the public range of a feature, to which values are clamped.
        m: how many classes are named.
    """

    epsilon: float
    weights: Floats
    offsets: Floats
    low: float
    high: float
    m: int

    @classmethod
    def of(
        cls, epsilon: float, weights: Floats, offsets: Floats, low: float, high: float, m: int | None = None
    ) -> Vote:
        """Return the vote with the best m unless one is given."""
        epsilon = check_budget("vote", epsilon)
        weights, offsets = np.asarray(weights, dtype=np.float64), np.asarray(offsets, dtype=np.float64)
        if weights.ndim != 2 or offsets.shape != weights.shape[1:] or weights.shape[1] < 2:
            raise OptionError(
                f"vote: needs d x classes weights and an offset for each of at least 2 classes, got the shapes "
                f"{weights.shape} and {offsets.shape}"
            )
        if not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
            raise OptionError("vote: weights and offsets must be finite; some are not")
        check_range("vote", float(low), float(high))
        classes = weights.shape[1]
        if m is None:
            m = best_size(epsilon, classes, 1, 1, classes - 1)[1]
        check_count("vote", "m", m, 1, classes - 1)
        return cls(epsilon=epsilon, weights=weights, offsets=offsets, low=float(low), high=float(high), m=m)

    @property
    def dimensions(self) -> int:
        """How many features a person has."""
        return int(self.weights.shape[0])

    @property
    def classes(self) -> int:
        """How many classes there are to vote for."""
        return int(self.weights.shape[1])

    @property
    def _law(self) -> SupportLaw:
        law = support_law(self.epsilon, self.classes, 1, self.m, 1)
        assert law is not None
        return law

    @property
    def choice(self) -> Randomiser:
        """The law of whether the answer names the person's class, which is all that the budget decides."""
        return self._law.meeting

    def chances(self) -> tuple[float, float]:
        """Return the probabilities that an answer names the person's class, and another one."""
        return self._law.present, self._law.absent

    @property
    def claim(self) -> Claim:
        """What the answer promises."""
        return Claim(epsilon=self.epsilon, arithmetic="float64 probabilities; answers are whole numbers")

    def privacy_loss(self) -> float:
        """Return the exact loss of the whole answer: the log ratio of the two weights."""
        return settled(self._law.loss, self.epsilon)

    def chosen(self, features: Any) -> NDArray[np.int32]:
        """Return each person's class before it is hidden: it never leaves the device."""
        features = check_features(features, self.dimensions)
        nodes = int(features.shape[0])
        out = np.empty(nodes, dtype=np.int32)
        step = max(1, _BLOCK // self.dimensions)
        for start in range(0, nodes, step):
            stop = min(nodes, start + step)
            scores = np.clip(rows(features, start, stop), self.low, self.high) @ self.weights - self.offsets
            out[start:stop] = np.argmax(scores, axis=1)
        return out

    def perturb(self, features: Any, rng: UniformSource | None = None) -> Reports:
        """Return one answer per node, m classes in increasing order. `features` is n x d, dense or CSR."""
        rng = drawn_from(rng)
        own = self.chosen(features)
        meet = self.choice.sample(np.zeros(len(own)), rng)
        named = random_subsets(own[:, None], self.classes, self.m, meet, rng)
        return Reports(value=np.sort(named, axis=1).astype(np.int16), meta=self.meta())

    def report_bits(self) -> float:
        """Return how many bits one answer takes when it is coded without waste."""
        return log_sets(self.classes, self.m)

    def meta(self) -> dict[str, Any]:
        """Return the public facts about the answers; of the weights, a hash."""
        digest = hashlib.sha256(self.weights.tobytes() + self.offsets.tobytes()).hexdigest()
        return {
            "question": "vote",
            "epsilon": self.epsilon,
            "delta": 0.0,
            "dimensions": self.dimensions,
            "classes": self.classes,
            "m": self.m,
            "low": self.low,
            "high": self.high,
            "weights": f"sha256:{digest}",
            "claim": asdict(self.claim),
        }
