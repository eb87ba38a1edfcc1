"""A training that can stop and go on: its state between two epochs, as bytes and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.errors import ArtifactError, OptionError
from graphldp.learn.problem import Options, Problem, Run

__all__ = ["Group", "Interrupted", "State", "fingerprint"]

FORMAT = "graphldp training state 4"


def fingerprint(problem: Problem, runs: Sequence[Run], options: Options) -> str:
    """Return a hash of what is trained, so that a state only ever continues the training it was taken from."""
    text = [repr(options), problem.nodes, problem.dimensions, problem.classes, problem.shift.nnz, problem.adjacency.nnz]
    digest = hashlib.sha256(repr(text).encode())
    for matrix in (
        problem.shift,
        problem.adjacency,
        *(part for one in problem.more for part in (one.shift, one.adjacency)),
    ):
        digest.update(np.ascontiguousarray(matrix.data).view(np.uint8).data)
        digest.update(np.ascontiguousarray(matrix.indices).view(np.uint8).data)
    for one in problem.inputs:
        digest.update(repr((one.fill, one.filtered, one.stored)).encode())
        digest.update(one.digest())
    for run in runs:
        rates = (run.inputs, run.seed, run.learning_rate, run.weight_decay, run.dropout, run.coefficients)
        digest.update(repr(rates).encode())
        digest.update(run.split.train.tobytes() + run.split.validation.tobytes())
        digest.update(np.asarray(run.labels, dtype=np.int64).tobytes())
        digest.update(repr(run.graph).encode() + (run.targets.digest() if run.targets else b""))
    return digest.hexdigest()


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    """Runs that are trained as one batched model, between two epochs.

    Attributes:
        runs: the runs of the group.
        batch: those of them that are in the batch, in its order; finished ones leave it now and then.
        epoch: how many updates the batch has had.
        ended: whether the group has been trained to its end.
        parameters, first, second: of the runs in the batch: parameters and Adam's moments.
    """

    runs: list[int]
    batch: list[int]
    epoch: int
    ended: bool
    parameters: dict[str, Tensor]
    first: dict[str, Tensor]
    second: dict[str, Tensor]

    def keep(self, positions: NDArray[np.int64]) -> None:
        """Let the other runs leave the batch."""
        self.batch = [self.batch[position] for position in positions]
        index = torch.from_numpy(positions)
        for tensors in (self.parameters, self.first, self.second):
            for name, value in tensors.items():
                tensors[name] = value.detach().index_select(0, index.to(value.device))


@dataclass(slots=True, kw_only=True, eq=False)
class State:
    """Where a training stands between two epochs.

    Attributes:
        fingerprint: of the problem, the runs and the options.
        wave: the wave in progress.
        groups: those of the wave in progress; none before it has begun.
        best: the best parameters so far, of all runs.
        best_epoch, epochs, validation_loss, failed, done: of all runs.
        metrics: of all runs; those that are computed at the end are valid for groups that have ended.
        outputs: what is predicted, of all runs; valid for groups that have ended.
    """

    fingerprint: str
    wave: int
    groups: list[Group]
    best: dict[str, Tensor]
    best_epoch: NDArray[np.int32]
    epochs: NDArray[np.int32]
    validation_loss: NDArray[np.float64]
    metrics: dict[str, NDArray[np.float64]]
    failed: NDArray[np.bool_]
    done: NDArray[np.bool_]
    outputs: dict[str, NDArray[Any]]

    def running(self, group: Group) -> NDArray[np.bool_]:
        """Which positions of a group's batch are still training."""
        return np.asarray(~self.done[group.batch], dtype=bool)

    def take(self, other: State, number: int) -> None:
        """Take over from a state of the same training, on the same device, what became of one of the wave's groups."""
        group = self.groups[number] = other.groups[number]
        runs = np.asarray(group.runs)
        index = torch.from_numpy(runs)
        for name, value in self.best.items():
            place = index.to(value.device)
            value.index_copy_(0, place, other.best[name].index_select(0, place))
        for name in ARRAYS:
            getattr(self, name)[runs] = getattr(other, name)[runs]
        for part in KEPT:
            for name, kept in getattr(self, part).items():
                kept[runs] = getattr(other, part)[name][runs]

    def copy(self) -> State:
        """Return a copy on the CPU that shares nothing with this one."""
        return State.from_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the state as one safetensors file."""
        tensors = {f"best/{name}": value for name, value in self.best.items()}
        for number, group in enumerate(self.groups):
            for part in PARTS:
                tensors |= {f"{part}/{number}/{name}": value for name, value in getattr(group, part).items()}
        for name in ARRAYS:
            tensors[name] = torch.from_numpy(getattr(self, name))
        for part in KEPT:
            kept = getattr(self, part)
            tensors |= {f"{part}/{name}": torch.from_numpy(value) for name, value in kept.items()}
        tensors = {name: value.detach().to("cpu").contiguous().clone() for name, value in tensors.items()}
        groups = [{name: getattr(group, name) for name in GROUP} for group in self.groups]
        text = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "wave": self.wave,
            "groups": groups,
        }
        # One entry: safetensors writes several in no fixed order.
        return bytes(safetensors.torch.save(tensors, {"state": json.dumps(text)}))

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """Read a state back."""
        try:
            tensors = safetensors.torch.load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
            fields: dict[str, Any] = json.loads(header["state"])
            found = fields.pop("format")
            if found != FORMAT:
                raise ValueError(f"its format is {found!r}, not {FORMAT!r}")
            fields["groups"] = [
                Group(
                    **group,
                    parameters=_under(tensors, f"parameters/{number}/"),
                    first=_under(tensors, f"first/{number}/"),
                    second=_under(tensors, f"second/{number}/"),
                )
                for number, group in enumerate(fields["groups"])
            ]
            fields["best"] = _under(tensors, "best/")
            for name in ARRAYS:
                fields[name] = tensors[name].numpy()
            for part in KEPT:
                fields[part] = {name: value.numpy() for name, value in _under(tensors, f"{part}/").items()}
            return cls(**fields)
        except (KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
            raise ArtifactError(
                f"this is not a whole training state ({type(error).__name__}: {error}); start the training anew"
            ) from error

    def to(self, device: torch.device) -> State:
        """Move the tensors to a device, in place."""
        self.best = {name: value.to(device) for name, value in self.best.items()}
        for group in self.groups:
            for part in PARTS:
                setattr(group, part, {name: value.to(device) for name, value in getattr(group, part).items()})
        return self

    def check(self, expected: str) -> None:
        """Refuse to continue another training."""
        if self.fingerprint != expected:
            raise OptionError(
                "the training state belongs to other data, runs or options; resume with those it was started with, "
                "or start anew"
            )


GROUP = ("runs", "batch", "epoch", "ended")
PARTS = ("parameters", "first", "second")
ARRAYS = ("best_epoch", "epochs", "validation_loss", "failed", "done")
KEPT = ("metrics", "outputs")


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}


class Interrupted(KeyboardInterrupt):
    """Training was interrupted between two epochs; `fit(..., state=interrupted.state)` goes on from there."""

    def __init__(self, state: State):
        super().__init__(f"interrupted after {min((group.epoch for group in state.groups), default=0)} epochs")
        self.state = state
