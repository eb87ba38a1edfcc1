"""The committed pages are what the code says; figures are the same bytes every time."""

from __future__ import annotations

import importlib
import math
import re
from pathlib import Path

import pytest

from graphldp.client import lookup, names, own_budget
from graphldp.errors import OptionError
from graphldp.stages.pages import docs
from graphldp.stages.pages.docs_figures import law_figure, variance_comparison, variance_figure
from graphldp.stages.pages.docs_numbers import crossing, crossings, law_base, raw_variance, scalar_variance
from graphldp.stages.pages.errata import ERRATA, FAULTS, errata_of

ROOT = Path(__file__).resolve().parents[2]


def test_committed_pages_are_up_to_date() -> None:
    assert docs.outdated_pages(ROOT / "docs") == [], "run: ldp docs"


def test_every_mechanism_has_a_page_with_its_figures() -> None:
    folder = ROOT / "docs" / "mechanisms"
    for name in names():
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        for part in ("## Law", "## Claim", "## Estimator", "## Source"):
            assert part in page, name
    shown = {
        line.split("](")[1].rstrip(")")
        for page in folder.glob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("![")
    }
    assert shown == {path.name for path in folder.glob("*.svg")}


def test_a_changed_page_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "mechanisms").mkdir()
    for path in (ROOT / "docs").glob("mechanisms/*.md"):
        (tmp_path / "mechanisms" / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("errata.md", "privacy.md"):
        (tmp_path / name).write_text((ROOT / "docs" / name).read_text(encoding="utf-8"), encoding="utf-8")
    assert docs.outdated_pages(tmp_path) == []
    page = tmp_path / "mechanisms" / "mb.md"
    page.write_text(page.read_text(encoding="utf-8").replace("epsilon-LDP", "0-LDP"), encoding="utf-8")
    privacy = tmp_path / "privacy.md"
    privacy.write_text(privacy.read_text(encoding="utf-8").replace("| mb | 1 | 1 | 1 |", "| mb | 1 | 1 | 0.9 |"))
    (tmp_path / "mechanisms" / "gone.md").write_text("")
    wrong = {path.name for path, _ in docs.outdated_pages(tmp_path)}
    assert wrong == {"mb.md", "privacy.md", "gone.md"}


def test_every_mechanism_has_a_law_to_be_shown() -> None:
    shown = {name: law_base(name, docs._shown_at(name)).name for name in names() if own_budget(name) != math.inf}
    inside = {name: law for name, law in shown.items() if lookup(name).kind == "vector" and law != "membership"}
    inner = {"mlr": "duchi", "pldp": "pm", "ppm": "esw", "ppm-public": "mb", "ppm-safe": "esw"}
    assert inside == {"featurerr": "featurerr", **inner}
    assert all(law == name for name, law in shown.items() if lookup(name).kind != "vector")


@pytest.mark.slow
def test_figures_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("pm", "mb", "esw"):
        law_figure(name, tmp_path / "a.svg")
        law_figure(name, tmp_path / "b.svg")
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
        assert (tmp_path / "a.svg").read_bytes() == (ROOT / "docs" / "mechanisms" / f"{name}-law.svg").read_bytes()
    variance_comparison(tmp_path / "c.svg")
    assert "epsilon 3.68" in (tmp_path / "c.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_constant_variance_is_drawn_as_one(tmp_path: Path) -> None:
    """Of `1b` only the last digits change, which an axis that fits them showed as a mountain range."""
    variance_figure("1b", tmp_path / "1b.svg")
    text = (tmp_path / "1b.svg").read_text(encoding="utf-8")
    (line,) = re.findall(r'id="line2d_\d+">\s*<path d="([^"]{400,})"', text)[:1]
    heights = [float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", line)]
    assert len(heights) > 20
    assert max(heights) - min(heights) < 2


def test_lines_cross_where_the_errata_say() -> None:
    assert {key: round(value, 2) for key, value in crossings().items()} == {"raw": 3.68, "mse": 3.18, "sw-lp": 4.17}
    assert raw_variance("sw", 3.6) < raw_variance("pm", 3.6)
    assert raw_variance("sw", 3.75) > raw_variance("pm", 3.75)
    for epsilon in (0.01, 1.0, 5.0):
        assert scalar_variance("sw", epsilon) > scalar_variance("pm", epsilon)
    with pytest.raises(OptionError, match="no crossing between epsilon 1 and 2"):
        crossing(lambda epsilon: 1.0, 1.0, 2.0)


def test_errata_are_numbered_and_name_registered_mechanisms() -> None:
    assert [entry.key for entry in ERRATA] == [f"E{k}" for k in range(1, 44)]
    assert [entry.key for entry in FAULTS] == [f"R{k}" for k in range(1, 13)]
    for entry in (*ERRATA, *FAULTS):
        assert set(entry.mechanisms) <= set(names()), entry.key
    assert {entry.key for entry in errata_of("featurerr")} == {"E33", "E34", "E35", "E36", "E37"}


def _there(path: str) -> bool:
    """Whether `module:object.attribute` can be imported."""
    module, _, names_ = path.partition(":")
    try:
        found = importlib.import_module(module)
        for name in names_.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return False
    return bool(names_)


def test_what_the_errata_say_is_done_here_is_done_by_parts_that_are_there() -> None:
    assert not _there("graphldp.trusted.edgerr:EdgeRR")
    assert not _there("graphldp.client.mechanisms.gm:Nothing")
    for entry in ERRATA:
        assert bool(entry.by) == (entry.here != "-"), entry.key
        assert [path for path in entry.by if not _there(path)] == [], entry.key


def test_docstring_sections_are_read() -> None:
    """Read the sections.

    Formula: y = x.
    Claim: none.
    Estimator: the report;
        biased.
    Reference: none.
    Deviations: none.
    """

    class Empty:
        """Nothing said."""

    told = docs.sections(type("Told", (), {"__doc__": test_docstring_sections_are_read.__doc__}))
    assert told["Estimator"] == "the report; biased."
    assert docs.sections(Empty) == {"summary": "Nothing said."}
