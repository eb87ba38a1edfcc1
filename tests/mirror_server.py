"""An HTTP server on loopback that serves a mirror with Range support, and misbehaves where a test asks for it."""

from __future__ import annotations

import contextlib
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# What becomes of one request: (content, first byte asked for) -> (status, body, bytes to send before hanging up).
Answer = tuple[int, bytes, int | None]


@dataclass
class Mirror:
    url: str
    requests: list[tuple[str, int]] = field(default_factory=list)  # (path, first byte asked for)
    behave: Callable[[str, bytes, int], Answer] | None = None  # in place of `proper`


def proper(path: str, content: bytes, start: int) -> Answer:
    if start and start >= len(content):
        return 416, b"", None
    return (206, content[start:], None) if start else (200, content, None)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[Mirror]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(asked[1]) if asked else 0
            mirror.requests.append((self.path, start))
            file = folder / urllib.parse.unquote(self.path.lstrip("/"))
            if not file.is_file():
                self.send_error(404)
                return
            content = file.read_bytes()
            status, body, cut = (mirror.behave or proper)(self.path, content, start)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            self.wfile.write(body[:cut])
            if cut is not None:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mirror = Mirror(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield mirror
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
