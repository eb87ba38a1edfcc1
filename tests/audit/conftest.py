"""A generator of its own for each test."""

from __future__ import annotations

import numpy as np
import pytest

from graphldp.randomness import generator


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a generator that depends on the test's name alone."""
    return generator(0, "tests/audit", request.node.name)
