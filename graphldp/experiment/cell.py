"""One cell of a table, in memory: search, choose, train the final runs, score them.

`ldp train` feeds it from artifacts, `ldp run` from the mechanisms directly; both get the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import DataError
from graphldp.experiment.estimates import centred, evidence_inputs, plain_inputs, side_by_side, unit_scale, widened
from graphldp.experiment.options import Settings
from graphldp.experiment.parts import (
    NodePart,
    Part,
    final_scores,
    graph_places,
    part_of,
    problem_of,
    relinked,
    task_of,
    weighted_problem_of,
)
from graphldp.experiment.plan import CellPlan, Learner, Setup
from graphldp.experiment.resources import Resources, Rows
from graphldp.experiment.result import CellResult, Checkpoint, Pause
from graphldp.experiment.server_view import ServerView, most_links, server_view_of
from graphldp.graph import Graph
from graphldp.learn import (
    Interrupted,
    NodeInputs,
    Options,
    Outcome,
    Problem,
    Run,
    State,
    chosen_point,
    fit,
    resolve_device,
    runs_of,
)
from graphldp.learn.row_store import Stores
from graphldp.measures import measures_of
from graphldp.methods import Role, reference
from graphldp.progress import Progress
from graphldp.randomness import generator, seed_of
from graphldp.server import Calibration, Estimate, shift
from graphldp.server.evidence import Evidence, EvidenceSetting
from graphldp.server.links import memory_for
from graphldp.server.propagation import class_shares

__all__ = ["Work", "learn_cell", "learn_majority", "search_cell", "work_of"]

EQUAL = 1e-9  # means over splits that differ by less are the same: floats have rounded them
FINALISTS = 3  # of a kind: those that nobody tells anything, and those that ask people


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How much a cell is to do at most, for a progress bar: epochs of batches and of their runs.

    Batches are trained one after the other, and the runs of one side by side. An epoch of a further run costs less than
    the first, and a batch goes on until its slowest run stops: measured on Cora for classes, numbers and links, a batch
    of one run takes about twice what each further run adds, and the best points of a search train half as long again as
    its points do on average.

    Attributes:
        search: of all learners' points.
        playoff: of the learners' best points, where there are several learners.
        later: of a learner that is tried when the floor's best is known.
        final: of the chosen point.
    """

    search: int
    playoff: int
    later: int
    final: int

    @property
    def total(self) -> int:
        """All of it; at least 1, so that shares of it can be taken where everything is known already."""
        return max(1, self.search + self.playoff + self.later + self.final)


def work_of(
    graph: Graph, plan: CellPlan, params: Settings, device: str, resources: Resources, ahead: Collection[str] = ()
) -> Work:
    """Return how much `learn_cell` is to do, without what the memo has or will have of the learners named `ahead`."""
    return _Cell(graph, plan, params, device, resources, None).planned(ahead)


def learn_majority(graph: Graph, params: Settings, server_view: ServerView | None = None) -> CellResult:
    """Score on every final split what looks at neither features nor edges: the commonest class, the mean, chance.

    `server_view` has the answers to further questions, where they were given before; else people are asked.
    """
    rows, server_view = [], server_view or server_view_of(graph, params, reference(Role.GUESS))
    for seed in range(params.seeds):
        part = part_of(graph, params, seed, server_view)
        row = _row("final", 0, seed, {}, part)
        for name, scores in zip(("validation", "test"), part.guess(), strict=True):
            row |= {f"{name}_{key}": value for key, value in scores.items()}
        rows.append(row)
    return CellResult(rows=rows, chosen={})


def learn_cell(
    graph: Graph,
    plan: CellPlan,
    params: Settings,
    *,
    device: str = "auto",
    resources: Resources | None = None,
    pause: Pause | None = None,
    progress: Progress | None = None,
    whole: bool = True,
) -> CellResult:
    """Search on seeds that the final runs never use, choose by validation loss, train and score the final runs.

    Interrupted, it hands a checkpoint to the `pause`; given back, it goes on from there and ends as if it had never
    stopped. Where the models are not wanted, it need not be `whole`: final runs of the floor that the memo has are
    taken from there.
    """
    cell = _Cell(graph, plan, params, device, resources or Resources(), progress, whole=whole)
    with cell.kept(pause or Pause()):
        cell.try_all()
        return cell.final()


def search_cell(
    graph: Graph,
    plan: CellPlan,
    params: Settings,
    *,
    device: str = "auto",
    resources: Resources | None = None,
    pause: Pause | None = None,
    progress: Progress | None = None,
) -> CellResult:
    """Search and choose as `learn_cell` does, and stop there: no test label is opened.

    Several learners are compared as there, on the validation part of the final seeds; else nothing final is trained.
    """
    cell = _Cell(graph, plan, params, device, resources or Resources(), progress, alone=True)
    with cell.kept(pause or Pause()):
        cell.try_all()
        index = cell.chosen()
    point = plan.points[index]
    return CellResult(
        rows=cell.tried,
        chosen=point.values(),
        steps=point.steps,
        setup=plan.setups[index],
        records=cell.records,
        learners=cell.learners,
    )


@dataclass(slots=True)
class _Cell:
    """The phases of a cell, on the trainer's terms: the search, a playoff where there are several learners, the end.

    Attributes:
        alone: whether it ends with the choice.
        whole: whether the final models are wanted, which the memo has not.
        phase: `search`, `playoff` or `final`.
        floor: which learner is the best of those that nobody tells anything, once one is tried that stands beside it.
        tried: the rows of the search's batches that are finished, and of the playoff.
        records: what the trainer noted of them.
        state: of a batch that was interrupted.
        estimates, matrices: estimates and evidence by their key and seed, as long as a batch needs them.
        parts: what is trained on, selected by and tested on, by seed.
        built: the last batch's problem and runs.
        played: what this process has trained for the playoff, by point.
        hashed: the hash of the graph, once it is known.
        looked: whether the memo had a learner's search before the cell began, by the learner's name.
        work: how much the cell is to do, once that was counted.
        pause: who is told where it stands.
    """

    graph: Graph
    plan: CellPlan
    params: Settings
    device: str
    resources: Resources
    progress: Progress | None
    alone: bool = False
    whole: bool = True
    phase: str = "search"
    floor: str = ""
    tried: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    state: State | None = None
    estimates: dict[tuple[str, int], Estimate] = field(default_factory=dict)
    matrices: dict[tuple[str, int], NDArray[np.float32]] = field(default_factory=dict)
    parts: dict[int, Part] = field(default_factory=dict)
    built: tuple[list[int], Problem, list[Run]] | None = None
    played: dict[int, Outcome] = field(default_factory=dict)
    stores: Stores | None = None
    hashed: str = ""
    looked: dict[str, bool] = field(default_factory=dict)
    work: Work | None = None
    pause: Pause = field(default_factory=Pause)

    @contextmanager
    def kept(self, pause: Pause) -> Iterator[None]:
        """Go on from a checkpoint; interrupted, hand out another one, whatever was being done."""
        checkpoint, self.pause = pause.checkpoint, pause
        if checkpoint is not None:
            self.phase, self.tried, self.records = checkpoint.phase, checkpoint.rows, checkpoint.records
            self.state = None if checkpoint.state is None else State.from_bytes(checkpoint.state)
        try:
            with ExitStack() as stack:
                if self.resources.stores is not None:
                    self.stores = stack.enter_context(self.resources.stores())
                yield
        except KeyboardInterrupt as stop:
            state = stop.state if isinstance(stop, Interrupted) else self.state
            if pause.on_stop is not None:
                pause.on_stop(self.checkpoint(state))
            raise KeyboardInterrupt from stop

    def checkpoint(self, state: State | None = None) -> Checkpoint:
        """Return where the cell stands, with the state of the batch in training."""
        return Checkpoint(
            fingerprint=self.pause.fingerprint,
            phase=self.phase,
            rows=self.tried,
            records=self.records,
            state=None if state is None else state.to_bytes(),
        )

    def note(self, rows: Rows, record: dict[str, Any]) -> None:
        """Note what a batch has become, also for a process that goes on if this one is killed."""
        self.tried, self.records = [*self.tried, *rows], [*self.records, record]
        if self.pause.on_way is not None:
            self.pause.on_way(self.checkpoint())

    def options(self, setup: Setup) -> Options:
        """Return the backbone and the loop's options."""
        return Options(
            model=setup.backbone,
            task=task_of(self.params.train, setup.channel),
            epochs=self.params.train.epochs,
            patience=setup.patience,
            batch_size=self.params.train.batch_size,
            neighbors=self.params.train.neighbors,
            max_memory=self.resources.max_memory,
        )

    def batches(self, chosen: Sequence[int], seed: int) -> list[list[int]]:
        """Return points in groups that are trained as one batch: one backbone, and one operator where there is one.

        Evidence is as wide as it likes, and a batch has one width: that of the inputs of `seed`, or of the widest where
        columns of zeros change nothing.
        """
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index in chosen:
            setup, steps = self.plan.setups[index], self.plan.points[index].steps
            widths = () if _widened(setup) else self.widths(setup, seed)
            key = (repr(self.options(setup)), widths, _operator_key(setup, steps))
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    def problem(self, batch: list[int], seeds: Sequence[int]) -> tuple[Problem, list[Run]]:
        """Return a batch as the trainer has it: run p * len(seeds) + s is its p-th point on the s-th seed."""
        if self.built is not None and self.built[0] == [*batch, *seeds]:
            return self.built[1:]
        self.built = None
        parts = [self.part(seed) for seed in seeds]
        replicas = [
            part.replica(place, graph, seed_of(self.params.seed, "train", self.graph.name, seed))
            for place, (part, graph, seed) in enumerate(zip(parts, graph_places(parts), seeds, strict=True))
        ]
        points = [self.plan.points[index] for index in batch]
        setups = [self.plan.setups[index] for index in batch]
        filters = [setup.calibration(point.steps) for setup, point in zip(setups, points, strict=True)]
        linear = filters[0].linear
        # Where the filter commutes with the weights, points that differ in it alone have the same inputs.
        keys: list[Any] = [_input_key(setup) for setup in setups]
        if not linear:
            first = [setups.index(setup) for setup in setups]
            keys = list(zip(first, (point.steps for point in points), strict=True))
        slots = list(dict.fromkeys(keys if linear else sorted(keys)))
        inputs = []
        for slot in slots:
            place = keys.index(slot)
            inputs += [self.inputs(setups[place], None if linear else filters[place], seed) for seed in seeds]
        if _widened(setups[0]):
            inputs = widened(inputs)
        weighted = linear and filters[0].weighting != "none"
        if weighted:  # people's weights differ from seed to seed, and with them S
            estimates = [self.estimate(setups[keys.index(slot)], seed) for slot in slots for seed in seeds]
            problem = weighted_problem_of(parts, inputs, filters[0].operator, estimates)
        else:
            problem = problem_of(parts, inputs, filters[0].operator if linear else shift)
        runs = []
        for point, one, key in zip(points, filters, keys, strict=True):
            for run in runs_of([point], replicas, _constant(one.coefficients if linear else (1.0,))):
                place = run.inputs + len(seeds) * slots.index(key)
                runs.append(replace(run, inputs=place, graph=place if weighted else run.graph))
        distinct = {(place % len(parts), run.inputs, run.graph): run for place, run in enumerate(runs)}
        for (place, _, _), run in distinct.items():
            parts[place].check(problem, run)
        self.built = ([*batch, *seeds], problem, runs)
        return problem, runs

    def train(self, batch: list[int], seeds: Sequence[int], say: Progress | None) -> tuple[Problem, list[Run], Outcome]:
        """Train a batch, from the state of an interrupted training if there is one."""
        problem, runs = self.problem(batch, seeds)
        options = self.options(self.plan.setups[batch[0]])
        outcome = fit(
            problem,
            runs,
            options,
            device=self.device,
            progress=say,
            state=self.state,
            processes=self.resources.processes,
            stores=self.stores,
        )
        self.resources.tell(self.phase, outcome)
        self.state = None
        return problem, runs, outcome

    def inputs(self, setup: Setup, calibration: Calibration | None, seed: int, *, beside: bool = False) -> NodeInputs:
        """Return what a model is given for a seed; with `calibration`, filtered by it; `beside` something else or not.

        A log posterior by itself is given as it is: its scale says how sure it is.
        """
        part = self.part(seed)
        if setup.beside is not None:
            if calibration is not None:
                raise DataError(f"{setup.recipe.name} filters its inputs itself, so that nothing can stand beside them")
            parts = [self.inputs(replace(one, beside=None), None, seed, beside=True) for one in setup.parts]
            return side_by_side(parts, over=None if setup.recipe.propagates else part.graph.adjacency())
        if setup.evidence is not None:
            over = None if setup.recipe.propagates else part.graph.adjacency()
            unit = self.unit and (beside or not setup.evidence.posterior)
            return evidence_inputs(self.evidence(setup, seed), unit, over=over, seen=part.seen)
        estimate, scale = self.estimate(setup, seed), 1.0
        if self.unit:
            scale, estimate = unit_scale(estimate, part.seen), centred(estimate)
        if calibration is None:
            return plain_inputs(estimate, scale)
        return part.filtered(self.plan.server_view.sample, estimate, calibration, scale)

    @property
    def unit(self) -> bool:
        """Whether all inputs are brought to one scale."""
        return self.params.train.standardize

    def estimate(self, setup: Setup, seed: int) -> Estimate:
        """Return a seed's estimate, computed once."""
        key = (setup.key, seed)
        if key not in self.estimates:
            self.estimates[key] = setup.estimate(seed)
        return self.estimates[key]

    def evidence(self, setup: Setup, seed: int) -> NDArray[np.float32]:
        """Return a seed's evidence, from labels of the seed's training nodes alone."""
        assert setup.evidence is not None
        return setup.evidence.cut(self._whole_evidence(setup, seed), self.graph.classes)

    def _whole_evidence(self, setup: Setup, seed: int) -> NDArray[np.float32]:
        """Return what a seed's evidence is columns of, computed once."""
        assert setup.evidence is not None
        evidence = setup.evidence.whole()
        key = (_evidence_key(setup, evidence), seed)
        if key not in self.matrices:
            part = self.part(seed)
            estimate = self.estimate(setup, seed) if evidence.reads else None
            root = seed_of(self.params.seed, "evidence", self.graph.name, seed)
            server_view = self.plan.server_view
            links = server_view.link_reports(seed) if evidence.links else None
            setting = EvidenceSetting.of(
                part.graph, estimate, setup.device, part.labelled, root, part.seen, server_view.chances, links
            )
            self.matrices[key] = evidence.matrix(setting)
        return self.matrices[key]

    def widths(self, setup: Setup, seed: int) -> tuple[int, ...]:
        """Return how many columns of evidence a model is given, for each thing that stands beside the others."""
        return tuple(0 if part.evidence is None else self.evidence(part, seed).shape[1] for part in setup.parts)

    def forget(self, batches: Sequence[Sequence[int]]) -> None:
        """Drop what none of these batches needs, but what people have said where several learners hear it."""
        setups = [part for batch in batches for index in batch for part in self.plan.setups[index].parts]
        if len(self.plan.learners) > 1:
            setups += [part for setup in self.plan.setups for part in setup.parts if part.reads_reports]
        estimates = {setup.key for setup in setups}
        matrices = {_evidence_key(setup, setup.evidence.whole()) for setup in setups if setup.evidence is not None}
        self.estimates = {key: one for key, one in self.estimates.items() if key[0] in estimates}
        self.matrices = {key: one for key, one in self.matrices.items() if key[0] in matrices}

    def part(self, seed: int) -> Part:
        """Return what a seed's runs are trained on, selected by and tested on; made once."""
        if seed not in self.parts:
            part = part_of(self.graph, self.params, seed, self.plan.server_view)
            self.parts[seed] = self._relinked(part, seed)
        return self.parts[seed]

    def _relinked(self, part: Part, seed: int) -> Part:
        """Return the part over the links that the method finds anew, where it does so and links are private."""
        setup = self.plan.setups[0]
        reports = self.plan.server_view.link_reports(seed) if setup.recipe.relinks else None
        if reports is None:
            return part
        rng = generator(self.params.seed, "links", self.graph.name, seed)
        limit = self.resources.max_memory or memory_for(most_links(self.plan.server_view.further))
        return relinked(part, setup.recipe, reports, self.estimate(setup, seed), rng, limit)

    @property
    def learners(self) -> tuple[str, ...]:
        """The names of the learners that are tried: those that depend on what the floor is, once it is known."""
        return tuple(one.name for one in self.plan.learners if not one.follows or one.follows == self.floor)

    def try_all(self) -> None:
        """Search, and where there are several learners compare them; what a checkpoint has is not done again.

        Where what people say counts, and the floor's best knows clearly more than stands in that already, it learns
        once more at the point that it has, with what they say beside what it knows. One that propagates costs as much
        as all else to train again, so that it does so only where what people say is not clearly ahead by itself.
        """
        first, work = [one for one in self.plan.learners if not one.follows], self.planned()
        self.search(first, 0.0, work.search / work.total)
        if len(self.plan.learners) == 1:
            return
        start, share = work.search / work.total, work.playoff / work.total
        self.playoff(self.finalists(), start, share)
        follower = self.follower()
        if follower is not None:
            self.floor = self._of(follower).follows
            self.playoff([follower], start + share, work.later / work.total)

    def follower(self) -> int | None:
        """Return the point of the learner that stands beside the floor's best, where it is worth a try."""
        best = [index for index in self.contenders() if index in self.met()]
        scores = self._scores(best)
        place = self._floor(scores, best)
        own = self._of(best[place])
        found = next((one for one in self.plan.learners if one.follows == own.name), None)
        dear = self.plan.setups[best[place]].recipe.propagates
        if found is None or (dear and _leader(scores, place, self._asking(best)) != place):
            return None
        index = found.start + best[place] - own.start
        beside = self.plan.setups[index].beside
        assert beside is not None
        known = self._unasked(beside)
        more = known is None or _leader(np.stack([known, scores[place]]), 0, [1]) == 1
        return index if more and self._heard(beside) else None

    def _heard(self, setup: Setup) -> bool:
        """Return whether what people say counts for anything on a final seed."""
        return any(
            part.evidence is None
            or any(
                part.evidence.counts(self._whole_evidence(part, seed), self.graph.classes)
                for seed in range(self.params.seeds)
            )
            for part in setup.parts
            if part.reads_reports
        )

    def _unasked(self, beside: Setup) -> NDArray[np.float64] | None:
        """Return what stands in evidence without people's answers reaches on the final seeds' validation parts."""
        headline, out = measures_of(self.params.train.task).headline, []
        for seed in range(self.params.seeds):
            part = self.part(seed)
            if beside.evidence is None or not isinstance(part, NodePart) or part.labels is None:
                return None
            shares = class_shares(part.labels, part.labelled, self.graph.classes)
            found = beside.evidence.unasked(self._whole_evidence(beside, seed), shares)
            scores = {} if found is None else part.validated(found.argmax(axis=1))
            if headline.name not in scores:
                return None
            out.append(headline.sign * scores[headline.name])
        return np.array(out)

    def planned(self, ahead: Collection[str] = ()) -> Work:
        """Return how much there is to do, without what the memo has; the learners of these names will be in it.

        A playoff's finalists are not known yet: as many as there may be, and those of learners that nobody tells
        anything are in the memo where their searches are.
        """
        if self.work is None:
            first = [one for one in self.plan.learners if not one.follows]
            public = [one for one in first if self.plan.setups[one.start].public]
            new = [one for one in first if one.name not in ahead and not self._was_known(one)]
            final = 3 * self.params.train.epochs * _batch_cost(1, self.params.seeds) // 2
            told = int(final * max(map(self._longer, first)))
            several = len(self.plan.learners) > 1
            meet = min(sum(one in new for one in public), FINALISTS + 1) * final
            meet += min(len(first) - len(public), FINALISTS) * told
            self.work = Work(
                search=sum(map(self._cost, new)),
                playoff=several * meet,
                later=(len(first) < len(self.plan.learners)) * told,
                # The winner of a playoff is not trained again, unless the memo has the playoff.
                final=0 if self.alone or (several and new) else told,
            )
        return self.work

    def _cost(self, learner: Learner) -> int:
        """Return how much work a learner's search is: points with other options are in other batches."""
        batches = len({id(self.plan.setups[index]) for index in learner.points})
        cost = self.params.train.epochs * _batch_cost(batches, len(learner.points) * self.params.search.seeds)
        return int(cost * self._longer(learner))

    def _longer(self, learner: Learner) -> float:
        """Return how much longer a learner trains than those that nobody tells anything."""
        parts = self.plan.setups[learner.start].parts
        told = any(part.reads_reports and part.device.epsilon == np.inf for part in parts)
        return measures_of(self.params.train.task).longer if told else 1.0

    def _was_known(self, learner: Learner) -> bool:
        """Return whether the memo had a learner's search when this was asked first."""
        if learner.name not in self.looked:
            memo, key = self.resources.memo, self._known_by(learner, "search", learner.points)
            known = memo is not None and key is not None and memo.get(self.graph.name, key) is not None
            self.looked[learner.name] = known
        return self.looked[learner.name]

    def search(self, learners: Sequence[Learner], start: float, share: float) -> None:
        """Try the points on the search's seeds; what a checkpoint has is not tried again.

        It is `share` of the cell, from `start` on.
        """
        self._enter("search")
        seeds = [-1 - k for k in range(self.params.search.seeds)]
        costs = [0 if self._was_known(learner) else self._cost(learner) for learner in learners]
        parts = [share * cost / max(1, sum(costs)) for cost in costs]
        for learner, part in zip(learners, parts, strict=True):
            with self._once(learner, "search", learner.points) as known:
                if not known:
                    self._try(learner, seeds, start, part / len(learner.points))
            start += part
        self.tried.sort(key=_place)

    @contextmanager
    def _once(self, learner: Learner, phase: str, points: Sequence[int]) -> Iterator[bool]:
        """Take a learner's rows of a phase from the memo, and say so; or keep there what is computed meanwhile."""
        if self.state is not None or any(row["role"] == phase and row["point"] in points for row in self.tried):
            yield False
            return
        known = self._recall(learner, phase, points)
        if known is not None:
            self.tried, self.records = [*self.tried, *known[0]], [*self.records, *known[1]]
            yield True
            return
        before = (len(self.tried), len(self.records))
        yield False
        self._keep(learner, phase, points, self.tried[before[0] :], self.records[before[1] :])

    def _keep(self, learner: Learner, phase: str, points: Sequence[int], rows: Rows, records: Rows) -> None:
        """Keep what a learner has become in the memo, where that follows from what all cells know."""
        memo, key = self.resources.memo, self._known_by(learner, phase, points)
        if memo is not None and key is not None and self.resources.leads:
            memo.put(self.graph.name, key, *_moved(rows, records, -learner.start))

    def _recall(self, learner: Learner, phase: str, points: Sequence[int]) -> tuple[Rows, Rows] | None:
        """Return what the memo has of a learner: what it has for the first process, in all of them."""
        memo, key = self.resources.memo, self._known_by(learner, phase, points)
        if memo is None or key is None:
            return None
        known = memo.get(self.graph.name, key) if self.resources.leads else None
        if self.resources.processes is not None:
            data = self.resources.processes.gather(b"" if known is None else json.dumps(known).encode())[0]
            known = json.loads(data) if data else None
        return None if known is None else _moved(*known, learner.start)

    def _known_by(self, learner: Learner, phase: str, points: Sequence[int]) -> str | None:
        """Return all that decides what a learner makes of this graph; None if that is what people say of themselves."""
        setups = [self.plan.setups[index] for index in points]
        if not learner.name or not all(setup.public for setup in setups):
            return None
        params = self.params
        facts = {
            "graph": self.graph.name,
            "content": self.content,
            "root": params.seed,
            "phase": phase,
            "seeds": params.search.seeds if phase == "search" else params.seeds,
            "learner": learner.name,
            "train": asdict(params.train),
            "points": [
                [index - learner.start, self.plan.points[index].values(), repr(setup.recipe), setup.drawn]
                for index, setup in zip(points, setups, strict=True)
            ],
            "device": resolve_device(self.device).type,
            "max_memory": self.resources.max_memory,
        }
        if self.plan.server_view.replaces:  # a learner without reports on features knows what people say beside them
            facts["server_view"] = self.plan.server_view.facts()
        return json.dumps(facts, sort_keys=True)

    @property
    def content(self) -> str:
        """The hash of the graph."""
        self.hashed = self.hashed or self.graph.content_hash()
        return self.hashed

    def _enter(self, phase: str) -> None:
        """Begin a phase, unless a checkpoint's state is of a later one: what is done by then is only looked through."""
        if self.state is None:
            self.phase = phase

    def _try(self, learner: Learner, seeds: Sequence[int], start: float, each: float) -> None:
        """Try a learner's points, of which each one is a share of the cell, and note what they have become."""
        batches = self.batches(learner.points, seeds[0])
        done = {row["point"] for row in self.tried if row["role"] == "search"}
        for place, batch in enumerate(batches):
            if not done.issuperset(batch):
                say = self._say(_words(place, len(batches), learner.name), start, each * len(batch))
                *_, outcome = self.train(batch, seeds, say)
                rows = [
                    _row("search", index, seed, self.plan.points[index].values(), self.part(seed))
                    for index in batch
                    for seed in seeds
                ]
                self.note(_measured(rows, outcome), {"points": batch, **outcome.record})
                self.forget(batches[place + 1 :])
            start += each * len(batch)

    def losses(self, points: Sequence[int]) -> NDArray[np.float64]:
        """Return the validation losses of points in the search, [points, seeds]."""
        found: dict[int, list[tuple[int, float]]] = {index: [] for index in points}
        for row in self.tried:
            if row["role"] == "search" and row["point"] in found:
                found[row["point"]].append((-row["seed"], row["validation_loss"]))
        return np.array([[loss for _, loss in sorted(found[index])] for index in points])

    def chosen(self) -> int:
        """Return the point to go on with.

        Within a learner, and where there is only one, that is the point with the lowest mean validation loss. Several
        learners have had a playoff.
        """
        if len(self.plan.learners) == 1:
            return self.contenders()[0]
        best = self.met()
        return best[self.winner(best)]

    def contenders(self) -> list[int]:
        """Return the best point of each learner that is searched; a learner without a finite loss has none."""
        out = []
        for learner in (one for one in self.plan.learners if not one.follows):
            tried = {row["point"] for row in self.tried if row["role"] == "search"}
            there = [index for index in learner.points if index in tried]
            losses = self.losses(there)
            if len(self.plan.learners) == 1 or (there and np.isfinite(losses).all(axis=1).any()):
                out.append(there[chosen_point(losses)])
        if not out:
            raise DataError("no point of the search has a finite validation loss; search lower learning rates")
        return out

    def finalists(self) -> list[int]:
        """Return the best points of the learners that meet in the playoff.

        They are the first learner, and of those that nobody tells anything, and of those that ask people, the best few
        by the headline of the task on the validation part of the search's seeds.
        """
        best = self.contenders()
        shown = dict(zip(best, self._scores(best, "search").mean(axis=1), strict=True))
        ranked = sorted(best, key=lambda index: -shown[index])
        public = [index for index in ranked if self.plan.setups[index].public]
        asking = [index for index in ranked if not self.plan.setups[index].public]
        meet = {best[0], *public[:FINALISTS], *asking[:FINALISTS]}
        return [index for index in best if index in meet]

    def met(self) -> list[int]:
        """Return the points that have met in the playoff."""
        played = {row["point"] for row in self.tried if row["role"] == "playoff"}
        later = [index for one in self.plan.learners if one.follows for index in one.points]
        return [index for index in (*self.contenders(), *later) if index in played]

    def _of(self, index: int) -> Learner:
        return next(learner for learner in self.plan.learners if index in learner.points)

    def playoff(self, best: Sequence[int], start: float, share: float) -> None:
        """Train these points on the final seeds, and keep what they are worth on the validation part.

        Those that are trained here are `share` of the cell, from `start` on.
        """
        self._enter("playoff")
        seeds = list(range(self.params.seeds))
        played = {row["point"] for row in self.tried if row["role"] == "playoff"}
        new = sum(index not in played and not self._played_before(index) for index in best)
        each = share / max(1, new)
        for count, index in enumerate(best):
            if index in played:
                continue
            point, learner = self.plan.points[index], self._of(index)
            with self._once(learner, "playoff", [index]) as known:
                if known:
                    continue
                words = f"{learner.name}, {count + 1} of {len(best)} learners" if len(best) > 1 else learner.name
                *_, outcome = self.train([index], seeds, self._say(words, start, each))
                start += each
                self.played[index] = outcome
                rows = [_row("playoff", index, seed, point.values(), self.part(seed)) for seed in seeds]
                self.note(_measured(rows, outcome), {"points": [index], "playoff": True, **outcome.record})

    def _played_before(self, index: int) -> bool:
        """Return whether the memo has a point's playoff."""
        return self.state is None and self._recall(self._of(index), "playoff", [index]) is not None

    def winner(self, best: Sequence[int]) -> int:
        """Return which learner was the best in the playoff, by the headline of the task on the validation part.

        A loss also says how sure a model is of itself, and learners as different as label propagation and a network
        differ in that; so what the table compares decides between them. The first learner stays where no other is
        better by more than a standard error: in all but the reports it is the pipeline of the table's methods, so that
        what they add to it is not another learner's luck. In the same way what nobody is told of, the floor, stays
        where no learner that asks people is better than it by as many standard errors as the method's caution; one
        whose people's answers count for nothing is no rival.
        """
        scores = self._scores(best)
        return _leader(scores, self._floor(scores, best), self._asking(best), self.plan.caution)

    def _asking(self, best: Sequence[int]) -> list[int]:
        """Return which learners ask people whose answers count."""
        setups = [self.plan.setups[index] for index in best]
        return [place for place, setup in enumerate(setups) if not setup.public and self._heard(setup)]

    def _floor(self, scores: NDArray[np.float64], best: Sequence[int]) -> int:
        """Return which learner is the best of those that nobody tells anything."""
        public = [place for place, index in enumerate(best) if self.plan.setups[index].public]
        return _leader(scores, 0, public)

    def _scores(self, best: Sequence[int], role: str = "playoff") -> NDArray[np.float64]:
        """Return what a phase has shown of these points on the validation part, [points, seeds]; more is better."""
        headline = measures_of(self.params.train.task).headline
        return np.array(
            [
                [
                    headline.sign * row[f"validation_{headline.name}"]
                    for row in sorted(self.tried, key=lambda row: int(row["seed"]))
                    if row["role"] == role and row["point"] == index
                ]
                for index in best
            ]
        )

    def final(self) -> CellResult:
        """Train the chosen point on the final seeds; only here are test labels opened."""
        self.phase = "final"
        index = self.chosen()
        work, learner, point = self.planned(), self._of(index), self.plan.points[index]
        say = self._say("final", 1 - work.final / work.total, work.final / work.total)
        found = CellResult(
            rows=self.tried,
            chosen=point.values(),
            steps=point.steps,
            setup=self.plan.setups[index],
            records=self.records,
            learners=self.learners,
        )
        fresh = self.whole or index in self.played or self.state is not None
        known = None if fresh else self._recall(learner, "final", [index])
        if known is None:
            rows, record = self._finish(index, found, say)
            self._keep(learner, "final", [index], rows, [{"points": [index], **record}])
        else:
            rows, (record,) = known
            record = {name: value for name, value in record.items() if name != "points"}
            if say is not None:
                say(1, 1, "those of the floor")
        found.rows, found.record = [*self.tried, *rows], record
        return found

    def _finish(self, index: int, found: CellResult, say: Progress | None) -> tuple[Rows, dict[str, Any]]:
        """Train and score a point's final runs, which it adds to what was found; those of the playoff are the same."""
        seeds, point = list(range(self.params.seeds)), self.plan.points[index]
        if index in self.played:
            outcome, (problem, runs) = self.played[index], self.problem([index], seeds)
            if say is not None:
                say(1, 1, "those of the playoff")
        else:
            problem, runs, outcome = self.train([index], seeds, say)
        parts = [self.part(seed) for seed in seeds]
        rows = [_row("final", index, seed, point.values(), part) for seed, part in zip(seeds, parts, strict=True)]
        scores = final_scores(parts, problem, runs, self.options(self.plan.setups[index]), outcome, self.device)
        for row, score in zip(_measured(rows, outcome), scores, strict=True):
            row |= {f"test_{name}": value for name, value in score.items()}
        found.problem, found.outcome, found.runs = problem, outcome, runs
        return rows, outcome.record

    def _say(self, words: str, start: float, part: float) -> Progress | None:
        """Return the trainer's progress as the cell's: it is at `start` of the cell, of which it does `part`."""
        outer = self.progress
        if outer is None:
            return None
        # Waves change the trainer's own total, so that a part counts as its share of the cell whatever it says.
        whole = (2 - self.alone) * self.params.train.epochs

        def say(done: int, total: int, text: str) -> None:
            inside = self._behind(done, total)
            # A part's end and the next one's start are the same place, and may not be by the last digit of a float.
            outer(int(whole * (start + part * inside) + 1e-6), whole, f"{words}: {text}")

        return say

    def _behind(self, done: int, total: int) -> float:
        """Return what share of its work a trainer has behind it after so many of its epochs.

        Hardly any run trains to its last epoch: most stop when their patience is over. So of a wave that has come to
        an epoch there are about four times the patience left, and not all epochs that it may take.
        """
        if done == total:  # also where nothing had to be trained, and there are no epochs
            return 1.0
        epochs, patience = self.params.train.epochs, self.plan.setups[0].patience
        wave, here = divmod(done, epochs)
        return (wave + max(here / epochs, here / (here + 4 * patience))) * epochs / total


def _batch_cost(batches: int, runs: int) -> int:
    """Return how much an epoch of so many batches with so many runs in all is."""
    return batches + runs


def _leader(scores: NDArray[np.float64], first: int, others: Sequence[int], caution: float = 1.0) -> int:
    """Return which of the others is the best on average, or the first if it is not behind by so many errors."""
    if not others:
        return first
    place = max(others, key=lambda one: float(scores[one].mean()))
    ahead = scores[place] - scores[first]
    error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else 0.0
    return place if ahead.mean() > caution * error + EQUAL else first


def _words(batch: int, batches: int, learner: str) -> str:
    """Return what a person calls a part of a search."""
    parts = [learner] if learner else []
    parts += [f"batch {batch + 1} of {batches}"] if batches > 1 else []
    return " ".join(["search", ", ".join(parts)]).strip()


def _operator_key(setup: Setup, steps: int) -> tuple[float, bool, str] | None:
    """Return what the filter's S depends on, or None where the filter must be applied before learning.

    A linear filter commutes with the model's first weight matrix, and the trainer picks the cheaper order. A threshold
    after the filter does not.
    """
    one = setup.calibration(steps)
    return (one.r, one.self_loops, one.weighting) if one.linear else None


def _constant(coefficients: tuple[float, ...]) -> Callable[[int], tuple[float, ...]]:
    return lambda steps: coefficients


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where a row stands: the search's point by point, then those of the playoff as they came."""
    return (0, row["point"], -row["seed"]) if row["role"] == "search" else (1,)


def _moved(rows: Rows, records: Rows, by: int) -> tuple[Rows, Rows]:
    """Return rows and records of points that are counted from elsewhere."""
    return (
        [{**row, "point": row["point"] + by} for row in rows],
        [{**record, "points": [point + by for point in record["points"]]} for record in records],
    )


def _widened(setup: Setup) -> bool:
    """Return whether a setup's evidence may be given columns of zeros, so that it stands beside wider evidence."""
    return setup.evidence is not None and setup.beside is None and setup.backbone.zeros


def _input_key(setup: Setup) -> str:
    """Return what a model's inputs before the filter depend on."""
    return " beside ".join(_own_key(part) for part in setup.parts)


def _own_key(setup: Setup) -> str:
    """Return the same without what stands beside."""
    return setup.key if setup.evidence is None else _evidence_key(setup, setup.evidence)


def _evidence_key(setup: Setup, evidence: Evidence) -> str:
    """Return what evidence depends on that reads a setup's estimates, or none."""
    return f"{evidence!r} of {setup.key if evidence.reads else ''}"


def _measured(rows: list[dict[str, Any]], outcome: Outcome) -> list[dict[str, Any]]:
    """Return the rows with what became of their runs; a run that failed has an infinite validation loss."""
    for number, row in enumerate(rows):
        failed = bool(outcome.failed[number])
        row["best_epoch"] = int(outcome.best_epoch[number])
        row["epochs"] = int(outcome.epochs[number])
        row["validation_loss"] = np.inf if failed else float(outcome.validation_loss[number])
        row |= {f"validation_{name}": float(values[number]) for name, values in outcome.metrics.items()}
    return rows


def _row(role: str, point: int, seed: int, values: dict[str, Any], part: Part) -> dict[str, Any]:
    measures = measures_of(part.task)
    scores = [f"{name}_{measure}" for name in ("validation", "test") for measure in measures.names]
    sizes = zip(("train", "validation", "test"), part.sizes, strict=True)
    return {
        "role": role,
        "point": point,
        "seed": seed,
        "learning_rate": values.get("learning_rate"),
        "weight_decay": values.get("weight_decay"),
        "dropout": values.get("dropout"),
        "steps": values.get("steps"),
        "options": json.dumps(values.get("options", {}), sort_keys=True),
        "best_epoch": None,
        "epochs": None,
        "validation_loss": None,
        **dict.fromkeys(scores),
        **{f"{name}_{measures.parts}": size for name, size in sizes},
    }
