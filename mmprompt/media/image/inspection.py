"""What a picture holds: facts from its header, and figures of its pixels from one small copy."""

from __future__ import annotations

import io
import re
import struct
from typing import TYPE_CHECKING, Any

from mmprompt.media.image.pixels import in_mode, turned
from mmprompt.media.image.reading import ImageFacts, decode_image, whole_image
from mmprompt.media.inspection import ImageContent
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

SIDE = 64
"""Pixels of the shorter side of the small copy, at least. An eighth of a photo of 640 x 512 has so many."""

_ONE_COLOUR = 6
"""Levels of 255 within which a JPEG of one colour may vary."""

_SAME_COLOUR = 8
"""Levels of 255 by which pixels may differ from the commonest colour and still count as it."""

_GREY = 6
"""Levels of 255 by which the samples of a grey pixel in a JPEG may differ."""

_STEP, _STEPS = 3, 20
"""A difference hash has 64 comparisons of neighbours. A step of fewer levels may be noise; with fewer real steps than
these, the hash says little about the picture."""

_WHITE = (255, 255, 255)


def inspect_image(data: bytes, policy: MediaPolicy) -> ImageContent:
    """Decode a picture and return what it holds; see ``inspect``."""
    import numpy as np  # noqa: PLC0415  # heavy

    image, facts = whole_image(data, policy, "RGB", SIDE)
    small = _small(image)
    pixels = np.asarray(in_mode(small, "RGB", _WHITE))
    grey = in_mode(small, "L", _WHITE)
    levels = np.asarray(grey)
    code, steps = _difference_hash(turned(grey, facts.orientation))
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
        _one_colour(small, data, facts, policy),
        _commonest(levels),
        float(np.percentile(levels, 1)) / 255,
        float(np.percentile(levels, 99)) / 255,
        bool(np.ptp(pixels, axis=2).max() <= _GREY),
        code,
        steps < _STEPS,
    )


def _small(image: Image) -> Image:
    """Return a copy of a few thousand pixels: averages of squares."""
    if image.mode in ("I", "F"):
        image = _stretched(image)
    elif image.mode.startswith("I;16") or image.mode == "1":
        image = in_mode(image, "L", _WHITE)
    elif image.mode in ("P", "PA"):
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
    import numpy as np  # noqa: PLC0415  # heavy

    for opaque in (_on_white, _without_alpha) if facts.has_alpha else (_on_white,):
        if _spread(opaque(small)) <= _ONE_COLOUR:
            whole = decode_image(data, policy)
            plain = opaque(_stretched(whole) if whole.mode in ("I", "F") else whole)
            if _spread(plain) <= _ONE_COLOUR:
                red, green, blue = np.asarray(plain.resize((1, 1)))[0, 0].tolist()
                return red, green, blue
    return None


def _on_white(image: Image) -> Image:
    return in_mode(image, "RGB", _WHITE)


def _without_alpha(image: Image) -> Image:
    """Return the image as a reader that drops the alpha channel sees it."""
    return image.convert("RGBA").convert("RGB")


def _spread(image: Image) -> int:
    """Return the difference of the lightest and the darkest sample, of the channel where it is largest."""
    extrema: Any = image.getextrema()
    return int(max(high - low for low, high in extrema))


def _commonest(levels: Array) -> float:
    """Return the share of pixels that are about as light as the commonest ones."""
    import numpy as np  # noqa: PLC0415  # heavy

    counts = np.bincount(levels.ravel(), minlength=256)
    top = int(counts.argmax())
    return float(counts[max(0, top - _SAME_COLOUR) : top + _SAME_COLOUR + 1].sum() / levels.size)


def _difference_hash(grey: Image) -> tuple[int, int]:
    """Return the difference hash of a grey image as a signed 64-bit integer, and how many of its steps are real.

    The image is averaged to 9 x 8 cells. Each bit says whether a cell is darker than its right neighbour.
    """
    import numpy as np  # noqa: PLC0415  # heavy
    from PIL.Image import Resampling  # noqa: PLC0415  # heavy

    cells = np.asarray(grey.resize((9, 8), Resampling.BOX), np.int16)
    steps = np.diff(cells, axis=1)
    code = int.from_bytes(np.packbits(steps > 0).tobytes(), "big", signed=True)
    return code, int((np.abs(steps) >= _STEP).sum())


def _profile(image: Image) -> str:
    """Return the name of the colour profile; empty without one, or if it is sRGB."""
    from PIL import ImageCms  # noqa: PLC0415  # heavy

    profile = image.info.get("icc_profile")
    if not isinstance(profile, bytes) or not profile or re.search(rb"s\0?R\0?G\0?B", profile[:2048]):
        return ""
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
    """Return where the picture of a JPEG ends. Within a scan no FF D9 can stand: each FF is followed by 00 there."""
    if data.find(b"MPF\0", 0, 1 << 17) >= 0:
        return len(data)
    scan = 2
    while data[scan] == 0xFF and data[scan + 1] != 0xDA and scan + 4 < len(data):
        scan += 2 + int.from_bytes(data[scan + 2 : scan + 4], "big")
    end = data.find(b"\xff\xd9", scan)
    return end + 2 if end >= 0 else len(data)
