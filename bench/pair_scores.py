"""What a link predictor's loss takes: scores of pairs and their gradient, by products with matrices of ones and as now.

    python bench/pair_scores.py                                # Cora's size: a few seconds
    python bench/pair_scores.py --nodes 19717 --links 37676    # PubMed's

Both ways score the same pairs (as many without a link as with one) in one process and take turns. Printed is the CPU
time of one loss with its gradient, the least of all turns, of each, for so many runs side by side.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
import torch
from products import least
from torch import Tensor

from graphldp.learn.sparse import SparseMatrix, product
from graphldp.learn.tasks.links import PairScores

WIDTH = 64
RUNS = (1, 8)


class ByProducts:
    """Scores as they were: every pair's outputs are gathered, and their gradients pulled back, by a sparse product."""

    def __init__(self, pairs: np.ndarray, nodes: int):
        count = pairs.shape[1]
        pointers, ones = np.arange(count + 1), np.ones(count, dtype=np.float32)
        ends = [sp.csr_array((ones, end, pointers), shape=(count, nodes)) for end in pairs]
        self.first, self.second = (SparseMatrix.of(end, torch.device("cpu")) for end in ends)

    def __call__(self, outputs: Tensor, parameters: dict[str, Tensor]) -> Tensor:
        """Return the logits, [pairs, runs]."""
        weighted = product(self.second, outputs * parameters["task_weight"])
        return (product(self.first, outputs) * weighted).sum(dim=2) + parameters["task_bias"][:, 0]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2708)
    parser.add_argument("--links", type=int, default=4486, help="that are trained on")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, given.nodes, (2, 2 * given.links))
    scorers: dict[str, ByProducts | PairScores] = {}
    scorers["by products"] = ByProducts(pairs, given.nodes)
    scorers["now"] = PairScores(pairs, given.nodes, torch.device("cpu"))
    print("| runs | by products, ms | now, ms | times faster |")
    print("| ---: | ---: | ---: | ---: |")
    for runs in RUNS:
        outputs = torch.randn(given.nodes, runs, WIDTH, requires_grad=True)
        head = {"task_weight": torch.randn(runs, WIDTH), "task_bias": torch.zeros(runs, 1)}
        given_to = [outputs, *(one.requires_grad_() for one in head.values())]

        def step(scores: ByProducts | PairScores, given_to: list[Tensor] = given_to) -> tuple[Tensor, ...]:
            out = scores(given_to[0], {"task_weight": given_to[1], "task_bias": given_to[2]})
            return torch.autograd.grad(out.square().mean(dim=0).sum(), given_to)

        for one, other in zip(*(step(scores) for scores in scorers.values()), strict=True):
            torch.testing.assert_close(one, other)
        before, now = least({name: lambda s=scores: step(s) for name, scores in scorers.items()}).values()
        print(f"| {runs} | {before:.1f} | {now:.1f} | {before / now:.1f} |", flush=True)


if __name__ == "__main__":
    main()
