"""URLs as text: http(s) URLs that every parser reads alike, and ``file://`` URLs. Nothing is opened or resolved."""

from __future__ import annotations

import os
import re
import unicodedata

from mmprompt.errors import SourceError, shown

_FORM = r"(?i:https?)://(?:[%s]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?(?:[/?#][%s]*)?\Z"
_URL = re.compile(_FORM % (r"^\s\\@/?#:\[\]\x00-\x20\x7f-\x9f", r"^\s\\\x00-\x20\x7f-\x9f"))
is_plain_url = re.compile(_FORM % (r"!\"$-.0-9;->A-Z^-~", r"!-\[\]-~")).match
"""Return a match for an ASCII http(s) URL that every parser reads alike, as nearly all are."""

_BAD_IN_URL = re.compile(r"[\s\\\x00-\x20\x7f-\x9f]")
_LINE_ENDS = "\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85"
_SHOWN = 80


def check_url(url: str) -> None:
    """Refuse an http(s) URL on which two parsers may disagree.

    Raises:
        SourceError: it holds blanks, backslashes, control characters or user information, or its host is malformed.
    """
    if not _URL.match(url):
        fault, hint = _url_fault(url)
        raise SourceError(f"{short_url(url)} {fault}", hint, code="MM217")
    if not url.isascii() and _has_lookalikes(_authority(url)):
        raise SourceError(
            f"{short_url(url)} has a host that parsers read differently", "write the host in ASCII", code="MM217"
        )


def _has_lookalikes(authority: str) -> bool:
    """Return whether a character is a separator to parsers that normalise, such as a full-width solidus."""
    return any(c in "/?#@:\\" for o in authority for c in unicodedata.normalize("NFKC", o) if o != ":")


def _url_fault(url: str) -> tuple[str, str]:
    """Return what is wrong with a URL that ``_URL`` does not match, and a hint."""
    bad = _BAD_IN_URL.search(url)
    if bad:
        character = bad.group()
        if character == "\\":
            return "holds a backslash", "write / or %5C"
        if character.isspace() and character not in _LINE_ENDS:
            return "holds a blank", "write %20, or remove it"
        return "holds a control character", "remove it"
    authority = _authority(url)
    if "@" in authority:
        return "carries user information", "remove what stands before the @"
    if not authority or authority.startswith(":"):
        return "has no host", "write https://host/path"
    return "has a malformed host or port", "write https://host/path"


def _authority(url: str) -> str:
    """Return what stands between ``://`` and the path: user information, host and port."""
    return re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]


def short_url(url: str) -> str:
    """Return a URL in at most 80 characters, for messages: without its query, fragment and user information."""
    plain = re.split(r"[?#]", url[:200], maxsplit=1)[0]
    scheme, _, rest = plain.partition("://")
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        authority = "…@" + authority.rpartition("@")[2]
    short = f"{scheme}://{authority}{slash}{path}"
    if "@" in path and not _URL.match(short):
        short = f"{scheme}://…{path.rpartition('@')[2]}"  # a password may hold the slash
    return short_text(short)


def short_text(text: str) -> str:
    """Return the beginning of a text in at most 80 characters, for messages, with control characters escaped."""
    room = _SHOWN - 4
    quoted = shown(text if len(text) <= room else text[: room - 1] + "…", room)[1:-1]
    return quoted if len(quoted) <= _SHOWN else quoted[: _SHOWN - 1] + "…"


def file_path(url: str) -> str:
    """Return the path of a ``file://`` URL: ``%XX`` decoded once, ``#`` and ``?`` parts of the name.

    ``file:///abs`` and ``file://localhost/abs`` are absolute; ``file://rel/path`` is relative.

    Raises:
        SourceError: it names no file, or its escapes hide a NUL or are not UTF-8.
    """
    rest = url[7:]
    if rest[:10].lower() == "localhost/":
        rest = rest[9:]
    if not rest.strip():
        raise SourceError(f"{shown(url)} names no file", "write file:// and the path", code="MM217")
    return unescaped(rest, url)


def unescaped(text: str, url: str) -> str:
    """Return a piece of a ``file://`` URL with its ``%XX`` decoded; errors show ``url``."""
    if "%" not in text:
        return text
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415  # 2 ms, and few paths need it

    try:
        path = unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        raise SourceError(
            f"the escapes of {shown(url)} are not UTF-8", "write the name itself after file://", code="MM217"
        ) from None
    if "\x00" in path:
        raise SourceError(f"{shown(url)} holds an escaped NUL", "remove the %00", code="MM217")
    return path


def file_url(path: str) -> str:
    """Return the absolute ``file://`` URL of a path, escaped."""
    if os.name == "nt":
        path = "/" + path.replace("\\", "/")
    from urllib.parse import quote  # noqa: PLC0415  # 2 ms, and few rows need it

    return "file://" + quote(os.fsencode(path), safe="/~")
