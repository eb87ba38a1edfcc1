"""Scores of pairs, and the highest of all pairs without an edge, against looking at every pair."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from learn_factory import adjacency_of

from graphldp.errors import DataError, OptionError
from graphldp.learn import PairScorer, pair_scorer


def scorer(nodes: int = 30, width: int = 4, *, levels: int = 0) -> PairScorer:
    rng = np.random.default_rng(nodes)
    outputs = rng.normal(size=(nodes, width)).astype(np.float32)
    if levels:
        outputs = outputs.round(0) / np.float32(levels)
    return PairScorer(outputs=outputs, weight=np.ones(width, np.float32), bias=0.25)


def every_pair(one: PairScorer, adjacency: sp.csr_array) -> list[tuple[float, int, int]]:
    linked = adjacency.toarray() != 0
    pairs = [(u, v) for u in range(one.nodes) for v in range(u + 1, one.nodes) if not linked[u, v]]
    scored = [(float((one.outputs[u] * one.weight) @ one.outputs[v]) + one.bias, u, v) for u, v in pairs]
    return sorted(scored, key=lambda row: (-row[0], row[1], row[2]))


@pytest.mark.parametrize("levels", [0, 1])  # with few levels there are many ties
@pytest.mark.parametrize("count", [1, 7, 200])
def test_the_highest_are_those_of_all_pairs(count: int, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one, adjacency = scorer(levels=levels), adjacency_of(30, 90, np.random.default_rng(0))
    expected = every_pair(one, adjacency)[:count]
    for size in (4 * 30 * 4, 2**26):  # blocks of four rows, and a single one
        monkeypatch.setattr(pair_scorer, "BLOCK_BYTES", size)
        pairs, scores = one.highest(count, adjacency)
        assert [(int(u), int(v)) for u, v in pairs.T] == [(u, v) for _, u, v in expected]
        np.testing.assert_allclose(scores, [score for score, *_ in expected], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one.scores(pairs), scores, rtol=1e-5, atol=1e-6)


def test_all_pairs_without_an_edge_can_be_asked_for_and_no_more() -> None:
    one, adjacency = scorer(nodes=9), adjacency_of(9, 12, np.random.default_rng(0))
    free = 36 - int(adjacency.sum()) // 2
    pairs, _ = one.highest(free, adjacency)
    assert len({(int(u), int(v)) for u, v in pairs.T}) == free
    assert not np.asarray(adjacency[pairs[0], pairs[1]]).any()
    for count in (0, free + 1):
        with pytest.raises(OptionError, match=f"from 1 to {free} can be asked for, not {count}"):
            one.highest(count, adjacency)


def test_pairs_are_checked() -> None:
    one = scorer(nodes=9)
    assert one.scores(np.empty((2, 0), int)).shape == (0,)
    with pytest.raises(DataError, match="2 x K"):
        one.scores(np.zeros((3, 2), int))
    with pytest.raises(DataError, match=r"outside 0..8"):
        one.scores(np.array([[0], [9]]))
    with pytest.raises(DataError, match="must be 9 x 9"):
        one.highest(1, sp.csr_array((3, 3)))
