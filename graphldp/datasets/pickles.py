"""Read the pickles of Planetoid without giving them the power of pickle.

A pickle is a program. These ones need six names: four that build arrays and two that build a dictionary of lists. Any
other name ends the reading before anything is called. The caller has verified the file's hash as well.
"""

from __future__ import annotations

import collections
import io
import pickle
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphldp.errors import DataError

__all__ = ["load_adjacency", "load_array", "load_sparse"]


class _SparseState:
    """Takes the place of scipy's matrix: it only holds the attributes that the pickle brings."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    _shape: tuple[int, int]


def _dtype(code: str, *_: object) -> np.dtype[Any]:
    # Old pickles pass align and copy as 0 and 1, which today's numpy deprecates.
    return np.dtype(code)


def _array(kind: type, shape: tuple[int, ...], code: bytes | str) -> NDArray[Any]:
    # What numpy's _reconstruct does for a plain array: an empty one, filled by the state that follows.
    if kind is not np.ndarray or shape != (0,):
        raise DataError("the pickle builds something other than a plain array")
    return np.ndarray.__new__(np.ndarray, shape, dtype=np.int8)


_ADMITTED: dict[tuple[str, str], Any] = {
    ("scipy.sparse.csr", "csr_matrix"): _SparseState,
    ("numpy.core.multiarray", "_reconstruct"): _array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise DataError(
                f"the pickle asks for {module}.{name}, which array data does not need; not opened"
            ) from None


def _load(content: bytes, name: str) -> Any:
    try:
        # latin1 is how Python 3 reads the byte strings of a Python 2 pickle.
        return _Restricted(io.BytesIO(content), encoding="latin1").load()
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise DataError(f"{name}: not a readable pickle ({error})") from error


def load_sparse(content: bytes, name: str) -> sp.csr_array:
    """Return the CSR matrix that a pickle holds."""
    state = _load(content, name)
    if not isinstance(state, _SparseState):
        raise DataError(f"{name}: expected a sparse matrix")
    return sp.csr_array((state.data, state.indices, state.indptr), shape=state._shape)


def load_array(content: bytes, name: str) -> NDArray[Any]:
    """Return the array that a pickle holds."""
    value = _load(content, name)
    if not isinstance(value, np.ndarray):
        raise DataError(f"{name}: expected an array")
    return value


def load_adjacency(content: bytes, name: str) -> dict[int, list[int]]:
    """Return the dictionary node -> neighbours that a pickle holds."""
    value = _load(content, name)
    if not isinstance(value, dict):
        raise DataError(f"{name}: expected a dictionary of neighbours")
    return value
