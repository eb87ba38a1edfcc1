from __future__ import annotations

import pytest
import torch
from learn_factory import small_problem, varied_runs

from graphldp.learn import Options, fit, model
from graphldp.learn.denormals import flushed_denormals
from graphldp.learn.tasks.classification import Classes


def product() -> float:
    return float(torch.full((4,), 1e-30).mul_(1e-10).count_nonzero())


@pytest.mark.parametrize("before", [False, True])
def test_flushes_while_it_lasts_and_leaves_the_thread_as_it_was(before: bool) -> None:
    if not torch.set_flush_denormal(before):
        pytest.skip("this processor cannot flush denormal numbers")
    try:
        assert (product() == 0) == before
        with flushed_denormals():
            assert product() == 0
        assert (product() == 0) == before
        with pytest.raises(ValueError, match="stop"), flushed_denormals():
            raise ValueError("stop")
        assert (product() == 0) == before
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("threads", [1, 2])
def test_training_flushes_in_every_thread_and_nothing_stays(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush denormal numbers")
    monkeypatch.setattr("graphldp.learn.parallel.LEAST_UNITS", 1)
    seen, whole = [], Classes.loss

    def watched(self: Classes, *rest: object) -> torch.Tensor:
        seen.append(product())
        return whole(self, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Classes, "loss", watched)
    problem, labels = small_problem()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        fit(problem, varied_runs(problem, labels), Options(model=model("gcn", hidden=4), epochs=3), device="cpu")
    finally:
        torch.set_num_threads(before)
    assert seen
    assert set(seen) == {0.0}
    assert product() != 0
