"""The audit of links: it convicts devices that were broken on purpose, and curators that spend too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from graphldp.audit import AuditOptions, audit_mechanism, links
from graphldp.audit.links import curator_bound, links_case, relationship_loss
from graphldp.audit.subject import AuditSetting
from graphldp.client.links import LinkReports, link_mechanism
from graphldp.client.links.blink import Blink
from graphldp.client.links.dprr import DegreePreserving
from graphldp.client.links.rr import LinkRandomisedResponse
from graphldp.errors import OptionError
from graphldp.randomness import generator

QUICK = AuditOptions(dimensions=4, samples=12_000)


def more(self: Any, neighbours: Any, rng: Any, **kwargs: Any) -> LinkReports:
    """Sample with half as much budget again."""
    plain = link_mechanism(self.name, 1.5 * self.epsilon, self.nodes, self.report, **self.options())
    return ORIGINAL[self.name](plain, neighbours, rng, **kwargs)


def no_noise_on_degrees(self: Any, neighbours: Any, rng: Any, **kwargs: Any) -> LinkReports:
    return replace(ORIGINAL[self.name](self, neighbours, rng, **kwargs), degree=neighbours.degrees)


def one_row_for_all(self: Any, neighbours: Any, rng: Any, **kwargs: Any) -> LinkReports:
    """Report of everybody what is reported of the first."""
    sent = ORIGINAL[self.name](self, neighbours, rng, **kwargs)
    own = sent.indices[: sent.indptr[1]]
    count = len(sent.owners)
    return replace(sent, indices=np.tile(own, count), indptr=np.arange(count + 1) * len(own))


CLASSES: dict[str, Any] = {"rr": LinkRandomisedResponse, "blink": Blink, "dprr": DegreePreserving}
ORIGINAL = {name: cls.perturb for name, cls in CLASSES.items()}


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("rr", more),
        ("rr", one_row_for_all),
        ("blink", more),
        ("blink", no_noise_on_degrees),
        ("dprr", more),
        ("dprr", no_noise_on_degrees),
    ],
)
def test_a_broken_device_is_convicted(name: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CLASSES[name], "perturb", fault)
    row = audit_mechanism(f"links-{name}", 1.0, QUICK)
    assert row.fails
    assert "does not follow the law" in row.verdict


def test_a_device_that_sends_every_bit_from_both_ends_but_claims_one_is_convicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a relationship: what both ends send together is more than is claimed."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Boasting(LinkRandomisedResponse):
        @property
        def relationship_epsilon(self) -> float:
            return self.bit_epsilon

    Boasting.name = "rr"
    subject = links.audit_links(
        type("Subject", (), {"device": Boasting(epsilon=1.0, nodes=5, report="both"), "name": "x"})(),
        1.0,
        AuditSetting(dimensions=4),
        2000,
        0,
    )
    assert any("both ends together lose 2 of a relationship, claimed 1" in text for text in subject.problems)


@pytest.mark.parametrize("name", ["rr", "blink", "dprr"])
@pytest.mark.parametrize("report", ["lower", "both"])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_what_both_ends_lose_of_a_relationship_is_what_is_claimed(name: str, report: str, epsilon: float) -> None:
    built = link_mechanism(name, epsilon, 9, report)
    assert relationship_loss(built) == pytest.approx(built.relationship_epsilon, rel=1e-6)
    case = links_case(built)
    np.testing.assert_allclose(case.laws.sum(axis=1), 1.0, atol=1e-9)
    assert case.loss.value == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["edgerand", "lapgraph", "privhrg", "edgerr"])
def test_samples_show_no_more_than_a_curator_claims_and_more_where_it_spends_more(name: str) -> None:
    honest = curator_bound(name, 1.0, generator(0, "honest", name), samples=600, steps=8)
    assert honest.value <= 1.0
    lavish = curator_bound(name, 80.0, generator(0, "lavish", name), samples=600, steps=8)
    assert lavish.value > 1.0


def test_an_unknown_curator_is_told() -> None:
    with pytest.raises(OptionError, match="valid: edgerand, edgerr, lapgraph, privhrg"):
        curator_bound("nobody", 1.0, generator(0, "x"))
