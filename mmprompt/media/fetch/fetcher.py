"""Fetches http(s) URLs from the hosts that a policy allows.

A URL in a dataset lets a stranger choose which machine this one contacts. So hosts are allowed by name, the connection
itself checks the address (connections.py), and no proxy, cookie, netrc entry or other credential is used. One deadline
covers everything, retries included.
"""

from __future__ import annotations

import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import urljoin

from mmprompt._version import __version__
from mmprompt.errors import PolicyError, SourceError, shown
from mmprompt.media.fetch.hosts import LONGEST_URL, AllowedHosts, DeadHosts, host_and_port
from mmprompt.media.fetch.per_thread import PerThread
from mmprompt.media.fetch.retries import PassingError, pause_before, retry_after, status_words
from mmprompt.media.media_types import declared_type
from mmprompt.media.policy import MediaPolicy, limit_error
from mmprompt.media.sources import classify, in_short

if TYPE_CHECKING:
    from requests import Response
    from requests.adapters import HTTPAdapter

MOST_HOPS = 5
"""How many redirects are followed."""

_ATTEMPTS = 4
_FIRST_PAUSE = 0.25
"""Seconds, at most, before the second attempt; the bound doubles with each attempt."""

_PIECE = 1 << 20
_IDLE_HOSTS = 16
_MOST_FRAMING = 1 << 24
"""Bytes of heads and chunks, beside twice the bytes that a file may have."""

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PASSING = frozenset((429, 502, 503, 504))
_HEADERS = {
    "User-Agent": f"mmprompt/{__version__}",
    "Accept": "*/*",
    "Accept-Encoding": "identity",  # a compressed body could grow a thousandfold
}


class Fetched(NamedTuple):
    """A fetched file: bytes, declared media type (normalised; empty if it says nothing), and last URL in short."""

    data: bytes
    declared: str
    url: str


class Fetcher:
    """Fetches URLs under one policy. Safe to share between threads; pickles as its policy.

    Each thread keeps a few idle connections open for its next fetch, until ``close`` or the end of the thread or
    fetcher. A forked process opens its own. A host and port that could not be connected to is not tried again for a
    minute: a dataset may name it in each of its rows.

    Raises:
        PolicyError: an allowed host is not a host name.
    """

    __slots__ = ("_adapters", "_dead", "_hosts", "_limit", "_policy")

    def __init__(self, policy: MediaPolicy) -> None:
        self._policy = policy
        self._limit = policy.max_bytes
        self._hosts = AllowedHosts(policy.allow_domains if policy.fetch else ())
        self._dead = DeadHosts()
        adapter = partial(_new_adapter, self._hosts, 2 * self._limit + _MOST_FRAMING)
        self._adapters: PerThread[HTTPAdapter] = PerThread(adapter, _close_adapter)

    def __reduce__(self) -> tuple[object, ...]:
        return (Fetcher, (self._policy,))

    def close(self) -> None:
        """Close the idle connections of all threads; the next fetch opens its own."""
        self._adapters.close()

    def allows(self, url: str) -> bool:
        """Return whether the host of an http(s) URL is allowed; nothing is resolved or sent."""
        if not self._hosts:
            return False
        target = host_and_port(url)
        return target is not None and self._hosts.allows(*target)

    def fetch(self, url: str) -> Fetched:
        """Return the file at ``url``.

        Raises:
            SourceError: there is no answer; its status is not 200; it is cut off or compressed; or two parsers may
                read the URL differently.
            PolicyError: a host or address is not allowed, also after a redirect; the file has more than ``max_bytes``;
                or all attempts together take longer than ``timeout``.
        """
        deadline = time.monotonic() + self._policy.timeout
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._follow(url, deadline)
            except PassingError as fault:
                what, after = fault.what, fault.after
            pause = pause_before(attempt, _FIRST_PAUSE, self._policy.timeout, after)
            if attempt == _ATTEMPTS or pause >= deadline - time.monotonic():
                break
            time.sleep(pause)
        tries = f" ({attempt} attempts)" if attempt > 1 else ""
        raise SourceError(
            f"{in_short(url)} {what}{tries}", "try again later, or save the file beside the dataset", code="MM218"
        )

    def _follow(self, url: str, deadline: float) -> Fetched:
        """Send the request and follow redirects; each hop is checked as the first one."""
        current = url
        for _ in range(MOST_HOPS + 1):
            self._check(current)
            answer = self._ask(current, deadline)
            # closed, not drained: the body of a redirect may be endless. A body that was read to its end has
            # returned its connection before.
            with answer:
                if answer.status_code not in _REDIRECTS or "Location" not in answer.headers:
                    return Fetched(*self._body(answer, url), in_short(current))
                current = _redirected(current, answer.headers["Location"])
        raise SourceError(f"{in_short(url)} redirects more than {MOST_HOPS} times", "check the URL", code="MM218")

    def _check(self, url: str) -> None:
        if len(url) > LONGEST_URL:
            raise SourceError(f"{in_short(url)} is {len(url)} characters long", "shorten it", code="MM217")
        if classify(url).kind != "url":
            raise SourceError(f"{in_short(url)} is not an http(s) URL", "write https://host/path", code="MM217")
        target = host_and_port(url)
        if target is None:
            raise SourceError(f"{in_short(url)} has a malformed host", "write https://host/path", code="MM217")
        self._hosts.check(*target)
        self._dead.check(target)

    def _ask(self, url: str, deadline: float) -> Response:
        """Send the request, and return the answer with its body unread.

        The adapter is used without a ``Session``, which would use proxies, netrc and cookies, and would read the body
        of a redirect without a bound and decompressed, even if it does not follow it.
        """
        import requests  # noqa: PLC0415  # heavy
        from urllib3 import Timeout  # noqa: PLC0415  # heavy
        from urllib3.exceptions import HTTPError  # noqa: PLC0415  # heavy

        left = deadline - time.monotonic()
        if left <= 0:
            self._refuse_late(url)
        try:
            request = requests.Request("GET", url, headers=_HEADERS).prepare()
            # one limit for connecting, TLS and the answer together
            timeout: Any = Timeout(total=left)
            return self._adapters.get().send(request, stream=True, timeout=timeout, verify=True)
        except SourceError:  # of the connection: the host is unknown or does not answer
            self._mark_dead(url)
            raise
        except requests.exceptions.SSLError:
            raise SourceError(f"{in_short(url)} has no valid TLS certificate", "check the URL", code="MM218") from None
        except requests.exceptions.Timeout as error:
            # a host that was asked late, after redirects or other attempts, may be fine
            if isinstance(error, requests.exceptions.ConnectTimeout) and left > self._policy.timeout / 2:
                self._mark_dead(url)
            self._refuse_late(url)
        except requests.exceptions.ConnectionError as error:
            if time.monotonic() >= deadline:
                self._refuse_late(url)
            if _is_broken(error):
                raise PassingError("broke off the connection") from None
            raise SourceError(f"{in_short(url)} gave no valid HTTP answer", "check the URL", code="MM218") from None
        except (requests.exceptions.RequestException, HTTPError, UnicodeError):
            raise SourceError(f"{in_short(url)} gave no valid HTTP answer", "check the URL", code="MM218") from None

    def _body(self, answer: Response, url: str) -> tuple[bytes, str]:
        """Check an answer by its status and headers, and return its body and declared type."""
        headers = answer.headers
        status = answer.status_code
        if status in _PASSING:
            after = retry_after(headers.get("Retry-After", ""))
            raise PassingError(f"answers {status_words(status)}", after=after)
        if status != HTTPStatus.OK:
            raise SourceError(f"{in_short(url)} answers {status_words(status)}", "check the URL", code="MM218")
        transfer = headers.get("Transfer-Encoding", "").strip().lower()
        for encoding in (headers.get("Content-Encoding", "").strip().lower(), transfer.removesuffix("chunked")):
            if encoding not in ("", "identity"):
                raise SourceError(
                    f"{in_short(url)} has Content-Encoding {shown(encoding, 20)}",
                    "name a URL that serves the file uncompressed",
                    code="MM218",
                )
        size = headers.get("Content-Length", "").strip()
        stated = int(size[:20]) if size.isascii() and size.isdigit() and not transfer else None
        if stated is not None and stated > self._limit:
            self._refuse_large(url)
        return self._read(answer, url, stated), declared_type(headers.get("Content-Type", "")[:200])

    def _read(self, answer: Response, url: str, stated: int | None) -> bytes:
        """Read the body in pieces and count its bytes; the connection keeps the deadline."""
        from urllib3.exceptions import HTTPError, ReadTimeoutError  # noqa: PLC0415  # heavy

        pieces: list[bytes] = []
        count = 0
        try:
            while piece := answer.raw.read(_PIECE, decode_content=False):
                pieces.append(piece)
                count += len(piece)
                if count > self._limit:
                    self._refuse_large(url)
                if count == stated:
                    break
        except ReadTimeoutError:
            self._refuse_late(url)
        except (HTTPError, OSError, ValueError, OverflowError):  # the last two for chunks of a negative size
            raise PassingError(_cut(count, stated)) from None
        if stated is not None and count != stated:
            raise PassingError(_cut(count, stated))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _mark_dead(self, url: str) -> None:
        target = host_and_port(url)
        if target is not None:
            self._dead.add(target)

    def _refuse_late(self, url: str) -> NoReturn:
        raise limit_error(f"{in_short(url)} took longer than timeout ({self._policy.timeout:g} s)", "timeout", "MM218")

    def _refuse_large(self, url: str) -> NoReturn:
        raise limit_error(f"{in_short(url)} is larger than max_bytes ({self._limit})", "max_bytes", "MM211")


def _new_adapter(hosts: AllowedHosts, most: int) -> HTTPAdapter:
    """Return an adapter whose connections check the address they connect to, and read ``most`` bytes of an answer."""
    from requests.adapters import HTTPAdapter  # noqa: PLC0415  # heavy

    from mmprompt.media.fetch.connections import pool_classes  # noqa: PLC0415  # heavy

    adapter = HTTPAdapter(pool_connections=_IDLE_HOSTS, pool_maxsize=1, max_retries=0)
    adapter.poolmanager.pool_classes_by_scheme = pool_classes(hosts, most)
    return adapter


def _close_adapter(adapter: HTTPAdapter) -> None:
    pools = adapter.poolmanager.pools
    for key in pools.keys():  # noqa: SIM118  # not a mapping that iterates
        # the adapter only forgets its pools; one that an error still refers to would stay open
        pool = pools.get(key)
        if pool is not None:
            pool.close()
    adapter.close()


def _redirected(url: str, location: str) -> str:
    """Return the URL of a redirect, checked as a URL of a dataset."""
    try:
        # headers come decoded as Latin-1, and hold UTF-8 where they are not ASCII
        target = urljoin(url, location.encode("latin-1").decode("utf-8"))
        source = classify(target)
    except (ValueError, SourceError):
        raise SourceError(f"{in_short(url)} redirects to a malformed URL", "check the URL", code="MM217") from None
    if source.kind != "url":
        raise PolicyError(
            f"{in_short(url)} redirects to a URL that is neither http nor https", "give the address of the file"
        )
    return target


def _is_broken(error: Exception) -> bool:
    """Return whether the connection broke; if not, the answer was not HTTP."""
    fault: object = next(iter(error.args), None)  # urllib3's, which holds the cause as its last argument
    causes: tuple[object, ...] = getattr(fault, "args", ())
    return bool(causes) and isinstance(causes[-1], OSError)


def _cut(count: int, stated: int | None) -> str:
    return "was cut off" if stated is None else f"was cut off: {count} of {stated} bytes came"
