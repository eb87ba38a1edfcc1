"""Maps of the gain over two axes, and what reports can say at all beside them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_experiment import GRID, TOGL, store, whole

from graphldp.audit.information import class_information, feature_information
from graphldp.client import protocol
from graphldp.datasets.options import Synthetic
from graphldp.datasets.synthetic import word_chances
from graphldp.randomness import generator
from graphldp.stages.experiment import results_of, write_results
from graphldp.stages.grids.params import Params, load
from graphldp.stages.pages.class_information import backgrounds_of
from graphldp.stages.pages.figures import pictures
from graphldp.stages.pages.maps import Map, drawn, map_figure, maps
from graphldp.stages.pages.tables import Result, signed

SVG = "{http://www.w3.org/2000/svg}"
STRUCTURE, FEATURES = ("0.2", "0.9"), ("0", "0.5", "1")
DIALS: dict[str, Any] = {
    "data": {"nodes": 90, "classes": 3, "degree": 6.0, "dimensions": 12, "words": 4},
    "vary": {"data.structure": [0.2, 0.9], "data.features": [0, 0.5, 1]},
    "rows": [
        {"name": "lpgnn", "method": "lpgnn", "mechanism": "mb"},
        {"name": "privset", "method": "base", "mechanism": "privset"},
    ],
    "epsilons": [1, 4],
}


def grid(folder: Path, **changes: Any) -> Params:
    path = folder / "dials.yaml"
    path.write_text(yaml.safe_dump({**GRID, **changes}, sort_keys=False), encoding="utf-8")
    return load(path)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("dials")
    search = {**GRID["search"], "points": 1, "seeds": 1}
    train = {**GRID["train"], "epochs": 5}
    what = whole(grid(folder, **DIALS, search=search, train=train), folder)
    result = results_of(what, folder, folder / "none")
    write_results(what, result, folder / "results")
    return result, folder / "results" / "dials"


@pytest.fixture
def shown(found: tuple[Result, Path]) -> Map:
    (one,) = maps(found[0])
    return one


def test_a_map_has_every_row_at_its_place(found: tuple[Result, Path], shown: Map) -> None:
    assert shown.axes == ("data.structure", "data.features")
    assert [panel.title for panel in shown.panels] == [
        "structure, the floor itself",
        "nonpriv, the ceiling",
        *(f"{name}, epsilon {epsilon}" for epsilon in (1, 4) for name in ("lpgnn", "privset")),
        "bits that say the class",
    ]
    rows = {(row.name, row.epsilon, *(value for _, value in row.axes)): row for row in found[0].rows}
    for panel in shown.panels[2:-1]:
        name, epsilon = panel.title.split(", epsilon ")
        assert (panel.columns, panel.rows) == (STRUCTURE, FEATURES)
        for (across, up), (text, shade, stands_out) in panel.cells.items():
            row = rows[name, float(epsilon), across, up]
            assert row.gain is not None
            assert text == signed(row.gain.mean)
            assert stands_out == (row.gain.runs >= 5 and (row.gain.low > 0 or row.gain.high < 0))
            assert (shade > 0) == (row.gain.mean > 0)
        assert len(panel.cells) == 6
    floor = shown.panels[0].cells["0.2", "0.5"]
    assert floor == (rows["structure", 0.0, "0.2", "0.5"].mean_text, 0.0, False)
    shades = [abs(shade) for panel in shown.panels for _, shade, _ in panel.cells.values()]
    assert max(shades) == pytest.approx(1.0)


def test_the_background_is_that_of_the_law(found: tuple[Result, Path], shown: Map) -> None:
    (one,) = found[0].backgrounds
    assert one.columns == ("words", "most\n1", "mb\n1", "most\n4", "mb\n4")
    assert tuple(one.values) == FEATURES
    table = word_chances(Synthetic(**{**DIALS["data"], "structure": 0.9, "features": 0.5}))
    bits = dict(zip(one.columns, one.values["0.5"], strict=True))
    exact = feature_information(table, rng=generator(0)).bits  # 2^12 patterns: summed up
    assert bits["words"] == pytest.approx(exact)
    told = class_information(protocol("mb", 4.0, 12, 0.0, 1.0), table, rng=generator(0))
    assert bits["mb\n4"] == pytest.approx(told.bits)
    assert bits["most\n4"] == pytest.approx(told.bound)
    assert 0 < bits["mb\n1"] < bits["most\n1"] < bits["most\n4"] < bits["words"]
    assert max(abs(value) for value in one.values["0"]) < 1e-9
    panel = shown.panels[-1]
    assert panel.cells["words", "0.5"][0] == f"{exact:.2g}"
    assert panel.cells["words", "0"][0] == "0"


def test_there_is_no_background_without_the_dial(tmp_path: Path) -> None:
    experiment = grid(tmp_path, **{**DIALS, "vary": {"data.structure": [0.2, 0.9]}})
    assert backgrounds_of(experiment.cells(), 0) == ()
    only = [{"name": "privset", "method": "base", "mechanism": "privset"}]
    (one,) = backgrounds_of(grid(tmp_path, **{**DIALS, "rows": only}).cells(), 0)
    assert one.columns == ("words", "most\n1", "most\n4")  # what is not computed is not there


@pytest.mark.parametrize("width", [356, 640, 760, 1040])
def test_the_drawing_fits_and_reads(shown: Map, width: int) -> None:
    text = map_figure(shown, width=width)
    assert text == map_figure(shown, width=width)
    root = ET.fromstring(text)
    height = float(root.attrib["height"])
    for box in root.iter(f"{SVG}rect"):
        x, y, wide, high = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x < x + wide <= width
        assert 0 <= y < y + high <= height
    boxes = list(root.iter(f"{SVG}rect"))
    assert len(boxes) == 6 * 6 + 3 * 5
    assert len({(box.attrib["x"], box.attrib["y"]) for box in boxes}) == len(boxes)
    assert all(float(one.attrib["font-size"]) >= 12 for one in root.iter(f"{SVG}text"))
    words = (root.find(f"{SVG}desc") or root[2]).text or ""
    assert "lpgnn, epsilon 4: with signal of features 0: " in words
    assert re.search(r"[+−]?\d+\.\d at signal of links 0.9", words)


def test_the_largest_value_of_the_side_stands_on_top(shown: Map) -> None:
    root = ET.fromstring(map_figure(shown, width=356))
    labels = [one for one in root.iter(f"{SVG}text") if one.attrib.get("text-anchor") == "end"]
    assert [one.text for one in labels[:3]] == ["1", "0.5", "0"]
    tops = [float(one.attrib["y"]) for one in labels[:3]]
    assert tops == sorted(tops)


def test_the_map_takes_the_place_of_its_tables_lines(found: tuple[Result, Path]) -> None:
    result, folder = found
    assert pictures(result)
    assert drawn(result) == []
    assert [path.name for path in (folder / "figures").iterdir()] == ["gain-synthetic.svg"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure") == 1
    assert page.index('id="map-synthetic"') < page.index('id="synthetic-structure0.2-features0"')
    assert 'href="figures/gain-synthetic.svg"' in page
    assert "most that any report of that epsilon can say" in page


@pytest.mark.slow
def test_axes_of_a_method_have_a_map_too(tmp_path: Path) -> None:
    store(tmp_path)
    rows = [{**GRID["rows"][0], "vary": []}, TOGL]
    vary = {"method.rho": [0.0, 1.0], "search.steps": [0, 2]}
    search = {**GRID["search"], "points": 1, "seeds": 1}
    what = whole(grid(tmp_path, vary=vary, rows=rows, epsilons=[3], search=search), tmp_path)
    result = results_of(what, tmp_path, tmp_path / "none")
    (one,) = maps(result)
    assert [panel.title for panel in one.panels] == ["togl, epsilon 3"]  # who has no axis has no place
    assert one.panels[0].across == "rho"
    assert (one.shared, len(drawn(result))) == (False, 1)


@pytest.mark.slow
def test_one_axis_has_no_map(tmp_path: Path) -> None:
    store(tmp_path)
    what = whole(grid(tmp_path, vary={"method.rho": [0.0, 1.0]}, rows=[TOGL], epsilons=[3]), tmp_path)
    assert maps(results_of(what, tmp_path, tmp_path / "none")) == []
