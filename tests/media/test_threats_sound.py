"""Hostile sound: each test first shows that its bait works on the bare library, then that ours refuses it."""

from __future__ import annotations

import contextlib
import io
import struct
import subprocess
import sys
import tracemalloc

import av
import numpy as np
import pytest
import soundfile
from loopback_server import free_udp_ports
from sound_files import encoded, late_streams, sweep, tone, wav_header, written

from mmprompt import to_hf
from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.av_reader import AvReader
from mmprompt.media.audio.changes import change_audio
from mmprompt.media.audio.encoders import mp3_file, to_16_bits
from mmprompt.media.audio.reading import audio_facts, decode_audio, inspect_audio
from mmprompt.media.changes import Changes
from mmprompt.media.ffmpeg import Watch
from mmprompt.media.media_types import AAC, FLAC, MP3, MP4, OGG, WAV, WEBM
from mmprompt.messages import MediaPart, Message

POLICY = MediaPolicy()
SMALL = MediaPolicy(max_bytes=1 << 20)
BAIT_SECONDS = 40


def in_a_process(code: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code], input=stdin, capture_output=True, timeout=60, check=False)


def bomb(container: str) -> bytes:
    subtype, channels = ("PCM_16", 8) if container == "FLAC" else ("OPUS", 2)
    return written(np.zeros((48000 * BAIT_SECONDS, channels), np.int16), 48000, container, subtype)


@pytest.mark.parametrize("container", ["FLAC", "OGG"])
def test_a_bomb_is_refused_by_its_header_before_anything_is_read(container):
    data = bomb(container)
    samples, _ = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    assert len(data) < SMALL.max_bytes
    assert samples.nbytes > 200 * len(data)
    assert samples.nbytes > 8 * SMALL.max_bytes
    del samples
    tracemalloc.start()
    with pytest.raises(PolicyError, match=r"the decoded sound takes more than 8 x max_bytes \(1048576\)"):
        decode_audio(data, SMALL)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_bomb_whose_header_hides_its_length_is_counted_while_it_is_read():
    data = bytearray(bomb("FLAC"))
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    with soundfile.SoundFile(io.BytesIO(bytes(data))) as bare:
        assert frames_of(bare) > 47000 * BAIT_SECONDS
    assert audio_facts(bytes(data), SMALL).seconds is None
    with pytest.raises(PolicyError, match="the decoded sound takes more than 8 x max_bytes"):
        decode_audio(bytes(data), SMALL)
    with pytest.raises(PolicyError, match=r"the sound lasts longer than max_seconds \(30\)"):
        inspect_audio(bytes(data), MediaPolicy(max_seconds=30))


def frames_of(bare: soundfile.SoundFile) -> int:
    read = 0
    with contextlib.suppress(soundfile.SoundFileError):  # where the length is open, its reading ends so
        while len(block := bare.read(65536, dtype="float32")):
            read += len(block)
    return read


def test_a_sound_that_is_longer_than_allowed_is_refused_from_its_header():
    data = bomb("FLAC")[:1000]  # most of the samples are not there
    for look in (audio_facts, decode_audio, inspect_audio):
        with pytest.raises(PolicyError, match=r"the sound lasts longer than max_seconds \(30\)"):
            look(data, MediaPolicy(max_seconds=30))


def test_without_a_longest_time_decoded_samples_are_counted():
    silence = np.zeros((44100 * 5, 1), np.float32)
    data = encoded(silence, 44100, "mp3", "libmp3lame", "mono", {"write_xing": "0", "id3v2_version": "0"})
    policy = MediaPolicy.preset("trusted", max_bytes=len(data))
    assert policy.max_seconds is None
    assert audio_facts(data, policy).seconds is None
    taken = inspect_audio(data, MediaPolicy(max_seconds=None)).seconds * 44_100 * 4
    assert taken > 8 * len(data)
    for look in (decode_audio, inspect_audio):
        with pytest.raises(PolicyError, match="the decoded sound takes more than 8 x max_bytes"):
            look(data, policy)


def test_resampled_sound_is_bounded_as_decoded_sound():
    data = written(tone(4000, 440, 60), 4000, "FLAC", "PCM_16")
    part = MediaPart("audio", "audio/flac", data)
    policy = MediaPolicy(max_bytes=1 << 20, isolate=False)
    assert change_audio(part, Changes(audio_rate=8000), policy).data
    tracemalloc.start()
    with pytest.raises(PolicyError, match="the decoded sound takes more than 8 x max_bytes"):
        change_audio(part, Changes(audio_rate=384_000, audio_format="mp3"), policy)
    with pytest.raises(PolicyError, match="the decoded sound takes more than 8 x max_bytes"):
        to_hf([Message("user", (part,))], policy=policy, sampling_rate=384_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20  # resampled it would be 88 MiB


@pytest.mark.parametrize("size", [2**63 - 1, 2**63, 2**64 - 1])
def test_a_header_of_sizes_that_cannot_be_prints_nothing(size, capfd):
    data = rf64(size)
    bare = in_a_process("import io, sys, soundfile; soundfile.SoundFile(io.BytesIO(sys.stdin.buffer.read()))", data)
    assert size != 2**63 - 1 or b"OverflowError" in bare.stderr  # printed by a callback
    for look in (audio_facts, decode_audio, inspect_audio):
        with contextlib.suppress(SourceError, PolicyError):
            look(data, POLICY)
    assert capfd.readouterr().err == ""


def rf64(size: int) -> bytes:
    """Return a WAV file of 64-bit sizes that states ``size`` bytes of samples and has 200."""
    sizes = b"ds64" + struct.pack("<IQQQI", 28, 2**63 - 1, size, 2**62, 0)
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16)
    return b"RF64\xff\xff\xff\xffWAVE" + sizes + form + b"data\xff\xff\xff\xff" + bytes(200)


def test_a_long_sound_is_measured_without_holding_it():
    data = bomb("FLAC")
    tracemalloc.start()
    assert inspect_audio(data, SMALL).seconds == BAIT_SECONDS
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20  # a few blocks; the sound is 58 MiB


@pytest.mark.parametrize(
    ("rate", "channels"), [(2**31 - 1, 1), (44100, 1000), (1, 1), (3999, 1), (384_001, 2), (48000, 9)]
)
def test_a_header_that_lies_about_rate_or_channels_is_refused(rate, channels):
    data = wav_header(rate, channels)
    with soundfile.SoundFile(io.BytesIO(data)) as bare:
        assert (bare.samplerate, bare.channels) == (rate, channels)
    with pytest.raises(SourceError, match=f"the header says ({rate} Hz|{channels} channels)"):
        audio_facts(data, POLICY)


def test_a_lone_dash_is_no_name_of_standard_input():
    data = written(tone(16000, 440), 16000)
    bare = in_a_process("import soundfile; print(soundfile.SoundFile('-').samplerate)", data)
    assert bare.stdout.strip() == b"16000", bare.stderr
    with pytest.raises(SourceError, match="the sound source is plain text"):
        audio_facts(b"-", POLICY)


@pytest.fixture
def other_file(tmp_path):
    """A sound that a sample may not read, as an MPEG transport stream and as WAV."""
    (tmp_path / "secret.ts").write_bytes(encoded(sweep(44100, 9000, channels=2), 44100, "mpegts", "aac", "stereo"))
    (tmp_path / "secret.wav").write_bytes(written(sweep(44100, 9000), 44100))
    return tmp_path


def samples_of(container) -> int:
    with container:
        return sum(frame.samples for frame in container.decode(audio=0))


def refused(data: bytes) -> None:
    """Ours refuses by its look at the first bytes, and each decoder behind that look does too."""
    with pytest.raises(SourceError, match=r"the sound source is (an HLS|a concat|an SDP)"):
        audio_facts(data, POLICY)
    for kind in (WAV, FLAC, MP3, AAC, OGG, MP4, WEBM):
        try:
            reader = AvReader(data, kind, POLICY)
        except SourceError:
            continue
        # the demuxer of MP3 takes any text, and finds no sound in it
        with contextlib.closing(reader):
            assert not list(reader.blocks(Watch(POLICY, "the sound"))), kind.name


def test_an_hls_playlist_opens_no_other_file(other_file):
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{other_file}/secret.ts\n#EXT-X-ENDLIST\n"
    (other_file / "list.m3u8").write_text(playlist)
    assert samples_of(av.open(str(other_file / "list.m3u8"))) > 80000
    refused(playlist.encode())


def test_a_concat_list_opens_no_other_file(other_file, monkeypatch):
    (other_file / "list.wav").write_text("ffconcat version 1.0\nfile secret.wav\n")
    assert samples_of(av.open(str(other_file / "list.wav"))) == 88200
    # without a name it looks in the working directory
    monkeypatch.chdir(other_file)
    data = (other_file / "list.wav").read_bytes()
    assert samples_of(av.open(io.BytesIO(data))) == 88200
    refused(data)
    refused(f"ffconcat version 1.0\nfile '{other_file}/secret.wav'\n".encode())


def test_an_sdp_description_opens_no_socket():
    data = b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio %d RTP/AVP 0\n" % free_udp_ports()
    try:  # it listens for packets until the time is over
        with av.open(io.BytesIO(data), timeout=0.3) as bare:
            opened = bare.format.name
    except av.error.ExitError:
        opened = "sdp"
    assert opened == "sdp"
    refused(data)


def test_only_the_reader_of_its_kind_opens_a_sound():
    data = written(tone(16000, 440), 16000)
    assert samples_of(av.open(io.BytesIO(data))) == 16000
    for kind in (OGG, MP4, WEBM):
        with pytest.raises(SourceError, match="cannot be opened"):
            AvReader(data, kind, POLICY)


def test_eight_planes_do_not_end_the_process():
    data = encoded(np.random.default_rng(1).uniform(-0.2, 0.2, (9600, 8)), 48000, "mp4", "aac", "7.1")
    bare = in_a_process(
        "import av, io, sys; [f.to_ndarray() for f in av.open(io.BytesIO(sys.stdin.buffer.read())).decode(audio=0)]",
        data,
    )
    assert bare.returncode, "PyAV reads 8 planes now: the detour can go"
    sound = decode_audio(data, POLICY)
    assert sound.samples.shape[1] == 8
    assert 0.05 < np.abs(sound.samples).max() < 1


def test_a_transport_stream_with_late_streams_does_not_end_the_process():
    data = late_streams()
    bare = in_a_process(
        "import av, io, sys; av.open(io.BytesIO(sys.stdin.buffer.read()), options={'protocol_whitelist': ''})", data
    )
    assert bare.returncode or int(av.__version__.partition(".")[0]) > 14  # the oldest release that we take dies of it
    assert audio_facts(data, POLICY)[:4] == ("MPEG-TS", "aac", 44100, 2)


def test_floats_far_beyond_full_scale_do_not_end_the_process():
    wild = np.where(np.arange(48000) % 3 == 0, 1e37, -3e38).astype(np.float32)[:, None]
    data = written(wild, 48000, subtype="FLOAT")
    bare = in_a_process(
        "import av, io, sys, numpy as np, soundfile\n"
        "samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()), dtype='float32')\n"
        "file = av.open(io.BytesIO(), 'w', format='mp3')\n"
        "stream = file.add_stream('libmp3lame', rate=rate); stream.layout = 'mono'; stream.format = 'fltp'\n"
        "frame = av.AudioFrame.from_ndarray(samples[None], format='fltp', layout='mono'); frame.sample_rate = rate\n"
        "[file.mux(stream.encode(f)) for f in (frame, None)]",
        data,
    )
    assert bare.returncode, "LAME takes such floats now"
    for form in ("mp3", "wav"):
        part = change_audio(
            MediaPart("audio", "audio/x", data), Changes(audio_format=form, audio_rate=16000, mono=True), POLICY
        )
        assert part.findings == ("48000 samples beyond full scale were clipped",)
        assert np.abs(decode_audio(part.data, POLICY).samples).max() <= 1.2


def test_doubles_beyond_single_precision_are_no_warning():
    half, beyond = struct.pack("<d", 0.5), struct.pack("<d", 1e300)
    data = encoded(np.full(4000, 0.5), 16000, "matroska", "pcm_f64le", "mono")
    assert data.count(half) >= 4000
    data = data.replace(half, beyond)
    with pytest.warns(RuntimeWarning, match="overflow"):
        np.frombuffer(beyond, np.float64).astype(np.float32)
    assert inspect_audio(data, POLICY).has_nan


def test_a_damaged_mp3_writes_nothing_on_the_standard_error():
    data = bytearray(mp3_file(to_16_bits(sweep(44100, 9000, channels=2)), 44100, 128))
    for at in range(2000, 20000, 97):
        data[at] ^= 0xFF
    read = "import io, sys; data = sys.stdin.buffer.read()\n"
    bare = in_a_process(read + "import soundfile; soundfile.read(io.BytesIO(data))", bytes(data))
    assert b"libmpg123" in bare.stderr or b"Note:" in bare.stderr or b"Warning" in bare.stderr
    ours = in_a_process(
        read + "from mmprompt.media import MediaPolicy\nfrom mmprompt.media.audio.reading import inspect_audio\n"
        "inspect_audio(data, MediaPolicy())",
        bytes(data),
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, b"", b"")


def test_metadata_that_is_no_text_does_not_matter():
    data = encoded(tone(44100, 440), 44100, "mp3", "libmp3lame", "mono")
    tag = b"TIT2" + (8).to_bytes(4, "big") + b"\0\0" + b"\x03\xff\xfe\xff\x80\x81\xff\xff"
    tagged = b"ID3\x04\0\0" + len(tag).to_bytes(4, "big") + tag + data
    assert audio_facts(tagged, POLICY).rate == 44100


def test_values_that_are_no_numbers_are_refused_where_sound_is_written():
    for value in (np.nan, np.inf):
        samples = tone(16000, 440)
        samples[77] = value
        data = written(samples, 16000, subtype="FLOAT")
        assert inspect_audio(data, POLICY).has_nan
        with pytest.raises(SourceError, match="values that are not finite"):
            change_audio(MediaPart("audio", "audio/wav", data), Changes(audio_format="mp3"), POLICY)
