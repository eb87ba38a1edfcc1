"""Run the tests as other machines would: other instructions, threads, hash seeds, locales, folders.

    tools/elsewhere.py                     under every variation the numerical tests that it could change
    tools/elsewhere.py mkl-intel threads-1 those variations alone, one after the other
    tools/elsewhere.py mkl-intel+threads-1 both at once
    tools/elsewhere.py --everything        the whole suite under every variation
    tools/elsewhere.py --list              what there is, and what cannot be had on this machine

A variation is set up as somebody else's machine would be, by its environment or its folder. One that this machine
cannot be (instructions that its processor lacks) is named, and is no failure.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The tests whose results are numbers that a vendor's library, or the number of threads, could change; and those of
# them that use torch, without which neither MKL nor torch's own instructions are called.
TORCH = ("tests/learn", "tests/adversary")
MATRICES = (*TORCH, "tests/server")
NUMERICAL = (*MATRICES, "tests/client", "tests/test_randomness.py")
# In one process for each processor, as `make test` does. Each has one thread where the variation does not say how many.
PARALLEL = ("-n", "logical", "--maxprocesses", "8", "--dist", "worksteal")
# MKL takes other code for Intel's processors than for others, and asks this function which it is on.
INTEL = "int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n"
CAPABILITY = "import torch; print(torch.backends.cpu.get_cpu_capability().lower())"
# Prints something where a feature that is to be left out is not there.
FEATURES = "import warnings; warnings.simplefilter('always'); import sys; sys.stderr = sys.stdout; import numpy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One other machine.

    Attributes:
        about: what is different there.
        environment: variables that are set.
        capability: which instructions torch must report, or this machine cannot be that one.
        intel: whether MKL is told that the processor is Intel's.
        folder: whether the tests run from a copy whose path has a space and a letter outside of ASCII.
        tests: those of the numerical tests whose numbers it could change.
    """

    about: str
    environment: Mapping[str, str] = field(default_factory=dict)
    capability: str = ""
    intel: bool = False
    folder: bool = False
    tests: tuple[str, ...] = NUMERICAL


VARIATIONS = {
    "aten-default": Variation(
        about="torch without vector instructions",
        environment={"ATEN_CPU_CAPABILITY": "default"},
        capability="default",
        tests=TORCH,
    ),
    "aten-avx2": Variation(
        about="torch with AVX2", environment={"ATEN_CPU_CAPABILITY": "avx2"}, capability="avx2", tests=TORCH
    ),
    "aten-avx512": Variation(
        about="torch with AVX-512", environment={"ATEN_CPU_CAPABILITY": "avx512"}, capability="avx512", tests=TORCH
    ),
    "mkl-compatible": Variation(
        about="MKL's code for all processors", environment={"MKL_CBWR": "COMPATIBLE"}, tests=TORCH
    ),
    "mkl-sse4": Variation(
        about="MKL with SSE 4.2", environment={"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}, intel=True, tests=TORCH
    ),
    "mkl-avx2": Variation(
        about="MKL with AVX2", environment={"MKL_ENABLE_INSTRUCTIONS": "AVX2"}, intel=True, tests=TORCH
    ),
    "mkl-avx512": Variation(
        about="MKL with AVX-512", environment={"MKL_ENABLE_INSTRUCTIONS": "AVX512"}, intel=True, tests=TORCH
    ),
    "mkl-intel": Variation(about="MKL's code for Intel's processors, as it chooses", intel=True, tests=TORCH),
    "onednn-sse4": Variation(about="oneDNN with SSE 4.1", environment={"ONEDNN_MAX_CPU_ISA": "SSE41"}, tests=TORCH),
    "onednn-avx2": Variation(about="oneDNN with AVX2", environment={"ONEDNN_MAX_CPU_ISA": "AVX2"}, tests=TORCH),
    "numpy-plain": Variation(
        about="numpy without AVX", environment={"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"}
    ),
    "threads-1": Variation(about="one thread", environment={"OMP_NUM_THREADS": "1"}, tests=MATRICES),
    "threads-2": Variation(about="two threads", environment={"OMP_NUM_THREADS": "2"}, tests=MATRICES),
    # Without the second variable MKL, and torch with it, takes no more threads than there are processors.
    "threads-4": Variation(
        about="four threads", environment={"OMP_NUM_THREADS": "4", "MKL_DYNAMIC": "FALSE"}, tests=MATRICES
    ),
    "hash-0": Variation(about="sets and dictionaries in one order", environment={"PYTHONHASHSEED": "0"}),
    "hash-1": Variation(about="sets and dictionaries in another order", environment={"PYTHONHASHSEED": "1"}),
    "abroad": Variation(
        about="another time zone, and a locale that knows ASCII alone",
        environment={
            **{"TZ": "Pacific/Chatham", "LC_ALL": "C", "LANG": "C"},
            **{"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        },
    ),
    "folder": Variation(about="a folder with a space and an accent in its name", folder=True),
}


def combined(name: str) -> Variation:
    """Return the variation of that name, or the machine that differs in all that is named between plus signs."""
    parts = [VARIATIONS[part] for part in name.split("+")]
    environment: dict[str, str] = {}
    for part in parts:
        twice = environment.keys() & part.environment.keys()
        if twice:
            raise ValueError(f"{name}: two variations set {sorted(twice)[0]}; run them one after the other")
        environment |= part.environment
    return Variation(
        about=", ".join(part.about for part in parts),
        environment=environment,
        capability=next((part.capability for part in parts if part.capability), ""),
        intel=any(part.intel for part in parts),
        folder=any(part.folder for part in parts),
        tests=tuple(name for name in NUMERICAL if any(name in part.tests for part in parts)),
    )


class Unavailable(Exception):
    """This machine cannot be that one."""


@contextmanager
def machine(variation: Variation) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield the folder and the environment of that machine, or raise `Unavailable`."""
    with tempfile.TemporaryDirectory(prefix="elsewhere-") as temporary:
        environment = {**os.environ, **variation.environment}
        if variation.intel:
            environment["LD_PRELOAD"] = str(_shim(Path(temporary)))
        fewer = "NPY_DISABLE_CPU_FEATURES" in variation.environment
        if fewer and _output([sys.executable, "-c", FEATURES], environment):
            raise Unavailable("numpy has no such instructions to leave out here")
        if variation.capability:
            found = _output([sys.executable, "-c", CAPABILITY], environment)
            if found != variation.capability:
                raise Unavailable(f"torch has {found} here")
        folder = _copy(Path(temporary) / "ein Ordner für Tests") if variation.folder else ROOT
        yield folder, environment


def _shim(folder: Path) -> Path:
    """Return a library that tells MKL that this is an Intel processor; on one it changes nothing."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if platform.system() != "Linux" or platform.machine() != "x86_64" or compiler is None:
        raise Unavailable("needs Linux on x86-64 and a C compiler")
    source, library = folder / "intel.c", folder / "libintel.so"
    source.write_text(INTEL, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def _copy(folder: Path) -> Path:
    """Return a copy of the tree, with an environment of its own: an installation knows its folder."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    changed = _output(["git", "-C", str(ROOT), "diff", "--binary", "HEAD"], dict(os.environ), strip=False)
    if changed:
        subprocess.run(["git", "-C", str(folder), "apply"], input=changed, text=True, check=True)
    subprocess.run(["make", "--silent", "-C", str(folder), "install"], check=True)
    return folder


def _output(command: list[str], environment: Mapping[str, str], *, strip: bool = True) -> str:
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=True)
    return done.stdout.strip() if strip else done.stdout


def run(variation: Variation, tests: list[str], say: Callable[[str], None]) -> tuple[str, float]:
    """Run tests under a variation; return pytest's closing line, or why it cannot be, and the seconds."""
    begin = time.monotonic()
    try:
        with machine(variation) as (folder, environment):
            python = folder / ".venv/bin/python" if folder != ROOT else Path(sys.executable)
            command = [str(python), "-m", "pytest", *tests]
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace"
            )
    except Unavailable as reason:
        return f"not to be had on this machine: {reason}", 0.0
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        say("\n".join(line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))) or done.stderr)
    closing = next((line for line in reversed(lines) if " passed" in line or " failed" in line), f"{lines[-1:]}")
    verdict = "" if done.returncode == 0 else f"FAILED (exit code {done.returncode}): "
    return verdict + closing.strip("= "), time.monotonic() - begin


def main() -> int:
    """Run what is asked for; 1 if a test failed anywhere."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="variations, or several joined by +; all, one by one, if none is named"
    )
    parser.add_argument("--everything", action="store_true", help="the whole suite, not the numerical tests alone")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="these tests, given to pytest as they are")
    parser.add_argument("--list", action="store_true", help="say what there is and run nothing")
    asked = parser.parse_args()
    unknown = [part for name in asked.names for part in name.split("+") if part not in VARIATIONS]
    if unknown:
        parser.error(f"unknown variation {unknown[0]!r}. Valid: {', '.join(VARIATIONS)}")
    try:
        machines = {name: combined(name) for name in asked.names or VARIATIONS}
    except ValueError as error:
        parser.error(str(error))
    if asked.list:
        for name, variation in VARIATIONS.items():
            print(f"{name:16}{variation.about}")
        return 0
    failed = 0
    for name, variation in machines.items():
        chosen = [] if asked.everything else ["-m", "not slow", *variation.tests]
        tests = asked.tests or [*PARALLEL, *chosen]
        verdict, seconds = run(variation, tests, lambda text: print(text, file=sys.stderr, flush=True))
        failed += verdict.startswith("FAILED")
        print(f"{name:16}{seconds:6.0f} s  {verdict}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
