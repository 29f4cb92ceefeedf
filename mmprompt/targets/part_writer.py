"""What the writers of all wire forms share: content parts held against a target, one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from mmprompt.errors import MMPromptError, TargetError, shown
from mmprompt.media.base64_text import encode_text
from mmprompt.media.media_types import agree, media_type_for, normal_type, sniff
from mmprompt.media.sources import classify, in_short
from mmprompt.messages import MediaPart, MediaRef, Pairs, Part, TextPart
from mmprompt.targets.json_values import plain
from mmprompt.targets.limits import Limits, check_count, limits

Wire = dict[str, Any]
Payload = Callable[[str, MediaPart], object]
Read = Callable[[MediaRef], "MediaPart | MediaRef"]

READ_FIRST = "let it be read first: read_messages(...)"


def text_payload(prefix: str, part: MediaPart) -> str:
    """Return ``prefix`` and the part's bytes (or frames, joined by commas) as base64 text."""
    if part.frames:
        return prefix + ",".join([encode_text(frame) for frame in part.frames])
    return prefix + encode_text(part.data)


class PartWriter(ABC):
    """Writes content parts for one target; made once, called for each sample, safe to share between threads.

    A subclass names its ``wire``, what stands in a text part beside the text (``text_head``), and writes media in
    ``_named`` and ``_embedded``.

    Args:
        target: its name.
        payload: gives what stands for a base64 text; its first argument is the text that comes before it, such as
            ``data:image/jpeg;base64,``, or nothing.
        read: such as ``MediaReader.read``, is asked for each medium that has only been named.

    Raises:
        TargetError: an unknown target, or one of another wire form.
    """

    __slots__ = ("_as_images", "_known", "_payload", "_read", "_tallied")
    wire: ClassVar[str]
    text_head: ClassVar[Wire]

    def __init__(self, target: str, *, payload: Payload = text_payload, read: Read | None = None) -> None:
        known = limits(target)
        if known.wire != self.wire:
            raise TargetError(f"target {target} has another wire form", f"use to_{known.wire}")
        self._known = known
        self._as_images = known.frames_as_images
        self._tallied = known.counted or known.request_bytes is not None
        self._payload = payload
        self._read = read

    def _content(self, parts: tuple[Part, ...], tally: Tally | None) -> list[Wire]:
        """Return the content parts of a message.

        Raises:
            MMPromptError: a part that was not read or that the target does not take, with its number.
        """
        out: list[Wire] = []
        read, head = self._read, self.text_head
        for number, given in enumerate(parts, 1):
            if type(given) is TextPart and not given.extra:
                out.append({**head, "text": given.text})
                if tally is not None:
                    tally.add_text(given.text)
                continue
            part = given
            try:
                if read is not None and type(given) is MediaRef and given.name is None:
                    part = read(given)
                if isinstance(part, MediaRef):  # first: rows with URLs are the cheapest, and feel each step
                    out.append(self._named(part))
                elif isinstance(part, TextPart):
                    out.append(self._with_extra({**head, "text": part.text}, part.extra))
                    if tally is not None:
                        tally.add_text(part.text)
                    continue
                elif part.frames and self._as_images:
                    out.extend([self._embedded(frame) for frame in images_of(part)])
                else:
                    out.append(self._embedded(_undeclared(part) if part.options else part))
                if tally is not None:
                    tally.add(part, self._as_images)
            except MMPromptError as error:
                raise error.located(part=number) from None
        return out

    @abstractmethod
    def _named(self, ref: MediaRef) -> Wire:
        """Return the content part of media that goes by name."""

    @abstractmethod
    def _embedded(self, part: MediaPart) -> Wire:
        """Return the content part of media that was read."""

    def _with_extra(self, wire: Wire, pairs: Pairs) -> Wire:
        """Add the keys that a sample's part has of its own, those of them that the target takes."""
        return add_keys(wire, pairs, self._known, self._known.part_keys)

    def _with_options(self, wire: Wire, pairs: Pairs) -> Wire:
        """Add the keys that stood beside a sample's source, those of them that the target takes."""
        return add_keys(wire, pairs, self._known, self._known.source_keys)


class Tally:
    """What a request holds so far: parts by modality, and the bytes of its texts and of its media as base64.

    What JSON puts around these is not counted: of a request that is anywhere near a limit it is a thousandth.
    """

    __slots__ = ("_counts", "_size")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._size = 0

    def add(self, part: MediaPart | MediaRef, as_images: bool) -> None:
        """Count a part; frames ``as_images`` are as many pictures."""
        modality, number = part.modality, 1
        if isinstance(part, MediaPart):
            if part.frames and as_images:
                modality, number = "image", len(part.frames)
            for data in part.frames or (part.data,):
                self._size += (len(data) + 2) // 3 * 4
        self._counts[modality] = self._counts.get(modality, 0) + number

    def add_text(self, text: str) -> None:
        """Count the bytes of a text."""
        self._size += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

    def check(self, known: Limits) -> None:
        """Hold the request against its target.

        Raises:
            TargetError: more parts of a modality, or more bytes, than the target takes.
        """
        for modality, count in self._counts.items():
            check_count(modality, count, known)
        if known.request_bytes is not None and self._size > known.request_bytes:
            what = f"the texts and media of a request have {self._size} bytes"
            hint = "send fewer or smaller media, or less text"
            raise TargetError(f"{what}, {known.name} takes requests of {known.request_bytes}", hint)


def url_of(ref: MediaRef, known: Limits) -> str:
    """Return the name by which media go out that nobody has read, its scheme held against the target.

    Raises:
        TargetError: it is no name, or one that the target does not take.
        SourceError: a URL that parsers read differently.
    """
    url = ref.name
    if url is None:
        kind, value = classify(ref.source)
        if kind not in ("url", "scheme"):
            raise TargetError(f"{ref.modality} {quoted(ref.source)} has not been read", READ_FIRST)
        url = str(value)
    scheme = url.partition(":")[0].lower()
    if scheme not in known.schemes:
        what = f"{quoted(url)} has the scheme {scheme}" if "://" in url[:40] else f"{quoted(url)} is no URL"
        names = ", ".join(sorted(known.schemes))
        hint = "give such a URL, or a file under the media root"
        if scheme == "file" or "://" not in url[:40]:  # a file that was read under a root goes by its name
            hint = "send it inline: --media inline"
        raise TargetError(f"{what}, and {known.name} takes names with {names}", hint)
    return url


def quoted(source: object) -> str:
    """Return a source in short, for a message: no payload, no query."""
    return shown(in_short(source))


def _undeclared(part: MediaPart) -> MediaPart:
    """Return a sound without the ``format`` that stood beside its data: its bytes say it. Another one is a finding."""
    declared = dict(part.options).get("format") if part.modality == "audio" else None
    if declared is None:
        return part
    options = tuple([pair for pair in part.options if pair[0] != "format"])
    said = normal_type(f"audio/{declared}")
    if agree(said, part.media_type):
        return part._replace(options=options)
    finding = f"declared {shown(said, 40)[1:-1]}, bytes are {part.media_type}"
    return part._replace(options=options, findings=(*part.findings, finding))


def images_of(video: MediaPart) -> list[MediaPart]:
    """Return the frames of a video as images, for a target that takes no video of frames.

    Its options hold for each; its further keys stand on the last, for what is marked (``cache_control``) ends there.
    """
    images = []
    for left, frame in enumerate(video.frames, 1 - len(video.frames)):
        kind = sniff(frame)
        media_type = kind and media_type_for(kind, "image")
        extra = () if left else video.extra
        images.append(MediaPart("image", media_type or "of unknown type", frame, (), "", video.options, extra))
    return images


def add_keys(wire: Wire, pairs: Pairs, known: Limits, allowed: frozenset[str] | None) -> Wire:
    """Add further keys to a part that is being made; none may take the place of what the part is.

    Raises:
        TargetError: a key that is there already, or that the target does not know; a value that JSON cannot hold.
    """
    for key, value in pairs:
        if key in known.left_out:
            continue
        if key in wire:
            raise TargetError(f"the key {shown(key)} is given twice in a content part", "leave it out of the template")
        if allowed is not None and key not in allowed:
            takes = ", ".join(sorted(allowed)) or "none"
            raise TargetError(
                f"{known.name} has no key {shown(key)} here (of such keys it has {takes})", "leave it out of the part"
            )
        wire[key] = plain(value)
    return wire
