"""Pickles as Python 2 wrote Planetoid's: protocol 2, byte strings, the module names of that time."""

from __future__ import annotations

import struct

import numpy as np
import scipy.sparse as sp


def whole(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."


def array(values: np.ndarray) -> bytes:
    raw = np.ascontiguousarray(values).tobytes()
    state = b"(K\x01" + _tuple(values.shape) + _dtype(values.dtype) + b"I00\n" + _string(raw) + b"t"
    start = b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + b"K\x00\x85" + _string(b"b") + b"\x87R"
    return start + state + b"b"


def sparse(matrix: sp.csr_array) -> bytes:
    fields = {
        b"_shape": _tuple(matrix.shape),
        b"maxprint": b"K2",
        b"indices": array(matrix.indices.astype("<i4")),
        b"indptr": array(matrix.indptr.astype("<i4")),
        b"data": array(matrix.data.astype("<f4")),
    }
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + b"".join(_string(k) + v for k, v in fields.items()) + b"ub"


def adjacency(neighbours: dict[int, list[int]]) -> bytes:
    items = b"".join(_int(node) + b"](" + b"".join(map(_int, ends)) + b"e" for node, ends in neighbours.items())
    return b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(" + items + b"u"


def _int(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _tuple(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(_int, values)) + b"t"


def _string(value: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(value)) + value


def _dtype(kind: np.dtype) -> bytes:
    code = kind.str[1:].encode()
    return (
        b"cnumpy\ndtype\n" + _string(code) + b"K\x00K\x01\x87R"
        b"(K\x03" + _string(b"<") + b"NNN" + _int(-1) + _int(-1) + b"K\x00tb"
    )
