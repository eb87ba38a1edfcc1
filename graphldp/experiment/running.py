"""One method on one graph, in memory: perturb, calibrate, search, train and score, between floor and ceiling."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphldp import methods
from graphldp.client import option_names
from graphldp.datasets.memory import as_graph
from graphldp.errors import OptionError, unknown_name
from graphldp.evaluation import Confidence, Interval
from graphldp.experiment.cell import learn_cell, learn_majority, work_of
from graphldp.experiment.conversation import conversation_of
from graphldp.experiment.options import Further, SearchParams, Settings, TrainParams, check_settings
from graphldp.experiment.parts import given_away
from graphldp.experiment.plan import CellPlan, Devices, plan_of
from graphldp.experiment.resources import InMemory, Resources
from graphldp.experiment.result import CellResult
from graphldp.experiment.scores import Measured, measured
from graphldp.experiment.search_space import SearchedRow, check_axes, check_grids
from graphldp.experiment.server_view import ServerView, server_view_of
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.learn import Predicted, TrainedModel, predictions, trained
from graphldp.ledger import Ledger, ledger_from_meta
from graphldp.measures import measures_of
from graphldp.methods import Role
from graphldp.progress import Progress, nested

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RowResult", "RunResult", "run", "run_rows", "settings_of", "spent_by"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowResult:
    """One row: a method at a budget, with its final runs.

    Attributes:
        name: what tables call it.
        mechanism, epsilon, m: what was reported; m is how many features, None where nothing is.
        chosen: the point that the search chose.
        scores: the final runs' test scores by measure, the task's headline first.
        measured: their intervals: the headline, the other measures, the differences to floor and ceiling.
        search: what was tried, as artifacts of runs say it; empty where nothing is learned.
        spent: what every person spends in one run.
        cell: all of its runs, and what saves a model of them.
    """

    name: str
    mechanism: str
    epsilon: float
    m: int | None
    chosen: dict[str, Any]
    scores: Mapping[str, NDArray[np.float64]]
    measured: Measured
    search: Mapping[str, Any] = field(default_factory=dict)
    spent: Ledger = field(default_factory=Ledger)
    cell: CellResult

    @property
    def headline(self) -> NDArray[np.float64]:
        """The final runs' scores in the task's first measure."""
        return next(iter(self.scores.values()))

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """The final runs' accuracies, of a task that has classes."""
        return self.scores["accuracy"]

    @property
    def score(self) -> Interval:
        """The mean of the headline with its interval."""
        return self.measured.score

    @property
    def gain(self) -> Interval | None:
        """How much better it is than the floor, run by run; None for the floor, and where that was not run."""
        return self.measured.gain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunResult:
    """What `run` has found.

    Attributes:
        row: the method's row.
        rows: all rows: the commonest class, the floor, the method, the ceiling; without references, `row` alone.
        graph: what it was found on.
        settings: the seeds, the search and the training.
        device: where its models predict.
    """

    row: RowResult
    rows: tuple[RowResult, ...]
    graph: Graph
    settings: Settings
    device: str = "auto"

    @property
    def score(self) -> Interval:
        """The method's headline with its interval."""
        return self.row.score

    @property
    def gain(self) -> Interval | None:
        """How much better the method is than what nobody's data gives, the floor; None without references."""
        return self.row.gain

    @property
    def chosen(self) -> dict[str, Any]:
        """The point that the search chose."""
        return self.row.chosen

    @property
    def spent(self) -> Ledger:
        """What every person spends in one run."""
        return self.row.spent

    def model(self) -> TrainedModel:
        """Return the final model with the lowest validation loss.

        It is chosen among runs on several draws of everybody's reports, so its ledger adds all of them up.
        """
        cell, place = self.row.cell, self._best()
        assert cell.problem is not None
        assert cell.outcome is not None
        assert cell.setup is not None
        server_view = server_view_of(self.graph, self.settings, cell.setup.recipe)
        ledger = spent_by(cell, self.graph.content_hash(), self.settings, server_view)
        return trained(cell.problem, cell.runs[place], cell.outcome, place, cell.setup.backbone, spent=ledger)

    def predict(self) -> Predicted:
        """Return what that model says of every node of the graph, from the reports that it was trained on."""
        kept, cell = self.model(), self.row.cell
        assert cell.problem is not None
        used = cell.runs[self._best()]
        graph = cell.problem.graph(used.graph)
        return predictions(kept, cell.problem.inputs[used.inputs], graph.shift, graph.adjacency, device=self.device)

    def _best(self) -> int:
        final = [row["validation_loss"] for row in self.row.cell.rows if row["role"] == "final"]
        if self.row.cell.outcome is None:
            raise OptionError(f"{self.row.name} learns nothing, so it has no model")
        return int(np.argmin(final))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as JSON-able values, one mapping each."""
        head = measures_of(self.settings.train.task).headline
        return [
            {
                "dataset": self.graph.name,
                "name": row.name,
                "mechanism": row.mechanism,
                "epsilon": plain(row.epsilon),
                "m": row.m,
                "task": self.settings.train.task,
                "chosen": row.chosen,
                head.name: row.score.mean,
                "low": plain(row.score.low),
                "high": plain(row.score.high),
                "gain": None
                if row.gain is None
                else {part: plain(getattr(row.gain, part)) for part in ("mean", "low", "high")},
                "runs": row.headline.tolist(),
                "search": plain(row.search),
                "spent": row.spent.as_json(),
                "measures": {name: values.tolist() for name, values in row.scores.items()},
            }
            for row in self.rows
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with a line for each row: its name, budget, headline, interval and gain."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise OptionError("to_frame needs pandas: pip install pandas, or take to_dicts()") from None
        head = measures_of(self.settings.train.task).headline
        return pd.DataFrame(
            [
                {
                    "row": row.name,
                    "mechanism": row.mechanism,
                    "epsilon": row.epsilon,
                    head.name: row.score.mean,
                    "low": row.score.low,
                    "high": row.score.high,
                    **{f"gain{part}": getattr(row.gain, key, math.nan) for part, key in _GAIN},
                }
                for row in self.rows
            ]
        )


_GAIN = (("", "mean"), ("_low", "low"), ("_high", "high"))


def run(
    graph: Any,
    method: str = "lpgnn",
    *,
    epsilon: float,
    mechanism: str | None = None,
    seeds: int = 10,
    seed: int = 0,
    search_seeds: int = 2,
    references: bool = True,
    device: str = "auto",
    confidence: float = 0.95,
    name: str = "",
    low: float = 0.0,
    high: float = 1.0,
    progress: Progress | None = None,
    **options: Any,
) -> RunResult:
    """Perturb, calibrate, search, train and score one method, between its floor and its ceiling.

    Args:
        graph: a `graphldp.graph.Graph`, a torch_geometric `Data`, or (features, edges, labels).
        method: the recipe's name, as `ldp list methods` has it.
        epsilon: all that a person spends; a method of several questions shares it out.
        mechanism: what is reported; the method's own if left out.
        seeds: how many final runs there are; each has its own reports, split and initial weights.
        seed: the root of all randomness.
        search_seeds: how many other seeds each point of the search is tried on.
        references: whether the floor and the ceiling are run as well.
        device: where to compute.
        confidence: of the intervals.
        name: of a graph that has none; splits and noise are drawn for a name. Left out, it follows from what the graph
            holds, so that no two graphs share noise.
        low: the declared public lower bound of the features of a graph that has none.
        high: the declared public upper bound of them.
        progress: is told (done, total, text).
        options: what is asked beside features (`labels="krr"`, `epsilon_labels=1`,
            `links="blink"`, `epsilon_links=4`, `link_options={"report": "both"}`), and options of the mechanism
            (`m=4`), the method (`rho=0.5`), the training (`hidden=32`, `epochs=100`) or the
            search (`points=4`, `dropout=[0.25, 0.5]`).
    """
    known = as_graph(graph, name=name, low=low, high=high)
    recipe = methods.method(method)
    mechanism = recipe.choose(mechanism)
    own, changes, settings = settings_of(recipe, mechanism, options, seed=seed, seeds=seeds, search_seeds=search_seeds)
    asked = Devices(
        graph=known, recipe=recipe.but(changes), mechanism=mechanism, epsilon=epsilon, options=own, params=settings
    )
    return run_rows(
        asked,
        device=device,
        references=references,
        confidence=Confidence(level=confidence),
        progress=progress,
    )


def settings_of(
    recipe: methods.Method, mechanism: str, options: Mapping[str, Any], *, seed: int, seeds: int, search_seeds: int
) -> tuple[dict[str, Any], dict[str, Any], Settings]:
    """Return the mechanism's options, what is changed in the method, and the settings, from options by plain names."""
    trains = {one.name for one in dataclasses.fields(TrainParams)}
    asks = {one.name for one in dataclasses.fields(Further)}
    searches = {one.name for one in dataclasses.fields(SearchParams)} - {"seeds", "options"}
    row = SearchedRow(recipe=recipe, mechanism=mechanism)
    parts: dict[str, dict[str, Any]] = {"mechanism": {}, "method": {}, "train": {}, "search": {}, "further": {}}
    for key, value in options.items():
        if key in asks:
            parts["further"][key] = value
        elif key in option_names(mechanism):
            parts["mechanism"][key] = value
        elif key in trains:
            parts["train"][key] = value
        elif key in searches:
            many = isinstance(value, list | tuple)
            axis = isinstance(getattr(SearchParams(), key), tuple)
            parts["search"][key] = (tuple(value) if many else (value,)) if axis else value
        elif row.has(f"method.{key}", {}):
            parts["method"][key] = value
        else:
            raise unknown_name(
                f"option of {recipe.name} with {mechanism}", key, {*option_names(mechanism), *trains, *searches, *asks}
            )
    search = SearchParams(seeds=search_seeds, **parts["search"])
    links = parts["further"].pop("link_options", {})
    further = Further(**parts["further"], link_options=tuple(dict(links).items()))
    settings = Settings(seed=seed, seeds=seeds, search=search, train=TrainParams(**parts["train"]), further=further)
    check_settings(settings)
    return parts["mechanism"], parts["method"], settings


def run_rows(
    own: Devices,
    *,
    device: str = "auto",
    resources: Resources | None = None,
    references: bool = True,
    confidence: Confidence | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> RunResult:
    """Run what people answer who are asked in memory, and, with `references`, the rows that every table has.

    `say` is told how many links will be reported, once what was asked for can be had and before anybody is asked.
    """
    graph, recipe, settings = own.graph, own.recipe, own.params
    if not recipe.model:
        raise OptionError(f"method {recipe.name!r} is a row of every table by itself; choose another to run")
    wanted = [(recipe, own.mechanism, own.epsilon, dict(own.options))]
    if references:
        others = [one for one in methods.references() if one.model and one.name != recipe.name]
        wanted += [(one, one.mechanism, one.budget or 0.0, {}) for one in others]
        wanted.sort(key=lambda one: list(Role).index(one[0].role))
    # The floor has what people tell beside their features, the ceiling what is true of them.
    asked = [settings.but_public() if one.role is Role.CEILING else settings for one, *_ in wanted]
    # Whatever is wrong with a cell shows before the first one is trained.
    cells = [
        Devices(graph=graph, recipe=one, mechanism=name, epsilon=float(budget), options=extra, params=params)
        for (one, name, budget, extra), params in zip(wanted, asked, strict=True)
    ]
    check_axes(settings.search, [cell.row for cell in cells])
    own = next(cell for cell in cells if cell.recipe is recipe)
    talk = conversation_of(graph, recipe, own.mechanism, own.epsilon, settings, own.options)
    recipe.calibration(recipe.steps(settings.search.steps)[0], talk.device, 1.0)
    forecast = own.server_view.forecast()
    if say is not None and forecast:
        say(forecast)
    # First what was asked for: what is wrong with it is not the floor's fault.
    order = sorted(range(len(cells)), key=lambda place: cells[place].recipe.name != recipe.name)
    planned = {place: _plan(cells[place], asked[place], asked=recipe.name) for place in order}
    plans = [planned[place] for place in range(len(cells))]
    if settings.search.strategy == "grid":
        names = [cell.recipe.cell_name(cell.mechanism) for cell in cells]
        check_grids({name: plan.points[: plan.learners[0].stop] for name, plan in zip(names, plans, strict=True)})
    resources = resources or Resources(memo=InMemory())  # floor, ceiling and what falls back on it share learners
    results: list[tuple[Devices | None, CellPlan | None, CellResult]] = []
    if references:
        results.append((None, None, learn_majority(graph, settings)))
    work, ahead = [], set[str]()
    for plan, settings_here in zip(plans, asked, strict=True):
        work.append(work_of(graph, plan, settings_here, device, resources, ahead).total)
        ahead |= {one.name for one in plan.learners if one.name and plan.setups[one.start].public}
    for count, (cell, plan) in enumerate(zip(cells, plans, strict=True)):
        part = nested(progress, count, work)
        found = learn_cell(
            graph,
            plan,
            asked[count],
            device=device,
            resources=resources,
            progress=part,
            whole=cell.recipe is recipe,
        )
        results.append((cell, plan, found))
    rows = _rows(graph, settings, results, confidence or Confidence())
    place = next(count for count, (cell, _, _) in enumerate(results) if cell is not None and cell.recipe is recipe)
    return RunResult(row=rows[place], rows=rows, graph=graph, settings=settings, device=device)


def _rows(
    graph: Graph,
    settings: Settings,
    results: Sequence[tuple[Devices | None, CellPlan | None, CellResult]],
    confidence: Confidence,
) -> tuple[RowResult, ...]:
    measures = measures_of(settings.train.task)
    scores = [_scores(result, measures.names) for *_, result in results]
    guess = methods.reference(Role.GUESS)
    recipes = [guess if cell is None else cell.recipe for cell, *_ in results]
    roles = [one.role for one in recipes]
    floor, ceiling = (scores[roles.index(role)] if role in roles else None for role in (Role.FLOOR, Role.CEILING))
    content, out = graph.content_hash(), []
    for recipe, own, (cell, plan, result) in zip(recipes, scores, results, strict=True):
        name = recipe.name if cell is None else recipe.cell_name(cell.mechanism)
        epsilon = 0.0 if cell is None else cell.epsilon
        lower = None if recipe.role in (Role.GUESS, Role.FLOOR) else floor
        upper = None if recipe.role is Role.CEILING else ceiling
        out.append(
            RowResult(
                name=name,
                mechanism="none" if cell is None else cell.mechanism,
                epsilon=epsilon,
                m=None if result.setup is None else result.setup.m,
                chosen=result.chosen,
                scores=own,
                measured=measured(own, lower, upper, measures, confidence),
                search={} if plan is None else {**asdict(settings.search), **plan.facts(result.learners)},
                spent=spent_by(
                    result, content, settings, server_view_of(graph, settings, methods.method(recipe.name))
                ).once(),
                cell=result,
            )
        )
    return tuple(out)


def spent_by(result: CellResult, content: str, settings: Settings, server_view: ServerView) -> Ledger:
    """Return what people have spent on all runs of a cell: their answers, and numbers that they gave away."""
    given = given_away(settings.train, content)
    if result.setup is None:
        return Ledger(spends=(*server_view.ledger(content, settings.draws).spends, *given.spends))
    answers = ledger_from_meta([result.setup.meta(content, settings.draws)])
    return Ledger(spends=(*answers.spends, *given.spends))


def _scores(result: CellResult, measures: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    final = [row for row in result.rows if row["role"] == "final"]
    return {one: np.array([row[f"test_{one}"] for row in final], dtype=np.float64) for one in measures}


def _plan(cell: Devices, settings: Settings, asked: str) -> CellPlan:
    """Return a cell's plan; where it cannot be, and was not asked for by name, say how to leave it out."""
    try:
        return plan_of(cell, settings)
    except OptionError as error:
        if cell.recipe.name == asked:
            raise
        raise OptionError(f"{error}; or leave the references, floor and ceiling, out") from error
