"""Decoded pictures as plain values, which a child process can send, and back as Pillow's images."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.image.reading import KEPT_PICTURES, decode_image, image_facts
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    from PIL.Image import Image

KEPT_INFO = ("transparency", "icc_profile")
"""The keys of Pillow's ``info`` that are kept. None of them says how to turn the picture."""

_XMP_TURN = re.compile(r'tiff:Orientation(?:="|>)([2-8])')


class PlainImage(NamedTuple):
    """A decoded picture as plain values.

    ``pixels`` are the bytes of Pillow's ``tobytes``; ``palette`` is a mode and bytes. ``info`` holds the ``KEPT_INFO``
    of Pillow's. ``turn`` is the orientation that the file asks for, such as "EXIF orientation 6", or empty.
    """

    mode: str
    size: tuple[int, int]
    pixels: bytes
    palette: tuple[str, bytes] | None
    info: dict[Any, Any]
    turn: str


def plain_image(data: bytes, policy: MediaPolicy, room: int) -> PlainImage:
    """Return the first frame of a picture file as plain values; no orientation is applied."""
    facts = image_facts(data, policy)
    if facts.width * facts.height > room:
        what = f"the pictures of the request have together more than {KEPT_PICTURES} x max_pixels"
        raise PolicyError(
            f"{what} ({policy.max_pixels}) pixels",
            "give fewer or smaller pictures; for data you trust, --policy trusted allows more",
            code="MM302",
        )
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
    """Return the values of ``plain_image`` as Pillow's image.

    Raises:
        SourceError: the values are not a picture; a damaged child process may send such.
    """
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy

    try:
        image = pillow.frombytes(plain.mode, plain.size, plain.pixels)
        if plain.palette is not None:
            mode, colours = plain.palette
            image.putpalette(colours, mode)
    except (LookupError, TypeError, ValueError) as error:
        raise SourceError(
            f"the decoder gave no picture ({type(error).__name__})", "leave the sample out", code="MM300"
        ) from None
    image.info = dict(plain.info)
    return image
