"""Which attributes matter for the task: scores of every attribute, from the denoised first round and training labels.

    fda          between-class over within-class variance        TOGL, Eq. 5 and 6
    sma          mean weight of an L1 logistic regression        TOGL, Eq. 7
    mi           mutual information with the class               comparison, TOGL's Table 18
    chi-square   independence statistic against the class        comparison, TOGL's Table 18
    pca          share of the first principal components         comparison, TOGL's Table 18

Labels are read at the training nodes and nowhere else. Where links are learned, pairs stand for nodes
(`graphldp.server.pair_products`). Nothing of size n x d is made: class statistics take the columns in blocks, the
regression and the components work on the factored form.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graphldp.errors import DataError, OptionError
from graphldp.registry import Registry, check_options
from graphldp.server.filtered import BLOCK_MEMORY, Filtered
from graphldp.server.logistic import fit_sparse_logistic
from graphldp.server.pair_products import PairProducts

__all__ = ["AttributeScores", "TrainingClasses", "score_attributes", "scorer_names"]

Floats: TypeAlias = NDArray[np.float64]
_TIES = "ties"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttributeScores:
    """One number per attribute: the higher, the more it matters.

    Attributes:
        method: how they were computed.
        values: d numbers.
        ties: d numbers that order attributes of equal value, where the method has something to say about these.
        details: what the method says about its own work (iterations, whether it converged, ...).
    """

    method: str
    values: Floats
    ties: Floats | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def ranking(self) -> NDArray[np.int64]:
        """Return the attributes from the best to the worst; what is equal in all is in its own order."""
        ties = np.zeros_like(self.values) if self.ties is None else self.ties
        return np.lexsort((-ties, -self.values))

    def top(self, count: int) -> tuple[int, ...]:
        """Return the best attributes, the best first."""
        return tuple(int(j) for j in self.ranking()[:count])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingClasses:
    """The classes of the training nodes, and of no others.

    Attributes:
        nodes: the training nodes.
        codes: their classes, renumbered 0..classes-1.
        counts: how many of them each class has.
    """

    nodes: NDArray[np.int64]
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, labels: ArrayLike, train: ArrayLike) -> TrainingClasses:
        """Read the labels of the training nodes; classes without a training node do not exist here."""
        nodes = np.asarray(train, dtype=np.int64)
        values = np.asarray(labels)
        if nodes.size == 0:
            raise DataError("attributes are scored on training nodes: there is none")
        if nodes.min() < 0 or nodes.max() >= len(values):
            raise DataError(f"a training node lies outside 0..{len(values) - 1}")
        known = values[nodes]
        if (known < 0).any():
            raise DataError(
                f"{int((known < 0).sum())} training node(s) have no label; leave them out of the training set"
            )
        _, codes, counts = np.unique(known, return_inverse=True, return_counts=True)
        if len(counts) < 2:
            raise DataError("scoring attributes needs training nodes of at least two classes")
        return cls(nodes=nodes, codes=codes.astype(np.int64), counts=counts.astype(np.int64))

    @property
    def size(self) -> int:
        """How many training nodes."""
        return len(self.nodes)

    def averaging(self) -> sp.csr_array:
        """Return the classes x training matrix whose product is the class means."""
        weights = 1.0 / self.counts[self.codes]
        return sp.csr_array((weights, (self.codes, np.arange(self.size))), shape=(len(self.counts), self.size))

    def blocks(self, filtered: Filtered | PairProducts, max_memory: float) -> Iterator[tuple[slice, Floats]]:
        """Yield the training nodes' rows of H in blocks of columns."""
        for columns, block in filtered.blocks(max_memory):
            yield columns, block[self.nodes].astype(np.float64)


def _fda(
    filtered: Filtered | PairProducts, classes: TrainingClasses, max_memory: float, *, smoothing: float = 1e-12
) -> tuple[Floats, dict[str, Any]]:
    """Fisher's discriminant: how far apart the classes' means are, over how spread each class is."""
    if not smoothing > 0:
        raise OptionError(f"smoothing must be above 0, got {smoothing}")
    share = classes.counts / classes.size
    averaging = classes.averaging()
    out = np.empty(filtered.dimensions)
    for columns, block in classes.blocks(filtered, max_memory):
        means = averaging @ block
        between = share @ (means - share @ means) ** 2
        within = np.mean((block - means[classes.codes]) ** 2, axis=0)
        out[columns] = between / (within + smoothing)
    return out, {}


def _sma(
    filtered: Filtered | PairProducts,
    classes: TrainingClasses,
    max_memory: float,
    *,
    strength: float = 0.1,
    penalty: float | None = None,
    intercept: bool = True,
    tolerance: float = 1e-3,
    iterations: int = 2000,
) -> tuple[Floats, dict[str, Any]]:
    """Sparse logistic regression: the mean absolute weight that an attribute has over the classes."""
    fitted = fit_sparse_logistic(
        filtered,
        classes.nodes,
        classes.codes,
        strength=strength,
        penalty=penalty,
        intercept=intercept,
        tolerance=tolerance,
        iterations=iterations,
    )
    # Most weights are 0. Ordered by their number, these attributes would look alike in every round.
    return np.abs(fitted.weight).mean(axis=1), {**fitted.record(), _TIES: fitted.pull}


def _tables(
    filtered: Filtered | PairProducts, classes: TrainingClasses, max_memory: float, bins: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield each attribute's table: values in bins (its distinct values if they are few) against classes."""
    if bins < 2:
        raise OptionError(f"bins must be at least 2, got {bins}")
    inner = np.arange(1, bins) / bins
    count = len(classes.counts)
    for columns, block in classes.blocks(filtered, max_memory):
        for offset in range(block.shape[1]):
            values, place = np.unique(block[:, offset], return_inverse=True)
            if len(values) > bins:
                edges = np.unique(np.quantile(block[:, offset], inner))
                place = np.searchsorted(edges, values, side="right")[place]
            table = np.bincount(place * count + classes.codes, minlength=(int(place.max()) + 1) * count)
            yield columns.start + offset, table.reshape(-1, count).astype(np.float64)


def _mi(
    filtered: Filtered | PairProducts, classes: TrainingClasses, max_memory: float, *, bins: int = 10
) -> tuple[Floats, dict[str, Any]]:
    """Mutual information of the class and the filtered value, in bins."""
    out = np.empty(filtered.dimensions)
    for attribute, table in _tables(filtered, classes, max_memory, bins):
        joint = table / table.sum()
        product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        there = joint > 0
        out[attribute] = float(np.sum(joint[there] * np.log(joint[there] / product[there])))
    return out, {"bins": bins}


def _chi_square(
    filtered: Filtered | PairProducts, classes: TrainingClasses, max_memory: float, *, bins: int = 10
) -> tuple[Floats, dict[str, Any]]:
    """The chi-square statistic of the class and the filtered value, in bins."""
    out = np.empty(filtered.dimensions)
    for attribute, table in _tables(filtered, classes, max_memory, bins):
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        gap = (table - expected) ** 2
        out[attribute] = float(np.sum(np.divide(gap, expected, out=np.zeros_like(gap), where=expected > 0)))
    return out, {"bins": bins}


def _pca(
    filtered: Filtered | PairProducts, classes: TrainingClasses, max_memory: float, *, components: int = 5
) -> tuple[Floats, dict[str, Any]]:
    """The sum of variance_i loading_ij^2 over the first components of all nodes; labels are not used at all."""
    # Slow to import, and every stage imports this module.
    from scipy.sparse.linalg import LinearOperator, svds

    least = min(filtered.nodes, filtered.dimensions)
    if not 1 <= components < least:
        raise OptionError(f"components must be from 1 to {least - 1} for these features, got {components}")
    mean = filtered.adjoint(np.ones((filtered.nodes, 1)))[:, 0] / filtered.nodes

    def times(vector: Floats) -> Floats:
        out = filtered.project(vector.reshape(-1, 1))[:, 0]
        return np.asarray(out - mean @ vector.reshape(-1))

    def transposed(vector: Floats) -> Floats:
        column = vector.reshape(-1, 1)
        return np.asarray(filtered.adjoint(column)[:, 0] - mean * column.sum())

    shape = (filtered.nodes, filtered.dimensions)
    centred = LinearOperator(shape, matvec=times, rmatvec=transposed, dtype=np.float64)
    # A start of its own, so that the same features always give the same bits.
    start = np.cos(np.arange(1, least + 1, dtype=np.float64))
    _, singular, loadings = svds(centred, k=components, v0=start)
    variances = singular**2 / max(1, filtered.nodes - 1)
    return np.asarray(variances @ loadings**2), {"components": components}


_Scorer: TypeAlias = Callable[..., tuple[Floats, dict[str, Any]]]
SCORERS: Registry[_Scorer] = Registry(
    "attribute score", {"fda": _fda, "sma": _sma, "mi": _mi, "chi-square": _chi_square, "pca": _pca}
)


def scorer_names() -> list[str]:
    """Return the names of the scores, the paper's own first."""
    return list(SCORERS)


def score_attributes(
    method: str,
    filtered: Filtered | PairProducts,
    labels: ArrayLike,
    train: ArrayLike,
    *,
    max_memory: float = BLOCK_MEMORY,
    **options: Any,
) -> AttributeScores:
    """Return the score of every attribute.

    Args:
        method: `fda`, `sma`, `mi`, `chi-square` or `pca`.
        filtered: the denoised first round, or what pairs of people have in common in it.
        labels: one class per node, or whether a pair is linked; or a column for each of several yes/no labels, whose
            scores are averaged. Only those of `train` are read.
        train: the training nodes, or pairs.
        max_memory: bytes of working memory for the methods that take columns in blocks.
        options: `smoothing` (fda); `strength` of the penalty as a share of the one at which all weights vanish, or
            `penalty` itself, `intercept`, `tolerance`, `iterations` (sma); `bins` (mi, chi-square); `components` (pca).
    """
    scorer = SCORERS[method]
    own = [p.name for p in inspect.signature(scorer).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    check_options(f"attribute score {method}", options, own)
    if np.ndim(labels) == 2:
        return _over_labels(method, filtered, np.asarray(labels), np.asarray(train), max_memory, options)
    values, details = scorer(filtered, TrainingClasses.of(labels, train), max_memory, **options)
    return AttributeScores(method=method, values=values, ties=details.pop(_TIES, None), details=details)


def _over_labels(
    method: str,
    filtered: Filtered | PairProducts,
    sets: NDArray[Any],
    train: NDArray[Any],
    max_memory: float,
    options: Mapping[str, Any],
) -> AttributeScores:
    """Return the mean of the scores by each yes/no label that some training nodes have and others have not."""
    split = [column for column in sets.T if 0 < column[train].sum() < len(train)]
    if not split:
        raise DataError("scoring attributes needs a label that some training nodes have and others have not")
    found = [score_attributes(method, filtered, one, train, max_memory=max_memory, **options) for one in split]
    ties = [one.ties for one in found if one.ties is not None]
    return AttributeScores(
        method=method,
        values=np.mean([one.values for one in found], axis=0),
        ties=np.mean(ties, axis=0) if ties else None,
        details={"labels": len(split)},
    )
