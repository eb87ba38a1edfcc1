"""Where random numbers come from: addressed generators for experiments, the operating system for people's data.

An experiment's generator is a function of its address (root seed, dataset, mechanism, epsilon, run, ...), never of
what was drawn before, so that any cell of a table can be computed again alone and gives the same bytes. Reports of
real people are drawn from the operating system's CSPRNG, for which no seed exists.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphldp.errors import OptionError

__all__ = ["SecureSource", "Source", "UniformSource", "address_key", "drawn_from", "generator", "seed_of"]


class UniformSource(Protocol):
    """What a mechanism asks of its randomness: uniform float64 numbers in [0, 1) and uniform integers."""

    def random(self, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Return uniform numbers in [0, 1)."""
        ...

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return uniform integers in [low, high)."""
        ...


class SecureSource:
    """Uniform numbers from the operating system's CSPRNG: nobody can draw them again."""

    def random(self, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Return uniform multiples of 2^-53 in [0, 1)."""
        count = int(np.prod(size))
        raw = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        return np.asarray((raw >> np.uint64(11)) * 2.0**-53).reshape(size)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return uniform integers in [low, high), without the bias of a remainder (Lemire's rejection)."""
        span = high - low
        if not 0 < span <= 2**32:
            raise ValueError(f"integers need 0 < high - low <= 2^32, got low {low} and high {high}")
        count = int(np.prod(size))
        out = np.empty(count, dtype=np.int64)
        # A 32-bit draw times the span; the low word decides whether the draw is kept.
        threshold = (2**32 - span) % span
        pending = np.arange(count)
        while pending.size:
            draw = np.frombuffer(os.urandom(4 * pending.size), dtype=np.uint32).astype(np.uint64) * np.uint64(span)
            keep = (draw & np.uint64(0xFFFFFFFF)) >= np.uint64(threshold)
            out[pending[keep]] = (draw[keep] >> np.uint64(32)).astype(np.int64)
            pending = pending[~keep]
        return (out + low).reshape(size)


Source: TypeAlias = np.random.Generator | SecureSource


def drawn_from(rng: UniformSource | None) -> UniformSource:
    """Return a source of randomness that can be drawn from; anything else, a seed say, is an error that names both."""
    if callable(getattr(rng, "random", None)) and callable(getattr(rng, "integers", None)):
        assert rng is not None
        return rng
    what = "none" if rng is None else f"a {type(rng).__name__}"
    raise OptionError(
        "reports need a source of randomness: graphldp.randomness.SecureSource() for people's data, or "
        f"numpy.random.default_rng(0) for an experiment; got {what}"
    )


def address_key(root: int, *address: str | int | float) -> int:
    """Return the 128-bit key of an address. Text and numbers are told apart: 1 is not '1', but 1 is 1.0."""
    parts = [part if isinstance(part, str) else float(part) for part in address]
    text = json.dumps([int(root), *parts], ensure_ascii=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def generator(root: int, *address: str | int | float) -> np.random.Generator:
    """Return the generator of an address, for example `generator(0, 'cora', 'mb', 1.0, run)`."""
    return np.random.Generator(np.random.PCG64DXSM(address_key(root, *address)))


def seed_of(root: int, *address: str | int | float) -> int:
    """Return a 63-bit seed for libraries that take an integer (torch)."""
    return address_key(root, *address) >> 65
