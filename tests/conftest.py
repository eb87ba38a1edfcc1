"""What every test may rely on: a mirror of real data where there is one, and nothing of the caller's terminal."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Where several processes run the tests, each has one thread: the processors are busy as it is. Said before numpy or
# torch is imported, and to the programs that tests start.
os.environ["LDP_PROGRESS_SECONDS"] = "86400"  # what a command prints must not depend on how busy a machine is
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("COLUMNS", None)  # of the terminal that the results are printed in, which is no test's


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Return a folder with the pinned source files: LDP_MIRROR, or a shared/datasets folder beside the repository."""
    named = os.environ.get("LDP_MIRROR")
    for folder in ([Path(named)] if named else []) + [ROOT.parent / "shared" / "datasets"]:
        if (folder / "kimiyoung" / "planetoid").is_dir():
            return folder.resolve()
    pytest.skip("no mirror of the data sets: set LDP_MIRROR to a folder laid out as OWNER/REPO/COMMIT/PATH")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """Let Ctrl-C interrupt, also where a shell has started the tests in its background and ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands a terminal of known width and no colour, whatever the tests run in."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "dumb")
    for name in ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
