"""What a choice of options means: what the devices report, what the server makes of it, and what is learned with.

A cell trains points; each has a `Setup`. Points with equal reports share them, whatever else they differ in.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Protocol

from graphldp.client import VectorMechanism
from graphldp.errors import OptionError
from graphldp.experiment.addresses import addressed
from graphldp.experiment.conversation import ask, conversation_of, most_of
from graphldp.experiment.estimates import calibration_of
from graphldp.experiment.options import DROP, INDUCTIVE, SearchParams, Settings, TrainParams
from graphldp.experiment.parts import channel_of, check_relinks, check_task, learners_of, task_of
from graphldp.experiment.search_space import SearchedRow, own_search, sorted_out
from graphldp.experiment.server_view import ServerView, server_view_of
from graphldp.graph import Graph
from graphldp.learn import Backbone, model
from graphldp.learn.neighbors import missing_sampler
from graphldp.learn.tasks.private import LabelChannel
from graphldp.measures import measures_of
from graphldp.methods import Method
from graphldp.points import AXES, Point
from graphldp.server import Calibration, Estimate
from graphldp.server.evidence import Evidence, make_evidence

__all__ = [
    "CellPlan",
    "Devices",
    "Learner",
    "Setup",
    "Source",
    "backbone_of",
    "drawn",
    "drop_of",
    "evidence_of",
    "patience_of",
    "plan_of",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setup:
    """What a point's options mean.

    Attributes:
        recipe: the method with them.
        device: what describes the first answers.
        m: how many features the row's people report, whoever learns.
        key: setups with one key have the same estimates.
        estimate: a seed's estimate, with any threshold before the filter behind it.
        calibration: the filter, and what follows it, at a depth K.
        backbone, patience: what is learned with.
        meta: what the artifacts of these reports say of themselves, given the graph's hash and the seeds.
        evidence: what the model gets instead of the filtered estimate, or None.
        drawn: what decides the estimates wherever they come from: the devices and the randomness.
        beside: whose inputs, before any filter, stand beside these; or None.
        channel: what labels have gone through, and how that is reckoned with; None where they are true.
    """

    recipe: Method
    device: VectorMechanism
    m: int
    key: str
    estimate: Callable[[int], Estimate]
    calibration: Callable[[int], Calibration]
    backbone: Backbone
    patience: int
    meta: Callable[[str, Sequence[int]], dict[str, Any]]
    evidence: Evidence | None = None
    drawn: str = ""
    beside: Setup | None = None
    channel: LabelChannel | None = None

    @property
    def reads_reports(self) -> bool:
        """Whether people say anything of themselves in its own inputs, and not in what stands beside them."""
        return not self.recipe.silent

    @property
    def public(self) -> bool:
        """Whether nobody tells it anything: what it learns from are the graph, training labels and a coin's reports."""
        return not any(part.reads_reports for part in self.parts)

    @property
    def parts(self) -> tuple[Setup, ...]:
        """Those whose inputs stand side by side."""
        return (self,) if self.beside is None else (self, self.beside)

    def facts(self, content: str, settings: Settings) -> dict[str, Any]:
        """Return all that decides what is learned from, and with what; `content` is the hash of the graph."""
        return {
            "reports": [self.drawn, self.meta(content, settings.draws)["ledger"]],
            "recipe": repr(self.recipe),
            "evidence": repr(self.evidence),
            "backbone": repr(self.backbone),
            "patience": self.patience,
            "beside": None if self.beside is None else self.beside.facts(content, settings),
            **({} if self.channel is None else {"channel": repr(self.channel)}),
        }


class Source(Protocol):
    """Where a cell's reports come from: devices in memory, or an artifact."""

    @property
    def row(self) -> SearchedRow:
        """What there is to search."""
        ...

    @property
    def server_view(self) -> ServerView:
        """What people tell beside their features."""
        ...

    def setup(self, options: Mapping[str, Any]) -> Setup:
        """Return what a point's options mean; those that cannot be had are an error."""
        ...

    def of(self, recipe: Method) -> Source:
        """Return the same reports, learned from by another method."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """Points among which the validation loss decides: all of a plan's, or those of one of several learners.

    Attributes:
        name: the learner's; empty where there is only one.
        start, stop: its points are the plan's from `start` to before `stop`.
        follows: the learner that has to be the floor for this one to be tried; empty of those that are tried anyway.
    """

    name: str
    start: int
    stop: int
    follows: str = ""

    @property
    def points(self) -> range:
        """Which points it has."""
        return range(self.start, self.stop)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellPlan:
    """What a cell tries: its points, and what each of them means.

    Attributes:
        points: in the order in which they stand in the artifact.
        setups: one for each point; points with the same options have the same one.
        learners: whose points they are, in their order.
        server_view: what people are asked beside their features, and the graph as the server knows it by their answers.
        left_out: axes of the table's search that this row has not.
        caution: by how many standard errors a learner that asks people must be ahead of the floor to take its place.
    """

    points: tuple[Point, ...]
    setups: tuple[Setup, ...]
    learners: tuple[Learner, ...]
    server_view: ServerView
    left_out: tuple[str, ...] = ()
    caution: float = 1.0

    def facts(self, tried: Sequence[str] | None = None) -> dict[str, Any]:
        """Return what a search says of itself beyond what was asked for: the values tried, what it lacks.

        Of several learners the first says how many points it had, as everybody has, and beside it stands each one's;
        `tried` are those that were, where not all of them are.
        """
        first = self.learners[0]
        learners = [one for one in self.learners if tried is None or one.name in tried]
        points = [self.points[index] for one in learners for index in one.points]
        rows = [{**{name: getattr(point, name) for name in AXES}, **dict(point.options)} for point in points]
        names = sorted({name for row in rows for name in row})
        values = {name: _distinct([row[name] for row in rows if name in row]) for name in names}
        out: dict[str, Any] = {"points": len(first.points), "tried": values}
        if len(self.learners) > 1:
            # Who stands beside the floor's best has its point.
            out["learners"] = {one.name: 1 if one.follows else len(one.points) for one in learners}
        return out | ({"left_out": list(self.left_out)} if self.left_out else {})


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Return the values that there are, numbers in their order."""
    found = list({json.dumps(value): value for value in values}.values())
    numbers = all(isinstance(value, int | float) for value in found)
    return sorted(found) if numbers else sorted(found, key=json.dumps)


def plan_of(source: Source, params: Settings) -> CellPlan:
    """Return what a cell will try. Whatever is wrong with a point shows here, before anything is trained.

    A method that chooses among learners tries all of their points, and a point says whose it is.
    """
    search, row = params.searching, source.row
    check_task(row.recipe, params.train)
    if not row.recipe.learners:
        plan = _plan(source, search, row.plan(search, params.seed))
        _check_batches(row.recipe, plan, params)
        _check_links(row.recipe, plan, params)
        return plan
    names = learners_of(row.recipe, params.train)
    plans = {name: _of_learner(_learning(source, name), params, name) for name in names}
    # Whoever is chosen in the end, people have answered those learners that ask them.
    asking = [plan.setups[0] for plan in plans.values() if not plan.setups[0].public]
    if asking:
        meta, m = asking[0].meta, asking[0].m
        plans = {
            name: replace(plan, setups=tuple(replace(setup, meta=meta, m=m) for setup in plan.setups))
            for name, plan in plans.items()
        }
    starts = [0, *itertools.accumulate(len(plan.points) for plan in plans.values())]
    for plan in plans.values():
        _check_batches(row.recipe, plan, params)
    return CellPlan(
        points=tuple(point for plan in plans.values() for point in plan.points),
        setups=tuple(setup for plan in plans.values() for setup in plan.setups),
        server_view=source.server_view,
        learners=tuple(
            replace(
                plan.learners[0],
                name=name,
                start=start,
                stop=start + len(plan.points),
                follows=row.recipe.learner(name).beside and row.recipe.follows * name.partition("+")[0],
            )
            for (name, plan), start in zip(plans.items(), starts, strict=False)
        ),
        left_out=tuple(sorted(set.intersection(*(set(plan.left_out) for plan in plans.values())))),
        caution=row.recipe.caution,
    )


def _learning(source: Source, name: str) -> Source:
    """Return where one of several learners gets what it learns from, and what stands beside that."""
    one = source.row.recipe.learner(name)
    if not one.beside:
        return source.of(one)
    return _SideBySide(own=source.of(one), other=source.of(source.row.recipe.learner(one.beside)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _SideBySide:
    """Inputs of two methods side by side; all but these are the first one's: its axes, filter, model and loop."""

    own: Source
    other: Source

    @property
    def row(self) -> SearchedRow:
        return self.own.row

    @property
    def server_view(self) -> ServerView:
        return self.own.server_view

    def setup(self, options: Mapping[str, Any]) -> Setup:
        beside = self.other.setup({})
        return replace(self.own.setup(options), beside=beside, meta=beside.meta, m=beside.m)

    def of(self, recipe: Method) -> Source:
        return self.own.of(recipe)


def _check_batches(recipe: Method, plan: CellPlan, params: Settings) -> None:
    """Refuse batches of nodes for a model that cannot be trained in them here, before another one is trained."""
    if not params.train.batch_size or not task_of(params.train).by_node:
        return
    for point, setup in zip(plan.points, plan.setups, strict=True):
        if setup.channel is not None and not setup.channel.by_node:
            raise OptionError(
                f"labels that are propagated, or compared by clusters, are learned from in full batch alone, got "
                f"label_steps {setup.channel.steps} and label_bags {setup.channel.bags}; leave batch_size out, or "
                "search train.label_steps [0] and train.label_bags [0]"
            )
        missing = missing_sampler(setup.backbone.name) if setup.backbone.decoupled() is None else None
        if missing is not None:
            learner = dict(point.options).get("learner")
            raise OptionError(f"method {recipe.name!r}{f', learner {learner!r}' if learner else ''}: {missing}")


def _check_links(recipe: Method, plan: CellPlan, params: Settings) -> None:
    """Refuse what a method that finds private links anew cannot find them by."""
    device = plan.server_view.link_mechanism
    if recipe.relinks and plan.server_view.curator:
        raise OptionError(
            f"method {recipe.name!r} finds private links by what people report of them, and a curator's graph "
            f"({plan.server_view.curator}) is all that there is; take another method, or links that people report"
        )
    if not recipe.relinks or device is None:
        return
    check_relinks(recipe, device.name)
    if params.train.split == INDUCTIVE or not measures_of(params.train.task).classes:
        raise OptionError(
            f"method {recipe.name!r} finds private links in one graph whose nodes have classes to learn; use task "
            "node-classification and split random"
        )
    if len({setup.key for setup in plan.setups}) > 1:
        raise OptionError(
            f"method {recipe.name!r} finds private links once, for all points: give options of the mechanism and of "
            "what comes before the filter one value each"
        )


def _of_learner(source: Source, params: Settings, name: str) -> CellPlan:
    """Return the points of one of several learners: as many as every method has, or all that it has.

    Its own axes stay as they are: what a table searches under the same name belongs to the other rows.
    """
    row, search = source.row, own_search(source.row.recipe, params.searching)
    plan = _plan(source, search, row.plan_or_grid(search, params.seed))
    left_out = {*plan.left_out, *(key for key in params.searching.options if key not in search.options)}
    points = tuple(replace(point, options=(("learner", name), *point.options)) for point in plan.points)
    return replace(plan, points=points, left_out=tuple(sorted(left_out)))


def _plan(source: Source, search: SearchParams, candidates: tuple[Point, ...]) -> CellPlan:
    setups: dict[str, Setup] = {}
    for point in candidates:
        key = json.dumps(point.options)
        if key not in setups:
            setups[key] = source.setup(dict(point.options))
        setups[key].calibration(point.steps)
    return CellPlan(
        points=candidates,
        setups=tuple(setups[json.dumps(point.options)] for point in candidates),
        learners=(Learner(name="", start=0, stop=len(candidates)),),
        server_view=source.server_view,
        left_out=source.row.axes(search)[1],
    )


def backbone_of(recipe: Method, train: TrainParams, options: Mapping[str, Any] | None = None) -> Backbone:
    """Return the method's backbone, or the one that the parameters or the options ask for."""
    given = dict(options or {})
    name = str(given.pop("model", "") or train.model or recipe.model)
    name = recipe.model if recipe.alone else name
    known = {field.name for field in fields(type(model(name)))}  # type: ignore[arg-type]
    asked = (("hidden", train.hidden), *([("activation", train.activation)] if train.activation else []))
    common = {key: value for key, value in asked if key in known}
    return model(name, **{**common, **given})


def patience_of(train: TrainParams, options: dict[str, Any]) -> int:
    """Take the patience out of the options; the parameters' where there is none."""
    patience = options.pop("patience", train.patience)
    if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
        raise OptionError(f"train.patience must be a whole number of at least 1, got {patience!r}")
    return patience


def drop_of(options: dict[str, Any]) -> dict[str, Any]:
    """Take out of the options how noisy labels are learned from."""
    return {name.removeprefix("label_"): options.pop(name) for name in DROP if name in options}


def evidence_of(recipe: Method, calibration: Callable[[int], Calibration], steps: int) -> Evidence | None:
    """Return the method's evidence, if it has one; its depth K is that of a filter which needs nothing else."""
    if not recipe.evidence:
        return None
    one = calibration(steps)
    if not (one.linear and one.weighting == "none"):
        raise OptionError(f"method {recipe.name!r} has evidence, so its filter must be linear and without node weights")
    return make_evidence(recipe.evidence, **dict(recipe.options))


def drawn(device: VectorMechanism, random: Mapping[str, Any], artifact: str = "") -> str:
    """Return what decides the estimates: the devices and their randomness, or the hash of an `artifact` of them."""
    return json.dumps([device.meta(), random, artifact], sort_keys=True, default=str)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Devices:
    """Devices that report in memory, as `ldp perturb` and `ldp denoise` would have it.

    Attributes:
        graph: whose features are reported.
        recipe: the method.
        mechanism, epsilon, options: what the devices run, unless a point has other options.
        params: where splits and draws come from, and what is learned with unless a point says otherwise.
        heard: what people have told beside features, where they were asked before; else they are asked.
    """

    graph: Graph
    recipe: Method
    mechanism: str
    epsilon: float
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Settings
    heard: ServerView | None = None

    @property
    def row(self) -> SearchedRow:
        """What there is to search."""
        private = self.params.further.private_labels
        return SearchedRow(recipe=self.recipe, mechanism=self.mechanism, model=self.params.train.model, drop=private)

    @property
    def server_view(self) -> ServerView:
        """What people tell beside their features."""
        if self.heard is None:
            return server_view_of(self.graph, self.params, self.recipe)
        linked = self.heard.further.private_links and not self.recipe.alone
        if linked == self.heard.linked or not self.heard.further.private_links:
            return self.heard
        return replace(self.heard, linked=linked, kept={}, sent={})

    def setup(self, options: Mapping[str, Any]) -> Setup:
        """Return what a point's options mean; everything that can be wrong with them is checked."""
        graph, params = self.graph, self.params
        own, changes, training = sorted_out(options)
        given = {**self.options, **own}
        recipe = self.recipe.but(changes)
        conversation = conversation_of(graph, recipe, self.mechanism, self.epsilon, params, given)
        server_view = self.server_view
        channel = channel_of(server_view, **drop_of(training))

        @cache
        def calibration(steps: int) -> Calibration:
            whole = params.train.split != INDUCTIVE and not server_view.private_links
            return calibration_of(recipe, steps, conversation.device, server_view.sample, whole=whole)

        # What comes before the filter is the same at every depth.
        first = calibration(recipe.steps(params.search.steps)[0])

        @cache
        def most() -> float:
            return most_of(conversation)

        def estimate(seed: int) -> Estimate:
            return conversation.estimate(ask(conversation, seed, most()), first)

        patience = patience_of(params.train, training)
        return Setup(
            recipe=recipe,
            device=conversation.device,
            m=conversation.m,
            key=json.dumps(
                [self.mechanism, self.epsilon, given, repr(recipe.asking), first.before, first.weighting],
                sort_keys=True,
            ),
            drawn=drawn(conversation.device, addressed(params.seed)),
            estimate=estimate,
            calibration=calibration,
            backbone=backbone_of(recipe, params.train, training),
            patience=patience,
            meta=server_view.beside(conversation).meta,
            evidence=evidence_of(recipe, calibration, recipe.steps(params.search.steps)[0]),
            channel=channel,
        )

    def of(self, recipe: Method) -> Devices:
        """Return the same devices, learned from by another method; a coin's, for one that nobody tells anything.

        Everybody answers once: a learner beside one that asks people must not ask them again.
        """
        if recipe.silent and not self.recipe.silent:
            return replace(self, recipe=recipe, mechanism=recipe.mechanism, epsilon=0.0, options={})
        return replace(self, recipe=recipe)
