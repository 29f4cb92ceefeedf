"""What decoding a medium finds, for checks: one value for each modality, made in the sandbox."""

from __future__ import annotations

from typing import NamedTuple, Union

from mmprompt.media.policy import MediaPolicy


class ImageContent(NamedTuple):
    """What a picture holds.

    ``width`` and ``height`` are pixels as stored; ``format`` and ``mode`` are Pillow's, ``orientation`` is EXIF's.
    ``frames`` is None for a TIFF of several pages. ``bits`` is the size of a sample. ``profile`` names a colour profile
    other than sRGB. ``after`` counts the bytes behind the end of the picture.

    The rest is measured on a small copy, transparency laid on white. ``colour`` is the one colour of all pixels, on
    white or with the transparency dropped; None if there are several. ``commonest`` is the share of pixels about as
    light as the commonest ones. ``darkest`` and ``lightest`` are the ends of its levels, 0 to 1.
    ``sharpness`` is the variance of second differences by that of the levels; None where it says
    nothing. ``cells`` are 8 rows of 9 colours (Y, Cb, Cr): the picture, upright, in averages of its areas.
    """

    format: str
    width: int
    height: int
    mode: str
    orientation: int
    frames: int | None
    has_alpha: bool
    bits: int
    profile: str
    after: int
    colour: tuple[int, int, int] | None
    commonest: float
    darkest: float
    lightest: float
    sharpness: float | None
    grey: bool
    cells: bytes


class AudioContent(NamedTuple):
    """What a sound holds.

    ``seconds`` are decoded, ``declared`` those of the header (None: none). ``peak`` is the highest level, full scale at
    1. ``clipped`` is the share of samples in tops that are cut off there. ``silent_channels`` are numbered from 1.
    ``broken`` counts the places that cannot be decoded.
    """

    container: str
    codec: str
    rate: int
    channels: int
    seconds: float
    declared: float | None
    peak: float
    clipped: float
    has_nan: bool
    silent_channels: tuple[int, ...]
    broken: int


class VideoContent(NamedTuple):
    """What a video holds. ``container`` is ``"frames"`` for one of single frames.

    ``frames`` are counted and ``declared_frames`` those of the header (None: none). ``varies``: the frames follow one
    another at different distances. ``rotation`` is in degrees. ``blank``: each frame looked at has one colour;
    ``still``: they look the same. Of a long video the key frames alone are decoded.
    """

    container: str
    codec: str
    width: int
    height: int
    frames: int
    declared_frames: int | None
    seconds: float | None
    varies: bool
    rotation: int
    has_audio: bool
    blank: bool
    still: bool


Content = Union[ImageContent, AudioContent, VideoContent]


def inspect(modality: str, data: bytes, frames: tuple[bytes, ...], policy: MediaPolicy) -> Content:
    """Decode the bytes of a medium, or the frames of a video of single frames, and return what it holds.

    Raises:
        SourceError: it is cut or damaged, or holds nothing.
        PolicyError: it is larger or longer than the policy allows.
    """
    if modality == "image":
        from mmprompt.media.image.inspection import inspect_image  # noqa: PLC0415  # loads in the sandbox

        return inspect_image(data, policy)
    if modality == "audio":
        from mmprompt.media.audio.reading import inspect_audio  # noqa: PLC0415  # loads in the sandbox

        return inspect_audio(data, policy)
    from mmprompt.media.video.inspection import inspect_frames, inspect_video  # noqa: PLC0415  # loads in the sandbox

    return inspect_frames(frames, policy) if frames else inspect_video(data, policy)
