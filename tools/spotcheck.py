"""Compute a few committed cells again, others at each commit; exit code 1 where one has left its interval.

    tools/spotcheck.py                   of the experiments and of each paper, about 60 seconds of a core in all
    tools/spotcheck.py --seconds 600     more of them
    tools/spotcheck.py --commit 5a0c...  those of another commit

Experiments whose tables do not say which code made them are passed over, and targets that train nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from graphldp.stages.grids.targets import PROFILES, targets
from graphldp.stages.spotcheck import Spot, look, of_experiments, of_target, rotated

DATASETS = ("cora", "citeseer", "synthetic")  # which need nothing but the package index


def main() -> int:
    """Look at the cells; return 1 if any has moved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of a core, in all")
    parser.add_argument("--commit", help="whose hash says which cells; the present one unless given")
    given = parser.parse_args()
    commit = given.commit or subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    results, papers = Path("results"), Path("papers")
    groups: dict[str, list[Spot]] = {"experiments": list(of_experiments(results, DATASETS))}
    for one in targets(papers):
        groups.setdefault(one.paper, []).extend(of_target(one, PROFILES["quick"], results, papers, DATASETS))
    there = {name: spots for name, spots in groups.items() if spots}
    moved = []
    for name, spots in there.items():
        names, wrong = look(rotated(spots, commit), Path("data"), given.seconds / len(there))
        print(f"{name}: {len(names)} of {len(spots)} cells computed again", *names, sep="\n  ", flush=True)
        moved += wrong
    for text in moved:
        print(f"MOVED {text}")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main())
