"""The limits on the size of one picture or frame, judged before its pixels are decoded."""

from __future__ import annotations

from mmprompt.errors import PolicyError
from mmprompt.media.policy import MediaPolicy

RAISE_PIXELS = "make it smaller, or drop the row; to allow it, give media: {max_pixels: N} in a task file"


def check_picture_size(what: str, width: int, height: int, policy: MediaPolicy) -> None:
    """Refuse a picture of more than ``max_pixels``, or with a side longer than ``max_side_pixels``.

    A side has its own limit because scaling takes about 50 bytes for each pixel of a side, however short the other
    side is.

    Args:
        what: the picture in words, such as ``"the PNG"``.
        width: as the header says.
        height: as the header says.
        policy: the limits.
    """
    size = f"{what} has {width} x {height} pixels, more than"
    if width * height > policy.max_pixels:
        hint = RAISE_PIXELS if max(width, height) <= policy.max_side_pixels else "make it smaller, or drop the row"
        raise PolicyError(f"{size} max_pixels ({policy.max_pixels})", hint, code="MM302")
    if max(width, height) > policy.max_side_pixels:
        hint = "make it smaller, or pass MediaPolicy(max_side_pixels=N) to allow it"
        raise PolicyError(f"{size} max_side_pixels ({policy.max_side_pixels}) on a side", hint, code="MM302")
