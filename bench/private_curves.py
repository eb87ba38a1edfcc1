"""Accuracy against the budget of labels, or of links, with everything else as the published curves have it.

    python bench/private_curves.py labels --dataset cora facebook   # LPGNN's: features by mb at 1, labels 0.5 to inf
    python bench/private_curves.py blink --dataset cora citeseer    # BLINK's: public features, links 1 to 8 for a bit
    python bench/private_curves.py heterorr                         # features by FeatureRR, a share of links by EdgeRR

Each row has one search (`--points` on one other seed) and then `--seeds` runs. Last comes what each spends.
`propagation` is one learner of the floor: the same labels and links, and nobody's features. The whole floor and the
ceiling stand in `ldp experiment labels` and `ldp experiment blink`, which take far longer. Results go to
results/curves, beside what is printed; the data are those of data/graphs, which `ldp download` makes.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from graphldp.evaluation import Interval
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.run import run

INF = float("inf")
LABELS = (0.5, 1.0, 2.0, 3.0, INF)
LINKS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, INF)
FEATURES, SHARES = (4.0, 64.0), (0.05, 0.2)
HETERO = (("heterorr", "heterorr", "featurerr"), ("even shares", "base", "featurerr"), ("multi-bit", "base", "mb"))
# What the published code of BLINK gives on Cora with GCN and hard estimates; 0 stands for a perceptron without links.
PRINTED = {("cora", 1.0): 71.2, ("cora", 4.0): 77.0, ("cora", 5.0): 84.5, ("cora", 6.0): 86.4, ("cora", INF): 86.8}
PRINTED_MLP = {"cora": 71.0}
TRAIN: dict[str, Any] = {"epochs": 200, "patience": 20, "references": False, "search_seeds": 1}


def curve(which: str, dataset: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of a curve on one graph."""
    common = {**TRAIN, "data": given.data, "seeds": given.seeds, "points": given.points}
    out: list[dict[str, Any]] = []

    def add(row: str, method: str, budget: float, printed: float | None = None, **asked: Any) -> None:
        found = run(dataset, method, **{**common, **asked})
        score: Interval = found.score
        out.append(
            {
                "dataset": dataset, "row": row, "epsilon": budget, "mean": score.mean, "low": score.low,
                "high": score.high, "printed": printed, "spent": found.spent.text(),
            }
        )  # fmt: skip
        print(f"{dataset} {row} {budget:g}: {score.mean:.1f} [{score.low:.1f}, {score.high:.1f}]", flush=True)

    if which == "labels":
        for budget in given.epsilon or LABELS:
            asked: dict[str, Any] = {"labels": "krr", "epsilon_labels": budget}
            add("drop", "lpgnn", budget, mechanism="mb", epsilon=1.0, **asked)
            add("rgnn", "rgnn", budget, mechanism="mb", epsilon=1.0, **asked)
            add("propagation", "labels", budget, epsilon=0.0, **asked)
        return out
    if which == "heterorr":
        for share in SHARES:
            for budget in given.epsilon or FEATURES:
                curator = {"links": "edgerr", "epsilon_links": 1.0, "link_options": {"rho": share}}
                for row, method, mechanism in HETERO:
                    add(f"{row}, rho {share:g}", method, budget, mechanism=mechanism, **{"epsilon": budget, **curator})
        for budget in given.epsilon or FEATURES:
            add("features alone", "mlp", budget, mechanism="featurerr", **{"epsilon": budget})
        return out
    public: dict[str, Any] = {"mechanism": "identity", "epsilon": INF}
    add("mlp", "mlp", 0.0, PRINTED_MLP.get(dataset), **public)
    for budget in given.epsilon or LINKS:
        links = {"links": "blink", "epsilon_links": budget, "link_options": {"report": "both", "estimator": "hard"}}
        add("blink, hard, GCN", "base", budget, PRINTED.get((dataset, budget)), **public, **links)
        add("propagation", "labels", budget, epsilon=0.0, **links)
    return out


_FLOOR = "`propagation` is one learner of the floor."
_ABOUT = {
    "labels": _FLOOR,
    "blink": _FLOOR,
    "heterorr": "Links by EdgeRR at 1 for one, a share rho of them private: a trusted curator has them all.",
}


def markdown(which: str, rows: list[dict[str, Any]], given: argparse.Namespace) -> str:
    """Return the table: a line for each budget, a column for each row."""
    names = list(dict.fromkeys(row["row"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    what = {"labels": "a label", "blink": "a bit of a list, both ends report", "heterorr": "features"}[which]
    command = f"python bench/private_curves.py {which} --dataset {' '.join(datasets)}"
    command += f" --points {given.points} --seeds {given.seeds}"
    search = f"{given.points} point{'s' * (given.points > 1)} on one other seed"
    beside = any(row["printed"] is not None for row in rows)
    heads = ["data set", "epsilon", *names, *["printed"] * beside, "spent by the rows, in their order"]
    text = [
        f"# Accuracy against the epsilon of {what}", "",
        f"`{command}`:", "",
        f"test accuracy in percent, means of {given.seeds} runs with 95 % intervals; {search}, at most 200 epochs with",
        f"a patience of 20. {_ABOUT[which]}", "",
        f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 2)} --- |",
    ]  # fmt: skip
    for dataset, budget in dict.fromkeys((row["dataset"], row["epsilon"]) for row in rows):
        here = {row["row"]: row for row in rows if (row["dataset"], row["epsilon"]) == (dataset, budget)}
        cells = [
            f"{one['mean']:.1f} [{one['low']:.1f}, {one['high']:.1f}]" if (one := here.get(name)) else ""
            for name in names
        ]
        if beside:
            cells.append(next((f"{one['printed']:.1f}" for one in here.values() if one["printed"] is not None), ""))
        told = [one["spent"].replace("total epsilon per user: ", "") for one in here.values()]
        cells.append(" / ".join(told).replace("total epsilon ", ""))
        text.append(f"| {dataset} | {budget:g} | {' | '.join(cells)} |")
    return "\n".join(text) + "\n"


def main() -> None:
    """Measure a curve, print it and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("labels", "blink", "heterorr"))
    parser.add_argument("--dataset", nargs="+", default=["cora"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--output", type=Path, default=Path("results/curves"))
    given = parser.parse_args()
    rows = [row for dataset in given.dataset for row in curve(given.which, dataset, given)]
    given.output.mkdir(parents=True, exist_ok=True)
    with (given.output / f"{given.which}.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    write_text(given.output / f"{given.which}.md", markdown(given.which, rows, given))


if __name__ == "__main__":
    main()
