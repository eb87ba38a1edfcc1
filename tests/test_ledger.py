"""Budgets add up once for each release, by unit, and say so in one line."""

from __future__ import annotations

import json
import math

import pytest

from graphldp.errors import ArtifactError, OptionError
from graphldp.ledger import Ledger, Spend, ledger_from_meta, release_of

REPORTS = {"kind": "reports", "dataset": "cora", "mechanism": "mb", "epsilon": 1.0, "delta": 0.0, "release": "a"}
LABELS = {"kind": "labels", "dataset": "cora", "mechanism": "krr", "epsilon": 1.0, "release": "b"}


def test_features_and_labels_add_up() -> None:
    ledger = ledger_from_meta([REPORTS, LABELS])
    assert ledger.text() == "total epsilon per user: features 1.0 + labels 1.0 = 2.0"
    assert ledger.total().epsilon == 2.0


def test_one_release_counts_once_however_often_it_is_used() -> None:
    run = {"kind": "runs", "ledger": ledger_from_meta([REPORTS]).as_json()}
    assert ledger_from_meta([REPORTS, REPORTS, run]).total().epsilon == 1.0


def test_a_second_round_counts_again() -> None:
    rounds = [{**REPORTS, "epsilon": 0.5, "release": name} for name in "ab"]
    assert ledger_from_meta(rounds).text() == "total epsilon per user: features 0.5 + features 0.5 = 1.0"


def test_releases_that_name_no_source_are_never_merged() -> None:
    nameless = {"kind": "reports", "dataset": "cora", "mechanism": "mb", "epsilon": 1.0, "seed": 0}
    assert ledger_from_meta([nameless, nameless]).total().epsilon == 2.0


def test_every_draw_of_a_person_spends_again() -> None:
    twelve = {**REPORTS, "seeds": [*range(10), -1, -2]}
    ledger = ledger_from_meta([twelve])
    assert ledger.text() == "total epsilon per user: features 1.0 x 12 draws = 12.0"
    assert ledger.once().text() == "total epsilon per user: features 1.0"


def test_the_same_draw_counts_once_and_another_one_again() -> None:
    def total(*seeds: list[int]) -> float:
        return ledger_from_meta([{**REPORTS, "seeds": one} for one in seeds]).total().epsilon

    assert total([0], [0]) == 1.0
    assert total([0], [1]) == 2.0
    assert total([0, 1], [1, 2], [2]) == 3.0


def test_a_result_has_spent_the_draws_that_it_used() -> None:
    whole = ledger_from_meta([{**REPORTS, "seeds": [0, 1, 2, -1, -2]}])
    assert whole.of_seeds([0, -1]).total().epsilon == 2.0
    # One collection serves every run: it has no draw of theirs, and counts.
    once = ledger_from_meta([{**REPORTS, "seeds": [0]}])
    assert once.of_seeds([5, -1]).total().epsilon == 1.0


def test_a_release_is_told_by_everything_that_shaped_it() -> None:
    meta = {**REPORTS, "options": {"fill": "mid"}, "low": 0.0, "high": 1.0, "m": 2, "seeds": [0]}
    own = release_of(meta)
    assert release_of({**meta, "seeds": [1, 2]}) == own
    others = [
        *({"options": {"fill": "zero"}}, {"low": -1.0}, {"high": 2.0}, {"m": 3}, {"epsilon": 2.0}, {"mechanism": "pm"}),
        *({"dataset": "citeseer"}, {"random": {"root": 1}}, {"input": "sha256:0"}),
    ]
    assert len({own, *(release_of({**meta, **one}) for one in others)}) == len(others) + 1
    assert release_of(meta, "levels") != own


def test_what_says_nothing_costs_an_unknown_amount() -> None:
    ledger = ledger_from_meta([REPORTS, {"kind": "scores"}])
    assert not ledger.total().known
    assert ledger.text() == "total epsilon per user: features 1.0 + features unknown = unknown, and at least 1.0"
    assert Ledger.from_json(ledger.as_json()) == ledger
    assert ledger_from_meta([{}]).text() == "total epsilon per user: features unknown = unknown"


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


def test_a_mean_is_rounded_up() -> None:
    one = Spend(what="features", epsilon=1.0, mean=8.31022, max=8.5)
    assert Ledger(spends=(one,)).text().endswith("(nominal; users: mean 8.311, maximum 8.5)")
    sums = Spend(what="features", epsilon=0.1, mean=0.6200000000000001, max=1.6)
    assert Ledger(spends=(sums,)).text().endswith("(nominal; users: mean 0.62, maximum 1.6)")


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
