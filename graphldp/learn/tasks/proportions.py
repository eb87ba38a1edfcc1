r"""Labels read as frequencies: what noisy labels say of a neighbourhood, or of a cluster, once the channel is undone.

    frequencies   of a node: the shares of the labels at K steps of the walk around it, (share - q)/(p - q), as chances
    bags          of a cluster: the same over its training nodes, with which a model's mean probabilities are compared

A single noisy label says little; the shares over many are nearly those of the true labels, and need no model of the
noise beyond its two chances. The walk stays where it is with the weight of one link, so that the own label counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphldp.learn.tasks.picks import Picks

__all__ = ["Bags", "as_chances", "clusters", "frequencies", "soft_targets"]

Floats: TypeAlias = NDArray[np.float64]

_LEAST = 1e-20


def as_chances(shares: Floats, keep: float, stray: float) -> Floats:
    """Return what shares of noisy labels say of the true ones: unbiased, then cut at 0 and brought to the sum 1."""
    found = np.maximum((shares - stray) / (keep - stray), 0.0)
    total = found.sum(axis=-1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / shares.shape[-1])


def frequencies(
    adjacency: sp.csr_array, labels: NDArray[Any], classes: int, steps: int, keep: float, stray: float
) -> Floats:
    """Return everybody's class chances from the labels (-1: none) that a walk of so many steps finds around her.

    Whom no label is near has all classes alike.
    """
    known = np.flatnonzero(np.asarray(labels) >= 0)
    mass = np.zeros((len(labels), classes))
    mass[known, np.asarray(labels)[known]] = 1.0
    matrix = sp.csr_array(adjacency, dtype=np.float64)
    degree = np.asarray(matrix.sum(axis=1)).reshape(-1) + 1.0
    for _ in range(steps):
        mass = (np.asarray(matrix @ mass) + mass) / degree[:, None]
    found = mass.sum(axis=1)
    shares = np.full_like(mass, stray + (keep - stray) / classes)
    shares[found > 0] = mass[found > 0] / found[found > 0, None]
    return as_chances(shares, keep, stray)


def clusters(adjacency: sp.csr_array, size: int) -> NDArray[np.int64]:
    """Return the cluster of each node: connected groups of at most `size`, grown from the nodes with most neighbours.

    A group takes, of the nodes that it is linked to and that are in none, the one with the most links into it; it ends
    at its size, or where it is linked to nobody any more. What is left over, in groups below half of the size, joins
    the smallest groups there are, linked or not.
    """
    import heapq

    matrix = sp.csr_array(adjacency)
    nodes = matrix.shape[0]
    starts = np.argsort(-np.diff(matrix.indptr), kind="stable")
    group = np.full(nodes, -1, dtype=np.int64)
    weight = np.zeros(nodes)
    groups: list[list[int]] = []
    for start in starts.tolist():
        if group[start] >= 0:
            continue
        own: list[int] = []
        waiting: list[tuple[float, int]] = [(0.0, start)]
        touched: list[int] = []
        while waiting and len(own) < size:
            gain, node = heapq.heappop(waiting)
            if group[node] >= 0 or -gain < weight[node]:
                continue  # it was taken, or has more links into the group by now
            group[node] = len(groups)
            own.append(node)
            part = slice(matrix.indptr[node], matrix.indptr[node + 1])
            for other, linked in zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True):
                if group[other] < 0:
                    weight[other] += float(linked)
                    touched.append(other)
                    heapq.heappush(waiting, (-weight[other], other))
        weight[touched] = 0.0
        groups.append(own)
    kept = [own for own in groups if 2 * len(own) >= size] or groups[:1]
    sizes = [(len(own), place) for place, own in enumerate(kept)]
    heapq.heapify(sizes)
    for place, own in enumerate(kept):
        group[own] = place
    chosen = {id(own) for own in kept}
    for own in groups:
        if id(own) not in chosen:
            count, place = heapq.heappop(sizes)
            group[own] = place
            heapq.heappush(sizes, (count + len(own), place))
    return group


class Bags:
    """The clusters of each run's training nodes, and which share of each class there is in them, by noisy labels."""

    def __init__(
        self,
        adjacency: sp.csr_array,
        picks: Picks,
        size: int,
        classes: int,
        keep: float,
        stray: float,
        device: torch.device,
    ):
        group = clusters(adjacency, size)
        count, longest = picks.shape
        width = int(group.max()) + 1
        place = np.full((count, longest), count * width, dtype=np.int64)  # padding goes behind all others
        shares = np.zeros((count, width, classes))
        for run, (nodes, labels) in enumerate(zip(picks.nodes, picks.targets, strict=True)):
            place[run, : len(nodes)] = run * width + group[nodes]
            np.add.at(shares[run], (group[nodes], np.asarray(labels)[nodes]), 1.0)
        sizes = shares.sum(axis=2)
        there = sizes > 0
        shares[there] = as_chances(shares[there] / sizes[there][:, None], keep, stray)
        weight = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1.0)
        self.shape = (count, width)
        self.place = torch.from_numpy(place.ravel()).to(device)
        self.sizes = torch.from_numpy(np.maximum(sizes, 1.0).ravel().astype(np.float32)).to(device)
        self.shares = torch.from_numpy(shares.reshape(-1, classes).astype(np.float32)).to(device)
        self.weight = torch.from_numpy(weight.astype(np.float32)).to(device)

    def loss(self, chances: Tensor) -> Tensor:
        """Return the cross entropy of shares and mean probabilities, from those of the picked nodes: one for a run."""
        total = chances.new_zeros(len(self.sizes) + 1, chances.shape[1]).index_add(0, self.place, chances)
        mean = total[:-1] / self.sizes[:, None]
        found = (self.shares * mean.clamp_min(_LEAST).log()).sum(dim=1).view(self.shape)
        return -(found * self.weight).sum(dim=1)


def soft_targets(picks: Picks, chances: Sequence[Floats], device: torch.device) -> Tensor:
    """Return the chances of the picked nodes, as `Picks.choose` orders them; padding has zeros."""
    count, longest = picks.shape
    out = np.zeros((count, longest, chances[0].shape[1]), dtype=np.float32)
    for run, (nodes, own) in enumerate(zip(picks.nodes, chances, strict=True)):
        out[run, : len(nodes)] = own[nodes]
    return torch.from_numpy(out.reshape(-1, out.shape[2])).to(device)
