"""How a call of the shipped sampler behaves: what a proof about one value of one report takes for granted.

That the values of a report are independent of each other, and people of each other; that the first row of a call, the
last one, one in a thousand and those beyond the sampler's blocks are treated like the rest; that ordinary values are
treated like the ends of the range, sparse features like dense ones and the operating system's random numbers like
numpy's; and that type, length and metadata of what is sent tell nothing.

Every value of a report becomes a number that is uniform on (0, 1) under the law of its input (the distribution
function at the report, and at random inside its step). So whatever the inputs are, right reports become independent
uniform numbers, and all of these questions are questions about uniform numbers. They are counted and compared with
exact binomial probabilities.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp import randomness
from graphldp.audit.budget import ALPHA, PROBES
from graphldp.audit.law import outcomes
from graphldp.client import Randomiser, Reports, draws
from graphldp.client.laws.density import Density
from graphldp.client.registry import NO_FEATURE

__all__ = ["Calls", "Conduct", "Probe", "ValueProbe", "WholeProbe", "conduct", "edges", "source_conduct", "uniforms_of"]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]

_ROWS = 70_000  # of a long call: more than 2^16, the largest block of anything that works in blocks of that size
_BLOCK = 2**16
_THOUSAND = 1000  # rows of which one might be treated unlike the rest
_EQUAL_ROWS = 20_000  # of a call whose rows are all equal
_DECIMALS = 2001  # ordinary values: round decimals, as people have them
_MOST_REPEATS = 48  # of a call whose rows are all equal
_COINCIDENCE = 1e-11  # how likely two rows that always agree may be, among all pairs of rows
# Events {u <= edge} and {u > 1 - edge} of a uniform number; the smallest are those of rare reports.
_EDGES = np.concatenate([2.0 ** -np.array([20, 17, 14, 11, 8, 6, 4, 3, 2]), [0.375, 0.5]])
_EDGES = np.unique(np.concatenate([_EDGES, 1 - _EDGES]))
_PAIR_EDGES = 2.0 ** -np.array([17, 14, 10, 6, 3, 2, 1])
_PAIR_EDGES = np.unique(np.concatenate([_PAIR_EDGES, 1 - _PAIR_EDGES]))
_DRAWN_BITS = 31  # of a number that is sent beside a report, such as that of a hash function
_COARSE = 2.0**-16  # a uniform number that is a multiple of this comes from a source without a tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How often which call is made.

    Attributes:
        ordinary: calls whose rows have values all over the range.
        ends: calls whose rows have the ends of the range by turns.
        equal: calls whose rows are all equal, at most; None for as many as tell two rows apart.
        rows: people in a call.
    """

    ordinary: int = 4
    ends: int = 2
    equal: int | None = None
    rows: int = _ROWS


@dataclass(slots=True, kw_only=True)
class Conduct:
    """What was found.

    Attributes:
        p: the smallest p-value, times the number of tests, and times PROBES.
        where: the test in words.
        told: what tells something without any chance, in words.
        tests: how many p-values there were.
    """

    p: float = 1.0
    where: str = ""
    told: str = ""
    tests: int = 0
    _lowest: float = field(default=1.0, repr=False)

    @property
    def follows(self) -> bool:
        """Whether nothing speaks against the sampler."""
        return not self.told and self.p >= ALPHA

    @property
    def text(self) -> str:
        """What speaks against it."""
        return self.told or f"{self.where}: p {self.p:.1e} against {ALPHA:.0e}"

    def tell(self, words: str) -> None:
        """Note something that no chance explains; the first such thing is kept."""
        self.told = self.told or words

    def count(self, hits: Any, samples: Any, chance: Any, names: Callable[[int], str]) -> None:
        """Test counts against their chances, each by itself and two-sided."""
        from scipy.stats import binom

        k, n, p = np.broadcast_arrays(np.atleast_1d(np.asarray(hits, dtype=np.float64)), samples, chance)
        self.tests += k.size
        expected, spread = n * p, np.sqrt(n * p * (1 - p))
        # Nothing within 4 deviations can matter; the exact tail is slow, and is computed beyond.
        far = np.flatnonzero(np.abs(k - expected) >= 4 * spread)
        if far.size:
            k, n, p = k[far], n[far], p[far]
            tails = 2 * np.minimum(binom.cdf(k, n, p), binom.sf(k - 1, n, p))
            place = int(np.argmin(tails))
            if tails[place] < self._lowest:
                self._lowest = float(tails[place])
                self.where = (
                    names(int(far[place])) + f", {k[place]:.0f} of {n[place]:.0f}, {n[place] * p[place]:.4g} expected"
                )
        self.p = min(1.0, self._lowest * max(1, self.tests) * PROBES)


class Probe(ABC):
    """Reports about known records, and what they become.

    Attributes:
        label: what is asked, for messages.
        sparse: whether the device takes CSR features.
        collision: the probability that two reports about the `equal` record are the same (their values, for reports
            of values).
        columns: uniform numbers of one report.
    """

    label: str
    sparse: bool
    collision: float
    columns: int

    @abstractmethod
    def ordinary(self, rows: int, turn: int) -> Whole:
        """Return which records people have: all kinds by turns."""

    @abstractmethod
    def ends(self, rows: int) -> Whole:
        """Return which records people have: two that differ most by turns."""

    @abstractmethod
    def equal(self, rows: int) -> Whole:
        """Return the record about which reports differ most, for everybody."""

    @abstractmethod
    def features(self, ids: Whole) -> Floats:
        """Return the features of these records."""

    @abstractmethod
    def perturb(self, features: Any, ids: Whole, source: Any) -> Reports:
        """Return the shipped sampler's reports."""

    @abstractmethod
    def uniforms(self, reports: Reports, ids: Whole, rng: np.random.Generator) -> Floats:
        """Return numbers that are uniform under the law, n x columns; NaN for what cannot be sent."""

    @abstractmethod
    def same(self, reports: Reports) -> NDArray[Any]:
        """Return what two people with shared noise and equal records would both send, n x something."""

    @abstractmethod
    def groups(self, ids: Whole) -> Iterator[tuple[str, Whole]]:
        """Yield kinds of records: a name, and the group 0, 1, ... of every uniform number (-1 for none)."""

    @abstractmethod
    def chosen(self, reports: Reports, ids: Whole, found: Conduct, where: str) -> None:
        """Test which dimensions were chosen."""


class ValueProbe(Probe):
    """m of d values, each by a scalar law, in records of ordinary values."""

    def __init__(
        self,
        bases: Sequence[Randomiser],
        m: int,
        perturb: Callable[[Any, Any], Reports],
        chances: Floats,
        label: str = "",
    ) -> None:
        self.bases, self.m, self._sampler, self.chances = tuple(bases), m, perturb, chances
        self.label = label
        base = bases[0]
        self.sparse = base.kind not in NO_FEATURE
        self.columns = m
        self.values = _values(base)
        self.inside = np.clip(self.values, base.low, base.high)
        self._laws: dict[Randomiser, Any] = {}
        middle = self.inside[self._middle]
        self.collision = max(_collision(base, middle) for base in dict.fromkeys(bases)) ** (m if m < 64 else 64)

    @property
    def _middle(self) -> int:
        return int(np.argmin(np.abs(self.inside - (self.bases[0].low + self.bases[0].high) / 2)))

    def ordinary(self, rows: int, turn: int) -> Whole:
        """Return value numbers: every row has its own values, in other dimensions in every turn."""
        i, j = np.arange(rows, dtype=np.int64)[:, None], np.arange(len(self.bases), dtype=np.int64)
        ids = (i * (2 * turn + 1) + 787 * j + 131 * turn) % len(self.values)
        if self.sparse and turn % 2:
            # People with no values, with one, with half of them and with all.
            zero = int(np.argmin(np.abs(self.values)))
            kind, own = i % 4, i // 4 % len(self.bases)
            none = (kind == 0) | ((kind == 1) & (j != own)) | ((kind == 2) & ((i + j) % 2 == 0))
            ids = np.where(none, zero, ids)
        return ids

    def ends(self, rows: int) -> Whole:
        """Return the numbers of the ends of the range, by rows."""
        low, high = int(np.argmin(self.inside)), int(np.argmax(self.inside))
        ids = np.where(np.arange(rows) % 2 == 0, high, low)
        return np.repeat(ids[:, None], len(self.bases), axis=1)

    def equal(self, rows: int) -> Whole:
        """Return the middle of the range for everybody."""
        return np.full((rows, len(self.bases)), self._middle, dtype=np.int64)

    def features(self, ids: Whole) -> Floats:
        """Return the values."""
        return self.values[ids]

    def perturb(self, features: Any, ids: Whole, source: Any) -> Reports:
        """Return the shipped sampler's reports."""
        return self._sampler(features, source)

    def _places(self, reports: Reports) -> Whole | None:
        return None if reports.index is None else np.asarray(reports.index, dtype=np.int64)

    def uniforms(self, reports: Reports, ids: Whole, rng: np.random.Generator) -> Floats:
        """Return the distribution function at each value, and at random inside its step."""
        index = self._places(reports)
        sent = np.asarray(reports.value, dtype=np.float64)
        which = ids if index is None else np.take_along_axis(ids, np.clip(index, 0, len(self.bases) - 1), axis=1)
        inner = rng.random(sent.shape)
        if len(set(self.bases)) == 1:
            return self._uniforms(self.bases[0], sent, which, inner)
        out = np.empty(sent.shape)
        at = np.broadcast_to(np.arange(len(self.bases)), sent.shape) if index is None else index
        for base in dict.fromkeys(self.bases):
            own = np.isin(at, [j for j, other in enumerate(self.bases) if other == base])
            out[own] = self._uniforms(base, sent[own], which[own], inner[own])
        return out

    def _uniforms(self, base: Randomiser, sent: Floats, which: Whole, inner: Floats) -> Floats:
        if isinstance(base, Density):
            return uniforms_of(base, sent, self.inside[which], inner)
        if base not in self._laws:
            law = outcomes(base, self.inside)
            self._laws[base] = law, np.concatenate([np.zeros((len(law.mass), 1)), np.cumsum(law.mass, axis=1)], axis=1)
        law, edges = self._laws[base]
        place = law.place(sent)
        known = place < len(law.y)
        place = np.where(known, place, 0)
        low, mass = edges[which, place], law.mass[which, place]
        return np.where(known & (mass > 0), low + inner * mass, np.nan)

    def fold(self, u: Floats, reports: Reports, ids: Whole) -> Floats:
        """Return the numbers turned so that a larger budget moves them all the same way."""
        index = self._places(reports)
        which = ids if index is None else np.take_along_axis(ids, np.clip(index, 0, ids.shape[1] - 1), axis=1)
        middle = (self.bases[0].low + self.bases[0].high) / 2
        return np.where(self.inside[which] < middle, 1 - u, u)

    def same(self, reports: Reports) -> NDArray[Any]:
        """Return the values."""
        return np.asarray(reports.value)

    def groups(self, ids: Whole) -> Iterator[tuple[str, Whole]]:
        """Yield every single value, and values by their size."""
        base = self.bases[0]
        yield "value", np.arange(len(self.values))
        if base.kind not in NO_FEATURE:
            part = np.clip((20 * (self.inside - base.low) / (base.high - base.low)).astype(np.int64), 0, 19)
            yield "twentieth of the range", part

    def chosen(self, reports: Reports, ids: Whole, found: Conduct, where: str) -> None:
        """Test how often each dimension was chosen, for people with few, many and large values."""
        d = len(self.bases)
        if reports.index is None:
            return
        index = np.asarray(reports.index)
        if (np.diff(index, axis=1) <= 0).any() or index.min(initial=0) < 0 or index.max(initial=0) >= d:
            found.tell(f"{self.label}{where}: dimensions are missing, doubled or out of order")
            return
        there = np.zeros((len(index), d), dtype=bool)
        np.put_along_axis(there, index.astype(np.int64), True, axis=1)
        size = np.abs(self.inside[ids] - self.inside[self._middle])
        kinds = {
            "": np.ones(len(index), dtype=bool),
            ", rows beyond 65,536": np.arange(len(index)) >= _BLOCK,
            **{f", people of kind {k}": np.arange(len(index)) % 4 == k for k in range(4)},
        }
        for name, rows in kinds.items():
            if rows.any():
                words = f"{self.label}{where}{name}: how often dimension {{}} is reported"
                found.count(there[rows].sum(axis=0), rows.sum(), self.chances, words.format)
        for name, place in (("largest", np.argmax(size, axis=1)), ("smallest", np.argmin(size, axis=1))):
            for chance in np.unique(self.chances):
                rows = np.flatnonzero(self.chances[place] == chance)
                words = f"{self.label}{where}: how often a person's {name} value is reported"
                found.count(there[rows, place[rows]].sum(), len(rows), chance, _always(words))


class WholeProbe(Probe):
    """Reports that are counted as a whole, about a few records with known laws."""

    def __init__(
        self,
        records: Floats,
        laws: Floats,
        place: Callable[[Reports], Whole],
        perturb: Callable[[Any, Whole, Any], Reports],
        *,
        sparse: bool,
        beside: Callable[[Reports], Whole] | None = None,
        label: str = "",
    ) -> None:
        order = np.argsort(laws, axis=1, kind="stable")
        self._records, self._place, self._sampler, self.label = records, place, perturb, label
        sorted_mass = np.take_along_axis(laws, order, axis=1)
        self._mass = laws
        self._low = np.empty_like(laws)
        np.put_along_axis(self._low, order, np.cumsum(sorted_mass, axis=1) - sorted_mass, axis=1)
        self.sparse, self._beside, self.columns = sparse, beside, 1 if beside is None else 3
        square = (laws**2).sum(axis=1)
        self._best = int(np.argmin(square))
        self.collision = float(square[self._best])

    def ordinary(self, rows: int, turn: int) -> Whole:
        """Return all records by turns."""
        return (np.arange(rows, dtype=np.int64) * (2 * turn + 1) + turn) % len(self._records)

    def ends(self, rows: int) -> Whole:
        """Return the first and the last record by turns."""
        return np.where(np.arange(rows) % 2 == 0, 0, len(self._records) - 1)

    def equal(self, rows: int) -> Whole:
        """Return the record with the most different reports."""
        return np.full(rows, self._best, dtype=np.int64)

    def features(self, ids: Whole) -> Floats:
        """Return the records' features."""
        return self._records[ids]

    def perturb(self, features: Any, ids: Whole, source: Any) -> Reports:
        """Return the shipped sampler's reports."""
        return self._sampler(features, ids, source)

    def uniforms(self, reports: Reports, ids: Whole, rng: np.random.Generator) -> Floats:
        """Return the distribution function at each report, the rarest first, and at random inside its step."""
        place = self._place(reports)
        known = (place >= 0) & (place < self._mass.shape[1])
        place = np.where(known, place, 0)
        mass = self._mass[ids, place]
        u = self._low[ids, place] + rng.random(len(place)) * mass
        u = np.where(known & (mass > 0), u, np.nan)[:, None]
        if self._beside is None:
            return u
        # Of a number that is drawn evenly the first bits are a uniform number, and the last ones turned round.
        drawn = self._beside(reports).astype(np.uint64)
        both = np.stack([drawn, _turned_round(drawn)], axis=1).astype(np.float64)
        return np.hstack([u, (both + rng.random(both.shape)) * 2.0**-_DRAWN_BITS])

    def same(self, reports: Reports) -> NDArray[Any]:
        """Return the number of the report."""
        return self._place(reports)[:, None]

    def groups(self, ids: Whole) -> Iterator[tuple[str, Whole]]:
        """Yield every record."""
        yield "record", np.arange(len(self._records))

    def chosen(self, reports: Reports, ids: Whole, found: Conduct, where: str) -> None:
        """Which dimensions are in a report is a part of it."""


def _turned_round(drawn: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers of 31 bits with these in the opposite order."""
    out = np.zeros_like(drawn)
    for place in range(_DRAWN_BITS):
        out |= ((drawn >> np.uint64(place)) & np.uint64(1)) << np.uint64(_DRAWN_BITS - 1 - place)
    return out


def conduct(probe: Probe, calls: Calls, rng: np.random.Generator) -> Conduct:
    """Return what the sampler's calls tell."""
    found = Conduct()
    looks: dict[str, Any] = {}
    _ordinary(probe, calls, rng, found, looks)
    _ends(probe, calls, rng, found, looks)
    _equal(probe, calls, rng, found, looks)
    return found


def source_conduct(found: Conduct) -> None:
    """Test the operating system's random numbers, and the small tail of uniform numbers."""
    one, two = randomness.SecureSource(), randomness.SecureSource()
    if (one.random(64) == two.random(64)).any() or (one.integers(0, 2**32, 64) == two.integers(0, 2**32, 64)).all():
        found.tell("the secure source gives the same numbers twice")
    count = 2**14
    bits = (one.random(count) * 2.0**53).astype(np.uint64)
    ones = [int(((bits >> np.uint64(k)) & np.uint64(1)).sum()) for k in range(53)]
    found.count(ones, count, 0.5, "bit {} of the secure source's numbers".format)
    for span in (3 * 2**30, 1433):  # a remainder would prefer the first quarter, or the smaller half
        drawn = one.integers(0, span, count)
        if drawn.min() < 0 or drawn.max() >= span:
            found.tell(f"the secure source's integers below {span} lie outside")
        hits = np.histogram(drawn, np.linspace(0, span, 7))[0]
        found.count(hits, count, _shares(span), f"sixth {{}} of the secure source's integers below {span}".format)
    fine = draws.uniform(np.random.Generator(np.random.PCG64DXSM(1)), count)
    if (fine.astype(np.float32) == fine).mean() > 0.5:
        found.tell("uniform numbers have 24 bits")
    small = draws.uniform(_Coarse(), 2**14)
    small = small[small < 2.0**-12]
    if (small == 0).any() or (np.rint(small / _COARSE) * _COARSE == small).mean() > 0.5:
        found.tell("uniform numbers have no small tail: what is rarer than their spacing never happens")


def _shares(span: int) -> Floats:
    edges = np.linspace(0, span, 7)
    return np.diff(np.ceil(edges)) / span


class _Coarse:
    """A source of few different numbers: those that are small have to be drawn again, finer."""

    def __init__(self) -> None:
        self._rng = np.random.Generator(np.random.PCG64DXSM(0))

    def random(self, size: Any) -> Floats:
        return np.asarray(np.floor(self._rng.random(size) / _COARSE) * _COARSE)

    def integers(self, low: int, high: int, size: Any) -> Whole:
        return np.asarray(self._rng.integers(low, high, size), dtype=np.int64)


def _call(
    probe: Probe, ids: Whole, turn: int, rng: np.random.Generator, found: Conduct, looks: dict[str, Any]
) -> tuple[Reports, str]:
    """Make a call with dense or sparse features, numpy's numbers or the secure ones, by turns."""
    features: Any = probe.features(ids)
    words = "dense"
    if probe.sparse and turn % 2:
        import scipy.sparse as sp

        features, words = sp.csr_array(features), "sparse"
    if turn // 2 % 2:
        source: Any = randomness.SecureSource()
        words += ", secure"
    else:
        source = rng
    reports = probe.perturb(features, ids, source)
    _look(reports, len(ids), found, looks, f"{probe.label}({words})")
    return reports, f"({words})"


def _look(reports: Reports, rows: int, found: Conduct, looks: dict[str, Any], where: str) -> None:
    """Compare what can be seen of a report beside its numbers with the calls before."""
    parts = {name: getattr(reports, name) for name in ("value", "index", "level")}
    seen: dict[str, Any] = {
        name: None if part is None else (type(part).__name__, str(part.dtype), part.shape[1:])
        for name, part in parts.items()
    }
    seen |= {"type": type(reports).__name__, "meta": repr(sorted(reports.meta.items()))}
    for name, part in parts.items():
        if part is not None and len(part) != rows:
            found.tell(f"{where}: {len(part)} rows of {name} about {rows} people")
    for name, now in seen.items():
        before = looks.setdefault(name, now)
        if before != now:
            was, is_now = ("", "") if name == "meta" else (f" {_plain(v)}" for v in (before, now))
            found.tell(f"{where}: the {name} depends on the data: first{was}, then{is_now or ' another'}")


def _plain(seen: Any) -> str:
    return "nothing" if seen is None else seen if isinstance(seen, str) else f"{seen[0]} of {seen[1]}, {seen[2]}"


def _ordinary(probe: Probe, calls: Calls, rng: np.random.Generator, found: Conduct, looks: dict[str, Any]) -> None:
    by_group: dict[str, Floats] = {}
    totals: dict[str, Floats] = {}
    special: dict[str, list[Whole]] = {"the first row": [], "the last row": [], "rows beyond 65,536": []}
    for turn in range(calls.ordinary):
        ids = probe.ordinary(calls.rows, turn)
        reports, where = _call(probe, ids, turn, rng, found, looks)
        u = probe.uniforms(reports, ids, rng)
        if _impossible(u, probe, where, found, ids):
            return
        turned = probe.fold(u, reports, ids) if isinstance(probe, ValueProbe) else u
        codes = _codes(turned)
        found.count(*_counted(codes), _names(f"{probe.label}{where} ordinary values"))
        for column in range(min(u.shape[1], 8)):
            found.count(*_counted(codes[:, column]), _names(f"{probe.label}{where} number {column} of a report"))
        _pairs(u, probe, where, found)
        probe.chosen(reports, ids, found, where)
        special["the first row"].append(codes[:1])
        special["the last row"].append(codes[-1:])
        if calls.rows > _BLOCK:
            special["rows beyond 65,536"].append(codes[_BLOCK:])
        which = _which(probe, reports, ids)
        place = np.arange(len(codes))[:, None] % _THOUSAND
        groups = [(name, group[which], int(group.max()) + 1) for name, group in probe.groups(ids)]
        for name, group, count in [*groups, ("row modulo 1,000", place, _THOUSAND)]:
            counts, total = _grouped(codes, np.broadcast_to(group, codes.shape), count)
            by_group[name] = by_group.get(name, 0) + counts
            totals[name] = totals.get(name, 0) + total
    for name, parts in special.items():
        if parts:
            found.count(*_counted(np.concatenate(parts)), _names(f"{probe.label}{name}"))
    for name, counts in by_group.items():
        total = totals[name]
        edges_of_all = np.tile(_EDGES, len(total))
        found.count(counts.reshape(-1), np.repeat(total, len(_EDGES)), edges_of_all, _group_names(probe, name))


def _group_names(probe: Probe, name: str) -> Callable[[int], str]:
    def words(place: int) -> str:
        group = place // len(_EDGES)
        which = f"{probe.values[group]:.6g}" if name == "value" and isinstance(probe, ValueProbe) else str(group)
        return f"{probe.label}{name} {which}"

    return words


def _always(words: str) -> Callable[[int], str]:
    return lambda _: words


def _which(probe: Probe, reports: Reports, ids: Whole) -> Whole:
    if not isinstance(probe, ValueProbe):
        return ids[:, None]
    if reports.index is None:
        return ids
    return np.take_along_axis(ids, np.asarray(reports.index, dtype=np.int64), axis=1)


def _ends(probe: Probe, calls: Calls, rng: np.random.Generator, found: Conduct, looks: dict[str, Any]) -> None:
    beyond = []
    for turn in range(calls.ends):
        ids = probe.ends(calls.rows)
        reports, where = _call(probe, ids, turn, rng, found, looks)
        u = probe.uniforms(reports, ids, rng)
        if _impossible(u, probe, where, found, ids):
            return
        turned = probe.fold(u, reports, ids) if isinstance(probe, ValueProbe) else u
        found.count(*edges(turned), _names(f"{probe.label}{where} the ends of the range"))
        _pairs(u, probe, where, found)
        probe.chosen(reports, ids, found, where)
        beyond.append(turned[_BLOCK:])
    if calls.rows > _BLOCK and beyond:
        found.count(*edges(np.concatenate(beyond)), _names(f"{probe.label}the ends, rows beyond 65,536"))


def _equal(probe: Probe, calls: Calls, rng: np.random.Generator, found: Conduct, looks: dict[str, Any]) -> None:
    """Find rows that always send the same, and any two rows that always agree."""
    if calls.equal == 0 or not 0 < probe.collision < 1:
        return
    rows = min(calls.rows, _EQUAL_ROWS)
    wanted = math.ceil(math.log(_COINCIDENCE / rows**2) / math.log(probe.collision))
    if wanted > (_MOST_REPEATS if calls.equal is None else calls.equal):
        return
    ids = probe.equal(rows)
    seal = np.zeros(rows, dtype=np.uint64)
    first: NDArray[Any] | None = None
    still = np.ones(rows, dtype=bool)
    for turn in range(max(2, wanted)):
        reports, _ = _call(probe, ids, turn, rng, found, looks)
        same = np.ascontiguousarray(probe.same(reports))
        if len(same) != rows:
            return
        first = same if first is None else first
        still &= (same == first).all(axis=1)
        seal = _sealed(seal, same, turn)
    if still.any():
        row = int(np.flatnonzero(still)[0])
        found.tell(f"{probe.label}row {row} of {rows} sends the same in every one of {turn + 1} calls")
    order = np.argsort(seal, kind="stable")
    twice = np.flatnonzero(np.diff(seal[order]) == 0)
    if twice.size:
        one, two = sorted(int(r) for r in order[twice[0] : twice[0] + 2])
        found.tell(f"{probe.label}rows {one} and {two} of {rows} have the same noise in every one of {turn + 1} calls")


def _sealed(seal: NDArray[np.uint64], same: NDArray[Any], turn: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of everything that a row has sent so far."""
    bits = np.asarray(same, dtype=np.float64).view(np.uint64)
    for column in range(min(same.shape[1], 64)):
        seal = (seal ^ bits[:, column]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(turn + 1)
        seal ^= seal >> np.uint64(29)
    return seal


def _impossible(u: Floats, probe: Probe, where: str, found: Conduct, ids: Whole) -> bool:
    wrong = np.argwhere(np.isnan(u))
    if wrong.size:
        row = int(wrong[0][0])
        found.tell(f"{probe.label}{where}: row {row} of {len(u)} sends what its law cannot send")
    return bool(wrong.size)


def edges(u: Floats) -> tuple[Whole, int, Floats]:
    """Return how many numbers lie at or below each edge, how many there are, and the edges."""
    return _counted(_codes(u))


def _codes(u: Floats) -> Whole:
    """Return for each number how many edges lie below it."""
    return np.searchsorted(_EDGES, u, side="left")


def _counted(codes: Whole) -> tuple[Whole, int, Floats]:
    bins = np.bincount(codes.reshape(-1), minlength=len(_EDGES) + 1)
    return np.cumsum(bins)[:-1], int(codes.size), _EDGES


def _grouped(codes: Whole, group: Whole, groups: int) -> tuple[Floats, Floats]:
    bins = (codes + group * (len(_EDGES) + 1)).reshape(-1)
    table = np.bincount(bins, minlength=groups * (len(_EDGES) + 1)).reshape(groups, -1)
    counts = np.cumsum(table, axis=1)
    return counts[:, :-1].astype(np.float64), counts[:, -1].astype(np.float64)


def _names(words: str) -> Callable[[int], str]:
    return lambda place: f"{words}: below {_EDGES[place]:.3g} of their distribution"


def _pairs(u: Floats, probe: Probe, where: str, found: Conduct) -> None:
    """Test that two values of a report, and two people, go each their own way."""
    code = np.searchsorted(_PAIR_EDGES, u, side="left")
    rows, columns = u.shape
    for lag in sorted({1, 2, columns // 2, columns - 1} - {0}):
        if lag < columns:
            left = [a for a in range(columns - lag) if a % (2 * lag) < lag]
            _pair(
                code[:, left], code[:, [a + lag for a in left]], found, f"{probe.label}{where} two values of a report"
            )
    for lag in (1, 2, rows // 2, rows - 1):
        people = np.arange(rows - lag)
        people = people[people % (2 * lag) < lag]
        _pair(code[people], code[people + lag], found, f"{probe.label}{where} two people, {lag} rows apart")


def _pair(one: Whole, two: Whole, found: Conduct, words: str) -> None:
    width = len(_PAIR_EDGES) + 1
    share = np.diff(np.concatenate([[0.0], _PAIR_EDGES, [1.0]]))
    counts = np.bincount((one * width + two).reshape(-1), minlength=width**2)
    found.count(counts, one.size, np.outer(share, share).reshape(-1), _always(words))


def uniforms_of(base: Any, sent: Floats, x: Floats, inner: Floats) -> Floats:
    """Return the distribution function of a real-valued report at what was sent, and at random inside its grid cell."""
    unit = (sent - base._shift) / base._scale
    steps = np.rint(unit / base.step)
    on_grid = np.abs(unit / base.step - steps) <= 1e-3 + 1e-6 * (
        np.abs(steps) + abs(base._shift / base._scale / base.step)
    )
    z = 2 * ((x - base.low) / (base.high - base.low)) - 1
    left, right = base._cell_of(steps * base.step)
    low, high = base._cdf(left, z), base._cdf(right, z)
    inside = on_grid & (np.abs(steps) <= base.steps) & (high > low)
    return np.where(inside, low + inner * (high - low), np.nan)


def _values(base: Randomiser) -> Floats:
    """Return the values of records: round decimals, both ends, and some outside of the range."""
    if base.kind in NO_FEATURE:
        return np.arange(base.low, base.high + 1)
    half = (base.high - base.low) / 2
    digits = 4 - math.floor(math.log10(half))
    inside = np.clip(np.round(np.linspace(base.low, base.high, _DECIMALS), digits), base.low, base.high)
    beyond = [base.low - half, base.high + 3 * half, 1e30, -np.inf, np.inf, 0.0]
    return np.concatenate([inside, [(base.low + base.high) / 2], beyond])


def _collision(base: Randomiser, x: float) -> float:
    return float((outcomes(base, x).mass[0] ** 2).sum())
