"""Privacy levels and feature scores that people bring, and scores from a first private round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from graphldp.datasets.synthetic import synthetic
from graphldp.errors import DataError, GraphLDPError, OptionError
from graphldp.ledger import Ledger, ledger_from_meta
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import write_graph
from graphldp.stages.files.levels_scores import Extras, read_levels, read_scores
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.perturb import perturb_graph
from graphldp.stages.select import select

NODES, FEATURES = 40, 12


@pytest.fixture
def data(tmp_path: Path) -> Path:
    graph = synthetic(nodes=NODES, dimensions=FEATURES, words=4, classes=2, degree=4, structure=0.9, features=0.9)
    write_graph(graph, tmp_path / "graphs" / graph.name)
    return tmp_path


def table(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def levels(path: Path, values: list[int]) -> Path:
    # Rows stand in reverse: the file's order means nothing.
    return table(path, node=[str(node) for node in range(NODES)][::-1], level=values[::-1])


def test_levels_are_those_of_the_column_whatever_its_order(data: Path) -> None:
    wanted = [1 + node % 3 for node in range(NODES)]
    extras = Extras(levels=levels(data / "levels.parquet", wanted))
    path = perturb_graph(
        Cell(dataset="synthetic", mechanism="ppm-public", epsilon=1.0, options={"levels": 3}),
        data=data,
        seeds=[0, 1],
        extras=extras,
    )
    file = AnswersFile(path, "make")
    for seed in (0, 1):
        np.testing.assert_array_equal(file.load(seed).level, wanted)
    # Budgets 1, 2, 4 by level: public policy, so that the users' mean is exactly that of the column.
    spend = Ledger.from_json(file.meta["ledger"]).once().total()
    assert (spend.epsilon, spend.max) == (1.0, 4.0)
    assert spend.mean == pytest.approx(np.mean(np.array([1.0, 2.0, 4.0])[np.array(wanted) - 1]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([9] + [1] * (NODES - 1), "outside 1..3"),
        ([0] + [1] * (NODES - 1), "outside 1..3"),
    ],
)
def test_a_level_outside_the_policy_is_refused(data: Path, values: list[int], message: str) -> None:
    extras = Extras(levels=levels(data / "levels.parquet", values))
    with pytest.raises(DataError, match=message):
        perturb_graph(
            Cell(dataset="synthetic", mechanism="ppm-safe", epsilon=1.0, options={"levels": 3}),
            data=data,
            seeds=[0],
            extras=extras,
        )
    assert not (data / "perturbed").exists() or not list((data / "perturbed").rglob("*.parquet"))


def test_levels_of_other_nodes_and_missing_ones_are_refused(data: Path, tmp_path: Path) -> None:
    from graphldp.stages.files.graphs import read_graph

    graph = read_graph(data / "graphs" / "synthetic")
    with pytest.raises(DataError, match="every one of the 40 nodes needs one row, got 39"):
        read_levels(table(tmp_path / "a.parquet", node=[str(k) for k in range(39)], level=[1] * 39), graph)
    with pytest.raises(DataError, match="row 40 names a node that the graph does not have"):
        read_levels(table(tmp_path / "b.parquet", node=[*map(str, range(39)), "x"], level=[1] * 40), graph)
    with pytest.raises(DataError, match="whole numbers"):
        read_levels(table(tmp_path / "c.parquet", node=[*map(str, range(40))], level=[1.5] * 40), graph)
    csv = tmp_path / "d.csv"
    csv.write_text("node,level\n" + "".join(f"{node},2\n" for node in range(40)))
    assert set(read_levels(csv, graph)) == {2}


def test_levels_for_a_mechanism_without_levels_are_refused(data: Path) -> None:
    extras = Extras(levels=levels(data / "levels.parquet", [1] * NODES))
    with pytest.raises(GraphLDPError, match="has no privacy levels"):
        perturb_graph(Cell(dataset="synthetic", mechanism="mb", epsilon=1.0), data=data, seeds=[0], extras=extras)


def test_scores_share_the_budget_out(data: Path, tmp_path: Path) -> None:
    scores = table(
        tmp_path / "s.parquet", feature=[str(j) for j in range(FEATURES)], importance=[9.0] + [1.0] * (FEATURES - 1)
    )
    path = perturb_graph(
        Cell(dataset="synthetic", mechanism="featurerr", epsilon=6.0),
        data=data,
        seeds=[0],
        extras=Extras(scores=scores),
    )
    theta = read_meta(path, "make")["options"]["theta"]
    assert theta[0] == pytest.approx(9 * theta[1])
    assert sum(theta) == pytest.approx(1.0)
    with pytest.raises(OptionError, match="featurerr does; mb does not"):
        perturb_graph(
            Cell(dataset="synthetic", mechanism="mb", epsilon=6.0), data=data, seeds=[0], extras=Extras(scores=scores)
        )


def test_scores_of_unknown_origin_cost_an_unknown_amount(data: Path, tmp_path: Path) -> None:
    first = perturb_graph(Cell(dataset="synthetic", mechanism="mb", epsilon=2.0), data=data, seeds=[0])
    made = select(first, data=data, params=Params(), by="fda", steps=1, output=tmp_path / "scores.parquet")
    csv, plain = tmp_path / "scores.csv", tmp_path / "plain.parquet"
    bare = read_table(made, "make").replace_schema_metadata(None)
    pacsv.write_csv(bare, csv)
    pq.write_table(bare, plain)

    def ledger(scores: Path, cost: float | None = None) -> str:
        extras = Extras(scores=scores, scores_epsilon=cost)
        path = perturb_graph(
            Cell(dataset="synthetic", mechanism="featurerr", epsilon=3.0), data=data, seeds=[0], extras=extras
        )
        return Ledger.from_json(read_meta(path, "make")["ledger"]).text()

    for scores in (csv, plain):
        unknown = "importance unknown + features 3.0 = unknown, and at least 3.0"
        assert ledger(scores) == f"total epsilon per user: {unknown}"
        assert ledger(scores, 2.0) == "total epsilon per user: importance 2.0 + features 3.0 = 5.0"
        assert ledger(scores, 0.0) == "total epsilon per user: features 3.0"
    assert ledger(made) == "total epsilon per user: features 2.0 + features 3.0 = 5.0"
    with pytest.raises(OptionError, match="says itself what its scores have cost"):
        ledger(made, 0.0)
    with pytest.raises(OptionError, match="give both or neither"):
        perturb_graph(
            Cell(dataset="synthetic", mechanism="mb", epsilon=1.0),
            data=data,
            seeds=[0],
            extras=Extras(scores_epsilon=1.0),
        )


def test_other_levels_are_another_release(data: Path) -> None:
    def ledger(name: str, wanted: list[int], seeds: list[int]) -> list[dict[str, object]]:
        extras = Extras(levels=levels(data / "levels.parquet", wanted))
        path = perturb_graph(
            Cell(dataset="synthetic", mechanism=name, epsilon=1.0, options={"levels": 2}),
            data=data,
            seeds=seeds,
            extras=extras,
        )
        return list(read_meta(path, "make")["ledger"])

    # As many people at either level, so that mean and maximum are the same; only who has which differs.
    half, other = [1, 2] * (NODES // 2), [2, 1] * (NODES // 2)
    for name in ("ppm", "ppm-safe", "ppm-public"):
        one, two, more = ledger(name, half, [0]), ledger(name, other, [0]), ledger(name, half, [0, 1])
        assert ledger_from_meta([{"ledger": one}, {"ledger": two}]).total().epsilon == 2.0
        assert ledger_from_meta([{"ledger": one}, {"ledger": one}]).total().epsilon == 1.0
        assert ledger_from_meta([{"ledger": one}, {"ledger": more}]).total().epsilon == 2.0


def test_levels_that_are_given_and_private_bound_the_mean(data: Path) -> None:
    extras = Extras(levels=levels(data / "levels.parquet", [3] * NODES))
    path = perturb_graph(
        Cell(dataset="synthetic", mechanism="ppm-safe", epsilon=1.0, options={"levels": 3}),
        data=data,
        seeds=[0],
        extras=extras,
    )
    meta = read_meta(path, "make")
    assert meta["epsilon_mean"] == meta["epsilon_max"] == meta["claim"]["epsilon"] == 2.5


def test_scores_without_a_score_are_refused(data: Path, tmp_path: Path) -> None:
    from graphldp.stages.files.graphs import read_graph

    graph = read_graph(data / "graphs" / "synthetic")
    bare = table(tmp_path / "s.parquet", feature=[str(j) for j in range(FEATURES)])
    with pytest.raises(DataError, match="importance or sensitivity"):
        read_scores(bare, graph)
    hole = table(
        tmp_path / "t.parquet", feature=[str(j) for j in range(FEATURES)], importance=[float("nan")] * FEATURES
    )
    with pytest.raises(DataError, match="missing or not finite"):
        read_scores(hole, graph)


def test_a_first_round_is_paid_for_in_the_second(data: Path, tmp_path: Path) -> None:
    first = perturb_graph(Cell(dataset="synthetic", mechanism="mb", epsilon=2.0), data=data, seeds=[0])
    scores = select(first, data=data, params=Params(), by="fda", steps=1, output=tmp_path / "scores.parquet")
    rows = read_table(scores, "make").to_pylist()
    assert sorted(row["rank"] for row in rows) == list(range(1, FEATURES + 1))
    best = min(rows, key=lambda row: row["rank"])
    assert best["importance"] == max(row["importance"] for row in rows)
    second = perturb_graph(
        Cell(dataset="synthetic", mechanism="featurerr", epsilon=3.0),
        data=data,
        seeds=[0],
        extras=Extras(scores=scores),
    )
    ledger = Ledger.from_json(read_meta(second, "make")["ledger"])
    assert ledger.text() == "total epsilon per user: features 2.0 + features 3.0 = 5.0"


def test_selection_never_sees_a_label_outside_training(data: Path, tmp_path: Path) -> None:
    from graphldp.experiment.parts import split_of
    from graphldp.stages.files.graphs import read_graph

    first = perturb_graph(Cell(dataset="synthetic", mechanism="mb", epsilon=4.0), data=data, seeds=[0])
    before = read_table(
        select(first, dataset="synthetic", data=data, params=Params(), output=tmp_path / "a.parquet"), "make"
    ).column("importance")
    folder = data / "graphs" / "synthetic"
    graph = read_graph(folder)
    split = split_of(graph, Params(), 0)
    graph.labels[np.concatenate([split.validation, split.test])] ^= 1
    write_graph(graph, folder)
    after = read_table(
        select(first, dataset="synthetic", data=data, params=Params(), output=tmp_path / "b.parquet"), "make"
    ).column("importance")
    assert before.equals(after)
    graph.labels[split.train] ^= np.arange(len(split.train)) % 2
    write_graph(graph, folder)
    changed = read_table(
        select(first, dataset="synthetic", data=data, params=Params(), output=tmp_path / "c.parquet"), "make"
    ).column("importance")
    assert not before.equals(changed)
