"""`--set key=value`: JSON where it can be read so, text otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from graphldp.cli.settings import parse, parts
from graphldp.errors import OptionError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e-6", 1e-6),
        ("true", True),
        ("null", None),
        ('"3"', "3"),
        ("[1, 2]", [1, 2]),
        ("2/5", "2/5"),
        ("mid", "mid"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_a_value(text: str, value: Any) -> None:
    found = parse([f"key={text}"])
    assert found == {"key": value}
    assert type(found["key"]) is type(value)


def test_several_and_none() -> None:
    assert parse(["a=1", " b =x"]) == {"a": 1, "b": "x"}
    assert parse(None) == {} == parse([])


@pytest.mark.parametrize("pair", ["m", "=3", " =3", ""])
def test_what_is_no_pair(pair: str) -> None:
    with pytest.raises(OptionError, match="--set takes KEY=VALUE, got"):
        parse([pair])


def test_a_key_stands_once() -> None:
    with pytest.raises(OptionError, match="--set gives 'm' twice; leave one out"):
        parse(["m=1", "m =2"])


def test_parts_of_the_calibration_are_told_from_the_mechanisms() -> None:
    assert parts({"m": 1, "method.filter": "hoa", "method.before": 0.5}) == (
        {"m": 1},
        {"filter": "hoa", "before": 0.5},
    )
    assert parts({}) == ({}, {})
