"""The page of all results in a browser: sorting, filtering, copying, curves, a phone, light and dark, no errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_page import CHROMIUM, Browser

from graphldp.stages.pages.results_page import results_page, write_page

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)"),
]

_TRY = """
(() => {
  const table = document.querySelector('#tables table.sorted'), body = table.tBodies[0];
  document.querySelectorAll('details').forEach(one => { one.open = true; });
  const heads = [...table.tHead.rows[0].cells], place = heads.findIndex(head => head.textContent === 'accuracy');
  const all = body.rows.length, values = () => [...body.rows].map(row => parseFloat(row.cells[place].textContent));
  heads[place].querySelector('button').click();
  const up = values().every((value, at, them) => !at || them[at - 1] <= value);
  heads[place].querySelector('button').click();
  const down = values().every((value, at, them) => !at || them[at - 1] >= value);
  const tools = table.closest('.scroll').previousElementSibling, words = tools.querySelector('input');
  words.value = 'frontier'; words.dispatchEvent(new Event('input'));
  const left = [...body.rows].filter(row => !row.hidden);
  let copied = ''; document.execCommand = () => { copied = document.querySelector('textarea').value; return true; };
  Object.defineProperty(window, 'isSecureContext', {value: false});
  const texts = {};
  for (const button of tools.querySelectorAll('button')) { button.click(); texts[button.textContent] = copied; }
  const both = one => one.querySelectorAll('select')[1].options.length > 1;
  const curve = [...document.querySelectorAll('.curve')].find(both);
  const dot = curve && curve.querySelector('circle');
  if (dot) dot.dispatchEvent(new Event('focus'));
  const line = () => curve.querySelector('polyline').getAttribute('points');
  const before = curve ? line() : '', pick = curve && curve.querySelectorAll('select')[1];
  if (pick) { pick.value = 'ours'; pick.dispatchEvent(new Event('change')); }
  return JSON.stringify({up, down, all, left: left.length,
    frontier: left.every(row => row.textContent.includes('frontier')), texts,
    said: curve ? curve.querySelector('output').value : '', switched: curve ? line() !== before : null,
    verdicts: [...document.querySelectorAll('#claims .tools select')].map(one => one.getAttribute('aria-label')),
    numbers: [...document.querySelectorAll('#papers .tools select')].map(one => one.getAttribute('aria-label')),
    clipped: [...document.querySelectorAll('.curve svg text')].filter(text => {
      const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
      return box.right > frame.right + 1 || box.left < frame.left - 1 || box.bottom > frame.bottom + 1;
    }).map(text => text.textContent),
    flat: [...document.querySelectorAll('.curve svg')].filter(svg => {
      const marks = svg.querySelectorAll('line.c0, line.c1, circle, line.level, rect.band');
      const tops = [...marks].map(one => one.getBBox());
      const high = Math.min(...tops.map(one => one.y)), low = Math.max(...tops.map(one => one.y + one.height));
      return low - high < 0.1 * svg.viewBox.baseVal.height && new Set(tops.map(one => one.y)).size > 2;
    }).map(svg => svg.closest('details').id),
    bands: curve ? curve.querySelectorAll('rect.band').length : 0,
    page: document.documentElement.scrollWidth, wide: document.documentElement.clientWidth,
    paper: getComputedStyle(document.body).backgroundColor, errors: window.failed || []});
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("profile"))
    try:
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    text = results_page(ROOT / "results", ROOT / "docs")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    watch = "<script>window.failed = []; onerror = text => { failed.push(String(text)); };</script></head>"
    path.write_text(text.replace("</head>", watch, 1), encoding="utf-8")
    return path


def _try(browser: Browser, page: Path, width: int, scheme: str) -> dict[str, Any]:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Page.navigate", url=page.as_uri())
    browser._until(lambda answer: answer.get("method") == "Page.loadEventFired")
    value = browser.call("Runtime.evaluate", expression=_TRY, returnByValue=True)
    found: dict[str, Any] = json.loads(value["result"]["value"])
    return found


def test_tables_sort_filter_and_copy_and_curves_switch(browser: Browser, page: Path) -> None:
    seen = _try(browser, page, 1200, "light")
    assert seen["errors"] == []
    assert seen["up"]
    assert seen["down"]
    assert seen["frontier"]
    assert 0 < seen["left"] < seen["all"]
    texts = seen["texts"]
    assert len(texts["Copy CSV"].splitlines()) == 1 + seen["left"]
    assert len(texts["Copy Markdown"].splitlines()) == 2 + seen["left"]
    assert texts["Copy LaTeX"].startswith("\\begin{tabular}{")
    assert texts["Copy LaTeX"].count("\\\\\n") == 1 + seen["left"]
    assert seen["switched"]
    assert seen["verdicts"] == ["paper", "their protocol", "ours"]
    assert not {"their protocol", "ours"} & set(seen["numbers"])  # numbers are no kinds to choose by
    assert seen["clipped"] == []
    assert seen["flat"] == []  # curves fill their frame, also where all of them lie near 0.01
    assert seen["bands"] == 2  # floor and ceiling, with their intervals
    assert ": " in seen["said"]  # the exact values of the focused point


def test_everything_is_there_on_paper(browser: Browser, page: Path) -> None:
    """Closed parts are opened to be printed, and closed again."""
    _try(browser, page, 1200, "light")
    count = "document.querySelectorAll('details:not([open])').length"
    script = f"document.querySelectorAll('details').forEach(one => {{ one.open = false; }}); const before = {count};"
    script += f"dispatchEvent(new Event('beforeprint')); const open = {count}; dispatchEvent(new Event('afterprint'));"
    value = browser.call("Runtime.evaluate", expression=f"(() => {{ {script} return [before, open, {count}]; }})()",
                         returnByValue=True)  # fmt: skip
    before, during, after = value["result"]["value"]
    assert before > 20
    assert (during, after) == (0, before)


def test_nothing_is_wider_than_a_phone_in_light_and_dark(browser: Browser, page: Path) -> None:
    light, dark = (_try(browser, page, 390, scheme) for scheme in ("light", "dark"))
    for seen in (light, dark):
        assert seen["page"] <= seen["wide"]
        assert seen["errors"] == []
        assert seen["clipped"] == []
    assert light["paper"] != dark["paper"]


def test_headings_are_short_and_what_they_leave_out_follows() -> None:
    text = results_page(ROOT / "results", ROOT / "docs")
    head, _, rest = text.partition('id="ppgnn-figure3"')[2].partition("</summary>")
    assert "one panel per dataset" not in head
    assert "one panel per dataset" in rest.partition("<table")[0]


def test_the_pages_tables_are_the_files(tmp_path: Path) -> None:
    import csv
    import re

    text = results_page(ROOT / "results", ROOT / "docs")
    files = re.findall(r'<a href="([^"]+\.csv)">', text)
    assert len(files) > 20
    for name in files:
        with (ROOT / "results" / name).open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        own = text.partition(f'href="{name}"')[2].partition("</table>")[0]
        assert own.count("<tr>") == 1 + len(rows), name
    empty = tmp_path / "results"
    empty.mkdir()
    assert "Nothing yet." in write_page(empty, tmp_path).read_text(encoding="utf-8")


def test_pages_lead_to_each_other_and_name_their_code(tmp_path: Path) -> None:
    import re

    text = results_page(ROOT / "results", ROOT / "docs")
    places = set(re.findall(r'<a href="([^"#][^"]*)"', text))
    for place in places:
        assert (ROOT / "results" / place).is_file(), place
    pages = {path.relative_to(ROOT / "results").as_posix() for path in (ROOT / "results").glob("**/report.html")}
    assert pages <= places
    assert {f"../docs/papers/{name}.md" for name in ("togl", "upgnet", "ppgnn")} <= places
    made = json.loads((ROOT / "results/tables/made.json").read_bytes())["code"][0]
    assert f"runs by code {made[:12]}" in text.partition('id="table-results"')[2].partition("<table")[0]
    folder = tmp_path / "results" / "tables"
    folder.mkdir(parents=True)
    (folder / "main.csv").write_text(
        "dataset,row,mechanism,epsilon,accuracy,gain,gain_low,gain_high,gap\n"
        "cora,lpgnn,mb,5,84.20,-0.77,-1.50,-0.03,\n",
        encoding="utf-8",
    )
    small = results_page(tmp_path / "results", tmp_path)
    assert "<td>−0.77 [−1.50, −0.03]</td>" in small  # one digit would say that it ends at 0.0
    assert "report.html" not in small
