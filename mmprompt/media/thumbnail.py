"""Small copies of media, made in the sandbox: a JPEG for reports, an array of one size for a small model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

SIDE = 160
"""Pixels of the longer side, at most."""

_WHITE = (255, 255, 255)
_GREY = (221, 221, 221)
_QUALITY = 75


def thumbnail(part: MediaPart, policy: MediaPolicy) -> bytes:
    """Return a small JPEG, on grey where the picture is transparent; empty for a medium that shows nothing.

    Of a damaged picture it shows what can be decoded.

    Raises:
        SourceError: it cannot be decoded.
    """
    from mmprompt.media.image.pixels import encoded, in_mode, size_within, turned  # noqa: PLC0415  # heavy
    from mmprompt.media.image.reading import decode_rest, image_facts  # noqa: PLC0415  # heavy

    if part.modality == "audio":
        return b""
    if part.modality == "video" and not part.frames:
        image, orientation = _first_frame(part.data, policy), 1
    else:
        data = part.frames[0] if part.frames else part.data
        image, orientation = decode_rest(data, policy), image_facts(data, policy).orientation
    image = turned(image, orientation)
    small = image.resize(size_within(image.width, image.height, SIDE, None))
    return encoded(in_mode(small, "RGB", _GREY), "JPEG", _QUALITY)


def _first_frame(data: bytes, policy: MediaPolicy) -> Image:
    from PIL import Image  # noqa: PLC0415  # heavy

    from mmprompt.media.video.frame_choice import FrameChoice  # noqa: PLC0415  # heavy
    from mmprompt.media.video.frames import take_frames  # noqa: PLC0415  # heavy

    taken = take_frames(data, policy, FrameChoice(1), lambda: Image.fromarray)
    return taken.frames[0][1]  # type: ignore[no-any-return]  # what fromarray made


def rgb_square(data: bytes, policy: MediaPolicy, side: int) -> NDArray[np.uint8]:
    """Return the first frame of a picture file, upright and scaled to ``side`` x ``side`` x 3 values of RGB.

    The aspect is not kept. What is transparent is laid on white.

    Raises:
        SourceError: it cannot be decoded.
        PolicyError: it has more pixels than the policy allows.
    """
    import numpy as np  # noqa: PLC0415  # heavy

    from mmprompt.media.image.pixels import in_mode, resized, turned  # noqa: PLC0415  # heavy
    from mmprompt.media.image.reading import decode_image, image_facts  # noqa: PLC0415  # heavy

    upright = turned(decode_image(data, policy), image_facts(data, policy).orientation)
    return np.asarray(resized(in_mode(upright, "RGB", _WHITE), (side, side)))
