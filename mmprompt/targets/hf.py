"""Messages → what ``apply_chat_template`` of a Hugging Face processor takes.

``to_hf`` decodes: pictures become PIL images, audio becomes arrays, videos become lists of frames. ``HFWriter`` writes
the same parts with data URIs instead, for JSON lines. transformers decodes those itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from mmprompt.errors import SourceError, TargetError, shown
from mmprompt.media.media_types import VIDEO_FRAMES
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart, MediaRef, Message, Pairs, TextPart, checked
from mmprompt.targets.hf_media import HFDecoder
from mmprompt.targets.json_values import plain
from mmprompt.targets.limits import check_media, modality_limits
from mmprompt.targets.part_writer import (
    READ_FIRST,
    ChatWriter,
    PayloadWriter,
    RefReader,
    Tally,
    Wire,
    WireValue,
    images_of,
    quoted,
    text_payload,
    url_of,
)

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

_V = TypeVar("_V")

_FRAMES = "send its frames: change_messages(..., frames=N)"
_NAMING = frozenset(
    ("type", "text", "image", "audio", "video", "url", "path", "base64", "image_url", "audio_url", "video_url")
)
"""Keys by which transformers or a chat template finds a medium. It would open, or count, a second one in a part."""


class HFRequest(NamedTuple):
    """Messages for ``apply_chat_template``, and lists of their media in the order of the parts.

    ``messages`` holds the same objects as the lists. ``images`` are PIL images as the files store them. ``audios`` are
    float32 arrays of shape (samples,), from -1 to 1, and ``sampling_rates`` are their rates in hertz. ``videos`` are
    lists of PIL images. ``notes`` say in words what was mixed, resampled or noticed (``image 2: …``).
    """

    messages: list[dict[str, Any]]
    images: list[Image]
    audios: list[np.ndarray[Any, Any]]
    sampling_rates: list[int]
    videos: list[list[Image]]
    notes: list[str]


def to_hf(
    messages: Iterable[Message],
    target: str = "hf",
    *,
    policy: MediaPolicy | None = None,
    sampling_rate: int | None = None,
    frames_as_images: bool = False,
    content: str = "parts",
) -> HFRequest:
    """Return messages for ``processor.apply_chat_template(request.messages, tokenize=True, return_dict=True, …)``.

    Content is a list of parts, as processors take it: ``{"type": "text", "text": …}``, ``{"type": "image", "image":
    PIL image}``, ``{"type": "audio", "audio": array}``, ``{"type": "video", "video": [PIL images]}``. A picture keeps
    its mode and is not turned. Its orientation (EXIF or XMP) is removed and becomes a note, because some releases of
    transformers turn a PIL image by it and others do not. Of the image's ``info`` only transparency and colour profile
    stay.

    Text is not searched for special tokens. ``ChatTemplate(processor).to_messages`` does that.

    Args:
        messages: with their media read, see ``read_messages``.
        target: ``"hf"``, or a target of your own that is like it.
        policy: the limits of decoding, and whether it runs in child processes (``isolate``). The pictures and frames
            of one call together have at most 8 times ``max_pixels``, and each medium has ``timeout`` seconds.
        sampling_rate: the rate in hertz to which all audio is resampled. transformers assumes the processor's rate, so
            give ``processor.feature_extractor.sampling_rate``. By default audio keeps its rate.
        frames_as_images: give the frames of a video as images, for processors that take no video.
        content: ``"auto"`` gives messages of text alone as strings, as tokenizers take them.

    Raises:
        TargetError: an unknown target, media that has not been read, or something that the target does not take.
        SourceError: media that cannot be decoded.
        PolicyError: media larger or longer than the policy allows.
    """
    with HFDecoder(policy or MediaPolicy(), sampling_rate) as media:
        writer = HFWriter(target, content=content, frames_as_images=frames_as_images, decode=media.decode)
        wire = writer.write(messages)
    return HFRequest(wire, media.images, media.audios, media.sampling_rates, media.videos, media.notes)


def text_part(text: str) -> dict[str, str]:
    """Return the content part of a text."""
    return {"type": "text", "text": text}


def media_part(modality: str, value: _V) -> dict[str, str | _V]:
    """Return the content part of a medium. ``value`` is the medium, or the text that names or encodes it."""
    return {"type": modality, modality: value}


class HFWriter(ChatWriter):
    """Writes messages in the form of ``to_hf``, with media as text. Made once, called for each sample, safe to share.

    A medium becomes a data URI, a video a list of one data URI for each frame. An http(s) URL stays as it is, and
    transformers fetches it. transformers decodes a data URI as it does a file: it turns a picture upright by its EXIF
    and makes it RGB, makes audio mono and resamples it to the processor's rate (release 4 reads no audio from text).

    ``payload``, ``read`` and ``content`` are those of ``ChatWriter``. ``decode(part)`` returns an object to be put in
    place of the text. A medium that was only named is then refused.
    """

    __slots__ = ("_decode",)
    wire: ClassVar[str] = "hf"

    def __init__(
        self,
        target: str = "hf",
        *,
        content: str = "parts",
        frames_as_images: bool = False,
        payload: PayloadWriter = text_payload,
        read: RefReader | None = None,
        decode: Callable[[MediaPart], Any] | None = None,
    ) -> None:
        super().__init__(target, content=content, payload=payload, read=read)
        self._as_images = self._as_images or frames_as_images
        self._decode = decode

    def _message(self, message: Message, tally: Tally | None) -> Wire:
        """Return one message."""
        body: WireValue = self._content(checked(message).parts, tally)
        if self._auto and all(isinstance(part, TextPart) and not part.extra for part in message.parts):
            body = message.text
        beside = {key: plain(value) for key, value in message.beside_content().items()}
        return {"role": message.role, "content": body, **beside}

    def _named(self, ref: MediaRef) -> Wire:
        if self._decode is not None:
            named = quoted(ref.source if ref.name is None else ref.name)
            raise TargetError(f"{ref.modality} {named} has not been read", READ_FIRST)
        modality_limits(self._known, ref.modality)
        return self._with_extra(media_part(ref.modality, url_of(ref, self._known)), ref.options + ref.extra)

    def _embedded(self, part: MediaPart) -> Wire:
        check_media(part, self._known)
        if part.media_type == VIDEO_FRAMES and not part.frames:
            raise SourceError("the video has no frames", "give it at least one", code="MM500")
        if self._decode is not None and part.modality == "video" and not part.frames:  # a registered target may take it
            raise TargetError(f"a video must be frames here, and this one is {part.media_type}", _FRAMES, code="MM804")
        if self._decode is not None:
            value: WireValue = self._decode(part)
        elif part.frames:
            value = [self._payload(f"data:{frame.media_type};base64,", frame) for frame in images_of(part)]
        else:
            value = self._payload(f"data:{part.media_type};base64,", part)
        return self._with_extra(media_part(part.modality, value), part.options + part.extra)

    def _with_extra(self, wire: Wire, pairs: Pairs) -> Wire:
        """Add further keys to a part. None may name a medium, since transformers would open it."""
        for key, _ in pairs:
            if key in _NAMING:
                what = f"the key {shown(key)} beside {wire['type']} names a second source"
                raise TargetError(what, "write two parts")
        return super()._with_extra(wire, pairs)
