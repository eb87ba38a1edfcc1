"""Options with several values: `--epsilon 1,10`, in every command that takes several."""

from __future__ import annotations

from collections.abc import Sequence

from graphldp.errors import OptionError

__all__ = ["between", "depths", "numbers", "words"]


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


def depths(option: str, given: Sequence[str]) -> list[int]:
    """Return whole numbers of at least 0."""
    found = []
    for word in words(option, given):
        if not word.isdecimal():
            raise OptionError(f"{option} takes whole numbers from 0 on, such as 2,4; got {word!r}")
        found.append(int(word))
    return found


def between(option: str, given: Sequence[str], least: float, most: float) -> list[float]:
    """Return the numbers of an option, each above `least` and at most `most`."""
    found = numbers(option, given)
    wrong = [value for value in found if not least < value <= most]
    if wrong:
        raise OptionError(f"{option} must be above {least:g} and at most {most:g}, got {wrong[0]:g}")
    return found
