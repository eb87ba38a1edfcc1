"""Stage train: Runs that are reproducible to the byte, and work that an interruption does not lose."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from cell_factory import NAME, accuracies, calibrate, cell_of, files, learn, rows, small_graph, small_params, store

from graphldp import __version__
from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.experiment.parts import split_of
from graphldp.stages.files.artifacts import file_hash, read_meta
from graphldp.stages.files.graphs import graph_hash, write_graph
from graphldp.stages.files.paths import calibrated_path, graph_dir, runs_path
from graphldp.stages.files.runs import runs_schema
from graphldp.stages.train import make_command, train

PARAMS = small_params()
MAKE = "ldp train"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def ready(data: Path) -> Path:
    calibrate(data, PARAMS)
    return data


def run(data: Path, params: Any = PARAMS, **options: Any) -> Path:
    given = {"dataset": NAME, "method": "lpgnn", "mechanism": None, "epsilon": 1.0, "device": "cpu", **options}
    cell, others = cell_of(given)
    return train(cell, **others, data=data, params=params)


# what is written ------------------------------------------------------------------------------------------------------


def test_runs_have_their_schema_and_their_facts(ready: Path) -> None:
    path = run(ready)
    assert path == runs_path(ready, NAME, "lpgnn", 1.0)
    assert pq.read_schema(path).remove_metadata() == runs_schema("node-classification")
    assert [row["role"] for row in rows(path)] == ["search"] * 6 + ["final"] * 3
    assert {row["test_accuracy"] for row in rows(path, "search")} == {None}
    assert np.isfinite(accuracies(path)).all()
    meta = read_meta(path, MAKE)
    calibrated = calibrated_path(ready, NAME, "lpgnn", 1.0)
    expected = {
        "kind": "runs",
        "dataset": NAME,
        "method": "lpgnn",
        "mechanism": "mb",
        "epsilon": 1.0,
        "delta": 0.0,
        "arm": "lpgnn",
        "model": "gcn",
        "root": 0,
        "seeds": 3,
        "library": __version__,
        "input": graph_hash(graph_dir(ready, NAME)),
        "calibrated": file_hash(calibrated),
        "mechanism_claim": {"claimed": 1.0, "exact": meta["epsilon_exact"], "keeps": True, "text": ""},
    }
    assert {key: meta[key] for key in expected} == expected
    assert (meta["search"]["points"], meta["search"]["seeds"], meta["search"]["steps"]) == (3, 2, [0, 2])
    assert meta["train"]["epochs"] == 15
    final = rows(path, "final")[0]
    assert meta["chosen_point"] == {name: final[name] for name in meta["chosen_point"]}


def test_recomputed_is_the_same_file(ready: Path, tmp_path: Path) -> None:
    one, two = run(ready), run(ready, output=tmp_path / "two.parquet")
    assert one.read_bytes() == two.read_bytes()
    seconds = json.loads((tmp_path / "two.time.json").read_text(encoding="utf-8"))
    assert seconds["seconds"] > 0  # wall time belongs to the machine and stands beside the artifact


def test_a_row_has_the_name_it_is_given(ready: Path) -> None:
    path = run(ready, name="mine", calibrated=calibrated_path(ready, NAME, "lpgnn", 1.0))
    assert path == runs_path(ready, NAME, "mine", 1.0)
    assert read_meta(path, MAKE)["arm"] == "mine"


def test_a_broken_claim_goes_with_its_runs_into_the_table(data: Path) -> None:
    claim = read_meta(learn(data, PARAMS, "lpgnn", "ppm"), MAKE)["mechanism_claim"]
    assert claim["keeps"] is False
    assert claim["exact"] == "inf"
    assert "the size of a reported value names the level" in claim["text"]


def test_floor_and_ceiling(data: Path) -> None:
    for method, mechanism, epsilon in (("structure", "null", 0.0), ("nonpriv", "identity", math.inf)):
        path = learn(data, PARAMS, method, mechanism, epsilon)
        meta = read_meta(path, MAKE)
        assert (meta["mechanism"], float(meta["epsilon"])) == (mechanism, epsilon)
        assert len(accuracies(path)) == 3


def test_the_depths_are_those_that_the_estimates_were_made_for(data: Path) -> None:
    """`ldp denoise --steps 3` is not to be overruled by the parameters that training happens to read."""
    calibrate(data, small_params(steps=(3,)))
    path = run(data, small_params(steps=(0, 2, 4)))
    assert {row["steps"] for row in rows(path)} == {3}
    assert read_meta(path, MAKE)["search"]["steps"] == [3]


def test_base_does_not_filter(data: Path) -> None:
    assert {row["steps"] for row in rows(learn(data, PARAMS, "base"))} == {0}


def test_majority_needs_nothing_but_the_graph(data: Path) -> None:
    path = run(data, method="majority", epsilon=0.0)
    assert path == runs_path(data, NAME, "majority", 0.0)
    found = rows(path)
    assert [row["role"] for row in found] == ["final"] * 3
    graph = small_graph()
    for row in found:
        split = split_of(graph, PARAMS, row["seed"])
        commonest = np.bincount(graph.labels[split.train]).argmax()
        assert row["test_accuracy"] == (graph.labels[split.test] == commonest).mean()
    meta = read_meta(path, MAKE)
    assert (meta["mechanism"], meta["model"], meta["search"]["points"]) == ("none", "none", 0)


@pytest.mark.slow
def test_the_floor_learns_what_the_graph_alone_says(tmp_path: Path) -> None:
    """With all of the signal in the edges, reports of a fair coin are enough; with none, they are worth nothing."""
    params = small_params(points=2, epochs=60, seeds=3, steps=(2, 4))
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, patience=60, hidden=16))
    gain = {}
    for structure in (0.0, 1.0):
        data = tmp_path / str(structure)
        store(data, nodes=200, structure=structure, features=0.0, degree=10.0, dimensions=64)
        floor = accuracies(learn(data, params, "structure", "null", 0.0)).mean()
        gain[structure] = floor - accuracies(run(data, params, method="majority", epsilon=0.0)).mean()
    assert gain[1.0] > 0.2
    assert gain[0.0] < 0.1


# test labels ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def any_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take reports of the same people although the graph's labels are others now."""
    monkeypatch.setattr("graphldp.stages.files.belong._is_of", lambda *_: True)


def test_test_labels_change_the_test_accuracy_alone(tmp_path: Path, any_content: None) -> None:
    params = small_params(seeds=1, search_seeds=1)
    graph = store(tmp_path, nodes=240)
    path = learn(tmp_path, params)
    before = rows(path)
    tested = [set(split_of(graph, params, seed).test.tolist()) for seed in (0, -1)]
    hidden = sorted(set.intersection(*tested))
    labels = graph.labels.copy()
    labels[hidden] = (labels[hidden] + 1) % graph.classes
    write_graph(dataclasses.replace(graph, labels=labels), graph_dir(tmp_path, NAME))
    after = rows(run(tmp_path, params))
    for one, two in zip(before, after, strict=True):
        opened = {"test_accuracy": 0, "test_macro_f1": 0}
        assert {**one, **opened} == {**two, **opened}
    assert before[-1]["test_accuracy"] != after[-1]["test_accuracy"]


# interruptions --------------------------------------------------------------------------------------------------------


def forget(data: Path) -> None:
    """Remove the cells that were computed, so that the next command trains."""
    shutil.rmtree(data / "cells", ignore_errors=True)


def state_of(data: Path) -> Path:
    """Return where an interrupted cell has left its state."""
    (state,) = (data / "cells").glob("*.resume.safetensors")
    return state


def pressing(phase: str, call: int) -> Callable[[int, int, str], None]:
    left = [call]

    def progress(done: int, total: int, text: str) -> None:
        if text.startswith(phase):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(
    "presses", [[("search", 3)], [("final", 3)], [("search", 2), ("final", 2), ("final", 4)]], ids=str
)
def test_resumed_is_uninterrupted_byte_for_byte(presses: list[tuple[str, int]], ready: Path, tmp_path: Path) -> None:
    whole = run(ready, output=tmp_path / "whole.parquet").read_bytes()
    forget(ready)
    before = files(ready)
    path = runs_path(ready, NAME, "lpgnn", 1.0)
    for press in presses:
        with pytest.raises(KeyboardInterrupt):
            run(ready, progress=pressing(*press))
        assert not path.exists()
        state = state_of(ready)
        left = [str(file.relative_to(ready)) for file in (state.with_suffix(".json"), state)]
        assert files(ready) == sorted(before + left)
    epochs: list[int] = []
    run(ready, progress=lambda done, total, text: epochs.append(done))
    assert epochs[0] > 0  # it did go on, and did not begin anew
    assert path.read_bytes() == whole
    (cell,) = (ready / "cells").iterdir()
    made = (path, path.with_suffix(".time.json"), cell)
    assert files(ready) == sorted([*before, *(str(one.relative_to(ready)) for one in made)])


@pytest.mark.parametrize(
    "change",
    [{"seeds": 2}, {"seed": 1}, {"train": {"epochs": 14}}, {"train": {"patience": 3}}, {"search": {"points": 2}}],
    ids=str,
)
def test_a_checkpoint_of_other_parameters_is_not_taken_up(change: dict[str, Any], ready: Path, tmp_path: Path) -> None:
    parts = {
        key: dataclasses.replace(getattr(PARAMS, key), **value) if isinstance(value, dict) else value
        for key, value in change.items()
    }
    other = dataclasses.replace(PARAMS, **parts)
    whole = run(ready, other, output=tmp_path / "whole.parquet").read_bytes()
    forget(ready)
    with pytest.raises(KeyboardInterrupt):
        run(ready, progress=pressing("final", 2))
    assert run(ready, other).read_bytes() == whole


def test_a_checkpoint_of_another_graph_is_not_taken_up(ready: Path, tmp_path: Path, any_content: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(ready, progress=pressing("final", 2))
    graph = small_graph()
    write_graph(dataclasses.replace(graph, labels=np.roll(graph.labels, 1)), graph_dir(ready, NAME))
    path = run(ready)
    forget(ready)
    assert path.read_bytes() == run(ready, output=tmp_path / "whole.parquet").read_bytes()


def test_a_checkpoint_of_other_reports_is_not_taken_up(ready: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(ready, progress=pressing("final", 2))
    calibrate(ready, dataclasses.replace(PARAMS, seed=5))
    path = run(ready)
    forget(ready)
    assert path.read_bytes() == run(ready, output=tmp_path / "whole.parquet").read_bytes()


def test_an_infinite_loss_survives_an_interruption(data: Path, tmp_path: Path) -> None:
    params = small_params(points=4)
    params = dataclasses.replace(params, search=dataclasses.replace(params.search, learning_rate=(1e30, 0.05)))
    calibrate(data, params)
    whole = run(data, params, output=tmp_path / "whole.parquet")
    assert any(math.isinf(row["validation_loss"]) for row in rows(whole))
    forget(data)
    with pytest.raises(KeyboardInterrupt):
        run(data, params, progress=pressing("final", 2))
    assert run(data, params).read_bytes() == whole.read_bytes()


def damaged_state(state: Path) -> None:
    state.write_bytes(state.read_bytes()[:-7])


def damaged_facts(state: Path) -> None:
    facts = state.with_suffix(".json")
    facts.write_bytes(facts.read_bytes()[:-70])


@pytest.mark.parametrize("damage", [damaged_state, damaged_facts])
def test_a_damaged_checkpoint_is_one_line(damage: Callable[[Path], None], ready: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(ready, progress=pressing("final", 2))
    state = state_of(ready)
    damage(state)
    with pytest.raises(ArtifactError) as error:
        run(ready)
    assert "left by an interrupted training, are damaged; delete them to start anew" in str(error.value)
    assert str(state.with_suffix(".json")) in str(error.value)
    state.unlink()
    state.with_suffix(".json").unlink()
    run(ready)


def test_a_checkpoint_counts_only_with_its_own_state(ready: Path, tmp_path: Path) -> None:
    """A kill between the writing of the state and of its facts leaves no checkpoint, not a wrong one."""
    whole = run(ready, output=tmp_path / "whole.parquet").read_bytes()
    forget(ready)
    with pytest.raises(KeyboardInterrupt):
        run(ready, progress=pressing("search", 2))
    state = state_of(ready)
    for lost in (state, state.with_suffix(".json")):
        lost.unlink()
        assert run(ready, output=tmp_path / "again.parquet").read_bytes() == whole
        forget(ready)
        with pytest.raises(KeyboardInterrupt):
            run(ready, progress=pressing("search", 2))


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "lpgn"}, "unknown method 'lpgn'; did you mean 'lpgnn'?"),
        ({"method": "majority"}, "method 'majority' spends nothing: epsilon must be 0, got 1.0"),
        (
            {"method": "majority", "epsilon": 0.0, "mechanism": "mb"},
            "'majority' sends nothing, so it takes no mechanism",
        ),
        ({"method": "majority", "epsilon": 0.0, "models": Path("m")}, "learns nothing, so there is no model to save"),
        ({"method": "structure", "mechanism": "mb"}, "method 'structure' means mechanism null, got 'mb'"),
    ],
)
def test_what_cannot_be_is_one_line(options: dict[str, Any], words: str, ready: Path) -> None:
    before = files(ready)
    with pytest.raises(OptionError) as error:
        run(ready, **options)
    assert words in str(error.value)
    assert files(ready) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_not_there_is_one_line(ready: Path) -> None:
    with pytest.raises(OptionError, match="device 'cuda' is not available"):
        run(ready, device="cuda")


def test_estimates_that_are_not_there_say_how_to_make_them(data: Path) -> None:
    command = "ldp denoise --dataset synthetic --method lpgnn --mechanism mb --epsilon 1"
    with pytest.raises(ArtifactError, match=f"does not exist; make it with `{command}`"):
        run(data)
    with pytest.raises(ArtifactError, match="does not exist; make it with `ldp download cora`"):
        run(data, dataset="cora")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 2.0}, "has epsilon 1 where 2 was asked for; say --epsilon 1"),
        ({"method": "base"}, "has method 'lpgnn' where 'base' was asked for"),
        ({"mechanism": "pm"}, "has mechanism mb where pm was asked for; say --mechanism mb"),
    ],
)
def test_estimates_of_something_else_are_refused(given: dict[str, Any], words: str, ready: Path) -> None:
    with pytest.raises(ArtifactError) as error:
        run(ready, **given, calibrated=calibrated_path(ready, NAME, "lpgnn", 1.0))
    assert words in str(error.value)


def test_estimates_of_other_nodes_are_refused(ready: Path) -> None:
    store(ready, nodes=91)
    with pytest.raises(
        ArtifactError, match="holds reports of other nodes than the graph synthetic has, or in another order; make them"
    ):
        run(ready)


@pytest.mark.parametrize(
    ("params", "need", "option"),
    [
        (small_params(seeds=4), "4 and 2", "--seeds 4 --search-seeds 2"),
        (small_params(search_seeds=3), "3 and 3", "--seeds 3 --search-seeds 3"),
        (small_params(seeds=4, search_seeds=3), "4 and 3", "--seeds 4 --search-seeds 3"),
    ],
)
def test_too_few_reports_say_at_once_how_many_are_needed(params: Any, need: str, option: str, ready: Path) -> None:
    said = rf"it has 3 for final runs and 2 for the search, where {need} are needed; make them again with `ldp "
    with pytest.raises(ArtifactError, match=rf"{said}perturb .* {option}`, then `ldp denoise [^`-]*(--\w+ \S+ ?)*`"):
        run(ready, params)


def test_estimates_of_the_graph_that_stood_here_before_say_how_many_draws_are_needed(ready: Path) -> None:
    graph = small_graph()
    write_graph(dataclasses.replace(graph, features=graph.features[::-1].tocsr()), graph_dir(ready, NAME))
    said = "was made from another graph .*`ldp perturb [^`]* --epsilon 1 --seeds 4 --search-seeds 2`, then `ldp denoise"
    with pytest.raises(ArtifactError, match=said):
        run(ready, small_params(seeds=4))


def test_a_graph_without_labels_is_one_line(ready: Path, any_content: None) -> None:
    graph = small_graph()
    write_graph(dataclasses.replace(graph, labels=np.full(90, -1, np.int32), classes=0), graph_dir(ready, NAME))
    with pytest.raises(DataError, match="graph synthetic has 0 nodes with a label; to train"):
        run(ready)


def test_the_command_that_makes_it() -> None:
    assert make_command("cora", "base", "mb", 3) == "ldp train --dataset cora --method base --mechanism mb --epsilon 3"
