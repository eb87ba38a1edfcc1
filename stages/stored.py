"""What people have said, in artifacts, as a cell's source: what was done already cannot be searched again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from graphldp.client import VectorMechanism, from_meta
from graphldp.errors import OptionError
from graphldp.experiment.estimates import calibration_of
from graphldp.experiment.options import INDUCTIVE, Settings
from graphldp.experiment.plan import Devices, Setup, backbone_of, drawn, evidence_of, patience_of
from graphldp.experiment.space import Row, sorted_out
from graphldp.graph import Graph
from graphldp.methods import Method, method
from graphldp.server import Calibration
from graphldp.stages.answers import SurveyFile
from graphldp.stages.reports import CalibratedFile

__all__ = ["Answered", "Stored", "stored_device"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Artifact:
    """What people have said, in an artifact: only what is made of it can be searched.

    Attributes:
        graph: whose people they are.
        file: the artifact.
        params: where a coin's draws come from, and what is learned with unless a point says otherwise.
        other: the method, where it is not the artifact's.
    """

    graph: Graph
    file: CalibratedFile | SurveyFile
    params: Settings
    other: Method | None = None

    @property
    def recipe(self) -> Method:
        """The method, with what the command that made the artifact has changed in it."""
        if self.other is not None:
            return self.other
        return method(self.file.meta["method"]).but(self.file.meta.get("changes", {}))

    @property
    def row(self) -> Row:
        """What there is to search."""
        mechanism, model = str(self.file.meta["mechanism"]), self.params.train.model
        return Row(recipe=self.recipe, mechanism=mechanism, model=model, depths=self._depths())

    def setup(self, options: Mapping[str, Any]) -> Setup:
        """Return what a point's options mean; those that the artifact has behind it are an error."""
        own, changes, training = sorted_out(options)
        past = [*own, *(f"denoise.{key}" for key in changes if key in self._past())]
        if past:
            raise OptionError(
                f"{self.file.path} has its {', '.join(past)} behind it, so that cannot be searched here: `ldp run` "
                "perturbs, denoises and searches at once"
            )
        recipe, device = self.recipe.but(changes), stored_device(self.file.meta)

        def calibration(steps: int) -> Calibration:
            return self._calibration(recipe, steps, device, changed=bool(changes))

        patience = patience_of(self.params.train, training)
        return Setup(
            recipe=recipe,
            device=device,
            key=str(self.file.path),
            drawn=drawn(device, self.file.meta["random"], str(self.file.meta.get("reports", ""))),
            estimate=self.file.load,
            calibration=calibration,
            backbone=backbone_of(recipe, self.params.train, training),
            patience=patience,
            meta=lambda content, seeds: dict(self.file.meta),
            evidence=evidence_of(recipe, calibration, recipe.steps(self.params.search.steps)[0]),
        )

    def of(self, recipe: Method) -> Self | Devices:
        """Return the same reports, learned from by another method; a coin's, for one that nobody tells anything."""
        if recipe.mechanisms == ("null",) != self.recipe.mechanisms:
            return Devices(
                graph=self.graph, recipe=recipe, mechanism="null", epsilon=0.0, options={}, params=self.params
            )
        return replace(self, other=recipe)

    def _depths(self) -> tuple[int, ...] | None:
        """Return the filter depths that it was made for; None where it leaves them open."""
        return None

    def _past(self) -> tuple[str, ...]:
        """Return which parts of the method the artifact has behind it."""
        return self.recipe.round_options()

    def _calibration(self, recipe: Method, steps: int, device: VectorMechanism, *, changed: bool) -> Calibration:
        return calibration_of(recipe, steps, device, self.graph, whole=self.params.train.split != INDUCTIVE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stored(_Artifact):
    """Estimates in an artifact, with any threshold before the filter behind them."""

    file: CalibratedFile

    def _depths(self) -> tuple[int, ...]:
        return tuple(int(steps) for steps in self.file.meta["steps"])

    def _past(self) -> tuple[str, ...]:
        before = ("before", "tau") if self.recipe.threshold == "before" else ("before",)
        return (*before, *self.recipe.round_options())

    def _calibration(self, recipe: Method, steps: int, device: VectorMechanism, *, changed: bool) -> Calibration:
        filters = self.file.filters()
        if self.params.train.split != INDUCTIVE and not changed and self.other is None:
            return filters[steps]
        one = _Artifact._calibration(self, recipe, steps, device, changed=changed)
        if one.weighting != next(iter(filters.values())).weighting:
            raise OptionError(
                f"{self.file.path} lacks the node weights of the filter {recipe.filter}: `ldp run` can search it"
            )
        return one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered(_Artifact):
    """What people have said in turn, in an artifact."""

    file: SurveyFile


def stored_device(meta: Mapping[str, Any]) -> VectorMechanism:
    """Return what the devices of an artifact ran; of two rounds, the second."""
    options = {key: value for key, value in meta["options"].items() if key not in ("ranking", "rankings", "rho")}
    return from_meta({**meta, "options": options})
