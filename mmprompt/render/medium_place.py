"""The place of a medium in a plan: what stands around it, and what stays the same from row to row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import orjson

from mmprompt.media.signatures import signature
from mmprompt.media.sources import classify_or_path
from mmprompt.media.urls import is_plain_url
from mmprompt.messages import MediaPart, MediaRef
from mmprompt.targets.limits import limits
from mmprompt.targets.wire_json import Payload, around_payload, with_holes
from mmprompt.tasks.shapes import Unplannable, address_of

if TYPE_CHECKING:
    from mmprompt.render.builder import RequestBuilder

LONGEST_PATH = 80
"""Characters of a plain path. A longer string may hold its media itself."""


_MOST_SUFFIXES = 32
"""Suffixes whose files are known."""

KnownFile = tuple[Callable[[bytes], object], bytes, bytes]
"""A test of the signature of files of one kind, and what stands before and after their base64."""


class _Kept(NamedTuple):
    """A medium of all rows, as it was sent last."""

    part: MediaPart
    text: bytes
    payloads: list[Payload]


class MediumPlace:
    """The place of a content part with a medium.

    ``number`` counts the media of a request from 0. ``source`` is the index of its source among the values of a row,
    None if all rows have the medium. ``before`` and ``after`` stand around the address of a medium that goes by its
    URL, unless the target ``reads_addresses`` (Gemini takes the media type from the suffix).

    Args:
        builder: reads and writes the media.
        number: see above.
        ref: the medium with the marks of the shape.
        marks: the marks, in the order of the values.

    Raises:
        Unplannable: its source is no value of a row, but holds one.
    """

    __slots__ = (
        "_around",
        "_builder",
        "_fields",
        "_file_part",
        "_kept",
        "_typed",
        "_writer",
        "after",
        "before",
        "number",
        "reads_addresses",
        "ref",
        "source",
    )

    def __init__(self, builder: RequestBuilder, number: int, ref: MediaRef, marks: Sequence[str]) -> None:
        self.number = number
        self.ref = ref
        self.source = marks.index(ref.source) if ref.source in marks else None
        if self.source is None and any(mark in str(ref.source) for mark in marks):
            raise Unplannable
        self._builder = builder
        self._writer = builder.writer
        address = address_of(number)
        named, other = [
            orjson.dumps(builder.writer.medium(ref._replace(source=name, name=name)))
            for name in (address, address + ".jpg")
        ]
        self.before, found, self.after = named.partition(orjson.dumps(address))
        if not found:
            raise Unplannable
        self.reads_addresses = other != self.before + orjson.dumps(address + ".jpg") + self.after
        self._kept: _Kept | None = None
        self._typed: dict[str, tuple[bytes, str]] | None = None
        self._around: dict[str, KnownFile | None] = {}
        taken = limits(builder.target).modalities.get(ref.modality)
        reader = builder.media.reader
        self._file_part = reader.file_part
        self._fields = (ref.modality, ref.form, ref.options, ref.extra)
        if reader.mode == "inline" and not (
            builder.media.decodes or ref.options or taken is None or taken.looks_at_bytes
        ):
            self._typed = {}

    @property
    def takes_files(self) -> bool:
        """Whether files of one type are written alike."""
        return self._typed is not None

    def named(self, address: str) -> bytes:
        """Return the content part of the medium with this address."""
        return self.before + orjson.dumps(address) + self.after

    def of_file(self, path: str, payloads: list[Payload]) -> bytes | None:
        """Return the content part of the file at a plain path, and add its bytes to ``payloads``.

        None if it has to go the long way.

        Raises:
            MMPromptError: the file cannot be read.
        """
        if len(path) > LONGEST_PATH or (typed := self._typed) is None:
            return None
        part = self._file_part(self._fields, path, path, path)
        if (known := typed.get(part[1])) is None:
            return self._written(part, payloads)
        payloads.append(Payload(known[1], part))
        if (suffix := _suffix(path)) not in self._around and len(self._around) < _MOST_SUFFIXES and not part.findings:
            is_kind = signature(part.data)
            self._around[suffix] = None if is_kind is None else (is_kind, *around_payload(*known))
        return known[0]

    def known_file(self, path: str) -> KnownFile | None:
        """Return what is known of files with the suffix of this path; None if nothing is, or it is a long path."""
        return self._around.get(_suffix(path)) if len(path) <= LONGEST_PATH else None

    def forget_file(self, path: str) -> None:
        """Know nothing of files with the suffix of this path from now on: they are of several kinds."""
        self._around[_suffix(path)] = None

    def content_part(
        self, values: Sequence[str], read: Callable[[MediaRef], MediaPart | MediaRef], payloads: list[Payload]
    ) -> bytes | None:
        """Return the content part of the medium in a row with these values; otherwise as ``of_file``."""
        ref = self.ref
        if self.source is None:
            return self._of_all(read(ref), payloads)
        source = values[self.source]
        if not self.reads_addresses and source.startswith(self._builder.url_prefixes) and is_plain_url(source):
            return self.named(source)
        if classify_or_path(source) == "base64":  # a template gives it the form of a data URI
            return None
        return self._written(read(ref._replace(source=source)), payloads)

    def _of_all(self, part: MediaPart | MediaRef, payloads: list[Payload]) -> bytes | None:
        """Return the content part of a medium that all rows have; it is kept with its base64."""
        if type(part) is not MediaPart:
            return self._written(part, payloads)
        kept = self._kept
        if kept is not None and kept.part is part:
            payloads += kept.payloads
            return kept.text
        own: list[Payload] = []
        text = self._written(part, own)
        if text is not None and self._builder.plans.has_room(_kept_bytes(part) - self.kept_bytes):
            own = [payload.encoded() for payload in own]
            self._kept = _Kept(part, text, own)
        payloads += own
        return text

    @property
    def kept_bytes(self) -> int:
        """About how many bytes are kept."""
        return 0 if self._kept is None else _kept_bytes(self._kept.part)

    def _written(self, part: MediaPart | MediaRef, payloads: list[Payload]) -> bytes | None:
        """Return the content part of a medium that was read. Files of one type differ in their bytes alone."""
        if type(part) is MediaPart:
            if part.frames:
                return None
            if self._typed is not None and (known := self._typed.get(part.media_type)) is not None:
                text, prefix = known
                payloads.append(Payload(prefix, part))
                return text
        own: list[Payload] = []
        text = with_holes(self._writer.medium(part), own)
        if self._typed is not None and len(own) == 1 and type(part) is MediaPart and own[0].part is part:
            self._typed[part.media_type] = text, own[0].prefix
        payloads += own
        return text


def _suffix(path: str) -> str:
    return path[path.rfind(".") :]


def _kept_bytes(part: MediaPart) -> int:
    """Return about how many bytes a medium takes with its base64."""
    return len(part.data) * 7 // 3
