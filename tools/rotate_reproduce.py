"""Make one table of each paper again at the quick profile, another at each commit, and fail where a number has moved.

`python tools/rotate_reproduce.py [COUNT]` compares what is committed below results/reproduce; COUNT says which share,
by default the number of commits. A target whose results are not committed has nothing to compare, and is passed over.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["chosen", "main"]

_LARGE = {"table3", "figure3"}  # an hour and more: left to whoever changes them


def chosen(results: Path, count: int) -> list[str]:
    """Return one target of each paper whose quick results are committed, as `ldp reproduce` takes them."""
    papers: dict[str, list[str]] = {}
    for path in sorted(results.glob("reproduce/*/quick/table.csv")):
        paper, _, name = path.parent.parent.name.partition("-")
        if name not in _LARGE:
            papers.setdefault(paper, []).append(f"{paper}:{name}")
    return [names[count % len(names)] for names in papers.values()]


def main() -> int:
    """Run them; return how many have moved."""
    root = Path(__file__).resolve().parents[1]
    given = sys.argv[1:]
    text = given[0] if given else subprocess.check_output(["git", "rev-list", "--count", "HEAD"], cwd=root, text=True)
    failed = 0
    for target in chosen(root / "results", int(text)):
        print(f"{target}:", flush=True)
        table = root / "results" / "reproduce" / target.replace(":", "-") / "quick" / "table.csv"
        trained = "\ncora," in table.read_text(encoding="utf-8")
        graphs = ["--datasets", "cora"] if trained else []
        command = [Path(sys.executable).parent / "ldp", "--quiet", "reproduce", target, "--check", *graphs]
        failed += subprocess.run(command, cwd=root, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
