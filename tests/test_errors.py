"""Which name a slip may have meant."""

from __future__ import annotations

import pytest

from graphldp.errors import did_you_mean, near_names


@pytest.mark.parametrize(
    ("slip", "names", "near"),
    [
        ("Epsilon", ["seeds", "epsilons"], ["epsilons"]),
        ("fdx", ["fda", "sma"], ["fda"]),
        ("axes", ["labels", "rows"], []),
        ("sedes", ["set", "seed", "seeds"], ["seeds", "seed"]),
    ],
)
def test_only_what_a_slip_may_have_meant_is_near(slip: str, names: list[str], near: list[str]) -> None:
    assert near_names(slip, names) == near
    assert did_you_mean(slip, names) == (f"; did you mean {near[0]!r}?" if near else "")
