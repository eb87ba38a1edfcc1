"""One cell of a table, in memory: what people are asked, what the server makes of it, search, choice, final runs.

`run` is the whole of it in one call. Nothing here knows of files. A name is imported once it is asked for: who asks
people needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphldp.experiment.cell import learn_cell, learn_majority, search_cell
    from graphldp.experiment.options import SearchParams, Settings, TrainParams
    from graphldp.experiment.plan import CellPlan, Devices, plan_of
    from graphldp.experiment.resources import Memo, Resources
    from graphldp.experiment.result import CellResult, Checkpoint
    from graphldp.experiment.running import RowResult, RunResult, run, run_rows

_HOMES = {
    "cell": ("learn_cell", "learn_majority", "search_cell"),
    "options": ("SearchParams", "Settings", "TrainParams"),
    "plan": ("Devices", "CellPlan", "plan_of"),
    "resources": ("Memo", "Resources"),
    "result": ("CellResult", "Checkpoint"),
    "running": ("RowResult", "RunResult", "run", "run_rows"),
}

__all__ = [
    "CellPlan",
    "CellResult",
    "Checkpoint",
    "Devices",
    "Memo",
    "Resources",
    "RowResult",
    "RunResult",
    "SearchParams",
    "Settings",
    "TrainParams",
    "learn_cell",
    "learn_majority",
    "plan_of",
    "run",
    "run_rows",
    "search_cell",
]


def __getattr__(name: str) -> Any:
    """Return a public name from the module that has it."""
    home = next((module for module, public in _HOMES.items() if name in public), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
