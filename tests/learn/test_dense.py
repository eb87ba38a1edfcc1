"""Dense products by oneDNN, against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from graphldp.learn import dense
from graphldp.learn.dense import LARGE, product


def _drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _error(left: Tensor, right: Tensor) -> float:
    """Return the largest difference, in units of what float32 sums of such a length are off by."""
    exact = left.numpy().astype(np.float64) @ right.numpy().astype(np.float64)
    scale = np.abs(left.numpy()).astype(np.float64) @ np.abs(right.numpy())
    return float((np.abs(product(left, right).numpy() - exact) / scale).max() / np.finfo(np.float32).eps)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(2708, 1433, 16), (16, 2708, 1433), (1433, 64, 512)])
def test_large_products_are_those_of_float64_up_to_rounding(rows: int, inner: int, columns: int) -> None:
    assert rows * inner * columns >= LARGE
    left, right = _drawn(rows, inner), _drawn(inner, columns)
    turned_left, turned_right = _drawn(inner, rows).t(), _drawn(columns, inner).t()
    gaps = _drawn(inner, 3, columns)[:, 1]
    for one in (left, turned_left):
        for other in (right, turned_right, gaps):
            assert _error(one, other) < 4


def test_large_products_of_float32_go_to_onednn_and_no_other_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    kept = dense._by_onednn

    def look(left: Tensor, right: Tensor) -> bool:
        asked.append(kept(left, right))
        return asked[-1]

    monkeypatch.setattr(dense, "_by_onednn", look)
    large, small = _drawn(2708, 1433), _drawn(27, 14)
    product(large, _drawn(1433, 16))
    product(large.double(), _drawn(1433, 16).double())
    product(small, _drawn(14, 16))
    product(large[:0], _drawn(1433, 16))
    assert asked == [torch._C._has_mkldnn, False, False, False]
    assert torch.equal(product(small, _drawn(14, 16)), small @ _drawn(14, 16))
