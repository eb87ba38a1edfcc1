"""PPM made safe: the smallest variant that protects features and level together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.levels import Personalised, padded, probabilities, refuse_m
from graphldp.client.m_rules import best_m
from graphldp.client.mechanisms.mb import MultiBit
from graphldp.client.mechanisms.ppm import check_gamma, level_randomiser
from graphldp.client.randomiser import Floats, settled
from graphldp.client.registry import Claim, register
from graphldp.client.reports import Reports
from graphldp.client.sampling import choose, gather
from graphldp.client.vector import VectorMechanism
from graphldp.errors import OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import check_options

__all__ = ["WEIGHTS", "SafePersonalised"]

WEIGHTS = ("auto", "unbiased", "plug-in")
_EXPLODED = 10.0  # how many times the plug-in weights' second moment the unbiased ones' may have before `auto` gives up


@register("ppm-safe")
@dataclass(frozen=True, slots=True, kw_only=True)
class SafePersonalised(Personalised):
    r"""A level t' from one public extended square wave; m(t') bare signs whose odds follow the true level.

    Formula: e_t = (1-gamma) epsilon 2^(t-1); t' = ESW(t, gamma epsilon), the same for all; m = m(decode(t')) of d
        dimensions report a sign, P[+1] = 1/2 + z/2 tanh(e_t/(2m)). Sent: t', the dimensions, the signs.
    Claim: (gamma epsilon + e_h)-LDP for the pair of features and level, h the highest level; for the features of a
        user of known level t, e_t. What a user of each level spends (`budgets`) is the largest loss between her and
        anybody else, nearly the same for all levels. No mechanism can give every pair with level 1 the budget of
        level 1 and level h more than twice that.
    Estimator: sign times w(t'). `unbiased` weights solve sum over t' of P[t'|t] (m/d) tanh(e_t/(2m)) w(t') = 1 for
        every t with the least second moment; `plug-in` weights divide by the mean of (m/d) tanh given t', which is
        unbiased for the average user only. `auto` takes the first unless their second moment is 10 times larger.
    Reference: PPGNN, Algorithm 3, repaired: its Theorem 5 holds for the features alone.
    Deviations: public budget and window for the level, m from the decoded report, nothing scaled by the true level.

    Attributes:
        gamma: the share of the lowest level's budget that protects the level.
        m_rule: how m follows from the decoded level's budget.
        weights: the server's weights: `auto`, `unbiased` or `plug-in`.
    """

    gamma: float = 0.5
    m_rule: str = "optimal"
    weights: str = "auto"

    option_names: ClassVar[tuple[str, ...]] = ("levels", "distribution", "gamma", "m_rule", "weights")

    @classmethod
    def build(
        cls, epsilon: float, dimensions: int, low: float, high: float, m: int | None, options: dict[str, Any]
    ) -> VectorMechanism:
        """Return the mechanism from the options levels, distribution, gamma, m_rule and weights."""
        check_options("ppm-safe", options, cls.option_names)
        MultiBit(epsilon=epsilon, low=low, high=high)
        check_gamma("ppm-safe", options.get("gamma", 0.5))
        if options.get("weights", "auto") not in WEIGHTS:
            raise OptionError(f"ppm-safe: weights must be one of {', '.join(WEIGHTS)}; got {options['weights']!r}")
        out = cls(epsilon=float(epsilon), dimensions=dimensions, m=1, low=low, high=high, **options)
        out.check()
        MultiBit(epsilon=out._features(1) / int(out._channel()[1].max()))  # the smallest budget of a value is checked
        widest = max(out.m_of(level) for level in range(1, out.levels + 1))
        refuse_m("ppm-safe", m, widest)
        return cls(epsilon=float(epsilon), dimensions=dimensions, m=widest, low=low, high=high, **options)

    def _features(self, level: int) -> float:
        return (1 - self.gamma) * self.epsilon * 2.0 ** (level - 1)

    @property
    def base(self) -> MultiBit:
        """The law of one sign of a user of the lowest level whose report decodes to it."""
        return MultiBit(epsilon=self._features(1) / self.m_of(1), low=self.low, high=self.high)

    @property
    def budgets(self) -> tuple[float, ...]:
        """What users of each level spend on features and level together, lowest level first.

        It is the largest loss between such a user and any other, of any level and with any features: what her report
        lets be told apart. It differs little between levels, since the strictest user hides among the laxest.
        """
        return _pair_budgets(self)

    @property
    def largest(self) -> float:
        """What is claimed for every user: the level's share, and the features of the highest level."""
        return self.gamma * self.epsilon + self._features(self.levels)

    def m_of(self, level: int) -> int:
        """Return how many dimensions are reported when the reported level decodes to this one."""
        return _m(self._features(level), self.dimensions, self.m_rule)

    @property
    def level_offset(self) -> int:
        """How many codes lie below the one that stands for level 1 at its centre."""
        randomiser = level_randomiser(self.gamma * self.epsilon, self.levels)
        return randomiser.radius if randomiser else 0

    def boundary(self) -> float:
        """Return the largest weight of a sign, on the data's scale."""
        return (self.high / 2 - self.low / 2) * float(np.abs(self.level_weights()[0]).max())

    def _channel(self) -> tuple[Floats, NDArray[np.int64]]:
        """Return log P[t' | t] as a matrix and m for each t'."""
        esw = level_randomiser(self.gamma * self.epsilon, self.levels)
        if esw is None:
            return np.zeros((1, 1)), np.array([self.m_of(1)])
        table = esw._table()
        decoded = esw.decode(np.arange(1, table.shape[1] + 1))
        return table, np.array([self.m_of(int(level)) for level in decoded])

    @property
    def claim(self) -> Claim:
        """What the mechanism promises for features and level together."""
        return Claim(
            epsilon=self.largest,
            neighbours="any two pairs of features and level; features alone, of a known level: (1-gamma) of its budget",
        )

    def level_loss(self, level: int) -> float:
        """Return the exact loss of the features of a user whose level is known."""
        m = int(self._channel()[1].max())
        return max(k * MultiBit(epsilon=self._features(level) / k).privacy_loss() for k in range(1, m + 1))

    def pair_loss(self, one: int, other: int) -> float:
        """Return the exact loss between users of two levels, over any features and all that leaves the device."""
        table, m = self._channel()
        a_one, a_other = self._features(one) / m, self._features(other) / m
        signs = m * (np.logaddexp(0.0, a_other) - np.logaddexp(0.0, -a_one))
        return float(np.max(table[one - 1] - table[other - 1] + signs))

    def privacy_loss(self) -> float:
        """Return the exact loss of level, indices and signs together, over all pairs of levels."""
        return settled(max(self.budgets), self.claim.epsilon)

    def _gain(self) -> tuple[Floats, Floats]:
        """Return P[t' | t] m/d, and that times the mean sign of a value at the end of the range."""
        table, m = self._channel()
        share = np.exp(table) * m / self.dimensions
        budgets = np.array([self._features(level) for level in range(1, self.levels + 1)])
        return share, share * np.tanh(budgets[:, None] / m / 2)

    def level_weights(self) -> tuple[Floats, str]:
        """Return the weight of a sign for each reported level, and which of the two kinds they are."""
        share, gain = self._gain()
        prior = probabilities(self.distribution, self.levels)
        plug_in = (prior @ share) / (prior @ gain)
        # The average user's mean is then sum_t' (prior @ gain) w = sum_t' (prior @ share): normalise it to 1.
        plug_in = plug_in / float(prior @ gain @ plug_in)
        if self.weights == "plug-in":
            return plug_in, "plug-in"
        root = np.sqrt(prior @ share)
        unbiased = np.linalg.lstsq(gain / root, np.ones(self.levels), rcond=None)[0] / root
        solved = bool(np.abs(gain @ unbiased - 1).max() < 1e-6)
        if self.weights == "unbiased":
            if not solved:
                raise OptionError("ppm-safe: no weights are unbiased for all levels here; use weights 'plug-in'")
            return unbiased, "unbiased"
        moments = [float(prior @ share @ weights**2) for weights in (unbiased, plug_in)]
        if solved and moments[0] <= _EXPLODED * moments[1]:
            return unbiased, "unbiased"
        return plug_in, "plug-in"

    def _perturb(self, features: Any, nodes: int, rng: UniformSource, level: ArrayLike | None) -> Reports:
        true = self.assign(nodes, rng, level)
        esw = level_randomiser(self.gamma * self.epsilon, self.levels)
        sent = true if esw is None else esw.sample(true, rng).astype(np.int32)
        widths = self._channel()[1][sent - 1]
        found = []
        for m in np.unique(widths):
            for number in range(1, self.levels + 1):
                members = np.flatnonzero((widths == m) & (true == number))
                chosen = choose(len(members), self.dimensions, int(m), rng)
                base = MultiBit(epsilon=self._features(number) / int(m), low=self.low, high=self.high)
                found.append((members, chosen, base.sample(gather(features, chosen, members), rng)))
        index, value = padded(nodes, self.m, found, np.int8)
        return Reports(index=index, value=value, level=sent, meta=self.meta())

    def _estimate(self, value: NDArray[Any], index: NDArray[Any] | None, level: NDArray[Any] | None) -> Floats:
        weights = self.level_weights()[0][np.asarray(level) - 1]
        return np.asarray(self.fill_value + (self.high / 2 - self.low / 2) * weights[:, None] * value)

    def level_bias(self, level: int, x: ArrayLike) -> Floats:
        """Return the bias at the value x for a user of that level."""
        mean = float(self._gain()[1][level - 1] @ self.level_weights()[0])
        return (mean - 1) * (np.asarray(x, dtype=np.float64) - self.fill_value)

    def bias(self, x: ArrayLike) -> Floats:
        """Return the bias at the value x, averaged over the distribution of the levels."""
        share = probabilities(self.distribution, self.levels)
        return np.asarray(sum(p * self.level_bias(t, x) for t, p in enumerate(share, start=1)))

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of the estimate at the value x, averaged over the distribution of the levels."""
        prior = probabilities(self.distribution, self.levels)
        share, gain = self._gain()
        weights = self.level_weights()[0]
        z = MultiBit(epsilon=self.epsilon, low=self.low, high=self.high)._unit(x)
        square = float(prior @ share @ weights**2)
        return np.asarray((self.high / 2 - self.low / 2) ** 2 * (square - float(prior @ (gain @ weights) ** 2) * z**2))

    def _level_bits(self) -> float:
        return math.log2(self._channel()[0].shape[1])

    def options(self) -> dict[str, Any]:
        """Return the options from which `protocol` builds an equal mechanism, as JSON-able values."""
        return {key: getattr(self, key) for key in ("levels", "distribution", "gamma", "m_rule", "weights")}


@lru_cache(maxsize=1024)
def _pair_budgets(device: SafePersonalised) -> tuple[float, ...]:
    levels = range(1, device.levels + 1)
    losses = {(one, other): device.pair_loss(one, other) for one in levels for other in levels}
    return tuple(max(max(losses[one, other], losses[other, one]) for other in levels) for one in levels)


@lru_cache(maxsize=4096)
def _m(epsilon: float, dimensions: int, rule: str) -> int:
    return best_m("mb", epsilon, dimensions, rule)
