"""Coordinates from the graph alone, against dense eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import KINDS, adjacency, dense_shift

from graphldp.errors import OptionError
from graphldp.server import embeddings
from graphldp.server.embeddings import _MEMORY, Embedding, links, pagerank, pagerank_matrix, spectral


def projector(embedding: Embedding) -> np.ndarray:
    """Return the projector on the embedding's span, which no sign and no order of equal values changes."""
    vectors = embedding.vectors.astype(float)
    return vectors @ vectors.T


def leading(matrix: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues by absolute value and the projector on their eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values))[:width]
    return values[order], vectors[:, order] @ vectors[:, order].T


def regularised(matrix: np.ndarray, regularization: float) -> np.ndarray:
    """D_t^-1/2 (A + t/n 11^T) D_t^-1/2, entry by entry."""
    nodes = len(matrix)
    uniform = regularization * matrix.sum() / nodes
    degree = matrix.sum(axis=1) + uniform
    out = np.zeros((nodes, nodes))
    for i in range(nodes):
        for j in range(nodes):
            if degree[i] > 0 and degree[j] > 0:
                out[i, j] = (matrix[i, j] + uniform / nodes) / np.sqrt(degree[i] * degree[j])
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("regularization", [0.0, 1.0])
def test_spectral_is_the_dense_decomposition(kind: str, regularization: float) -> None:
    matrix = adjacency(kind)
    found = spectral(matrix, 4, regularization=regularization)
    expected = regularised(matrix.toarray(), regularization)
    values, span = leading(expected, 4)
    fifth = np.sort(np.abs(np.linalg.eigvalsh(expected)))[-5]
    assert np.allclose(np.abs(found.values), np.abs(values), atol=1e-5)
    if np.abs(values[-1]) - fifth > 1e-3:  # otherwise the span of the first four is anybody's choice
        assert np.allclose(projector(found), span, atol=1e-3)
    vectors = found.vectors.astype(float)
    assert np.allclose(expected @ vectors, vectors * found.values, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_links_approximate_the_adjacency_as_well_as_any_matrix_of_their_rank(kind: str) -> None:
    matrix = adjacency(kind)
    found = links(matrix, 5)
    dense = matrix.toarray()
    rest = dense - (found.vectors * found.values) @ found.vectors.T
    values = np.sort(np.abs(np.linalg.eigvalsh(dense)))[::-1]
    assert np.linalg.norm(rest) == pytest.approx(np.sqrt((values[5:] ** 2).sum()), abs=1e-4)


def test_a_wide_graph_has_the_same_vectors_as_the_dense_solver() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    chance = np.where(labels[:, None] == labels, 0.16, 0.02)
    upper = np.triu(rng.random((200, 200)) < chance, 1)
    matrix = sp.csr_array((upper | upper.T).astype(float))
    found = spectral(matrix, 3)
    values, span = leading(regularised(matrix.toarray(), 1.0), 3)
    assert np.allclose(found.values, values, atol=1e-4)
    assert np.allclose(projector(found), span, atol=1e-3)
    # Three classes, three vectors: what the embedding is for.
    centres = np.stack([found.vectors[labels == k].mean(axis=0) for k in range(3)])
    near = ((found.vectors[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (near == labels).mean() > 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_pagerank_stays_below_the_exact_one_and_comes_close(kind: str) -> None:
    matrix = adjacency(kind)
    walk = dense_shift(matrix.toarray(), 0.0)
    exact = 0.15 * np.linalg.inv(np.eye(12) - 0.85 * walk)
    found = pagerank_matrix(matrix, decay=0.15, cut=1e-6, tolerance=1e-6, block=5).toarray()
    assert (found <= exact + 1e-6).all()
    assert np.allclose(found, exact, atol=1e-4)
    rough = pagerank_matrix(matrix, decay=0.15, cut=0.05)
    assert (rough.toarray() <= exact + 1e-6).all()
    assert rough.sum() < found.sum() - 0.1


def test_pagerank_coordinates_are_of_the_logarithm() -> None:
    matrix = adjacency("plain")
    share = pagerank_matrix(matrix).toarray().astype(float)
    logs = np.log1p(share / 1e-3)
    values, span = leading(logs + logs.T, 3)
    found = pagerank(matrix, 3)
    assert np.allclose(found.values, values, rtol=1e-4)
    assert np.allclose(projector(found), span, atol=1e-3)


@pytest.mark.parametrize("embed", [spectral, links, pagerank])
def test_the_same_graph_has_the_same_bytes_and_fixed_signs(embed) -> None:  # type: ignore[no-untyped-def]
    matrix = adjacency("plain")
    _MEMORY.clear()
    first = embed(matrix, 4)
    _MEMORY.clear()
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator is to be left alone
    second = embed(adjacency("plain"), 4)
    assert first.vectors.tobytes() == second.vectors.tobytes()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    peak = np.abs(first.vectors).argmax(axis=0)
    assert (first.vectors[peak, np.arange(4)] > 0).all()


def test_what_is_remembered_has_a_limit_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = adjacency("plain")
    each = links(matrix, 3).vectors.nbytes
    monkeypatch.setattr(embeddings, "_KEPT", 4 * each)
    _MEMORY.clear()
    kept = {decay: pagerank(matrix, 3, decay=decay) for decay in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)}
    assert len(_MEMORY) == 4
    assert pagerank(matrix, 3, decay=0.6) is kept[0.6]
    assert pagerank(matrix, 3, decay=0.1) is not kept[0.1]
    monkeypatch.setattr(embeddings, "_KEPT", 1)
    assert links(matrix, 3) is links(matrix, 3)  # the last one, however large it is
    assert len(_MEMORY) == 1


def test_what_is_remembered_is_the_graphs_own() -> None:
    one, other = adjacency("plain"), adjacency("weighted")
    assert links(one, 3) is links(adjacency("plain"), 3)
    assert links(one, 3) is not links(other, 3)
    assert links(one, 3).vectors.shape != links(one, 4).vectors.shape
    assert spectral(one, 3, regularization=0.5) is not spectral(one, 3)
    with pytest.raises(ValueError, match="read-only"):
        links(one, 3).vectors[0, 0] = 1.0


@pytest.mark.parametrize("embed", [spectral, links, pagerank])
@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_tiny_and_empty_graphs(embed, nodes: int) -> None:  # type: ignore[no-untyped-def]
    found = embed(sp.csr_array((nodes, nodes)), 4)
    assert found.vectors.shape[0] == nodes
    assert np.isfinite(found.vectors).all()
    if embed is not pagerank:  # there a walk at least ends where it starts
        assert not found.vectors.any()  # no edge says nothing, and rounding is no coordinate


def test_scaled() -> None:
    found = links(adjacency("plain"), 3)
    assert np.allclose(found.scaled(0.0), found.vectors * np.sqrt(12), atol=1e-6)
    assert np.allclose(found.scaled(0.5), found.vectors * np.sqrt(12 * np.abs(found.values)), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: spectral(m, 0), "width must be a whole number of at least 1, got 0"),
        (lambda m: links(m, True), "width must be"),
        (lambda m: spectral(m, 2, regularization=float("nan")), "regularization must be"),
        (lambda m: pagerank(m, 2, decay=1.0), "decay"),
        (lambda m: pagerank(m, 2, cut=0.0), "cut"),
    ],
)
def test_bad_options(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(OptionError, match=words):
        call(adjacency("plain"))
