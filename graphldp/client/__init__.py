"""What runs on a user's device. It needs numpy alone, and knows neither the graph nor a model.

mechanism(name, epsilon, low, high)            one value in, one report out, with its law
protocol(name, epsilon, dimensions, low, high) one feature vector in, one report out
names()                                        what is registered
"""

from __future__ import annotations

# Importing the mechanisms registers them.
from graphldp.client import mechanisms
from graphldp.client.levels import DISTRIBUTIONS
from graphldp.client.protocol import COMPOSITIONS, M_RULES, best_m, from_meta, mechanism, option_names, protocol
from graphldp.client.randomiser import Randomiser
from graphldp.client.registry import Claim, lookup, names, own_budget
from graphldp.client.reports import Reports
from graphldp.client.vector import FILLS, VectorMechanism

__all__ = [
    "COMPOSITIONS",
    "DISTRIBUTIONS",
    "FILLS",
    "M_RULES",
    "Claim",
    "Randomiser",
    "Reports",
    "VectorMechanism",
    "best_m",
    "from_meta",
    "lookup",
    "mechanism",
    "mechanisms",
    "names",
    "option_names",
    "own_budget",
    "protocol",
]
