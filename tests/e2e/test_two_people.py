"""A real collection as two parties do it: devices that have the command line alone, and a server without features.

The commands are those of docs/collect.md, as they stand there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cell_factory import files, small_graph

from graphldp.cli import app, console
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir

ROOT = Path(__file__).resolve().parents[2]
NODES = 40
PEOPLE = [f"person-{node:02d}" for node in range(NODES)]
# What the extra `cli` does not bring: the import system says that none of it is there.
DEVICE = """
import sys
MISSING = {"torch", "torch_geometric", "sklearn", "threadpoolctl", "safetensors", "dvc", "matplotlib", "yaml", "numba"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from graphldp.cli import app
sys.exit(app.main(sys.argv[1:]))
"""


def steps(heading: str) -> list[str]:
    """Return the commands below a heading of docs/collect.md."""
    text = (ROOT / "docs" / "collect.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}")[1].split("\n## ")[0]
    found = "".join(re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)).replace("\\\n", " ")
    return [line.split("#")[0].strip() for line in found.splitlines() if line.strip()]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server's folder: edges, labels and the declared words, and no features."""
    graph = small_graph(nodes=NODES, features=0.9, structure=0.9)
    names = np.array(PEOPLE)
    pq.write_table(
        pa.table({"source": names[graph.edges[0]], "target": names[graph.edges[1]]}), tmp_path / "edges.parquet"
    )
    pq.write_table(pa.table({"node": names, "label": graph.labels}), tmp_path / "labels.parquet")
    pq.write_table(pa.table({"node": names}), tmp_path / "people.parquet")
    words = [f"word-{j}" for j in range(graph.dimensions)]
    (tmp_path / "words.txt").write_text("\n".join(words), encoding="utf-8")
    dense = graph.features.toarray().astype(float)
    for node, name in enumerate(PEOPLE):
        (tmp_path / "devices" / name).mkdir(parents=True)
        own = pa.table({"node": [name], **{word: [dense[node, j]] for j, word in enumerate(words)}})
        pq.write_table(own, tmp_path / "devices" / name / "me.parquet")
        (tmp_path / "devices" / name / "words.txt").write_text("\n".join(words), encoding="utf-8")
    short = "seeds: 3\nsearch: {points: 1, seeds: 1, steps: [2]}\ntrain: {epochs: 6, hidden: 4}\n"
    (tmp_path / "params.yaml").write_text(short, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def line_of(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Run one command line in this process and return what it says."""
    capsys.readouterr()
    found = app.main(list(arguments))
    console.set_quiet(False)
    out, err = capsys.readouterr()
    assert found == code, err
    return out if code == 0 else err


def collect(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every device but the first one perturb in this process; the first as a machine of its own."""
    (command,) = steps("On each device")
    program, *words = shlex.split(command)
    assert program == "ldp"
    first = here / "devices" / PEOPLE[0]
    answer = subprocess.run(
        [sys.executable, "-c", DEVICE, *words], cwd=first, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    for name in PEOPLE[1:]:
        monkeypatch.chdir(here / "devices" / name)
        line_of(capsys, *words)
    monkeypatch.chdir(here)
    (here / "received").mkdir()
    for name in PEOPLE[::-1]:  # in whichever order they come in
        (here / "devices" / name / "report.parquet").rename(here / "received" / f"{name}.parquet")


@pytest.mark.slow
def test_from_secure_reports_to_predictions(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(here, capsys, monkeypatch)
    commands = [shlex.split(line) for line in steps("On the server")]
    assert [words[1] for words in commands] == ["import", "merge", "denoise", "train", "predict"]
    for _, *words in commands:
        given = [str(path) for word in words for path in (sorted(here.glob(word)) if "*" in word else [word])]
        line_of(capsys, *given)
    merged = read_table(Path("data/perturbed/mine/mb/eps=1.parquet"), "x")
    assert merged["id"].to_pylist() == list(read_graph(graph_dir(Path("data"), "mine"), features=False).node_ids or ())
    meta = read_meta(Path("data/perturbed/mine/mb/eps=1.parquet"), "x")
    assert (meta["nodes"], meta["merged"], meta["random"]["reproducible"]) == (NODES, NODES, False)
    found = read_table(Path("predictions.parquet"), "x")
    assert sorted(found["id"].to_pylist()) == PEOPLE
    spent = read_meta(Path("predictions.parquet"), "x")["ledger"]
    assert [(row["epsilon"], row["draws"]) for row in spent] == [(1.0, ["0"])]  # one report of each person, once


@pytest.fixture
def reported(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Path]:
    """Return a function that perturbs some people's features for real, in one go."""
    tables = [pq.read_table(here / "devices" / name / "me.parquet") for name in PEOPLE]
    whole = pa.concat_tables(tables)
    words = shlex.split("--low 0 --high 1 --epsilon 1 --secure --features-file words.txt")

    def report(name: str, rows: slice = slice(None), *further: str) -> Path:
        pq.write_table(whole.take(list(range(NODES))[rows]), here / f"{name}-features.parquet")
        line_of(
            capsys, "perturb", "--input", f"{name}-features.parquet", *words, *further, "--output", f"{name}.parquet"
        )
        return here / f"{name}.parquet"

    return report


IMPORT = [
    "import",
    "mine",
    "--edges",
    "edges.parquet",
    "--labels",
    "labels.parquet",
    "--features-file",
    "words.txt",
    "--low",
    "0",
    "--high",
    "1",
]

DENOISE = "denoise --dataset mine --epsilon 1 --reports reports.parquet"


def test_nothing_advises_to_draw_real_reports_again(
    here: Path, reported: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    line_of(capsys, *IMPORT)
    reported("reports", slice(None, None, -1))
    before = files(here)
    for words in (
        "denoise --dataset mine --epsilon 1 --reports reports.parquet",
        "denoise --dataset mine --epsilon 2 --reports reports.parquet",
        "denoise --dataset mine --epsilon 1 --mechanism pm --reports reports.parquet",
    ):
        said = line_of(capsys, *words.split(), code=2)
        assert "ldp perturb" not in said
        assert said.count("\n") == 1
    assert files(here) == before
    said = line_of(capsys, *shlex.split("denoise --dataset mine --epsilon 1 --reports reports.parquet"), code=2)
    (remedy,) = re.findall("`ldp (.*?)`", said)
    line_of(capsys, *remedy.replace("FILE", "ordered.parquet").split())  # as it stands there, it works
    line_of(capsys, *shlex.split("denoise --dataset mine --epsilon 1 --reports ordered.parquet"))


def test_reports_of_other_features_or_range_are_refused_by_hash(
    here: Path, reported: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    reported("reports", slice(None), "--name", "mine")
    turned = (here / "words.txt").read_text(encoding="utf-8").splitlines()[::-1]
    (here / "turned.txt").write_text("\n".join(turned), encoding="utf-8")
    for option, value, said in (
        ("--high", "2", "features in 0..1, and the graph mine has"),
        ("--features-file", "turned.txt", "of other features, or of the same in another order"),
    ):
        changed = [*IMPORT]
        changed[changed.index(option) + 1] = value
        line_of(capsys, *changed, "--nodes", "people.parquet", "--force")
        error = line_of(capsys, *shlex.split("denoise --dataset mine --epsilon 1 --reports reports.parquet"), code=2)
        assert said in error
        assert "ldp perturb" not in error
    words = [
        "perturb",
        "--input",
        "reports-features.parquet",
        "--low",
        "0",
        "--high",
        "1",
        "--epsilon",
        "1",
        "--secure",
        "--name",
        "mine",
    ]
    early = line_of(capsys, *words, "--output", "second.parquet", code=2)
    assert early.startswith("error: --name mine: the reports would be of other features")
    assert not (here / "second.parquet").exists()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([slice(0, 30), slice(29, 40)], "has a report in one.parquet already, and has spent twice; keep one"),
        ([slice(0, 39)], "1 of the 40 nodes of mine has no report, the first is 'person-39'; add theirs"),
    ],
)
def test_a_merge_wants_one_report_of_everybody(
    parts: list[slice], said: str, here: Path, reported: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    line_of(capsys, *IMPORT, "--nodes", "people.parquet")
    names = [reported(name, part).name for name, part in zip(("one", "two"), parts, strict=False)]
    error = line_of(capsys, "merge", *names, "--dataset", "mine", code=2)
    assert said in error
    assert not (here / "data" / "perturbed").exists()


def test_a_graph_without_features_cannot_be_perturbed_or_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line_of(capsys, *IMPORT)
    for words in ("perturb --dataset mine --epsilon 1", "run --dataset mine --epsilon 1"):
        said = line_of(capsys, *words.split(), code=2)
        assert "was imported without features, which are on people's devices" in said
    line_of(
        capsys,
        *[
            "perturb",
            "--dataset",
            "mine",
            "--mechanism",
            "null",
            "--epsilon",
            "0",
            "--seeds",
            "3",
            "--search-seeds",
            "1",
        ],
    )


@pytest.mark.parametrize(
    "words",
    [
        "denoise --dataset drawn --epsilon 1 --output real.parquet",
        "train --dataset drawn --method majority --output real.parquet",
        "perturb --dataset drawn --epsilon 1 --output real.parquet",
        "merge real.parquet --dataset mine --output real.parquet",
    ],
)
def test_no_command_replaces_real_reports(
    words: str, here: Path, reported: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    line_of(capsys, *IMPORT, "--nodes", "people.parquet")
    line_of(capsys, *shlex.split("download synthetic --set nodes=90 --name drawn"))
    line_of(capsys, *["perturb", "--dataset", "drawn", "--epsilon", "1"])
    real = reported("real")
    before = real.read_bytes()
    said = line_of(capsys, *words.split(), code=2)
    assert "name another --output" in said
    assert real.read_bytes() == before
