from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from runs_factory import grid, write_grid, write_runs

from graphldp.evaluation import Interval
from graphldp.stages import report
from graphldp.stages.evaluate import measure
from graphldp.stages.figures import FIGURE_CSS, budget_figure, gain_bar, nice_ticks
from graphldp.stages.report import report_page
from graphldp.stages.tables import Result

PAPERS = Path(__file__).parents[2] / "papers"
SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "link", "img"}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    data = tmp_path_factory.mktemp("data")
    params = grid(datasets=("cora", "citeseer"))
    write_grid(data, params)
    cell = next(cell for cell in params.cells() if cell.name == "lpgnn-pm" and cell.epsilon == 1.0)
    write_runs(data, cell, seeds=10, meta={"mechanism_claim": {"keeps": False, "text": "<b>leaks</b> & more"}})
    return measure(params, data, PAPERS)


@pytest.fixture(scope="module")
def page(result: Result) -> str:
    return report_page(result)


class _Balance(HTMLParser):
    """Collect every element, and fail on one that is not closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Balance()
    parser.feed(page)
    assert parser.open == []
    return parser.seen


def test_the_page_needs_nothing_from_outside(page: str, elements: list[tuple[str, dict[str, str | None]]]) -> None:
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in elements}
    links = [attributes["href"] or "" for tag, attributes in elements if tag == "a"]
    assert links
    assert all(not re.match(r"[a-z]+:|//", link) for link in links)
    assert "url(" not in page
    assert "@import" not in page
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_ids_are_unique_and_links_inside_lead_somewhere(elements: list[tuple[str, dict[str, str | None]]]) -> None:
    ids = [attributes["id"] for _, attributes in elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    inside = [attributes["href"][1:] for tag, attributes in elements if tag == "a" and attributes["href"][0] == "#"]
    assert inside == ["cora", "citeseer"]
    assert set(inside) <= set(ids)
    named = [word for _, attributes in elements for word in (attributes.get("aria-labelledby") or "").split()]
    assert named
    assert set(named) <= set(ids)


def test_tables_say_what_they_are_to_a_screen_reader(elements: list[tuple[str, dict[str, str | None]]]) -> None:
    assert [tag for tag, _ in elements].count("caption") == [tag for tag, _ in elements].count("table") == 3
    scopes = [attributes.get("scope") for tag, attributes in elements if tag == "th"]
    assert set(scopes) == {"col", "row", "rowgroup"}
    # Restacked on a phone, rows and cells keep their meaning only through their roles.
    for tag, role in (("table", "table"), ("tr", "row"), ("td", "cell"), ("tbody", "rowgroup"), ("thead", "rowgroup")):
        assert {attributes.get("role") for name, attributes in elements if name == tag} == {role}


def test_the_page_says_what_a_reader_must_know(page: str) -> None:
    text = re.sub(r"<[^>]+>", " ", page)
    for words in (
        "Nobody’s features",
        "Everybody’s true features",
        "epsilon 0.1: at most 1.11 times as likely",
        "Not protected:",
        "who is linked to whom",
        "the same search of 12 points",
        "1354 nodes to train",
        "No paper prints a number for: majority, structure and nonpriv.",
        "ldp tables --check",
        "Going Deeper into Locally Differentially Private Graph Neural Networks",
    ):
        assert words in text, words
    assert "$" not in text
    assert " nan" not in text.lower()


def test_text_from_artifacts_is_escaped(page: str) -> None:
    assert "<b>leaks</b>" not in page
    assert "&lt;b&gt;leaks&lt;/b&gt; &amp; more" in page


def test_one_row_per_cell_and_a_verdict_for_each_private_one(page: str, result: Result) -> None:
    private = [row for row in result.rows if row.role == "private"]
    assert page.count('class="bars"><svg') == len(private) + 2  # and both ceilings
    verdicts = re.findall(r'<span class="verdict (above|below|same)">', page)
    assert verdicts == [row.gain.against(0.0) for row in private if row.gain is not None]
    assert "above" not in verdicts
    assert "below" in verdicts


def test_times_is_a_bound() -> None:
    assert [report._times(value) for value in (1e-6, 0.1, 1.0, 3.0, 10.0)] == ["1.01", "1.11", "2.72", "20.1", "22,027"]


def _colours(css: str) -> tuple[dict[str, str], dict[str, str]]:
    light, dark = css.split("prefers-color-scheme:dark", maxsplit=1)
    pattern = r"--([a-z0-9-]+):(#[0-9a-f]{3,6})"
    first = dict(re.findall(pattern, light))
    return first, first | dict(re.findall(pattern, dark))


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_known_at_its_ends() -> None:
    assert _contrast("#000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_the_contrast_of_aa(scheme: int) -> None:
    colours = _colours((report._HERE / "report.css").read_text(encoding="utf-8"))[scheme]
    pairs = [(text, under) for text in ("ink", "muted", "accent") for under in ("paper", "card", "soft")]
    pairs += [("above", "above-soft"), ("below", "below-soft")]
    for text, under in pairs:
        assert _contrast(colours[text], colours[under]) >= 4.5, (text, under)
    figure = _colours(FIGURE_CSS)[scheme]
    for name in ("ink", "muted"):
        assert _contrast(figure[name], colours["card"]) >= 4.5
    for place in range(7):
        assert _contrast(figure[f"s{place}"], colours["card"]) >= 3.0, place


@pytest.mark.parametrize("width", [760, 356])
def test_figure_is_sound_and_nothing_leaves_it(result: Result, width: int) -> None:
    text = budget_figure(result.sections[0], width=width)
    root = ET.fromstring(text)
    assert root.get("viewBox", "").split()[2] == str(width)
    assert root.find(f"{SVG}title") is not None
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert "lpgnn 84." in (description.text or "")
    labels = [element for element in root.iter(f"{SVG}text") if element.get("dy") == "4.3"]
    names = ["".join(label.itertext()).split(" ")[0] for label in labels]
    assert sorted(names) == ["base", "lpgnn", "lpgnn-lp", "lpgnn-pm", "nonpriv", "structure"]
    for label in labels:  # 7.6 pixels a character is the widest usual interface font at this size
        assert float(label.get("x", "0")) + 7.6 * len("".join(label.itertext())) <= width + 8
    heights = sorted(float(label.get("y", "0")) for label in labels)
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 15.9
    assert max(heights) <= float(root.get("height", "0"))


def test_a_far_majority_is_told_not_drawn(result: Result) -> None:
    section = result.sections[0]
    text = budget_figure(section, width=760)
    assert f"majority ({section.reference('majority').score.mean:.1f}) lies below" in text


def test_a_near_majority_is_drawn(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,))
    write_grid(tmp_path, params, {"majority": 0.78})
    text = budget_figure(measure(params, tmp_path, PAPERS).sections[0], width=760)
    assert "lies below" not in text
    assert "majority <tspan" in text


def test_one_budget_and_one_run_still_make_a_figure(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,), seeds=1)
    write_grid(tmp_path, params)
    text = budget_figure(measure(params, tmp_path, PAPERS).sections[0], width=760)
    assert "nan" not in text
    assert "inf" not in text
    assert "log scale" not in text


def test_gain_bar_shows_the_side_and_what_lies_beyond() -> None:
    inside = gain_bar(Interval(mean=0.5, low=0.2, high=0.8, runs=5), 1.0)
    assert 'class="gain above"' in inside
    assert "circle" in inside
    beyond = gain_bar(Interval(mean=-5.0, low=-6.0, high=-4.0, runs=5), 1.0)
    assert 'class="gain below"' in beyond
    assert "beyond" in beyond
    assert "circle" not in beyond


def test_ticks_are_round() -> None:
    assert nice_ticks(78.6, 87.1) == [80.0, 82.0, 84.0, 86.0]
    assert nice_ticks(92.9, 94.9, 5) == [93.0, 93.5, 94.0, 94.5]


def test_names_that_crowd_at_the_top_stay_in_the_picture(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,))
    crowd = dict.fromkeys(("structure", "nonpriv", "lpgnn", "lpgnn-pm", "lpgnn-lp"), 0.86)
    write_grid(tmp_path, params, crowd | {"base": 0.31})
    root = ET.fromstring(budget_figure(measure(params, tmp_path, PAPERS).sections[0], width=760))
    heights = sorted(float(e.get("y", "0")) for e in root.iter(f"{SVG}text") if e.get("dy") == "4.3")
    assert len(heights) == 7
    assert heights[0] >= 24  # below the title of the axis
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 15.9
