"""Signatures of kinds of media, each in one look: for files that are expected to be of the same kind as one before."""

from __future__ import annotations

import re
from collections.abc import Callable

from mmprompt.media.media_types import BRANDS, FLAC, GIF, JPEG, MP4, PNG, WAV, WEBP, sniff

_PATTERNS = {
    JPEG: rb"\xff\xd8\xff",
    PNG: rb"\x89PNG\r\n\x1a\n",
    GIF: rb"GIF8[79]a",
    WEBP: rb"RIFF....WEBP",
    WAV: rb"RIFF....WAVE",
    FLAC: rb"fLaC",
    MP4: rb"\0\0\0.ftyp(?!%b)" % b"|".join(BRANDS),
}
"""From a kind to a pattern that no file of another kind matches; odd files of the kind may not match it either."""


def signature(data: bytes) -> Callable[[bytes], object] | None:
    """Return what says yes to most files of the kind of ``data``, and to none of another; None if ``data`` is odd."""
    kind = sniff(data)
    matches = re.compile(_PATTERNS[kind], re.DOTALL).match if kind in _PATTERNS else None
    return matches if matches is not None and matches(data) else None
