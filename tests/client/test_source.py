"""A device needs a source of randomness: what is none, a seed say, is refused with what to pass instead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphldp.client import protocol
from graphldp.client.links import Neighbours, link_mechanism
from graphldp.client.mechanisms.krr import LabelQuestion
from graphldp.client.vote import Vote
from graphldp.errors import OptionError
from graphldp.randomness import SecureSource, drawn_from

SAID = r"SecureSource\(\) for people's data, or numpy.random.default_rng\(0\) for an experiment; got "
NONE: dict[str, Any] = {"NoneType": None, "int": 0, "module": np.random, "RandomState": np.random.RandomState(0)}


@pytest.mark.parametrize("kind", NONE)
@pytest.mark.parametrize("name", ["mb", "ppm-public", "identity", "oue", "olh"])
def test_what_is_no_source_is_refused(name: str, kind: str) -> None:
    device = protocol(name, math.inf if name == "identity" else 1.0, 3, low=0.0, high=1.0)
    with pytest.raises(OptionError, match=SAID + ("none" if kind == "NoneType" else f"a {kind}")):
        device.perturb(np.zeros((2, 3)), NONE[kind])


def test_a_source_that_is_left_out_is_named() -> None:
    with pytest.raises(OptionError, match=SAID + "none"):
        protocol("mb", 1.0, 3, low=0.0, high=1.0).perturb(np.zeros((2, 3)))
    with pytest.raises(OptionError, match=SAID + "none"):
        LabelQuestion(epsilon=1.0, classes=3).perturb(np.zeros(4, dtype=np.int64))
    weights = np.ones((3, 2))
    with pytest.raises(OptionError, match=SAID + "none"):
        Vote.of(1.0, weights, np.zeros(2), 0.0, 1.0).perturb(np.zeros((2, 3)))
    for name in ("rr", "blink", "dprr", "laplace-bits"):
        with pytest.raises(OptionError, match=SAID + "none"):
            link_mechanism(name, 1.0, 4).perturb(Neighbours.of_person(3, [2, 0], 4))


def test_sources_are_taken_as_they_are() -> None:
    for source in (SecureSource(), np.random.default_rng(0)):
        assert drawn_from(source) is source
