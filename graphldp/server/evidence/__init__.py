"""Evidence: model inputs that the server computes, one file each. Importing this package registers all of them."""

import importlib
import pkgutil

from graphldp.server.evidence.base import Evidence, EvidenceSetting
from graphldp.server.evidence.registry import evidence_class, evidence_names, make_evidence, register

for _module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["Evidence", "EvidenceSetting", "evidence_class", "evidence_names", "make_evidence", "register"]
