r"""Personalised PageRank by backward push: residues are moved along the edges until none is worth moving.

Formula: with P = D^-1 A, R_0 = D^-r X and Q = 0, while some |R(v, j)| > r_max:
    Q(v, j) += alpha R(v, j);  R(u, j) += (1 - alpha) P_uv R(v, j) for all u;  R(v, j) is set to 0 first.
    Z = D^r Q.
Error: at the end all |R| <= r_max, and D^-r (Z* - Z) = sum_k alpha (1-alpha)^k P^k R. Rows of P add up to at most 1, so
    |Z*(v, j) - Z(v, j)| <= r_max degree(v)^r.
Reference: LDP-GE, Algorithm 3, for Z* = sum_k alpha (1-alpha)^k (D^(r-1) A D^-r)^k X, its Eq. 17.
Deviations: line 4 divides by the degree of the pushed node v; Eq. 17 asks for that of the receiver u, which is what is
    done here. Residues are kept multiplied by degree^r, so that the operator is S itself; the same pushes happen.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import MissingExtraError, OptionError

__all__ = ["backward_push"]


def backward_push(
    columns: sp.csc_array, operator: sp.csr_array, *, decay: float, r_max: NDArray[np.float64]
) -> tuple[NDArray[np.float32], int]:
    """Return (Z transposed, b x n float32; how many pushes it took) for the n x b sparse columns.

    Columns are independent and are done in parallel; memory is O(n) per thread besides the result.

    Args:
        columns: what is propagated.
        operator: S.
        decay: alpha.
        r_max: the threshold of each node, r_max degree^r.
    """
    if not 0 < decay < 1:
        raise OptionError(f"decay (alpha of personalised PageRank) must be between 0 and 1, got {decay}")
    if not (np.asarray(r_max) > 0).all():
        raise OptionError("r_max must be above 0 at every node: at 0 the push never ends")
    spread = sp.csr_array(operator.T)
    out = np.empty((columns.shape[1], operator.shape[0]), dtype=np.float32)
    counts = np.zeros(columns.shape[1], dtype=np.int64)
    _kernel()(
        columns.indptr.astype(np.int64),
        columns.indices.astype(np.int32),
        columns.data.astype(np.float64),
        spread.indptr.astype(np.int64),
        spread.indices.astype(np.int32),
        spread.data.astype(np.float64) * (1 - decay),
        np.ascontiguousarray(r_max, dtype=np.float64),
        float(decay),
        out,
        counts,
    )
    return out, int(counts.sum())


@functools.cache
def _kernel() -> Any:
    """Compile the push of all columns. First in, first out: a node that is pushed late has gathered more residue."""
    try:
        import numba
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "backward push needs numba: pip install 'graphldp[fast]'; or use the filter ppr, with the same limit"
        ) from error

    @numba.njit(parallel=True, cache=True, nogil=True)
    def push_columns(  # type: ignore[no-untyped-def]
        starts, rows, values, offsets, targets, shares, limit, decay, out, counts
    ):
        nodes = limit.shape[0]
        for column in numba.prange(starts.shape[0] - 1):
            residue = np.zeros(nodes)
            reserve = np.zeros(nodes)
            queue = np.empty(nodes, np.int32)
            waiting = np.zeros(nodes, np.bool_)
            head = 0
            size = 0
            for entry in range(starts[column], starts[column + 1]):
                node = rows[entry]
                residue[node] += values[entry]
                if not waiting[node] and abs(residue[node]) > limit[node]:
                    waiting[node] = True
                    queue[(head + size) % nodes] = node
                    size += 1
            pushes = 0
            while size > 0:
                node = queue[head]
                head += 1
                if head == nodes:
                    head = 0
                size -= 1
                waiting[node] = False
                moved = residue[node]
                # Signed residues may have cancelled while the node waited.
                if abs(moved) <= limit[node]:
                    continue
                residue[node] = 0.0
                reserve[node] += decay * moved
                pushes += 1
                for edge in range(offsets[node], offsets[node + 1]):
                    target = targets[edge]
                    residue[target] += shares[edge] * moved
                    if not waiting[target] and abs(residue[target]) > limit[target]:
                        waiting[target] = True
                        place = head + size
                        if place >= nodes:
                            place -= nodes
                        queue[place] = target
                        size += 1
            for node in range(nodes):
                out[column, node] = reserve[node]
            counts[column] = pushes

    return push_columns
