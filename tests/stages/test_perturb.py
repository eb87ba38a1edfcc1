"""Stage perturb: addressed randomness, metadata that say what was spent, and a person's own files."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from cell_factory import NAME, SMALL, cell_of, files, store

from graphldp import __version__, client
from graphldp.client import protocol
from graphldp.errors import ArtifactError, DataError, OptionError
from graphldp.experiment.addresses import source_of
from graphldp.experiment.devices import device_for, nodes_hash
from graphldp.ledger import ledger_from_meta
from graphldp.randomness import generator
from graphldp.stages.download import import_own
from graphldp.stages.files.answers import AnswersFile
from graphldp.stages.files.artifacts import file_hash, read_meta, read_table
from graphldp.stages.files.belong import check_graph
from graphldp.stages.files.graphs import graph_hash, read_graph
from graphldp.stages.files.own import OwnFiles
from graphldp.stages.files.paths import graph_dir, reports_path
from graphldp.stages.grids.cell import Cell
from graphldp.stages.perturb import CollectionFiles, perturb_file, perturb_graph

MAKE = "ldp perturb"
NODES = ("n1", "n2", "n5", "n7")
FEATURES = np.array([[0.0, 0.5, 1.0], [1.0, 0.0, 0.25], [0.0, 0.0, 0.0], [0.75, 1.0, 0.0]])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store(tmp_path / "data")
    return tmp_path / "data"


def perturb(data: Path, mechanism: str = "mb", epsilon: float = 1.0, **options: Any) -> Path:
    given = {"data": data, "seeds": (0, 1), **options}
    cell, others = cell_of({"dataset": NAME, "mechanism": mechanism, "epsilon": epsilon, **given})
    return perturb_graph(cell, **others)


def values(path: Path, seed: int) -> tuple[list[Any], list[Any]]:
    one = AnswersFile(path, MAKE).load(seed)
    assert one.index is not None
    return one.index.tolist(), one.value.tolist()


# randomness -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["mb", "pm", "lp", "ppm-safe"])
def test_the_same_address_gives_the_same_bytes(mechanism: str, data: Path, tmp_path: Path) -> None:
    one = perturb(data, mechanism, output=tmp_path / "one.parquet")
    two = perturb(data, mechanism, output=tmp_path / "two.parquet")
    assert one.read_bytes() == two.read_bytes()


def test_every_part_of_the_address_counts(data: Path) -> None:
    store(data, "other")
    path = perturb(data)
    found = [values(path, 0), values(path, 1)]
    changes: list[dict[str, Any]] = [{"root": 1}, {"epsilon": 1.0 + 1e-9}, {"mechanism": "duchi"}]
    found += [values(perturb(data, **{"mechanism": "mb", "epsilon": 1.0, **change}), 0) for change in changes]
    found.append(values(perturb_graph(Cell(dataset="other", mechanism="mb", epsilon=1.0), data=data, seeds=(0,)), 0))
    for one in range(len(found)):
        for two in range(one):
            assert found[one] != found[two], (one, two)


def test_reports_are_those_of_the_addressed_generator(data: Path) -> None:
    graph = read_graph(graph_dir(data, NAME))
    device = protocol("mb", 2.0, graph.dimensions, graph.low, graph.high)
    expected = device.perturb(graph.features, source_of(7, NAME, device, -1))
    found = AnswersFile(perturb(data, epsilon=2.0, seeds=(0, -1), root=7), MAKE).load(-1)
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.index, expected.index)


@pytest.mark.parametrize("mechanism", ["mb", "pm", "ppm-public"])
def test_no_seed_moves_another(mechanism: str, data: Path) -> None:
    few = perturb(data, mechanism, seeds=(0, 1))
    before = {seed: values(few, seed) for seed in (0, 1)}
    for seeds in ((0, 1, -1, -2), (0, 1, 2, 3, -1), (-1, 1, 0)):
        many = perturb(data, mechanism, seeds=seeds)
        assert {seed: values(many, seed) for seed in (0, 1)} == before, seeds
        assert AnswersFile(many, MAKE).meta["seeds"] == list(seeds)


# what is written ------------------------------------------------------------------------------------------------------


def test_metadata_say_what_was_spent_and_how(data: Path) -> None:
    path = perturb(data, epsilon=2.0, options={"m": 2}, root=5)
    assert path == reports_path(data, NAME, "mb", 2.0)
    meta = read_meta(path, MAKE)
    claim = meta.pop("claim")
    assert (claim["epsilon"], claim["keeps"], claim["unit"]) == (2.0, True, "one node's whole feature vector")
    random = meta.pop("random")
    assert (random["root"], random["reproducible"], random["generator"]) == (5, True, "PCG64DXSM")
    assert "seed" in random["address"]
    exact = meta.pop("epsilon_exact")
    assert exact == pytest.approx(2.0, rel=1e-12)
    expected = {
        "kind": "reports",
        "dataset": NAME,
        "mechanism": "mb",
        "options": {"fill": "mid"},
        "epsilon": 2.0,
        "delta": 0.0,
        "dimensions": SMALL["dimensions"],
        "m": 2,
        "low": 0.0,
        "high": 1.0,
        "nodes": SMALL["nodes"],
        "seeds": [0, 1],
        "deterministic": False,
        "input": graph_hash(graph_dir(data, NAME)),
        "nodes_hash": nodes_hash(read_graph(graph_dir(data, NAME))),
        "library": __version__,
    }
    assert {key: meta[key] for key in expected} == expected


@pytest.mark.parametrize("mechanism", [*client.names("scalar"), *client.names("vector")])
def test_the_exact_loss_of_every_mechanism_is_written(mechanism: str, data: Path) -> None:
    epsilon = {"identity": math.inf, "null": 0.0}.get(mechanism, 1.0)
    meta = read_meta(perturb(data, mechanism, epsilon, seeds=(0,)), MAKE)
    exact = float(meta["epsilon_exact"])
    device = protocol(mechanism, epsilon, SMALL["dimensions"], 0.0, 1.0)
    assert exact == device.privacy_loss()
    assert meta["claim"]["keeps"] == device.claim.keeps
    if meta["claim"]["keeps"] and not meta["delta"]:
        assert exact <= float(meta["claim"]["epsilon"]) * (1 + 1e-9)


def test_floor_and_ceiling_name_their_budgets(data: Path) -> None:
    for mechanism, epsilon, name in (("null", 0.0, "0"), ("identity", math.inf, "inf")):
        path = perturb(data, mechanism, epsilon)
        assert path.name == f"eps={name}.parquet"
        assert float(read_meta(path, MAKE)["epsilon"]) == epsilon


def test_the_floor_has_not_seen_the_data(data: Path) -> None:
    before = values(perturb(data, "null", 0.0), 0)
    store(data, features=0.0, words=1.0)
    assert values(perturb(data, "null", 0.0), 0) == before


def test_progress_counts_the_seeds(data: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    perturb(data, seeds=(0, 1, -1), progress=lambda done, total, text: calls.append((done, total, text)))
    assert calls == [(count, 3, "mb at epsilon 1") for count in (1, 2, 3)]
    calls.clear()
    perturb(data, "identity", math.inf, progress=lambda done, total, text: calls.append((done, total, text)))
    assert calls == [(1, 1, "identity at epsilon inf")]


@pytest.mark.parametrize("after", [1, 2])
def test_a_stop_leaves_the_earlier_file_and_no_other(after: int, data: Path) -> None:
    path = perturb(data, root=1)
    before, there = path.read_bytes(), files(data)

    def stop(done: int, total: int, text: str) -> None:
        if done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perturb(data, root=2, progress=stop)
    assert path.read_bytes() == before
    assert files(data) == there


# a person's own file --------------------------------------------------------------------------------------------------


def wide() -> pa.Table:
    columns = {name: FEATURES[:, j] for j, name in enumerate("abc")}
    return pa.table({"node": list(NODES), **columns})


def triples() -> pa.Table:
    cells = [(name, "abc"[j], FEATURES[i, j]) for i, name in enumerate(NODES) for j in range(3)]
    kept = [cell for cell in cells if cell[2] or cell[:2] == ("n5", "a")]  # a node without features is listed with a 0
    node, feature, value = zip(*kept, strict=True)
    return pa.table({"node": node, "feature": feature, "value": value})


def own(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path) if path.suffix == ".parquet" else pc.write_csv(table, path)
    return path


def perturb_own(path: Path, mechanism: str = "mb", epsilon: float = 1.0, **options: Any) -> Path:
    given = {"low": 0.0, "high": 1.0, "name": "mine", "data": path.parent, "seeds": (0, 1), **options}
    files = {one.name: given.pop(one.name) for one in dataclasses.fields(CollectionFiles) if one.name in given}
    cell, others = cell_of({"dataset": given.pop("name"), "mechanism": mechanism, "epsilon": epsilon, **given})
    return perturb_file(cell, CollectionFiles(features=path, **files), **others)


@pytest.mark.parametrize("form", [wide, triples])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_every_form_of_a_file_gives_the_same_reports(form: Any, suffix: str, tmp_path: Path) -> None:
    path = perturb_own(own(tmp_path / f"features.{suffix}", form()), "pm", 2.0)
    assert path == reports_path(tmp_path, "mine", "pm", 2.0)
    device = protocol("pm", 2.0, 3, 0.0, 1.0)
    expected = device.perturb(FEATURES, source_of(0, "mine", device, 1))
    found = AnswersFile(path, MAKE).load(1)
    np.testing.assert_array_equal(found.value, expected.value)
    np.testing.assert_array_equal(found.index, expected.index)
    meta = read_meta(path, MAKE)
    assert (meta["low"], meta["high"], meta["nodes"], meta["dimensions"]) == (0.0, 1.0, 4, 3)
    assert meta["input"] == file_hash(tmp_path / f"features.{suffix}")
    assert read_table(path, MAKE)["id"].to_pylist() == [*NODES, *NODES]


def test_reports_of_a_file_belong_to_the_graph_of_the_same_nodes(tmp_path: Path) -> None:
    features = own(tmp_path / "features.csv", wide())
    edges = own(tmp_path / "edges.csv", pa.table({"source": ["n7", "n1"], "target": ["n2", "n5"]}))
    import_own("mine", OwnFiles(features=features, edges=edges), tmp_path, low=0, high=1)
    graph = read_graph(graph_dir(tmp_path, "mine"))
    for secure in (False, True):
        output = tmp_path / f"{secure}.parquet"
        path = perturb_own(features, seeds=(0,), secure=secure, output=output)
        assert "nodes_hash" not in read_meta(path, MAKE)  # the ids stand in the rows
        check_graph(path, AnswersFile(path, MAKE).meta, graph, tmp_path, "never")
        (tmp_path / "turned.parquet").unlink(missing_ok=True)
        turned = own(tmp_path / "turned.csv", wide().take([1, 0, 2, 3]))
        path = perturb_own(turned, seeds=(0,), secure=secure, output=tmp_path / "turned.parquet")
        remedy = "put them in its order with `ldp merge" if secure else "perturb again"
        said = f"holds reports of other nodes than the graph mine has, or in another order; {remedy}"
        with pytest.raises(ArtifactError, match=said):
            check_graph(path, AnswersFile(path, MAKE).meta, graph, tmp_path, "perturb again")


def test_secure_reports_cannot_be_drawn_again(tmp_path: Path) -> None:
    features = own(tmp_path / "features.parquet", wide())
    found = []
    for name in ("one", "two", "three"):
        path = perturb_own(features, "pm", seeds=(0,), secure=True, output=tmp_path / f"{name}.parquet")
        found.append(values(path, 0))
    assert found[0] != found[1] != found[2] != found[0]


def test_two_collections_from_the_same_people_are_two_releases(tmp_path: Path) -> None:
    features = own(tmp_path / "features.parquet", wide())
    one, two = (
        read_meta(perturb_own(features, seeds=(0,), secure=True, output=tmp_path / f"{name}.parquet"), MAKE)
        for name in ("one", "two")
    )
    assert one["release"] != two["release"]
    assert ledger_from_meta([one, two]).total().epsilon == 2 * one["epsilon"]
    assert ledger_from_meta([one, one]).total().epsilon == one["epsilon"]


def test_a_secure_file_says_nothing_that_depends_on_the_data(tmp_path: Path) -> None:
    one = own(tmp_path / "one.parquet", wide())
    two = own(tmp_path / "two.parquet", wide().set_column(1, "a", pa.array([1.0, None, 7.0, math.inf])))
    first, second = (
        read_meta(perturb_own(path, seeds=(0,), secure=True, output=tmp_path / f"out-{path.name}"), MAKE)
        for path in (one, two)
    )
    # What tells two collections apart is random, and the same number in both of its places.
    for meta in (first, second):
        assert meta["ledger"][0].pop("source") == meta.pop("release")
    assert first == second
    assert first["random"] == {"generator": "operating system", "reproducible": False}
    assert file_hash(one) not in str(first)


class Patched:
    """In place of the system's randomness: a generator that starts anew, so that two collections can be compared."""

    def __init__(self) -> None:
        self._rng = generator(11, "patched")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)


def thirty(extra: tuple[tuple[str, str, float], ...] = ()) -> pa.Table:
    """Thirty people as triples, feature by feature, so that their order tells who has what; and further ones."""
    cells = [("p17", "x0", 0.0), *extra]
    cells += [(f"p{i:02d}", f"x{(3 * i + k) % 10}", 1.0) for k in range(3) for i in range(30)]
    node, feature, value = zip(*sorted(cells, key=lambda cell: (cell[1], cell[0])), strict=True)
    return pa.table({"node": node, "feature": feature, "value": value})


VOCABULARY = [*(f"x{j}" for j in range(10)), "hiv", "rare"]


@pytest.mark.parametrize("mechanism", ["mb", "pm", "lp", "hm", "privset", "subset", "oue", "olh", "ppm-safe"])
def test_one_record_moves_her_own_report_and_nothing_else(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rare feature, one that is not declared, a missing and an excessive value: all within one person's record."""
    monkeypatch.setattr("graphldp.experiment.collection.SecureSource", Patched)
    monkeypatch.setattr("graphldp.experiment.devices.os.urandom", lambda count: bytes(count))
    (tmp_path / "names.txt").write_text("\n".join(VOCABULARY))
    records = {"without": (), "with": (("p04", "hiv", 1.0),), "odd": (("p04", "unheard-of", 9.0), ("p04", "hiv", 0.3))}
    records["again"] = (("p04", "x2", 0.5), ("p04", "rare", math.nan), ("p04", "hiv", 2.0))
    tables = []
    for name, extra in records.items():
        path = own(tmp_path / f"{name}.csv", thirty(extra))
        given = {"features_file": tmp_path / "names.txt", "output": tmp_path / f"{name}.parquet"}
        perturb_own(path, mechanism, 20.0, seeds=(0,), secure=True, **given)
        tables.append(read_table(tmp_path / f"{name}.parquet", MAKE))
        meta = read_meta(tmp_path / f"{name}.parquet", MAKE)
        assert (meta["dimensions"], meta["nodes"], meta["dataset"]) == (len(VOCABULARY), 30, "mine")
    first = tables[0]
    others = [row for row in first.to_pylist() if row["id"] != "p04"]
    assert len(others) == 29
    for table in tables:
        assert table.schema.equals(first.schema, check_metadata=True)
        assert [row for row in table.to_pylist() if row["id"] != "p04"] == others
    # Hers does move, or nothing would have been compared. Of sets of which one item is drawn it may be another one.
    if mechanism in ("mb", "pm", "lp", "hm", "privset"):
        assert any(not table.equals(first) for table in tables)


def test_one_device_has_as_many_dimensions_as_all_of_them(tmp_path: Path) -> None:
    for name, triple in (("one", ("me", "5", 1.0)), ("none", ("me", "", None))):
        table = pa.table({key: [value] for key, value in zip(("node", "feature", "value"), triple, strict=True)})
        path = own(tmp_path / f"{name}.csv", table)
        output = tmp_path / f"{name}.parquet"
        meta = read_meta(perturb_own(path, seeds=(0,), secure=True, dimensions=12, output=output), MAKE)
        assert (meta["dimensions"], meta["nodes"]) == (12, 1)


@pytest.mark.parametrize("form", ["triples", "lists"])
def test_secure_needs_a_declared_vocabulary(form: str, tmp_path: Path) -> None:
    lists = pa.table({"node": ["a", "b"], "vector": [[0.5, 1.0], [0.0, 0.25]]})
    features = own(tmp_path / "features.parquet", triples() if form == "triples" else lists)
    with pytest.raises(OptionError, match="--secure needs the features declared, with --features-file FILE or --dim"):
        perturb_own(features, seeds=(0,), secure=True)
    assert files(tmp_path) == ["features.parquet"]
    said: list[str] = []
    perturb_own(features, say=said.append)
    assert len(said) == 1
    assert " in all, are those that occur in" in said[0]


@pytest.mark.parametrize("mechanism", ["privset", "subset", "oue", "olh"])
def test_a_value_between_the_ends_stops_no_set(mechanism: str, tmp_path: Path) -> None:
    """It counts as the nearer end, the middle as the low one, and so does a value that is missing."""
    rounded = {0.0: 0.0, 0.2: 0.0, 0.45: 0.0, None: 0.0, 0.46: 0.9, 0.9: 0.9, 5.0: 0.9}
    found = []
    for name, column in (("given", rounded.keys()), ("ends", rounded.values())):
        table = pa.table({"node": [f"p{i}" for i in range(len(rounded))], "a": list(column), "b": [0.9] * len(rounded)})
        path = own(tmp_path / f"{name}.parquet", table)
        path = perturb_own(path, mechanism, 2.0, high=0.9, output=tmp_path / f"{name}-out.parquet")
        found.append(read_table(path, MAKE))
        claim = read_meta(path, MAKE)["claim"]["outside"]
        assert claim == (
            "values are clamped to [low, high] first; a missing one counts as 0.45; one between the ends counts as the "
            "nearer end, the middle as low"
        )
    assert found[0].equals(found[1])


def test_the_screen_alone_is_told_what_was_read_otherwise(tmp_path: Path) -> None:
    said: list[str] = []
    table = wide().set_column(1, "a", pa.array([7.0, None, 0.0, 1.0]))
    path = perturb_own(own(tmp_path / "x.csv", table), missing=0.25, say=said.append)
    assert said == [
        "1 value outside the range, moved to its nearer end; 1 value missing, replaced (said here, and nowhere in the "
        "file)"
    ]
    meta = read_meta(path, MAKE)
    assert meta["claim"]["outside"] == "values are clamped to [low, high] first; a missing one counts as 0.25"
    assert "mended" not in str(meta)


def test_a_collection_replaces_nothing_and_nothing_replaces_it(data: Path, tmp_path: Path) -> None:
    features = own(tmp_path / "features.parquet", wide())
    seeded, real = tmp_path / "seeded.parquet", tmp_path / "real.parquet"
    perturb_own(features, output=seeded)
    perturb_own(features, seeds=(0,), secure=True, output=real)
    before = seeded.read_bytes(), real.read_bytes()
    with pytest.raises(OptionError, match="is there already, and --secure replaces nothing: name another --output"):
        perturb_own(features, seeds=(0,), secure=True, output=seeded)
    cost = "has spent epsilon 1 of everybody in it; a second collection spends 2 more, 3 in all: name another --output"
    with pytest.raises(OptionError, match=cost):
        perturb_own(features, "pm", 2.0, seeds=(0,), secure=True, output=real)
    for again in (lambda: perturb_own(features, output=real), lambda: perturb(data, output=real)):
        with pytest.raises(ArtifactError, match="holds real reports, which nobody can draw again: name another"):
            again()
    assert (seeded.read_bytes(), real.read_bytes()) == before
    perturb_own(features, output=seeded)  # a rehearsal is repeated as often as one likes


@pytest.mark.parametrize("seeds", [(0, 1), (0, -1), ()])
def test_secure_means_one_report_of_each_person(seeds: tuple[int, ...], tmp_path: Path) -> None:
    features = own(tmp_path / "features.parquet", wide())
    with pytest.raises(OptionError, match="--seeds must be 1 and --search-seeds 0, got"):
        perturb_own(features, seeds=seeds, secure=True)
    assert files(tmp_path) == ["features.parquet"]


def test_the_one_report_serves_every_run(tmp_path: Path) -> None:
    path = perturb_own(own(tmp_path / "features.parquet", wide()), seeds=(0,), secure=True)
    file = AnswersFile(path, MAKE)
    for seed in (0, 1, 9, -1):
        np.testing.assert_array_equal(file.load(seed).value, file.load(0).value)


# what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0.0}, "mb: epsilon must be finite and > 0, got 0.0; to send nothing about the data use"),
        ({"epsilon": -1.0}, "epsilon must be finite and > 0, got -1.0"),
        ({"epsilon": math.nan}, "epsilon must be finite and > 0, got nan"),
        ({"epsilon": math.inf}, "epsilon must be finite and > 0, got inf"),
        ({"mechanism": "mbb"}, "unknown mechanism 'mbb'; did you mean 'mb'?"),
        ({"mechanism": "null"}, "null: epsilon must be 0, got 1.0"),
        ({"mechanism": "identity"}, "identity: epsilon must be inf, got 1.0"),
        ({"options": {"m": 25}}, "m must be a whole number from 1 to the 24 dimensions, got 25"),
        ({"options": {"m": 0}}, "m must be a whole number from 1 to the 24 dimensions, got 0"),
        ({"options": {"m": 1.5}}, "m must be a whole number from 1 to the 24 dimensions, got 1.5"),
        ({"mechanism": "lp", "options": {"m": 2}}, "lp reports every dimension: m must be left out, or be 24; got 2"),
        ({"options": {"nonsense": 1}}, "mb has no option 'nonsense'"),
        ({"options": {"epsilon": 9}}, "epsilon is no further option of mb, got 9"),
        ({"options": {"low": -9}}, "low is no further option of mb, got -9"),
        ({"options": {"dimensions": 2}}, "dimensions is no further option of mb, got 2"),
        ({"options": {"name": "pm"}}, "name is no further option of mb, got 'pm'"),
    ],
    ids=str,
)
def test_what_cannot_be_is_one_line(change: dict[str, Any], words: str, data: Path) -> None:
    before = files(data)
    with pytest.raises(OptionError) as error:
        perturb(data, **{"mechanism": "mb", "epsilon": 1.0, **change})
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert files(data) == before


def test_a_graph_that_is_not_there_says_how_to_get_it(data: Path) -> None:
    with pytest.raises(ArtifactError, match="does not exist; make it with `ldp download cora`"):
        perturb_graph(Cell(dataset="cora", mechanism="mb", epsilon=1.0), data=data, seeds=(0,))


@pytest.mark.parametrize(
    ("table", "bounds", "words"),
    [
        (wide(), (1.0, 0.0), "needs finite low < high, got low 1.0 and high 0.0"),
        (wide(), (1.0, 1.0), "needs finite low < high, got low 1.0 and high 1.0"),
        (wide(), (0.0, math.nan), "needs finite low < high, got low 0.0 and high nan"),
        (wide(), (-math.inf, 1.0), "needs finite low < high"),
        (wide().set_column(1, "a", pa.array(["1", "2", "3", "x"])), (0.0, 1.0), "column 'a' is not numeric (string)"),
        (wide().set_column(0, "node", pa.array(["x", "y", "x", "z"])), (0.0, 1.0), "node 'x' stands in two rows"),
        (wide().drop_columns(["node"]), (0.0, 1.0), "missing column 'node'"),
        (wide().select(["node"]), (0.0, 1.0), "no feature columns"),
        (triples(), (0.5, 1.0), "triples leave zeros out, so the declared range must hold 0"),
    ],
)
def test_a_file_that_breaks_a_rule_is_one_line(
    table: pa.Table, bounds: tuple[float, float], words: str, tmp_path: Path
) -> None:
    path = own(tmp_path / "features.parquet", table)
    with pytest.raises(DataError) as error:
        perturb_own(path, low=bounds[0], high=bounds[1])
    assert words in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    assert files(tmp_path) == ["features.parquet"]


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file; give the features as"):
        perturb_own(tmp_path / "features.csv")


def test_a_device_is_made_for_its_graph(data: Path) -> None:
    graph = store(data, "other", dimensions=10)
    device = device_for(graph, "pm", 1.5, {"m": 2})
    assert (device.dimensions, device.low, device.high, device.m, device.epsilon) == (10, 0.0, 1.0, 2, 1.5)


@pytest.mark.parametrize("value", ["x", "", True, -1, math.nan, math.inf, [], [1, 2], {}], ids=repr)
@pytest.mark.parametrize(
    ("mechanism", "option"),
    [("mb", "m"), ("mb", "m_rule"), ("mb", "fill"), ("gm", "delta"), ("ppm-public", "levels"), ("featurerr", "theta")],
)
def test_an_option_of_a_wrong_kind_is_one_line(mechanism: str, option: str, value: Any, data: Path) -> None:
    """`--set` brings whatever JSON can say."""
    with pytest.raises(OptionError, match=option) as error:
        perturb(data, mechanism, options={option: value})
    assert "\n" not in str(error.value)
