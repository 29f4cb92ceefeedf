"""Packets of a video, looked at before a decoder gets them: what is worth one picture in them, and what is more.

A decoder works through all that one packet holds before anybody can look at the time again. Nearly all give back one
picture for it; here are those of which a small packet takes hours, or gigabytes.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

from mmprompt.errors import SourceError
from mmprompt.media.image.jpeg_segments import MOST_SCANS
from mmprompt.media.image.png_chunks import MOST_CHUNKS

if TYPE_CHECKING:
    from av.packet import Packet

MOST_FRAMES = 16
"""Frames of AV1 in a packet, which shows one of them: encoders write seven at most, the others to be shown later."""

_MOST_UNITS = 10_000
_FRAME_UNITS = (3, 6)
"""OBU_FRAME_HEADER and OBU_FRAME (AV1, 6.2.2)."""

_PASSES = re.compile(rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf\xda]")
"""The marks of frame headers and scans, each of which costs FFmpeg a pass over all pixels. The coded data has none."""

_NO_PIXELS = frozenset((b"iCCP", b"zTXt", b"tEXt", b"iTXt", b"eXIf"))
_UNUSED = b"juNk"


def prepare(packet: Packet[Any], codec: str) -> None:
    """Refuse a packet that is far more than one picture; leave out of a PNG what is no picture.

    FFmpeg unpacks profiles and texts of a PNG without a limit, and PyAV frees the name of a profile twice.

    Args:
        packet: is changed, where it is a PNG with such chunks.
        codec: FFmpeg's name of its decoder.

    Raises:
        SourceError: it is.
    """
    if codec == "png":
        plain = _without_texts(bytes(packet))
        if plain is not None:
            packet.update(plain)
    elif codec == "mjpeg":
        if len(_PASSES.findall(packet)) > MOST_SCANS:
            raise _made_up(f"scans than {MOST_SCANS}")
    elif codec in ("av1", "libdav1d") and _frames(bytes(packet)) > MOST_FRAMES:
        raise _made_up(f"frames than {MOST_FRAMES}")


def _without_texts(data: bytes) -> bytes | None:
    """Return a PNG with its profile, texts and EXIF marked as unused, in as many bytes; None where it has none."""
    names = []
    at = 8
    for _ in range(MOST_CHUNKS):
        if at + 8 > len(data):
            break
        size, name = struct.unpack_from(">I4s", data, at)
        if name in _NO_PIXELS:
            names.append(at + 4)
        at += size + 12
    else:
        raise _made_up(f"chunks than {MOST_CHUNKS}")
    if not names:
        return None
    plain = bytearray(data)
    for at in names:
        plain[at : at + 4] = _UNUSED
    return bytes(plain)


def _frames(data: bytes) -> int:
    """Return how many frames a packet of AV1 holds, shown or not (AV1, 5.3)."""
    at = frames = 0
    for _ in range(_MOST_UNITS):
        if at >= len(data):
            return frames
        head = data[at]
        at += 1 + (head >> 2 & 1)
        frames += (head >> 3 & 15) in _FRAME_UNITS
        if not head >> 1 & 1:  # no size: it goes to the end
            return frames
        size = 0
        for number, byte in enumerate(data[at : at + 8]):
            size |= (byte & 0x7F) << 7 * number
            at += 1
            if byte < 0x80:
                break
        at += size
    raise _made_up(f"units than {_MOST_UNITS}")


def _made_up(what: str) -> SourceError:
    return SourceError(f"a picture of the video has more {what}", "it is made up or damaged: encode the video anew")
