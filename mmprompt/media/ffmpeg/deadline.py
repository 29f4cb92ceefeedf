"""Limits for the work on one file: time, picture size and memory."""

from __future__ import annotations

import io
import time
from typing import Any

from mmprompt.errors import PolicyError
from mmprompt.media.policy import MediaPolicy, check_picture_size, limit_error

PACKETS_SHARE = 8
"""The packets of a video may take this many times ``max_bytes``; decoded sound may, too."""


class TimedFile(io.BytesIO):
    """A media file that can be read only until a deadline: a decoder in C can be stopped only between two reads.

    The first read after the deadline raises a PolicyError, which PyAV and Pillow pass on. Later reads find the end of
    the file, because a decoder may try again. libsndfile passes no error on, so ``readinto``, which it reads with, only
    finds the end; call ``check_time`` afterwards.
    """

    def __init__(self, data: bytes, policy: MediaPolicy, what: str) -> None:
        super().__init__(data)
        self._watch = Watch(policy, what)
        self._said = False

    def read(self, size: int | None = -1, /) -> bytes:
        """Return bytes, as any file does; see the class."""
        if self._watch.is_over():
            if not self._said:
                self._said = True
                self._watch.check_time()
            return b""
        return super().read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place in the file; see the class. An impossible place becomes the end of the file.

        Headers may name such places, and libsndfile's callbacks would print the error instead of raising it.
        """
        try:
            return super().seek(offset, whence)
        except (OverflowError, ValueError):
            return super().seek(0, io.SEEK_END)

    def readinto(self, buffer: Any, /) -> int:
        """Read into ``buffer``, as any file does; see the class."""
        return 0 if self._watch.is_over() else super().readinto(buffer)

    def check_time(self) -> None:
        """Raise a PolicyError once the time is over."""
        self._watch.check_time()


class Watch:
    """Holds work on one file to the limits of a policy, its ``timeout`` counted from now.

    Args:
        policy: the limits.
        what: the file in words, such as ``"the video"``.
    """

    __slots__ = ("_end", "_policy", "_room", "_what")

    def __init__(self, policy: MediaPolicy, what: str) -> None:
        self._policy = policy
        self._what = what
        self._end = time.monotonic() + policy.timeout
        self._room = PACKETS_SHARE * policy.max_bytes

    def is_over(self) -> bool:
        """True once the time is over."""
        return time.monotonic() > self._end

    def check_time(self) -> None:
        """Raise a PolicyError once the time is over."""
        if self.is_over():
            raise limit_error(
                f"{self._what} takes longer than timeout ({self._policy.timeout:g} s)", "timeout", "MM902"
            )

    def check_size(self, width: int, height: int) -> None:
        """Raise a PolicyError for a picture that is too large."""
        check_picture_size(self._what, width, height, self._policy)

    def keep(self, size: int) -> None:
        """Count the bytes of a packet; refuse too many: packed ones can grow a thousandfold."""
        self._room -= size
        if self._room < 0:
            raise PolicyError(
                f"the packets of {self._what} take more than {PACKETS_SHARE} x max_bytes ({self._policy.max_bytes})",
                "raise max_bytes to allow it, or encode it again",
                code="MM902",
            )
