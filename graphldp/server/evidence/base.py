"""What evidence is: a dense n x p matrix that a model gets instead of the filtered reports.

The server computes it for each seed from what it may know: the public graph, the estimate that it made of the reports,
the mechanism's public law, and the labels of the training nodes. All of it is post-processing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import VectorMechanism
from graphldp.client.links import LinkReports
from graphldp.errors import DataError
from graphldp.graph import Graph
from graphldp.randomness import generator
from graphldp.server.estimate import Estimate

__all__ = ["Evidence", "EvidenceSetting"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvidenceSetting:
    """What the server knows when it computes evidence for one seed.

    Attributes:
        graph: the public graph without what is not the server's: it has no features and no labels.
        estimate: what the server makes of the seed's reports; None for evidence that does not read them.
        device: the mechanism that made the reports: its law, its variance, its metadata.
        labels: of the training nodes; -1 for everybody else, validation and test nodes alike.
        train: the training nodes.
        classes: how many classes there are.
        seed: root of everything that is drawn for this evidence.
        seen: the people of the training nodes' graph, where the others are in graphs of their own, without links to it:
            nothing may be fitted to anybody else. None where all are in one graph.
        chances: the probabilities that a label was sent as it is, and as a certain other one; None where labels are
            true.
        links: what people have sent of their links; None where these are public.
    """

    graph: Graph
    estimate: Estimate | None
    device: VectorMechanism
    labels: NDArray[np.int64]
    train: NDArray[np.int64]
    classes: int
    seed: int
    seen: NDArray[np.int64] | None = None
    chances: tuple[float, float] | None = None
    links: LinkReports | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        estimate: Estimate | None,
        device: VectorMechanism,
        train: NDArray[np.integer[Any]],
        seed: int,
        seen: NDArray[np.int64] | None = None,
        chances: tuple[float, float] | None = None,
        links: LinkReports | None = None,
    ) -> EvidenceSetting:
        """Return the setting of a graph, with everything removed that the server does not know."""
        nodes = np.asarray(train, dtype=np.int64)
        labels = np.full(graph.nodes, -1, dtype=np.int64)
        labels[nodes] = graph.labels[nodes]
        public = replace(
            graph,
            features=sp.csr_array(graph.features.shape, dtype=np.float32),
            labels=np.full(graph.nodes, -1, dtype=np.int32),
            label_sets=None,
        )
        return cls(
            graph=public,
            estimate=estimate,
            device=device,
            labels=labels,
            train=nodes,
            classes=graph.classes,
            seed=seed,
            seen=seen,
            chances=chances,
            links=links,
        )

    def __post_init__(self) -> None:
        if self.graph.features.nnz or (self.graph.labels != -1).any() or self.graph.label_sets is not None:
            raise DataError("evidence is given a graph without features and labels: use Setting.of")
        if self.labels.shape != (self.graph.nodes,):
            raise DataError(f"{self.graph.nodes} nodes need {self.graph.nodes} labels, got {self.labels.shape}")
        hidden = np.ones(self.graph.nodes, dtype=bool)
        hidden[self.train] = False
        if (self.labels[hidden] != -1).any():
            raise DataError("labels of nodes that are not trained on must be hidden (-1) from evidence")

    def generator(self, *address: str | int | float) -> np.random.Generator:
        """Return the generator of an address below this seed's."""
        return generator(self.seed, "evidence", *address)


class Evidence(ABC):
    """One kind of evidence: a frozen dataclass of options with a `build`, registered under a name.

    Attributes:
        name: as options and metadata write it.
        summary: one line.
        reads: whether it reads the reports; if not, none are drawn for it and the setting has no estimate.
        spreads: whether it is made of the classes of training nodes, so that a task without classes has none of it.
        links: whether it reads what people have sent of their links, beside the graph that is estimated from it.
        transfers: whether a row means the same on another graph, so that a model which learned from it can be applied
            there. Coordinates do not, nor do labels around a node, which others' graphs have none of. Evidence that
            fits something does so by what is `seen` alone.
        posterior: whether its first columns are a log posterior, so that its scale means something: a model that gets
            nothing else gets it as it is.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reads: ClassVar[bool] = True
    spreads: ClassVar[bool] = False
    links: ClassVar[bool] = False
    transfers: ClassVar[bool] = False
    posterior: ClassVar[bool] = False

    @abstractmethod
    def build(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return the n x p matrix, float32, all of it finite."""

    def matrix(self, setting: EvidenceSetting) -> NDArray[np.float32]:
        """Return what `build` returns, checked."""
        out = np.ascontiguousarray(self.build(setting), dtype=np.float32)
        if out.ndim != 2 or out.shape[0] != setting.graph.nodes or not out.shape[1]:
            raise DataError(f"evidence {self.name} must be a matrix of {setting.graph.nodes} rows, got {out.shape}")
        if not np.isfinite(out).all():
            raise DataError(f"evidence {self.name} must be finite: it holds a NaN or an infinity")
        return out

    def whole(self) -> Evidence:
        """Return the evidence that this one is columns of, which is computed once for both; itself if there is none."""
        return self

    def cut(self, matrix: NDArray[np.float32], classes: int) -> NDArray[np.float32]:
        """Return this evidence's columns of the matrix of the `whole`."""
        return matrix

    def counts(self, matrix: NDArray[np.float32], classes: int) -> bool:
        """Return whether what people say counts for anything in the matrix of the `whole`."""
        return True

    def unasked(self, matrix: NDArray[np.float32], shares: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return what the matrix of the `whole` says of classes without anybody's answer, as scores; None if nothing.

        `shares` are the classes' shares among training labels.
        """
        return None
