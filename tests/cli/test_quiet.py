"""`--quiet` means the same in every command: results on standard output as ever, and nothing about the work."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cell_factory import NAME, store

from graphldp.cli import app, console

ROOT = Path(__file__).resolve().parents[2]
SMALL = "--seeds 2 --search-points 1 --search-seeds 1 --epochs 2 --hidden 4"
REPORTS = f"data/perturbed/{NAME}/mb/eps=1.parquet"
GRID = {
    "title": "Small",
    "datasets": [NAME],
    "epsilons": [1],
    "seeds": 2,
    "search": {"points": 1, "seeds": 1},
    "train": {"epochs": 2, "hidden": 4},
    "rows": [{"method": "lpgnn"}],
}
# A line of each command that measures or makes something; `here` has what it needs.
LINES = {
    "download": "download synthetic --name drawn --set nodes=60 --set degree=4",
    "import": "import other --features f.csv --edges e.csv --low 0 --high 1",
    "perturb": f"perturb -d {NAME} -e 2 --seeds 2 --search-seeds 1",
    "select": f"select --reports {REPORTS} -o scores.parquet",
    "denoise": f"denoise -d {NAME} -e 1",
    "train": f"train -d {NAME} -e 1 {SMALL}",
    "evaluate": f"evaluate --papers {ROOT}/papers",
    "run": f"run -d {NAME} -e 1 {SMALL}",
    "search": f"search -d {NAME} -e 1 {SMALL}",
    "experiment": f"experiment small.yaml --jobs 1 --papers {ROOT}/papers",
    "split": f"split -d {NAME} -e 4 --parts 2 --seeds 2 --search-points 1 --search-seeds 1 --epochs 2",
    "tables": f"tables --results {ROOT}/results",
    "reproduce": f"reproduce togl:table17 --dry --papers {ROOT}/papers",
    "claims": f"claims heterorr --papers {ROOT}/papers --docs docs",
    "results": f"results --papers {ROOT}/papers --docs docs",
    "merge": "merge device.parquet -d mine -o merged.parquet",
    "predict": f"predict model --reports {REPORTS} -o predictions.csv",
    "ledger": f"ledger {REPORTS} runs.parquet",
    "list": "list data",
    "inspect": f"inspect {REPORTS}",
    "audit": "audit mb -e 1 --dimensions 2 --samples 1000 --processes 1",
    "calibration": f"calibration -d {NAME} -e 1 -k 2 --seeds 2",
    "attack": f"attack -d {NAME} -m mb -e 1 --seeds 1 --attributes 2",
    "selection": f"selection -d {NAME} -e 5 --by chi-square --seeds 2 --random 2",
    "links": f"links -d {NAME} -e 1 --seeds 1 --rho 0.5",
    "labels": f"labels -d {NAME} -e 1 --seeds 1",
    "influence": f"influence -d {NAME} -e 8 --people 20",
    "code": "code",
    "docs": f"docs --check --without-audit --output {ROOT}/docs",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the lines need: a graph, reports, a model, the stages of a grid, and files of one's own."""
    place = tmp_path_factory.mktemp("quiet")
    store(place / "data")
    (place / "f.csv").write_text("node,x\na,0.1\nb,0.9\n", encoding="utf-8")
    (place / "e.csv").write_text("source,target\na,b\n", encoding="utf-8")
    for name in ("params.yaml", "small.yaml"):
        (place / name).write_text(yaml.safe_dump(GRID), encoding="utf-8")
    for folder in ("graphldp", "stages"):
        (place / folder).symlink_to(ROOT / folder)
    (place / "docs").mkdir()
    (place / "results").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for line in (
            *(f"{stage} --grid params.yaml -d {NAME}" for stage in ("perturb", "denoise", "train")),
            f"train -d {NAME} -e 1 {SMALL} --save-model model -o runs.parquet",
            "import mine --features f.csv --edges e.csv --low 0 --high 1",
            "perturb --input f.csv --low 0 --high 1 -e 1 -o device.parquet",
        ):
            assert app.main(shlex.split(f"{line} -q")) == 0, line
    return place


def test_every_command_has_a_line() -> None:
    assert set(LINES) == {name for names in app.COMMANDS.values() for name in names}


SLOW = {"results", "claims", "docs", "influence", "links", "audit"}
LONG = {"influence", "links"}  # once is enough


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in LINES])
def test_quiet_says_nothing_of_the_work_and_all_of_the_result(
    name: str, made: Path, ldp: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bar that prints a line for each step, so that a command that shows any would be heard.

    Of numbers it counts that they are there: some are seconds that it took.
    """
    monkeypatch.setattr(console, "_PLAIN_SECONDS", 0.0)
    told = {}
    for flag in ("-q",) if name in LONG else ("", "-q", "--quiet"):
        place = tmp_path / f"place{flag}"
        shutil.copytree(made, place, symlinks=True)
        monkeypatch.chdir(place)
        answer = ldp(*shlex.split(f"{LINES[name]} {flag}"))
        assert answer.code == 0, answer.err  # type: ignore[attr-defined]
        told[flag] = (re.sub(r"\d+(\.\d+)?", "0", answer.out), answer.err)  # type: ignore[attr-defined]
    result = told["-q"][0]
    assert result
    for flag, (out, err) in told.items():
        assert (out, err) == (result, err if flag == "" else "")


@pytest.mark.parametrize("name", LINES)
def test_quiet_leaves_errors(name: str, ldp: Callable[..., object]) -> None:
    answer = ldp(name, "--no-such-option", "--quiet")
    assert (answer.code, answer.out) == (2, "")  # type: ignore[attr-defined]
    assert "--no-such-option" in answer.line  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", LINES)
def test_quiet_stands_in_a_cluster_of_short_flags(name: str, ldp: Callable[..., object]) -> None:
    """`-qe 1` is `-q -e 1`, so that what is wrong is what would be without the cluster."""
    told = [ldp(name, *words, "--no-such-option").line for words in (["-q", "-x1"], ["-qx1"], ["-qqx1"])]  # type: ignore[attr-defined]
    assert len(set(told)) == 1
    assert "-x" in told[0]
    helped = [ldp(name, *words) for words in (["-h"], ["-qh"], ["-hq"])]
    assert {(one.code, one.out) for one in helped} == {(0, helped[0].out)}  # type: ignore[attr-defined]


def test_a_short_option_keeps_its_value_in_a_cluster(made: Path, ldp: Callable[..., object], tmp_path: Path) -> None:
    place = tmp_path / "place"
    shutil.copytree(made, place, symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        answers = [ldp("calibration", "-k", 2, "--seeds", 2, *words) for words in _clusters()]
    assert [(one.code, one.err) for one in answers] == [(0, "")] * len(answers)  # type: ignore[attr-defined]
    assert len({one.out for one in answers}) == 1  # type: ignore[attr-defined]


def _clusters() -> list[list[str]]:
    return [["-q", "-d", NAME, "-e", "1"], ["-d", NAME, "-qe", "1"], ["-qd", NAME, "-e1"], ["-d", NAME, "-qe1"]]


def test_what_other_libraries_say_meanwhile_is_no_result(
    ldp: Callable[..., object], command: Callable[..., None]
) -> None:
    def body() -> None:
        with console.progress("probe", 1):
            print("loading", file=sys.stderr)
        console.out.print("result")

    command(body)
    assert "loading" in ldp("probe").err  # type: ignore[attr-defined]
    quiet = ldp("probe", "-q")
    assert (quiet.out, quiet.err) == ("result\n", "")  # type: ignore[attr-defined]


def test_nothing_but_the_console_and_failures_write_on_standard_error() -> None:
    """A print of its own would not know of `--quiet`."""
    known = {"cli/console.py", "cli/failures.py", "cli/app.py", "stages/files/loaders.py"}
    found = set()
    for folder in ("cli", "stages", "graphldp"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                named = isinstance(node, ast.Attribute) and node.attr == "stderr" and isinstance(node.value, ast.Name)
                writes = named and node.value.id == "sys"  # type: ignore[attr-defined]
                asked = isinstance(node, ast.keyword) and node.arg == "err" and folder == "cli"
                if writes or asked or (isinstance(node, ast.Name) and node.id == "print"):
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == known
