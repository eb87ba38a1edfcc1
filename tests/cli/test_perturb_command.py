"""`ldp perturb`: what it prints, and that whatever cannot be is one line and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from cell_factory import NAME, files, store

from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.files.paths import reports_path

GIVEN = ("perturb", "--dataset", NAME, "--epsilon", "1")
OWN = ("perturb", "--input", "features.csv", "--epsilon", "1")
RANGE = ("--low", "0", "--high", "1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and a person's own features, in which the commands run."""
    store(tmp_path / "data")
    table = pa.table({"node": ["x", "y", "z"], "a": [0.5, 0.0, 1.0], "b": [1.0, 0.25, 0.0]})
    pc.write_csv(table, tmp_path / "features.csv")
    pq.write_table(table, tmp_path / "wide.parquet")
    holes = table.set_column(1, "a", pa.array([0.5, float("nan"), 1.0]))
    pq.write_table(holes, tmp_path / "holes.parquet")
    (tmp_path / "notes.txt").write_text("node,a\n", encoding="utf-8")
    (tmp_path / "words.csv").write_text("node,a\nx,98765 euros\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_what_was_written(ldp, here: Path) -> None:
    answer = ldp(*GIVEN, "--seeds", 3, "--search-seeds", 1, "--m", 2)
    path = reports_path(Path("data"), NAME, "mb", 1.0)
    assert answer.code == 0
    assert answer.line == "total epsilon per user: features 1.0 x 4 draws = 4.0, if all of it leaves the devices"
    assert (
        answer.out
        == f"{path}: 90 reports of 2 of 24 features x 4 seeds, mb, epsilon 1 claimed for the whole report, 1 exact\n"
    )
    assert read_meta(path, "x")["seeds"] == [0, 1, 2, -1]


def test_it_says_what_protects_nothing(ldp) -> None:
    answer = ldp("perturb", "--dataset", NAME, "--mechanism", "identity", "--epsilon", "inf")
    assert "90 rows as they are: mechanism identity protects nothing" in answer.out


def test_it_says_when_a_claim_is_broken(ldp) -> None:
    answer = ldp(*GIVEN, "--mechanism", "ppm")
    assert answer.out.endswith("epsilon 1 (lowest level), 16 claimed for the whole report, inf exact\n")
    assert "warning: ppm does not keep its claim: " in answer.err


@pytest.mark.parametrize(("mechanism", "epsilon"), [("mb", "1"), ("identity", "inf"), ("null", "0"), ("ppm", "1")])
def test_json_is_the_metadata(mechanism: str, epsilon: str, ldp) -> None:
    answer = ldp("perturb", "--dataset", NAME, "--mechanism", mechanism, "--epsilon", epsilon, "--json")
    found = json.loads(answer.out, parse_constant=pytest.fail)
    path = Path(found.pop("path"))
    assert found == read_meta(path, "x")
    assert (found["kind"], found["mechanism"]) == ("reports", mechanism)


def test_the_root_and_the_mechanisms_own_options_arrive(ldp) -> None:
    answer = ldp(*GIVEN, "--seed", 7, "--set", "fill=zero", "--set", "m_rule=2/5", "--json")
    meta = json.loads(answer.out)
    assert meta["random"]["root"] == 7
    assert meta["options"]["fill"] == "zero"


def test_output_goes_where_it_is_asked_to(ldp, here: Path) -> None:
    before = files(here)
    assert ldp(*GIVEN, "--output", "some/where.parquet").code == 0
    assert files(here) == sorted([*before, "some/where.parquet"])


# a person's own file --------------------------------------------------------------------------------------------------


def test_own_features_are_not_called_after_their_file(ldp) -> None:
    answer = ldp(*OWN, *RANGE)
    assert answer.code == 0
    assert answer.out.startswith("data/perturbed/own/mb/eps=1.parquet: 3 reports of 1 of 2 features")
    assert "features.csv" not in str(read_meta(Path("data/perturbed/own/mb/eps=1.parquet"), "x"))
    assert answer.line.startswith("note: drawn from a seeded generator, for experiments; use --secure")
    assert ldp(*OWN, *RANGE, "--name", "mine", "--quiet").out.startswith("data/perturbed/mine/mb/eps=1.parquet")


def test_quiet_is_silent(ldp) -> None:
    for command in ((*OWN, *RANGE), GIVEN):
        assert ldp(*command, "--quiet").err == ""


def test_secure_reports_are_drawn_once_and_for_all(ldp) -> None:
    answers = [ldp(*OWN, *RANGE, "--secure", "--set", "m=2", "--output", f"{name}.parquet") for name in "ab"]
    assert [(answer.code, answer.err) for answer in answers] == [(0, "")] * 2
    assert read_meta(Path("a.parquet"), "x")["random"]["reproducible"] is False
    # Six values from two: alike once in 64 pairs for signs, so real numbers are compared.
    found = []
    for name in "cd":
        ldp(*OWN, *RANGE, "--secure", "--mechanism", "lp", "--output", f"{name}.parquet")
        found.append(pq.read_table(f"{name}.parquet")["value"].to_pylist())
    assert found[0] != found[1]


def test_values_that_break_the_declaration_are_counted_on_the_screen_alone(ldp) -> None:
    answer = ldp("perturb", "--input", "holes.parquet", "--epsilon", 1, "--low", 0, "--high", 0.7, "--secure")
    assert (answer.code, answer.line) == (
        0,
        "note: 2 values outside the range, moved to its nearer end; 1 value missing, replaced (said here, and nowhere "
        "in the file)",
    )
    again = ldp("perturb", "--input", "holes.parquet", "--epsilon", 1, "--low", 0, "--high", 0.7, "--secure")
    assert again.code == 2
    assert "has spent epsilon 1 of everybody in it; a second collection spends 1 more, 2 in all" in again.line


def test_a_column_that_numbers_the_rows_is_said_on_the_screen_alone(ldp, here: Path) -> None:
    (here / "numbered.csv").write_text("node,a,person\nx,1,0\ny,0,1\nz,1,2\n")
    answer = ldp("perturb", "--input", "numbered.csv", "--epsilon", 1, *RANGE)
    assert "note: column 'person' numbers the rows from 0 on, and counts as a feature" in answer.err
    assert "numbers" not in str(read_meta(Path("data/perturbed/own/mb/eps=1.parquet"), "x"))


def test_triples_need_their_features_declared(ldp, here: Path) -> None:
    (here / "triples.csv").write_text("node,feature,value\nme,7,1\n")
    (here / "names.txt").write_text("7\n8\n9\n")
    own = ("perturb", "--input", "triples.csv", "--epsilon", 1, *RANGE)
    assert "--secure needs the features declared" in ldp(*own, "--secure").line
    rehearsal = ldp(*own)
    assert "1 report of 1 of 1 feature, " in rehearsal.out
    assert "note: the features, 1 in all, are those that occur in triples.csv" in rehearsal.err
    for declared in (("--features-file", "names.txt"), ("--dimensions", 3)):
        answer = ldp(*own, "--secure", "--output", f"{declared[1]}.parquet", *declared)
        assert "1 report of 1 of 3 features" in answer.out
    assert "both say which features there are" in ldp(*own, "--features-file", "names.txt", "--dimensions", 3).line


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("perturb --dataset synthetic", "Missing option '--epsilon'"),
        ("perturb --dataset synthetic --epsilon one", "Invalid value for '--epsilon'"),
        ("perturb --dataset synthetic --epsilon 0", "mb: epsilon must be finite and > 0, got 0.0"),
        ("perturb --dataset synthetic --epsilon -0.5", "mb: epsilon must be finite and > 0, got -0.5"),
        ("perturb --dataset synthetic --epsilon nan", "mb: epsilon must be finite and > 0, got nan"),
        ("perturb --dataset synthetic --epsilon inf", "to send the data itself 'identity' (epsilon inf)"),
        ("perturb --dataset synthetic --epsilon 1 --mechanism mbb", "unknown mechanism 'mbb'; did you mean 'mb'?"),
        ("perturb --dataset synthetic --epsilon 1 --mechanism identity", "identity: epsilon must be inf, got 1.0"),
        ("perturb --dataset synthetic --epsilon 1 --m 25", "from 1 to the 24 dimensions, got 25"),
        ("perturb --dataset synthetic --epsilon 1 --m 0", "from 1 to the 24 dimensions, got 0"),
        ("perturb --dataset synthetic --epsilon 1 --m 2 --set m=3", "m is given twice, as --m 2 and with --set"),
        ("perturb --dataset synthetic --epsilon 1 --set m", "--set takes KEY=VALUE, got 'm'"),
        ("perturb --dataset synthetic --epsilon 1 --set low=3", "low is no further option of mb, got 3"),
        ("perturb --dataset synthetic --epsilon 1 --set epsilon=9", "epsilon is no further option of mb, got 9"),
        ("perturb --dataset synthetic --epsilon 1 --set bogus=9", "mb has no option 'bogus'"),
        ("perturb --dataset synthetic --epsilon 1 --seeds 0", "Invalid value for '--seeds'"),
        ("perturb --dataset synthetic --epsilon 1 --search-seeds -1", "Invalid value for '--search-seeds'"),
        ("perturb --dataset synthetic --epsilon 1 --seed -1", "Invalid value for '--seed'"),
        ("perturb --dataset cora --epsilon 1", "does not exist; make it with `ldp download cora`"),
        ("perturb --dataset synthetic --epsilon 1 --low 0", "--low goes with --input; a data set declares its own"),
        ("perturb --dataset synthetic --epsilon 1 --high 1", "--high goes with --input"),
        ("perturb --dataset synthetic --epsilon 1 --name x", "--name goes with --input"),
        (
            "perturb --dataset synthetic --epsilon 1 --secure",
            "--secure goes with --input: a public data set has nobody",
        ),
        ("perturb --dataset synthetic --epsilon 1 --output .", "'.' is a directory"),
        ("perturb --dataset synthetic --epsilon 1 --output notes.txt/a.parquet", "notes.txt"),
        ("perturb --epsilon 1", "give either --dataset NAME or --input FILE, and not both"),
        ("perturb --dataset synthetic --input features.csv --epsilon 1", "give either --dataset NAME or --input FILE"),
        ("perturb --input features.csv --epsilon 1", "--input needs --low and --high: a range read off the data"),
        ("perturb --input features.csv --epsilon 1 --low 0", "--input needs --low and --high"),
        (
            "perturb --input features.csv --epsilon 1 --low 1 --high 0",
            "needs finite low < high, got low 1.0 and high 0.0",
        ),
        ("perturb --dataset synthetic --epsilon 1 --dimensions 3", "--dimensions goes with --input"),
        ("perturb --dataset synthetic --epsilon 1 --features-file x.txt", "--features-file goes with --input"),
        ("perturb --dataset synthetic --epsilon 1 --missing 0", "--missing goes with --input"),
        (
            "perturb --input features.csv --epsilon 1 --low 0 --high 1 --dimensions 0",
            "Invalid value for '--dimensions'",
        ),
        ("perturb --input features.csv --epsilon 1 --low 0 --high 1 --missing 2", "must lie in the range 0..1, got 2"),
        ("perturb --input features.csv --epsilon 1 --low 0 --high 1 --features-file no.txt", "there is no such file"),
        ("perturb --input words.csv --epsilon 1 --low 0 --high 1", "column 'a' is not numeric (string)"),
        ("perturb --input none.csv --epsilon 1 --low 0 --high 1", "none.csv: there is no such file"),
        ("perturb --input notes.txt --epsilon 1 --low 0 --high 1", "are read from .parquet or .csv files, got '.txt'"),
        ("perturb --input . --epsilon 1 --low 0 --high 1", "'.' is a directory"),
        ("perturb --input features.csv --epsilon 1 --low 0 --high 1 --secure --seeds 2", "--seeds must be 1"),
        ("perturb --input features.csv --epsilon 1 --low 0 --high 1 --secure --search-seeds 1", "--search-seeds 0"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(command: str, words: str, ldp, here: Path) -> None:
    before = files(here)
    answer = ldp(*command.split())
    assert answer.code == 2
    assert answer.out == ""
    assert answer.line.startswith("error: ")
    assert words in answer.line
    assert files(here) == before


def test_a_person_is_named_and_her_value_is_not(ldp) -> None:
    (Path("edges.csv")).write_text("source,target\nx,y\n")
    given = ("import", "mine", "--features", "features.csv", "--edges", "edges.csv")
    line = ldp(*given, "--low", 0, "--high", 0.7).line
    assert "node 'z'" in line
    assert "1.0" not in line
    assert "98765" not in ldp("perturb", "--input", "words.csv", "--epsilon", 1, *RANGE).line
