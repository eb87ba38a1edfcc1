"""How a claim of a paper is judged: a kind of rule for each way, read from papers/claims/rules.yaml.

A rule looks at the numbers that `ldp reproduce` has made, under the paper's protocol or under ours, at a file that
another command has measured, or at a mechanism's law, and gives a verdict with its reason.
"""

from __future__ import annotations

import csv
import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from graphldp.datasets import names as dataset_names
from graphldp.errors import DataError
from graphldp.evaluation import Interval
from graphldp.stages.grids.targets import not_at_hand
from graphldp.stages.grids.yamls import read_paper
from graphldp.stages.pages.docs_numbers import expected_error, raw_variance, scalar_variance
from graphldp.stages.pages.reproduced import Line, lines_of
from graphldp.stages.pages.tables import span

__all__ = ["FAILS", "TOLERANCE", "VERDICTS", "ClaimRule", "Claimed", "Judged", "read_rules"]

HOLDS, FAILS, UNKNOWN, UNTESTABLE = VERDICTS = ("holds", "does not hold", "cannot be told here", "not testable")
TOLERANCE = 1.5  # points by which a number that a text calls "about" may be off
_WIDE = 3.0  # an interval that reaches further to each side tells nothing of such a number
_COMPARED = ("duchi", "pm", "hm", "to", "pm-sub", "lp", "latent", "ome")

Verdict: TypeAlias = tuple[str, str]  # and its reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A claim as the paper has it."""

    number: int
    paper: str
    where: str
    dataset: str
    metric: str
    value: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with its verdicts, under the paper's protocol and under ours, and the reasons.

    Attributes:
        target: what `ldp reproduce` makes of it; empty where no run is needed.
        profile: which profile's numbers were looked at; empty where none were.
        beside: what has to be known of it.
        leading: the claim in short, of those on which most depends; empty of the others.
    """

    claim: Claimed
    theirs: str
    ours: str
    theirs_why: str
    ours_why: str
    target: str = ""
    profile: str = ""
    beside: str = ""
    leading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRule(ABC):
    """How one claim is judged.

    Attributes:
        claim: its number.
        beside: what has to be known of the verdict.
        leading: the claim in short, of those on which most depends.
    """

    claim: int
    beside: str = ""
    leading: str = ""

    @abstractmethod
    def judged(self, claim: Claimed, results: Path) -> Judged:
        """Return the claim with its verdicts under both protocols."""

    def _both(self, claim: Claimed, found: Sequence[Verdict], *, target: str = "", profile: str = "") -> Judged:
        theirs, ours = found
        return Judged(
            claim=claim, theirs=theirs[0], theirs_why=theirs[1], ours=ours[0], ours_why=ours[1], target=target,
            profile=profile, beside=self.beside, leading=self.leading,
        )  # fmt: skip


class _WithoutRuns(ClaimRule):
    """A rule whose verdict no protocol moves."""

    __slots__ = ()

    def judged(self, claim: Claimed, results: Path) -> Judged:
        found = self.verdict(claim, results)
        return self._both(claim, (found, found))

    @abstractmethod
    def verdict(self, claim: Claimed, results: Path) -> Verdict:
        """Return the verdict and its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(_WithoutRuns):
    """Not judged: because of `why`, or because the data set is not at hand."""

    dataset: str = ""
    why: str = ""

    def verdict(self, claim: Claimed, results: Path) -> Verdict:
        """Say why."""
        if self.why:
            return UNTESTABLE, self.why
        if self.dataset not in dataset_names():
            raise DataError(f"the rule of claim {self.claim} names no data set: {self.dataset!r}")
        return UNKNOWN, f"{self.dataset} was {not_at_hand(self.dataset)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InFile(_WithoutRuns):
    """A number that another command has measured: a `column` of a CSV file's first row that has what `where` says."""

    file: str
    where: Mapping[str, str]
    column: str
    how: str
    command: str
    factor: float = 1.0
    tolerance: float = TOLERANCE

    def verdict(self, claim: Claimed, results: Path) -> Verdict:
        """Compare the number with the claimed one."""
        path = results / self.file
        rows: list[dict[str, str]] = []
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as handle:
                rows = [
                    row for row in csv.DictReader(handle) if all(row[key] == value for key, value in self.where.items())
                ]
        if not rows:
            return UNKNOWN, f"not measured here; `{self.command}`"
        mean = self.factor * float(rows[0][self.column])
        found = Interval.of_error(mean, self.factor * float(rows[0].get(f"{self.column}_error") or 0))
        verdict = _verdict(found, claim.value, self.how, self.tolerance)
        return verdict, f"{mean:.3g}; claimed {self.how} {claim.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerVariance(_WithoutRuns):
    """What `low` sends has a lower variance than the unbiased estimate of `high`, up to the claimed budget."""

    low: str
    high: str

    def verdict(self, claim: Claimed, results: Path) -> Verdict:
        """Compare worst variances, as the paper does: of the square wave, what it sends."""
        low, high = self.low, self.high
        grid = map(float, np.linspace(0.05, claim.value, 100))
        above = next((e for e in grid if raw_variance(low, e) >= scalar_variance(high, e)), None)
        if above is not None:
            return (
                FAILS,
                f"from the laws: at epsilon {above:.2f} the worst variance of {low} is no longer below that of {high}",
            )
        return (
            HOLDS,
            f"from the laws: what {low} sends has the lower worst variance up to {claim.value:g}; it is biased (E29)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalError(_WithoutRuns):
    """FeatureRR's expected error is at most a little above the best other one's where epsilon is below `below`."""

    below: float

    def verdict(self, claim: Claimed, results: Path) -> Verdict:
        """Compare expected errors as the paper does."""
        ratios = [_errors(float(e))[1] / _errors(float(e))[0] for e in np.geomspace(0.05, self.below, 8)]
        return (
            HOLDS if max(ratios) < 1.1 else FAILS,
            f"from the laws: below {self.below:g} the best other has {min(ratios):.1f} to {max(ratios):.1f} times "
            "its error, which is more than marginal",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LowestError(_WithoutRuns):
    """FeatureRR's expected error is the lowest between two budgets."""

    between: tuple[float, float]

    def verdict(self, claim: Claimed, results: Path) -> Verdict:
        """Compare expected errors as the paper does."""
        grid = map(float, np.geomspace(*self.between, 24))
        behind = next((e for e in grid if _errors(e)[0] > _errors(e)[1]), None)
        if behind is not None:
            return FAILS, f"from the laws: at epsilon {behind:.2g} another mechanism's worst expected error is lower"
        return (
            HOLDS,
            "from the laws: lowest everywhere in between, its biased bins against unbiased estimates (errata E37)",
        )


@cache
def _errors(epsilon: float) -> tuple[float, float]:
    """Return FeatureRR's expected error, of its bins as they are, and the others' lowest, rectified."""
    own = expected_error("featurerr", epsilon, raw=True)
    return own, min(expected_error(name, epsilon) for name in _COMPARED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnRuns(ClaimRule):
    """A rule about a row of a target, on one data set.

    Attributes:
        target: what `ldp reproduce` makes.
        row: the row.
        dataset: the data set.
    """

    target: str
    row: str
    dataset: str

    def judged(self, claim: Claimed, results: Path) -> Judged:
        """Return the verdicts on the lines of the larger profile that has the data set."""
        profile, lines = _lines(results, self.target, self.dataset)
        found = []
        for column in ("theirs", "ours"):
            try:
                found.append(self.verdict(claim, lines, column))
            except LookupError:
                found.append((UNKNOWN, f"not run here; `ldp reproduce {self.target} --datasets {self.dataset}`"))
        return self._both(claim, found, target=self.target, profile=profile)

    @abstractmethod
    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Return the verdict under one protocol and its reason; LookupError where a number is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(_OnRuns):
    """A row less another one, or less the best of several."""

    less: tuple[str, ...]
    epsilon: float
    how: str

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Compare the smallest difference with the claimed one."""
        one = _one(lines, column, self.row, self.epsilon)
        found = {name: _less(one, _one(lines, column, name, self.epsilon)) for name in self.less}
        name, gain = min(found.items(), key=lambda item: item[1].mean)
        verdict = _gained(gain, claim.value, self.how)
        return verdict, f"{self.row} less {name}: {span(gain, sign=True)}; claimed {self.how} {claim.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanGain(ClaimRule):
    """A row less another one, in the mean over those of several data sets that were run."""

    target: str
    row: str
    datasets: tuple[str, ...]
    less: str
    epsilon: float
    how: str

    def judged(self, claim: Claimed, results: Path) -> Judged:
        """Return the verdicts on the mean."""
        tables = {name: _lines(results, self.target, name) for name in self.datasets}
        found, profiles = [], set()
        for column in ("theirs", "ours"):
            gains = {}
            for name, (profile, lines) in tables.items():
                try:
                    one, other = (_one(lines, column, row, self.epsilon) for row in (self.row, self.less))
                except LookupError:
                    continue
                gains[name] = _less(one, other)
                profiles.add(profile)
            found.append(self._verdict(claim, gains))
        return self._both(claim, found, target=self.target, profile=" and ".join(sorted(profiles)))

    def _verdict(self, claim: Claimed, gains: Mapping[str, Interval]) -> Verdict:
        if not gains:
            return UNKNOWN, f"not run here; `ldp reproduce {self.target} --datasets {self.datasets[0]}`"
        mean = _mean(list(gains.values()))
        words = f"{self.row} less {self.less}, over {', '.join(gains)}: {span(mean, sign=True)}"
        return _gained(mean, claim.value, self.how), f"{words}; claimed {self.how} {claim.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(_OnRuns):
    """A row, at its place on an axis where it has one."""

    epsilon: float
    how: str
    place: str | None = None

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Compare the row's number with the claimed one."""
        found = _one(lines, column, self.row, self.epsilon, self.place)
        return _verdict(found, claim.value, self.how), f"{span(found)}; claimed {self.how} {claim.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation(_OnRuns):
    """The standard deviation of a row over its runs."""

    epsilon: float
    tolerance: float

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Compare the deviation with the claimed one."""
        from scipy.special import stdtrit

        found = _one(lines, column, self.row, self.epsilon)
        # Half of Student's interval is the deviation over the root of the number of runs, times a quantile.
        deviation = (found.high - found.low) / 2 * math.sqrt(found.runs) / float(stdtrit(found.runs - 1, 0.975))
        verdict = HOLDS if abs(deviation - claim.value) <= self.tolerance else FAILS
        return verdict, f"a standard deviation over runs of about {deviation:.1f}; claimed {claim.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnAxis(_OnRuns):
    """A rule about the places of a row on an axis of its target."""

    axis: str

    def along(self, lines: Sequence[Line], column: str, epsilon: float) -> dict[float, Interval]:
        """Return the row's numbers at a budget by their places."""
        places = [line.place for line in lines if line.row == self.row and _is(line, epsilon)]
        own = [place for place in dict.fromkeys(places) if place.startswith(f"{self.axis} ")]
        if not own:
            raise LookupError(self.axis)
        return {float(place.split()[-1]): _one(lines, column, self.row, epsilon, place) for place in own}

    def ran(self, lines: Sequence[Line], epsilons: Sequence[float]) -> list[float]:
        """Return those of the budgets that were run: a small profile has fewer."""
        found = [epsilon for epsilon in epsilons if any(line.row == self.row and _is(line, epsilon) for line in lines)]
        if not found:
            raise LookupError(self.row)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Best(_OnAxis):
    """The place at which a row is best: the claimed one, or one at most as large."""

    epsilons: tuple[float, ...]
    at_most: bool = False

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Say at each budget where it is best, and whether other places can be told from it."""
        verdicts, words = [], []
        for epsilon in self.ran(lines, self.epsilons):
            found = self.along(lines, column, epsilon)
            claimed = {value for value in found if (value <= claim.value if self.at_most else value == claim.value)}
            top, verdict = _best_in(found, claimed)
            verdicts.append(verdict)
            words.append(f"epsilon {epsilon:g}: best at {top:g} ({span(found[top])})")
        return _worst(verdicts), "; ".join(words) + f"; claimed {claim.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BestBetween(_OnAxis):
    """The place at which a row is best: between two others."""

    epsilon: float
    between: tuple[float, float]

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Say where it is best, and whether places inside and outside can be told apart."""
        low, high = self.between
        found = self.along(lines, column, self.epsilon)
        top, verdict = _best_in(found, {value for value in found if low <= value <= high})
        return verdict, f"best at {top:g} ({span(found[top])}); claimed between {low:g} and {high:g}" + (
            "; places inside and outside cannot be told apart" if verdict == UNKNOWN else ""
        )


def _best_in(found: Mapping[float, Interval], claimed: set[float]) -> tuple[float, str]:
    """Return the best place, and the verdict on its being one of the claimed ones."""
    top = max(found, key=lambda value: found[value].mean)
    equal = any(found[value].high >= found[top].low for value in found if (value in claimed) != (top in claimed))
    return top, UNKNOWN if equal else HOLDS if top in claimed else FAILS


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(_OnAxis):
    """The best less the worst place of a row: at most the claimed number."""

    epsilons: tuple[float, ...]

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Compare the spread at each budget with the claimed one."""
        verdicts, words = [], []
        for epsilon in self.ran(lines, self.epsilons):
            found = self.along(lines, column, epsilon)
            top, bottom = (pick(found.values(), key=lambda one: one.mean) for pick in (max, min))
            spread = _less(top, bottom)
            verdicts.append(HOLDS if spread.mean <= claim.value else _verdict(spread, claim.value, "below"))
            words.append(f"epsilon {epsilon:g}: {spread.mean:.1f}")
        return _worst(verdicts), f"best less worst, {'; '.join(words)}; claimed at most {claim.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rises(_OnAxis):
    """A row is best at its last place."""

    epsilon: float

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Say where it is best, and what the last place has."""
        found = self.along(lines, column, self.epsilon)
        last, top = max(found), max(found, key=lambda value: found[value].mean)
        verdict = HOLDS if last == top else UNKNOWN if found[last].high >= found[top].low else FAILS
        return verdict, f"best at {top:g} ({span(found[top])}), at {last:g} {span(found[last])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchesUp(_OnRuns):
    """A row is behind others at the budget `far`, and level with them at `near`."""

    others: tuple[str, ...]
    far: float
    near: float

    def verdict(self, claim: Claimed, lines: Sequence[Line], column: str) -> Verdict:
        """Compare the distances at both budgets with the tolerance."""
        gaps = {
            epsilon: [
                _less(_one(lines, column, other, epsilon), _one(lines, column, self.row, epsilon))
                for other in self.others
            ]
            for epsilon in (self.far, self.near)
        }
        behind = all(gap.low > TOLERANCE for gap in gaps[self.far])
        level = all(gap.low <= TOLERANCE for gap in gaps[self.near])
        words = "; ".join(
            f"epsilon {epsilon:g}: behind by {' and '.join(map(span, found))}" for epsilon, found in gaps.items()
        )
        return (HOLDS if behind and level else FAILS), words


def _lines(results: Path, target: str, dataset: str) -> tuple[str, list[Line]]:
    """Return the lines of a target that hold numbers of a data set, of the larger profile that has any."""
    for profile in ("paper", "quick"):
        found = lines_of(results / "reproduce" / target.replace(":", "-") / profile / "table.csv")
        if own := [line for line in found if line.dataset == dataset and line.theirs is not None]:
            return profile, own
    return "", []


def _is(line: Line, epsilon: float) -> bool:
    return line.epsilon is not None and math.isclose(line.epsilon, epsilon)


def _one(lines: Sequence[Line], column: str, row: str, epsilon: float, place: str | None = None) -> Interval:
    """Return a row's interval in a column; the largest budget where it has one that the others do not."""
    fits = [line for line in lines if line.row == row and not line.metric.endswith("gain")]
    fits = [line for line in fits if place is None or line.place == place]
    fits = [line for line in fits if _is(line, epsilon)] or [line for line in fits if line.epsilon == math.inf]
    found: Interval | None = getattr(fits[0], column) if fits else None
    if found is None:
        raise LookupError(row)
    return found


def _less(one: Interval, other: Interval) -> Interval:
    """Return the difference; its ends as if the two were independent, which is cautious: they share their splits."""
    mean = one.mean - other.mean
    down = math.hypot(one.mean - one.low, other.high - other.mean)
    up = math.hypot(one.high - one.mean, other.mean - other.low)
    return Interval(mean=mean, low=mean - down, high=mean + up, runs=min(one.runs, other.runs))


def _mean(gains: Sequence[Interval]) -> Interval:
    """Return the mean of differences on several data sets, which are independent."""
    mean = sum(one.mean for one in gains) / len(gains)
    down, up = (
        math.hypot(*(getattr(one, end) - one.mean for one in gains)) / len(gains) for end in ("low", "high")
    )  # fmt: skip
    return Interval(mean=mean, low=mean - down, high=mean + up, runs=min(one.runs for one in gains))


def _verdict(found: Interval, value: float, how: str, tolerance: float = TOLERANCE) -> str:
    if how == "about":
        if found.low > value + tolerance or found.high < value - tolerance:
            return FAILS
        wide = max(found.high - found.mean, found.mean - found.low) > _WIDE * tolerance / TOLERANCE
        return HOLDS if abs(found.mean - value) <= tolerance and not wide else UNKNOWN
    above = how in ("above", "at least")
    side = found.against(value)
    if side in ("same", "unknown"):
        return UNKNOWN
    return HOLDS if (side == "above") == above else FAILS


def _gained(found: Interval, value: float, how: str) -> str:
    """Return the verdict on a difference: "about" a number that is not 0 holds only where ours is measurably not 0."""
    verdict = _verdict(found, value, how)
    unclear = how == "about" and value and found.against(0.0) in ("same", "unknown")
    return UNKNOWN if unclear and verdict == HOLDS else verdict


def _worst(verdicts: Sequence[str]) -> str:
    return max(verdicts, key=[HOLDS, UNKNOWN, FAILS].index)


_KINDS: Mapping[str, type[ClaimRule]] = {
    "gain": Gain,
    "mean gain": MeanGain,
    "score": Score,
    "deviation": Deviation,
    "best": Best,
    "best between": BestBetween,
    "spread": Spread,
    "rises": Rises,
    "catches up": CatchesUp,
    "file": InFile,
    "lower variance": LowerVariance,
    "marginal error": MarginalError,
    "lowest error": LowestError,
    "open": Open,
}


def read_rules(path: Path) -> list[ClaimRule]:
    """Return the rules of a file, in its order; one that has other keys than its kind is refused."""
    return [_rule(dict(entry), path) for entry in read_paper(path)]


def _rule(entry: dict[str, Any], path: Path) -> ClaimRule:
    kind, number = entry.pop("kind", None), entry.get("claim")
    if kind not in _KINDS:
        raise DataError(f"{path}: claim {number} has no kind {kind!r}; there are {', '.join(_KINDS)}")
    known = dataclasses.fields(_KINDS[kind])
    needed = {one.name for one in known if one.default is dataclasses.MISSING}
    missing, wrong = needed - entry.keys(), entry.keys() - {one.name for one in known}
    if missing or wrong:
        which = f"{'lacks' if missing else 'has no'} {', '.join(sorted(missing or wrong))}"
        raise DataError(f"{path}: claim {number}, kind {kind}: {which}")
    values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in entry.items()}
    return _KINDS[kind](**values)
