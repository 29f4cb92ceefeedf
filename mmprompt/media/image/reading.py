"""Reads pictures: facts from their headers, their pixels, and whether all pixels are there. Changes nothing.

Only this module gives bytes to Pillow's readers, and only to those of the allowed formats.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.ffmpeg import Watch
from mmprompt.media.image.headers import exif_orientation, gif_layout, tiff_layout
from mmprompt.media.image.png_chunks import png_has_all_rows, png_layout
from mmprompt.media.image.readers import named, read_header
from mmprompt.media.media_types import AVIF, BMP, GIF, JPEG, PNG, TIFF, WEBP
from mmprompt.media.policy import RAISE_PIXELS, MediaPolicy, check_picture_size, limit_error
from mmprompt.media.sandbox.memory import at_most_more
from mmprompt.media.type_check import known_kind

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

_KINDS = {"JPEG": JPEG, "PNG": PNG, "WEBP": WEBP, "GIF": GIF, "BMP": BMP, "TIFF": TIFF, "AVIF": AVIF}

_FORMATS_BY_KIND = {kind.name: name for name, kind in _KINDS.items()}

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
"""Pillow's names of the formats that are always read; ``MediaPolicy.read_also`` adds others."""

ANIMATION_PICTURES = 10
"""All frames of an animation together may have this many times ``max_pixels``."""

KEPT_PICTURES = 8
"""All pictures that are held at once may have this many times ``max_pixels``."""


_AVIF, _AVIF_PIXEL = 256 << 20, 40
"""Bytes to decode an AVIF: at most so many for libavif and its threads, and for each pixel (of 12 bits with alpha)."""


class ImageFacts(NamedTuple):
    """Facts from the header of a picture.

    ``format`` is Pillow's name; ``width`` and ``height`` are pixels as stored, before ``orientation`` (EXIF, 1 to 8) is
    applied. ``mode`` is Pillow's mode of the first frame. ``frames`` are counted to one past the policy's
    ``max_frames``; None for a TIFF of several pages. ``bits`` is the size of a sample as stored.
    """

    format: str
    media_type: str
    width: int
    height: int
    mode: str
    orientation: int
    frames: int | None
    has_alpha: bool
    bits: int


def image_facts(data: bytes, policy: MediaPolicy) -> ImageFacts:
    """Return the facts of a picture file from its header; no pixel is decoded.

    Raises:
        SourceError: the bytes are not a picture of an allowed format, or the header is damaged.
        PolicyError: one frame has more than ``max_pixels``, or a side longer than ``max_side_pixels``.
    """
    return _open(data, policy)[1]


def decode_image(data: bytes, policy: MediaPolicy, size: tuple[int, int] | None = None) -> Image:
    """Return the first frame of a picture file, decoded. No orientation is applied; the EXIF block is in ``info``.

    A JPEG that will be scaled down to ``size`` comes at a half, a quarter or an eighth of its own size, the least that
    is 1.5 times ``size`` or more. The result is a plain Pillow image: it holds no open file, and it pickles. 16-bit
    RGB samples lose their low byte.

    Raises:
        SourceError: as ``image_facts``, or the pixels are cut or damaged.
        PolicyError: more pixels or time than the policy allows. Time is checked between reads.
    """
    image, facts = _open(data, policy)
    with named(facts.format):
        if size is not None and facts.format == "JPEG":
            image.draft(None, (size[0] * 3 // 2 + 1, size[1] * 3 // 2 + 1))
        _load_frames(image, 1, policy)
        plain = image.copy()
    _settle_clear_colour(plain, facts)
    return plain


def decode_rest(data: bytes, policy: MediaPolicy) -> Image:
    """Return what can be decoded of the first frame of a damaged picture; the rest is black.

    Raises:
        SourceError: as ``image_facts``, or nothing can be decoded.
        PolicyError: as ``decode_image``.
    """
    image, facts = _open(data, policy)
    try:
        with named(facts.format):
            _load_frames(image, 1, policy)
    except SourceError:
        image.tile = []  # what is decoded is taken for all
        with named(facts.format):
            if image.getbbox() is None:
                raise
    return image.copy()


def _settle_clear_colour(image: Image, facts: ImageFacts) -> None:
    """Scale the transparent colour of a PNG like its pixels, which Pillow stretches or cuts to 8 bits."""
    clear, bits = image.info.get("transparency"), facts.bits
    if facts.format != "PNG":
        return
    if image.mode == "1" and isinstance(clear, int):
        image.info["transparency"] = 255 if clear else 0
    elif image.mode == "L" and isinstance(clear, int) and bits < 8:
        image.info["transparency"] = (clear & (1 << bits) - 1) * 255 // ((1 << bits) - 1)
    elif image.mode == "RGB" and isinstance(clear, tuple) and bits > 8:
        image.info["transparency"] = tuple(value >> 8 for value in clear)


def check_image(data: bytes, policy: MediaPolicy) -> ImageFacts:
    """Return the facts of a picture file, all of which is decoded; see ``whole_image``."""
    return whole_image(data, policy, "L", 1)[1]


def whole_image(data: bytes, policy: MediaPolicy, mode: str, side: int) -> tuple[ImageFile, ImageFacts]:
    """Return the first frame of a picture file, and its facts; all frames are decoded, to show that none is missing.

    A JPEG is decoded to an eighth, a quarter or half of its size, the least whose sides have ``side`` pixels or more;
    one in colour in ``mode`` (``L`` or ``YCbCr``). That reads every bit of its scans, and shows a cut, and damage to
    markers or tables; it does not show damage inside a scan, unless the scan ends early: libjpeg makes a picture of any
    bits, and Pillow does not pass its warnings on. The check sums of a PNG show any changed bit. GIF, WebP and BMP have
    none, so only undecodable damage shows. A cut JPEG or PNG is an error even if the process has set Pillow's
    ``LOAD_TRUNCATED_IMAGES``.
    """
    image, facts = _open(data, policy)
    _check_frames(facts, policy)
    name, frames = facts.format, facts.frames or 1
    with named(name):
        if name == "JPEG":
            image.draft(mode, (side, side))
        elif name == "PNG":
            # before the pixels, and on a separate image: it leaves one that cannot be loaded
            read_header(data, name, policy).verify()
            if not png_has_all_rows(data):
                raise EOFError
        elif name == "GIF" and not gif_layout(data, policy.max_frames + 1).whole:
            raise EOFError
        _load_frames(image, frames, policy)
        if frames > 1:
            image.seek(0)
            image.load()
    return image, facts


def _load_frames(image: ImageFile, frames: int, policy: MediaPolicy) -> None:
    """Decode frames one after the other and check the time between them, because WebP reads its file only once."""
    avif = image.format == "AVIF"
    if frames == 1 and not avif:
        image.load()
        return
    watch = Watch(policy, f"the {image.format}")
    # the pictures in an AVIF may be larger than its header says: libavif decodes them whole, then scales them down
    with at_most_more(_AVIF + _AVIF_PIXEL * image.width * image.height) if avif else nullcontext():
        for number in range(frames):
            watch.check_time()
            image.seek(number)
            image.load()


def _open(data: bytes, policy: MediaPolicy) -> tuple[ImageFile, ImageFacts]:
    """Return Pillow's image, not decoded yet, and its facts."""
    name = _format_of(data, policy)
    frames, bits, exif, several = 1, 0, b"", False
    if name == "PNG":
        bits, exif, _ = png_layout(data)
    elif name == "GIF":
        # Pillow enlarges the picture to hold its frames, and judges that by its own limit, with a warning
        width, height, frames, _ = gif_layout(data, policy.max_frames + 1)
        check_picture_size("the GIF", width, height, policy)
        _check_gif(width, height)
    elif name == "TIFF":
        width, height, several = tiff_layout(data)
        _check_tiles(width, height, policy.max_pixels)
    image = read_header(data, name, policy)
    check_picture_size(f"the {name}", *image.size, policy)
    with named(name):
        counted: int | None = (
            (None if several else 1) if name == "TIFF" else frames if name == "GIF" else getattr(image, "n_frames", 1)
        )
        if counted is not None:
            counted = max(1, min(counted, policy.max_frames + 1))
        return image, _facts(image, name, counted, bits, exif)


def _format_of(data: bytes, policy: MediaPolicy) -> str:
    """Return Pillow's name of the format of ``data``, if the policy allows it."""
    kind = known_kind(data, "image", "give an image")
    name = _FORMATS_BY_KIND.get(kind.name)
    if name is None or (name not in FORMATS and name.lower() not in policy.read_also):
        what = "which mmprompt does not read" if kind.image else "not an image"
        raise SourceError(
            f"the image source is {kind.name}, {what}", kind.hint or "convert it to PNG or JPEG", code="MM214"
        )
    return name


def _facts(image: ImageFile, name: str, frames: int | None, bits: int, exif: bytes) -> ImageFacts:
    """Return the facts of an opened image. ``bits`` and ``exif`` come from its header, where that was read."""
    return ImageFacts(
        name,
        _KINDS[name].image or "",
        *image.size,
        image.mode,
        _orientation(image, exif),
        frames,
        image.has_transparency_data,
        bits or _bits(image),
    )


def _orientation(image: ImageFile, exif: bytes) -> int:
    if image.format == "TIFF":
        found = image.tag_v2.get(0x0112, 1)  # type: ignore[attr-defined]  # of TiffImageFile
        return found if isinstance(found, int) and 1 <= found <= 8 else 1
    written = image.info.get("exif") or exif
    if not written and isinstance(profile := image.info.get("Raw profile type exif"), str):
        # ImageMagick's way before PNG had a chunk for it: a name and a length, each on a line, then hexadecimal
        try:
            written = bytes.fromhex("".join(profile.split("\n")[3:]))
        except ValueError:
            return 1
    return exif_orientation(written)


def _bits(image: ImageFile) -> int:
    if image.format == "TIFF":
        stored = image.tag_v2.get(258, 8)  # type: ignore[attr-defined]  # BitsPerSample
        return max(stored) if isinstance(stored, tuple) else int(stored)
    return {"1": 1, "I;16": 16}.get(image.mode, 8)


def _check_tiles(width: int, height: int, most: int) -> None:
    """Refuse a TIFF whose tiles are far larger than its picture: Pillow decodes them whole."""
    if width * height > 2 * most:
        what = f"the tiles of the TIFF have {width} x {height} pixels together, more than twice max_pixels ({most})"
        raise PolicyError(what, RAISE_PIXELS, code="MM302")


def _check_gif(width: int, height: int) -> None:
    """Refuse a GIF beyond Pillow's own limit, which its reader would check in the middle of decoding."""
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy

    limit = pillow.MAX_IMAGE_PIXELS
    if limit is not None and width * height > limit:
        raise PolicyError(
            f"the GIF has {width} x {height} pixels, more than Pillow takes ({limit})", "make it smaller", code="MM302"
        )


def _check_frames(facts: ImageFacts, policy: MediaPolicy) -> None:
    frames = facts.frames or 1
    if frames > policy.max_frames:
        raise limit_error(f"the {facts.format} has more than max_frames ({policy.max_frames})", "max_frames", "MM211")
    most = policy.max_pixels * ANIMATION_PICTURES
    if frames * facts.width * facts.height > most:
        raise PolicyError(
            f"the {frames} frames of the {facts.format} have {facts.width} x {facts.height} pixels each, more than "
            f"{ANIMATION_PICTURES} times max_pixels ({policy.max_pixels}) together",
            RAISE_PIXELS,
            code="MM302",
        )
