"""Stage attack: reports in, out comes what an attacker learns of single attributes, beside what LDP allows any attack.

Reports come from the devices that `ldp run` asks, drawn at the same addresses, or from an artifact.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.adversary import (
    Entries,
    Fact,
    InformedSets,
    LearnedView,
    Rate,
    Reader,
    Tally,
    advantage_bound,
    facts_of,
    learned_chances,
    neighbour_votes,
    posterior_bound,
    profile_odds,
    public_view,
    ratio,
    reader_of,
    success_bound,
)
from graphldp.client import Reports, VectorMechanism, from_meta
from graphldp.client.laws.sets import SetValued
from graphldp.client.levels import Personalised
from graphldp.errors import DataError, OptionError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.devices import device_for
from graphldp.experiment.people import split_of
from graphldp.graph import Graph
from graphldp.ledger import epsilon_text
from graphldp.methods import check_steps
from graphldp.progress import Progress
from graphldp.randomness import generator
from graphldp.server import kprop, rectify
from graphldp.splits import Split
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.belong import check_graph
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.cell import Cell
from graphldp.stages.grids.params import Params

__all__ = [
    "ATTRIBUTES",
    "STEPS",
    "SURE",
    "AttackRow",
    "Tallies",
    "attack",
    "attack_file",
    "cells",
    "chosen_facts",
    "headers",
    "legend",
    "markdown",
    "percent",
    "rate_text",
    "write_attack",
    "write_rows",
]

Floats: TypeAlias = NDArray[np.float64]

ATTRIBUTES = 100  # that are attacked, unless the caller says otherwise
STEPS = 2  # depth of the filter before the learned attack
_LEVEL = ", level "  # between a mechanism's name and the level of a row
SURE = 50.0  # log odds beyond which nothing changes for a regression


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """One mechanism at one budget: an attack on single attributes, averaged over people and attributes.

    Attributes:
        dataset, mechanism, epsilon: what was attacked.
        exact, delta: the exact loss of the whole report at that delta; infinite where a report tells too much.
        m: how many attributes are reported.
        people, attributes, repetitions: what the figures are averaged over.
        prior: the share of people who have an attribute.
        commonest: how often a guess of the commonest value is right.
        success, success_bound: of the best guess from her own report, by the law, and what `exact` allows.
        posterior, posterior_bound: how sure the most telling report makes the attacker, who reads all of it and knows
            how common every attribute is.
        law, bound: true less false positives, by the law, and what `exact` allows.
        advantage: the same, measured on the reports that were drawn.
        informed: the same for somebody who knows all of her other attributes; None where that says nothing more.
        profiles: the same for somebody who asks which of two whole profiles, hers and another's, sent the report; None
            where that cannot be said.
        votes: of the neighbours' votes; `votes_accuracy` how often these are right.
        learned: of the attacker with everything the server has.
        public: of the same attacker without any report: neighbours and training labels alone.
        how: with which options, root seed and filter.
    """

    dataset: str
    mechanism: str
    epsilon: float
    exact: float
    delta: float
    m: int
    people: int
    attributes: int
    repetitions: int
    prior: float
    commonest: float
    success: float
    success_bound: float
    posterior: float
    posterior_bound: float
    law: float
    bound: float
    advantage: Rate
    informed: Rate | None
    profiles: Rate | None
    votes: Rate
    votes_accuracy: Rate
    learned: Rate
    learned_accuracy: Rate
    public: Rate
    how: str

    def flat(self) -> dict[str, Any]:
        """Return the row with a column for each number: a rate has two, the second its standard error."""
        out: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name in ("informed", "profiles") and value is None:
                value = Rate(value=math.nan, error=math.nan)
            if isinstance(value, Rate):
                out |= {part.name: value.value, f"{part.name}_error": value.error}
            else:
                out[part.name] = value
        return out


@dataclass(slots=True, eq=False)
class Tallies:
    """How the guesses of every attacker came out, over the attributes and repetitions that were added.

    Attributes:
        nodes: how many people.
        profiles: of each repetition, who was told from another person, 1, or taken for her, -1.
    """

    nodes: int
    report: Tally = field(init=False)
    informed: Tally = field(init=False)
    votes: Tally = field(init=False)
    learned: Tally = field(init=False)
    public: Tally = field(init=False)
    profiles: list[Floats] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        for name in ("report", "informed", "votes", "learned", "public"):
            setattr(self, name, Tally(self.nodes))

    def together(self, other: Tallies) -> Tallies:
        """Return both tallies of the same people as one."""
        out = Tallies(self.nodes)
        for name in ("report", "informed", "votes", "learned", "public"):
            setattr(out, name, getattr(self, name).together(getattr(other, name)))
        return out

    def report_says(self, fact: Fact, odds: Floats, informed: Floats | None = None) -> None:
        """Add the guesses from each person's own report."""
        for tally, found in ((self.report, odds), (self.informed, informed)):
            if found is not None:
                tally.add(fact, found > math.log((1 - fact.prior) / fact.prior), found > 0)

    def neighbours_say(self, graph: Graph, fact: Fact, odds: Floats) -> None:
        """Add the guesses of the neighbours' votes; where they say nothing the guess is the commonest value."""
        votes = neighbour_votes(graph, odds)
        self.votes.add(fact, np.where(votes == 0, fact.prior > 0.5, votes > 0), votes > 0)

    def learner_says(self, fact: Fact, split: Split, public: Floats, private: Floats) -> None:
        """Add the guesses of an attacker who has learned from the training people's true values."""
        share = float(fact.holds[split.train].mean())
        if not 0 < share < 1:
            return
        for tally, inputs in ((self.public, public), (self.learned, np.hstack([public, private]))):
            chances = learned_chances(inputs, fact.holds, split.train, split.test)
            tally.add(fact, chances > 0.5, chances > share, split.test)


def chosen_facts(graph: Graph, splits: Sequence[Split], count: int | None, root: int) -> list[Fact]:
    """Return the facts about so many attributes, drawn from those of which a learner sees both kinds of people.

    Without `count` it is as many as are usual, or all.
    """
    facts = [fact for fact in facts_of(graph.features, range(graph.dimensions)) if fact.varies]
    fit = [fact for fact in facts if all(_both(fact, part) for one in splits for part in (one.train, one.test))]
    if not fit:
        raise DataError(
            f"graph {graph.name} has no attribute that some have and some have not, in training and in test: there is "
            "nothing to guess"
        )
    if count is not None and count > len(fit):
        raise OptionError(
            f"attributes may be at most {len(fit):,}, got {count:,}: so many there are that some people have and some "
            "have not, in training and in test"
        )
    rng = generator(root, "attack", graph.name, "attributes")
    chosen = np.sort(rng.permutation(len(fit))[: ATTRIBUTES if count is None else count])
    return [fit[place] for place in chosen]


def _both(fact: Fact, people: NDArray[np.int64]) -> bool:
    held = int(fact.holds[people].sum())
    return 0 < held < len(people)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Target:
    """One mechanism at one budget, and where each repetition's reports come from.

    Attributes:
        level: everybody's privacy level, where the row is of one.
    """

    device: VectorMechanism
    reports: Callable[[int], Reports]
    level: int | None = None

    @property
    def name(self) -> str:
        """What the row is called."""
        return self.device.name if self.level is None else f"{self.device.name}{_LEVEL}{self.level}"

    @property
    def epsilon(self) -> float:
        """The budget: of one level its own."""
        if self.level is None or not isinstance(self.device, Personalised):
            return self.device.epsilon
        return self.device.budgets[self.level - 1]

    @property
    def exact(self) -> float:
        """The exact loss: of one level, which the attacker knows, that of the features."""
        if self.level is None or not isinstance(self.device, Personalised):
            return self.device.privacy_loss()
        return self.device.level_loss(self.level)


def attack(
    cells: Sequence[Cell],
    *,
    data: Path,
    params: Params,
    attributes: int | None = None,
    steps: int = STEPS,
    by_level: bool = False,
    progress: Progress | None = None,
) -> list[AttackRow]:
    """Return a row for each of a graph's cells; `params` says how many repetitions, and their root and splits.

    Without `attributes` it is as many as are usual, or all. With `by_level` a mechanism with privacy levels has a row
    for each: everybody is at that level, and the attacker knows it.
    """
    graph = read_graph(graph_dir(data, cells[0].dataset))
    devices = [device_for(graph, cell.mechanism, float(cell.epsilon), cell.options) for cell in cells]
    if by_level and not any(isinstance(device, Personalised) for device in devices):
        names = ", ".join(dict.fromkeys(cell.mechanism for cell in cells))
        raise OptionError(f"no privacy levels in {names}, so that there is no row for each level")

    def drawn(device: VectorMechanism) -> Callable[[int], Reports]:
        return lambda seed: device.perturb(graph.features, source_of(params.seed, graph.name, device, seed))

    targets = []
    for cell, device in zip(cells, devices, strict=True):
        if not by_level or not isinstance(device, Personalised):
            targets.append(_Target(device=device, reports=drawn(device)))
            continue
        for level in range(1, device.levels + 1):
            own = device_for(graph, device.name, device.epsilon, {**cell.options, "distribution": f"level-{level}"})
            targets.append(_Target(device=own, reports=drawn(own), level=level))
    return _rows(graph, targets, range(params.seeds), params, attributes, steps, progress)


def attack_file(
    path: Path,
    *,
    data: Path,
    params: Params,
    attributes: int | None = None,
    steps: int = STEPS,
    progress: Progress | None = None,
) -> list[AttackRow]:
    """Return the row of an artifact's reports: of its final seeds, at most as many as `params` has."""
    file = AnswersFile(path, "ldp perturb")
    graph = read_graph(graph_dir(data, file.says.dataset))
    check_graph(path, file.meta, graph, data, "attack them beside the graph that they were made from")
    if not file.once:
        raise OptionError(
            f"{path} holds answers to several questions, which may show some attributes more than others: `ldp "
            "selection` compares these"
        )
    seeds = [seed for seed in file.says.seeds if seed >= 0][: params.seeds]
    if not seeds:
        raise OptionError(
            f"{path} has the seeds {list(file.says.seeds)}, none of them a final run's; perturb with --seeds"
        )
    device = from_meta({**file.meta, "epsilon": file.says.epsilon})
    target = _Target(device=device, reports=file.load)
    return _rows(graph, [target], seeds, params, attributes, steps, progress)


def _rows(
    graph: Graph,
    targets: Sequence[_Target],
    seeds: Sequence[int],
    params: Params,
    attributes: int | None,
    steps: int,
    progress: Progress | None,
) -> list[AttackRow]:
    check_steps([steps])
    for target in targets:
        reader_of(target.device, graph.features)  # what cannot be read shows before anything is computed
    splits = {seed: split_of(graph, params, seed) for seed in seeds}
    facts = chosen_facts(graph, list(splits.values()), attributes, params.seed)
    known = {
        seed: _Known(split, public_view(graph, split.train), _others(graph, seed, params.seed))
        for seed, split in splits.items()
    }
    calibration, out, done = kprop(steps), [], 0
    for target in targets:
        tallies, reader, m = Tallies(graph.nodes), reader_of(target.device, graph.features), 0
        for seed in splits:
            reports = target.reports(seed)
            m = max(m, target.device.m if target.level is None else _longest(reports))
            view = LearnedView.of(graph, rectify(reports), calibration, [fact.attribute for fact in facts])
            _attack_once(graph, target.device, reader, reports, facts, known[seed], view, tallies)
            done += 1
            if progress:
                text = f"{target.name} at epsilon {epsilon_text(target.epsilon)}"
                progress(done, len(targets) * len(splits), text)
        how = "; ".join((*_chosen(target), f"filter depth {steps}", f"root seed {params.seed}"))
        out.append(_row(graph, target, m, reader, facts, tallies, len(splits), how))
    return out


def _others(graph: Graph, seed: int, root: int) -> NDArray[np.int64]:
    """Return another person for everybody, at random."""
    order = generator(root, "attack", graph.name, "profiles", seed).permutation(graph.nodes)
    out = np.empty(graph.nodes, dtype=np.int64)
    out[order] = np.roll(order, 1)
    return out


def _chosen(target: _Target) -> list[str]:
    """Return the options that a mechanism has, without lists of a number for each attribute."""
    own = target.device.options()
    if target.level is not None:
        own["distribution"] = "everybody at one level, which the attacker knows"
    return [f"{key} {value}" for key, value in own.items() if value is not None and not isinstance(value, list | tuple)]


@dataclass(frozen=True, slots=True)
class _Known:
    """What an attacker knows beside reports in one repetition: who is trained on, what is public, whom else to try."""

    split: Split
    public: Floats
    others: NDArray[np.int64]


def _attack_once(
    graph: Graph,
    device: VectorMechanism,
    reader: Reader,
    reports: Reports,
    facts: Sequence[Fact],
    known: _Known,
    view: LearnedView,
    tallies: Tallies,
) -> None:
    entries = Entries.of(device, reports)
    told = profile_odds(device, reports, graph.features, known.others)
    if told is not None:
        tallies.profiles.append(np.sign(told))
    sets = InformedSets.of(device, entries, graph.features) if isinstance(device, SetValued) else None
    for position, fact in enumerate(facts):
        odds = reader.odds(entries, fact)
        tallies.report_says(fact, odds, None if sets is None else sets.odds(fact))
        tallies.neighbours_say(graph, fact, odds)
        private = np.column_stack([view.columns(position), np.clip(odds, -SURE, SURE)])
        tallies.learner_says(fact, known.split, known.public, private)


def _row(
    graph: Graph,
    target: _Target,
    m: int,
    reader: Reader,
    facts: Sequence[Fact],
    tallies: Tallies,
    repetitions: int,
    how: str,
) -> AttackRow:
    device = target.device
    exact, delta = target.exact, device.delta
    channels = [reader.channel(fact) for fact in facts]
    priors = [fact.prior for fact in facts]
    having = np.array(priors) / np.sum(priors)
    lacking = (1 - np.array(priors)) / np.sum(1 - np.array(priors))
    false, true = np.array([channel.rates() for channel in channels]).T
    return AttackRow(
        dataset=graph.name,
        mechanism=target.name,
        epsilon=target.epsilon,
        exact=exact,
        delta=delta,
        m=m,
        people=graph.nodes,
        attributes=len(facts),
        repetitions=repetitions,
        prior=float(np.mean(priors)),
        commonest=float(np.mean([fact.commonest for fact in facts])),
        success=_mean(channel.success(prior) for channel, prior in zip(channels, priors, strict=True)),
        success_bound=_mean(success_bound(prior, exact, delta) for prior in priors),
        posterior=_mean(reader.posterior(fact) for fact in facts),
        posterior_bound=_mean(posterior_bound(prior, exact, delta) for prior in priors),
        law=float(having @ true - lacking @ false),
        bound=advantage_bound(exact, delta),
        advantage=tallies.report.advantage,
        informed=tallies.informed.advantage if isinstance(device, SetValued) else None,
        profiles=_told(tallies.profiles),
        votes=tallies.votes.advantage,
        votes_accuracy=tallies.votes.accuracy,
        learned=tallies.learned.advantage,
        learned_accuracy=tallies.learned.accuracy,
        public=tallies.public.advantage,
        how=how,
    )


def _longest(reports: Reports) -> int:
    """Return how many attributes the longest of these reports shows."""
    assert reports.index is not None  # mechanisms with levels sample attributes
    return int((np.asarray(reports.index) >= 0).sum(axis=1).max())


def _told(signs: Sequence[Floats]) -> Rate | None:
    if not signs:
        return None
    return ratio(np.sum(signs, axis=0), np.full(len(signs[0]), float(len(signs))))


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


_COLUMNS = (
    ("mechanism", "what perturbs the features"),
    ("eps", "its budget for the whole report"),
    ("m", "attributes that are reported"),
    ("right", "the best guess from her report, by the law; guessing the commonest value; what LDP allows"),
    ("sure of yes", "after the most telling whole report; what LDP allows"),
    ("adv. law", "true less false positives of the best guess from her own report"),
    ("measured", "the same on drawn reports"),
    ("bound", "what LDP allows"),
    ("knows the rest", "the same, of who knows all her other attributes"),
    ("two profiles", "which of two people, known in full, sent the report: right less wrong guesses"),
    ("votes", "neighbours' reports vote"),
    ("learned", "regression on all that the server has"),
    ("public", "the same without any report"),
)


def percent(value: float, digits: int = 1) -> str:
    """Return a share in percent; nothing where there is none."""
    return "" if math.isnan(value) else f"{round(100 * value, digits) + 0.0:.{digits}f}"


def rate_text(rate: Rate | None, digits: int = 1) -> str:
    """Return a rate and its standard error in percent; nothing where there is none."""
    if rate is None or math.isnan(rate.value):
        return ""
    return f"{percent(rate.value, digits)} ± {percent(rate.error, digits)}"


def cells(row: AttackRow) -> list[str]:
    """Return a row's cells as text, in percent."""
    return [
        row.mechanism,
        epsilon_text(float(f"{row.epsilon:.4g}")),
        str(row.m),
        f"{percent(row.success)} ({percent(row.commonest)}, {percent(row.success_bound)})",
        f"{percent(row.posterior)} ({percent(row.posterior_bound)})",
        percent(row.law, 2),
        rate_text(row.advantage, 2),
        percent(row.bound),
        rate_text(row.informed, 2),
        rate_text(row.profiles),
        rate_text(row.votes, 2),
        rate_text(row.learned),
        rate_text(row.public),
    ]


def headers() -> list[str]:
    """Return the table's headers."""
    return [name for name, _ in _COLUMNS]


def legend(rows: Sequence[AttackRow]) -> list[str]:
    """Return what was measured, in lines of text."""
    from graphldp.stages.pages.wording import counted

    one = rows[0]
    return [
        f"{one.dataset}: {counted(one.attributes, 'attribute')} of {one.people} people, "
        f"{counted(one.repetitions, 'repetition')}; {percent(one.prior)} % have an attribute. All in percent; "
        "± is one standard error, people drawn anew.",
        *dict.fromkeys(f"{row.mechanism.partition(_LEVEL)[0]}: {row.how}" for row in rows),
        *(f"{name}: {meaning}" for name, meaning in _COLUMNS[3:]),
    ]


def markdown(rows: Sequence[AttackRow]) -> str:
    """Return the rows as a Markdown table, with what was measured below it."""
    names = headers()
    lines = ["| " + " | ".join(names) + " |", "| --- |" + " ---: |" * (len(names) - 1)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    first, *rest = legend(rows)
    return "\n".join([*lines, "", first, "", *(f"- {line}" for line in rest)]) + "\n"


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV, numbers in six digits and what is not there left empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _text(value) for key, value in row.items()})
    write_text(path, text.getvalue())


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)


def write_attack(rows: Sequence[AttackRow], folder: Path) -> list[Path]:
    """Write attack.csv and attack.md; return their paths."""
    files = [folder / "attack.csv", folder / "attack.md"]
    write_rows(files[0], [row.flat() for row in rows])
    write_text(files[1], markdown(rows))
    return files
