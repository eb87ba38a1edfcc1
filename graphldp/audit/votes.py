"""A vote, audited by the set of classes that an answer names, of which the law is written out here."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.budget import ALPHA
from graphldp.audit.empirical import bound_of_scores
from graphldp.audit.exact import vector
from graphldp.audit.fit import FEWEST_TOUCHED, WRONG_BUDGET, Power, either_way
from graphldp.audit.quantiles import map_differs, map_distance
from graphldp.audit.subject import FEW, AuditSetting, subject_of
from graphldp.audit.whole import Case, WholeFinding, whole_problems
from graphldp.client import Randomiser, Reports
from graphldp.client.vote import Vote
from graphldp.randomness import generator

__all__ = ["audit_vote", "vote_case"]

Floats: TypeAlias = NDArray[np.float64]

_POWER_SAMPLES = 120_000


def vote_case(nominal: float, setting: AuditSetting) -> Case:
    """Return the case of people at the corners of the range, one or two for each class."""
    small: Any = subject_of("vote", nominal, setting.few(FEW)).device
    return _case(small)


def _case(device: Any) -> Case:
    corners = np.array(list(itertools.product((device.low, device.high), repeat=min(device.dimensions, FEW))))
    features = np.tile(corners, (1, -(-device.dimensions // corners.shape[1])))[:, : device.dimensions]
    # The class with the highest score, by the formula: what a person would say if she told.
    own = [_own(device, x) for x in features]
    keep = [k for k, c in enumerate(own) if own[:k].count(c) < 2]
    sets = list(itertools.combinations(range(device.classes), device.m))
    logs = np.array([_log_law(device, sets, own[k]) for k in keep])
    codes = np.array([sum(1 << c for c in chosen) for chosen in sets])
    table = np.full(2**device.classes, len(sets))
    table[codes] = np.arange(len(sets))

    def place(reports: Reports) -> NDArray[np.int64]:
        named = np.asarray(reports.value, dtype=np.int64)
        known = ((named >= 0) & (named < device.classes)).all(axis=1) & (np.diff(named, axis=1) > 0).all(axis=1)
        return np.where(known, table[(1 << np.clip(named, 0, device.classes - 1)).sum(axis=1) % len(table)], len(sets))

    return Case(
        device=device,
        records=[f"features {vector(features[k])}" for k in keep],
        outputs=[f"that names the classes {vector(np.array(chosen))}" for chosen in sets],
        features=features[keep],
        logs=logs,
        place=place,
        perturb=lambda rows, ids, source: device.perturb(rows, source),
        sparse=True,
    )


def _own(device: Vote, x: Floats) -> int:
    scores = [_score(device, x, c) for c in range(device.classes)]
    return scores.index(max(scores))


def _score(device: Vote, x: Floats, c: int) -> float:
    return math.fsum(float(w) * float(v) for w, v in zip(device.weights[:, c], x, strict=True)) - float(
        device.offsets[c]
    )


def _log_law(device: Vote, sets: list[tuple[int, ...]], own: int) -> Floats:
    odds = np.array([0.0 if own in chosen else -device.epsilon for chosen in sets])
    return np.asarray(odds - np.logaddexp.reduce(odds))


def audit_vote(subject: Any, nominal: float, setting: AuditSetting, samples: int, seed: int) -> WholeFinding:
    """Return the finding about votes."""
    device = subject.device
    case = vote_case(nominal, setting)
    small, loss = case.device, case.loss

    def rng(test: str) -> np.random.Generator:
        return generator(seed, "audit", "vote", nominal, device.dimensions, test)

    found = case.fit(samples, rng("fit"))
    skipped = case.fit(_POWER_SAMPLES, rng("power"), lambda ids, reports: _untouched(case, ids, reports))

    def law_of(factor: float) -> Randomiser:
        more = Vote.of(small.epsilon * factor, small.weights, small.offsets, small.low, small.high, small.m)
        return more.choice

    own = _case(device)
    first = int(np.argmax(own.laws.max(axis=1)))
    apart = np.abs(own.laws - own.laws[first]).sum(axis=1)
    other = (first, int(np.argmax(apart)))
    ratio = np.append(own.logs[other[0]] - own.logs[other[1]], 0.0)
    scores = [
        ratio[own.place(device.perturb(np.tile(own.features[k], (samples, 1)), rng(f"empirical {k}")))] for k in other
    ]
    bound = bound_of_scores(*scores, name="log likelihood ratio")
    return WholeFinding(
        bound=bound,
        fit=replace(found, distance=map_distance(small.choice, small.choice)),
        power=Power(
            wrong_budget=map_differs(small.choice, either_way(law_of, WRONG_BUDGET)),
            untouched_last=skipped.p < ALPHA if _touched(small) else None,
        ),
        enumerated=loss.value,
        stated=small.privacy_loss(),
        worst=loss,
        variance_worst=math.nan,
        variance_mean=math.nan,
        bias=math.nan,
        problems=whole_problems(small.claim.epsilon, loss, small.privacy_loss(), found, bound),
        case=case,
        laws_of=(law_of,),
    )


def _touched(device: Vote) -> bool:
    """Return whether the law names the last class often enough, of those whose class it is not, to tell if it does."""
    return device.chances()[1] * _POWER_SAMPLES / 6 >= FEWEST_TOUCHED


def _untouched(case: Case, ids: NDArray[np.int64], reports: Reports) -> Reports:
    """Return the answers of a device that never names the last class but for those whose class it is."""
    device: Any = case.device
    value = np.array(reports.value)
    last = device.classes - 1
    own = np.array([_own(device, x) for x in case.features])[ids]
    wrong = (value == last).any(axis=1) & (own != last)
    value[wrong] = np.arange(device.m)
    return Reports(value=value)
