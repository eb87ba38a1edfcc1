"""For scripts that learn with torch_geometric: a transform that puts estimates in the place of features."""

from __future__ import annotations

import copy
from typing import Any

import torch

from graphldp.datasets.memory import as_graph
from graphldp.errors import DataError, OptionError
from graphldp.experiment.conversation import ask, conversation_of, most_of
from graphldp.experiment.estimates import calibration_of, centred, unit_scale
from graphldp.experiment.options import Settings
from graphldp.ledger import Ledger, ledger_from_meta
from graphldp.methods import method as named
from graphldp.server import Filtered

__all__ = ["PrivateFeatures"]


class PrivateFeatures:
    """Perturb everybody's features, and put what a server makes of the reports in their place: `data.x`.

    It stands wherever torch_geometric takes a transform. Every node is a person who reports once. Her report is
    rectified and filtered over the edges as the method does it, centred and brought to one scale, as `graphldp.run`
    gives it to its own models. Only `x` changes: edges, labels, masks and whatever else the `Data` holds stay as they
    are, and are public.

    The draws follow from the seed and from what the `Data` holds. So a second call on the same `Data` gives the same
    `x` and spends nothing, as when a data set applies its `transform` at every access; another seed, or changed
    features, are a further report of everybody. Whoever knows the seed can undo the noise: this is for experiments on
    data that you hold, and real people report from their own devices (`ldp perturb --secure`).

    Attributes:
        spent: what every person has spent on all calls of this transform.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        seed: int,
        method: str = "lpgnn",
        mechanism: str | None = None,
        steps: int = 4,
        low: float = 0.0,
        high: float = 1.0,
        **options: Any,
    ) -> None:
        """Say how people are asked, and what is made of it.

        Args:
            epsilon: what every person spends on her report.
            seed: from which everybody's draws follow; there is none by default, since it decides what is spent twice.
            method: a recipe that asks everybody once and filters (`lpgnn`, `base`, `upgnet-nh`, `ldpge`, `ppgnn`, ...).
            mechanism: what is reported; the method's own if left out.
            steps: depth K of the filter.
            low: the declared public lower bound of a feature value.
            high: the declared public upper bound of a feature value.
            options: of the mechanism, such as `m=4`.
        """
        recipe = named(method)
        if not recipe.model or recipe.silent or not recipe.calibrates or recipe.asking is not None or recipe.evidence:
            raise OptionError(
                f"method {method!r} does not make features of reports that everybody sends once; take one that does, "
                "such as 'lpgnn', or `graphldp.run`, which runs every method"
            )
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise OptionError(f"seed must be a whole number, got {seed!r}")
        self._recipe, self._mechanism = recipe, recipe.choose(mechanism)
        self._epsilon, self._steps, self._options = float(epsilon), recipe.steps((steps,))[0], options
        self._range, self._settings = (low, high), Settings(seed=seed)
        self.spent = Ledger()

    def __call__(self, data: Any) -> Any:
        """Return a copy of a `Data` with everybody's features replaced; the given one is left as it is."""
        if not (hasattr(data, "x") and hasattr(data, "edge_index")):
            raise DataError(f"PrivateFeatures takes a torch_geometric Data, got {type(data).__name__}")
        data, (low, high) = copy.copy(data), self._range
        graph = as_graph((*_needed(data), None), low=low, high=high)
        asked = conversation_of(graph, self._recipe, self._mechanism, self._epsilon, self._settings, self._options)
        calibration = calibration_of(self._recipe, self._steps, asked.device, graph)
        estimate = asked.estimate(ask(asked, 0, most_of(asked)), calibration)
        scale = unit_scale(estimate)
        rest = calibration.but(before=0.0)  # the estimate has it behind it
        filtered = Filtered.of(centred(estimate), rest, rest.operator(graph, estimate.weights)).dense()
        data.x = torch.from_numpy(filtered).mul_(scale).to(data.x.device)
        new = ledger_from_meta([asked.meta(graph.content_hash(), [0])])
        self.spent = ledger_from_meta([{"ledger": self.spent.as_json()}, {"ledger": new.as_json()}])
        return data

    def __repr__(self) -> str:
        """Name what is reported, and for how much."""
        return f"{type(self).__name__}({self._recipe.name}, {self._mechanism}, epsilon={self._epsilon:g})"


def _needed(data: Any) -> tuple[Any, Any]:
    if data.x is None or data.edge_index is None:
        raise DataError("the Data object has no x or no edge_index; a graph needs features and edges")
    return data.x, data.edge_index
