"""Frames by time: against the numbers the pictures carry, ffprobe's times and ffmpeg's pixels."""

from __future__ import annotations

import contextlib
import io
from fractions import Fraction

import av
import clips
import numpy as np
import pytest
from baits import FIRST, NEXT, SEQUENCE, video_of
from clips import clip, needs_ffmpeg, number_in
from taken_frames import video_frames

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video.reading import video_facts

POLICY = MediaPolicy()
ALL = 100_000
UNEVEN = (0, 3, 40, 41, 90, 500, 510, 2000, 2001, 2040, 2500, 2900, 2905, 3000, 4000)


def numbers(data, **asked):
    return [number_in(frame.image) for frame in video_frames(data, POLICY, **asked)]


VARIED = {
    "b-frames": lambda: clip(bf="3"),
    "open-gop": lambda: clip(x264_params="open-gop=1:keyint=12:bframes=3"),
    "intra-refresh": lambda: clip(x264_params="intra-refresh=1:keyint=12"),
    "all-key": lambda: clip(g="1"),
    "hevc": lambda: clip(codec="libx265", x265_params="log-level=none:keyint=12"),
    "mpeg4": lambda: clip(codec="mpeg4", bf="2", g="12"),
    "mpeg2-ps": lambda: clip(codec="mpeg2video", container="mpeg", bf="2", g="12"),
    "mpegts": lambda: clip(container="mpegts", g="12"),
    "avi": lambda: clip(codec="mpeg4", container="avi", bf="2"),
    "avi-h264": lambda: clip(container="avi", bf="3"),
    "mjpeg-avi": lambda: clip(codec="mjpeg", container="avi", pixel_format="yuvj420p"),
    "matroska": lambda: clip(container="matroska"),
    "vp8": lambda: clip(codec="libvpx", container="webm", lag_in_frames="16", auto_alt_ref="1", g="20"),
    "vp9": lambda: clip(codec="libvpx-vp9", container="webm", lag_in_frames="16", deadline="realtime"),
    "fragmented": lambda: clip(movflags="frag_keyframe+empty_moov", g="12"),
    "quicktime": lambda: clip(container="mov"),
    "with-sound": lambda: clip(sound=True),
    "vfr-mp4": lambda: clip(len(UNEVEN), ticks=UNEVEN, clock=Fraction(1, 1000), bf="2", g="5"),
    "vfr-matroska": lambda: clip(len(UNEVEN), container="matroska", ticks=UNEVEN, clock=Fraction(1, 1000), g="5"),
    "odd-clock": lambda: clip(40, ticks=tuple(n * 1001 for n in range(40)), clock=Fraction(1, 30_000), g="9"),
    "very-odd-clock": lambda: clip(30, ticks=tuple(n * n * 7 for n in range(30)), clock=Fraction(1, 8191), g="9"),
    "late-start": lambda: clip(20, ticks=tuple(9000 + n * 40 for n in range(20)), clock=Fraction(1, 1000)),
    "negative-start": lambda: clip(20, ticks=tuple(n * 40 - 400 for n in range(20)), clock=Fraction(1, 1000)),
}
SIZES = {"vfr-mp4": 15, "vfr-matroska": 15, "odd-clock": 40, "very-odd-clock": 30, "late-start": 20}


SELDOM = {"all-key", "avi-h264", "intra-refresh", "matroska", "mpeg2-ps", "odd-clock", "quicktime", "with-sound"}
"""Forms that are like another one."""


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=[pytest.mark.slow] * (n in SELDOM)) for n in sorted(VARIED)]
)
def varied(request, tmp_path_factory):
    data = VARIED[request.param]()
    path = tmp_path_factory.mktemp("clips") / "clip.bin"
    path.write_bytes(data)
    return request.param, data, path


@pytest.fixture(scope="module")
def probed(varied):
    return clips.probed_frames(varied[2])


def test_every_frame_comes_once_and_in_order(varied):
    name, data, _ = varied
    found = numbers(data, count=ALL)
    if name == "negative-start":
        # MP4 hides what begins before zero
        assert found == list(range(20 - len(found), 20))
        assert len(found) >= 10
    else:
        assert found == list(range(SIZES.get(name, 50)))


@needs_ffmpeg
def test_times_are_those_of_ffprobe(varied, probed):
    _, data, _ = varied
    found = [frame.seconds for frame in video_frames(data, POLICY, count=ALL)]
    theirs = [frame.seconds for frame in probed]
    assert len(theirs) == len(found)
    assert sum(at is None for at in theirs) <= 3  # what it flushes from the decoder at the end of an AVI or MPEG file
    assert [ours if at is None else at for ours, at in zip(found, theirs, strict=True)] == found
    assert found == sorted(set(found))


def test_a_single_frame_asked_for_by_its_time_is_the_one_shown_then(varied):
    _, data, _ = varied
    everything = video_frames(data, POLICY, count=ALL)
    for frame in everything[:: max(1, len(everything) // 5)]:
        (alone,) = video_frames(data, POLICY, times=(frame.seconds,))
        assert alone.seconds == frame.seconds
        assert np.array_equal(alone.image, frame.image)


def test_the_picks_are_the_same_pixels_as_in_a_walk_through_all(varied):
    _, data, _ = varied
    everything = {frame.seconds: frame.image for frame in video_frames(data, POLICY, count=ALL)}
    for frame in video_frames(data, POLICY, count=4) + video_frames(data, POLICY, fps=3):
        assert np.array_equal(frame.image, everything[frame.seconds])


@needs_ffmpeg
def test_key_frames_are_those_of_ffprobe(varied, probed):
    name, data, _ = varied
    if name == "negative-start":
        pytest.skip("its key frame is not shown")
    expected = [at for at, frame in enumerate(probed) if frame.key]
    assert numbers(data, key_frames=True) == expected


def test_the_bait_clips_have_what_they_are_named_for():
    """B-frames come in another order than they are shown; recovery points are flagged as key frames and are none."""
    with av.open(io.BytesIO(VARIED["b-frames"]())) as container:
        shown = [packet.pts for packet in container.demux(video=0) if packet.size]
    assert shown != sorted(shown)
    with av.open(io.BytesIO(VARIED["intra-refresh"]())) as container:
        assert sum(packet.is_keyframe for packet in container.demux(video=0) if packet.size) > 1


def test_a_count_is_linspace_with_both_ends():
    assert numbers(clip(50), count=8) == np.linspace(0, 49, 8, dtype=int).tolist()
    assert numbers(clip(50), count=1) == [24]
    assert numbers(clip(5), count=8) == [0, 1, 2, 3, 4]


def test_frames_a_second_are_taken_at_their_times():
    assert numbers(clip(50), fps=5) == list(range(0, 50, 5))
    # shown at 0, 0.5, 1, 1.5 … 4: what began last by then
    data = clip(len(UNEVEN), ticks=UNEVEN, clock=Fraction(1, 1000))
    assert numbers(data, fps=2) == [0, 5, 6, 7, 10, 13, 14]
    assert numbers(data, fps=2, count=3) == [0, 7, 14]


def test_times_are_answered_in_the_order_asked():
    found = video_frames(clip(50), POLICY, times=(1.96, 0.0, 0.05, 1.96))
    assert [number_in(frame.image) for frame in found] == [49, 0, 1, 49]
    assert [frame.seconds for frame in found] == [1.96, 0.0, 0.04, 1.96]
    with pytest.raises(SourceError, match="nothing is shown"):
        video_frames(clip(50), POLICY, times=(3.0,))


@needs_ffmpeg
def test_an_edit_list_hides_what_players_do_not_show(tmp_path):
    (tmp_path / "whole.mp4").write_bytes(clip(50, g="12"))
    cut = tmp_path / "cut.mp4"
    clips.ffmpeg("-ss", "0.7", "-i", tmp_path / "whole.mp4", "-t", "1", "-c", "copy", cut)
    with av.open(str(cut)) as container:
        hidden = sum(packet.is_discard for packet in container.demux(video=0))
    assert hidden > 0
    found = video_frames(cut.read_bytes(), POLICY, count=ALL)
    assert [frame.seconds for frame in found] == [frame.seconds for frame in clips.probed_frames(cut)]
    assert number_in(found[0].image) in (17, 18)
    # the key frame is hidden, so the first frame that is shown stands for it
    assert len(video_frames(cut.read_bytes(), POLICY, key_frames=True)) >= 1


ORIENTATIONS = [
    ((1, 0, 0, 1), 0, lambda p: p),
    ((0, 1, -1, 0), 90, lambda p: np.rot90(p, -1)),
    ((-1, 0, 0, -1), 180, lambda p: np.rot90(p, 2)),
    ((0, -1, 1, 0), 270, lambda p: np.rot90(p, 1)),
    ((-1, 0, 0, 1), 180, np.fliplr),
    ((1, 0, 0, -1), 0, np.flipud),
    ((0, 1, 1, 0), 90, lambda p: p.transpose(1, 0, 2)),
    ((0, -1, -1, 0), 270, lambda p: np.rot90(p.transpose(1, 0, 2), 2)),
]


@pytest.mark.parametrize(("matrix", "degrees", "turn"), ORIENTATIONS)
def test_frames_are_turned_as_players_turn_them(matrix, degrees, turn):
    data = clip(10)
    plain = video_frames(data, POLICY, count=2)
    turned = video_frames(clips.turned(data, matrix), POLICY, count=2)
    for one, other in zip(plain, turned, strict=True):
        assert np.array_equal(turn(one.image), other.image)
    facts = video_facts(clips.turned(data, matrix), POLICY)
    assert (facts.width, facts.height, facts.rotation) == (96, 64, degrees)


@needs_ffmpeg
@pytest.mark.parametrize("matrix", [matrix for matrix, _, _ in ORIENTATIONS[:4]])
def test_turned_frames_look_as_ffmpeg_shows_them(matrix, tmp_path):
    path = tmp_path / "phone.mp4"
    path.write_bytes(clips.turned(clip(10), matrix))
    (first, _) = video_frames(path.read_bytes(), POLICY, count=2)
    raw = clips.ffmpeg("-i", path, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    theirs = np.frombuffer(raw, np.uint8).reshape(first.image.shape).astype(int)
    assert np.abs(theirs - first.image).mean() < 1


def test_a_turn_by_no_right_angle_is_left_alone():
    data = clip(5)
    slanted = clips.turned(data, (1, 0, 0, 1))
    at = slanted.index(b"tkhd") + 44
    half = (46341).to_bytes(4, "big")  # cos 45 degrees
    slanted = slanted[:at] + half + half + slanted[at + 8 :]
    assert np.array_equal(video_frames(slanted, POLICY, count=1)[0].image, video_frames(data, POLICY, count=1)[0].image)


COLOURS = {
    "yuv420p": {}, "yuv444p": {"pixel_format": "yuv444p"}, "full-range": {"pixel_format": "yuvj420p"},
    "10-bit": {"pixel_format": "yuv420p10le"}, "odd-size": {"pixel_format": "yuv444p", "size": (101, 67)},
    "tiny": {"codec": "ffv1", "container": "matroska", "size": (27, 17)},
    "bt709": {"x264_params": "colormatrix=bt709:colorprim=bt709:transfer=bt709"},
}  # fmt: skip


@needs_ffmpeg
@pytest.mark.parametrize("name", sorted(COLOURS))
def test_pixels_are_those_of_ffmpeg(name, tmp_path):
    """The mean error is below 1 of 255, no pixel off by more than 24 (2 and 40 for 27 x 17): scalers round differently."""
    path = tmp_path / "clip.bin"
    path.write_bytes(clip(20, **COLOURS[name]))
    frames = video_frames(path.read_bytes(), POLICY, count=3)
    picked = ("-vf", r"select=eq(n\,0)+eq(n\,9)+eq(n\,19)", "-fps_mode", "passthrough")
    raw = clips.ffmpeg("-i", path, *picked, "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    pictures = np.frombuffer(raw, np.uint8).reshape(3, *frames[0].image.shape).astype(int)
    for theirs, frame in zip(pictures, frames, strict=True):
        error = np.abs(theirs - frame.image)
        assert error.mean() < (2 if name == "tiny" else 1)
        assert error.max() <= (40 if name == "tiny" else 24)


def test_images_are_uint8_of_height_width_3():
    for frame in video_frames(clip(5), POLICY, count=2):
        assert frame.image.shape == (64, 96, 3)
        assert frame.image.dtype == np.uint8


def test_frames_walked_and_time_are_bounded():
    data = clip(50)
    assert len(video_frames(data, MediaPolicy(max_frames=50), count=2)) == 2
    with pytest.raises(PolicyError, match="more than 49 frames; raise max_frames"):
        video_frames(data, MediaPolicy(max_frames=49), count=2)
    with pytest.raises(PolicyError, match="raise timeout"):
        video_frames(data, MediaPolicy(timeout=1e-6), count=2)
    with pytest.raises(PolicyError, match="raise timeout"):
        video_facts(data, MediaPolicy(timeout=1e-6))


def test_frames_are_counted_where_packets_hold_many():
    packets = [SEQUENCE + FIRST + NEXT * 30] * 3
    data = video_of(packets, "mjpeg", pixel_format="yuvj420p", container="avi").replace(b"MJPG", b"AV01")
    assert video_frames(data, MediaPolicy(max_frames=93), times=(0,))
    with pytest.raises(PolicyError, match="more than 92 frames; raise max_frames"):
        video_frames(data, MediaPolicy(max_frames=92), times=(0,))


def test_a_damaged_frame_is_an_error_and_whole_ones_are_given():
    """Bytes are flipped in the second of two stretches; the decoder alone would paint over the damage."""
    data = clip(50, g="25", bf="0", x264_params="keyint=25:scenecut=0")
    with av.open(io.BytesIO(data)) as container:
        packet = [packet for packet in container.demux(video=0) if packet.size][30]
        where, size = packet.pos, packet.size
    broken = bytearray(data)
    broken[where + size // 2 : where + size] = bytes(size - size // 2)
    with av.open(io.BytesIO(bytes(broken))) as container:
        painted = 0
        for packet in container.demux(video=0):
            try:
                painted += len(packet.decode())
            except av.error.InvalidDataError:
                painted += 0
    assert painted >= 49
    assert numbers(bytes(broken), times=(0.0, 0.5, 0.96)) == [0, 12, 24]
    with pytest.raises(SourceError, match="damaged after 1"):
        video_frames(bytes(broken), POLICY, times=(1.8,))


def test_a_recording_that_begins_between_key_frames_is_read_from_the_first_on():
    data = clip(50, container="mpegts", g="10", bf="0", x264_params="keyint=10:scenecut=0")
    later = data[len(data) // 3 // 188 * 188 :]
    found = numbers(later, count=ALL)
    assert found == list(range(found[0], 50))
    assert found[0] % 10 == 0


def test_a_frame_that_comes_out_but_once_is_an_error_of_its_video():
    """A packet of HEVC with two frames: decoded a second time, as where packets and frames differ, it gives fewer."""
    buffer = io.BytesIO()
    source = clip(3, codec="libx265", x265_params="log-level=none:bframes=0")
    with av.open(io.BytesIO(source)) as read, av.open(buffer, "w", format="mp4") as out:
        stream = out.add_stream_from_template(read.streams.video[0])
        first, *others = [packet for packet in read.demux(video=0) if packet.size]
        double = av.Packet(bytes(first) + bytes(others[0]))
        double.pts, double.dts, double.time_base = first.pts, first.dts, first.time_base
        double.is_keyframe = True
        for packet in (double, *others):
            packet.stream = stream
            out.mux(packet)
    with contextlib.suppress(SourceError):  # by FFmpeg 8 and 9; others may give the frames
        assert len(video_frames(buffer.getvalue(), POLICY, count=3)) == 3


@pytest.mark.parametrize("matrix", [3, 8, 10, 14])
def test_colours_that_are_not_converted_are_an_error_of_their_video(matrix):
    data = bytearray(clip(2, codec="prores_ks", container="mov", pixel_format="yuv422p10le"))
    at = data.find(b"icpf")
    while at >= 0:
        data[at + 20] = matrix
        at = data.find(b"icpf", at + 1)
    with av.open(io.BytesIO(bytes(data))) as container:
        frame = next(container.decode(video=0))
    assert int(frame.colorspace) == matrix
    try:
        frame.reformat(format="rgb24")
    except (av.FFmpegError, ValueError):  # FFmpeg 8 and 9
        with pytest.raises(SourceError, match=f"colours of the form yuv422p10le, matrix {matrix}"):
            video_frames(bytes(data), POLICY, count=1)
    else:
        assert video_frames(bytes(data), POLICY, count=1)
