"""Opens video files so that nothing but the given bytes can be read, and returns facts from their headers.

The signature decides the kind. PyAV then gets a nameless file, the demuxers of that kind alone, no protocol, and no
decoder until the size of the picture is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import SourceError
from mmprompt.media.ffmpeg import Watch, first_tick, open_bytes
from mmprompt.media.media_types import Kind, any_type
from mmprompt.media.policy import MediaPolicy, limit_error
from mmprompt.media.type_check import known_kind

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_CODECS = frozenset((
    "av1", "cinepak", "dnxhd", "dvvideo", "ffv1", "flv", "h261", "h263", "h264", "hevc", "huffyuv", "libdav1d",
    "libvpx", "libvpx-vp9", "mjpeg", "mpeg1video", "mpeg2video", "mpeg4", "msmpeg4v2", "msmpeg4v3", "msvideo1", "png",
    "prores", "qtrle", "rawvideo", "rpza", "svq1", "svq3", "theora", "utvideo", "vc1", "vp6f", "vp8", "vp9", "wmv1",
    "wmv2", "wmv3",
))  # fmt: skip
_CODEC_NAMES = {"libdav1d": "av1", "libvpx": "vp8", "libvpx-vp9": "vp9"}
_STILLS = frozenset(("mjpeg", "png"))
_BLOCKS = 1 << 18
_CUT_SECONDS, _CUT_SHARE = 1.0, 0.1


class VideoFacts(NamedTuple):
    """Facts from the header of a video, and its rotation from the first frame.

    ``container`` is the kind of the file (``MP4``), ``codec`` FFmpeg's name for that of its picture (``h264``).
    ``width`` and ``height`` are pixels as coded, before ``rotation``, the degrees (0, 90, 180, 270) that a player turns
    it clockwise. ``seconds``, ``frames`` and ``fps`` (the average) are as declared, None if the file declares nothing.
    """

    container: str
    codec: str
    width: int
    height: int
    rotation: int
    seconds: float | None
    frames: int | None
    fps: float | None
    has_audio: bool


class OpenVideo(NamedTuple):
    """An open video file: its kind, PyAV's container, and its first video stream."""

    kind: Kind
    container: InputContainer
    stream: VideoStream


def watch_video(policy: MediaPolicy) -> Watch:
    """Return the watch over work on a video, its time counted from now."""
    return Watch(policy, "the video")


def video_facts(data: bytes, policy: MediaPolicy) -> VideoFacts:
    """Return the facts of a video without reading all of it; only its first frame is decoded.

    Raises:
        SourceError: not a video file, no video stream, or no frame that can be decoded.
        PolicyError: more pixels or seconds than the policy allows, checked before anything is decoded.
    """
    with open_video(data, policy) as (kind, container, stream):
        context = stream.codec_context
        rate = stream.average_rate
        facts = VideoFacts(
            container=kind.name,
            codec=_CODEC_NAMES.get(context.name, context.name),
            width=context.width,
            height=context.height,
            rotation=0,
            seconds=declared_seconds(container, stream, data),
            frames=stream.frames or None,
            fps=float(rate) if rate else None,
            has_audio=bool(container.streams.audio),
        )
        first = _first_frame(OpenVideo(kind, container, stream), policy)
        if not facts.width:
            facts = facts._replace(width=context.width, height=context.height)
        return facts._replace(rotation=rotation(display_matrix(first)))


@contextmanager
def open_video(data: bytes, policy: MediaPolicy) -> Iterator[OpenVideo]:
    """Open the bytes of a video file for the body of a ``with``; nothing is decoded yet.

    Raises:
        SourceError: the bytes are not a video file, or its video has a codec that is not decoded.
        PolicyError: the header states more pixels or seconds than the policy allows.
    """
    import av  # noqa: PLC0415  # heavy

    kind = _kind(data)
    options = {
        "format_whitelist": kind.demuxers,
        "protocol_whitelist": "",
        # decoders would run while the header is read, before anybody judged the size of the picture
        "codec_whitelist": "none",
    }
    try:
        container = open_bytes(data, kind, options, policy)
    except (av.FFmpegError, ValueError):
        raise SourceError(
            f"the {kind.name} file cannot be opened: it is cut, damaged, or of another format",
            "fetch it again, or encode it anew",
            code="MM500",
        ) from None
    with container:
        stream = _picture_stream(kind, container)
        _judge(container, stream, data, policy)
        # a header may lie about the size: the decoder holds the limit, with room for the blocks it rounds up to, and
        # each frame is judged again. explode: damage is an error, not a guess
        most = str(2 * policy.max_pixels + _BLOCKS)
        stream.codec_context.options = {"max_pixels": most, "err_detect": "explode"}
        # a decoder lives until the garbage collector finds it, as PyAV's streams and containers hold each other; with
        # one thread it starts no further thread that would live on
        stream.codec_context.thread_count = 1
        yield OpenVideo(kind, container, stream)


def _kind(data: bytes) -> Kind:
    kind = known_kind(data, "video", "give a video")
    if not (kind.video and kind.demuxers):
        hint = f"tag it as {any_type(kind).partition('/')[0]}, or name another file"
        raise SourceError(f"the video source is {kind.name}, not a video", hint, code="MM213")
    return kind


def _picture_stream(kind: Kind, container: InputContainer) -> VideoStream:
    """Return the first video stream. Cover art does not count."""
    for stream in container.streams.video:
        # a stream whose codec FFmpeg does not know has no context, whatever the types say
        context = getattr(stream, "codec_context", None)
        if context is None or _is_cover(stream):
            continue
        if context.name not in _CODECS:
            raise SourceError(
                f"the {kind.name} file has video of codec {context.name}", "convert it to H.264 in MP4", code="MM509"
            )
        return stream
    if container.streams.video and not all(map(_is_cover, container.streams.video)):
        raise SourceError(
            f"the {kind.name} file has video of an unknown codec", "convert it to H.264 in MP4", code="MM509"
        )
    found = "sound alone" if container.streams.audio else "no stream of pictures"
    raise SourceError(f"the {kind.name} file holds {found}", "tag it as audio, or name another file", code="MM501")


def _is_cover(stream: VideoStream) -> bool:
    disposition = getattr(stream, "disposition", None)
    if disposition is not None:
        return bool(disposition & type(disposition).attached_pic)
    context = getattr(stream, "codec_context", None)  # PyAV 14 does not tell
    return context is not None and context.name in _STILLS and not stream.frames and not stream.average_rate


def _judge(container: InputContainer, stream: VideoStream, data: bytes, policy: MediaPolicy) -> None:
    """Check the header against the policy."""
    # 0 where only the decoder will know, as for MPEG-4 in MP4: the decoder holds the limit
    watch_video(policy).check_size(stream.codec_context.width, stream.codec_context.height)
    check_seconds(declared_seconds(container, stream, data), policy)


def check_seconds(seconds: float | None, policy: MediaPolicy) -> None:
    """Refuse a video that is longer than the policy allows."""
    if seconds is not None and policy.max_seconds is not None and seconds > policy.max_seconds:
        raise limit_error(
            f"the video lasts {seconds:.1f} s, more than {policy.max_seconds:g} s", "max_seconds", "MM506"
        )


def declared_seconds(container: InputContainer, stream: VideoStream, data: bytes) -> float | None:
    """Return the declared length of the video stream, or else of the file; None if nothing is declared."""
    late = float(first_tick(data) * (stream.time_base or 0))  # Matroska counts from 0, wherever the first frame is
    if stream.duration is not None and stream.time_base:
        seconds = float(stream.duration * stream.time_base) - late
    elif container.duration is not None:
        seconds = container.duration / 1e6 - late
    else:
        return None
    return seconds if seconds > 0 else None


def check_whole(seconds: float, declared: float | None) -> None:
    """Refuse a video that is much shorter than declared: the end of the file is missing."""
    if declared is not None and declared - seconds > max(_CUT_SECONDS, _CUT_SHARE * declared):
        raise SourceError(
            f"the video is cut: {seconds:.1f} of {declared:.1f} s are there", "fetch the file again", code="MM505"
        )


def _first_frame(video: OpenVideo, policy: MediaPolicy) -> VideoFrame:
    import av  # noqa: PLC0415  # heavy

    watch = watch_video(policy)
    try:
        for walked, packet in enumerate(video.container.demux(video.stream)):
            watch.check_time()
            if walked > policy.max_frames:
                break
            try:
                frames = video.stream.codec_context.decode(packet)
            except av.error.InvalidDataError:
                continue  # a recording may begin between two key frames
            if frames:
                watch.check_size(frames[0].width, frames[0].height)
                return frames[0]
    except (av.FFmpegError, ValueError):
        pass
    raise no_frame(video, policy)


def no_frame(video: OpenVideo, policy: MediaPolicy) -> SourceError:
    """Return the error for a file that opens but has no frame."""
    unknown = "" if video.stream.codec_context.width else f", or one of more than {policy.max_pixels} pixels"
    return SourceError(
        f"the {video.kind.name} file has no frame that can be decoded{unknown}",
        "fetch it again, or encode it anew: it may be cut",
        code="MM500",
    )


Matrix = tuple[int, int, int, int]
"""Where a picture's axes go: (x, y) is shown at (a x + c y, b x + d y) for (a, b, c, d)."""

_AS_IS: Matrix = (1, 0, 0, 1)


def display_matrix(frame: VideoFrame) -> Matrix:
    """Return how to turn and mirror a frame; an angle that is not a multiple of 90 degrees is ignored."""
    # 3 x 3 numbers of 32 bits, a b u c d v x y w, those that count with 16 bits after the point (ISO 14496-12, 6.2.2)
    raw: Any = frame.side_data.get("DISPLAYMATRIX")
    if raw is None:
        return _AS_IS
    table = bytes(raw)
    a, b, c, d = (int.from_bytes(table[at : at + 4], "little", signed=True) for at in (0, 4, 12, 16))
    signs = tuple([0 if abs(value) < 1 << 12 else int(math.copysign(1, value)) for value in (a, b, c, d)])
    straight = abs(signs[0]) == abs(signs[3]) != abs(signs[1]) == abs(signs[2])
    return (signs[0], signs[1], signs[2], signs[3]) if straight else _AS_IS


def rotation(matrix: Matrix) -> int:
    """Return by how many degrees clockwise a matrix turns: 0, 90, 180 or 270."""
    a, b, _, _ = matrix
    return {(1, 0): 0, (0, 1): 90, (-1, 0): 180, (0, -1): 270}[a, b]
