"""The named recipes: what the device sends, how the server calibrates it, what it learns with.

A method is an entry here. It appears in `ldp list methods`, in the pipeline's grid, in tables and on the report page
by its name alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphldp.errors import OptionError
from graphldp.registry import Registry, check_options

if TYPE_CHECKING:
    from graphldp.client import VectorMechanism
    from graphldp.experiment.conversation import Asking
    from graphldp.server import Calibration

__all__ = [
    "PREFIX",
    "Method",
    "Role",
    "check_steps",
    "method",
    "names",
    "part_of",
    "reference",
    "references",
    "role_of",
]

PREFIX = "method."  # of the options that change a method, wherever options are written
_FORMER = "denoise."


def part_of(name: str) -> str | None:
    """Return the part of a method that an option names as `method.KEY`; None for every other option."""
    if name.startswith(_FORMER):
        key = name.removeprefix(_FORMER)
        raise OptionError(f"{name} is no option: what changes a method is written {PREFIX}{key}")
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else None


MAX_STEPS = 1000  # of a filter: its coefficients are stored and applied one by one


def check_steps(steps: Iterable[int]) -> None:
    """Refuse a depth K that no filter gets to."""
    deepest = max(steps, default=0)
    if deepest > MAX_STEPS:
        raise OptionError(
            f"the depth K (steps) may be at most {MAX_STEPS:,}, got {deepest:,}: each step is a product with the whole "
            "graph, and far fewer mix all of it"
        )


class Role(StrEnum):
    """What a row is in its table. All but `PRIVATE` stand in every table by themselves; tables have this order."""

    GUESS = "guess"  # looks at nothing; there is one
    FLOOR = "floor"  # uses nobody's features; there is one, from which gains are counted
    BESIDE = "beside"  # a further reference
    PRIVATE = "private"  # what a table is about: people's features at a budget
    CEILING = "ceiling"  # everybody's true features; there is one, from which gaps are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One recipe.

    Attributes:
        name: as tables and options write it.
        summary: two lines for `ldp list methods`.
        page: where the docs say more of it, below their folder.
        role: what it is in a table.
        mechanism: what the device sends unless another mechanism is asked for; empty where nothing is sent.
        mechanisms: the only mechanisms that make sense, or empty where any does.
        propagates: whether the filter has a depth K that is searched.
        filter: how the server filters the estimates over the graph, by its registered name.
        options: the filter's options beside K, as pairs.
        before: share tau of the mechanism's boundary by which reports are soft-thresholded before the filter.
        after: the same after the filter, as UPGNet's Theorem 5 has it; the filter is then applied before learning.
        asks: how people are asked, as MODULE.CLASS of `graphldp.experiment`; empty where they report everything once.
        asks_with: the options of it that are not at their defaults, as pairs.
        evidence: what the server gives the model instead of filtered reports, by its registered name; `options` are
            then the evidence's, and with `propagates` its depth K is searched, by the filter without further options.
        axes: what this method searches beside the space that every method has, as (name, values) pairs; the names are
            those of the search space's further options (`method.kind`).
        grid: what its paper searched, as (name, values) pairs, common axes by their own name: `search.space: paper`.
        learners: the methods among which this one chooses by validation, instead of learning by itself; `A+B` is the
            learner A with the inputs of B beside its own.
        unseen: those instead where the people that are tested are in a graph which was not seen in training.
        follows: of its learners `A+B` only that one is tried whose A is the best of those that nobody tells anything.
        caution: by how many standard errors over the splits a learner that asks people must be ahead of the best of
            those that nobody tells anything to be chosen; at 0 it is chosen where it is ahead on average.
        beside: the method whose inputs, before any filter, stand beside this one's own; empty where none do.
        alone: whether links have no part in it, so that nobody is asked for them; its model is then always its own.
        relinks: how private links are found anew by what else the server has, `learning` with a model or by
            `homophily`; empty where they are estimated from their own reports.
        mute: the method that is left of it where nobody is asked for features; itself on a coin's reports if empty.
        model: the backbone; empty where nothing is learned.
        reference: where it was published.
    """

    name: str
    summary: str
    page: str = "learning.md"
    role: Role = Role.PRIVATE
    mechanism: str
    mechanisms: tuple[str, ...] = ()
    propagates: bool = True
    filter: str = "kprop"
    options: tuple[tuple[str, Any], ...] = ()
    before: float = 0.0
    after: float = 0.0
    asks: str = ""
    asks_with: tuple[tuple[str, Any], ...] = ()
    evidence: str = ""
    axes: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    grid: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    learners: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    follows: bool = False
    caution: float = 1.0
    beside: str = ""
    alone: bool = False
    relinks: str = ""
    mute: str = ""
    model: str = "gcn"
    reference: str = ""

    def __post_init__(self) -> None:
        if self.evidence and (self.before or self.after):
            raise OptionError(f"method {self.name!r} has evidence, which takes no thresholds")

    @property
    def silent(self) -> bool:
        """Whether nobody tells it anything: it learns from a coin's reports, whatever else it knows."""
        return self.mechanisms == ("null",)

    @property
    def budget(self) -> float | None:
        """The only budget at which it stands in a table: that of its mechanism, if this has but one."""
        from graphldp.client import own_budget

        return own_budget(self.mechanism) if self.mechanism else 0.0

    @property
    def trained(self) -> int:
        """How many learners a row of it trains once the floor is there, whose learners are kept."""
        floor = reference(Role.FLOOR)
        new = [one for one in self.learners if one not in floor.learners or self.name == floor.name]
        return (2 if self.follows else max(1, len(new))) if self.model else 0

    @property
    def asking(self) -> Asking | None:
        """How people are asked, by this method or by the one of its learners that asks them; None: they report once."""
        asks, given = (self.asks, self.asks_with) if self.asks else self._asked_by_learner()
        if not asks:
            return None
        module, _, name = asks.partition(".")
        found: Asking = getattr(import_module(f"graphldp.experiment.{module}"), name)(**dict(given))
        return found

    def _asked_by_learner(self) -> tuple[str, tuple[tuple[str, Any], ...]]:
        found = (method(name.partition("+")[0]) for name in self.learners)
        return next(((one.asks, one.asks_with) for one in found if one.asks), ("", ()))

    def asking_with(self, asking: Asking) -> Method:
        """Return the recipe with people asked in that way."""
        module = type(asking).__module__.rpartition(".")[2]
        given = tuple((one.name, getattr(asking, one.name)) for one in fields(asking))
        return replace(self, asks=f"{module}.{type(asking).__name__}", asks_with=given)

    @property
    def calibrates(self) -> bool:
        """Whether the server's estimate is one of features; else the method learns from answers as they are."""
        asking = self.asking
        return asking is None or asking.calibrates

    @property
    def threshold(self) -> str:
        """Where the method has its one threshold, which `tau` sets: `before` or `after` the filter, or nowhere."""
        there = [name for name in ("before", "after") if getattr(self, name)]
        return there[0] if len(there) == 1 else ""

    def steps(self, searched: tuple[int, ...]) -> tuple[int, ...]:
        """Return the filter depths K that a search may try."""
        if not self.propagates:
            return (0,)
        check_steps(searched)
        return tuple(searched)

    def calibration(self, steps: int, device: VectorMechanism, average_degree: float) -> Calibration:
        """Return what the server does with reports of that mechanism at depth K."""
        from graphldp.server import make_filter, nfr_after, nfr_before

        options = {} if self.evidence else dict(self.options)
        if self.propagates:
            options["steps"] = steps
        out = make_filter(self.filter, **options)
        if self.before and out.shrinkage == "dropout":
            out = out.but(before=self.before)  # a rate, not a share of the boundary
        elif self.before:
            out = nfr_before(out, device, self.before)
        if self.after:
            out = nfr_after(out, device, self.after, average_degree)
        return out

    def but(self, changes: Mapping[str, Any]) -> Method:
        """Return the recipe with parts of it changed: `filter`, `before`, `after`, the filter's options, what is asked.

        `tau` is that of `before` and `after` which the method has. What people are asked is changed by the fields of
        its `asking`. With another filter the old one's options are dropped, and K is searched if the new one has it. Of
        a method with evidence, `evidence` and its options change instead of the filter; of one that chooses among
        learners, what people are asked alone.
        """
        if not changes:
            return self
        if not self.model:
            raise OptionError(f"method {self.name!r} has no calibration to change: {', '.join(changes)}")
        if self.learners:
            return self._other_questions(dict(changes))
        if self.evidence:
            return self._other_evidence(dict(changes))
        from graphldp.server import filter_entry
        from graphldp.server.filters import SHARED_OPTIONS

        out, options, asking = self, dict(self.options), self.asking
        own = filter_entry(str(changes.get("filter", self.filter))).options
        self._check(changes, "filter", "tau", *own, *SHARED_OPTIONS)
        if "filter" in changes:
            out, options = replace(out, filter=str(changes["filter"]), propagates="steps" in own), {}
        for key, value in changes.items():
            if asking is not None and key in out.asking_options():
                asking = asking.but(**{key: value})
                out = out.asking_with(asking)
            elif key in ("before", "after", "tau"):
                if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
                    raise OptionError(f"{key} is a share tau of the boundary, from 0 to below 1; got {value!r}")
                name = self.threshold if key == "tau" else key
                if not name or (key == "tau" and name in changes):
                    raise OptionError(
                        f"tau is the threshold of a method that has one, and {self.name!r} has "
                        f"{'it given as ' + name if name else 'none'}; say before (N-H) or after (H-N)"
                    )
                out = replace(out, before=float(value)) if name == "before" else replace(out, after=float(value))
            elif key == "steps":
                raise OptionError("the depth K is searched: set it with --steps, or search.steps in params.yaml")
            elif key != "filter":
                options[key] = value
        if (out.before or out.after) and asking is not None and not asking.thresholds:
            raise OptionError(
                f"method {self.name!r} asks for some features more often than for others, so no one threshold fits all "
                "reports; leave before and after out"
            )
        return replace(out, options=tuple(sorted(options.items())))

    def _other_questions(self, changes: dict[str, Any]) -> Method:
        """Return the choice among learners with other questions of those that ask people, and nothing else changed."""
        asking = self.asking
        others = [key for key in changes if key not in self.asking_options()]
        if asking is None or others:
            raise OptionError(
                f"method {self.name!r} is the best of {', '.join(self.learners)}; to change {', '.join(others)}, run "
                "one of them"
            )
        return self.asking_with(asking.but(**changes))

    def learner(self, name: str) -> Method:
        """Return one of the learners; one that asks people asks them what this method does."""
        own, _, beside = name.partition("+")
        one = replace(method(own), beside=beside)
        return replace(one, asks=self.asks, asks_with=self.asks_with) if one.asks and self.asks else one

    def _other_evidence(self, changes: dict[str, Any]) -> Method:
        """Return the recipe with another evidence, or with other options of it; checked against what there is."""
        from graphldp.server.evidence import evidence_class, make_evidence

        asking = self.asking
        kind: Any = evidence_class(str(changes.get("evidence", self.evidence)))
        self._check(changes, "evidence", *(one.name for one in fields(kind)))
        asked = {key: changes.pop(key) for key in self.asking_options() if key in changes}
        out = self.asking_with(asking.but(**asked)) if asking is not None and asked else self
        name = str(changes.pop("evidence", self.evidence))
        options = {**(dict(self.options) if name == self.evidence else {}), **changes}
        make_evidence(name, **options)
        return replace(out, evidence=name, options=tuple(sorted(options.items())))

    def _check(self, changes: Mapping[str, Any], *parts: str) -> None:
        """Refuse a change of what is neither one of these parts nor an option of how people are asked."""
        check_options(f"method {self.name!r}", changes, [*parts, *self.asking_options()])

    def asking_options(self) -> tuple[str, ...]:
        """Return the names of what can be changed in how people are asked; none where they report everything once."""
        asking = self.asking
        return () if asking is None else tuple(part.name for part in fields(asking))

    def choose(self, mechanism: str | None) -> str:
        """Return the mechanism to use; one that the method cannot mean is an error."""
        if mechanism is None or mechanism == self.mechanism:
            return self.mechanism
        if not self.model:
            if mechanism == "none":  # as tables and metadata write it
                return self.mechanism
            raise OptionError(f"method {self.name!r} sends nothing, so it takes no mechanism; got {mechanism!r}")
        if self.mechanisms and mechanism not in self.mechanisms:
            raise OptionError(
                f"method {self.name!r} means mechanism {' or '.join(self.mechanisms)}, got {mechanism!r}; "
                "for other mechanisms use base or lpgnn"
            )
        return mechanism

    def cell_name(self, mechanism: str) -> str:
        """Return the row's name: the method's, with the mechanism's behind it where it is not the usual one."""
        return self.name if mechanism == self.mechanism else f"{self.name}-{mechanism}"


# What the papers say that they searched (docs/search.md). A learning rate of 0, which one lists, trains nothing.
_UPGNET: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("learning_rate", (1e-4, 1e-3, 1e-2, 1e-1)),
    ("weight_decay", (1e-4, 1e-3, 1e-2, 1e-1)),
    ("dropout", (1e-4, 1e-3, 1e-2, 1e-1)),
    ("steps", (0, 2, 4, 8, 16, 32, 64)),
)
_TOGL: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("learning_rate", (1e-3, 1e-2, 1e-1)),
    ("weight_decay", (0.0, 1e-5, 1e-4, 1e-3)),
    ("dropout", (0.0, 1e-3, 1e-2, 1e-1)),
    ("steps", (0,)),  # its K is the depth before scoring; what is learned from is not denoised
    ("method.score_steps", (0, 1, 2, 3, 4, 5)),
    ("method.rho", (0.0, 0.3, 0.5, 0.7, 1.0)),
)


# The learners that know the graph and the training labels alone.
_FLOOR = ("coin", "coin-hoa", "label-propagation", "labels", "spectral", "pagerank", "links", "surroundings")
_UNSEEN = ("coin", "roles")  # of nodes that were not there in training


def _and(learners: tuple[str, ...], other: str) -> tuple[str, ...]:
    """Return the learners, another one, and each of them with the other's inputs beside its own."""
    return (*learners, other, *(f"{name}+{other}" for name in learners))


def _structural(name: str, summary: str, *axes: tuple[str, tuple[Any, ...]], reference: str = "") -> Method:
    """Return a learner that knows the graph and the training labels alone; its evidence has its name."""
    perceptron = (("train.bias", (True,)), ("train.residual", (False,)))
    return Method(
        name=name,
        summary=summary,
        page="floor.md",
        mechanism="null",
        mechanisms=("null",),
        propagates=False,
        filter="none",
        evidence=name,
        axes=tuple(sorted((*axes, *perceptron))),
        model="mlp",
        reference=reference,
    )


_RECIPES = {
    entry.name: entry
    for entry in (
        Method(
            name="majority",
            role=Role.GUESS,
            summary="Predicts the commonest class of the training labels. Nobody sends anything, nothing is learned.",
            page="tables.md",
            mechanism="",
            propagates=False,
            filter="none",
            alone=True,
            model="",
        ),
        Method(
            name="structure",
            role=Role.FLOOR,
            summary="The floor: what the graph and the training labels tell, by the best of several learners.",
            page="floor.md",
            mechanism="null",
            mechanisms=("null",),
            learners=_FLOOR,
            unseen=_UNSEEN,
        ),
        Method(
            name="coin",
            summary="The whole pipeline on reports of a fair coin: as lpgnn, and nobody says anything.",
            page="floor.md",
            mechanism="null",
            mechanisms=("null",),
        ),
        Method(
            name="coin-hoa",
            summary="As upgnet-nh, and nobody says anything: the mean of the powers 1 to K of a fair coin's reports.",
            page="floor.md",
            mechanism="null",
            mechanisms=("null",),
            filter="hoa",
        ),
        Method(
            name="random",
            summary="Random signs for each node instead of any report, summed over K steps of the graph.",
            mechanism="null",
            mechanisms=("null",),
            evidence="random",
        ),
        _structural(
            "labels",
            "Label propagation and the classes at 1 to 4 steps, without the own label, into a perceptron.",
            ("method.decay", (0.02, 0.1, 0.3)),
            ("method.hops", (0, 4)),
            reference="Zhou et al., NeurIPS 2004",
        ),
        _structural(
            "spectral",
            "The leading eigenvectors of the regularised normalised adjacency, into a perceptron or GCN.",
            ("method.width", (32, 128, 256)),
            ("train.model", ("mlp", "gcn")),
            reference="Qin & Rohe, NeurIPS 2013",
        ),
        _structural(
            "pagerank",
            "Coordinates of log personalised PageRank, into a perceptron or GCN.",
            ("method.width", (64, 256)),
            ("train.model", ("mlp", "gcn")),
            reference="Yin & Wei, KDD 2019",
        ),
        _structural(
            "links",
            "To whom a node is linked: the rows of the adjacency matrix at low rank, into a perceptron.",
            ("method.width", (128, 512)),
            reference="Lim et al., NeurIPS 2021 (LINK)",
        ),
        _structural(
            "surroundings",
            "Labels around a node, coordinates and the degree side by side, into a perceptron.",
            ("method.width", (16, 64, 256)),
            ("method.positions", ("spectral", "links")),
        ),
        _structural(
            "roles",
            "How many neighbours a node has, how many its neighbours have, how close they stand, into a perceptron.",
            ("method.hops", (0, 1, 2)),
            reference="Henderson et al., KDD 2011 (ReFeX)",
        ),
        Method(
            name="label-propagation",
            summary="Label propagation alone; one linear layer makes its shares into probabilities.",
            page="floor.md",
            mechanism="null",
            mechanisms=("null",),
            propagates=False,
            filter="none",
            evidence="labels",
            axes=(
                ("method.decay", (0.02, 0.05, 0.1, 0.3, 0.5)),
                ("train.bias", (True,)),
                ("train.layers", (1,)),
            ),
            model="mlp",
            reference="Zhou et al., NeurIPS 2004",
        ),
        Method(
            name="base",
            summary="The reports as they are, rectified and not filtered, into the backbone.",
            page="tables.md",
            mechanism="mb",
            propagates=False,
            filter="none",
            reference="the papers' BASE",
        ),
        Method(
            name="mlp",
            summary="Features alone: the reports as they are into a perceptron. Links have no part, nobody tells any.",
            page="links.md",
            mechanism="mb",
            propagates=False,
            filter="none",
            alone=True,
            model="mlp",
        ),
        Method(
            name="lpgnn",
            summary="Rectified reports, summed over K steps of the graph (KProp), into the backbone.",
            page="calibration.md",
            mechanism="mb",
            reference="Sajadmanesh & Gatica-Perez, CCS 2021",
        ),
        Method(
            name="solitude",
            summary="As lpgnn; private links are learned together with a model. With public links the same as lpgnn.",
            page="links.md",
            mechanism="mb",
            mechanisms=("mb",),
            relinks="learning",
            reference="Lin et al., TIFS 2022; with public links as UPGNet and PPGNN compare it",
        ),
        Method(
            name="hogs",
            summary="K-step means over private links weighed by how alike reported features are (public links: means).",
            page="links.md",
            mechanism="mb",
            options=(("normalization", "mean"), ("self_loops", True)),
            relinks="homophily",
            reference="HoGS, Xu et al., 2026",
        ),
        Method(
            name="rgnn",
            summary="Means of features over K steps; private labels as frequencies around a node and in clusters.",
            mechanism="mb",
            options=(("normalization", "mean"), ("self_loops", True)),
            axes=(
                ("train.label_bag_weight", (0.3, 1.0, 3.0)),
                ("train.label_bags", (32, 128)),
                ("train.label_reconstruction", (True,)),
            ),
            page="labels.md",
            reference="RGNN, Bhaila et al., SDM 2024",
        ),
        Method(
            name="heterorr",
            summary="FeatureRR: a first round scores features; importance and exposure are their shares of a budget.",
            mechanism="featurerr",
            mechanisms=("featurerr",),
            propagates=False,
            filter="none",
            asks="scored.Scored",
            page="links.md",
            reference="HeteroRR, Algorithm 1; with links by edgerr Algorithms 2 and 3",
            mute="coin",
        ),
        Method(
            name="ppgnn",
            summary="Personal budgets by public level, then FlexProp: K steps of the mean that levels weigh.",
            page="papers/ppgnn.md",
            mechanism="ppm-public",
            mechanisms=("ppm-public", "ppm-safe", "ppm", "pldp"),
            filter="flexprop",
            grid=(
                ("learning_rate", (1e-4, 1e-3, 1e-2, 1e-1)),
                ("weight_decay", (0.0, 1e-4, 1e-3, 1e-2, 1e-1)),
                ("dropout", (0.0, 0.25, 0.5, 0.75)),
                ("steps", (0, 2, 4, 8, 16)),
                ("gamma", (0.1, 0.3, 0.5, 0.7, 0.9)),
            ),
            reference="PPGNN, Algorithms 3 and 4",
        ),
        Method(
            name="upgnet-nh",
            summary="Reports soft-thresholded (NFR), then the mean of the powers 1 to K of the graph (HOA).",
            page="calibration.md",
            mechanism="mb",
            filter="hoa",
            before=0.5,
            grid=(*_UPGNET, ("method.before", (0.1, 0.3, 0.5, 0.7, 0.9))),
            reference="UPGNet, Algorithm 2, order N-H",
        ),
        Method(
            name="upgnet-hn",
            summary="The mean of the powers 1 to K of the graph (HOA), then soft-thresholded (NFR).",
            page="calibration.md",
            mechanism="mb",
            filter="hoa",
            after=0.5,
            grid=(*_UPGNET, ("method.after", (0.1, 0.3, 0.5, 0.7, 0.9))),
            reference="UPGNet, Algorithm 2, order H-N",
        ),
        Method(
            name="ldpge",
            summary="Square-wave reports of k features, personalised PageRank over the graph, into an MLP.",
            page="papers/ldpge.md",
            mechanism="hds",
            mechanisms=("hds", "hds-rectified", "mb", "pm", "lp", "identity"),
            propagates=False,
            filter="ppr",
            options=(("convolution", 0.5), ("decay", 0.1), ("expansion", "auto")),
            # Inputs are centred here, so that no weight can say how common a class is: that takes a bias.
            axes=(("train.bias", (True,)),),
            model="mlp",
            grid=(("m", (1, 3, 5, 10, 20, 30, 50)),),
            reference="LDP-GE, Algorithms 2 to 4",
        ),
        Method(
            name="togl-fda",
            summary="Two rounds: half the budget finds the features that set classes apart (FDA), half reports them.",
            page="selection.md",
            mechanism="pm",
            asks="rounds.Rounds",
            asks_with=(("score_by", "fda"),),
            grid=_TOGL,
            reference="TOGL, Eq. 4 to 8, discriminant scores",
            mute="coin",
        ),
        Method(
            name="togl-sma",
            summary="Two rounds: half the budget finds the features that an L1 model weighs (SMA), half reports them.",
            page="selection.md",
            mechanism="pm",
            asks="rounds.Rounds",
            asks_with=(("score_by", "sma"),),
            grid=_TOGL,
            reference="TOGL, Eq. 4 to 8, sparse-model scores",
            mute="coin",
        ),
        Method(
            name="votes",
            summary="Half of the people say what their features are, the others vote for the class these speak for.",
            page="frontier.md",
            mechanism="privset",
            propagates=False,
            filter="none",
            asks="survey.Survey",
            evidence="votes",
            axes=(("method.kind", ("fused", "all")), ("train.model", ("posterior",))),
            model="posterior",
            mute="labels",
        ),
        Method(
            name="blocks",
            summary="Reports on links and labels, read through their laws by a block model; nobody's features.",
            page="links.md",
            mechanism="null",
            mechanisms=("null",),
            propagates=False,
            filter="none",
            evidence="blocks",
            axes=(("train.bias", (True,)), ("train.model", ("posterior", "mlp"))),
            model="posterior",
        ),
        Method(
            name="blocks-votes",
            summary="As blocks, with the votes of people's own features, as votes asks for them, read by their law.",
            page="links.md",
            mechanism="privset",
            propagates=False,
            filter="none",
            asks="survey.Survey",
            evidence="blocks-votes",
            axes=(("train.model", ("posterior", "mlp")),),
            model="posterior",
            mute="blocks",
        ),
        Method(
            name="features",
            summary="The whole pipeline on everybody's true features (epsilon infinite): as lpgnn without any noise.",
            page="floor.md",
            mechanism="identity",
            mechanisms=("identity",),
        ),
        Method(
            name="frontier",
            summary="The floor, or votes of people's own features, alone or beside it, where these are ahead.",
            page="frontier.md",
            mechanism="privset",
            learners=_and(_FLOOR, "votes"),
            unseen=_and(_UNSEEN, "votes"),
            follows=True,
            caution=0.0,
            mute="structure",
        ),
        Method(
            name="pooled",
            summary="For private links: the floor, or links', labels' and votes' laws fused, where clearly ahead.",
            page="links.md",
            mechanism="privset",
            learners=(*_FLOOR, "blocks", "blocks-votes"),
            unseen=(*_UNSEEN, "votes"),
            mute="structure",
        ),
        Method(
            name="nonpriv",
            role=Role.CEILING,
            summary="The ceiling: the best of the floor's learners and of these with everybody's true features beside.",
            page="floor.md",
            mechanism="identity",
            mechanisms=("identity",),
            learners=_and(_FLOOR, "features"),
            unseen=_and(_UNSEEN, "features"),
        ),
    )
}
METHODS = Registry("method", _RECIPES)


def names() -> list[str]:
    """Return the methods' names, the floor first and the ceiling last."""
    return list(METHODS)


def method(name: str) -> Method:
    """Return the method of that name; an unknown name is an error that lists the valid ones."""
    return METHODS[name]


def references() -> list[Method]:
    """Return the methods that stand in every table by themselves, in its order."""
    found = [entry for entry in METHODS.values() if entry.role is not Role.PRIVATE]
    return sorted(found, key=lambda entry: list(Role).index(entry.role))


def reference(role: Role) -> Method:
    """Return the method that is the guess, the floor or the ceiling of every table."""
    return next(entry for entry in METHODS.values() if entry.role is role)


def role_of(name: str) -> Role:
    """Return what a row of that method is in its table."""
    return method(name).role
