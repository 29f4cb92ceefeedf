"""AISBench's HTTP session with pauses. AISBench tries a request again at once, and after a 429 or a 500 not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from mmprompt.errors import ServerError, shown
from mmprompt.media.fetch.retries import pause_before, retry_after, status_words
from mmprompt.plugins.bridge.console import tell
from mmprompt.run.client import is_passing
from mmprompt.run.flight import FIRST_PAUSE, LONGEST_PAUSE, LONGEST_WISH
from mmprompt.run.reply import said_in

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_UNREACHED = "start the server, or check host_ip and host_port"
_ATTEMPT: ContextVar[int] = ContextVar("mmprompt_attempt")
"""The number of the last attempt at the request of this task of asyncio."""


class PatientSession:
    """The part of an aiohttp session that AISBench's models use, for the attempts at one request.

    ``attempts`` is their number, which AISBench calls ``retry``.
    """

    def __init__(self, session: ClientSession, attempts: int) -> None:
        self._session = session
        self._attempts = attempts
        _ATTEMPT.set(0)

    @asynccontextmanager
    async def post(self, url: str, **request: Any) -> AsyncIterator[ClientResponse]:
        """Send a request, and give the response.

        Raises:
            ServerError: the server cannot be reached, or another attempt may succeed after its answer. If there is
                another attempt, the error comes after a pause, at least as long as the server asks for.
        """
        from aiohttp import ClientConnectorError  # noqa: PLC0415  # the runner's

        attempt = _ATTEMPT.get() + 1
        _ATTEMPT.set(attempt)
        after = None
        try:
            async with self._session.post(url=url, **request) as response:
                if not is_passing(response.status):
                    yield response
                    return
                headers = response.headers
                after = retry_after(headers.get("Retry-After", ""), headers.get("retry-after-ms", ""))
                error = await _refusal(url, response)
        except ClientConnectorError:
            error = ServerError(f"{url} cannot be reached", _UNREACHED)
        if attempt >= self._attempts:
            tell_once(f"mmprompt: {error}")
        else:
            await asyncio.sleep(min(pause_before(attempt, FIRST_PAUSE, LONGEST_PAUSE, after), LONGEST_WISH))
        raise error


async def _refusal(url: str, response: ClientResponse) -> ServerError:
    said = said_in(await response.read())
    return ServerError(f"{url} answers {status_words(response.status)}" + (f": {shown(said, 300)}" if said else ""))


@cache
def tell_once(text: str) -> None:
    """Write a text on the console of the runner's command, unless this process has written it there."""
    tell(text)
