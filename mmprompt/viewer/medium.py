"""A medium as people see it: what was sent of it, its facts, and its stub in a line of text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote

from mmprompt.errors import MMPromptError
from mmprompt.media.image.headers import picture_size
from mmprompt.messages import MediaPart
from mmprompt.targets.media_tokens import MEDIA_TOKENS

Seconds = Callable[[str], "float | None"]
"""Returns how long the medium with a digest plays, where a check has found it out."""

_KIB = 1024


class Medium(NamedTuple):
    """A medium of a request.

    ``digests`` are the SHA-256 of its bytes, one for each frame of a video of single frames. ``url`` is its address
    where it is sent by name, and was not read. ``width`` and ``height`` are pixels as stored, 0 where unknown.
    """

    modality: str
    media_type: str
    name: str
    digests: tuple[str, ...] = ()
    size: int = 0
    width: int = 0
    height: int = 0
    seconds: float | None = None
    changes: tuple[str, ...] = ()
    url: str = ""

    @property
    def stub(self) -> str:
        """The medium in short: its type, its pixels, its length, its size and its name."""
        words = [self.media_type or self.modality]
        words += [f"{self.width}\N{MULTIPLICATION SIGN}{self.height}"] if self.width else []
        words += [f"{len(self.digests)} frames"] if len(self.digests) > 1 else []
        words += [f"{self.seconds:.1f} s"] if self.seconds is not None else []
        words += [in_bytes(self.size)] if self.size else []
        return f"[{' '.join([*words, self.name or self.url])}]"

    @property
    def data(self) -> dict[str, object]:
        """The medium for a page."""
        found = {name: value for name, value in self._asdict().items() if value not in ("", 0, None, ())}
        return {**found, "tokens": self.tokens} if self.tokens else found

    @property
    def tokens(self) -> dict[str, int]:
        """How many tokens targets count for it, where their makers publish how."""
        size = (self.width or None, self.height or None)
        counted = {name: by.of(self.modality, *size, self.seconds) for name, by in MEDIA_TOKENS.items()}
        return {name: count for name, count in counted.items() if count and self.digests}


def medium_of(part: MediaPart, seconds: Seconds | None = None) -> Medium:
    """Return the medium of a part that was read."""
    chunks = part.frames or (part.data,)
    digests = tuple([hashlib.sha256(chunk).hexdigest() for chunk in chunks])
    width = height = 0
    if part.modality == "image" or part.frames:
        with suppress(MMPromptError):  # of a format whose header is not read here
            width, height = picture_size(chunks[0])
    name = "data URI" if part.origin[:5] == "data:" else part.origin.replace("\\", "/").rpartition("/")[2]
    name = unquote(name) if part.origin[:5] == "file:" else name
    known = None if seconds is None else seconds(digests[0])
    size = sum(map(len, chunks))
    return Medium(part.modality, part.media_type, name, digests, size, width, height, known, part.changes)


def in_bytes(size: int) -> str:
    """Return a number of bytes for people, such as ``34 KiB``."""
    if size < _KIB:
        return f"{size} B"
    return f"{size / _KIB:.0f} KiB" if size < _KIB * _KIB else f"{size / _KIB / _KIB:.1f} MiB"
