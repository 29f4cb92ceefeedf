"""Long lists of tags, which FFmpeg reads in quadratic time, are never given to it; the samples stay the same."""

from __future__ import annotations

import io
import struct

import av
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from sound_files import encoded, sweep, tone, written
from time_taken import processor_seconds

from mmprompt.media import MediaPolicy
from mmprompt.media.audio.av_reader import AvReader
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.ffmpeg.audio_tags import without_tags
from mmprompt.media.ffmpeg.deadline import Watch
from mmprompt.media.media_types import AAC, FLAC, MP3, WAV

POLICY = MediaPolicy()


def id3(frames: bytes) -> bytes:
    size = len(frames)
    return b"ID3\4\0\0" + bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0)) + frames


def own_names(count: int) -> bytes:
    return id3(b"".join(b"TXXX\0\0\0\x0b\0\0\3K%07d\0v" % n for n in range(count)))


def comments(count: int) -> bytes:
    list_of = b"".join(struct.pack("<I", 10) + b"K%07d=v" % n for n in range(count))
    return struct.pack("<II", 0, count) + list_of


def commented(flac: bytes, body: bytes) -> bytes:
    return flac[:4] + bytes([flac[4] & 0x7F]) + flac[5:42] + b"\4" + len(body).to_bytes(3, "big") + body + flac[42:]


def seconds_to_open(data: bytes, demuxer: str, tries: int = 1) -> float:
    return processor_seconds(lambda: av.open(io.BytesIO(data), format=demuxer).close(), tries=tries)


@pytest.fixture(scope="module")
def mp3():
    return encoded(tone(44100, 440), 44100, "mp3", "libmp3lame", "mono")


@pytest.fixture(scope="module")
def flac():
    return written(sweep(16000, 4000), 16000, "FLAC", "PCM_16")


@pytest.mark.parametrize("layout", [MP3, AAC])
def test_many_tags_of_id3_cost_nothing(layout, mp3):
    sound = mp3 if layout is MP3 else encoded(tone(44100, 440), 44100, "adts", "aac", "mono")
    data = own_names(5000) + sound
    demuxer = "mp3" if layout is MP3 else "aac"
    unguarded = seconds_to_open(data, demuxer)
    assert unguarded > 10 * max(seconds_to_open(sound, demuxer, 5), 0.001)
    assert processor_seconds(lambda: audio_facts(data, POLICY), enough=unguarded / 3) < unguarded / 3
    assert audio_facts(data, POLICY).rate == 44100
    assert np.array_equal(decode_audio(data, POLICY).samples, decode_audio(sound, POLICY).samples)


def test_many_comments_of_flac_cost_nothing(flac):
    data = commented(flac, comments(5000))
    unguarded = seconds_to_open(data, "flac")
    assert unguarded > 10 * max(seconds_to_open(flac, "flac", 5), 0.001)
    guarded = processor_seconds(lambda: AvReader(data, FLAC, POLICY).close(), enough=unguarded / 3)
    assert guarded < unguarded / 3
    reader = AvReader(data, FLAC, POLICY)
    samples = np.concatenate(list(reader.blocks(Watch(POLICY, "the sound"))))
    reader.close()
    assert np.array_equal(samples, soundfile.read(io.BytesIO(flac), dtype="float32", always_2d=True)[0])


def test_what_only_begins_like_frames_of_aac_costs_little():
    sound = encoded(tone(4410, 440), 44100, "adts", "aac", "mono")
    false = b"\xff\0\xff\xf1\x50\0\0\xc0\xfc"
    data = sound + id3(b"") + false * (1 << 18) + sound
    assert processor_seconds(lambda: without_tags(data, AAC), enough=0.2) < 0.2
    assert without_tags(data, AAC) == sound + sound


def test_short_tags_and_other_files_are_left_alone(mp3, flac):
    for data, kind in ((mp3, MP3), (own_names(3) + mp3, MP3), (flac, FLAC), (commented(flac, comments(3)), FLAC)):
        assert without_tags(data, kind) is data
    assert without_tags(own_names(12_000) + mp3, WAV).startswith(b"ID3")
    assert without_tags(own_names(12_000), MP3).startswith(b"ID3")


def test_tags_before_flac_and_several_tags_are_left_out(mp3, flac):
    long = own_names(6000)
    assert without_tags(long + flac, FLAC) == flac
    assert without_tags(long + commented(flac, comments(12_000)), FLAC)[42:] == flac[42 + after_first_block(flac) :]
    assert without_tags(long + long + mp3, MP3) == mp3[mp3.index(b"\xff\xfb") :]


def after_first_block(flac: bytes) -> int:
    at, last = 4, 0
    while not last:
        last = flac[at] & 0x80
        at += 4 + int.from_bytes(flac[at + 1 : at + 4], "big")
    return at - 42


@given(
    st.binary(max_size=80),
    st.sampled_from([b"", b"ID3\4\0\0\0\5\0\0", b"fLaC", b"fLaC\0\0\0\x22"]),
    st.sampled_from([MP3, FLAC]),
)
def test_any_bytes_come_back(tail, head, kind):
    data = head + tail
    assert without_tags(data, kind) == data
