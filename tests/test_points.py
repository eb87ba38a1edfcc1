"""Points of a search: which are drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphldp.errors import OptionError
from graphldp.points import Point, Space, grid, points

SPACE = Space(
    weight_decay=(0.0, 0.1),
    steps=(0, 2),
    options=(("method.filter", ("kprop", "ppr")), ("method.decay", (0.1, 0.2))),
)


def settle(point: Point) -> Point:
    """Only ppr has a decay, and only kprop a depth."""
    options = dict(point.options)
    if options["method.filter"] == "kprop":
        return replace(point, options=(("method.filter", "kprop"),))
    return replace(point, steps=0)


def test_further_axes_are_in_the_product_by_name() -> None:
    assert SPACE.size == 16
    assert [name for name, _ in SPACE.options] == ["method.decay", "method.filter"]
    first = SPACE.point(0)
    assert first.options == (("method.decay", 0.1), ("method.filter", "kprop"))
    assert first.values()["options"] == {"method.decay": 0.1, "method.filter": "kprop"}
    assert "options" not in Space().point(0).values()


def test_an_axis_with_one_value_moves_no_draw() -> None:
    plain = Space(weight_decay=(0.0, 0.1, 0.2), dropout=(0.0, 0.5), steps=(0, 1, 2))
    more = replace(plain, options=(("m", (3,)),))
    assert [replace(point, options=()) for point in points(more, 7, 5)] == list(points(plain, 7, 5))


def test_points_that_settle_as_one_count_as_one() -> None:
    every = points(SPACE, 8, 0, settle)
    assert len({repr(point) for point in every}) == 8
    assert set(map(repr, every)) == set(map(repr, grid(SPACE, settle)))
    assert all(
        ("method.decay" in dict(point.options)) == (point.steps == 0 and "ppr" in repr(point)) for point in every
    )
    with pytest.raises(OptionError, match="the search space has 8 points, fewer than the budget of 9"):
        points(SPACE, 9, 0, settle)


def test_points_that_cannot_be_are_left_out() -> None:
    drawn = points(SPACE, 8, 0, lambda point: point if point.steps else None)
    assert {point.steps for point in drawn} == {2}
    assert len(grid(SPACE, lambda point: point if point.steps else None)) == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((("m", ()),), "at least one m"),
        ((("m", (1, 1)),), "values of m must be distinct"),
        ((("m", (1,)), ("m", (2,))), "each axis of the search space has one name"),
        ((("steps", (1,)),), "each axis of the search space has one name"),
    ],
)
def test_a_space_that_is_none_is_refused(options: tuple[tuple[str, tuple[int, ...]], ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Space(options=options)


def test_a_space_beyond_all_measure_is_refused() -> None:
    wide = Space(options=tuple((f"o{axis}", tuple(range(20))) for axis in range(6)))
    for take in (lambda: points(wide, 4, 0), lambda: grid(wide)):
        with pytest.raises(OptionError, match="has 64000000 points, more than 1000000"):
            take()


def test_two_axes_are_tried_in_all_their_combinations() -> None:
    space = Space(weight_decay=(0.0, 0.1), options=(("a", (1, 2)), ("b", (1, 2))))
    for seed in range(5):
        drawn = points(space, 4, seed)
        assert len({point.options for point in drawn}) == 4
        assert sorted(point.weight_decay for point in drawn) == [0.0, 0.0, 0.1, 0.1]
