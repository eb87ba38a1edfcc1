"""Where an epoch's time goes: every torch operation timed by itself, and what the hardware would do the products in.

All times are the CPU time of the one thread that trains, so that other work on the machine hardly shows. The products
are afterwards repeated alone, on the same matrices: the best time of each is the hardware's limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["PARTS", "Breakdown", "breakdown"]

PARTS = ("sparse", "dense", "attention", "optimiser", "dropout", "loss", "other", "python")
DENSE = ("mm", "addmm", "bmm", "baddbmm", "matmul")
REPEATS = 15


@dataclass(eq=False)
class Product:
    """One kind of product: the operation, on arguments of these shapes."""

    call: Callable[[], Any]
    flops: float
    count: int = 0
    seconds: float = 0.0

    def alone(self) -> float:
        """Return the seconds of the best repetition, nothing else being done."""
        times = []
        with torch.no_grad():
            self.call()
            for _ in range(REPEATS):
                start = time.thread_time()
                self.call()
                times.append(time.thread_time() - start)
        return min(times)


@dataclass(eq=False)
class Breakdown:
    """CPU seconds of all epochs that were watched: by part, and of each kind of product."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    products: dict[tuple[Any, ...], Product] = field(default_factory=dict)
    operations: int = 0

    def record(self, epochs: int, epoch_seconds: float) -> dict[str, Any]:
        """Return milliseconds per epoch by part, and the rates of the products.

        Args:
            epochs: how many were watched.
            epoch_seconds: what an epoch takes unwatched: what no operation accounts for is Python's and autograd's.
        """
        parts = {part: 1e3 * seconds / epochs for part, seconds in self.seconds.items()}
        parts["python"] = max(0.0, 1e3 * epoch_seconds - sum(parts.values()))
        out: dict[str, Any] = {
            "epoch_ms": 1e3 * epoch_seconds,
            "parts_ms": parts,
            "operations": self.operations / epochs,
        }
        limit = 0.0
        for kind in ("sparse", "dense"):
            some = [one for key, one in self.products.items() if key[0] == kind]
            alone = sum(one.count * one.alone() for one in some)
            flops, spent = sum(one.count * one.flops for one in some), sum(one.seconds for one in some)
            limit += alone / epochs
            out[kind] = {
                "gflops": flops / spent / 1e9 if some else 0.0,
                "alone_gflops": flops / alone / 1e9 if some else 0.0,
                "limit_ms": 1e3 * alone / epochs,
            }
        return out | {"limit_ms": 1e3 * limit}


def shape_of(value: Any) -> Any:
    return (tuple(value.shape), value.layout) if isinstance(value, Tensor) else None


def work(name: str, args: tuple[Any, ...]) -> tuple[str, float] | None:
    """Return which kind of product an operation is, and its floating-point operations; None if it is none."""
    tensors = [value for value in args if isinstance(value, Tensor)]
    if any(value.layout == torch.sparse_csr for value in tensors):
        if name == "sparse_sampled_addmm":
            return "sparse", 2.0 * tensors[0]._nnz() * tensors[1].shape[1]
        if name in DENSE:
            return "sparse", 2.0 * tensors[-2]._nnz() * tensors[-1].shape[1]
        return None
    if name in DENSE:
        return "dense", 2.0 * math.prod(tensors[-2].shape) * tensors[-1].shape[-1]
    return None


class Clock(TorchDispatchMode):
    """Times each operation and books it on the part that is being computed."""

    def __init__(self, cost: float = 0.0) -> None:
        super().__init__()
        self.found, self.label, self.cost = Breakdown(), "", cost

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        start = time.thread_time()
        out = func(*args, **kwargs)
        seconds = max(0.0, time.thread_time() - start - self.cost)
        name = func.overloadpacket.__name__
        self.found.operations += 1
        product = work(name, args)
        if product is None:
            self.found.seconds[self.label or "other"] += seconds
            return out
        kind, flops = product
        self.found.seconds[kind] += seconds
        key = (kind, name, flops, *map(shape_of, args))
        if key not in self.found.products:
            given = [value.detach() if isinstance(value, Tensor) else value for value in args]
            self.found.products[key] = Product(lambda: func(*given, **kwargs), flops)
        one = self.found.products[key]
        one.count += 1
        one.seconds += seconds
        return out


def cost_of_watching() -> float:
    """Return the seconds that are booked for an operation that does nothing: they are the watching's own."""
    clock, one = Clock(), torch.zeros(1)
    with clock:
        for _ in range(300):
            one.detach()
    return clock.found.seconds["other"] / 300


@contextmanager
def labelled(clock: Clock) -> Iterator[None]:
    """While it lasts, operations inside of the optimiser, the dropout, the loss and attention are booked on these."""
    from graphldp.learn.models.attention import _Attention
    from graphldp.learn.noise import DropoutNoise
    from graphldp.learn.optim import Adam
    from graphldp.learn.tasks.classification import Classes, _CrossEntropy

    places = [
        (Adam, "step", "optimiser"),
        (DropoutNoise, "start", "dropout"),
        (DropoutNoise, "__call__", "dropout"),
        (Classes, "loss", "loss"),
        (Classes, "validate", "loss"),
        (_CrossEntropy, "backward", "loss"),
        (_Attention, "forward", "attention"),
        (_Attention, "backward", "attention"),
    ]
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in places]
    for owner, name, label in places:
        setattr(owner, name, wrapped(owner.__dict__[name], clock, label))
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def wrapped(function: Any, clock: Clock, label: str) -> Any:
    static = isinstance(function, staticmethod)
    inner = function.__func__ if static else function

    def call(*args: Any, **kwargs: Any) -> Any:
        outer, clock.label = clock.label, clock.label or label
        try:
            return inner(*args, **kwargs)
        finally:
            clock.label = outer

    return staticmethod(call) if static else call


def breakdown(train: Callable[[int], None], epochs: int) -> dict[str, Any]:
    """Return where the time of an epoch goes.

    Args:
        train: trains for so many epochs, anew at each call, in this thread.
        epochs: how many to watch.
    """

    def spent(some: int) -> float:
        start = time.thread_time()
        train(some)
        return time.thread_time() - start

    train(1)
    # What is done once per training is in both.
    epoch_seconds = (spent(epochs + 1) - spent(1)) / epochs
    cost = cost_of_watching()
    short, long = Clock(cost), Clock(cost)
    for clock, some in ((short, 1), (long, epochs + 1)):
        with labelled(clock), clock:
            train(some)
    for part, seconds in short.found.seconds.items():
        long.found.seconds[part] -= seconds
    long.found.operations -= short.found.operations
    for key, one in short.found.products.items():
        long.found.products[key].count -= one.count
        long.found.products[key].seconds -= one.seconds
    return long.found.record(epochs, epoch_seconds)
