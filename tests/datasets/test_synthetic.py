from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphldp.datasets import spec
from graphldp.datasets.build import parse
from graphldp.datasets.options import Synthetic
from graphldp.datasets.synthetic import synthetic
from graphldp.graph import Graph

BENCH = Path(__file__).resolve().parents[2] / "bench"


def same(first: Graph, second: Graph) -> bool:
    return (
        np.array_equal(first.edges, second.edges)
        and np.array_equal(first.labels, second.labels)
        and np.array_equal(first.features.indices, second.features.indices)
        and np.array_equal(first.features.indptr, second.features.indptr)
    )


def inside(graph: Graph) -> float:
    """The share of edges inside a class."""
    return float((graph.labels[graph.edges[0]] == graph.labels[graph.edges[1]]).mean())


def topical(graph: Graph) -> float:
    """The share of words that belong to their node's class."""
    rows = np.repeat(np.arange(graph.nodes), np.diff(graph.features.indptr))
    return float((graph.features.indices % graph.classes == graph.labels[rows]).mean())


def test_counts_are_exact_and_the_default_fits_its_registration() -> None:
    graph = synthetic()
    known = spec("synthetic").expected
    assert (graph.nodes, graph.dimensions, graph.classes) == (known.nodes, known.dimensions, known.classes)
    assert graph.edges.shape == (2, 5000)
    assert np.bincount(graph.labels).tolist() == [250] * 4
    assert graph.self_loops.size == 0
    key = graph.edges[0].astype(np.int64) * graph.nodes + graph.edges[1]
    assert (np.diff(key) > 0).all()
    assert graph.features.has_canonical_format
    assert set(graph.features.data) == {1.0}
    assert (graph.low, graph.high) == (0.0, 1.0)
    assert graph.edges.dtype == graph.labels.dtype == graph.features.indices.dtype == np.int32


def test_the_same_seed_gives_the_same_graph_and_another_seed_another() -> None:
    assert same(synthetic(), synthetic())
    assert same(synthetic(), parse(spec("synthetic"), {}, options=Synthetic()))
    assert not same(synthetic(), synthetic(seed=1))


def test_parts_are_drawn_independently() -> None:
    base, denser, wordier = synthetic(), synthetic(degree=12), synthetic(words=5, features=1)
    assert np.array_equal(base.labels, denser.labels)
    assert np.array_equal(base.features.indices, denser.features.indices)
    assert np.array_equal(base.edges, wordier.edges)


# Standard errors at 20,000 nodes: 0.0014 of 100,000 edges, 0.0008 of 320,000 words; the tolerances are over 5 of them.
@pytest.mark.parametrize("dial", [0.0, 0.3, 1.0])
def test_structure_is_the_share_of_edges_drawn_inside_a_class(dial: float) -> None:
    graph = synthetic(nodes=20_000, structure=dial)
    assert inside(graph) == pytest.approx(dial + (1 - dial) / 4, abs=0.008)


@pytest.mark.parametrize("dial", [0.0, 0.3, 1.0])
def test_features_is_the_share_of_words_drawn_from_the_class(dial: float) -> None:
    graph = synthetic(nodes=20_000, features=dial, dimensions=4096, words=16)
    # Words of the own class repeat more often, and a repeated word counts once: a little below the dial.
    expected = dial + (1 - dial) / 4
    assert topical(graph) == pytest.approx(expected, abs=0.005 if dial in (0, 1) else 0.03)


def test_without_signal_no_class_prefers_a_word_or_a_neighbour() -> None:
    graph = synthetic(nodes=20_000, structure=0.0, features=0.0, dimensions=64)
    counts = np.stack([graph.features[graph.labels == c].sum(axis=0) for c in range(4)])
    expected = counts.sum(axis=0) / 4
    chi = float(((counts - expected) ** 2 / expected).sum())
    assert chi < 3 * 64 + 6 * np.sqrt(2 * 3 * 64)  # far beyond the 1e-6 quantile; one class favoured gives thousands
    tilted = synthetic(nodes=20_000, features=0.05, dimensions=64)
    counts = np.stack([tilted.features[tilted.labels == c].sum(axis=0) for c in range(4)])
    assert float(((counts - counts.sum(axis=0) / 4) ** 2 / (counts.sum(axis=0) / 4)).sum()) > 1000


def test_mean_words_and_degree_are_what_was_asked_for() -> None:
    graph = synthetic(nodes=20_000, dimensions=100_000, words=8, degree=6)
    assert graph.features.nnz / graph.nodes == pytest.approx(8, abs=0.15)
    assert 2 * graph.edges.shape[1] / graph.nodes == 6


def test_a_vocabulary_that_the_classes_do_not_divide_stays_within_bounds() -> None:
    graph = synthetic(nodes=2000, classes=7, dimensions=9, words=30, features=1.0)
    assert topical(graph) == 1.0
    assert graph.features.indices.max() == 8


@pytest.mark.parametrize(
    "options",
    [
        {"nodes": 1, "classes": 1, "degree": 0},
        {"nodes": 2, "classes": 2, "degree": 0},
        {"nodes": 3, "classes": 1, "degree": 1, "structure": 1.0},
        {"nodes": 41, "classes": 2, "degree": 9.5, "structure": 1.0},
        {"nodes": 50, "classes": 1, "degree": 2, "words": 0},
    ],
)
def test_small_graphs_too(options: dict[str, float]) -> None:
    graph = synthetic(**options)
    assert graph.nodes == options["nodes"]
    assert graph.edges.shape[1] == round(options["nodes"] * options["degree"] / 2)


# A fifth of the size that bench/synthetic.py measures in full (1 million nodes, 10 million edges).
@pytest.mark.slow
def test_a_large_graph_stays_small_in_memory() -> None:
    code = (
        "from memory import peak\n"
        "from graphldp.datasets.synthetic import synthetic\n"
        "graph = synthetic(nodes=200_000, degree=20)\n"
        "assert graph.edges.shape[1] == 2_000_000\n"
        "print(peak())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=BENCH)
    assert int(done.stdout) < 800e6
