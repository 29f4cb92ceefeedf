"""Frames of a video, chosen by the times at which they are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import SourceError
from mmprompt.media.ffmpeg import is_whole
from mmprompt.media.media_types import AVI
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video.decoding import by_stretches, decoded_timeline, in_order, packet_timeline, walk
from mmprompt.media.video.frame_choice import FrameChoice, choose
from mmprompt.media.video.reading import (
    Matrix,
    check_seconds,
    check_whole,
    declared_seconds,
    display_matrix,
    no_frame,
    open_video,
    watch_video,
)

if TYPE_CHECKING:
    import numpy as np
    from av.video.frame import VideoFrame

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]


SizeOf = Callable[[int, int], tuple[int, int]]

_MATRICES = {1: "ITU709", 4: "FCC", 7: "SMPTE240M"}
"""PyAV's names for the colour matrices (ITU-T H.273, table 4) that are not BT.601; it has none for BT.2020."""


class Taken(NamedTuple):
    """The length of a video in seconds, and for each frame taken its second and what it became."""

    seconds: float
    frames: list[tuple[float, Any]]


def take_frames(
    data: bytes,
    policy: MediaPolicy,
    choice: FrameChoice,
    start: Callable[[], Callable[[Pixels], Any]],
    size_of: SizeOf | None = None,
) -> Taken:
    """Return what becomes of the pixels of each chosen frame, see ``FrameChoice``, without holding all the pixels.

    Frames are turned as a player turns them. Pixels that are not square are not stretched.

    ``start`` gives the function that takes pixels, (height, width, 3), as soon as they are decoded; it is called again
    where decoding has to begin anew, and what was taken until then is dropped. ``size_of`` gives the width and height
    to which an upright frame of these is scaled.

    Raises:
        SourceError: not a video, a cut video, a damaged wanted frame, or a time at which nothing is shown.
        PolicyError: more pixels, seconds, frames or time than the policy allows.
    """
    with open_video(data, policy) as video:
        watch = watch_video(policy)
        declared = None if is_whole(data) else declared_seconds(video.container, video.stream, data)
        packets = walk(video, policy, watch)
        if not packets:
            raise no_frame(video, policy)
        line = None if video.kind is AVI else packet_timeline(video, packets)
        if line is not None:
            check_whole(line.length, declared)
            wanted = choose(choice, line)
            made = by_stretches(
                video, packets, {line.ticks[index]: index for index in wanted}, _upright(start(), size_of), watch
            )
            if made is not None:
                return Taken(line.length, [(line.seconds(index), made[index]) for index in wanted])
        line = decoded_timeline(video, packets, policy, watch)
        check_whole(line.length, declared)
        check_seconds(line.length, policy)
        wanted = choose(choice, line)
        made = in_order(video, packets, set(wanted), _upright(start(), size_of), watch)
        if not made.keys() >= set(wanted):  # what is damaged may give fewer frames the second time
            raise SourceError("the video is damaged", "fetch the file again, or encode it anew", code="MM500")
        return Taken(line.length, [(line.seconds(index), made[index]) for index in wanted])


def _upright(take: Callable[[Pixels], Any], size_of: SizeOf | None) -> Callable[[VideoFrame], Any]:
    """Return a function of a frame that hands its pixels on, scaled, and turned as the first of them says."""
    from av import FFmpegError  # noqa: PLC0415  # heavy
    from av.video.reformatter import VideoReformatter  # noqa: PLC0415  # heavy

    # one for all: a frame's own has threads, and both live until the garbage collector finds them once side_data was
    # looked at, since that and the frame hold each other; so it is looked at once
    converter = VideoReformatter()
    matrix: Matrix | None = None

    def turned(frame: VideoFrame) -> Any:
        nonlocal matrix
        if matrix is None:
            matrix = display_matrix(frame)
        try:
            size = {} if size_of is None else _scaling(frame, matrix, size_of)
            plain = converter.reformat(frame, format="rgb24", **size, **_colours(frame))
        except (FFmpegError, ValueError):
            what = f"colours of the form {frame.format.name}, matrix {int(frame.colorspace)}"
            raise SourceError(
                f"the video has {what}, which are not read", "convert it to H.264 in MP4", code="MM509"
            ) from None
        pixels: Any = plain.to_ndarray()  # of this format always uint8
        return take(_turned(pixels, matrix))

    return turned


def _scaling(frame: VideoFrame, matrix: Matrix, size_of: SizeOf) -> dict[str, Any]:
    """Return the arguments for the converter that scale a frame as ``size_of`` asks of it upright; none if it stays."""
    stored = (frame.width, frame.height)
    lies = bool(matrix[1])
    width, height = size_of(*stored[::-1])[::-1] if lies else size_of(*stored)
    return {} if (width, height) == stored else {"width": width, "height": height, "interpolation": "LANCZOS"}


def _colours(frame: VideoFrame) -> dict[str, Any]:
    """Return the colour arguments for the converter: PyAV before 17 takes every video for BT.601."""
    named = _MATRICES.get(int(frame.colorspace))
    return {"src_colorspace": named, "dst_colorspace": "ITU601"} if named else {}


def _turned(pixels: Pixels, matrix: Matrix) -> Pixels:
    """Return the pixels turned and mirrored; they need not be contiguous then."""
    a, b, c, d = matrix
    if b:
        pixels, a, d = pixels.transpose(1, 0, 2), c, b
    return pixels[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1]
