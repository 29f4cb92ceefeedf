"""A video given as a list of frames: base64 joined by commas, or objects, each of which becomes a JPEG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.base64_text import decode
from mmprompt.media.media_types import JPEG, sniff
from mmprompt.media.objects import encode_image
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sources import in_short
from mmprompt.media.type_check import A_MODALITY, not_media
from mmprompt.messages import MediaPart, MediaRef


class Frames(NamedTuple):
    """The frames of a video as JPEG files, what was done to get them, and what was noticed."""

    files: tuple[bytes, ...]
    changes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def frames_of_base64(text: str, policy: MediaPolicy) -> Frames:
    """Return the frames of comma-joined base64; ``max_bytes`` bounds all of them together.

    Raises:
        SourceError: a frame is not base64, or not a JPEG.
        PolicyError: more frames or bytes than the policy allows.
    """
    check_count(text.count(",") + 1, policy)
    frames = _Collected(policy)
    findings: list[str] = []
    for number, piece in enumerate(text.split(",")):
        try:
            data, found = decode(piece, frames.bytes_left)
        except SourceError as error:
            raise SourceError(f"frame {number}: {error.what}", error.hint) from None
        frames.add(data)
        findings.extend(f"frame {number}: {f}" for f in found)
    return Frames(frames.checked(), (), tuple(findings))


def frames_of_objects(
    items: Sequence[Any], policy: MediaPolicy, read: Callable[[MediaRef], MediaPart | MediaRef]
) -> Frames:
    """Return the frames of a list: each a PIL image, an array of pixels, or a source that ``read`` reads.

    Raises:
        SourceError: a frame cannot be read, or is not a JPEG.
        PolicyError: more frames or bytes than the policy allows.
    """
    check_count(len(items), policy)
    frames = _Collected(policy)
    changes: list[str] = []
    for number, item in enumerate(items):
        if hasattr(item, "shape") or hasattr(item, "convert"):
            encoded = encode_image(item, policy, frame=True)
            frames.add(encoded.data)
            changes.extend(f"frame {number}: {change}" for change in encoded.changes)
            continue
        part = read(MediaRef("image", item))
        if not isinstance(part, MediaPart):
            raise SourceError(f"frame {number} ({in_short(item)}) is not read", "give frames as files or bytes")
        frames.add(part.data)
    return Frames(frames.checked(), tuple(changes))


def check_count(count: int, policy: MediaPolicy) -> None:
    """Refuse too many frames before an object is made of each: a frame of three bytes takes a hundred then.

    Raises:
        PolicyError: more than ``max_frames``.
    """
    if count > policy.max_frames:
        what = f"{count} frames are more than max_frames ({policy.max_frames})"
        raise PolicyError(what, "raise max_frames to allow it, or use --policy trusted")


def check_is_video(modality: str) -> None:
    """Refuse several frames that are not tagged as a video.

    Raises:
        SourceError: they are tagged as something else.
    """
    if modality != "video":
        raise SourceError(
            f"several frames are given as {A_MODALITY[modality]}",
            "tag them as video, or give each picture a segment of its own",
        )


class _Collected:
    """Frames as they come in, bounded by ``max_bytes`` together."""

    def __init__(self, policy: MediaPolicy) -> None:
        self.bytes_left = policy.max_bytes
        self._most = policy.max_bytes
        self._files: list[bytes] = []

    def add(self, data: bytes) -> None:
        self.bytes_left -= len(data)
        if self.bytes_left < 0:
            raise PolicyError(f"the frames have more than max_bytes ({self._most})", "raise max_bytes to allow it")
        self._files.append(data)

    def checked(self) -> tuple[bytes, ...]:
        """Return the frames; refuse one that is not a JPEG."""
        for number, frame in enumerate(self._files):
            kind = sniff(frame)
            if kind is not JPEG:
                found = kind.name if kind else not_media(frame).name
                raise SourceError(f"frame {number} is {found}", "give each frame as a JPEG")
        return tuple(self._files)
