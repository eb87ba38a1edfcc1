from __future__ import annotations

import dataclasses
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from runs_factory import grid, write_grid, write_runs

from graphldp.cli import experiment
from graphldp.cli.app import main
from graphldp.errors import ArtifactError
from graphldp.evaluation import Interval
from graphldp.measures import DEFAULT_TASK, measures_of
from graphldp.stages.evaluate import evaluate, measure
from graphldp.stages.files import traces
from graphldp.stages.grids.params import RowParams, load
from graphldp.stages.pages import report, results_page, tables
from graphldp.stages.pages.compare import check, compare
from graphldp.stages.pages.findings import find
from graphldp.stages.pages.report import report_page
from graphldp.stages.pages.tables import (
    Column,
    Result,
    TableRow,
    columns,
    csv_text,
    daggers,
    latex_text,
    markdown_text,
    metrics,
    number,
    plots_text,
    read_csv,
    signed,
    span,
)

PAPERS = Path(__file__).parents[3] / "papers"
GRID = grid(epsilons=(0.1, 1.0))
BROKEN = {"claimed": 1.0, "exact": 2.0, "text": "spends 100 % more & says_nothing"}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    data = tmp_path_factory.mktemp("data")
    write_grid(data, GRID)
    cell = next(cell for cell in GRID.cells() if cell.name == "lpgnn-pm" and cell.epsilon == 1.0)
    write_runs(data, cell, seeds=10, meta={"mechanism_claim": BROKEN})
    return measure(GRID, data, PAPERS)


def test_csv_is_the_record(result: Result) -> None:
    rows = read_csv(csv_text(result))
    assert tuple(rows[0]) == columns(measures_of(DEFAULT_TASK))
    assert len(rows) == 3 + 8
    first = next(row for row in rows if (row["row"], row["epsilon"]) == ("base", "0.1"))
    measured = next(row for row in result.rows if (row.name, row.epsilon) == ("base", 0.1))
    assert first["accuracy"] == f"{measured.score.mean:.2f}"
    assert first["spent_on"] == "features 0.1"
    assert (first["epsilon_mean"], first["epsilon_max"], first["delta"]) == ("0.1", "0.1", "0")
    assert first["paper"] == "UPGNet Table 2 (MBM)"
    assert float(first["gain_low"]) <= float(first["gain"]) <= float(first["gain_high"]) < 0
    claims = {(row["row"], row["epsilon"]): row["claim"] for row in rows}
    assert claims["lpgnn-pm", "1"] == f"fails: {BROKEN['text']}"
    assert claims["lpgnn-pm", "0.1"] == "keeps"


def test_markdown_has_every_row_and_note_once(result: Result) -> None:
    text = markdown_text(result)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 11
    assert {line.count("|") for line in lines} == {10}
    assert len({len(line) for line in lines}) == 1  # aligned for people who read the source
    assert "| lpgnn-pm † |" in text
    assert f"- † pm: {BROKEN['text']}" in text
    assert text.count("(a) UPGNet Table 2") == 1
    assert "12 points, 2 seeds" in text
    assert "1354 nodes to train" in text


def _aligned(text: str, form: str) -> list[dict[str, str]]:
    """Return a text's rows, each cell under the heading that stands above it."""
    if form == "csv":
        return read_csv(text)
    if form == "html":
        body = text.split("<table")[1].split("</table>")[0]
        heads = re.findall(r'<th role="columnheader"[^>]*>(.*?)</th>', body)
        lines = re.findall(r'<tr role="row"><th role="rowheader" scope="row">(.*?)</th>(.*?)</tr>', body, re.S)
        cells = [[name, *re.findall(r"<td[^>]*>(.*?)</td>", rest, re.S)] for name, rest in lines]
    else:
        edge, end = ("|", "|") if form == "md" else (" & ", "\\\\")
        lines = [line for line in text.splitlines() if edge in line and line.endswith(end) and "multicol" not in line]
        found = [[cell.strip() for cell in line.strip("|").removesuffix("\\\\").split(edge)] for line in lines]
        heads, cells = found[0], found[2 if form == "md" else 1 :]
    assert all(len(line) == len(heads) for line in cells)
    return [dict(zip(heads, line, strict=True)) for line in cells]


TEXTS = {"csv": csv_text, "md": markdown_text, "tex": latex_text, "html": report_page}


def with_column(patch: pytest.MonkeyPatch, new: Column, at: Callable[[list[int]], int]) -> None:
    """Put a column into the one list of columns: before the one that `at` chooses of those that a form has."""
    made = tables.table_columns

    def more(*given: Any) -> tuple[Column, ...]:
        found = made(*given)
        place = at([place for place, column in enumerate(found) if set(new.where) & set(column.where)])
        return (*found[:place], new, *found[place:])

    for module in (tables, report, results_page):
        patch.setattr(module, "table_columns", more)


@pytest.mark.parametrize("form", list(TEXTS))
def test_a_new_column_shifts_no_other_wherever_it_stands(
    result: Result, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    before = _aligned(TEXTS[form](result), form)
    assert len(before) == 11
    new = Column(key="new", heading="new one", text=lambda row: f"new {row.name}", where=(form,))
    name = "new" if form == "csv" else "new one"
    for at in (lambda there: there[1], lambda there: there[len(there) // 2], lambda there: there[-1] + 1):
        with monkeypatch.context() as patch:
            with_column(patch, new, at)
            after = _aligned(TEXTS[form](result), form)
        assert [row.pop(name) for row in after] == [f"new {row.name}" for row in result.rows]
        assert after == before


def test_a_new_column_stands_everywhere_by_its_one_entry(
    result: Result, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = Column(key="new", heading="new one", text=lambda row: f"NEW-{row.name}", where=tables.FORMS)
    with_column(monkeypatch, new, lambda there: there[-1] + 1)
    for form, text in TEXTS.items():
        assert "NEW-lpgnn-lp" in text(result), form
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "main.csv").write_text(csv_text(result))
    (shown,) = results_page._tables(tmp_path)
    assert shown.heads[-1] == "new one"
    assert {row[-1] for row in shown.rows} >= {"NEW-base", "NEW-nonpriv"}
    monkeypatch.setenv("COLUMNS", "200")
    main(["tables", "--results", str(tmp_path)])
    assert "NEW-lpgnn-lp" in capsys.readouterr().out
    brief = Console(width=200, file=io.StringIO())
    brief.print(experiment._table(result.sections[0]))
    assert "NEW-lpgnn-lp" in brief.file.getvalue()  # type: ignore[attr-defined]


def test_a_row_says_whose_runs_it_repeats_in_every_form(tmp_path: Path) -> None:
    params = grid(epsilons=(0.1, 1.0))
    write_grid(tmp_path, params)
    cells = {(cell.name, cell.epsilon): cell for cell in params.cells()}
    same = [0.80 + 0.001 * seed for seed in range(10)]
    for key in (("lpgnn", 0.1), ("lpgnn-pm", 0.1), ("lpgnn-lp", 1.0)):
        write_runs(tmp_path, cells[key], seeds=10, values=same)
    write_runs(tmp_path, cells["base", 1.0], seeds=10, values=[*same[:9], same[9] + 1e-9])
    result = measure(params, tmp_path, PAPERS)
    found = {(row.name, row.epsilon): row.remark for row in result.rows if row.remark}
    assert found == {
        ("lpgnn-pm", 0.1): "same runs as lpgnn",
        ("lpgnn-lp", 1.0): "same runs as lpgnn at epsilon 0.1",
    }
    assert {row["remark"] for row in read_csv(csv_text(result))} == {"", *found.values()}
    for remark in found.values():
        assert [line.strip("| ").endswith(f"| {remark}") for line in markdown_text(result).splitlines()].count(
            True
        ) == 1
        assert latex_text(result).count(f"\\quad {remark}}} \\\\") == 1
        assert report_page(result).count(f"K 16, {remark}</span>") == 1
    finding = find(result.sections[0])
    assert finding.above + finding.same + finding.below == 6
    assert "2 more rows have the same runs as another one and are not counted again." in finding.sentences


def test_a_private_row_that_is_the_floor_again_counts_as_a_result(tmp_path: Path) -> None:
    params = grid(epsilons=(1.0,))
    write_grid(tmp_path, params)
    values = [0.80 + 0.001 * seed for seed in range(10)]
    for cell in params.cells():
        if cell.name in ("structure", "lpgnn"):
            write_runs(tmp_path, cell, seeds=10, values=values)
    result = measure(params, tmp_path, PAPERS)
    assert [row.remark for row in result.rows if row.name == "lpgnn"] == ["same runs as structure"]
    finding = find(result.sections[0])
    assert finding.above + finding.same + finding.below == 4


@pytest.mark.parametrize(("rho", "m", "remark"), [(0.5, 1, True), (0.5, 2, False), (0.0, 9, True), (1.0, 1, False)])
def test_two_rounds_of_which_nothing_is_directed_are_not_called_by_their_name_alone(
    tmp_path: Path, rho: float, m: int, remark: bool
) -> None:
    rows = (*grid().rows, RowParams(name="togl", method="togl-fda", mechanism="pm"))
    params = dataclasses.replace(grid(epsilons=(1.0,)), rows=rows)
    write_grid(tmp_path, params, {"togl": 0.95})
    cell = next(cell for cell in params.cells() if cell.name == "togl")
    write_runs(tmp_path, cell, seeds=10, mean=0.95, meta={"rounds": {"rho": rho}, "m": m})
    result = measure(params, tmp_path, PAPERS)
    row = next(row for row in result.rows if row.name == "togl")
    said = "m* = 0: second round random"
    assert row.remark == (said if remark else "")
    name = f"togl ({said})" if remark else "togl"
    assert f"The best private result is {name} at epsilon 1" in "\n".join(find(result.sections[0]).sentences)
    page = report_page(result)
    assert page.count(f"togl: {said}.</figcaption>") == int(remark)
    for text in (csv_text(result), markdown_text(result), latex_text(result), page):
        assert (said in text) == remark


def test_a_mechanism_with_several_reasons_says_which_row_each_is_of(result: Result) -> None:
    row = next(row for row in result.rows if (row.name, row.epsilon) == ("lpgnn-pm", 1.0))

    def broken(text: str, epsilon: float, mechanism: str = "ppm", **axes: str) -> TableRow:
        claim = dataclasses.replace(row.claim, text=text)
        return dataclasses.replace(
            row, mechanism=mechanism, epsilon=epsilon, claim=claim, axes=tuple((f"m.{k}", v) for k, v in axes.items())
        )

    assert daggers(result.rows) == [f"pm: {BROKEN['text']}"]
    assert daggers([broken("names it", 1), broken("names it", 3)]) == ["ppm: names it"]
    rows = [broken("a", 1, gamma="0.1"), broken("b", 1, gamma="0.3"), broken("c", 3, "pm"), broken("b", 3, gamma="0.3")]
    assert daggers(rows) == ["ppm, gamma = 0.1, epsilon 1: a", "ppm, gamma = 0.3, epsilon 1: b", "pm: c"]


def test_latex_is_balanced_and_escaped(result: Result) -> None:
    text = latex_text(result)
    body = text.split("\\toprule")[1].split("\\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith("\\\\")]
    cells = [line for line in rows if "multicolumn" not in line]
    assert len(cells) == 1 + 11
    assert {line.count(" & ") for line in cells} == {6}
    assert "\\multicolumn{7}{@{}l}{\\emph{epsilon 0.1, spent on: features 0.1}}" in text
    assert "spends 100 \\% more \\& says\\_nothing" in text
    assert "lpgnn-pm \\textdagger{}" in text
    assert all(character.isascii() for character in text)


def has_latex() -> bool:
    """Whether LaTeX is installed, with the package that the tables use."""
    asked = ["kpsewhich", "booktabs.sty"]
    return (
        None not in map(shutil.which, ("pdflatex", asked[0])) and subprocess.call(asked, stdout=subprocess.DEVNULL) == 0
    )


@pytest.mark.skipif(not has_latex(), reason="LaTeX with booktabs is not installed")
def test_latex_compiles(result: Result, tmp_path: Path) -> None:
    document = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n\\input{main}\n\\end{document}\n"
    (tmp_path / "main.tex").write_text(latex_text(result))
    (tmp_path / "paper.tex").write_text(document)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1500:]
    assert "Overfull" not in done.stdout


def test_metrics_are_small_and_nested(result: Result) -> None:
    found = metrics(result)["cora"]
    assert set(found) == {"majority", "structure", "nonpriv", "base", "lpgnn", "lpgnn-pm", "lpgnn-lp"}
    assert set(found["lpgnn"]) == {"0.1", "1"}
    assert set(found["lpgnn"]["1"]) == {"accuracy", "gain"}
    assert set(found["structure"]) == {"accuracy"}
    assert json.loads(json.dumps(found)) == found


def test_plot_data_repeats_the_references_at_every_budget(result: Result) -> None:
    rows = read_csv(plots_text(result))
    assert [row["epsilon"] for row in rows if row["row"] == "structure"] == ["0.1", "1"]
    assert len(rows) == 2 * 7


def test_numbers_are_written_one_way() -> None:
    assert [number(value) for value in (0.0, 0.1, 1.0, 1e-6, float("inf"))] == ["0", "0.1", "1", "1e-06", "inf"]
    assert [signed(value) for value in (0.25, -0.25, 0.04, -0.04)] == ["+0.2", "−0.2", "0.0", "0.0"]
    none = Interval(mean=0.0, low=0.0, high=0.0, runs=10)
    assert [span(none, sign=True), span(none), span(none, sign=True, digits=2)] == [
        "0.0 exactly", "0.0 [0.0, 0.0]", "0.00 exactly",
    ]  # fmt: skip


def _csv(**changes: str) -> list[dict[str, str]]:
    row = dict.fromkeys(columns(measures_of(DEFAULT_TASK)), "") | {
        **{"dataset": "cora", "row": "lpgnn", "epsilon": "1", "steps": "16", "claim": "keeps"},
        **{"accuracy": "84.20", "accuracy_low": "83.90", "accuracy_high": "84.60"},
        **{"gain": "-0.30", "gain_low": "-0.60", "gain_high": "0.10"},
    }
    return [row | changes]


@pytest.mark.parametrize("value", ["83.90", "84.60", "84.21"])
def test_a_cell_may_move_within_its_committed_interval(value: str) -> None:
    assert compare("main", _csv(), _csv(accuracy=value, accuracy_low="80.00", accuracy_high="90.00")) == []


@pytest.mark.parametrize("value", ["83.89", "84.61", ""])
def test_a_cell_may_not_leave_it(value: str) -> None:
    [found] = compare("main", _csv(), _csv(accuracy=value))
    assert found.fails
    assert (found.column, found.old, found.new, found.allowed) == ("accuracy", "84.20", value, "83.90 to 84.60")
    assert "cora lpgnn at epsilon 1, accuracy: 84.20 -> " in found.text


def test_the_new_interval_grants_nothing() -> None:
    moved = _csv(accuracy="86.00", accuracy_low="80.00", accuracy_high="90.00")
    assert [difference.fails for difference in compare("main", _csv(), moved)] == [True]


def test_gain_and_gap_are_checked_too() -> None:
    assert [difference.column for difference in compare("main", _csv(), _csv(gain="0.11", gap="-1.00"))] == [
        "gain",
        "gap",
    ]


def test_without_an_interval_nothing_may_move() -> None:
    bare = {"accuracy_low": "", "accuracy_high": ""}
    assert compare("main", _csv(**bare), _csv(**bare)) == []
    assert [d.fails for d in compare("main", _csv(**bare), _csv(**bare, accuracy="84.21"))] == [True]


def test_other_columns_must_say_the_same_and_depth_and_remark_are_mentioned() -> None:
    found = compare("main", _csv(), _csv(claim="fails: x", steps="8", remark="same runs as base"))
    assert [(difference.column, difference.fails) for difference in found] == [
        ("steps", False),
        ("claim", True),
        ("remark", False),
    ]


def test_rows_and_columns_that_came_or_went_are_listed() -> None:
    new = _csv(row="upgnet")
    for row in new:
        row["extra"] = "1"
        del row["paper"]
    found = [(difference.cell, difference.column, difference.fails) for difference in compare("main", _csv(), new)]
    assert found == [
        ("every row", "column paper", True),
        ("every row", "column extra", False),  # nothing of it was committed, so that nothing has moved
        ("cora lpgnn at epsilon 1", "row", True),
        ("cora upgnet at epsilon 1", "row", True),
    ]


def test_two_rows_for_one_cell_are_refused() -> None:
    with pytest.raises(ArtifactError, match="two rows for cora lpgnn at epsilon 1"):
        compare("main", _csv() + _csv(), _csv())


def _git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with a grid, its runs, and its committed tables; it is the working directory."""
    params = grid(epsilons=(1.0,))
    write_grid(tmp_path / "data", params)
    evaluate(params, tmp_path / "data", tmp_path / "results", PAPERS)
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "results")
    _git(tmp_path, "commit", "-q", "-m", "tables")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _again(project: Path, mean: float) -> None:
    params = grid(epsilons=(1.0,))
    cell = next(cell for cell in params.cells() if cell.name == "lpgnn")
    write_runs(project / "data", cell, seeds=10, mean=mean)
    evaluate(params, project / "data", project / "results", PAPERS)


def test_a_table_that_nothing_has_made_again_is_not_called_checked(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["tables", "--check"]) == 0
    said = capfd.readouterr()
    assert "within its interval" not in said.out
    assert "nothing is checked: results has the tables of HEAD themselves (" in said.err
    assert "params.yaml is not there" in said.err
    assert "make them again with `dvc repro`" in said.err
    monkeypatch.setattr(traces, "trace", lambda folder, default: traces.Trace(folder=folder, stale=(), make="x"))
    assert main(["tables", "--check"]) == 0
    assert "the same as at HEAD, to the byte; this code makes them" in capfd.readouterr().out


def test_check_passes_on_a_small_move(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _again(project, 0.8455)
    assert main(["tables", "--check"]) == 0
    assert "every cell is within its interval at HEAD" in capfd.readouterr().out


def test_axes_of_labels_and_links_belong_to_a_rows_name(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = project / "results" / "tables" / "main.csv"
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    widened = [head.replace("dataset,", "dataset,epsilon_labels,data.structure,")]
    widened += [row.replace("cora,", f"cora,{budget},0.5,", 1) for budget in ("1.0", "2.0") for row in rows]
    path.write_text("\n".join(widened) + "\n", encoding="utf-8")
    _git(project, "commit", "-aqm", "wider")
    path.write_text("\n".join(widened).replace("cora,2.0,0.5,lpgnn,lpgnn,mb,1", "cora,2.0,0.5,lpgnn,lpgnn,pm,1") + "\n",
                    encoding="utf-8")  # fmt: skip
    assert main(["tables", "--check"]) == 1
    said = capfd.readouterr().out
    assert "cora lpgnn at epsilon 1, epsilon_labels=2.0, data.structure=0.5, mechanism: mb -> pm" in said
    assert said.count("moved:") == 1
    assert main(["tables"]) == 0
    shown = capfd.readouterr().out
    for budget in ("1.0", "2.0"):
        assert f"Cora, epsilon {budget} for labels, signal of links 0.5: accuracy in percent" in shown


def test_check_fails_on_a_moved_cell_and_names_it(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _again(project, 0.80)
    assert main(["tables", "--check"]) == 1
    said = capfd.readouterr().out
    assert "moved: main: cora lpgnn at epsilon 1, accuracy: 84." in said
    assert "allowed:" in said
    assert main(["tables", "--check", "--json"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert {entry["column"] for entry in found} == {"accuracy", "gain", "gap", "macro_f1"}


def test_check_passes_on_a_new_column(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = project / "results/tables/main.csv"
    first, *others = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([f"{first},extra", *(f"{line},1" for line in others)]) + "\n", encoding="utf-8")
    assert main(["tables", "--check"]) == 0
    assert "note: main: every row, column extra: nothing -> there" in capfd.readouterr().out


def test_check_against_another_revision(project: Path) -> None:
    _again(project, 0.80)
    _git(project, "commit", "-q", "-am", "moved")
    assert main(["tables", "--check"]) == 0
    assert main(["tables", "--check", "--against", "HEAD~1"]) == 1


def test_a_new_table_is_listed(project: Path) -> None:
    shutil.copy(project / "results/tables/main.csv", project / "results/tables/extra.csv")
    [found] = check(project / "results", "HEAD")
    assert (found.table, found.cell, found.new) == ("extra", "the whole table", "added")


@pytest.mark.parametrize("state", ["no git", "no commit of it", "no revision", "no table"])
def test_nothing_to_compare_is_one_line_and_exit_2(
    project: Path, capfd: pytest.CaptureFixture[str], state: str
) -> None:
    arguments = ["tables", "--check"]
    if state == "no git":
        shutil.rmtree(project / ".git")
    elif state == "no commit of it":
        _git(project, "rm", "-q", "--cached", "-r", "results")
        _git(project, "commit", "-q", "-m", "gone")
    elif state == "no revision":
        arguments += ["--against", "v9"]
    else:
        shutil.rmtree(project / "results/tables")
    assert main(arguments) == 2
    said = capfd.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("form", ["rich", "md", "csv", "tex", "json"])
def test_tables_are_printed_in_every_format(project: Path, capfd: pytest.CaptureFixture[str], form: str) -> None:
    assert main(["tables", "--format", form]) == 0
    said = capfd.readouterr().out
    assert "lpgnn-lp" in said
    if form in ("md", "csv", "tex"):
        assert said == (project / f"results/tables/main.{form}").read_text(encoding="utf-8")


def test_tables_are_listed_and_an_unknown_one_named(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "--list"]) == 0
    assert capfd.readouterr().out == "main\n"
    assert main(["tables", "mian"]) == 2
    assert "did you mean 'main'" in capfd.readouterr().err


def test_evaluate_from_the_command_line(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copy(PAPERS.parent / "params.yaml", project / "params.yaml")
    write_grid(project / "data", load(project / "params.yaml"))
    assert main(["evaluate", "--papers", str(PAPERS), "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["findings"][0].startswith("On Cora")
    assert set(answer["metrics"]["cora"]["lpgnn"]) == {"1", "5"}
    assert all((project / name).is_file() for name in answer["files"])
    assert main(["evaluate"]) == 0
    assert "No folder 'papers' of papers was found" in capfd.readouterr().out
    shutil.rmtree(project / "data/runs/cora/base")
    assert main(["evaluate"]) == 2
    assert "error: no runs of base (base, mb) on cora" in capfd.readouterr().err
