"""Rules on videos."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import CheckedMedium, Hit, medium_rule
from mmprompt.media.inspection import VideoContent

_TINY = 32
"""Pixels. Models cut frames into patches of 14 to 32 pixels a side."""

_STILL_SECONDS = 1.0


def _video(medium: CheckedMedium) -> VideoContent | None:
    return medium.content if isinstance(medium.content, VideoContent) else None


@medium_rule("MM502", "video")
def wrong_frame_count(medium: CheckedMedium) -> Iterator[Hit]:
    """The header declares another number of frames than there are."""
    video = _video(medium)
    if video is not None and video.declared_frames not in (None, video.frames):
        what = f"the header of {medium.name} declares {video.declared_frames} frames, and {video.frames} are there"
        yield Hit(what, "encode it anew: players and samplers trust the header")


@medium_rule("MM503", "video")
def variable_rate(medium: CheckedMedium) -> Iterator[Hit]:
    """Frames follow one another at different distances, so frames taken by number are not even in time."""
    video = _video(medium)
    if video is not None and video.varies:
        hint = "encode it at a constant rate: ffmpeg -i IN -fps_mode cfr OUT"
        yield Hit(f"{medium.name} has a variable frame rate", hint)


@medium_rule("MM507", "video")
def tiny(medium: CheckedMedium) -> Iterator[Hit]:
    """The frames are too small to show anything."""
    video = _video(medium)
    if video is not None and min(video.width, video.height) < _TINY:
        yield Hit(f"{medium.name} has {video.width} x {video.height} pixels", "give the video in its own size")


@medium_rule("MM508", "video")
def blank(medium: CheckedMedium) -> Iterator[Hit]:
    """Each frame has one colour."""
    video = _video(medium)
    if video is not None and video.blank:
        yield Hit(f"each frame of {medium.name} has one colour", "give the video itself, or drop the row")


@medium_rule("MM510", "video")
def single_frame(medium: CheckedMedium) -> Iterator[Hit]:
    """A video of one frame is a picture."""
    video = _video(medium)
    if video is not None and video.frames == 1:
        yield Hit(f"{medium.name} has one frame", "send it as an image")


@medium_rule("MM511", "video")
def still(medium: CheckedMedium) -> Iterator[Hit]:
    """Nothing moves: the frames look the same."""
    video = _video(medium)
    if video is not None and video.still and not video.blank and (video.seconds or _STILL_SECONDS) >= _STILL_SECONDS:
        yield Hit(f"nothing moves in {medium.name}: its frames look the same", "send one frame as an image")


@medium_rule("MM512", "video")
def rotated(medium: CheckedMedium) -> Iterator[Hit]:
    """The file asks players to turn it; samplers of frames often do not."""
    video = _video(medium)
    if video is not None and video.rotation:
        what = f"{medium.name} is stored turned: players turn it by {video.rotation} degrees"
        yield Hit(what, "encode it upright, or send its frames: --frames N turns them")
