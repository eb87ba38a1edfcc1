"""What mechanisms for lists of neighbours share: the lists, the reports, the budget of a bit and of a relationship."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphldp.client.laws.coded import check_count
from graphldp.client.links.draws import log_discrete_laplace
from graphldp.client.randomiser import Floats, check_budget, check_number, settled
from graphldp.client.registry import Claim
from graphldp.errors import DataError, OptionError
from graphldp.randomness import UniformSource
from graphldp.registry import Registry, check_options

__all__ = [
    "MOST_LINKS",
    "REPORTS",
    "LinkMechanism",
    "LinkReports",
    "Neighbours",
    "WithDegree",
    "allow_more",
    "link_names",
    "lookup_link",
    "register_link",
]

REPORTS = ("lower", "both")
MOST_LINKS = 2**25  # reported links (or numbers) in one call, unless the caller says otherwise
_MOST_NODES = 2**31 - 1

LINKS: Registry[type[LinkMechanism]] = Registry("mechanism for links")
register_link = LINKS.register
lookup_link = LINKS.__getitem__


def link_names() -> list[str]:
    """Return the names of the mechanisms for links, sorted."""
    return list(LINKS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """Lists of neighbours: each owner's, in increasing order.

    Attributes:
        nodes: how many people there are.
        owners: whose lists these are, int32, increasing.
        indptr: where each list begins and ends, int64.
        indices: the neighbours, int32.
    """

    nodes: int
    owners: NDArray[np.int32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    @classmethod
    def of_edges(cls, edges: ArrayLike, nodes: int) -> Neighbours:
        """Return everybody's list from the links of a graph: 2 x E, each link once, in either order."""
        check_count("links", "nodes", nodes, 1, _MOST_NODES)
        pairs = np.asarray(edges)
        if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
            raise DataError(f"links need 2 x E whole numbers, got the shape {pairs.shape} and the type {pairs.dtype}")
        pairs = pairs.astype(np.int64)
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < nodes):
            raise DataError(f"a link names somebody outside 0..{nodes - 1}")
        loops = int((pairs[0] == pairs[1]).sum())
        if loops:
            raise DataError(f"{loops} link(s) join a person to herself; leave them out")
        codes = np.sort(np.minimum(*pairs) * nodes + np.maximum(*pairs))
        twice = int((np.diff(codes) == 0).sum())
        if twice:
            raise DataError(f"{twice} link(s) stand there more than once; name each once, in either order")
        every = np.sort(np.concatenate([pairs[0] * nodes + pairs[1], pairs[1] * nodes + pairs[0]]))
        counts = np.bincount(every // nodes, minlength=nodes)
        return cls(
            nodes=int(nodes),
            owners=np.arange(nodes, dtype=np.int32),
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=(every % nodes).astype(np.int32),
        )

    @classmethod
    def of_person(cls, person: int, neighbours: ArrayLike, nodes: int) -> Neighbours:
        """Return one person's list, as her device has it; nothing in a message tells who is on it."""
        check_count("links", "nodes", nodes, 1, _MOST_NODES)
        check_count("links", "person", person, 0, nodes - 1)
        own = np.asarray(neighbours)
        if own.ndim != 1 or (own.size and own.dtype.kind not in "iu"):
            raise DataError(
                f"a list of neighbours needs whole numbers, got the type {own.dtype}, {own.ndim} dimensions"
            )
        own = np.sort(own.astype(np.int64))
        if own.size and not (own[0] >= 0 and own[-1] < nodes):
            raise DataError(f"a list of neighbours names somebody outside 0..{nodes - 1}")
        if (own == person).any() or (np.diff(own) == 0).any():
            raise DataError("a list of neighbours names its owner, or somebody twice; name each other person once")
        return cls(
            nodes=int(nodes),
            owners=np.array([person], dtype=np.int32),
            indptr=np.array([0, len(own)], dtype=np.int64),
            indices=own.astype(np.int32),
        )

    @classmethod
    def of_people(cls, owners: ArrayLike, pairs: ArrayLike, nodes: int) -> Neighbours:
        """Return the lists of some people, from links (2 x E, each once, in either order) that may join others, too."""
        every = cls.of_edges(np.asarray(pairs, dtype=np.int64).reshape(2, -1), nodes)
        who = np.asarray(owners, dtype=np.int64)
        if who.ndim != 1 or not len(who) or (np.diff(who) <= 0).any() or who[0] < 0 or who[-1] >= nodes:
            raise DataError(f"the owners of lists are different people of 0..{nodes - 1}, in increasing order")
        counts = every.degrees[who]
        kept = np.isin(every.rows(), who)
        return cls(
            nodes=int(nodes),
            owners=who.astype(np.int32),
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=every.indices[kept],
        )

    @property
    def degrees(self) -> NDArray[np.int64]:
        """How many neighbours each owner has."""
        return np.diff(self.indptr)

    def rows(self) -> NDArray[np.int64]:
        """Return which list (not whose) each neighbour stands in."""
        return np.repeat(np.arange(len(self.owners), dtype=np.int64), self.degrees)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkReports:
    """What left the devices, nothing rectified.

    Attributes:
        nodes: how many people there are.
        owners: who reported, int32, increasing.
        indptr: where each report begins and ends, int64.
        indices: the reported neighbours of each owner, int32, increasing; with `value` all whom she reports on.
        degree: each owner's noisy degree, int64, for mechanisms that report one.
        value: a number for each of `indices`, for mechanisms that report numbers.
        meta: public facts (mechanism, options, both epsilons, claim). Nothing in it depends on anybody's links.
    """

    nodes: int
    owners: NDArray[np.int32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    degree: NDArray[np.int64] | None = None
    value: NDArray[np.float32] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def links(self) -> int:
        """How many links were reported, by whichever end."""
        return len(self.indices)

    def rows(self) -> NDArray[np.int64]:
        """Return which report (not whose) each reported link stands in."""
        return np.repeat(np.arange(len(self.owners), dtype=np.int64), np.diff(self.indptr))


def allow_more(links: float) -> str:
    """Return how the limit is raised that so many links are above, rounded up to two digits."""
    digit = 10.0 ** (math.floor(math.log10(links)) - 1)
    most = f"{math.ceil(links / digit) * digit:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"allow more with --link-option most={most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMechanism(ABC):
    """A local randomiser of one person's list of neighbours.

    Attributes:
        epsilon: the budget of one bit of the list, everything that leaves the device included.
        nodes: how many people there are; public.
        report: `lower`: a pair's bit is sent by the end with the larger number; `both`: by both ends.

    Class attributes:
        what: what there may be too many of in the reports, in words.
        estimators: by which estimators a server makes a graph of the reports (`graphldp.server.links`), its own first.
        sends_bits: whether the reported links are those of randomised response, with nothing taken away.
    """

    epsilon: float
    nodes: int
    report: str = "lower"

    name: ClassVar[str]
    option_names: ClassVar[tuple[str, ...]] = ()
    what: ClassVar[str] = "false links"
    estimators: ClassVar[tuple[str, ...]]
    sends_bits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_budget(self.name, self.epsilon))
        check_count(self.name, "nodes", self.nodes, 2, _MOST_NODES)
        if self.report not in REPORTS:
            raise OptionError(f"{self.name}: report must be one of {', '.join(REPORTS)}; got {self.report!r}")

    @classmethod
    def build(cls, *, epsilon: float, nodes: int, report: str, options: Mapping[str, Any]) -> LinkMechanism:
        """Return the mechanism from its options."""
        check_options(cls.name, options, cls.option_names)
        return cls(epsilon=epsilon, nodes=nodes, report=report, **options)

    # What is lost ---------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def bit_epsilon(self) -> float:
        """The share of the budget that goes to the bits."""

    @property
    def degree_epsilon(self) -> float:
        """The share that goes to the noisy degree; 0 without one."""
        return 0.0

    @property
    def ends(self) -> int:
        """How many of its two ends report a relationship."""
        return 2 if self.report == "both" else 1

    @property
    def relationship_epsilon(self) -> float:
        """What is claimed for one relationship, which is a bit of both ends' lists."""
        return 2 * self.degree_epsilon + self.ends * self.bit_epsilon

    @abstractmethod
    def bit_loss(self) -> float:
        """Return the exact loss of the bits' part, from its law."""

    @abstractmethod
    def degree_loss(self) -> float:
        """Return the exact loss of the noisy degree, from its law; 0 without one."""

    def privacy_loss(self) -> float:
        """Return the exact loss of one bit of a list in everything that leaves its owner's device."""
        return self.bit_loss() + self.degree_loss()

    def relationship_loss(self) -> float:
        """Return the exact loss of one relationship in everything that leaves all devices."""
        return 2 * self.degree_loss() + self.ends * self.bit_loss()

    @property
    def claim(self) -> Claim:
        """What the mechanism promises."""
        return Claim(
            epsilon=self.epsilon,
            unit="one bit of one person's list of neighbours",
            neighbours=(
                f"any two lists that differ in one bit; the relationship behind it loses at most "
                f"{self.relationship_epsilon:g} in all reports together"
            ),
            unprotected="features, labels, who takes part; a whole list, of which every bit adds its epsilon",
            arithmetic="float64 probabilities; reports are whole numbers, or rounded to a public grid",
            outside="a list that names its owner, somebody twice, or nobody there is refused",
        )

    # What is sent ---------------------------------------------------------------------------------------------

    def sizes(self, owners: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many bits each of these people sends."""
        own = np.asarray(owners, dtype=np.int64)
        return own if self.report == "lower" else np.full(len(own), self.nodes - 1, dtype=np.int64)

    @property
    def bits(self) -> int:
        """How many bits everybody sends together."""
        return self.nodes * (self.nodes - 1) * self.ends // 2

    @abstractmethod
    def expected_links(self, links: int = 0) -> float:
        """Return how many links are reported on average by everybody, of a graph with so many."""

    def report_bits(self) -> float:
        """Return how many bits a report of the longest list takes, at most: one for each of its bits."""
        return float(self.nodes - 1)

    @abstractmethod
    def perturb(
        self, neighbours: Neighbours, rng: UniformSource | None = None, *, most: float = MOST_LINKS
    ) -> LinkReports:
        """Return one report for each owner of a list.

        Args:
            neighbours: the lists.
            rng: a numpy Generator, or the secure source for real people's data.
            most: refuse, before anything is allocated, if more false links than this are to be expected.
        """

    @abstractmethod
    def log_law(self, reports: LinkReports, neighbours: Neighbours) -> Floats:
        """Return the log probability of each report given its owner's list."""

    def _check(self, neighbours: Neighbours, expected: float, most: float) -> None:
        if neighbours.nodes != self.nodes:
            raise DataError(f"the lists are of {neighbours.nodes} people, the mechanism was made for {self.nodes}")
        if expected > most:
            raise OptionError(
                f"{self.name}: at epsilon {self.epsilon:g} about {expected:,.0f} {self.what} would be reported among "
                f"{self.nodes:,} people, more than the {most:,.0f} that are allowed; spend more on links, take "
                f"{'' if self.report == 'lower' else 'report=lower or '}dprr, or {allow_more(expected)}"
            )

    def _sent(self, neighbours: Neighbours, codes: NDArray[np.int64], **more: Any) -> LinkReports:
        """Return reports from codes row * nodes + neighbour, increasing."""
        rows = codes // self.nodes
        counts = np.bincount(rows, minlength=len(neighbours.owners))
        return LinkReports(
            nodes=self.nodes,
            owners=neighbours.owners,
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=(codes - rows * self.nodes).astype(np.int32),
            meta=self.meta(),
            **more,
        )

    def _codes(self, rows: NDArray[np.int64], places: NDArray[np.int64], owners: NDArray[Any]) -> NDArray[np.int64]:
        """Return row * nodes + neighbour of the bits at these places of these rows."""
        if self.ends == 2:
            places = places + (places >= owners[rows])
        return np.asarray(rows * self.nodes + places)

    def _true_codes(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """Return the same for the true links among the bits that are sent."""
        rows = neighbours.rows()
        codes = rows * self.nodes + neighbours.indices
        if self.ends == 2:
            return np.asarray(codes)
        return np.asarray(codes[neighbours.indices < neighbours.owners[rows]])

    def options(self) -> dict[str, Any]:
        """Return the mechanism's own options, as JSON-able values."""
        return {name: getattr(self, name) for name in self.option_names}

    def meta(self) -> dict[str, Any]:
        """Return the public facts from which `link_mechanism_of` builds an equal mechanism."""
        return {
            "question": "links",
            "mechanism": self.name,
            "options": self.options(),
            "epsilon": self.epsilon,
            "epsilon_bits": self.bit_epsilon,
            "epsilon_degree": self.degree_epsilon,
            "epsilon_relationship": self.relationship_epsilon,
            "delta": 0.0,
            "nodes": self.nodes,
            "report": self.report,
            "claim": asdict(self.claim),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WithDegree(LinkMechanism):
    """A mechanism that spends a share of the budget on a noisy degree.

    Attributes:
        degree_share: that share.
    """

    degree_share: float = 0.1

    option_names: ClassVar[tuple[str, ...]] = ("degree_share",)

    def __post_init__(self) -> None:
        LinkMechanism.__post_init__(self)
        share = check_number(self.name, "degree_share", self.degree_share)
        if not 0 < share < 1:
            raise OptionError(f"{self.name}: degree_share must be between 0 and 1, got {share}")
        object.__setattr__(self, "degree_share", share)
        for part in (self.degree_epsilon, self.bit_epsilon):
            check_budget(self.name, part)

    @property
    def degree_epsilon(self) -> float:
        """The share that goes to the noisy degree."""
        return self.degree_share * self.epsilon

    @property
    def bit_epsilon(self) -> float:
        """What is left for the bits."""
        return self.epsilon - self.degree_epsilon

    def report_bits(self) -> float:
        """Return how many bits a report of the longest list takes, at most, and its degree on average."""
        r = float(np.exp(-self.degree_epsilon))
        odds = -np.expm1(-self.degree_epsilon) / (1 + r)
        spread = 2 * r / (-np.expm1(-self.degree_epsilon) * (1 + r))  # mean size of the noise
        return float(self.nodes - 1 - np.log2(odds) + spread * self.degree_epsilon / np.log(2))

    def degree_loss(self) -> float:
        """Return the exact loss of the noisy degree: a bit moves the degree by 1, and that its log law by its rate."""
        at, beside = log_discrete_laplace(self.degree_epsilon, np.arange(2))
        return settled(float(at - beside), self.degree_epsilon)
