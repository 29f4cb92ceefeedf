"""The changes that a user can ask for, and the limits of a target that media are made to fit.

Nothing is changed unless asked. ``MediaPart.changes`` records each change: from what, to what, and why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.media.audio.facts import HIGHEST_RATE, LOWEST_RATE

DEFAULT_QUALITY = 85
LOWEST_QUALITY = 50
"""Below this ``fit`` gives up rather than send a picture that can no longer be read."""


class Changes(NamedTuple):
    """Changes by name; a field at its default asks for nothing.

    Args:
        fit: change media that the target would refuse, as little as makes them fit.
        upright: apply the EXIF orientation.
        max_pixels: the most pixels of a picture or frame (width x height); larger ones are scaled down.
        max_side: the longest side of a picture or frame in pixels; longer ones are scaled down.
        mode: ``"RGB"`` or ``"L"``; 16 bits are scaled, alpha is laid on ``background``.
        background: the colour that replaces transparency.
        image_format: ``"jpeg"``, ``"png"`` or ``"webp"``.
        quality: 1 to 100, of JPEG and WebP.
        audio_format: ``"wav"`` or ``"mp3"``.
        audio_rate: samples a second.
        mono: mix the channels into one.
        start: seconds of sound to skip at the beginning.
        seconds: the most seconds of sound to keep.
        frames: the number of frames of a video, evenly spaced in time; with ``fps`` or ``key_frames``, the most frames.
        fps: frames of a video per second.
        key_frames: only the key frames of a video.
        times: frames of a video at these seconds.
        sound_track: replace a video by its sound; the changes of sounds then apply to it.
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
    sound_track: bool = False


class TargetRoom(NamedTuple):
    """The limits of a target for one modality that a file can be made to fit; None where no limit is known.

    ``formats`` are the media types it accepts, ``still`` those accepted only as single-frame images. ``max_bytes``
    counts the file before base64, ``max_side`` and ``max_pixels`` the pixels of a picture.
    """

    target: str
    formats: frozenset[str]
    still: frozenset[str] = frozenset()
    max_bytes: int | None = None
    max_side: int | None = None
    max_pixels: int | None = None


_FLAGS = ("fit", "upright", "mono", "key_frames", "sound_track")
_WHOLE = ("max_pixels", "max_side", "audio_rate", "frames", "quality")
_SECONDS = ("start", "seconds", "fps")
_WORDS = {"mode": ("RGB", "L"), "image_format": ("jpeg", "png", "webp"), "audio_format": ("wav", "mp3")}


def changes_of(asked: Mapping[str, Any]) -> Changes:
    """Return the changes for these names and values; a value of None asks for nothing.

    Raises:
        TaskError: an unknown name, a bad value, two ways of choosing frames, or frames together with ``sound_track``.
    """
    values: dict[str, Any] = {}
    for name, value in asked.items():
        if name not in Changes._fields:
            raise TaskError(f"unknown change of media {shown(name)}", nearest(name, Changes._fields))
        if value is not None:
            values[name] = _checked(name, value)
    changes = Changes(**values)
    ways = [name for name in ("fps", "key_frames", "times") if getattr(changes, name)]
    ways += ["frames"] if changes.frames and changes.times else []
    if len(ways) > 1:
        raise TaskError(f"{' and '.join(ways)} each choose the frames of a video", "give one of them")
    if changes.sound_track and (ways or changes.frames):
        raise TaskError(f"sound_track and {(*ways, 'frames')[0]} each replace the video", "give one of them")
    return changes


def _checked(name: str, value: Any) -> Any:
    """Return the value of one change in the type of its field."""
    if name in _FLAGS:
        return _held(name, value, isinstance(value, bool), "give true or false")
    if name in _WORDS:
        return _held(name, value, value in _WORDS[name], nearest(value, _WORDS[name]))
    if name == "background":
        right = isinstance(value, (list, tuple)) and len(value) == 3 and all(_is_whole(v, 0, 255) for v in value)
        return tuple(_held(name, value, right, "give red, green and blue from 0 to 255"))
    if name == "times":
        right = isinstance(value, (list, tuple)) and all(_is_number(v, 0) for v in value)
        return tuple(_held(name, value, right, "give a list of seconds"))
    if name in _SECONDS:
        right = _is_number(value, 0) and (value > 0 or name == "start")
        return float(_held(name, value, right, "give 0 or more" if name == "start" else "give a positive number"))
    most = {"quality": 100, "audio_rate": HIGHEST_RATE}.get(name, 1 << 40)
    least = LOWEST_RATE if name == "audio_rate" else 1
    upto = f" to {most}" if name in ("quality", "audio_rate") else ""
    return _held(name, value, _is_whole(value, least, most), f"give a whole number from {least}{upto}")


def _held(name: str, value: Any, right: bool, hint: str) -> Any:
    if not right:
        raise TaskError(f"{name} is {shown(value)}", hint)
    return value


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number(value: Any, least: float) -> bool:
    kind = isinstance(value, (int, float)) and not isinstance(value, bool)
    return kind and math.isfinite(value) and value >= least
