"""STAND-IN, to be deleted: decoding until ``media/images.py`` and ``media/sound.py`` are there.

Only ``targets/hf.py`` imports it. The interface is that of the two: ``decode_image(data, policy)``,
``decode_audio(data, policy)`` and a resampler. Nothing here is hardened.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image


class Sound(NamedTuple):
    """Samples as float32 of shape (frames, channels), and their rate in hertz."""

    samples: np.ndarray[Any, Any]
    rate: int


def decode_image(data: bytes, policy: MediaPolicy) -> Image:
    """Return the picture that a file holds, as it is stored: not turned, its mode kept."""
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy, and its module has the name of its class

    try:
        image = pillow.open(io.BytesIO(data), formats=("JPEG", "PNG", "WEBP", "GIF", "BMP"))
        if image.width * image.height > policy.max_pixels:
            raise PolicyError(f"{image.width} x {image.height} pixels", "raise max_pixels to allow it")
        image.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise SourceError(f"the picture cannot be decoded ({type(error).__name__})", "replace the file") from None
    return image


def decode_audio(data: bytes, policy: MediaPolicy) -> Sound:
    """Return the sound that a file holds."""
    import soundfile  # noqa: PLC0415  # heavy

    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            if policy.max_seconds is not None and file.frames > policy.max_seconds * file.samplerate:
                raise PolicyError(f"the sound has {file.frames} frames", "raise max_seconds to allow it")
            return Sound(file.read(dtype="float32", always_2d=True), file.samplerate)
    except soundfile.LibsndfileError:
        raise SourceError("the sound cannot be decoded", "replace the file") from None


def resample(samples: np.ndarray[Any, Any], rate: int, to: int) -> np.ndarray[Any, Any]:
    """Return samples of shape (frames,) at another rate."""
    import av  # noqa: PLC0415  # heavy
    import numpy as np  # noqa: PLC0415  # heavy

    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples, dtype="float32")[None], "fltp", "mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler("fltp", "mono", to)
    pieces = [each.to_ndarray()[0] for given in (frame, None) for each in resampler.resample(given)]
    return np.concatenate(pieces)
