"""The frames of a video that a choice takes, as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video.frame_choice import FrameChoice
from mmprompt.media.video.frames import take_frames


class Frame(NamedTuple):
    """When a frame is shown, in seconds, and its pixels."""

    seconds: float
    image: np.ndarray[Any, np.dtype[np.uint8]]


def video_frames(data: bytes, policy: MediaPolicy, count: int | None = None, **choice: Any) -> list[Frame]:
    """Return the frames of a ``FrameChoice``."""
    taken = take_frames(data, policy, FrameChoice(count, **choice), lambda: lambda pixels: pixels)
    return [Frame(*frame) for frame in taken.frames]
