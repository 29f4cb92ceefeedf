"""Facts from the header of a sound file, and the limits that every sound keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import SourceError

if TYPE_CHECKING:
    import numpy as np

    Samples = np.ndarray[Any, np.dtype[np.float32]]

LOWEST_RATE, HIGHEST_RATE = 4000, 384_000
MOST_CHANNELS = 8


class AudioFacts(NamedTuple):
    """Facts from the header of a sound file.

    ``container`` is the name of its kind (``WAV``, ``FLAC``, ``MP3``, ``Ogg``, ``M4A``, …), ``codec`` that of the
    codec (``pcm_16``, ``pcm_24``, ``float``, ``flac``, ``mp3``, ``vorbis``, ``opus``, ``aac``, …), ``rate`` counts
    samples a second, ``seconds`` is the declared length, None if the header declares none.
    """

    container: str
    codec: str
    rate: int
    channels: int
    seconds: float | None


def check_form(rate: int, channels: int) -> None:
    """Refuse an impossible rate or number of channels."""
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise SourceError(
            f"the header says {rate} Hz", f"give a sound of {LOWEST_RATE} to {HIGHEST_RATE} Hz", code="MM400"
        )
    if not 1 <= channels <= MOST_CHANNELS:
        raise SourceError(
            f"the header says {channels} channels", f"give a sound of 1 to {MOST_CHANNELS} channels", code="MM400"
        )


def is_sound_pair(value: Sequence[object]) -> bool:
    """True for a pair of samples (an array) and their rate (a number, of NumPy too)."""
    if len(value) != 2 or not hasattr(value[0], "shape"):
        return False
    return isinstance(value[1], (int, float)) or getattr(value[1], "shape", None) == ()
