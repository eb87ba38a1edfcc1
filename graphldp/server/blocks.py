r"""Classes from reports on links: a block model seen through the links' randomised response, whose law is known.

Model: a pair (i, j) of the classes c and c' is linked with the chance theta = t_i t_j B_cc'; t is a person's degree, B
    how much classes are linked. Of the `each` bits that the ends of a pair send, s say that there is a link:

    P[s | linked] / P[s | not] = rho_s = exp(epsilon_b (2 s - each))

Class of i: sum_j sum_c' q_jc' log(1 + theta (rho_s - 1)), beside what else is known of i; q are the others' classes.
    Pairs that nobody reported count to first order in theta, which is small, so that time follows the reported links.
B: by least squares from the unbiased number of links of each pair, (s - each f)/(each (1 - 2f)), on t_i t_j q_ic q_jc'.
Rounds: classes and B by turns, from the first guess of both (mean-field coordinate steps with halfway damping).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client.links import LinkReports, link_mechanism_of
from graphldp.client.links.draws import discrete_laplace_variance
from graphldp.client.links.rr import flip_chance
from graphldp.errors import OptionError
from graphldp.graph import Graph
from graphldp.server.links import BITS, degrees_of_bits, reported_pairs

__all__ = ["Seen", "block_evidence", "class_links", "seen_links"]

Floats: TypeAlias = NDArray[np.float64]

_SURE = 20.0  # the log-odds of a link that is public
_LEAST = 0.05  # of the mean rate of links: no two classes are taken never to be linked
_MOST = 0.5  # of a pair's chance
_STEP = 0.1  # pairs whose t_i t_j differ by less on the log scale count as alike
_RIDGE = 50.0  # people's worth of the assumption that all classes are linked alike
_THIN = 0.2  # of the mean degree: what is too noisy is drawn towards the mean, and not below this


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What the server sees of links.

    Attributes:
        low, high: the ends of the pairs that somebody reported.
        ones: how many ends did.
        each: how many ends report a pair.
        odds: epsilon_b, the log-odds that a bit is as it is.
        degrees: everybody's degree, as far as it can be told from its mean.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    ones: NDArray[np.int64]
    each: int
    odds: float
    degrees: Floats

    @cached_property
    def alike(self) -> tuple[tuple[int, float, sp.csr_array], ...]:
        """Reported pairs of one answer and nearly one t_i t_j: how many ends said so, that product, who with whom."""
        products = np.log(self.degrees[self.low] * self.degrees[self.high])
        step = np.rint(products / _STEP).astype(np.int64)
        out, nodes = [], len(self.degrees)
        for ones, place in sorted(set(zip(self.ones.tolist(), step.tolist(), strict=True))):
            here = (self.ones == ones) & (step == place)
            low, high = self.low[here], self.high[here]
            both = (np.concatenate([low, high]), np.concatenate([high, low]))
            matrix = sp.coo_array((np.ones(len(both[0])), both), shape=(nodes, nodes)).tocsr()
            out.append((ones, float(np.exp(products[here].mean())), matrix))
        return tuple(out)

    @property
    def silent(self) -> float:
        """The likelihood ratio of a pair that nobody reported."""
        return float(np.exp(-self.odds * self.each))

    @property
    def worth(self) -> tuple[Floats, float]:
        """The unbiased number of links of each reported pair, and of each other one."""
        flip = flip_chance(self.odds)
        scale = self.each * (1 - 2 * flip)
        return np.asarray((self.ones - self.each * flip) / scale), -self.each * flip / scale


def seen_links(reports: LinkReports | None, graph: Graph) -> Seen:
    """Return what reports say of links; without any, what a public graph does."""
    nodes = graph.nodes
    if reports is None:
        low, high = (end.astype(np.int64) for end in graph.edges)
        degree = np.bincount(low, minlength=nodes) + np.bincount(high, minlength=nodes)
        ones = np.ones(len(low), dtype=np.int64)
        return Seen(low=low, high=high, ones=ones, each=1, odds=_SURE, degrees=_shrunk(degree.astype(float), 0.0))
    device = link_mechanism_of(dict(reports.meta))
    if device.name not in BITS:
        raise OptionError(
            f"the evidence of blocks reads the bits of links reported by {' or '.join(BITS)}, got {device.name}; take "
            "one of these, or another method"
        )
    pairs, ones = reported_pairs(reports)
    high, low = np.divmod(pairs, nodes)
    each = device.ends
    flip, found = flip_chance(device.bit_epsilon), degrees_of_bits(pairs, ones, device)
    noise = (nodes - 1) * flip * (1 - flip) / each / (1 - 2 * flip) ** 2
    if reports.degree is not None:
        told = discrete_laplace_variance(device.degree_epsilon)
        if told < noise:
            found, noise = reports.degree.astype(np.float64), told
    return Seen(low=low, high=high, ones=ones, each=each, odds=device.bit_epsilon, degrees=_shrunk(found, noise))


def _shrunk(degrees: Floats, noise: float) -> Floats:
    """Return noisy degrees as near to their mean as their noise asks, none far below it; their mean is 1."""
    mean, spread = max(float(degrees.mean()), 1e-3), float(degrees.var())
    kept = max(0.0, 1 - noise / spread) if spread > 0 else 0.0
    out = np.maximum(mean + kept * (degrees - mean), _THIN * mean)
    return np.asarray(out / out.mean())


def class_links(seen: Seen, shares: Floats) -> Floats:
    """Return B, classes x classes, from everybody's class probabilities: how often classes are linked at degree 1.

    A regression of each pair's unbiased number of links on t_i t_j q_i q_j': classes that are uncertain bias nothing.
    """
    rows = shares * seen.degrees[:, None]
    reported, other = seen.worth
    matrix = sp.coo_array((reported - other, (seen.low, seen.high)), shape=(len(shares),) * 2).tocsr()
    half, whole, own = rows.T @ np.asarray(matrix @ rows), rows.sum(axis=0), rows.T @ rows
    mean = float((reported - other).sum() * 2 + other * len(shares) * (len(shares) - 1))
    mean = max(mean / float(seen.degrees.sum() ** 2 - (seen.degrees**2).sum()), 1e-9)
    # What pairs of two people have, less what they would if all classes were linked alike.
    found = half + half.T + other * (np.outer(whole, whole) - own)
    total = (shares * (seen.degrees**2)[:, None]).sum(axis=0)
    found = found - mean * (np.outer(total, total) - shares.T @ (shares * (seen.degrees**4)[:, None]))
    inverse = np.linalg.inv(own + _RIDGE * np.eye(shares.shape[1]))
    # Not more than if all links of a class were within it.
    most = mean / np.sqrt(np.outer(whole, whole)) * whole.sum()
    return np.asarray(np.clip(mean + inverse @ found @ inverse, _LEAST * mean, most))


def block_evidence(seen: Seen, shares: Floats, rates: Floats) -> Floats:
    """Return what the reports on links say of everybody's class, n x classes, given the others' and B."""
    weighted = shares * seen.degrees[:, None]
    # Pairs that nobody reported, as if all were such, less what the reported ones are not.
    others = (weighted.sum(axis=0) - weighted) @ rates.T * seen.degrees[:, None]
    out = (seen.silent - 1) * others
    for ones, degrees, pairs in seen.alike:
        chance = np.minimum(degrees * rates, _MOST)
        ratio = float(np.exp(seen.odds * (2 * ones - seen.each)))
        out += np.asarray(pairs @ shares) @ (np.log1p(chance * (ratio - 1)) - (seen.silent - 1) * chance).T
    return np.asarray(out)
