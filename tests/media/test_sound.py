"""Sound is read as FFmpeg reads it, its header is held against what is there, and damage is said."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from iso_files import u
from sound_files import decoded_together, encoded, ffmpeg, needs_ffmpeg, snr, sweep, tone, wav_header, written
from time_taken import wait_until

from mmprompt import MediaReader, MediaRef
from mmprompt.errors import MMPromptError, PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.encoders import mp3_file, to_16_bits
from mmprompt.media.audio.reading import audio_facts, decode_audio, inspect_audio

POLICY = MediaPolicy()
STEREO = sweep(44100, 15000, channels=2)

FORMS = [
    ("pcm_16.wav", ["-c:a", "pcm_s16le"], "WAV", "pcm_16", 44100, 0.0),
    ("pcm_24.wav", ["-c:a", "pcm_s24le"], "WAV", "pcm_24", 44100, 0.0),
    ("float.wav", ["-c:a", "pcm_f32le"], "WAV", "float", 44100, 0.0),
    ("ulaw.wav", ["-c:a", "pcm_mulaw"], "WAV", "ulaw", 44100, 0.0),
    ("adpcm.wav", ["-c:a", "adpcm_ms"], "WAV", "ms_adpcm", 44100, 1e-6),
    ("mp3.wav", ["-c:a", "libmp3lame"], "WAV", "mp3", 44100, 1e-6),
    ("sound.flac", [], "FLAC", "flac", 44100, 0.0),
    ("sound.mp3", ["-b:a", "128k"], "MP3", "mp3", 44100, 1e-6),
    ("vorbis.ogg", ["-c:a", "libvorbis"], "Ogg", "vorbis", 44100, 1e-6),
    ("opus.ogg", ["-c:a", "libopus"], "Ogg", "opus", 48000, 1e-6),
    ("sound.m4a", ["-c:a", "aac"], "M4A", "aac", 44100, 1e-6),
    ("sound.aac", ["-c:a", "aac"], "AAC", "aac", 44100, 1e-6),
    ("sound.webm", ["-c:a", "libopus"], "WebM", "opus", 48000, 1e-6),
    ("sound.mkv", ["-c:a", "flac"], "Matroska", "flac", 44100, 0.0),
    ("alac.m4a", ["-c:a", "alac"], "M4A", "alac", 44100, 0.0),
]


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """A file of each form, and its samples as FFmpeg decodes them."""
    folder = tmp_path_factory.mktemp("forms")
    (folder / "in.wav").write_bytes(written(STEREO, 44100, subtype="FLOAT"))
    ffmpeg("-i", folder / "in.wav", *(word for name, how, *_ in FORMS for word in (*how, folder / name)))
    files = [folder / name for name, *_ in FORMS]
    return {
        file.name: (file.read_bytes(), samples) for file, samples in zip(files, decoded_together(files, 2), strict=True)
    }


@needs_ffmpeg
@pytest.mark.parametrize(
    ("name", "container", "codec", "rate", "error"), [(f[0], *f[2:]) for f in FORMS], ids=[f[0] for f in FORMS]
)
def test_every_form_is_decoded_as_ffmpeg_does(forms, name, container, codec, rate, error):
    """The largest error of a sample is stated: none where nothing is lost, else 1e-6 of full scale."""
    data, wanted = forms[name]
    facts = audio_facts(data, POLICY)
    assert facts[:4] == (container, codec, rate, 2)
    assert facts.seconds is None or facts.seconds == pytest.approx(2.0, abs=0.05)
    sound = decode_audio(data, POLICY)
    assert sound.samples.dtype == np.float32
    assert (sound.rate, sound.broken, sound.more) == (rate, 0, False)
    if name == "sound.m4a":  # FFmpeg before 9 gives the padding of the last frame too
        assert len(sound.samples) == 88200
        wanted = wanted[:88200]
    assert len(sound.samples) == len(wanted)
    assert np.abs(sound.samples - wanted).max() <= error


@needs_ffmpeg
def test_the_sound_of_a_video_is_its_first_sound_track(tmp_path):
    picture = ["-f", "lavfi", "-i", "testsrc=d=1:s=64x64"]
    noise = ["-f", "lavfi", "-i", "anoisesrc=d=1:r=48000:a=0.2:seed=1"]
    files = [tmp_path / f"video.{name}" for name in ("mp4", "mkv", "mov", "avi", "ts", "mpg")]
    codecs = ("aac", "aac", "aac", "mp2", "mp2", "mp2")
    made = (word for file, codec in zip(files, codecs, strict=True) for word in ("-c:a", codec, file))
    ffmpeg(*picture, *noise, *made, "-an", tmp_path / "silent.mp4")
    for file, wanted in zip(files, decoded_together(files, 1), strict=True):
        got = decode_audio(file.read_bytes(), POLICY).samples
        shortest = min(len(got), len(wanted))
        assert shortest > 45000
        assert np.abs(got[:shortest] - wanted[:shortest]).max() <= 1e-6, file.name
    with pytest.raises(SourceError, match="the MP4 file holds no sound"):
        audio_facts((tmp_path / "silent.mp4").read_bytes(), POLICY)


def test_an_mp4_that_holds_sound_alone_is_a_sound():
    data = encoded(STEREO, 44100, "mp4", "aac", "stereo")
    assert audio_facts(data, POLICY)[:4] == ("MP4", "aac", 44100, 2)
    assert len(decode_audio(data, POLICY).samples) == 88200


@pytest.mark.parametrize(
    ("container", "codec", "rate", "length"),
    [
        ("mp4", "aac", 44100, 22_050),
        ("ipod", "aac", 16000, 20_000),
        ("mov", "aac", 44100, 44_100),
        ("mp4", "libopus", 48000, 24_000),
        ("mp4", "libmp3lame", 44100, 22_050),
        ("mov", "alac", 44100, 20_000),
        ("mov", "pcm_s16le", 44100, 20_000),
        ("matroska", "aac", 44100, 20_480),  # this tells what comes before the sound, not where it ends
        ("webm", "libopus", 48000, 20_000),
    ],
)
def test_sound_is_what_was_encoded_and_at_its_time(container, codec, rate, length):
    """To the sample: neither what primes the decoder nor what fills the last frame is left, on any release of PyAV."""
    wave = sweep(rate, 3000, length / rate)
    samples = decode_audio(encoded(wave, rate, container, codec, "mono"), POLICY).samples
    assert len(samples) == length
    assert snr(samples, wave) > 15


@needs_ffmpeg
@pytest.mark.parametrize(
    ("how", "length"),
    [
        (["aac"], 19_968),
        (["libopus"], 20_016),
        (["libmp3lame"], 19_968),
        (["aac", "-use_editlist", "0"], 1024 + 20_000),
    ],
)
def test_sound_ends_where_the_file_says(tmp_path, how, length):
    """20,000 samples: the edit list counts whole milliseconds of them, without one all of them count."""
    (tmp_path / "in.wav").write_bytes(written(sweep(48000, 3000, 20_000 / 48000), 48000))
    ffmpeg("-i", tmp_path / "in.wav", "-c:a", *how, tmp_path / "out.mp4")
    assert len(decode_audio((tmp_path / "out.mp4").read_bytes(), POLICY).samples) == length


def test_fragments_end_with_what_was_encoded():
    whole = encoded(tone(44100, 440), 44100, "mp4", "aac", "mono", {"movflags": "frag_keyframe+empty_moov"})
    assert len(decode_audio(whole, POLICY).samples) == 1024 + 44100  # no edit list: what primes it stays


def test_a_length_that_is_far_too_short_leaves_nothing_out():
    data = encoded(tone(44100, 440), 44100, "mov", "pcm_s16le", "mono")
    head = data.index(b"mdhd") + 16
    assert data[head : head + 8] == u(44100, 44100)
    for length in (1, 44100 - 9999):
        shorter = data[:head] + u(44100, length) + data[head + 8 :]
        assert len(decode_audio(shorter, POLICY).samples) == 44100


def test_facts_need_no_samples():
    whole = written(STEREO, 44100)
    assert audio_facts(whole[:100], POLICY) == ("WAV", "pcm_16", 44100, 2, 2.0)


def test_start_and_seconds_are_exact_to_the_sample():
    count = np.arange(-30000, 30000, dtype=np.int16)
    data = written(count, 16000)
    sound = decode_audio(data, POLICY, start=0.5, seconds=1.25)
    assert sound.more
    assert (np.rint(sound.samples[:, 0] * 32768) == count[8000:28000]).all()
    rest = decode_audio(data, POLICY, start=3.0, seconds=100)
    assert not rest.more
    assert (np.rint(rest.samples[:, 0] * 32768) == count[48000:]).all()
    with pytest.raises(SourceError, match=r"nothing is left of the sound after 3.75 s; choose an earlier start"):
        decode_audio(data, POLICY, start=3.75)


@pytest.mark.parametrize("container", ["WAV", "MP3", "FLAC"])
def test_a_cut_file_has_less_than_its_header_declares(container):
    mp3 = mp3_file(to_16_bits(STEREO), 44100, 128)
    data = mp3 if container == "MP3" else written(STEREO, 44100, container)
    whole, half = inspect_audio(data, POLICY), inspect_audio(data[: len(data) // 2], POLICY)
    assert whole.seconds == pytest.approx(2.0, abs=0.001)
    assert whole.declared == half.declared == pytest.approx(2.0, abs=0.05)
    assert 0.7 < half.seconds < 1.2
    assert audio_facts(data[: len(data) // 2], POLICY).seconds == half.declared


def test_damage_in_the_middle_is_counted_and_the_rest_is_read():
    data = bytearray(written(STEREO, 44100, "FLAC"))
    middle = len(data) // 2
    data[middle : middle + 60] = bytes(60)
    measured = inspect_audio(bytes(data), POLICY)
    assert measured.broken >= 1
    assert 1.3 < measured.seconds < 2.0  # soundfile stops at the damage, near 1.0


def test_a_length_that_no_header_states_is_unknown():
    flac = bytearray(written(STEREO, 44100, "FLAC"))
    flac[21] &= 0xF0
    flac[22:26] = bytes(4)  # total samples: unknown
    streamed = bytearray(written(STEREO, 44100))
    streamed[40:44] = b"\xff\xff\xff\xff"
    for data in (bytes(flac), bytes(streamed), encoded(STEREO, 44100, "adts", "aac", "stereo")):
        measured = inspect_audio(data, POLICY)
        assert (measured.declared, measured.broken) == (None, 0)
        assert measured.seconds == pytest.approx(2.0, abs=0.06)


def test_measures_tell_silence_clipping_and_values_that_are_no_numbers():
    square = np.sign(tone(16000, 440)[:, 0])
    cases = {
        "silent": (np.zeros(16000), True, 0.0, False),
        "nearly silent": (np.full(16000, 5e-5), True, 0.0, False),
        "soft": (0.001 * square, False, 0.0, False),
        "clipped": (square, False, pytest.approx(1.0, abs=0.01), False),
        "no numbers": (np.where(np.arange(16000) % 4000 == 7, np.nan, 0.25), False, 0.0, True),
        "infinite": (np.where(np.arange(16000) == 7, -np.inf, 0.25), False, 0.0, True),
    }
    for name, (samples, silent, clipped, has_nan) in cases.items():
        data = written(samples.astype(np.float32), 16000, subtype="FLOAT")
        got = inspect_audio(data, POLICY)
        assert (bool(got.silent_channels), got.clipped, got.has_nan) == (silent, clipped, has_nan), name
        assert (got.seconds, got.declared) == (1.0, 1.0)
        assert np.isfinite(got.peak)


def test_what_is_no_sound_is_named():
    for data, what in (
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "the sound source is PNG, not a sound"),
        (b"<!DOCTYPE html><html>", "the sound source is an HTML page"),
        (b"", "the sound source is empty"),
        (b"RIFF\x24\0\0\0WAVE", "the WAV file cannot be opened"),
        (wav_header(16000, 1, b""), "nothing of the WAV sound can be decoded"),
        (b"fLaC" + bytes(100), "the FLAC file cannot be opened"),
    ):
        with pytest.raises(SourceError, match=what):
            decode_audio(data, POLICY)


def test_limits_of_the_policy_name_the_rule():
    data = written(STEREO, 44100)
    for policy, rule in (
        (MediaPolicy(max_bytes=1000), "raise max_bytes to allow it"),
        (MediaPolicy(max_seconds=1.9), "raise max_seconds to allow it"),
        (MediaPolicy(timeout=1e-9), "raise timeout to allow it"),
    ):
        with pytest.raises(PolicyError, match=rule):
            decode_audio(data, policy)
        with pytest.raises(PolicyError, match=rule):
            inspect_audio(data, policy)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads and descriptors are counted in /proc")
def test_damaged_files_give_our_errors_only_and_leave_nothing_open():
    chance = random.Random(4)
    files = [written(STEREO[:20000], 44100, c) for c in ("WAV", "FLAC", "OGG")]
    files.append(mp3_file(to_16_bits(STEREO[:20000]), 44100, 128))
    files += [encoded(STEREO[:20000], 44100, c, "aac", "stereo") for c in ("mp4", "adts", "matroska")]
    tasks, descriptors = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    read = 0
    for data in files:
        for _ in range(40):
            bad = bytearray(data)
            reach = chance.choice((100, len(bad)))
            for _ in range(chance.choice((1, 5, 50))):
                bad[chance.randrange(reach)] = chance.choice((0, 127, 128, 255, chance.randrange(256)))
            if chance.random() < 0.2:
                del bad[chance.randrange(len(bad)) :]
            try:
                inspect_audio(bytes(bad), POLICY)
            except MMPromptError:
                continue
            read += 1
    assert 50 < read < 280
    assert wait_until(lambda: len(os.listdir("/proc/self/task")) <= tasks)  # one waited for is listed a moment longer
    assert len(os.listdir("/proc/self/fd")) <= descriptors


@pytest.mark.parametrize(("peak", "noted"), [(1.0, False), (1.2, False), (-30000.0, True), (32767.0, True)])
def test_float_samples_in_the_range_of_integers_are_a_finding(peak, noted):
    samples = np.array([0.0, peak, 0.5], "float64")
    part = MediaReader(MediaPolicy()).read(MediaRef("audio", (samples, 8000)))
    assert [finding.code for finding in part.findings] == ["MM404"] * noted
    assert all("divide them by 32768" in finding for finding in part.findings)
    assert np.array_equal(np.frombuffer(part.data[-12:], "<f4"), samples.astype("<f4"))
    whole = (np.array([0, 30000, -30000], "int16"), 8000)
    assert not MediaReader(MediaPolicy()).read(MediaRef("audio", whole)).findings
