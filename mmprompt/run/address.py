"""Which server a run asks, and what it sends there beside the requests.

A task file may come from a stranger. The server that it names is asked only if the caller names the same scheme, host
and port, or if it is on this machine. A server that the task file alone names gets no key. ``OPENAI_API_KEY`` goes only
to ``https://api.openai.com``. Any other server gets ``MMPROMPT_API_KEY``, or the variable that the *command line*
names: a task file cannot choose it.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from mmprompt.errors import ServerError
from mmprompt.media.fetch.hosts import host_and_port
from mmprompt.media.sources import in_short

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
        ServerError: no server is given, the task file alone names one that is not on this machine, or a key or header
            cannot be sent.
    """
    named = option or (os.environ if environ is None else environ).get(BASE_URL) or ""
    url = option or in_task_file or named
    if not url:
        raise ServerError("no server is given", f"give --base-url URL, or set {BASE_URL}")
    asked = check_address(url)
    if named and (check_address(named).scheme, host_and_port(named)) == (asked.scheme, host_and_port(url)):
        return Access(url, key_for(url, key_variable, environ), header_values(headers, environ))
    if not _is_loopback(str(asked.hostname)):
        raise ServerError(f"only the task file names the server {in_short(url)}", _GIVE)
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
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
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


OPENAI_KEY = "OPENAI_API_KEY"
OWN_KEY = "MMPROMPT_API_KEY"
_OPENAI_HOST = "api.openai.com"
_NOT_CARRIED = "holds characters that an HTTP header cannot carry"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_HIDDEN = "<hidden>"
_CLIENTS_OWN = ("connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding")


class Key(str):
    """A key, or a header with a key. Its ``repr`` does not show the text."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the text: tracebacks with local variables show this."""
        return "<key>"


def is_openai(base_url: str) -> bool:
    """Return whether a base URL is OpenAI's own, with TLS and the standard port."""
    parts = urlsplit(base_url)
    return parts.scheme == "https" and parts.netloc.lower() in (_OPENAI_HOST, f"{_OPENAI_HOST}:443")


def key_for(base_url: str, variable: str | None = None, environ: Mapping[str, str] | None = None) -> Key | None:
    """Return the key for a server, or None if the environment (by default that of the process) has none.

    A ``variable`` that the command line names must be set.

    Raises:
        ServerError: the variable is not set, its key is not for this server, or an HTTP header cannot carry it.
    """
    own = is_openai(base_url)
    if variable == OPENAI_KEY and not own:
        raise ServerError(f"{OPENAI_KEY} goes to https://{_OPENAI_HOST} only", f"set {OWN_KEY} for another server")
    name = variable or (OPENAI_KEY if own else OWN_KEY)
    key = _key_in(name, environ)
    if not key:
        if variable:
            raise _unset(variable, "set it to the server's key")
        return None
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ServerError(f"{_named(name) if variable else name} {_NOT_CARRIED}", "set it to the key alone, in ASCII")
    return key


def header_values(given: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, Key]:
    """Return headers by name, each given as ``NAME=VARIABLE``: the environment holds the value, as it may be secret.

    Raises:
        ServerError: a header is not of this form, the client sets it itself, or its variable cannot be sent.
    """
    headers: dict[str, Key] = {}
    for text in given:
        name, _, variable = text.partition("=")
        if not (_HEADER.fullmatch(name) and variable):
            raise ServerError("a header is not NAME=VARIABLE", "write --header X-Team=TEAM")
        if name.lower() in _CLIENTS_OWN:
            raise ServerError(f"the header {name} is not an option", "leave it out: the client sets it")
        value = _key_in(variable, environ)
        if not value:
            raise _unset(variable, "set it to the value of the header")
        if not (value.isascii() and value.isprintable()):
            raise ServerError(f"{_named(variable)} {_NOT_CARRIED}", "set it to ASCII text on one line")
        headers[name] = value
    return headers


def _key_in(name: str, environ: Mapping[str, str] | None) -> Key:
    """Return the key in a variable. It is a ``Key`` at once, so no traceback can show it as plain text."""
    return Key((os.environ if environ is None else environ).get(name, "").strip())


def _unset(variable: str, hint: str) -> ServerError:
    """Return the error of a variable that is not set; who typed the key in its place is told what to give."""
    name = _named(variable)
    give = hint if name != _HIDDEN else "set a variable such as TEAM_KEY to it, and give that name"
    return ServerError(f"the environment variable {name} is not set", give)


def _named(variable: str) -> str:
    """Return the name of a variable for a message. What does not look like one may be the key itself."""
    return f"'{variable}'" if _VARIABLE.fullmatch(variable) else _HIDDEN
