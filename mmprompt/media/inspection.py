"""What decoding a medium finds, for checks: one value for each modality, made in the sandbox."""

from __future__ import annotations

from typing import NamedTuple, Union

from mmprompt.errors import SourceError
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart


class ImageContent(NamedTuple):
    """What a picture holds. ``width`` and ``height`` are pixels as stored; ``format`` and ``mode`` are Pillow's."""

    format: str
    width: int
    height: int
    mode: str


class AudioContent(NamedTuple):
    """What a sound holds. ``seconds`` are decoded."""

    container: str
    rate: int
    channels: int
    seconds: float


class VideoContent(NamedTuple):
    """What a video holds. ``frames`` are counted."""

    container: str
    width: int
    height: int
    frames: int


Content = Union[ImageContent, AudioContent, VideoContent]


def inspect(part: MediaPart, policy: MediaPolicy) -> Content:
    """Decode a medium and return what it holds.

    Raises:
        SourceError: it is cut or damaged, or holds nothing.
        PolicyError: it is larger or longer than the policy allows.
    """
    if part.modality == "image":
        from mmprompt.media.image.inspection import inspect_image  # noqa: PLC0415  # loads in the sandbox

        return inspect_image(part.data, policy)
    raise SourceError(f"{part.modality} cannot be inspected", "leave it out")
