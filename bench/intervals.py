"""How often an interval over a few runs covers its mean, and how often it finds a difference that is not there.

Writes docs/coverage.csv: for each number of runs and law of a run's accuracy, the share of 20,000 repetitions in which
a 95 % interval covers the mean, of those in which there is one: Student's, as tables have it, and the percentile
bootstrap for comparison. `verdicts`
is the share in which a method that is exactly as good as its floor is said to lie above it, which may be 2.5 %.

    python bench/intervals.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphldp.evaluation import Confidence, mean_intervals
from graphldp.randomness import generator

OUT = Path(__file__).resolve().parent.parent / "docs" / "coverage.csv"
RUNS = (2, 3, 5, 10)
TRIALS = 20_000
MEAN = 0.8


def laws(runs: int, rng: np.random.Generator) -> dict[str, NDArray[np.float64]]:
    """Return accuracies of trials x runs, all with the same mean."""
    shape = (TRIALS, runs)
    skewed = rng.gamma(4.0, 0.005, shape)
    return {
        "normal": rng.normal(MEAN, 0.01, shape),
        "skewed": MEAN + 0.02 - skewed,
        "1000 test nodes": rng.binomial(1000, MEAN, shape) / 1000,
        "50 test nodes": rng.binomial(50, MEAN, shape) / 50,
    }


def bootstrap(values: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Return the coverage of the percentile bootstrap, on some of the trials."""
    some = values[:2000]
    picks = rng.integers(0, some.shape[1], (1000, some.shape[1]))
    means = some[:, picks].mean(axis=2)
    low, high = np.percentile(means, [2.5, 97.5], axis=1)
    return float(((low <= MEAN) & (high >= MEAN)).mean())


def main() -> None:
    """Measure, and write the table."""
    rows = []
    for runs in RUNS:
        rng = generator(0, "coverage", runs)
        first, second = laws(runs, rng), laws(runs, rng)
        for law, values in first.items():
            covers = np.mean([one.contains(MEAN) for one in mean_intervals(values, Confidence()) if one.known])
            gains = mean_intervals(values - second[law], Confidence())
            above = np.mean([one.against(0.0) == "above" for one in gains])
            rows.append([runs, law, f"{covers:.3f}", f"{bootstrap(values, rng):.3f}", f"{above:.3f}"])
            print(*rows[-1], sep="\t", flush=True)
    with OUT.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerows([["runs", "law", "covers", "percentile bootstrap", "verdicts"], *rows])


if __name__ == "__main__":
    main()
