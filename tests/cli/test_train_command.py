"""`ldp train`: its parameters and where they come from, what it prints, what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from cell_factory import NAME, accuracies, calibrate, files, small_params, store

from graphldp.cli.cell import choose_params
from graphldp.errors import OptionError
from graphldp.learn import neighbors
from graphldp.stages.files.artifacts import read_meta
from graphldp.stages.grids.params import Params, load
from graphldp.stages.pages import model_card

SMALL = ("--seeds", 3, "--search-points", 2, "--search-seeds", 2, "--epochs", 8)
GIVEN = ("train", "--dataset", NAME, "--epsilon", "1", *SMALL)
MADE = Path(f"data/runs/{NAME}/lpgnn/eps=1.parquet")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph and the estimates of one cell, in which the commands run."""
    store(tmp_path / "data")
    calibrate(tmp_path / "data", small_params())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_says_what_came_out(ldp) -> None:
    answer = ldp(*GIVEN)
    found = 100 * accuracies(MADE)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (
        f"{MADE}: lpgnn at epsilon 1.0: test accuracy {found.mean():.1f} % (std {found.std(ddof=1):.1f}), 3 runs\n"
    )
    assert "std" not in ldp(*GIVEN, "--seeds", 1).out


def test_json_is_the_metadata_and_the_accuracies(ldp) -> None:
    found = json.loads(ldp(*GIVEN, "--json", "--save-model", "kept").out, parse_constant=pytest.fail)
    assert (found.pop("path"), found.pop("saved_model")) == (str(MADE), "kept")
    assert found.pop("test_accuracy") == accuracies(MADE).tolist()
    assert len(found.pop("test_macro_f1")) == len(accuracies(MADE))
    assert found == read_meta(MADE, "x")


@pytest.mark.parametrize("slip", ["learning_rates=5", "foo=1,2", "train.hidde=5", "gamma=0.7"])
def test_an_axis_that_the_row_does_not_have_is_refused(slip: str, ldp) -> None:
    answer = ldp(*GIVEN, "--search", slip)
    assert answer.code == 2
    assert f"search.options has {slip.split('=')[0]!r}, which no row of the table has" in answer.line
    assert not MADE.exists()


def test_an_axis_that_it_has_is_searched(ldp) -> None:
    assert ldp(*GIVEN, "--search", "train.hidden=4,8").code == 0
    assert read_meta(MADE, "x")["search"]["options"] == {"train.hidden": [4, 8]}


def test_a_kept_model_is_named(ldp, here: Path) -> None:
    answer = ldp(*GIVEN, "--save-model", "kept")
    assert answer.out.splitlines()[1] == "kept: the best final model, for `ldp predict`"
    assert files(here / "kept") == ["MODEL_CARD.md", "model.json", "weights.safetensors"]


def test_majority_needs_no_budget(ldp) -> None:
    answer = ldp("train", "--dataset", NAME, "--method", "majority", "--seeds", 2)
    assert answer.out.startswith(f"data/runs/{NAME}/majority/eps=0.parquet: majority at epsilon 0.0: test accuracy")


def test_quiet_is_silent(ldp) -> None:
    answer = ldp(*GIVEN, "--quiet")
    assert (answer.code, answer.err) == (0, "")


def test_a_limit_of_memory_splits_the_runs_and_says_so(ldp) -> None:
    given = (*GIVEN, "--hidden", 64)
    ldp(*given)
    whole = accuracies(MADE)
    shutil.rmtree("data/cells")  # what is there is not trained again
    answer = ldp(*given, "--max-memory", 0.1)
    assert (answer.code, answer.err) == (0, "")
    shutil.rmtree("data/cells")
    answer = ldp(*given, "--max-memory", 0.001)
    assert answer.err == "search: 4 runs in 2 waves of at most 3, to stay within 0.001 GB\n"
    assert read_meta(MADE, "x")["record"]["waves"] == [3]
    assert accuracies(MADE).tolist() == whole.tolist()
    assert ldp(*given, "--max-memory", 0.001, "--quiet").err == ""


def test_batches_of_nodes(ldp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "find_spec", lambda name: None)  # also where a sampler is installed
    answer = ldp(*GIVEN, "--batch-size", 10, "--model", "mlp")
    assert (answer.code, answer.err) == (0, "")
    meta = read_meta(MADE, "x")
    assert meta["train"]["batch_size"] == 10
    found = meta["record"]["batches"]
    assert (found["size"], found["updates"], found["automatic"], found["in_files"]) == (10, [5], False, False)
    answer = ldp(*GIVEN, "--batch-size", 10, "--model", "gcn")
    assert answer.code == 2
    assert answer.line.startswith(
        "error: method 'lpgnn': model 'gcn' passes messages between its layers: batches of nodes need"
    )
    assert ldp(*GIVEN, "--batch-size", -1).code == 2


def test_batches_where_a_single_run_takes_too_much(ldp, here: Path) -> None:
    store(here / "data", nodes=3000, classes=3)
    calibrate(here / "data", small_params())
    answer = ldp(*GIVEN, "--model", "sgc", "--max-memory", 0.001)
    assert answer.code == 0
    assert answer.err.splitlines()[0] == (
        "search: in batches of 16384 training nodes, as in full batch a single run takes more than 0.001 GB"
    )
    found = read_meta(MADE, "x")["record"]["batches"]
    assert (found["automatic"], found["in_files"]) == (True, True)
    assert not list((here / "data").glob(".rows*"))


def test_a_limit_below_one_run_is_refused(ldp) -> None:
    answer = ldp(*GIVEN, "--max-memory", 0.001, "--hidden", 256)
    assert answer.code == 2
    assert answer.line.startswith("error: max_memory 1000000 bytes is too little for a single run; raise it to ")


# parameters -----------------------------------------------------------------------------------------------------------


def test_options_go_before_the_file_and_the_file_before_the_defaults(ldp, here: Path) -> None:
    text = "seed: 0\nseeds: 3\nsearch: {points: 1, seeds: 1, steps: [0, 2]}\ntrain: {epochs: 6, hidden: 3}\n"
    (here / "params.yaml").write_text(text, encoding="utf-8")
    ldp("train", "--dataset", NAME, "--epsilon", 1)
    meta = read_meta(MADE, "x")
    assert (meta["seeds"], meta["search"]["points"], meta["search"]["seeds"]) == (3, 1, 1)
    assert (meta["train"]["epochs"], meta["train"]["hidden"], meta["train"]["patience"]) == (
        6,
        3,
        Params().train.patience,
    )
    changes = {"seeds": 2, "search-points": 2, "search-seeds": 2, "epochs": 4, "hidden": 5, "patience": 3, "seed": 0}
    ldp("train", "--dataset", NAME, "--epsilon", 1, *(word for key, v in changes.items() for word in (f"--{key}", v)))
    meta = read_meta(MADE, "x")
    assert (meta["seeds"], meta["search"]["points"], meta["search"]["seeds"], meta["root"]) == (2, 2, 2, 0)
    assert (meta["train"]["epochs"], meta["train"]["hidden"], meta["train"]["patience"]) == (4, 5, 3)


def test_without_the_usual_file_there_are_defaults(here: Path) -> None:
    assert choose_params(Path("params.yaml"), "cora") == Params()
    with pytest.raises(OptionError, match=r"other\.yaml does not exist; leave --params out for the defaults"):
        choose_params(Path("other.yaml"), "cora")
    (here / "params.yaml").write_text("seeds: 4\n", encoding="utf-8")
    assert choose_params(Path("params.yaml"), "cora") == load(here / "params.yaml")


def test_the_defaults_alone_are_enough(ldp, here: Path) -> None:
    """Where no params.yaml lies about, README's commands have to work as they stand."""
    assert ldp("perturb", "--dataset", NAME, "--epsilon", 1, "--seeds", 10, "--search-seeds", 2).code == 0
    assert ldp("denoise", "--dataset", NAME, "--epsilon", 1).code == 0
    answer = ldp("train", "--dataset", NAME, "--epsilon", 1, "--epochs", 2)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.endswith("10 runs\n")


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train --dataset synthetic", "method 'lpgnn' needs --epsilon: the budget of the reports that it learns from"),
        ("train --epsilon 1", "Missing option '--dataset'"),
        ("train --dataset synthetic --epsilon one", "Invalid value for '--epsilon'"),
        (
            "train --dataset synthetic --epsilon 2",
            "make it with `ldp denoise --dataset synthetic --method lpgnn --mech",
        ),
        ("train --dataset synthetic --epsilon 1 --method lpgn", "unknown method 'lpgn'; did you mean 'lpgnn'?"),
        ("train --dataset synthetic --method lpgn", "unknown method 'lpgn'; did you mean 'lpgnn'?"),
        (
            "train --dataset synthetic --epsilon 1 --method majority",
            "method 'majority' spends nothing: epsilon must be 0",
        ),
        ("train --dataset synthetic --method majority --mechanism mb", "so it takes no mechanism; got 'mb'"),
        ("train --dataset synthetic --method majority --save-model m", "so there is no model to save"),
        ("train --dataset synthetic --epsilon 1 --device gpu", "device must be one of auto, cpu, cuda, mps, got 'gpu'"),
        ("train --dataset synthetic --epsilon 1 --seeds 0", "Invalid value for '--seeds'"),
        ("train --dataset synthetic --epsilon 1 --epochs 0", "Invalid value for '--epochs'"),
        ("train --dataset synthetic --epsilon 1 --params none.yaml", "none.yaml does not exist; leave --params out"),
        ("train --dataset synthetic --epsilon 1 --params bad.yaml", "unknown key 'sedes'; did you mean 'seed"),
        ("train --dataset synthetic --epsilon 1 --search-points 999 --seeds 3", "fewer than the budget of 999"),
        (
            "train --dataset synthetic --epsilon 1 --seeds 7 --search-points 2",
            "where 7 and 2 are needed; make them again with `ldp perturb",
        ),
        (
            "train --dataset synthetic --epsilon 1 --calibrated data/perturbed/synthetic/mb/eps=1.parquet",
            "has kind 'reports'",
        ),
        ("train --dataset nowhere --epsilon 1", "unknown graph 'nowhere'. Valid: citeseer"),
        ("train --dataset synthetic --epsilon 1 --save-model bad.yaml", "'bad.yaml' is a file"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(command: str, words: str, ldp, here: Path) -> None:
    (here / "bad.yaml").write_text("sedes: 3\n", encoding="utf-8")
    before = files(here)
    answer = ldp(*command.split())
    assert answer.code == 2
    assert answer.out == ""
    assert answer.line.startswith("error: ")
    assert words in answer.line
    assert files(here) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_not_there_is_one_line(ldp) -> None:
    answer = ldp(*GIVEN, "--device", "cuda")
    assert answer.code == 2
    assert "device 'cuda' is not available" in answer.line


def test_on_a_graph_of_ones_own_it_says_what_shows_the_floor(ldp, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = [f"p{number}" for number in range(12)]
    (here / "f.csv").write_text("node,a,b\n" + "".join(f"{one},1,0\n" for one in people))
    (here / "e.csv").write_text("source,target\n" + "".join(f"{one},p{k // 2}\n" for k, one in enumerate(people)))
    (here / "l.csv").write_text("node,label\n" + "".join(f"{one},{k % 2}\n" for k, one in enumerate(people)))
    (here / "names.txt").write_text("a\nb\n")
    bounds, few = ("--low", 0, "--high", 1), ("--seeds", 2, "--search-seeds", 1)
    start = ("import", "mine", "--edges", "e.csv", "--labels", "l.csv", *bounds, "--force")
    own = ("train", "-d", "mine", "-e", 1, "-m", "pm", *few, "--search-points", 1, "--epochs", 1)
    declared = ("--features-file", "names.txt")

    def said(*commands: tuple[object, ...]) -> list[str]:
        for command in commands:
            assert ldp(*command).code == 0
        return [line for line in ldp(*own).err.splitlines() if "floor" in line]

    floor = "note: the floor, which needs nobody's report, is not known here; `ldp {}` shows it"
    rehearsed = ("perturb", "-d", "mine", "-e", 1, "-m", "pm", *few)
    denoised = ("denoise", "-d", "mine", "-e", 1, "-m", "pm")
    shown = said((*start, "--features", "f.csv"), rehearsed, denoised)
    assert shown == [floor.format("run -d mine -e 1 --method lpgnn --mechanism pm")]
    with monkeypatch.context() as patch:
        patch.setattr(model_card, "floor_of", lambda *_: model_card.Floor(scores={}))
        assert said() == []
    # People whose features never were here cannot be asked in memory.
    sent = ("perturb", "-i", "f.csv", "-e", 1, "-m", "pm", *bounds, *declared, "--secure", "-o", "sent.parquet")
    merged = ("merge", "sent.parquet", "-d", "mine", "-o", "reports.parquet")
    shown = said((*start, *declared), (*sent, "--name", "mine"), merged, (*denoised, "--reports", "reports.parquet"))
    assert shown == [floor.format("train -d mine -e 0 --method structure")]
