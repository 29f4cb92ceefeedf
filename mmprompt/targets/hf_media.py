"""Media as the objects that Hugging Face processors take: PIL images, mono float32 arrays, rows of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmprompt.errors import SourceError, TargetError, shown
from mmprompt.media.images import decode_image
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sound import decode_audio
from mmprompt.media.sound_encoders import resample, to_mono
from mmprompt.parts import MediaPart

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

_LOWEST, _HIGHEST = 4000, 384_000
_ORIENTATION = 0x0112
_TURNS = frozenset(range(2, 9))
_EXIF_KEYS = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")


class HFDecoder:
    """Decodes media parts, one after the other, and keeps what it made in lists; see ``HFRequest``.

    Raises:
        TargetError: ``sampling_rate`` is no whole number from 4000 to 384000.
    """

    def __init__(self, policy: MediaPolicy, sampling_rate: int | None) -> None:
        if sampling_rate is not None and (type(sampling_rate) is not int or not _LOWEST <= sampling_rate <= _HIGHEST):
            raise TargetError(
                f"sampling_rate is {shown(sampling_rate)}", f"give a whole number from {_LOWEST} to {_HIGHEST} hertz"
            )
        self._policy = policy
        self._sampling_rate = sampling_rate
        self.images: list[Image] = []
        self.audios: list[np.ndarray[Any, Any]] = []
        self.sampling_rates: list[int] = []
        self.videos: list[list[Image]] = []
        self.notes: list[str] = []

    def decode(self, part: MediaPart) -> object:
        """Return the object of a part, and keep it in the list of its modality.

        Raises:
            SourceError: the bytes cannot be decoded.
            PolicyError: the medium is larger or longer than the policy allows.
        """
        if part.modality == "image":
            self.images.append(self._picture(part.data, f"image {len(self.images) + 1}"))
            return self.images[-1]
        if part.modality == "audio":
            self.audios.append(self._sound(part.data, f"audio {len(self.audios) + 1}"))
            return self.audios[-1]
        name = f"video {len(self.videos) + 1}"
        self.videos.append([self._picture(frame, f"{name}, frame {n}") for n, frame in enumerate(part.frames, 1)])
        return self.videos[-1]

    def _picture(self, data: bytes, name: str) -> Image:
        image = decode_image(data, self._policy)
        if image.mode[0] in "IF":
            self.notes.append(f"{name}: processors clip mode {image.mode} at 255; mode RGB, asked for, is scaled")
        if not any(key in image.info for key in _EXIF_KEYS):
            return image
        try:
            orientation = image.getexif().get(_ORIENTATION, 1)
        except (SyntaxError, ValueError):
            orientation = None  # no EXIF that can be read, over which transformers 4 fails
        if orientation == 1:
            return image
        if orientation in _TURNS:
            self.notes.append(f"{name}: EXIF orientation {orientation} is not applied")
        image = image.copy()  # it has what is in ``info``, and no EXIF that was parsed before
        for key in _EXIF_KEYS:
            image.info.pop(key, None)
        return image

    def _sound(self, data: bytes, name: str) -> np.ndarray[Any, Any]:
        import numpy as np  # noqa: PLC0415  # heavy

        sound = decode_audio(data, self._policy)
        samples, rate, channels = sound.samples, sound.rate, sound.samples.shape[1]
        if not np.isfinite(samples).all():
            raise SourceError("the samples hold values that are not finite", "put 0 in their place")
        if channels != 1:
            samples = to_mono(samples)
            self.notes.append(f"{name}: {channels} channels mixed into one")
        if self._sampling_rate not in (None, rate):
            samples = resample(samples, rate, self._sampling_rate)
            self.notes.append(f"{name}: {rate} Hz to {self._sampling_rate} Hz")
        self.sampling_rates.append(self._sampling_rate or rate)
        return np.ascontiguousarray(samples[:, 0])
