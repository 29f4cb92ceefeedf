"""Pixels of one picture, changed: turned, scaled, brought into a mode, encoded. Nothing is read or decided here.

All images are decoded Pillow images. Each function returns a new one, or the same one if it changes nothing.
"""

from __future__ import annotations

import io
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from mmprompt.errors import SourceError
from mmprompt.media.image.headers import orientation_exif

if TYPE_CHECKING:
    from PIL.Image import Image

Colour = tuple[int, int, int]

LONGEST_SIDE = {"JPEG": 65_500, "WEBP": 16_383}
"""The most pixels a side that the encoder of a format writes."""

_HELD = {
    "JPEG": ("L", "RGB", "CMYK"),
    "PNG": ("1", "L", "LA", "P", "I;16", "RGB", "RGBA"),
    "WEBP": ("RGB", "RGBA"),
}
"""The modes that each format holds."""

_PROFILE_SPACES = {
    "L": b"GRAY", "LA": b"GRAY", "RGB": b"RGB ", "RGBA": b"RGB ", "P": b"RGB ", "CMYK": b"CMYK"
}  # fmt: skip
_LARGEST_PROFILE = 1 << 20
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N", "I")
_TURNS = ("", "FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")


def size_within(width: int, height: int, max_side: int | None, max_pixels: int | None) -> tuple[int, int]:
    """Return the largest size of the same aspect, as near as whole pixels allow, that both limits admit.

    Never larger than given, and at least one pixel a side.
    """
    new = (width, height)
    longest = max(width, height)
    if max_side is not None and longest > max_side:
        # halves round up
        new = (
            max(1, (2 * width * max_side + longest) // (2 * longest)),
            max(1, (2 * height * max_side + longest) // (2 * longest)),
        )
    if max_pixels is not None and new[0] * new[1] > max_pixels:
        across = min(max(1, math.isqrt(max_pixels * width // height)), max_pixels)
        down = min(max(1, height * across // width), max_pixels // across)
        new = (across, down)
    return new


def turned(image: Image, orientation: int) -> Image:
    """Return the image upright, given its EXIF orientation, 1 to 8."""
    from PIL.Image import Transpose  # noqa: PLC0415  # heavy

    return image.transpose(Transpose[_TURNS[orientation - 1]]) if orientation > 1 else image


def resized(image: Image, size: tuple[int, int], full: tuple[int, int] | None = None) -> Image:
    """Return the image at this size, by Lanczos; palettes and single bits become samples of 8 bits for it.

    An image decoded to a half, a quarter or an eighth of its ``full`` size, rounded up, is scaled without that part of
    its last column and row that lies outside the picture.

    Colours are weighed by their alpha, so what is transparent does not shine through at edges. 16 bits stay 16.
    """
    from PIL.Image import Resampling  # noqa: PLC0415  # heavy

    if size == image.size:
        return image
    box = None
    if full is not None and full != image.size:
        times = round(full[0] / image.width)
        box = (0, 0, full[0] / times, full[1] / times)
    return _of_samples(image).resize(size, Resampling.LANCZOS, box)


def in_mode(image: Image, mode: str, background: Colour) -> Image:
    """Return the image as ``RGB`` or ``L``: 16 bits scaled to 8, transparent pixels laid on ``background``.

    CMYK is converted as Pillow and the model servers do it, R = (255 - C)(255 - K) / 255, without its profile.
    """
    plain = _opaque(eight_bits(image), background)
    return plain if plain.mode == mode else plain.convert(mode)


def held_by(image: Image, image_format: str, background: Colour) -> Image:
    """Return the image in a mode that ``JPEG``, ``PNG`` or ``WEBP`` holds, with the least loss."""
    modes = _HELD[image_format]
    if image_format == "PNG" and image.mode in _SIXTEEN_BITS:
        return _sixteen_bits(image)
    if image_format == "JPEG" and image.has_transparency_data:
        return _opaque(eight_bits(image), background)
    if image.mode in modes and not (image_format == "WEBP" and "transparency" in image.info):
        return image
    plain = _of_samples(eight_bits(image))
    if plain.mode in modes:
        return plain
    return plain.convert("RGBA" if plain.has_transparency_data else "RGB")


def eight_bits(image: Image) -> Image:
    """Return an image of 16 bits a sample scaled to 8: v x 255 / 65535, rounded; others as they are.

    Raises:
        SourceError: samples of more than 16 bits or floating point, whose white is not stated.
    """
    if image.mode == "F":
        raise _no_scale(image.mode)
    if image.mode not in _SIXTEEN_BITS:
        return image
    wide = _sixteen_bits(image).convert("I")
    narrow = wide.point(_scale(), "L")
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        mask = [255] * 65536
        mask[clear & 0xFFFF] = 0
        narrow.putalpha(wide.point(mask, "L"))
    return narrow


@cache
def _scale() -> list[int]:
    return [(value * 255 + 32767) // 65535 for value in range(65536)]


def _sixteen_bits(image: Image) -> Image:
    if image.mode != "I":
        return image
    extrema: Any = image.getextrema()
    if extrema[0] < 0 or extrema[1] > 0xFFFF:
        raise _no_scale(image.mode)
    return image.convert("I;16")


def _no_scale(mode: str) -> SourceError:
    return SourceError(
        f"the samples of an image of mode {mode} have no stated white", "save it with 8 or 16 bits", code="MM214"
    )


def _of_samples(image: Image) -> Image:
    """Return an image whose pixels can be mixed: no palette, no single bits, no colour that stands for clear."""
    clear = image.has_transparency_data
    if image.mode in _SIXTEEN_BITS:
        return eight_bits(image) if clear else image
    if image.mode == "1":
        return image.convert("LA" if clear else "L")
    if image.mode in ("L", "La"):
        return image.convert("LA") if clear else image
    if image.mode in ("P", "PA", "RGB", "RGBa") and clear:
        return image.convert("RGBA")
    return image.convert("RGB") if image.mode == "P" else image


def _opaque(image: Image, background: Colour) -> Image:
    """Return an image of 8 bits without alpha, in RGB or L; grey on grey stays grey."""
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy

    if image.has_transparency_data:
        clear = _of_samples(image).convert("RGBA")
        ground = pillow.new("RGB", image.size, background)
        ground.paste(clear.convert("RGB"), mask=clear.getchannel("A"))
        ground.info = {key: value for key, value in image.info.items() if key != "transparency"}
        return ground.convert("L") if image.mode in ("1", "L", "LA", "La") and len(set(background)) == 1 else ground
    if image.mode in ("RGB", "L"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def encoded(
    image: Image, image_format: str, quality: int, orientation: int = 1, *, lossless: bool = False, **more: Any
) -> bytes:
    """Return an image, in a mode that the format holds, as a file; the same image gives the same bytes.

    Kept of what stood beside the pixels: the colour profile where it is one of the image's mode, and an orientation
    that was not applied. ``quality`` is that of JPEG (chroma at half resolution) and of WebP that is not ``lossless``;
    ``more`` are Pillow's options of the format.

    Raises:
        SourceError: a side is longer than the format can say.
    """
    from PIL import JpegImagePlugin, PngImagePlugin, WebPImagePlugin  # noqa: F401, PLC0415  # heavy; Pillow would load all

    longest = LONGEST_SIDE.get(image_format)
    if longest is not None and max(image.size) > longest:
        hint = "scale it down (max_side), or choose PNG"
        raise SourceError(
            f"{image.width} x {image.height} pixels are more than a {image_format} has a side", hint, code="MM302"
        )
    options: dict[str, Any] = {"quality": quality, **more} if image_format != "PNG" else more
    if image_format == "WEBP":
        options["lossless"] = options["exact"] = lossless
    if orientation > 1:
        options["exif"] = orientation_exif(orientation)
    if profile := _profile(image):
        options["icc_profile"] = profile
    bare = image.copy()
    # Pillow writes some of what it finds there by itself
    bare.info = {"transparency": image.info["transparency"]} if "transparency" in image.info else {}
    buffer = io.BytesIO()
    bare.save(buffer, image_format, **options)
    return buffer.getvalue()


def _profile(image: Image) -> bytes | None:
    """Return the colour profile of an image if it is one of its mode (ICC.1, 7.2: bytes 16 to 19) and of usual size."""
    profile = image.info.get("icc_profile")
    if not isinstance(profile, bytes) or len(profile) > _LARGEST_PROFILE:
        return None
    return profile if profile[16:20] == _PROFILE_SPACES.get(image.mode) else None
