"""A bar's length says how much it is, on whichever side of zero."""

from __future__ import annotations

from graphldp.evaluation import Interval
from graphldp.stages.pages import reproduced_figure as drawing


def test_a_bar_below_zero_hangs_from_zero() -> None:
    def y(value: float) -> float:
        return 100 - 10 * value

    for value, top in ((2.0, 80.0), (-2.0, 100.0)):
        point = drawing._Point(
            series="a", x="cora", found=Interval(mean=value, low=value, high=value, runs=5), gain=True
        )
        bar = drawing._mark(50.0, y(value), point, 0, y, bars=True, width=8.0, foot=y(0.0))[0]
        assert f'y="{top:.1f}" height="20.0"' in bar
