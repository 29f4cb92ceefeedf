"""Threats that come by the network. Each bait is first shown to work on requests alone, then on us."""

from __future__ import annotations

import contextlib
import gzip
import http.cookiejar
import io
import os
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
import requests
from loopback_server import CERTIFICATE, PATIENCE, LoopbackServer, reply, reset
from PIL import Image
from time_taken import elapsed_seconds, processor_seconds, wait_until
from urllib3.util import parse_url

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy, MediaReader
from mmprompt.media.fetch import fetcher as fetch
from mmprompt.media.fetch.connections import pool_classes
from mmprompt.media.fetch.fetcher import Fetcher
from mmprompt.media.fetch.hosts import AllowedHosts
from mmprompt.messages import MediaPart, MediaRef

PUBLIC = "93.184.215.14"
"""An address that passes for public. Nothing is sent there: see ``no_way_out``."""


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "PNG")
    return file.getvalue()


PNG = picture()


@pytest.fixture(autouse=True)
def no_way_out(monkeypatch):
    """A network without a route to anywhere: what is not on the loopback cannot be reached."""
    connect = socket.socket.connect

    def guarded(self, address):
        if isinstance(address, tuple) and address[0] == PUBLIC:
            raise OSError(101, "Network is unreachable")
        assert not isinstance(address, tuple) or address[0] in ("127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(fetch, "_FIRST_PAUSE", 0.01)


def fetcher(*servers: LoopbackServer, **options) -> Fetcher:
    return Fetcher(
        MediaPolicy(allow_domains=[s.entry for s in servers], **{"timeout": PATIENCE, **options}, fetch=True)
    )


def at_host(host: str, **options) -> Fetcher:
    return Fetcher(MediaPolicy(allow_domains=[host], **{"timeout": PATIENCE, **options}, fetch=True))


def resolve_to(monkeypatch, *answers: list[str]) -> list[str]:
    """Let the names of the ``.example`` hosts resolve to each answer in turn, and the last one for ever."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host, port, *arguments, **options):
        if not str(host).endswith(".example"):
            return real(host, port, *arguments, **options)
        asked.append(host)
        addresses = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


HOST_FORMS = ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::ffff:127.0.0.1]", "localhost", "LocalHost"]  # fmt: skip


@pytest.mark.parametrize("host", HOST_FORMS)
def test_every_way_to_write_this_machine_is_refused_though_the_host_is_allowed(host):
    with LoopbackServer(reply(PNG)) as server:
        url = server.url(host=host)
        assert requests.get(url, timeout=PATIENCE).content == PNG
        assert server.connections == 1

        ours = at_host(host)
        assert ours.allows(url)
        with pytest.raises(
            PolicyError, match=r"is at (a loopback|an unspecified) address, and only public addresses are fetched"
        ):
            ours.fetch(url)
        reader = MediaReader(MediaPolicy(fetch=True, allow_domains=[host]))
        with pytest.raises(PolicyError, match="only public addresses are fetched"):
            reader.read(MediaRef("image", url))
        assert server.connections == 1


@pytest.mark.parametrize("host", HOST_FORMS)
def test_who_allows_one_host_allows_no_other_way_to_write_it(host):
    with LoopbackServer(reply(PNG)) as server:
        ours = at_host("images.example")
        assert not ours.allows(server.url(host=host))
        with pytest.raises(PolicyError, match="is not among the allowed hosts; allow it with --allow-domain HOST"):
            ours.fetch(server.url(host=host))
        assert server.connections == 0


def test_a_server_of_ones_own_is_allowed_by_its_address_and_port():
    with LoopbackServer(reply(PNG)) as server:
        assert fetcher(server).fetch(server.url()).data == PNG
        assert at_host(f"localhost:{server.port}").fetch(server.url(host="localhost")).data == PNG


def test_a_name_that_resolves_elsewhere_at_the_second_look_is_not_followed(monkeypatch):
    with LoopbackServer(reply(PNG)) as server:
        url = server.url(host="images.example")
        resolve_to(monkeypatch, [PUBLIC], ["127.0.0.1"])
        looked = socket.getaddrinfo("images.example", server.port)[0][4][0]
        assert looked == PUBLIC  # the check of one who checks first …
        assert requests.get(url, timeout=PATIENCE).content == PNG  # … and what he gets

        asked = resolve_to(monkeypatch, [PUBLIC], ["127.0.0.1"])
        ours = at_host("images.example")
        with pytest.raises(SourceError, match=r"'images.example' cannot be reached"):
            ours.fetch(url)  # what was judged is what was dialled
        assert asked == ["images.example"]
        with pytest.raises(PolicyError, match=r"'images.example' is at a loopback address"):
            at_host("images.example").fetch(url)
        assert requests.get(server.url(), timeout=PATIENCE).content == PNG  # a connection before it is counted by now
        assert server.connections == 2


@pytest.mark.parametrize("addresses", [["127.0.0.1", PUBLIC], [PUBLIC, "127.0.0.1"]])
def test_one_address_that_is_not_public_closes_the_name(monkeypatch, addresses):
    with LoopbackServer(reply(PNG)) as server:
        url = server.url(host="images.example")
        resolve_to(monkeypatch, addresses)
        assert requests.get(url, timeout=PATIENCE).content == PNG  # falls through to the address that answers
        with pytest.raises(PolicyError, match="loopback"):
            at_host("images.example").fetch(url)
        assert server.connections == 1


def test_the_address_connected_to_is_judged_too(monkeypatch):
    """A name server is not the only one who can lead elsewhere: here the way to a public address ends at home."""
    guarded = socket.socket.connect
    with LoopbackServer(reply(PNG)) as server:
        url = server.url(host="images.example")
        resolve_to(monkeypatch, [PUBLIC])
        monkeypatch.setattr(
            socket.socket, "connect", lambda self, where: guarded(self, ("127.0.0.1", *where[1:]) if where[0] == PUBLIC else where)
        )  # fmt: skip
        assert requests.get(url, timeout=PATIENCE).content == PNG
        with pytest.raises(PolicyError, match="loopback"):
            at_host("images.example").fetch(url)
        assert len(server.requests) == 1
        with pytest.raises(PolicyError, match="loopback"):  # before TLS, which would fail here too
            at_host("images.example").fetch("https" + url[4:])


def test_the_connection_itself_knows_which_hosts_are_allowed(monkeypatch):
    """Whatever parser took the URL apart: what counts is the name that is dialled."""
    asked = resolve_to(monkeypatch, [PUBLIC])
    for pool_class in pool_classes(AllowedHosts(["images.example"]), 1).values():
        pool = pool_class("evil.example", timeout=3)
        with pytest.raises(PolicyError, match=r"'evil.example' is not among the allowed hosts"):
            pool.urlopen("GET", "/")
        pool.close()
    assert not asked


def test_the_address_of_an_ipv6_scope_is_refused(monkeypatch):
    answer = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2606:4700::1", 80, 0, 2))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: answer)
    with pytest.raises(PolicyError, match="an address with a scope"):
        at_host("images.example").fetch("http://images.example/")


def test_a_redirect_to_an_internal_server_is_refused():
    with LoopbackServer(reply(b"secret")) as internal:
        location = internal.url("/keys")
        with LoopbackServer(reply(status="302 Found", Location=location)) as server:
            assert requests.get(server.url(), timeout=PATIENCE).content == b"secret"
            with pytest.raises(PolicyError, match=r"host '127.0.0.1' is not among the allowed hosts"):
                fetcher(server).fetch(server.url())
            assert fetcher(server, internal).fetch(server.url()).data == b"secret"
            assert len(internal.requests) == 2


def test_a_redirect_to_an_allowed_name_at_an_internal_address_is_refused(monkeypatch):
    resolve_to(monkeypatch, ["127.0.0.1"])
    with LoopbackServer(reply(b"secret")) as internal:
        with LoopbackServer(reply(status="307 Temporary", Location=internal.url(host="b.example"))) as server:
            assert requests.get(server.url(), timeout=PATIENCE).content == b"secret"
            ours = Fetcher(MediaPolicy(allow_domains=[server.entry, "b.example"], fetch=True))
            with pytest.raises(PolicyError, match=r"'b.example' is at a loopback address"):
                ours.fetch(server.url())
        assert internal.connections == 1


@pytest.mark.parametrize(
    ("location", "fault", "words"),
    [
        ("file:///etc/passwd", PolicyError, "neither http nor https"),
        ("ftp://127.0.0.1/x", PolicyError, "neither http nor https"),
        ("data:image/png;base64,AAAA", PolicyError, "neither http nor https"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", PolicyError, "neither http nor https"),
        ("http://images.example\\@127.0.0.1/", SourceError, "redirects to a malformed URL"),
        ("http://key:secret@127.0.0.1/", SourceError, "redirects to a malformed URL"),
        ("http://[::1/", SourceError, "redirects to a malformed URL"),
        ("https://", SourceError, "redirects to a malformed URL"),
        ("\xff\xfe", SourceError, "redirects to a malformed URL"),
        ("//evil.example/x", PolicyError, "'evil.example' is not among the allowed"),
    ],
)
def test_a_redirect_is_judged_as_a_url_of_the_dataset_is(location, fault, words):
    with LoopbackServer(reply(status="301 Moved", Location=location)) as server:
        with pytest.raises((requests.exceptions.RequestException, ValueError)):
            requests.get(server.url(), timeout=PATIENCE)  # tried to follow: what stopped it is that it cannot
        with pytest.raises(fault, match=words) as caught:
            fetcher(server).fetch(server.url())
        assert "secret" not in str(caught.value)
        assert len(server.requests) == 2


def test_a_redirect_that_leads_back_ends_after_five_hops():
    with LoopbackServer(reply(status="308 Permanent", Location="/a.png")) as server:
        with pytest.raises(requests.exceptions.TooManyRedirects):
            requests.get(server.url(), timeout=PATIENCE)
        assert len(server.requests) == 31
        with pytest.raises(SourceError, match="redirects more than 5 times"):
            fetcher(server).fetch(server.url())
        assert len(server.requests) == 31 + 6


def test_five_hops_are_followed():
    hops = [reply(status="302 Found", Location=f"../{n}?k=v#x") for n in range(5)]
    with LoopbackServer(*hops, reply(PNG)) as server:
        got = fetcher(server).fetch(server.url("/x/y"))
        assert got.data == PNG
        assert got.url == server.url("/4")
        assert [head.split()[1] for head in server.requests] == [
            "/x/y",
            "/0?k=v",
            "/1?k=v",
            "/2?k=v",
            "/3?k=v",
            "/4?k=v",
        ]


def test_the_body_of_a_redirect_is_not_read():
    """Not even by a session that is told not to follow: requests reads it to give the connection back."""
    bomb = gzip.compress(bytes(32 << 20))
    head = f"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: {1 << 30}\r\n\r\n".encode()
    with LoopbackServer(reply(bomb, "302 Found", Location="/b", Content_Encoding="gzip")) as server:
        answer = requests.get(server.url(), timeout=PATIENCE, stream=True, allow_redirects=False)
        assert len(answer.content) == 32 << 20
    with LoopbackServer() as server:
        server._answers = [server.pour(head, 1 << 30), reply(PNG)]
        assert fetcher(server).fetch(server.url()).data == PNG
        assert server.sent < 16 << 20


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    with LoopbackServer(reply(b"proxied")) as proxy, LoopbackServer(reply(PNG)) as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url(""))
            monkeypatch.setenv(name.lower(), proxy.url(""))
        assert requests.get(server.url(), timeout=PATIENCE).content == b"proxied"
        assert fetcher(server).fetch(server.url()).data == PNG
        assert len(proxy.requests) == 1


def test_a_netrc_entry_is_not_sent(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with LoopbackServer(reply(PNG)) as server:
        requests.get(server.url(), timeout=PATIENCE)
        assert "Authorization: Basic" in server.requests[0]
        fetcher(server).fetch(server.url())
        assert "authorization" not in server.requests[1].lower()


def test_cookies_are_neither_kept_nor_sent_nor_parsed(monkeypatch):
    with LoopbackServer(reply(PNG, Set_Cookie="id=stranger; Path=/")) as server:
        with requests.Session() as session:
            session.get(server.url(), timeout=PATIENCE)
            session.get(server.url(), timeout=PATIENCE)
        assert "Cookie: id=stranger" in server.requests[1]

        parsed = []
        monkeypatch.setattr(http.cookiejar, "parse_ns_headers", lambda headers: parsed.extend(headers) or [])
        ours = fetcher(server)
        ours.fetch(server.url())
        ours.fetch(server.url())
        assert not parsed
        assert "cookie" not in "".join(server.requests[2:]).lower()


def test_nothing_but_what_a_request_needs_is_sent():
    with LoopbackServer(reply(PNG)) as server:
        fetcher(server).fetch(server.url("/a.png?key=1#part"))
        lines = server.requests[0].split("\r\n")
        assert lines[0] == "GET /a.png?key=1 HTTP/1.1"
        assert {line.split(":")[0].lower() for line in lines[1:] if line} == {"host", "user-agent", "accept", "accept-encoding"}  # fmt: skip
        assert "Accept-Encoding: identity" in lines


def test_a_url_that_two_parsers_read_differently_is_refused():
    with LoopbackServer(reply(PNG)) as server:
        url = f"http://images.example\\@127.0.0.1:{server.port}/a.png"
        assert urlsplit(url).hostname == "127.0.0.1"
        assert parse_url(url).host == "images.example"
        reader = MediaReader(MediaPolicy(fetch=True, allow_domains=["images.example", server.entry]))
        for bad in (url, f"http://images.example@127.0.0.1:{server.port}/", f"http://127.0.0.1:{server.port}\t/"):
            with pytest.raises(SourceError, match=r"backslash|user information|blank"):
                reader.read(MediaRef("image", bad))
            with pytest.raises(SourceError):
                fetcher(server).fetch(bad)
        for other in ("file:///etc/passwd", "ftp://127.0.0.1/", "a.png", f"//127.0.0.1:{server.port}/"):
            with pytest.raises(SourceError, match=r"is not an http\(s\) URL"):
                fetcher(server).fetch(other)
        assert server.connections == 0


def test_a_body_that_swells_is_refused():
    bomb = gzip.compress(bytes(64 << 20), 9)
    assert len(bomb) < 70_000
    with LoopbackServer(reply(bomb, Content_Encoding="gzip")) as server:
        assert len(requests.get(server.url(), timeout=PATIENCE).content) == 64 << 20
    for header in ("Content_Encoding", "Transfer_Encoding"):
        with LoopbackServer(reply(bomb, **{header: "gzip"})) as server:
            error = _refusal(fetcher(server), server.url())
            assert "has Content-Encoding 'gzip'; name a URL that serves the file uncompressed" in str(error)


def test_a_coding_that_is_none_is_taken():
    chunked = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: t\r\n\r\n"
    plain = reply(b"hello", Content_Encoding="Identity")
    with LoopbackServer(plain, reply(chunked, Content_Length=None, Transfer_Encoding="Chunked")) as server:
        ours = fetcher(server)
        assert [ours.fetch(server.url()).data for _ in range(2)] == [b"hello", b"hello world"]
        assert server.connections == 1


def _refusal(ours: Fetcher, url: str) -> BaseException:
    with pytest.raises((PolicyError, SourceError)) as caught:
        ours.fetch(url)
    return caught.value


def assert_ends_at_its_deadline(url: str, seconds: float, **options) -> None:
    """Hold that a fetch takes its time-out and little more, where nothing but its deadline would end it."""
    ours = Fetcher(MediaPolicy(allow_domains=[urlsplit(url).netloc], fetch=True, timeout=seconds))
    errors = []
    taken = elapsed_seconds(lambda: errors.append(_refusal(ours, url)), enough=seconds + 0.5)
    assert seconds <= taken < seconds + 0.5
    for error in errors:
        assert isinstance(error, PolicyError)
        assert f"took longer than timeout ({seconds:g} s); raise timeout to allow it" in str(error)


def outlives_its_timeout(ask) -> bool:
    """Tell whether ``ask(timeout)`` takes longer than its time-out; on a machine that stands still, only with a longer one."""
    for timeout in (0.1, 0.5, 2.5):
        with contextlib.suppress(requests.exceptions.Timeout, requests.exceptions.ConnectionError):
            if elapsed_seconds(lambda timeout=timeout: ask(timeout), tries=1) > timeout:
                return True
    return False


DRIPS = {
    "headers": (b"X-Y: z\r\n", b"HTTP/1.1 200 OK\r\n"),
    "one header": (b"z", b"HTTP/1.1 200 OK\r\nX-Y: "),
    "status": (b"1", b"HTTP/1."),
    "provisional answers": (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
    "body": (b"z", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
    "body without length": (b"z", b"HTTP/1.1 200 OK\r\n\r\n"),
    "chunks": (b"1\r\nz\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "a chunk's size": (b"0", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "trailers": (b"X: y\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n"),
}


@pytest.mark.parametrize(
    "what", [w if n % 2 == 0 else pytest.param(w, marks=pytest.mark.slow) for n, w in enumerate(DRIPS)]
)
def test_a_slow_drip_does_not_outlive_the_deadline(what):
    piece, head = DRIPS[what]

    def naive(timeout: float) -> None:
        to_the_end = []

        def drip(sock):
            sock.sendall(head)
            for _ in range(15):
                time.sleep(timeout / 10)
                sock.sendall(piece)
            to_the_end.append(True)

        with LoopbackServer(drip) as server, contextlib.suppress(requests.exceptions.RequestException, OSError):
            requests.get(server.url(), timeout=timeout)
        if not to_the_end:
            raise requests.exceptions.Timeout

    assert outlives_its_timeout(naive)  # every wait was shorter
    with LoopbackServer() as server:
        server._answers = [server.drip(piece, 0.01, head)]
        assert_ends_at_its_deadline(server.url(), 0.2)


def test_a_late_sign_of_life_does_not_start_the_wait_anew():
    def late_by(seconds: float):
        def late(sock):
            time.sleep(0.8 * seconds)
            sock.sendall(b"HTTP/1.1 200")

        return late

    def naive(timeout: float) -> None:
        def late(sock):
            late_by(timeout)(sock)
            time.sleep(0.9 * timeout)

        with LoopbackServer(late) as server:
            requests.get(server.url(), timeout=timeout)

    assert outlives_its_timeout(naive)  # the server gave up first
    with LoopbackServer() as server:

        def late(sock):
            late_by(0.4)(sock)
            server.hang(sock)

        server._answers = [late]
        assert_ends_at_its_deadline(server.url(), 0.4)


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_that_says_nothing_does_not_outlive_the_deadline(tls):
    with LoopbackServer() as server:
        server._answers = [server.hang]
        url = server.url()
        if tls:  # a plain server cannot answer the handshake: it waits for the end of a head that never comes
            url = "https" + url[4:]
        assert_ends_at_its_deadline(url, 0.2)


def test_redirects_share_the_deadline():
    def slow_by(seconds: float):
        def slow(sock):
            time.sleep(seconds)
            sock.sendall(reply(status="302 Found", Location="/b", Connection="close"))

        return slow

    def naive(timeout: float) -> None:
        with LoopbackServer(slow_by(timeout / 2)) as server, requests.Session() as session:
            session.max_redirects = 3
            with pytest.raises(requests.exceptions.TooManyRedirects):
                session.get(server.url(), timeout=timeout)

    assert outlives_its_timeout(naive)  # the time-out begins anew at each hop
    with LoopbackServer(slow_by(0.15)) as server:
        assert_ends_at_its_deadline(server.url(), 0.2)


def test_a_resolver_that_is_slow_does_not_outlive_the_deadline(monkeypatch):
    over = threading.Event()

    def slow(*_):
        over.wait(PATIENCE)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]

    before = threading.active_count()
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    begun = time.monotonic()
    threading.Timer(0.3, over.set).start()
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get("http://images.example:1/", timeout=0.1)
    assert over.is_set()
    assert time.monotonic() - begun > 0.25
    over.clear()
    with pytest.raises(PolicyError, match=r"took longer than timeout \(0.1 s\)"):
        at_host("images.example", timeout=0.1).fetch("http://images.example:1/")
    assert not over.is_set()  # the resolver still waits
    over.set()
    assert wait_until(lambda: threading.active_count() <= before)


@pytest.mark.parametrize("head", ["", "Transfer-Encoding: chunked\r\n"])
def test_an_endless_body_is_cut(head):
    start = f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + (b"fffffff\r\n" if head else b"")
    with LoopbackServer() as server:
        server._answers = [server.pour(start, 1 << 40)]
        with requests.get(server.url(), timeout=PATIENCE, stream=True) as answer:
            count = 0
            for piece in answer.iter_content(1 << 20):
                count += len(piece)
                if count > 50 << 20:
                    break
        assert count > 50 << 20  # nothing ends it
        server.sent = 0
        with pytest.raises(PolicyError, match=r"is larger than max_bytes \(1000000\); raise max_bytes to allow it"):
            fetcher(server, max_bytes=1_000_000).fetch(server.url())
        assert server.sent < 32 << 20


@pytest.mark.parametrize("length", [1001, 1 << 40, int("9" * 30)])
def test_a_length_over_the_limit_is_refused_before_anything_is_read(length):
    with LoopbackServer() as server:
        server._answers = [server.pour(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode(), 1 << 30)]
        with requests.get(server.url(), timeout=PATIENCE, stream=True) as answer:
            assert len(answer.raw.read(1 << 20)) == min(length, 1 << 20)
        server._answers = [server.drip(b"", 0.5, f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())]
        with pytest.raises(PolicyError, match=r"is larger than max_bytes \(1000\)"):
            fetcher(server, max_bytes=1000).fetch(server.url())  # there is no body to wait for


@pytest.mark.parametrize("length", [0, 5, 1000])
def test_exactly_what_is_allowed_is_taken(length):
    with LoopbackServer(reply(bytes(length)), reply(bytes(length), Content_Length=None)) as server:

        def until_closed(sock):
            sock.sendall(reply(bytes(length), Content_Length=None))

        server._answers = [reply(bytes(length)), until_closed]
        ours = fetcher(server, max_bytes=1000)
        assert [ours.fetch(server.url()).data for _ in range(2)] == [bytes(length)] * 2


def test_a_body_that_is_shorter_than_stated_is_an_error():
    def cut(sock):
        sock.sendall(reply(PNG[:40], Content_Length=len(PNG)))

    def cut_chunk(sock):
        sock.sendall(reply(b"ff\r\nhello", Content_Length=None, Transfer_Encoding="chunked"))

    for answer, words in ((cut, f"was cut off: 40 of {len(PNG)} bytes came"), (cut_chunk, "was cut off")):
        with LoopbackServer(answer) as server:
            with requests.get(server.url(), timeout=PATIENCE, stream=True) as naive:
                try:
                    data = naive.raw.read(1 << 16)  # a bounded read: the piece, and no word of what is missing
                except requests.packages.urllib3.exceptions.HTTPError:
                    data = None
                assert data == (PNG[:40] if answer is cut else None)
            with pytest.raises(SourceError, match=words):
                fetcher(server).fetch(server.url())


def test_a_chunk_of_a_negative_length_is_an_error():
    def negative(sock):
        sock.sendall(reply(b"-5\r\nhello", Content_Length=None, Transfer_Encoding="chunked"))

    with LoopbackServer(negative) as server:
        with (
            requests.get(server.url(), timeout=PATIENCE, stream=True) as naive,
            pytest.raises(ValueError, match="negative"),
        ):
            naive.raw.read(1 << 16)
        with pytest.raises(SourceError, match="was cut"):
            fetcher(server).fetch(server.url())


def test_what_follows_a_body_is_not_the_next_answer():
    with LoopbackServer(reply(PNG) + reply(b"smuggled"), reply(b"second")) as server:
        ours = fetcher(server)
        assert ours.fetch(server.url()).data == PNG
        time.sleep(0.05)
        assert ours.fetch(server.url()).data == b"second"


@pytest.mark.parametrize(
    "answer",
    [
        b"hello\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 " + b"2" * 70_000,
    ],
)
def test_an_answer_that_is_no_http_is_one_error(answer):
    with LoopbackServer(lambda sock: sock.sendall(answer)) as server:
        with pytest.raises(requests.exceptions.RequestException):
            requests.get(server.url(), timeout=PATIENCE)
        with pytest.raises(SourceError, match="gave no valid HTTP answer"):
            fetcher(server).fetch(server.url())
        assert len(server.requests) == 2


def test_a_certificate_that_nobody_vouches_for_is_refused(monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with LoopbackServer(reply(PNG), tls=True) as server:
        assert requests.get(server.url(), timeout=PATIENCE).content == PNG  # trusts what the environment names
        with pytest.raises(SourceError, match="has no valid TLS certificate"):
            fetcher(server).fetch(server.url())


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"no", "404 sk-SECRET"), reply(b"", "503 sk-SECRET"), reply(b"<html>sk-SECRET"), reply(status="302 Found", Location="http://evil.example/?key=sk-SECRET"),
        reply(b"x", Content_Encoding="gzip"), reply(b"", Content_Length=1 << 40), reset, b"sk-SECRET\r\n\r\n", reply(PNG, Content_Type="sk-SECRET-" * 20),
        reply(status="302 Found", Location="file:///sk-SECRET"), reply(status="302 Found", Location="http://user:sk-SECRET@evil.example/"),
    ],
)  # fmt: skip
def test_no_message_shows_a_query_a_key_or_what_the_server_said(answer):
    with LoopbackServer(answer) as server:
        reader = MediaReader(MediaPolicy(fetch=True, allow_domains=[server.entry]))
        url = server.url("/a.png?key=sk-SECRET&X-Amz-Signature=abcdef#frag")
        if isinstance(answer, bytes) and b"404" in answer:
            with pytest.raises(requests.exceptions.HTTPError, match=r"404 .*sk-SECRET for url: .*key=sk-SECRET"):
                requests.get(url, timeout=PATIENCE).raise_for_status()
        try:
            part = reader.read(MediaRef("image", url))
        except (PolicyError, SourceError) as error:
            told = f"{error} {error!r}"
        else:
            assert isinstance(part, MediaPart)
            assert len(part.findings) == 1
            told = part.origin
        assert "SECRET" not in told
        assert "abcdef" not in told
        assert "frag" not in told


def test_a_url_of_a_million_characters_is_not_taken_apart():
    fetcher = Fetcher(MediaPolicy(allow_domains=["allowed.test", "*.a.test"], fetch=True))
    host = "http://" + "a." * 300_000 + "test/x"
    path = "http://allowed.test/" + "%41" * 300_000
    for url in (host, path):
        unguarded = processor_seconds(lambda url=url: parse_url(url), tries=1)
        assert processor_seconds(lambda url=url: fetcher.allows(url), enough=unguarded / 3) < unguarded / 3
    assert (fetcher.allows(host), fetcher.allows(path)) == (False, True)
    with pytest.raises(SourceError, match="is 900020 characters long"):
        fetcher.fetch(path)


def test_no_descriptor_and_no_thread_is_left():
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("counts descriptors in /proc")
    answers = [
        reply(PNG), reply(b"x", "404 Not Found"), reply(b"x", Content_Encoding="gzip"), reply(status="302 Found", Location="file:///x"),
        reply(b"", Content_Length=1 << 40), lambda sock: sock.sendall(b"nonsense\r\n\r\n"), reply(PNG),
    ]  # fmt: skip
    at_host("localhost").allows("http://localhost/")
    with LoopbackServer(*answers) as server:
        at_start, threads = descriptors(), threading.active_count()
        ours, loopback = fetcher(server), at_host("localhost")
        for _ in answers:
            with contextlib.suppress(PolicyError, SourceError):
                ours.fetch(server.url())
            with pytest.raises(PolicyError):
                loopback.fetch(server.url(host="localhost"))
        ours.close()
        # the server's own ends close when it hears of ours
        assert wait_until(lambda: descriptors() <= at_start)
        assert wait_until(lambda: threading.active_count() <= threads)
