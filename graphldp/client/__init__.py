"""What runs on a user's device. It needs numpy alone, and knows neither the graph nor a model.

    mechanism(name, epsilon, low, high)            one value in, one report out, with its law
    protocol(name, epsilon, dimensions, low, high) one feature vector in, one report out
    names()                                        what is registered
"""

from __future__ import annotations

from graphldp.client import identity, lp, mb, null, pm
from graphldp.client.protocol import FILLS, M_RULES, VectorMechanism, best_m, from_meta, mechanism, protocol
from graphldp.client.randomiser import Claim, Randomiser, lookup, names
from graphldp.client.reports import Reports

__all__ = [
    "FILLS",
    "M_RULES",
    "Claim",
    "Randomiser",
    "Reports",
    "VectorMechanism",
    "best_m",
    "from_meta",
    "identity",
    "lookup",
    "lp",
    "mb",
    "mechanism",
    "names",
    "null",
    "pm",
    "protocol",
]
