"""A table made again: each printed number once, both columns of one split, a second run for nothing, moved cells."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from cell_factory import NAME, files, store

from graphldp.errors import ArtifactError, OptionError
from graphldp.evaluation import Interval
from graphldp.stages import reproduce as stage
from graphldp.stages.code import code_hash
from graphldp.stages.grids.targets import PaperTarget, Profile, find
from graphldp.stages.pages.reproduced import (
    Line,
    Reproduction,
    bare,
    bring,
    completed,
    csv_text,
    latex_text,
    markdown_text,
    read,
    restate,
    with_earlier,
    write,
)
from graphldp.stages.pages.reproduced_figure import target_figure
from graphldp.stages.reproduce import Order, compare
from graphldp.stages.spotcheck import look, of_target, rotated

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "papers"
HEADER = "paper,table,dataset,method,mechanism,model,task,epsilon,setting,metric,value,spread,spread_kind"
SMALL = Profile(name="quick", seeds=3, points=2, search_seeds=1, strategy="random")
OURS = "model: gcn, task: node_classification, epsilon: 1.0"
PAPER = f"""\
paper: small
short: Small
title: A small paper
reference: Nowhere
protocol:
  - {{place: train.standardize, value: false, unstated: "x"}}
  - {{place: train.hidden, value: 6, cited: "1"}}
  - {{place: search.strategy, value: grid, cited: "1"}}
  - {{place: mechanism.m_rule, value: 2/5, cited: "1"}}
tables:
  - table: "1"
    file: tables/t.csv
    shows: "A table & its_rows"
    beside: []
    alone: [{{why: "x."}}]
    cells:
      - {{row: 1, printed: MB, metric: accuracy, value: "61.0", ours: {{dataset: {NAME}, {OURS}}}}}
      - {{row: 2, printed: "MB*", metric: accuracy, value: "99.9", ours: {{dataset: {NAME}, {OURS}}}}}
      - {{row: 3, printed: MB, metric: accuracy, value: "55.0", ours: {{dataset: nowhere, {OURS}}}}}
figures:
  - {{figure: "2", datasets: [], epsilons: null, printed: []}}
reproduce:
  - target: table1
    table: "1"
    gains: {{"MB*": MB}}
    settings: &small
      train: {{epochs: 8, patience: 8, hidden: 4}}
      search: {{learning_rate: [0.05], weight_decay: [0.001], dropout: [0.25, 0.5], steps: [1]}}
    rows:
      - {{printed: MB, method: base, mechanism: mb}}
      - {{printed: "MB*", method: base, mechanism: mb, set: {{method.before: 0.5}}}}
    readings:
      - {{name: plain, method: base}}
      - {{name: filtered, method: lpgnn}}
  - target: figure2
    figure: "2"
    datasets: [{NAME}]
    epsilons: [1]
    vary: {{search.steps: [1, 2]}}
    settings: *small
    rows:
      - {{printed: MB, method: lpgnn, mechanism: mb}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce")
    store(folder / "data")
    (folder / "papers" / "tables").mkdir(parents=True)
    (folder / "papers" / "small.yaml").write_text(PAPER)
    numbers = ((NAME, "MB", "61.0", "1.5"), (NAME, "MB*", "99.9", ""), ("nowhere", "MB", "55.0", ""))
    rows = [
        f"small,1,{name},{row},mb,gcn,node_classification,1.0,,accuracy,{value},{spread},"
        for name, row, value, spread in numbers
    ]
    (folder / "papers" / "tables" / "t.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    (folder / "papers" / "figures.csv").write_text("paper,figure,what_it_shows\nsmall,2,Something\n")
    return folder


def _order(place: Path, name: str) -> Order:
    (target,) = find(f"small:{name}", place / "papers")
    return stage.order(target, stage.Extent(profile=SMALL, fetch=False), data=place / "data", papers=place / "papers")


@pytest.fixture(scope="module")
def found(place: Path) -> Reproduction:
    return stage.reproduce(_order(place, "table1"), data=place / "data", results=place / "results", device="cpu")


def test_every_printed_number_stands_once_with_ours_or_a_reason(found: Reproduction) -> None:
    assert sorted(line.number or 0 for line in found.lines) == [0, 1, 2, 3]
    by_number = {line.number: line for line in found.lines if line.number}
    assert by_number[3].why == "x."
    assert by_number[3].theirs is None
    for number in (1, 2):
        line = by_number[number]
        for interval in (line.theirs, line.ours, line.floor, line.ceiling, line.to_printed, line.apart):
            assert interval is not None
            assert interval.low <= interval.mean <= interval.high
        assert line.to_printed is not None
        assert line.to_printed.mean == pytest.approx(line.theirs.mean - float(line.printed))
        assert line.apart.mean == pytest.approx(line.theirs.mean - line.ours.mean)
        assert [name for name, _ in line.readings] == ["plain", "filtered"]
        assert line.mean_epsilon == 1.0
    assert by_number[1].spread == "1.5"
    (gain,) = [line for line in found.lines if line.number is None]
    assert gain.metric == "accuracy gain"
    assert gain.theirs.mean == pytest.approx(by_number[2].theirs.mean - by_number[1].theirs.mean)


def test_the_reading_that_is_nearest_over_all_numbers_is_shown(found: Reproduction) -> None:
    lines = [line for line in found.lines if line.readings]
    distance = {
        name: sum(abs(dict(line.readings)[name].mean - float(line.printed)) for line in lines)
        for name in ("plain", "filtered")
    }
    assert {line.reading for line in lines} == {min(distance, key=lambda name: distance[name])}
    assert all(line.theirs == dict(line.readings)[line.reading] for line in lines)


def test_a_second_run_computes_nothing_and_says_the_same(place: Path, found: Reproduction) -> None:
    again = _order(place, "table1")
    assert (again.todo, again.cells) == (0, 4 + 2 + 3)
    before = files(place / "data")
    assert csv_text(stage.reproduce(again, data=place / "data", results=place / "results")) == csv_text(found)
    assert files(place / "data") == before


def test_texts_hold_the_same_rows(place: Path, found: Reproduction) -> None:
    paths = write(found, place / "results")
    assert [path.name for path in paths] == ["table.csv", "table.md", "table.tex", "time.json"]
    assert {path.parent for path in paths} == {place / "results" / "reproduce" / "small-table1" / "quick"}
    rows = list(csv.DictReader(io.StringIO(csv_text(found))))
    assert [row["number"] for row in rows] == [str(line.number or "") for line in found.lines]
    table = [line for line in markdown_text(found).splitlines() if line.startswith("| ")]
    assert len(table) == 2 + len(found.lines)
    assert "train.hidden` 6 (1)" in markdown_text(found)
    assert latex_text(found).count(r"\\") == 1 + len(found.lines)
    made = json.loads(paths[-1].read_text(encoding="utf-8"))
    assert made["cells"] == {"theirs": 4, "ours": 5}
    assert made["code"] == code_hash("train")  # of the cells, whenever they were computed
    assert made["missing"] == {"nowhere": "no data set here"}


def test_their_protocol_alone_and_one_reading_of_it(place: Path, tmp_path: Path) -> None:
    (target,) = find("small:table1", place / "papers")
    fewer = dataclasses.replace(SMALL, seeds=4)

    def ask(**options: object) -> Order:
        return stage.order(
            target, stage.Extent(profile=fewer, fetch=False, **options), data=place / "data", papers=place / "papers"
        )

    order = ask(theirs=True, reading="filtered")
    assert (set(order.plans), order.cells) == ({"theirs"}, 2)
    made = stage.reproduce(order, data=place / "data", results=place / "results", device="cpu")
    for line in made.lines:
        assert (line.ours, line.floor, line.ceiling, line.apart) == (None, None, None, None)
        assert (line.theirs is None) == (line.number == 3)
    assert {line.reading for line in made.lines if line.readings} == {"filtered"}
    write(made, tmp_path)
    assert csv_text(read(target, "quick", tmp_path)) == csv_text(made)
    stage.reproduce(ask(), data=place / "data", results=place / "results", device="cpu")
    assert set(ask(theirs=True).plans) == {"theirs", "ours"}  # what is there is shown
    with pytest.raises(OptionError, match="is not read as 'another'; it has plain, filtered"):
        ask(reading="another")


def test_less_of_a_data_set_is_not_written_over_more(place: Path, found: Reproduction, tmp_path: Path) -> None:
    (target,) = find("small:table1", place / "papers")
    other = dataclasses.replace(SMALL, seeds=6)  # nothing of it is there, so that ours is left out

    def ask(**options: object) -> Order:
        extent = stage.Extent(profile=other, fetch=False, **options)
        return stage.order(target, extent, data=place / "data", papers=place / "papers")

    stage.check_keeps(ask(theirs=True), tmp_path)  # nothing stands there
    write(found, tmp_path)
    with pytest.raises(OptionError, match=f"table.csv has ours, floor and ceiling of {NAME}, which would be lost"):
        stage.check_keeps(ask(theirs=True), tmp_path)
    with pytest.raises(OptionError, match="has the reading 'plain' of"):
        stage.check_keeps(ask(reading="filtered"), tmp_path)
    stage.check_keeps(ask(), tmp_path)


def test_a_moved_cell_is_caught(place: Path, found: Reproduction) -> None:
    write(found, place / "results")
    assert compare(found, place / "results") == []
    path = place / "results" / "reproduce" / "small-table1" / "quick" / "table.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    planted = next(row for row in rows if row["number"] == "1")
    for column in ("theirs", "theirs_low", "theirs_high"):
        planted[column] = f"{float(planted[column]) + 40:.3f}"
    rows = [row for row in rows if row["number"] != "2"]
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    moved = compare(found, place / "results")
    assert len(moved) == 2
    assert "MB 1: theirs was" in moved[0]
    assert moved[1].endswith("MB* 1: is new")
    write(found, place / "results")
    with pytest.raises(ArtifactError, match="nothing to compare with"):
        compare(found, place / "elsewhere")


def test_a_figure_is_a_row_at_each_place(place: Path) -> None:
    order = _order(place, "figure2")
    found = stage.reproduce(order, data=place / "data", results=place / "results", device="cpu")
    assert [line.place for line in found.lines] == ["steps 1", "steps 2"]
    assert all(line.printed == "" and line.to_printed is None and line.ours is not None for line in found.lines)


def test_a_data_set_that_is_not_the_tables_is_refused(place: Path) -> None:
    (target,) = find("small:table1", place / "papers")
    with pytest.raises(OptionError, match="small:table1 is not about 'cora'"):
        stage.order(
            target, stage.Extent(profile=SMALL, datasets=["cora"]), data=place / "data", papers=place / "papers"
        )


def test_what_takes_long_is_left_to_the_larger_profile_unless_it_is_named_or_there(place: Path) -> None:
    (target,) = find("small:figure2", place / "papers")
    target = dataclasses.replace(target, datasets=("first", NAME))
    store(place / "data", "first")
    short = dataclasses.replace(SMALL, minutes=1e-9, seeds=2)

    def look(what: PaperTarget, profile: Profile, *datasets: str) -> Order:
        papers = place / "papers"
        return stage.order(
            what, stage.Extent(profile=profile, datasets=datasets, fetch=False), data=place / "data", papers=papers
        )

    figure = look(target, short)
    assert figure.missing == {NAME: f"not run: a figure's first data set alone; `--datasets {NAME}`"}
    assert {one.cell.dataset for one in figure.made["ours"]} == {"first"}
    (table,) = find("small:table1", place / "papers")
    printed = (dataclasses.replace(table.printed[0], dataset="first"), *table.printed[1:2])
    further = look(dataclasses.replace(table, printed=printed), short)
    assert further.missing == {NAME: f"not run: about 0 minutes on one core; `--datasets {NAME}`"}
    assert look(target, dataclasses.replace(SMALL, seeds=2)).missing == {}
    named = look(target, short, NAME)
    assert named.missing == {"first": "not run: not asked for; `--datasets first`"}
    assert named.todo == named.cells > 0
    stage.reproduce(_order(place, "figure2"), data=place / "data", results=place / "results", device="cpu")
    there = look(target, dataclasses.replace(SMALL, minutes=1e-9))
    assert there.missing == {}
    assert {one.cell.dataset for one in there.made["ours"]} == {"first", NAME}


def test_the_estimate_grows_with_what_is_to_do(place: Path) -> None:
    order = _order(place, "table1")
    assert stage.estimate([], place / "data").seconds == 0
    undone = dataclasses.replace(
        order, plans={key: dataclasses.replace(one, done=(False,) * len(one.done)) for key, one in order.plans.items()}
    )
    one = stage.estimate([undone], place / "data")
    assert one.seconds > 0
    assert stage.estimate([undone, undone], place / "data") == one  # cells that two targets share count once
    first, second = stage.estimates([undone, undone], place / "data")
    assert (first, second.seconds) == (one, 0)
    plans = undone.plans.values()
    each = [stage.cell_seconds(what.experiment, cell, place / "data") for what in plans for cell in what.cells]
    assert sum(each) >= one.seconds > max(each) > 0
    assert "GB of memory" in one.text


def test_a_printed_number_within_its_interval_is_said() -> None:
    bare = {"dataset": "x", "row": "y", "place": "", "epsilon": 1.0, "metric": "accuracy", "spread": "", "ours": None,
            "floor": None, "ceiling": None, "to_printed": None, "apart": None, "mean_epsilon": None}  # fmt: skip
    seen = Interval(mean=80.0, low=79.0, high=81.0, runs=10)
    assert Line(printed="79.4", theirs=seen, **bare).within is True
    assert Line(printed="75.0", theirs=seen, **bare).within is False
    assert Line(printed="", theirs=seen, **bare).within is None
    assert Line(printed="75.0", theirs=None, **bare).within is None


def _again(place: Path, name: str, commit: str = "a" * 40, seconds: float = 60.0) -> tuple[list[str], list[str]]:
    (target,) = find(f"small:{name}", place / "papers")
    cells = list(of_target(target, SMALL, place / "results", place / "papers", [NAME]))
    return look(rotated(cells, commit), place / "data", seconds)


def test_a_planted_moved_cell_is_found_by_computing_it_again(place: Path, found: Reproduction) -> None:
    path = write(found, place / "results")[0]
    names, moved = _again(place, "table1")
    assert (len(names), moved) == (4, [])  # two rows in two columns, of the reading that stands in the table
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    planted = next(row for row in rows if row["number"] == "2")
    for column in ("ours", "ours_low", "ours_high"):
        planted[column] = f"{float(planted[column]) + 40:.3f}"
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    _, moved = _again(place, "table1")
    assert len(moved) == 1
    assert moved[0].startswith("small:table1: synthetic, MB*, epsilon 1, ours, accuracy: was ")
    write(found, place / "results")


def test_other_cells_come_first_at_another_commit_and_no_more_than_there_is_time_for(
    place: Path, found: Reproduction
) -> None:
    write(found, place / "results")
    one, two = (_again(place, "table1", commit)[0] for commit in ("a" * 40, "c" * 40))
    assert one != two
    assert sorted(one) == sorted(two)
    assert _again(place, "table1", seconds=0.0) == ([], [])
    assert _again(place, "figure2") == ([], [])  # nothing is committed of it


def test_a_figure_is_computed_again_place_by_place(place: Path) -> None:
    made = stage.reproduce(_order(place, "figure2"), data=place / "data", results=place / "results", device="cpu")
    folder = write(made, place / "results")[0].parent
    names, moved = _again(place, "figure2")
    assert moved == []
    assert len(names) == 4
    assert {name.split(", ")[2] for name in names} == {"steps 1", "steps 2"}
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path: Path, found: Reproduction) -> None:
    texts = [latex_text(found)]
    texts += [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("results/reproduce/*/*/table.tex"))]
    text = "\n\n".join(texts)
    (tmp_path / "all.tex").write_text(
        "\\documentclass{article}\\usepackage[utf8]{inputenc}\\usepackage[T1]{fontenc}\\begin{document}\\tiny\n"
        f"{text}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_texts_and_figure_are_made_again_of_the_csv_alone(place: Path, found: Reproduction, tmp_path: Path) -> None:
    made = stage.reproduce(_order(place, "figure2"), data=place / "data", results=place / "results", device="cpu")
    for one, names in ((found, set()), (made, {"figure.svg"})):
        paths = write(one, tmp_path)
        assert {path.name for path in paths} == {"table.csv", "table.md", "table.tex", "time.json", *names}
        before = {path: path.read_bytes() for path in paths}
        for path in paths:
            if path.name not in ("table.csv", "time.json"):
                path.unlink()
        again = Reproduction(target=one.target, profile=SMALL, lines=read(one.target, "quick", tmp_path).lines,
                             made=read(one.target, "quick", tmp_path).made)  # fmt: skip
        write(again, tmp_path)
        assert {path: path.read_bytes() for path in paths} == before
    assert all(line.theirs_seconds and line.ours_seconds for line in found.lines if line.number in (1, 2))
    with pytest.raises(ArtifactError, match="has no table"):
        read(found.target, "paper", tmp_path)


def test_data_sets_that_are_not_run_now_keep_what_stands_there(found: Reproduction, tmp_path: Path) -> None:
    """A table of one graph does not wipe out those of others, of whatever code; of another protocol it does."""
    write(found, tmp_path)
    other = tuple(dataclasses.replace(line, dataset="nowhere", row="MB") for line in found.lines if line.number == 1)
    bare = tuple(dataclasses.replace(line, dataset=NAME) for line in found.lines if line.number == 3)
    later = dataclasses.replace(found, lines=(*other, *bare), made={**found.made, "missing": {NAME: "not run: x"}})
    both = with_earlier(later, tmp_path)
    assert {line.dataset for line in both.lines} == {NAME, "nowhere"}
    assert [line.theirs for line in both.lines if line.dataset == NAME][:2] == [
        pytest.approx(line.theirs) if line.theirs is None else _near(line.theirs) for line in found.lines[:2]
    ]
    assert both.made["kept"] == {NAME: found.made["code"]}
    assert both.made["missing"] == {}
    assert f"{NAME} is of an earlier run, by code {found.made['code']}." in both.notes
    assert [text for text in compare(both, tmp_path) if NAME in text] == []  # not asked for, so not moved
    changed = dataclasses.replace(later, made={**later.made, "protocol": []})
    assert with_earlier(changed, tmp_path) == changed


def test_another_folder_of_results_is_taken_over_data_set_by_data_set(
    place: Path, found: Reproduction, tmp_path: Path
) -> None:
    every = find("small", place / "papers")
    here, there = tmp_path / "here", tmp_path / "there"
    write(found, here)
    moved = [dataclasses.replace(line, dataset="nowhere", row="MB") for line in found.lines if line.number == 1]
    left = [dataclasses.replace(line, dataset=NAME) for line in found.lines if line.number == 3]
    write(dataclasses.replace(found, lines=(*moved, *left), made={**found.made, "missing": {NAME: "x"}}), there)
    (folder,) = bring(every, there, here)
    poorer = tuple(dataclasses.replace(line, ours=None) for line in moved)
    write(dataclasses.replace(found, lines=(*poorer, *left), made={**found.made, "missing": {NAME: "x"}}), there)
    with pytest.raises(OptionError, match="has ours, floor and ceiling of nowhere, which would be lost; run all of it"):
        bring(every, there, here)
    assert folder == here / "reproduce" / "small-table1" / "quick"
    rows = list(csv.DictReader(io.StringIO((folder / "table.csv").read_text(encoding="utf-8"))))
    assert {row["dataset"] for row in rows if row["theirs"]} == {NAME, "nowhere"}
    assert json.loads((folder / "time.json").read_bytes())["kept"] == {NAME: found.made["code"]}
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert restate(every, here) == [folder]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def _near(one: Interval) -> Interval:
    """Return an interval as the CSV has it."""
    mean, low, high = (float(f"{end:.3f}") for end in (one.mean, one.low, one.high))
    return Interval(mean=mean, low=low, high=high, runs=one.runs)


def _lines(target: PaperTarget, *rows: tuple[str, str, str, float, float]) -> list[Line]:
    """Return lines of a data set, row, place, budget and mean under their protocol; ours is a point above."""
    out = []
    for dataset, row, at, epsilon, mean in rows:
        theirs, ours = (Interval(mean=mean + up, low=mean + up - 1, high=mean + up + 1, runs=5) for up in (0, 1))
        bare = dict.fromkeys(("floor", "ceiling", "to_printed", "apart", "mean_epsilon"))
        metric = "accuracy gain" if " less " in row else "accuracy"
        out.append(Line(dataset=dataset, row=row, place=at, epsilon=epsilon, metric=metric, printed="", spread="",
                        theirs=theirs, ours=ours, **bare))  # fmt: skip
    return out


@pytest.mark.parametrize(
    ("address", "rows", "marks", "words"),
    [
        ("upgnet:figure3", [("cora", "BASE", "", 0.01, 60.0), ("cora", "BASE", "", 3.0, 70.0)], 2, "epsilon, evenly"),
        ("togl:figure9", [("cora", "TOGL", "rho 0", 10.0, 60.0), ("cora", "TOGL", "rho 1", 10.0, 30.0)], 2, "rho, "),
        ("togl:figure6", [("cora", "FDA", "", 10.0, 60.0), ("pubmed", "FDA", "", 10.0, 70.0)], 2, "data set, at"),
        ("upgnet:figure5", [("cora", "MBM", "", 0.01, 60.0), ("cora", "MBM* less MBM", "", 0.01, 7.0),
                            ("cora", "MBM* less MBM", "", 3.0, -2.0)], 2, "MBM* less MBM"),
    ],
)  # fmt: skip
def test_a_figure_draws_every_result_once_in_both_columns(
    address: str, rows: list[tuple[str, str, str, float, float]], marks: int, words: str
) -> None:
    from xml.etree import ElementTree

    (target,) = find(address, PAPERS)
    svg = target_figure(target, _lines(target, *rows))
    root = ElementTree.fromstring(svg)
    titles = [one.text for one in root.iter("{http://www.w3.org/2000/svg}title")][1:]
    bars = address == "togl:figure6"
    assert len(titles) == 2 * marks * (2 if bars else 1)  # a bar and its dot say the same
    assert words in svg
    assert next(root.iter("{http://www.w3.org/2000/svg}title")).text == f"{target.heading}: {target.title}"
    assert svg.count("<rect") == 2 * marks * bars
    if address == "upgnet:figure5":
        assert ">MBM<" not in svg  # what the gain is over is no gain
        assert "−2.0 [−3.0, −1.0]" in svg
    assert target_figure(target, []) == ""


def test_bars_fill_their_panel_and_touch_no_other() -> None:
    (target,) = find("togl:figure6", PAPERS)
    for rows, least in (
        ([("cora", name, "", 10.0, 60.0) for name in ("SOTA", "FDA", "SMA")], 100.0),
        ([(data, name, "", 10.0, 60.0) for data in ("cora", "citeseer") for name in ("SOTA", "FDA")], 100.0),
        ([("cora", f"row {place}", "", 10.0, 60.0) for place in range(14)], 250.0),
    ):
        svg = target_figure(target, _lines(target, *rows))
        found = re.findall(r'<rect fill[^>]* x="([\d.]+)" width="([\d.]+)"', svg)
        bars = sorted((float(left), float(left) + float(wide)) for left, wide in found[: len(rows)])
        assert all(before[1] < after[0] for before, after in pairwise(bars))
        assert bars[-1][1] - bars[0][0] > least
        assert 0 < bars[0][0] < bars[-1][1] < 380


def test_a_table_and_a_bridge_have_no_figure() -> None:
    for address in ("togl:table17", "togl:bridge"):
        (target,) = find(address, PAPERS)
        assert target_figure(target, _lines(target, ("cora", "Baseline", "", 10.0, 79.0))) == ""


def test_a_number_that_is_printed_for_each_mechanism_stands_beside_the_one_run() -> None:
    (target,) = find("ldpge:table3", PAPERS)
    run = _lines(target, ("cora", "without privacy", "", float("inf"), 90.0))[0]
    numbers = [one for one in target.printed if one.dataset == "cora" and one.epsilon == float("inf")]
    lines = [dataclasses.replace(run, number=one.row, printed=one.value) for one in numbers if one.label == "HDS"]
    lines += [bare(one) for one in numbers if one.label != "HDS"]
    found = completed(lines, target)
    assert sorted(line.number for line in found) == [5, 10, 15, 20]
    assert {line.theirs for line in found} == {run.theirs}
    assert [line.row for line in found if line.number == 5] == ["without privacy, printed for LP"]
    assert completed(found, target) == found


def test_committed_tables_are_what_their_csv_files_say() -> None:
    """The Markdown and LaTeX of every committed target hold the numbers of its CSV, row by row."""
    paths = sorted(ROOT.glob("results/reproduce/*/*/table.csv"))
    assert paths
    for path in paths:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        page = path.with_name("table.md").read_text(encoding="utf-8").split("\n\n")
        table = next(part for part in page if part.startswith("| data "))
        lines = table.strip().splitlines()[2:]
        latex = path.with_name("table.tex").read_text(encoding="utf-8").splitlines()[3:-1]
        assert len(lines) == len(latex) == len(rows), path
        for row, line, tex in zip(rows, lines, latex, strict=True):
            for text in (line, tex):
                numbers = text.replace("−", "-").replace("$-$", "-")
                for column in ("theirs", "ours"):
                    if row[column]:
                        # The record has two digits more than people read, who get one more beside zero.
                        digits = max(1, len(row[column].partition(".")[2]) - 2)
                        shown = [f"{abs(float(row[column])):.{digits + more}f}" for more in (0, 1)]
                        assert any(one in numbers for one in shown), (path, line)
                assert row["printed"] in numbers, (path, line)


# a figure that another command measures ------------------------------------------------------------------------------


def test_a_figure_along_an_axis_has_a_line_for_each_place(tmp_path: Path) -> None:
    (target,) = find("heterorr:figure11", PAPERS)
    shown = target.measured.shows
    assert shown is not None
    (tmp_path / "links-private").mkdir()
    shutil.copy(ROOT / "results/links-private/links.csv", tmp_path / "links-private/links.csv")
    lines = stage._curves(target, tmp_path)
    with (tmp_path / "links-private/links.csv").open(encoding="utf-8") as handle:
        there = {row["row"]: row for row in csv.DictReader(handle) if row["epsilon"] == "1"}
    assert [line.row for line in lines] == [row for row in there if row in shown.rows for _ in range(4)]
    for line in lines:
        assert line.ours is not None
        assert line.ours.mean == float(there[line.row][f"walk_{line.place.removeprefix('steps ')}"])
        assert (line.epsilon, line.metric) == (1.0, "walk_distance")


def test_a_figure_whose_file_is_not_there_names_the_command_that_measures_it(tmp_path: Path) -> None:
    (target,) = find("heterorr:figure11", PAPERS)
    words = stage.missing_measurement(target, tmp_path)
    assert words[:3] == ("links", "--dataset", "cora")
    assert words[-2:] == ("--output", str(tmp_path / "links-private"))
    (tmp_path / "links-private").mkdir()
    (tmp_path / "links-private/links.csv").write_text("", encoding="utf-8")
    assert stage.missing_measurement(target, tmp_path) == ()
    for address in (
        "togl:table17",
        "heterorr:figure10",
    ):  # of rows that are trained; of a page that no command measures
        assert stage.missing_measurement(find(address, PAPERS)[0], tmp_path) == ()
