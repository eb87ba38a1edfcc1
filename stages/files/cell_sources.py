"""What people have answered, in artifacts, as a cell's source: what was done already cannot be searched again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from graphldp.client import VectorMechanism, from_meta
from graphldp.errors import OptionError
from graphldp.experiment.conversation import Conversation
from graphldp.experiment.estimates import calibration_of
from graphldp.experiment.options import INDUCTIVE, Settings
from graphldp.experiment.parts import channel_of
from graphldp.experiment.plan import Devices, Setup, backbone_of, drawn, drop_of, evidence_of, patience_of
from graphldp.experiment.search_space import SearchedRow, sorted_out
from graphldp.experiment.server_view import ServerView
from graphldp.graph import Graph
from graphldp.methods import PREFIX, Method, method
from graphldp.server import Calibration, Estimate
from graphldp.stages.files.answers import AnswersFile, conversation_in, further_in
from graphldp.stages.files.artifacts import file_hash
from graphldp.stages.files.reports import CalibratedFile

__all__ = ["Answered", "StoredEstimates"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Artifact(ABC):
    """What people have answered, in an artifact: only what is made of it can be searched.

    Attributes:
        graph: whose people they are.
        file: the artifact.
        params: where a coin's draws come from, and what is learned with unless a point says otherwise.
        other: the method, where it is not the artifact's.
        made: whether it is known to be what this code makes of its seeds; else its bytes decide what comes of it.
        answers: where the answers to further questions stand, if the file was made of them.
    """

    graph: Graph
    file: CalibratedFile | AnswersFile
    params: Settings
    other: Method | None = None
    made: bool = False
    answers: AnswersFile | None = None

    @cached_property
    def server_view(self) -> ServerView:
        """What people have told beside their features."""
        found = further_in(self.file.meta)
        # The same answers, of which a server may make another graph.
        meant = self.params.further
        further = meant if meant.questions() == found.questions() else found
        file = self.answers if self.answers is not None else self.file
        linked = not self.recipe.alone
        if not further.asked or not isinstance(file, AnswersFile):
            return ServerView(graph=self.graph, further=further, root=self.params.seed, linked=linked)
        made = self.made and file.says.reproducible
        source = "" if made else str(file_hash(file.path))
        return ServerView(
            graph=self.graph,
            further=further,
            root=self.params.seed,
            listen=file.further_questions,
            source=source,
            linked=linked,
        )

    @property
    def recipe(self) -> Method:
        """The method, with what the command that made the artifact has changed in it."""
        if self.other is not None:
            return self.other
        return method(self.file.meta["method"]).but(self.file.meta.get("changes", {}))

    @property
    def row(self) -> SearchedRow:
        """What there is to search."""
        mechanism, model = self.file.says.mechanism, self.params.train.model
        drop = self.params.further.private_labels
        return SearchedRow(recipe=self.recipe, mechanism=mechanism, model=model, depths=self._depths(), drop=drop)

    def setup(self, options: Mapping[str, Any]) -> Setup:
        """Return what a point's options mean; those with which the artifact was made are an error."""
        own, changes, training = sorted_out(options)
        past = [*own, *(f"{PREFIX}{key}" for key in changes if key in self._past())]
        if past:
            raise OptionError(
                f"{self.file.path} was made with its {', '.join(past)}, so that cannot be searched here: `ldp run` "
                "perturbs, denoises and searches at once"
            )
        recipe = self.recipe.but(changes)
        channel = channel_of(self.server_view, **drop_of(training))

        def calibration(steps: int) -> Calibration:
            return self._calibration(recipe, steps, changed=bool(changes))

        steps, says = recipe.steps(self.params.search.steps)[0], self.file.says
        patience = patience_of(self.params.train, training)
        return Setup(
            recipe=recipe,
            device=self._device,
            m=says.m,
            key=str(self.file.path),
            drawn=drawn(self._device, says.random, "" if self.made and says.reproducible else self._hash),
            estimate=self._estimates(lambda: calibration(steps)),
            calibration=calibration,
            backbone=backbone_of(recipe, self.params.train, training),
            patience=patience,
            meta=lambda content, seeds: dict(self.file.meta),
            evidence=evidence_of(recipe, calibration, steps),
            channel=channel,
        )

    @cached_property
    def _hash(self) -> str:
        return str(file_hash(self.file.path))

    @property
    @abstractmethod
    def _device(self) -> VectorMechanism:
        """What describes the answers."""

    @abstractmethod
    def _estimates(self, first: Callable[[], Calibration]) -> Callable[[int], Estimate]:
        """Return what gives a seed's estimate; `first` is what comes before the filter."""

    def of(self, recipe: Method) -> Self | Devices:
        """Return the same reports, learned from by another method; a coin's, for one that nobody tells anything."""
        if recipe.silent and not self.recipe.silent:
            return Devices(
                graph=self.graph,
                recipe=recipe,
                mechanism=recipe.mechanism,
                epsilon=0.0,
                options={},
                params=self.params,
                heard=self.server_view if self.server_view.further.asked else None,
            )
        return replace(self, other=recipe)

    def _depths(self) -> tuple[int, ...] | None:
        """Return the filter depths that it was made for; None where it leaves them open."""
        return None

    def _past(self) -> tuple[str, ...]:
        """Return which parts of the method the artifact was made with."""
        return self.recipe.asking_options()

    def _calibration(self, recipe: Method, steps: int, *, changed: bool) -> Calibration:
        whole = self.params.train.split != INDUCTIVE and not self.server_view.private_links
        return calibration_of(recipe, steps, self._device, self.server_view.sample, whole=whole)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredEstimates(_Artifact):
    """Estimates in an artifact, with any threshold before the filter already applied."""

    file: CalibratedFile

    @cached_property
    def _device(self) -> VectorMechanism:
        return from_meta(self.file.meta)

    def _estimates(self, first: Callable[[], Calibration]) -> Callable[[int], Estimate]:
        return self.file.load

    def _depths(self) -> tuple[int, ...]:
        return self.file.steps

    def _past(self) -> tuple[str, ...]:
        before = ("before", "tau") if self.recipe.threshold == "before" else ("before",)
        return (*before, *self.recipe.asking_options())

    def _calibration(self, recipe: Method, steps: int, *, changed: bool) -> Calibration:
        filters = self.file.filters()
        if self.params.train.split != INDUCTIVE and not changed and self.other is None:
            return filters[steps]
        one = _Artifact._calibration(self, recipe, steps, changed=changed)
        if one.weighting != next(iter(filters.values())).weighting:
            raise OptionError(
                f"{self.file.path} lacks the node weights of the filter {recipe.filter}: `ldp run` can search it"
            )
        return one


@dataclass(frozen=True, kw_only=True, eq=False)
class Answered(_Artifact):
    """Answers in an artifact, of which nothing was made yet."""

    file: AnswersFile

    @cached_property
    def _asked(self) -> Conversation:
        return conversation_in(self.file.meta, self.graph, self.recipe)

    @property
    def _device(self) -> VectorMechanism:
        return self._asked.device

    def _estimates(self, first: Callable[[], Calibration]) -> Callable[[int], Estimate]:
        return lambda seed: self._asked.estimate(self.file.questions(seed), first())
