"""Stage survey: everybody is asked one question, each following from the answers before; what they say is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphldp import __version__, methods
from graphldp.errors import OptionError
from graphldp.experiment.options import check_classes, report_seeds
from graphldp.experiment.survey import Question, Surveys
from graphldp.ledger import epsilon_text
from graphldp.stages.answers import write_survey
from graphldp.stages.graphs import graph_hash, read_graph
from graphldp.stages.params import Params
from graphldp.stages.paths import graph_dir, survey_path

__all__ = ["make_command", "survey"]

Progress = Callable[[int, int, str], None]


def make_command(dataset: str, method: str, mechanism: str, epsilon: float) -> str:
    """Return the command that makes a Survey artifact."""
    return f"ldp survey --dataset {dataset} --method {method} --mechanism {mechanism} --epsilon {epsilon_text(epsilon)}"


def survey(
    dataset: str,
    method: str,
    mechanism: str | None,
    epsilon: float,
    *,
    data: Path,
    params: Params,
    options: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Ask everybody once for each seed of the parameters, and write who was asked what and said what.

    `options` are the mechanism's, `changes` those of the method, as `Method.but` takes them.
    """
    recipe = methods.method(method).but(changes or {})
    if recipe.survey is None:
        raise OptionError(f"method {method!r} asks nobody in turn: its people report with `ldp perturb`")
    mechanism = recipe.choose(mechanism)
    check_classes(recipe, params.train)
    folder = graph_dir(data, dataset)
    graph = read_graph(folder)
    seeds = report_seeds(params.seeds, params.search.seeds)
    asking = Surveys.of(graph, recipe.survey, mechanism, epsilon, params, options)
    meta: dict[str, Any] = {
        **asking.meta(graph_hash(folder), seeds),
        "method": method,
        "name": recipe.cell_name(mechanism),
        "library": __version__,
        **({"changes": dict(changes)} if changes else {}),
    }

    def runs() -> Iterator[tuple[int, Sequence[Question]]]:
        for count, seed in enumerate(seeds, start=1):
            yield seed, asking.questions(seed)
            if progress:
                progress(count, len(seeds), f"{mechanism} at epsilon {epsilon_text(epsilon)}")

    target = output or survey_path(data, dataset, recipe.cell_name(mechanism), epsilon)
    write_survey(target, runs(), meta)
    return target
