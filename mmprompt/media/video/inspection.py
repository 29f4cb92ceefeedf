"""What a video holds, from its header, its packets and its frames."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mmprompt.media.image.reading import decode_image
from mmprompt.media.inspection import VideoContent
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video.decoding import decoded_timeline, packet_timeline, walk
from mmprompt.media.video.frame_choice import FrameChoice, Timeline, even_places
from mmprompt.media.video.frames import take_frames
from mmprompt.media.video.reading import no_frame, open_video, video_facts, watch_video

if TYPE_CHECKING:
    import numpy as np

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]

_LOOKED_AT = 8
"""Frames that are compared with one another."""

_WHOLE = 500_000_000
"""Pixels of all frames together up to which every frame is decoded: a few seconds of work. Of longer videos the key
frames are decoded, so damage between them is not seen."""

_SIDE = 32
_FLAT = 6
"""Levels of 255. A frame whose areas differ less from one another has one colour: noise is averaged out of an area, and
a few letters on a page are not."""

_SAME = 4
"""Levels of 255. Frames of which no area differs by more look the same."""

_UNEVEN = 0.25
"""A distance between frames that differs by more than this share from the usual one is another distance."""


def inspect_video(data: bytes, policy: MediaPolicy) -> VideoContent:
    """Decode a video and return what it holds; see ``inspect``."""
    facts = video_facts(data, policy)
    with open_video(data, policy) as video:
        packets = walk(video, policy, watch_video(policy))
        if not packets:
            raise no_frame(video, policy)
        line = packet_timeline(video, packets)
        if line is None or len(packets) * facts.width * facts.height <= _WHOLE:
            decoded = decoded_timeline(video, packets, policy, watch_video(policy))
            line = line or decoded
    taken = take_frames(data, policy, FrameChoice(_LOOKED_AT, key_frames=len(line.keys) > 1), lambda: _small)
    look = _look([small for _, small in taken.frames])
    return VideoContent(
        facts.container, facts.codec, facts.width, facts.height, len(line.ticks), facts.frames, taken.seconds,
        _varies(line), facts.rotation, facts.has_audio, *look,
    )  # fmt: skip


def inspect_frames(frames: Sequence[bytes], policy: MediaPolicy) -> VideoContent:
    """Decode the single frames of a video and return what they hold; see ``inspect``."""
    import numpy as np  # noqa: PLC0415  # heavy

    chosen = set(even_places(len(frames), _LOOKED_AT))
    small, size = [], (0, 0)
    for number, frame in enumerate(frames):
        picture = decode_image(frame, policy)  # each one, so that damage is found
        size = picture.size
        if number in chosen:
            small.append(_small(np.asarray(picture.convert("RGB"))))
    return VideoContent("frames", "", *size, len(frames), None, None, False, 0, False, *_look(small))


def _small(pixels: Pixels) -> Pixels:
    """Return a picture as about 32 x 32 averages of its areas."""
    import numpy as np  # noqa: PLC0415  # heavy
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy

    height, width = pixels.shape[:2]
    return np.asarray(pillow.fromarray(pixels).reduce((max(1, width // _SIDE), max(1, height // _SIDE))))


def _look(frames: Sequence[Pixels]) -> tuple[bool, bool]:
    """Return whether each frame has one colour, and whether they look the same."""
    import numpy as np  # noqa: PLC0415  # heavy

    levels = [frame.astype(np.int16) for frame in frames]
    blank = all(int(np.ptp(frame, axis=(0, 1)).max()) < _FLAT for frame in levels)
    still = len(levels) > 1 and all(
        one.shape == other.shape and int(np.abs(one - other).max()) <= _SAME for one, other in pairwise(levels)
    )
    return blank, still


def _varies(line: Timeline) -> bool:
    """Return whether more than one in ten frames stands at another distance from the one before than usual."""
    gaps = sorted(after - before for before, after in pairwise(line.ticks))
    if not gaps:
        return False
    usual = gaps[len(gaps) // 2]
    other = sum(abs(gap - usual) > max(1, _UNEVEN * usual) for gap in gaps)
    return other * 10 > len(gaps)
