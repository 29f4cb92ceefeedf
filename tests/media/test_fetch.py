"""Fetching: what is fetched and what stays a name, retries, and connections among threads and processes."""

from __future__ import annotations

import base64
import copy
import email.utils
import io
import json
import os
import pickle
import ssl
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests.adapters
from loopback_server import CERTIFICATE, PATIENCE, LoopbackServer, closed_port, reply, reset
from PIL import Image

from mmprompt import Message, TaskError, load_task, read_messages, to_openai
from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy, MediaReader
from mmprompt.media.fetch import fetcher as fetch
from mmprompt.media.fetch.fetcher import Fetcher
from mmprompt.messages import MediaPart, MediaRef
from mmprompt.render.renderer import Renderer
from mmprompt.tasks.media import task_policy


def picture(form: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (16, 9), "navy").save(file, form)
    return file.getvalue()


PNG, JPEG = picture(), picture("JPEG")


@pytest.fixture
def server():
    with LoopbackServer(reply(PNG, Content_Type="image/png")) as running:
        yield running


def policy(*servers: LoopbackServer, **options) -> MediaPolicy:
    return MediaPolicy(allow_domains=[s.entry for s in servers], fetch=True, **{"timeout": PATIENCE, **options})


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """The seconds for which a fetch would have waited before another attempt."""
    waited: list[float] = []
    monkeypatch.setattr(fetch, "time", SimpleNamespace(sleep=waited.append, monotonic=time.monotonic))
    return waited


def test_a_url_of_an_allowed_host_becomes_a_part_with_its_bytes(server):
    for url in (server.url("/a.png?key=1"), server.url().replace("http", "HTTP"), server.url("/bücher.png")):
        part = MediaReader(policy(server)).read(MediaRef("image", url, "", (("detail", "low"),)))
        assert isinstance(part, MediaPart)
        assert part.data == PNG
        assert (part.media_type, part.options, part.changes, part.findings) == (
            "image/png",
            (("detail", "low"),),
            (),
            (),
        )
        assert "key" not in part.origin
    assert server.requests[2].startswith("GET /b%C3%BCcher.png HTTP/1.1\r\n")


def test_all_other_urls_stay_names(server):
    others = ["http://images.example/a.png", "https://127.0.0.1/a.png", f"http://127.0.0.1:{server.port - 1}/a.png", f"http://localhost:{server.port}/"]  # fmt: skip
    reader = MediaReader(policy(server))
    for url in others:
        assert reader.read(MediaRef("image", url)) == MediaRef("image", url, name=url)
    url = server.url()
    for closed in (MediaPolicy(), MediaPolicy(allow_domains=[server.entry]), MediaPolicy(fetch=True)):
        assert MediaReader(closed).read(MediaRef("image", url)) == MediaRef("image", url, name=url)
    for mode in ("url", "file", "keep"):
        assert MediaReader(policy(server), mode).read(MediaRef("image", url)) == MediaRef("image", url, name=url)
    assert server.connections == 0


def test_hosts_below_a_wildcard_are_allowed_and_it_is_not():
    fetcher = Fetcher(MediaPolicy(allow_domains=["*.cdn.example", "b.example:8443"], fetch=True))
    assert fetcher.allows("https://x.cdn.example/a")
    assert fetcher.allows("https://X.Y.CDN.example:8080/a")
    assert fetcher.allows("https://b.example:8443/")
    assert not fetcher.allows("https://cdn.example/a")
    assert not fetcher.allows("https://evilcdn.example/a")
    assert not fetcher.allows("https://b.example/")
    for sound_for_no_parser in ("http://", "http://[::1", "http://a:b/", "ftp://x.cdn.example/", "x.cdn.example", ""):
        assert not fetcher.allows(sound_for_no_parser)


@pytest.mark.parametrize(
    ("declared", "finding"),
    [
        ("image/png", ()),
        ("IMAGE/PNG; charset=binary", ()),
        ("application/octet-stream", ()),
        ("binary/octet-stream", ()),
        (None, ()),
        ("image/jpeg", ("declared image/jpeg, bytes are PNG",)),
        ("text/html; charset=utf-8", ("declared text/html, bytes are PNG",)),
    ],
)
def test_what_the_server_declares_is_only_a_declaration(declared, finding):
    with LoopbackServer(reply(PNG, Content_Type=declared)) as server:
        part = MediaReader(policy(server)).read(MediaRef("image", server.url()))
    assert (part.media_type, part.findings) == ("image/png", finding)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<!DOCTYPE html><title>Log in</title>", "/a.png' is an HTML page, not an image; download the file again"),
        (b'{"error": "quota"}', "/a.png' is JSON text, not an image"),
        (b"", "/a.png' is empty, not an image"),
        (b"\0" * 9, "/a.png' is unknown bytes, not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "/a.png' is an SVG drawing, not an image"),
    ],
)
def test_an_answer_that_is_no_picture_is_named(body, words):
    with LoopbackServer(reply(body, Content_Type="image/png")) as server:
        with pytest.raises(SourceError) as caught:
            MediaReader(policy(server)).read(MediaRef("image", server.url()))
        assert words in str(caught.value)


def test_the_frames_of_a_video_are_fetched_too():
    with LoopbackServer(reply(JPEG)) as server:
        part = MediaReader(policy(server)).read(MediaRef("video", [server.url("/0"), server.url("/1")]))
        assert part.frames == (JPEG, JPEG)
        with pytest.raises(PolicyError, match="max_bytes"):
            MediaReader(policy(server, max_bytes=len(JPEG) + 5)).read(MediaRef("video", [server.url("/0")] * 2))


def test_https_is_fetched_where_the_certificate_holds(monkeypatch):
    monkeypatch.setattr(requests.adapters, "DEFAULT_CA_BUNDLE_PATH", str(CERTIFICATE))
    if hasattr(requests.adapters, "_preloaded_ssl_context"):  # releases before 2.32.4; another one for this test alone
        monkeypatch.setattr(requests.adapters, "_preloaded_ssl_context", ssl.create_default_context(cafile=CERTIFICATE))
    with LoopbackServer(reply(PNG), tls=True) as server:
        ours = Fetcher(
            MediaPolicy(allow_domains=[server.entry, f"localhost:{server.port}"], fetch=True, timeout=PATIENCE)
        )
        assert ours.fetch(server.url()).data == PNG
        assert ours.fetch(server.url(host="localhost")).data == PNG
        assert ours.fetch(server.url(host="localhost")).data == PNG
        assert server.connections == 2


@pytest.mark.parametrize("fault", [reset, *(reply(b"", f"{n} Busy") for n in (429, 502, 503, 504))])
def test_a_passing_fault_is_tried_again(fault, pauses):
    with LoopbackServer(fault, fault, reply(PNG)) as server:
        assert Fetcher(policy(server)).fetch(server.url()).data == PNG
        assert len(server.requests) == 3
    first, second = pauses
    assert 0 <= first <= 0.25
    assert 0 <= second <= 0.5


def test_a_cut_body_is_tried_again():
    with LoopbackServer(lambda sock: sock.sendall(reply(PNG[:9], Content_Length=len(PNG))), reply(PNG)) as server:
        assert Fetcher(policy(server)).fetch(server.url()).data == PNG


def test_a_fault_that_stays_is_an_error_after_four_attempts(pauses):
    with LoopbackServer(reply(b"", "503 Busy")) as server:
        with pytest.raises(
            SourceError, match=r"/a.png answers 503 \(Service Unavailable\) \(4 attempts\); try again later"
        ):
            Fetcher(policy(server)).fetch(server.url())
        assert len(server.requests) == 4
    with LoopbackServer(reset) as server:
        with pytest.raises(SourceError, match=r"broke off the connection \(4 attempts\)"):
            Fetcher(policy(server)).fetch(server.url())
        assert len(server.requests) == 4
    assert len(pauses) == 3 + 3


@pytest.mark.parametrize("status", [204, 206, 300, 304, 400, 401, 403, 404, 410, 418, 500, 501, 599, 999])
def test_other_answers_are_an_error_at_once(status):
    with LoopbackServer(reply(b"", f"{status} whatever")) as server:
        with pytest.raises(SourceError, match=f"/a.png answers {status}") as caught:
            Fetcher(policy(server)).fetch(server.url())
        assert "whatever" not in str(caught.value)
        assert len(server.requests) == 1


@pytest.mark.parametrize("as_date", [False, True])
def test_a_server_that_asks_for_patience_gets_it(as_date, pauses):
    wish = email.utils.formatdate(time.time() + 1000, usegmt=True) if as_date else "1000"
    with LoopbackServer(reply(b"", "429 Slow Down", Retry_After=wish), reply(PNG)) as server:
        assert Fetcher(policy(server, timeout=2000)).fetch(server.url()).data == PNG
    [waited] = pauses
    assert 900 < waited <= 1000


@pytest.mark.parametrize("wish", ["3600", "9" * 5000, "Fri, 31 Dec 2999 23:59:59 GMT"])
def test_patience_beyond_the_deadline_is_refused_at_once(wish, pauses):
    with LoopbackServer(reply(b"", "503 Busy", Retry_After=wish)) as server:
        with pytest.raises(SourceError, match=r"answers 503 \(Service Unavailable\); try again later"):
            Fetcher(policy(server)).fetch(server.url())
        assert len(server.requests) == 1
    assert not pauses


@pytest.mark.parametrize(
    "wish", ["", "soon", "-5", "1.5.5", "Fri, 99 Foo 99999 99:99:99 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "²"]
)
def test_a_wish_that_says_nothing_is_left_aside(wish, pauses):
    with LoopbackServer(reply(b"", "503 Busy", Retry_After=wish.encode().decode("latin-1")), reply(PNG)) as server:
        assert Fetcher(policy(server)).fetch(server.url()).data == PNG
    [waited] = pauses
    assert waited <= 0.25


def test_nobody_at_the_port_and_no_such_host_are_errors_at_once(pauses):
    with closed_port() as port, pytest.raises(SourceError, match=r"host '127.0.0.1' cannot be reached"):
        Fetcher(MediaPolicy(allow_domains=[f"127.0.0.1:{port}"], fetch=True)).fetch(f"http://127.0.0.1:{port}/")
    label = "x" * 64
    with pytest.raises(SourceError, match=r"is not known|no host|sound"):
        Fetcher(MediaPolicy(allow_domains=[label], fetch=True)).fetch(f"http://{label}/")
    assert not pauses


def test_a_connection_is_kept_for_the_next_fetch_of_its_thread(server):
    fetcher = Fetcher(policy(server))
    for _ in range(20):
        fetcher.fetch(server.url())
    assert server.connections == 1
    fetcher.close()
    fetcher.fetch(server.url())
    assert server.connections == 2


def test_threads_share_a_fetcher(server):
    reader = MediaReader(policy(server))

    def read(number: int) -> bytes:
        return reader.read(MediaRef("image", server.url(f"/{number}"))).data

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, range(200))) == {PNG}
    assert len(server.requests) == 200
    assert server.connections <= 8


def test_it_pickles_and_copies_without_its_connections(server):
    reader = MediaReader(policy(server))
    reader.read(MediaRef("image", server.url()))
    for again in (pickle.loads(pickle.dumps(reader)), copy.deepcopy(reader)):
        assert again.read(MediaRef("image", server.url())).data == PNG
    assert server.connections == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_opens_its_own_connections(server):
    fetcher = Fetcher(policy(server))
    fetcher.fetch(server.url("/parent"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the server's threads: the child uses none of them
        child = os.fork()
    if not child:
        good = False
        try:
            good = fetcher.fetch(server.url("/child")).data == PNG
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server.connections == 2
    assert fetcher.fetch(server.url("/parent")).data == PNG
    assert server.connections == 2


def test_messages_are_read_with_what_was_fetched(server):
    message = Message("user", [MediaRef("image", server.url())])
    [sent] = to_openai(read_messages([message], policy(server)))
    data_uri = sent["content"][0]["image_url"]["url"]
    assert data_uri == "data:image/png;base64," + base64.b64encode(PNG).decode()


def write_rows(folder: Path, *urls: str) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"image": url, "question": "What?"}) + "\n" for url in urls))
    return path


def source_of(line: str) -> str:
    return json.loads(line)["messages"][0]["content"][0]["image_url"]["url"]


def test_the_command_line_fetches_from_the_hosts_it_allows(tmp_path, server, command):
    other = "http://images.example/b.png"
    rows = write_rows(tmp_path, server.url("/a.png?n=1"), other)
    done = command("render", rows, "--fetch", "--allow-domain", "cdn.example", "--allow-domain", server.entry)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.decode().splitlines()
    assert source_of(first) == "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert source_of(second) == other
    assert len(server.requests) == 1

    plain = command("render", rows)
    assert [source_of(line) for line in plain.stdout.decode().splitlines()] == [server.url("/a.png?n=1"), other]
    kept = command("render", rows, "--fetch", "--allow-domain", server.entry, "--media", "keep")
    assert (kept.returncode, kept.stdout) == (2, b"")
    assert b"fetching with media mode keep; use --media inline: fetched media go inline" in kept.stderr
    assert len(server.requests) == 1


def test_one_half_of_the_permission_is_a_usage_error(tmp_path, command):
    rows = write_rows(tmp_path, "http://images.example/a.png")
    for arguments, words in (
        (("--fetch",), "fetching is asked for, but no host is allowed; name each with --allow-domain HOST"),
        (("--allow-domain", "images.example"), "hosts are allowed, but fetching is not asked for; add --fetch"),
        (("--fetch", "--allow-domain", "http://images.example/"), "is not a host name; write example.com"),
    ):
        done = command("render", rows, *arguments)
        assert done.returncode == 2
        assert words in done.stderr.decode()
        assert not done.stdout


def test_a_row_whose_picture_cannot_be_fetched_is_reported_once_and_asked_for_once(tmp_path, command):
    with LoopbackServer(reply(PNG), reply(b"", "404 No")) as server:
        rows = write_rows(tmp_path, server.url("/0"), server.url("/1?key=SECRET"))
        done = command("render", rows, "--fetch", "--allow-domain", server.entry)
        assert len(server.requests) == 2
    assert done.returncode == 1
    told = done.stderr.decode()
    assert f"rows.jsonl:2: MM218 {server.url('/1')} answers 404 (Not Found); check the URL (image, sample 1)\n" in told
    assert "SECRET" not in told
    assert len(done.stdout.splitlines()) == 1


def test_a_task_says_what_is_fetched(tmp_path, server):
    rows = write_rows(tmp_path, server.url())
    media = {"fetch": True, "allow_domains": server.entry}
    task = load_task({"dataset": str(rows), "media": media})
    [row] = task.samples()
    chunks = Renderer(task).render(row).chunks
    assert source_of(b"".join(chunks).decode()) == "data:image/png;base64," + base64.b64encode(PNG).decode()

    half = load_task({"dataset": str(rows), "media": {"allow_domains": [server.entry]}})
    assert task_policy(half, fetch=True).allow_domains == (server.entry,)
    assert task_policy(half, fetch=True, allow_domains=["b.example"]).allow_domains == (server.entry, "b.example")
    with pytest.raises(TaskError, match="fetching is not asked for"):
        task_policy(half)
    with pytest.raises(TaskError, match="no host is allowed"):
        task_policy(load_task({"dataset": str(rows), "media": {"fetch": True}}))
    assert not task_policy(load_task({"dataset": str(rows)})).fetch


@pytest.mark.parametrize("media", [{"fetch": "yes"}, {"fetch": 1}, {"allow_domains": 3}, {"allow_domains": [3]}, {"allow_domain": "x"}])  # fmt: skip
def test_a_task_that_says_it_wrongly_is_refused(tmp_path, media):
    with pytest.raises(TaskError, match=next(iter(media))):
        load_task({"dataset": str(write_rows(tmp_path, "http://a.example/")), "media": media})


def test_what_a_target_refuses_is_fetched_once_and_told_with_its_place(tmp_path, command):
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "BMP")
    with LoopbackServer(reply(buffer.getvalue())) as server:
        rows = write_rows(tmp_path, server.url("/a.bmp"))
        done = command("render", rows, "--target", "openai", "--fetch", "--allow-domain", server.entry)
        assert done.returncode == 1
        assert b"rows.jsonl:1: MM804 " in done.stderr
        assert b"not image/bmp" in done.stderr
        assert len(server.requests) == 1
