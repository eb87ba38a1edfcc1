"""What runs on a user's device. It needs numpy alone, and knows neither the graph nor a model.

mechanism(name, epsilon, low, high)            one value in, one report out, with its law
protocol(name, epsilon, dimensions, low, high) one feature vector in, one report out
names()                                        what is registered
"""

from __future__ import annotations

# Importing a mechanism's module registers it: this is the list of all of them.
from graphldp.client import (
    ag,
    cldp,
    duchi,
    esw,
    featurerr,
    gm,
    hds,
    hm,
    identity,
    krr,
    latent,
    lp,
    mb,
    mlr,
    null,
    olh,
    ome,
    one_bit,
    oue,
    pm,
    pm_sub,
    ppm,
    ppm_public,
    ppm_safe,
    privset,
    subset,
    sw,
    three,
)
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
    "ag",
    "best_m",
    "cldp",
    "duchi",
    "esw",
    "featurerr",
    "from_meta",
    "gm",
    "hds",
    "hm",
    "identity",
    "krr",
    "latent",
    "lookup",
    "lp",
    "mb",
    "mechanism",
    "mlr",
    "names",
    "null",
    "olh",
    "ome",
    "one_bit",
    "option_names",
    "oue",
    "own_budget",
    "pm",
    "pm_sub",
    "ppm",
    "ppm_public",
    "ppm_safe",
    "privset",
    "protocol",
    "subset",
    "sw",
    "three",
]
