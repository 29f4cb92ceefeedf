"""Reads and decodes the media of rows. Media with the same bytes are decoded once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import cast

from mmprompt.check.facts import digest_of
from mmprompt.check.rule import CheckedMedium
from mmprompt.errors import MMPromptError
from mmprompt.media.inspection import Content, inspect
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader
from mmprompt.media.sandbox.decoders import decoder
from mmprompt.media.sandbox.jobs import MOST_IN_FILE, name_of, run_each
from mmprompt.media.thumbnail import thumbnail
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart

_KEPT = 1 << 15
"""Of how many media it is remembered what they hold: a few hundred bytes each."""

_MOST_THUMBNAILS = 5000

_READ_AHEAD = 4 << 20
"""Bytes of media that are read before their turn."""

_TOGETHER = MOST_IN_FILE * 15 // 16
"""Bytes of pictures that are decoded together: one job, with room for what stands around them."""

ReadAhead = dict[int, "tuple[MediaRef, MediaPart | MMPromptError, bytes]"]
"""Media that were read before their turn, or the errors of that, by the identity of what names them, with digests."""


_Key = tuple[str, bytes]


class MediaCheck:
    """Reads media as the policy allows, and decodes them in the sandbox. Safe to share between threads.

    Args:
        reader: reads the media.
        decode: look inside them; without it they are only read.
        thumbnails: make small pictures of the first media, for a report.
    """

    def __init__(self, reader: MediaReader, *, decode: bool = True, thumbnails: bool = False) -> None:
        self._thumbnails = _MOST_THUMBNAILS if thumbnails else 0
        self._reader = reader
        self._decoder = decoder(reader.policy) if decode else None
        self._known: OrderedDict[_Key, Content | MMPromptError] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def policy(self) -> MediaPolicy:
        """The policy of the media."""
        return self._reader.policy

    def close(self) -> None:
        """End the decoding processes."""
        if self._decoder is not None:
            self._decoder.close()

    def read_ahead(self, parts: Iterable[MediaRef]) -> ReadAhead:
        """Read media for ``look``, and decode small pictures together: less time goes to and from the child process."""
        ahead: ReadAhead = {}
        if self._decoder is None or self._thumbnails > 0:
            return ahead
        room = _READ_AHEAD
        for part in parts:
            try:
                made: MediaPart | MediaRef | MMPromptError = self._reader.read(part)
            except MMPromptError as error:
                made = error
            except MemoryError:  # ``look`` reads it when the others are let go
                break
            if isinstance(made, MediaRef):
                continue
            digest = digest_of(made) if isinstance(made, MediaPart) else b""
            ahead[id(part)] = part, made, digest
            room -= len(made.data) + sum(map(len, made.frames)) if isinstance(made, MediaPart) else 0
            if room <= 0:
                break
        for group in self._groups(ahead):
            many = [(modality, data, (), self.policy) for (modality, _), data in group.items()]
            # ``look`` decodes alone what half the time did not suffice for, or was together with what ended the child
            with suppress(MMPromptError):
                found = self._decoder.run(run_each, name_of(inspect), many, self.policy.timeout / 2)
                for key, known in zip(group, found if isinstance(found, list) else (), strict=False):
                    self._keep(key, cast(Content | MMPromptError, known))
        return ahead

    def _groups(self, ahead: ReadAhead) -> Iterator[dict[_Key, bytes]]:
        """Yield the pictures to decode together, by the keys under which it is remembered what they hold."""
        group: dict[_Key, bytes] = {}
        size = 0
        for _, made, digest in ahead.values():
            if isinstance(made, MediaPart) and made.modality == "image" and len(made.data) <= _TOGETHER // 2:
                if size + len(made.data) > _TOGETHER:
                    yield group
                    group, size = {}, 0
                key = (made.modality, digest)
                if key not in group and key not in self._known:
                    group[key] = made.data
                    size += len(made.data)
        if len(group) > 1:
            yield group

    def look(self, medium: CheckedMedium, part: MediaPart | MediaRef, ahead: ReadAhead) -> None:
        """Take a medium from ``ahead``, or read it, and look inside; ``medium`` gets its bytes and what it holds.

        Raises:
            MMPromptError: it cannot be read or decoded.
        """
        _, made, digest = ahead.pop(id(part), None) or (None, part, b"")
        if isinstance(made, MMPromptError):
            raise made
        if isinstance(made, MediaRef):
            made = self._reader.read(made)
        if not isinstance(made, MediaPart):
            return
        medium.part = made
        medium.digest = digest or digest_of(made)
        if self._decoder is None:
            return
        key = (made.modality, medium.digest)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
        if known is None:
            try:
                known = self._decoder.run(inspect, made.modality, made.data, made.frames, self._reader.policy)
            except MMPromptError as error:
                known = error
            self._keep(key, known)
            if self._thumbnails > 0:
                self._thumbnails -= 1
                with suppress(MMPromptError):  # it has a finding by now, or can be decoded in part
                    medium.thumbnail = self._decoder.run(thumbnail, made, self._reader.policy)
        if isinstance(known, MMPromptError):
            raise known.located()
        medium.content = known

    def _keep(self, key: _Key, known: Content | MMPromptError) -> None:
        with self._lock:
            self._known[key] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)


def media_of(requests: Iterable[list[Message]]) -> Iterator[tuple[int, MediaPart | MediaRef]]:
    """Yield the media of requests, each with its 1-based number among the parts of its message."""
    for messages in requests:
        for message in messages:
            for number, part in enumerate(message.parts, 1):
                if not isinstance(part, TextPart):
                    yield number, part


def with_media(message: Message, read: dict[object, CheckedMedium]) -> Message:
    """Return a message with its media as they were read."""
    parts = [p if isinstance(p, TextPart) else read[medium_key(p)].part or p for p in message.parts]
    return message._replace(parts=tuple(parts))


def medium_key(part: MediaPart | MediaRef) -> object:
    """Return what is the same for media with the same modality and source."""
    held = part.source if isinstance(part, MediaRef) else part
    return (part.modality, held, getattr(held, "root", None)) if isinstance(held, str) else (part.modality, id(held))
