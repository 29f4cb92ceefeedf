"""Which frames of a video are taken: arithmetic over presentation times, exact in the ticks of the file's clock."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from mmprompt.errors import SourceError

_FINEST, _COARSEST = Fraction(1, 1_000_000), Fraction(1, 1000)


class FrameChoice(NamedTuple):
    """Which frames are wanted, by the times at which they are shown.

    ``frames`` alone: so many times evenly spaced from the first frame's to the last frame's, both included (where the
    rate is constant, the frames that ``np.linspace(0, n - 1, frames, dtype=int)`` names, as vLLM and users of decord
    take them); one frame is the one in the middle. ``fps``: the times 0, 1/fps, 2/fps … before the end.
    ``key_frames``: all key frames, or the first frame if none is shown. With ``frames`` beside these two, at most so
    many of those, evenly. Each time gives the frame shown at it, and a frame is given once, so a video of fewer frames
    gives fewer. ``times``: the frames shown at these seconds, one for each, in that order. Times count from the first
    frame. A frame may begin later than asked by one tick of a clock of 1 ms or less, because files round.
    """

    frames: int | None = None
    fps: float | None = None
    key_frames: bool = False
    times: tuple[float, ...] = ()


class Timeline(NamedTuple):
    """The frames that a video shows, in order: when each begins, where the last ends, and which are key frames.

    ``ticks`` and ``end`` count ``tick`` seconds each, from any zero.
    """

    ticks: Sequence[int]
    end: int
    tick: Fraction
    keys: Sequence[int]

    def seconds(self, index: int) -> float:
        """Return when a frame begins, from the first one on."""
        return float((self.ticks[index] - self.ticks[0]) * self.tick)

    @property
    def length(self) -> float:
        """Seconds from the first frame to the end of the last."""
        return float((self.end - self.ticks[0]) * self.tick)


def choose(choice: FrameChoice, line: Timeline) -> list[int]:
    """Return the numbers of the chosen frames: ascending and each once, but for ``times`` one for each time."""
    if choice.times:
        return [_shown_at(at, line) for at in choice.times]
    if choice.key_frames:
        return _evenly(line.keys, choice.frames)
    if choice.fps is not None:
        step = 1 / (Fraction(str(choice.fps)) * line.tick)
        # what begins where the video ends is not shown
        return _evenly(_on_grid(line, step, line.end - line.ticks[0] - _grace(line)), choice.frames)
    span = line.ticks[-1] - line.ticks[0]
    count = choice.frames or 1
    if count == 1:
        return [_frame_at(Fraction(span, 2), line)]
    return _on_grid(line, Fraction(span, count - 1), Fraction(span)) if span else [0]


def _on_grid(line: Timeline, step: Fraction, until: Fraction) -> list[int]:
    """Return the frames that are shown at 0, step, 2 step … ticks, each once, in time that grows with their number."""
    ticks, grace = line.ticks, _grace(line)
    found: list[int] = []
    number = 0
    while not number or number * step <= until:
        index = _frame_at(number * step, line)
        found.append(index)
        if index + 1 == len(ticks):
            break
        number = max(number + 1, math.ceil((ticks[index + 1] - ticks[0] - grace) / step))
    return found


def _frame_at(at: Fraction, line: Timeline) -> int:
    """Return the frame that is shown ``at`` ticks after the first."""
    return bisect_right(line.ticks, line.ticks[0] + math.floor(at + _grace(line))) - 1


def _grace(line: Timeline) -> Fraction:
    """Return by how many ticks a frame may begin late: a fine clock rounds to a tick, and a float to much less."""
    return (line.tick if _FINEST < line.tick <= _COARSEST else _FINEST) / line.tick


def _shown_at(seconds: float, line: Timeline) -> int:
    at = Fraction(str(seconds)) / line.tick
    if at > line.end - line.ticks[0] + _grace(line):
        raise SourceError(
            f"at {seconds:g} s nothing is shown: the video lasts {line.length:.3f} s", "ask for less", code="MM200"
        )
    return _frame_at(at, line)


def _evenly(found: Sequence[int], count: int | None) -> list[int]:
    """Return at most ``count`` of the numbers, with the first and the last; the middle one if that is all."""
    return [found[at] for at in even_places(len(found), count)]


def even_places(size: int, count: int | None) -> list[int]:
    """Return at most ``count`` places of a list of ``size``, evenly spread with both ends; one alone is the middle."""
    if count is None or count >= size:
        return list(range(size))
    if count == 1:
        return [(size - 1) // 2]
    return [number * (size - 1) // (count - 1) for number in range(count)]
