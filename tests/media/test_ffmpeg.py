"""Work on one file is held to time and memory, and files with all that files may have are read."""

from __future__ import annotations

import io
import struct
import zlib

import av
import pytest
from baits import element, small
from clips import clip, ffmpeg, needs_ffmpeg
from sound_files import tone, written
from taken_frames import video_frames
from time_taken import processor_seconds

from mmprompt.errors import PolicyError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.av_reader import AvReader
from mmprompt.media.audio.readers import open_sound
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.ffmpeg import Watch
from mmprompt.media.media_types import AAC, AVI, MATROSKA, OGG, WAV, WEBM
from mmprompt.media.video.reading import video_facts

POLICY = MediaPolicy()
NO_TIME = MediaPolicy(timeout=1e-9)


def test_reading_is_timed_where_a_decoder_is_busy_by_itself(capfd):
    matroska = clip(5, container="matroska", sound=True)
    blocks = element("1F43B675", small("E7", b"\0") + b"\xa3\x85\x81\0\0\x84\xff" * 300_000)
    data = matroska + blocks

    def unguarded():
        with av.open(io.BytesIO(data)) as container:
            assert sum(packet.size for packet in container.demux()) < len(matroska)  # nothing comes of it, for long

    long = processor_seconds(unguarded, tries=1)
    for function in (video_facts, audio_facts):
        with pytest.raises(PolicyError, match=r"the Matroska file takes longer than timeout \(1e-09 s\)"):
            function(data, NO_TIME)

    def refuse():
        with pytest.raises(PolicyError, match="takes longer than timeout"):
            video_frames(data, MediaPolicy(timeout=long / 8), count=1)

    assert processor_seconds(refuse, enough=long / 3) < long / 3
    assert len(video_frames(matroska, POLICY, count=4)) == 4  # the error is not kept for the next file
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sound_format", ["WAV", "FLAC", "OGG"])
def test_the_end_of_the_time_is_not_taken_for_that_of_the_sound(sound_format, capfd):
    data = written(tone(400_000, 440), 16000, sound_format, "VORBIS" if sound_format == "OGG" else "PCM_16")
    with pytest.raises(PolicyError, match="the sound takes longer than timeout"):
        audio_facts(data, NO_TIME)
    reader = open_sound(data, POLICY)
    reader._file._watch._end = 0.0  # as if it had taken so long to come here
    with pytest.raises(PolicyError, match="the sound takes longer than timeout"):
        list(reader.blocks(Watch(POLICY, "the sound")))
    reader.close()
    assert len(decode_audio(data, POLICY).samples) == 400_000
    assert capfd.readouterr() == ("", "")


def packed(count: int) -> bytes:
    """A Matroska video each of whose frames unpacks to 9 MB."""
    packing = element("6D80", element("6240", small("5032", b"\1") + element("5034", small("4254", b"\0"))))
    picture = element("E0", small("B0", b"\x40") + small("BA", b"\x40"))
    track = small("D7", b"\1") + small("73C5", b"\1") + small("83", b"\1") + small("86", b"V_VP8") + picture + packing
    frame = element("A3", b"\x81\0\0\x80" + zlib.compress(bytes(9_000_000), 9))
    clusters = b"".join(element("1F43B675", small("E7", bytes([n])) + frame) for n in range(count))
    head = element("1A45DFA3", small("4282", b"matroska"))
    return head + element("18538067", element("1549A966", b"") + element("1654AE6B", element("AE", track)) + clusters)


def test_frames_that_unpack_to_more_than_the_policy_allows_are_refused():
    data = packed(12)
    with av.open(io.BytesIO(data)) as container:
        assert sum(packet.size for packet in container.demux()) > 90_000_000 > 800 * len(data)
    with pytest.raises(PolicyError, match=r"packets .* more than 8 x max_bytes"):
        video_frames(data, MediaPolicy(max_bytes=4 << 20), count=1)


def test_the_deadline_holds_for_sound_of_which_nothing_comes_out():
    track = small("D7", b"\1") + small("73C5", b"\1") + small("83", b"\2") + small("86", b"A_AAC")
    track += small("63A2", b"\x14\x08") + small("E1", small("9F", b"\1") + small("B5", struct.pack(">d", 16000.0)))
    cluster = small("E7", b"\0") + small("A3", b"\x81\0\0\x80\0\0\0\0") * 20_000
    head = element("1A45DFA3", small("4282", b"matroska"))
    body = element("1549A966", b"") + element("1654AE6B", element("AE", track)) + element("1F43B675", cluster)
    with pytest.raises(PolicyError, match=r"takes longer than timeout \(0.05 s\)"):
        decode_audio(head + element("18538067", body), MediaPolicy(timeout=0.05))


@needs_ffmpeg
@pytest.mark.parametrize("container", ["matroska", "webm", "ogg", "wav", "avi", "adts"])
def test_files_with_all_that_files_have_are_read(container, tmp_path):
    words = tmp_path / "words.txt"
    several = "".join(f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={n}\nEND={n + 1}\ntitle=No {n}\n" for n in range(300))
    tags = "".join(f"tag{n}={'x' * 40} Massive\n" for n in range(200))
    words.write_text(f";FFMETADATA1\ntitle=A\nartist=B\n{tags}{several}")
    picture = tmp_path / "a.jpg"
    picture.write_bytes(bytes(range(256)) * 400)
    path = tmp_path / "file"
    codecs = {
        "matroska": ("-c:v", "mjpeg", "-c:a", "libvorbis", "-attach", picture, "-metadata:s:t", "mimetype=image/jpeg"),
        "webm": ("-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libopus", "-cues_to_front", "1"),
        "ogg": ("-c:v", "libtheora", "-c:a", "libvorbis"),
        "wav": ("-vn",),
        "avi": ("-c:v", "mpeg4", "-c:a", "mp2"),
        "adts": ("-vn", "-c:a", "aac", "-write_id3v2", "1", "-write_apetag", "1"),
    }
    source = ("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10", "-f", "lavfi", "-i", "sine", "-i", words)
    maps = ("-map", "0", "-map", "1", "-map_metadata", "2", "-map_chapters", "2", "-t", "2")
    ffmpeg(*source, *maps, *codecs[container], "-f", container, path)
    data = path.read_bytes()
    if container not in ("wav", "adts"):
        assert len(video_frames(data, POLICY, count=4)) == 4
    kind = {"wav": WAV, "ogg": OGG, "adts": AAC, "avi": AVI, "webm": WEBM}.get(container, MATROSKA)
    reader = AvReader(data, kind, POLICY)
    assert sum(map(len, reader.blocks(Watch(POLICY, "the sound")))) > 80_000
    assert reader.broken == 0
    reader.close()
