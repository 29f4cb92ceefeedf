"""Changes a video: to frames as JPEG pictures, or to its sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.audio.encoders import to_16_bits
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.audio.wav import wav_file
from mmprompt.media.changes import Changes
from mmprompt.media.ffmpeg import is_whole
from mmprompt.media.image.changes import change_image, scaled, why_size
from mmprompt.media.image.pixels import encoded, size_within
from mmprompt.media.media_types import VIDEO_FRAMES
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video.frame_choice import FrameChoice, even_places
from mmprompt.media.video.frames import take_frames
from mmprompt.media.video.reading import check_whole, video_facts
from mmprompt.messages import MediaPart

if TYPE_CHECKING:
    import numpy as np

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def change_video(part: MediaPart, changes: Changes, policy: MediaPolicy) -> MediaPart:
    """Return a video as the frames that were asked for: a part of type ``video/jpeg``; see ``FrameChoice``.

    ``frames``, ``fps``, ``key_frames`` and ``times`` choose the frames, ``max_side`` and ``max_pixels`` scale them
    down, ``quality`` is the JPEG quality. If no frames are asked for, the part stays the same object: video files are
    never encoded again. Of a video of single frames, ``frames`` picks some evenly, and only frames that are too large
    are encoded again. ``sound_track`` returns the sound as WAV in a part that is still a video.

    Raises:
        SourceError: the video cannot be decoded, has no frame at a time, or is frames without times while ``fps`` or
            ``times`` asks for times; or its sound is asked for and it has none.
        PolicyError: it is more than the policy allows, or its frames are more than ``max_bytes``.
    """
    if part.modality != "video":
        return part
    if changes.sound_track:
        return _sound(part, policy)
    if part.media_type == VIDEO_FRAMES:
        return _change_frames(part, changes, policy)
    choice = FrameChoice(changes.frames, changes.fps, changes.key_frames, tuple(changes.times))
    if choice == FrameChoice():
        return part
    notes: dict[str, None] = {}

    def size_of(width: int, height: int) -> tuple[int, int]:
        size = size_within(width, height, changes.max_side, changes.max_pixels)
        if size != (width, height):
            notes[scaled((width, height), size, why_size(changes.max_side, changes.max_pixels))] = None
        return size

    taken = take_frames(part.data, policy, choice, lambda: _encoder(changes, policy, notes), size_of)
    at = ", ".join([f"{seconds:.3f}".rstrip("0").rstrip(".") for seconds, _ in taken.frames])
    what = (
        f"{part.media_type} of {taken.seconds:.3f} s to {len(taken.frames)} JPEG frames at {at} s "
        f"({_asked(choice)}; quality {changes.quality})"
    )
    frames = tuple([data for _, data in taken.frames])
    return part._replace(media_type=VIDEO_FRAMES, data=b"", frames=frames, changes=(*part.changes, what, *notes))


def _sound(part: MediaPart, policy: MediaPolicy) -> MediaPart:
    if part.media_type == VIDEO_FRAMES:
        raise SourceError("the video is single frames, which have no sound", "give the video file", code="MM200")
    data = sound_track(part.data, policy)
    note = f"the sound of {part.media_type} as WAV, 16-bit PCM (sound_track)"
    return part._replace(media_type="audio/wav", data=data, changes=(*part.changes, note))


def sound_track(data: bytes, policy: MediaPolicy) -> bytes:
    """Return the first sound of a video as a WAV file: 16 bits, the rate and channels it has, from its first sample.

    Raises:
        SourceError: not a video, a video without sound, or a sound that is damaged, cut, or of an odd rate.
        PolicyError: more seconds or time than the policy allows, or a WAV file of more than ``max_bytes``.
    """
    container = video_facts(data, policy).container
    facts = audio_facts(data, policy)
    sound = decode_audio(data, policy)
    if sound.broken:
        raise SourceError(
            f"the sound of the {container} file is damaged", "fetch the file again, or encode it anew", code="MM400"
        )
    if facts.seconds is not None and not is_whole(data):
        check_whole(len(sound.samples) / sound.rate, facts.seconds)
    if sound.samples.size * 2 > policy.max_bytes:
        raise PolicyError(
            f"the sound as WAV has more than max_bytes ({policy.max_bytes})", "raise max_bytes", code="MM211"
        )
    return wav_file(to_16_bits(sound.samples), sound.rate)[0]


def _change_frames(part: MediaPart, changes: Changes, policy: MediaPolicy) -> MediaPart:
    """Pick from single frames and scale them."""
    if changes.fps is not None or changes.times:
        raise SourceError(
            "the video is single frames, which carry no times", "ask for a number of frames", code="MM200"
        )
    places = even_places(len(part.frames), changes.frames)
    if len(places) < len(part.frames):
        note = f"{len(part.frames)} frames to {len(places)}: numbers {', '.join(map(str, places))} (frames)"
        frames = tuple([part.frames[place] for place in places])
        part = part._replace(frames=frames, changes=(*part.changes, note))
    return change_image(part, changes, policy)


def _asked(choice: FrameChoice) -> str:
    """Return the choice in the words of ``Changes``."""
    named = choice._asdict().items()
    return ", ".join(name if name in ("key_frames", "times") else f"{name}={value}" for name, value in named if value)


def _encoder(changes: Changes, policy: MediaPolicy, notes: dict[str, None]) -> Callable[[Pixels], bytes]:
    """Return a function that encodes pixels as JPEG; all its results together keep to ``max_bytes``.

    ``notes`` is cleared: it gets each kind of scaling once.
    """
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy, and its module has the name of its class

    room = policy.max_bytes
    notes.clear()

    def encode(pixels: Pixels) -> bytes:
        nonlocal room
        data = encoded(pillow.fromarray(pixels), "JPEG", changes.quality)
        room -= len(data)
        if room < 0:
            raise PolicyError(
                f"the frames have more than max_bytes ({policy.max_bytes})",
                "ask for fewer, or raise max_bytes",
                code="MM211",
            )
        return data

    return encode
