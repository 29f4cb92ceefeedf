"""The one place that opens media with PyAV: bytes in memory, without a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmprompt.media.ffmpeg.deadline import TimedFile
from mmprompt.media.media_types import Kind
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    from av.container import InputContainer


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
