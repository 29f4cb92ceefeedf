"""What the writers of all wire forms share: each content part is checked against the target, then written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, ClassVar, Union

from mmprompt.errors import MMPromptError, TargetError, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.media.base64_text import encode, encode_text
from mmprompt.media.media_types import agree, media_type_for, normal_type, sniff
from mmprompt.media.sources import classify, in_short
from mmprompt.messages import Hole, MediaPart, MediaRef, Message, Pairs, Part, TextPart, ask
from mmprompt.targets.json_values import JSONValue, plain
from mmprompt.targets.limits import Limits, check_count, limits

if TYPE_CHECKING:
    from typing_extensions import Self


class Payload:
    """Stands for a string in a request: ``prefix``, then the base64 of the media. Commas join the frames of a video."""

    __slots__ = ("base64", "part", "prefix")

    def __init__(self, prefix: str, part: MediaPart, base64: bytes | None = None) -> None:
        self.prefix, self.part = prefix, part
        self.base64 = base64  # kept for a medium that many requests send

    @property
    def size(self) -> int:
        """The bytes of its base64."""
        return sum([(len(data) + 2) // 3 * 4 for data in self.part.frames or (self.part.data,)])

    def encoded(self) -> Payload:
        """Return the payload with its base64 kept, unless it is a video of frames."""
        return self if self.part.frames else Payload(self.prefix, self.part, encode(self.part.data))

    def __str__(self) -> str:
        return text_payload(self.prefix, self.part)


WireValue = Union[JSONValue, Payload, Sequence["WireValue"], Mapping[str, "WireValue"]]
"""A value in a request: JSON, with a ``Payload`` in place of a long string where the caller asked for it."""

Wire = dict[str, WireValue]
"""A message, a content part or a whole request as the target's API has it."""

PayloadWriter = Callable[[str, MediaPart], Union[str, Payload]]
"""Gives the base64 text of a medium, or what stands for it. The first argument is the text before the base64."""

RefReader = Callable[[MediaRef], Union[MediaPart, MediaRef]]
"""Reads a medium that was only named, such as ``MediaReader.read``."""

READ_FIRST = "read it first: read_messages(...)"


def text_payload(prefix: str, part: MediaPart) -> str:
    """Return ``prefix`` and the base64 of the part's bytes, or of its frames joined by commas."""
    if part.frames:
        return prefix + ",".join([encode_text(frame) for frame in part.frames])
    return prefix + encode_text(part.data)


class PartWriter(ABC):
    """Writes content parts for one target. Made once, called for each sample, safe to share between threads.

    A subclass gives its wire form (``wire``), says whether a text part has a type (``typed_text``), and writes media in
    ``_named`` and ``_embedded``.

    Args:
        target: the name of the target.
        payload: gives the base64 text of a medium. Its first argument is the text before the base64, such as
            ``data:image/jpeg;base64,`` or ``""``.
        read: reads each ``MediaRef`` without a ``name``. Without it such a part is refused, unless it is a URL.
    """

    __slots__ = ("_as_images", "_known", "_payload", "_read", "_tallied")
    wire: ClassVar[str]
    typed_text: ClassVar[bool] = True

    def __init__(self, target: str, *, payload: PayloadWriter = text_payload, read: RefReader | None = None) -> None:
        known = limits(target)
        if known.wire != self.wire:
            raise TargetError(f"target {target} has another wire form", f"use to_{known.wire}")
        self._known = known
        self._as_images = known.frames_as_images
        self._tallied = known.counted or known.request_bytes is not None
        self._payload = payload
        self._read = read

    @abstractmethod
    def write(self, messages: Iterable[Message]) -> list[Wire] | Wire:
        """Return the messages in the target's wire form."""

    def with_reader(self, read: RefReader) -> Self:
        """Return this writer with another ``read``, such as that of one request."""
        other = copy(self)
        other._read = read  # noqa: SLF001  # an attribute of its own class
        return other

    @property
    def request_bytes(self) -> int | None:
        """The most bytes of a request's texts and media, None if the target has no such limit."""
        return self._known.request_bytes

    def medium(self, part: MediaPart | MediaRef) -> Wire:
        """Return the content part of a medium, as it stands in a message; not for frames that go as images."""
        if isinstance(part, MediaRef):
            return self._named(part)
        return self._embedded(_without_format(part) if part.options else part)

    def _content(self, parts: tuple[Part, ...], tally: Tally | None) -> list[Wire]:
        """Return the content parts of a message."""
        out: list[Wire] = []
        read, typed = self._read, self.typed_text
        for number, given in enumerate(parts, 1):
            try:
                if isinstance(given, TextPart):
                    wire: Wire = {"type": "text", "text": given.text} if typed else {"text": given.text}
                    out.append(self._with_extra(wire, given.extra) if given.extra else wire)
                    if tally is not None:
                        tally.add_text(given.text)
                    continue
                part = given
                if read is not None and type(given) is MediaRef and given.name is None:
                    part = read(given)
                if isinstance(part, MediaPart) and part.frames and self._as_images:
                    out.extend([self._embedded(frame) for frame in images_of(part)])
                else:
                    out.append(self.medium(part))
                if tally is not None:
                    tally.add(part, self._as_images)
            except MMPromptError as error:
                raise error.located(part=number) from None
        return out

    @abstractmethod
    def _named(self, ref: MediaRef) -> Wire:
        """Return the content part of a medium that is sent by name."""

    @abstractmethod
    def _embedded(self, part: MediaPart) -> Wire:
        """Return the content part of a medium that is sent as bytes."""

    def _with_extra(self, wire: Wire, pairs: Pairs) -> Wire:
        """Add further keys of the sample's content part, those that the target takes."""
        return add_keys(wire, pairs, self._known, self._known.part_keys)

    def _with_options(self, wire: Wire, pairs: Pairs) -> Wire:
        """Add the keys beside the sample's source, those that the target takes."""
        return add_keys(wire, pairs, self._known, self._known.source_keys)


class ChatWriter(PartWriter):
    """Writes messages one by one, in the forms of OpenAI and Hugging Face.

    With ``content="auto"`` the content of text alone is a string, with ``"parts"`` always a list. For the other
    arguments see ``PartWriter``.
    """

    __slots__ = ("_auto",)

    def __init__(
        self, target: str, *, content: str, payload: PayloadWriter = text_payload, read: RefReader | None = None
    ) -> None:
        super().__init__(target, payload=payload, read=read)
        if content not in ("auto", "parts"):
            raise TargetError(f"unknown content form {shown(content)}", nearest(content, ("auto", "parts")))
        self._auto = content == "auto"

    def write(self, messages: Iterable[Message]) -> list[Wire]:
        """Return the messages as plain data.

        Raises:
            MMPromptError: a medium cannot be read, or the target does not take it. ``where`` has its place.
        """
        out: list[Wire] = []
        tally = Tally() if self._tallied else None
        for message in messages:
            try:
                out.append(self._message(message, tally))
            except MMPromptError as error:
                raise error.located(message=len(out) + 1) from None
        if tally is not None:
            tally.check(self._known)
        return out

    @abstractmethod
    def _message(self, message: Message, tally: Tally | None) -> Wire:
        """Return one message."""


class Tally:
    """Counts what a request holds: its parts by modality, and the bytes of its texts and of its media as base64.

    The JSON around them is not counted. In a request near a limit it is about a thousandth.
    """

    __slots__ = ("_counts", "_size")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._size = 0

    def add(self, part: MediaPart | MediaRef, as_images: bool) -> None:
        """Count a part. With ``as_images`` each frame of a video counts as an image."""
        modality, number = part.modality, 1
        data: object = part.data if isinstance(part, MediaPart) else None
        if isinstance(part, MediaPart) and type(data) is not Hole:
            if part.frames and as_images:
                modality, number = "image", len(part.frames)
            self._size += Payload("", part).size
        self._counts[modality] = self._counts.get(modality, 0) + number

    def add_text(self, text: str) -> None:
        """Count the bytes of a text."""
        if type(text) is not str:  # what stands for a text is counted where a row fills it
            return
        self._size += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

    def check(self, known: Limits) -> None:
        """Compare the request with the limits of its target."""
        for modality, count in self._counts.items():
            check_count(modality, count, known)
        if known.request_bytes is not None and self._size > known.request_bytes:
            what = f"the texts and media of a request have {self._size} bytes"
            hint = "send fewer or smaller media, or less text"
            raise TargetError(f"{what}, {known.name} takes requests of {known.request_bytes}", hint, code="MM805")


def url_of(ref: MediaRef, known: Limits) -> str:
    """Return the name by which a medium is sent that nobody has read. The target must take its URL scheme.

    Raises:
        TargetError: the source is not a URL, or has a scheme that the target does not take.
        SourceError: a URL that parsers read differently.
    """
    url = ref.name
    if url is None:
        kind, value = classify(ref.source)
        if kind not in ("url", "scheme"):
            raise TargetError(f"{ref.modality} {quoted(ref.source)} has not been read", READ_FIRST)
        url = str(value)
    scheme = ask(url, scheme_of)
    if scheme not in known.schemes:
        what = f"{quoted(url)} has the scheme {scheme}" if "://" in url[:40] else f"{quoted(url)} is not a URL"
        names = ", ".join(sorted(known.schemes))
        hint = "give such a URL, or a file under the media root"
        if scheme == "file" or "://" not in url[:40]:  # a file that media mode file or keep names
            hint = "send it inline: --media inline"
        raise TargetError(f"{what}, and {known.name} takes names with {names}", hint)
    return url


def is_address(url: str) -> bool:
    """Return whether a name is an http(s) URL."""
    return url[:8].lower().startswith(("http://", "https://"))


def scheme_of(url: str) -> str:
    """Return what stands before the first colon, in small letters."""
    return url.partition(":")[0].lower()


def quoted(source: object) -> str:
    """Return a source for a message: shortened, without its payload and without the query of a URL."""
    return shown(in_short(source))


def _without_format(part: MediaPart) -> MediaPart:
    """Return an audio part without the option ``format``, since the bytes say it. A wrong format becomes a finding."""
    declared = dict(part.options).get("format") if part.modality == "audio" else None
    if declared is None:
        return part
    options = tuple([pair for pair in part.options if pair[0] != "format"])
    said = normal_type(f"audio/{declared}")
    if agree(said, part.media_type):
        return part._replace(options=options)
    finding = Note("MM204", f"declared {shown(said, 40)[1:-1]}, bytes are {part.media_type}")
    return part._replace(options=options, findings=(*part.findings, finding))


def images_of(video: MediaPart) -> list[MediaPart]:
    """Return the frames of a video as images, for a target that does not take a video of frames.

    Each image gets the video's options. The last one gets its further keys, since what ``cache_control`` marks ends
    there.
    """
    images = []
    for left, frame in enumerate(video.frames, 1 - len(video.frames)):
        kind = sniff(frame)
        media_type = kind and media_type_for(kind, "image")
        extra = () if left else video.extra
        images.append(MediaPart("image", media_type or "of unknown type", frame, (), "", video.options, extra))
    return images


def add_keys(wire: Wire, pairs: Pairs, known: Limits, allowed: frozenset[str] | None) -> Wire:
    """Add further keys to a content part, and return it. ``allowed`` are the keys that the target takes there."""
    for key, value in pairs:
        if key in known.left_out:
            continue
        if key in wire:
            raise TargetError(f"a content part has the key {shown(key)} twice", "remove it from the template")
        if allowed is not None and key not in allowed:
            accepted = ", ".join(sorted(allowed)) or "none"
            what = f"{known.name} does not accept the key {shown(key)} in this part (accepted: {accepted})"
            raise TargetError(what, "remove it")
        wire[key] = plain(value)
    return wire
