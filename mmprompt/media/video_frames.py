"""Frames of a video by the times at which they are shown.

All packets are walked first, undecoded: that gives the exact time of every frame, also where the frame rate varies,
and where each stretch begins that can be decoded alone. Then only the stretches that hold a wanted frame are decoded,
each from its key frame to the frame. Where the packets do not tell the truth about the frames (AVI, frames that are
never shown, damage), the whole video is decoded in order instead, once to learn the times, once for the pictures.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.frame_choice import FrameChoice, Timeline, choose
from mmprompt.media.media_types import AVI
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video import (
    Deadline,
    OpenVideo,
    check_seconds,
    check_whole,
    declared_seconds,
    display_matrix,
    no_frame,
    open_video,
)

if TYPE_CHECKING:
    import numpy as np
    from av.packet import Packet
    from av.video.frame import VideoFrame

_T = TypeVar("_T")
Pixels = Any  # NumPy's array of uint8, (height, width, 3); NumPy is not loaded here

KEPT_PICTURES = 8
"""The frames that one call returns may together have this many times ``max_pixels`` pixels."""


class Frame(NamedTuple):
    """A frame: seconds from the first frame of the video to it, and its pixels, (height, width, 3), uint8, RGB."""

    seconds: float
    image: np.ndarray[Any, np.dtype[np.uint8]]


class Taken(NamedTuple):
    """What ``take_frames`` found: how long the video is, and of each chosen frame its second and what was made of it."""

    seconds: float
    frames: list[tuple[float, Any]]


def video_frames(
    data: bytes,
    policy: MediaPolicy,
    *,
    count: int | None = None,
    fps: float | None = None,
    key_frames: bool = False,
    times: tuple[float, ...] = (),
) -> list[Frame]:
    """Return frames of a video by the times at which they are shown, turned as a player turns them.

    ``count`` alone: so many times evenly spaced from the first frame's to the last frame's, both included (what
    ``np.linspace(0, n - 1, count)`` gives where the rate is constant, as vLLM and decord's users do); one frame is the
    one in the middle. ``fps``: the times 0, 1/fps, 2/fps … before the end. ``key_frames``: all key frames. With
    ``count`` beside them, at most so many of those, evenly. Each time gives the frame shown at it, and a frame is
    given once, so a video of fewer frames gives fewer. ``times``: the frames shown at these seconds, one for each, in
    that order. Times count from the first frame; a frame may begin later than asked by one tick of the file's clock,
    at most 1 ms, because files round.

    Pixels that are not square are not stretched.

    Raises:
        SourceError: no video, a cut one, a wanted frame that is damaged, or a time at which nothing is shown.
        PolicyError: more pixels, seconds, frames or time than the policy allows; or the frames together have more than
            8 times ``max_pixels`` pixels.
    """
    room = KEPT_PICTURES * policy.max_pixels

    def keep(pixels: Pixels) -> Pixels:
        nonlocal room
        room -= pixels.shape[0] * pixels.shape[1]
        if room < 0:
            raise PolicyError(
                f"the frames have together more than {KEPT_PICTURES} x max_pixels ({policy.max_pixels}) pixels",
                "ask for fewer frames, or raise max_pixels to allow it",
            )
        return pixels

    taken = take_frames(data, policy, FrameChoice(count, fps, key_frames, tuple(times)), keep)
    return [Frame(seconds, image) for seconds, image in taken.frames]


def take_frames(data: bytes, policy: MediaPolicy, choice: FrameChoice, take: Callable[[Pixels], object]) -> Taken:
    """Return what ``take`` makes of the pixels of each chosen frame; see ``video_frames``.

    ``take`` is called once a frame, as soon as it is decoded, so that not all pixels need be held.
    """
    choice.check()
    with open_video(data, policy) as video:
        deadline = Deadline(policy)
        declared = declared_seconds(video.container, video.stream)
        packets = _walk(video, policy, deadline)
        if not packets:
            raise no_frame(video)
        line = None if video.kind is AVI else _packet_timeline(video, packets)
        if line is not None:
            check_whole(line.length, declared)
            wanted = choose(choice, line)
            made = _by_stretches(video, packets, line, set(wanted), _Taker(take, deadline))
            if made is not None:
                return Taken(line.length, [(line.seconds(index), made[index]) for index in wanted])
        line = _decoded_timeline(video, packets, policy, deadline)
        check_whole(line.length, declared)
        check_seconds(line.length, policy)
        wanted = choose(choice, line)
        made = _in_order(video, packets, set(wanted), _Taker(take, deadline))
        return Taken(line.length, [(line.seconds(index), made[index]) for index in wanted])


def _walk(video: OpenVideo, policy: MediaPolicy, deadline: Deadline) -> list[Packet]:
    """Return the packets of the picture in the order of decoding, from the first key frame on."""
    import av  # noqa: PLC0415  # heavy

    packets: list[Packet] = []
    try:
        # all streams, so that the deadline is looked at among the packets of the others, too
        for packet in video.container.demux():
            deadline.check()
            if packet.stream_index == video.stream.index and packet.size:
                packets.append(packet)
                if len(packets) > policy.max_frames:
                    raise PolicyError(
                        f"the video has more than {policy.max_frames} frames", "raise max_frames to allow it"
                    )
    except (av.FFmpegError, ValueError) as error:
        raise SourceError(
            f"the {video.kind.name} file cannot be read after {len(packets)} frames ({type(error).__name__})",
            "it may be cut: fetch it again",
        ) from None
    first = next((at for at, packet in enumerate(packets) if packet.is_keyframe), 0)
    span = _span(packets)
    check_seconds(span, policy)
    return packets[first:]


def _span(packets: list[Packet]) -> float | None:
    """Return the seconds between the first and the last time that the packets state."""
    stated = [packet.pts for packet in packets if packet.pts is not None and not packet.is_discard]
    if not stated or packets[0].time_base is None:
        return None
    return float((max(stated) - min(stated)) * packets[0].time_base)


def _packet_timeline(video: OpenVideo, packets: list[Packet]) -> Timeline | None:
    """Return the timeline that the packets state; None where they state none that could be right."""
    shown = [packet for packet in packets if not packet.is_discard]
    stated = {packet.pts: packet for packet in shown if packet.pts is not None}
    if not shown or len(stated) != len(shown) or video.stream.time_base is None:
        return None
    ticks = sorted(stated)
    end = ticks[-1] + (stated[ticks[-1]].duration or _usual_gap(ticks))
    keys = [at for at, tick in enumerate(ticks) if stated[tick].is_keyframe]
    return Timeline(ticks, end, Fraction(video.stream.time_base), keys)


def _usual_gap(ticks: list[int]) -> int:
    return max(1, (ticks[-1] - ticks[0]) // (len(ticks) - 1)) if len(ticks) > 1 else 1


class _Taker:
    """Makes something of frames, one at a time: their pixels are turned and handed on."""

    __slots__ = ("_take", "deadline")

    def __init__(self, take: Callable[[Pixels], Any], deadline: Deadline) -> None:
        self._take = take
        self.deadline = deadline

    def __call__(self, frame: VideoFrame) -> Any:
        """Return what is made of a frame."""
        return self._take(_upright(frame.to_ndarray(format="rgb24"), frame))


def _upright(pixels: Pixels, frame: VideoFrame) -> Pixels:
    """Return the pixels turned and mirrored as the frame says; they need not be contiguous then."""
    a, b, c, d = display_matrix(frame)
    if b:
        pixels, a, d = pixels.transpose(1, 0, 2), c, b
    return pixels[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1]


class _Stretch(NamedTuple):
    """Packets ``start`` to ``stop`` (without it), from a key frame on, and the ticks of the frames wanted in there."""

    start: int
    stop: int
    ticks: frozenset[int]


def _stretches(packets: list[Packet], wanted: list[int]) -> Iterator[_Stretch]:
    """Group the wanted ticks (ascending) by the key frame from which they can be decoded."""
    place = {packet.pts: at for at, packet in enumerate(packets)}
    keys = [at for at, packet in enumerate(packets) if packet.is_keyframe] or [0]
    groups: dict[int, list[int]] = {}
    for tick in wanted:
        last = bisect_right(keys, place[tick]) - 1
        # a frame that is shown before the key frame it follows in the file leans on the one before that
        while last > 0 and (packets[keys[last]].pts or 0) > tick:
            last -= 1
        groups.setdefault(keys[max(last, 0)], []).append(tick)
    for start, ticks in groups.items():
        yield _Stretch(start, max(place[tick] for tick in ticks) + 1, frozenset(ticks))


def _by_stretches(
    video: OpenVideo, packets: list[Packet], line: Timeline, wanted: set[int], take: _Taker
) -> dict[int, Any] | None:
    """Decode only what the wanted frames need; None where one of them does not come out whole."""
    made: dict[int, Any] = {}
    number = {line.ticks[index]: index for index in wanted}
    context = video.stream.codec_context
    for stretch in _stretches(packets, sorted(number)):
        start = packets[stretch.start].pts or 0
        run = packets[stretch.start : stretch.stop]
        # frames of the stretch before, which lean on what was not decoded
        leading = [stretch.start > 0 and packet.pts is not None and packet.pts < start for packet in run]
        missing = set(stretch.ticks)
        for frame in _decoded(video, [p for p, skipped in zip(run, leading, strict=True) if not skipped], take.deadline):
            if frame is None or (frame.pts in missing and frame.is_corrupt):
                return None
            if frame.pts in missing:
                missing.discard(frame.pts)
                made[number[frame.pts]] = take(frame)
        if missing:
            return None
        context.flush_buffers()
    return made


def _decoded(video: OpenVideo, packets: list[Packet], deadline: Deadline) -> Iterator[VideoFrame | None]:
    """Yield the frames of these packets, all that come out, and None for each packet that is damaged."""
    import av  # noqa: PLC0415  # heavy

    context = video.stream.codec_context
    for packet in [*packets, None]:
        deadline.check()
        if packet is not None and packet.is_corrupt:
            yield None
            continue
        try:
            yield from context.decode(packet)
        except av.FFmpegError:
            yield None


def _decoded_timeline(video: OpenVideo, packets: list[Packet], policy: MediaPolicy, deadline: Deadline) -> Timeline:
    """Decode everything in order and return the times of what comes out."""
    ticks: list[int] = []
    keys: list[int] = []
    tick = Fraction(video.stream.time_base or Fraction(1, 1000))
    for frame in _shown(video, packets, deadline):
        stated = frame.pts if frame.pts is not None else frame.dts
        # a frame without a time comes a usual step after the one before
        at = stated if stated is not None else (ticks[-1] + _usual_gap(ticks) if ticks else 0)
        if frame.key_frame:
            keys.append(len(ticks))
        ticks.append(max(at, ticks[-1]) if ticks else at)
        if len(ticks) > policy.max_frames:
            raise PolicyError(f"the video has more than {policy.max_frames} frames", "raise max_frames to allow it")
    if not ticks:
        raise no_frame(video)
    return Timeline(ticks, ticks[-1] + _usual_gap(ticks), tick, keys or [0])


def _in_order(video: OpenVideo, packets: list[Packet], wanted: set[int], take: _Taker) -> dict[int, Any]:
    """Decode everything in order and return what is made of the frames with these numbers."""
    return {
        number: take(frame)
        for number, frame in enumerate(_shown(video, packets, take.deadline))
        if number in wanted
    }


def _shown(video: OpenVideo, packets: list[Packet], deadline: Deadline) -> Iterator[VideoFrame]:
    """Yield all frames in order.

    Raises:
        SourceError: one is damaged; before the first whole one that is no fault, as recordings begin anywhere.
    """
    last = None
    video.stream.codec_context.flush_buffers()
    for frame in _decoded(video, packets, deadline):
        if frame is not None and not frame.is_corrupt:
            last = frame
            yield frame
        elif last is not None:
            at = f" after {last.time:.2f} s" if last.time is not None else ""
            raise SourceError(f"the video is damaged{at}", "fetch the file again, or encode it anew")
