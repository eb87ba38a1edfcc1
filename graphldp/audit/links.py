"""Private links, audited on four people: every list that one of them may have, every report that she may send.

The law is written out here from the formulas: bit by bit, and the noisy degree with its two tails summed up. Neighbours
are lists that differ in one bit. What both ends of a relationship send together is enumerated as well.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import ALPHA, LOSS_TOLERANCE
from graphldp.audit.empirical import Bound, bound_of_scores
from graphldp.audit.exact import Loss
from graphldp.audit.fit import WRONG_BUDGET, Power, either_way
from graphldp.audit.quantiles import map_differs, map_distance
from graphldp.audit.whole import Case, WholeFinding, whole_problems
from graphldp.client import Randomiser, Reports
from graphldp.client.laws.sets import Membership
from graphldp.client.links import LinkMechanism, Neighbours, link_mechanism
from graphldp.errors import OptionError
from graphldp.randomness import Source, generator

__all__ = ["audit_links", "curator_bound", "links_case", "relationship_loss"]

Floats: TypeAlias = NDArray[np.float64]

PEOPLE = 4
_DEGREES = np.arange(-2, PEOPLE + 2)  # the first and the last stand for all beyond
_FAR = 2**17  # noisy degrees beyond are summed in closed form with the last thinning
_POWER_SAMPLES = 120_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkCase(Case):
    """A case whose neighbouring records are lists that differ in one bit."""

    @property
    def loss(self) -> Loss:
        """The largest log ratio over all pairs of lists that differ in one bit, and all reports."""
        best = (-math.inf, 0, 0, 0)
        for one, two in _neighbours(self.features):
            with np.errstate(invalid="ignore"):
                gap = np.where(np.isneginf(self.logs[one]), -np.inf, self.logs[one] - self.logs[two])
            output = int(np.argmax(gap))
            best = max(best, (float(gap[output]), one, two, output))
        value, one, two, output = best
        return Loss(value=value, first=self.records[one], second=self.records[two], output=self.outputs[output])


def _neighbours(features: Floats) -> list[tuple[int, int]]:
    apart = np.abs(features[:, None] - features).sum(axis=2)
    return [(int(i), int(j)) for i, j in zip(*np.nonzero(apart == 1), strict=True)]


def links_case(device: LinkMechanism) -> LinkCase:
    """Return the case of one of four people, for a mechanism of the same budget and options."""
    small: Any = link_mechanism(device.name, device.epsilon, PEOPLE, device.report, **device.options())
    # Of people in the middle the places of `both` have a gap at their own number.
    person = PEOPLE - 1 if device.report == "lower" else 1
    others = [u for u in range(PEOPLE) if u != person]
    lists = np.array(list(itertools.product((0.0, 1.0), repeat=len(others))))
    logs = np.array([_log_law(small, own) for own in lists])
    masks = len(lists)

    def perturb(features: Any, ids: NDArray[np.int64], source: Any) -> Reports:
        rows, columns = np.nonzero(np.asarray(features) > 0.5)
        count = len(features)
        own = Neighbours(
            nodes=PEOPLE,
            owners=np.full(count, person, dtype=np.int32),
            indptr=np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64),
            indices=np.array(others, dtype=np.int32)[columns],
        )
        sent = small.perturb(own, source)
        weights = np.zeros(PEOPLE, dtype=np.int64)
        weights[others] = 1 << np.arange(len(others))[::-1]
        code = np.bincount(sent.rows(), weights=weights[sent.indices], minlength=count).astype(np.int64)
        if sent.degree is not None:
            code += masks * (np.clip(sent.degree, _DEGREES[0], _DEGREES[-1]) - _DEGREES[0])
        return Reports(value=code[:, None].astype(np.int32))

    def place(reports: Reports) -> NDArray[np.int64]:
        code = np.asarray(reports.value, dtype=np.int64)[:, 0]
        return np.where((code >= 0) & (code < logs.shape[1]), code, logs.shape[1])

    words = [_words(own, others) for own in lists]
    degrees = [f", degree {d}" for d in _DEGREES] if small.degree_epsilon else [""]
    return LinkCase(
        device=small,
        records=[f"the list {word}" for word in words],
        outputs=[f"that reports {word}{degree}" for degree in degrees for word in words],
        features=lists,
        logs=logs,
        place=place,
        perturb=perturb,
        sparse=False,
    )


def _words(own: Floats, others: list[int]) -> str:
    return "{" + ", ".join(str(u) for u, bit in zip(others, own, strict=True) if bit) + "}"


def _log_law(device: Any, own: Floats) -> Floats:
    """Return the log probability of every report about a list: degrees in order, and for each all sets of links."""
    keep = 1 / (1 + math.exp(-device.bit_epsilon))
    turn = math.exp(-device.bit_epsilon) * keep
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=len(own))))
    if not device.degree_epsilon:
        return np.asarray(np.where(sets == own, math.log(keep), math.log(turn)).sum(axis=1))
    reach = min(_FAR, int(60 / device.degree_epsilon) + PEOPLE + 3)
    d = np.arange(-reach, reach + 1)
    r = math.exp(-device.degree_epsilon)
    noise = np.log(-math.expm1(-device.degree_epsilon)) - math.log1p(r) - device.degree_epsilon * np.abs(d - own.sum())
    # What lies beyond is geometric: it goes to the ends.
    noise[[0, -1]] -= math.log(-math.expm1(-device.degree_epsilon))
    thin = np.ones(len(d))
    if device.name == "dprr":
        up = np.maximum(d, 0)
        thin = np.clip(up / (up * (keep - turn) + (PEOPLE - 1) * turn), 0, 1)
    with np.errstate(divide="ignore"):
        ones = [np.log(thin) + math.log(keep if bit else turn) for bit in (0, 1)]
    # 1 - thin keep, to the last bit: at budgets at which 1 - keep is nothing, turn is still something.
    zeros = [np.log((1 - thin) + thin * (turn if bit else keep)) for bit in (0, 1)]
    bit_logs = [ones, zeros]
    out = []
    for low in _DEGREES:
        part = d <= low if low == _DEGREES[0] else d >= low if low == _DEGREES[-1] else d == low
        for chosen in sets:
            logs = noise[part].copy()
            for sent, bit in zip(chosen, own, strict=True):
                logs += bit_logs[0 if sent else 1][int(bit)][part]
            out.append(np.logaddexp.reduce(logs))
    return np.asarray(out)


def relationship_loss(device: LinkMechanism) -> float:
    """Return the largest loss of one relationship in what both its ends send, by enumeration over all other links.

    The two ends' reports are independent given the lists. With `lower` one end sends a degree at most.
    """
    case = links_case(replace(device, report="both"))
    both = case.loss.value
    if device.ends == 2:
        return 2 * both
    if not device.degree_epsilon:
        return both
    # The end with the smaller number sends no bit of this pair: its part is the degree alone, whatever it is.
    masks = 2 ** (PEOPLE - 1)
    chances = case.laws.reshape(len(case.laws), len(_DEGREES), masks).sum(axis=2)
    alone = max(float(np.log(chances[i] / chances[j]).max()) for i, j in _neighbours(case.features))
    return both + alone


def audit_links(subject: Any, nominal: float, setting: Any, samples: int, seed: int) -> WholeFinding:
    """Return the finding about one person's reported links."""
    device: LinkMechanism = subject.device
    case = links_case(device)
    small, loss = case.device, case.loss

    def rng(test: str) -> np.random.Generator:
        return generator(seed, "audit", subject.name, nominal, device.nodes, test)

    def law_of(factor: float) -> Randomiser:
        budget = small.bit_epsilon * factor
        share = (1 / (1 + math.exp(-budget)), math.exp(-budget) / (1 + math.exp(-budget)))
        return Membership(epsilon=budget, low=0.0, high=1.0, present=share[0], absent=share[1], missed=share[::-1])

    found = case.fit(samples, rng("fit"))
    skipped = case.fit(_POWER_SAMPLES, rng("power"), lambda ids, reports: _untouched(case, ids, reports))
    one, two = max(
        _neighbours(case.features), key=lambda pair: float(np.abs(case.laws[pair[0]] - case.laws[pair[1]]).sum())
    )
    with np.errstate(invalid="ignore"):
        ratio = np.append(np.nan_to_num(case.logs[one] - case.logs[two], posinf=1e9, neginf=-1e9), 0.0)
    scores = [
        ratio[case.place(case.perturb(np.tile(case.features[k], (samples, 1)), np.empty(0, np.int64), rng(f"e {k}")))]
        for k in (one, two)
    ]
    bound = bound_of_scores(*scores, name="log likelihood ratio")
    problems = whole_problems(small.claim.epsilon, loss, small.privacy_loss(), found, bound)
    together = relationship_loss(device)
    if together > device.relationship_epsilon + LOSS_TOLERANCE * (1 + device.relationship_epsilon):
        problems.append(
            f"both ends together lose {together:.6g} of a relationship, claimed {device.relationship_epsilon:g}"
        )
    choice = law_of(1.0)
    flips = math.exp(-small.bit_epsilon) / (1 + math.exp(-small.bit_epsilon))
    return WholeFinding(
        bound=bound,
        fit=replace(found, distance=map_distance(choice, choice)),
        power=Power(
            wrong_budget=map_differs(choice, either_way(law_of, WRONG_BUDGET)),
            untouched_last=skipped.p < ALPHA if flips * _POWER_SAMPLES > 1000 else None,
        ),
        enumerated=loss.value,
        stated=small.privacy_loss(),
        worst=loss,
        variance_worst=math.nan,
        variance_mean=math.nan,
        bias=math.nan,
        problems=problems,
        case=case,
        laws_of=(law_of,),
    )


def _untouched(case: LinkCase, ids: NDArray[np.int64], reports: Reports) -> Reports:
    """Return the reports of a device that sends the last bit as it is."""
    code = np.array(reports.value, dtype=np.int64)
    code[:, 0] = code[:, 0] // 2 * 2 + case.features[ids, -1].astype(np.int64)
    return Reports(value=code)


def curator_bound(name: str, epsilon: float, rng: Source, *, samples: int = 4000, steps: int = 60) -> Bound:
    """Return a lower bound on the epsilon of a trusted curator's graph, from graphs of five people with one link more.

    What is counted is the link itself and the number of links. A bound below epsilon proves nothing; one above
    convicts. For privhrg and edgerr it is a bound on a chain of so many steps, of which finite ones carry no proof.

    Args:
        name: edgerand, lapgraph, privhrg or edgerr.
        epsilon: the claimed budget.
        rng: a numpy Generator.
        samples: how many graphs of either kind are drawn.
        steps: moves of the chain.
    """
    from graphldp.trusted import edge_rr, edgerand, lapgraph, priv_hrg

    makers: dict[str, Any] = {
        "edgerand": edgerand,
        "lapgraph": lapgraph,
        "privhrg": lambda *given: priv_hrg(*given, steps=steps),
        "edgerr": lambda *given: edge_rr(*given, private=np.array([1, 1, 1, 1, 0]), steps=steps),
    }
    if name not in makers:
        raise OptionError(f"unknown trusted curator {name!r}; valid: {', '.join(sorted(makers))}")
    few, more = np.array([[0, 2], [2, 4]]), np.array([[0, 0, 2], [1, 2, 4]])
    scores = []
    for edges in (few, more):
        drawn = [makers[name](edges, 5, epsilon, rng).adjacency for _ in range(samples)]
        scores.append(np.array([100.0 * (one[0, 1] > 0) + one.nnz / 2 for one in drawn]))
    return bound_of_scores(*scores, name="100 if the link is there, plus the links")
