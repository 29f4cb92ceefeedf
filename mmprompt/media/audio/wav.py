"""Writes WAV files from arrays, and reads the declared length of one.

The header is ours because libsndfile writes the time of day into the header of a float file.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from mmprompt.errors import SourceError

if TYPE_CHECKING:
    import numpy as np

_PCM, _FLOAT = 1, 3
_EVEN_TAGS = (_PCM, _FLOAT, 6, 7, 0xFFFE)
"""PCM, float, A-law, mu-law and the extensible form: their data are frames of one size."""

_LONGEST = 0xFFFFFFFF - 64
_STREAMED = 0x7FFF0000
"""Writers that cannot seek back leave a length from here on; no length of this size is believed."""

_MOST_CHUNKS = 1000


def wav_file(array: np.ndarray[Any, Any], rate: int) -> tuple[bytes, str]:
    """Return an array of samples as a WAV file, and what was done in words.

    Args:
        array: (frames,) or (frames, channels), int16 or float; float becomes 32-bit float.
        rate: samples a second.

    Raises:
        SourceError: samples of another type, not finite, or more than a WAV file can hold.
    """
    import numpy as np  # noqa: PLC0415  # heavy

    dtype = array.dtype
    channels = array.shape[1] if array.ndim == 2 else 1
    if dtype == np.int16:
        tag, bits, how = _PCM, 16, "encoded as WAV, 16-bit PCM"
        body = array.astype("<i2", copy=False)
    elif dtype.kind == "f":
        tag, bits, how = _FLOAT, 32, "encoded as WAV, 32-bit float"
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused below, not warned of
            body = array.astype("<f4", copy=False)
        if not np.isfinite(body).all():
            raise SourceError("the samples hold values that are not finite", "put 0 in their place", code="MM410")
    else:
        raise SourceError(
            f"samples of type {dtype} are not known", "give float samples from -1 to 1, or int16", code="MM406"
        )
    if body.nbytes > _LONGEST:
        raise SourceError(f"a WAV file cannot hold {body.nbytes} bytes of samples", "shorten the sound", code="MM405")
    payload = np.ascontiguousarray(body).tobytes()
    frame = channels * bits // 8
    chunks = b"fmt " + struct.pack("<IHHIIHH", 16, tag, channels, rate, rate * frame, frame, bits)
    if tag == _FLOAT:
        chunks += b"fact" + struct.pack("<II", 4, len(payload) // frame)
    chunks += b"data" + struct.pack("<I", len(payload))
    # every chunk has an even length here: 16 and 32 bit samples
    return b"RIFF" + struct.pack("<I", 4 + len(chunks) + len(payload)) + b"WAVE" + chunks + payload, how


def declared_frames(data: bytes) -> int | None:
    """Return how many frames the header of a WAV file declares; None if it does not say.

    A decoder reports the frames that are there instead, which hides a cut.
    """
    at, align = 12, 0
    for _ in range(_MOST_CHUNKS):
        name, size = data[at : at + 4], _number(data, at + 4, 4)
        if name == b"data":
            return size // align if align and 0 < size < _STREAMED else None
        if name == b"fmt ":
            align = _number(data, at + 20, 2)
            if _number(data, at + 8, 2) not in _EVEN_TAGS:
                return None
        at += 8 + size + (size & 1)
    return None


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
