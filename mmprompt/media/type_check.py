"""Bytes checked against what a sample says they are, and names for bytes that are not media."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import NamedTuple

from mmprompt.errors import SourceError, shown
from mmprompt.errors.findings import Note
from mmprompt.media.media_types import Kind, agree, any_type, sniff, suffix_type


class NotMedia(NamedTuple):
    """A kind of bytes that are not media, or media in a format that is not supported.

    ``name`` includes its article. ``hint`` says what to do; it is empty if the file is simply the wrong one.
    ``modalities`` are the modalities of an unsupported format. ``code`` is that of the error about such bytes.
    """

    name: str
    hint: str = ""
    modalities: tuple[str, ...] = ()
    code: str = "MM214"


_TO_PNG, _TO_WAV, _TO_MP4 = "convert it to PNG or JPEG", "convert it to WAV", "convert it to MP4"
_UNPACK = "unpack it, and name the file inside"
_AS_PICTURES = "send its pages as pictures"
_THE_VIDEO = "give the video file itself"
_CONCAT = NotMedia("a concat list, which names other files", _THE_VIDEO)
_HEADS = (
    (b"%PDF", NotMedia("a PDF document", _AS_PICTURES)),
    (b"PK\x03\x04", NotMedia("a ZIP archive", _UNPACK)),
    (b"PK\x05\x06", NotMedia("a ZIP archive", _UNPACK)),
    (b"\x1f\x8b", NotMedia("gzip data", "unpack it")),
    (b"BZh", NotMedia("bzip2 data")),
    (b"\xfd7zXZ", NotMedia("xz data")),
    (b"\x28\xb5\x2f\xfd", NotMedia("zstd data")),
    (b"7z\xbc\xaf", NotMedia("a 7z archive")),
    (b"\x7fELF", NotMedia("a program")),
    (b"\xff\x0a", NotMedia("a JPEG XL picture", _TO_PNG, ("image",))),
    (b"\x00\x00\x00\x0cJXL ", NotMedia("a JPEG XL picture", _TO_PNG, ("image",))),
    (b"\x00\x00\x00\x0cjP  ", NotMedia("a JPEG 2000 picture", _TO_PNG, ("image",))),
    (b"II+\0", NotMedia("a BigTIFF picture", _TO_PNG, ("image",))),
    (b"MM\0+", NotMedia("a BigTIFF picture", _TO_PNG, ("image",))),
    (b"8BPS", NotMedia("a Photoshop picture", _TO_PNG, ("image",))),
    (b"\x00\x00\x01\x00", NotMedia("an icon (ICO)", _TO_PNG, ("image",))),
    (b"FORM", NotMedia("an AIFF sound", _TO_WAV, ("audio",))),
    (b"#!AMR", NotMedia("an AMR sound", _TO_WAV, ("audio",))),
    (b"MThd", NotMedia("a MIDI file", modalities=("audio",))),
    (
        b"\x30\x26\xb2\x75",
        NotMedia("an ASF file (WMA, WMV)", f"{_TO_MP4}, or to WAV where it is sound", ("audio", "video")),
    ),
    (b"FLV\x01", NotMedia("a Flash video", _TO_MP4, ("video",))),
    (b"PAR1", NotMedia("a parquet file")),
    (b"\x93NUMPY", NotMedia("a NumPy array")),
)
_TEXTS = (
    (
        "version https://git-lfs",
        NotMedia("a Git LFS pointer, not the file itself", "fetch the file itself with git lfs pull", code="MM203"),
    ),
    ("#extm3u", NotMedia("an HLS or M3U playlist, which names other files", _THE_VIDEO)),
    ("ffconcat", _CONCAT),
    ("v=0", NotMedia("an SDP description, which names network addresses", _THE_VIDEO)),
    ("%!ps", NotMedia("PostScript", _AS_PICTURES)),
)
_HTML = NotMedia("an HTML page", "download the file again: a page came in its place", code="MM205")
_MARKUP = r"<(svg|!doctype\s+html|!doctype\s+svg|html|head|body|mpd)\b"
_TAGS = {
    "svg": NotMedia("an SVG drawing", "convert it to PNG"),
    "mpd": NotMedia("a DASH playlist, which names other files", _THE_VIDEO),
}


def _text_head(data: bytes) -> str | None:
    """Return the first characters in lower case if ``data`` is UTF-8 text, else None."""
    try:
        # not final: a character that is cut in two is left out
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(data[:1024], final=len(data) <= 1024)
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text or "\x1b" in text else text.lstrip().lower()


def not_media(data: bytes) -> NotMedia:
    """Return the name of bytes that ``sniff`` does not recognise."""
    if not data:
        return NotMedia("empty", code="MM202")
    for head, found in _HEADS:
        if data.startswith(head):
            return found
    text = _text_head(data)
    if text is None:
        return NotMedia("unknown bytes", code="MM200")
    for start, found in _TEXTS:
        if text.startswith(start):
            return found
    if text.startswith("<"):
        tag = re.search(_MARKUP, text)
        return NotMedia("XML text", code="MM205") if tag is None else _TAGS.get(tag.group(1).split()[-1], _HTML)
    if text.startswith("file ") and "'" in text:
        return _CONCAT
    return NotMedia("JSON text" if text.startswith(("{", "[")) else "plain text", code="MM205")


A_MODALITY = {"image": "an image", "audio": "a sound", "video": "a video"}


def known_kind(data: bytes, modality: str, hint: str) -> Kind:
    """Return the kind of bytes that should be of ``modality``; ``hint`` says what to give instead of unknown ones.

    Raises:
        SourceError: they are not media.
    """
    kind = sniff(data)
    if kind is None:
        found, a_modality = not_media(data), A_MODALITY[modality]
        what = f"the {a_modality.partition(' ')[2]} source is {found.name}, not {a_modality}"
        raise SourceError(what, found.hint or hint, code=found.code)
    return kind


def checked_type(data: bytes, modality: str, name: str = "", read_also: Sequence[str] = ()) -> tuple[Kind, str]:
    """Return the kind and media type of bytes that should be of ``modality``; errors call them ``name``.

    Raises:
        SourceError: they are not media, of another modality, or in a format that ``read_also`` must name first.
    """
    kind = sniff(data)
    media_type: str | None = getattr(kind, modality, None)  # as media_type_for, in half the time
    if media_type is not None and kind is not None and not kind.by_choice:  # nearly every file
        return kind, media_type
    subject = shown(name) if name else f"the {modality} source"
    if kind is None:
        found = not_media(data)
        rest = "a format that is not supported" if modality in found.modalities else f"not {A_MODALITY[modality]}"
        raise SourceError(
            f"{subject} is {found.name}, {rest}",
            found.hint or f"give {A_MODALITY[modality]}",
            code=found.code,
        )
    if media_type is None:
        tag = any_type(kind).partition("/")[0]
        raise SourceError(
            f"{subject} is {kind.name}, not {A_MODALITY[modality]}",
            f"tag it as {tag}, or name another file",
            code="MM504" if (tag, modality) == ("image", "video") else "MM213",
        )
    if kind.name.lower() not in read_also:
        choice = f", or pass --read-also {kind.name.lower()} --fit"
        raise SourceError(f"{subject} is {kind.name}, which is not sent unchanged", kind.hint + choice, code="MM214")
    return kind, media_type


def suffix_findings(path: str, kind: Kind, media_type: str) -> tuple[Note, ...]:
    """Return a finding if the suffix of a path contradicts the detected format, for ``MediaPart.findings``."""
    claimed = suffix_type(path)
    if claimed is None or agree(claimed, media_type) or path.lower().endswith(kind.suffixes):
        return ()
    return (Note("MM204", f"named {path[path.rfind('.') :].lower()}, bytes are {kind.name}"),)
