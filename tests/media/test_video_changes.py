"""Videos made into frames as JPEG, and the sound of a video."""

from __future__ import annotations

import io

import av
import clips
import numpy as np
import pytest
from clips import clip, needs_ffmpeg, number_in, picture
from PIL import Image
from taken_frames import video_frames

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.changes import Changes
from mmprompt.media.video.changes import change_video, sound_track
from mmprompt.messages import MediaPart

POLICY = MediaPolicy()


def part(data=None):
    return MediaPart("video", "video/mp4", data or clip(50), options=(("a", 1),), origin="v.mp4", findings=("seen",))


def jpeg(pixels, **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def single_frames(count=10, **options):
    frames = tuple(jpeg(picture(number), **options) for number in range(count))
    return MediaPart("video", "video/jpeg", b"", frames)


def shown(changed):
    return [number_in(np.asarray(Image.open(io.BytesIO(frame)))) for frame in changed.frames]


def test_nothing_asked_gives_the_same_object():
    for given in (part(), single_frames(), MediaPart("image", "image/jpeg", b"x")):
        assert change_video(given, Changes(), POLICY) is given
    # a file is not encoded again, whatever its size
    given = part()
    assert change_video(given, Changes(max_side=10, mode="RGB", audio_rate=16000), POLICY) is given
    assert change_video(single := single_frames(), Changes(max_side=96, frames=10), POLICY) is single


def test_frames_are_jpeg_and_said_with_their_times():
    changed = change_video(part(), Changes(frames=3, quality=90), POLICY)
    assert (changed.media_type, changed.data, len(changed.frames)) == ("video/jpeg", b"", 3)
    assert shown(changed) == [0, 24, 49]
    assert changed.changes == ("video/mp4 of 2.000 s to 3 JPEG frames at 0, 0.96, 1.96 s (frames=3; quality 90)",)
    assert (changed.options, changed.origin, changed.findings) == ((("a", 1),), "v.mp4", ("seen",))
    pixels = [frame.image for frame in video_frames(part().data, POLICY, count=3)]
    assert list(changed.frames) == [jpeg(image, quality=90) for image in pixels]


@pytest.mark.parametrize(
    ("changes", "numbers", "words"),
    [
        (Changes(fps=2), [0, 12, 25, 37], "(fps=2; quality 85)"),
        (Changes(fps=10, frames=3), [0, 22, 47], "(frames=3, fps=10; quality 85)"),
        (Changes(key_frames=True), [0], "(key_frames; quality 85)"),
        (Changes(times=(1.0, 0.2)), [25, 5], "at 1, 0.2 s (times; quality 85)"),
    ],
)
def test_frames_by_each_rule(changes, numbers, words):
    changed = change_video(part(), changes, POLICY)
    assert shown(changed) == numbers
    assert words in changed.changes[0]


def test_frames_are_scaled_and_it_is_said_once():
    changed = change_video(part(), Changes(frames=4, max_side=48), POLICY)
    assert {Image.open(io.BytesIO(frame)).size for frame in changed.frames} == {(48, 32)}
    assert changed.changes[1:] == ("96x64 to 48x32 (max_side 48)",)
    changed = change_video(part(), Changes(frames=4, max_pixels=1536), POLICY)
    assert changed.changes[1:] == ("96x64 to 48x32 (max_pixels 1536)",)
    assert len(change_video(part(), Changes(frames=4, max_side=96), POLICY).changes) == 1


@pytest.mark.parametrize("side", [31, 48, 80])
def test_a_frame_scaled_in_its_conversion_looks_as_one_scaled_after_it(side):
    whole = change_video(part(), Changes(frames=1, quality=100), POLICY).frames[0]
    made = Image.open(io.BytesIO(change_video(part(), Changes(frames=1, max_side=side, quality=100), POLICY).frames[0]))
    after = Image.open(io.BytesIO(whole)).resize(made.size, Image.Resampling.LANCZOS)
    assert max(made.size) == side
    error = ((np.asarray(made, dtype=float) - np.asarray(after, dtype=float)) ** 2).mean()
    assert 10 * np.log10(255**2 / error) >= 36


def test_a_frame_may_be_scaled_to_one_pixel():
    (frame,) = change_video(part(), Changes(frames=1, max_side=1), POLICY).frames
    assert Image.open(io.BytesIO(frame)).size == (1, 1)


def test_single_frames_are_picked_evenly_and_stay_the_same_bytes():
    given = single_frames(10)
    changed = change_video(given, Changes(frames=4), POLICY)
    assert changed.frames == tuple(given.frames[at] for at in (0, 3, 6, 9))
    assert changed.changes == ("10 frames to 4: numbers 0, 3, 6, 9 (frames)",)
    for changes in (Changes(fps=1), Changes(times=(1.0,))):
        with pytest.raises(SourceError, match="carry no times"):
            change_video(given, changes, POLICY)


def test_only_single_frames_that_are_too_large_are_encoded_again():
    exif = Image.Exif()
    exif[0x0112] = 6
    small, large = jpeg(picture(1, 48, 32)), jpeg(picture(2), exif=exif)
    changed = change_video(MediaPart("video", "video/jpeg", b"", (small, large)), Changes(max_side=48), POLICY)
    assert changed.frames[0] == small
    with Image.open(io.BytesIO(changed.frames[1])) as image:
        assert image.size == (48, 32)
        assert image.getexif()[0x0112] == 6
    assert changed.changes == ("1 of 2 frames: 96x64 to 48x32 (max_side 48), quality 85",)
    with pytest.raises(PolicyError, match="--policy trusted"):
        change_video(single_frames(), Changes(max_side=48), MediaPolicy(max_pixels=100))
    with pytest.raises(SourceError, match="JPEG"):
        change_video(MediaPart("video", "video/jpeg", b"", (large[:300],)), Changes(max_side=48), POLICY)


def test_the_frames_together_keep_to_max_bytes():
    with pytest.raises(PolicyError, match="more than max_bytes"):
        change_video(part(), Changes(frames=50), MediaPolicy(max_bytes=10_000))


def samples(wav):
    with av.open(io.BytesIO(wav)) as container:
        stream = container.streams.audio[0]
        assert stream.codec_context.name == "pcm_s16le"
        rate, channels = stream.codec_context.sample_rate, stream.codec_context.layout.nb_channels
        pieces = [frame.to_ndarray().reshape(-1, channels) for frame in container.decode(audio=0)]
    return rate, np.concatenate(pieces)


@needs_ffmpeg
@pytest.mark.parametrize(
    ("container", "length"), [("mp4", 88200), ("matroska", 89088), ("mpegts", 88704), ("avi", 88704)]
)
def test_the_sound_of_a_video_is_that_of_ffmpeg(container, length, tmp_path):
    """Within 1 of 32768, at the same times, whatever the releases."""
    path = tmp_path / "clip.bin"
    path.write_bytes(clip(50, sound=True, container=container))
    rate, ours = samples(sound_track(path.read_bytes(), POLICY))
    raw = clips.ffmpeg("-i", path, "-vn", "-f", "s16le", "-c:a", "pcm_s16le", "-")
    theirs = np.frombuffer(raw, "<i2").reshape(-1, ours.shape[1]).astype(int)
    if container == "mp4":  # before 9 it gives what fills the last frame of AAC too
        assert len(theirs) in (length, 89088)
        theirs = theirs[:length]
    if container == "matroska":  # before 8.1 it gives the 1024 samples that prime AAC too
        assert len(theirs) in (length, length + 1024)
        theirs = theirs[-length:]
    assert (rate, len(ours)) == (44100, length)
    assert np.abs(theirs - ours).max() <= 1


def test_sound_is_bounded_and_its_absence_named():
    data = clip(50, sound=True)
    with pytest.raises(PolicyError, match="max_bytes"):
        sound_track(data, MediaPolicy(max_bytes=100_000))
    with pytest.raises(PolicyError, match="raise timeout"):
        sound_track(data, MediaPolicy(timeout=1e-6))
    with pytest.raises(SourceError, match="holds no sound"):
        sound_track(clip(50), POLICY)
