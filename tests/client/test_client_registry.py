"""Every registered mechanism has a law, a claim, a reference and a test case; names are found, or suggested."""

from __future__ import annotations

import re

import numpy as np
import pytest
from client_cases import CASES, Case, _found

from graphldp.client import Randomiser, VectorMechanism, lookup, mechanism, names, protocol
from graphldp.client.registry import NO_FEATURE, register
from graphldp.errors import OptionError

SECTIONS = ("Formula:", "Claim:", "Estimator:", "Reference:", "Deviations:")


@pytest.mark.parametrize("name", names())
def test_an_entry_states_its_formula_claim_estimator_reference_and_deviations(name: str) -> None:
    text = lookup(name).__doc__ or ""
    places = [text.find(section) for section in SECTIONS]
    assert -1 not in places, f"{name} lacks {[s for s in SECTIONS if s not in text]}"
    assert places == sorted(places), f"{name}: sections in another order"
    for section in SECTIONS:
        body = text.split(section, 1)[1]
        assert re.match(r"\s*\S", body), f"{name}: {section} is empty"


@pytest.mark.parametrize("name", names())
def test_an_entry_has_one_test_case(name: str) -> None:
    assert name in CASES, f"add a case class for {name!r} to tests/client/client_cases.py"


def test_no_test_case_is_left_over_and_none_shadows_another() -> None:
    assert sorted(CASES) == names()
    found = [case.name for case in _found(Case)]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("name", names())
def test_an_entry_has_a_law(name: str) -> None:
    cls, case = lookup(name), CASES[name]
    epsilon = 1.0 if 1.0 in case.budgets else case.budgets[0]
    if cls.kind == "vector":
        assert issubclass(cls, VectorMechanism)
        built = protocol(name, epsilon, 6, **case.options)
        assert built.privacy_loss() > 0
        return
    assert issubclass(cls, Randomiser)
    built = mechanism(name, epsilon, *case.range, **case.options)
    places = built.support(case.range[0])
    assert np.isfinite(built.log_law(np.clip(places[..., -1], -3, 6), case.range[1])) or built.deterministic


@pytest.mark.parametrize("name", names())
def test_the_vector_form_says_what_it_claims_and_costs(name: str) -> None:
    case = CASES[name]
    if lookup(name).kind in NO_FEATURE:
        with pytest.raises(OptionError, match=r"(levels|labels), not features"):
            protocol(name, 1.0, 6)
        return
    epsilon = 1.0 if 1.0 in case.budgets else case.budgets[0]
    built = protocol(name, epsilon, 6, **case.options)
    assert built.name == name
    assert built.claim.epsilon >= 0
    assert built.report_bits() > 0
    assert built.meta()["claim"]["epsilon"] == built.claim.epsilon
    assert built.keeps_claim == (name != "ppm")
    if not built.keeps_claim:
        assert "level" in built.claim.reason


def test_names_are_sorted_and_of_three_kinds() -> None:
    assert names() == sorted(names())
    assert sorted(names("scalar") + names("vector") + names("level") + names("label")) == names()
    assert names("level") == ["esw"]
    assert names("label") == ["krr"]


def test_an_unknown_name_lists_the_valid_ones_and_the_nearest() -> None:
    with pytest.raises(OptionError, match="did you mean 'ppm-safe'"):
        mechanism("ppm-save", 1.0)
    with pytest.raises(OptionError, match=r"duchi.*latent.*pm"):
        protocol("zzz", 1.0, 5)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        register("mb")(type("Other", (), {}))


@pytest.mark.parametrize("name", names("vector"))
def test_a_vector_mechanism_has_no_form_for_one_value(name: str) -> None:
    with pytest.raises(OptionError, match="use protocol"):
        mechanism(name, 1.0)
