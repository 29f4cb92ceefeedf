"""What a user asked to be changed in media, and the room that a target leaves for them.

Nothing is transformed unless asked. Each transformation made is recorded in ``MediaPart.changes``, in words that say
from what, to what, and why.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_QUALITY = 85
LOWEST_QUALITY = 50
"""Below this ``fit`` gives up rather than send a picture that can no longer be read."""


class Changes(NamedTuple):
    """Transformations by name; what is left at its default is not touched.

    Args:
        fit: change what the target would refuse, the least that makes it fit.
        upright: turn a picture as its EXIF orientation says.
        max_pixels: the most pixels of a picture or frame (width x height); larger ones are scaled down.
        max_side: the longest side of a picture or frame in pixels; likewise.
        mode: ``"RGB"`` or ``"L"``; 16 bits are scaled, alpha is laid on ``background``.
        background: the colour under what is transparent.
        image_format: ``"jpeg"``, ``"png"`` or ``"webp"``.
        quality: 1 to 100, of JPEG and WebP.
        audio_format: ``"wav"`` or ``"mp3"``.
        audio_rate: samples a second.
        mono: mix the channels into one.
        start: seconds of sound to leave out at the beginning.
        seconds: the most seconds of sound to keep.
        frames: so many frames of a video, evenly spaced in time.
        fps: frames of a video by time, so many a second.
        key_frames: only the key frames of a video (with ``frames``: at most so many of them).
        times: frames of a video at these seconds.
    """

    fit: bool = False
    upright: bool = False
    max_pixels: int | None = None
    max_side: int | None = None
    mode: str | None = None
    background: tuple[int, int, int] = (255, 255, 255)
    image_format: str | None = None
    quality: int = DEFAULT_QUALITY
    audio_format: str | None = None
    audio_rate: int | None = None
    mono: bool = False
    start: float = 0.0
    seconds: float | None = None
    frames: int | None = None
    fps: float | None = None
    key_frames: bool = False
    times: tuple[float, ...] = ()


class Room(NamedTuple):
    """What a target takes of one modality, as far as a file can be made to fit; None where no limit is known.

    ``formats`` are media types. ``animated`` is false where one frame only is taken. ``max_bytes`` counts the file
    before base64, ``max_side`` and ``max_pixels`` the pixels of a picture.
    """

    target: str
    formats: frozenset[str]
    animated: bool = True
    max_bytes: int | None = None
    max_side: int | None = None
    max_pixels: int | None = None
