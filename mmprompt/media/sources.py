"""What a source is, told without opening anything.

The order: ``data:``, ``http(s)://``, ``file://``, another ``scheme://``, bare base64, path. Bare base64 comes before
paths because JPEG's begins with ``/9j/``.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from mmprompt.errors import SourceError, shown
from mmprompt.media.base64_text import clean_head
from mmprompt.media.media_types import AAC, JPEG, MP3, VIDEO_FRAMES, Kind, any_type, media_type_for, sniff


class Source(NamedTuple):
    """A classified source.

    ``kind`` and ``value``: ``data`` and the data URI; ``url`` and the http(s) URL; ``file`` and the decoded path of a
    ``file://`` URL; ``scheme`` and the URL of another scheme, never opened; ``base64`` and bare base64, whose frames a
    comma parts; ``path`` and the path as written; ``bytes`` and bytes; ``object`` and anything else that holds media.
    """

    kind: str
    value: Any


class RootedPath(str):
    """A path as its sample wrote it, which begins at ``root``."""

    __slots__ = ("root",)
    root: str

    def __new__(cls, path: str, root: str) -> RootedPath:
        """Make the path; see the class."""
        self = super().__new__(cls, path)
        self.root = root
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the root."""
        return (RootedPath, (str(self), self.root))

    def full(self, path: str) -> str:
        """Return ``path``, this one as classified, from its root."""
        return os.path.join(os.path.abspath(self.root), str(path))  # a plain string, where it is absolute too


_new = tuple.__new__  # half the time of the class

_SCHEME_SPAN = 40
"""Within how many characters a scheme's colon is looked for."""

_BASE64_STARTS = frozenset(
    ("/9", "//", "/+", "_9", "__", "_-", "iV", "R0", "Uk", "Qk", "SU", "TU", "AA", "Zk", "T2", "Gk")
)
"""The first two characters that the base64 of a known kind may have, in both alphabets."""

_FRAME = (str, bytes, bytearray, memoryview, os.PathLike, Mapping)
"""What a frame in a list may be, beside an object that holds one."""

_LONGEST_PATH = 4096
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+\Z")
_URL = re.compile(
    r"(?i:https?)://(?:[^\s\\@/?#:\[\]\x00-\x20\x7f-\x9f]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?(?:[/?#][^\s\\\x00-\x20\x7f-\x9f]*)?\Z"
)
_BAD_IN_URL = re.compile(r"[\s\\\x00-\x20\x7f-\x9f]")
_NO_SOURCE = "give a path, URL, data URI, base64, bytes, a PIL image, an array with its rate, or an open binary file"


def classify(source: object) -> Source:
    """Return the kind of ``source`` and its value; nothing is opened, decoded or changed.

    Raises:
        SourceError: null, blank or no source at all; an http(s) URL that two parsers may read differently; a
            ``file://`` URL whose escapes hide a NUL or are not UTF-8.
    """
    if not isinstance(source, str):
        return _classify_object(source)
    if is_plain_url(source):
        return _new(Source, ("url", source))
    # base64 is looked for before the schemes, which it cannot be mistaken for: ":" is no character of it
    if source[:2] in _BASE64_STARTS and _is_base64(source):
        return _new(Source, ("base64", source))
    if ":" in source:
        kind = _scheme_kind(source)
        if kind == "url":
            _check_url(source)
        elif kind == "file":
            return Source("file", file_path(source))
        if kind:
            return _new(Source, (kind, source))
    if source < "!":  # empty, or a blank at its head
        return _classify_after_blanks(source)
    return _new(Source, ("path", source))


def is_plain_url(source: str) -> bool:
    """Tell whether a source is an http(s) URL that every parser reads alike: most are, and need no further look."""
    return _URL.match(source) is not None and source.isascii()


def _scheme_kind(source: str) -> str:
    """Return ``data``, ``url``, ``file`` or ``scheme`` for a source that begins so, else an empty string."""
    head = source[:8].lower()
    if head.startswith("data:"):
        return "data"
    if head.startswith(("http://", "https://")):
        return "url"
    if head.startswith("file://"):
        return "file"
    colon = source.find(":", 0, _SCHEME_SPAN)
    return "scheme" if colon > 0 and source.startswith("://", colon) and _SCHEME.match(source[:colon]) else ""


def _classify_after_blanks(source: str) -> Source:
    """Classify a source that is empty or begins with a blank: only a file's name may."""
    bare = source.strip()
    if not bare:
        raise SourceError("the source is blank", _NO_SOURCE)
    kind = _scheme_kind(bare)
    if kind in ("url", "file", "scheme"):
        raise SourceError(f"blanks before {in_short(bare)}", "remove them")
    if kind == "data" or (bare[:2] in _BASE64_STARTS and _is_base64(bare)):
        return Source(kind or "base64", bare)
    return Source("path", source)


def _is_base64(source: str) -> bool:
    """Tell whether a string is bare base64: what its first characters decode to begins like a known kind."""
    if len(source) <= _LONGEST_PATH and "." in source:
        return False
    kind = _head_kind(source)
    # the marks of MP3 and AAC are twelve bits: //host/share can have them, but no name is that long without a dot
    return kind is not None and (kind not in (MP3, AAC) or len(source) >= 256)


def _head_kind(source: str) -> Kind | None:
    head = clean_head(source[:160].partition(",")[0])
    return sniff(head) if head else None


def _classify_object(source: object) -> Source:
    if isinstance(source, (bytes, bytearray, memoryview)):
        if not len(source):
            raise SourceError("the source has no bytes", _NO_SOURCE)
        return Source("bytes", bytes(source))
    if isinstance(source, os.PathLike):
        return Source("path", os.fsdecode(source))
    if isinstance(source, Mapping):
        return _classify_struct(source)
    if isinstance(source, (list, tuple)):
        if source and all(isinstance(item, _FRAME) or is_media_object(item) for item in source):
            return Source("object", source)
        if len(source) == 2 and _is_array(source[0]):
            return Source("object", source)
    elif is_media_object(source):
        return Source("object", source)
    what = "null" if source is None else f"a value of type {type(source).__name__}"
    raise SourceError(f"the source is {what}", _NO_SOURCE)


def _classify_struct(struct: Mapping[object, object]) -> Source:
    """Classify a Hugging Face struct: a decoded array, else its bytes, else its path."""
    if struct.get("array") is not None and "sampling_rate" in struct:
        return Source("object", struct)
    for key in ("bytes", "path"):
        value = struct.get(key)
        if value is not None and not isinstance(value, Mapping):
            return classify(value)
    keys = ", ".join(sorted(map(str, struct)))[:80]
    raise SourceError(f"the struct (keys: {keys}) has neither bytes nor a path", _NO_SOURCE)


def is_media_object(source: object) -> bool:
    """Tell whether ``source`` is a PIL image, a NumPy array or an open file; loads none of their libraries."""
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(source, pillow.Image):
        return True
    return _is_array(source) or callable(getattr(source, "read", None))


def _is_array(source: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(source, numpy.ndarray)


def file_path(url: str) -> str:
    """Return the path of a ``file://`` URL: ``%XX`` decoded once, ``#`` and ``?`` parts of the name.

    ``file:///abs`` and ``file://localhost/abs`` are absolute; ``file://rel/path`` is relative.
    """
    rest = url[7:]
    if rest[:10].lower() == "localhost/":
        rest = rest[9:]
    if not rest.strip():
        raise SourceError(f"{shown(url)} names no file", "write file:// and the path")
    return _unescaped(rest, url)


def _unescaped(text: str, url: str) -> str:
    if "%" not in text:
        return text
    try:
        path = unquote_to_bytes(text).decode("utf-8")
    except UnicodeError:
        raise SourceError(f"the escapes of {shown(url)} are not UTF-8", "write the name itself after file://") from None
    if "\x00" in path:
        raise SourceError(f"{shown(url)} holds an escaped NUL", "no file has such a name")
    return path


def _check_url(url: str) -> None:
    """Refuse an http(s) URL on which two parsers may disagree."""
    if not _URL.match(url):
        fault, hint = _url_fault(url)
        raise SourceError(f"{in_short(url)} {fault}", hint)
    if not url.isascii():
        host = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
        # a full-width solidus or at sign becomes a plain one in some parsers
        if any(c in "/?#@:\\" for o in host for c in unicodedata.normalize("NFKC", o) if o != ":"):
            raise SourceError(f"{in_short(url)} has a host that parsers read differently", "write the host in ASCII")


def _url_fault(url: str) -> tuple[str, str]:
    """Say what is wrong with a URL that did not match, and how to mend it."""
    bad = _BAD_IN_URL.search(url)
    if bad:
        character = bad.group()
        if character == "\\":
            return "holds a backslash", "write / or %5C"
        if character.isspace() and character not in "\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85":
            return "holds a blank", "write %20, or remove it"
        return "holds a control character", "remove it"
    authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    if "@" in authority:
        return "carries user information", "remove what stands before the @"
    if not authority or authority.startswith(":"):
        return "has no host", "write https://host/path"
    return "has a host or port that is none", "write https://host/path"


def compose(prefix: str, source: object, suffix: str) -> object:
    """Return the source that the media skeleton ``prefix{image}suffix`` gives for a sample's ``source``.

    A source with a form of its own (``data:``, a scheme, bare base64, bytes, objects) wins over both. For a plain path
    ``file://`` and ``data:…;base64,`` add nothing, ``file:///folder/`` adds its folder (decoded; the path never is),
    any other prefix and suffix are put around it; an absolute path is put behind no folder.

    Raises:
        SourceError: the source is null, blank, or no source at all.
    """
    if not isinstance(source, str):
        if not isinstance(source, os.PathLike):
            _classify_object(source)
            return source
        source = os.fsdecode(source)
    elif has_own_form(source):
        return source
    if not source.strip():
        raise SourceError("the source is blank", _NO_SOURCE)
    head = prefix[:7].lower()
    if head.startswith("data:"):
        return source
    if head == "file://":
        prefix = file_path(prefix) if len(prefix) > len("file://") else ""
        suffix = _unescaped(suffix, prefix + suffix)
    if source[0] == "/" and prefix.endswith("/") and not _scheme_kind(prefix):
        prefix = ""
    return f"{prefix}{source}{suffix}"


def compose_as_written(prefix: str, source: object, suffix: str) -> object:
    """Return ``as_written(compose(prefix, source, suffix))``, classifying a plain string once.

    Raises:
        SourceError: as ``compose``.
    """
    if type(source) is str and source[:1] > " " and not source[0].isspace():
        kind = classify_or_path(source)
        if kind == "base64":
            return _data_uri(source, "")
        if kind != "path" or (not suffix and prefix in ("", "file://")):
            return source
    return as_written(compose(prefix, source, suffix))


def has_own_form(source: str) -> bool:
    """Tell whether a string is more than a plain path: a data URI, a URL of any scheme, or bare base64."""
    if source.find(":", 0, _SCHEME_SPAN) > 0 and _scheme_kind(source):
        return True
    if source[:1] <= " ":
        bare = source.lstrip()
        return bool(bare) and bare[0] > " " and has_own_form(bare)
    return source[:2] in _BASE64_STARTS and _is_base64(source)


def as_written(source: object, modality: str = "") -> object:
    """Return what a ``PromptList`` shows of a source: itself, but bare base64 as a data URI of the type its bytes say.

    ``modality`` decides for kinds that may be audio or video. Frames parted by commas become ``data:video/jpeg``.
    """
    return _data_uri(source, modality) if isinstance(source, str) and classify_or_path(source) == "base64" else source


def _data_uri(source: str, modality: str) -> str:
    """Return bare base64 as a data URI of the type its bytes say."""
    text = source.strip()
    if "," in text:
        return f"data:{VIDEO_FRAMES};base64,{text}"
    kind = _head_kind(text) or JPEG
    media_type = (modality and media_type_for(kind, modality)) or any_type(kind)
    return f"data:{media_type};base64,{text}"


def classify_or_path(source: str) -> str:
    """Return the kind of a string without judging whether it is sound; never raises."""
    if source.find(":", 0, _SCHEME_SPAN) > 0:
        kind = _scheme_kind(source)
        if kind:
            return kind
    bare = source.lstrip() if source[:1] <= " " else source
    return "base64" if bare[:2] in _BASE64_STARTS and _is_base64(bare) else "path"


def _without_user(authority: str) -> str:
    return "…@" + authority.rpartition("@")[2] if "@" in authority else authority


def in_short(source: object) -> str:
    """Return a source in at most 80 characters for messages: never a payload, a query string or user information."""
    if not isinstance(source, str):
        if isinstance(source, (bytes, bytearray, memoryview)):
            return f"{len(source)} bytes"
        if isinstance(source, os.PathLike):
            return in_short(os.fsdecode(source))
        return f"a value of type {type(source).__name__}"[:80]
    kind = classify_or_path(source)
    if kind == "base64":
        return f"base64 of {len(source)} characters"
    if kind == "data":
        head = source[:60].lstrip().partition(",")[0]
        return f"{shown(head, 50)[1:-1]},… ({len(source)} characters)"[:80]
    if kind in ("url", "scheme"):
        plain = re.split(r"[?#]", source[:200], maxsplit=1)[0]
        scheme, _, rest = plain.partition("://")
        authority, slash, path = rest.partition("/")
        source = f"{scheme}://{_without_user(authority)}{slash}{path}"
        if "@" in path and not _URL.match(source):
            source = f"{scheme}://…{path.rpartition('@')[2]}"  # a password may hold the slash
    quoted = shown(source, 76)[1:-1] if len(source) <= 76 else shown(source[:75] + "…", 76)[1:-1]
    return quoted if len(quoted) <= 80 else quoted[:79] + "…"
