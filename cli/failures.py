"""What a failure becomes: one line on standard error that says what to do, and an exit code.

Nothing here needs more than the standard library, so that it also works in an installation without the command line.
"""

from __future__ import annotations

import errno
import sys

from graphldp.errors import GraphLDPError, MissingExtraError

__all__ = ["FAULT", "INTERRUPTED", "REFUSED", "complain", "describe", "missing_extra"]

FAULT = 1  # a defect of the program
REFUSED = 2  # something that the caller can mend
INTERRUPTED = 130  # Ctrl-C

# Which extra brings a module that the base installation does not have.
_EXTRAS = {
    "cli": ("typer", "rich", "pyarrow", "shellingham", "scipy"),
    "learn": ("torch", "torch_geometric", "sklearn", "threadpoolctl", "safetensors"),
    "pipeline": ("dvc", "matplotlib", "yaml"),
}
_EXTRA_OF = {module: extra for extra, modules in _EXTRAS.items() for module in modules}
_GO_ON = ("ldp train", "ldp search", "ldp experiment", "ldp reproduce")  # which keep what they had reached
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_MEMORY_WORDS = ("out of memory", "can't allocate memory", "not enough memory")


def missing_extra(error: ModuleNotFoundError, command: str) -> MissingExtraError | None:
    """Return the error that names the extra to install, or None if no extra would bring the module."""
    module = (error.name or "").partition(".")[0]
    if module == "fcntl":
        return MissingExtraError(f"{command} locks files as Linux and macOS do; on Windows run it in WSL")
    extra = _EXTRA_OF.get(module)
    if extra is None:
        return None
    return MissingExtraError(f"{command} needs {module}, which is not installed; run: pip install 'graphldp[{extra}]'")


def describe(error: BaseException, command: str) -> tuple[str, int]:
    """Return the line and the exit code of a failure of `command` (for example 'ldp train')."""
    if isinstance(error, KeyboardInterrupt):
        on = "; the same command goes on from there" if command in _GO_ON else ""
        return f"interrupted: {command} stopped; nothing half-written{on}", INTERRUPTED
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error, command)) is not None:
        error = missing
    if isinstance(error, GraphLDPError):
        return f"error: {_one_line(error)}", REFUSED
    if _is_memory(error):
        return f"error: {command} ran out of memory{_detail(error)}; use fewer seeds or a smaller graph", REFUSED
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        if error.errno in _CANNOT_WRITE:
            from graphldp.stages.files.leftovers import named

            what = f"{named(str(error.filename))} cannot be written" if where else "nothing can be written"
            return f"error: {what}: {error.strerror.lower()}; make room, or work in another place", REFUSED
        return f"error: {where}{error.strerror}", REFUSED
    kind = type(error).__name__
    return f"error: {command} failed through a defect of graphldp ({kind}: {_one_line(error)}); see --debug", FAULT


def complain(line: str) -> None:
    """Print one line on standard error, in no colour: it may hold anything that the user typed."""
    print(line, file=sys.stderr)


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _MEMORY_WORDS)
    )


def _detail(error: BaseException) -> str:
    text = _one_line(error)
    return f" ({text})" if text else ""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
