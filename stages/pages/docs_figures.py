"""The docs' figures as SVG: the same numbers give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphldp.audit.law import outcomes
from graphldp.client.laws.sets import Membership
from graphldp.client.registry import NO_FEATURE
from graphldp.errors import OptionError
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.pages.docs_numbers import (
    DIMENSIONS,
    coordinate_variance,
    crossings,
    expected_error,
    law_base,
    raw_variance,
    scalar_variance,
)

__all__ = [
    "error_figure",
    "labels_figure",
    "law_figure",
    "measures_figure",
    "variance_comparison",
    "variance_figure",
    "walks_figure",
]

# Distinguishable without colour vision (Okabe & Ito); black first.
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b")
_STYLES = ("-", "--", "-.", ":")
_EPSILONS = np.geomspace(0.1, 10.0, 33)
_FEW_OUTPUTS = 24
_LEVEL = 1.01  # how far the largest of some values may be from the least one, for them to be drawn as a constant
_POINTS = 240  # of a density's curve
COMPARED = ("featurerr", "ome", "latent", "duchi", "pm", "hm", "to", "pm-sub", "lp", "ag", "mb")


def law_figure(name: str, path: Path, epsilon: float = 1.0) -> None:
    """Draw the probabilities, or the density, of what is sent about three inputs."""
    base = law_base(name, epsilon)
    levels = base.kind in NO_FEATURE
    inputs = [1.0, 3.0, 5.0] if levels else [-1.0, 1.0] if isinstance(base, Membership) else [-1.0, 0.0, 0.6]
    figure, (axes,) = _figure(1)
    law = outcomes(base, inputs)
    few = base.finite and len(law.y) <= _FEW_OUTPUTS
    for place, (x, mass) in enumerate(zip(inputs, law.mass, strict=True)):
        label = f"{base.kind} {x:.0f}" if levels else f"x = {x:g}"
        style: dict[str, Any] = {"color": _COLOURS[place], "label": label}
        if few:
            gap = float(np.diff(law.y).min()) if len(law.y) > 1 else 1.0
            axes.bar(law.y + (place - 1) * gap * 0.22, mass, width=gap * 0.2, **style)
        elif base.finite:
            axes.plot(law.y, mass, linewidth=0.8, **style)
        else:
            y, density = _curve(base, x)
            axes.plot(y, density, linestyle=_STYLES[place], linewidth=1.3, **style)
    axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend
    axes.set_xlabel("report")
    axes.set_ylabel("density" if not base.finite else "probability")
    axes.legend(frameon=False, ncols=3, loc="upper center", fontsize=8)
    _save(figure, path, f"Law of {name} at epsilon {epsilon:g} for {'two' if len(inputs) == 2 else 'three'} inputs")


def variance_figure(name: str, path: Path) -> bool:
    """Draw the worst variance of a coordinate's estimate, and the number m of reported dimensions, against epsilon.

    Returns whether there was anything to draw (a mechanism without a choice of budget has no curve).
    """
    points: list[tuple[float, float, int]] = []
    for epsilon in _EPSILONS:
        try:
            variance, _, m = coordinate_variance(name, float(epsilon), DIMENSIONS)
        except OptionError:  # a budget that the mechanism refuses is left out of its curve
            continue
        points.append((float(epsilon), variance, m))
    if not points:
        return False
    epsilons, variances, ms = (np.array(part, dtype=float) for part in zip(*points, strict=True))
    figure, (left, right) = _figure(2)
    left.loglog(epsilons, variances, color=_COLOURS[1])
    if variances.max() < _LEVEL * variances.min():  # an axis that fits would show the last digits of a constant
        left.set_ylim(variances.mean() / 10, variances.mean() * 10)
    left.set_xlabel("epsilon")
    left.set_ylabel(f"worst variance, d = {DIMENSIONS}")
    right.step(epsilons, ms, color=_COLOURS[2], where="mid")
    right.set_xscale("log")
    right.set_ylim(bottom=0)
    right.set_xlabel("epsilon")
    right.set_ylabel("reported, m")
    _save(figure, path, f"Variance and m of {name} against epsilon")
    return True


def variance_comparison(path: Path) -> None:
    """Draw LDP-GE's Figure 1 (what is sent) beside the fair one (what is estimated)."""
    cross = crossings()["raw"]
    epsilons = np.linspace(0.5, 6.0, 56)
    figure, (left, right) = _figure(2)
    for place, (name, label) in enumerate((("lp", "lp"), ("duchi", "mb, duchi"), ("pm", "pm"), ("sw", "sw"))):
        style: dict[str, Any] = {"color": _COLOURS[place], "linestyle": _STYLES[place]}
        raw = [raw_variance(name, float(e)) for e in epsilons]
        fair = [scalar_variance(name, float(e)) for e in epsilons]
        left.semilogy(epsilons, raw, label=label if name != "sw" else "sw, shrunk", **style)
        right.semilogy(epsilons, fair, label=label if name != "sw" else "sw, rectified", **style)
    height = raw_variance("pm", cross)
    left.plot([cross], [height], "o", color=_COLOURS[4])
    left.annotate(f"epsilon {cross:.2f}", (cross, height), (8, 10), textcoords="offset points")
    left.set_title("variance of what is sent (LDP-GE, Fig. 1)", fontsize=9)
    right.set_title("variance of the unbiased estimate", fontsize=9)
    for axes in (left, right):
        axes.set_xlabel("epsilon")
        axes.set_ylabel("worst variance")
        axes.set_ylim(0.02, 60)
        axes.legend(frameon=False)
    _save(figure, path, "Worst-case variance against epsilon, of reports and of unbiased estimates")


def error_figure(path: Path) -> None:
    """Draw HeteroRR's Figure 10 as its paper compares, and with every mechanism rectified."""
    figure, panels = _figure(2)
    epsilons = np.geomspace(0.1, 9.0, 14)
    for raw, axes in zip((True, False), panels, strict=True):
        for place, name in enumerate(COMPARED):
            errors = [expected_error(name, float(e), raw=raw) for e in epsilons]
            style: dict[str, Any] = {"color": _COLOURS[place % 8], "linestyle": _STYLES[(place // 4) % 4]}
            axes.loglog(epsilons, errors, label=name, linewidth=2.2 if name == "featurerr" else 1.1, **style)
        axes.set_title("featurerr as printed, u/k" if raw else "all estimates rectified", fontsize=9)
        axes.set_xlabel("epsilon")
        axes.set_ylabel("worst expected error")
        axes.set_ylim(0.01, 300)
    figure.legend(
        *panels[1].get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=7, ncols=11
    )
    _save(figure, path, "Expected error bound against epsilon")


def walks_figure(found: Mapping[float, Mapping[str, NDArray[np.float64]]], path: Path) -> None:
    """Draw HeteroRR's Figure 11: the distance of random walks against the steps, a panel for each budget."""
    figure, panels = _figure(len(found))
    for (epsilon, rows), axes in zip(found.items(), panels, strict=True):
        for place, (name, distances) in enumerate(rows.items()):
            colour, style = _COLOURS[place % len(_COLOURS)], _STYLES[place // 2 % len(_STYLES)]
            hops = np.arange(1, len(distances) + 1)
            axes.plot(hops, distances, marker=".", color=colour, linestyle=style, label=name, linewidth=1.2)
        axes.set_title(f"epsilon {epsilon:g} of a relationship", fontsize=9)
        axes.set_xlabel("steps of the walk")
        axes.set_xticks(range(1, 5))
        axes.set_ylim(bottom=0)
        axes.set_ylabel("RMS distance")
    panels[0].legend(frameon=False, fontsize=7)
    _save(figure, path, "Distance of random walks on estimated graphs from those on the true one, by steps")


def measures_figure(
    epsilons: Sequence[float], found: Mapping[str, Mapping[str, NDArray[np.float64]]], path: Path
) -> None:
    """Draw measures of estimated graphs against the budget: of each measure a panel, of each way a line.

    Half of a panel's values within a thirtieth of the greatest could not be told apart: its scale is logarithmic.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.4), layout="constrained")
    panels = [axes for row in figure.subplots(2, 3) for axes in row]
    for axes, (measure, ways) in zip(panels, found.items(), strict=True):
        for place, (name, values) in enumerate(ways.items()):
            colour, style = _COLOURS[place % len(_COLOURS)], _STYLES[place // len(_COLOURS) % len(_STYLES)]
            axes.plot(epsilons, values, marker=".", color=colour, linestyle=style, label=name, linewidth=1.2)
        _plain(axes)
        axes.set_title(measure, fontsize=9)
        axes.set_xlabel("epsilon of a relationship", fontsize=8)
        values = np.concatenate(list(ways.values()))
        values = values[np.isfinite(values) & (values > 0)]
        if np.median(values) < values.max() / 30:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=7)
    _save(figure, path, "How near estimated graphs come to the true one, against the budget of a relationship")


def labels_figure(epsilons: Sequence[float], found: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw the share of labels that is known against their budget: of each way of reading them a line."""
    figure, (axes,) = _figure(1)
    for place, (name, values) in enumerate(found.items()):
        colour, style = _COLOURS[place % len(_COLOURS)], _STYLES[place // 4 % len(_STYLES)]
        axes.plot(epsilons, values, marker=".", color=colour, linestyle=style, label=name, linewidth=1.2)
    axes.set_xlabel("epsilon of a label")
    axes.set_ylabel("labels known, %")
    axes.set_ylim(0, 100)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=7)
    _save(figure, path, "How often a label is known, as it was sent and by what is made of all answers")


def _curve(base: Any, x: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a density that show its steps: the breaks, from both sides, and an even grid."""
    z = base._unit(np.array(x))
    reach = min(float(base._reach), 1 + 4 * float(np.sqrt(base._variance(z))))
    breaks = base._breaks(z).reshape(-1)
    near = np.concatenate([np.nextafter(breaks, -np.inf) - 1e-9, breaks + 1e-9])
    unit = np.unique(np.clip(np.concatenate([np.linspace(-reach, reach, _POINTS), near]), -reach, reach))
    y = base._shift + base._scale * unit
    return y, base.pdf(y, x)


def _figure(panels: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * panels, 3.2), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for part in axes:
        _plain(part)
    return figure, axes


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, linewidth=0.3, color="#cccccc")
    axes.tick_params(labelsize=8)
    axes.set_axisbelow(True)


def _save(figure: Any, path: Path, title: str) -> None:
    import matplotlib
    from matplotlib.ticker import NullLocator

    for axes in figure.axes:  # small ticks make up most of a file
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
    buffer = io.StringIO()
    # Text stays text, ids come from a fixed salt, and no date is written.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "graphldp", "path.simplify": True}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": title})
    write_text(path, "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n")
