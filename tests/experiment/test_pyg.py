"""`PrivateFeatures`: a torch_geometric script gets estimates in the place of features, and nothing else."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from cell_factory import small_graph
from numpy.typing import NDArray

from graphldp.datasets.memory import as_graph
from graphldp.errors import DataError, GraphLDPError, OptionError
from graphldp.experiment.conversation import conversation_of
from graphldp.experiment.options import Settings
from graphldp.graph import Graph
from graphldp.methods import method
from graphldp.pyg import PrivateFeatures
from graphldp.server import rectify

with warnings.catch_warnings():  # torch_geometric compiles a class with torch.jit as it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.data import Data, HeteroData
    from torch_geometric.transforms import Compose

SILENT = ("majority", "structure")  # which nobody tells anything
OTHERS = ("frontier", "togl-fda", "heterorr")  # which ask in turns, or learn from reports as they are


def data_of(graph: Graph) -> Data:
    edges = torch.from_numpy(np.hstack([graph.edges, graph.edges[::-1]]).astype(np.int64))
    labels = torch.from_numpy(graph.labels.astype(np.int64))
    features = torch.from_numpy(graph.features.toarray())
    return Data(x=features, edge_index=edges, y=labels, train_mask=labels == 0, weight=torch.ones(3))


@pytest.fixture(scope="module")
def data() -> Data:
    return data_of(small_graph())


def plainly(data: Data, seed: int, steps: int) -> NDArray[np.float64]:
    """Return what the server makes of the reports, by matrices that are whole."""
    graph = as_graph((data.x, data.edge_index, None))
    asked = conversation_of(graph, method("lpgnn"), "mb", 2.0, Settings(seed=seed))
    (question,) = asked.questions(0)
    estimate = rectify(question.answers)
    matrix = estimate.deviations().toarray().astype(np.float64)
    matrix /= np.sqrt(np.square(matrix).mean())
    adjacency = np.zeros((graph.nodes, graph.nodes))
    adjacency[tuple(data.edge_index.numpy())] = 1.0
    degree = np.sqrt(np.maximum(adjacency.sum(axis=1), 1.0))
    for _ in range(steps):
        matrix = (adjacency / degree / degree[:, None]) @ matrix
    return matrix


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_features_become_filtered_estimates_and_nothing_else_moves(data: Data, steps: int) -> None:
    before = copy.deepcopy(data)
    found = PrivateFeatures(epsilon=2, seed=5, steps=steps)(data)
    assert found.x.dtype == torch.float32
    np.testing.assert_allclose(found.x.numpy(), plainly(data, 5, steps), atol=2e-5)
    for name in ("edge_index", "y", "train_mask", "weight"):
        assert torch.equal(found[name], before[name])
    assert torch.equal(data.x, before.x)  # of the caller


def test_a_second_call_spends_nothing_and_another_seed_does(data: Data) -> None:
    transform = PrivateFeatures(epsilon=2, seed=5)
    first, second = transform(data), transform(data)
    assert torch.equal(first.x, second.x)
    assert transform.spent.text() == "total epsilon per user: features 2.0"
    assert not torch.equal(first.x, PrivateFeatures(epsilon=2, seed=6)(data).x)
    changed = data.clone()
    changed.x = 1 - changed.x
    transform(changed)  # the same people with other features: a second report of everybody
    assert transform.spent.text() == "total epsilon per user: features 2.0 + features 2.0 = 4.0"


def test_labels_decide_nothing(data: Data) -> None:
    other = data.clone()
    other.y = torch.rand(len(other.y))  # of a regression, which are no classes
    transform = PrivateFeatures(epsilon=2, seed=5)
    assert torch.equal(transform(other).x, transform(data).x)


@pytest.mark.parametrize("name", ["base", "upgnet-nh", "upgnet-hn", "ldpge", "ppgnn"])
def test_every_method_that_asks_once_and_filters(data: Data, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Compose([PrivateFeatures(epsilon=1, seed=0, method=name)])(data)
    assert found.x.shape == data.x.shape
    assert bool(torch.isfinite(found.x).all())


@pytest.mark.parametrize("name", [*SILENT, *OTHERS])
def test_what_makes_no_features_is_refused_before_anybody_is_asked(name: str) -> None:
    with pytest.raises(OptionError, match=f"method '{name}' does not make features of reports that everybody sends"):
        PrivateFeatures(epsilon=1, seed=0, method=name)


@pytest.mark.parametrize(
    ("given", "changes", "error", "words"),
    [
        (None, {"x": None}, DataError, "has no x or no edge_index"),
        (None, {"edge_index": None}, DataError, "has no x or no edge_index"),
        (HeteroData(), {}, DataError, "takes a torch_geometric Data, got HeteroData"),
        (None, {"x": torch.full((90, 24), 7.0)}, DataError, "outside of the declared range 0 to 1"),
    ],
)
def test_what_is_no_graph_is_one_line(
    data: Data, given: Any, changes: dict[str, Any], error: type[GraphLDPError], words: str
) -> None:
    value = data.clone() if given is None else given
    for name, change in changes.items():
        value[name] = change
    with pytest.raises(error, match=words):
        PrivateFeatures(epsilon=1, seed=0)(value)


def test_a_seed_has_to_be_given_and_options_are_the_mechanisms() -> None:
    with pytest.raises(TypeError, match="seed"):
        PrivateFeatures(epsilon=1)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="seed must be a whole number, got None"):
        PrivateFeatures(epsilon=1, seed=None)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="'nosuch'"):
        PrivateFeatures(epsilon=1, seed=0, nosuch=1)(data_of(small_graph()))
    assert repr(PrivateFeatures(epsilon=1, seed=0, mechanism="pm")) == "PrivateFeatures(lpgnn, pm, epsilon=1)"
