"""A host that cannot be connected to is asked once, not once for each row."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from loopback_server import LoopbackServer, closed_port, reply

from mmprompt.errors import MediaError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.fetch import hosts
from mmprompt.media.fetch.fetcher import Fetcher

AGAIN = r"could not be connected to .* ago; check the URL, and the network; it is tried again after 60 s"


@pytest.fixture
def port() -> Iterator[int]:
    with closed_port() as number:
        yield number


def allowing(*ports: int, timeout: float = 20.0) -> MediaPolicy:
    return MediaPolicy(allow_domains=[f"127.0.0.1:{port}" for port in ports], fetch=True, timeout=timeout)


def test_a_closed_port_is_tried_once_and_its_other_rows_are_refused_in_those_words(port):
    fetcher = Fetcher(allowing(port))
    with pytest.raises(SourceError, match="cannot be reached"):
        fetcher.fetch(f"http://127.0.0.1:{port}/a.png")
    with pytest.raises(SourceError, match=rf"'127.0.0.1:{port}' {AGAIN}"):
        fetcher.fetch(f"http://127.0.0.1:{port}/b.png?key=1")


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue is silent on Linux alone")
def test_a_host_that_is_silent_costs_its_deadline_once_for_all_threads():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        address = silent.getsockname()
        waiting = [socket.socket() for _ in range(4)]  # they fill the queue
        try:
            for sock in waiting:
                sock.setblocking(False)
                sock.connect_ex(address)
            with LoopbackServer() as warm:  # what the first fetch imports must not take the time of the silent host
                Fetcher(allowing(warm.port)).fetch(warm.url())
            fetcher = Fetcher(allowing(address[1], timeout=1.0))
            with pytest.raises(MediaError, match="longer than timeout"):
                fetcher.fetch(f"http://127.0.0.1:{address[1]}/a.png")

            def ask(number: int) -> str:
                with pytest.raises(SourceError, match=AGAIN) as caught:
                    fetcher.fetch(f"http://127.0.0.1:{address[1]}/{number}.png")
                return str(caught.value)

            with ThreadPoolExecutor(8) as pool:
                assert len(list(pool.map(ask, range(200)))) == 200  # none of them has waited
        finally:
            for sock in waiting:
                sock.close()


def test_another_port_of_the_host_a_slow_answer_and_a_broken_one_are_not_held_against_it(port):
    with LoopbackServer(reply(b"good")) as good, LoopbackServer(reply(b"", "404 Not Found"), reply(b"late")) as bad:
        fetcher = Fetcher(allowing(port, good.port, bad.port))
        for url in (f"http://127.0.0.1:{port}/", bad.url()):
            with pytest.raises(SourceError):
                fetcher.fetch(url)
        assert fetcher.fetch(good.url()).data == b"good"
        assert fetcher.fetch(bad.url()).data == b"late"
        fetcher.close()


def test_it_is_tried_again_after_a_while(monkeypatch, port):
    monkeypatch.setattr(hosts, "_SECONDS", 0.05)
    fetcher = Fetcher(allowing(port))
    with pytest.raises(SourceError, match="cannot be reached"):
        fetcher.fetch(f"http://127.0.0.1:{port}/a.png")
    time.sleep(0.06)
    with pytest.raises(SourceError, match="cannot be reached"):
        fetcher.fetch(f"http://127.0.0.1:{port}/a.png")


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(hosts, "_MOST", 3)
    words = []
    with ExitStack() as held:
        ports = [held.enter_context(closed_port()) for _ in range(5)]
        fetcher = Fetcher(allowing(*ports))
        for port in ports:
            with pytest.raises(SourceError, match="cannot be reached"):
                fetcher.fetch(f"http://127.0.0.1:{port}/")
        for port in reversed(ports):
            with pytest.raises(SourceError) as caught:
                fetcher.fetch(f"http://127.0.0.1:{port}/")
            words.append("ago" in str(caught.value))
    assert words.count(True) == 3
