"""Work on one file, held to what a policy allows of time, picture and memory."""

from __future__ import annotations

import time

from mmprompt.errors import PolicyError
from mmprompt.media.policy import MediaPolicy

PACKETS_SHARE = 8
"""The packets of a video may take so many times ``max_bytes``, as decoded sound may."""


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

    def check_time(self) -> None:
        """Raise a PolicyError once the time is over."""
        if time.monotonic() > self._end:
            raise PolicyError(
                f"{self._what} takes longer than timeout ({self._policy.timeout:g} s)",
                "raise timeout to allow it, or use --policy trusted",
            )

    def check_size(self, width: int, height: int) -> None:
        """Raise a PolicyError for a picture that is too large."""
        if width * height > self._policy.max_pixels:
            raise PolicyError(
                f"{self._what} has {width} x {height} pixels, more than {self._policy.max_pixels}",
                "raise max_pixels to allow it, or use --policy trusted",
            )

    def keep(self, size: int) -> None:
        """Raise a PolicyError once the packets that are kept take too much: packed ones swell a thousandfold."""
        self._room -= size
        if self._room < 0:
            raise PolicyError(
                f"the packets of {self._what} take more than {PACKETS_SHARE} x max_bytes ({self._policy.max_bytes})",
                "raise max_bytes to allow it, or encode it again",
            )
