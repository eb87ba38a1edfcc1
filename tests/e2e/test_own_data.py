"""A person's own graph, from her files to predictions: README's commands as they stand there, on tiny files."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from cell_factory import small_graph

from graphldp.cli import app, console
from graphldp.ledger import Ledger
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import graph_hash
from graphldp.stages.files.paths import graph_dir

ROOT = Path(__file__).resolve().parents[2]
SHORT = "seeds: 10\nsearch: {points: 2, seeds: 2, steps: [0, 2]}\ntrain: {epochs: 12, hidden: 4}\n"
NODES = 60
CLASSES = ("art", "law", "sea")


def tables() -> dict[str, pa.Table]:
    """Return the three files' tables: people and classes have names, and one in ten people has no class."""
    graph = small_graph(nodes=NODES, features=0.9, structure=0.9)
    people = np.array([f"person-{node:03d}" for node in range(NODES)])
    dense = graph.features.toarray().astype(np.float64)
    labels: list[str | None] = [None if node % 10 == 9 else CLASSES[graph.labels[node]] for node in range(NODES)]
    return {
        "features": pa.table({"node": people, **{f"word-{j}": dense[:, j] for j in range(dense.shape[1])}}),
        "edges": pa.table({"source": people[graph.edges[1]], "target": people[graph.edges[0]]}),
        "labels": pa.table({"node": people, "label": pa.array(labels)}),
    }


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with her files and short parameters."""
    for name, table in tables().items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    (tmp_path / "params.yaml").write_text(SHORT, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs one command line in her folder, in this process."""
    monkeypatch.chdir(here)

    def command(line: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = app.main(shlex.split(line))
        console.set_quiet(False)
        out, err = capsys.readouterr()
        return code, out, err

    return command


def done(answer: tuple[int, str, str]) -> str:
    """Return the output of a command that has to succeed."""
    code, out, err = answer
    assert code == 0, err
    return out


def blocks(heading: str) -> list[list[str]]:
    """Return the commands of each shell block below a heading of README.md."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}")[1].split("\n## ")[0]
    found = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    return [[line.split("#")[0].strip() for line in block.splitlines() if line.strip()] for block in found]


@pytest.mark.slow
def test_the_commands_of_the_readme_do_what_they_say(here: Path, run: Any) -> None:
    rehearsal, real = blocks("Your own data")
    assert [line.split()[1] for line in rehearsal] == ["import", "perturb", "denoise", "train", "predict"]
    assert [line.split()[1] for line in real] == ["perturb", "inspect", "denoise"]
    outs = {}
    for line in [*rehearsal, *real]:
        program, command = line.split(maxsplit=1)
        assert program == "ldp"
        outs[command.split()[0]] = done(run(command))
        assert outs[command.split()[0]]
    assert "operating system" in outs["inspect"]
    assert read_meta(Path("data/denoised/mine/lpgnn/eps=1.parquet"), "x")["random"]["reproducible"] is False
    table = read_table(here / "predictions.parquet", "x").to_pydict()
    assert table["id"] == [f"person-{node:03d}" for node in range(NODES)]
    assert set(table["label"]) <= set(CLASSES)


IMPORT = "ldp import mine --features features.{0} --edges edges.{0} --labels labels.{0} --low 0 --high 1"


def chain(run: Any, suffix: str = "parquet", perturb: str = "--dataset mine --seeds 10 --search-seeds 2") -> None:
    done(run(IMPORT.format(suffix).removeprefix("ldp ")))
    done(run(f"perturb {perturb} --epsilon 2 --mechanism pm --quiet"))
    done(run("denoise --dataset mine --mechanism pm --epsilon 2"))
    done(run("train --dataset mine --mechanism pm --epsilon 2 --save-model kept"))


@pytest.mark.slow
def test_csv_files_give_what_parquet_files_give(here: Path, run: Any) -> None:
    chain(run)
    runs = Path("data/runs/mine/lpgnn-pm/eps=2.parquet")
    first = read_table(runs, "x").to_pylist()
    for name, table in tables().items():
        pc.write_csv(table, here / f"{name}.csv")
    done(run(IMPORT.format("csv").removeprefix("ldp ") + " --force"))
    done(run("perturb --dataset mine --seeds 10 --search-seeds 2 --epsilon 2 --mechanism pm"))
    done(run("denoise --dataset mine --mechanism pm --epsilon 2"))
    done(run("train --dataset mine --mechanism pm --epsilon 2"))
    assert read_table(runs, "x").to_pylist() == first


def test_reports_of_her_file_are_those_of_her_graph(here: Path, run: Any) -> None:
    """What devices send does not depend on whether anybody has put the graph together yet."""
    chain(run)
    reports = Path("data/perturbed/mine/pm/eps=2.parquet")
    first = read_table(reports, "x")
    own = "--input features.parquet --low 0 --high 1 --name mine --seeds 10 --search-seeds 2"
    done(run(f"perturb {own} --epsilon 2 --mechanism pm --quiet --output own.parquet"))
    found = read_table(Path("own.parquet"), "x")
    assert found.drop_columns(["id"]).equals(first)
    assert found["id"].to_pylist()[:NODES] == [f"person-{node:03d}" for node in range(NODES)]
    done(run("denoise --dataset mine --mechanism pm --epsilon 2 --reports own.parquet"))


def test_sparse_features_go_from_devices_to_predictions(here: Path, run: Any) -> None:
    """Each person's triples are perturbed on a device of her own: all reports have the declared dimensions."""
    table = tables()["features"]
    words = [name for name in table.column_names if name != "node"]
    (here / "words.txt").write_text("\n".join(words), encoding="utf-8")
    lines = {person: [f"{person},,"] for person in table["node"].to_pylist()}
    for row in table.to_pylist():
        lines[row["node"]] += [f"{row['node']},{word},{row[word]}" for word in words if row[word]]
    declared = "--features-file words.txt --low 0 --high 1"
    for person in list(lines)[:3]:
        (here / "me.csv").write_text("\n".join(["node,feature,value", *lines[person]]))
        given = f"--input me.csv {declared} --secure --epsilon 2 --mechanism pm --quiet"
        done(run(f"perturb {given} --output {person}.parquet"))
        meta = read_meta(here / f"{person}.parquet", "x")
        assert (meta["dimensions"], meta["nodes"], meta["dataset"]) == (len(words), 1, "own")
    every = [line for rest in lines.values() for line in rest]
    (here / "all.csv").write_text("\n".join(["node,feature,value", *every]))
    done(run(f"import mine --features all.csv --edges edges.parquet --labels labels.parquet {declared}"))
    done(run(f"perturb --input all.csv {declared} --name mine --secure --epsilon 2 --mechanism pm"))
    done(run("denoise --dataset mine --mechanism pm --epsilon 2"))
    done(run("train --dataset mine --mechanism pm --epsilon 2 --save-model kept"))
    card = Path("kept/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "--features-file words.txt" in card
    done(run("predict kept --reports data/perturbed/mine/pm/eps=2.parquet --output classes.parquet"))


def test_one_secure_report_of_each_person_is_enough_to_learn_from(here: Path, run: Any) -> None:
    secure = "--input features.parquet --low 0 --high 1 --name mine --secure"
    chain(run, perturb=secure)
    meta = read_meta(Path("data/perturbed/mine/pm/eps=2.parquet"), "x")
    assert (meta["seeds"], meta["random"]["reproducible"]) == ([0], False)
    rows = read_table(Path("data/runs/mine/lpgnn-pm/eps=2.parquet"), "x").to_pylist()
    assert sum(row["role"] == "final" for row in rows) == 10
    out = done(run("predict kept --reports data/perturbed/mine/pm/eps=2.parquet --output classes.parquet --json"))
    found = json.loads(out)
    spent = Ledger.from_json(found["ledger"])
    assert (spent.total().epsilon, spent.text()) == (2.0, "total epsilon per user: features 2.0")


UNLABELLED = "import mine --features features.parquet --edges edges.parquet --low 0 --high 1"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (IMPORT.format("parquet").removeprefix("ldp "), "mine"),
        (UNLABELLED, "mine"),
        ("download synthetic --set nodes=90 --set seed=3 --name drawn", "drawn"),
    ],
    ids=["own", "own without labels", "drawn"],
)
def test_a_card_says_how_its_graph_is_made_again(make: str, name: str, run: Any) -> None:
    done(run(make))
    done(run(f"perturb --dataset {name} --epsilon 2 --seeds 10 --search-seeds 2"))
    done(run(f"denoise --dataset {name} --epsilon 2"))
    done(run(f"train --dataset {name} --epsilon 2 --task link-prediction --save-model kept"))
    (line,) = re.findall(
        r"^ldp (?:import|download) .*$", Path("kept/MODEL_CARD.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    done(run(f"{line.removeprefix('ldp ')} --data again"))
    assert graph_hash(graph_dir(Path("again"), name)) == graph_hash(graph_dir(Path("data"), name))


def test_a_card_does_not_claim_that_secure_reports_are_drawn_again(run: Any) -> None:
    chain(run, perturb="--input features.parquet --low 0 --high 1 --name mine --secure")
    card = Path("kept/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "are not drawn again" in card
    assert "ldp perturb" not in card.split("## How to make it again")[1]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["link-prediction", "regression"])
def test_without_labels_she_can_learn_what_needs_none(task: str, run: Any) -> None:
    done(run(UNLABELLED))
    table = done(run(f"run --dataset mine --epsilon 1 --task {task} --seeds 2"))
    assert all(name in table for name in ("majority", "structure", "lpgnn", "nonpriv"))


def test_without_labels_she_can_perturb_and_denoise_and_is_told_why_not_train(run: Any) -> None:
    done(run(UNLABELLED))
    done(run("perturb --dataset mine --epsilon 1 --seeds 10 --search-seeds 2"))
    done(run("denoise --dataset mine --epsilon 1 --steps 2 --materialize embedding.parquet"))
    assert read_table(Path("embedding.parquet"), "x").num_rows == NODES
    code, out, err = run("train --dataset mine --epsilon 1")
    assert (code, out) == (2, "")
    assert err == (
        "error: graph mine has 0 nodes with a label; to train, to validate and to test it needs 3. Link prediction and "
        "regression need none\n"
    )


def test_reports_of_other_people_do_not_fit_her_graph(here: Path, run: Any) -> None:
    chain(run)
    table = tables()["features"]
    pq.write_table(table.take(list(range(NODES - 1, -1, -1))), here / "turned.parquet")
    own = "--input turned.parquet --low 0 --high 1 --name mine --seeds 10 --search-seeds 2 --quiet"
    done(run(f"perturb {own} --epsilon 2 --mechanism pm --output turned-reports.parquet"))
    code, _, err = run("predict kept --reports turned-reports.parquet --output classes.parquet")
    assert code == 2
    assert err.startswith("error: turned-reports.parquet holds reports of other nodes than the graph mine has, or")
    assert err.count("\n") == 1
    assert not (here / "classes.parquet").exists()


def test_values_outside_the_declared_range_stop_the_import(here: Path, run: Any) -> None:
    line = "import mine --features features.parquet --edges edges.parquet --low 0 --high 0.5"
    code, _, err = run(line)
    assert code == 2
    assert err.startswith("error: features.parquet: features: row ")
    assert err.count("\n") == 1
    assert not (here / "data").exists()


def test_features_that_are_all_zero_train_in_memory_and_from_files(here: Path, run: Any) -> None:
    table = tables()["features"]
    words = [name for name in table.column_names if name != "node"]
    zeros = pa.table({"node": table["node"], **{word: np.zeros(NODES) for word in words}})
    pq.write_table(zeros, here / "features.parquet")
    done(run(IMPORT.format("parquet").removeprefix("ldp ")))
    table = done(run("run --dataset mine --epsilon 1 --seeds 2 --search-points 1 --search-seeds 1 --epochs 4 --json"))
    assert {row["name"] for row in json.loads(table)} >= {"structure", "lpgnn", "nonpriv"}
    for mechanism, epsilon in (("identity", "inf"), ("mb", "1")):
        method = "nonpriv" if mechanism == "identity" else "lpgnn"
        cell = f"--dataset mine --mechanism {mechanism} --epsilon {epsilon}"
        done(run(f"perturb {cell} --seeds 2 --search-seeds 1 --quiet"))
        done(run(f"denoise {cell} --method {method} --steps 2"))
        if method == "lpgnn":
            done(run(f"train {cell} --seeds 2 --search-points 1 --search-seeds 1 --epochs 4"))
