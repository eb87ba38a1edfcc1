"""Methods of two rounds: reports, a ranking of the features from them, and reports that the ranking directs.

Each seed has its own split, and only the labels of its training nodes rank its features: so each seed has its own
ranking, and the two rounds are drawn seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from graphldp import __version__
from graphldp.client import Reports, from_meta
from graphldp.errors import ArtifactError
from graphldp.experiment.estimates import calibration_of
from graphldp.experiment.rounds import joined, spent_in_both, split_facts
from graphldp.ledger import epsilon_text, spends_of
from graphldp.methods import Method, Rounds
from graphldp.server import (
    Estimate,
)
from graphldp.stages.artifacts import expect, file_hash
from graphldp.stages.graphs import read_graph
from graphldp.stages.params import Params
from graphldp.stages.paths import calibrated_path, directed_name, graph_dir, reports_path
from graphldp.stages.perturb import check_nodes, make_command
from graphldp.stages.reports import CARRIED, ReportsFile, write_calibrated

__all__ = [
    "check_selection",
    "denoise_rounds",
]

Progress = Callable[[int, int, str], None]


def check_selection(path: Path, facts: Mapping[str, Any], params: Params, make: str = "ldp select") -> None:
    """Refuse what was directed by labels which these parameters' splits hide; `make` is where it begins."""
    now = split_facts(params)
    for key in (*now, *(["split"] if "split" not in now else [])):
        was, value = (found.get(key, "random") for found in (facts, now))
        if was != value:
            raise ArtifactError(
                f"{path} was directed by training labels of other splits: {key} was {was}, and is {value} now; make it "
                f"again from `{make}` on, with the same parameters"
            )


def denoise_rounds(
    dataset: str,
    recipe: Method,
    mechanism: str,
    epsilon: float,
    *,
    data: Path,
    steps: Sequence[int],
    first: Path | None = None,
    reports: Path | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the estimate of both rounds' Reports artifacts; `first` and `reports` are these, where they are elsewhere.

    `epsilon` is the budget of both together.
    """
    assert isinstance(recipe.rounds, Rounds)
    one, two = _open(dataset, recipe.rounds, mechanism, epsilon, data, first, reports)
    graph = read_graph(graph_dir(data, dataset))
    for file in (one, two):
        check_nodes(file.path, file.meta, graph, f"make it again with `{file.make}`")
    device = from_meta(one.meta)
    tried = recipe.steps(tuple(steps))
    filters = [calibration_of(recipe, k, device, graph) for k in tried]
    meta: dict[str, Any] = {
        "kind": "calibrated",
        "method": recipe.name,
        "name": recipe.cell_name(mechanism),
        "fill": device.fill_value,
        "steps": list(tried),
        "filters": [calibration.meta() for calibration in filters],
        "reports": file_hash(two.path),
        "first": file_hash(one.path),
        "rounds": asdict(recipe.rounds),
        "selection": two.meta["selection"],
        "library": __version__,
        **{key: two.meta[key] for key in CARRIED},
        **spent_in_both(one.meta, two.meta, epsilon),
    }

    def runs() -> Iterator[tuple[int, Estimate]]:
        assert isinstance(recipe.rounds, Rounds)
        for count, seed in enumerate(two.meta["seeds"], start=1):
            pair = (one.load(seed), two.load(seed))
            _check_levels(one.path, two.path, *pair)
            yield seed, joined(*pair, rounds=recipe.rounds, weighting=filters[0].weighting)
            if progress:
                progress(count, len(two.meta["seeds"]), f"{mechanism} at epsilon {epsilon_text(epsilon)}")

    target = output or calibrated_path(data, dataset, recipe.cell_name(mechanism), epsilon)
    write_calibrated(target, runs(), meta)
    return target


def _open(
    dataset: str,
    rounds: Rounds,
    mechanism: str,
    epsilon: float,
    data: Path,
    first: Path | None,
    reports: Path | None,
) -> tuple[ReportsFile, ReportsFile]:
    """Return both rounds' files, once they are rounds of one another and of what was asked for."""
    shares = (rounds.first * epsilon, epsilon - rounds.first * epsilon)
    make = make_command(dataset, mechanism, shares[0])
    one = ReportsFile(first or reports_path(data, dataset, mechanism, shares[0]), make)
    name = directed_name(mechanism, rounds.score_by)
    directed = f"{make_command(dataset, mechanism, shares[1])} --directed SCORES"
    two = ReportsFile(reports or reports_path(data, dataset, name, shares[1]), directed)
    for file, share in ((one, shares[0]), (two, shares[1])):
        expect(file.meta, file.path, file.make, dataset=dataset, mechanism=mechanism)
        if not math.isclose(float(file.meta["epsilon"]), share, rel_tol=1e-9):
            raise ArtifactError(
                f"{file.path} has spent epsilon {file.meta['epsilon']}, where this round's share of {epsilon} is "
                f"{share}; make the right one with `{file.make}`"
            )
    if "rankings" in one.meta["options"] or "rankings" not in two.meta["options"]:
        which, file = ("directed", one) if "rankings" in one.meta["options"] else ("not directed", two)
        raise ArtifactError(f"{file.path} is {which}: it is the other round; make this one with `{file.make}`")
    for file in (one, two):
        found_from = file.meta.get("rounds", {}).get("m_from", "round")
        if found_from != rounds.m_from:
            raise ArtifactError(
                f"{file.path} was drawn with m_from {found_from}, and the method means {rounds.m_from}; say --set "
                f"denoise.m_from={found_from}, or perturb again with `ldp perturb --round`"
            )
    chosen = {"rho": rounds.rho, "score_by": rounds.score_by, "score_steps": rounds.score_steps}
    found = {"rho": two.meta["options"]["rho"], **two.meta["selection"]}
    for key, value in chosen.items():
        if found[key] != value:
            raise ArtifactError(
                f"{two.path} was directed with {key} {found[key]}, and the method means {value}; say --set "
                f"denoise.{key}={found[key]}, or make it again"
            )
    if not {spend.source for spend in spends_of(one.meta)} <= {spend.source for spend in spends_of(two.meta)}:
        raise ArtifactError(f"{two.path} was directed by other reports than {one.path}; name those with --first")
    if not one.meta["random"]["reproducible"]:
        raise ArtifactError(
            f"{one.path} was really collected, once; a table's runs need a first round for each seed, with its labels"
        )
    return one, two


def _check_levels(one: Path, two: Path, first: Reports, second: Reports) -> None:
    if (first.level is None) != (second.level is None) or (
        first.level is not None and not np.array_equal(first.level, np.asarray(second.level))
    ):
        raise ArtifactError(f"{two}: people have other privacy levels than in {one}; give both the same --levels FILE")
