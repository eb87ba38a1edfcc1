"""`ldp code`: the same bytes for the same code, and for no other; what is hashed is what is imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cell_factory import files

from graphldp.stages.code import KINDS, code_hash

BY_NAME = "import importlib\n\nimportlib.import_module(f'{__name__}.registered')\n"
MODULE = '"""What it does."""\n\n\ndef twice(x):\n    """Return it twice."""\n    return 2 * x\n'
TREE = {
    "graphldp/__init__.py": "",
    "graphldp/far.py": "FAR = 1\n",
    "graphldp/unused.py": "NOTHING = 1\n",
    "graphldp/learn/__init__.py": "import graphldp.learn.models\n",
    "graphldp/learn/models/__init__.py": BY_NAME,
    "graphldp/learn/models/registered.py": "MODEL = 1\n",
    "graphldp/near.py": f"import graphldp.far\n\n{MODULE}",
    "stages/__init__.py": "",
    "stages/train.py": "def run():\n    from graphldp.learn import nothing\n    from graphldp.stages import helper\n",
    "stages/helper.py": "from graphldp.near import twice\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small library with its stages."""
    empty = {f"stages/{kind}.py": "" for kind in KINDS}
    for name, text in {**empty, **TREE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hashed(ldp, folder: str, kind: str = "train") -> dict[str, str]:
    assert ldp("code", "--output", folder).code == 0
    return json.loads(Path(folder, f"{kind}.json").read_text(encoding="utf-8"))["modules"]


def test_what_is_imported_is_hashed_and_nothing_else(tree: Path, ldp) -> None:
    library = {"far", "near", "learn", "learn.models", "learn.models.registered"}
    wanted = {f"graphldp.{name}" for name in (*library, "stages", "stages.train", "stages.helper")}
    assert set(hashed(ldp, "out")) == wanted
    assert set(hashed(ldp, "out", "denoise")) == {"graphldp.stages.denoise"}


@pytest.mark.parametrize(
    ("name", "before", "after", "same"),
    [
        ("near.py", "Return it twice.", "Return the double.", True),
        ("near.py", "return 2 * x", "return 2*x  # twice", True),
        ("near.py", "return 2 * x", "return 3 * x", False),
        ("near.py", "def twice(x)", "def twice(x, y=0)", False),
        ("far.py", "FAR = 1", "FAR = 2", False),
        ("learn/models/registered.py", "MODEL = 1", "MODEL = 2", False),
        ("unused.py", "NOTHING = 1", "NOTHING = 2", True),
    ],
)
def test_words_change_nothing_and_code_does(tree: Path, name: str, before: str, after: str, same: bool, ldp) -> None:
    first, path = hashed(ldp, "a"), tree / "graphldp" / name
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    assert (hashed(ldp, "b") == first) is same
    assert Path("a/denoise.json").read_bytes() == Path("b/denoise.json").read_bytes()


def test_nothing_is_written_where_there_is_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ldp) -> None:
    monkeypatch.chdir(tmp_path)
    assert "graphldp does not exist; run where dvc.yaml is" in ldp("code").line
    assert files(tmp_path) == []


def test_what_a_text_has_come_to_is_kept_and_may_be_lost(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ldp
) -> None:
    from graphldp.stages import code

    kept = tmp_path / "kept" / "code.json"
    monkeypatch.setattr(code.importlib.util, "cache_from_source", lambda path: str(kept.with_suffix(".pyc")))
    monkeypatch.setattr(code.sys, "dont_write_bytecode", True)
    first = hashed(ldp, "a")
    assert not kept.exists()
    monkeypatch.setattr(code.sys, "dont_write_bytecode", False)
    assert hashed(ldp, "b") == first
    whole = json.loads(kept.read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(code, "_read", lambda text: pytest.fail("a text is parsed again"))
        assert hashed(ldp, "c") == first
    for text in ("", "{", "[]", json.dumps(whole | {"reader": "other", "texts": {}})):
        kept.write_text(text, encoding="utf-8")
        assert hashed(ldp, "d") == first
        assert json.loads(kept.read_bytes()) == whole
    kept.unlink()
    kept.mkdir()  # where nothing can be written
    assert hashed(ldp, "e") == first


@pytest.mark.slow
def test_what_decides_a_number_is_hashed() -> None:
    from graphldp.stages import code

    root = Path(code.__file__).resolve().parents[1]
    homes = {"graphldp": root / "graphldp", "graphldp.stages": root / "stages"}
    train = set(code.hashes("train", homes))
    # The headline's measure decides which learner the floor is; how runs are dealt out decides their sums.
    for name in (
        "measures",
        "graph",
        "ledger",
        "learn.engine",
        "client.mechanisms.mb",
        "experiment.resources",
        "experiment.rounds",
        "stages.grids.params",
    ):
        assert f"graphldp.{name}" in train, name
    for other in ("graphldp.stages.pages.report", "graphldp.audit", "graphldp.adversary"):
        assert other not in train, other
    assert code_hash("train") != code_hash("perturb")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_people_read_is_the_work_of_evaluate_alone(kind: str) -> None:
    from graphldp.stages import code

    root = Path(code.__file__).resolve().parents[1]
    found = code.hashes(kind, {"graphldp": root / "graphldp", "graphldp.stages": root / "stages"})
    pages = {name for name in found if name.startswith("graphldp.stages.pages")}
    assert bool(pages) == (kind == "evaluate")
    assert not pages or {"graphldp.stages.pages.report", "graphldp.stages.pages.tables"} <= pages
