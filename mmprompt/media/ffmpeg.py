"""Media files for decoders: bytes in memory, one demuxer, limits of time, size and memory; facts of Matroska files."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any

from mmprompt.errors import PolicyError
from mmprompt.media.media_types import Kind
from mmprompt.media.policy import MediaPolicy, check_picture_size, limit_error

if TYPE_CHECKING:
    from av.container import InputContainer

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


def open_bytes(
    data: bytes, kind: Kind, options: dict[str, str], policy: MediaPolicy, demuxer: str | None = None
) -> InputContainer:
    """Return the open container of a media file; its caller closes it.

    The file can be read for the policy's ``timeout`` from now on; then the next read raises a PolicyError.
    Non-UTF-8 metadata is ignored (by the PyAV releases that support it).

    Args:
        data: the file.
        kind: its kind, for errors.
        options: of the container. PyAV's ``options=`` would go to each stream too, and PyAV before 18 dies when a
            stream appears late.
        policy: its ``timeout`` holds.
        demuxer: FFmpeg's name of the only demuxer to use.

    Raises:
        PolicyError: the time is over.
        FFmpegError: PyAV cannot open the bytes.
        ValueError: PyAV cannot open the bytes.
    """
    import av  # noqa: PLC0415  # heavy

    file = TimedFile(data, policy, f"the {kind.name} file")
    given: dict[str, Any] = {"format": demuxer, "container_options": options}
    container: InputContainer
    try:
        container = av.open(file, "r", metadata_errors="replace", **given)
    except TypeError:  # the arguments of open: PyAV 19 has no metadata_errors
        container = av.open(file, "r", **given)
    return container


# Matroska and WebM (RFC 8794), read without a decoder
_HEADER, _SEGMENT, _CLUSTER = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"
_CHECKSUM, _TIMESTAMP = 0xBF, 0xE7


def _element_size(data: bytes, at: int) -> int:
    """Return the bytes of the element whose ID ends at ``at``, its size field included; all bytes if it has no size."""
    length = 9 - data[at].bit_length() if at < len(data) else 9
    if length > 8:
        return len(data)
    size = int.from_bytes(data[at : at + length], "big") & (1 << 7 * length) - 1
    return len(data) if size == (1 << 7 * length) - 1 else length + size


def is_whole(data: bytes) -> bool:
    """True for a Matroska file that has all the bytes it declares; false for any other file.

    Its declared seconds would not show that: they count from 0 to the end of the longest stream.
    """
    if not data.startswith(_HEADER):
        return False
    at = 4 + _element_size(data, 4)
    return data.startswith(_SEGMENT, at) and at + 4 + _element_size(data, at + 4) <= len(data)


def first_tick(data: bytes) -> int:
    """Return the time of a Matroska file's first cluster in ticks; 0 without one, and for any other file."""
    at = data.find(_CLUSTER) + 4
    if not data.startswith(_HEADER) or at < 4 or at >= len(data):
        return 0
    at += 9 - data[at].bit_length()
    if data[at : at + 1] == bytes([_CHECKSUM]):
        at += 1 + _element_size(data, at + 1)
    if data[at : at + 1] != bytes([_TIMESTAMP]):
        return 0
    # one byte is enough for the size of a time
    return int.from_bytes(data[at + 2 : at + 2 + min(8, data[at + 1] & 0x7F)], "big") if at + 1 < len(data) else 0
