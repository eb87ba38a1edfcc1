"""What a cell is computed with: seeds, the search that every method has, and the training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from graphldp.client.links import link_names
from graphldp.errors import OptionError, unknown_name
from graphldp.measures import DEFAULT_TASK, canonical_task, measures_of

__all__ = [
    "ACTIVATIONS",
    "DROP",
    "HALF",
    "INDUCTIVE",
    "LINK_LOSSES",
    "SERVERS",
    "SPACES",
    "SPLITS",
    "STRATEGIES",
    "Further",
    "SearchParams",
    "Settings",
    "TrainParams",
    "check_settings",
    "link_ways",
    "report_seeds",
    "split_facts",
]

STRATEGIES = ("random", "grid")  # how a search spends its budget
SPACES = ("shared", "paper")  # and where
HALF = "half"  # of train_fraction
INDUCTIVE = "inductive"
SPLITS = ("random", INDUCTIVE)
LINK_LOSSES = ("pairwise", "cross-entropy")
ACTIVATIONS = ("selu", "relu", "tanh")
LABEL_MECHANISMS = ("krr",)
SERVERS = ("estimator", "most")  # of the options of links: what no device is told
LABEL_STEPS = (0, 2, 4, 8)  # depths K that a search tries where labels are noisy, unless it says others
# How noisy labels are learned from, as options of the training.
DROP = ("label_steps", "label_correction", "label_reconstruction", "label_bags", "label_bag_weight")


def link_ways() -> tuple[str, ...]:
    """Return how links may be reported, and the trusted curators to whom they may be given as they are instead."""
    from graphldp.trusted import CURATORS

    return (*link_names(), *CURATORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParams:
    """What every method of a table may try: the same number of points, on the same seeds.

    Attributes:
        points: how many points are tried.
        seeds: how many seeds each of them is tried on.
        learning_rate, weight_decay, dropout, steps: the axes that every method has.
        options: further axes by name, as `--set` writes them; a row that lacks one searches without it.
        strategy: `random` draws the points; `grid` takes all there are.
        space: `shared` by all methods, or `paper`: of a method whose paper says what it searched, that.
    """

    points: int = 8
    seeds: int = 2
    learning_rate: tuple[float, ...] = (0.01,)
    weight_decay: tuple[float, ...] = (0.001, 0.01, 0.03, 0.1)
    dropout: tuple[float, ...] = (0.25, 0.75)
    steps: tuple[int, ...] = (0, 2, 4, 8, 16)
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    strategy: str = "random"
    space: str = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainParams:
    """The backbone's and the loop's fixed options, and the task.

    Attributes:
        model: the backbone; the method's own if empty.
        hidden, epochs, patience: its width, the updates at most, and how many without improvement end a run.
        activation: between its layers, of a backbone that has one; the backbone's own if empty.
        batch_size: training nodes of one update; 0 is all of them, and an epoch one update.
        neighbors: in batches of a backbone whose layers pass messages: how many a node hears in each while training.
        standardize: whether inputs are centred on the fill and brought to one scale.
        train_fraction, validation_fraction: of the labelled nodes; the others are tested on. `half` is half of
            train_fraction: who has few labels to learn from has no more to choose by. Edges have shares of their own:
            85, 5 and 10 %.
        split: `random`, all parts in one graph; or `inductive`, each part a graph of its own, so that neither features
            nor links of people who are tested are seen in training.
        task: what is learned; `graphldp.measures` has the names.
        link_width, link_loss: of link prediction: how many outputs a node has, and `pairwise` or `cross-entropy`.
    """

    model: str = ""
    hidden: int = 16
    epochs: int = 500
    patience: int = 50
    batch_size: int = 0
    neighbors: int = 10
    standardize: bool = True
    train_fraction: float = 0.5
    validation_fraction: float | str = 0.25
    split: str = "random"
    task: str = DEFAULT_TASK
    link_width: int = 64
    link_loss: str = "pairwise"
    activation: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", canonical_task(self.task))

    @property
    def validation(self) -> float:
        """The share of the labelled nodes that runs are selected by."""
        return self.train_fraction / 2 if self.validation_fraction == HALF else float(self.validation_fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """What people are asked for beside their features; whatever nobody is asked for is public.

    Attributes:
        labels: how labels are reported (`krr`); empty where they are public.
        epsilon_labels: the budget of a label; infinite where it is public.
        links: how people report to whom they are linked (`rr`, `blink`, ...), or the trusted curator who sees all links
            and makes another graph of them (`edgerr`, ...); empty where links are public.
        epsilon_links: the budget of one bit of a person's list of neighbours, of a curator that of one link; infinite
            where it is public.
        link_options: further options of how links are reported and estimated, as pairs: `report` (`lower` or `both`),
            `estimator`, `most` (reported links at most) and the mechanism's own; of a curator `rho` and its own.
    """

    labels: str = ""
    epsilon_labels: float = math.inf
    links: str = ""
    epsilon_links: float = math.inf
    link_options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "link_options", tuple(sorted(dict(self.link_options).items())))
        if self.labels and self.labels not in LABEL_MECHANISMS:
            raise unknown_name("labels", self.labels, LABEL_MECHANISMS)
        if self.links and self.links not in link_names() and self.links not in (known := link_ways()):
            raise unknown_name("links", self.links, known)
        if self.link_options and not self.links:
            raise OptionError("link_options are of private links: say with links how they are reported")
        for name, what in (("labels", self.labels), ("links", self.links)):
            budget = getattr(self, f"epsilon_{name}")
            if not what and budget < math.inf:
                raise OptionError(
                    f"epsilon_{name} is the budget of private {name}: say with {name} how they are reported"
                )
            if isinstance(budget, bool) or not isinstance(budget, int | float) or not budget > 0:
                raise OptionError(f"epsilon_{name} must be above 0, or inf where {name} are public; got {budget!r}")

    @property
    def private_labels(self) -> bool:
        """Whether people are asked for their labels."""
        return bool(self.labels) and self.epsilon_labels < math.inf

    @property
    def private_links(self) -> bool:
        """Whether people are asked for their links."""
        return bool(self.links) and self.epsilon_links < math.inf

    @property
    def curated(self) -> bool:
        """Whether a trusted curator has the links, and nobody reports any."""
        return self.private_links and self.links not in link_names()

    @property
    def asked(self) -> bool:
        """Whether people are asked for anything beside their features."""
        return self.private_labels or self.private_links

    def facts(self) -> dict[str, Any]:
        """Return what is asked, in the words in which it is written everywhere."""
        out: dict[str, Any] = {}
        if self.private_labels:
            out |= {"labels": self.labels, "epsilon_labels": float(self.epsilon_labels)}
        if self.private_links:
            out |= {"links": self.links, "epsilon_links": float(self.epsilon_links)}
            out |= {"link_options": dict(self.link_options)} if self.link_options else {}
        return out

    def questions(self) -> dict[str, Any]:
        """Return what people are told of it: `facts` without what the server alone decides."""
        out = self.facts()
        options = {name: value for name, value in out.pop("link_options", {}).items() if name not in SERVERS}
        return out | ({"link_options": options} if options else {})

    def without_links(self) -> Further:
        """Return the same with nobody asked for links."""
        return replace(self, links="", epsilon_links=math.inf, link_options=())

    def command(self) -> str:
        """Return the options of a command that ask the same; empty where nothing is asked."""
        facts = self.facts()
        further = facts.pop("link_options", {})
        out = "".join(
            f" --{name.replace('_', '-')} {value if isinstance(value, str) else f'{value:.12g}'}"
            for name, value in facts.items()
        )
        return out + "".join(f" --link-option {name}={value}" for name, value in further.items())

    def budgets(self) -> dict[str, float]:
        """Return the budget of each further question, by the name under which it is written."""
        return {key: value for key, value in self.facts().items() if key.startswith("epsilon_")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What every cell of a table has in common.

    Attributes:
        seed: the root of all randomness.
        seeds: how many final runs a cell has.
        search, train: the same for every row.
        further: what people are asked for beside their features.
    """

    seed: int = 0
    seeds: int = 10
    search: SearchParams = field(default_factory=SearchParams)
    train: TrainParams = field(default_factory=TrainParams)
    further: Further = field(default_factory=Further)

    @property
    def searching(self) -> SearchParams:
        """What a row may try: with private labels also the depth over which these are propagated, unless it is said."""
        name = "train.label_steps"
        if not self.further.private_labels or name in self.search.options or self.search.strategy == "grid":
            return self.search
        steps = (0,) if self.train.batch_size else LABEL_STEPS
        return replace(self.search, options={name: steps, **self.search.options})

    def but_public(self) -> Self:
        """Return the same with nobody asked for anything beside features: true labels, as the ceiling has them."""
        return replace(self, further=Further())

    @property
    def draws(self) -> list[int]:
        """The seeds of all reports that a cell uses: those of its final runs, then those of its search."""
        return report_seeds(self.seeds, self.search.seeds)


MOST = 10_000  # runs, points or units of a layer: more exhaust a machine

_RUN = "a run that is trained"
_UNIT = "a unit of a layer that is trained"


def check_most(name: str, value: int, each: str) -> None:
    """Refuse a number of which every one costs as much again."""
    if value > MOST:
        raise OptionError(f"{name} may be at most {MOST:,}, got {value:,}: every one is {each}")


def check_settings(settings: Settings) -> None:
    """Check every number and word by itself."""
    search, train = settings.search, settings.train
    for name, least in (("seeds", 1), ("seed", 0)):
        if getattr(settings, name) < least:
            raise OptionError(f"{name} must be at least {least}, got {getattr(settings, name)}")
    for name, value, each in (
        ("seeds", settings.seeds, _RUN),
        ("search.seeds", search.seeds, _RUN),
        ("search.points", search.points, _RUN),
        ("train.link_width", train.link_width, _UNIT),
        ("train.hidden", train.hidden, _UNIT),
        *(("train.hidden", one, _UNIT) for one in search.options.get("train.hidden", ()) if isinstance(one, int)),
    ):
        check_most(name, value, each)
    if train.link_loss not in LINK_LOSSES:
        raise OptionError(f"train.link_loss must be one of {', '.join(LINK_LOSSES)}, got {train.link_loss!r}")
    if train.activation and train.activation not in ACTIVATIONS:
        raise OptionError(
            f"train.activation must be one of {', '.join(ACTIVATIONS)}, or empty for the backbone's own; got "
            f"{train.activation!r}"
        )
    rules: list[tuple[str, Any, bool, str]] = [
        (f"{place}.{name}", getattr(part, name), getattr(part, name) >= 1, "at least 1")
        for place, part, names in (
            ("search", search, ("points", "seeds")),
            ("train", train, ("hidden", "epochs", "patience", "link_width")),
        )
        for name in names
    ]
    rules += [
        *(("search.learning_rate", x, 0 < x < math.inf, "finite and > 0") for x in search.learning_rate),
        *(("search.weight_decay", x, 0 <= x < math.inf, "finite and >= 0") for x in search.weight_decay),
        *(("search.dropout", x, 0 <= x < 1, "in [0, 1)") for x in search.dropout),
        *(("search.steps", x, x >= 0, ">= 0") for x in search.steps),
        ("train.batch_size", train.batch_size, train.batch_size >= 0, "at least 1, or 0 for all nodes at once"),
        (
            "train.neighbors",
            train.neighbors,
            train.neighbors >= 1 or train.neighbors == -1,
            "at least 1, or -1 for all",
        ),
        ("train.train_fraction", train.train_fraction, train.train_fraction > 0, "> 0"),
        ("train.validation_fraction", train.validation_fraction, train.validation > 0, "> 0"),
    ]
    for name, value, holds, rule in rules:
        if not holds:
            raise OptionError(f"{name} must be {rule}, got {value}")
    for name, word, words in (
        ("search.strategy", search.strategy, STRATEGIES),
        ("search.space", search.space, SPACES),
        ("train.split", train.split, SPLITS),
    ):
        if word not in words:
            raise unknown_name(name, word, words)
    if settings.further.private_labels and not measures_of(train.task).classes:
        raise OptionError(
            f"task {train.task!r} learns no class of each person, which is what {settings.further.labels} asks for; "
            "leave labels out"
        )
    if settings.further.private_links and "links" in measures_of(train.task).learns:
        raise OptionError(
            f"task {train.task!r} learns from people's links as they are, so they cannot be private; leave links out"
        )
    if train.split == INDUCTIVE and measures_of(train.task).parts == "edges":
        raise OptionError(
            "train.split inductive is for tasks of nodes: link prediction splits edges, between nodes that are all seen"
        )
    if not train.train_fraction + train.validation < 1:
        raise OptionError(
            "train.train_fraction and train.validation_fraction must leave nodes to test on, so their sum is < 1; got "
            f"{train.train_fraction} and {train.validation_fraction}"
        )


def report_seeds(final: int, search: int) -> list[int]:
    """Return the seeds of a cell: 0..final-1 for its final runs, -1..-search for its search."""
    return [*range(final), *range(-1, -search - 1, -1)]


def split_facts(params: Settings) -> dict[str, Any]:
    """Return what decides whose labels are training labels, or which links are training links."""
    train = params.train
    if measures_of(train.task).parts == "edges":
        return {"root": params.seed, "parts": "edges"}
    return {
        "root": params.seed,
        "train_fraction": train.train_fraction,
        "validation_fraction": train.validation,
        **({} if train.split == "random" else {"split": train.split}),
    }
