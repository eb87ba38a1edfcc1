"""A trained model as bytes and a recipe, and its predictions, for every task."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.learn.batch import GraphMatrices, RunBatch, without_dropout
from graphldp.learn.device import resolve_device
from graphldp.learn.models import Backbone, model
from graphldp.learn.pair_scorer import PairScorer
from graphldp.learn.problem import NodeInputs, Outcome, Problem, Run
from graphldp.learn.tasks import Task, task
from graphldp.learn.tasks.classification import NodeClassification
from graphldp.learn.tasks.links import LinkPrediction
from graphldp.learn.tasks.multi import MultiTask
from graphldp.learn.tasks.regression import Regression, Values, predicted_numbers
from graphldp.ledger import Ledger
from graphldp.tasks import loss_of

__all__ = ["Predicted", "TrainedModel", "pack", "predict", "predictions", "trained", "unpack"]

FORMAT = "graphldp model 3"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedModel:
    """Parameters, and everything that is needed to use them again.

    Attributes:
        backbone: the backbone with its options.
        task: what it was trained for, with its options.
        dimensions, classes: of the data it was trained on.
        coefficients: of the filter sum_k theta_k S^k.
        parameters: one run's parameters, the head's among them.
        mean, scale: of the numbers that it predicts: what it learned is (value - mean) / scale.
        spent: what every person has spent on it: all draws of her that training, search and choice have used.
        about: anything else worth keeping (names of the classes, dataset, library version), as JSON-able values.
    """

    backbone: Backbone
    task: Task = field(default_factory=NodeClassification)
    dimensions: int
    classes: int
    coefficients: tuple[float, ...]
    parameters: dict[str, NDArray[np.float32]]
    mean: float = 0.0
    scale: float = 1.0
    spent: Ledger = field(default_factory=Ledger)
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        outputs = self.task.outputs(self.classes)
        shapes = self.backbone.parameters(self.dimensions, outputs) | self.task.parameters()
        expected = {name: one.shape for name, one in shapes.items()}
        found = {name: tuple(value.shape) for name, value in self.parameters.items()}
        if found != expected:
            raise ArtifactError(f"the model's parameters have the shapes {found}, its recipe says {expected}")


def trained(
    problem: Problem,
    run: Run,
    outcome: Outcome,
    index: int,
    backbone: Backbone,
    *,
    spent: Ledger,
    about: Mapping[str, Any] | None = None,
) -> TrainedModel:
    """Return run `index` of an outcome as a model of its own."""
    what = outcome.record["task"]
    # What labels went through is how it was trained: it predicts classes, not what is sent of them.
    options = {name: value for name, value in what["options"].items() if name != "channel"}
    filtered = problem.inputs[run.inputs].filtered
    numbers = run.targets if isinstance(run.targets, Values) else Values(np.empty(0))
    return TrainedModel(
        backbone=backbone,
        task=task(what["name"], **options),
        dimensions=problem.dimensions,
        classes=problem.classes,
        coefficients=(1.0,) if filtered else run.coefficients,
        parameters={name: value[index].copy() for name, value in outcome.parameters.items()},
        mean=numbers.mean,
        scale=numbers.scale,
        spent=spent,
        about=dict(about or {}),
    )


def pack(trained_model: TrainedModel) -> tuple[bytes, dict[str, Any]]:
    """Return the parameters as safetensors bytes, and the recipe as JSON-able values."""
    arrays = {name: np.ascontiguousarray(value) for name, value in trained_model.parameters.items()}
    weights = safetensors.numpy.save(arrays)
    what = trained_model.task
    recipe = {
        "format": FORMAT,
        "model": trained_model.backbone.name,
        "options": dataclasses.asdict(trained_model.backbone),  # type: ignore[call-overload]
        "task": {"name": what.name, "options": dataclasses.asdict(what)},  # type: ignore[call-overload]
        "dimensions": trained_model.dimensions,
        "classes": trained_model.classes,
        "coefficients": list(trained_model.coefficients),
        "mean": trained_model.mean,
        "scale": trained_model.scale,
        "spent": trained_model.spent.as_json(),
        "about": dict(trained_model.about),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    return weights, recipe


def unpack(weights: bytes, recipe: Mapping[str, Any]) -> TrainedModel:
    """Read a model back; weights and recipe must belong together."""
    if recipe.get("format") != FORMAT:
        raise ArtifactError(f"this is not a model's recipe: its format is {recipe.get('format')!r}, not {FORMAT!r}")
    if hashlib.sha256(weights).hexdigest() != recipe.get("weights_sha256"):
        raise ArtifactError("the weights are damaged or belong to another recipe: their hash differs")
    try:
        return TrainedModel(
            backbone=model(recipe["model"], **recipe["options"]),
            task=task(recipe["task"]["name"], **recipe["task"]["options"]),
            dimensions=int(recipe["dimensions"]),
            classes=int(recipe["classes"]),
            coefficients=tuple(float(theta) for theta in recipe["coefficients"]),
            parameters=safetensors.numpy.load(weights),
            mean=float(recipe["mean"]),
            scale=float(recipe["scale"]),
            spent=Ledger.from_json(recipe["spent"]),
            about=dict(recipe["about"]),
        )
    except (KeyError, TypeError, safetensors.SafetensorError) as error:
        raise ArtifactError(f"the model's recipe is incomplete ({type(error).__name__}: {error})") from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predicted:
    """What a model says of every node; what its task does not predict is None.

    Attributes:
        probabilities: of the classes, nodes x classes.
        values: the predicted numbers, in the target's own unit: one a node, or nodes x classes. Of sets of labels they
            are the probability of each label.
        pairs: what scores pairs of nodes.
    """

    probabilities: NDArray[np.float32] | None = None
    values: NDArray[np.float32] | None = None
    pairs: PairScorer | None = None


@torch.no_grad()
def predictions(
    trained_model: TrainedModel,
    inputs: NodeInputs,
    shift: sp.csr_array,
    adjacency: sp.csr_array,
    *,
    device: str | torch.device = "auto",
) -> Predicted:
    """Return what the model says of the nodes of a graph.

    Args:
        trained_model: the model.
        inputs: the features' estimate, of the same dimensions as in training.
        shift: the filter's S, as in training.
        adjacency: the plain adjacency matrix without self-loops.
        device: where to compute.
    """
    found = int(inputs.deviations.shape[1])
    if found != trained_model.dimensions:
        raise DataError(f"the model was trained on {trained_model.dimensions} dimensions, the inputs have {found}")
    where = resolve_device(device) if isinstance(device, str) else device
    problem = Problem(shift=shift, adjacency=adjacency, inputs=(inputs,), classes=trained_model.classes)
    run = Run(inputs=0, seed=0, coefficients=trained_model.coefficients)
    batch = RunBatch(problem, [run], GraphMatrices(problem, trained_model.backbone, where), "propagate")
    parameters = {name: torch.from_numpy(value)[None].to(where) for name, value in trained_model.parameters.items()}
    hidden = trained_model.backbone.trunk(parameters, batch)
    outputs = trained_model.backbone.head(parameters, batch, hidden, without_dropout)[:, 0]
    what = trained_model.task
    if isinstance(what, LinkPrediction):
        bias = trained_model.parameters.get("task_bias", np.zeros(1, np.float32))
        weight = trained_model.parameters["task_weight"]
        return Predicted(pairs=PairScorer(outputs=outputs.cpu().numpy(), weight=weight, bias=float(bias[0])))
    names = what.predictions(trained_model.classes)
    probabilities = values = None
    if "classes" in names:
        logits = outputs[:, : trained_model.classes].double()
        probabilities = np.asarray(torch.softmax(logits, dim=1).cpu().numpy(), dtype=np.float32)
    if isinstance(what, MultiTask | Regression):
        learned = predicted_numbers(loss_of(what.loss), outputs)
        values = np.asarray(trained_model.mean + trained_model.scale * learned, dtype=np.float32)
    return Predicted(probabilities=probabilities, values=values)


def predict(
    trained_model: TrainedModel,
    inputs: NodeInputs,
    shift: sp.csr_array,
    adjacency: sp.csr_array,
    *,
    device: str | torch.device = "auto",
) -> NDArray[np.float32]:
    """Return the class probabilities of every node, [nodes, classes]; arguments as for `predictions`."""
    found = predictions(trained_model, inputs, shift, adjacency, device=device).probabilities
    if found is None:
        raise OptionError(f"a model of {trained_model.task.name} predicts no classes: use predictions(...)")
    return found
