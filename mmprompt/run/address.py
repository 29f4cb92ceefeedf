"""Which server a run asks, and what it sends there beside the requests.

A task file may come from a stranger. The server that it names is asked only where it is this machine or the caller
names the same host, and a host that it alone names gets no key.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from mmprompt.errors import ServerError
from mmprompt.media.sources import in_short
from mmprompt.run.keys import Key, header_values, key_for

BASE_URL = "MMPROMPT_BASE_URL"
_GIVE = "give --base-url URL if you trust it"


class Access(NamedTuple):
    """The address of an API, with the key and the headers that go there."""

    base_url: str
    key: Key | None
    headers: Mapping[str, Key]


def server_access(
    option: str | None,
    in_task_file: str | None = None,
    *,
    key_variable: str | None = None,
    headers: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Access:
    """Return which server to ask, and the key and headers for it.

    Args:
        option: the ``--base-url`` of the command line, which counts first.
        in_task_file: the address that a task file of data names; ``MMPROMPT_BASE_URL`` counts after it.
        key_variable: the environment variable of the key, where the command line names one.
        headers: further headers as ``NAME=VARIABLE``.
        environ: by default the environment of the process.

    Raises:
        ServerError: no server is given, one is named by the task file alone, or a key or header cannot be sent.
    """
    named = option or (os.environ if environ is None else environ).get(BASE_URL) or ""
    url = option or in_task_file or named
    if not url:
        raise ServerError("no server is given", f"give --base-url URL, or set {BASE_URL}")
    asked = check_address(url)
    same = bool(named) and check_address(named).hostname == asked.hostname
    if not same and not _is_loopback(str(asked.hostname)):
        raise ServerError(f"only the task file names the server {in_short(url)}", _GIVE)
    if same and (asked.scheme == "https" or check_address(named).scheme == "http"):
        return Access(url, key_for(url, key_variable, environ), header_values(headers, environ))
    if key_variable or list(headers):
        raise ServerError(f"only the task file names {in_short(url)}, so no key or header goes there", _GIVE)
    return Access(url, None, {})


def check_address(base_url: str) -> SplitResult:
    """Return the parts of a base URL, which is a plain http(s) address.

    Raises:
        ServerError: it is not.
    """
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
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
