"""`ldp split`: tables, figures and a page; one line for what cannot be."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cell_factory import NAME, store

from graphldp.stages.code import code_hash

CALL = (
    *("split", "-d", NAME, "--seeds", 2, "--search-points", 1, "--search-seeds", 1),
    *("--epochs", 6, "--set", "m=4"),
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two graphs, one of them a person's own, in which the commands run."""
    store(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_prints_and_writes_every_split(ldp) -> None:
    answer = ldp(*CALL, "--parts", 3, "-e", "4,9")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("Splits of a budget: accuracy in percent")
    names = [
        f"results/split/{name}" for name in ("split.csv", "split.md", f"split-{NAME}-4.svg", f"split-{NAME}-9.svg")
    ]
    assert answer.err.splitlines()[-1] == f"written: {', '.join(names)}"
    with Path(names[0]).open() as handle:
        rows = list(csv.DictReader(handle))
    assert [row["total"] for row in rows] == ["4"] * 5 + ["9"] * 5
    assert [row["best"] for row in rows[:5]].count("1") == 1
    for row in rows:
        whole = sum(float(row[f"epsilon_{name}"]) for name in ("features", "relationship", "labels"))
        assert whole == pytest.approx(float(row["total"]), rel=1e-4)
    page, figure = Path(names[1]).read_text(encoding="utf-8"), Path(names[2]).read_text(encoding="utf-8")
    assert "| synthetic | 4 | best |" in page
    assert (
        f"`ldp split -d {NAME} --seeds 2 --search-points 1 --search-seeds 1 --epochs 6 --set m=4 --parts 3 -e 4,9`"
        in page
    )
    assert f"Made by code {code_hash('train')[:12]}." in page
    assert f"Stand-ins: {NAME}, from synthetic" in page
    assert figure.count("<circle") == 2 * 5
    assert figure.count('class="strong" font-size="13"') == 1
    before = [Path(name).read_bytes() for name in names]
    assert json.loads(ldp(*CALL, "--parts", 3, "-e", "4,9", "--json").out)["files"] == names
    assert [Path(name).read_bytes() for name in names] == before


def test_what_is_public_has_no_share(ldp) -> None:
    found = json.loads(ldp(*CALL, "--parts", 3, "-e", 4, "--labels", "public", "--json").out)["splits"]
    assert [(row["features"], row["links"], row["labels"]) for row in found] == [
        (0, 3, 0), (1, 2, 0), (2, 1, 0), (3, 0, 0),
    ]  # fmt: skip
    assert {row["epsilon_labels"] for row in found} == {"inf"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("-e", 0), "the total epsilon must be a number above 0, got 0.0"),
        (("-e", "inf"), "the total epsilon must be a number above 0, got inf"),
        (("-e", 4, "--parts", 1), "a budget is shared out in 2 to 20 parts, got 1"),
        (("-e", 4, "--labels", "public", "--links", "public"), "labels and links are public"),
        (("-e", 4, "--method", "mlp"), "method 'mlp' asks people for no features or no links"),
        (("-e", 4, "--method", "structure"), "method 'structure' asks people for no features or no links"),
        (("-e", 4, "--links", "blnk"), "unknown mechanism for links 'blnk'"),
        (("-e", 4, "--labels", "rr"), "unknown labels 'rr'"),
        (("-e", 4, "--links", "public", "--link-option", "report=both"), "--link-option is of private links"),
        (("-e", 4, "--link-option", "share=2"), "blink has no option 'share'"),
        (("-e", "4,x"), "--epsilon takes numbers such as 1,10; got 'x'"),
        (("-e", 4, "--mechanism", "mbb"), "unknown mechanism 'mbb'"),
    ],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(ldp, given: tuple[object, ...], words: str) -> None:
    answer = ldp(*CALL, *given)
    assert answer.code == 2
    assert words in answer.line
    assert not Path("results").exists()


def test_a_graph_of_ones_own_is_no_stand_in_unless_it_is_said_to_be_public(ldp, here: Path) -> None:
    (here / "f.csv").write_text("node,a,b\n" + "".join(f"n{k},{k % 2},{1 - k % 2}\n" for k in range(24)))
    (here / "e.csv").write_text("source,target\n" + "".join(f"n{k},n{(k + 2) % 24}\n" for k in range(24)))
    (here / "l.csv").write_text("node,label\n" + "".join(f"n{k},{'ab'[k % 2]}\n" for k in range(24)))
    files = ("--features", "f.csv", "--edges", "e.csv", "--labels", "l.csv", "--low", 0, "--high", 1)
    assert ldp("import", "mine", *files).code == 0
    call = ("split", "-d", "mine", "-e", 4, *CALL[3:-2], "--parts", 2)
    assert "mine is your own graph" in ldp(*call).line
    assert ldp(*call, "--public").code == 0
