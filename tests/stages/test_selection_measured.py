"""What is measured of a selection, against the library's figures one by one and against planted cases."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cell_factory import NAME, small_graph, small_params, store

from graphldp.adversary import Rate, facts_of, reader_of
from graphldp.client import protocol
from graphldp.client.directed import directed_from_meta
from graphldp.errors import OptionError
from graphldp.experiment.parts import split_of
from graphldp.experiment.rounds import Rounds, TwoRounds, joined
from graphldp.server import attribute_accuracy, degree_correlation, kprop, mean_jaccard, rectify
from graphldp.server.filtered import Filtered
from graphldp.stages.grids.cell import Cell
from graphldp.stages.pages.selection_tables import markdown, tables
from graphldp.stages.selection import Selected, SelectionRow, chance_jaccard, measure_selection

PARAMS = small_params(seeds=3)
PAPERS = Path(__file__).resolve().parents[2] / "papers"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selection") / "data"
    store(folder)
    return folder


def cells(mechanism: str, epsilon: float, **others: Any) -> list[Cell]:
    return [Cell(dataset=NAME, mechanism=mechanism, epsilon=epsilon, **others)]


@pytest.fixture(scope="module")
def found(data: Path) -> Selected:
    return measure_selection(
        cells("mb", 8.0, options={"m": 4}, changes={"rho": 0.5}), ["fda"], data=data, params=PARAMS, top=5, others=6
    )


def rounds_of() -> TwoRounds:
    graph = small_graph()
    return TwoRounds.of(graph, Rounds(score_by="fda"), "mb", 8.0, PARAMS, {"m": 4})


def test_a_row_says_what_the_library_says_of_the_same_draws(found: Selected) -> None:
    rounds, graph = rounds_of(), small_graph()
    tops = [rounds.scores(rounds.first(seed), seed).top(5) for seed in range(3)]
    row, clean = found.rows
    assert (row.mechanism, row.epsilon, row.by, row.m, row.asked, row.top, row.repetitions) == (
        "mb", 8.0, "fda", 4, 2, 5, 3,
    )  # fmt: skip
    assert row.jaccard.value == mean_jaccard(tops)
    degree = np.diff(graph.adjacency().indptr)
    assert row.degree_selected == pytest.approx(
        np.mean([np.abs(degree_correlation(graph.features, degree, top)).mean() for top in tops])
    )
    estimates = [
        joined(*(one.answers for one in rounds.questions(seed)), rounds=Rounds(score_by="fda")).deviations()
        for seed in range(3)
    ]
    assert row.sent_selected == pytest.approx(
        np.mean([np.abs(degree_correlation(e, degree, t)).mean() for e, t in zip(estimates, tops, strict=True)])
    )
    assert (clean.mechanism, clean.epsilon, clean.hits) == ("clean data", np.inf, 5.0)
    every = np.abs(degree_correlation(graph.features, degree, range(24)))
    assert row.degree_random == clean.degree_random == pytest.approx(every.mean())


def test_attributes_have_the_utility_and_the_exposure_of_their_own_law(found: Selected) -> None:
    rounds, graph = rounds_of(), small_graph()
    first, second = (one.answers for one in rounds.questions(1))
    directed = directed_from_meta(second.meta)
    rows = [row for row in found.attributes if row.seed == 1]
    assert {row.attribute for row in rows if row.group == "asked"} == set(directed.fixed())
    assert [sum(row.group == name for row in rows) for name in ("asked", "selected", "random")] == [2, 3, 6]
    split, calibration = split_of(graph, PARAMS, 1), kprop(2)
    operator = calibration.operator(graph)
    noisy = attribute_accuracy(
        Filtered.of(joined(first, second, rounds=Rounds(score_by="fda")), calibration, operator),
        graph.labels,
        split.train,
        split.test,
    )
    identity = protocol("identity", np.inf, 24, graph.low, graph.high)
    true = rectify(identity.perturb(graph.features, np.random.default_rng(0)))
    clean = attribute_accuracy(Filtered.of(true, calibration, operator), graph.labels, split.train, split.test)
    for row in rows:
        (fact,) = facts_of(graph.features, [row.attribute])
        both = reader_of(rounds.device).channel(fact).then(reader_of(directed).channel(fact))
        assert row.law == pytest.approx(both.advantage())
        assert row.utility == pytest.approx(noisy[row.attribute])
        assert row.clean == pytest.approx(clean[row.attribute])
        assert row.prior == pytest.approx(fact.prior)


def test_who_is_asked_by_everybody_is_exposed_more_than_at_random_and_never_beyond_the_bound(found: Selected) -> None:
    asked, _, random = found.groups
    assert [group.group for group in found.groups] == ["asked", "selected", "random"]
    assert asked.law > 2 * random.law
    for group in found.groups:
        assert group.law <= group.bound
        assert abs(group.advantage.value - group.law) <= 4 * group.advantage.error
        assert group.bound == pytest.approx(np.tanh(4.0))
    assert asked.advantage.value > random.advantage.value


def test_a_budget_without_noise_selects_what_clean_data_select(data: Path) -> None:
    found = measure_selection(cells("mb", 500.0, options={"m": 24}), ["fda"], data=data, params=PARAMS, top=5, others=3)
    row, clean = found.rows
    assert row.hits == 5.0
    assert row.jaccard == clean.jaccard
    (asked,) = [group for group in found.groups if group.group == "asked"]
    assert asked.law == pytest.approx(1.0, abs=1e-3)
    assert asked.success.value == 1.0


def test_the_first_round_is_shared_between_scorers_and_files_of_one_call_are_those_of_another(data: Path) -> None:
    two = measure_selection(cells("pm", 4.0), ["fda", "mi"], data=data, params=PARAMS, top=3, others=2)
    one = measure_selection(cells("pm", 4.0), ["mi"], data=data, params=PARAMS, top=3, others=2)
    assert [row.by for row in two.rows] == ["fda", "mi", "fda", "mi"]
    assert two.rows[1] == one.rows[0]
    assert [row for row in two.attributes if row.by == "mi"] == list(one.attributes)


@pytest.mark.parametrize(("top", "dimensions"), [(1, 10), (3, 7), (5, 5)])
def test_chance_is_what_random_selections_have(top: int, dimensions: int) -> None:
    rng = np.random.default_rng(0)
    drawn = [rng.choice(dimensions, top, replace=False).tolist() for _ in range(300)]
    assert chance_jaccard(top, dimensions) == pytest.approx(mean_jaccard(drawn), abs=0.02)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"score_by": "mi"}, "score_by is --by here: give --by mi"),
        ({"tau": 1}, "unknown part of two rounds 'tau'. Valid: first, m_from, rectification, reuse, rho, score_steps"),
        ({"rho": 2}, "rho .* is from 0 to 1, got 2"),
    ],
)
def test_parts_of_no_rounds_are_refused(data: Path, changes: dict[str, object], line: str) -> None:
    with pytest.raises(OptionError, match=line):
        measure_selection(cells("pm", 4.0, changes=changes), ["fda"], data=data, params=PARAMS)


def test_what_cannot_be_compared_is_refused(data: Path) -> None:
    with pytest.raises(OptionError, match="at least 2 repetitions are needed, got 1"):
        measure_selection(
            cells("pm", 4.0), ["fda"], data=data, params=dataclasses.replace(PARAMS, seeds=1), top=3, others=2
        )
    with pytest.raises(OptionError, match="at most the 24 attributes that there are, got 25"):
        measure_selection(cells("pm", 4.0), ["fda"], data=data, params=PARAMS, top=25)


def test_the_papers_numbers_stand_where_it_prints_them_and_nowhere_else(found: Selected) -> None:
    row = found.rows[0]

    def cora(mechanism: str, epsilon: float) -> SelectionRow:
        return dataclasses.replace(row, dataset="cora", mechanism=mechanism, epsilon=epsilon)

    groups = [
        dataclasses.replace(group, dataset="cora", mechanism="pm", epsilon=5.0, utility=Rate(value=0.5, error=0.1))
        for group in found.groups
    ]
    whole = Selected(
        how=found.how,
        rows=(cora("pm", 10.0), cora("pm", 5.0), cora("mb", 10.0), row),
        groups=tuple(groups),
        attributes=(),
    )
    stable, fair, exposed = tables(whole, PAPERS)
    assert [one[-1] for one in stable.rows] == ["0.78", "", "", ""]
    assert [one[-2:] for one in fair.rows] == [("0.07", "0.08"), ("", ""), ("", ""), ("", "")]
    assert [one[-2:] for one in exposed.rows] == [("81.2", "17.9"), ("81.2", "17.9"), ("79.3", "18.1")]
    assert exposed.rows[0][4] == "50.0 ± 10.0"
    assert all(cell == "" for one in tables(whole, PAPERS / "none") for line in one.rows for cell in line[-1:])
    page = markdown(whole, PAPERS)
    assert page.count("\n## ") == 3
    assert "| 0.78 |" in page
    parts = "rho 0.5, reuse False, first 0.5, m_from round, score_steps 2, rectification inclusion, m 4"
    assert f"- options: {parts}; root seed 0\n" in page
