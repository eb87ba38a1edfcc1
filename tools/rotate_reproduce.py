"""Compute a few cells of reproduced tables again, of each paper others at each commit; fail where a number has moved.

    python tools/rotate_reproduce.py                      # about 90 seconds of a core
    python tools/rotate_reproduce.py --seconds 600        # more of them
    python tools/rotate_reproduce.py --commit 5a0c...     # those of another commit

Compared is what stands in results/reproduce at the profile `quick`: a mean outside the interval that is committed
beside it has moved. Targets that train nothing are left to the commands that measure them. Exit code 1 if any moved.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from graphldp.stages.paths import graph_dir
from graphldp.stages.reproduce_again import again, candidates, rotated
from graphldp.stages.targets import PROFILES, targets

__all__ = ["main"]

ROTATION = 90.0  # seconds of a core in all, about
DATASET = "cora"  # which everybody has


def main() -> int:
    """Compute them; return 1 if any number has moved."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=ROTATION, help=f"of a core, in all ({ROTATION:g})")
    parser.add_argument("--commit", help="whose hash says which cells; the present one unless given")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="of the project")
    given = parser.parse_args()
    root, data = given.root, given.root / "data"
    if not graph_dir(data, DATASET).exists():
        print(f"{DATASET} is not at hand: ldp download {DATASET}")
        return 2
    command = ["git", "rev-parse", "HEAD"]
    commit = given.commit or subprocess.check_output(command, cwd=root, text=True).strip()
    every = targets(root / "papers")
    papers = dict.fromkeys(one.paper for one in every)
    found = {
        paper: [
            cell
            for one in every
            if one.paper == paper
            for cell in candidates(one, PROFILES["quick"], root / "results", root / "papers", DATASET)
        ]
        for paper in papers
    }
    found = {paper: cells for paper, cells in found.items() if cells}
    moved = []
    for paper, cells in found.items():
        names, wrong = again(rotated(cells, commit), data, given.seconds / len(found))
        print(f"{paper}: {len(names)} of {len(cells)} cells computed again", *names, sep="\n  ", flush=True)
        moved += wrong
    for text in moved:
        print(f"MOVED {text}")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main())
