"""Products of dense matrices, by the fastest library that torch brings along.

torch multiplies float32 matrices with MKL, which leaves half of the vector units of some processors (AMD's) idle.
oneDNN, which torch carries for its convolutions, writes its code for the processor that it finds.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["product"]


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return left @ right for two matrices."""
    if not _by_onednn(left, right):
        return left @ right
    # It turns a matrix with gaps between its rows number by number, a thousand times as slow as a copy.
    if not (right.is_contiguous() or right.t().is_contiguous()):
        right = right.contiguous()
    out: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.t(), None, "none", [], "")
    return out


def _by_onednn(left: Tensor, right: Tensor) -> bool:
    backend = torch.backends.mkldnn
    return (
        left.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and 0 not in (*left.shape, *right.shape)
        and backend.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
