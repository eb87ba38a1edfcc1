"""Break the code on purpose, one fault at a time, and see whether the tests that should notice do.

    tools/mutations.py                  every fault of the list
    tools/mutations.py --only NAME ...  these alone
    tools/mutations.py --share 2/5      the second of five parts
    tools/mutations.py --rotate         as many as take 60 seconds; the commit's hash decides which come first
    tools/mutations.py --audit          where an audit should convict the fault, run it, too
    tools/mutations.py --list           what there is, and whether each fault still fits the code

The list is tools/mutations/*.toml. A fault is a text that stands once in a file, and what stands there instead. Each is
planted in a copy of the tree, never in the tree itself, and the tests run there. Exit code 1 if a fault is not caught,
or no longer fits the code, or its tests fail without it.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import cache_from_source
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tools" / "mutations"
WARM = LIST / "warm.py"
LIMIT = 900  # seconds that a fault's tests may take
ROTATION = 60  # seconds that --rotate takes, about
CAUGHT, MISSED = "caught", "NOT CAUGHT"
# Imported by every Python process before anything else: what pyproject.toml maps to folders is taken from the copy.
REDIRECT = """\
import sys
from importlib.util import spec_from_file_location

PLACES = {places!r}


class Copy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in PLACES:
            return spec_from_file_location(name, PLACES[name] + "/__init__.py")
        return None


sys.meta_path.insert(0, Copy)
"""


class Unfit(Exception):
    """A fault of the list does not fit the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One fault.

    Attributes:
        name: what it is called.
        group: the file of the list that it stands in.
        breaks: what is wrong then, in plain words.
        loss: where it is about privacy, what a person then truly loses.
        file: where it is planted.
        before: a text that stands there once, or, with `within`, the first one behind that.
        after: what stands there instead.
        within: a text of the file that stands once before it, such as the head of its function.
        tests: what pytest runs: the few files that should notice.
        audit: arguments of the `ldp audit` that should convict it; empty where none can.
    """

    name: str
    group: str
    breaks: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    loss: str = ""
    within: str = ""
    audit: tuple[str, ...] = ()

    def apply(self, text: str) -> str:
        """Return the file's text with the fault, or raise `Unfit` with what is the nearest to what was looked for."""
        start = 0
        parts = [(self.within, True), (self.before, False)] if self.within else [(self.before, True)]
        for part, once in parts:
            count = text.count(part, start)
            if count == 0 or (once and count > 1):
                state = "is not in" if count == 0 else f"stands {count} times in"
                raise Unfit(f"{self.name}: {_first(part)!r} {state} {self.file}{_nearest(part, text, self.file)}")
            start = text.index(part, start)
        broken = text[:start] + self.after + text[start + len(self.before) :]
        if broken == text:
            raise Unfit(f"{self.name}: before and after are the same")
        if self.file.endswith(".py"):
            try:
                compile(broken, self.file, "exec")
            except SyntaxError as error:
                raise Unfit(
                    f"{self.name}: {self.file} is no Python any more: line {error.lineno}, {error.msg}"
                ) from None
        return broken

    def planted(self, root: Path) -> str:
        """Return the text of its file below a folder, with the fault."""
        for file, _, test in (named.partition("::") for named in (self.file, *self.tests)):
            if not (root / file).exists():
                raise Unfit(f"{self.name}: there is no file {file}")
            if test and f"def {test.partition('[')[0]}(" not in (root / file).read_text(encoding="utf-8"):
                raise Unfit(f"{self.name}: {file} has no test {test}")
        path = root / self.file
        return self.apply(path.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultVerdict:
    """What has become of a fault.

    Attributes:
        mutation: the fault.
        verdict: `caught`, or what is the matter.
        seconds: how long the tests took.
        noticed: the tests that failed.
        reason: what the first of them said.
        audit: `convicted`, `acquitted`, or empty where no audit was asked.
    """

    mutation: Mutation
    verdict: str
    seconds: float
    noticed: tuple[str, ...] = ()
    reason: str = ""
    audit: str = ""

    @property
    def wrong(self) -> bool:
        """Whether it makes the exit code 1."""
        return self.verdict != CAUGHT or self.audit not in ("", "convicted")


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]


def _nearest(part: str, text: str, file: str) -> str:
    lines = text.splitlines()
    near = difflib.get_close_matches(_first(part), [line.strip() for line in lines], n=1, cutoff=0.3)
    place = next((number for number, line in enumerate(lines, start=1) if near and line.strip() == near[0]), 0)
    return f"; the nearest line is {file}:{place}: {near[0]}" if near else ""


def read_list(paths: Sequence[Path]) -> list[Mutation]:
    """Return the faults of these files."""
    found: list[Mutation] = []
    for path in paths:
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]:
            lists = {key: tuple(entry[key]) for key in ("tests", "audit") if key in entry}
            found.append(Mutation(**{**entry, **lists, "group": path.stem}))
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Unfit(f"{twice[0]}: two faults of the list have this name")
    return found


class Copy:
    """A copy of the tree, and an environment in which Python imports from it. Use as a context."""

    def __init__(self, folder: Path):
        self.root, self._imports, self._output = folder / "tree", folder / "imports", folder / "output"
        listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in listed.split("\0"):
            if name and (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name)
        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        mapped = project["tool"]["setuptools"]["package-dir"]
        places = {name: str(self.root / place) for name, place in mapped.items()}
        self._imports.mkdir()
        (self._imports / "sitecustomize.py").write_text(REDIRECT.format(places=places), encoding="utf-8")
        before = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
        path = os.pathsep.join([str(self._imports), *before])
        # What else is installed for pytest takes longer to import than most of the tests here take.
        plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": path, "COLUMNS": "200"}
        self._environment = {"OMP_NUM_THREADS": "1", **os.environ, **plain}
        program = (
            f"import importlib; print(*(importlib.import_module(n).__file__ for n in {list(places)!r}), sep='\\n')"
        )
        done = self.python("-c", program)
        for name, place in zip(places, [*done.stdout.splitlines(), *[""] * len(places)], strict=False):
            if not place.startswith(places[name] + os.sep):
                raise RuntimeError(f"{name} is imported from {place or done.stderr}, not from the copy")
        self._warm = subprocess.Popen(
            [sys.executable, WARM],
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End the process that runs its tests."""
        self._warm.kill()
        self._warm.wait()

    def pytest(self, *arguments: str) -> tuple[int, list[str]]:
        """Run pytest in the copy; return its exit code (-9 if it did not end) and the lines that it printed."""
        self._output.unlink(missing_ok=True)
        asked = {"arguments": arguments, "output": str(self._output), "seconds": LIMIT}
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        print(json.dumps(asked), file=self._warm.stdin, flush=True)
        code = self._warm.stdout.readline()
        if not code:
            raise RuntimeError(f"{WARM.name} has ended; run it by itself to see why")
        return int(code), self._output.read_text(encoding="utf-8", errors="replace").splitlines()

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy; raises `subprocess.TimeoutExpired` where it does not end."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=LIMIT,
        )

    @contextmanager
    def planted(self, mutation: Mutation) -> Iterator[None]:
        """Plant a fault, and take it out again."""
        path = self.root / mutation.file
        sound, broken = path.read_text(encoding="utf-8"), mutation.planted(self.root)
        try:
            self._write(path, broken)
            yield
        finally:
            self._write(path, sound)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # What was compiled from a text of the same length in the same second would be taken for this one's.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def test(self, mutation: Mutation, *, audit: bool) -> FaultVerdict:
        """Plant a fault, run its tests, and say what came of it."""
        begin = time.monotonic()
        with self.planted(mutation):
            verdict, noticed, reason = _read(*self.pytest("-x", "--tb=short", *mutation.tests))
            return FaultVerdict(
                mutation=mutation,
                verdict=verdict,
                seconds=time.monotonic() - begin,
                noticed=noticed,
                reason=reason,
                audit=self._audit(mutation) if audit and mutation.audit else "",
            )

    def _audit(self, mutation: Mutation) -> str:
        with tempfile.TemporaryDirectory(prefix="mutations-audit-") as folder:
            try:
                done = self.python("-m", "graphldp.cli", "audit", *mutation.audit, "--output", folder)
            except subprocess.TimeoutExpired:
                return f"does not end within {LIMIT} s"
        said = done.stderr.strip().splitlines()[-1:]
        return {0: "acquitted", 1: "convicted"}.get(done.returncode, f"exit code {done.returncode}: {said}")

    def failing(self, tests: Sequence[str]) -> set[str]:
        """Return which of these tests fail without any fault."""
        code, lines = self.pytest("--tb=no", *tests)
        return set(_read(code, lines)[1] or tests) if code else set()


def _read(code: int, lines: Sequence[str]) -> tuple[str, tuple[str, ...], str]:
    """Return the verdict of a run of pytest, the tests that failed, and what the first of them said."""
    told = [line.partition(" ")[2] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    failed = tuple(dict.fromkeys(line.partition(" - ")[0] for line in told))
    if code == 0:
        return MISSED, (), ""
    if code == -signal.SIGKILL:
        return f"its tests do not end within {LIMIT} s", (), ""
    if code not in (1, 2) or not failed:
        return f"pytest ends with {code}", (), " / ".join([line for line in lines if line.strip()][-3:])
    said = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return CAUGHT, failed, said[0] if said else ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def share_of(text: str, mutations: Sequence[Mutation]) -> list[Mutation]:
    """Return the K-th of N parts of the list, `text` being K/N."""
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise ValueError(f"--share must be K/N with 1 <= K <= N, got {text!r}")
    return list(mutations[int(number) - 1 :: int(parts)])


def rotated(mutations: Sequence[Mutation], commit: str) -> list[Mutation]:
    """Return the list in an order that the commit decides: another one for each commit."""
    return sorted(mutations, key=lambda one: hashlib.sha256(f"{commit} {one.name}".encode()).digest())


def run(mutations: Sequence[Mutation], *, jobs: int, audit: bool, seconds: float | None) -> Iterator[FaultVerdict]:
    """Yield what becomes of each fault, as it is known; with `seconds`, begin none after that time."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder, ExitStack() as stack:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        jobs = min(jobs, len(mutations))
        for number in range(jobs):
            copies.put(stack.enter_context(Copy(Path(folder) / str(number))))

        def one(mutation: Mutation) -> FaultVerdict | None:
            if seconds is not None and time.monotonic() - begin > seconds:
                return None
            copy = copies.get()
            try:
                return copy.test(mutation, audit=audit)
            finally:
                copies.put(copy)

        caught: list[FaultVerdict] = []
        with ThreadPoolExecutor(jobs) as pool:
            waiting: list[Future[FaultVerdict | None]] = [pool.submit(one, mutation) for mutation in mutations]
            try:
                for done in as_completed(waiting):
                    finding = done.result()
                    if finding is not None and finding.noticed:
                        caught.append(finding)
                    if finding is not None:
                        yield finding
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        # A test that fails in the copy whatever is planted has noticed nothing.
        noticed = list(dict.fromkeys(test for finding in caught for test in finding.noticed))
        without = copies.get().failing(noticed) if noticed else set()
        for finding in caught:
            if without.intersection(finding.noticed):
                yield replace(finding, verdict="its tests fail without it, too")


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", metavar="NAME", help="these faults alone")
    which.add_argument("--share", metavar="K/N", help="the K-th of N parts of the list")
    which.add_argument(
        "--rotate",
        nargs="?",
        type=float,
        const=ROTATION,
        metavar="SECONDS",
        help=f"begin none after so many seconds ({ROTATION} unless given), in an order that the commit decides",
    )
    parser.add_argument("--group", help="the faults of this file of the list alone")
    parser.add_argument("--audit", action="store_true", help="run `ldp audit` where it should convict the fault")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="so many at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there, too")
    parser.add_argument("--list", action="store_true", help="say what there is, check that it fits, and run nothing")
    parser.add_argument("--from", type=Path, action="append", dest="paths", metavar="FILE", help="another list")
    asked = parser.parse_args()
    if asked.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {asked.jobs}")
    try:
        every = read_list(asked.paths or sorted(LIST.glob("*.toml")))
        chosen = _chosen(asked, every)
    except (Unfit, ValueError) as error:
        parser.error(str(error))
    unfit = False
    for mutation in every:
        try:
            mutation.planted(ROOT)
        except Unfit as error:
            unfit = True
            print(f"error: {error}", file=sys.stderr)
    if unfit:
        print("error: the list has to fit the code: mend the lines above in tools/mutations/", file=sys.stderr)
    if asked.list:
        for mutation in chosen:
            print(f"{mutation.name:34}{mutation.breaks}{f' [loss: {mutation.loss}]' if mutation.loss else ''}")
    if unfit or asked.list:
        return int(unfit)
    findings: dict[str, FaultVerdict] = {}
    width = max(len(mutation.name) for mutation in chosen)
    for finding in run(chosen, jobs=asked.jobs, audit=asked.audit, seconds=asked.rotate):
        findings[finding.mutation.name] = finding
        said = finding.noticed[0] if finding.noticed else finding.reason
        audit = f"  audit: {finding.audit}" if finding.audit else ""
        print(f"{finding.mutation.name:{width}} {finding.seconds:5.0f} s  {finding.verdict}{audit}  {said}", flush=True)
    if asked.json:
        rows = [asdict(findings[one.name]) for one in chosen if one.name in findings]
        asked.json.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return _summary(list(findings.values()), len(every))


def _chosen(asked: argparse.Namespace, every: list[Mutation]) -> list[Mutation]:
    """Return the faults that the options ask for."""
    groups = sorted({one.group for one in every})
    if asked.group is not None and asked.group not in groups:
        raise ValueError(f"unknown group {asked.group!r}. Valid: {', '.join(groups)}")
    own = [one for one in every if asked.group in (None, one.group)]
    names = {one.name for one in own}
    unknown = [name for name in asked.only or () if name not in names]
    if unknown:
        near = ", ".join(difflib.get_close_matches(unknown[0], names, n=3))
        raise ValueError(f"unknown fault {unknown[0]!r}{f', near {near}' if near else ''}; see --list")
    if asked.share is not None:
        own = share_of(asked.share, own)
    if asked.rotate is not None:
        own = rotated(own, _git("rev-parse", "HEAD").strip())
    own = [one for one in own if asked.only is None or one.name in asked.only]
    if not own:
        raise ValueError("nothing is left of the list")
    return own


def _summary(findings: list[FaultVerdict], total: int) -> int:
    caught = sum(finding.verdict == CAUGHT for finding in findings)
    audited = [finding for finding in findings if finding.audit]
    convicted = sum(finding.audit == "convicted" for finding in audited)
    audit = f"; the audit convicts {convicted} of {len(audited)}" if audited else ""
    print(f"{caught} of {len(findings)} faults are caught by the tests{audit} ({total} in the list)")
    for finding in findings:
        if finding.wrong:
            verdict = finding.verdict if finding.verdict != CAUGHT else f"audit: {finding.audit}"
            loss = f" [loss: {finding.mutation.loss}]" if finding.mutation.loss else ""
            print(f"  {finding.mutation.name}: {verdict}: {finding.mutation.breaks}{loss}", file=sys.stderr)
    return int(any(finding.wrong for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
