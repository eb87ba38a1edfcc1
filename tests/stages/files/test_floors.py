"""What the floor's learners have made of a graph is computed once, and nothing else changes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import files, small_graph, small_params

from graphldp import methods
from graphldp.experiment.cell import _Cell, learn_cell
from graphldp.experiment.plan import Devices, plan_of
from graphldp.experiment.resources import InMemory, Memo, Resources
from graphldp.graph import Graph
from graphldp.stages.files import floors
from graphldp.stages.files.floors import Floors
from graphldp.stages.grids.params import Params

GRAPH, PARAMS = small_graph(), small_params(points=1, seeds=2, search_seeds=1, epochs=4)
FLOOR = methods.method("structure").learners


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was trained: the phase and the learner of each batch."""
    out: list[str] = []
    plain = _Cell.train

    def counted(self: _Cell, batch: list[int], *rest: Any) -> Any:
        out.append(f"{self.phase} {dict(self.plan.points[batch[0]].options)['learner']}")
        return plain(self, batch, *rest)

    monkeypatch.setattr(_Cell, "train", counted)
    return out


def cell(
    name: str,
    epsilon: float,
    memo: Memo | None,
    graph: Graph = GRAPH,
    params: Params = PARAMS,
    planned: Params | None = None,
    **changes: Any,
) -> str:
    """Return all that a cell's artifact is made of, as bytes would have it.

    Reports and points are those of `planned` where it is given, as they are where people have already answered.
    """
    recipe, planned = methods.method(name), planned or params
    source = Devices(
        graph=graph, recipe=recipe, mechanism=recipe.mechanism, epsilon=epsilon, options={}, params=planned
    )
    resources = Resources(memo=memo, **changes)
    found = learn_cell(graph, plan_of(source, planned), params, device="cpu", resources=resources, whole=False)
    return json.dumps([found.rows, found.records, found.chosen, found.learners])


def of_people(trained: list[str]) -> bool:
    """Whether nothing was searched or compared but learners that people tell something."""
    return all("votes" in words or "features" in words for words in trained if not words.startswith("final"))


def test_no_byte_differs_and_the_floor_is_computed_once(trained: list[str], tmp_path: Path) -> None:
    plain = {(name, epsilon): cell(name, epsilon, None) for name, epsilon in (("structure", 0.0), ("frontier", 2.0))}
    for memo in (Floors(tmp_path), InMemory()):
        trained.clear()
        assert cell("structure", 0.0, memo) == plain["structure", 0.0]
        assert {words for words in trained if words.startswith("search")} == {f"search {name}" for name in FLOOR}
        trained.clear()
        assert cell("frontier", 2.0, memo) == plain["frontier", 2.0]
        assert of_people(trained)
        assert {"search votes", "playoff votes"} <= set(trained)
    trained.clear()
    cell("nonpriv", np.inf, Floors(tmp_path))
    assert of_people(trained)
    assert not any(words.startswith("final") for words in trained)
    folder = tmp_path / "floors" / GRAPH.name
    # A search each, a playoff of the first one and the best three, the floor's final runs, and nothing half-written.
    assert len(FLOOR) + 4 <= len(files(folder)) <= len(FLOOR) + 5


def test_what_is_not_the_same_computation_is_computed(trained: list[str], tmp_path: Path) -> None:
    memo = Floors(tmp_path)
    cell("structure", 0.0, memo)
    search = dataclasses.replace(PARAMS.search, seeds=2)
    others: list[dict[str, Any]] = [
        {"graph": small_graph(seed=1)},
        {"params": dataclasses.replace(PARAMS, search=search)},
        {"params": dataclasses.replace(PARAMS, seed=1)},
        {"params": dataclasses.replace(PARAMS, seed=2), "planned": PARAMS},  # the same reports and points, other splits
        {"params": dataclasses.replace(PARAMS, train=dataclasses.replace(PARAMS.train, epochs=7))},
        {"max_memory": 10**9},
    ]
    for other in others:
        trained.clear()
        cell("structure", 0.0, memo, **other)
        assert "search coin" in trained, other
    # More final runs are compared anew; the search is the same.
    trained.clear()
    cell("structure", 0.0, memo, params=dataclasses.replace(PARAMS, seeds=3))
    assert {words.partition(" ")[0] for words in trained} == {"playoff"}  # whose best runs are the final ones


def test_a_damaged_file_is_computed_anew(trained: list[str], tmp_path: Path) -> None:
    memo = Floors(tmp_path)
    whole = cell("structure", 0.0, memo)
    kept = sorted((tmp_path / "floors" / GRAPH.name).iterdir())
    before = [path.read_bytes() for path in kept]
    text = kept[1].read_text(encoding="utf-8")
    place = text.index('"validation_loss": ') + len('"validation_loss": 0.')
    damage = [text[:-100], text[:place] + "999" + text[place + 3 :], "[]", "{}", ""]
    for path, wrong in zip(kept, damage, strict=False):
        path.write_text(wrong, encoding="utf-8")
    trained.clear()
    assert cell("structure", 0.0, memo) == whole
    # The floor's final runs may be among them: those of the playoff, which are not trained again.
    assert len([words for words in trained if not words.startswith("final")]) >= len(damage) - 1
    assert [path.read_bytes() for path in kept] == before


def test_other_code_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, records = [{"point": 0, "validation_loss": np.inf, "epochs": None}], [{"points": [0]}]
    Floors(tmp_path).put("here", '{"a": 1}', rows, records)
    assert Floors(tmp_path).get("here", '{"a": 1}') == (rows, records)
    assert Floors(tmp_path).get("here", '{"a": 2}') is Floors(tmp_path).get("there", '{"a": 1}') is None
    monkeypatch.setattr(floors, "code_hash", lambda kind: "other")
    assert Floors(tmp_path).get("here", '{"a": 1}') is None


@pytest.mark.parametrize("error", [OSError(30, "Read-only file system"), OSError(121, "Remote I/O error")])
def test_where_nothing_can_be_written_the_work_goes_on(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **given: Any) -> None:
        raise error

    monkeypatch.setattr(Path, "mkdir", refuse)
    said: list[str] = []
    memo = Floors(tmp_path, said.append)
    for number in range(2):
        memo.put("here", f'{{"a": {number}}}', [], [])
    assert said == [
        f"note: {tmp_path}/floors/here cannot be written ({error.strerror}): the next time the floor's learners are "
        "trained again"
    ]
    Floors(tmp_path).put("here", "{}", [], [])
