"""Decoded pictures as plain values, which a child process can send, and back as Pillow's images."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.image.reading import KEPT_PICTURES, RAISE_PIXELS, decode_image, image_facts
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    from PIL.Image import Image

KEPT_INFO = ("transparency", "icc_profile")
"""What is kept of Pillow's ``info`` where a picture is handed on; nothing of it says how to turn it."""

_XMP_TURN = re.compile(r'tiff:Orientation(?:="|>)([2-8])')


class PlainImage(NamedTuple):
    """A decoded picture as plain values, as a child process can hand it on.

    ``pixels`` are those of Pillow's ``tobytes``; ``palette`` is its mode and bytes. ``info`` has of Pillow's only
    ``KEPT_INFO``. ``turn`` says which turn the file asks for, as "EXIF orientation 6"; empty where it asks for none.
    """

    mode: str
    size: tuple[int, int]
    pixels: bytes
    palette: tuple[str, bytes] | None
    info: dict[Any, Any]
    turn: str


def plain_image(data: bytes, policy: MediaPolicy, room: int) -> PlainImage:
    """Return the first frame of a picture file as plain values; it is not turned.

    Raises:
        SourceError: as ``decode_image``.
        PolicyError: as ``decode_image``, or ``room`` pixels are less than it has: more than a request may hold.
    """
    facts = image_facts(data, policy)
    if facts.width * facts.height > room:
        what = f"the pictures of the request have together more than {KEPT_PICTURES} x max_pixels"
        raise PolicyError(f"{what} ({policy.max_pixels}) pixels", f"give fewer pictures or frames, or {RAISE_PIXELS}")
    image = decode_image(data, policy)
    turn = f"EXIF orientation {facts.orientation}" if facts.orientation > 1 else ""
    xmp = image.info.get("XML:com.adobe.xmp") or image.info.get("xmp") or ""
    text = xmp.decode("latin-1") if isinstance(xmp, bytes) else str(xmp)
    if not turn and (found := _XMP_TURN.search(text)):
        turn = f"XMP orientation {found[1]}"
    palette = image.palette
    colours = None if palette is None else (palette.mode, bytes(image.getpalette(palette.mode) or ()))
    info = {key: image.info[key] for key in KEPT_INFO if image.info.get(key) is not None}
    return PlainImage(image.mode, image.size, image.tobytes(), colours, info, turn)


def image_of(plain: PlainImage) -> Image:
    """Return Pillow's image of what ``plain_image`` gave.

    Raises:
        SourceError: the values are no picture, as a damaged child process may give them.
    """
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy

    try:
        image = pillow.frombytes(plain.mode, plain.size, plain.pixels)
        if plain.palette is not None:
            mode, colours = plain.palette
            image.putpalette(colours, mode)
    except (LookupError, TypeError, ValueError) as error:
        raise SourceError(f"the decoder gave no picture ({type(error).__name__})", "leave the sample out") from None
    image.info = dict(plain.info)
    return image
