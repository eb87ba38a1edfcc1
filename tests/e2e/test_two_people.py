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
from graphldp.experiment.server_view import as_links
from graphldp.graph import Graph
from graphldp.ledger import Ledger
from graphldp.stages.files.answers import AnswersFile
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


def collect(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    heading: str = "On each device",
) -> None:
    """Let every device but the first one perturb in this process; the first as a machine of its own."""
    (command,) = steps(heading)
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
def beside(here: Path) -> Graph:
    """What devices have of links and labels, and what is declared of both; the graph is nobody's."""
    graph = small_graph(nodes=NODES, features=0.9, structure=0.9)
    (here / "classes.txt").write_text("\n".join(f"class-{k}" for k in range(graph.classes)), encoding="utf-8")
    for node, name in enumerate(PEOPLE):
        device = here / "devices" / name
        mine = [(PEOPLE[one], PEOPLE[two]) for one, two in graph.edges.T if node in (one, two)]
        rows = [f"{one},{two}" for one, two in mine]
        (device / "friends.csv").write_text("\n".join(["source,target", *rows]) + "\n", encoding="utf-8")
        (device / "label.csv").write_text(f"node,label\n{name},class-{graph.labels[node]}\n", encoding="utf-8")
        for declared in ("people.parquet", "classes.txt"):
            (device / declared).write_bytes((here / declared).read_bytes())
    for known in ("edges.parquet", "labels.parquet"):
        (here / known).unlink()
    return graph


FURTHER = "--labels krr --epsilon-labels 2 --links blink --epsilon-links 8"


@pytest.mark.slow
def test_links_and_labels_come_from_people_alone(
    here: Path, beside: Graph, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(here, capsys, monkeypatch, "Links and labels on each device")
    commands = [shlex.split(line) for line in steps("Links and labels on the server")]
    assert [words[1] for words in commands] == ["import", "merge", "denoise", "train"]
    for _, *words in commands:
        given = [str(path) for word in words for path in (sorted(here.glob(word)) if "*" in word else [word])]
        said = line_of(capsys, *given)
    assert "test accuracy" in said
    name = "epsilon_labels=2,epsilon_links=8,eps=1.parquet"
    merged = AnswersFile(Path("data/perturbed/mine/mb") / name, "x")
    spent = {one.what: one for one in Ledger.from_json(merged.meta["ledger"]).spends}
    assert {what: (one.per, one.epsilon) for what, one in spent.items()} == {
        "features": ("user", 1.0), "labels": ("user", 2.0), "links": ("edge", pytest.approx(8.8)),
    }  # fmt: skip
    labels, links = merged.further_questions(5)  # the one answer serves every seed
    order = read_graph(graph_dir(Path("data"), "mine"), features=False).node_ids
    assert order == tuple(PEOPLE) == merged.ids
    sent = np.asarray(labels.answers.value)[:, 0]
    assert (sent == beside.labels).mean() > 0.5  # a chance of 0.79 each, of three classes
    told = as_links(links.answers)
    reported = {(int(told.owners[row]), int(one)) for row, one in zip(told.rows(), told.indices, strict=True)}
    true = {(max(pair), min(pair)) for pair in beside.edges.T.tolist()}
    assert len(reported & true) > 0.95 * len(true)
    assert np.corrcoef(told.degree, np.bincount(beside.edges.ravel(), minlength=NODES))[0, 1] > 0.5
    # The server makes another graph of the same answers; nobody is asked again.
    for command in ("denoise", "train"):
        line_of(capsys, command, *shlex.split(f"--dataset mine --epsilon 1 {FURTHER} --link-option estimator=hard"))
    error = line_of(capsys, *shlex.split(f"train --dataset mine --epsilon 1 {FURTHER}"), code=2)
    assert "make it again with `ldp denoise`" in error
    # Nobody is asked for what is not here, and nothing is taken for public.
    for words, why in (
        (
            f"perturb --dataset mine --mechanism null --epsilon 0 --output x.parquet {FURTHER}",
            "are on people's devices",
        ),
        ("perturb --dataset mine --mechanism null --epsilon 0", "was imported without links"),
        (f"perturb --dataset mine --mechanism null --epsilon 0 --output data/perturbed/mine/mb/{name}", "real reports"),
    ):
        assert why in line_of(capsys, *shlex.split(words), code=2)


@pytest.fixture
def told(here: Path, beside: Graph, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that lets some people report everything at once, and what the command says."""
    tables = [pq.read_table(here / "devices" / name / "me.parquet") for name in PEOPLE]
    rows = ["source,target", *(f"{PEOPLE[one]},{PEOPLE[two]}" for one, two in beside.edges.T)]
    (here / "friends.csv").write_text("\n".join(rows), encoding="utf-8")
    labels = ["node,label", *(f"{name},class-{beside.labels[node]}" for node, name in enumerate(PEOPLE))]
    (here / "label.csv").write_text("\n".join(labels), encoding="utf-8")
    declared = "--links-file friends.csv --people people.parquet --labels-file label.csv --classes-file classes.txt"

    def report(name: str, people: slice = slice(None), code: int = 0, words: str = f"{FURTHER} {declared}") -> str:
        whole = pa.concat_tables([tables[node] for node in range(NODES)[people]])
        pq.write_table(whole, here / f"{name}-me.parquet")
        own = f"perturb --input {name}-me.parquet --features-file words.txt --low 0 --high 1 --epsilon 1 --secure"
        capsys.readouterr()
        assert app.main(shlex.split(f"{own} {words} --output {name}.parquet")) == code
        console.set_quiet(False)
        return "".join(capsys.readouterr())

    return report


def test_who_stays_away_is_left_out_of_others_lists(
    here: Path, told: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    told("one", slice(0, 17))
    told("two", slice(18, NODES))  # person 17 does not report
    rest = np.array([name for node, name in enumerate(PEOPLE) if node != 17])
    pq.write_table(pa.table({"node": rest}), here / "rest.parquet")
    line_of(
        capsys,
        *shlex.split(
            "import mine --nodes rest.parquet --features-file words.txt --classes-file classes.txt --low 0 --high 1"
        ),
    )
    merge = shlex.split("merge two.parquet one.parquet --dataset mine")
    assert "give those that were declared with --people" in line_of(capsys, *merge, code=2)
    line_of(capsys, *merge, "--people", "people.parquet")
    path = Path("data/perturbed/mine/mb/epsilon_labels=2,epsilon_links=8,eps=1.parquet")
    links = as_links(AnswersFile(path, "x").further_questions(0)[1].answers)
    before = [as_file(here / f"{name}.parquet") for name in ("one", "two")]
    number = {name: node for node, name in enumerate(rest)}
    expected = {
        (number[PEOPLE[owner]], number[PEOPLE[other]])
        for owner, other in set.union(*before)
        if 17 not in (owner, other)
    }
    assert {
        (int(links.owners[row]), int(one)) for row, one in zip(links.rows(), links.indices, strict=True)
    } == expected
    line_of(capsys, *shlex.split(f"denoise --dataset mine --epsilon 1 {FURTHER}"))


def as_file(path: Path) -> set[tuple[int, int]]:
    """Return whom each person in a device's file has named, by their declared numbers."""
    file = AnswersFile(path, "x")
    one = next(asked for asked in file.further_questions(0) if asked.name == "links")
    index = np.asarray(one.answers.index)
    return {
        (PEOPLE.index((file.ids or ())[person]), int(other))
        for person, row in zip(one.people, index, strict=True)
        for other in row[row >= 0]
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("friends.csv", "person-00,person-00"), "links left out: 1 of a person with herself"),
        (("friends.csv", "person-00,stranger"), "links left out: 1 with somebody who does not take part"),
        (
            ("label.csv", "person-00,class-0"),
            "error: label.csv: somebody has two labels; every person needs at most one",
        ),
    ],
)
def test_odd_rows_are_left_out_and_said_on_the_own_screen(
    change: tuple[str, str], said: str, here: Path, told: Callable[..., str]
) -> None:
    file = here / change[0]
    file.write_text(f"{file.read_text(encoding='utf-8')}\n{change[1]}\n", encoding="utf-8")
    assert said in told("one", code=2 if said.startswith("error") else 0)
    assert (here / "one.parquet").exists() == (not said.startswith("error"))


def test_rows_about_nobody_who_reports_are_named(told: Callable[..., str], beside: Graph) -> None:
    others = int((beside.edges >= 17).all(axis=0).sum())
    assert others > 1
    assert f"links left out: {others} between people who do not report here" in told("one", slice(0, 17))


def test_links_in_both_directions_count_once(here: Path, told: Callable[..., str], beside: Graph) -> None:
    file = here / "friends.csv"
    one, two = beside.edges[:, 0]
    file.write_text(f"{file.read_text(encoding='utf-8')}\n{PEOPLE[two]},{PEOPLE[one]}\n", encoding="utf-8")
    assert "links left out: 1 that stood there already, in either order" in told("one")


DECLARED = "--links-file friends.csv --people people.parquet"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"--links rr {DECLARED}", "--links rr needs --epsilon-links"),
        (f"{DECLARED}", "--links-file goes with --links and --epsilon-links"),
        ("--links rr --epsilon-links 4 --links-file friends.csv", "--links needs --people"),
        ("--labels krr --epsilon-labels 4 --classes-file classes.txt", "--labels needs --labels-file"),
        (f"--links rr --epsilon-links 4 --link-option report=upper {DECLARED}", "report must be one of lower, both"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_sent(
    words: str, said: str, here: Path, told: Callable[..., str]
) -> None:
    found = told("one", code=2, words=words)
    assert said in found
    assert found.count("\n") == 1
    assert not (here / "one.parquet").exists()


def test_two_collections_do_not_merge(here: Path, told: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    told("one", slice(0, 20))
    told("two", slice(20, NODES), words=f"--links rr --epsilon-links 8 {DECLARED}")
    imported = (
        "import mine --nodes people.parquet --features-file words.txt --classes-file classes.txt --low 0 --high 1"
    )
    line_of(capsys, *shlex.split(imported))
    error = line_of(capsys, *shlex.split("merge one.parquet two.parquet --dataset mine"), code=2)
    assert "reports of one collection are alike in all but their people" in error


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
