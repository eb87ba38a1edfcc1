"""One row of the audit: a registered mechanism at a budget, from its law to its verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphldp.audit.budget import ALPHA, LOSS_TOLERANCE, MAX_ROWS
from graphldp.audit.empirical import Bound, bound_of_scores, log_likelihood_ratio
from graphldp.audit.exact import Loss, joint_loss, scalar_loss
from graphldp.audit.fit import Fit, Power, fit, power
from graphldp.audit.gaussian import gaussian_delta, gaussian_epsilon
from graphldp.audit.law import grid_inputs, moments
from graphldp.client import VectorMechanism, lookup, protocol
from graphldp.errors import OptionError
from graphldp.randomness import generator

__all__ = ["AuditOptions", "Row", "audit_mechanism", "audit_rows", "budgets"]

_BRUTE_DIMENSIONS = 3  # of the joint report that is enumerated
_CROSS_TOLERANCE = 1e-6  # between the mechanism's own loss and the enumeration, relative to 1 + the loss
_POWER_SAMPLES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """How an audit is run.

    Attributes:
        dimensions: how many features a node has.
        samples: how many reports each test draws.
        seed: the root of the audit's randomness; the same seed gives the same numbers.
    """

    dimensions: int = 8
    samples: int = 60_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("dimensions", 2), ("samples", 1000), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"audit: {name} must be a whole number of at least {least}, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the audit found about one mechanism at one budget.

    Attributes:
        mechanism, epsilon, delta: what is claimed, for the whole report.
        dimensions, m: features of a node, and how many of them are reported.
        exact: the exact privacy loss of the joint release, at the claimed delta.
        exact_delta: the exact delta at the claimed epsilon.
        enumerated: the loss found by writing out the joint release in a few dimensions.
        enumerated_own: what the mechanism itself says for those dimensions.
        worst: the inputs and the output where the loss is attained, in words.
        empirical: 95 % lower bound on epsilon from samples alone.
        convicting: the lower bound that a verdict may rest on.
        fit: goodness of fit of the shipped sampler.
        power: whether the same tests reject wrong samplers; None where there is nothing to get wrong.
        variance_worst, variance_mean: of the server's estimate of one coordinate, unreported ones included.
        bias: largest absolute bias of that estimate.
        bits: size of one report.
        keeps: whether the claim held.
        marked: whether the mechanism itself says that its claim fails.
        reason: why, in its own words.
        verdict: the finding in one sentence.
    """

    mechanism: str
    epsilon: float
    delta: float
    dimensions: int
    m: int
    exact: float
    exact_delta: float
    enumerated: float
    enumerated_own: float
    worst: str
    empirical: Bound
    fit: Fit
    power: Power | None
    variance_worst: float
    variance_mean: float
    bias: float
    bits: float
    keeps: bool
    marked: bool
    reason: str
    verdict: str

    @property
    def fails(self) -> bool:
        """Whether something is wrong that nobody has said."""
        return not self.keeps and not self.marked

    def as_json(self) -> dict[str, Any]:
        """Return the row as nested JSON-able values."""
        return asdict(self)


def budgets(name: str, epsilons: Iterable[float]) -> list[float]:
    """Return the budgets at which a mechanism can be audited: its own where it has no choice."""
    cls = lookup(name)
    fixed = {"null": 0.0, "identity": math.inf}
    return [fixed[cls.name]] if cls.name in fixed else list(epsilons)


def audit_rows(
    names: Iterable[str],
    epsilons: Iterable[float],
    options: AuditOptions,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Row]:
    """Return a row for each mechanism and budget, in that order."""
    cells = [(name, epsilon) for name in names for epsilon in budgets(name, epsilons)]
    if len(cells) > MAX_ROWS:
        raise OptionError(
            f"audit: {len(cells)} rows exceed the {MAX_ROWS} that its false-alarm budget covers; audit fewer at a time"
        )
    rows = []
    for done, (name, epsilon) in enumerate(cells):
        if progress:
            progress(done, len(cells), f"{name} at {epsilon:g}")
        rows.append(audit_mechanism(name, epsilon, options))
    if progress:
        progress(len(cells), len(cells), "")
    return rows


def audit_mechanism(name: str, epsilon: float, options: AuditOptions) -> Row:
    """Return the row of one mechanism at one budget."""
    return audit_device(protocol(name, epsilon, options.dimensions), options)


def audit_device(device: VectorMechanism, options: AuditOptions) -> Row:
    """Return the row of one vector mechanism."""
    claim, base = device.claim, device.base

    def rng(test: str) -> np.random.Generator:
        return generator(options.seed, "audit", device.name, device.epsilon, options.dimensions, test)

    exact, exact_delta, loss = _exact(device)
    enumerated, enumerated_own = _enumerate(device)
    sampled = fit(device, device.perturb, options.samples, rng("fit"))
    has_power = not base.deterministic and 0 < base.epsilon < math.inf
    shown = power(device, device.perturb, min(options.samples, _POWER_SAMPLES), rng("power")) if has_power else None
    bound = _empirical(device, options.samples, rng("empirical"))
    worst_variance, mean_variance, bias = _accuracy(device)
    marked = not getattr(device, "keeps_claim", True)
    problems = _problems(device, exact, exact_delta, enumerated, enumerated_own, sampled, shown, bound)
    return Row(
        mechanism=device.name,
        epsilon=claim.epsilon,
        delta=claim.delta,
        dimensions=device.dimensions,
        m=device.m,
        exact=exact,
        exact_delta=exact_delta,
        enumerated=enumerated,
        enumerated_own=enumerated_own,
        worst=loss.text(),
        empirical=bound,
        fit=sampled,
        power=shown,
        variance_worst=worst_variance,
        variance_mean=mean_variance,
        bias=bias,
        bits=report_bits(device),
        keeps=not problems,
        marked=marked,
        reason=str(getattr(device, "reason", "")),
        verdict=_verdict(claim.epsilon, problems, loss),
    )


def _exact(device: VectorMechanism) -> tuple[float, float, Loss]:
    """Return the exact epsilon at the claimed delta, the exact delta at the claimed epsilon, and the worst case."""
    base, claim = device.base, device.claim
    loss = scalar_loss(base)
    if claim.delta == 0:
        return device.privacy_loss(), 0.0, loss
    sigma = math.sqrt(float(base.variance(base.low)))
    sensitivity = (base.high - base.low) * math.sqrt(device.m)
    return (
        gaussian_epsilon(claim.delta, sigma, sensitivity),
        gaussian_delta(claim.epsilon, sigma, sensitivity),
        loss,
    )


def _enumerate(device: VectorMechanism) -> tuple[float, float]:
    """Return the loss of the joint release in few dimensions, enumerated here and as the mechanism states it."""
    if device.base.deterministic or device.claim.delta > 0:
        return math.inf, math.inf
    few = min(_BRUTE_DIMENSIONS, device.dimensions)
    small = VectorMechanism(
        base=device.base, epsilon=device.epsilon, dimensions=few, m=min(few, device.m), fill=device.fill
    )
    return joint_loss(small).value, small.privacy_loss()


def _empirical(device: VectorMechanism, samples: int, rng: np.random.Generator) -> Bound:
    base = device.base
    if base.deterministic:
        return Bound(value=0.0, convicting=0.0, event="no event: the report is the value itself")
    high = np.full(device.dimensions, base.high)
    low = np.full(device.dimensions, base.low)
    first = device.perturb(np.tile(high, (samples, 1)), rng)
    second = device.perturb(np.tile(low, (samples, 1)), rng)
    return bound_of_scores(
        log_likelihood_ratio(device, first, high, low),
        log_likelihood_ratio(device, second, high, low),
        name="log likelihood ratio",
    )


def _accuracy(device: VectorMechanism) -> tuple[float, float, float]:
    """Return worst and mean variance and the largest bias of a coordinate's estimate, by summing over the law."""
    base, scale, c0 = device.base, device.dimensions / device.m, device.fill_value
    if base.epsilon == 0:
        scale = 1.0
    inputs = grid_inputs(base, 21)
    variances, biases = [], []
    for x in inputs:
        if base.deterministic:
            variances.append(0.0)
            biases.append(0.0)
            continue
        found = moments(base, float(x))
        shift = found.estimate_mean - c0
        variances.append(scale * (found.estimate_variance + shift**2) - shift**2)
        biases.append(found.estimate_mean - x)
    weights = np.gradient(inputs)
    return (
        float(max(variances)),
        float(np.average(variances, weights=weights)),
        float(np.max(np.abs(biases))),
    )


def report_bits(device: VectorMechanism) -> float:
    """Return the bits of one report in a plain code: which m of d, then each value.

    A value of a finite law takes as many bits as its outputs need; any other the size of its number type.
    """
    stated = getattr(device, "report_bits", None)
    if stated is not None:
        return float(stated() if callable(stated) else stated)
    base = device.base
    which = 0.0 if device.m == device.dimensions else math.log2(math.comb(device.dimensions, device.m))
    if base.finite and not base.deterministic:
        value = math.log2(len(np.unique(base.support(np.array([base.low, base.high])))))
    else:
        value = 8.0 * np.dtype(base.dtype).itemsize
    return which + device.m * value


def _problems(
    device: VectorMechanism,
    exact: float,
    exact_delta: float,
    enumerated: float,
    enumerated_own: float,
    sampled: Fit,
    shown: Power | None,
    bound: Bound,
) -> list[str]:
    claim = device.claim
    slack = LOSS_TOLERANCE * (1 + claim.epsilon) if math.isfinite(claim.epsilon) else 0.0
    found = []
    if not exact <= claim.epsilon + slack:
        found.append(f"exact loss {exact:.6g}, {_excess(exact, claim.epsilon)}")
    if claim.delta and exact_delta > claim.delta * (1 + LOSS_TOLERANCE):
        found.append(f"exact delta {exact_delta:.3g} at the claimed epsilon, claimed {claim.delta:.3g}")
    if math.isfinite(enumerated_own) and abs(enumerated - enumerated_own) > _CROSS_TOLERANCE * (1 + enumerated_own):
        found.append(f"the enumerated joint loss is {enumerated:.6g}, the mechanism states {enumerated_own:.6g}")
    if not sampled.follows:
        found.append(
            f"the sampler does not follow the law ({sampled.where}: p {sampled.p:.1e} against {ALPHA:.0e}, "
            f"distance {sampled.distance:.1e} against {sampled.allowed:.1e})"
        )
    if shown is not None and not shown.shown:
        missed = [name for name in ("wrong_budget", "untouched_last") if not getattr(shown, name)]
        found.append(f"the tests have no power against {' and '.join(missed)}: use more samples or fewer dimensions")
    if bound.convicting > claim.epsilon + slack and claim.delta == 0:
        found.append(f"samples alone show at least {bound.convicting:.6g} ({bound.event})")
    return found


def _excess(exact: float, claimed: float) -> str:
    if math.isinf(exact):
        return f"claimed {claimed:g}"
    return f"{exact / claimed:.3g} times the claimed {claimed:g}" if claimed else f"claimed {claimed:g}"


def _verdict(claimed: float, problems: list[str], loss: Loss) -> str:
    if math.isinf(claimed):
        return "claims nothing"
    if not problems:
        return "keeps its claim"
    return "does not keep its claim: " + "; ".join(problems) + f"; {loss.text()}"
