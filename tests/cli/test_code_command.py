"""`ldp code`: the same bytes for the same code, and for no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import files

MODULE = '"""What it does."""\n\n\ndef twice(x):\n    """Return it twice."""\n    return 2 * x\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pipeline of one kind of stage, a package and a module."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inner.py").write_text("ONE = 1\n", encoding="utf-8")
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    stage = "stages:\n  code-train:\n    deps: [package, module.py]\n  train:\n    deps: [data/code/train.json]\n"
    (tmp_path / "dvc.yaml").write_text(stage, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_module_is_hashed(ldp) -> None:
    answer = ldp("code", "train", "--output", "out/train.json")
    assert answer.out == "out/train.json: the modules of train, hashed\n"
    assert set(json.loads(Path("out/train.json").read_text(encoding="utf-8"))["modules"]) == {
        "package/inner.py",
        "module.py",
    }


@pytest.mark.parametrize(
    ("name", "before", "after", "same"),
    [
        ("module.py", "Return it twice.", "Return the double.", True),
        ("module.py", "return 2 * x", "return 2*x  # twice", True),
        ("module.py", "return 2 * x", "return 3 * x", False),
        ("module.py", "def twice(x)", "def twice(x, y=0)", False),
        ("package/inner.py", "ONE = 1", "ONE = 2", False),
    ],
)
def test_words_change_nothing_and_code_does(name: str, before: str, after: str, same: bool, ldp) -> None:
    assert ldp("code", "train", "--output", "a.json").code == 0
    text = Path(name).read_text(encoding="utf-8")
    Path(name).write_text(text.replace(before, after), encoding="utf-8")
    assert ldp("code", "train", "--output", "b.json").code == 0
    assert (Path("a.json").read_bytes() == Path("b.json").read_bytes()) is same


def test_what_cannot_be_hashed(ldp, here: Path) -> None:
    before = files(here)
    assert "unknown kind of stage 'trian'; did you mean 'train'?" in ldp("code", "trian", "--output", "a.json").line
    assert "no.yaml does not exist" in ldp("code", "train", "--output", "a.json", "--pipeline", "no.yaml").line
    Path("module.py").unlink()
    assert "module.py does not exist; run where the pipeline" in ldp("code", "train", "--output", "a.json").line
    assert files(here) == [name for name in before if name != "module.py"]
