"""The pipeline under DVC, on a grid of its own: what runs, what does not, and that nothing moves without a reason."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ldp_process import LIMIT, environment

from graphldp.stages.code import KINDS
from graphldp.stages.files.graphs import graph_hash
from graphldp.stages.files.paths import graph_dir

ROOT = Path(__file__).resolve().parents[2]
GRID: dict[str, Any] = {
    "seed": 0,
    "datasets": ["synthetic"],
    "epsilons": [1],
    "seeds": 2,
    "rows": [
        {"method": "lpgnn"},
        {
            "name": "togl",
            "method": "togl-fda",
            "set": {"method.first": 0.3, "method.score_by": "mi", "method.reuse": True},
        },
        {
            "name": "votes",
            "method": "votes",
            "set": {"method.teachers": 0.4, "method.narrowed": 2, "method.features": 20},
        },
    ],
    "search": {
        "points": 1,
        "seeds": 1,
        "learning_rate": [0.01],
        "weight_decay": [0.001],
        "dropout": [0.25],
        "steps": [2],
    },
    "train": {"hidden": 4, "epochs": 4, "patience": 4, "train_fraction": 0.5, "validation_fraction": 0.25},
    "evaluate": {"confidence": 0.95},
}
CELL = ("perturb@synthetic", "denoise@synthetic", "train@synthetic")
EVERYTHING = {"code", "download@synthetic", *CELL, "evaluate"}


# declared -------------------------------------------------------------------------------------------------------------


def declared() -> dict[str, dict[str, Any]]:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return {name: stage.get("do", stage) for name, stage in stages.items()}


@pytest.mark.parametrize("name", [name for name in declared() if name != "code"])
def test_a_stage_depends_on_the_modules_that_it_runs(name: str) -> None:
    """A change of the learning protocol has to train again: dvc sees nothing but what is declared."""
    kind = str(declared()[name]["cmd"]).split()[1]
    assert f"data/code/{kind}.json" in declared()[name]["deps"]


def test_the_modules_of_every_kind_of_stage_are_hashed() -> None:
    stage = declared()["code"]
    assert stage["outs"] == [f"data/code/{kind}.json" for kind in KINDS]
    assert stage["deps"] == ["graphldp", "stages"]


def test_what_belongs_to_a_machine_is_no_dependency() -> None:
    """Wall times stand beside the runs, and data/runs as a whole is what evaluate depends on."""
    ignored = (ROOT / ".dvcignore").read_text(encoding="utf-8").splitlines()
    assert {"*.time.json", "*.partial", "__pycache__"} <= set(ignored)


@pytest.mark.parametrize("name", list(declared()))
def test_a_command_reads_what_its_stage_depends_on(name: str) -> None:
    """Every parameter and every file that a command line names is declared, or is the stage's own output."""
    stage = declared()[name]
    named = set(re.findall(r"data/\S+|params.yaml", stage["cmd"]))
    outs = [out for out in stage.get("outs", []) if isinstance(out, str)]
    assert named <= {*stage["deps"], *outs, *(str(Path(out).parent) for out in outs)}


def tables() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "results" / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return found


def test_every_experiment_has_a_stage() -> None:
    assert tables()["table"]["foreach"] == sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml"))


# run ------------------------------------------------------------------------------------------------------------------


class Project:
    """A git repository with the pipeline, its code and a small grid."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept = folder.with_name(f"{folder.name}-kept")

    def run(self, *command: str, code: int = 0) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", COLUMNS="200"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def repro(self, *options: str) -> list[str]:
        """Run `dvc repro` and return the stages that it ran, in their order."""
        return re.findall(r"^Running stage '(.+)':$", self.run("dvc", "repro", *options), re.MULTILINE)

    def commit(self) -> None:
        self.run("git", "add", "--all")
        self.run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "x")

    def set(self, **changes: Any) -> None:
        (self.folder / "params.yaml").write_text(yaml.safe_dump({**GRID, **changes}), encoding="utf-8")

    def outputs(self) -> dict[str, dict[str, str]]:
        """Return the hash of every output and dependency of every stage, as dvc.lock has them."""
        stages = yaml.safe_load((self.folder / "dvc.lock").read_text(encoding="utf-8"))["stages"]
        return {
            name: {part["path"]: part["md5"] for kind in ("deps", "outs") for part in stage.get(kind, [])}
            for name, stage in stages.items()
        }

    def made(self) -> dict[str, tuple[int, int]]:
        """Return when each artifact was written, by its name below data: a file that is made again is another one."""
        found = sorted((self.folder / "data").glob("*/synthetic/*/*.parquet"))
        return {str(path.relative_to(self.folder)): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    def keep(self) -> None:
        """Keep what is there beside the project, for `restore`."""
        shutil.copytree(self.folder, self._kept, symlinks=True)

    def restore(self) -> None:
        """Go back to what was kept."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder, symlinks=True)

    def forget(self) -> None:
        """Remove everything that a fresh clone does not have."""
        for folder in ("data", ".dvc/cache", ".dvc/tmp"):
            shutil.rmtree(self.folder / folder)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The grid, run once and committed."""
    one = copy_of_the_project(tmp_path_factory.mktemp("project"))
    one.set()
    assert set(one.repro()) == EVERYTHING
    one.commit()
    one.keep()
    return one


def copy_of_the_project(folder: Path) -> Project:
    """Return a repository in which nothing has been run yet."""
    for name in ("graphldp", "stages", "papers"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".dvc").mkdir()
    for name in ("dvc.yaml", ".dvcignore", ".gitignore", ".dvc/config", ".dvc/.gitignore"):
        shutil.copy(ROOT / name, folder / name)
    one = Project(folder)
    one.run("git", "init", "--quiet")
    return one


@pytest.mark.slow
def test_all_of_it_runs_once_and_no_more(project: Project) -> None:
    results = project.folder / "results"
    for name in ("tables/main.csv", "tables/main.md", "tables/main.tex", "metrics.json", "report.html"):
        assert (results / name).stat().st_size > 0
    said = project.run("dvc", "repro")
    assert "Running stage" not in said
    assert "Data and pipelines are up to date." in said
    assert project.run("git", "status", "--porcelain") == ""


@pytest.mark.slow
def test_tables_page_and_figures_are_the_same_again(project: Project) -> None:
    before = project.outputs()
    assert project.repro("--force", "--single-item", "evaluate") == ["evaluate"]
    assert project.outputs() == before
    assert project.run("git", "status", "--porcelain") == ""


@pytest.mark.slow
def test_metrics_and_plots_are_declared(project: Project) -> None:
    shown = json.loads(project.run("dvc", "metrics", "show", "--json"))
    metrics = shown[""]["data"]["results/metrics.json"]["data"]["synthetic"]
    assert set(metrics) == {"majority", "structure", "nonpriv", "lpgnn", "togl", "votes"}
    assert 0 <= metrics["lpgnn"]["1"]["accuracy"] <= 100
    plots = json.loads(project.run("dvc", "plots", "show", "--json"))
    (content,) = plots["data"]["results/plots/accuracy.csv"]
    rows = content["content"]["data"]["values"]
    assert {row["row"] for row in rows} == {"majority", "structure", "nonpriv", "lpgnn", "togl", "votes"}


@pytest.mark.slow
def test_tables_are_checked_against_the_committed_ones(project: Project) -> None:
    said = "the same as at HEAD, to the byte; this code makes them"
    assert said in project.run("ldp", "tables", "--check")
    path = project.folder / "results" / "tables" / "main.csv"
    text = path.read_text(encoding="utf-8")
    try:
        header, *lines = text.splitlines()
        place = header.split(",").index("accuracy")
        cells = lines[1].split(",")
        cells[place] = "9999.99"  # with two runs an interval is wide
        path.write_text("\n".join([header, lines[0], ",".join(cells), *lines[2:]]) + "\n", encoding="utf-8")
        said = project.run("ldp", "tables", "--check", code=1)
        assert "moved: main: synthetic structure at epsilon 0, accuracy" in said
        assert "-> 9999.99" in said
    finally:
        path.write_text(text, encoding="utf-8")
    assert project.run("git", "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_pipeline_that_is_stopped_leaves_nothing_half_written_and_goes_on(project: Project) -> None:
    before = project.made()
    project.set(train={**GRID["train"], "epochs": 300, "patience": 300})
    try:
        with subprocess.Popen(
            ("dvc", "repro"),
            cwd=project.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as running:
            end = time.monotonic() + LIMIT
            while project.made() == before:
                assert running.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
            os.killpg(running.pid, signal.SIGINT)  # as a terminal's Ctrl-C does
            said, _ = running.communicate(timeout=LIMIT)
        assert running.returncode != 0
        assert "interrupted: ldp train stopped; nothing half-written" in said
        assert "Traceback" not in said
        assert not list((project.folder / "data").rglob("*.partial"))
        made = {name: when for name, when in project.made().items() if before.get(name) != when}
        assert made
        assert project.repro() == ["train@synthetic", "evaluate"]
        after = project.made()
        assert {name: after[name] for name in made} == made
        assert set(after) == set(before)
    finally:
        project.restore()


@pytest.mark.slow
def test_one_more_budget_makes_its_cells_alone_and_another_confidence_none(project: Project) -> None:
    """Stages look again where the file has changed, and find all that they would make."""
    before, made = project.outputs(), project.made()
    project.set(epsilons=[1, 3], evaluate={"confidence": 0.9})
    try:
        assert project.repro() == [*CELL, "evaluate"]
        after = project.made()
        assert {name: after[name] for name in made} == made
        new = {Path(name).name.removesuffix(".parquet") for name in set(after) - set(made)}
        assert new == {"eps=3"}
        assert project.outputs()["download@synthetic"] == before["download@synthetic"]
        moved = json.loads(project.run("dvc", "metrics", "diff", "--json"))["results/metrics.json"]
        assert set(moved) == {
            f"synthetic.{row}.3.{what}" for row in ("lpgnn", "togl", "votes") for what in ("accuracy", "gain")
        }
        difference = json.loads(project.run("dvc", "params", "diff", "--json"))
        assert difference == {
            "params.yaml": {
                "epsilons": {"old": "[1]", "new": "[1, 3]"},
                "evaluate.confidence": {"old": 0.95, "new": 0.9, "diff": pytest.approx(-0.05)},
            }
        }
    finally:
        project.restore()


@pytest.mark.slow
def test_a_stage_that_fails_says_so_and_leaves_the_rest_alone(project: Project) -> None:
    before = project.outputs()
    project.set(train={**GRID["train"], "epochs": 0})
    try:
        said = project.run("dvc", "repro", code=255)
        assert "error: params.yaml: train.epochs must be at least 1, got 0" in said
        assert "Traceback" not in said
        assert project.outputs() == before
    finally:
        project.restore()


@pytest.mark.slow
def test_recomputed_from_nothing_every_byte_is_the_same(project: Project) -> None:
    """A fresh clone computes what was committed, so that nothing is left to evaluate."""
    before = project.outputs()
    project.forget()
    assert set(project.repro()) == EVERYTHING - {"evaluate"}
    assert project.outputs() == before
    assert project.run("git", "status", "--porcelain") == ""


OWN_CELLS = ["denoise@mine", "denoise@drawn"]
IMPORT = ("ldp", "import", "mine", "--features", "f.csv", "--edges", "e.csv", "--low", "0", "--high", "1")


def features(folder: Path, *, turned: bool = False) -> None:
    rows = [f"person-{node},{int(node % 2 == turned)},1" for node in range(12)]
    (folder / "f.csv").write_text("\n".join(["node,x,z", *rows]) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_own_graphs_run_in_the_pipeline_and_are_never_lost(tmp_path: Path) -> None:
    """One that was imported, and one that was drawn with options of its own."""
    one = copy_of_the_project(tmp_path)
    features(tmp_path)
    (tmp_path / "e.csv").write_text("source,target\nperson-0,person-1\nperson-2,person-3\n", encoding="utf-8")
    one.run(*IMPORT)
    one.run("ldp", "download", "synthetic", "--set", "nodes=90", "--set", "seed=3", "--name", "drawn")
    graphs = {name: graph_dir(tmp_path / "data", name) for name in ("mine", "drawn")}
    made = {name: graph_hash(folder) for name, folder in graphs.items()}
    one.set(datasets=["mine", "drawn"], rows=GRID["rows"][:1])
    cells = {f"{stage}@{name}" for name in graphs for stage in ("download", "perturb", "denoise")}
    ran = one.repro(*OWN_CELLS)
    assert {name for name in ran if "@" in name} == cells
    assert {name: graph_hash(folder) for name, folder in graphs.items()} == made
    assert one.repro(*OWN_CELLS) == []

    # Other files under the same name are other people: they stay, and what was made of the former is made again.
    features(tmp_path, turned=True)
    one.run(*IMPORT, "--force")
    turned = graph_hash(graphs["mine"])
    assert turned != made["mine"]
    assert one.repro(*OWN_CELLS) == ["download@mine", "perturb@mine", "denoise@mine"]
    assert graph_hash(graphs["mine"]) == turned

    # Neither without the folder nor without the files is it lost; without both it is in DVC's cache, and that is said.
    shutil.rmtree(graphs["mine"])
    assert one.repro("download@mine") == ["download@mine"]
    assert graph_hash(graphs["mine"]) == turned
    (tmp_path / "f.csv").unlink()
    shutil.rmtree(graphs["mine"])
    (remedy,) = re.findall("`(dvc checkout .+)`", one.run("ldp", "download", "mine", code=2))
    one.run(*remedy.split())
    assert graph_hash(graphs["mine"]) == turned
    assert one.repro(*OWN_CELLS) == []


@pytest.mark.slow
def test_another_committed_table_is_made_where_it_is_asked_for_and_left_alone_else(project: Project) -> None:
    one = project.folder
    (one / "experiments").mkdir()
    grid = {key: value for key, value in GRID.items() if key != "seed"} | {"title": "Small", "rows": GRID["rows"][:1]}
    (one / "experiments" / "small.yaml").write_text(yaml.safe_dump(grid), encoding="utf-8")
    stages = tables()
    stages["table"]["foreach"] = ["small"]
    (one / "results" / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}), encoding="utf-8")
    try:
        assert project.repro() == []
        target = "results/dvc.yaml:table@small"
        assert project.repro(target) == [target]
        first = (one / "results/small/tables/main.csv").read_bytes()
        assert b"lpgnn" in first
        assert project.repro(target) == []
        (one / "experiments" / "small.yaml").write_text(yaml.safe_dump({**grid, "epsilons": [2]}), encoding="utf-8")
        assert project.repro(target) == [target]
        assert (one / "results/small/tables/main.csv").read_bytes() != first
    finally:
        project.restore()
