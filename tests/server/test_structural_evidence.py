"""Evidence from the graph and the training labels: what is in it, and whose label is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from small_graphs import adjacency, graph

from graphldp.client import protocol
from graphldp.datasets.synthetic import synthetic
from graphldp.errors import DataError, OptionError
from graphldp.graph import Graph
from graphldp.server import shift
from graphldp.server.embeddings import links, pagerank, spectral
from graphldp.server.evidence import EvidenceSetting, make_evidence
from graphldp.server.evidence.surroundings import side_by_side
from graphldp.server.propagation import class_shares, log_evidence, spread, walks

NAMES = ("labels", "spectral", "pagerank", "links", "surroundings")


def setting(whole: Graph, train: np.ndarray, seed: int = 0) -> EvidenceSetting:
    return EvidenceSetting.of(whole, None, protocol("null", 0.0, whole.dimensions, 0.0, 1.0), train, seed)


def blocks(structure: float = 0.7, **changes: Any) -> Graph:
    return synthetic(**{"nodes": 300, "classes": 3, "degree": 8.0, "dimensions": 8, "structure": structure, **changes})


@pytest.mark.parametrize("name", NAMES)
def test_the_same_setting_has_the_same_bytes_and_reads_no_report(name: str) -> None:
    evidence = make_evidence(name)
    first, again = (evidence.matrix(setting(blocks(), np.arange(150))) for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert first.dtype == np.float32
    assert not evidence.reads


@pytest.mark.parametrize(("name", "changes"), [("labels", True), ("surroundings", True), ("spectral", False)])
def test_labels_count_where_they_are_said_to(name: str, changes: bool) -> None:
    evidence = make_evidence(name)
    one, other = (evidence.matrix(setting(blocks(), train)) for train in (np.arange(150), np.arange(100, 250)))
    assert (not np.array_equal(one, other)) is changes is evidence.spreads


def test_positions_are_the_embeddings() -> None:
    where = setting(blocks(), np.arange(10))
    matrix = where.graph.adjacency()
    assert np.array_equal(make_evidence("spectral", width=5).build(where), spectral(matrix, 5).scaled(0.0))
    assert np.array_equal(make_evidence("links", width=5).build(where), links(matrix, 5).scaled(0.5))
    assert np.array_equal(
        make_evidence("pagerank", width=5, decay=0.3).build(where), pagerank(matrix, 5, decay=0.3).scaled(0.5)
    )


def test_nodes_that_are_not_trained_on_get_plain_label_propagation() -> None:
    whole, train = blocks(), np.arange(150)
    where = setting(whole, train)
    found = make_evidence("labels", decay=0.2, steps=7, hops=2, folds=5).build(where)
    start = np.zeros((300, 3), np.float32)
    start[train, whole.labels[train]] = 1
    prior = class_shares(where.labels, train, 3)
    for place, one in enumerate(
        [spread(shift(whole), start, decay=0.2, steps=7), *walks(shift(whole, "mean"), start, 2)]
    ):
        mine = found[150:, 3 * place : 3 * place + 3]
        # The prior's weight follows the mean mass, which the training nodes' folds lower a little.
        assert np.allclose(mine, log_evidence(one, prior)[150:], rtol=0.1, atol=0.02)
    assert found.shape == (300, 9)


def test_nobodys_row_holds_her_own_label() -> None:
    """Change one training label and nothing else: what the evidence says of that node must not turn with it."""
    whole, train = blocks(), np.arange(150)
    base = setting(whole, train)
    evidence = make_evidence("labels", hops=2)
    before = evidence.build(base)
    labels = base.labels.copy()
    labels[7] = (labels[7] + 1) % 3
    changed = EvidenceSetting(
        graph=base.graph, estimate=None, device=base.device, labels=labels, train=base.train, classes=3, seed=0
    )
    after = evidence.build(changed)
    # The classes' own shares change by one node in 150, for everybody alike; a label of her own would weigh far more.
    own, neighbour = np.abs(after[7] - before[7]).max(), np.abs(after - before).max()
    assert own < 0.05 < neighbour


def test_a_learner_on_top_is_not_fooled() -> None:
    """On a graph that says nothing of the classes, training nodes' evidence is right as often as chance is."""
    whole, train = blocks(structure=0.0, nodes=1200), np.arange(600)
    where = setting(whole, train)
    honest = make_evidence("labels", hops=2).build(where)[train]
    start = np.zeros((1200, 3), np.float32)
    start[train, whole.labels[train]] = 1
    leaky = spread(shift(whole), start, decay=0.1, steps=50)[train]
    right = [(part[:, :3].argmax(axis=1) == whole.labels[train]).mean() for part in (honest, leaky)]
    assert right[0] < 1 / 3 + 4 * np.sqrt(2 / 9 / 600)
    assert right[1] > 0.9  # what the folds are there for


def test_evidence_tells_the_classes_that_the_graph_tells() -> None:
    for structure in (0.7, -1.0):
        whole, train = blocks(structure=structure, nodes=1200, degree=12.0), np.arange(600)
        found = make_evidence("labels", hops=2).build(setting(whole, train))
        rest = whole.labels[600:]
        two_steps = found[600:, 6:9].argmax(axis=1)
        assert (two_steps == rest).mean() > 0.6  # also where neighbours differ, those of neighbours are alike
    assert (found[600:, 3:6].argmax(axis=1) == rest).mean() < 0.2  # there the next door has the other classes


def test_surroundings_are_labels_positions_and_degree() -> None:
    where = setting(blocks(), np.arange(150))
    found = make_evidence("surroundings", width=4, positions="links", decay=0.2, hops=1).build(where)
    labels = make_evidence("labels", decay=0.2, hops=1).build(where)
    degree = np.log1p(where.graph.adjacency().sum(axis=1)).reshape(-1, 1).astype(np.float32)
    assert np.array_equal(found, side_by_side(labels, links(where.graph.adjacency(), 4).scaled(0.5), degree))
    assert found.shape == (300, 6 + 4 + 1)


def test_side_by_side_brings_each_part_to_one_scale() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(3, 50, (40, 3)), rng.normal(0, 1e-3, (40, 5)), np.full((40, 1), 7.0)]
    found = side_by_side(*(part.astype(np.float32) for part in parts))
    assert np.allclose(found.mean(axis=0), 0, atol=1e-4)
    assert np.square(found[:, :3]).mean() == pytest.approx(1, rel=1e-4)
    assert np.square(found[:, 3:8]).mean() == pytest.approx(1, rel=1e-4)
    assert not found[:, 8].any()
    ratio = parts[0].std(axis=0)[0] / parts[0].std(axis=0)[1]
    assert found[:, 0].std() / found[:, 1].std() == pytest.approx(ratio, rel=1e-4)  # columns keep their proportions


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["plain", "disconnected", "empty"])
def test_small_odd_graphs(name: str, kind: str) -> None:
    matrix = sp.csr_array((12, 12)) if kind == "empty" else adjacency(kind)
    whole = graph(np.zeros((12, 2)), matrix, np.zeros(12), 2)  # and one of the two classes is nobody's
    for train in (np.array([3]), np.arange(12)):
        assert make_evidence(name).matrix(setting(whole, train)).shape[0] == 12


def test_without_labels_nothing_is_spread() -> None:
    with pytest.raises(DataError, match="needs training nodes that all have labels"):
        make_evidence("labels").build(setting(blocks(), np.empty(0, int)))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("labels", {"decay": 0.0}, "decay must be a number between 0 and 1, got 0.0"),
        ("labels", {"hops": -1}, "hops must be a whole number of at least 0, got -1"),
        ("labels", {"folds": 1}, "folds must be"),
        ("spectral", {"width": 0}, "width must be"),
        ("pagerank", {"decay": 2}, "decay must be"),
        ("links", {"width": True}, "width must be"),
        ("surroundings", {"positions": "here"}, "positions must be one of spectral, links; got 'here'"),
        ("surroundings", {"width": 0}, "width must be"),
    ],
)
def test_bad_options(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make_evidence(name, **options)
