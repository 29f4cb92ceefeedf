"""Messages → what ``apply_chat_template`` of a Hugging Face processor takes.

``to_hf`` decodes: pictures become PIL images, sounds arrays, videos rows of frames. ``HFWriter`` gives the same parts
with data URIs in their place, for JSON lines; transformers decodes those itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import MMPromptError, SourceError, TargetError, nearest, shown
from mmprompt.media.classify import classify, in_short
from mmprompt.media.media_types import VIDEO_FRAMES, describe_unknown, media_type_for, sniff
from mmprompt.media.policy import MediaPolicy
from mmprompt.parts import MediaPart, MediaRef, Message, Pairs, Part, TextPart
from mmprompt.targets.hf_media import HFDecoder
from mmprompt.targets.json_values import plain
from mmprompt.targets.limits import check_count, check_media, limits, taken_of
from mmprompt.targets.openai import text_payload

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

Wire = dict[str, Any]
Payload = Callable[[str, MediaPart], object]
Read = Callable[[MediaRef], "MediaPart | MediaRef"]
Decode = Callable[[MediaPart], object]

_READ = "let it be read first: read_messages(...)"
_NAMING = frozenset(
    ("type", "text", "image", "audio", "video", "url", "path", "base64", "image_url", "audio_url", "video_url")
)
"""Keys by which transformers or a chat template finds a medium; a second one in a part would be opened, or counted."""


class HFRequest(NamedTuple):
    """Messages for ``apply_chat_template``, and their media beside, each list in the order of the parts.

    ``messages`` holds the same objects as the lists. ``images`` are PIL images as the files store them. ``audios``
    are arrays of float32 of shape (samples,), from -1 to 1; ``sampling_rates`` has the rate of each in hertz.
    ``videos`` are lists of PIL images. ``notes`` says in words what was mixed, resampled or noticed (``image 2: …``).
    """

    messages: list[Wire]
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
    PIL image}``, ``{"type": "audio", "audio": array}``, ``{"type": "video", "video": [PIL images]}``. A picture is
    decoded and nothing else: it keeps its mode, and it is not turned. Its EXIF orientation is a note and is taken off,
    because some releases of transformers turn a PIL image by it and others do not.

    Text is not searched for special tokens; ``ChatTemplate(processor).to_messages`` does that.

    Args:
        messages: with their media read, see ``read_messages``.
        target: ``"hf"``, or a target of your own that is like it.
        policy: the limits of decoding; the default ones without it.
        sampling_rate: resample all sound to so many hertz. transformers takes an array to have the rate of the
            processor, so give ``processor.feature_extractor.sampling_rate``. Without it sound keeps the rate it has.
        frames_as_images: give the frames of a video as images, for processors without video.
        content: ``"auto"`` gives messages of text alone as strings, as tokenizers take them.

    Raises:
        TargetError: an unknown target, media that has not been read, or what the target does not take.
        SourceError: media that cannot be decoded.
        PolicyError: media larger or longer than the policy allows.
    """
    media = HFDecoder(policy or MediaPolicy(), sampling_rate)
    writer = HFWriter(target, content=content, frames_as_images=frames_as_images, decode=media.decode)
    wire = writer.write(messages)
    return HFRequest(wire, media.images, media.audios, media.sampling_rates, media.videos, media.notes)


def text_part(text: str) -> Wire:
    """Return the content part of a text."""
    return {"type": "text", "text": text}


def media_part(modality: str, value: object) -> Wire:
    """Return the content part of a medium: an object, or what names it."""
    return {"type": modality, modality: value}


class HFWriter:
    """Writes messages in the form of ``to_hf`` as text; made once, called for each sample, safe to share.

    A medium becomes a data URI, a video a list of them, one a frame; an http(s) URL stays as it is, and transformers
    fetches it. transformers decodes the text as it does a file: it turns a picture upright by its EXIF and makes it
    RGB, makes sound mono and gives it the rate of the processor (release 4 reads no sound from text).

    ``payload``, ``read`` and ``content`` are those of ``OpenAIWriter``. ``decode(part)`` gives an object in place of
    the text; media that were only named are then refused.

    Raises:
        TargetError: an unknown target or content form.
    """

    __slots__ = ("_auto", "_decode", "_frames_as_images", "_known", "_payload", "_read")

    def __init__(
        self,
        target: str = "hf",
        *,
        content: str = "parts",
        frames_as_images: bool = False,
        payload: Payload = text_payload,
        read: Read | None = None,
        decode: Decode | None = None,
    ) -> None:
        known = limits(target)
        if known.wire != "hf":
            raise TargetError(f"target {target} has another wire form", f"use to_{known.wire}")
        if content not in ("auto", "parts"):
            raise TargetError(f"there is no content form {shown(content)}", nearest(content, ("auto", "parts")))
        self._known = known
        self._auto = content == "auto"
        self._frames_as_images = frames_as_images
        self._payload = payload
        self._read = read
        self._decode = decode

    def write(self, messages: Iterable[Message]) -> list[Wire]:
        """Return the messages.

        Raises:
            TargetError: media that has not been read, or what the target does not take.
        """
        out: list[Wire] = []
        for number, message in enumerate(messages, 1):
            if type(message) is not Message:
                kind = type(message).__name__
                raise TargetError(f"a message is {kind}", "give a list of Messages; from_openai(…) makes them of dicts")
            body: object = self._content(message.parts, number)
            if self._auto and all(isinstance(part, TextPart) and not part.extra for part in message.parts):
                body = message.text
            beside = {key: plain(value) for key, value in message.beside_content().items()}
            out.append({"role": message.role, "content": body, **beside})
        if self._known.counted:
            self._check_counts(out)
        return out

    def _content(self, parts: tuple[Part, ...], message: int) -> list[Wire]:
        out: list[Wire] = []
        read = self._read
        for place, given in enumerate(parts, 1):
            part = read(given) if read is not None and type(given) is MediaRef and given.name is None else given
            try:
                if isinstance(part, TextPart):
                    out.append(_with(text_part(part.text), part.extra))
                elif isinstance(part, MediaRef):
                    out.append(self._named(part))
                elif part.frames and self._frames_as_images:
                    out.extend([self._embedded(frame) for frame in _frames(part)])
                else:
                    out.append(self._embedded(part))
            except MMPromptError as error:
                raise type(error)(f"message {message}, part {place}: {error.what}", error.mend, error.where) from None
        return out

    def _named(self, ref: MediaRef) -> Wire:
        """Return the content part of media that goes by name."""
        source = ref.source if ref.name is None else ref.name
        quoted = shown(in_short(source))
        if self._decode is not None:
            raise TargetError(f"{ref.modality} {quoted} has not been read", _READ)
        kind, value = classify(source)
        if kind != "url":
            what = f"{ref.modality} {quoted} is not read, and {self._known.name} takes http(s) URLs alone as names"
            raise TargetError(what, "use --media inline")
        taken_of(self._known, ref.modality)
        return _with(media_part(ref.modality, value), ref.options + ref.extra)

    def _embedded(self, part: MediaPart) -> Wire:
        """Return the content part of media that was read."""
        check_media(part, self._known)
        if part.media_type == VIDEO_FRAMES and not part.frames:
            raise SourceError("the video has no frames", "give at least one")
        value: object
        if self._decode is not None:
            value = self._decode(part)
        elif part.frames:
            value = [self._payload(f"data:{frame.media_type};base64,", frame) for frame in _frames(part)]
        else:
            value = self._payload(f"data:{part.media_type};base64,", part)
        return _with(media_part(part.modality, value), part.options + part.extra)

    def _check_counts(self, messages: list[Wire]) -> None:
        kinds = [part["type"] for m in messages if isinstance(m["content"], list) for part in m["content"]]
        for modality in self._known.modalities:
            check_count(modality, kinds.count(modality), self._known)


def _frames(video: MediaPart) -> list[MediaPart]:
    """Return the frames of a video as images."""
    images: list[MediaPart] = []
    for frame in video.frames:
        kind = sniff(frame)
        media_type = kind and media_type_for(kind, "image")
        if not media_type:
            raise SourceError(f"frame {len(images)} is {describe_unknown(frame)}", "the frames of a video are JPEG")
        images.append(MediaPart("image", media_type, frame, (), "", video.options, video.extra, video.origin))
    return images


def _with(wire: Wire, pairs: Pairs) -> Wire:
    """Add further keys to a part; none may name a medium, since transformers opens what is named."""
    for key, value in pairs:
        if key in _NAMING or key in wire:
            raise TargetError(f"the key {shown(key)} beside {wire['type']} names a second source", "make it two parts")
        wire[key] = plain(value)
    return wire
