"""What kind of source a sample names: path, URL, base64, bytes or an object. Nothing is opened to find out.

Strings are classified in this order: ``data:``, ``http(s)://``, ``file://``, another ``scheme://``, bare base64, path.
Bare base64 comes before paths because that of a JPEG begins with ``/9j/``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from mmprompt.errors import SourceError, shown
from mmprompt.media.base64_text import clean_head
from mmprompt.media.media_types import AAC, JPEG, MP3, VIDEO_FRAMES, Kind, any_type, media_type_for, sniff
from mmprompt.media.urls import check_url, file_path, is_plain_url, short_text, short_url, unescaped
from mmprompt.messages import stands_in


class Source(NamedTuple):
    """A classified source: its kind, and the value that the kind stands for.

    ``data``: a data URI. ``url``: an http(s) URL. ``file``: the decoded path of a ``file://`` URL. ``scheme``: a URL of
    another scheme, which is never opened. ``base64``: bare base64; commas separate the frames of a video. ``path``: a
    path as written. ``bytes``: bytes. ``object``: anything else that holds media, such as a PIL image.
    """

    kind: str
    value: Any


class RootedPath(str):
    """A path as it was written, which begins at the folder ``root`` and not at a media root of the policy.

    ``owner`` says in errors who named it, where that is not the sample itself.
    """

    __slots__ = ("root",)
    owner: ClassVar[str] = "an example"
    root: str

    def __new__(cls, path: str, root: str) -> RootedPath:
        """Make the path; see the class."""
        self = super().__new__(cls, path)
        self.root = root
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.root))

    def full(self, path: str) -> str:
        """Return the absolute path of ``path``, which is this one without ``file://`` and its escapes."""
        return os.path.join(os.path.abspath(self.root), str(path))  # str: join returns an absolute path itself


class RowPath(RootedPath):
    """A path in a row whose dataset lies in several folders: it begins at the folder of the row's own file."""

    __slots__ = ()
    owner: ClassVar[str] = ""


def in_folder(source: object, folder: str) -> object:
    """Return a source with its paths beginning at ``folder``; other sources stay as they are."""
    if type(source) is str:
        return RowPath(source, folder) if classify_or_path(source) in ("path", "file") else source
    if type(source) is list:
        return [in_folder(item, folder) for item in source]
    if isinstance(source, Mapping) and source.get("bytes") is None and type(source.get("path")) is str:
        return in_folder(source["path"], folder)
    return source


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
_NO_SOURCE = "give a path, URL, data URI, base64, bytes, a PIL image, (samples, rate), or an open binary file"


def classify(source: object) -> Source:
    """Return the kind of ``source`` and its value. Nothing is opened, decoded or changed.

    Raises:
        SourceError: ``source`` is null, blank or of a type that holds no media; an http(s) URL that two parsers may
            read differently; a ``file://`` URL whose escapes hide a NUL or are not UTF-8.
    """
    if not isinstance(source, str):
        return _classify_object(source)
    if is_plain_url(source):
        return _new(Source, ("url", source))
    # base64 comes before the schemes: it holds no colon, so neither can be taken for the other
    if source[:2] in _BASE64_STARTS and _is_base64(source):
        return _new(Source, ("base64", source))
    if ":" in source:
        kind = _scheme_kind(source)
        if kind == "url":
            check_url(source)
        elif kind == "file":
            return Source("file", file_path(source))
        if kind:
            return _new(Source, (kind, source))
    if source < "!":  # empty, or a blank at its head
        return _classify_after_blanks(source)
    return _new(Source, ("path", source))


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
        raise SourceError("the source is blank", _NO_SOURCE, code="MM202")
    kind = _scheme_kind(bare)
    if kind in ("url", "file", "scheme"):
        raise SourceError(f"blanks before {in_short(bare)}", "remove them", code="MM217")
    if kind == "data" or (bare[:2] in _BASE64_STARTS and _is_base64(bare)):
        return Source(kind or "base64", bare)
    return Source("path", source)


def _is_base64(source: str) -> bool:
    """Return whether a string is bare base64: its first characters decode to the signature of a known kind."""
    if len(source) <= _LONGEST_PATH and "." in source:
        return False
    kind = _head_kind(source)
    # the signatures of MP3 and AAC have twelve bits: //host/share may begin so, but no name is that long without a dot
    return kind is not None and (kind not in (MP3, AAC) or len(source) >= 256)


def _head_kind(source: str) -> Kind | None:
    head = clean_head(source[:160].partition(",")[0])
    return sniff(head) if head else None


def _classify_object(source: object) -> Source:
    if isinstance(source, (bytes, bytearray, memoryview)):
        if not len(source):
            raise SourceError("the source has no bytes", "store the bytes of the file anew", code="MM202")
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
    raise SourceError(f"the source is {what}", _NO_SOURCE, code="MM202")


def _classify_struct(struct: Mapping[object, object]) -> Source:
    """Classify a Hugging Face struct by the first that it has: a decoded array, bytes, a path."""
    if struct.get("array") is not None and "sampling_rate" in struct:
        return Source("object", struct)
    for key in ("bytes", "path"):
        value = struct.get(key)
        if value is not None and not isinstance(value, Mapping):
            return classify(value)
    keys = ", ".join(sorted(map(str, struct)))[:80]
    raise SourceError(f"the struct (keys: {keys}) has neither bytes nor a path", _NO_SOURCE, code="MM202")


def is_media_object(source: object) -> bool:
    """Return whether ``source`` is a PIL image, a NumPy array or an open file, without loading their libraries."""
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(source, pillow.Image):
        return True
    return _is_array(source) or callable(getattr(source, "read", None))


def _is_array(source: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(source, numpy.ndarray)


def compose(prefix: str, source: object, suffix: str) -> object:
    """Return the source that the media skeleton ``prefix{image}suffix`` gives for a sample's ``source``.

    A source other than a plain path (``data:``, a scheme, bare base64, bytes, an object) stays as it is. A plain path
    stays as it is after ``file://`` and ``data:…;base64,``, gets the decoded folder of ``file:///folder/`` before it,
    and any other prefix and suffix around it. A folder is left out before an absolute path. The path is never decoded.

    Raises:
        SourceError: the source is null, blank, or of a type that holds no media.
    """
    if not isinstance(source, str):
        if not isinstance(source, os.PathLike):
            _classify_object(source)
            return source
        source = os.fsdecode(source)
    elif has_own_form(source):
        return source
    if not source.strip():
        raise SourceError("the source is blank", _NO_SOURCE, code="MM202")
    head = prefix[:7].lower()
    if head.startswith("data:"):
        return source
    if head == "file://":
        prefix = file_path(prefix) if len(prefix) > len("file://") else ""
        suffix = unescaped(suffix, prefix + suffix)
    if source[0] == "/" and prefix.endswith("/") and not _scheme_kind(prefix):
        prefix = ""
    return f"{prefix}{source}{suffix}"


def compose_as_written(prefix: str, source: object, suffix: str) -> object:
    """Return ``as_written(compose(prefix, source, suffix))``, classifying a plain string once."""
    if type(source) is str and source[:1] > " " and not source[0].isspace():
        kind = classify_or_path(source)
        if kind == "base64":
            return _data_uri(source, "")
        if kind != "path" or (not suffix and prefix in ("", "file://")):
            return source
    if stands_in(source) and type(source.real) is str:
        kind = source.asked(_written_kind)
        if kind == "other" or (kind == "path" and not suffix and prefix in ("", "file://")):
            return source
        source = source.itself()
    return as_written(compose(prefix, source, suffix))


def _written_kind(source: str) -> str:
    """Return how a skeleton takes a source: as ``path``, as ``base64``, as it is (``other``), or empty if it is odd."""
    if not (source[:1] > " " and not source[0].isspace()):
        return ""
    kind = classify_or_path(source)
    return kind if kind in ("path", "base64") else "other"


def has_own_form(source: str) -> bool:
    """Return whether a string is a data URI, a URL of any scheme, or bare base64; if not, it is a plain path."""
    if source.find(":", 0, _SCHEME_SPAN) > 0 and _scheme_kind(source):
        return True
    if source[:1] <= " ":
        bare = source.lstrip()
        return bool(bare) and bare[0] > " " and has_own_form(bare)
    return source[:2] in _BASE64_STARTS and _is_base64(source)


def as_written(source: object, modality: str = "") -> object:
    """Return a source as a ``PromptList`` shows it: bare base64 as a data URI, anything else unchanged.

    The bytes decide the type of the data URI; ``modality`` decides where a kind may be audio or video. Frames that
    commas separate become ``data:video/jpeg``.
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
    """Return the kind of a string without checking that it is well-formed; never raises."""
    if source.find(":", 0, _SCHEME_SPAN) > 0:
        kind = _scheme_kind(source)
        if kind:
            return kind
    bare = source.lstrip() if source[:1] <= " " else source
    return "base64" if bare[:2] in _BASE64_STARTS and _is_base64(bare) else "path"


def in_short(source: object) -> str:
    """Return a source in at most 80 characters, for messages: without payload, query string and user information."""
    if not isinstance(source, str):
        if isinstance(source, (bytes, bytearray, memoryview)):
            return f"{len(source)} bytes"
        path = source.get("path") if isinstance(source, Mapping) else source  # a Hugging Face struct names its bytes
        if isinstance(path, (str, os.PathLike)) and path:
            return in_short(os.fsdecode(path))
        return f"a value of type {type(source).__name__}"[:80]
    kind = classify_or_path(source)
    if kind == "base64":
        return f"base64 of {len(source)} characters"
    if kind == "data":
        head = source[:60].lstrip().partition(",")[0]
        return f"{shown(head, 50)[1:-1]},… ({len(source)} characters)"[:80]
    return short_url(source) if kind in ("url", "scheme") else short_text(source)
