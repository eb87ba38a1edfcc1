"""The entry point of `ldp` and of `python -m graphldp.cli`."""

from __future__ import annotations

import sys

from graphldp.cli.failures import REFUSED, complain, missing_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its extra installed, say in one line how to install it."""
    try:
        from graphldp.cli.app import main as run
    except ModuleNotFoundError as error:
        missing = missing_extra(error, "ldp")
        if missing is None:
            raise
        complain(f"error: {missing}")
        sys.exit(REFUSED)
    sys.exit(run())


if __name__ == "__main__":
    main()
