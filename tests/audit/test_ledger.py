"""Budgets add up once for each release, by unit, and say so in one line."""

from __future__ import annotations

import json
import math

import pytest

from graphldp.audit import Ledger, Spend, ledger_from_meta
from graphldp.errors import ArtifactError, OptionError

REPORTS = {"kind": "reports", "dataset": "cora", "mechanism": "mb", "epsilon": 1.0, "delta": 0.0, "seed": 0}
LABELS = {"kind": "labels", "dataset": "cora", "mechanism": "krr", "epsilon": 1.0, "seed": 0}


def test_features_and_labels_add_up() -> None:
    ledger = ledger_from_meta([REPORTS, LABELS])
    assert ledger.text() == "total epsilon per user: features 1.0 + labels 1.0 = 2.0"
    assert ledger.total().epsilon == 2.0


def test_one_release_counts_once_however_often_it_is_used() -> None:
    run = {"kind": "runs", "ledger": ledger_from_meta([REPORTS]).as_json()}
    assert ledger_from_meta([REPORTS, REPORTS, run]).total().epsilon == 1.0


def test_a_second_round_counts_again() -> None:
    rounds = [{**REPORTS, "epsilon": 0.5, "round": number} for number in (1, 2)]
    assert ledger_from_meta(rounds).text() == "total epsilon per user: features 0.5 + features 0.5 = 1.0"


def test_releases_that_name_no_source_are_never_merged() -> None:
    nameless = {"mechanism": "mb", "epsilon": 1.0}
    assert ledger_from_meta([nameless, nameless]).total().epsilon == 2.0


def test_users_and_edges_are_not_added() -> None:
    links = {"kind": "links", "dataset": "cora", "mechanism": "rr", "epsilon": 3.0, "per": "edge"}
    ledger = ledger_from_meta([links, REPORTS])
    assert ledger.text() == "total epsilon per user: features 1.0; total epsilon per edge: links 3.0"
    assert ledger.total().epsilon == 1.0
    assert ledger.total("edge").epsilon == 3.0


def test_personalised_budgets_show_mean_and_maximum() -> None:
    personal = {**REPORTS, "mechanism": "ppm-public", "epsilon_mean": 6.2, "epsilon_max": 16.0}
    ledger = ledger_from_meta([personal, LABELS])
    assert ledger.text() == (
        "total epsilon per user: features 1.0 + labels 1.0 = 2.0 (nominal; users: mean 7.2, maximum 17.0)"
    )


def test_deltas_add_up_and_stay_probabilities() -> None:
    spends = tuple(Spend(what="features", epsilon=1.0, delta=0.4) for _ in range(3))
    assert Ledger(spends=spends[:2]).total().delta == pytest.approx(0.8)
    assert Ledger(spends=spends).total().delta == 1.0
    assert "delta 0.8" in Ledger(spends=spends[:2]).text()


def test_round_trip_through_json_keeps_infinity() -> None:
    ledger = ledger_from_meta([{**REPORTS, "mechanism": "identity", "epsilon": "inf"}, LABELS])
    text = json.dumps(ledger.as_json(), allow_nan=False)
    assert Ledger.from_json(text) == ledger
    assert ledger.total().epsilon == math.inf
    assert "= inf" in ledger.text()


def test_nothing_spent() -> None:
    graph, null = {"kind": "graph"}, {**REPORTS, "mechanism": "null", "epsilon": 0.0}
    assert ledger_from_meta([graph, null]).text() == "total epsilon per user: 0"


def test_contradicting_artifacts_are_refused() -> None:
    one, two = ({"ledger": [{"what": "features", "epsilon": e, "source": "sha256:1"}]} for e in (1.0, 2.0))
    with pytest.raises(ArtifactError, match=r"different budgets .* 1.0 and 2.0"):
        ledger_from_meta([one, two])


@pytest.mark.parametrize("wrong", [{"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": 1.0, "delta": 2.0}])
def test_impossible_budgets_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="spend on 'features'"):
        Spend(what="features", **wrong)


def test_a_damaged_ledger_is_refused() -> None:
    with pytest.raises(ArtifactError, match="a ledger's entry has the keys"):
        Ledger.from_json('[{"epsilon": 1.0}]')
    with pytest.raises(ArtifactError, match="must be a number or 'inf', got 'much'"):
        ledger_from_meta([{"epsilon": "much"}])
