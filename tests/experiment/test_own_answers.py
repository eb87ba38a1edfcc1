"""People's own answers from files: no value of theirs stops a report, and none is told by what is missing."""

from __future__ import annotations

import numpy as np

from graphldp.client import protocol
from graphldp.experiment.collection import UNDECLARED, OwnAnswers, own_beside
from graphldp.experiment.options import Further


def labels_sent(labels: np.ndarray, *, secure: bool = False) -> tuple[list[int], np.ndarray]:
    """Return who has sent a label, and which, where hardly any is changed on the way."""
    count = len(labels)
    further = Further(labels="krr", epsilon_labels=30.0)
    beside = own_beside(further, [str(one) for one in range(count)], classes=4, labels=labels)
    device = protocol("mb", epsilon=1.0, dimensions=2, low=0.0, high=1.0)
    people = OwnAnswers(
        name="own", device=device, features=np.zeros((count, 2)), beside=beside, root=0, secure=secure,
        facts={"dataset": "own", "input": None, "random": {"reproducible": not secure}},
    )  # fmt: skip
    _, told = people.questions(0)
    assert people.meta("", [0])["ledger"][-1]["epsilon"] == 30.0
    return told.people.tolist(), np.asarray(told.answers.value).ravel()


def test_a_label_of_no_declared_class_is_reported_as_one_drawn_at_random() -> None:
    labels = np.full(4000, UNDECLARED, dtype=np.int32)
    labels[:3] = 2, -1, 0
    for secure in (False, True):
        people, sent = labels_sent(labels, secure=secure)
        assert people == [0, *range(2, 4000)]  # who has no label sends none, and that alone is told
        assert sent[:2].tolist() == [2, 0]
        shares = np.bincount(sent[2:], minlength=4) / len(sent[2:])
        np.testing.assert_allclose(shares, 0.25, atol=0.035)  # five standard errors
    assert labels[3] == UNDECLARED  # what people have is left as it is
