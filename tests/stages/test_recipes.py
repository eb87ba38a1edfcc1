"""Every recipe goes the whole way: artifacts, training, a kept model, and the same numbers in memory."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from cell_factory import NAME, accuracies, calibrate, run, small_params, store

from graphldp import methods
from graphldp.client import protocol
from graphldp.errors import OptionError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.cell import learn_cell
from graphldp.experiment.estimates import (
    average_degree,
    calibration_of,
    centred,
    estimate_of,
    filtered_inputs,
    unit_scale,
)
from graphldp.experiment.options import TrainParams
from graphldp.experiment.parts import split_of
from graphldp.experiment.plan import Devices, backbone_of, plan_of
from graphldp.learn import NodeInputs, Options, Problem, fit, model
from graphldp.server import Filtered, node_weights, rectify, shift
from graphldp.stages.denoise import denoise
from graphldp.stages.files.artifacts import read_meta, read_table
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.models import load_model
from graphldp.stages.files.paths import graph_dir, reports_path
from graphldp.stages.files.reports import CalibratedFile
from graphldp.stages.grids.cell import Cell
from graphldp.stages.predict import predict_reports
from graphldp.stages.train import train

# Methods of two rounds have stages of their own: test_rounds.py; those that ask people in turn none: test_surveys.py.
RECIPES = [name for name in methods.names() if methods.method(name).model and methods.method(name).asking is None]


def budget(mechanism: str) -> float:
    return {"null": 0.0, "identity": math.inf}.get(mechanism, 4.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    store(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_gives_the_same_in_the_pipeline_and_in_memory(name: str, data: Path, tmp_path: Path) -> None:
    recipe = methods.method(name)
    epsilon = budget(recipe.mechanism)
    params = small_params(seeds=2, steps=(1, 2))
    calibrate(data, params, name, recipe.mechanism, epsilon)
    output = tmp_path / "runs.parquet"
    models = None if recipe.evidence or recipe.learners else tmp_path / "model"
    train(Cell(dataset=NAME, method=name, epsilon=epsilon), data=data, params=params, models=models, output=output)
    (row,) = run(NAME, name, None, epsilon, data=data, params=params, references=False)
    np.testing.assert_array_equal(row.accuracy, accuracies(output))
    if models is None:
        with pytest.raises(OptionError, match=r"so its model cannot be given reports alone|chooses among"):
            train(
                Cell(dataset=NAME, method=name, epsilon=epsilon),
                data=data,
                params=params,
                models=tmp_path / "model",
                output=output,
            )
        return
    # The kept model says of its own reports what the run said: same test accuracy.
    predictions = predict_reports(
        tmp_path / "model",
        reports_path(data, NAME, recipe.mechanism, epsilon),
        data=data,
        output=tmp_path / "p.parquet",
    )

    about = load_model(tmp_path / "model").about
    guess = read_table(predictions, "make").column("class").to_numpy()
    graph = read_graph(graph_dir(data, NAME))
    test = split_of(graph, params, int(about["seed"])).test
    assert float((guess[test] == graph.labels[test]).mean()) == pytest.approx(about["test_accuracy"])


def test_the_artifact_holds_what_the_threshold_left(data: Path) -> None:
    params = small_params()
    path = calibrate(data, params, "upgnet-nh", "mb", 2.0)
    plain = CalibratedFile(calibrate(data, params, "lpgnn", "mb", 2.0), "make")
    file = CalibratedFile(path, "make")
    # With mb and the fill in the middle, the threshold before the filter is a rescaling by 1 - tau.
    np.testing.assert_allclose(file.load(0).deviations().data, 0.5 * plain.load(0).deviations().data, rtol=1e-5)
    assert all(one.before > 0 for one in file.filters().values())


def test_flexprop_weighs_by_the_reported_level(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    device = protocol("ppm-public", 1.0, graph.dimensions, graph.low, graph.high)
    reports = device.perturb(graph.features, source_of(0, NAME, device, 0))
    recipe = methods.method("ppgnn")
    calibration = recipe.calibration(2, device, average_degree(graph))
    estimate = estimate_of(reports, calibration)
    assert estimate.weights is not None
    np.testing.assert_array_equal(estimate.weights, reports.level)
    found = filtered_inputs(graph, estimate, calibration, 3.0).dense()
    themselves = np.eye(graph.nodes)
    adjacency = (graph.adjacency().toarray().astype(float) + themselves) * reports.level[None, :]
    sums = adjacency.sum(axis=1, keepdims=True)
    mean = np.divide(adjacency, sums, out=np.zeros_like(adjacency), where=sums > 0)
    np.testing.assert_allclose(found, 3 * (mean @ mean @ rectify(reports).dense()), rtol=1e-3, atol=1e-3)
    # Recomputed from the file as it was written.
    params = small_params()
    file = CalibratedFile(calibrate(data, params, "ppgnn", "ppm-public", 1.0), "make")
    np.testing.assert_array_equal(file.load(0).weights, node_weights(reports, "level"))


def test_what_is_not_linear_is_filtered_before_learning(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    device = protocol("mb", 1.0, graph.dimensions, graph.low, graph.high)
    reports = device.perturb(graph.features, source_of(0, NAME, device, 0))
    thresholded = methods.method("upgnet-hn").calibration(3, device, 4.0)
    estimate = estimate_of(reports, thresholded)
    found = filtered_inputs(graph, estimate, thresholded, 3.0)
    expected = Filtered.of(estimate, thresholded, thresholded.operator(graph)).dense()
    np.testing.assert_array_equal(found.dense(), 3 * expected)
    assert found.digest() == filtered_inputs(graph, estimate, thresholded, 3.0).digest()
    assert found.digest() != filtered_inputs(graph, estimate, thresholded, 2.0).digest()
    assert found.digest() != filtered_inputs(graph, estimate, thresholded.but(after=0.1), 3.0).digest()
    other = estimate_of(device.perturb(graph.features, source_of(0, NAME, device, 1)), thresholded)
    assert found.digest() != filtered_inputs(graph, other, thresholded, 3.0).digest()


def test_what_a_threshold_leaves_few_of_is_kept_sparse(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    device = protocol("mb", 1.0, graph.dimensions, graph.low, graph.high, m=1)
    thresholded = methods.method("upgnet-hn").calibration(2, device, 4.0)
    estimate = estimate_of(device.perturb(graph.features, source_of(0, NAME, device, 0)), thresholded)
    whole = Filtered.of(centred(estimate), thresholded, thresholded.operator(graph))
    few = thresholded.but(after=float(np.quantile(np.abs(whole.dense()), 0.97)) + thresholded.after)
    found = filtered_inputs(graph, centred(estimate), few, 3.0)
    expected = 3 * Filtered.of(centred(estimate), few, few.operator(graph)).dense()
    assert 0 < np.count_nonzero(expected) <= 0.05 * expected.size
    assert found.sparse
    np.testing.assert_array_equal(found.dense(), expected)
    # A fill stands in every coordinate, and many numbers are not few.
    assert not filtered_inputs(graph, estimate, few, 3.0).sparse
    assert not filtered_inputs(graph, centred(estimate), thresholded.but(after=1e-3), 3.0).sparse


def test_a_method_leaves_out_a_threshold_that_float32_does_not_see(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    device, recipe = protocol("mb", 1.0, graph.dimensions, graph.low, graph.high), methods.method("upgnet-hn")
    for steps, gone in ((1, False), (2, False), (64, True)):
        plain = recipe.calibration(steps, device, average_degree(graph))
        found = calibration_of(recipe, steps, device, graph)
        assert plain.after > 0
        assert found == (plain.but(after=0.0) if gone else plain)
        # The parts of an inductive split have another degree, and so another threshold.
        assert calibration_of(recipe, steps, device, graph, whole=False) == plain


def test_weighted_filters_stay_factored_and_learn_as_if_they_were_applied_before(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    params = small_params(steps=(2,), points=2)
    recipe = methods.method("ppgnn")
    source = Devices(graph=graph, recipe=recipe, mechanism="ppm-public", epsilon=2.0, options={}, params=params)
    result = learn_cell(graph, plan_of(source, params), params, device="cpu")
    assert result.problem is not None
    assert all(one.sparse for one in result.problem.inputs)
    assert [run.graph for run in result.runs] == [run.inputs for run in result.runs] == [0, 1, 2]
    assert result.setup is not None
    inputs = []
    for seed in range(params.seeds):
        estimate = result.setup.estimate(seed)
        filtered = filtered_inputs(graph, centred(estimate), result.setup.calibration(2), unit_scale(estimate))
        inputs.append(NodeInputs(deviations=filtered.dense(), filtered=True))
    problem = Problem(shift=shift(graph), adjacency=graph.adjacency(), inputs=tuple(inputs), classes=graph.classes)
    runs = [dataclasses.replace(run, graph=0, coefficients=(1.0,)) for run in result.runs]
    options = Options(model=result.setup.backbone, epochs=params.train.epochs, patience=params.train.patience)
    before = fit(problem, runs, options, device="cpu")
    assert result.outcome is not None
    np.testing.assert_allclose(result.outcome.validation_loss, before.validation_loss, rtol=1e-4)


def test_a_part_of_a_recipe_can_be_changed(data: Path) -> None:
    params = small_params()
    calibrate(data, params)
    path = denoise(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0, changes={"filter": "ppr", "decay": 0.3}),
        data=data,
        steps=(1, 2),
    )
    file = CalibratedFile(path, "make")
    assert list(file.filters()) == [0]
    assert file.filters()[0].decay == 0.3
    train(Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0), data=data, params=params, calibrated=path)
    path = denoise(
        Cell(dataset=NAME, method="base", mechanism="mb", epsilon=1.0, changes={"filter": "hoa"}),
        data=data,
        steps=(1, 2),
    )
    assert list(CalibratedFile(path, "make").filters()) == [1, 2]
    runs = read_table(
        train(
            Cell(dataset=NAME, method="base", mechanism="mb", epsilon=1.0), data=data, params=params, calibrated=path
        ),
        "make",
    )
    assert set(runs.column("steps").to_pylist()) <= {1, 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter": "kporp"}, "did you mean 'kprop'"),
        ({"before": 1.5}, "from 0 to below 1; got 1.5"),
        ({"tau": 0.5}, "tau is the threshold of a method that has one, and 'lpgnn' has none; say before"),
        ({"steps": 3}, "--steps, or search.steps"),
    ],
)
def test_a_change_that_is_none_is_refused(changes: dict[str, object], message: str, data: Path, tmp_path: Path) -> None:
    calibrate(data, small_params())
    output = tmp_path / "c.parquet"
    with pytest.raises(OptionError, match=message):
        denoise(
            Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0, changes=changes),
            data=data,
            steps=(1,),
            output=output,
        )
    assert not output.exists()
    with pytest.raises(OptionError, match="has no calibration to change"):
        methods.method("majority").but({"filter": "hoa"})


def test_another_backbone_is_one_parameter(data: Path, tmp_path: Path) -> None:
    params = small_params()
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, model="sage"))
    calibrate(data, params)
    path = train(
        Cell(dataset=NAME, method="lpgnn", mechanism="mb", epsilon=1.0),
        data=data,
        params=params,
        output=tmp_path / "r.parquet",
    )
    assert read_meta(path, "make")["model"] == "sage"


@pytest.mark.parametrize("standardize", [True, False])
def test_training_sees_inputs_centred_on_the_fill_and_on_one_scale(standardize: bool, data: Path) -> None:
    """The square wave's reports are small and its fill stands in every column: uncentred, it drowns them."""
    params = small_params(seeds=2)
    params = dataclasses.replace(params, train=dataclasses.replace(params.train, standardize=standardize))
    graph = read_graph(graph_dir(data, NAME))
    device = protocol("hds", 1.0, graph.dimensions, graph.low, graph.high, m=3)
    estimates = {
        seed: rectify(device.perturb(graph.features, source_of(0, NAME, device, seed))) for seed in (0, 1, -1, -2)
    }
    source = Devices(
        graph=graph, recipe=methods.method("lpgnn"), mechanism="hds", epsilon=1.0, options={"m": 3}, params=params
    )
    plan = plan_of(source, params)
    plan = dataclasses.replace(
        plan, setups=tuple(dataclasses.replace(one, estimate=estimates.__getitem__) for one in plan.setups)
    )
    result = learn_cell(graph, plan, params)
    assert result.problem is not None
    for seed, inputs in enumerate(result.problem.inputs):
        square = float(np.square(inputs.deviations.data).sum()) / (graph.nodes * graph.dimensions)
        if standardize:
            assert inputs.fill == 0.0
            assert square == pytest.approx(1.0, rel=1e-4)
        else:
            assert inputs.fill == estimates[seed].fill == 0.5
            np.testing.assert_array_equal(inputs.deviations.data, estimates[seed].deviations().data)


def test_dropout_drops_the_rate_and_the_same_values_each_time(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    device = protocol("pm", 1.0, graph.dimensions, graph.low, graph.high, m=10)
    recipe = methods.method("base").but({"before": 0.25, "shrinkage": "dropout"})
    calibration = recipe.calibration(0, device, average_degree(graph))
    assert calibration.before == 0.25
    reports = [device.perturb(graph.features, source_of(0, NAME, device, seed)) for seed in (0, 1)]
    kept = [estimate_of(one, calibration).deviations().data for one in reports]
    assert np.mean(kept[0] == 0) == pytest.approx(0.25, abs=0.06)  # of 900
    np.testing.assert_array_equal(estimate_of(reports[0], calibration).deviations().data, kept[0])
    assert ((kept[0] == 0) != (kept[1] == 0)).any()
    params = small_params(seeds=2)
    calibrate(data, params, "base", "pm", 1.0)
    changes = {"before": 0.25, "shrinkage": "dropout"}
    path = denoise(
        Cell(dataset=NAME, method="base", mechanism="pm", epsilon=1.0, changes=changes), data=data, steps=(0,)
    )
    stored = train(
        Cell(dataset=NAME, method="base", mechanism="pm", epsilon=1.0), data=data, params=params, calibrated=path
    )
    (row,) = run(NAME, "base", "pm", 1.0, data=data, params=params, references=False, changes=changes)
    np.testing.assert_array_equal(row.accuracy, accuracies(stored))


def test_an_activation_for_all_rows_reaches_the_backbones_that_have_one() -> None:
    train = TrainParams(activation="relu", hidden=4)
    assert backbone_of(methods.method("lpgnn"), train) == model("gcn", hidden=4, activation="relu")
    assert backbone_of(methods.method("ldpge"), train, {"activation": "tanh"}) == model(
        "mlp", hidden=4, activation="tanh"
    )
    assert backbone_of(methods.method("lpgnn"), TrainParams(activation="relu", model="sgc")) == model("sgc")
    assert backbone_of(methods.method("lpgnn"), TrainParams()) == model("gcn")
