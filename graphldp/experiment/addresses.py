"""Where seeded reports get their noise: one address for each release, so that no two releases share a number.

An address names the root, the dataset, the mechanism, its budget and the seed; and behind the seed a hash of all else
that shapes the reports. The hash is left out where that is exactly what the registered dataset's own dimensions and
range give with the mechanism's defaults, which follow from the names that the address has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphldp.client import VectorMechanism, protocol
from graphldp.client.directed import DirectedMechanism
from graphldp.client.links import LinkMechanism
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.client.vote import Vote
from graphldp.datasets.registry import names, spec
from graphldp.errors import OptionError
from graphldp.randomness import Source, generator

__all__ = ["addressed", "source_of"]

# What metadata say beyond the law: they follow from the rest, and a clearer wording must not move anybody's noise.
_SAID = ("claim", "budgets", "epsilon_mean", "epsilon_max")


def source_of(
    root: int,
    dataset: str,
    device: VectorMechanism | DirectedMechanism | Vote | LabelQuestion | LinkMechanism,
    seed: int,
    level: Any = None,
    **asked: Any,
) -> Source:
    """Return the generator of one seed's reports: a function of its address alone.

    Args:
        root: the experiment's root seed.
        dataset: the name of the graph.
        device: what the devices run; all that it is told is a part of the address.
        seed: which of the experiment's repetitions it is.
        level: everybody's privacy level, where the caller gives them.
        asked: who is asked what, where it is not everybody about everything: words, numbers or arrays by name.
    """
    told = device.meta()
    further = {name: _digest(value) for name, value in {**asked, "level": level}.items() if value is not None}
    shape = _shape(told, further)
    name = told.get("mechanism", told.get("question"))
    address = ("perturb", dataset, str(name), float(told["epsilon"]), seed)
    return generator(root, *address, *(() if shape == _usual(dataset, told) else (_hash(shape),)))


def addressed(root: int) -> dict[str, Any]:
    """Return what metadata say of seeded draws."""
    return {
        "generator": "PCG64DXSM",
        "address": ["perturb", "dataset", "mechanism", "epsilon", "seed", "shape"],
        "root": root,
        "reproducible": True,
        "note": "for experiments: whoever knows the root can draw the same noise again",
    }


def _shape(told: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"device": {key: value for key, value in told.items() if key not in _SAID}, "asked": dict(asked)}


def _usual(dataset: str, told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the shape that the names in the address stand for; None where they stand for none."""
    if dataset not in names() or not {"mechanism", "dimensions"} <= set(told):
        return None
    declared = spec(dataset)
    if (told["dimensions"], told["low"], told["high"]) != (declared.expected.dimensions, declared.low, declared.high):
        return None
    try:
        plain = protocol(told["mechanism"], told["epsilon"], told["dimensions"], told["low"], told["high"])
    except OptionError:  # this budget needs options
        return None
    return _shape(plain.meta(), {})


def _digest(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    whole = np.ascontiguousarray(value, dtype=np.int64 if value.dtype.kind in "iu" else value.dtype)
    return [str(whole.dtype), list(whole.shape), hashlib.sha256(whole.tobytes()).hexdigest()]


def _hash(shape: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()
