"""Pages of tables that earlier code measured: written by today's rules, from the committed record and nothing else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from graphldp.errors import ArtifactError
from graphldp.stages.grids.paper_numbers import load_papers
from graphldp.stages.grids.params import find, load
from graphldp.stages.pages.committed import earlier, read_committed, write_pages
from graphldp.stages.pages.tables import Result, read_csv

ROOT = Path(__file__).parents[3]
RESULTS, PAPERS, EXPERIMENTS = ROOT / "results", ROOT / "papers", ROOT / "experiments"
NAMES = [path.name for path in earlier(RESULTS)]
_COMMIT = re.compile(r" ?(\u00b7 page by commit|\(commit) [0-9a-f]{12} of [0-9-]+(, with changes since)?\)?")


def read(folder: Path) -> Result:
    return read_committed(folder, load_papers(PAPERS), load(find(folder.name, EXPERIMENTS)))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Two committed tables of earlier code, and one of today's."""
    for name in ("links", "links-facebook", "rounds"):
        shutil.copytree(RESULTS / name, tmp_path / name)
    return tmp_path


def test_a_table_that_names_its_code_is_left_alone(copy: Path) -> None:
    assert [path.name for path in earlier(copy)] == ["links", "links-facebook"]


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_the_words_is_shown_again(name: str) -> None:
    """Table by table, the page's numbers are those that people were shown, to the last digit."""
    found = read(RESULTS / name)
    words = (RESULTS / name / "tables" / "main.md").read_text(encoding="utf-8")
    lines = [line for line in words.splitlines() if line.startswith("| ") and not line.startswith(("| row", "| ---"))]
    rows = list(found.rows)
    assert len(rows) == len(lines) == len(read_csv((RESULTS / name / "tables" / "main.csv").read_text("utf-8")))
    for row, line in zip(rows, lines, strict=True):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        assert cells[0] == row.label
        assert row.shown(row.score) in cells
        assert row.spent in cells
        assert row.steps_text in cells
        means = [cell.partition(" ")[0] for cell in cells]
        for interval in (row.gain, row.gap):
            assert interval is None or any(float(mean.replace("\u2212", "-")) == round(interval.mean, 1)
                                           for mean in means if re.fullmatch(r"[-+\u2212]?\d+\.\d", mean))  # fmt: skip


def test_a_page_says_whose_its_numbers_are(copy: Path) -> None:
    record = (copy / "links" / "tables" / "main.csv").read_bytes()
    (copy / "links" / "figures" / "of-before.svg").write_text("<svg/>")
    pages = list(write_pages(copy, PAPERS, EXPERIMENTS))
    assert pages == [copy / "links" / "report.html", copy / "links-facebook" / "report.html"]
    text, few = (path.read_text(encoding="utf-8") for path in pages)
    assert "Measured by earlier code." in text
    assert "one model with everybody\u2019s true features reaches" in text
    assert "the best learner reaches" not in text
    assert "Student" not in re.sub(r'<p class="earlier".*?</p>', "", text, flags=re.DOTALL)
    assert "ldp results --pages" in text
    assert "fewer than 5 runs per result" in few  # three of them, of which earlier pages made verdicts
    assert (copy / "links" / "tables" / "main.csv").read_bytes() == record
    shown = set(re.findall(r'href="(figures/[^"]+)"', text))
    assert shown == {f"figures/{path.name}" for path in (copy / "links" / "figures").iterdir()}


def test_an_interval_that_was_rounded_to_zero_tells_nothing_apart() -> None:
    found = read(RESULTS / "methods")
    record = read_csv((RESULTS / "methods" / "tables" / "main.csv").read_text(encoding="utf-8"))
    at_zero = [
        row for row, line in zip(found.rows, record, strict=True)
        if "0.00" in (line["gain_low"], line["gain_high"]) and line["gain"] != "0.00"
    ]  # fmt: skip
    assert at_zero
    assert {row.gain.against(0.0) for row in at_zero if row.gain} == {"same"}


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("main.md", "percentile bootstrap", "Student", "is no table of earlier code"),
        ("main.md", "every trained row had the same search", "rows", "does not say how the rows of cora were made"),
        ("main.csv", "auc,", "auk,", "has not the columns of any task's table"),
        ("main.csv", "structure,structure", "floor,structure", "has row 'floor' where the words beside it have"),
        ("main.csv", "84.92,", "83.92,", "has AUC 83.92 of 'structure', and its words 84.9"),
    ],
)
def test_a_record_that_does_not_fit_its_words_is_refused(file: str, old: str, new: str, said: str, copy: Path) -> None:
    path = copy / "links" / "tables" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    before = (copy / "links" / "report.html").read_bytes()
    with pytest.raises(ArtifactError, match=re.escape(said)):
        list(write_pages(copy, PAPERS, EXPERIMENTS))
    assert (copy / "links" / "report.html").read_bytes() == before


@pytest.mark.slow
def test_the_committed_pages_are_those_of_this_code(tmp_path: Path) -> None:
    for name in NAMES:
        shutil.copytree(RESULTS / name, tmp_path / name)
    for path in write_pages(tmp_path, PAPERS, EXPERIMENTS):
        committed, now = (
            _COMMIT.sub("", one.read_text(encoding="utf-8")) for one in (RESULTS / path.parent.name / path.name, path)
        )
        assert committed == now, f"{path.parent.name}: write it again with `ldp results --pages`"
