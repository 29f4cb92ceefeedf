"""Fetching what an http(s) URL names, from the hosts that a policy allows.

A dataset's URL is a stranger's wish that this machine should ask another one. So hosts are allowed by name, addresses
judged by the connection itself (connections.py), and nothing of the user goes along: no proxy, cookie, netrc entry or
other credential. One deadline holds for everything, retries included.
"""

from __future__ import annotations

import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import urljoin

from mmprompt._version import __version__
from mmprompt.errors import PolicyError, SourceError, shown
from mmprompt.media.fetch.dead_hosts import DeadHosts
from mmprompt.media.fetch.hosts import AllowedHosts
from mmprompt.media.fetch.http_words import retry_after, status_words
from mmprompt.media.fetch.per_thread import PerThread
from mmprompt.media.fetch.retries import PassingError, pause_before
from mmprompt.media.media_types import declared_type
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sources import classify, in_short

if TYPE_CHECKING:
    from requests import Response
    from requests.adapters import HTTPAdapter

MOST_HOPS = 5
"""How many redirects are followed."""

_ATTEMPTS = 4
_FIRST_PAUSE = 0.25
"""Seconds; the pause before attempt n is anything up to twice the one before."""

_PIECE = 1 << 20
_LONGEST_URL = 1 << 16
"""Characters; servers take an eighth of that. Parsers take a hundred bytes of memory for each."""

_IDLE_HOSTS = 16

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PASSING = frozenset((429, 502, 503, 504))
_PORTS = {"http": 80, "https": 443}
_HEADERS = {
    "User-Agent": f"mmprompt/{__version__}",
    "Accept": "*/*",
    "Accept-Encoding": "identity",  # a compressed body could swell a thousandfold
}


class Fetched(NamedTuple):
    """What came: the bytes, the declared media type (normal form, empty if it says nothing), the last URL in short."""

    data: bytes
    declared: str
    url: str


class Fetcher:
    """Fetches under one policy. Safe to share between threads; pickles as its policy.

    Each thread keeps a few idle connections open for its next fetch, until the thread or the fetcher goes, or
    ``close``. A forked process opens its own. A host and port that could not be connected to is not tried again for a
    minute, by any thread: a dataset may name it in each of its rows.

    Raises:
        PolicyError: an allowed host that is not a host name.
    """

    __slots__ = ("_adapters", "_dead", "_hosts", "_limit", "_policy")

    def __init__(self, policy: MediaPolicy) -> None:
        self._policy = policy
        self._limit = policy.max_bytes
        self._hosts = AllowedHosts(policy.allow_domains if policy.fetch else ())
        self._dead = DeadHosts()
        self._adapters: PerThread[HTTPAdapter] = PerThread(partial(_new_adapter, self._hosts), _close_adapter)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the connections."""
        return (Fetcher, (self._policy,))

    def close(self) -> None:
        """Close the idle connections of all threads; the next fetch opens its own."""
        self._adapters.close()

    def allows(self, url: str) -> bool:
        """Tell whether the host of an http(s) URL is allowed; nothing is resolved or asked."""
        if not self._hosts:
            return False
        target = _host_of(url)
        return target is not None and self._hosts.allows(*target)

    def fetch(self, url: str) -> Fetched:
        """Return what ``url`` gives, at most ``max_bytes``, within ``timeout`` seconds in all.

        Raises:
            SourceError: no answer, one that is not 200, cut or compressed, or a URL that two parsers may read
                differently.
            PolicyError: a host or address that is not allowed, at first or after a redirect; larger; or later.
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
        raise SourceError(f"{in_short(url)} {what}{tries}", "try again later, or save the file beside the dataset")

    def _follow(self, url: str, deadline: float) -> Fetched:
        """Ask, and follow redirects; each hop is checked as the first one was."""
        current = url
        for _ in range(MOST_HOPS + 1):
            self._check(current)
            answer = self._ask(current, deadline)
            # closed, not drained: a redirect's own body may be endless. A body read to its end has given the
            # connection back before.
            with answer:
                if answer.status_code not in _REDIRECTS or "Location" not in answer.headers:
                    return Fetched(*self._body(answer, url), in_short(current))
                current = _redirected(current, answer.headers["Location"])
        raise SourceError(f"{in_short(url)} redirects more than {MOST_HOPS} times", "check the URL")

    def _check(self, url: str) -> None:
        if len(url) > _LONGEST_URL:
            raise SourceError(f"{in_short(url)} is a URL of {len(url)} characters", "shorten it")
        if classify(url).kind != "url":
            raise SourceError(f"{in_short(url)} is not an http(s) URL", "write https://host/path")
        target = _host_of(url)
        if target is None:
            raise SourceError(f"{in_short(url)} has a malformed host", "write https://host/path")
        self._hosts.check(*target)
        self._dead.check(target)

    def _ask(self, url: str, deadline: float) -> Response:
        """Send the request, and return the answer with its body unread.

        The adapter is used without a ``Session``: that one would take proxies, netrc and cookies along, and read the
        body of a redirect, unbounded and decompressed, even where it is told not to follow.
        """
        import requests  # noqa: PLC0415  # heavy
        from urllib3 import Timeout  # noqa: PLC0415  # likewise
        from urllib3.exceptions import HTTPError  # noqa: PLC0415  # likewise

        left = deadline - time.monotonic()
        if left <= 0:
            self._refuse_late(url)
        try:
            request = requests.Request("GET", url, headers=_HEADERS).prepare()
            # one limit for connecting, TLS and the answer: two numbers would each be the whole
            timeout: Any = Timeout(total=left)
            return self._adapters.get().send(request, stream=True, timeout=timeout, verify=True)
        except SourceError:  # of the connection: no such host, or nobody there
            self._mark_dead(url)
            raise
        except requests.exceptions.SSLError:
            raise SourceError(f"{in_short(url)} has no valid TLS certificate", "check the URL") from None
        except requests.exceptions.Timeout as error:
            # one that was asked late, after redirects or other attempts, may be well
            if isinstance(error, requests.exceptions.ConnectTimeout) and left > self._policy.timeout / 2:
                self._mark_dead(url)
            self._refuse_late(url)
        except requests.exceptions.ConnectionError as error:
            if time.monotonic() >= deadline:
                self._refuse_late(url)
            if _is_broken(error):
                raise PassingError("broke off the connection") from None
            raise SourceError(f"{in_short(url)} gave no valid HTTP answer", "check the URL") from None
        except (requests.exceptions.RequestException, HTTPError, UnicodeError):
            raise SourceError(f"{in_short(url)} gave no valid HTTP answer", "check the URL") from None

    def _body(self, answer: Response, url: str) -> tuple[bytes, str]:
        """Judge an answer by its head, and return its body and declared type."""
        headers = answer.headers
        status = answer.status_code
        if status in _PASSING:
            after = retry_after(headers.get("Retry-After", ""))
            raise PassingError(f"answers {status_words(status)}", after=after)
        if status != HTTPStatus.OK:
            raise SourceError(f"{in_short(url)} answers {status_words(status)}", "check the URL")
        transfer = headers.get("Transfer-Encoding", "").strip().lower()
        for encoding in (headers.get("Content-Encoding", "").strip().lower(), transfer.removesuffix("chunked")):
            if encoding not in ("", "identity"):
                raise SourceError(
                    f"{in_short(url)} has Content-Encoding {shown(encoding, 20)}",
                    "name a URL that serves the file uncompressed",
                )
        size = headers.get("Content-Length", "").strip()
        stated = int(size[:20]) if size.isascii() and size.isdigit() and not transfer else None
        if stated is not None and stated > self._limit:
            self._refuse_large(url)
        return self._read(answer, url, stated), declared_type(headers.get("Content-Type", "")[:200])

    def _read(self, answer: Response, url: str, stated: int | None) -> bytes:
        """Read the body by pieces, counting; the connection holds the deadline."""
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
        except (HTTPError, OSError, ValueError):  # the last for a chunk of a negative length
            raise PassingError(_cut(count, stated)) from None
        if stated is not None and count != stated:
            raise PassingError(_cut(count, stated))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _mark_dead(self, url: str) -> None:
        target = _host_of(url)
        if target is not None:
            self._dead.add(target)

    def _refuse_late(self, url: str) -> NoReturn:
        raise PolicyError(
            f"{in_short(url)} took longer than timeout ({self._policy.timeout:g} s)",
            "raise timeout to allow it, or use --policy trusted",
        )

    def _refuse_large(self, url: str) -> NoReturn:
        raise PolicyError(f"{in_short(url)} is larger than max_bytes ({self._limit})", "raise max_bytes to allow it")


def _new_adapter(hosts: AllowedHosts) -> HTTPAdapter:
    """Return an adapter whose connections judge where they lead."""
    from requests.adapters import HTTPAdapter  # noqa: PLC0415  # heavy

    from mmprompt.media.fetch.connections import pool_classes  # noqa: PLC0415  # likewise

    adapter = HTTPAdapter(pool_connections=_IDLE_HOSTS, pool_maxsize=1, max_retries=0)
    adapter.poolmanager.pool_classes_by_scheme = pool_classes(hosts)
    return adapter


def _close_adapter(adapter: HTTPAdapter) -> None:
    pools = adapter.poolmanager.pools
    for key in pools.keys():  # noqa: SIM118  # not a mapping that iterates
        # the adapter only forgets its pools; one that an error still refers to would stay open
        pool = pools.get(key)
        if pool is not None:
            pool.close()
    adapter.close()


def _host_of(url: str) -> tuple[str, int] | None:
    """Return host and port of a URL, as the library that dials reads them; None if it finds none."""
    from urllib3.exceptions import LocationParseError  # noqa: PLC0415  # heavy
    from urllib3.util import parse_url  # noqa: PLC0415  # heavy

    try:
        parts = parse_url(url[:_LONGEST_URL])
    except (LocationParseError, UnicodeError):
        return None
    port = _PORTS.get(parts.scheme or "")
    if not parts.host or port is None:
        return None
    return parts.host, parts.port or port


def _redirected(url: str, location: str) -> str:
    """Return the URL that a redirect leads to, judged as a dataset's own URL is.

    Raises:
        SourceError: two parsers may read it differently.
        PolicyError: it is of another scheme.
    """
    try:
        # headers come decoded as Latin-1, and hold UTF-8 where they are not ASCII
        target = urljoin(url, location.encode("latin-1").decode("utf-8"))
        source = classify(target)
    except (ValueError, SourceError):
        raise SourceError(f"{in_short(url)} redirects to a malformed URL", "check the URL") from None
    if source.kind != "url":
        raise PolicyError(
            f"{in_short(url)} redirects to a URL that is neither http nor https", "give the address of the file"
        )
    return target


def _is_broken(error: Exception) -> bool:
    """Tell whether the connection broke, rather than that what came through it was no HTTP."""
    fault: object = next(iter(error.args), None)  # urllib3's, which holds the cause as its last argument
    causes: tuple[object, ...] = getattr(fault, "args", ())
    return bool(causes) and isinstance(causes[-1], OSError)


def _cut(count: int, stated: int | None) -> str:
    return "was cut off" if stated is None else f"was cut off: {count} of {stated} bytes came"
