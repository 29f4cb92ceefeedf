"""Reads and decodes the media of rows. Media with the same bytes are decoded once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress

from mmprompt.check.facts import digest_of
from mmprompt.check.rule import CheckedMedium
from mmprompt.errors import MMPromptError
from mmprompt.media.inspection import Content, inspect
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader
from mmprompt.media.sandbox.decoders import decoder
from mmprompt.media.thumbnail import thumbnail
from mmprompt.messages import MediaPart, MediaRef

_KEPT = 1 << 15
"""Of how many media it is remembered what they hold: a few hundred bytes each."""

_MOST_THUMBNAILS = 5000


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
        self._known: OrderedDict[tuple[str, bytes], Content | MMPromptError] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def policy(self) -> MediaPolicy:
        """The policy of the media."""
        return self._reader.policy

    def close(self) -> None:
        """End the decoding processes."""
        if self._decoder is not None:
            self._decoder.close()

    def look(self, medium: CheckedMedium, part: MediaPart | MediaRef) -> None:
        """Read a medium and look inside; ``medium`` gets its bytes and what it holds.

        Raises:
            MMPromptError: it cannot be read or decoded.
        """
        made = self._reader.read(part) if isinstance(part, MediaRef) else part
        if not isinstance(made, MediaPart):
            return
        medium.part = made
        medium.digest = digest_of(made)
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

    def _keep(self, key: tuple[str, bytes], known: Content | MMPromptError) -> None:
        with self._lock:
            self._known[key] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
