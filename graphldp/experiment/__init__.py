"""One cell of a table, in memory: what people are asked, what the server makes of it, search, choice, final runs.

`run` is the whole of it in one call. Nothing here knows of files.
"""

from graphldp.experiment.cell import learn_cell, learn_majority, search_cell
from graphldp.experiment.options import SearchParams, Settings, TrainParams
from graphldp.experiment.plan import Devices, Plan, plan_of
from graphldp.experiment.resources import Memo, Resources
from graphldp.experiment.result import CellResult, Checkpoint
from graphldp.experiment.running import RowResult, RunResult, run, run_rows

__all__ = [
    "CellResult",
    "Checkpoint",
    "Devices",
    "Memo",
    "Plan",
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
