"""Media as the objects that Hugging Face processors take: PIL images, mono float32 arrays, lists of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmprompt.errors import SourceError, TargetError, shown
from mmprompt.media.audio.encoders import resample, to_mono
from mmprompt.media.audio.facts import HIGHEST_RATE, LOWEST_RATE
from mmprompt.media.audio.reading import Sound, check_decoded, decode_audio
from mmprompt.media.ffmpeg import Watch
from mmprompt.media.image.pixels import turned
from mmprompt.media.image.plain import PlainImage, image_of, plain_image
from mmprompt.media.image.reading import KEPT_PICTURES
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.decoders import Decoder, decoder, decoder_errors
from mmprompt.messages import MediaPart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Samples = NDArray[np.float32]


class HFDecoder:
    """Decodes media parts one after the other, and keeps the objects in lists, see ``HFRequest``.

    ``policy.isolate`` says whether a child process decodes; leaving the context ends it. All pictures together have at
    most ``KEPT_PICTURES`` times ``max_pixels``, and each part has ``timeout`` seconds.

    ``upright`` turns pictures as their files ask. ``shared`` is the decoder of several objects, which none of them
    ends.

    Raises:
        TargetError: ``sampling_rate`` is not a whole number from 4000 to 384000.
    """

    def __init__(
        self,
        policy: MediaPolicy,
        sampling_rate: int | None,
        *,
        upright: bool = False,
        shared: Decoder | None = None,
    ) -> None:
        rate = sampling_rate
        if rate is not None and (type(rate) is not int or not LOWEST_RATE <= rate <= HIGHEST_RATE):
            hint = f"give a whole number from {LOWEST_RATE} to {HIGHEST_RATE} hertz"
            raise TargetError(f"sampling_rate is {shown(rate)}", hint)
        self._policy = policy
        self._decoder = shared or decoder(policy)
        self._upright = upright
        self._room = KEPT_PICTURES * policy.max_pixels
        self._sampling_rate = sampling_rate
        self.images: list[Image] = []
        self.audios: list[Samples] = []
        self.sampling_rates: list[int] = []
        self.videos: list[list[Image]] = []
        self.notes: list[str] = []

    def __enter__(self) -> HFDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        self._decoder.close()

    def decode(self, part: MediaPart) -> Image | list[Image] | Samples:
        """Return the object of a part, and keep it in the list of its modality.

        Raises:
            SourceError: the bytes cannot be decoded, or the child process crashed or used too much memory or time.
            PolicyError: the medium is larger or longer than the policy allows, or there are too many pictures.
        """
        with decoder_errors():
            return self._decoded(part)

    def _decoded(self, part: MediaPart) -> Image | list[Image] | Samples:
        if part.modality == "image":
            self.images.append(self._picture(part.data, f"image {len(self.images) + 1}"))
            return self.images[-1]
        if part.modality == "audio":
            self.audios.append(self._sound(part.data, f"audio {len(self.audios) + 1}"))
            return self.audios[-1]
        name = f"video {len(self.videos) + 1}"
        self.videos.append(self._frames(part, name))
        return self.videos[-1]

    def _picture(self, data: bytes, name: str) -> Image:
        plain = self._decoder.run(plain_image, data, self._policy, self._room)
        if not isinstance(plain, PlainImage) or not all(type(side) is int and side > 0 for side in plain.size):
            raise SourceError("the decoder returned no picture", "remove the sample", code="MM300")
        width, height = plain.size
        self._room -= width * height
        if self._room < 0:  # an intact child process does not get here
            raise SourceError("the decoder returned a picture over the limit", "remove the sample", code="MM300")
        image = image_of(plain)
        if image.mode[0] in "IF":
            self.notes.append(f"{name}: processors clip mode {image.mode} at 255; ask for mode RGB to scale it")
        if plain.turn and self._upright:
            return turned(image, int(plain.turn[-1]))
        if plain.turn:
            self.notes.append(f"{name}: {plain.turn} is not applied")
        return image

    def _frames(self, part: MediaPart, name: str) -> list[Image]:
        watch = Watch(self._policy, "decoding the video")
        frames = []
        for number, frame in enumerate(part.frames, 1):
            frames.append(self._picture(frame, f"{name}, frame {number}"))
            watch.check_time()
        return frames

    def _sound(self, data: bytes, name: str) -> Samples:
        import numpy as np  # noqa: PLC0415  # heavy

        sound = self._decoder.run(decode_audio, data, self._policy)
        if not isinstance(sound, Sound) or getattr(sound.samples, "ndim", 0) != 2 or type(sound.rate) is not int:
            raise SourceError("the decoder returned no sound", "remove the sample", code="MM400")
        samples, rate, channels = sound.samples, sound.rate, sound.samples.shape[1]
        if not np.isfinite(samples).all():
            raise SourceError("some samples are not finite", "replace them by 0", code="MM410")
        if channels != 1:
            samples = to_mono(samples)
            self.notes.append(f"{name}: {channels} channels mixed into one")
        if self._sampling_rate not in (None, rate):
            check_decoded(round(len(samples) * self._sampling_rate / rate), self._policy)
            samples = resample(samples, rate, self._sampling_rate)
            self.notes.append(f"{name}: {rate} Hz to {self._sampling_rate} Hz")
        self.sampling_rates.append(self._sampling_rate or rate)
        return np.ascontiguousarray(samples[:, 0])
