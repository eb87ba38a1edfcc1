"""Addresses of seeded draws: two calls that shape reports differently share no number, the same call shares all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphldp.client import VectorMechanism, names, protocol
from graphldp.client.directed import second_round
from graphldp.client.vote import Vote
from graphldp.datasets.registry import spec
from graphldp.experiment.addresses import addressed, source_of
from graphldp.randomness import generator

NODES = 6
MECHANISMS = [name for name in names() if name not in ("esw", "identity", "krr", "null")]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "pm": [{}, {"grid": 0.25}, {"grid": 0.5}, {"m": 2}, {"m": 3}],
    "mb": [{}, {"m": 2}, {"m": 3}],
    "lp": [{}, {"grid": 0.5}],
    "ag": [{}, {"delta": 1e-3}, {"composition": "split"}],
    "cldp": [{}, {"bins": 3}],
    "ome": [{}, {"bits": 3}, {"tilt": 0.1}],
    "mlr": [{}, {"base": "lp"}, {"base": "pm", "grid": 0.5}],
    "featurerr": [{}, {"bins": 3}, {"importance": [1.0, 2.0, 3.0, 4.0], "sensitivity": [0.0] * 4}],
    "privset": [{}, {"pad": 2}, {"pad": 3, "overlap": 2}, {"m": 2}],
    "ppm-public": [{}, {"levels": 3}, {"distribution": "strict"}, {"base": "pm"}],
    "ppm-safe": [{}, {"gamma": 0.25}, {"levels": 2}],
}
CALM = settings(max_examples=60, derandomize=True, deadline=None, database=None)


class Recorded:
    """A source that remembers every number which was drawn from it."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.drawn: list[np.ndarray] = []

    def random(self, size: Any) -> Any:
        found = self.source.random(size)
        self.drawn.append(np.array(found).reshape(-1))
        return found

    def integers(self, low: int, high: int, size: Any) -> Any:
        return self.source.integers(low, high, size)


Call = tuple[str, float, int, tuple[float, float], dict[str, Any], str, int, tuple[int, ...] | None]


@st.composite
def calls(draw: Callable[..., Any]) -> Call:
    name = draw(st.sampled_from(MECHANISMS))
    options = draw(st.sampled_from(OPTIONS.get(name, [{}])))
    dimensions = 4 if "importance" in options else draw(st.sampled_from([4, 5]))
    level = draw(st.sampled_from([None, (1,) * NODES, (1, 2) * 3])) if name.startswith("ppm") else None
    return (
        name,
        draw(st.sampled_from([1.0, 2.0])),
        dimensions,
        draw(st.sampled_from([(0.0, 1.0), (0.0, 2.0), (-1.0, 1.0)])),
        options,
        draw(st.sampled_from(["mine", "yours"])),
        draw(st.sampled_from([0, 1])),
        level,
    )


def made(call: Call) -> VectorMechanism:
    name, epsilon, dimensions, ends, options, _, _, _ = call
    return protocol(name, epsilon, dimensions, *ends, **options)


def reports(call: Call) -> tuple[Recorded, bytes]:
    device, level = made(call), call[-1]
    given_level = None if level is None else np.array(level)
    source = Recorded(source_of(0, call[5], device, call[6], given_level))
    sent = device.perturb(np.tile(np.array(call[3]), (NODES, 8))[:, : call[2]], source, given_level)  # type: ignore[arg-type]
    index = b"" if sent.index is None else sent.index.tobytes()
    return source, sent.value.tobytes() + index


def uniforms(source: Recorded) -> set[float]:
    return set(np.concatenate([*source.drawn, source.source.random(64)]).tolist())


@CALM
@given(calls(), calls())
def test_different_calls_share_no_number_and_the_same_call_gives_the_same_bytes(one: Call, two: Call) -> None:
    (mine, sent), (theirs, _) = reports(one), reports(two)
    assert reports(one)[1] == sent
    same = (made(one).meta(), *one[5:]) == (made(two).meta(), *two[5:])
    if same:
        assert uniforms(mine) == uniforms(theirs)
    else:
        assert not uniforms(mine) & uniforms(theirs)


@CALM
@given(calls(), st.data())
def test_a_call_that_differs_in_one_thing_alone_shares_no_number(call: Call, data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(["epsilon", "dimensions", "range", "options", "dataset", "seed"]))
    other = list(call)
    if change == "epsilon":
        other[1] = 3.0
    if change == "dimensions":
        assume("importance" not in call[4])
        other[2] = 7
    if change == "range":
        other[3] = (0.0, 3.0)
    if change == "options":
        others = [
            options for options in OPTIONS.get(call[0], [{}]) if options != call[4] and "importance" not in options
        ]
        assume(others)
        other[4] = data.draw(st.sampled_from(others))
    if change == "dataset":
        other[5] = "theirs"
    if change == "seed":
        other[6] = -1
    changed: Call = tuple(other)  # type: ignore[assignment]
    assume(made(changed).meta() != made(call).meta() or change in ("dataset", "seed"))
    assert not uniforms(reports(call)[0]) & uniforms(reports(changed)[0])


def first(source: Any) -> float:
    return float(source.random(1)[0])


@pytest.mark.parametrize("dataset", ["cora", "facebook", "pubmed"])
@pytest.mark.parametrize("name", ["mb", "pm", "privset", "lp", "featurerr", "ppm-safe", "null"])
def test_the_usual_call_of_a_registered_dataset_keeps_its_short_address(dataset: str, name: str) -> None:
    declared, epsilon = spec(dataset), 0.0 if name == "null" else 2.0
    shape = (declared.expected.dimensions, declared.low, declared.high)
    device = protocol(name, epsilon, *shape)  # type: ignore[arg-type]
    assert first(source_of(7, dataset, device, -1)) == first(generator(7, "perturb", dataset, name, epsilon, -1))
    # Nothing else has it: neither another shape of the same name, nor the same shape of another name.
    if name in ("mb", "pm"):
        for other in (
            protocol(name, epsilon, shape[0] - 1, *shape[1:]),  # type: ignore[operator]
            protocol(name, epsilon, shape[0], 0.0, 2.0),  # type: ignore[arg-type]
            protocol(name, epsilon, *shape, m=7),  # type: ignore[arg-type]
        ):
            assert first(source_of(7, dataset, other, -1)) != first(source_of(7, dataset, device, -1))
    assert first(source_of(7, "mine", device, -1)) != first(generator(7, "perturb", "mine", name, epsilon, -1))


def test_rounds_rankings_votes_and_questions_are_told_apart() -> None:
    def second(ranking: list[int], **plan: Any) -> Any:
        return second_round("pm", 8.0, 6, 0.0, 1.0, m=4, **{"ranking": ranking, "rho": 0.5, **plan})

    weights = np.arange(12.0).reshape(4, 3)
    votes = [Vote.of(4.0, table, table[0], 0.0, 1.0) for table in (weights, weights + 1, -weights)]
    people = np.arange(5)
    sources = [
        source_of(0, "mine", second([0, 1, 2, 3]).device, 0),
        source_of(0, "mine", second([0, 1, 2, 3]), 0),
        source_of(0, "mine", second([1, 4, 2, 3]), 0),
        source_of(0, "mine", second([0, 1, 2, 3], rho=0.25), 0),
        source_of(0, "mine", second([0, 1, 2, 3]), 0, np.ones(5, dtype=np.int32)),
        *(source_of(0, "mine", vote, 0) for vote in votes),
        source_of(0, "mine", votes[0], 0, survey="vote", people=people),
        source_of(0, "mine", votes[0], 0, survey="vote", people=people[::-1]),
        source_of(0, "mine", votes[0], 0, survey="other", people=people),
        source_of(0, "mine", votes[0], 0, survey="vote", people=people, features=people),
        source_of(1, "mine", votes[0], 0),
    ]
    drawn = [set(source.random(50).tolist()) for source in sources]
    assert not any(one & two for one, two in itertools.combinations(drawn, 2))
    # Levels count by who has which, not by how they are stored.
    one, two = (source_of(0, "mine", second([0, 1]), 0, np.ones(5, dtype=kind)) for kind in (np.int8, np.int64))
    assert first(one) == first(two)


def test_a_clearer_claim_moves_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    device = protocol("mb", 1.0, 5)
    before, meta = first(source_of(0, "mine", device, 0)), device.meta()
    monkeypatch.setattr(VectorMechanism, "meta", lambda self: {**meta, "claim": {"reason": "said otherwise"}})
    assert first(source_of(0, "mine", device, 0)) == before
    assert "shape" in addressed(0)["address"]
