"""Learning from calibrated reports: many runs as one batched model."""

from graphldp.learn.chain import OrderChoice, choose_order
from graphldp.learn.deferred import Deferred
from graphldp.learn.device import DEVICES, resolve_device
from graphldp.learn.fitting import fit
from graphldp.learn.models import Backbone, model, models, register
from graphldp.learn.pair_scorer import PairScorer
from graphldp.learn.problem import MessageGraph, NodeInputs, Options, Outcome, Problem, Run
from graphldp.learn.save import Predicted, TrainedModel, pack, predict, predictions, trained, unpack
from graphldp.learn.scores import link_scores, score_classes, score_links, score_values
from graphldp.learn.search import (
    Replica,
    chosen_point,
    runs_of,
    unit_filter,
)
from graphldp.learn.state import Interrupted, State
from graphldp.learn.tasks import Task, register_task, task, task_names
from graphldp.learn.tasks.edges import EdgeSplit, Links, edge_split, leaks
from graphldp.learn.tasks.regression import Values
from graphldp.splits import Split, majority, random_split, score

__all__ = [
    "DEVICES",
    "Backbone",
    "Deferred",
    "EdgeSplit",
    "Interrupted",
    "Links",
    "MessageGraph",
    "NodeInputs",
    "Options",
    "OrderChoice",
    "Outcome",
    "PairScorer",
    "Predicted",
    "Problem",
    "Replica",
    "Run",
    "Split",
    "State",
    "Task",
    "TrainedModel",
    "Values",
    "choose_order",
    "chosen_point",
    "edge_split",
    "fit",
    "leaks",
    "link_scores",
    "majority",
    "model",
    "models",
    "pack",
    "predict",
    "predictions",
    "random_split",
    "register",
    "register_task",
    "resolve_device",
    "runs_of",
    "score",
    "score_classes",
    "score_links",
    "score_values",
    "task",
    "task_names",
    "trained",
    "unit_filter",
    "unpack",
]
