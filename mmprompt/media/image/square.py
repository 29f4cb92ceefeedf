"""A picture as an array of one size, for a small model. Made in the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WHITE = (255, 255, 255)


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
