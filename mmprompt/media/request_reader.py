"""Bounds the media of one request: counts them as they go out, and reads each file once.

A bound on each file is not enough: one row can name a large file a hundred times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Union

from mmprompt.errors import PolicyError
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart, MediaRef, Part, TextPart

Read = Callable[[MediaRef], Union[MediaPart, MediaRef]]
Files = dict[Hashable, tuple[MediaRef, Union[MediaPart, MediaRef]]]
"""The media of a request that were read from files, or that go out by name: each as it was named and as it was read."""

_LONGEST_NAME = 4096
"""Characters. A longer string holds its media itself; hashing it would take about as long as decoding it."""

_TRUSTED = "or use --policy trusted"


class RequestReader:
    """Reads the media of one request, within the policy's bounds on all of them. For one thread.

    Each medium counts towards ``max_request_media``, and its bytes towards ``max_request_bytes``. A file that is named
    twice counts twice but is read once: both times the same ``MediaPart`` object is returned. A medium that goes out by
    its name has no bytes.

    Args:
        policy: its ``max_request_bytes`` and ``max_request_media`` hold.
        read: reads one medium, and also changes it if changes are asked for: the bytes that it returns are counted.
        before: the ``files`` of another request. What they hold is not read again.
    """

    __slots__ = ("_before", "_bytes_left", "_media_left", "_policy", "_read", "files")
    files: Files

    def __init__(self, policy: MediaPolicy, read: Read, before: Files | None = None) -> None:
        self._policy = policy
        self._read = read
        self._before = {} if before is None else before
        self._bytes_left = policy.max_request_bytes
        self._media_left = policy.max_request_media
        self.files = {}

    def read(self, ref: MediaRef) -> MediaPart | MediaRef:
        """Return ``ref`` read, and count it.

        Raises:
            PolicyError: the request has more media, or more bytes of media, than the policy allows.
            MMPromptError: ``ref`` cannot be read.
        """
        self._count()
        modality, source, form = ref[:3]
        if type(source) is str:
            key: Hashable = (modality, form, source) if len(source) <= _LONGEST_NAME else None
        else:
            key = _key_of(ref)
        known = None if key is None else self.files.get(key) or self._before.get(key)
        if known is None or not _same_keys(known[0], ref):
            known = ref, self._read(ref)
        part = known[1]
        if key is not None:
            self.files[key] = known
        if type(part) is MediaPart:
            self._count_bytes(part)
        return part

    def part(self, part: Part) -> Part:
        """Return a part of a message as it goes out: a medium is counted, and read if it was only named."""
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
                code="MM220",
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
                code="MM220",
            )


_NO_KEYS = ((), ())


def _same_keys(one: MediaRef, other: MediaRef) -> bool:
    """Return whether two references to a file have the same keys beside it; false for values that do not compare."""
    try:
        if not bool(one[3:5] == other[3:5]):
            return False
        return one[3:5] == _NO_KEYS or repr(one[3:5]) == repr(other[3:5])  # 1 and true are equal
    except (TypeError, ValueError):  # an array, for example
        return False


def _key_of(ref: MediaRef) -> Hashable:
    """Return the key of a path that is not a plain string; None for a source that holds its media itself."""
    source = ref.source
    if isinstance(source, (str, os.PathLike)):
        return (ref.modality, ref.form, type(source), os.fspath(source), getattr(source, "root", ""))
    return None
