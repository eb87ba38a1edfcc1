"""Stage selection: what a first round selects, repeated: how stable it is, how fair, how useful, how exposed.

TOGL's Tables 9, 6 and 10. Both rounds' reports come from the devices that `ldp run` asks, drawn at the same addresses,
or from two artifacts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp import methods
from graphldp.adversary import (
    Entries,
    Fact,
    LearnedView,
    Rate,
    advantage_bound,
    facts_of,
    public_view,
    reader_of,
)
from graphldp.client import Reports, VectorMechanism, protocol
from graphldp.client.directed import DirectedMechanism, directed_from_meta
from graphldp.errors import ArtifactError, OptionError, unknown_name
from graphldp.experiment.people import split_of
from graphldp.experiment.rounds import Rounds, TwoRounds, joined, score_reports
from graphldp.graph import Graph
from graphldp.ledger import epsilon_text
from graphldp.progress import Progress
from graphldp.randomness import generator
from graphldp.server import (
    AttributeScores,
    Estimate,
    Filtered,
    attribute_accuracy,
    degree_correlation,
    kprop,
    mean_jaccard,
    rectify,
)
from graphldp.splits import Split
from graphldp.stages.attack import SURE, Tallies
from graphldp.stages.files.answers import AnswersFile, check_selection, conversation_in
from graphldp.stages.files.belong import check_graph
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params

__all__ = [
    "AttributeRow",
    "GroupRow",
    "Selected",
    "SelectionRow",
    "chance_jaccard",
    "measure_file",
    "measure_selection",
]

Floats: TypeAlias = NDArray[np.float64]

TOP = 5
RANDOM = 20
_GROUPS = ("asked", "selected", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRow:
    """A scorer at one budget, repeated: Tables 9 and 6.

    Attributes:
        dataset, mechanism, epsilon, by: what selected; epsilon is of both rounds together, infinite for clean data.
        m, asked: how many attributes the second round reports, and how many of them everybody does.
        top, repetitions: how many attributes are looked at, and how often.
        jaccard, chance: how alike the selections are (with its jackknife error), and how alike random ones would be.
        hits: how many of the attributes are among as many that the same scorer selects on clean data.
        degree_selected, degree_random: mean absolute correlation of the true attributes with the degree.
        sent_selected, sent_random: the same of what the server knows of them after the second round.
    """

    dataset: str
    mechanism: str
    epsilon: float
    by: str
    m: int
    asked: int
    top: int
    repetitions: int
    jaccard: Rate
    chance: float
    hits: float
    degree_selected: float
    degree_random: float
    sent_selected: float
    sent_random: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRow:
    """One attribute in one repetition.

    Attributes:
        dataset, mechanism, epsilon, by, seed: where it was.
        attribute, group: its number; `asked` of everybody, `selected` but not asked of everybody, or `random`.
        prior: the share of people who have it.
        utility: accuracy of a discriminant on its denoised values alone; `clean` on its true ones.
        law: true less false positives of the best guess from both reports of a person.
    """

    dataset: str
    mechanism: str
    epsilon: float
    by: str
    seed: int
    attribute: int
    group: str
    prior: float
    utility: float
    clean: float
    law: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group of attributes over all repetitions: Table 10.

    Attributes:
        dataset, mechanism, epsilon, by, group: which ones; `asked` are those that everybody reports in the second
            round, `selected` the other top ones, `random` some of the rest.
        attributes: how many, counted in every repetition.
        utility, clean, majority: accuracy of a discriminant on one attribute's denoised and true values, and without.
        law, bound: true less false positives of the best guess from a person's two reports, and what LDP allows.
        advantage: the same, measured.
        success, commonest: how often the best guess is right, measured, and how often that of the commonest value.
        votes, learned, public: advantages of the neighbours' votes, of all that the server has, and without reports.
        votes_accuracy: how often the votes are right.
    """

    dataset: str
    mechanism: str
    epsilon: float
    by: str
    group: str
    attributes: int
    utility: Rate
    clean: Rate
    majority: float
    law: float
    bound: float
    advantage: Rate
    success: Rate
    commonest: Rate
    votes: Rate
    votes_accuracy: Rate
    learned: Rate
    public: Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """Everything that was measured; `how` says with which options, as a sentence."""

    how: str
    rows: tuple[SelectionRow, ...]
    groups: tuple[GroupRow, ...]
    attributes: tuple[AttributeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _File:
    """An artifact of both rounds."""

    graph: Graph
    params: Params
    file: AnswersFile
    mechanism: str
    epsilon: float
    rounds: Rounds
    device: VectorMechanism

    def first(self, seed: int) -> Reports:
        return self.file.questions(seed)[0].answers

    def scores(self, reports: Reports, seed: int) -> AttributeScores:
        by, steps = self.rounds.score_by, self.rounds.score_steps
        return score_reports(self.graph, reports, by=by, steps=steps, split=split_of(self.graph, self.params, seed))

    def directed(self, first: Reports, scores: AttributeScores, seed: int) -> Reports:
        reports = self.file.questions(seed)[1].answers
        asked = directed_from_meta(reports.meta).ranking
        if asked != scores.top(len(asked)):
            raise ArtifactError(
                f"{self.file.path} was directed by another ranking than its first round gives for seed {seed}; make it "
                f"again with `{self.file.make}`"
            )
        return reports


_Source: TypeAlias = TwoRounds | _File


def measure_selection(
    cells: Sequence[Cell],
    scorers: Sequence[str],
    *,
    data: Path,
    params: Params,
    top: int = TOP,
    others: int = RANDOM,
    progress: Progress | None = None,
) -> Selected:
    """Return what each scorer selects from the reports of each of a graph's cells, `params.seeds` times.

    Cells differ in mechanism and budget alone; their changes are parts of the rounds.
    """
    graph = read_graph(graph_dir(data, cells[0].dataset))
    given = dict(cells[0].changes)
    known = [part.name for part in fields(Rounds) if part.name != "score_by"]
    for key in given:
        if key == "score_by":
            raise OptionError(f"score_by is --by here: give --by {given[key]}")
        if key not in known:
            raise unknown_name("part of two rounds", key, known)
    plans = [Rounds(score_by="fda").but(score_by=by, **given) for by in scorers]
    sources: list[_Source] = [
        TwoRounds.of(graph, rounds, cell.mechanism, float(cell.epsilon), params, cell.options)
        for cell in cells
        for rounds in plans
    ]
    how = _how(plans[0], cells[0].options, params)
    return _measure(graph, sources, how, range(params.seeds), params, top, others, progress)


def _how(rounds: Rounds, options: Mapping[str, Any], params: Params) -> str:
    own = {part.name: getattr(rounds, part.name) for part in fields(rounds) if part.name != "score_by"}
    said = ", ".join(f"{key} {value}" for key, value in {**own, **options}.items())
    return f"options: {said}; root seed {params.seed}"


def measure_file(
    answers: Path,
    *,
    data: Path,
    params: Params,
    top: int = TOP,
    others: int = RANDOM,
    progress: Progress | None = None,
) -> Selected:
    """Return the same of an artifact of both rounds: of its final seeds, at most as many as `params` has."""
    file = AnswersFile(answers, "ldp perturb --method togl-fda")
    graph = read_graph(graph_dir(data, file.says.dataset))
    check_graph(answers, file.meta, graph, data, "measure them beside the graph that they were made from")
    recipe = methods.method(str(file.meta.get("method", "lpgnn"))).but(file.meta.get("changes", {}))
    asked = conversation_in(file.meta, graph, recipe)
    if not isinstance(asked, TwoRounds):
        raise ArtifactError(f"{answers} holds no two rounds, so nothing was selected; make some with `{file.make}`")
    check_selection(answers, file.meta["selection"], params)
    seeds = [seed for seed in file.says.seeds if seed >= 0][: params.seeds]
    source = _File(
        graph=graph,
        params=params,
        file=file,
        mechanism=asked.mechanism,
        epsilon=asked.epsilon,
        rounds=asked.rounds,
        device=asked.device,
    )
    how = f"answers of {answers}; root seed {params.seed}"
    return _measure(graph, [source], how, seeds, params, top, others, progress)


def _measure(
    graph: Graph,
    sources: Sequence[_Source],
    how: str,
    seeds: Sequence[int],
    params: Params,
    top: int,
    others: int,
    progress: Progress | None,
) -> Selected:
    if len(seeds) < 2:
        raise OptionError(f"a selection is compared with itself: at least 2 repetitions are needed, got {len(seeds)}")
    if not top <= graph.dimensions:
        raise OptionError(f"top must be at most the {graph.dimensions} attributes that there are, got {top}")
    world = _World.of(graph, seeds, params)
    rows: list[SelectionRow] = []
    groups: list[GroupRow] = []
    attributes: list[AttributeRow] = []
    total, done = len(sources) * len(seeds), 0
    for source in sources:
        found = []
        for seed in seeds:
            found.append(_Repetition.of(world, source, seed, top, others))
            done += 1
            if progress:
                text = f"{source.mechanism} at epsilon {epsilon_text(source.epsilon)} by {source.rounds.score_by}"
                progress(done, total, text)
        rows.append(_selection_row(world, source, found, top))
        groups += _group_rows(world, source, found)
        attributes += [row for one in found for row in one.rows]
    wanted = {(source.rounds.score_by, source.rounds.score_steps) for source in sources}
    rows += [_clean_row(world, by, steps, top) for by, steps in sorted(wanted)]
    return Selected(how=how, rows=tuple(rows), groups=tuple(groups), attributes=tuple(attributes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _World:
    """What all repetitions share, and what clean data say.

    Attributes:
        graph: the graph.
        root: of all randomness.
        clean: its true features as an estimate.
        splits, public: of each seed.
        degree: of each node.
        varying: the attributes that are not the same for everybody.
        cache: scores of clean data, by scorer, steps and seed.
    """

    graph: Graph
    root: int
    clean: Reports
    splits: Mapping[int, Split]
    public: Mapping[int, Floats]
    degree: Floats
    varying: NDArray[np.int64]
    cache: dict[tuple[str, int, int], AttributeScores]

    @classmethod
    def of(cls, graph: Graph, seeds: Sequence[int], params: Params) -> _World:
        splits = {seed: split_of(graph, params, seed) for seed in seeds}
        identity = protocol("identity", math.inf, graph.dimensions, graph.low, graph.high)
        clean = identity.perturb(graph.features, np.random.default_rng(0))
        columns = sp.csc_array(graph.features)
        spread = columns.max(axis=0).toarray().ravel() - columns.min(axis=0).toarray().ravel()
        return cls(
            graph=graph,
            root=params.seed,
            clean=clean,
            splits=splits,
            public={seed: public_view(graph, split.train) for seed, split in splits.items()},
            degree=np.diff(graph.adjacency().indptr).astype(np.float64),
            varying=np.flatnonzero(spread > 0),
            cache={},
        )

    def clean_scores(self, by: str, steps: int, seed: int) -> AttributeScores:
        """Return what the scorer makes of the true features, with a seed's training labels."""
        key = (by, steps, seed)
        if key not in self.cache:
            self.cache[key] = score_reports(self.graph, self.clean, by=by, steps=steps, split=self.splits[seed])
        return self.cache[key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Repetition:
    """One seed: what was selected, and what came of it.

    Attributes:
        seed: the seed.
        top: the best attributes, the best first.
        m, asked: of the second round; which attributes everybody reports.
        rows: one for each attribute that was looked at.
        tallies: by group, how guesses came out.
        sent: mean absolute correlation with the degree of what was sent, of the top attributes and of all.
        bound: what LDP allows an attack on both reports.
    """

    seed: int
    top: tuple[int, ...]
    m: int
    asked: tuple[int, ...]
    rows: tuple[AttributeRow, ...]
    tallies: Mapping[str, Tallies]
    sent: tuple[float, float]
    bound: float

    @classmethod
    def of(cls, world: _World, source: _Source, seed: int, top: int, others: int) -> _Repetition:
        graph, split, rounds = world.graph, world.splits[seed], source.rounds
        first = source.first(seed)
        scores = source.scores(first, seed)
        second = source.directed(first, scores, seed)
        directed = directed_from_meta(second.meta)
        best = scores.top(top)
        asked = set.union(*(set(directed.fixed(level)) for level in range(1, len(directed.parts) + 1)))
        rng = generator(world.root, "selection", graph.name, "attributes", seed)
        pool = np.setdiff1d(world.varying, [*best, *asked])
        drawn = np.sort(rng.permutation(pool)[:others])
        chosen = np.array([*best, *(j for j in sorted(asked) if j not in best), *drawn], dtype=np.int64)
        names = ["asked" if j in asked else "selected" if j in best else "random" for j in chosen.tolist()]
        estimate = joined(first, second, rounds=rounds)
        utility = _utility(graph, estimate, rounds.score_steps, split, chosen)
        true = _utility(graph, rectify(world.clean), rounds.score_steps, split, chosen)
        facts = facts_of(graph.features, chosen.tolist())
        tallies = {name: Tallies(graph.nodes) for name in _GROUPS}
        view = LearnedView.of(graph, estimate, kprop(rounds.score_steps), [fact.attribute for fact in facts])
        said = ((source.device, first), (directed, second))
        laws = _attacked(world, seed, said, view, facts, names, tallies)
        every = degree_correlation(estimate.deviations(), world.degree, range(graph.dimensions))
        return cls(
            seed=seed,
            top=best,
            m=directed.device.m,
            asked=tuple(sorted(asked)),
            rows=tuple(
                AttributeRow(
                    dataset=graph.name,
                    mechanism=source.mechanism,
                    epsilon=source.epsilon,
                    by=rounds.score_by,
                    seed=seed,
                    attribute=fact.attribute,
                    group=name,
                    prior=fact.prior,
                    utility=float(one),
                    clean=float(two),
                    law=law,
                )
                for fact, name, one, two, law in zip(facts, names, utility, true, laws, strict=True)
            ),
            tallies=tallies,
            sent=(float(np.abs(every[list(best)]).mean()), float(np.abs(every[world.varying]).mean())),
            bound=advantage_bound(
                source.device.privacy_loss() + directed.privacy_loss(), source.device.delta + directed.device.delta
            ),
        )


def _attacked(
    world: _World,
    seed: int,
    said: Sequence[tuple[VectorMechanism | DirectedMechanism, Reports]],
    view: LearnedView,
    facts: Sequence[Fact],
    names: Sequence[str],
    tallies: Mapping[str, Tallies],
) -> list[float]:
    """Count the guesses about each attribute in its group by both rounds; return the advantages by the law."""
    graph, split = world.graph, world.splits[seed]
    readers = [reader_of(device) for device, _ in said]
    entries = [Entries.of(device, reports) for device, reports in said]
    laws = []
    for position, (fact, name) in enumerate(zip(facts, names, strict=True)):
        if not fact.varies:
            laws.append(math.nan)
            continue
        tally = tallies[name]
        odds = sum(reader.odds(one, fact) for reader, one in zip(readers, entries, strict=True))
        found = np.asarray(odds)
        tally.report_says(fact, found)
        tally.neighbours_say(graph, fact, found)
        private = np.column_stack([view.columns(position), np.clip(found, -SURE, SURE)])
        tally.learner_says(fact, split, world.public[seed], private)
        laws.append(readers[0].channel(fact).then(readers[1].channel(fact)).advantage())
    return laws


def _utility(
    graph: Graph, estimate: Estimate, steps: int, split: Split, attributes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return how well each of these attributes tells the classes apart alone, after the filter."""
    calibration = kprop(steps)
    whole = Filtered.of(estimate, calibration, calibration.operator(graph))
    narrow = replace(whole, deviations=sp.csr_array(sp.csc_array(whole.deviations)[:, attributes]))
    return attribute_accuracy(narrow, graph.labels, split.train, split.test)


def _selection_row(world: _World, source: _Source, found: Sequence[_Repetition], top: int) -> SelectionRow:
    rounds, graph = source.rounds, world.graph
    hits = [
        len(set(one.top) & set(world.clean_scores(rounds.score_by, rounds.score_steps, one.seed).top(top)))
        for one in found
    ]
    return SelectionRow(
        dataset=graph.name,
        mechanism=source.mechanism,
        epsilon=source.epsilon,
        by=rounds.score_by,
        m=found[0].m,
        asked=len(found[0].asked),
        repetitions=len(found),
        hits=float(np.mean(hits)),
        sent_selected=float(np.mean([one.sent[0] for one in found])),
        sent_random=float(np.mean([one.sent[1] for one in found])),
        **_of_selections(world, [one.top for one in found], top),
    )


def _clean_row(world: _World, by: str, steps: int, top: int) -> SelectionRow:
    """Return what the same scorer selects on the true features: only the splits differ between repetitions."""
    tops = [world.clean_scores(by, steps, seed).top(top) for seed in world.splits]
    own = _of_selections(world, tops, top)
    return SelectionRow(
        dataset=world.graph.name,
        mechanism="clean data",
        epsilon=math.inf,
        by=by,
        m=world.graph.dimensions,
        asked=0,
        repetitions=len(tops),
        hits=float(top),
        sent_selected=own["degree_selected"],
        sent_random=own["degree_random"],
        **own,
    )


def _of_selections(world: _World, tops: Sequence[tuple[int, ...]], top: int) -> dict[str, Any]:
    """Return the figures that follow from which attributes were selected."""
    features = world.graph.features
    chosen = [float(np.abs(degree_correlation(features, world.degree, one)).mean()) for one in tops]
    every = np.abs(degree_correlation(features, world.degree, world.varying.tolist()))
    return {
        "top": top,
        "jaccard": _stability(tops),
        "chance": chance_jaccard(top, world.graph.dimensions),
        "degree_selected": float(np.mean(chosen)),
        "degree_random": float(every.mean()),
    }


def _stability(tops: Sequence[tuple[int, ...]]) -> Rate:
    """Return the mean Jaccard similarity of all pairs, with its jackknife error over the selections."""
    without = [mean_jaccard([*tops[:k], *tops[k + 1 :]]) for k in range(len(tops))] if len(tops) > 2 else []
    error = math.sqrt((len(tops) - 1) * float(np.var(without))) if without else math.nan
    return Rate(value=mean_jaccard(tops), error=error)


def chance_jaccard(top: int, dimensions: int) -> float:
    """Return the expected Jaccard similarity of two independent random selections."""
    sets = math.comb(dimensions, top)
    return sum(
        math.comb(top, k) * math.comb(dimensions - top, top - k) / sets * k / (2 * top - k) for k in range(top + 1)
    )


def _group_rows(world: _World, source: _Source, found: Sequence[_Repetition]) -> Iterator[GroupRow]:
    graph = world.graph
    labels = graph.labels
    majority = [
        float(np.mean(labels[split.test] == np.bincount(labels[split.train]).argmax()))
        for split in world.splits.values()
    ]
    for group in _GROUPS:
        rows = [[row for row in one.rows if row.group == group] for one in found]
        flat = [row for part in rows for row in part]
        if not flat:
            continue
        tally = found[0].tallies[group]
        for one in found[1:]:
            tally = tally.together(one.tallies[group])
        laws = np.array([row.law for row in flat])
        yield GroupRow(
            dataset=graph.name,
            mechanism=source.mechanism,
            epsilon=source.epsilon,
            by=source.rounds.score_by,
            group=group,
            attributes=len(flat),
            utility=_over_repetitions([[row.utility for row in part] for part in rows]),
            clean=_over_repetitions([[row.clean for row in part] for part in rows]),
            majority=float(np.mean(majority)),
            law=float(laws[np.isfinite(laws)].mean()) if np.isfinite(laws).any() else math.nan,
            bound=found[0].bound,
            advantage=tally.report.advantage,
            success=tally.report.accuracy,
            commonest=tally.report.commonest,
            votes=tally.votes.advantage,
            votes_accuracy=tally.votes.accuracy,
            learned=tally.learned.advantage,
            public=tally.public.advantage,
        )


def _over_repetitions(values: Sequence[Sequence[float]]) -> Rate:
    """Return the mean over repetitions of the mean within each, and its standard error."""
    means = [float(np.mean(part)) for part in values if len(part)]
    error = float(np.std(means, ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan
    return Rate(value=float(np.mean(means)), error=error)
