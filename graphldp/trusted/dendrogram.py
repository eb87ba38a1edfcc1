r"""Dendrograms over people, sampled by a Markov chain: a binary tree whose leaves are people.

Formula: at an internal node r with L_r and R_r leaves below its children and e_r links across, p_r = e_r/(L_r R_r);
    the log-likelihood of the tree is the sum of e_r log p_r + (L_r R_r - e_r) log(1 - p_r).
Move: an internal node that is not the root and its parent have three subtrees below them, which can stand in three
    arrangements; one of the two others is proposed, and taken with probability min(1, e^(scale difference)).
Stationary law: proportional to e^(scale log-likelihood) over all dendrograms.

People are public or private. A pair is private if both ends are. Both kinds of pairs have a likelihood of their own,
of their own links; a move looks at one of the two.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.client.draws import uniform
from graphldp.client.links import Neighbours
from graphldp.errors import DataError, MissingExtraError, OptionError
from graphldp.randomness import Source

__all__ = ["Chain", "Dendrogram", "random_dendrogram", "sample_dendrogram", "sensitivity", "steps_of"]

Whole: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_AT_A_TIME = 2**18  # moves whose random numbers are drawn together
_TRACE = 200  # points of a trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dendrogram:
    """A binary tree over n people; nodes 0..n-1 are the leaves, and n..2n-2 internal, of which `root` is one.

    Attributes:
        left, right: the children of each internal node, by its number minus n.
        parent: of every node; -1 for the root.
        leaves, private: how many people, and how many private ones, are below each node.
        links: internal nodes x 2: the public and the private links across.
    """

    left: Whole
    right: Whole
    parent: Whole
    leaves: Whole
    private: Whole
    links: Whole

    @property
    def people(self) -> int:
        """How many leaves."""
        return len(self.left) + 1

    @property
    def root(self) -> int:
        """The number of the root."""
        return int(np.flatnonzero(self.parent < 0)[0])

    def pairs(self) -> Whole:
        """Return internal nodes x 2: how many public and private pairs of people each of them separates."""
        private = self.private[self.left] * self.private[self.right]
        return np.stack([self.leaves[self.left] * self.leaves[self.right] - private, private], axis=1)

    def likelihood(self) -> tuple[float, float]:
        """Return the log-likelihoods of the public and of the private links."""
        many, there = self.pairs().astype(np.float64), self.links.astype(np.float64)
        share = np.divide(there, many, out=np.zeros_like(many), where=many > 0)
        inside = (share > 0) & (share < 1)
        p = np.where(inside, share, 0.5)
        logs = np.where(inside, there * np.log(p) + (many - there) * np.log1p(-p), 0.0)
        public, private = logs.sum(axis=0)
        return float(public), float(private)

    def order(self) -> tuple[Whole, Whole]:
        """Return the people in the order of the leaves, and at which place of it each node's leaves begin."""
        people = self.people
        start = np.zeros(2 * people - 1, dtype=np.int64)
        order = np.empty(people, dtype=np.int64)
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if node < people:
                order[start[node]] = node
                continue
            one, two = int(self.left[node - people]), int(self.right[node - people])
            start[one] = start[node]
            start[two] = start[node] + self.leaves[one]
            waiting += [one, two]
        return order, start


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """What a run of the Markov chain came to.

    Attributes:
        dendrogram: the last one.
        steps: how many moves were proposed.
        accepted: which share of them was taken.
        trace: the log-likelihood of all links after every so many moves, the first before any.
    """

    dendrogram: Dendrogram
    steps: int
    accepted: float
    trace: tuple[float, ...]


def sensitivity(people: int) -> float:
    """Return how much one link moves the log-likelihood at most.

    It is log N + (N-1) log(N/(N-1)) for N pairs at a node, and N is at most floor(people^2/4).
    """
    pairs = people * people // 4
    return math.log(pairs) - (pairs - 1) * math.log1p(-1 / pairs) if pairs > 1 else 0.0


def random_dendrogram(neighbours: Neighbours, private: NDArray[np.bool_], rng: Source) -> Dendrogram:
    """Return a balanced dendrogram with the people in random places, and its counts of links."""
    people = neighbours.nodes
    if people < 3:
        raise DataError(f"a dendrogram needs at least 3 people, got {people}")
    place = np.argsort(uniform(rng, people), kind="stable")
    left, right = (np.empty(people - 1, dtype=np.int64) for _ in range(2))
    parent = np.full(2 * people - 1, -1, dtype=np.int64)
    leaves, inside = np.ones(2 * people - 1, dtype=np.int64), np.zeros(2 * people - 1, dtype=np.int64)
    inside[:people] = private
    ahead = people
    waiting = [(0, people, people)]
    while waiting:
        first, last, node = waiting.pop()
        middle = (first + last) // 2
        children = []
        for begin, stop in ((first, middle), (middle, last)):
            if stop - begin == 1:
                children.append(int(place[begin]))
            else:
                ahead += 1
                children.append(ahead)
                waiting.append((begin, stop, ahead))
        left[node - people], right[node - people] = children
        parent[children] = node
        leaves[node], inside[node] = last - first, private[place[first:last]].sum()
    out = Dendrogram(
        left=left,
        right=right,
        parent=parent,
        leaves=leaves,
        private=inside,
        links=np.zeros((people - 1, 2), dtype=np.int64),
    )
    order, start = out.order()
    _count(out, neighbours, private, order, start)
    return out


def _count(tree: Dendrogram, neighbours: Neighbours, private: NDArray[np.bool_], order: Whole, start: Whole) -> None:
    """Fill in the links across each internal node: those of a pair count where its two ways up meet."""
    people = tree.people
    rows = neighbours.rows()
    below = neighbours.indices < rows
    at = np.empty(people, dtype=np.int64)
    at[order] = np.arange(people)
    one, two = at[rows[below]], at[neighbours.indices[below]]
    kind = (private[rows[below]] & private[neighbours.indices[below]]).astype(np.int64)
    node = np.full(len(one), tree.root)
    left = np.arange(len(one))
    while len(left):  # all pairs go down from the root together, until a node separates them
        first = tree.left[node[left] - people]
        middle = start[first] + tree.leaves[first]
        a, b = one[left] < middle, two[left] < middle
        apart = a != b
        np.add.at(tree.links, (node[left[apart]] - people, kind[left[apart]]), 1)
        stay = ~apart
        left, a = left[stay], a[stay]
        node[left] = np.where(a, tree.left[node[left] - people], tree.right[node[left] - people])


def sample_dendrogram(
    neighbours: Neighbours,
    private: NDArray[np.bool_],
    rng: Source,
    *,
    steps: int,
    scale: float,
    public_steps: int = 0,
    start: Dendrogram | None = None,
) -> Chain:
    """Return the chain after so many moves.

    Args:
        neighbours: everybody's links.
        private: who is private.
        rng: a numpy Generator, or the secure source.
        steps: how many moves look at private links.
        scale: what the private log-likelihood is multiplied by, epsilon/(2 sensitivity).
        public_steps: how many moves look at public links before each of those; their scale is 1.
        start: where to begin; a random balanced dendrogram unless given.
    """
    if steps < 1 or public_steps < 0:
        raise OptionError(f"a chain needs steps >= 1 and public_steps >= 0, got {steps} and {public_steps}")
    move = steps_of()
    tree = random_dendrogram(neighbours, private, rng) if start is None else start
    left, right, parent, leaves, inside, links = (
        part.copy() for part in (tree.left, tree.right, tree.parent, tree.leaves, tree.private, tree.links)
    )
    total, each = steps * (1 + public_steps), 1 + public_steps
    every = max(1, -(-total // _TRACE))
    taken, done = 0, 0
    own = np.asarray(private, dtype=np.bool_)
    offsets, targets = neighbours.indptr, neighbours.indices.astype(np.int64)
    stack = np.empty(2 * tree.people, dtype=np.int64)

    def now() -> Dendrogram:
        return Dendrogram(left=left, right=right, parent=parent, leaves=leaves, private=inside, links=links)

    trace = [sum(tree.likelihood())]
    while done < total:
        count = min(every, total - done, _AT_A_TIME)
        draws = np.asarray(uniform(rng, (count, 3)))
        taken += move(
            left, right, parent, leaves, inside, links, offsets, targets, own, stack, draws, scale, each, done
        )
        done += count
        if done % every == 0 or done == total:
            trace.append(sum(now().likelihood()))
    return Chain(dendrogram=now(), steps=total, accepted=taken / total, trace=tuple(trace))


@functools.cache
def steps_of() -> Any:
    """Return the compiled moves; `.py_func` is the same in plain Python."""
    try:
        import numba
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "sampling dendrograms needs numba: pip install 'graphldp[fast]'; lapgraph and edgerand do without"
        ) from error

    @numba.njit(cache=True, nogil=True, inline="always")
    def log_likelihood(there, many):  # type: ignore[no-untyped-def]
        if there <= 0 or there >= many:
            return 0.0
        share = there / many
        return there * math.log(share) + (many - there) * math.log1p(-share)

    @numba.njit(cache=True, nogil=True)
    def moves(  # type: ignore[no-untyped-def]
        left, right, parent, leaves, private, links, offsets, targets, own, stack, draws, scale, each, done
    ):
        people = left.shape[0] + 1
        taken = 0
        seen = np.zeros((2, 4), np.int64)
        for step in range(draws.shape[0]):
            # Any internal node but the root: the root's draw goes to the last one.
            node = people + min(int(draws[step, 0] * (people - 2)), people - 3)
            if parent[node] < 0:
                node = 2 * people - 2
            above = parent[node]
            a = left[node - people]
            b = right[node - people]
            s = left[above - people]
            if s == node:
                s = right[above - people]
            smallest = a
            if leaves[b] < leaves[smallest]:
                smallest = b
            if leaves[s] < leaves[smallest]:
                smallest = s
            seen[:] = 0
            stack[0] = smallest
            size = 1
            while size > 0:
                size -= 1
                leaf = stack[size]
                if leaf >= people:
                    stack[size] = left[leaf - people]
                    stack[size + 1] = right[leaf - people]
                    size += 2
                    continue
                for place in range(offsets[leaf], offsets[leaf + 1]):
                    other = targets[place]
                    kind = 1 if own[leaf] and own[other] else 0
                    where = 3
                    at = other
                    while at >= 0 and at != above:
                        if at == a:
                            where = 0
                            break
                        if at == b:
                            where = 1
                            break
                        if at == s:
                            where = 2
                            break
                        at = parent[at]
                    seen[kind, where] += 1
            # Which of the two other arrangements: a or b stays with the sibling.
            stay, out = (a, b) if draws[step, 1] < 0.5 else (b, a)
            kind = 1 if step_is_private(done + step, each) else 0
            gain = 0.0
            for k in range(2):
                inner = links[node - people, k]
                outer = links[above - people, k]
                if smallest == s:
                    a_s = seen[k, 0]
                    b_s = seen[k, 1]
                elif smallest == a:
                    a_s = seen[k, 2]
                    b_s = outer - a_s
                else:
                    b_s = seen[k, 2]
                    a_s = outer - b_s
                kept = a_s if stay == a else b_s
                seen[k, 3] = kept
                if k == kind:
                    many_old = pairs_of(leaves, private, a, b, k)
                    many_top = pairs_with(leaves, private, a, b, s, k)
                    many_new = pairs_of(leaves, private, stay, s, k)
                    many_above = pairs_with(leaves, private, stay, s, out, k)
                    gain = (
                        log_likelihood(kept, many_new)
                        + log_likelihood(inner + outer - kept, many_above)
                        - log_likelihood(inner, many_old)
                        - log_likelihood(outer, many_top)
                    )
            if kind == 1:
                gain *= scale
            if gain < 0.0 and math.log(draws[step, 2]) >= gain:
                continue
            taken += 1
            left[node - people] = stay
            right[node - people] = s
            left[above - people] = node
            right[above - people] = out
            parent[s] = node
            parent[out] = above
            leaves[node] = leaves[stay] + leaves[s]
            private[node] = private[stay] + private[s]
            for k in range(2):
                total = links[node - people, k] + links[above - people, k]
                links[node - people, k] = seen[k, 3]
                links[above - people, k] = total - seen[k, 3]
        return taken

    @numba.njit(cache=True, nogil=True, inline="always")
    def step_is_private(step, each):  # type: ignore[no-untyped-def]
        return step % each == each - 1

    @numba.njit(cache=True, nogil=True, inline="always")
    def pairs_of(leaves, private, x, y, kind):  # type: ignore[no-untyped-def]
        hidden = private[x] * private[y]
        return hidden if kind == 1 else leaves[x] * leaves[y] - hidden

    @numba.njit(cache=True, nogil=True, inline="always")
    def pairs_with(leaves, private, x, y, z, kind):  # type: ignore[no-untyped-def]
        hidden = (private[x] + private[y]) * private[z]
        return hidden if kind == 1 else (leaves[x] + leaves[y]) * leaves[z] - hidden

    return moves
