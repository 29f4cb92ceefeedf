"""The API key for a server, and a string type that hides it.

``OPENAI_API_KEY`` goes only to ``https://api.openai.com``. Any other server gets ``MMPROMPT_API_KEY``, or the variable
that the *command line* names. A task file cannot choose the variable: it may come from a stranger.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from mmprompt.errors import ServerError, shown

OPENAI_KEY = "OPENAI_API_KEY"
OWN_KEY = "MMPROMPT_API_KEY"
_OPENAI_HOST = "api.openai.com"
_NOT_CARRIED = "holds characters that an HTTP header cannot carry"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
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
            raise ServerError(f"the environment variable {shown(variable)} is not set", "set it to the server's key")
        return None
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ServerError(f"{name} {_NOT_CARRIED}", "set it to the key alone, in ASCII")
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
            raise ServerError(f"the header {shown(text)} is not NAME=VARIABLE", "write --header X-Team=TEAM")
        if name.lower() in _CLIENTS_OWN:
            raise ServerError(f"the header {name} is not an option", "leave it out: the client sets it")
        value = _key_in(variable, environ)
        if not value:
            what = f"the environment variable {shown(variable)} is not set"
            raise ServerError(what, f"set it to the value of the header {name}")
        if not (value.isascii() and value.isprintable()):
            raise ServerError(f"{shown(variable)} {_NOT_CARRIED}", "set it to ASCII text on one line")
        headers[name] = value
    return headers


def _key_in(name: str, environ: Mapping[str, str] | None) -> Key:
    """Return the key in a variable. It is a ``Key`` at once, so no traceback can show it as plain text."""
    return Key((os.environ if environ is None else environ).get(name, "").strip())
