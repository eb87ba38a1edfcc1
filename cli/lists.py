"""Options with several values: `--epsilon 1,10` and `--epsilon 1 --epsilon 10` are the same."""

from __future__ import annotations

from collections.abc import Sequence

from graphldp.errors import OptionError

__all__ = ["numbers", "words"]


def words(option: str, given: Sequence[str]) -> list[str]:
    """Return the words of an option; each may stand once."""
    found = [word.strip() for text in given for word in text.split(",")]
    for word in found:
        if not word:
            raise OptionError(f"{option} has an empty value in {','.join(given)!r}; leave out the comma")
        if found.count(word) > 1:
            raise OptionError(f"{option} names {word} twice; leave one out")
    return found


def numbers(option: str, given: Sequence[str]) -> list[float]:
    """Return the numbers of an option."""
    found = []
    for word in words(option, given):
        try:
            found.append(float(word))
        except ValueError:
            raise OptionError(f"{option} takes numbers such as 1,10; got {word!r}") from None
    return found
