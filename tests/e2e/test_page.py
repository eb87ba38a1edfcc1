"""The report page in a real browser: a phone, a small window, a desk; light and dark."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from runs_factory import grid, write_grid

from graphldp.stages.evaluate import evaluate
from graphldp.stages.grids.params import RowParams

PAPERS = Path(__file__).parents[2] / "papers"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (apt-get install chromium)"),
]

_LOOK = """
(() => {
  const wide = document.documentElement.clientWidth;
  const inside = element => element.closest('.scroll, pre') !== null;
  const shown = element => element.getClientRects().length > 0;
  const out = [...document.querySelectorAll('body *')]
    .filter(element => shown(element) && !inside(element) && !element.closest('thead'))
    .filter(element => element.getBoundingClientRect().right > wide + 1)
    .map(element => element.tagName + ' ' + (element.textContent || '').trim().slice(0, 40));
  const clipped = [...document.querySelectorAll('svg text')].filter(shown).filter(text => {
    const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
    return box.right > frame.right + 1 || box.left < frame.left - 1 || box.bottom > frame.bottom + 1;
  }).map(text => text.textContent);
  const small = [...document.querySelectorAll('p, li, td, th, dd, dt, svg text')].filter(shown)
    .filter(element => element.textContent.trim() && !element.closest('thead'))
    .map(element => {
      const svg = element.ownerSVGElement;
      const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
      return parseFloat(getComputedStyle(element).fontSize) * scale;
    });
  const tables = [...document.querySelectorAll('.scroll')].map(box => box.scrollWidth - box.clientWidth);
  return JSON.stringify({
    width: wide, page: document.documentElement.scrollWidth, out, clipped, smallest: Math.min(...small), tables,
    words: document.body.innerText.length, rows: [...document.querySelectorAll('tr')].filter(shown).length,
    paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
    figure: getComputedStyle(document.querySelector('svg.figure text')).fill,
  });
})()
"""

_TRY = """
(() => {
  const plot = document.querySelector('.plot'), panels = [...plot.querySelectorAll('.panel')], wide = innerWidth;
  const shown = element => element.getClientRects().length > 0;
  const boxes = panels.map(panel => { panel.focus(); const box = panel.querySelector('.exact');
    const place = box.getBoundingClientRect();
    return {shown: shown(box), inside: place.left >= 0 && place.right <= wide, text: box.innerText}; });
  const open = panels.filter(panel => shown(panel.querySelector('.exact'))).length;
  const ticks = [...plot.querySelectorAll('.keys input')], behind = () => [...plot.querySelectorAll('.behind')];
  const before = behind().filter(line => line.style.display !== 'none').length;
  ticks[1].click();
  const left = panels.filter(shown).map(panel => panel.dataset.name);
  const lines = new Set(behind().filter(line => line.style.display !== 'none').map(line => line.dataset.row));
  const [all, none] = plot.querySelectorAll('.keys button');
  none.click(); const nothing = panels.filter(shown).length;
  all.click(); const everything = panels.filter(shown).length;
  return JSON.stringify({boxes, open, before, left, lines: [...lines], nothing, everything, labels: ticks.length,
    wide: document.documentElement.scrollWidth <= document.documentElement.clientWidth});
})()
"""


class Browser:
    """Chromium driven through its debugging pipe: no port, no package."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        command = 'exec "$@" 3<&"$LDP_READ" 4>&"$LDP_WRITE"'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *flags, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_read, to_write),
            env=os.environ | {"LDP_READ": str(to_read), "LDP_WRITE": str(to_write)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._count = 0
        self._buffer = b""
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._until(lambda answer: answer.get("id") == self._count)["result"]

    def _until(self, wanted: Any) -> dict[str, Any]:
        while True:
            while b"\0" not in self._buffer:
                part = os.read(self._read, 1 << 20)
                assert part, "Chromium closed its pipe"
                self._buffer += part
            raw, self._buffer = self._buffer.split(b"\0", 1)
            answer = json.loads(raw)
            if wanted(answer):
                return answer

    def look(self, page: Path, *, width: int, scheme: str) -> dict[str, Any]:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=page.as_uri())
        self._until(lambda answer: answer.get("method") == "Page.loadEventFired")
        value = self.call("Runtime.evaluate", expression=_LOOK, returnByValue=True)
        found: dict[str, Any] = json.loads(value["result"]["value"])
        return found

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    long = RowParams(name="a-row-whose-name-no-panel-can-hold", method="lpgnn", mechanism="mb")
    params = replace(grid(), rows=(*grid().rows, long))
    write_grid(folder / "data", params)
    evaluate(params, folder / "data", folder / "results", PAPERS)
    return folder / "results" / "report.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("profile"))
    try:
        yield started
    finally:
        started.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 700, 820, 1024, 1280, 1920])
def test_the_page_fits_and_nothing_is_clipped(browser: Browser, page: Path, width: int, scheme: str) -> None:
    seen = browser.look(page, width=width, scheme=scheme)
    assert width - 20 <= seen["width"] <= width  # a desk's browser takes a few pixels for its scroll bar
    assert seen["page"] <= seen["width"]
    assert seen["out"] == []
    assert seen["clipped"] == []
    assert seen["smallest"] >= 9.5  # footnote letters aside, nothing smaller is text that must be read
    assert seen["words"] > 3000
    assert seen["rows"] >= 15 + 8
    if width <= 640 or width >= 820:
        assert max(seen["tables"]) <= 1  # restacked on a phone, whole on a tablet; in between a table may scroll


def test_light_and_dark_are_two_pages(browser: Browser, page: Path) -> None:
    light = browser.look(page, width=390, scheme="light")
    dark = browser.look(page, width=390, scheme="dark")
    for part in ("paper", "ink", "figure"):
        assert light[part] != dark[part]


@pytest.mark.parametrize("width", [390, 1280])
def test_panels_say_their_numbers_and_rows_can_be_left_out(browser: Browser, page: Path, width: int) -> None:
    browser.look(page, width=width, scheme="light")
    value = browser.call("Runtime.evaluate", expression=_TRY, returnByValue=True)
    seen = json.loads(value["result"]["value"])
    assert len(seen["boxes"]) == seen["labels"] == 5
    for box in seen["boxes"]:
        assert box["shown"]
        assert box["inside"]
        assert re.search(r"8\d\.\d \[8\d\.\d, 8\d\.\d\]\s+(0\.0|[+−]\d\.\d+) \[", box["text"]), box["text"]
    assert seen["open"] == 1  # the one that has the focus
    assert seen["before"] == 5 * 4
    assert len(seen["left"]) == 4
    assert "lpgnn" not in seen["left"]
    assert sorted(seen["lines"]) == ["0", "2", "3", "4"]
    assert (seen["nothing"], seen["everything"]) == (0, 5)
    assert seen["wide"]


def test_without_scripts_the_page_has_everything_but_the_choice_of_rows(browser: Browser, page: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=page.as_uri())
        browser._until(lambda answer: answer.get("method") == "Page.loadEventFired")
        count = "document.querySelectorAll('{}').length"
        read = f"JSON.stringify([{count.format('.panel svg')}, {count.format('.keys')}])"
        value = browser.call("Runtime.evaluate", expression=read, returnByValue=True)
        assert json.loads(value["result"]["value"]) == [5, 0]
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
