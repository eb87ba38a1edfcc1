"""Which device a model trains on."""

from __future__ import annotations

import torch

from graphldp.errors import OptionError

__all__ = ["DEVICES", "resolve_device"]

DEVICES = ("auto", "cpu", "cuda", "mps")


def resolve_device(name: str = "auto") -> torch.device:
    """Return the device of that name; `auto` is CUDA where there is one and the CPU elsewhere.

    `auto` never picks MPS: it has no sparse products, so that graphs train faster on the same machine's CPU.
    """
    if name not in DEVICES:
        raise OptionError(f"device must be one of {', '.join(DEVICES)}, got {name!r}")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise OptionError("device 'cuda' is not available: this torch finds no CUDA GPU; use device 'auto' or 'cpu'")
    if name == "mps" and not torch.backends.mps.is_available():
        raise OptionError("device 'mps' is not available: this torch finds no Apple GPU; use device 'auto' or 'cpu'")
    return torch.device(name)
