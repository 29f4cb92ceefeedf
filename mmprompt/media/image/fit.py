"""Makes pictures fit a target with the least change, or raises an error that says why none will do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import TargetError
from mmprompt.media.changes import DEFAULT_QUALITY, LOWEST_QUALITY, Changes, TargetRoom
from mmprompt.media.image.changes import (
    TYPES,
    Made,
    Wanted,
    change_image,
    decoded,
    is_lossless,
    make,
    own_format,
    recoded,
    wanted_of,
    with_bytes,
    with_frames,
)
from mmprompt.media.image.pixels import LONGEST_SIDE, encoded, size_within
from mmprompt.media.image.reading import ImageFacts, image_facts
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart

if TYPE_CHECKING:
    from PIL.Image import Image

LOWEST_SIDE = 256
"""To save bytes, a picture is not scaled below this many pixels on its longer side."""

_FRAME = "image/jpeg"
_OF_FRAMES = "video/jpeg"
_SHRINK = 0.9


class _Way(NamedTuple):
    """A format to encode in, and whether without loss."""

    image_format: str
    lossless: bool


class _Job(NamedTuple):
    """A decoded picture that is to be changed or to fit, and the limits of the target."""

    part: MediaPart
    facts: ImageFacts
    image: Image
    wanted: Wanted
    room: TargetRoom
    quality: int


def fit_image(part: MediaPart, room: TargetRoom, policy: MediaPolicy, quality: int = DEFAULT_QUALITY) -> MediaPart:
    """Return ``part`` with the least change that makes its picture fit into ``room``; the same part if it does.

    A format that is not taken becomes the one that loses least: PNG where the file was lossless or has alpha, else
    JPEG. Of an animation that is not taken, or that is changed, the first frame stays. Too many bytes are answered by
    quality (in steps of 5 from ``quality`` to ``LOWEST_QUALITY``; what was lossless becomes JPEG for it, or WebP to
    keep alpha), then by scaling down to ``LOWEST_SIDE`` pixels; a ``quality`` below the lowest is the only one. An
    EXIF orientation stays as it is. Each of the ``frames`` of a video is fitted as a separate JPEG; ``max_bytes`` is
    one frame's, unless ``room`` is for videos of frames, whose bytes count together: then none is made smaller for
    bytes.
    """
    if part.frames:
        return _fit_frames(part, room, policy, quality)
    if part.modality != "image" or not part.data:
        return part
    facts = image_facts(part.data, policy)
    size = size_within(facts.width, facts.height, room.max_side, room.max_pixels)
    first = part.media_type in room.still and (facts.frames or 1) > 1
    taken = part.media_type in room.formats
    small = room.max_bytes is None or len(part.data) <= room.max_bytes
    if taken and small and not first and size == (facts.width, facts.height):
        return part
    wanted = Wanted(
        "",
        max_side=room.max_side,
        max_pixels=room.max_pixels,
        why_size=_why(room, max_side=room.max_side, max_pixels=room.max_pixels),
        why_first=f" (fit: {room.target} takes one frame)" if first else "",
    )
    lossless = is_lossless(part.data, facts)
    ways = _ways(facts, room, own_format(facts), lossless=lossless, clear=facts.has_alpha, side=max(size))
    return _fitted(_Job(part, facts, decoded(part.data, policy, facts, wanted), wanted, room, quality), ways)


def change_to_fit(part: MediaPart, changes: Changes, policy: MediaPolicy, room: TargetRoom) -> MediaPart:
    """Return what ``change_image`` and then ``fit_image`` would, but decoded, scaled and encoded once."""
    if part.frames or part.modality != "image" or not part.data:
        return fit_image(change_image(part, changes, policy), room, policy, changes.quality)
    facts = image_facts(part.data, policy)
    wanted = wanted_of(facts, changes)
    if wanted is None:
        return fit_image(part, room, policy, changes.quality)
    asked = size_within(facts.width, facts.height, wanted.max_side, wanted.max_pixels)
    size = size_within(*asked, room.max_side, room.max_pixels)
    if size != asked:
        wanted = wanted._replace(
            max_side=_least(wanted.max_side, room.max_side),
            max_pixels=_least(wanted.max_pixels, room.max_pixels),
            why_size=_why(room, max_side=room.max_side, max_pixels=room.max_pixels),
        )
    lossless = is_lossless(part.data, facts) and changes.image_format in (None, "png")
    clear = facts.has_alpha and changes.mode is None and changes.image_format != "jpeg"
    ways = _ways(facts, room, wanted.image_format, lossless=lossless, clear=clear, side=max(size))
    return _fitted(_Job(part, facts, decoded(part.data, policy, facts, wanted), wanted, room, changes.quality), ways)


def _least(one: int | None, other: int | None) -> int | None:
    return min((most for most in (one, other) if most is not None), default=None)


def _fitted(job: _Job, ways: list[_Way]) -> MediaPart:
    """Return the picture in the first of the ways that fits, or scaled down in the last."""
    for way in ways:
        made = _make(job, way)
        best = _best(made, way, job.room.max_bytes, job.quality)
        if best is not None:
            return _recorded(job, made, way, best)
    return _scaled_down(job, ways[-1])


def _fit_frames(part: MediaPart, room: TargetRoom, policy: MediaPolicy, quality: int) -> MediaPart:
    """Return a video of ``frames`` with each fitted as a JPEG."""
    max_bytes = None if _OF_FRAMES in room.formats else room.max_bytes
    room = room._replace(formats=frozenset((_FRAME,)), max_bytes=max_bytes)
    frames: list[bytes] = []
    notes: list[str] = []
    for frame in part.frames:
        fitted = fit_image(MediaPart("image", _FRAME, frame), room, policy, quality)
        frames.append(fitted.data)
        if fitted.changes:
            notes.append(", ".join(fitted.changes))
    return with_frames(part, frames, notes)


def _ways(facts: ImageFacts, room: TargetRoom, own: str, *, lossless: bool, clear: bool, side: int) -> list[_Way]:
    """Return the formats to try, which the target takes and we can write; the one that loses least comes first.

    ``own`` is the format that it has or was asked for; ``lossless`` and ``clear`` say what there is to lose.
    """
    names = [n for n, kind in TYPES.items() if kind in room.formats and side <= LONGEST_SIDE.get(n, side)]
    if not names:
        raise TargetError(
            f"{room.target} takes {', '.join(sorted(room.formats)) or 'no format'}, and none that is written here "
            f"can hold this {facts.format}",
            "convert it yourself",
            code="MM804",
        )
    order = ("PNG", "WEBP", "JPEG") if lossless or clear else ("JPEG", "WEBP", "PNG")
    first = next(n for n in (own, *order) if n in names)
    ways = [_Way(first, first == "PNG" or (first == "WEBP" and lossless))]
    if ways[0].lossless:
        lossy = ("WEBP", "JPEG") if clear else ("JPEG", "WEBP")
        ways += [_Way(name, lossless=False) for name in lossy if name in names][:1]
    return ways


def _best(made: Made, way: _Way, max_bytes: int | None, quality: int) -> tuple[bytes, int] | None:
    """Return the picture at the highest quality that fits, and the quality; None where none does."""
    lower = () if way.lossless or max_bytes is None else range(LOWEST_QUALITY, quality, 5)
    qualities = (*lower, quality)
    found = None
    low, high = 0, len(qualities)
    # the highest is tried first: most pictures fit with it
    at = high - 1
    while low < high:
        data = _encode(made, way, qualities[at])
        if max_bytes is None or len(data) <= max_bytes:
            found, low = (data, qualities[at]), at + 1
        else:
            high = at
        at = (low + high) // 2
    return found


def _scaled_down(job: _Job, way: _Way) -> MediaPart:
    """Return the picture at the lowest quality and the largest size found at which it fits."""
    quality = min(LOWEST_QUALITY, job.quality)
    most = job.room.max_bytes or 0
    made = _make(job, way)
    longest, length = max(made.image.size), len(_encode(made, way, quality))
    shrink = min(_SHRINK, 1.1 * math.sqrt(most / length))
    while longest > LOWEST_SIDE:
        longest = max(LOWEST_SIDE, int(longest * shrink))
        made = _make(job, way, longest)
        data = _encode(made, way, quality)
        if len(data) <= most:
            return _recorded(job, made, way, (data, quality))
        shrink = _SHRINK
    lowest = "" if way.lossless else f"quality {quality} and "
    raise TargetError(
        f"the image of {job.facts.width} x {job.facts.height} pixels has more than the {most} bytes that "
        f"{job.room.target} takes, even at {lowest}{longest} pixels a side",
        "crop it, or leave it out",
        code="MM802",
    )


def _make(job: _Job, way: _Way, longest: int | None = None) -> Made:
    wanted = job.wanted._replace(image_format=way.image_format)
    if longest is not None:
        wanted = wanted._replace(max_side=longest, why_size=_why(job.room, max_bytes=job.room.max_bytes))
    return make(job.image, job.facts, wanted)


def _encode(made: Made, way: _Way, quality: int) -> bytes:
    return encoded(made.image, way.image_format, quality, made.orientation, lossless=way.lossless)


def _recorded(job: _Job, made: Made, way: _Way, best: tuple[bytes, int]) -> MediaPart:
    data, quality = best
    room, why = job.room, ""
    asked = job.wanted.image_format
    if (TYPES[asked] if asked else job.part.media_type) not in room.formats:
        why = f" (fit: {room.target} takes {', '.join(sorted(room.formats))})"
    elif quality < job.quality or way.image_format != (asked or own_format(job.facts)):
        why = _why(room, max_bytes=room.max_bytes)
    how = "lossless" if way.lossless else f"quality {quality}"
    return with_bytes(job.part, data, made, f"{recoded(job.facts, way.image_format)}, {how}{why}")


def _why(room: TargetRoom, **limits: int | None) -> str:
    stated = ", ".join(f"{name} {most}" for name, most in limits.items() if most is not None)
    return f" (fit: {room.target} takes {stated})"
