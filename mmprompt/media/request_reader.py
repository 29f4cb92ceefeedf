"""The media of one request: counted as they go out, and each file read once.

A row costs little and may name one large file a hundred times, so a bound on each file alone bounds no request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Union

from mmprompt.errors import PolicyError
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart, MediaRef, Part, TextPart

Read = Callable[[MediaRef], Union[MediaPart, MediaRef]]

_LONGEST_NAME = 4096
"""Characters. A longer string holds its media itself, and hashing it would take as long as decoding it."""

_TRUSTED = "or use --policy trusted"


class RequestReader:
    """Reads the media of one request within the request's bounds; made for one request, used by one thread.

    ``read`` counts each medium that goes out against ``max_request_bytes`` and ``max_request_media`` of the policy. A
    file that is named twice counts twice and is read once: the second time gives the same ``MediaPart`` object. A
    medium that goes out by its name counts as a medium of no bytes.

    Args:
        policy: its two bounds on a request.
        read: reads one medium, and changes it if changes are asked for: the bytes counted are those it returns.
    """

    __slots__ = ("_bytes_left", "_known", "_media_left", "_policy", "_read")

    def __init__(self, policy: MediaPolicy, read: Read) -> None:
        self._policy = policy
        self._read = read
        self._bytes_left = policy.max_request_bytes
        self._media_left = policy.max_request_media
        self._known: dict[Hashable, tuple[MediaRef, MediaPart | MediaRef]] = {}

    def read(self, ref: MediaRef) -> MediaPart | MediaRef:
        """Return what the request's ``read`` returns for ``ref``, and count it.

        Raises:
            PolicyError: the request holds more media, or more bytes of them, than the policy allows.
            MMPromptError: whatever reading ``ref`` raises.
        """
        self._count()
        modality, source, form, options, extra, _ = ref
        if type(source) is str:
            key: Hashable = (modality, form, source) if len(source) <= _LONGEST_NAME else None
        else:
            key = _key_of(ref)
        known = None if key is None else self._known.get(key)
        if known is not None and known[0].options == options and known[0].extra == extra:
            part = known[1]
        else:
            part = self._read(ref)
            if key is not None:
                self._known[key] = ref, part
        if type(part) is MediaPart:
            self._count_bytes(part)
        return part

    def part(self, part: Part) -> Part:
        """Return a part of a message as it goes out: media are counted, and read if they have only been named.

        Raises:
            MMPromptError: as ``read``.
        """
        if isinstance(part, TextPart):
            return part
        if isinstance(part, MediaRef) and part.name is None:
            return self.read(part)
        self._count()
        if isinstance(part, MediaPart):
            self._count_bytes(part)
        return part

    def _count(self) -> None:
        if not self._media_left:
            most = self._policy.max_request_media
            raise PolicyError(
                f"one request has more than max_request_media ({most}) media",
                f"send fewer media, raise max_request_media, {_TRUSTED}",
            )
        self._media_left -= 1

    def _count_bytes(self, part: MediaPart) -> None:
        size = len(part.data)
        if part.frames:
            size += sum(map(len, part.frames))
        self._bytes_left -= size
        if self._bytes_left < 0:
            most = self._policy.max_request_bytes
            raise PolicyError(
                f"the media of one request have more than max_request_bytes ({most}) together",
                f"send fewer or smaller media, raise max_request_bytes, {_TRUSTED}",
            )


def _key_of(ref: MediaRef) -> Hashable:
    """Return what tells a path that is no plain string from others; None for a source that holds its media itself."""
    source = ref.source
    if isinstance(source, (str, os.PathLike)):
        return (ref.modality, ref.form, type(source), os.fspath(source), getattr(source, "root", ""))
    return None
