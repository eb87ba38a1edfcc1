"""Which commit a page names: that of the code, where git knows one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from graphldp.stages.files.commit import code_commit


def _git(folder: Path, *arguments: str, day: str = "2026-01-31") -> None:
    names = {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {f"GIT_{who}_DATE": f"{day}T12:00:00+00:00" for who in ("AUTHOR", "COMMITTER")}
    home = {"HOME": str(folder), "PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, env=names | when | home)


def _said(folder: Path) -> str:
    code_commit.cache_clear()
    return code_commit(folder)


def test_the_last_commit_of_the_code_is_named_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _said(tmp_path) == ""  # no repository
    (tmp_path / "graphldp").mkdir()
    module = tmp_path / "graphldp" / "a.py"
    module.write_text("a = 1\n")
    _git(tmp_path, "init", "--quiet")
    assert _said(tmp_path) == ""  # no commit
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "-m", "code")
    first = _said(tmp_path)
    assert first.endswith(" of 2026-01-31")
    assert len(first.partition(" ")[0]) == 12
    (tmp_path / "report.html").write_text("results\n")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "-m", "results", day="2026-02-01")
    assert _said(tmp_path) == first  # so that a page which is committed does not age by that
    module.write_text("a = 2\n")
    assert _said(tmp_path) == f"{first}, with changes since"
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as in a hook
    assert _said(tmp_path) == f"{first}, with changes since"
    code_commit.cache_clear()
