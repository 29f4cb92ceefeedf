"""Changes pictures as asked and records each change in ``MediaPart.changes``.

A picture that needs no change keeps its bytes. A picture that is encoded again keeps its colour profile and an EXIF
orientation that was not applied, but no other metadata. An animation keeps only its first frame, which is a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors.findings import Note
from mmprompt.media.changes import Changes
from mmprompt.media.image.headers import webp_is_lossless
from mmprompt.media.image.pixels import (
    Colour,
    encoded,
    held_by,
    in_mode,
    resized,
    size_within,
    turned,
)
from mmprompt.media.image.reading import ImageFacts, decode_image, image_facts
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart

if TYPE_CHECKING:
    from PIL.Image import Image

_WRITTEN = {"jpeg": "JPEG", "png": "PNG", "webp": "WEBP"}
TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""The formats that are written, by Pillow's names, and their media types."""

_NAMES = {"WEBP": "WebP"}
_WHITE = (255, 255, 255)
_LYING = 4  # an EXIF orientation above it turns a picture by 90 degrees


class Made(NamedTuple):
    """A changed picture in a mode that its format holds, the changes in words, and findings."""

    image: Image
    image_format: str
    orientation: int
    notes: tuple[str, ...]
    findings: tuple[Note, ...]


class Wanted(NamedTuple):
    """The changes of one picture. ``why_size`` and ``why_first`` are reasons, recorded with the change they explain."""

    image_format: str
    upright: bool = False
    mode: str | None = None
    max_side: int | None = None
    max_pixels: int | None = None
    background: Colour = _WHITE
    why_size: str = ""
    why_first: str = ""


def change_image(part: MediaPart, changes: Changes, policy: MediaPolicy) -> MediaPart:
    """Return ``part`` with its picture changed as asked; the same part if it needs no change.

    In this order: the first frame, turned upright, scaled (Lanczos), brought into the mode, encoded. A picture stays in
    its format unless ``image_format`` asks for another, but GIF, BMP and TIFF become PNG, and AVIF JPEG (with alpha
    PNG). ``quality`` applies to pictures that are encoded. The frames of a video are only scaled; any other medium is
    returned unchanged.
    """
    if part.frames:
        return change_frames(part, changes, policy, why_size(changes.max_side, changes.max_pixels))
    if part.modality != "image" or not part.data:
        return part
    facts = image_facts(part.data, policy)
    wanted = wanted_of(facts, changes)
    if wanted is None:
        return part
    made = make(decoded(part.data, policy, facts, wanted), facts, wanted)
    name = made.image_format
    # a WebP without loss stays one, unless WebP was asked for, which means with quality
    lossless = name == "PNG" or (name == "WEBP" and not changes.image_format and is_lossless(part.data, facts))
    data = encoded(made.image, name, changes.quality, made.orientation, lossless=lossless)
    how = "lossless" if lossless else f"quality {changes.quality}"
    return with_bytes(part, data, made, f"{recoded(facts, name)}, {how}")


def wanted_of(facts: ImageFacts, changes: Changes) -> Wanted | None:
    """Return the changes that a picture needs for ``changes``; None if it needs none."""
    size = (facts.width, facts.height)
    asked = _WRITTEN[changes.image_format] if changes.image_format else None
    if not (
        (changes.upright and facts.orientation != 1)
        or size_within(*size, changes.max_side, changes.max_pixels) != size
        or (changes.mode is not None and (facts.mode != changes.mode or facts.has_alpha or facts.bits > 8))
        or asked not in (None, facts.format)
    ):
        return None
    return Wanted(
        asked or own_format(facts),
        changes.upright,
        changes.mode,
        changes.max_side,
        changes.max_pixels,
        changes.background,
        why_size(changes.max_side, changes.max_pixels),
    )


def own_format(facts: ImageFacts) -> str:
    """Return the format to encode a picture in again: its own, or PNG if its own cannot be written.

    AVIF without alpha becomes JPEG: as PNG its losses would be kept at many times the bytes.
    """
    if facts.format == "AVIF" and not facts.has_alpha:
        return "JPEG"
    return facts.format if facts.format in TYPES else "PNG"


def decoded(data: bytes, policy: MediaPolicy, facts: ImageFacts, wanted: Wanted) -> Image:
    """Return the first frame of a picture file, which may be smaller if it will be scaled down."""
    shown, size = _sizes(facts, wanted)
    if size == shown:
        return decode_image(data, policy)
    lies = wanted.upright and facts.orientation > _LYING
    return decode_image(data, policy, size=size[::-1] if lies else size)


def _sizes(facts: ImageFacts, wanted: Wanted) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the size of a picture as it will be shown, upright if that is wanted, and the size it is scaled to."""
    shown = (facts.width, facts.height)
    if wanted.upright and facts.orientation > _LYING:
        shown = shown[::-1]
    return shown, size_within(*shown, wanted.max_side, wanted.max_pixels)


def make(image: Image, facts: ImageFacts, wanted: Wanted) -> Made:
    """Make the changes in the order that ``change_image`` documents. ``image`` may be smaller than ``facts`` say."""
    notes: list[str] = []
    findings: tuple[Note, ...] = ()
    orientation = facts.orientation
    before = image.mode
    if (facts.frames or 1) > 1:
        notes.append(f"{facts.frames} frames to the first{wanted.why_first}")
        findings = (Note("MM306", f"of {facts.frames} frames the first is kept"),)
    if facts.frames is None:
        notes.append("several pages to the first")
        findings = (Note("MM306", "of several pages the first is kept"),)
    shown, size = _sizes(facts, wanted)
    if wanted.upright and orientation > 1:
        notes.append(f"turned upright from EXIF orientation {orientation}")
    if size != shown:
        notes.append(scaled(shown, size, wanted.why_size))
        lies = wanted.upright and orientation > _LYING
        image = resized(image, size[::-1] if lies else size, (facts.width, facts.height))
    if wanted.upright and orientation > 1:
        image = turned(image, orientation)
        orientation = 1
    clear = image.has_transparency_data
    if wanted.mode:
        image = in_mode(image, wanted.mode, wanted.background)
    image = held_by(image, wanted.image_format, wanted.background)
    after = wanted.mode or image.mode  # WebP holds the grey that was asked for as RGB
    if after != before:
        notes.append(f"mode {before} to {after}")
    if facts.bits > 8 and image.mode not in ("I;16", "I"):
        notes.append(f"{facts.bits} bits to 8")
    if clear and not image.has_transparency_data:
        notes.append(f"alpha laid on {wanted.background}")
    return Made(image, wanted.image_format, orientation, tuple(notes), findings)


def with_bytes(part: MediaPart, data: bytes, made: Made, last: str) -> MediaPart:
    """Return the part with the bytes of the encoded picture; ``last`` says how it was encoded."""
    changes, findings = (*part.changes, *made.notes, last), part.findings + made.findings
    return part._replace(data=data, media_type=TYPES[made.image_format], changes=changes, findings=findings)


def recoded(facts: ImageFacts, name: str) -> str:
    """Return ``PNG to JPEG``, or ``PNG encoded anew`` for the same format."""
    was, now = _NAMES.get(facts.format, facts.format), _NAMES.get(name, name)
    return f"{now} encoded anew" if was == now else f"{was} to {now}"


def change_frames(part: MediaPart, limits: Changes, policy: MediaPolicy, why: str) -> MediaPart:
    """Return a video with those of its ``frames`` scaled that exceed ``limits``; ``why`` is the reason to record."""
    frames: list[bytes] = []
    notes: list[str] = []
    for frame in part.frames:
        facts = image_facts(frame, policy)
        size = (facts.width, facts.height)
        if size_within(*size, limits.max_side, limits.max_pixels) == size:
            frames.append(frame)
            continue
        wanted = Wanted("JPEG", max_side=limits.max_side, max_pixels=limits.max_pixels, why_size=why)
        made = make(decoded(frame, policy, facts, wanted), facts, wanted)
        frames.append(encoded(made.image, "JPEG", limits.quality, made.orientation))
        notes.append(f"{', '.join(made.notes)}, quality {limits.quality}")
    return with_frames(part, frames, notes)


def with_frames(part: MediaPart, frames: Sequence[bytes], notes: Iterable[str]) -> MediaPart:
    """Return the video with these frames. ``notes`` has one entry for each changed frame; the same part if none was."""
    counts = Counter(notes)
    if not counts:
        return part
    changes = [f"{count} of {len(frames)} frames: {note}" for note, count in counts.items()]
    return part._replace(frames=tuple(frames), changes=(*part.changes, *changes))


def is_lossless(data: bytes, facts: ImageFacts) -> bool:
    """True if the format of a picture file keeps its pixels without loss."""
    if facts.format == "WEBP":
        return webp_is_lossless(data)
    return facts.format not in ("JPEG", "AVIF")


def scaled(old: tuple[int, int], new: tuple[int, int], why: str) -> str:
    """Return how a picture was scaled, in words."""
    return f"{old[0]}x{old[1]} to {new[0]}x{new[1]}{why}"


def why_size(max_side: int | None, max_pixels: int | None) -> str:
    """Return the limits of a size as the reason to record."""
    names = (("max_side", max_side), ("max_pixels", max_pixels))
    return f" ({', '.join(f'{name} {most}' for name, most in names if most is not None)})"
