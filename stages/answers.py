"""What people have answered who were asked in turn, as an artifact: each of them was asked one question, of several.

Rows are (seed, node) in the order in which people were asked. `question` says which one it was, `index` and `value`
what a teacher reported of her features, `named` the classes that a voter named. Index holds a feature's number in the
graph; it is empty where the mechanism reports everything that was asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphldp.client import Reports
from graphldp.experiment.survey import VOTE, Question, heard
from graphldp.server.voting import Surveyed
from graphldp.stages.artifacts import ParquetSink
from graphldp.stages.reports import SeedFile

__all__ = ["SurveyFile", "write_survey"]

_COLUMNS = ("seed", "node", "question", "index", "value", "named")
_OWN = ("mechanism", "options", "epsilon", "delta", "dimensions", "m", "low", "high", "claim")


def write_survey(path: Path, seeds: Iterable[tuple[int, Sequence[Question]]], meta: Mapping[str, Any]) -> None:
    """Write everybody's answers, with what each seed's questions were among the metadata."""
    found = dict(seeds)
    asked = {str(seed): {one.name: _facts(one, meta) for one in questions} for seed, questions in found.items()}
    tables = [_table(seed, questions) for seed, questions in found.items()]
    with ParquetSink(path, tables[0].schema, {**meta, "questions": asked}) as sink:
        for table in tables:
            sink.write(table)


def _facts(question: Question, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a question adds to the survey's facts: all of a vote's, and in what else it differs."""
    own = dict(question.answers.meta)
    if question.name == VOTE:
        return own
    differs = {key: own[key] for key in _OWN if own[key] != meta[key]}
    every = len(question.features) == meta["dimensions"]
    return differs | ({} if every else {"features": question.features.tolist()})


def _table(seed: int, questions: Sequence[Question]) -> pa.Table:
    people = [len(one.people) for one in questions]
    index, value, named = [], [], []
    width = questions[0].answers.value.dtype
    for one in questions:
        answers, count = one.answers, len(one.people)
        vote = one.name == VOTE
        index.append(_nulls(count, pa.int32()) if vote or answers.index is None else _lists(_numbers(one)))
        value.append(_nulls(count, pa.from_numpy_dtype(width)) if vote else _lists(np.asarray(answers.value)))
        named.append(_lists(np.asarray(answers.value)) if vote else _nulls(count, pa.int16()))
    columns = (
        pa.array(np.full(sum(people), seed, dtype=np.int32)),
        pa.array(np.concatenate([one.people for one in questions]).astype(np.int32)),
        pa.array([one.name for one, count in zip(questions, people, strict=True) for _ in range(count)]),
        *(pa.concat_arrays(parts) for parts in (index, value, named)),
    )
    return pa.table(dict(zip(_COLUMNS, columns, strict=True)))


def _numbers(question: Question) -> NDArray[np.int32]:
    """Return the features that were reported by their number in the graph; unused places stay at -1."""
    index = np.asarray(question.answers.index)
    return np.where(index < 0, -1, question.features[np.maximum(index, 0)]).astype(np.int32)


def _lists(rows: NDArray[Any]) -> pa.ListArray:
    count, width = rows.shape
    offsets = pa.array(np.arange(0, count * width + 1, max(width, 1), dtype=np.int32)[: count + 1])
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(rows).reshape(-1)))


def _nulls(count: int, kind: pa.DataType) -> pa.ListArray:
    return pa.nulls(count, pa.list_(kind))


class SurveyFile(SeedFile):
    """A Survey artifact."""

    kind = "survey"

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Return what was asked for one seed, and what people said."""
        table, asked = self.group(seed), self.meta["questions"][str(seed)]
        order = pc.unique(table["question"]).to_pylist()
        return tuple(
            self._question(name, asked[name], table.filter(pc.equal(table["question"], name))) for name in order
        )

    def _question(self, name: str, facts: Mapping[str, Any], part: pa.Table) -> Question:
        people = np.asarray(part["node"].to_numpy(), dtype=np.int64)
        features = np.asarray(facts.get("features", range(self.meta["dimensions"])), dtype=np.int64)
        if name == VOTE:
            answers = Reports(value=self.rectangle(part, "named"), meta=facts)
            return Question(name=name, people=people, features=features, answers=answers)
        index = None
        if not part["index"].null_count:
            numbers = self.rectangle(part, "index")
            index = np.where(numbers < 0, -1, np.searchsorted(features, numbers)).astype(np.int32)
        meta = {key: facts.get(key, self.meta[key]) for key in _OWN}
        answers = Reports(
            index=index, value=self.rectangle(part, "value"), meta={**meta, "epsilon": float(meta["epsilon"])}
        )
        return Question(name=name, people=people, features=features, answers=answers)

    def load(self, seed: int) -> Surveyed:
        """Return what a learner gets of one seed's survey."""
        return heard(self.questions(seed), int(self.meta["nodes"]), int(self.meta["dimensions"]))

    def more(self, option: str) -> str:
        """Return what to do for more seeds."""
        return f"ask again with {option}, for example `{self.make} {option}`"
