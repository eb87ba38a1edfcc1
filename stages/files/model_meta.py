"""What a kept model says of its making."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from graphldp.errors import ArtifactError
from graphldp.server import Calibration

__all__ = ["ModelMeta"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMeta:
    """What a kept model says of its making: what it was trained on, what was chosen for it, and what it scored.

    Attributes:
        dataset, method, mechanism: of the reports that it was trained on.
        m, low, high: how many features a person has reported, and their declared range.
        seed: which draw of the reports.
        standardized, scale: whether every feature was centred, and the unit in which the inputs were.
        average_degree: of the graph, over which its filter was described.
        split: who was in which part.
        filter, filter_name: the filter, and what the method calls it.
        chosen: the point of the search.
        rounds: the options of the way in which people were asked, where a method has one of its own.
        graph: what its graph was made from.
        summary: what its method does.
        library: the version that trained it.
        run: what its run says: scores, and how many it was trained on, by the names in the table of runs.
    """

    dataset: str
    method: str
    mechanism: str
    m: int
    low: float
    high: float
    seed: int
    standardized: bool
    scale: float
    average_degree: float
    split: str
    filter: Calibration
    filter_name: str
    chosen: Mapping[str, Any]
    graph: Mapping[str, Any]
    summary: str
    library: str
    rounds: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> ModelMeta:
        """Read what stands beside a model's parameters; what is lacking is an error."""
        known = {one.name for one in fields(cls)}
        lacking = [one.name for one in fields(cls) if one.name not in about and one.default_factory is MISSING]
        if lacking:
            raise ArtifactError(f"model.json does not say its {lacking[0]}")
        values = {key: value for key, value in about.items() if key in known}
        run = {key: value for key, value in about.items() if key.startswith(("validation_", "test_", "train_"))}
        return cls(**{**values, "filter": Calibration.from_meta(about["filter"]), "run": run})
