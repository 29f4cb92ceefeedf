"""What a picture holds: facts from its header, and figures of its pixels from one small copy."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Sequence
from functools import cache
from operator import mul
from typing import TYPE_CHECKING, Any

from mmprompt.media.image.pixels import in_mode, turned
from mmprompt.media.image.reading import ImageFacts, decode_image, whole_image
from mmprompt.media.inspection import ImageContent
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFilter import Kernel

SIDE = 40
"""Pixels of the shorter side of the small copy, at least. An eighth of a photo of 480 x 320 has so many."""

_ONE_COLOUR = 6
"""Levels of 255 within which a JPEG of one colour may vary."""

_SAME_LEVEL = 8
"""Levels of 255 by which pixels may differ from the commonest ones and still count as the same."""

_GREY = 4
"""Levels of 255 by which the colour difference samples of a grey JPEG may leave the middle."""

_MIDDLE = 128

_CELLS = 9, 8
"""Columns and rows of averages, which give a difference hash of 64 bits."""

_LEAST_SIDE = 128
"""Pixels of the shorter side of a picture whose sharpness is judged. Smaller ones may be enlarged icons or digits."""

_LEAST_VARIANCE = 4
"""Of grey levels. Below, noise and rounding make up the edges."""

_LEVELS = list(range(256))
_SQUARES = [level * level for level in range(256)]
_FROM_MIDDLE = [(level - _MIDDLE) ** 2 for level in range(256)]
_WHITE = (255, 255, 255)


def inspect_image(data: bytes, policy: MediaPolicy) -> ImageContent:
    """Decode a picture and return what it holds; see ``inspect``.

    All figures come from one copy of a few thousand pixels, because at this size Pillow's own functions take less time
    than NumPy does to load.
    """
    from PIL.Image import Resampling  # noqa: PLC0415  # heavy

    image, facts = whole_image(data, policy, "YCbCr", SIDE)
    small = _small(image)
    plain = small if small.mode in ("L", "YCbCr") else _on_white(small)
    grey = plain.getchannel(0)
    levels = grey.histogram()
    ends = _extrema(plain)
    darkest, lightest = ends[0]
    return ImageContent(
        facts.format,
        facts.width,
        facts.height,
        facts.mode,
        facts.orientation,
        facts.frames,
        facts.has_alpha,
        facts.bits,
        _profile(image),
        bytes_after(data, facts.format),
        None if plain is small and not _is_even(ends) else _one_colour(small, data, facts, policy),
        _commonest(levels),
        darkest / 255,
        lightest / 255,
        _sharpness(grey, levels) if min(facts.width, facts.height) >= _LEAST_SIDE else None,
        plain.mode == "L" or all(abs(end - _MIDDLE) <= _GREY for band in ends[1:] for end in band),
        turned(plain, facts.orientation).resize(_CELLS, Resampling.BOX).convert("YCbCr").tobytes(),
    )


def _small(image: Image) -> Image:
    """Return a copy of a few thousand pixels: averages of squares."""
    mode = image.mode
    if mode in ("I", "F"):
        image = _stretched(image)
    elif mode.startswith("I;16") or mode == "1":
        image = in_mode(image, "L", _WHITE)
    elif mode in ("P", "PA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    times = min(image.size) // SIDE
    return image.reduce(times) if times > 1 else image


def _stretched(image: Image) -> Image:
    """Return an image of samples without a stated white as grey from its darkest to its lightest pixel."""
    import numpy as np  # noqa: PLC0415  # heavy
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy

    values = np.nan_to_num(np.asarray(image, np.float64))
    low, high = values.min(), values.max()
    return pillow.fromarray(((values - low) * (255 / max(high - low, 1e-9))).astype(np.uint8))


def _one_colour(small: Image, data: bytes, facts: ImageFacts, policy: MediaPolicy) -> tuple[int, int, int] | None:
    """Return the one colour of all pixels, transparency laid on white or dropped; None if there are several.

    The small copy may hide what is fine, so that a picture that looks blank is decoded in full.
    """
    for opaque in (_on_white, _without_alpha) if facts.has_alpha else (_on_white,):
        if _is_even(_extrema(opaque(small))):
            whole = decode_image(data, policy)
            plain = opaque(_stretched(whole) if whole.mode in ("I", "F") else whole)
            if _is_even(_extrema(plain)):
                red, green, blue = plain.resize((1, 1)).convert("RGB").tobytes()
                return red, green, blue
    return None


def _on_white(image: Image) -> Image:
    if image.mode in ("L", "YCbCr"):
        return image
    return in_mode(image, "RGB", _WHITE).convert("YCbCr")


def _without_alpha(image: Image) -> Image:
    """Return the image as a reader that drops the alpha channel sees it."""
    return image.convert("RGBA").convert("RGB").convert("YCbCr")


def _is_even(bands: Sequence[tuple[int, int]]) -> bool:
    """True if all pixels have about the same colour, given the lowest and highest level of each band."""
    return all(high - low <= _ONE_COLOUR for low, high in bands)


def _extrema(image: Image) -> Sequence[tuple[int, int]]:
    """Return the lowest and the highest level of each band."""
    found: Any = image.getextrema()
    return found if isinstance(found[0], tuple) else [found]


def _commonest(levels: Sequence[int]) -> float:
    """Return the share of pixels that are about as light as the commonest ones, given a histogram."""
    top = levels.index(max(levels))
    return sum(levels[max(0, top - _SAME_LEVEL) : top + _SAME_LEVEL + 1]) / sum(levels)


def _sharpness(grey: Image, levels: Sequence[int]) -> float | None:
    """Return the mean square of the second differences of a grey image, as a multiple of the variance of its levels.

    Light and contrast do not count: the ratio of a dark copy is the same. None for an image of nearly one level.
    """
    width, height = grey.size
    count = width * height
    mean = sum(map(mul, levels, _LEVELS)) / count
    spread = sum(map(mul, levels, _SQUARES)) / count - mean * mean
    if spread < _LEAST_VARIANCE:
        return None
    edges = grey.filter(_second_differences())
    inner = edges.crop((1, 1, width - 1, height - 1))  # the filter copies the border
    sharp = sum(map(mul, inner.histogram(), _FROM_MIDDLE)) / ((width - 2) * (height - 2))
    return float(4 * sharp / spread)


@cache
def _second_differences() -> Kernel:
    from PIL.ImageFilter import Kernel  # noqa: PLC0415  # heavy

    return Kernel((3, 3), (0, 1, 0, 1, -4, 1, 0, 1, 0), scale=2, offset=_MIDDLE)


def _profile(image: Image) -> str:
    """Return the name of the colour profile; empty without one, or if it is sRGB."""
    profile = image.info.get("icc_profile")
    if not isinstance(profile, bytes) or not profile or re.search(rb"s\0?R\0?G\0?B", profile[:2048]):
        return ""
    from PIL import ImageCms  # noqa: PLC0415  # heavy, and few pictures need it

    try:
        name: str | None = ImageCms.ImageCmsProfile(io.BytesIO(profile)).profile.profile_description
    except OSError:
        return "an unreadable one"
    return name or "an unnamed one"


def bytes_after(data: bytes, name: str) -> int:
    """Return how many bytes follow the end of a JPEG, PNG or WebP, unless they are padding; 0 for other formats.

    The further pictures of a multi-picture file (CIPA DC-007) belong to it.
    """
    if name == "JPEG":
        end = _jpeg_end(data)
    elif name == "PNG":
        end = data.find(_PNG_END) + len(_PNG_END)
    elif name == "WEBP":
        (size,) = struct.unpack_from("<I", data, 4)
        end = 8 + size + (size & 1)
    else:
        return 0
    rest = data[end:]
    return len(rest) if rest.strip(b"\0\xff \r\n") else 0


_PNG_END = b"\0\0\0\0IEND\xaeB\x60\x82"


def _jpeg_end(data: bytes) -> int:
    """Return where the picture of a JPEG ends. Within a scan no FF D9 can stand: each FF is followed by 00 there.

    A file that ends with an end mark is not searched, because that would take a tenth of the time of its decoding.
    """
    mark, scan, at = b"\xff\xd9", b"\xff\xda", 2
    if data.endswith(mark):
        return len(data)
    while data[at : at + 1] == b"\xff" and data[at : at + 2] != scan:
        if data[at + 4 : at + 8] == b"MPF\0":
            return len(data)
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    end = data.find(mark, at)
    return len(data) if end < 0 else end + 2
