"""Learning from calibrated reports: many runs as one batched model."""

from graphldp.learn.chain import Estimate, choose_order
from graphldp.learn.device import DEVICES, resolve_device
from graphldp.learn.engine import Progress, fit
from graphldp.learn.models import Backbone, model, models, register
from graphldp.learn.problem import NodeInputs, Options, Outcome, Problem, Run
from graphldp.learn.save import TrainedModel, pack, predict, trained, unpack
from graphldp.learn.search import (
    Found,
    Point,
    Replica,
    Space,
    chosen_point,
    final,
    points,
    runs_of,
    search,
    unit_filter,
)
from graphldp.learn.splits import Split, majority, random_split, score
from graphldp.learn.state import Interrupted, State

__all__ = [
    "DEVICES",
    "Backbone",
    "Estimate",
    "Found",
    "Interrupted",
    "NodeInputs",
    "Options",
    "Outcome",
    "Point",
    "Problem",
    "Progress",
    "Replica",
    "Run",
    "Space",
    "Split",
    "State",
    "TrainedModel",
    "choose_order",
    "chosen_point",
    "final",
    "fit",
    "majority",
    "model",
    "models",
    "pack",
    "points",
    "predict",
    "random_split",
    "register",
    "resolve_device",
    "runs_of",
    "score",
    "search",
    "trained",
    "unit_filter",
    "unpack",
]
