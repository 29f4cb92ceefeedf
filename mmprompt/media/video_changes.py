"""What may be done to a video that was read: its frames as JPEG pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mmprompt.errors import PolicyError, SourceError, shown
from mmprompt.media.changes import Changes
from mmprompt.media.frame_choice import FrameChoice, even_places
from mmprompt.media.media_types import VIDEO_FRAMES
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video_frames import take_frames
from mmprompt.parts import MediaPart

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]

_LONGEST_JPEG_SIDE = 65535
_Sizes = dict[tuple[int, int], tuple[int, int]]


def change_video(part: MediaPart, changes: Changes, policy: MediaPolicy) -> MediaPart:
    """Return a video as the frames that were asked for: a part of type ``video/jpeg``; see ``video_frames``.

    ``frames``, ``fps``, ``key_frames`` and ``times`` choose them, ``max_side`` and ``max_pixels`` scale them down,
    ``quality`` is that of the JPEG. What is not asked for frames stays the same object: the file itself is never
    encoded again. Of a video that is single frames already, ``frames`` picks evenly, and only frames that are too large
    are encoded again.

    Raises:
        SourceError: the video cannot be decoded, has no frame at a time, or is frames without times while ``fps`` or
            ``times`` asks for times.
        PolicyError: it is more than the policy allows, or its frames are more than ``max_bytes``.
    """
    if part.modality != "video":
        return part
    if part.media_type == VIDEO_FRAMES:
        return _change_frames(part, changes, policy)
    choice = FrameChoice(changes.frames, changes.fps, changes.key_frames, tuple(changes.times))
    if choice == FrameChoice():
        return part
    _check(changes)
    sizes: _Sizes = {}
    taken = take_frames(part.data, policy, choice, lambda: _encoder(changes, policy, sizes))
    at = ", ".join([f"{seconds:.3f}".rstrip("0").rstrip(".") for seconds, _ in taken.frames])
    what = (
        f"{part.media_type} of {taken.seconds:.3f} s to {len(taken.frames)} JPEG frames at {at} s "
        f"({_asked(choice)}; quality {changes.quality})"
    )
    frames = tuple([data for _, data in taken.frames])
    return part._replace(
        media_type=VIDEO_FRAMES, data=b"", frames=frames, changes=(*part.changes, what, *_scalings(sizes, changes))
    )


def _change_frames(part: MediaPart, changes: Changes, policy: MediaPolicy) -> MediaPart:
    """Pick from single frames and scale them."""
    FrameChoice(frames=changes.frames or 1).check()
    if changes.fps is not None or changes.times:
        raise SourceError("the video is single frames, which carry no times", "ask for a number of frames")
    places = even_places(len(part.frames), changes.frames)
    notes: list[str] = []
    frames = part.frames
    if len(places) < len(frames):
        notes.append(f"{len(frames)} frames to {len(places)}: numbers {', '.join(map(str, places))} (frames)")
        frames = tuple([frames[place] for place in places])
    if changes.max_side is not None or changes.max_pixels is not None:
        _check(changes)
        sizes: _Sizes = {}
        frames = tuple([_smaller_frame(frame, changes, policy, sizes) for frame in frames])
        notes.extend(f"{scaling}, quality {changes.quality}" for scaling in _scalings(sizes, changes))
    return part._replace(frames=frames, changes=(*part.changes, *notes)) if notes else part


def _check(changes: Changes) -> None:
    for name, limit in (("max_side", changes.max_side), ("max_pixels", changes.max_pixels)):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise SourceError(f"{name} is {shown(limit)}", "give a positive whole number")
    if isinstance(changes.quality, bool) or not isinstance(changes.quality, int) or not 1 <= changes.quality <= 100:
        raise SourceError(f"the quality is {shown(changes.quality)}", "give a whole number from 1 to 100")


def _asked(choice: FrameChoice) -> str:
    """Return the choice in the words of ``Changes``."""
    named = (
        ("frames", choice.frames),
        ("fps", choice.fps),
        ("key_frames", choice.key_frames or None),
        ("times", choice.times or None),
    )
    return ", ".join(name if name in ("key_frames", "times") else f"{name}={value}" for name, value in named if value)


def _encoder(changes: Changes, policy: MediaPolicy, sizes: _Sizes) -> Callable[[Pixels], bytes]:
    """Return a function that makes JPEG of pixels; all that it makes together keeps to ``max_bytes``."""
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy, and its module has the name of its class

    room = policy.max_bytes
    sizes.clear()

    def encode(pixels: Pixels) -> bytes:
        nonlocal room
        data = _jpeg(pillow.fromarray(pixels), changes, sizes)
        room -= len(data)
        if room < 0:
            raise PolicyError(
                f"the frames have more than max_bytes ({policy.max_bytes})", "ask for fewer, or raise max_bytes"
            )
        return data

    return encode


def _smaller_frame(frame: bytes, changes: Changes, policy: MediaPolicy, sizes: _Sizes) -> bytes:
    """Return a JPEG frame scaled down, or as it is where it is small enough."""
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy, and its module has the name of its class

    try:
        with pillow.open(io.BytesIO(frame), formats=("JPEG",)) as image:
            if image.width * image.height > policy.max_pixels:
                raise PolicyError(
                    f"a frame has {image.width} x {image.height} pixels, more than {policy.max_pixels}",
                    "raise max_pixels to allow it",
                )
            if smaller_size(image.size, changes) == image.size:
                return frame
            return _jpeg(image if image.mode in ("RGB", "L") else image.convert("RGB"), changes, sizes)
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning):
        raise PolicyError(f"a frame has far more than {policy.max_pixels} pixels", "scale it down first") from None
    except (OSError, ValueError, SyntaxError) as error:
        raise SourceError(f"a frame cannot be decoded ({type(error).__name__})", "encode it again") from None


def _jpeg(image: Image, changes: Changes, sizes: _Sizes) -> bytes:
    from PIL.Image import Resampling  # noqa: PLC0415  # heavy

    size = smaller_size(image.size, changes)
    if size != image.size:
        sizes[image.size] = size
        image = image.resize(size, Resampling.LANCZOS)
    if max(image.size) > _LONGEST_JPEG_SIDE:
        raise SourceError(f"a frame of {image.width} x {image.height} fits no JPEG", "set max_side")
    buffer = io.BytesIO()
    # a frame that was a JPEG before keeps its colour profile and the way it is to be turned
    kept = {name: image.info[name] for name in ("exif", "icc_profile") if image.info.get(name)}
    image.save(buffer, "JPEG", quality=changes.quality, **kept)
    return buffer.getvalue()


def smaller_size(size: tuple[int, int], changes: Changes) -> tuple[int, int]:
    """Return the largest size of the same shape that keeps to ``max_side`` and ``max_pixels``; never a larger one."""
    width, height = size
    scale = 1.0
    if changes.max_side is not None:
        scale = min(scale, changes.max_side / max(size))
    if changes.max_pixels is not None:
        scale = min(scale, math.sqrt(changes.max_pixels / (width * height)))
    if scale == 1.0:
        return size
    found = [max(1, math.floor(side * scale + 1e-6)) for side in size]
    if changes.max_pixels is not None and found[0] * found[1] > changes.max_pixels:
        # a side of one pixel that could not shrink further
        long = 0 if found[0] > found[1] else 1
        found[long] = max(1, changes.max_pixels // found[1 - long])
    return found[0], found[1]


def _scalings(sizes: _Sizes, changes: Changes) -> Iterable[str]:
    why = " and ".join(name for name in ("max_side", "max_pixels") if getattr(changes, name) is not None)
    return [f"{old[0]}x{old[1]} to {new[0]}x{new[1]} ({why})" for old, new in sizes.items()]
