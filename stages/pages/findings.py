"""What a table says in plain words, derived from its intervals by fixed rules.

A private result is *above* or *below* the floor only if the interval of its paired gain lies wholly on that side of
zero; otherwise it cannot be told apart from it. Nothing here knows a number in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphldp.evaluation import FEW
from graphldp.methods import Role
from graphldp.stages.pages.tables import Section, TableRow, number
from graphldp.stages.pages.wording import listed

__all__ = ["Headline", "find", "spending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The headline of one dataset, the sentences that carry it, and the best private row."""

    headline: str
    sentences: tuple[str, ...]
    best: TableRow | None
    above: int
    same: int
    below: int
    unknown: int


def find(section: Section) -> Headline:
    """Return what the section's intervals say."""
    rows = section.results
    sides = [row.gain.against(0.0) for row in rows if row.gain is not None]
    counts = {side: sides.count(side) for side in ("above", "same", "below", "unknown")}
    # A row whose mechanism breaks its claim has spent more than it says: it wins no comparison at its budget.
    sound = [row for row in rows if row.claim.keeps] or list(rows)
    best = max(sound, key=lambda row: section.measure.sign * row.score.mean, default=None)
    sentences = [_worth(section)]
    if _guesses(section):
        sentences.append(
            f"Here the floor is no better than {section.measures.guess}. Either "
            f"{'what people tell beside their features' if section.asked else 'this graph'} says nothing about the "
            f"{section.measures.targets}, or the floor was not trained well enough: search it longer before reading a "
            "gain over it."
        )
    if best is not None:
        sentences.append(_best(best, section))
    if len(rows) > 1 and not counts["unknown"]:
        sentences.append(_counted(section, counts))
    again = len(section.private) - len(rows)
    if again:
        sentences.append(
            f"{again} more {'row has' if again == 1 else 'rows have'} the same runs as another one and "
            f"{'is' if again == 1 else 'are'} not counted again."
        )
    broken = sorted({row.mechanism for row in rows if not row.claim.keeps})
    if broken:
        sentences.append(
            f"Rows marked † use {listed(broken)}, which {'does' if len(broken) == 1 else 'do'} not keep the claimed "
            "epsilon; their budget is larger than it says."
        )
    return Headline(headline=_headline(section, counts, best), sentences=tuple(sentences), best=best, **counts)


def _headline(section: Section, counts: dict[str, int], best: TableRow | None) -> str:
    where = f"On {section.title}{',' * (',' in section.title)}"
    total, kind = len(section.results), _kind(section)
    if best is None:
        return f"{where} no private method was measured."
    if counts["unknown"]:
        return f"{where} there are fewer than {FEW} runs per result, too few to tell any two of them apart."
    if counts["above"] == 0:
        verdict = "does measurably better than using nobody’s features at all"
        return f"{where} no {kind}method {verdict}."
    # A floor that learned nothing is easily beaten; a headline that did not say so would mislead.
    caution = f", but that floor is no better than {section.measures.guess}" if _guesses(section) else ""
    if counts["above"] == total:
        return f"{where} every {kind}method does measurably better than using nobody’s features at all{caution}."
    share = "only 1" if counts["above"] == 1 else str(counts["above"])
    results = f"{share} of {total} {kind}results {'is' if counts['above'] == 1 else 'are'}"
    return f"{where} {results} measurably better than using nobody’s features at all{caution}."


def _kind(section: Section) -> str:
    """Return what a method is called before its name; with public features it is no private one."""
    return "private " if section.perturbed else ""


def _guesses(section: Section) -> bool:
    """Whether the floor cannot be told from an answer that looks at nothing."""
    guess = section.reference(Role.GUESS).gain
    return guess is not None and guess.against(0.0) in ("same", "above")


def _worth(section: Section) -> str:
    """Say what there is to win: the ceiling over the floor."""
    floor, ceiling = section.reference(Role.FLOOR), section.reference(Role.CEILING)
    one, public = section.measure, listed(section.measures.known())
    said = f"{public[:1].upper()}{public[1:]} alone, without a single feature of anybody, reach"
    if section.asked:
        public = "what people tell beside their features"
        said = "What people tell beside their features, and no feature of anybody, reaches"
    first = (
        f"{said} {one.text(floor.score.mean)}; with everybody’s true features beside, the best learner reaches "
        f"{one.text(ceiling.score.mean)}."
    )
    gain = ceiling.gain
    if gain is None or not gain.known:
        return first
    worth = f"{ceiling.shown(gain, sign=True)} {one.step}"
    if gain.against(0.0) == "unknown":
        return f"{first} The difference is {worth}, of too few runs to say whether there is anything to win."
    if gain.against(0.0) == "below":
        return (
            f"{first} The difference, {worth}, is against the features: what had learned more from them on the "
            f"validation part does less than {public} alone in test."
        )
    if gain.against(0.0) != "above":
        return f"{first} The difference, {worth}, is not measurable: there is nothing to win."
    return f"{first} That is all that features can win here: {worth}."


def _best(best: TableRow, section: Section) -> str:
    gain = best.gain
    assert gain is not None  # only the floor has no gain over itself
    one = section.measure
    first = (
        f"The best {_kind(section)}result is {section.named(best)} {spending(best)} with {one.text(best.score.mean)}"
    )
    if best.same_as:
        return f"{first}: its runs are those of {best.same_as}, so that it has not used people's reports."
    first = f"{first}, {best.shown(gain, sign=True)} {one.step} against the floor"
    side = gain.against(0.0)
    if side == "unknown":
        return f"{first}."
    if side == "same":
        return f"{first}: not measurably different."
    if side == "below":
        return f"{first}: measurably below it."
    whole = section.reference(Role.CEILING).gain
    if whole is None or whole.against(0.0) != "above":
        return f"{first}."
    return f"{first}: {100 * gain.mean / whole.mean:.0f} % of what the features are worth."


def spending(row: TableRow) -> str:
    """Return at which budget a private row stands, in words."""
    return f"at epsilon {number(row.epsilon)}" if math.isfinite(row.epsilon) else "on public features"


def _counted(section: Section, counts: dict[str, int]) -> str:
    above, same, below = (counts[side] for side in ("above", "same", "below"))
    are = {count: f"{count or 'none'} {'is' if count < 2 else 'are'}" for count in (above, below)}
    parts = [f"{are[above]} above the floor"]
    parts += [f"{same} cannot be told from it"] * bool(same)
    parts += [f"{are[below]} below it"] * bool(below)
    ignored = "reports" if section.perturbed else "features"
    harm = f" Below means that a learner that ignored the {ignored} did better." if below else ""
    shared = " All of them are measured against the same runs of the floor, so that its luck moves them together."
    return f"Of {len(section.results)} {_kind(section)}results, {listed(parts)}.{harm}{shared}"
