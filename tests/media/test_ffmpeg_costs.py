"""Small things in very many copies, which cost a demuxer seconds or gigabytes: counted, and all reading is timed."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator

import av
import pytest
import soundfile
from clips import clip
from iso_files import Cost, Opener
from sound_files import tone, written
from test_metadata_costs import assert_costs_little, element, info, ogg, seconds_to_open, small, with_element
from time_taken import processor_seconds

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.readers import open_sound
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.ffmpeg.deadline import Watch
from mmprompt.media.ffmpeg.tag_lists import without_tag_lists
from mmprompt.media.media_types import AVI, MATROSKA, MPEG_TS, WAV
from mmprompt.media.video.frames import video_frames
from mmprompt.media.video.reading import video_facts

POLICY = MediaPolicy()
NO_TIME = MediaPolicy(timeout=1e-9)
WAVE = written(tone(16000, 440), 16000, "WAV", "PCM_16")
VORBIS = written(tone(16000, 440), 16000, "OGG", "VORBIS")


def with_chunks(chunks: bytes) -> bytes:
    return WAVE[:4] + (len(WAVE) + len(chunks) - 8).to_bytes(4, "little") + WAVE[8:36] + chunks + WAVE[36:]


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")


@pytest.fixture(scope="module")
def matroska():
    return clip(5, container="matroska", sound=True)


@pytest.fixture(scope="module")
def cost_of_opening() -> Iterator[Callable[[bytes], Cost]]:
    """What opening a Matroska file takes where no guard is; not in this process, whose free memory would be used."""
    opener = Opener("matroska")
    yield opener
    opener.close()


def test_a_wav_of_very_many_chunks_is_refused():
    data = with_chunks(b"junk\0\0\0\0" * 1_500_000)

    def refuse():
        with pytest.raises(SourceError, match="far more chunks"):
            audio_facts(data, POLICY)

    assert_costs_little(refuse, seconds_to_open(data, "wav"))
    behind = WAVE + b"junk\0\0\0\0" * 70_000
    streamed = WAVE[:40] + b"\xff" * 4 + WAVE[44:] + b"junk\0\0\0\0" * 70_000  # all of it is sound
    large = b"RF64" + b"\xff" * 4 + b"WAVEds64" + struct.pack("<IQQQI", 28, len(behind), 32000, 16000, 0) + WAVE[12:40]
    with pytest.raises(SourceError, match="far more chunks"):
        without_tag_lists(behind, WAV)
    with pytest.raises(SourceError, match="far more chunks"):
        without_tag_lists(large + b"\xff" * 4 + behind[44:], WAV)
    for file in (streamed, with_chunks(b"junk\0\0\0\0" * 1000), WAVE + b"junk\0\0\0\0" * 1000):
        assert without_tag_lists(file, WAV) is file


def test_very_many_lists_of_tags_take_no_memory_of_ours():
    import tracemalloc

    data = with_chunks(b"LIST\4\0\0\0INFO" * 600_000)
    tracemalloc.start()
    try:
        for kind in (WAV, AVI):
            with pytest.raises(SourceError, match="far more lists of tags"):
                without_tag_lists(data, kind)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(data)  # 19 times where they are not counted
    finally:
        tracemalloc.stop()
    assert without_tag_lists(with_chunks(info(3) * 1000), WAV).count(b"JUNK") == 1000


@needs_proc
@pytest.mark.parametrize(
    ("extra", "what"),
    [
        (element("1941A469", small("61A7", b"") * 400_000), "attachments"),
        (element("1654AE6B", element("AE", element("6D80", small("6240", b"") * 1_500_000))), "tracks"),
        (element("1F43B675", small("E7", b"\0") + element("A0", b"\xa1\x85\x81\0\0\0x" + element("75A1", small("A6", b"") * 600_000))), "additions"),
        (element("1F43B675", small("E7", b"\0") + element("A0", b"\xa1\x85\x81\0\0\0x" + small("75A1", small("A6", b"") * 2) * 300_000)), "additions"),
    ],
    ids=["attachments", "tracks", "additions", "lists of additions"],
)  # fmt: skip
def test_lists_of_matroska_that_swell_are_refused(extra, what, matroska, cost_of_opening):
    before_tracks = matroska.index(b"\x16\x54\xae\x6b")
    start = matroska.index(b"\x18\x53\x80\x67") + 4
    opened = matroska[:start] + b"\x01" + b"\xff" * 7
    first = opened + matroska[start + 8 : before_tracks] + extra + matroska[before_tracks:]
    data = first if what == "tracks" else with_element(matroska, extra)
    assert cost_of_opening(data).megabytes > 5 * len(data) / 1e6
    for function in (video_facts, audio_facts):
        with pytest.raises(SourceError, match=f"far more {what}"):
            function(data, POLICY)


def test_an_addition_to_each_frame_is_no_flood(matroska):
    alpha = element("75A1", element("A6", small("EE", b"\1") + element("A5", bytes(400))))
    data = with_element(matroska, element("1F43B675", (b"\xa0\x4a\xf0" + bytes(400) + alpha) * 20_000))
    assert without_tag_lists(data, MATROSKA) is data
    video_facts(data, POLICY)


def test_marks_of_pages_that_are_none_are_counted_before_soundfile_tries_each():
    data = VORBIS + b"OggS" * 60_000

    def unguarded():
        with soundfile.SoundFile(io.BytesIO(data)) as opened:
            looked.append(opened.frames == 16000)  # for the last page, as older releases do not

    def refuse():
        with pytest.raises(SourceError, match="far more damaged pages"):
            audio_facts(data, POLICY)

    looked: list[bool] = []
    taken = processor_seconds(unguarded, tries=1)
    if looked[0]:
        assert_costs_little(refuse, taken)
    else:
        refuse()


def test_pages_are_counted():
    with pytest.raises(SourceError, match="far more pages"):
        audio_facts(VORBIS + ogg([b""]) * ((1 << 19) + 1), POLICY)


# ---- programs of a transport stream


def crc(table: bytes) -> bytes:
    value = 0xFFFFFFFF
    for byte in table:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ 0x04C11DB7) & 0xFFFFFFFF if value >> 31 else value << 1 & 0xFFFFFFFF
    return value.to_bytes(4, "big")


def section(table: int, version: int, body: bytes) -> bytes:
    head = bytes([table]) + struct.pack(">HHBBB", 0xB000 | len(body) + 9, 1, 0xC1 | version << 1, 0, 0) + body
    return head + crc(head)


def packets(stream: int, body: bytes) -> bytes:
    """A table in packets, the first of which begins it; the number that counts them is left at 0."""
    pieces = [body[at : at + 184] for at in range(0, len(body), 184)]
    heads = [(0x4000 * (not number) | stream).to_bytes(2, "big") for number in range(len(pieces))]
    return b"".join(
        b"G" + head + b"\x10" + piece.ljust(184, b"\xff") for head, piece in zip(heads, pieces, strict=True)
    )


def programs(numbers: range, version: int = 0) -> bytes:
    body = b"".join(struct.pack(">HH", 1 + n % 65000, 0xE020 + n % 8000) for n in numbers)
    return packets(0, b"\0" + section(0, version, body))


def names(numbers: range, version: int = 0) -> bytes:
    body = b"\0\1\xff" + b"".join(struct.pack(">HBH", 1 + n % 65000, 0xFC, 0xF000) for n in numbers)
    return packets(0x11, b"\0" + section(0x42, version, body))


def test_a_transport_stream_of_ever_new_programs_is_refused():
    stream = clip(5, container="mpegts", codec="mpeg2video", sound=True)
    flood = b"".join(programs(range(40 * n, 40 * n + 40), n % 32) for n in range(110))
    unguarded = seconds_to_open(flood + stream, "mpegts")  # with the cube of the number
    unbegun = b"".join(section(0, n % 32, struct.pack(">HH", n, 0xE020) * 50) for n in range(100))
    baits = (
        flood,
        packets(0, b"\0" + unbegun),
        b"".join(programs(range(200 * n, 200 * n + 200)) for n in range(20)),
        b"".join(names(range(30 * n, 30 * n + 30)) for n in range(300)),
        b"".join(b"G\x40\0\x30\x01\0" + packet[4:186] for packet in (programs(range(n, n + 30)) for n in range(90))),
    )
    for bait in baits:
        for function in (video_facts, audio_facts):
            with pytest.raises(SourceError, match="far more programs"):
                function(bait + stream, POLICY)

    def refuse():
        with pytest.raises(SourceError, match="far more programs"):
            video_facts(flood + stream, POLICY)

    assert_costs_little(refuse, unguarded)


def test_a_whole_multiplex_over_hours_has_few_programs():
    stream = clip(5, container="mpegts", codec="mpeg2video", sound=True)
    tables = programs(range(240)) + names(range(200)) + packets(0x11, b"\0" + section(0x46, 0, bytes(900)))
    wanted = video_facts(stream, POLICY)
    data = stream + tables * 2000 + stream
    assert without_tag_lists(data, MPEG_TS) is data
    assert video_facts(data, POLICY)[:4] == wanted[:4]


# ---- time


def test_reading_is_timed_where_a_decoder_is_busy_by_itself(matroska, capfd):
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

    assert_costs_little(refuse, long)
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
