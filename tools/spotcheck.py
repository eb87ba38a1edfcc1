"""Compute a few cells of the committed experiments again, others at each commit; exit 1 where one left its interval.

python tools/spotcheck.py                   three cells, chosen by the commit
python tools/spotcheck.py --count 5 --number 7
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from graphldp.stages.spotcheck import choose, look, spots

DATASETS = ("cora", "citeseer", "synthetic")  # which need nothing but the package index


def main() -> int:
    """Look at the cells; return how many have moved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3, help="how many cells")
    parser.add_argument("--number", type=int, help="which ones; by default by the commit")
    given = parser.parse_args()
    number = given.number
    if number is None:
        number = int(subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip(), 16)
    among = spots(Path("results"), DATASETS)
    moved = 0
    with tempfile.TemporaryDirectory() as folder:
        for spot in choose(among, given.count, number):
            found = look(spot, Path(folder))
            print(f"{spot.text}: {'moved' if found else 'holds'}", flush=True)
            for difference in found:
                print(f"  {difference.text}")
            moved += bool(found)
    print(f"{given.count} of {len(among)} cells looked at, {moved} moved")
    return min(moved, 1)


if __name__ == "__main__":
    sys.exit(main())
