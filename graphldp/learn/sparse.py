"""Sparse matrix times dense matrix, with a gradient that never scatters.

The gradient of S X with respect to X is S^T G. With the transpose stored beside the matrix it is one more CSR product,
parallel over rows and the same to the last bit in each repetition.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Csr", "Pattern", "SparseMatrix", "product"]


_SAID = threading.Lock()  # warnings are switched off for all threads at once


@dataclass(frozen=True, slots=True, eq=False)
class Csr:
    """One compressed matrix on a device: a CSR tensor, or triples where the device has no CSR product (MPS)."""

    tensor: Tensor | None
    rows: Tensor | None
    columns: Tensor | None
    values: Tensor | None
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device, compressed: bool | None = None) -> Csr:
        """Return the matrix on the device, float32."""
        # A copy: the caller's arrays stay as they are.
        matrix = sp.csr_array(matrix, copy=True)
        matrix.sort_indices()
        values = torch.from_numpy(np.ascontiguousarray(matrix.data, dtype=np.float32)).to(device)
        shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        return Pattern.of(matrix.indptr, matrix.indices, shape, device, compressed).filled(values)

    def multiply(self, dense: Tensor, out: Tensor | None = None, add: Tensor | None = None, scale: float = 1) -> Tensor:
        """Return self @ dense, plus `scale * add` if given; written to `out` if given (`out` may be `add`)."""
        if out is None:
            out = torch.empty(self.shape[0], dense.shape[1], dtype=dense.dtype, device=dense.device)
        if self.tensor is None:
            assert self.rows is not None
            assert self.columns is not None
            assert self.values is not None
            total = torch.zeros_like(out) if add is None else add * scale
            total.index_add_(0, self.rows, dense.index_select(0, self.columns) * self.values.unsqueeze(1))
            return out.copy_(total)
        if add is None:
            return torch.addmm(out, self.tensor, dense, beta=0, out=out)
        return torch.addmm(add, self.tensor, dense, beta=scale, out=out)


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Where the entries of a compressed matrix stand on a device: with their values it is the matrix.

    Attributes:
        pointers, rows: where each row begins, and of a device that has no CSR product the row of each entry instead.
        columns: of each entry.
    """

    pointers: Tensor | None
    rows: Tensor | None
    columns: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(
        cls,
        pointers: NDArray[np.integer[Any]],
        columns: NDArray[np.integer[Any]],
        shape: tuple[int, int],
        device: torch.device,
        compressed: bool | None = None,
    ) -> Pattern:
        """Return the pattern on the device."""
        if compressed if compressed is not None else device.type != "mps":
            # int32: the vendor's products take nothing else and would convert at each call.
            places = [torch.from_numpy(one.astype(np.int32)).to(device) for one in (pointers, columns)]
            return cls(places[0], None, places[1], shape)
        rows = np.repeat(np.arange(shape[0]), np.diff(pointers))
        places = [torch.from_numpy(one.astype(np.int64)).to(device) for one in (rows, columns)]
        return cls(None, places[0], places[1], shape)

    def filled(self, values: Tensor) -> Csr:
        """Return the matrix with these values."""
        if self.pointers is None:
            return Csr(None, self.rows, self.columns, values, self.shape)
        with _SAID, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            warnings.filterwarnings("ignore", message="Sparse invariant checks")
            tensor = torch.sparse_csr_tensor(self.pointers, self.columns, values, size=self.shape)
        return Csr(tensor, None, None, None, self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """A sparse matrix and its transpose on a device."""

    forward: Csr
    backward: Csr

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device, compressed: bool | None = None) -> SparseMatrix:
        """Put a scipy matrix on the device; a symmetric one is stored once."""
        matrix = sp.csr_array(matrix)
        forward = Csr.of(matrix, device, compressed)
        transpose = sp.csr_array(matrix.T)
        same = matrix.shape[0] == matrix.shape[1] and matrix.nnz == transpose.nnz and abs(matrix - transpose).nnz == 0
        return cls(forward, forward if same else Csr.of(transpose, device, compressed))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.forward.shape


class _Product(torch.autograd.Function):
    """S H for H of the shape [nodes, ...]: everything behind the first axis is one product's width."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        flat = hidden.reshape(hidden.shape[0], -1)
        return matrix.forward.multiply(flat).view(-1, *hidden.shape[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        flat = gradient.reshape(gradient.shape[0], -1)
        return ctx.matrix.backward.multiply(flat).view(-1, *gradient.shape[1:]), None


def product(matrix: SparseMatrix, hidden: Tensor) -> Tensor:
    """Return matrix @ hidden over the first axis of `hidden` ([nodes, runs, width]), with its gradient."""
    out: Tensor = _Product.apply(hidden, matrix)  # type: ignore[no-untyped-call]
    return out
