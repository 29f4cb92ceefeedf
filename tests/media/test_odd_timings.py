"""Videos that begin late, early or by halves, and whose streams differ in length: no frame is lost, none is early."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from clips import clip, ffmpeg, needs_ffmpeg, number_in, probed_frames
from taken_frames import video_frames

from mmprompt.errors import SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.video.changes import sound_track
from mmprompt.media.video.reading import video_facts

POLICY = MediaPolicy()
ALL = 10_000
UNEVEN = tuple(accumulate(1 + number * 7 % 5 for number in range(60)))

pytestmark = needs_ffmpeg

LATE = {
    "begins-late": ("-itsoffset", "1.3", "-i", "whole", "-c", "copy"),
    "hours-in": ("-i", "whole", "-c", "copy", "-output_ts_offset", "9000.017"),
    "cut-between-key-frames": ("-ss", "0.7", "-i", "whole", "-c", "copy"),
    "sound-is-longer": ("-i", "whole", "-f", "lavfi", "-t", "9", "-i", "sine", "-c:v", "copy"),
    "sound-begins-first": ("-itsoffset", "3", "-i", "whole", "-f", "lavfi", "-t", "2", "-i", "sine", "-c:v", "copy"),
}
MP4 = {
    "no-edit-list": (*LATE["cut-between-key-frames"], "-use_editlist", "0"),
    "fragments": ("-i", "whole", "-c", "copy", "-movflags", "frag_keyframe+empty_moov"),
    "negative-composition": (*LATE["cut-between-key-frames"], "-movflags", "negative_cts_offsets"),
}
SELDOM = {"begins-late", "hours-in"}
CASES = [
    *(
        pytest.param(name, "matroska", marks=[] if name == "cut-between-key-frames" else pytest.mark.slow)
        for name in LATE
    ),
    *(pytest.param(name, "mp4", marks=[pytest.mark.slow] * (name in SELDOM)) for name in (*LATE, *MP4)),
]


@pytest.mark.parametrize("uneven", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(("case", "container"), CASES)
def test_all_frames_come_at_the_times_of_ffprobe(case, container, uneven, tmp_path):
    ticks = {"ticks": UNEVEN, "clock": Fraction(1, 100)} if uneven else {}
    whole, path = tmp_path / "whole", tmp_path / "odd"
    whole.write_bytes(clip(60, bf="2", g="12", **ticks))
    words = [whole if word == "whole" else word for word in {**LATE, **MP4}[case]]
    ffmpeg(*words, "-f", container, path)
    raw = ffmpeg("-i", path, "-map", "0:v:0", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    shown = [number_in(pixels) for pixels in np.frombuffer(raw, np.uint8).reshape(-1, 64, 96, 3)]
    found = video_frames(path.read_bytes(), POLICY, count=ALL)
    assert [number_in(frame.image) for frame in found] == shown
    theirs = [frame.seconds for frame in probed_frames(path)]
    assert [frame.seconds for frame in found] == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("case", ["sound-is-longer", "begins-late", "hours-in"])
def test_the_sound_of_such_a_file_is_whole(case, tmp_path):
    whole, path = tmp_path / "whole", tmp_path / "odd.mkv"
    whole.write_bytes(clip(60, sound=case != "sound-is-longer"))
    ffmpeg(*[whole if word == "whole" else word for word in LATE[case]], path)
    assert sound_track(path.read_bytes(), POLICY)
    seconds = audio_facts(path.read_bytes(), POLICY).seconds
    assert seconds == pytest.approx(9 if case == "sound-is-longer" else 2.4, abs=0.2)
    facts = video_facts(path.read_bytes(), POLICY)
    assert facts.seconds == pytest.approx(9 if case == "sound-is-longer" else 2.4, abs=0.2)


def test_sound_that_ends_long_before_the_picture_is_no_cut_file(tmp_path):
    (tmp_path / "whole").write_bytes(clip(200))
    ffmpeg("-i", tmp_path / "whole", "-f", "lavfi", "-t", "1", "-i", "sine", "-c:v", "copy", tmp_path / "a.mkv")
    data = (tmp_path / "a.mkv").read_bytes()
    assert len(sound_track(data, POLICY)) > 80_000
    assert len(decode_audio(data, POLICY).samples) > 40_000


def test_a_matroska_file_that_is_cut_is_still_refused(tmp_path):
    (tmp_path / "whole").write_bytes(clip(200, sound=True))
    ffmpeg("-i", tmp_path / "whole", "-c", "copy", tmp_path / "a.mkv")
    data = (tmp_path / "a.mkv").read_bytes()
    for act in (lambda cut: video_frames(cut, POLICY, count=2), lambda cut: sound_track(cut, POLICY)):
        act(data)
        with pytest.raises(SourceError, match="cut"):
            act(data[: len(data) // 2])
