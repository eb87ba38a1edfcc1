from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse as sp

from graphldp.datasets import spec
from graphldp.datasets.arrays import from_arrays
from graphldp.datasets.build import parse
from graphldp.errors import DataError, OptionError


def npz(**changes: object) -> dict[str, bytes]:
    adjacency = sp.csr_array(np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0]], dtype="<f4"))
    attributes = sp.csr_array(np.array([[3, 0, 0], [0, 0, 0], [0, 1, 7]], dtype="<f4"))
    parts: dict[str, object] = {"labels": np.array([1, 0, 1])}
    for prefix, matrix in (("adj", adjacency), ("attr", attributes)):
        for part in ("data", "indices", "indptr"):
            parts[f"{prefix}_{part}"] = getattr(matrix, part)
        parts[f"{prefix}_shape"] = np.array(matrix.shape)
    # The original carries names as object arrays, which need a pickle to read.
    parts["node_names"] = np.array(["a", "b", None], dtype=object)
    parts = {name: value for name, value in (parts | changes).items() if value is not None}
    buffer = io.BytesIO()
    np.savez(buffer, **parts)
    return {"ms_academic_cs.npz": buffer.getvalue()}


def test_directed_links_become_undirected_and_counts_become_presence() -> None:
    graph = parse(spec("co-cs"), npz())
    assert graph.edges.T.tolist() == [[0, 1], [0, 2]]
    assert graph.self_loops.tolist() == [1]
    assert graph.features.toarray().tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]
    assert graph.labels.tolist() == [1, 0, 1]
    assert graph.classes == 2


def test_damage_is_one_line_and_no_pickle_is_opened() -> None:
    for given, message in (
        ({"x.npz": b"PK nonsense"}, "x.npz: not a graph of gnn-benchmark"),
        (npz(adj_data=None), "not a graph of gnn-benchmark"),
        (npz(labels=np.array([1, None, 0], dtype=object)), "Object arrays cannot be loaded when allow_pickle=False"),
        ({**npz(), "y.npz": b""}, "expected one .npz file"),
    ):
        with pytest.raises(DataError, match=message):
            parse(spec("co-cs"), given)


def test_dense_arrays_are_clamped_to_the_declared_range() -> None:
    graph = from_arrays(
        name="flickr",
        features=np.array([[0.5, 2.0], [-3.0, 0.0], [0.25, 1.0]]),
        edges=np.array([[0, 1, 2, 2], [1, 0, 0, 2]]),
        labels=np.array([[0.0], [np.nan], [3.0]]),
        value_range=(-1.0, 1.0),
        provenance={},
    )
    assert graph.features.toarray().tolist() == [[0.5, 1.0], [-1.0, 0.0], [0.25, 1.0]]
    assert graph.features.nnz == 5
    assert graph.labels.tolist() == [0, -1, 3]
    assert graph.edges.T.tolist() == [[0, 1], [0, 2]]
    assert graph.self_loops.tolist() == [2]


def test_dense_arrays_have_rules() -> None:
    good = {"edges": np.array([[0], [1]]), "provenance": {}, "name": "x", "value_range": (0.0, 1.0)}
    with pytest.raises(DataError, match="2 nodes need 2 labels, got 3"):
        from_arrays(features=np.ones((2, 2)), labels=np.zeros(3), **good)
    with pytest.raises(DataError, match="not finite"):
        from_arrays(features=np.array([[np.nan], [1.0]]), labels=np.zeros(2), **good)
    with pytest.raises(DataError, match=r"must hold 0, .* got 1\.\.2"):
        from_arrays(features=np.ones((2, 2)), labels=np.zeros(2), **(good | {"value_range": (1.0, 2.0)}))


def test_loaders_graphs_are_not_parsed_from_files() -> None:
    with pytest.raises(OptionError, match="read by the loader of another library"):
        parse(spec("flickr"), {})
