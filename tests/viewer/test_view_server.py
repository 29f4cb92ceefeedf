"""``mmprompt view --serve``: a page from loopback, for those who know its token."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from mmprompt.viewer.exhibit import exhibit_of
from mmprompt.viewer.served_rows import ServedRows
from mmprompt.viewer.server import PageServer
from mmprompt.viewer.viewed_rows import Choice


@contextmanager
def serving(name: Path) -> Iterator[PageServer]:
    with closing(ServedRows(exhibit_of(name), Choice(decode=False))) as rows, PageServer(rows) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


@pytest.fixture
def server(tour: Path) -> Iterator[PageServer]:
    with serving(tour / "task.yaml") as found:
        yield found


class Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes


def get(server: PageServer, path: str, **headers: str) -> Answer:
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)) as connection:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as found:
            return Answer(found.status, found.headers, found.read())


def data(server: PageServer, path: str) -> Any:
    answer = get(server, f"/{server.token}/{path}")
    assert answer.status == 200, answer
    return json.loads(answer.body)


def when_read(server: PageServer) -> dict[str, Any]:
    for _ in range(300):
        if (head := data(server, "head"))["done"]:
            assert head["fault"] == ""
            return head
        time.sleep(0.1)
    raise AssertionError("the rows are not read")


def test_rows_come_in_pages_and_match_what_is_asked(server: PageServer) -> None:
    head = when_read(server)
    assert head["sides"][0]["rows"] == 25
    assert head["counts"]["modalities"]["audio"] == 5
    page = data(server, "rows?from=20&count=10")
    assert page["total"] == 25
    assert [row["entry"]["id"] for row in page["rows"]] == [f"tour-{n}" for n in range(21, 26)]
    assert data(server, "rows?count=5&modality=video")["total"] == 2
    assert data(server, "rows?count=5&query=train+LEAVES")["total"] == 1
    assert data(server, "rows?count=5&code=MM705")["total"] == 1
    assert data(server, "rows?count=5&score=none")["total"] == 25
    assert data(server, "rows?count=5&group.category=none")["total"] == 0


def test_a_row_and_its_media_are_made_when_they_are_asked_for(server: PageServer, tour: Path) -> None:
    when_read(server)
    row = data(server, "row/6")
    [medium] = row["media"]
    clip = (tour / "media/clip.mp4").read_bytes()
    address = f"/{server.token}/media/{medium['digests'][0][:20]}.mp4"
    answer = get(server, address)
    assert answer.body == clip
    assert answer.headers["Content-Type"] == "video/mp4"
    part = get(server, address, Range="bytes=10-19")
    assert (part.status, part.body) == (206, clip[10:20])
    assert get(server, address, Range=f"bytes={len(clip)}-").status == 416
    small = get(server, f"/{server.token}/small/{medium['digests'][0][:20]}")
    assert small.body[:3] == b"\xff\xd8\xff"


def test_the_thumbnail_of_what_cannot_be_decoded_is_a_picture_that_says_so(tmp_path: Path) -> None:
    Image.effect_noise((300, 200), 90).save(tmp_path / "whole.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:700])
    (tmp_path / "odd.png").write_bytes(b"\x89PNG\r\n\x1a\n<script>alert(1)</script>")
    names = ("whole.jpg", "cut.jpg", "odd.png")
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({"question": "Why?", "image": n}) + "\n" for n in names))
    with serving(tmp_path / "data.jsonl") as server:
        when_read(server)
        small = []
        for row in range(3):
            [medium] = data(server, f"row/{row}")["media"]
            small.append(get(server, f"/{server.token}/small/{medium['digests'][0][:20]}"))
    assert [answer.status for answer in small] == [200, 200, 200]
    assert [answer.headers["Content-Type"] for answer in small] == ["image/jpeg", "image/svg+xml", "image/svg+xml"]
    for answer in small[1:]:
        [text] = ET.fromstring(answer.body).itertext()
        assert text == "cannot be shown"


@pytest.mark.parametrize("path", ["row/25", "row/-1", "row/x", "media/../x", "media/00", "etc/passwd"])
def test_what_is_not_there_is_not_found(server: PageServer, path: str) -> None:
    when_read(server)
    assert get(server, f"/{server.token}/{path}").status == 404


def test_only_those_who_know_the_token_and_the_address_are_answered(server: PageServer) -> None:
    assert get(server, "/").status == 403
    assert get(server, f"/{server.token[:-1]}/").status == 403
    assert get(server, f"/{server.token}/", Host="evil.example").status == 403
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)) as connection:
        connection.putrequest("GET", "http://[::1", skip_host=True)
        connection.putheader("Host", f"127.0.0.1:{server.server_port}")
        connection.endheaders()
        with connection.getresponse() as found:
            assert found.status == 400
    assert get(server, "/favicon.ico")[::2] == (204, b"")
    page = get(server, f"/{server.token}/")
    assert page.status == 200
    assert "connect-src &#39;self&#39;" in page.body.decode()
    assert page.headers["Cache-Control"] == "no-store"
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_command_prints_its_address_and_leaves_nothing_when_it_is_ended(
    tour: Path, interrupted_environment: dict[str, str], tmp_path: Path, end: str
) -> None:
    # a shell that started the tests in the background made them deaf to SIGINT, and nohup to SIGHUP
    hear = {"preexec_fn": lambda: signal.signal(signal.Signals[end], signal.SIG_DFL)}
    command = [sys.executable, "-m", "mmprompt", "view", str(tour / "tour.jsonl"), "--serve", "--no-check"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**interrupted_environment, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, text=True, **streams, **hear) as process:
        try:
            assert process.stdout
            url = urlsplit(process.stdout.readline().strip())
            with closing(http.client.HTTPConnection(url.netloc, timeout=30)) as connection:
                connection.request("GET", url.path)
                with connection.getresponse() as page:
                    assert "<h1>tour.jsonl</h1>" in page.read().decode()
            assert list(tmp_path.glob("mmprompt-view-*"))
            process.send_signal(signal.Signals[end])
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


RESET = struct.pack("ii", 1, 0)
"""A connection that lingers for no second is reset when it is closed."""


def test_clients_that_reset_their_connections_are_let_go_without_a_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps({"question": "Why? " * 200_000}) + "\n")
    with serving(tmp_path / "data.jsonl") as server:
        when_read(server)
        head = f"GET /{server.token}/row/0 HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
        for asked in (
            "",
            head[:30],
            head,
            f"{head}\r\n",
            f"{head}\r\n{head}",
            f"{head.replace(server.token, 'x')}\r\n",
        ):
            for pause in (0.0, 0.05):
                with socket.create_connection(("127.0.0.1", server.server_port)) as client:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    client.sendall(asked.encode())
                    time.sleep(pause)
        assert data(server, "rows?count=5")["total"] == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("words", [3000, 12_000])
def test_a_query_of_thousands_of_words_finds_the_rows_that_hold_them_all(tmp_path: Path, words: int) -> None:
    every = [f"{number:x}" for number in range(words)]
    rows = [
        {"question": " ".join(every[:700]), "answer": "all"},
        {"question": " ".join(every[1:700]), "answer": "most"},
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(tmp_path / "data.jsonl") as server:
        when_read(server)
        began = time.monotonic()
        assert data(server, f"rows?count=5&query={'+'.join(every)}")["total"] == 0
        again = "+".join([*every[:700], "all"] * (words // 700))
        assert data(server, f"rows?count=5&query={again}")["total"] == 1
        assert time.monotonic() - began < 10
