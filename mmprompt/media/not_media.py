"""Names for bytes that are no media, so that an error says what lies in the file."""

from __future__ import annotations

import codecs
import re

_UNKNOWN_HEADS = (
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "a program"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL picture"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 picture"),
    (b"II+\0", "a BigTIFF picture"),
    (b"MM\0+", "a BigTIFF picture"),
    (b"8BPS", "a Photoshop picture"),
    (b"\x00\x00\x01\x00", "an icon (ICO)"),
    (b"FORM", "an AIFF sound"),
    (b"#!AMR", "an AMR sound"),
    (b"MThd", "a MIDI file"),
    (b"\x30\x26\xb2\x75", "an ASF file (WMA, WMV)"),
    (b"FLV\x01", "a Flash video"),
    (b"PAR1", "a parquet file"),
    (b"\x93NUMPY", "a NumPy array"),
)
_TEXTS = (
    ("version https://git-lfs", "a Git LFS pointer, not the file itself"),
    ("#extm3u", "an HLS or M3U playlist, which names other files"),
    ("ffconcat", "a concat list, which names other files"),
    ("v=0", "an SDP description, which names network addresses"),
    ("%!ps", "PostScript"),
)
_MARKUP = re.compile(r"<(svg|!doctype\s+html|!doctype\s+svg|html|head|body|mpd)\b")
_MARKUP_NAMES = {"svg": "an SVG drawing", "mpd": "a DASH playlist, which names other files"}


def _text_head(data: bytes) -> str | None:
    """Return the first characters in lower case if ``data`` is UTF-8 text, else None."""
    try:
        # not final: a character that the cut goes through is left out
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(data[:1024], final=len(data) <= 1024)
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text or "\x1b" in text else text.lstrip().lower()


def describe_unknown(data: bytes) -> str:
    """Name bytes that are no media: ``an HTML page``, ``a Git LFS pointer, …``, ``plain text``, ``unknown bytes``."""
    if not data:
        return "empty"
    for head, name in _UNKNOWN_HEADS:
        if data.startswith(head):
            return name
    text = _text_head(data)
    if text is None:
        return "unknown bytes"
    for start, name in _TEXTS:
        if text.startswith(start):
            return name
    if text.startswith("<"):
        found = _MARKUP.search(text)
        tag = found.group(1).split()[-1] if found else ""
        return _MARKUP_NAMES.get(tag, "an HTML page" if tag else "XML text")
    if text.startswith("file ") and "'" in text:
        return "a concat list, which names other files"
    return "JSON text" if text.startswith(("{", "[")) else "plain text"


_FORMATS = {"image": ("picture", "icon"), "audio": ("sound", "MIDI", "ASF"), "video": ("ASF", "Flash")}
_MENDS = (
    ("a Git LFS", "fetch the file itself with git lfs pull"),
    ("an HTML", "download the file again: a page came in its place"),
    ("an SVG", "convert it to PNG"),
    ("an HLS", "give the video file itself"),
    ("a DASH", "give the video file itself"),
    ("a concat", "give the video file itself"),
    ("an SDP", "give the video file itself"),
    ("a ZIP", "unpack it, and name the file inside"),
    ("gzip", "unpack it"),
    ("a PDF", "send its pages as pictures"),
    ("PostScript", "send its pages as pictures"),
    ("an ASF", "convert it to MP4, or to WAV where it is sound"),
    ("a Flash", "convert it to MP4"),
)


def mend_unknown(description: str) -> str:
    """Return how to mend what ``describe_unknown`` named, or an empty string where it only is the wrong file."""
    if description.endswith("sound"):
        return "convert it to WAV"
    if description.endswith(("picture", "(ICO)")):
        return "convert it to PNG or JPEG"
    return next((mend for start, mend in _MENDS if description.startswith(start)), "")


def is_format(description: str, modality: str) -> bool:
    """Tell whether ``describe_unknown`` named media of this modality, in a format that is not taken."""
    return any(word in description for word in _FORMATS[modality])
