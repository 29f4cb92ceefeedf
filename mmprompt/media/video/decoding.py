"""Decodes frames of a video: when each is shown, and no more packets than the wanted frames need.

The packets are walked first, undecoded: that gives the exact time of every frame, also where the frame rate varies,
and where each stretch begins that can be decoded alone. Then only the stretches that hold a wanted frame are decoded,
each from its key frame to the frame. Where the packets do not tell the truth about the frames (AVI, frames that are
never shown, damage), the whole video is decoded in order instead, once to learn the times, once for the pictures.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.ffmpeg import Watch
from mmprompt.media.policy import MediaPolicy, limit_error
from mmprompt.media.video.frame_choice import Timeline
from mmprompt.media.video.reading import OpenVideo, check_seconds, no_frame

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.frame import VideoFrame

Take = Callable[["VideoFrame"], Any]

_PLAIN_REFERENCES = frozenset(("h264", "mpeg1video", "mpeg2video", "mpeg4"))
"""Codecs in which no frame needs a frame that is marked as non-reference. In HEVC, layers above may need it."""


def walk(video: OpenVideo, policy: MediaPolicy, watch: Watch) -> list[Packet[Any]]:
    """Return the packets of the picture in the order of decoding, from the first key frame on."""
    import av  # noqa: PLC0415  # heavy

    packets: list[Packet[Any]] = []
    try:
        # all streams, so that the deadline is looked at among the packets of the others, too
        for packet in video.container.demux():
            watch.check_time()
            if packet.stream_index == video.stream.index and packet.size:
                watch.keep(packet.size)
                packets.append(packet)
                if len(packets) > policy.max_frames:
                    raise _too_many_frames(policy)
    except (av.FFmpegError, ValueError) as error:
        raise SourceError(
            f"the {video.kind.name} file cannot be read after {len(packets)} frames ({type(error).__name__})",
            "fetch it again: it may be cut",
            code="MM500",
        ) from None
    first = next((at for at, packet in enumerate(packets) if packet.is_keyframe), 0)
    check_seconds(_span(packets), policy)
    return packets[first:]


def _span(packets: list[Packet[Any]]) -> float | None:
    """Return the seconds between the first and the last time that the packets state."""
    stated = [packet.pts for packet in packets if packet.pts is not None and not packet.is_discard]
    if not stated or not packets[0].time_base:
        return None
    return float((max(stated) - min(stated)) * packets[0].time_base)


def packet_timeline(video: OpenVideo, packets: list[Packet[Any]]) -> Timeline | None:
    """Return the timeline that the packets state; None if it cannot be right."""
    shown = [packet for packet in packets if not packet.is_discard]
    stated = {packet.pts: packet for packet in shown if packet.pts is not None}
    if not shown or len(stated) != len(shown) or not video.stream.time_base:
        return None
    ticks = sorted(stated)
    end = ticks[-1] + (stated[ticks[-1]].duration or _usual_gap(ticks))
    keys = [at for at, tick in enumerate(ticks) if stated[tick].is_keyframe]
    # an edit list may hide the only key frame: what is shown first stands for it
    return Timeline(ticks, end, Fraction(video.stream.time_base), keys or [0])


def _too_many_frames(policy: MediaPolicy) -> PolicyError:
    return limit_error(f"the video has more than {policy.max_frames} frames", "max_frames", "MM506")


def _usual_gap(ticks: list[int]) -> int:
    return max(1, (ticks[-1] - ticks[0]) // (len(ticks) - 1)) if len(ticks) > 1 else 1


class _Stretch(NamedTuple):
    """Packets ``start`` to ``stop`` (without it), from a key frame on, and the ticks of the frames wanted in there."""

    start: int
    stop: int
    ticks: frozenset[int]


def _stretches(packets: list[Packet[Any]], wanted: list[int]) -> Iterator[_Stretch]:
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


def by_stretches(
    video: OpenVideo, packets: list[Packet[Any]], wanted: dict[int, int], take: Take, watch: Watch
) -> dict[int, Any] | None:
    """Decode only the packets that the wanted frames need; None if one of them does not come out whole.

    ``wanted`` maps the tick of each wanted frame to its number; the result maps that number to what ``take`` made.
    """
    made: dict[int, Any] = {}
    for stretch in _stretches(packets, sorted(wanted)):
        missing = set(stretch.ticks)
        for frame in _decoded(video, _needed(video, packets, stretch), watch):
            if frame is None or (frame.pts in missing and frame.is_corrupt):
                return None
            if frame.pts in missing:
                missing.discard(frame.pts)
                made[wanted[frame.pts]] = take(frame)
        if missing:
            return None
        video.stream.codec_context.flush_buffers()
    return made


def _needed(video: OpenVideo, packets: list[Packet[Any]], stretch: _Stretch) -> Iterator[Packet[Any]]:
    """Yield the packets that the wanted frames of a stretch may need, and set the decoder for each."""
    context = video.stream.codec_context
    begin = packets[stretch.start].pts or 0
    just_wanted = False
    for packet in packets[stretch.start : stretch.stop]:
        if stretch.start and packet.pts is not None and packet.pts < begin:
            continue  # it leans on the stretch before, which was not decoded; nothing wanted leans on it
        if context.name in _PLAIN_REFERENCES:
            # frames that no other needs are left out; the second field of a wanted frame may be a separate packet
            wanted = packet.pts in stretch.ticks
            context.skip_frame = "DEFAULT" if wanted or just_wanted else "NONREF"
            just_wanted = wanted
        yield packet
    context.skip_frame = "DEFAULT"


def _decoded(video: OpenVideo, packets: Iterable[Packet[Any]], watch: Watch) -> Iterator[VideoFrame | None]:
    """Yield the frames of these packets, and None for each damaged packet."""
    import av  # noqa: PLC0415  # heavy

    context = video.stream.codec_context
    for packet in itertools.chain(packets, (None,)):
        watch.check_time()
        if packet is not None and packet.is_corrupt:
            yield None
            continue
        try:
            frames = context.decode(packet)
        except av.FFmpegError:
            yield None
            continue
        for frame in frames:
            watch.check_size(frame.width, frame.height)
            yield frame


def decoded_timeline(video: OpenVideo, packets: list[Packet[Any]], policy: MediaPolicy, watch: Watch) -> Timeline:
    """Decode everything in order and return the times of the frames."""
    stated: list[int | None] = []
    decoded: list[int | None] = []
    keys: list[int] = []
    for frame in _shown(video, packets, watch):
        if frame.key_frame:
            keys.append(len(stated))
        stated.append(frame.pts if frame.pts is not None else frame.dts)
        decoded.append(frame.dts)
        if len(stated) > policy.max_frames:
            raise _too_many_frames(policy)
    if not stated:
        raise no_frame(video, policy)
    if _steps_back(decoded) < _steps_back(stated):
        stated = decoded  # AVI has times of decoding only, which then stand in the place of those of presentation
    tick = Fraction(video.stream.time_base or Fraction(1, 1000))
    rate = video.stream.average_rate
    ticks = _filled(stated, max(1, round(1 / (rate * tick))) if rate else 1)
    return Timeline(ticks, ticks[-1] + _usual_gap(ticks), tick, keys or [0])


def _steps_back(ticks: list[int | None]) -> int:
    known = [tick for tick in ticks if tick is not None]
    return sum(after <= before for before, after in itertools.pairwise(known)) + len(ticks) - len(known)


def _filled(stated: list[int | None], gap: int) -> list[int]:
    """Return the times of frames, those that are not stated ``gap`` from the one before; time never runs back."""
    known = next((at for at, tick in enumerate(stated) if tick is not None), 0)
    last = (stated[known] or 0) - gap * (known + 1)
    ticks = []
    for tick in stated:
        last = last + gap if tick is None else max(last, tick)
        ticks.append(last)
    return ticks


def in_order(
    video: OpenVideo, packets: list[Packet[Any]], wanted: set[int], take: Take, watch: Watch
) -> dict[int, Any]:
    """Decode everything in order and return what is made of the frames with these numbers."""
    return {number: take(frame) for number, frame in enumerate(_shown(video, packets, watch)) if number in wanted}


def _shown(video: OpenVideo, packets: list[Packet[Any]], watch: Watch) -> Iterator[VideoFrame]:
    """Yield all frames in order."""
    last = None
    video.stream.codec_context.flush_buffers()
    for frame in _decoded(video, packets, watch):
        if frame is not None and not frame.is_corrupt:
            last = frame
            yield frame
        elif last is not None:
            at = f" after {last.time:.2f} s" if last.time is not None else ""
            raise SourceError(f"the video is damaged{at}", "fetch the file again, or encode it anew", code="MM500")
