"""`ldp audit` and `ldp docs` as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphldp.audit import AuditOptions, audit_mechanism
from graphldp.stages.audit import samples_text

FAULTS = Path(__file__).resolve().parents[2] / "examples" / "published_faults"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_table_and_three_files(ldp, tmp_path: Path) -> None:
    answer = ldp("audit", "mb", "ppm", "-e", 1, "--dimensions", 3, "--samples", 2000, "--output", "results/audit")
    assert answer.code == 0, answer.err
    assert "keeps" in answer.out
    assert "fails, as marked" in answer.out
    assert "marked: ppm at epsilon 1 does not keep its claim" in answer.out
    assert {path.name for path in (tmp_path / "results" / "audit").iterdir()} == {
        "audit.json",
        "audit.md",
        "privacy.md",
    }


def test_nothing_is_written_unless_a_folder_is_named(ldp, tmp_path: Path) -> None:
    answer = ldp("audit", "mb", "-e", 1, "--samples", 2000, "--low", 0, "--high", 5, "--set", "m=2")
    assert answer.code == 0, answer.err
    assert "8 features a node in [0, 5]" in answer.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("samples", "dimensions", "words"),
    [(2000, 8, "2000"), (524_288, 8, "524288"), (600_000, 8, "524288 to 600000"), (9000, 2**20, "2000 to 9000")],
)
def test_the_heading_says_how_many_reports_a_test_draws(samples: int, dimensions: int, words: str) -> None:
    assert samples_text(AuditOptions(samples=samples, dimensions=dimensions)) == words


def test_no_more_samples_are_asked_for_than_a_test_draws() -> None:
    row = audit_mechanism("hds", 0.001, AuditOptions(samples=2000))
    assert row.open.endswith("values would have to be compared, more than is feasible")


def test_no_power_is_no_failure(ldp) -> None:
    answer = ldp("audit", "mb", "-e", 1e-6, "--samples", 2000)
    assert answer.code == 0, answer.err
    assert "no power: a budget 1.5 times as large" in answer.out


def test_json_on_standard_output_is_the_file(ldp, tmp_path: Path) -> None:
    answer = ldp("audit", "mb", "--json", "-e", 1, "--dimensions", 3, "--samples", 2000, "--output", "here", "--quiet")
    assert json.loads(answer.out) == json.loads((tmp_path / "here" / "audit.json").read_text(encoding="utf-8"))
    assert answer.err == ""


def test_a_published_fault_is_convicted_with_exit_code_1(ldp) -> None:
    answer = ldp("audit", "--module", f"{FAULTS / 'r05_level_by_coins.py'}:square_wave_level", "--samples", 2000)
    assert answer.code == 1
    assert answer.out.startswith("square_wave_level: does not keep its claim of epsilon 1")


def test_an_honest_function_passes(ldp, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import math\n\n\ndef coin(x, epsilon, rng):\n"
        "    return x if rng.random() < 1 / (1 + math.exp(-epsilon)) else -x\n"
    )
    answer = ldp("audit", "--module", "mine.py:coin", "-e", 0.5, "--inputs", "[-1, 1]", "--samples", 4000)
    assert answer.code == 0, answer.err
    assert "nothing found against epsilon 0.5" in answer.out
    assert ldp("audit", "--module", "mine.py:coin", "--property", "unbiased", "--samples", 4000).code == 1


def test_findings_as_json(ldp) -> None:
    answer = ldp("audit", "--json", "--module", FAULTS / "r10_masks_in_place.py")
    assert answer.code == 1
    (finding,) = json.loads(answer.out)["findings"]
    assert finding["property"] == "soft-threshold"
    assert finding["keeps"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "unknown mechanism 'nope'"),
        (["mb", "-e", "-1"], "epsilon must be a number of at least 0, got -1"),
        (["mb", "-e", "nan"], "epsilon must be a number of at least 0, got nan"),
        (["mb", "-e", "0"], "epsilon must be finite and > 0, got 0"),
        (["gm", "-e", "10"], "use 'ag'"),
        (["mb", "--samples", "1"], "samples must be a whole number of at least 1000, got 1"),
        (["mb", "--property", "unbiased"], "--property belongs to --module"),
        (["mb", "--low", "1", "--high", "0"], "needs finite low < high, got low 1"),
        (["mb", "pm", "--set", "m=2"], "--set goes with one mechanism"),
        (["vote", "--set", "n=2"], "vote has no option 'n'"),
        (["esw", "--low", "0"], "it takes no range"),
        (["--module", "none.py:f", "--set", "m=2"], "--set belongs to a registered mechanism"),
        (["--module", "none.py:f"], "none.py is not a file"),
        (["mb", "--module", "none.py:f"], "and no registered mechanism"),
        (["--module", "none.py:f", "--inputs", "1, 2"], "must be a JSON list"),
    ],
)
def test_bad_input_is_one_line(ldp, arguments: list[str], words: str) -> None:
    answer = ldp("audit", *arguments)
    assert answer.code == 2
    assert words in answer.line


def test_docs_check_says_what_is_missing(ldp) -> None:
    answer = ldp("docs", "--check", "--output", "empty")
    assert answer.code == 1
    assert "empty/mechanisms/mb.md: is missing" in answer.out
    assert "ldp docs" in answer.out
    assert "privacy.md" in answer.out
    assert "privacy.md" not in ldp("docs", "--check", "--without-audit", "--output", "empty").out


def test_a_link_mechanism_is_audited_by_the_name_that_links_takes(ldp) -> None:
    words = ("-e", 1, "--samples", 2000, "--json")
    assert json.loads(ldp("audit", "rr", *words).out) == json.loads(ldp("audit", "links-rr", *words).out)


def test_a_curator_has_a_bound_and_what_it_does_not_prove(ldp, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ldp("audit", "edgerand", "privhrg", "-e", "1,60", "--samples", 300, "--json")
    assert answer.code == 0, answer.err
    rows = json.loads(answer.out)["curators"]
    assert [(row["curator"], row["epsilon"]) for row in rows] == [
        ("edgerand", 1.0), ("edgerand", 60.0), ("privhrg", 1.0), ("privhrg", 60.0),
    ]  # fmt: skip
    assert all(row["bound"] <= row["epsilon"] for row in rows)
    assert rows[1]["bound"] > 2
    assert ["no proof" in row["caveat"] for row in rows] == [False, False, True, True]
    shown = ldp("audit", "privhrg", "-e", 1, "--samples", 300)
    assert "nothing speaks against it, and no proof" in shown.out

    from graphldp.stages import audit_curators

    honest = audit_curators.curator_bound
    monkeypatch.setattr(audit_curators, "curator_bound", lambda name, epsilon, *a, **k: honest(name, 60.0, *a, **k))
    liar = ldp("audit", "edgerand", "-e", 1, "--samples", 300)
    assert liar.code == 1
    assert "FAILS" in liar.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mb", "edgerr"), "curators are audited apart"),
        (("edgerr", "-e", 0), "a curator's epsilon must be above 0"),
        (("edgerr", "--set", "rho=1"), "--set belongs to"),
        (("edger",), "unknown mechanism 'edger'"),
    ],
)
def test_what_a_curators_audit_cannot_be_is_one_line(ldp, words: tuple[object, ...], said: str) -> None:
    answer = ldp("audit", *words)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.strip().count("\n") == 0
