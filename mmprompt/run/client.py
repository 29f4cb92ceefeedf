"""The client of an OpenAI-compatible server: sends messages, returns the reply.

Each thread has its own session. Faults that may pass are tried again, with full jitter. Redirects are not followed, so
the key never goes to another host, and no error or log contains it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mmprompt._version import __version__
from mmprompt.errors import ServerError, nearest, shown
from mmprompt.media.fetch.per_thread import PerThread
from mmprompt.media.fetch.retries import PassingError, pause_before, retry_after, status_words
from mmprompt.media.sources import in_short
from mmprompt.messages import Message
from mmprompt.run.keys import Key
from mmprompt.run.reply import Reply, said_in, text_of
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.limits import limits
from mmprompt.targets.openai import OpenAIWriter
from mmprompt.targets.wire_json import Payload, record_chunks

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

ATTEMPTS = 5
TIMEOUT = 600.0
_LONGEST_CONNECT = 15.0
"""Seconds. A model may take long to reply, but a host that is up accepts a connection at once."""

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_LONGEST_WISH = 120.0
"""Seconds. If ``Retry-After`` asks for a longer wait, the request fails."""

_LONGEST_REPLY = 64 << 20
_PASSING = frozenset((408, 409, 425, 429))
_OWN = "leave it out: the client sets it"
_RESERVED = {
    **dict.fromkeys(("messages", "model"), _OWN),
    "stream": "replies come whole",
    "n": "ask again for another reply",
    "timeout": "it is a setting of the client",
    **dict.fromkeys(("extra_body", "extra_headers", "extra_query"), "write the server's own keys: top_k=5"),
}
"""Options that ``ask`` refuses, each with a hint: the client sets them, or they would lose part of the reply."""


class ChatClient:
    """Asks one model on one OpenAI-compatible server. Safe to share between threads.

    Proxies and certificates of the environment are used; netrc entries and cookies are not. A forked process opens its
    own connections.

    Args:
        base_url: the address of the API, such as ``http://127.0.0.1:8000/v1``.
        model: the name of the model on the server.
        api_key: sent as bearer token to this address only; see ``key_for``.
        timeout: seconds that one attempt may take.
        attempts: the most attempts for one request.
        target: what the server accepts: ``"vllm"``, ``"openai"``, or your own target of that wire form.

    Raises:
        ServerError: ``base_url`` is not the address of an API, or ``model`` is empty.
        TargetError: the target is unknown.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        target: str = "vllm",
    ) -> None:
        _check_url(base_url)
        if not model:
            raise ServerError("no model is given", "give the model's name on the server")
        if limits(target).wire != "openai":
            raise ServerError(f"the target {target} does not use OpenAI's API", nearest(target, ("vllm", "openai")))
        self.base_url = base_url.rstrip("/").removesuffix("/chat/completions")
        self.model = model
        self.timeout = timeout
        self.attempts = attempts
        self._writer = OpenAIWriter(target, payload=Payload)
        self._bearer = Key(f"Bearer {api_key}") if api_key else None
        self._secret = Key(api_key or "")
        self._away = False
        self._sessions: PerThread[Session] = PerThread(self._new_session, lambda session: session.close())

    def __repr__(self) -> str:
        """Show address and model, but not the key."""
        return f"ChatClient({self.base_url!r}, {self.model!r})"

    def close(self) -> None:
        """Close the connections of all threads; the next request opens its own."""
        self._sessions.close()

    def ask(self, messages: Iterable[Message], **options: JSONValue) -> Reply:
        """Send messages and return the reply. If the server was not reached last time, there is only one attempt.

        Args:
            messages: with their media read.
            options: further keys of the request: ``temperature``, ``max_tokens`` or whatever the server accepts.

        Raises:
            TargetError: the target cannot carry a message.
            ServerError: the server cannot be reached, refuses the request, or returns no usable reply.
        """
        for name, value in options.items():
            if name in _RESERVED:
                raise ServerError(f"{name} is not an option of a request", _RESERVED[name])
            _check_numbers(name, value)
        request = {"model": self.model, "messages": self._writer.write(messages), **options}
        body = b"".join(record_chunks(request))
        attempts = 1 if self._away else self.attempts
        for attempt in range(1, attempts + 1):
            try:
                return self._reply(self._post(body))
            except PassingError as error:
                fault = error
            if attempt == attempts or (fault.after or 0.0) > _LONGEST_WISH:
                break
            time.sleep(pause_before(attempt, _FIRST_PAUSE, _LONGEST_PAUSE, fault.after))
        self._away = fault.away
        tries = f" ({attempt} attempts)" if attempt > 1 else ""
        raise ServerError(fault.what + tries, fault.hint)

    def _post(self, body: bytes) -> bytes:
        """Send a request once, and return the body of its answer."""
        import requests  # noqa: PLC0415  # heavy

        from mmprompt.run.connections import is_late, was_there  # noqa: PLC0415  # heavy

        session = self._sessions.get()
        late = f"{self.base_url} gave no answer within {self.timeout:g} s"
        begun = False
        try:
            with session.post(
                f"{self.base_url}/chat/completions",
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=(min(self.timeout, _LONGEST_CONNECT), self.timeout),
                allow_redirects=False,
                stream=True,
            ) as answer:
                self._away, begun = False, True
                self._check_status(answer)
                return _body(answer)
        except requests.exceptions.SSLError:
            raise ServerError(f"{self.base_url} has no valid TLS certificate", "check the address") from None
        except requests.exceptions.ReadTimeout:
            raise ServerError(late, "raise the timeout, or ask for fewer tokens") from None
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as fault:
            if is_late(fault):
                raise ServerError(late, "raise the timeout, or ask for fewer tokens") from None
            if begun or was_there(fault):
                what = "broke off its answer" if begun else "ended the connection without an answer"
                raise PassingError(f"{self.base_url} {what}", "look into its log", away=not begun) from None
            hint = "start the server, or check the address"
            raise PassingError(f"{self.base_url} cannot be reached", hint, away=True) from None
        except requests.exceptions.RequestException as fault:
            what = f"{self.base_url} failed the request ({type(fault).__name__})"
            raise ServerError(what, "check the address, and the proxy if there is one") from None

    def _check_status(self, answer: Response) -> None:
        """Raise an error with the server's own message for every status except 200."""
        status = answer.status_code
        if status == 200:
            return
        what = f"{self.base_url} answers {status_words(status)}"
        if 300 <= status < 400:
            leads = in_short(answer.headers.get("Location", ""))
            raise ServerError(f"{what}, which leads to {leads}", "give that address as the base URL")
        what, hint = what + self._said(_body(answer)), _HINTS.get(status, "")
        if status in _PASSING or status >= 500:
            raise PassingError(what, hint, retry_after(answer.headers.get("Retry-After", "")))
        raise ServerError(what, hint)

    def _said(self, body: bytes) -> str:
        """Return the message in the body of a refusal, after a colon; an empty string if it has none."""
        said = said_in(body)
        if self._secret:
            said = said.replace(self._secret, "<key>")
        return f": {shown(said, 300)}" if said else ""

    def _reply(self, body: bytes) -> Reply:
        """Return the reply in the body of an answer."""
        try:
            answer = json.loads(body)
            choice = answer["choices"][0]
            usage = answer.get("usage")
            known = usage if isinstance(usage, dict) else None
            return Reply(text_of(choice["message"]), str(choice.get("finish_reason") or ""), known, choice["message"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            what = f"{self.base_url} gave an answer without a reply{self._said(body)}"
            raise ServerError(what, "check that the base URL is that of an OpenAI-compatible API") from None

    def _new_session(self) -> Session:
        """Return a session that keeps to the timeout, ignores cookies, and sends the key."""
        from http.cookiejar import DefaultCookiePolicy  # noqa: PLC0415  # heavy, as the next

        import requests  # noqa: PLC0415  # heavy

        from mmprompt.run.connections import timed_adapter  # noqa: PLC0415  # heavy

        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, timed_adapter(self.timeout))
        session.headers["User-Agent"] = f"mmprompt/{__version__}"
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        session.auth = self._signed  # an auth also keeps netrc from being read
        return session

    def _signed(self, request: PreparedRequest) -> PreparedRequest:
        """Return a request with the key, if there is one."""
        if self._bearer is not None:
            request.headers["Authorization"] = self._bearer
        return request


_HINTS = {
    400: "look into the server's log: it does not take such a request",
    401: "set MMPROMPT_API_KEY (OPENAI_API_KEY for api.openai.com) to the server's key",
    403: "check that the key may use this model",
    404: "check the base URL (it often ends in /v1) and the name of the model",
    413: "send smaller media",
    429: "wait, or ask less at once",
}


def _check_url(base_url: str) -> None:
    """Refuse a base URL that is not a plain http(s) address."""
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound or not base_url.isprintable() or " " in base_url:
        raise ServerError(f"{in_short(base_url)} is not the address of an API", "write http://HOST:PORT/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        what = f"the base URL {in_short(base_url)} carries user information, a query or a fragment"
        raise ServerError(what, "write http://HOST:PORT/v1, and put the key into MMPROMPT_API_KEY")


def _check_numbers(name: str, value: object) -> None:
    """Refuse an option that holds NaN or infinity. Other values that are not JSON are refused when they are written."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ServerError(f"{name} holds NaN or infinity, which JSON does not have", "give a finite number") from None
    except (TypeError, RecursionError):
        return


def _body(answer: Response) -> bytes:
    """Read the body of an answer, up to a size; the connection keeps the deadline."""
    pieces: list[bytes] = []
    count = 0
    for piece in answer.iter_content(1 << 16):
        pieces.append(piece)
        count += len(piece)
        if count > _LONGEST_REPLY:
            raise ServerError(f"the answer is longer than {_LONGEST_REPLY >> 20} MiB", "check the server")
    return b"".join(pieces)
