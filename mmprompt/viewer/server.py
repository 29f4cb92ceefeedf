"""Serves a page on loopback: for datasets whose rows do not fit into one file."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mmprompt.errors import MMPromptError
from mmprompt.viewer.html_page import page_chunks
from mmprompt.viewer.media_files import EXTENSIONS
from mmprompt.viewer.served_rows import ServedRows

LOOPBACK = "127.0.0.1"
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
_NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="160" height="120"><rect width="160" height="120" fill="#ddd"/>'
    b'<text x="80" y="64" text-anchor="middle" font-family="sans-serif" font-size="14" fill="#555">cannot be shown'
    b"</text></svg>"
)
_NAME = re.compile(r"([0-9a-f]+)(?:\.\w+)?")


class PageServer(ThreadingHTTPServer):
    """Answers to those who know the token in its address.

    Args:
        rows: what it shows.
        port: where it listens on loopback; 0 for any free port.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True

    def __init__(self, rows: ServedRows, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.rows = rows
        self.token = secrets.token_urlsafe(18)

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def knows(self, token: str) -> bool:
        """Return whether a token is ours; the time does not depend on how much of it is right."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, unless the browser has closed its connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "mmprompt"
    sys_version = ""
    timeout = 60

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the name of the method's argument
        """Log nothing."""

    def do_GET(self) -> None:
        """Answer a request for the page or its data."""
        names = {f"{host}:{self.server.server_port}" for host in (LOOPBACK, "localhost")}
        if self.headers.get("Host") not in names:  # another name that was made to point here
            return self._send(HTTPStatus.FORBIDDEN)
        try:
            url = urlsplit(self.path)
        except ValueError:  # such as http://[::1
            return self._send(HTTPStatus.BAD_REQUEST)
        if url.path == "/favicon.ico":  # browsers ask for it unasked
            return self._send(HTTPStatus.NO_CONTENT)
        _, token, *rest = [*url.path.split("/"), "", ""]
        if not self.server.knows(token):
            return self._send(HTTPStatus.FORBIDDEN)
        try:
            self._answer(rest[0], rest[1], dict(parse_qsl(url.query, max_num_fields=50)))
        except (MMPromptError, ValueError) as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error).encode("utf-8", "replace"))

    def _answer(self, what: str, name: str, asked: dict[str, str]) -> None:
        rows = self.server.rows
        if what == "":
            chunks = page_chunks(rows.exhibit.title, rows.head, sources="'self'")
            page = "".join(chunks).encode("utf-8", "backslashreplace")
            self._send(HTTPStatus.OK, page, "text/html; charset=utf-8")
        elif what == "head":
            self._json(rows.head)
        elif what == "rows":
            self._json(rows.entries(asked))
        elif what == "row" and name.isdecimal():
            self._json(rows.detail(int(name[:15])))
        elif what == "media" and (found := _NAME.fullmatch(name)):
            self._medium(rows.medium(found[1], small=False))
        elif what == "small" and (found := _NAME.fullmatch(name)):
            self._small(found[1])
        else:
            self._send(HTTPStatus.NOT_FOUND)

    def _json(self, value: Any) -> None:
        if value is None:
            return self._send(HTTPStatus.NOT_FOUND)
        return self._send(HTTPStatus.OK, json.dumps(value, default=str).encode("ascii"), "application/json")

    def _small(self, name: str) -> None:
        """Send a small picture of a medium. Of one that cannot be decoded, which a check reports, it says so."""
        try:
            found = self.server.rows.medium(name, small=True)
        except MMPromptError:
            self._send(HTTPStatus.OK, _NO_PICTURE, "image/svg+xml")
        else:
            self._medium(found)

    def _medium(self, found: tuple[str, bytes] | None) -> None:
        """Send a medium, or the part of it that a player asks for."""
        if found is None:
            return self._send(HTTPStatus.NOT_FOUND)
        kind, data = found
        kind = kind if kind in EXTENSIONS else "application/octet-stream"
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if asked is None or not asked[1]:
            return self._send(HTTPStatus.OK, data, kind)
        first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
        if first > last:
            return self._send(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
        place = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        return self._send(HTTPStatus.PARTIAL_CONTENT, data[first : last + 1], kind, place)

    def _send(
        self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain", more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Frame-Options": "DENY",
            "Accept-Ranges": "bytes",
        }
        for name, value in {**headers, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
