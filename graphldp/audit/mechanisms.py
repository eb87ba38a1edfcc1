"""One row of the audit: a registered mechanism at a budget, from its law to its verdict."""

from __future__ import annotations

import math
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from graphldp.audit.accuracy import accuracy
from graphldp.audit.budget import ALPHA, LOSS_TOLERANCE, MAX_ROWS, MOST_ANSWERS, check_samples, most_samples
from graphldp.audit.conduct import Calls, Conduct, Probe, ValueProbe, conduct, source_conduct
from graphldp.audit.empirical import Bound, bound_of_scores, log_likelihood_ratio
from graphldp.audit.exact import Loss, joint_loss, scalar_loss
from graphldp.audit.fit import WRONG_BUDGET, Fit, Power, fit, pooled, power, reports_needed, resolution, scaled
from graphldp.audit.gaussian import gaussian_delta, gaussian_epsilon, loss_distribution, numerical_epsilon
from graphldp.audit.law import outcomes
from graphldp.audit.links import audit_links, links_case
from graphldp.audit.quantiles import map_distance
from graphldp.audit.sets import audit_sets, sets_case
from graphldp.audit.subject import FEW, AuditSetting, Piece, Subject, small_directed, subject_names, subject_of
from graphldp.audit.votes import audit_vote, vote_case
from graphldp.audit.whole import Case, WholeFinding, audit_whole, level_case
from graphldp.client import names as client_names
from graphldp.client import own_budget
from graphldp.client.directed import DirectedMechanism
from graphldp.client.laws.sets import SetValued
from graphldp.client.links import LinkMechanism
from graphldp.client.vote import Vote
from graphldp.errors import OptionError, unknown_name
from graphldp.progress import Progress
from graphldp.randomness import generator

__all__ = ["Audit", "AuditOptions", "AuditRow", "audit_mechanism", "audit_rows", "budgets"]

_FEW_DIMENSIONS = 3  # of the joint report that is enumerated
_CROSS_TOLERANCE = 1e-6  # between the mechanism's own loss and the enumeration, relative to 1 + the loss
_NUMERICAL_TOLERANCE = 5e-3  # the same for a privacy-loss distribution on a lattice, relative
_POWER_SAMPLES = 20_000
_SMALL = 1e-4  # p-values of calls from which on they are told
_WIDE_VALUES = 2**19  # of a call with all dimensions
_LIGHT = Calls(ordinary=2, ends=1, equal=0, rows=20_000)  # where the law is checked once more, elsewhere
_OTHER_RANGE, _USUAL_RANGE = (0.0, 5.0), (-1.0, 1.0)

# Options whose code is not run by the options that a row has.
_VARIANTS: dict[str, dict[str, Any]] = {
    "featurerr": {"theta": [0.0, 0.2, 0.3, 0.5]},
    "links-blink": {"report": "both", "degree_share": 0.4},
    "links-dprr": {"report": "both", "degree_share": 0.4},
    "links-rr": {"report": "both"},
    "mlr": {"base": "lp"},
    "pldp": {"levels": 2},
    "ppm": {"levels": 2, "gamma": 0.3},
    "ppm-public": {"base": "pm", "levels": 2},
    "ppm-safe": {"levels": 2, "gamma": 0.3},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """How an audit is run.

    Attributes:
        dimensions: how many features a node has.
        samples: how many reports each test draws; fewer where they would have more than 4 million values.
        seed: the root of the audit's randomness; the same seed gives the same numbers, but for those of tests of the
            operating system's random numbers.
        low, high: the range of a feature.
        options: the mechanism's options.
    """

    dimensions: int = 8
    samples: int = 60_000
    seed: int = 0
    low: float = -1.0
    high: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("dimensions", 2), ("samples", 1000), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"audit: {name} must be a whole number of at least {least}, got {value!r}")
        check_samples(self.samples)
        if not -math.inf < self.low < self.high < math.inf:
            raise OptionError(f"audit: needs finite low < high, got low {self.low} and high {self.high}")

    @property
    def setting(self) -> AuditSetting:
        """What is declared beside a budget."""
        return AuditSetting(dimensions=self.dimensions, low=self.low, high=self.high, options=self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """What the audit found about one mechanism at one budget.

    Attributes:
        mechanism, nominal: its name and the budget it was made for; for privacy levels, that of the lowest.
        epsilon, delta: what is claimed, for the whole report, at most for anybody.
        dimensions, m: features of a node, and how many of them are reported at most.
        exact: the exact privacy loss of the joint release, at the claimed delta, by the mechanism's own account.
        exact_delta: the exact delta at the claimed epsilon.
        enumerated: the loss found here by writing out the joint release in few dimensions (Gaussian noise: by its
            numerical privacy-loss distribution).
        stated: what the mechanism itself says for those dimensions.
        worst: the inputs and the output where the loss is attained, in words.
        empirical: 95 % lower bound on epsilon from samples alone, and the stricter one that a verdict may rest on.
        promised: what the users behind `empirical` are promised.
        fit: goodness of fit of the shipped sampler.
        power: whether the same tests reject wrong samplers; None where there is nothing to get wrong.
        variance_worst, variance_mean: of the server's estimate of one coordinate, unreported ones included.
        bias: largest absolute bias of that estimate.
        bits: size of one report.
        noticed: from which factor on the budget the samples alone notice it; infinity where none below 1000 is.
        keeps: whether the claim held, and the tests would have seen it fail.
        open: what the tests cannot see here and what it would take, in words; empty where they see all they look for.
            With nothing against the claim, it is then neither kept nor failed.
        marked: whether the mechanism itself says that its claim fails.
        reason: why, in its own words.
        verdict: the finding in one sentence.
    """

    mechanism: str
    nominal: float
    epsilon: float
    delta: float
    dimensions: int
    m: int
    exact: float
    exact_delta: float
    enumerated: float
    stated: float
    worst: str
    empirical: Bound
    promised: float
    fit: Fit
    power: Power | None
    variance_worst: float
    variance_mean: float
    bias: float
    bits: float
    noticed: float
    keeps: bool
    open: str
    marked: bool
    reason: str
    verdict: str

    @property
    def fails(self) -> bool:
        """Whether something is wrong that the mechanism does not say itself.

        A mark excuses a loss above the claim. It excuses neither a sampler that does not follow the law, nor a law
        whose loss is not the stated one. Tests without power are no failure: see `open`.
        """
        same = self.enumerated == self.stated or math.isclose(
            self.enumerated, self.stated, rel_tol=_NUMERICAL_TOLERANCE
        )
        sound = same and self.fit.follows
        return not self.keeps and not self.open and not (self.marked and sound)

    def as_json(self) -> dict[str, Any]:
        """Return the row as nested JSON-able values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """All rows with the options of the audit, and the budgets that a mechanism itself refused, with its reason."""

    options: AuditOptions
    rows: tuple[AuditRow, ...]
    refused: tuple[tuple[str, float, str], ...] = ()

    @property
    def fails(self) -> list[AuditRow]:
        """The rows in which something is wrong that the mechanism does not say itself."""
        return [row for row in self.rows if row.fails]


def budgets(name: str, epsilons: Iterable[float]) -> list[float]:
    """Return the budgets at which a mechanism can be audited: its own where it has no choice."""
    if name not in subject_names():
        raise unknown_name("mechanism", name, subject_names())
    own = own_budget(name) if name in client_names() else None
    return list(epsilons) if own is None else [own]


def audit_rows(
    names: Iterable[str],
    epsilons: Iterable[float],
    options: AuditOptions,
    progress: Progress | None = None,
    processes: int = 1,
) -> Audit:
    """Return a row for each mechanism and budget, in that order; `processes` of them share the work."""
    given = list(epsilons)
    cells = [(name, epsilon) for name in names for epsilon in budgets(name, given)]
    count = sum(1 if name in client_names() else MOST_ANSWERS for name, _ in cells)
    if count > MAX_ROWS:
        raise OptionError(
            f"audit: {count} rows exceed the {MAX_ROWS} that its false-alarm budget covers; audit fewer at a time"
        )
    for _, epsilon in cells:
        if math.isnan(epsilon) or epsilon < 0:
            raise OptionError(f"audit: epsilon must be a number of at least 0, got {epsilon}")
    if len(cells) == 1:
        return Audit(options=options, rows=(audit_mechanism(*cells[0], options),))
    rows, refused = [], []
    for done, ((name, epsilon), found) in enumerate(
        zip(cells, _spread(cells, options, processes), strict=True), start=1
    ):
        if isinstance(found, AuditRow):
            rows.append(found)
        else:
            refused.append((name, epsilon, found))
        if progress:
            progress(done, len(cells), f"{name} at {epsilon:g}" if done < len(cells) else "")
    if not rows and refused:
        raise OptionError(refused[0][2])
    return Audit(options=options, rows=tuple(rows), refused=tuple(refused))


def _spread(cells: list[tuple[str, float]], options: AuditOptions, processes: int) -> Iterator[AuditRow | str]:
    if processes == 1:
        yield from (_cell(cell, options) for cell in cells)
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(min(processes, len(cells)), initializer=_expendable) as pool:
        try:
            yield from pool.map(partial(_cell, options=options), cells)
        except BaseException:
            for one in set(multiprocessing.active_children()).difference(others):
                one.terminate()
            raise


def _expendable() -> None:
    """In a process of the pool: end at once when told to, and only by the first one, as nothing is kept here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _cell(cell: tuple[str, float], options: AuditOptions) -> AuditRow | str:
    """Return the row, or why the mechanism refuses it."""
    try:
        subject = subject_of(*cell, options.setting)
    except OptionError as error:
        return str(error)
    return audit_subject(subject, cell[1], options)


def audit_mechanism(name: str, epsilon: float, options: AuditOptions) -> AuditRow:
    """Return the row of one mechanism at one budget."""
    return audit_subject(subject_of(name, epsilon, options.setting), epsilon, options)


def audit_subject(subject: Subject, nominal: float, options: AuditOptions) -> AuditRow:
    """Return the row of a mechanism that was taken apart."""
    if subject.answers:
        return _together(subject, nominal, options)
    if not subject.pieces:
        return _whole_row(subject, nominal, options)
    rng = _sources(subject, nominal, options)
    exact, exact_delta, loss = _exact(subject)
    enumerated, stated, claimed = _enumerate(subject, nominal, options)
    samples = min(options.samples, most_samples(subject.m))
    sampled, shown = _fit(subject, samples, rng)
    piece = subject.pieces[-1]
    bound, together = _empirical(piece, samples, rng("empirical"))
    sampled = replace(sampled, pooled=together)
    sampled, told = _calls(subject, nominal, options, rng, sampled)
    elsewhere, also = _elsewhere(subject, nominal, options, rng)
    worst_variance, mean_variance, bias = accuracy(subject)
    problems = _loss_problems(subject, exact, exact_delta)
    problems += _other_problems(subject, enumerated, stated, claimed, sampled, told, bound)
    problems += elsewhere
    base = min(piece.bases, key=lambda one: one.epsilon)
    noticed = _noticed(base, 2 * samples * piece.m)
    shown = _by_samples(shown, noticed)
    return _row(
        subject,
        nominal,
        problems,
        _open(subject, shown, samples, base, piece),
        exact=exact,
        exact_delta=exact_delta,
        enumerated=enumerated,
        stated=stated,
        loss=loss,
        empirical=bound,
        promised=piece.epsilon,
        fit=replace(sampled, calls=min(sampled.calls, _settled(also))),
        power=shown,
        variance_worst=worst_variance,
        variance_mean=mean_variance,
        bias=bias,
        noticed=noticed,
    )


def _row(subject: Subject, nominal: float, problems: list[str], unseen: str, *, loss: Loss, **found: Any) -> AuditRow:
    failing = subject.epsilon < math.inf and problems
    return AuditRow(
        **{**_shared(subject, nominal), **found},
        worst=loss.text(),
        keeps=not problems and not unseen,
        open="" if problems else unseen,
        verdict=_verdict(subject, problems if failing else [], unseen, loss.text()),
    )


def _sources(subject: Subject, nominal: float, options: AuditOptions) -> Callable[[str], np.random.Generator]:
    def rng(test: str) -> np.random.Generator:
        return generator(options.seed, "audit", subject.name, nominal, subject.dimensions, test)

    return rng


def _whole_row(subject: Subject, nominal: float, options: AuditOptions) -> AuditRow:
    """Return the row of a report that is audited as a whole."""
    rng = _sources(subject, nominal, options)
    setting = replace(options.setting, dimensions=subject.dimensions)
    samples = min(options.samples, _most_whole(subject))
    found = _look_of(subject)(subject, nominal, setting, samples, options.seed)
    problems = [*found.problems, *_loss_problems(subject, subject.stated, 0.0)]
    calls = conduct(found.case.probe(), Calls(), rng("calls"))
    source_conduct(calls)
    elsewhere, also = _elsewhere(subject, nominal, options, rng)
    problems += [f"the sampler does not follow the law ({calls.text})"] if not calls.follows else []
    noticed = max(resolution(law_of, 2 * samples) for law_of in found.laws_of)
    found = replace(found, power=_by_samples(found.power, noticed) or found.power)
    return _row(
        subject,
        nominal,
        problems + elsewhere,
        _open_whole(found, samples, _most_whole(subject)),
        exact_delta=0.0,
        enumerated=found.enumerated,
        stated=found.stated,
        loss=found.worst,
        empirical=found.bound,
        promised=subject.epsilon,
        fit=replace(found.fit, calls=_settled(min(also, 0.0 if calls.told else calls.p))),
        power=found.power,
        variance_worst=found.variance_worst,
        variance_mean=found.variance_mean,
        bias=found.bias,
        noticed=noticed,
    )


def _look_of(subject: Subject) -> Callable[..., WholeFinding]:
    if isinstance(subject.device, Vote):
        return audit_vote
    if isinstance(subject.device, LinkMechanism):
        return audit_links
    return audit_sets if isinstance(subject.device, SetValued) else audit_whole


def _case_of(subject: Subject, nominal: float, setting: AuditSetting) -> Case:
    if isinstance(subject.device, Vote):
        return vote_case(nominal, setting)
    if isinstance(subject.device, LinkMechanism):
        return links_case(subject.device)
    of = sets_case if isinstance(subject.device, SetValued) else level_case
    return of(subject.device.name, nominal, setting)


def _together(subject: Subject, nominal: float, options: AuditOptions) -> AuditRow:
    """Return the row of several answers: the worst of what is found about each, and the losses of those that add up."""
    rows = [(label, audit_subject(part, part.epsilon, replace(options, options=_own(subject, part, options))))
            for label, part in subject.answers]  # fmt: skip
    total = sum if subject.everybody else max
    problems = [f"{label}: {row.verdict}" for label, row in rows if not row.keeps and not row.open]
    unseen = "; ".join(f"{label}: {row.open}" for label, row in rows if row.open)
    exact = float(total(row.exact for _, row in rows))
    if not exact <= subject.epsilon + _slack(subject.epsilon):
        problems.append(f"exact loss {_times(exact, subject.epsilon)}")
    if not subject.everybody:
        problems += _asked_once(nominal, options)
    last = rows[-1][1] if subject.everybody else rows[0][1]
    fits = [row.fit for _, row in rows]
    lowest = min(fits, key=lambda one: one.p)
    shown = [row.power for _, row in rows if row.power is not None]
    strongest = max((row for _, row in rows), key=lambda row: row.empirical.value / max(row.epsilon, 1e-300))
    return AuditRow(
        **{**_shared(subject, nominal), "exact": exact},
        exact_delta=max(row.exact_delta for _, row in rows),
        enumerated=float(total(row.enumerated for _, row in rows)),
        stated=float(total(row.stated for _, row in rows)),
        worst="; ".join(f"{label}: {row.worst}" for label, row in rows),
        empirical=strongest.empirical,
        promised=strongest.promised,
        fit=replace(lowest, distance=max(one.distance for one in fits)),
        power=Power(
            wrong_budget=all(one.wrong_budget for one in shown),
            untouched_last=all(one.untouched_last is not False for one in shown),
        ),
        variance_worst=last.variance_worst,
        variance_mean=last.variance_mean,
        bias=last.bias,
        noticed=max(row.noticed for _, row in rows),
        keeps=not problems and not unseen,
        open="" if problems else unseen,
        verdict=_verdict(subject, problems, unseen, rows[0][1].worst),
    )


def _own(subject: Subject, part: Subject, options: AuditOptions) -> dict[str, Any]:
    """Return the options of an answer's mechanism."""
    if isinstance(part.device, Vote):
        return {}
    other = ("mechanism", "rho", "first")
    return {key: value for key, value in options.options.items() if key not in other}


def _asked_once(nominal: float, options: AuditOptions) -> list[str]:
    """Return what is wrong with who is asked what in a survey: everybody gives one answer."""
    from graphldp.server.voting import teachers_and_voters

    rng = generator(options.seed, "audit", "survey", nominal, "groups")
    for people in (2, 3, 50, 1000):
        shares = rng.dirichlet(np.ones(4), people)
        train = rng.choice(people, max(1, people // 4), replace=False)
        groups = teachers_and_voters(shares, train, 0.5, rng)
        if sorted(np.concatenate(groups).tolist()) != list(range(people)):
            return ["somebody is asked twice, or not at all"]
    return []


def _calls(
    subject: Subject,
    nominal: float,
    options: AuditOptions,
    rng: Callable[[str], np.random.Generator],
    sampled: Fit,
) -> tuple[Fit, str]:
    """Return the fit with what calls of the sampler tell, and that in words."""
    if subject.pieces[0].bases[0].deterministic:
        return sampled, ""
    found = []
    few = _small(subject, nominal, options, FEW)
    for piece in few.pieces:
        label = f"{piece.label}: " if piece.label else ""
        # All levels go through the same code: one of them is called as often as it takes to tell two rows apart.
        calls = Calls() if piece is few.pieces[0] else Calls(ordinary=2, ends=2, equal=0)
        found.append(conduct(_probe(piece, label), calls, rng(f"calls {piece.label}")))
    source_conduct(found[0])
    if few.dimensions < subject.dimensions:
        for piece in subject.pieces[:1]:
            rows = int(np.clip(_WIDE_VALUES // len(piece.bases), 400, 20_000))
            calls = Calls(ordinary=2, ends=0, equal=0, rows=rows)
            found.append(conduct(_probe(piece, "all dimensions: "), calls, rng("wide")))
    return _worst_calls(sampled, found)


def _worst_calls(sampled: Fit, found: list[Conduct]) -> tuple[Fit, str]:
    lowest = min((0.0 if one.told else one.p) for one in found)
    text = next((one.text for one in found if not one.follows), "")
    return replace(sampled, calls=_settled(lowest)), text


def _settled(p: float) -> float:
    """Return a p-value of calls, which draw from the operating system: one that is not small is not the same twice."""
    return p if p < _SMALL else 1.0


def _probe(piece: Piece, label: str) -> ValueProbe:
    return ValueProbe(piece.bases, piece.m, piece.perturb, piece.chances, label)


def _elsewhere(
    subject: Subject, nominal: float, options: AuditOptions, rng: Callable[[str], np.random.Generator]
) -> tuple[list[str], float]:
    """Return what is wrong on another range, and with options that run other code; and the smallest p-value there."""
    if subject.device is None or isinstance(subject.device, DirectedMechanism) or not 0 < nominal < math.inf:
        return [], 1.0
    setting = options.setting
    other = _USUAL_RANGE if setting.ends == _OTHER_RANGE else _OTHER_RANGE
    settings = {f"on [{other[0]:g}, {other[1]:g}]": replace(setting, low=other[0], high=other[1])}
    if isinstance(subject.device, LinkMechanism):  # bits have no range
        settings = {}
    if subject.name in _VARIANTS and not setting.options:
        changed = _VARIANTS[subject.name]
        words = ", ".join(f"{key}={value}" for key, value in changed.items())
        settings[f"with {words}"] = replace(setting, dimensions=FEW, options=changed)
    problems, lowest = [], 1.0
    for words, there in settings.items():
        one, p = _once_more(subject, nominal, there, rng(f"elsewhere {words}"))
        problems += [f"{words}: {text}" for text in one]
        lowest = min(lowest, p)
    return problems, lowest


def _once_more(
    subject: Subject, nominal: float, setting: AuditSetting, rng: np.random.Generator
) -> tuple[list[str], float]:
    """Check the claim, the law and the sampler once more, in few dimensions and with fewer calls."""
    try:
        small = subject_of(subject.name, nominal, setting.few(FEW))
    except OptionError:  # a mechanism may refuse a range or a budget
        return [], 1.0
    found = _loss_problems(small, small.stated, 0.0) if small.keeps else []
    probes: list[Probe]
    if small.pieces:
        probes = [_probe(piece, f"{piece.label}: " if piece.label else "") for piece in small.pieces[:2]]
        loss = 0.0 if small.delta else max(_sum_of_losses(piece) for piece in small.pieces)
        if loss > small.epsilon + _CROSS_TOLERANCE * (1 + small.epsilon):
            found.append(f"enumerated loss {_times(loss, small.epsilon)}")
        distance = max(map_distance(base, base, few=True) for piece in small.pieces[-1:] for base in set(piece.bases))
        if distance > 1:
            found.append(f"the sampler's map is {distance:.2g} of what is allowed away from the law")
    else:
        case = _case_of(small, nominal, setting.few(FEW))
        if small.keeps and case.loss.value > case.device.claim.epsilon + _slack(case.device.claim.epsilon):
            found.append(f"enumerated loss {_times(case.loss.value, case.device.claim.epsilon)}")
        probes = [case.probe()]
    lowest = 1.0
    for probe in probes:
        calls = conduct(probe, _LIGHT, rng)
        lowest = min(lowest, 0.0 if calls.told else calls.p)
        if not calls.follows:
            found.append(f"the sampler does not follow the law ({calls.text})")
    return found, lowest


def _sum_of_losses(piece: Piece) -> float:
    """Return the loss of m independent values, of those dimensions that lose the most."""
    losses = {base: scalar_loss(base).value for base in dict.fromkeys(piece.bases)}
    return math.fsum(sorted(losses[base] for base in piece.bases)[-piece.m :])


def _shared(subject: Subject, nominal: float) -> dict[str, Any]:
    return {
        "mechanism": subject.name,
        "nominal": nominal,
        "epsilon": subject.epsilon,
        "delta": subject.delta,
        "dimensions": subject.dimensions,
        "m": subject.m,
        "exact": subject.stated,
        "bits": subject.bits,
        "marked": not subject.keeps,
        "reason": subject.reason,
    }


def _exact(subject: Subject) -> tuple[float, float, Loss]:
    """Return the exact epsilon at the claimed delta, the exact delta at the claimed epsilon, and the worst case."""
    piece = subject.pieces[-1]
    loss = scalar_loss(piece.bases[0])
    if subject.delta == 0:
        return subject.stated, 0.0, loss
    sigma, sensitivity = _noise(piece)
    return (
        gaussian_epsilon(subject.delta, sigma, sensitivity),
        gaussian_delta(subject.epsilon, sigma, sensitivity),
        loss,
    )


def _noise(piece: Piece) -> tuple[float, float]:
    base = piece.bases[0]
    return math.sqrt(float(base.variance(base.low))), (base.high - base.low) * math.sqrt(piece.m)


def _enumerate(subject: Subject, nominal: float, options: AuditOptions) -> tuple[float, float, float]:
    """Return the loss of the joint release in few dimensions: found here, as stated there, and what is claimed."""
    if subject.pieces[0].bases[0].deterministic:
        return math.inf, subject.stated, subject.epsilon
    if subject.delta > 0:
        piece = subject.pieces[0]
        law = outcomes(piece.bases[0], [piece.bases[0].low, piece.bases[0].high])
        losses = loss_distribution(law.mass[1], law.mass[0], piece.m)
        return numerical_epsilon(*losses, subject.delta), subject.stated, math.inf
    small = _small(subject, nominal, options, _FEW_DIMENSIONS)
    return max(joint_loss(piece.bases, piece.m).value for piece in small.pieces), small.stated, small.epsilon


def _small(subject: Subject, nominal: float, options: AuditOptions, few: int) -> Subject:
    """Return the mechanism for few dimensions, with at least two of them reported where that is free to choose."""
    if subject.device is None:
        return subject
    if isinstance(subject.device, DirectedMechanism):
        return small_directed(subject.device, few)
    setting = replace(options.setting, dimensions=subject.dimensions).few(few)
    small = subject_of(subject.name, nominal, setting)
    sampled = len(small.pieces) == 1 and small.m < setting.dimensions and 0 < nominal < math.inf
    if not sampled:
        return small
    return subject_of(subject.name, nominal, replace(setting, options={**setting.options, "m": max(2, small.m)}))


def _fit(subject: Subject, samples: int, rng: Callable[[str], np.random.Generator]) -> tuple[Fit, Power | None]:
    """Return the worst fit of all pieces, and the least power."""
    found, shown = Fit(), None
    count = len(subject.pieces)
    for piece in subject.pieces:
        share = max(1000, samples // count)
        chances = piece.chances if piece.inclusion else None
        one = fit(piece.bases, piece.perturb, share, rng(f"fit {piece.label}"), chances=chances)
        where = f"{piece.label} {one.where}".strip()
        found = replace(
            found,
            cells=min(found.cells, min(1.0, one.cells * count)),
            chi_square=min(found.chi_square, min(1.0, one.chi_square * count)),
            ks=min(found.ks, min(1.0, one.ks * count)),
            indices=min(found.indices, min(1.0, one.indices * count)),
            distance=max(found.distance, one.distance),
            where=where if one.p < found.p or not found.where else found.where,
        )
        base = piece.bases[0]
        if not base.deterministic and 0 < base.epsilon < math.inf:
            few = min(share, _POWER_SAMPLES)
            part = power(piece.bases, piece.perturb, few, rng(f"power {piece.label}"), chances)
            shown = (
                part
                if shown is None
                else Power(
                    wrong_budget=shown.wrong_budget and part.wrong_budget,
                    untouched_last=_both(shown.untouched_last, part.untouched_last),
                )
            )
    return found, shown


def _both(one: bool | None, other: bool | None) -> bool | None:
    return one if other is None else other if one is None else one and other


def _empirical(piece: Piece, samples: int, rng: np.random.Generator) -> tuple[Bound, float]:
    """Return the lower bound, and how all reports about the ends of the range fit their laws together."""
    base = piece.bases[0]
    if base.deterministic:
        return Bound(value=0.0, convicting=0.0, event="no event: the report is the value itself"), 1.0
    probe = _probe(piece, "")
    high, low = np.full(len(piece.bases), base.high), np.full(len(piece.bases), base.low)
    reports = [(x, piece.perturb(np.broadcast_to(x, (samples, len(x))), rng)) for x in (high, low)]
    bound = bound_of_scores(
        *(log_likelihood_ratio(piece.bases, sent, high, low) for _, sent in reports), name="log likelihood ratio"
    )
    ends = (int(np.argmax(probe.inside)), int(np.argmin(probe.inside)))
    ids = [np.broadcast_to(np.int64(end), (samples, len(piece.bases))) for end in ends]
    return bound, pooled(probe, [(sent, own) for (_, sent), own in zip(reports, ids, strict=True)], rng)


def _loss_problems(subject: Subject, exact: float, exact_delta: float) -> list[str]:
    found = []
    if not exact <= subject.epsilon + _slack(subject.epsilon):
        found.append(f"exact loss {_times(exact, subject.epsilon)}")
    if exact_delta > subject.delta * (1 + LOSS_TOLERANCE):
        found.append(f"exact delta {exact_delta:.3g} at the claimed epsilon, claimed {subject.delta:.3g}")
    return found


def _other_problems(
    subject: Subject, enumerated: float, stated: float, claimed: float, sampled: Fit, told: str, bound: Bound
) -> list[str]:
    found = []
    tolerance = _NUMERICAL_TOLERANCE * stated if subject.delta else _CROSS_TOLERANCE * (1 + stated)
    if math.isfinite(stated) and not abs(enumerated - stated) <= tolerance:
        found.append(f"the enumerated joint loss is {enumerated:.6g}, the mechanism states {stated:.6g}")
    if enumerated > claimed + _CROSS_TOLERANCE * (1 + claimed) and claimed < math.inf:
        found.append(f"the enumerated joint loss is {_times(enumerated, claimed)}")
    if not sampled.follows:
        why = told or (
            f"{sampled.where}: p {sampled.p:.1e} against {ALPHA:.0e}, distance {sampled.distance:.2g} of what is "
            "allowed"
        )
        found.append(f"the sampler does not follow the law ({why})")
    for piece in subject.pieces:
        loss = _sum_of_losses(piece) if piece.label and subject.delta == 0 else 0.0
        if loss > piece.epsilon + _CROSS_TOLERANCE * (1 + piece.epsilon):
            found.append(f"users of {piece.label} lose {loss:.6g}, and are promised {piece.epsilon:.6g}")
    promised = subject.pieces[-1].epsilon
    if subject.delta == 0 and bound.convicting > promised + _slack(promised):
        found.append(f"samples alone show at least {bound.convicting:.6g} ({bound.event})")
    return found


def _open(subject: Subject, shown: Power | None, samples: int, base: Any, piece: Piece) -> str:
    """Return what the tests cannot see here and what it would take, in words."""
    if shown is None or shown.shown:
        return ""
    parts = []
    if not shown.wrong_budget:
        needed = reports_needed(scaled(base), WRONG_BUDGET)
        parts.append(_too_close(needed, piece.m, most_samples(subject.m)))
    if shown.untouched_last is False:
        parts.append("an untouched last coordinate looks like the law here: " + _more(samples, piece))
    return "no power: " + "; ".join(parts)


def _by_samples(shown: Power | None, noticed: float) -> Power | None:
    """Return the power, with what the samples notice where the map from uniform numbers to reports does not tell."""
    if shown is None or shown.wrong_budget or noticed > WRONG_BUDGET:
        return shown
    return replace(shown, wrong_budget=True)


def _most_whole(subject: Subject) -> int:
    """Return how many reports a test draws at most of one that is audited as a whole."""
    return most_samples(subject.dimensions / 2)


def _too_close(needed: float, m: int, most: int) -> str:
    """Return what it takes to tell a wrong budget, of values that are sent m at a time about either end.

    `most`: reports that a test draws at most.
    """
    words = f"a budget {WRONG_BUDGET:g} times as large moves"
    if math.isinf(needed):
        return f"{words} no probability by what any number of reports can show"
    words += f" probabilities so little that about {needed:.1g} values would have to be compared"
    samples = math.ceil(needed / (2 * m))
    return f"{words}, more than is feasible" if samples > most else f"{words}: --samples {samples}"


def _more(samples: int, piece: Piece) -> str:
    share = float(piece.chances[-1])
    if share < 1:
        return f"it is in {share:.2g} of the reports: more --samples (now {samples}), or fewer --dimensions"
    return f"more --samples (now {samples}), or fewer --dimensions"


def _open_whole(found: WholeFinding, samples: int, most: int) -> str:
    if found.power.shown:
        return ""
    parts = []
    if not found.power.wrong_budget:
        parts.append(_too_close(max(reports_needed(law_of, WRONG_BUDGET) for law_of in found.laws_of), 1, most))
    if found.power.untouched_last is False:
        parts.append(f"an untouched last coordinate looks like the law here: more --samples (now {samples})")
    return "no power: " + "; ".join(parts)


def _noticed(base: Any, reports: float) -> float:
    if base.deterministic or not 0 < base.epsilon < math.inf:
        return math.inf
    return resolution(scaled(base), reports)


def _slack(epsilon: float) -> float:
    return LOSS_TOLERANCE * (1 + epsilon) if math.isfinite(epsilon) else 0.0


def _times(exact: float, claimed: float) -> str:
    if math.isinf(exact) or claimed == 0:
        return f"{exact:.6g}, claimed {claimed:g}"
    return f"{exact:.6g}, {exact / claimed:.3g} times the claimed {claimed:g}"


def _verdict(subject: Subject, problems: list[str], unseen: str, worst: str) -> str:
    if math.isinf(subject.epsilon):
        return "claims nothing"
    if problems:
        return "does not keep its claim: " + "; ".join(problems) + f"; {worst}"
    return unseen or "keeps its claim"
