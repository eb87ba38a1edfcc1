"""A calibrated estimate in factored form: H = shrink(F D) + (fill F 1) 1^T, which is never written out unless asked.

D holds the sparse deviations and F = sum_k theta_k S^k. H times a weight matrix, and its transpose times anything, need
F at the width of the other factor only. What needs H itself (thresholds after the filter, squares, energies) gets it in
blocks of columns, within a memory limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.client import VectorMechanism
from graphldp.client.protocol import Sampled
from graphldp.errors import DataError, OptionError
from graphldp.server.calibration import Calibration
from graphldp.server.estimate import Estimate
from graphldp.server.pushing import backward_push
from graphldp.server.thresholds import shrink, shrink_columns

__all__ = ["BLOCK_MEMORY", "Filtered", "apply", "polynomial", "vanishes"]

Floats: TypeAlias = NDArray[np.float64]

# What a block of columns and its working copies may take unless the caller says otherwise. Small enough for the caches
# to help, large enough for the sparse product to have wide rows.
BLOCK_MEMORY = 2**25
_COPIES = 3  # a block, its power and the product that replaces it
_VANISHING = 2.0**-22  # of the size of the numbers that a threshold is taken off: float32 has 24 bits
_PROBES = 8


def polynomial(operator: Any, block: NDArray[Any], coefficients: tuple[float, ...]) -> NDArray[Any]:
    """Return sum_k theta_k S^k block by Horner's rule."""
    last = max((k for k, theta in enumerate(coefficients) if theta != 0), default=0)
    kind = block.dtype.type
    power = block if coefficients[last] == 1 else kind(coefficients[last]) * block
    for theta in coefficients[:last][::-1]:
        power = operator @ power
        if theta != 0:
            power += kind(theta) * block
    return power


def vanishes(calibration: Calibration, device: VectorMechanism, operator: sp.csr_array) -> bool:
    """Whether the threshold after the filter is so small that taking it off float32 numbers is rounding them.

    UPGNet's Theorem 5 divides it by degree^K: 1e-10 of the boundary B at K = 8 and 15 neighbours. Filtered reports, of
    which a share m/d of all coordinates is at most B, have a root mean square of about B sqrt(m/d) |F| / sqrt(n), with
    the Frobenius norm of the filter's matrix; less than 2^-22 of it vanishes. Public numbers alone decide.
    """
    if not calibration.after or not calibration.steps or not isinstance(device, Sampled):
        return False
    share = calibration.after / device.boundary()
    if share > _VANISHING:  # the sum over a neighbourhood, normalised, is hardly ever larger than B
        return False
    signs = np.random.default_rng(0).choice(np.array([-1.0, 1.0]), size=(operator.shape[0], _PROBES))
    gain = np.sqrt(np.mean(np.square(polynomial(operator, signs, calibration.coefficients))))
    return bool(share <= _VANISHING * np.sqrt(device.m / device.dimensions) * gain)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Filtered:
    """What the server learns from, described by its parts.

    Attributes:
        deviations: n x d, CSR, float32: after `before`, before the filter.
        fill: what a coordinate without a deviation counts as.
        operator: S.
        calibration: the filter and what follows it.
        degree: of each node; for the push's threshold alone.
    """

    deviations: sp.csr_array
    fill: float
    operator: sp.csr_array
    calibration: Calibration
    degree: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        calibration: Calibration,
        operator: sp.csr_array,
        *,
        rng: np.random.Generator | None = None,
        degree: NDArray[Any] | None = None,
    ) -> Filtered:
        """Describe a calibrated estimate. Degrees count neighbours unless they are given (weighted graphs)."""
        nodes = estimate.matrix.shape[0]
        if operator.shape != (nodes, nodes):
            raise DataError(f"the operator must be {nodes} x {nodes} as there are {nodes} nodes, got {operator.shape}")
        counted = np.diff(operator.indptr) if degree is None else np.asarray(degree)
        return cls(
            deviations=shrink(estimate, calibration, rng),
            fill=float(estimate.fill),
            operator=operator,
            calibration=calibration,
            degree=counted.astype(np.float64),
        )

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return int(self.deviations.shape[0])

    @property
    def dimensions(self) -> int:
        """How many attributes."""
        return int(self.deviations.shape[1])

    def ground(self) -> NDArray[np.float64]:
        """Return what every unreported attribute of each node counts as: fill F 1."""
        if self.fill == 0:
            return np.zeros(self.nodes)
        return np.asarray(self.fill * polynomial(self.operator, np.ones(self.nodes), self.calibration.coefficients))

    def _linear(self, what: str) -> tuple[float, ...]:
        if not self.calibration.linear:
            raise OptionError(
                f"{what} needs a filter that is linear: no threshold after it and no push; write the blocks out instead"
            )
        return self.calibration.coefficients

    def project(self, weight: NDArray[Any]) -> NDArray[Any]:
        """Return H weight for a d x h matrix, at the width h: nothing of size n x d is made."""
        inner = self.deviations @ weight
        out = polynomial(self.operator, inner, self._linear("a projection"))
        return np.asarray(out + np.outer(self.ground(), weight.sum(axis=0)).astype(out.dtype))

    def adjoint(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return H^T columns for an n x h matrix, as d x h."""
        reached = polynomial(self.operator.T, columns, self._linear("the adjoint"))
        return np.asarray(self.deviations.T @ reached + (self.ground() @ columns)[None, :])

    def rows(self, chosen: NDArray[np.int64]) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        """Return what multiplies the chosen rows of H, all different, and their transpose, by something."""
        coefficients = self._linear("a product with some rows")
        ground = self.ground()[chosen]
        deviations = sp.csr_array(self.deviations, dtype=np.float64)
        transposed, backward = sp.csr_array(deviations.T), sp.csr_array(self.operator.T)

        def times(weight: Floats) -> Floats:
            reached = polynomial(self.operator, deviations @ weight, coefficients)[chosen]
            return np.asarray(reached + np.outer(ground, weight.sum(axis=0)))

        def back(columns: Floats) -> Floats:
            spread = np.zeros((self.nodes, columns.shape[1]))
            spread[chosen] = columns
            return np.asarray(transposed @ polynomial(backward, spread, coefficients) + (ground @ columns)[None, :])

        return times, back

    def width(self, max_memory: float = BLOCK_MEMORY) -> int:
        """Return how many columns at a time fit into max_memory bytes."""
        need = 4 * _COPIES * max(1, self.nodes)
        if need > max_memory:
            raise OptionError(
                f"one column of {self.nodes} nodes takes {need} bytes with its working copies, max_memory is "
                f"{max_memory:.0f}; raise it"
            )
        return int(min(max(1, self.dimensions), max_memory // need))

    def blocks(self, max_memory: float = BLOCK_MEMORY) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield H in blocks of columns, (columns, n x b float32), within max_memory bytes of working memory."""
        ground = self.ground().astype(np.float32)[:, None]
        for columns, block in self.deviation_blocks(max_memory):
            yield columns, block + ground

    def deviation_blocks(self, max_memory: float = BLOCK_MEMORY) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield H without its ground, in blocks of columns."""
        sparse = sp.csc_array(self.deviations)
        step = self.width(max_memory)
        for start in range(0, self.dimensions, step):
            columns = slice(start, min(start + step, self.dimensions))
            yield columns, shrink_columns(self._filter(sparse[:, columns]), self.calibration)

    def sparse(self, density: float) -> sp.csr_array | None:
        """Return H without its ground as CSR if it has at most that share of non-zeros, else None, as soon as it shows.

        A threshold after the filter leaves few numbers where few people were heard.
        """
        most, found = density * self.nodes * self.dimensions, 0
        parts = []
        for _, block in self.deviation_blocks():
            parts.append(sp.csc_array(block))
            found += parts[-1].nnz
            if found > most:
                return None
        return sp.csr_array(sp.hstack(parts, format="csr")) if parts else self.deviations

    def _filter(self, columns: sp.csc_array) -> NDArray[np.float32]:
        if self.calibration.r_max:
            # A node without neighbours keeps its own value: its degree^r counts as 1.
            limit = self.calibration.r_max * np.where(self.degree > 0, self.degree, 1.0) ** self.calibration.r
            out, _ = backward_push(columns, self.operator, decay=self.calibration.decay, r_max=limit)
            return out.T
        return np.asarray(polynomial(self.operator, columns.toarray(order="C"), self.calibration.coefficients))

    def dense(self, max_memory: float | None = None) -> NDArray[np.float32]:
        """Return H as an n x d array; where it would not fit max_memory bytes, that is an error."""
        need = 4 * self.nodes * self.dimensions
        if max_memory is not None and need + BLOCK_MEMORY > max_memory:
            raise OptionError(
                f"the embedding of {self.nodes} nodes x {self.dimensions} dimensions needs {need / 1e9:.3g} GB, the "
                f"limit is {max_memory / 1e9:.3g} GB; raise it, take it in blocks, or learn from the factored form"
            )
        out = np.empty((self.nodes, self.dimensions), dtype=np.float32)
        for columns, block in self.blocks():
            out[:, columns] = block
        return out


def apply(
    estimate: Estimate,
    calibration: Calibration,
    operator: sp.csr_array,
    *,
    rng: np.random.Generator | None = None,
    max_memory: float | None = None,
) -> NDArray[np.float32]:
    """Return the calibrated features as a dense n x d array.

    The fill is constant over a row, so it is filtered once as one column; the thresholds act on deviations from it,
    not on the fill itself.
    """
    return Filtered.of(estimate, calibration, operator, rng=rng).dense(max_memory)
