"""A contextual stochastic block model with bag-of-words features: two dials say where the signal is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.datasets.assemble import binary_rows, sorted_unique, undirected
from graphldp.datasets.options import Synthetic
from graphldp.datasets.registry import spec
from graphldp.graph import Graph
from graphldp.randomness import generator

__all__ = ["synthetic", "synthetic_graph", "word_chances"]

_BLOCK = 65_536  # nodes whose words are drawn at once: the memory of the draws stays small


def synthetic(
    nodes: int = 1000,
    classes: int = 4,
    degree: float = 10.0,
    structure: float = 0.7,
    features: float = 0.5,
    dimensions: int = 128,
    words: float = 20.0,
    seed: int = 0,
) -> Graph:
    """Return a graph whose structure and features say as much of the classes as two dials allow.

    Args:
        nodes: how many nodes.
        classes: how many classes; they are equally large up to one node.
        degree: the mean number of neighbours; the graph has exactly round(nodes * degree / 2) edges.
        structure: an edge is drawn inside a class with this probability, otherwise among all pairs. At 0 the edges
            are independent of the classes, at 1 no edge leaves a class. Below 0 it is drawn between two classes with
            probability -structure: at -1 no edge is inside a class.
        features: a word is drawn from its node's class with this probability, otherwise from the whole vocabulary. At
            0 the words are independent of the classes, at 1 every word tells the class.
        dimensions: how many words the vocabulary has; word w belongs to class w mod classes.
        words: how many words a node draws on average (Poisson); drawing one twice counts once.
        seed: the root of its randomness. Labels, edges and features are drawn independently of each other.
    """
    options = Synthetic(
        nodes=nodes,
        classes=classes,
        degree=degree,
        structure=structure,
        features=features,
        dimensions=dimensions,
        words=words,
        seed=seed,
    )
    return synthetic_graph(options, name="synthetic", provenance=spec("synthetic").provenance(options))


def synthetic_graph(options: Synthetic, *, name: str, provenance: Mapping[str, Any]) -> Graph:
    """Return the graph of `options`; see `synthetic`."""
    labels = _labels(options)
    return Graph(
        name=name,
        features=_features(options, labels),
        edges=_edges(options, labels),
        labels=labels,
        classes=options.classes,
        low=0.0,
        high=1.0,
        provenance=dict(provenance),
    )


def _generator(options: Synthetic, part: str) -> np.random.Generator:
    return generator(options.seed, "synthetic", part)


def _labels(options: Synthetic) -> NDArray[np.int32]:
    balanced = (np.arange(options.nodes, dtype=np.int32) % options.classes).astype(np.int32)
    return _generator(options, "labels").permutation(balanced)


def _edges(options: Synthetic, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Draw pairs until the wanted number of distinct ones is there; leave out the surplus at random."""
    rng = _generator(options, "edges")
    wanted = round(options.nodes * options.degree / 2)
    members = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=options.classes)
    starts = np.cumsum(sizes) - sizes
    keys = np.empty(0, dtype=np.int64)
    while keys.size < wanted:
        count = int((wanted - keys.size) * 1.02) + 16
        u, v = rng.integers(0, options.nodes, count), rng.integers(0, options.nodes, count)
        told = np.flatnonzero(rng.random(count) < abs(options.structure))
        own = labels[u[told]]
        place = rng.random(told.size)
        if options.structure >= 0:
            v[told] = members[starts[own] + (place * sizes[own]).astype(np.int64)]
        else:
            # The nodes of the other classes, in the order of their classes, with a gap where the own one stands.
            other = (place * (options.nodes - sizes[own])).astype(np.int64)
            v[told] = members[other + np.where(other >= starts[own], sizes[own], 0)]
        new = (np.minimum(u, v) * options.nodes + np.maximum(u, v))[u != v]
        keys = sorted_unique(np.concatenate([keys, new]))
    surplus = rng.choice(keys.size, keys.size - wanted, replace=False, shuffle=False)
    keys = np.delete(keys, surplus)
    edges, _ = undirected(np.divmod(keys, options.nodes), options.nodes)
    return edges


def _popularity(options: Synthetic) -> NDArray[np.float64]:
    """Return how often each word is drawn from the whole vocabulary, up to a factor."""
    return np.asarray(1.0 / (np.arange(options.dimensions) + 10.0), dtype=np.float64)


def _topical(word: NDArray[np.int64], label: NDArray[np.integer[Any]], options: Synthetic) -> NDArray[np.int64]:
    """Return the word of a class that is as frequent: words of equal rank in their classes are neighbours."""
    own = word + label - word % options.classes
    return np.where(own >= options.dimensions, own - options.classes, own)


def word_chances(options: Synthetic) -> NDArray[np.float64]:
    """Return the probability that a node has a word, [classes, dimensions].

    A node's words are a Poisson number of independent draws, so that given its class it has each word or not
    independently of the others: these numbers are the whole law of its features.
    """
    share: NDArray[np.float64] = _popularity(options) / _popularity(options).sum()
    words = np.arange(options.dimensions)
    rate = np.tile((1 - options.features) * share, (options.classes, 1))
    for label in range(options.classes):
        target = _topical(words, np.full(words.shape, label), options)
        rate[label] += np.bincount(target, weights=options.features * share, minlength=options.dimensions)
    return np.asarray(-np.expm1(-options.words * rate), dtype=np.float64)


def _features(options: Synthetic, labels: NDArray[np.int32]) -> sp.csr_array:
    """Draw each node's words from a vocabulary in which few words are frequent and many are rare."""
    rng = _generator(options, "features")
    popularity = np.cumsum(_popularity(options))
    blocks = []
    for start in range(0, options.nodes, _BLOCK):
        block = labels[start : start + _BLOCK]
        row = np.repeat(np.arange(block.size), rng.poisson(options.words, block.size))
        word = np.searchsorted(popularity, rng.random(row.size) * popularity[-1], side="right")
        word = np.minimum(word, options.dimensions - 1)
        topical = np.flatnonzero(rng.random(row.size) < options.features)
        word[topical] = _topical(word[topical], block[row[topical]], options)
        blocks.append(binary_rows(row, word, (block.size, options.dimensions)))
    return sp.vstack(blocks, format="csr")
