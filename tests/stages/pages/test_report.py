from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from runs_factory import grid, write_grid, write_runs

from graphldp import client, methods
from graphldp.evaluation import Interval
from graphldp.stages.evaluate import measure
from graphldp.stages.grids.params import RowParams
from graphldp.stages.pages import figures, report
from graphldp.stages.pages.explained import mechanism_sentence, method_page, method_sentence
from graphldp.stages.pages.figures import FIGURE_CSS, budget_figure, gain_bar, nice_ticks, panels, pictures, reach_text
from graphldp.stages.pages.report import report_page
from graphldp.stages.pages.tables import Result, signed

ROOT = Path(__file__).parents[3]
PAPERS, DOCS, RESULTS = ROOT / "papers", ROOT / "docs", ROOT / "results"
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
    assert not {"link", "img", "iframe"} & {tag for tag, _ in elements}
    assert [attributes for tag, attributes in elements if tag == "script"] == [{}]  # one, and none from elsewhere
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
    assert [where for where in inside if not where.startswith("method-")] == ["rows", "cora", "citeseer"]
    assert set(inside) <= set(ids)
    reached = [attributes for _, attributes in elements if attributes.get("tabindex") == "0"]
    assert reached
    assert all(attributes.get("aria-label") for attributes in reached)


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
        "No paper whose numbers are here prints one for majority, structure and nonpriv.",
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


def test_a_row_with_the_floors_runs_has_no_interval_and_no_verdict_of_its_own(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,))
    write_grid(tmp_path, params)
    floor = next(cell for cell in params.cells() if cell.name == "structure")
    own = next(cell for cell in params.cells() if cell.name == "lpgnn")
    values = [0.83 + 0.002 * place for place in range(10)]
    write_runs(tmp_path, floor, seeds=10, values=values)
    write_runs(tmp_path, own, seeds=10, values=values)
    page = report_page(measure(params, tmp_path, PAPERS))
    (line,) = re.findall(r'<tr role="row"><th[^>]*><a href="#method-lpgnn">lpgnn</a>.*?</tr>', page)
    assert "same runs as structure" in line
    assert "the floor’s runs" in line
    assert "[0.0, 0.0]" not in line
    assert "0.0 exactly" in re.sub(r"<[^>]+>", " ", line).replace("  ", " ")


def test_private_links_are_not_called_public_and_public_features_not_private(result: Result) -> None:
    section = result.sections[0]
    rows = tuple(replace(row, epsilon=math.inf) if row.role == "private" else row for row in section.rows)
    asked = replace(section, rows=rows, asked=("links",), asked_beside="Links are reported by blink at epsilon 1")
    text = re.sub(r"<[^>]+>", " ", report_page(replace(result, sections=(asked,))))
    assert "Links are private here," in text
    assert "who is linked to whom" not in text
    assert "Not protected: the labels used to train." in text.replace("  ", " ")
    assert "The graph and the labels" not in text
    assert "features public" in text
    assert "Features are public here" in text
    assert "times as likely" not in text
    assert "private result" not in text.lower()


def test_what_papers_print_is_of_papers(result: Result) -> None:
    alone = replace(result.sections[0], rows=tuple(replace(row, papers=()) for row in result.sections[0].rows))
    page = report_page(replace(result, sections=(alone,), notes=("80 cells took 2.6 minutes",)))
    own = page.partition("What papers print for the same cells")[2].partition("</section>")[0]
    assert "No paper whose numbers are here prints one for any cell" in own
    assert "80 cells" not in own
    assert page.count("80 cells") == 1


def test_only_rows_whose_people_spend_unlike_amounts_are_said_to(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,))
    write_grid(tmp_path, params)
    for name, largest in (("lpgnn", 1.0), ("lpgnn-pm", 16.0)):
        spend = {"what": "features", "epsilon": 1.0, "delta": 0.0, "mean": (1.0 + largest) / 2, "max": largest}
        cell = next(cell for cell in params.cells() if cell.name == name)
        write_runs(tmp_path, cell, seeds=10, meta={"ledger": [spend]})
    text = re.sub(r"<[^>]+>", "", report_page(measure(params, tmp_path, PAPERS)))
    assert "In lpgnn-pm people have budgets of their own" in text


def test_what_tables_share_is_said_once(result: Result) -> None:
    page = report_page(result)
    assert len(result.sections) == 2
    assert page.count("K is the number of propagation steps") == 1
    many = replace(result, sections=tuple(replace(result.sections[0], labelled=f"part {n}") for n in range(7)))
    assert "How each of the 7 tables was made" in report_page(many)


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
    assert figure["sheet"] == colours["card"]  # what lies under a figure, in the page and in a file of its own
    for name in ("ink", "muted"):
        assert _contrast(figure[name], colours["card"]) >= 4.5
    for name in ("s0", "s1", "same", "above", "below"):
        assert _contrast(figure[name], colours["card"]) >= 3.0, name


def test_a_figure_in_a_file_of_its_own_brings_its_sheet(result: Result) -> None:
    under = ".figure{background:var(--sheet)}"
    assert under in budget_figure(result.sections[0])
    assert under not in report_page(result)  # there the page is the sheet


def test_figure_is_sound_and_nothing_leaves_it(result: Result) -> None:
    root = ET.fromstring(budget_figure(result.sections[0], width=760))
    high = float(root.get("height", "0"))
    assert root.get("viewBox") == f"0 0 760 {high:g}"
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert "lpgnn 84." in (description.text or "")
    names = [one.text for one in root.iter(f"{SVG}text") if one.get("class") == "strong"]
    assert names == ["base", "lpgnn", "lpgnn-pm", "lpgnn-lp"]
    corners = [re.findall(r"[\d.]+", one.get("transform", "")) for one in root.findall(f"{SVG}g")]
    assert len({tuple(corner) for corner in corners}) == 4  # no panel hides another
    (panel, *_) = panels(pictures(result)[0])
    assert all(float(x) + 206 <= 760 and float(y) + panel.height <= high for x, y in corners)


def test_every_row_of_a_full_table_has_a_panel_that_says_its_numbers(tmp_path: Path) -> None:
    rows = tuple(RowParams(name=f"row-{place}", method="lpgnn", mechanism="mb") for place in range(20))
    params = replace(grid(epsilons=(0.1, 1.0)), rows=rows)
    write_grid(tmp_path, params, {row.name: 0.84 + 0.0005 * place for place, row in enumerate(rows)})
    found = measure(params, tmp_path, PAPERS)
    page = report_page(found)
    for row in found.sections[0].private:
        said = re.findall(rf'<div class="panel"[^>]* aria-label="{row.name}: ([^"]*)"', page)
        assert len(said) == 1
        assert f"at epsilon {row.epsilon:g} {row.shown(row.score)}, gain {row.shown(row.gain, sign=True)}" in said[0]
    assert page.count('class="panel" tabindex="0"') == 20
    drawn = panels(pictures(found)[0])
    lines = [set(re.findall(r'data-row="(\d+)"', one.svg)) for one in drawn]
    assert lines == [{str(other) for other in range(20) if other != one.place} for one in drawn]
    trails = [re.findall(r'stroke="var\(--same\)" stroke-width="1.4" d="([^"]+)"', one.svg) for one in drawn]
    assert len({tuple(trail) for trail in trails}) == 20  # a twentieth of a point apart, and still told apart


def test_a_row_far_off_flattens_no_other(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0, 3.0))
    write_grid(tmp_path, params, {"base": 0.31, "structure": 0.847, "nonpriv": 0.99})
    (picture,) = pictures(measure(params, tmp_path, PAPERS))
    base, *others = panels(picture)
    gains = sorted(row.gain.mean for _, row in base.points if row.gain is not None)
    assert f">{signed(gains[0])} to {signed(gains[1])}</text>" in base.svg
    assert base.svg.count("h10Z") == 2
    for one in others:
        heights = [float(end) for end in re.findall(r'stroke-width="2" d="M[\d.]+ [\d.]+V([\d.]+)"', one.svg)]
        tops = [float(end) for end in re.findall(r'stroke-width="2" d="M[\d.]+ ([\d.]+)V[\d.]+"', one.svg)]
        assert max(low - top for low, top in zip(heights, tops, strict=True)) > 10  # its interval can be seen
    words = reach_text(picture)
    assert words.startswith("The ceiling, +1")
    assert words.endswith("is a gain beyond it: base.")


def test_what_is_above_points_up_and_what_is_below_points_down(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,))
    write_grid(tmp_path, params, {"structure": 0.80, "base": 0.79, "lpgnn": 0.83, "nonpriv": 0.84})
    drawn = {one.name: one.svg for one in panels(pictures(measure(params, tmp_path, PAPERS))[0])}
    assert "M0-5.4L5 4H-5Z" in drawn["lpgnn"]
    assert "var(--above)" in drawn["lpgnn"]
    assert "M0 5.4L5-4H-5Z" in drawn["base"]
    assert "var(--below)" in drawn["base"]


def test_every_method_and_mechanism_is_explained_with_a_page_that_is_there() -> None:
    for name in methods.names():
        assert method_sentence(name).endswith(".")
        assert (DOCS / method_page(name)).is_file()
    for name in client.names():
        assert len(mechanism_sentence(name)) > 10
        assert (DOCS / "mechanisms" / f"{name}.md").is_file()


def test_links_to_other_pages_lead_to_files(page: str, result: Result) -> None:
    for one, folder in ((page, RESULTS), (report_page(replace(result, experiment="links")), RESULTS / "links")):
        outside = {where.partition("#")[0] for where in re.findall(r'href="([^"#][^"]*)"', one)}
        others = {where for where in outside if where.startswith("..") or where == "index.html"}
        assert len(others) >= 7
        for where in others:
            assert (folder / where).is_file(), where
        rows = set(re.findall(r'href="#method-([^"]+)"', one))
        assert rows == {row.method for row in result.rows}
    index = (RESULTS / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="index.html#([^"]+)"', page) == ["table-results", "papers"]
    for anchor in ("table-results", "papers", "table-links"):
        assert f'id="{anchor}"' in index


def test_the_page_names_the_code_and_no_day_of_a_run(page: str, result: Result) -> None:
    foot = page.partition("<footer")[2]
    assert "runs by code" not in foot  # these runs do not say
    said = report_page(replace(result, made={"code": ["ab" * 32]}, commit="0123456789ab of 2026-01-31"))
    assert "runs by code abababababab · page by commit 0123456789ab of 2026-01-31 ·" in said.partition("<footer")[2]
    assert said == report_page(replace(result, made={"code": ["ab" * 32]}, commit="0123456789ab of 2026-01-31"))


def test_many_tables_are_folded_and_one_heading_stands_over_each_budget(result: Result) -> None:
    many = tuple(replace(result.sections[0], dataset=f"graph-{place}") for place in range(9))
    text = report_page(replace(result, sections=many))
    assert '<nav aria-label="Tables"><details><summary>9 tables</summary>' in text
    heads = re.findall(r'scope="rowgroup" colspan="\d+">(.*?)</th>', report_page(replace(result, sections=many[:1])))
    assert len(heads) == 5
    assert heads[1] == "<b>epsilon 0.1</b> per user"


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


def test_long_names_take_lines_of_their_own() -> None:
    name = "togl-fda-with-a-name, score_steps 3, epsilon 0.1"
    assert figures._lines(name) == ["togl-fda-with-a-name", "score_steps 3", "epsilon 0.1"]
    assert figures._lines("x" * 40) == ["x" * 40]  # nowhere to break: squeezed
