"""What people have answered, as an artifact: what `ldp perturb` writes, whatever it has asked.

Rows are (seed, node) in the order in which people were asked. Where everybody was asked one question, a row is a
report: `index` and `value`, and `level` where the mechanism reports one. Of several questions, `question` says which
one it was. `index` then holds a feature's number in the graph; it is empty where every feature was reported that the
question was about. Values of another type than the first question's stand in their own column, such as `value_int16`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphldp.client import Reports, from_meta
from graphldp.errors import ArtifactError
from graphldp.experiment.conversation import FURTHER, LINKS, Conversation, Once, Question, ask, conversation_of, most_of
from graphldp.experiment.options import Further, Settings, split_facts
from graphldp.graph import Graph
from graphldp.jsonable import plain
from graphldp.ledger import epsilon_text
from graphldp.methods import Method
from graphldp.progress import Progress
from graphldp.stages.files.artifacts import ParquetSink, expect, is_real
from graphldp.stages.files.belong import asked_for
from graphldp.stages.files.paths import PUBLIC, answers_path
from graphldp.stages.files.reports import ReportsMeta, SeedFile, write_reports

__all__ = [
    "AnswersFile",
    "check_asked",
    "check_further",
    "check_selection",
    "conversation_in",
    "draws_in",
    "further_in",
    "make_command",
    "open_answers",
    "with_draws",
    "write_answers",
    "write_questions",
]

REPORTS, ANSWERS = "reports", "answers"
_OWN = ("mechanism", "options", "epsilon", "delta", "dimensions", "m", "low", "high", "claim")


def make_command(dataset: str, recipe: Method, mechanism: str, epsilon: float, further: Further = PUBLIC) -> str:
    """Return the command that asks people for a row; what they report once depends on the mechanism alone."""
    method = "" if recipe.asking is None else f" --method {recipe.name}"
    command = f"ldp perturb --dataset {dataset}{method} --mechanism {mechanism} --epsilon {epsilon_text(epsilon)}"
    return command + further.command()


def with_draws(command: str, meta: Mapping[str, Any], params: Settings | None = None) -> str:
    """Return the command that asks people, with as many draws as a file has, and as these parameters need."""
    if ReportsMeta.of(meta).deterministic:
        return command  # one draw serves every run
    finals, searches = draws_in(meta)
    if params is not None:
        finals, searches = max(params.seeds, finals), max(params.search.seeds, searches)
    return f"{command} --seeds {finals} --search-seeds {searches}"


def draws_in(meta: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many draws a file has for final runs, and how many for a search."""
    seeds = ReportsMeta.of(meta).seeds
    finals = sum(seed >= 0 for seed in seeds)
    return finals, len(seeds) - finals


def open_answers(
    dataset: str,
    recipe: Method,
    mechanism: str,
    epsilon: float,
    data: Path,
    given: Path | None,
    name: str = "",
    further: Further = PUBLIC,
) -> AnswersFile:
    """Return what people have answered for a row, once it is of what was asked for.

    It is `given`, or stands in its usual place, under the `name` of the row where it answers several questions.
    """
    command = make_command(dataset, recipe, mechanism, epsilon, further)
    wanted: dict[str, Any] = {"dataset": dataset, "mechanism": mechanism, "epsilon": float(epsilon)}
    if recipe.asking is None:
        path = answers_path(data, dataset, mechanism, epsilon, further)
        kind = {"kind": ANSWERS if further.asked else REPORTS}
    else:
        path = answers_path(data, dataset, name or recipe.cell_name(mechanism), epsilon, further)
        kind = {"kind": ANSWERS, "method": recipe.name}
    if given is not None and not given.exists():
        raise ArtifactError(f"{given} does not exist; name the file of the answers, or leave it out for {path}")
    file = AnswersFile(given or path, command)
    check_further(file.path, file.meta, further)
    expect(file.meta, file.path, command, **kind)
    if given is not None or is_real(file.meta):
        asked_for(file.meta, file.path, wanted)
    expect(file.meta, file.path, command, **wanted)
    return file


def check_further(path: Path, meta: Mapping[str, Any], further: Further) -> None:
    """Refuse answers to other further questions than are meant; of what is calibrated also another server's choice."""
    found = further_in(meta)
    alike = found.facts() == further.facts() if meta.get("kind") == "calibrated" else (
        found.questions() == further.questions()
    )  # fmt: skip
    if not alike:
        same = found.questions() == further.questions()
        raise ArtifactError(
            f"{path} holds {_beside(found)} beside features, and {_beside(further)} is meant; say "
            f"`{found.command().strip() or 'no --labels'}`, or "
            + ("make it again with `ldp denoise`" if same else "ask people again with `ldp perturb`")
        )


def _beside(further: Further) -> str:
    return ", ".join(f"{name} {value}" for name, value in further.facts().items()) or "nothing"


def further_in(meta: Mapping[str, Any]) -> Further:
    """Return which further questions an artifact's answers are to."""
    facts: dict[str, Any] = dict(meta.get("further", {}))
    links = tuple(facts.pop("link_options", {}).items())
    return Further(**facts, link_options=links)


def conversation_in(meta: Mapping[str, Any], graph: Graph, recipe: Method) -> Conversation:
    """Return what the server makes of an artifact's answers; it asks nobody again."""
    if recipe.asking is None:
        return Once(graph=graph, device=from_meta(dict(meta)), settings=Settings())
    says = ReportsMeta.of(meta)
    return conversation_of(graph, recipe, says.mechanism, says.epsilon, Settings(), meta["given"])


def check_asked(path: Path, meta: Mapping[str, Any], recipe: Method) -> None:
    """Refuse answers to other questions than the method asks."""
    asking = recipe.asking
    for key, value in plain({} if asking is None else asking.shaping()).items():
        found = meta["rounds"].get(key)
        if found != value:
            raise ArtifactError(
                f"{path} was asked with {key} {found}, and the method means {value}; say --set method.{key}={found}, "
                "or ask again with `ldp perturb --method`"
            )


def check_selection(path: Path, facts: Mapping[str, Any], params: Settings) -> None:
    """Refuse answers to questions that were directed by labels, or links, which these parameters' splits hide."""
    now, usual = split_facts(params), {"split": "random", "parts": "nodes"}
    for key in dict.fromkeys((*usual, *now)):
        was, value = (one.get(key, usual.get(key)) for one in (facts, now))
        if was != value:
            raise ArtifactError(
                f"{path} was directed by other splits: {key} was {was}, and is {value} now; make it "
                "again from `ldp perturb` on, with the same parameters"
            )


def write_answers(
    path: Path,
    conversation: Conversation,
    content: str,
    seeds: Sequence[int],
    facts: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    *,
    ids: Sequence[str] | None = None,
    new: bool = False,
) -> Path:
    """Ask everybody for each seed, and write the answers.

    `content` is the graph's hash, `facts` more metadata. `ids` are the names under which people take part, and `new`
    says that nothing may have the file's name.
    """
    meta = {**conversation.meta(content, seeds), **(facts or {})}
    says = ReportsMeta.of(meta)
    words = f"{says.mechanism} at epsilon {epsilon_text(says.epsilon)}"

    def asked() -> Iterator[tuple[int, tuple[Question, ...]]]:
        most = most_of(conversation)
        for count, seed in enumerate(says.seeds, start=1):
            yield seed, ask(conversation, seed, most)
            if progress:
                progress(count, len(says.seeds), words)

    if meta["kind"] == REPORTS:
        write_reports(path, ((seed, only.answers) for seed, (only,) in asked()), meta, ids, new=new)
    else:
        write_questions(path, asked(), meta, ids, new=new)
    return path


def write_questions(
    path: Path,
    runs: Iterable[tuple[int, Sequence[Question]]],
    meta: Mapping[str, Any],
    ids: Sequence[str] | None = None,
    *,
    new: bool = False,
) -> None:
    """Write the answers to several questions, of each seed; `ids` and `new` are as `write_answers` has them."""
    tables, facts = [], {}
    for seed, questions in runs:
        facts[str(seed)] = {one.name: _facts(one, meta) for one in questions}
        tables.append(_table(seed, questions, ids))
    with ParquetSink(path, tables[0].schema, {**meta, "questions": facts}, new=new) as sink:
        for table in tables:
            sink.write(table)


def _facts(question: Question, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a question adds to the artifact's facts: in what it differs, or all of what is no mechanism."""
    own = dict(question.answers.meta)
    if "question" not in own:
        own = {key: value for key, value in own.items() if key not in _OWN or plain(value) != plain(meta[key])}
    every = question.further or len(question.features) == meta["dimensions"]
    return own if every else {**own, "features": question.features.tolist()}


def _columns(questions: Sequence[Question]) -> dict[str, str]:
    """Return in which column the values of each question stand."""
    first = questions[0].answers.value.dtype
    return {
        one.name: "value" if one.answers.value.dtype == first else f"value_{one.answers.value.dtype}"
        for one in questions
    }


def _table(seed: int, questions: Sequence[Question], ids: Sequence[str] | None) -> pa.Table:
    people = [len(one.people) for one in questions]
    who = np.concatenate([one.people for one in questions])
    columns: dict[str, Any] = {
        "seed": pa.array(np.full(sum(people), seed, dtype=np.int32)),
        "node": pa.array(who.astype(np.int32)),
        **({} if ids is None else {"id": pa.array(np.asarray(ids, dtype=object)[who])}),
        "question": pa.array([one.name for one, count in zip(questions, people, strict=True) for _ in range(count)]),
    }
    if any(one.answers.level is not None for one in questions):
        levels = [pa.nulls(len(one.people), pa.int32()) if one.answers.level is None
                  else pa.array(one.answers.level.astype(np.int32)) for one in questions]  # fmt: skip
        columns["level"] = pa.concat_arrays(levels)
    columns["index"] = pa.concat_arrays(
        [_nulls(one, pa.int32()) if one.answers.index is None else _lists(_numbers(one)) for one in questions]
    )
    place = _columns(questions)
    for name, dtype in {place[one.name]: one.answers.value.dtype for one in questions}.items():
        values = [
            _lists(np.asarray(one.answers.value))
            if place[one.name] == name
            else _nulls(one, pa.from_numpy_dtype(dtype))
            for one in questions
        ]
        columns[name] = pa.concat_arrays(values)
    return pa.table(columns)


def _numbers(question: Question) -> NDArray[np.int32]:
    """Return the features that were reported by their number in the graph; unused places stay at -1."""
    index = np.asarray(question.answers.index)
    return np.where(index < 0, -1, question.features[np.maximum(index, 0)]).astype(np.int32)


def _lists(rows: NDArray[Any]) -> pa.ListArray:
    count, width = rows.shape
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(width))
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(rows).reshape(-1)))


def _nulls(question: Question, kind: pa.DataType) -> pa.ListArray:
    return pa.nulls(len(question.people), pa.list_(kind))


def _told(table: pa.Table, column: str) -> bool:
    """Return whether people were asked for what stands in a column."""
    return column in table.column_names and not table.column(column).null_count


class AnswersFile(SeedFile):
    """An artifact of answers."""

    kinds = (REPORTS, ANSWERS)

    @property
    def once(self) -> bool:
        """Whether people were asked about their features once; they may have been asked for more beside these."""
        return self._alone or "rounds" not in self.meta

    @property
    def _alone(self) -> bool:
        """Whether nothing was asked but features, once."""
        return bool(self.meta["kind"] == REPORTS)

    def questions(self, seed: int) -> tuple[Question, ...]:
        """Return what was asked about features for one seed, and what people answered."""
        if self._alone:
            answers = self.load(seed)
            people, features = np.arange(answers.nodes), np.arange(self.says.dimensions)
            return (Question(name="features", people=people, features=features, answers=answers),)
        return tuple(one for one in self._all(seed) if not one.further)

    def further_questions(self, seed: int) -> tuple[Question, ...]:
        """Return what was asked beside features for one seed, and what people answered."""
        if self._alone:
            return ()
        return tuple(one for one in self._all(seed) if one.further)

    def _all(self, seed: int) -> tuple[Question, ...]:
        table, asked = self.group(seed), self.meta["questions"][str(self.draw(seed))]
        order = pc.unique(table["question"]).to_pylist()
        return tuple(
            self._question(name, dict(asked[name]), table.filter(pc.equal(table["question"], name))) for name in order
        )

    def _question(self, name: str, facts: dict[str, Any], part: pa.Table) -> Question:
        further = name in FURTHER
        others = facts["nodes"] if name == LINKS else 1 if further else self.says.dimensions
        features = np.asarray(facts.pop("features", range(others)), dtype=np.int64)
        meta = facts if "question" in facts else {**{key: self.meta[key] for key in _OWN}, **facts}
        index = None
        if _told(part, "index"):
            numbers = self.rectangle(part, "index")
            index = np.where(numbers < 0, -1, np.searchsorted(features, numbers)).astype(np.int32)
        values = [one for one in part.column_names if one.startswith("value") and _told(part, one)]
        answers = Reports(
            index=index,
            value=self.rectangle(part, values[0]),
            level=part.column("level").to_numpy() if _told(part, "level") else None,
            meta={**meta, "epsilon": float(meta["epsilon"])},
        )
        people = np.asarray(part.column("node").to_numpy(), dtype=np.int64)
        return Question(name=name, people=people, features=features, answers=answers, further=further)

    def load(self, seed: int) -> Reports:
        """Return the reports of one seed, where everybody was asked once."""
        if not self._alone and self.once:
            return self.questions(seed)[0].answers
        if not self._alone:
            raise ArtifactError(
                f"{self.path} holds answers to several questions, of method {self.meta['method']}; give what people "
                f"report once, as `ldp perturb --mechanism {self.says.mechanism}` writes it"
            )
        table = self.group(seed)
        return Reports(
            index=self.rectangle(table, "index") if _told(table, "index") else None,
            value=self.rectangle(table, "value"),
            level=table.column("level").to_numpy() if _told(table, "level") else None,
            meta={**self.meta, "epsilon": self.says.epsilon},
        )
