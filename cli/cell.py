"""What `ldp run`, `search` and `train` are asked alike: one class of options; and where parameters come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from graphldp.cli import console
from graphldp.cli.options import (
    DATA,
    AsJson,
    BatchSize,
    Data,
    Dataset,
    Device,
    EpsilonLabels,
    EpsilonLinks,
    Labels,
    LinkOption,
    Links,
    MaxMemory,
    Method,
    Processes,
    ProtocolName,
    Space,
    Split,
    Strategy,
    Task,
)
from graphldp.cli.settings import Search, Settings, axes, further_of, known_mechanism, mechanism_of, parse, parts
from graphldp.errors import OptionError

if TYPE_CHECKING:
    from graphldp.experiment.options import Further
    from graphldp.stages.grids.params import Params

__all__ = ["CellOptions", "MemoryOptions", "ParamsFile", "choose_params", "fetch"]

ParamsFile: TypeAlias = Annotated[
    Path, typer.Option("--params", help="Where search, seeds and training options stand; defaults if there is none.")
]
_PARAMS = Path("params.yaml")
_COMMON = ("learning_rate", "weight_decay", "dropout", "steps")  # the axes of every search


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """One cell, how it is searched and trained, and on what machine; the fields are the options."""

    dataset: Dataset
    method: Method = "lpgnn"
    task: Task = None
    split: Split = None
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="What is reported; the method's own if left out.")
    ] = None
    search_points: Annotated[int | None, typer.Option(help="Points of the search.", min=1)] = None
    search_seeds: Annotated[int | None, typer.Option(help="Seeds that each point is tried on.", min=1)] = None
    search: Search = None
    search_strategy: Strategy = None
    search_space: Space = None
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.", min=1)] = None
    hidden: Annotated[int | None, typer.Option(help="Width of the hidden layer.", min=1)] = None
    patience: Annotated[int | None, typer.Option(help="Epochs without improvement until a run stops.", min=1)] = None
    seed: Annotated[int | None, typer.Option("--seed", help="The root of all randomness.", min=0)] = None
    model: Annotated[str | None, typer.Option("--model", help="The backbone; the method's own if left out.")] = None
    labels: Labels = None
    epsilon_labels: EpsilonLabels = None
    links: Links = None
    epsilon_links: EpsilonLinks = None
    link_option: LinkOption = None
    device: Device = "auto"
    batch_size: BatchSize = None
    max_memory: MaxMemory = None
    processes: Processes = None
    params: ParamsFile = _PARAMS
    data: Data = DATA
    as_json: AsJson = False

    @property
    def axes(self) -> dict[str, list[Any]]:
        """What `--search` gives."""
        return axes(self.search)

    def chosen(self, seeds: int | None, *, protocol: Any = None, searched: Mapping[str, Any] | None = None) -> Params:
        """Return the parameters: the file's, with these options over them."""
        further = further_of(
            self.link_option, labels=self.labels, epsilon_labels=self.epsilon_labels, links=self.links,
            epsilon_links=self.epsilon_links,
        )  # fmt: skip
        known_mechanism(self.mechanism)
        searching = (field.name for field in fields(self) if field.name.startswith("search_"))
        changed = ("seed", *searching, *train_options())
        found: Params = choose_params(
            self.params, self.dataset, seeds=seeds, search=self.axes if searched is None else searched,
            further=further, protocol=protocol, **{name: getattr(self, name) for name in changed},
        )  # fmt: skip
        return found


def train_options() -> tuple[str, ...]:
    """Return the options that stand under `train` in params.yaml."""
    from graphldp.experiment.options import TrainParams

    known = {one.name for one in fields(TrainParams)}
    return tuple(one.name for one in fields(CellOptions) if one.name in known)


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(CellOptions):
    """The same of a cell whose people are asked in memory, so that what they are asked is an option, too."""

    settings: Settings = None
    protocol: ProtocolName = None

    def asked(self, seeds: int | None) -> tuple[Params, str | None, dict[str, Any], dict[str, Any]]:
        """Return the parameters, the mechanism, its options, and what is changed of the method."""
        options, changes = parts(parse(self.settings), [self.method], train_options())
        mechanism = mechanism_of(options, self.mechanism)
        protocol, searched = asked_under(self.protocol, self.method, mechanism, options, changes, self.axes)
        return self.chosen(seeds, protocol=protocol, searched=searched), mechanism, options, changes


def choose_params(
    file: Path,
    dataset: str,
    *,
    search: Mapping[str, Any] | None = None,
    further: Further | None = None,
    protocol: Any = None,
    **changes: int | str | None,
) -> Any:
    """Return the parameters of the file, or the defaults where the usual file is not there, with the given changes.

    A change is named by its place: `seeds`, `seed`, `search_points`, `search_seeds`, `model`, `epochs`, `hidden`,
    `patience`, `batch_size`, `task`, `split`, and so on. `search` has the values of axes of the search by name,
    `further` is what people are asked for beside features. `protocol` is a paper's, over which the changes count.
    """
    import dataclasses

    from graphldp.stages.grids.params import Params, check_numbers, load_settings, with_axes

    if file != _PARAMS and not file.exists():
        raise OptionError(f"{file} does not exist; leave --params out for the defaults")
    params = load_settings(file) if file.exists() else Params()
    if protocol is not None:
        params = protocol.settings(params)
    given: dict[str, Any] = {key: value for key, value in changes.items() if value is not None}
    searched = [key for key in given if key.startswith("search_")]
    searching: dict[str, Any] = {key.removeprefix("search_"): given.pop(key) for key in searched}
    train: dict[str, Any] = {key: given.pop(key) for key in list(given) if key in train_options()}
    out = dataclasses.replace(
        params,
        datasets=(dataset,),
        search=with_axes(dataclasses.replace(params.search, **searching), search or {}),
        train=dataclasses.replace(params.train, **train),
        further=further or params.further,
        **given,
    )
    check_numbers(out)
    return out


def asked_under(
    name: str | None,
    method: str,
    mechanism: str | None,
    options: dict[str, Any],
    changes: dict[str, Any],
    searched: dict[str, list[Any]],
) -> tuple[Any, dict[str, list[Any]]]:
    """Return a paper's protocol and the axes to search under it; add to the options and changes what it asks for.

    What is given already stays as it is.
    """
    if name is None:
        return None, searched
    from graphldp import methods
    from graphldp.methods import PREFIX
    from graphldp.stages.grids.params import RowParams
    from graphldp.stages.grids.protocols import protocol

    found = protocol(name, Path("papers"))
    row = found.row(
        RowParams(
            method=method,
            mechanism=methods.method(method).choose(mechanism),
            options=options,
            set={PREFIX + key: value for key, value in changes.items()},
            search={"options": {key: values for key, values in searched.items() if key not in _COMMON}},
        )
    )
    options |= row.options
    changes |= row.changes
    return found, {**{key: list(values) for key, values in row.search.get("options", {}).items()}, **searched}


def fetch(dataset: str, data: Path) -> None:
    """Download a data set, unless it is there."""
    from graphldp.stages.download import download
    from graphldp.stages.files.paths import graph_dir

    if graph_dir(data, dataset).exists():
        return
    with console.progress(f"download {dataset}", None, "bytes") as bar:
        download(dataset, data, progress=bar)
