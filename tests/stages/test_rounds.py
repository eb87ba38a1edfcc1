"""Methods of two rounds: what they spend, what directs the second round, and the same from files and in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from cell_factory import NAME, accuracies, calibrate, run, small_graph, small_params, store

from graphldp import methods
from graphldp.client import Reports
from graphldp.errors import ArtifactError, DataError, GraphLDPError, OptionError
from graphldp.experiment.options import report_seeds
from graphldp.experiment.parts import split_of
from graphldp.experiment.rounds import TwoRounds, joined
from graphldp.graph import Graph
from graphldp.ledger import Ledger
from graphldp.methods import Method, Rounds
from graphldp.server import rectify
from graphldp.stages.artifacts import read_meta, read_table
from graphldp.stages.denoise import denoise
from graphldp.stages.extras import Extras
from graphldp.stages.graphs import read_graph
from graphldp.stages.models import load_model
from graphldp.stages.params import Params
from graphldp.stages.paths import graph_dir, reports_path
from graphldp.stages.perturb import perturb_file, perturb_graph
from graphldp.stages.predictions import predict_reports
from graphldp.stages.reports import CalibratedFile, ReportsFile
from graphldp.stages.select import select
from graphldp.stages.train import train

NODES, D, INFORMATIVE = 240, 30, (3, 11, 20)


def telling_graph(seed: int = 0) -> Graph:
    """Return a graph of two classes that three of 30 features tell apart, and edges mostly inside a class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, NODES).astype(np.int32)
    features = (rng.random((NODES, D)) < 0.3).astype(np.float32)
    for j in INFORMATIVE:
        features[:, j] = rng.random(NODES) < np.where(labels == 1, 0.9, 0.1)
    pairs = {(int(u), int(v)) for u, v in np.sort(rng.integers(0, NODES, (6 * NODES, 2)), axis=1) if u < v}
    kept = [pair for pair in sorted(pairs) if labels[pair[0]] == labels[pair[1]] or rng.random() < 0.1]
    return Graph(
        name="telling",
        features=sp.csr_array(features),
        edges=np.array(kept, dtype=np.int32).T,
        labels=labels,
        classes=2,
        low=0.0,
        high=1.0,
    )


def rounds_of(graph: Graph, epsilon: float, mechanism: str = "pm", **changes: Any) -> TwoRounds:
    options = changes.pop("options", {})
    rounds = Rounds(**{"score_by": "fda", **changes})
    return TwoRounds.of(graph, rounds, mechanism, epsilon, Params(), options)


def same(a: Reports, b: Reports) -> bool:
    return np.array_equal(a.value, b.value) and np.array_equal(np.asarray(a.index), np.asarray(b.index))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path / "data"


@dataclasses.dataclass
class Files:
    """Every file of a cell's way through two rounds."""

    first: Path
    scores: Path
    second: Path
    calibrated: Path


def stages(
    data: Path,
    params: Params,
    method: str = "togl-fda",
    mechanism: str = "pm",
    epsilon: float = 8.0,
    levels: Path | None = None,
    **changes: Any,
) -> Files:
    """Take a cell through its stages, one file after another."""
    recipe = methods.method(method).but(changes)
    assert recipe.rounds is not None
    seeds, half = report_seeds(params.seeds, params.search.seeds), epsilon / 2
    first = perturb_graph(NAME, mechanism, half, data=data, seeds=seeds, root=params.seed, extras=Extras(levels=levels))
    by, steps = recipe.rounds.score_by, recipe.rounds.score_steps
    scores = select(
        first, data=data, params=params, by=by, steps=steps, seed=None, output=data / f"{mechanism}-{by}.parquet"
    )
    second = perturb_graph(
        NAME,
        mechanism,
        half,
        data=data,
        seeds=seeds,
        root=params.seed,
        options={"rho": recipe.rounds.rho},
        extras=Extras(levels=levels, directed=scores),
    )
    calibrated = denoise(
        NAME, method, mechanism, epsilon, data=data, steps=params.search.steps, changes=changes, first=first
    )
    return Files(first, scores, second, calibrated)


# What is spent.


@pytest.mark.parametrize("mechanism", ["pm", "mb"])
@pytest.mark.parametrize("first", [0.5, 0.25])
def test_both_rounds_together_spend_epsilon(mechanism: str, first: float) -> None:
    both = rounds_of(small_graph(), 6.0, mechanism, first=first)
    one, two = both.device, both.second(range(small_graph().dimensions))
    assert one.epsilon == pytest.approx(6 * first)
    assert one.epsilon + two.epsilon == pytest.approx(6.0)
    assert one.privacy_loss() + two.privacy_loss() == pytest.approx(6.0)


def test_the_files_say_what_both_rounds_have_spent(data: Path) -> None:
    params = small_params()
    files = stages(data, params, epsilon=6.0)
    first, second = read_meta(files.first, "make"), read_meta(files.second, "make")
    assert first["release"] != second["release"]
    draws = len(first["seeds"])
    whole = Ledger.from_json(first["ledger"])
    assert whole.text() == f"total epsilon per user: features 3.0 x {draws} draws = {3.0 * draws}"
    assert whole.once().text() == "total epsilon per user: features 3.0"
    both = f"total epsilon per user: features 3.0 x {draws} draws + features 3.0 x {draws} draws = {6.0 * draws}"
    assert Ledger.from_json(second["ledger"]).text() == both
    calibrated = read_meta(files.calibrated, "make")
    assert Ledger.from_json(calibrated["ledger"]).text() == both
    assert calibrated["epsilon"] == calibrated["claim"]["epsilon"] == 6.0
    assert calibrated["epsilon_exact"] == pytest.approx(6.0)
    runs = read_meta(train(NAME, "togl-fda", None, 6.0, data=data, params=params), "make")
    assert Ledger.from_json(runs["ledger"]).once().total().epsilon == 6.0
    assert Ledger.from_json(runs["ledger"]).total().epsilon == 6.0 * (params.seeds + params.search.seeds)
    assert runs["epsilon"] == 6.0
    assert runs["epsilon_exact"] == pytest.approx(6.0)
    assert runs["rounds"] == dataclasses.asdict(Rounds(score_by="fda"))


def test_the_rounds_are_drawn_independently() -> None:
    # With nothing directed both rounds have one mechanism and one budget: one stream would give one report twice.
    both = rounds_of(small_graph(), 8.0, rho=0.0)
    one, two = both.reports(0)
    assert both.device.m == both.last.m > 1
    assert not np.array_equal(np.asarray(one.index), np.asarray(two.index))
    matches = (np.asarray(one.index) == np.asarray(two.index)).mean()
    assert matches < 0.3


# What directs the second round.


@pytest.mark.parametrize("method", ["togl-fda", "togl-sma"])
def test_selection_reads_the_labels_of_its_own_training_nodes_alone(method: str) -> None:
    graph = telling_graph()
    rounds = methods.method(method).rounds
    assert rounds is not None
    split = split_of(graph, Params(), 0)

    def drawn(labels: np.ndarray) -> Reports:
        changed = dataclasses.replace(graph, labels=labels.astype(np.int32))
        return TwoRounds.of(changed, rounds, "pm", 40.0, Params()).reports(0)[1]

    hidden, shown = graph.labels.copy(), graph.labels.copy()
    others = np.concatenate([split.validation, split.test])
    hidden[others] = 1 - hidden[others]
    shown[split.train] = np.random.default_rng(5).permutation(shown[split.train])
    before = drawn(graph.labels)
    after = drawn(hidden)
    assert before.meta == after.meta
    assert same(before, after)
    assert drawn(shown).meta["options"]["ranking"] != before.meta["options"]["ranking"]


def test_each_seed_has_the_ranking_of_its_own_split(data: Path) -> None:
    files = stages(data, small_params(seeds=3), epsilon=20.0)
    rankings = read_meta(files.second, "make")["options"]["rankings"]
    assert set(rankings) == {"0", "1", "2", "-1", "-2"}
    assert len({tuple(ranking) for ranking in rankings.values()}) == 5
    file = ReportsFile(files.second, "make")
    for seed in (2, -1):
        reports = file.load(seed)
        assert reports.meta["options"]["ranking"] == rankings[str(seed)]
        # Everybody reports the ranked features.
        assert all((np.asarray(reports.index) == j).any(axis=1).all() for j in rankings[str(seed)])


@pytest.mark.parametrize("score_by", ["fda", "sma", "mi", "chi-square"])
def test_the_few_features_that_matter_are_found_where_the_budget_is_large(score_by: str) -> None:
    graph = telling_graph()
    both = rounds_of(graph, 60.0, score_by=score_by, score_steps=1)
    first, second = both.reports(0)
    assert both.device.m == 12
    assert set(both.scores(first, 0).top(3)) == set(INFORMATIVE)
    assert len(second.meta["options"]["ranking"]) == 6
    assert set(INFORMATIVE) < set(second.meta["options"]["ranking"])
    assert all((np.asarray(second.index) == j).any(axis=1).all() for j in INFORMATIVE)


def test_with_one_feature_a_round_nothing_is_directed(data: Path) -> None:
    both = rounds_of(read_graph(graph_dir(data, NAME)), 2.0)
    assert both.last.m == 1
    _, second = both.reports(0)
    assert second.meta["options"]["ranking"] == []
    assert len(np.unique(np.asarray(second.index))) > 12
    params = small_params(seeds=2, steps=(1,), points=2)
    (row,) = run(NAME, "togl-fda", None, 2.0, data=data, params=params, references=False)
    assert row.m == 1
    assert np.isfinite(row.accuracy).all()
    # All of the second round can be directed: everybody then reports the best feature alone.
    whole = rounds_of(read_graph(graph_dir(data, NAME)), 2.0, rho=1.0)
    (best,) = whole.reports(0)[1].meta["options"]["ranking"]
    assert (np.asarray(whole.reports(0)[1].index) == best).all()


# The estimate.


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("mechanism", ["pm", "mb"])
def test_the_estimate_is_unbiased_for_a_given_ranking(reuse: bool, mechanism: str) -> None:
    copies, d = 40_000, 8
    values = np.linspace(0.0, 1.0, d, dtype=np.float32)
    rows = sp.csr_array(np.tile(values, (copies, 1)))
    graph = dataclasses.replace(small_graph(dimensions=d), features=sp.csr_array(np.zeros((90, d), np.float32)))
    both = rounds_of(graph, 14.0, mechanism)
    directed = both.second((5, 2, 0, 7, 1))
    assert 0 < directed.fixed_count() < both.last.m < d
    rng = np.random.default_rng(3)
    pair = both.device.perturb(rows, rng), directed.perturb(rows, rng)
    estimate = joined(*pair, rounds=Rounds(score_by="fda", reuse=reuse)).dense()
    error = estimate.std(axis=0) / np.sqrt(copies)
    assert (np.abs(estimate.mean(axis=0) - values) < 5 * error).all()
    assert (error < 0.02).all()


def test_the_printed_rectification_inflates_what_everybody_reports_and_shrinks_the_rest() -> None:
    copies, d = 20_000, 8
    rows = sp.csr_array(np.full((copies, d), 1.0, dtype=np.float32))
    both = rounds_of(small_graph(dimensions=d), 14.0, rectification="paper")
    directed, rng = both.second((5, 2, 0, 7, 1)), np.random.default_rng(4)
    pair = both.device.perturb(rows, rng), directed.perturb(rows, rng)
    fill, m = directed.device.fill_value, both.last.m
    away = joined(*pair, rounds=both.rounds).dense().mean(axis=0) - fill
    right = joined(*pair, rounds=Rounds(score_by="fda")).dense().mean(axis=0) - fill
    np.testing.assert_allclose(right, 1.0 - fill, atol=0.03)
    factor = directed.inclusion() * d / m
    assert factor.max() == d / m > 1.0 > factor.min()
    np.testing.assert_allclose(away, right * factor, rtol=1e-4)


def test_a_ranking_flatters_the_round_that_it_was_made_from_and_no_other() -> None:
    rng = np.random.default_rng(1)
    noise = (rng.random((NODES, D)) < 0.3).astype(np.float32)  # no feature tells the classes apart
    graph = dataclasses.replace(telling_graph(), features=sp.csr_array(noise))
    both = rounds_of(graph, 20.0, score_steps=0)
    gaps: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(40):
        first, second = both.reports(seed)
        train_nodes = split_of(graph, Params(), seed).train
        best = both.scores(first, seed).top(1)[0]
        label = graph.labels[train_nodes]

        def apart(
            values: np.ndarray, best: int = best, nodes: np.ndarray = train_nodes, y: np.ndarray = label
        ) -> float:
            return float(values[nodes][y == 1, best].mean() - values[nodes][y == 0, best].mean())

        sign = np.sign(apart(rectify(first).dense()))
        for reuse, found in gaps.items():
            found.append(
                sign * (apart(joined(first, second, rounds=Rounds(score_by="fda", reuse=reuse)).dense()) - apart(noise))
            )
    error = {reuse: np.std(found) / np.sqrt(len(found)) for reuse, found in gaps.items()}
    assert abs(np.mean(gaps[False])) < 4 * error[False]
    assert np.mean(gaps[True]) > 4 * error[True]


def test_a_reused_round_lowers_the_variance_of_every_feature() -> None:
    copies, d = 20_000, 8
    rows = sp.csr_array(np.full((copies, d), 0.5, dtype=np.float32))
    both = rounds_of(small_graph(dimensions=d), 14.0)
    directed, rng = both.second((5, 2, 0, 7, 1)), np.random.default_rng(4)
    one, two = both.device.perturb(rows, rng), directed.perturb(rows, rng)
    spread = {
        reuse: joined(one, two, rounds=Rounds(score_by="fda", reuse=reuse)).dense().var(axis=0)
        for reuse in (False, True)
    }
    random = [j for j in range(d) if j not in directed.fixed()]
    assert (spread[True][random] < 0.75 * spread[False][random]).all()
    assert (spread[True] < spread[False]).all()


@pytest.mark.parametrize("mechanism", ["mb", "sw", "cldp", "ppm-public", "pldp"])
@pytest.mark.parametrize("reuse", [False, True])
def test_other_mechanisms_take_both_rounds(mechanism: str, reuse: bool, data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    both = rounds_of(graph, 8.0, mechanism, reuse=reuse)
    first, second = both.reports(0)
    if first.level is not None:
        np.testing.assert_array_equal(first.level, np.asarray(second.level))
    estimate = both.estimate(0, methods.method("togl-fda").calibration(1, both.device, 4.0))
    assert len(set(np.diff(estimate.matrix.indptr))) == 1
    assert np.isfinite(estimate.matrix.data).all()
    params = small_params(seeds=2, steps=(1,), points=2, epochs=5)
    changes = {"reuse": reuse}
    (row,) = run(NAME, "togl-fda", mechanism, 8.0, data=data, params=params, changes=changes, references=False)
    assert row.name == f"togl-fda-{mechanism}"
    assert np.isfinite(row.accuracy).all()


# Memory and files.


@pytest.mark.parametrize(
    ("method", "mechanism", "changes"),
    [
        ("togl-fda", "pm", {}),
        ("togl-sma", "pm", {}),
        ("togl-fda", "mb", {"reuse": True, "rho": 0.25, "score_steps": 1, "normalization": "mean"}),
        ("togl-sma", "pm", {"score_by": "mi", "filter": "hoa", "reuse": True}),
    ],
)
def test_the_files_and_memory_give_the_same(method: str, mechanism: str, changes: dict[str, Any], data: Path) -> None:
    params = small_params(seeds=2, steps=(1, 2))
    stages(data, params, method, mechanism, 8.0, **changes)
    output = train(NAME, method, mechanism, 8.0, data=data, params=params)
    (row,) = run(NAME, method, mechanism, 8.0, data=data, params=params, changes=changes, references=False)
    np.testing.assert_array_equal(row.accuracy, accuracies(output))
    (again,) = run(NAME, method, mechanism, 8.0, data=data, params=params, changes=changes, references=False)
    np.testing.assert_array_equal(row.accuracy, again.accuracy)
    assert row.epsilon == 8.0


def test_public_levels_take_both_rounds_from_files(data: Path) -> None:
    levels = data / "levels.parquet"
    nodes = small_graph().nodes
    pq.write_table(
        pa.table({"node": [str(k) for k in range(nodes)], "level": [1 + k % 5 for k in range(nodes)]}), levels
    )
    files = stages(
        data, small_params(), mechanism="ppm-public", epsilon=4.0, levels=levels, reuse=True, filter="flexprop"
    )
    file = CalibratedFile(files.calibrated, "make")
    np.testing.assert_array_equal(file.load(0).weights, [1 + k % 5 for k in range(nodes)])
    spent = Ledger.from_json(file.meta["ledger"]).once().total()
    assert (spent.epsilon, spent.max) == (4.0, 64.0)
    with pytest.raises(OptionError, match="give both --levels FILE"):
        perturb_graph(NAME, "ppm-public", 2.0, data=data, seeds=[0], extras=Extras(directed=files.scores))
    other = data / "other.parquet"
    pq.write_table(pa.table({"node": [str(k) for k in range(nodes)], "level": [1] * nodes}), other)
    extras = Extras(levels=other, directed=files.scores)
    perturb_graph(NAME, "ppm-public", 2.0, data=data, seeds=[0], extras=extras)
    with pytest.raises(ArtifactError, match="other privacy levels"):
        denoise(NAME, "togl-fda", "ppm-public", 4.0, data=data, steps=(1,))


def test_a_kept_model_knows_its_own_second_round(data: Path, tmp_path: Path) -> None:
    params = small_params(seeds=2, steps=(1,))
    files = stages(data, params, epsilon=8.0)
    train(NAME, "togl-fda", None, 8.0, data=data, params=params, models=tmp_path / "model")
    kept = load_model(tmp_path / "model")
    assert kept.spent.once().total().epsilon == 8.0
    assert kept.spent.total().epsilon == 8.0 * (params.seeds + params.search.seeds)
    predictions = predict_reports(tmp_path / "model", files.second, data=data, output=tmp_path / "p.parquet")
    # Its own second round is a draw that it has counted already.
    assert Ledger.from_json(read_meta(predictions, "make")["ledger"]) == kept.spent
    guess = read_table(predictions, "make").column("class").to_numpy()
    graph = read_graph(graph_dir(data, NAME))
    test = split_of(graph, params, int(kept.about["seed"])).test
    assert float((guess[test] == graph.labels[test]).mean()) == pytest.approx(kept.about["test_accuracy"])


def test_a_model_of_both_rounds_is_not_kept(data: Path, tmp_path: Path) -> None:
    params = small_params(seeds=2, steps=(1,), points=2)
    stages(data, params, reuse=True)
    with pytest.raises(OptionError, match="a model of both rounds"):
        train(NAME, "togl-fda", None, 8.0, data=data, params=params, models=tmp_path / "model")
    assert not (tmp_path / "model").exists()


# What does not fit.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rho": 1.5}, r"rho .* is from 0 to 1, got 1.5"),
        ({"rho": True}, r"rho .* is from 0 to 1, got True"),
        ({"first": 1}, r"first .* is between 0 and 1, got 1"),
        ({"reuse": "yes"}, "reuse .* is true or false, got 'yes'"),
        ({"score_by": "fdaa"}, "unknown score_by 'fdaa'; did you mean 'fda'"),
        ({"score_steps": -1}, "score_steps must be a whole number of at least 0, got -1"),
        ({"m_from": "half"}, "m_from must be one of round, total; got 'half'"),
        ({"rectification": "none"}, "rectification must be one of inclusion, paper; got 'none'"),
        ({"rectification": "paper", "reuse": True}, "leave one of them out"),
        ({"before": 0.5}, "no one threshold fits both"),
        ({"tau": 0.5}, "togl-fda' has none; say before"),
        ({"steps": 3}, "--steps, or search.steps"),
    ],
)
def test_a_wrong_part_is_one_line(changes: dict[str, Any], message: str, data: Path) -> None:
    with pytest.raises(OptionError, match=message) as error:
        run(NAME, "togl-fda", None, 4.0, data=data, params=small_params(), changes=changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "options", "message"),
    [
        ("pm", 4.0, {"rho": 0.3}, "rho is a part of the method: --set method.rho=0.3"),
        ("pm", 4.0, {"epsilon": 3}, "epsilon is no further option of pm"),
        ("pm", 0.0, {}, "two rounds need a finite budget above 0, got 0"),
        ("ppm", 4.0, {}, "ppm cannot be directed: users of a known level do not choose dimensions alike"),
        ("privset", 4.0, {}, "privset cannot be directed: which dimensions it reports is not chosen apart from"),
        ("1b", 4.0, {}, "1b reports every dimension"),
        ("ppm-public", 4.0, {"m": 3}, "m"),
    ],
)
def test_what_cannot_have_two_rounds_is_one_line(
    mechanism: str, epsilon: float, options: dict[str, Any], message: str, data: Path
) -> None:
    with pytest.raises(GraphLDPError, match=message) as error:
        run(NAME, "togl-fda", mechanism, epsilon, data=data, params=small_params(), options=options)
    assert "\n" not in str(error.value)


def test_only_methods_of_two_rounds_have_their_options() -> None:
    with pytest.raises(OptionError, match="filter kprop has no option 'rho'"):
        methods.method("lpgnn").but({"rho": 0.5}).calibration(1, rounds_of(small_graph(), 4.0).device, 4.0)
    with pytest.raises(OptionError, match="no one threshold fits both"):
        Method(name="x", summary="", mechanism="pm", rounds=Rounds(score_by="fda"), after=0.5)


def test_m_from_the_total_reports_more_features(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    own, total = rounds_of(graph, 10.0), rounds_of(graph, 10.0, m_from="total")
    assert own.device.m == own.last.m == 2
    assert total.device.m == total.last.m == 4
    assert total.device.privacy_loss() + total.second(range(24)).privacy_loss() == pytest.approx(10.0)


def edit(files: Files, data: Path, params: Params, **changes: Any) -> Callable[[], Any]:
    values = {"first": files.first, "steps": params.search.steps, "data": data, **changes}
    epsilon = values.pop("epsilon", 8.0)
    return lambda: denoise(NAME, values.pop("method", "togl-fda"), "pm", epsilon, **values)


def test_rounds_that_do_not_fit_are_refused(data: Path, tmp_path: Path) -> None:
    params = small_params()
    files = stages(data, params)
    files.calibrated.unlink()
    strange = perturb_graph(NAME, "pm", 4.0, data=data, seeds=[0], root=7, output=tmp_path / "strange.parquet")
    third = perturb_graph(NAME, "pm", 3.0, data=data, seeds=[0], output=tmp_path / "third.parquet")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"first": strange}, "was directed by other reports than"),
        ({"first": third}, "has spent epsilon 3.0, where this round's share of 8.0 is 4.0"),
        ({"first": files.second}, "is directed: it is the other round"),
        ({"reports": files.first}, "is not directed: it is the other round"),
        ({"changes": {"rho": 0.25}}, "directed with rho 0.5, and the method means 0.25; say --set method.rho=0.5"),
        ({"changes": {"score_steps": 1}}, "directed with score_steps 2"),
        ({"changes": {"score_by": "mi"}}, "there is no|does not exist"),
        ({"changes": {"m_from": "total"}}, "was drawn with m_from round, and the method means total"),
        ({"changes": {"first": 0.25}, "reports": files.second}, "this round's share of 8.0 is 2.0"),
        ({"method": "lpgnn", "epsilon": 4.0}, "'lpgnn' has one round: leave --first out"),
    ]
    for changes, message in cases:
        with pytest.raises(GraphLDPError, match=message) as error:
            edit(files, data, params, **changes)()
        assert "\n" not in str(error.value)
    assert not files.calibrated.exists()
    with pytest.raises(OptionError, match="ranking"):
        denoise(NAME, "lpgnn", "pm", 4.0, data=data, steps=(1,), reports=files.second)


def test_the_ranking_of_other_labels_than_training_s_is_refused(data: Path, tmp_path: Path) -> None:
    params = small_params(seeds=2)
    files = stages(data, params)
    fewer = dataclasses.replace(params, train=dataclasses.replace(params.train, train_fraction=0.1))
    with pytest.raises(ArtifactError, match=r"other splits: train_fraction was 0.5, and is 0.1 now"):
        train(NAME, "togl-fda", None, 8.0, data=data, params=fewer)
    with pytest.raises(ArtifactError, match="other splits: root was 0, and is 3 now"):
        train(NAME, "togl-fda", None, 8.0, data=data, params=dataclasses.replace(params, seed=3))
    with pytest.raises(ArtifactError, match="directed by scores already"):
        select(files.second, data=data, params=params, output=tmp_path / "again.parquet")


def test_scores_that_do_not_fit_are_refused(data: Path, tmp_path: Path) -> None:
    params = small_params(seeds=2)
    files = stages(data, params)
    one = select(files.first, data=data, params=params, output=tmp_path / "one.parquet")
    with pytest.raises(ArtifactError, match=r"for the seeds \[0\], not 1: .* `ldp select --all-seeds`"):
        perturb_graph(NAME, "pm", 4.0, data=data, seeds=[0, 1], extras=Extras(directed=one))
    with pytest.raises(DataError, match="holds the scores of several seeds"):
        perturb_graph(NAME, "featurerr", 4.0, data=data, seeds=[0], extras=Extras(scores=files.scores))
    with pytest.raises(OptionError, match="give one of them"):
        perturb_graph(NAME, "pm", 4.0, data=data, seeds=[0], extras=Extras(scores=one, directed=one))
    with pytest.raises(ArtifactError, match="has kind 'reports' where 'scores' was asked for"):
        perturb_graph(NAME, "pm", 4.0, data=data, seeds=[0], extras=Extras(directed=files.first))
    with pytest.raises(OptionError, match="--directed goes with --dataset"):
        perturb_file(
            tmp_path / "own.csv",
            "pm",
            4.0,
            low=0,
            high=1,
            name="own",
            data=data,
            seeds=[0],
            extras=Extras(directed=one),
        )
    with pytest.raises(OptionError, match="rho"):
        perturb_graph(NAME, "pm", 4.0, data=data, seeds=[0], options={"rho": 2}, extras=Extras(directed=one))


def test_one_round_s_files_are_as_they_were(data: Path) -> None:
    calibrate(data, small_params(), "lpgnn", "pm", 8.0)
    meta = read_meta(reports_path(data, NAME, "pm", 8.0), "make")
    assert meta["random"]["address"] == ["perturb", "dataset", "mechanism", "epsilon", "seed", "shape"]
    assert "selection" not in meta


@pytest.mark.parametrize("mechanism", ["pm", "mb", "sw", "cldp", "pldp"])
@pytest.mark.parametrize("method", ["togl-fda", "togl-sma"])
def test_every_mechanism_that_the_paper_names_goes_the_whole_way(method: str, mechanism: str, tmp_path: Path) -> None:
    store(tmp_path)
    (row,) = run(NAME, method, mechanism, 8.0, data=tmp_path, params=small_params(seeds=2), references=False)
    assert (row.name, row.mechanism, row.epsilon) == (
        method if mechanism == "pm" else f"{method}-{mechanism}",
        mechanism,
        8.0,
    )
    assert ((row.accuracy > 0) & (row.accuracy <= 1)).all()
