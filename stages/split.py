"""Stage split: how one budget is best shared out between features, links and labels, by trial on public stand-ins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import isinf, sqrt
from pathlib import Path
from typing import Any

from graphldp.datasets.registry import names as known_datasets
from graphldp.errors import OptionError
from graphldp.evaluation import Confidence, Interval
from graphldp.experiment.resources import Resources
from graphldp.experiment.split import Asked, Shares, Tried, shares_of, try_splits
from graphldp.graph import Graph
from graphldp.progress import Progress, nested
from graphldp.stages.attack import write_rows
from graphldp.stages.code import code_hash
from graphldp.stages.download import made_from
from graphldp.stages.files.artifacts import write_text
from graphldp.stages.files.graphs import read_graph
from graphldp.stages.files.paths import graph_dir
from graphldp.stages.grids.params import Params
from graphldp.stages.pages.figures import figure_svg
from graphldp.stages.pages.wording import counted

__all__ = [
    "Splits",
    "measure_splits",
    "split_figure",
    "split_rows",
    "stand_in",
    "summary_rows",
    "transfer_rows",
    "write_splits",
]

_SIDE, _LEFT, _TOP, _FOOT = 420.0, 70.0, 76.0, 50.0  # of the figure's triangle
_STRONGEST = 0.55  # opacity of the dearest split: dark type stays legible on it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Splits:
    """What was tried.

    Attributes:
        tried: one for each stand-in and total.
        made_from: of each stand-in, what it was made from.
        parts: into how many a total was cut.
        asked: what people were asked for.
        how: seeds, search and training in words.
    """

    tried: tuple[Tried, ...]
    made_from: Mapping[str, str]
    parts: int
    asked: Asked
    how: str


def measure_splits(
    graphs: Sequence[Graph],
    totals: Sequence[float],
    asked: Asked,
    parts: int,
    *,
    params: Params,
    device: str = "auto",
    resources: Resources | None = None,
    progress: Progress | None = None,
) -> Splits:
    """Try every split of every total on every stand-in."""
    shares = shares_of(parts, labels=bool(asked.labels), links=bool(asked.links))
    confidence = Confidence(level=params.evaluate.confidence)
    out: list[Tried] = []
    pairs = [(graph, total) for total in totals for graph in graphs]
    for count, (graph, total) in enumerate(pairs):
        part = nested(progress, count, len(pairs), f"{graph.name}, total {total:g}")
        found = try_splits(graph, asked, total, shares, params, device=device, resources=resources, progress=part)
        out.append(replace(found, confidence=confidence))
    search, train = params.search, params.train
    how = (
        f"{params.seeds} runs, {counted(search.points, 'point')} searched on {counted(search.seeds, 'other seed')}, at "
        f"most {counted(train.epochs, 'epoch')}, patience {train.patience}, {100 * train.train_fraction:g} % of the "
        f"labels to train; root seed {params.seed}"
    )
    made = {graph.name: made_from(graph.provenance) for graph in graphs}
    return Splits(tried=tuple(out), made_from=made, parts=parts, asked=asked, how=how)


def stand_in(data: Path, name: str, *, public: bool = False) -> Graph:
    """Return a graph of which everything is public: a person's own one only where she says that it is."""
    graph = read_graph(graph_dir(data, name))
    if not public and graph.provenance.get("dataset") not in known_datasets():
        raise OptionError(
            f"{name} is your own graph, and splits are compared on a stand-in's true features, links and labels: take "
            "a public graph or a synthetic one, or say --public if nobody in it is to be protected"
        )
    return graph


# As tables ------------------------------------------------------------------------------------------------------


def split_rows(found: Splits) -> list[dict[str, Any]]:
    """Return a row for each split: its shares and budgets, its accuracy, and what it costs against the best."""
    out = []
    for tried in found.tried:
        for place, trial in enumerate(tried.trials):
            score, cost = tried.score(trial), tried.cost(trial)
            out.append(
                {
                    "dataset": tried.dataset,
                    "total": tried.total,
                    "features": trial.shares.features,
                    "links": trial.shares.links,
                    "labels": trial.shares.labels,
                    "epsilon_features": trial.features,
                    "epsilon_relationship": trial.relationship,
                    "epsilon_bit": trial.bit,
                    "epsilon_labels": trial.labels,
                    "best": int(place == tried.best),
                    "validation": float(trial.validation.mean()),
                    **{f"test{end}": getattr(score, key) for end, key in _ENDS},
                    **{f"cost{end}": getattr(cost, key) for end, key in _ENDS},
                    "spent": trial.spent.text(),
                }
            )
    return out


_ENDS = (("", "mean"), ("_low", "low"), ("_high", "high"))


def summary_rows(found: Splits) -> list[tuple[str, ...]]:
    """Return of each stand-in and total the best split, an even one where there is one, and the dearest."""
    out: list[tuple[str, ...]] = []
    for tried in found.tried:
        best = tried.trials[tried.best]
        worst = max(tried.trials, key=lambda trial: tried.cost(trial).mean)
        even = min(tried.trials, key=lambda trial: _distance(trial.shares))
        for name, trial in (("best", best), ("nearest to even", even), ("dearest", worst)):
            cost = "" if trial is best else _interval(tried.cost(trial), signed=True)
            budgets = [
                "public" if isinf(one) else f"{one:.3g}" for one in (trial.features, trial.relationship, trial.labels)
            ]
            out.append((tried.dataset, f"{tried.total:g}", name, *budgets, _interval(tried.score(trial)), cost))
    return out


def _distance(shares: Shares) -> int:
    parts = [part for part in (shares.features, shares.links, shares.labels) if part]
    return max(parts) - min(parts) + shares.parts * (3 - len(parts))


def transfer_rows(found: Splits) -> list[tuple[str, ...]]:
    """Return what the split that is best on one stand-in costs on each other one, at the same total."""
    out: list[tuple[str, ...]] = []
    for chosen in found.tried:
        shares = chosen.trials[chosen.best].shares
        for other in found.tried:
            if other.total == chosen.total and other is not chosen:
                cost = other.cost(other.at(shares))
                out.append(
                    (f"{chosen.total:g}", chosen.dataset, shares.text, other.dataset, _interval(cost, signed=True))
                )
    return out


def _interval(one: Interval, *, signed: bool = False) -> str:
    value, sign = one.scaled(100), "+" if signed else ""
    if not value.known:
        return f"{value.mean:{sign}.1f}"
    return f"{value.mean:{sign}.1f} [{value.low:{sign}.1f}, {value.high:{sign}.1f}]"


SUMMARY = ("graph", "total", "split", "features", "relationship", "label", "accuracy", "costs")
TRANSFER = ("total", "chosen on", "split", "used on", "costs there")


# As a figure ----------------------------------------------------------------------------------------------------


def split_figure(tried: Tried) -> str:
    """Return the splits as places in a triangle, each with its accuracy, shaded by what it costs."""
    height = _SIDE * sqrt(3) / 2
    wide, high = _SIDE + 2 * _LEFT, height + _TOP + _FOOT
    parts = tried.trials[0].shares.parts

    def at(features: float, links: float, labels: float) -> tuple[float, float]:
        # Labels at the top, features at the left foot, links at the right one.
        return _LEFT + _SIDE * (links + labels / 2) / parts, _TOP + height * (1 - labels / parts)

    corners = [at(parts, 0, 0), at(0, parts, 0), at(0, 0, parts)]
    out = [
        f'<path d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in corners)} Z" fill="none" stroke="var(--muted)"/>',
        *(_line(at(parts - k, 0, k), at(0, parts - k, k)) for k in range(1, parts)),
        *(_line(at(k, parts - k, 0), at(k, 0, parts - k)) for k in range(1, parts)),
        *(_line(at(parts - k, k, 0), at(0, k, parts - k)) for k in range(1, parts)),
    ]
    costs = [tried.cost(trial).mean for trial in tried.trials]
    limit, radius = max([*costs, 1e-9]), min(25.0, 0.44 * _SIDE / parts)
    for place, (trial, cost) in enumerate(zip(tried.trials, costs, strict=True)):
        x, y = at(trial.shares.features, trial.shares.links, trial.shares.labels)
        chosen = place == tried.best
        stroke = 'stroke="var(--s0)" stroke-width="3"' if chosen else 'stroke="var(--muted)"'
        kind = ' class="strong"' if chosen else ""
        shade = round(_STRONGEST * max(0.0, cost) / limit, 3)
        out += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="var(--sheet)" {stroke}/>',
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius - 1.5:.1f}" fill="var(--s1)" fill-opacity="{shade:g}"/>',
            f'<text{kind} font-size="13" text-anchor="middle" '
            f'x="{x:.1f}" y="{y + 4.5:.1f}">{100 * trial.test.mean():.1f}</text>',
        ]
    feet = (("all to features", corners[0], 36), ("all to links", corners[1], 36), ("all to labels", corners[2], -34))
    for text, (x, y), below in feet:
        out.append(f'<text font-size="13" text-anchor="middle" x="{x:.1f}" y="{y + below:.1f}">{text}</text>')
    name, best = f"split-{tried.dataset}-{tried.total:g}", tried.trials[tried.best]
    title = f"Accuracy on {tried.dataset} under splits of a total of {tried.total:g}, in percent"
    told = "; ".join(
        f"{trial.shares.text}: {100 * trial.test.mean():.1f}, costs {100 * cost:.1f}"
        for trial, cost in zip(tried.trials, costs, strict=True)
    )
    out.append(f'<text class="strong" font-size="12.5" x="8" y="16">{escape(title)}</text>')
    words = f"The best is {best.shares.text}. {told}."
    return figure_svg(name, title, words, out, width=wide, height=round(high, 1))


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<path class="grid" d="M{start[0]:.1f} {start[1]:.1f} L{end[0]:.1f} {end[1]:.1f}"/>'


# As files -------------------------------------------------------------------------------------------------------


def write_splits(found: Splits, output: Path, command: str) -> list[Path]:
    """Write all splits as CSV, a figure for each stand-in and total, and a page that says what made them."""
    table, page = output / "split.csv", output / "split.md"
    write_rows(table, split_rows(found))
    figures = []
    for tried in found.tried:
        path = output / f"split-{tried.dataset}-{tried.total:g}.svg"
        write_text(path, split_figure(tried))
        figures.append(path)
    asked = found.asked
    links = f"links by {asked.links} {dict(asked.link_options) or ''}".strip() if asked.links else "links public"
    labels = f"labels by {asked.labels}" if asked.labels else "labels public"
    text = [
        "# How to share out a budget",
        "",
        f"`{command}`: features by {asked.mechanism}, {links}, {labels}; method {asked.recipe.name}. {found.how}. "
        f"Made by code {code_hash('train')[:12]}.",
        "",
        "Stand-ins: " + "; ".join(f"{name}, from {source}" for name, source in found.made_from.items()) + ".",
        "",
        "The total is what is lost about a person's features, her label and any one of her links together; a split "
        f"has steps of 1/{found.parts} of it. The best split is chosen on the validation people of a public stand-in "
        "by their true labels; accuracies are those of the test people, in percent with 95 % intervals; `costs` is how "
        "many points the best split is ahead of another one, run by run. A split whose `costs` hold 0 cannot be told "
        "from the best.",
        "",
        *_markdown(SUMMARY, summary_rows(found), 3),
    ]
    moved = transfer_rows(found)
    if moved:
        text += ["", "What a split costs on another graph than the one that it was chosen on:", ""]
        text += _markdown(TRANSFER, moved, 4)
    for tried, path in zip(found.tried, figures, strict=True):
        text += ["", f"![Splits of {tried.total:g} on {tried.dataset}]({path.name})"]
    write_text(page, "\n".join(text) + "\n")
    return [table, page, *figures]


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]], text: int) -> list[str]:
    rule = ["---" if place < text else "---:" for place in range(len(heads))]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]
