"""Dense products: MKL, as torch multiplies, beside oneDNN, as `graphldp.learn.dense` does with large ones.

    python bench/products.py              # Cora's size: 2,708 people, 1,433 features, one thread; a minute
    python bench/products.py --rows 3327 --features 3703

Both ways multiply the same matrices in one process and take turns. Printed is the CPU time of one product, the least of
all turns, of each: X W, and X^T G as a gradient has it, for weights of so many columns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from graphldp.learn.dense import product

COLUMNS = (16, 64, 128)  # one run of width 16; eight of width 8; eight of width 16
TURNS = 15


def least(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the least CPU milliseconds of each way."""
    found = dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for name, way in ways.items():
            start = time.process_time()
            way()
            found[name] = min(found[name], 1e3 * (time.process_time() - start))
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2708)
    parser.add_argument("--features", type=int, default=1433)
    given = parser.parse_args()
    torch.set_num_threads(1)
    matrix = torch.randn(given.rows, given.features)
    print("| columns | X W: MKL, ms | oneDNN | times faster | X^T G: MKL, ms | oneDNN | times faster |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for columns in COLUMNS:
        weight, gradient = torch.randn(given.features, columns), torch.randn(given.rows, columns)
        ways: dict[str, Callable[[], Any]] = {
            "X W, MKL": lambda w=weight: matrix @ w,
            "X W, oneDNN": lambda w=weight: product(matrix, w),
            "X^T G, MKL": lambda g=gradient: matrix.t() @ g,
            "X^T G, oneDNN": lambda g=gradient: product(g.t(), matrix),
        }
        one, two, three, four = least(ways).values()
        cells = [one, two, one / two, three, four, three / four]
        print(f"| {columns} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
