"""A video given as a list of frames: base64 joined by commas, or objects, each of which becomes a JPEG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mmprompt.errors import SourceError
from mmprompt.errors.findings import Note
from mmprompt.media.base64_text import decode
from mmprompt.media.media_types import JPEG, sniff
from mmprompt.media.objects import encode_image
from mmprompt.media.policy import MediaPolicy, limit_error
from mmprompt.media.request_reader import Read
from mmprompt.media.sources import in_short
from mmprompt.media.type_check import A_MODALITY, not_media
from mmprompt.messages import MediaPart, MediaRef


class Frames(NamedTuple):
    """The frames of a video as JPEG files, what was done to get them, and what was noticed."""

    files: tuple[bytes, ...]
    changes: tuple[str, ...] = ()
    findings: tuple[Note, ...] = ()


def frames_of_base64(text: str, policy: MediaPolicy) -> Frames:
    """Return the frames of comma-joined base64; ``max_bytes`` bounds all of them together."""
    check_count(text.count(",") + 1, policy)
    findings: list[Note] = []

    def decoded() -> Iterator[bytes]:
        for number, piece in enumerate(text.split(",")):
            try:
                data, found = decode(piece, policy.max_bytes)
            except SourceError as error:
                raise SourceError(f"frame {number}: {error.what}", error.hint, code=error.code) from None
            findings.extend(Note(f.code, f"frame {number}: {f.what}", f.hint) for f in found)
            yield data

    files = _checked(decoded(), policy.max_bytes)
    return Frames(files, (), tuple(findings))


def frames_of_objects(items: Sequence[object], policy: MediaPolicy, read: Read) -> Frames:
    """Return the frames of a list: each a PIL image, an array of pixels, or a source that ``read`` reads."""
    check_count(len(items), policy)
    changes: list[str] = []

    def encoded() -> Iterator[bytes]:
        for number, item in enumerate(items):
            if hasattr(item, "shape") or hasattr(item, "convert"):
                made = encode_image(item, policy, frame=True)
                changes.extend(f"frame {number}: {change}" for change in made.changes)
                yield made.data
                continue
            part = read(MediaRef("image", item))
            if not isinstance(part, MediaPart):
                raise SourceError(f"frame {number} ({in_short(item)}) is not read", "give frames as files or bytes")
            yield part.data

    files = _checked(encoded(), policy.max_bytes)
    return Frames(files, tuple(changes))


def _checked(frames: Iterable[bytes], most: int) -> tuple[bytes, ...]:
    """Return the frames; refuse one that is not a JPEG, and more bytes than ``most`` together."""
    files: list[bytes] = []
    left = most
    for number, data in enumerate(frames):
        left -= len(data)
        if left < 0:
            raise limit_error(f"the frames have more than max_bytes ({most})", "max_bytes", "MM211")
        kind = sniff(data)
        if kind is not JPEG:
            raise SourceError(
                f"frame {number} is {kind.name if kind else not_media(data).name}",
                "give each frame as a JPEG",
                code="MM214",
            )
        files.append(data)
    return tuple(files)


def check_count(count: int, policy: MediaPolicy) -> None:
    """Refuse too many frames before objects are made of them: an object takes more memory than a short text."""
    if count > policy.max_frames:
        what = f"{count} frames are more than max_frames ({policy.max_frames})"
        raise limit_error(what, "max_frames", "MM506")


def check_is_video(modality: str) -> None:
    """Refuse several frames that are not tagged as a video."""
    if modality != "video":
        raise SourceError(
            f"several frames are given as {A_MODALITY[modality]}",
            "tag them as video, or give each picture its own segment",
            code="MM213",
        )
