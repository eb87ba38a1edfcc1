"""Anybody's reports, read without losing anything: their numbers, what they are made of, and all of it as one code.

A report is whatever leaves the device: its values, and also their types, lengths, containers and order, the fields of
objects, and the error where there is no report. Whatever of it depends on the input may give the input away.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import struct
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError

__all__ = ["Raised", "Reading", "ReportNumber", "Table", "bit_measures", "flatten", "measures", "pair_measures", "read"]
__all__ += ["table", "varying"]

Floats: TypeAlias = NDArray[np.float64]

_NOTHING = 1e200  # stands for a missing part, and for infinity: still a number that can be binned
_MOST_COLUMNS = 64  # coordinates that are looked at one by one
_PAIRED = 8  # coordinates that are looked at two by two
_DEEPEST = 64  # parts within parts of a report
_LONGEST = 10**6  # parts that an iterator may give
_SHOWN = 120  # letters of a word or a kind in a verdict
_WHOLE = 2.0**53  # whole numbers beyond it are no float64
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclasses.dataclass(frozen=True, slots=True)
class Raised:
    """The error that a device showed instead of a report.

    Attributes:
        name: its type.
        message: what it said.
    """

    name: str
    message: str

    def __str__(self) -> str:
        return f"fails with {self.name}: {' '.join(self.message.split())}"


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """One report.

    Attributes:
        numbers: its values in order; a word is a code, its length, and the numbers in it.
        kind: types, containers, lengths, names of fields.
        whole: a code that two reports share if they are the same in everything.
        words: what codes among the numbers stand for.
    """

    numbers: list[float]
    kind: str
    whole: float
    words: dict[float, str]


class _Parts:
    """What has been read of a report so far."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.kind: list[str] = []
        self.exact: list[bytes] = []
        self.words: dict[float, str] = {}

    def leaf(self, kind: str, exact: bytes, *numbers: float) -> None:
        self.kind.append(kind)
        self.exact.append(struct.pack("<q", len(exact)) + exact)
        self.numbers.extend(numbers)


def read(report: Any) -> Reading:
    """Return a report's numbers, its kind, and its code."""
    parts = _Parts()
    _read(report, parts, 0)
    kind = "".join(parts.kind)
    return Reading(parts.numbers, kind, code_of(kind.encode() + b"\0" + b"".join(parts.exact)), parts.words)


def flatten(report: Any) -> list[float]:
    """Return a report's numbers in order."""
    return read(report).numbers


def code_of(exact: bytes) -> float:
    """Return a number that stands for these bytes; two of them are alike in one of 10^14 cases."""
    return float(int.from_bytes(hashlib.blake2b(exact, digest_size=6).digest(), "little"))


def _read(report: Any, parts: _Parts, depth: int) -> None:
    if depth > _DEEPEST:
        raise OptionError(f"audit: a report has more than {_DEEPEST} parts within parts; return numbers or arrays")
    kind = type(report)
    if kind in _LEAVES:
        _LEAVES[kind](report, parts)
    elif isinstance(report, Raised):
        _text(report.message, parts)
        parts.kind[-1] = f"fails with {report.name}"
        parts.words[code_of(parts.kind[-1].encode())] = str(report)
    elif kind is np.ndarray:
        _array(report, parts, depth)
    elif isinstance(report, np.generic):
        parts.kind.append(kind.__name__)
        _array(np.asarray(report), parts, depth)
    elif isinstance(report, Iterator):
        _sequence(_name(report), _few(report), parts, depth)
    elif isinstance(report, Mapping):
        _sequence(_name(report), [part for item in report.items() for part in item], parts, depth)
        _rest(report, parts, depth)
    elif isinstance(report, list | tuple):
        _sequence(_name(report), report, parts, depth)
        _rest(report, parts, depth)
    elif isinstance(report, set | frozenset):
        _sequence(_name(report), sorted(report, key=lambda part: read(part).whole), parts, depth)  # it has no order
        _rest(report, parts, depth)
    elif dataclasses.is_dataclass(report) and not isinstance(report, type):
        names = [field.name for field in dataclasses.fields(report) if hasattr(report, field.name)]
        _sequence(f"{_name(report)}({', '.join(names)})", [getattr(report, name) for name in names], parts, depth)
        _rest(report, parts, depth, names)
    elif hasattr(report, "detach") and hasattr(report, "numpy"):  # a tensor
        parts.kind.append(f"{_name(report)} {report.dtype} {report.requires_grad} ")
        _array(np.asarray(report.detach().cpu().numpy()), parts, depth)
    elif isinstance(report, type | types.FunctionType | types.BuiltinFunctionType):
        _text(f"{report.__module__}.{report.__qualname__}", parts)
    else:
        _object(report, parts, depth)


def _name(report: Any) -> str:
    kind = type(report)
    return str(kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}")


def _few(report: Iterator[Any]) -> list[Any]:
    found = []
    for part in report:
        found.append(part)
        if len(found) > _LONGEST:
            raise OptionError(f"audit: a report is an iterator of more than {_LONGEST} parts; return an array")
    return found


def _sequence(kind: str, report: Sequence[Any], parts: _Parts, depth: int) -> None:
    parts.kind.append(f"{kind} of {len(report)} (")
    for place, part in enumerate(report):
        parts.kind.append(", " if place else "")
        _read(part, parts, depth + 1)
    parts.kind.append(")")


def _rest(report: Any, parts: _Parts, depth: int, known: Sequence[str] = ()) -> None:
    """Read what an object has beside its elements or fields."""
    rest = {key: value for key, value in getattr(report, "__dict__", {}).items() if key not in known}
    if rest:
        _read(rest, parts, depth + 1)


def _object(report: Any, parts: _Parts, depth: int) -> None:
    """Read any object by what it would be rebuilt from."""
    try:
        built = report.__reduce_ex__(2)
    except Exception as error:
        raise OptionError(
            f"audit: a report holds an object of type {_name(report)}, which cannot be read; return numbers, words, "
            "arrays, or lists and dicts of them"
        ) from error
    given = [built] if isinstance(built, str) else [part for part in built[1:] if part is not None]
    _sequence(_name(report), [_few(part) if isinstance(part, Iterator) else part for part in given], parts, depth)


def _text(report: str, parts: _Parts) -> None:
    numbers = [float(number) for number in _NUMBER.findall(report)]
    frame = code_of(_NUMBER.sub("#", report).encode("utf-8", "surrogatepass"))
    parts.words[frame] = repr(report) if len(report) <= _SHOWN else f"{report[:_SHOWN]!r}..."
    parts.leaf("str", report.encode("utf-8", "surrogatepass"), frame, float(len(report)), *numbers)


def _bytes(report: bytes | bytearray, parts: _Parts) -> None:
    parts.leaf(type(report).__name__, bytes(report), float(len(report)), *map(float, report))


def _int(report: int, parts: _Parts) -> None:
    exact = repr(report).encode()
    if abs(report) <= _WHOLE:
        parts.leaf("int", exact, float(report))
    else:
        parts.leaf("int", exact, float(min(max(report, -(10**200)), 10**200)), code_of(exact))


def _complex(report: complex, parts: _Parts) -> None:
    parts.leaf("complex", struct.pack("<dd", report.real, report.imag), report.real, report.imag)


_LEAVES: dict[type, Callable[[Any, _Parts], None]] = {
    float: lambda report, parts: parts.leaf("float", struct.pack("<d", report), report),
    bool: lambda report, parts: parts.leaf("bool", b"1" if report else b"0", float(report)),
    int: _int,
    complex: _complex,
    str: _text,
    bytes: _bytes,
    bytearray: _bytes,
    type(None): lambda report, parts: parts.leaf("None", b"", _NOTHING),
}


def _array(report: NDArray[Any], parts: _Parts, depth: int) -> None:
    order = "" if report.flags.c_contiguous or not report.flags.f_contiguous else ", by columns"
    kind = f"array({report.dtype.str}, {report.shape}{order})"
    if report.dtype.kind in "OSU" or report.dtype.names:
        parts.kind.append(kind)
        _sequence("", report.reshape(-1).tolist(), parts, depth)
        return
    exact = report.tobytes()
    if report.dtype.kind == "V":
        parts.leaf(kind, exact, *map(float, exact))
        return
    flat = report.reshape(-1)
    if report.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], axis=1).reshape(-1)
    elif report.dtype.kind in "mM":
        flat = flat.astype(np.int64)
    numbers: list[float] = flat.astype(np.float64).tolist()
    if flat.dtype.kind in "iu" and flat.dtype.itemsize == 8 and (np.abs(flat.astype(np.float64)) > _WHOLE).any():
        numbers.append(code_of(exact))
    parts.leaf(kind, exact, *numbers)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Reports as rows of equal width; a shorter report ends in NaN.

    Attributes:
        rows: their numbers.
        lengths: how many numbers each has.
        codes: numbers that stand for something of each report that is no number, by what it is.
        words: what such a number stands for.
    """

    rows: Floats
    lengths: NDArray[np.int64]
    codes: Mapping[str, Floats] = dataclasses.field(default_factory=dict)
    words: Mapping[float, str] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, part: slice) -> Table:
        """Return some of the reports."""
        codes = {name: code[part] for name, code in self.codes.items()}
        return dataclasses.replace(self, rows=self.rows[part], lengths=self.lengths[part], codes=codes)


def table(readings: Sequence[Reading]) -> Table:
    """Return reports as one table."""
    lengths = np.array([len(reading.numbers) for reading in readings], dtype=np.int64)
    rows = np.full((len(readings), int(lengths.max(initial=0))), np.nan)
    for row, reading in zip(rows, readings, strict=True):
        row[: len(reading.numbers)] = reading.numbers
    kinds = {reading.kind: code_of(reading.kind.encode()) for reading in readings}
    codes = {
        "kind of report": np.array([kinds[reading.kind] for reading in readings]),
        "whole report": np.array([reading.whole for reading in readings]),
    }
    words = {code: word for reading in readings for code, word in reading.words.items()}
    for kind, code in kinds.items():
        words.setdefault(code, kind if len(kind) <= _SHOWN else f"{kind[:_SHOWN]}...")
    return Table(rows=np.clip(rows, -_NOTHING, _NOTHING), lengths=lengths, codes=codes, words=words)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReportNumber:
    """A number by which a report may give its input away.

    Attributes:
        name: what it is.
        of: the number of each report.
        ordered: whether larger and smaller mean anything; otherwise only equal and different do.
    """

    name: str
    of: Callable[[Table], Floats]
    ordered: bool = True


def varying(tables: Sequence[Table]) -> list[int]:
    """Return the coordinates that are not the same in all reports, as many as are looked at."""
    width = max(t.rows.shape[1] for t in tables)
    pooled = np.concatenate([widen(t, width).rows for t in tables])
    changes = (pooled != pooled[:1]) & ~(np.isnan(pooled) & np.isnan(pooled[:1]))
    return [int(j) for j in np.flatnonzero(changes.any(axis=0))[:_MOST_COLUMNS]]


def widen(reports: Table, width: int) -> Table:
    """Return the reports as a table of at least that width."""
    missing = width - reports.rows.shape[1]
    if missing <= 0:
        return reports
    rows = np.pad(reports.rows, ((0, 0), (0, missing)), constant_values=np.nan)
    return dataclasses.replace(reports, rows=rows)


def measures(tables: Sequence[Table]) -> list[ReportNumber]:
    """Return each coordinate, and what a proof easily forgets: what kind a report is, how many zeros it has, ..."""
    width = max(t.rows.shape[1] for t in tables)
    coded = set.intersection(*(set(t.codes) for t in tables))
    found = [ReportNumber(name=name, of=_code(name), ordered=False) for name in sorted(coded)]
    found += [_entry(j) for j in varying(tables)]
    if width:
        found += [
            ReportNumber(name="number of minus zeros", of=lambda t: _count((t.rows == 0) & np.signbit(t.rows))),
            ReportNumber(
                name="number of entries that are no number", of=lambda t: t.lengths - _count(~np.isnan(t.rows))
            ),
        ]
    if width > 1:
        found += [
            ReportNumber(name="number of entries that are not 0", of=lambda t: _count(np.nan_to_num(t.rows) != 0)),
            ReportNumber(name="largest magnitude", of=lambda t: np.abs(np.nan_to_num(t.rows)).max(axis=1)),
            ReportNumber(name="smallest magnitude that is not 0", of=lambda t: _smallest(np.nan_to_num(t.rows))),
            ReportNumber(name="sum", of=lambda t: np.nan_to_num(t.rows).sum(axis=1)),
            ReportNumber(name="length", of=lambda t: t.lengths.astype(np.float64)),
        ]
    if width > 1 and "whole report" not in coded:
        found.append(ReportNumber(name="whole report", of=lambda t: _mixed(t.rows), ordered=False))
    return found


def pair_measures(tables: Sequence[Table]) -> list[ReportNumber]:
    """Return what two coordinates say together: the cell that they are in, their difference and their sum."""
    columns = varying(tables)[:_PAIRED]
    width = max(t.rows.shape[1] for t in tables)
    pooled = np.concatenate([widen(t, width).rows for t in tables])
    edges = {j: _edges(pooled[:, j]) for j in columns}
    found = []
    for place, i in enumerate(columns):
        for j in columns[place + 1 :]:
            found += [
                ReportNumber(name=f"cell of entries {i} and {j}", of=_cell(i, j, edges[i], edges[j]), ordered=False),
                ReportNumber(name=f"entry {i} - entry {j}", of=_joined(i, j, -1)),
                ReportNumber(name=f"entry {i} + entry {j}", of=_joined(i, j, 1)),
            ]
    return found


def bit_measures(tables: Sequence[Table]) -> list[ReportNumber]:
    """Return what the last bits of float64 numbers say, of the coordinates that fill all bits of them."""
    found = []
    for j in varying(tables)[:_PAIRED]:
        values = np.concatenate([t.rows[:, j] for t in tables if j < t.rows.shape[1]])
        if np.mean(_zeros(values) < 40) > 0.01:
            found += [
                ReportNumber(name=f"power of two that entry {j} is a multiple of: 2^", of=_of_column(j, _finest)),
                ReportNumber(name=f"number of last bits of entry {j} that are 0", of=_of_column(j, _zeros)),
            ]
    return found


def _column(reports: Table, j: int) -> Floats:
    return reports.rows[:, j] if j < reports.rows.shape[1] else np.full(len(reports), np.nan)


def _of_column(j: int, what: Callable[[Floats], Floats]) -> Callable[[Table], Floats]:
    return lambda reports: what(_column(reports, j))


def _entry(j: int) -> ReportNumber:
    return ReportNumber(name=f"entry {j}", of=_of_column(j, lambda column: column))


def _code(name: str) -> Callable[[Table], Floats]:
    return lambda reports: reports.codes[name]


def _joined(i: int, j: int, sign: int) -> Callable[[Table], Floats]:
    return lambda reports: np.round(_column(reports, i) + sign * _column(reports, j), 9)


def _edges(column: Floats) -> Floats:
    values = np.unique(column[~np.isnan(column)])
    return values[1:] if len(values) <= 6 else np.unique(np.nanquantile(column, (0.25, 0.5, 0.75)))


def _cell(i: int, j: int, one: Floats, two: Floats) -> Callable[[Table], Floats]:
    def cell(reports: Table) -> Floats:
        first = np.searchsorted(one, _column(reports, i), side="right")
        second = np.searchsorted(two, _column(reports, j), side="right")
        return np.asarray(first * (len(two) + 1) + second, dtype=np.float64)

    return cell


def _zeros(values: Floats) -> Floats:
    """Return how many of the 53 bits of each number are 0, from the last one on."""
    whole = np.ldexp(np.frexp(np.nan_to_num(values))[0], 53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.asarray(np.where(whole == 0, 53.0, np.log2(np.maximum(lowest, 1.0))), dtype=np.float64)


def _finest(values: Floats) -> Floats:
    """Return the largest k for which each number is a multiple of 2^k; of 0 a large one."""
    exponent = np.frexp(np.nan_to_num(values))[1]
    return np.asarray(np.where(np.nan_to_num(values) == 0, 2000.0, exponent - 53 + _zeros(values)), dtype=np.float64)


def _count(there: NDArray[np.bool_]) -> Floats:
    return np.asarray(there.sum(axis=1), dtype=np.float64)


def _smallest(rows: Floats) -> Floats:
    sizes = np.where(rows != 0, np.abs(rows), np.inf).min(axis=1)
    return np.where(np.isfinite(sizes), sizes, -1.0)


def _mixed(rows: Floats) -> Floats:
    """Return a number for each row that depends on all of it, equal for equal rows."""
    mixed = np.zeros(len(rows))
    for j in range(rows.shape[1]):
        mixed = np.modf(mixed * 7.389056098930651 + np.nan_to_num(rows[:, j], nan=-12345.678) * 0.5772156649015329)[0]
    return np.asarray(np.round(mixed, 9))
