"""Whether a mechanism keeps its claim.

audit_mechanism(name, epsilon, options)     a registered mechanism: exact loss, goodness of fit, lower bound, verdict
audit_function(function, epsilon, options)  anybody's (x, epsilon, rng) -> report as a black box

Each name's module is imported when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphldp.audit.blackbox import BlackBoxOptions, Finding, audit_function
    from graphldp.audit.budget import ALPHA, CONFIDENCE, FALSE_ALARMS
    from graphldp.audit.empirical import Bound
    from graphldp.audit.exact import Loss, joint_loss, scalar_loss
    from graphldp.audit.fit import Fit, Power
    from graphldp.audit.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
    from graphldp.audit.information import (
        Information,
        class_information,
        feature_information,
        information_bound,
    )
    from graphldp.audit.mechanisms import Audit, AuditOptions, AuditRow, audit_mechanism, audit_rows
    from graphldp.audit.properties import (
        PROPERTIES,
        audit_gaussian,
        audit_same_law,
        audit_soft_threshold,
        audit_unbiased,
    )

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "FALSE_ALARMS",
    "PROPERTIES",
    "Audit",
    "AuditOptions",
    "AuditRow",
    "BlackBoxOptions",
    "Bound",
    "Finding",
    "Fit",
    "Information",
    "Loss",
    "Power",
    "audit_function",
    "audit_gaussian",
    "audit_mechanism",
    "audit_rows",
    "audit_same_law",
    "audit_soft_threshold",
    "audit_unbiased",
    "class_information",
    "feature_information",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "information_bound",
    "joint_loss",
    "scalar_loss",
]

_HOMES = {
    "blackbox": ("BlackBoxOptions", "Finding", "audit_function"),
    "budget": ("ALPHA", "CONFIDENCE", "FALSE_ALARMS"),
    "empirical": ("Bound",),
    "exact": ("Loss", "joint_loss", "scalar_loss"),
    "fit": ("Fit", "Power"),
    "gaussian": ("gaussian_delta", "gaussian_epsilon", "gaussian_sigma"),
    "information": ("Information", "class_information", "feature_information", "information_bound"),
    "mechanisms": ("Audit", "AuditOptions", "AuditRow", "audit_mechanism", "audit_rows"),
    "properties": ("PROPERTIES", "audit_gaussian", "audit_same_law", "audit_soft_threshold", "audit_unbiased"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
