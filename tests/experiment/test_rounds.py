"""Two rounds: what they spend, what directs the second one, and the same from files and in memory."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from cell_factory import NAME, accuracies, calibrate, cell_of, run, small_graph, small_params, store

from graphldp import methods
from graphldp.client import Reports
from graphldp.errors import ArtifactError, GraphLDPError, OptionError
from graphldp.experiment.parts import LinkPart, split_of
from graphldp.experiment.rounds import Rounds, TwoRounds, joined
from graphldp.graph import Graph
from graphldp.learn import leaks
from graphldp.ledger import Ledger, ledger_from_meta
from graphldp.server import rectify, score_attributes
from graphldp.server.pair_products import PairProducts
from graphldp.stages.denoise import denoise
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.levels_scores import Extras
from graphldp.stages.files.models import load_model
from graphldp.stages.files.paths import graph_dir, reports_path
from graphldp.stages.files.reports import CalibratedFile
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params
from graphldp.stages.perturb import perturb_graph, perturb_method
from graphldp.stages.predict import predict_reports
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


def of_links(params: Params) -> Params:
    return dataclasses.replace(params, train=dataclasses.replace(params.train, task="link-prediction"))


def same(a: Reports, b: Reports) -> bool:
    return np.array_equal(a.value, b.value) and np.array_equal(np.asarray(a.index), np.asarray(b.index))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path / "data"


def stages(
    data: Path,
    params: Params,
    method: str = "togl-fda",
    mechanism: str = "pm",
    epsilon: float = 8.0,
    levels: Path | None = None,
    **changes: Any,
) -> tuple[Path, Path]:
    """Take a cell through its stages; return its answers and its estimates."""
    answers = perturb_method(
        Cell(dataset=NAME, method=method, mechanism=mechanism, epsilon=epsilon, changes=changes),
        data=data,
        settings=params,
        extras=Extras(levels=levels),
    )
    return answers, denoise(
        Cell(dataset=NAME, method=method, mechanism=mechanism, epsilon=epsilon), data=data, steps=params.search.steps
    )


def sent(both: TwoRounds, seed: int) -> tuple[Reports, Reports]:
    """Return what leaves the devices in both rounds."""
    first, second = both.questions(seed)
    return first.answers, second.answers


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
    answers, calibrated = (read_meta(path, "make") for path in stages(data, params, epsilon=6.0))
    draws = params.seeds + params.search.seeds
    first, second = Ledger.from_json(answers["ledger"]).spends
    assert first.source != second.source
    both = f"total epsilon per user: features 3.0 x {draws} draws + features 3.0 x {draws} draws = {6.0 * draws}"
    # The first round is an ordinary collection: who has the reports of one has spent its budget once.
    once = read_meta(
        perturb_graph(Cell(dataset=NAME, mechanism="pm", epsilon=3.0), data=data, seeds=params.draws, root=params.seed),
        "make",
    )
    assert ledger_from_meta([once, answers]).text() == both
    for meta in (answers, calibrated):
        assert Ledger.from_json(meta["ledger"]).text() == both
        assert meta["epsilon"] == meta["claim"]["epsilon"] == 6.0
        assert meta["epsilon_exact"] == pytest.approx(6.0)
        assert meta["rounds"] == dataclasses.asdict(Rounds(score_by="fda"))
    runs = read_meta(train(Cell(dataset=NAME, method="togl-fda", epsilon=6.0), data=data, params=params), "make")
    assert Ledger.from_json(runs["ledger"]).once().total().epsilon == 6.0
    assert Ledger.from_json(runs["ledger"]).total().epsilon == 6.0 * draws
    assert runs["epsilon"] == 6.0
    assert runs["epsilon_exact"] == pytest.approx(6.0)
    assert runs["rounds"] == dataclasses.asdict(Rounds(score_by="fda"))


@pytest.mark.parametrize("change", [{"score_by": "sma"}, {"rho": 1.0}, {"score_steps": 1}])
def test_second_rounds_that_are_directed_otherwise_are_other_releases(change: dict[str, Any]) -> None:
    """Whose second rounds two rows have used, she has answered both; the first one's reports are the same."""
    metas = [rounds_of(small_graph(), 6.0, **one).meta("hash", [0]) for one in ({}, change)]
    assert ledger_from_meta(metas).total().epsilon == 3.0 + 2 * 3.0
    again = rounds_of(small_graph(), 6.0, reuse=True).meta("hash", [0])
    assert ledger_from_meta([metas[0], again]).total().epsilon == 6.0


def test_the_rounds_are_drawn_independently() -> None:
    # With nothing directed both rounds have one mechanism and one budget: one stream would give one report twice.
    both = rounds_of(small_graph(), 8.0, rho=0.0)
    one, two = sent(both, 0)
    assert both.device.m == both.m > 1
    assert not np.array_equal(np.asarray(one.index), np.asarray(two.index))
    matches = (np.asarray(one.index) == np.asarray(two.index)).mean()
    assert matches < 0.3


# What directs the second round.


@pytest.mark.parametrize("method", ["togl-fda", "togl-sma"])
def test_selection_reads_the_labels_of_its_own_training_nodes_alone(method: str) -> None:
    graph = telling_graph()
    rounds = methods.method(method).asking
    assert isinstance(rounds, Rounds)
    split = split_of(graph, Params(), 0)

    def drawn(labels: np.ndarray) -> Reports:
        changed = dataclasses.replace(graph, labels=labels.astype(np.int32))
        return sent(TwoRounds.of(changed, rounds, "pm", 40.0, Params()), 0)[1]

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
    answers, _ = stages(data, small_params(seeds=3), epsilon=20.0)
    file, rankings = AnswersFile(answers, "make"), set()
    for seed in (0, 1, 2, -1, -2):
        reports = file.questions(seed)[1].answers
        ranking = reports.meta["options"]["ranking"]
        rankings.add(tuple(ranking))
        # Everybody reports the ranked features.
        assert all((np.asarray(reports.index) == j).any(axis=1).all() for j in ranking)
    assert len(rankings) == 5


@pytest.mark.parametrize("score_by", ["fda", "sma", "mi", "chi-square"])
def test_the_few_features_that_matter_are_found_where_the_budget_is_large(score_by: str) -> None:
    graph = telling_graph()
    both = rounds_of(graph, 60.0, score_by=score_by, score_steps=1)
    first, second = sent(both, 0)
    assert both.device.m == 12
    assert set(both.scores(first, 0).top(3)) == set(INFORMATIVE)
    assert len(second.meta["options"]["ranking"]) == 6
    assert set(INFORMATIVE) < set(second.meta["options"]["ranking"])
    assert all((np.asarray(second.index) == j).any(axis=1).all() for j in INFORMATIVE)


@pytest.mark.parametrize("score_by", ["fda", "mi"])
def test_where_links_are_learned_the_training_links_rank(score_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links are between people who share three features; no link that is tested or chosen by is looked at."""
    graph, seen = telling_graph(), []
    params = of_links(small_params())
    rounds = TwoRounds.of(graph, Rounds(score_by=score_by, score_steps=0), "pm", 400.0, params)
    scored = score_attributes

    def listening(by: str, pairs: PairProducts, linked: Any, train: Any) -> Any:
        seen.append((pairs, np.asarray(linked)))
        return scored(by, pairs, linked, train)

    monkeypatch.setattr("graphldp.experiment.rounds.score_attributes", listening)
    scores = rounds.scores(rounds.first(0), 0)
    assert set(scores.top(3)) == set(INFORMATIVE)
    ((pairs, linked),) = seen
    part = LinkPart.of_seed(graph, params, 0, None)
    assert np.array_equal(pairs.pairs[:, linked == 1], part.edges.train)
    assert np.array_equal(pairs.pairs[:, linked == 0], part.edges.train_negative)
    assert leaks(part.edges, pairs.filtered.operator).shape[1] == 0
    again = TwoRounds.of(dataclasses.replace(graph, labels=1 - graph.labels), rounds.rounds, "pm", 400.0, params)
    np.testing.assert_array_equal(again.scores(again.first(0), 0).values, scores.values)  # no label is looked at


def test_with_one_feature_a_round_nothing_is_directed(data: Path) -> None:
    both = rounds_of(read_graph(graph_dir(data, NAME)), 2.0)
    assert both.m == 1
    _, second = sent(both, 0)
    assert second.meta["options"]["ranking"] == []
    assert len(np.unique(np.asarray(second.index))) > 12
    params = small_params(seeds=2, steps=(1,), points=2)
    (row,) = run(NAME, "togl-fda", None, 2.0, data=data, params=params, references=False)
    assert row.m == 1
    assert np.isfinite(row.accuracy).all()
    # All of the second round can be directed: everybody then reports the best feature alone.
    whole = rounds_of(read_graph(graph_dir(data, NAME)), 2.0, rho=1.0)
    (best,) = sent(whole, 0)[1].meta["options"]["ranking"]
    assert (np.asarray(sent(whole, 0)[1].index) == best).all()


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
    assert 0 < directed.fixed_count() < both.m < d
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
    fill, m = directed.device.fill_value, both.m
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
        first, second = sent(both, seed)
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
    first, second = sent(both, 0)
    if first.level is not None:
        np.testing.assert_array_equal(first.level, np.asarray(second.level))
    estimate = both.estimate(both.questions(0), methods.method("togl-fda").calibration(1, both.device, 4.0))
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
    output = train(Cell(dataset=NAME, method=method, mechanism=mechanism, epsilon=8.0), data=data, params=params)
    (row,) = run(NAME, method, mechanism, 8.0, data=data, params=params, changes=changes, references=False)
    np.testing.assert_array_equal(row.accuracy, accuracies(output))
    (again,) = run(NAME, method, mechanism, 8.0, data=data, params=params, changes=changes, references=False)
    np.testing.assert_array_equal(row.accuracy, again.accuracy)
    assert row.epsilon == 8.0


def test_public_levels_are_kept_in_both_rounds(data: Path) -> None:
    levels = data / "levels.parquet"
    given = [1 + k % 5 for k in range(small_graph().nodes)]
    pq.write_table(pa.table({"node": [str(k) for k in range(len(given))], "level": given}), levels)
    answers, calibrated = stages(
        data, small_params(), mechanism="ppm-public", epsilon=4.0, levels=levels, reuse=True, filter="flexprop"
    )
    for question in AnswersFile(answers, "make").questions(0):
        np.testing.assert_array_equal(question.answers.level, given)
    file = CalibratedFile(calibrated, "make")
    np.testing.assert_array_equal(file.load(0).weights, given)
    spent = Ledger.from_json(file.meta["ledger"]).once().total()
    assert (spent.epsilon, spent.max) == (4.0, 64.0)


@pytest.mark.parametrize("changes", [{}, {"reuse": True}, {"rectification": "paper"}])
def test_a_kept_model_is_given_both_rounds(changes: dict[str, Any], data: Path, tmp_path: Path) -> None:
    params = small_params(seeds=2, steps=(1,))
    answers, _ = stages(data, params, epsilon=8.0, **changes)
    train(Cell(dataset=NAME, method="togl-fda", epsilon=8.0), data=data, params=params, models=tmp_path / "model")
    kept = load_model(tmp_path / "model")
    assert kept.spent.once().total().epsilon == 8.0
    assert kept.spent.total().epsilon == 8.0 * (params.seeds + params.search.seeds)
    predictions = predict_reports(tmp_path / "model", answers, data=data, output=tmp_path / "p.parquet")
    # Its own answers are draws that it has counted already.
    assert Ledger.from_json(read_meta(predictions, "make")["ledger"]) == kept.spent
    guess = read_table(predictions, "make").column("class").to_numpy()
    graph = read_graph(graph_dir(data, NAME))
    test = split_of(graph, params, int(kept.about["seed"])).test
    assert float((guess[test] == graph.labels[test]).mean()) == pytest.approx(kept.about["test_accuracy"])
    others = perturb_method(
        Cell(dataset=NAME, method="togl-fda", epsilon=8.0, changes={"rho": 0.25}),
        data=data,
        settings=params,
        output=tmp_path / "o.parquet",
    )
    with pytest.raises(ArtifactError, match=r"was asked with rho 0\.25, and the method means 0\.5"):
        predict_reports(tmp_path / "model", others, data=data, output=tmp_path / "q.parquet")
    once = perturb_graph(Cell(dataset=NAME, mechanism="pm", epsilon=8.0), data=data, seeds=[0])
    with pytest.raises(ArtifactError, match="holds answers to one question, and the model was trained on another way"):
        predict_reports(tmp_path / "model", once, data=data, output=tmp_path / "q.parquet")


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
        ({"before": 0.5}, "no one threshold fits all"),
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
    with pytest.raises(OptionError, match="method 'lpgnn' has no option 'rho'; it has: filter"):
        methods.method("lpgnn").but({"rho": 0.5}).calibration(1, rounds_of(small_graph(), 4.0).device, 4.0)


def test_m_from_the_total_reports_more_features(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    own, total = rounds_of(graph, 10.0), rounds_of(graph, 10.0, m_from="total")
    assert own.device.m == own.m == 2
    assert total.device.m == total.m == 4
    assert total.device.privacy_loss() + total.second(range(24)).privacy_loss() == pytest.approx(10.0)


def test_answers_that_do_not_fit_are_refused(data: Path, tmp_path: Path) -> None:
    params = small_params()
    answers, calibrated = stages(data, params)
    calibrated.unlink()
    once = perturb_graph(
        Cell(dataset=NAME, mechanism="pm", epsilon=8.0), data=data, seeds=[0], output=tmp_path / "once.parquet"
    )
    cases: list[tuple[dict[str, Any], str]] = [
        ({"reports": once}, "has kind 'reports' where 'answers' was asked for; .* `ldp perturb .* --method togl-fda"),
        ({"epsilon": 4.0, "reports": answers}, "has epsilon 8 where 4 was asked for; say --epsilon 8"),
        ({"method": "togl-sma", "reports": answers}, "has method 'togl-fda' where 'togl-sma'"),
        ({"method": "lpgnn", "reports": answers}, "has kind 'answers' where 'reports' was asked for"),
        ({"changes": {"rho": 0.25}}, "asked with rho 0.5, and the method means 0.25; say --set method.rho=0.5"),
        ({"changes": {"score_steps": 1}}, "asked with score_steps 2"),
        ({"changes": {"m_from": "total"}}, "asked with m_from round, and the method means total"),
        ({"changes": {"first": 0.25}}, "asked with first 0.5"),
    ]
    for changes, message in cases:
        given = {"method": "togl-fda", "epsilon": 8.0, **changes}
        cell, others = cell_of({"dataset": NAME, "mechanism": "pm", **given})
        with pytest.raises(GraphLDPError, match=message) as error:
            denoise(cell, data=data, steps=params.search.steps, **others)
        assert "\n" not in str(error.value)
    assert not calibrated.exists()
    # What comes after the answers can still be chosen.
    denoise(
        Cell(dataset=NAME, method="togl-fda", mechanism="pm", epsilon=8.0, changes={"reuse": True}),
        data=data,
        steps=(1,),
    )
    assert read_meta(calibrated, "make")["rounds"]["reuse"] is True


def test_the_ranking_of_other_labels_than_training_s_is_refused(data: Path, tmp_path: Path) -> None:
    params = small_params(seeds=2)
    answers, _ = stages(data, params)
    fewer = dataclasses.replace(params, train=dataclasses.replace(params.train, train_fraction=0.1))
    with pytest.raises(ArtifactError, match=r"other splits: train_fraction was 0.5, and is 0.1 now"):
        train(Cell(dataset=NAME, method="togl-fda", epsilon=8.0), data=data, params=fewer)
    with pytest.raises(ArtifactError, match="other splits: parts was nodes, and is edges now"):
        train(Cell(dataset=NAME, method="togl-fda", epsilon=8.0), data=data, params=of_links(params))
    with pytest.raises(ArtifactError, match="other splits: root was 0, and is 3 now"):
        train(Cell(dataset=NAME, method="togl-fda", epsilon=8.0), data=data, params=dataclasses.replace(params, seed=3))
    with pytest.raises(ArtifactError, match="holds answers to several questions, of method togl-fda"):
        select(answers, data=data, params=params, output=tmp_path / "again.parquet")


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
