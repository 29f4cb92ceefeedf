"""Sound is changed as asked and no further, exactly, and what was done is said."""

from __future__ import annotations

import numpy as np
import pytest
from sound_files import decoded_by_ffmpeg, encoded, ffmpeg, level, needs_ffmpeg, snr, sweep, tone, written

from mmprompt.errors import PolicyError, SourceError, TargetError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.changes import change_audio, fit_audio
from mmprompt.media.audio.encoders import MP3_RATES, mp3_bits, mp3_file, resample, to_16_bits
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.audio.wav import declared_frames, wav_file
from mmprompt.media.changes import Changes, TargetRoom
from mmprompt.messages import MediaPart

POLICY = MediaPolicy()
STEREO = sweep(44100, 15000, channels=2)
TAKES = frozenset(("audio/wav", "audio/mpeg"))


def sound(data: bytes, media_type: str = "audio/wav") -> MediaPart:
    return MediaPart("audio", media_type, data, origin="a.wav")


def samples(part: MediaPart) -> np.ndarray:
    return decode_audio(part.data, POLICY).samples


NOT_DECODABLE = sound(b"RIFF\x24\0\0\0WAVE")


@pytest.mark.parametrize("changes", [Changes(), Changes(audio_format="wav"), Changes(max_pixels=9, fit=True)])
def test_what_nothing_asks_to_change_is_not_even_decoded(changes):
    with pytest.raises(SourceError):
        audio_facts(NOT_DECODABLE.data, POLICY)
    assert change_audio(NOT_DECODABLE, changes, POLICY) is NOT_DECODABLE
    assert fit_audio(NOT_DECODABLE, TargetRoom("t", TAKES), POLICY) is NOT_DECODABLE
    assert fit_audio(NOT_DECODABLE, TargetRoom("t", TAKES, max_bytes=12), POLICY) is NOT_DECODABLE


@pytest.mark.parametrize(
    "changes",
    [
        Changes(mono=True),
        Changes(audio_rate=16000),
        Changes(seconds=1.0),
        Changes(seconds=99.0, mono=True, audio_rate=16000, audio_format="wav"),
    ],
)
def test_what_is_so_already_keeps_its_bytes(changes):
    for data, media_type in (
        (written(tone(16000, 440), 16000, subtype="PCM_24"), "audio/wav"),
        (written(tone(16000, 440), 16000, "FLAC"), "audio/flac"),
    ):
        part = sound(data, media_type)
        if changes.audio_format is None or media_type == "audio/wav":
            assert change_audio(part, changes, POLICY) is part


def test_a_trim_is_exact_to_the_sample_and_loses_nothing_of_16_bits():
    noise = np.random.default_rng(3).integers(-32768, 32768, (48000, 2), np.int16)
    for container, media_type in (("WAV", "audio/wav"), ("FLAC", "audio/flac")):
        part = sound(written(noise, 16000, container), media_type)
        cut = change_audio(part, Changes(start=0.50003, seconds=1.25), POLICY)
        assert cut.media_type == "audio/wav"
        assert cut.data == wav_file(noise[8000:28000], 16000)[0]
        assert cut.changes[0] == "trimmed to 0.50003 s to 1.75003 s (start, seconds)"
        assert len(cut.changes) == 1 + (container == "FLAC")
    whole = change_audio(sound(written(noise, 16000, "FLAC"), "audio/flac"), Changes(audio_format="wav"), POLICY)
    assert whole.data == wav_file(noise, 16000)[0]
    assert whole.changes == ("FLAC to WAV, 16-bit PCM (audio_format)",)


def test_mono_is_the_mean_of_the_channels():
    noise = np.random.default_rng(3).integers(-32768, 32768, (5000, 6), np.int16)
    mono = change_audio(sound(written(noise, 16000)), Changes(mono=True), POLICY)
    assert mono.changes == ("6 channels to 1, their mean (mono)",)
    assert np.abs(samples(mono)[:, 0] * 32768 - noise.mean(axis=1)).max() <= 0.5 + 1e-3


@needs_ffmpeg
def test_mono_of_stereo_is_what_ffmpeg_mixes_half_and_half(tmp_path):
    (tmp_path / "in.wav").write_bytes(written(STEREO, 44100))
    mono = samples(change_audio(sound((tmp_path / "in.wav").read_bytes()), Changes(mono=True), POLICY))
    wanted = decoded_by_ffmpeg(tmp_path / "in.wav", 1, "-af", "pan=mono|c0=0.5*c0+0.5*c1")
    assert np.abs(mono - wanted).max() <= 1 / 32768


@pytest.mark.parametrize(
    ("rate", "to"),
    [(44100, 16000), (48000, 16000), (16000, 48000), (22050, 24000), (8000, 16000), (96000, 44100), (44100, 16001)],
)
def test_resampling_is_90_db_clean_and_exact_in_time(rate, to):
    """Against the same sweep computed at the new rate, up to 0.85 of the narrower band; and as long to the sample."""
    top = 0.85 * min(rate, to) / 2
    got = resample(sweep(rate, top), rate, to)
    assert snr(got, sweep(to, top)) > 90


@pytest.mark.parametrize(("rate", "to"), [(44100, 16000), (48000, 22050)])
def test_what_lies_beyond_the_new_band_does_not_come_back_as_another_tone(rate, to):
    for share, most in ((0.9, 0.1), (1.05, -100), (1.2, -100), (1.4, -100)):
        got = level(resample(tone(rate, share * to / 2), rate, to))
        assert -0.2 < got < most if share < 1 else got < most


@needs_ffmpeg
def test_resampling_is_that_of_ffmpeg_with_its_filter_set_alike(tmp_path):
    (tmp_path / "in.wav").write_bytes(written(STEREO, 44100, subtype="FLOAT"))
    like = "aresample=16000:filter_size=96:cutoff=0.95:filter_type=kaiser:kaiser_beta=11:linear_interp=1"
    got = resample(STEREO, 44100, 16000)
    assert snr(got, decoded_by_ffmpeg(tmp_path / "in.wav", 2, "-af", like)) > 110
    low = sweep(44100, 6000)
    (tmp_path / "low.wav").write_bytes(written(low, 44100, subtype="FLOAT"))
    own = decoded_by_ffmpeg(tmp_path / "low.wav", 1, "-ar", 16000)
    assert snr(resample(low, 44100, 16000), own) > 60  # its own filter is 65 dB clean


@pytest.mark.parametrize("channels", range(1, 9))
def test_channels_stay_apart_in_resampling_whatever_the_length(channels):
    for frames in (1, 2, 7, 65536, 65537):
        given = np.zeros((frames, channels), np.float32)
        given[:, channels - 1] = 0.25
        got = resample(given, 44100, 16000)
        assert got.shape == (round(frames * 16000 / 44100), channels)
        assert not got[:, : channels - 1].any()
        assert frames < 1000 or got[1000, channels - 1] == pytest.approx(0.25, abs=1e-4)


def test_rate_and_mono_are_said_and_give_16_bit_wav():
    part = change_audio(
        sound(written(STEREO, 44100, "FLAC"), "audio/flac"), Changes(audio_rate=16000, mono=True), POLICY
    )
    assert audio_facts(part.data, POLICY) == ("WAV", "pcm_16", 16000, 1, 2.0)
    assert part.changes == (
        "2 channels to 1, their mean (mono)",
        "44100 Hz to 16000 Hz (audio_rate)",
        "FLAC to WAV, 16-bit PCM (changed sound is written as WAV)",
    )
    low = sweep(44100, 6800)
    got = samples(change_audio(sound(written(low, 44100)), Changes(audio_rate=16000), POLICY))
    assert snr(got, sweep(16000, 6800)) > 80  # two roundings to 16 bits


@needs_ffmpeg
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_mp3_has_the_sound_and_its_length_by_ffmpeg_too(tmp_path, rate):
    given = sweep(rate, 0.3 * rate, channels=2)
    part = change_audio(sound(written(given, rate)), Changes(audio_format="mp3"), POLICY)
    assert part.media_type == "audio/mpeg"
    assert part.changes == (f"WAV (pcm_16) to MP3, {mp3_bits(rate, 128)} kbit/s (audio_format)",)
    (tmp_path / "out.mp3").write_bytes(part.data)
    wanted = decoded_by_ffmpeg(tmp_path / "out.mp3", 2)
    assert snr(samples(part), wanted) > 100
    assert snr(wanted, given) > 20
    assert part == change_audio(sound(written(given, rate)), Changes(audio_format="mp3"), POLICY)


def test_mp3_takes_the_next_rate_above_and_two_channels_at_most():
    surround = np.repeat(tone(7000, 440), 3, axis=1)
    part = change_audio(sound(written(surround, 7000)), Changes(audio_format="mp3"), POLICY)
    assert part.changes == (
        "3 channels to 1, their mean (MP3 has 2 at most)",
        "7000 Hz to 8000 Hz (MP3 has no 7000 Hz)",
        "WAV (pcm_16) to MP3, 64 kbit/s (audio_format)",
    )
    part = change_audio(sound(written(tone(96000, 440), 96000)), Changes(audio_format="mp3", audio_rate=10000), POLICY)
    assert part.changes[0] == "96000 Hz to 11025 Hz (MP3 has no 10000 Hz)"


def test_every_rate_and_bit_rate_of_mp3_can_be_written():
    for rate in MP3_RATES:
        for kbits in (32, 48, 64, 128):
            given = to_16_bits(tone(rate, 440, 0.25))
            assert mp3_bits(rate, kbits) <= kbits
            assert len(decode_audio(mp3_file(given, rate, kbits), POLICY).samples) == len(given)


def test_a_damaged_or_lying_file_says_so_when_it_is_changed():
    data = written(STEREO, 44100)
    part = change_audio(sound(data[: len(data) // 2]), Changes(mono=True), POLICY)
    assert part.findings == ("the header declares 2.00 s of sound, 1.00 s are there",)
    flac = written(STEREO, 44100, "FLAC")
    part = change_audio(sound(flac[: len(flac) // 2], "audio/flac"), Changes(start=0.5, mono=True), POLICY)
    assert part.findings[0] == "1 damaged places of the sound could not be decoded"
    assert part.findings[1].startswith("the header declares 2.00 s of sound, ")
    loud = written((4 * tone(16000, 440)).astype(np.float32), 16000, subtype="FLOAT")
    assert (
        change_audio(sound(loud), Changes(seconds=0.5), POLICY).findings[0].endswith("beyond full scale were clipped")
    )


def test_changed_sound_keeps_to_max_bytes():
    part = sound(written(STEREO, 44100, "FLAC"), "audio/flac")
    tight = MediaPolicy(max_bytes=max(len(part.data), 100_000))
    with pytest.raises(PolicyError, match="the changed sound has 352844 bytes, more than max_bytes"):
        change_audio(part, Changes(audio_format="wav"), tight)
    assert len(change_audio(part, Changes(audio_format="mp3"), tight).data) < 40000


def test_a_format_that_is_not_taken_becomes_wav_and_mp3_where_wav_is_too_large():
    part = sound(encoded(STEREO, 44100, "mp4", "aac", "stereo"), "audio/mp4")
    fitted = fit_audio(part, TargetRoom("openai", TAKES), POLICY)
    assert fitted.media_type == "audio/wav"
    assert fitted.changes == ("MP4 (aac) to WAV, 16-bit PCM (fit: openai takes WAV, MP3)",)
    fitted = fit_audio(part, TargetRoom("openai", TAKES, max_bytes=40000), POLICY)
    assert fitted.changes == ("MP4 (aac) to MP3, 128 kbit/s (fit: openai takes WAV, MP3)",)
    assert (fitted.form, fitted.origin) == (part.form, part.origin)


@pytest.mark.parametrize(
    ("limit", "form"),
    [
        (353_000, ("pcm_16", 44100, 2)),
        (40_000, ("mp3", 44100, 2)),
        (20_000, ("mp3", 44100, 1)),
        (13_000, ("mp3", 24000, 1)),
        (9_000, ("mp3", 16000, 1)),
    ],
)
def test_too_many_bytes_are_brought_down_step_by_step(limit, form):
    part = sound(written(STEREO, 44100, subtype="PCM_24"))
    fitted = fit_audio(part, TargetRoom("t", TAKES, max_bytes=limit), POLICY)
    assert len(fitted.data) <= limit < len(part.data)
    assert audio_facts(fitted.data, POLICY)[1:4] == form
    assert fitted.changes
    assert all(f"(fit: t takes {limit} bytes)" in change for change in fitted.changes)
    assert fit_audio(fitted, TargetRoom("t", TAKES, max_bytes=limit), POLICY) is fitted


def test_a_target_without_mp3_gets_smaller_wav():
    room = TargetRoom("t", frozenset(("audio/wav",)), max_bytes=70_000)
    fitted = fit_audio(sound(written(STEREO, 44100)), room, POLICY)
    assert audio_facts(fitted.data, POLICY) == ("WAV", "pcm_16", 16000, 1, 2.0)


def test_what_cannot_be_made_to_fit_is_refused_by_name():
    part = sound(written(STEREO, 44100))
    with pytest.raises(
        TargetError, match=r"t takes 5000 bytes of a sound, too few for 2.0 s even as MP3, mono, 16000 Hz"
    ):
        fit_audio(part, TargetRoom("t", TAKES, max_bytes=5000), POLICY)
    with pytest.raises(TargetError, match="even as WAV, mono, 16000 Hz; trim it"):
        fit_audio(part, TargetRoom("t", frozenset(("audio/wav",)), max_bytes=5000), POLICY)
    with pytest.raises(TargetError, match="t takes no audio/wav, and neither WAV nor MP3"):
        fit_audio(part, TargetRoom("t", frozenset(("audio/ogg",))), POLICY)


def test_a_wav_file_that_is_large_by_its_other_chunks_loses_those_only():
    plain = written(STEREO, 44100)
    padded = plain + b"LIST" + (50_000).to_bytes(4, "little") + bytes(50_000)
    fitted = fit_audio(sound(padded), TargetRoom("t", TAKES, max_bytes=360_000), POLICY)
    assert fitted.changes == ("WAV without its other chunks (fit: t takes 360000 bytes)",)
    assert (samples(fitted) == samples(sound(plain))).all()


def test_the_length_that_a_wav_header_declares_is_read_past_other_chunks():
    plain = written(STEREO, 44100, subtype="PCM_24")
    assert declared_frames(plain) == len(STEREO)
    assert declared_frames(plain[:60]) == declared_frames(plain[: len(plain) // 3]) == len(STEREO)
    assert declared_frames(plain[:12] + b"JUNK\x03\0\0\0abc\0" + plain[12:]) == len(STEREO)
    assert declared_frames(plain[:12] + b"junk\0\0\0\0" * 2000 + plain[12:]) is None
    assert declared_frames(plain[:30]) is declared_frames(b"") is None


@needs_ffmpeg
def test_wav_out_is_read_by_ffmpeg_sample_for_sample(tmp_path):
    part = change_audio(sound(written(STEREO, 44100, "FLAC"), "audio/flac"), Changes(audio_format="wav"), POLICY)
    (tmp_path / "out.wav").write_bytes(part.data)
    raw = ffmpeg("-i", tmp_path / "out.wav", "-f", "s16le", "-")
    assert (np.frombuffer(raw, "<i2").reshape(-1, 2) == np.rint(samples(part) * 32768)).all()
