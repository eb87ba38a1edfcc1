"""What an untrusted server computes from the reports and the public graph. All of it is post-processing."""

from __future__ import annotations

from graphldp.server.calibration import NORMALIZATIONS, Calibration, apply, kprop, shift, soft
from graphldp.server.estimate import Estimate, rectify

__all__ = ["NORMALIZATIONS", "Calibration", "Estimate", "apply", "kprop", "rectify", "shift", "soft"]
