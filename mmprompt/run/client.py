"""The client of an OpenAI-compatible server: sends messages or ready requests, returns the reply.

Each thread has its own connections. Faults that may pass are tried again, with full jitter. Redirects are not followed,
so the key never goes to another host, and no error or log contains it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from mmprompt._version import __version__
from mmprompt.errors import MMPromptError, ServerError, nearest, shown
from mmprompt.media.fetch.per_thread import PerThread
from mmprompt.media.fetch.retries import PassingError, pause_before, retry_after, status_words
from mmprompt.media.sources import in_short
from mmprompt.messages import Message
from mmprompt.run.address import Key, check_address
from mmprompt.run.flight import FIRST_PAUSE, LONGEST_PAUSE, LONGEST_WISH
from mmprompt.run.model import Answer
from mmprompt.run.options import checked_options
from mmprompt.run.reply import Reply, joined, reply_of, said_in
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.limits import limits
from mmprompt.targets.openai import OpenAIWriter
from mmprompt.targets.wire_json import Payload, record_chunks

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

    from mmprompt.run.connections import Sender
    from mmprompt.run.plain_answer import PlainAnswer

ATTEMPTS = 5
TIMEOUT = 600.0
CHAT = "/chat/completions"
_LONGEST_CONNECT = 15.0
"""Seconds. A model may take long to reply, but a host that is up accepts a connection at once."""

_LATE_ATTEMPTS = 2
"""The most attempts of ``ask`` that may take the whole timeout."""

_LONGEST_REPLY = 64 << 20
_PASSING = frozenset((408, 409, 425, 429))
_BUSY = frozenset((429, 503))
_NO_ACCESS = frozenset((401, 403, 404))


class NoAccessError(ServerError):
    """The server refuses whatever is asked: the address, the key or the name of the model is wrong."""


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
        headers: further headers, whose values are hidden as the key is.

    Raises:
        ServerError: ``base_url`` is not the address of an API, ``model`` is empty, or ``timeout`` is not above 0.
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
        headers: Mapping[str, str] | None = None,
    ) -> None:
        check_address(base_url)
        if not model:
            raise ServerError("no model is given", "give the model's name on the server")
        if not 0.0 < timeout < float("inf"):
            raise ServerError(f"the timeout {timeout} is not a number above 0", "give seconds")
        if limits(target).wire != "openai":
            raise ServerError(f"the target {target} does not use OpenAI's API", nearest(target, ("vllm", "openai")))
        self.base_url = base_url.rstrip("/").removesuffix(CHAT)
        self.model = model
        self.timeout = timeout
        self.attempts = attempts
        self._writer = OpenAIWriter(target, payload=Payload)
        self._bearer = Key(f"Bearer {api_key}") if api_key else None
        self._headers = {name: Key(value) for name, value in (headers or {}).items()}
        self._secrets = [Key(secret) for secret in (api_key, *self._headers.values()) if secret]
        self._away = False
        self._replied = False
        self._senders: PerThread[Sender] = PerThread(self._new_sender, lambda sender: sender.close())

    def __repr__(self) -> str:
        """Show address and model, but not the key."""
        return f"ChatClient({self.base_url!r}, {self.model!r})"

    def close(self) -> None:
        """Close the connections of all threads; the next request opens its own."""
        self._senders.close()

    def ask(self, messages: Iterable[Message], **options: JSONValue) -> Reply:
        """Send messages and return the reply. If the server did not answer last time, there is only one attempt.

        Args:
            messages: with their media read.
            options: further keys of the request: ``temperature``, ``max_tokens`` or whatever the server accepts.

        Raises:
            TargetError: the target cannot carry a message.
            ServerError: the server cannot be reached, refuses the request, or returns no usable reply.
        """
        request = {"model": self.model, "messages": self._writer.write(messages), **checked_options(options)}
        body = record_chunks(request)
        attempts = 1 if self._away else self.attempts
        for attempt in range(1, attempts + 1):
            try:
                return self.reply(body)
            except PassingError as error:
                fault = error
            late = fault.kind == "late" and attempt >= _LATE_ATTEMPTS
            if attempt == attempts or late or (fault.after or 0.0) > LONGEST_WISH:
                break
            time.sleep(pause_before(attempt, FIRST_PAUSE, LONGEST_PAUSE, fault.after))
        self._away = fault.kind in ("away", "late")
        tries = f" ({attempt} attempts)" if attempt > 1 else ""
        raise ServerError(fault.what + tries, fault.hint)

    def answer(self, ask: Callable[[], Union[Reply, float]]) -> Answer:
        """Call ``ask``, which sends one request, and return its reply, its perplexity or its error with the time."""
        begun = time.monotonic()
        try:
            got = ask()
        except PassingError as fault:
            error = ServerError(fault.what, fault.hint)
            found = Answer(error=error, passing=True, after=fault.after, kind=fault.kind)
        except MMPromptError as refusal:
            found = Answer(error=refusal, hopeless=isinstance(refusal, NoAccessError) and not self._replied)
        else:
            self._replied = True
            found = Answer(reply=got) if isinstance(got, Reply) else Answer(perplexity=got)
        return found._replace(seconds=time.monotonic() - begun)

    def reply(self, body: Sequence[bytes]) -> Reply:
        """Send a request, the pieces of its JSON, once, and return the reply; errors as in ``post``."""
        answer = self.post(body)
        try:
            return reply_of(answer)
        except (LookupError, TypeError, AttributeError):
            raise self._no_reply(json.dumps(answer).encode()) from None

    def post(self, body: Sequence[bytes], path: str = CHAT) -> Mapping[str, Any]:
        """Send the pieces of JSON once, and return the object that the server answers. Those of a stream are joined.

        Raises:
            PassingError: another attempt may succeed.
            ServerError: the server refuses the request.
        """
        answer, kind = self._send(body, path)
        streamed = kind.strip().lower().startswith("text/event-stream")
        try:
            found = joined(answer) if streamed else json.loads(answer)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise self._no_reply(answer) from None
        if found is None and streamed:
            raise PassingError(f"{self.base_url} broke off its answer", "look into its log")
        if not isinstance(found, dict):
            raise self._no_reply(answer)
        return found

    def _send(self, body: Sequence[bytes], path: str) -> tuple[bytes, str]:
        """Send a request once, and return the body of its answer with its type."""
        from urllib3 import exceptions  # noqa: PLC0415  # heavy

        from mmprompt.run.connections import is_cut, is_ended, is_late  # noqa: PLC0415  # heavy

        answer: BaseHTTPResponse | PlainAnswer | None = None
        try:
            answer = self._senders.get().post(path, body)
            self._away = False
            self._check_status(answer)
            return _body(answer), answer.headers.get("Content-Type", "")
        except exceptions.SSLError as fault:
            if is_cut(fault):
                what = f"{self.base_url} broke off the TLS connection"
                raise PassingError(what, "look into its log", kind="away") from None
            what = f"{self.base_url} has no valid TLS certificate, or speaks no TLS"
            raise NoAccessError(what, "check the address: https:// or http://") from None
        except (exceptions.ConnectTimeoutError, exceptions.NewConnectionError, exceptions.ProxyError):
            hint = "start the server, or check the address"
            raise PassingError(f"{self.base_url} cannot be reached", hint, kind="away") from None
        except (exceptions.ReadTimeoutError, exceptions.ProtocolError) as fault:
            if is_late(fault):
                what = f"{self.base_url} gave no answer within {self.timeout:g} s"
                raise PassingError(what, "raise the timeout, or ask for fewer tokens", kind="late") from None
            if answer is not None:
                raise PassingError(f"{self.base_url} broke off its answer", "look into its log") from None
            if is_ended(fault):
                what = f"{self.base_url} ended the connection without an answer"
                raise PassingError(what, "look into its log", kind="away") from None
            raise self._not_http() from None
        except (exceptions.InvalidHeader, exceptions.DecodeError):
            raise self._not_http() from None
        except (exceptions.HTTPError, OSError) as fault:
            what = f"{self.base_url} failed the request ({type(fault).__name__})"
            raise NoAccessError(what, "check the address, and the proxy if there is one") from None
        except (ValueError, OverflowError):  # of http.client, for chunks of a negative size
            raise self._not_http() from None
        finally:
            if answer is not None:
                answer.close()

    def _not_http(self) -> PassingError:
        """Return the error of an answer that is not HTTP. Before its first reply, the server may be of another kind."""
        what, kind = f"{self.base_url} gave an answer that is not valid HTTP", "" if self._replied else "away"
        return PassingError(what, "check the address, or look into the server's log", kind=kind)

    def _check_status(self, answer: BaseHTTPResponse | PlainAnswer) -> None:
        """Raise an error with the server's own message for every status except 200."""
        status = answer.status
        if status == 200:
            return
        what = f"{self.base_url} answers {status_words(status)}"
        headers = answer.headers
        if 300 <= status < 400 and (place := headers.get("Location")):
            leads = in_short(self._hidden(place))
            raise NoAccessError(f"{what}, which leads to {leads}", "give that address as the base URL")
        what, hint = what + self._said(_body(answer)), _HINTS.get(status, "")
        if is_passing(status):
            after = retry_after(headers.get("Retry-After", ""), headers.get("retry-after-ms", ""))
            raise PassingError(what, hint, after, "busy" if status in _BUSY else "")
        raise (NoAccessError if status in _NO_ACCESS else ServerError)(what, hint)

    def _no_reply(self, body: bytes) -> PassingError:
        """Return the error of an answer with status 200 that holds no reply, as gateways give while a server starts."""
        what = f"{self.base_url} gave an answer without a reply{self._said(body)}"
        return PassingError(what, "check that the base URL is that of an OpenAI-compatible API")

    def _said(self, body: bytes) -> str:
        """Return the message in the body of a refusal, after a colon; an empty string if it has none."""
        said = self._hidden(said_in(body))
        return f": {shown(said, 300)}" if said else ""

    def _hidden(self, text: str) -> str:
        """Return a text of the server without the key and the values of the headers."""
        for secret in self._secrets:
            text = text.replace(secret, "<key>").replace(json.dumps(secret)[1:-1], "<key>")
        return text

    def _new_sender(self) -> Sender:
        from mmprompt.run.connections import Sender  # noqa: PLC0415  # heavy

        headers: dict[str, str] = {
            "User-Agent": f"mmprompt/{__version__}",
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip, deflate",
        }
        if self._bearer is not None and not any(name.lower() == "authorization" for name in self._headers):
            headers["Authorization"] = self._bearer
        return Sender(self.base_url, self.timeout, _LONGEST_CONNECT, {**headers, **self._headers})


def is_passing(status: int) -> bool:
    """Return whether another attempt may succeed after an answer with this status."""
    return status in _PASSING or status >= 500


_HINTS = {
    400: "look into the server's log: it does not take such a request",
    401: "set MMPROMPT_API_KEY (OPENAI_API_KEY for api.openai.com) to the server's key",
    403: "check that the key may use this model",
    404: "check the base URL (it often ends in /v1) and the name of the model",
    413: "send smaller media",
    429: "wait, or ask less at once",
}


def _body(answer: BaseHTTPResponse | PlainAnswer) -> bytes:
    """Read the body of an answer, up to a size; the connection keeps the deadline."""
    pieces: list[bytes] = []
    count = 0
    for piece in answer.stream(1 << 16):
        pieces.append(piece)
        count += len(piece)
        if count > _LONGEST_REPLY:
            raise ServerError(f"the answer is longer than {_LONGEST_REPLY >> 20} MiB", "check the server")
    return b"".join(pieces)
