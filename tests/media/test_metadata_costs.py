"""Metadata that cost FFmpeg seconds or gigabytes never reach it; the media around them are read as before."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from itertools import product

import av
import numpy as np
import pytest
import soundfile
from clips import clip, ffmpeg, needs_ffmpeg
from hypothesis import given
from hypothesis import strategies as st
from sound_files import encoded, tone, written
from time_taken import processor_seconds

from mmprompt.errors import MMPromptError, PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.av_reader import AvReader
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.ffmpeg.deadline import Watch
from mmprompt.media.ffmpeg.tag_lists import without_tag_lists
from mmprompt.media.media_types import AAC, AVI, MATROSKA, OGG, WAV, WEBM
from mmprompt.media.video.frames import video_frames
from mmprompt.media.video.reading import video_facts

POLICY = MediaPolicy()


def element(name: str, body: bytes) -> bytes:
    return bytes.fromhex(name) + (1 << 56 | len(body)).to_bytes(8, "big") + body


def small(name: str, body: bytes) -> bytes:
    return bytes.fromhex(name) + bytes([0x80 | len(body)]) + body


def simple_tags(count: int) -> bytes:
    tags = (small("67C8", small("45A3", b"%06x" % n) + small("4487", b"v")) for n in range(count))
    return element("1254C367", element("7373", small("63C0", b"") + b"".join(tags)))


def chapters(count: int) -> bytes:
    """Chapters whose numbers run backwards, so that FFmpeg looks for each among all."""
    atoms = (
        small("B6", small("73C4", (count - n).to_bytes(3, "big")) + small("91", n.to_bytes(4, "big")))
        for n in range(count)
    )
    return element("1043A770", element("45B9", b"".join(atoms)))


def cues(count: int) -> bytes:
    """Places in the file, the last one first."""
    points = (
        small("BB", small("B3", (count - n).to_bytes(3, "big")) + small("B7", small("F7", b"\1") + small("F1", b"\1")))
        for n in range(count)
    )
    return element("1C53BB6B", b"".join(points))


def with_element(matroska: bytes, extra: bytes) -> bytes:
    """Return a file with an element of the segment before its first cluster."""
    at = matroska.index(b"\x1f\x43\xb6\x75")
    start = matroska.index(b"\x18\x53\x80\x67") + 4
    return matroska[:start] + b"\x01" + b"\xff" * 7 + matroska[start + 8 : at] + extra + matroska[at:]


def pointed_to(matroska: bytes, extra: bytes) -> bytes:
    """Return a file with an element at its end, to which its first element leads."""
    start = matroska.index(b"\x18\x53\x80\x67") + 12
    end = len(matroska) - start + 33
    seek = small("4DBB", small("53AB", extra[:4]) + small("53AC", end.to_bytes(8, "big")))
    head = small("114D9B74", seek + small("EC", bytes(33 - 7 - len(seek))))
    return matroska[: start - 8] + b"\x01" + b"\xff" * 7 + head + matroska[start:] + extra


def info(count: int) -> bytes:
    names = product(range(33, 123), repeat=4)
    body = b"INFO" + b"".join(bytes(name) + b"\1\0\0\0v\0" for name, _ in zip(names, range(count), strict=False))
    return b"LIST" + len(body).to_bytes(4, "little") + body


def id3(count: int) -> bytes:
    frames = b"".join(b"TXXX\0\0\0\x0b\0\0\3K%07d\0v" % n for n in range(count))
    return b"ID3\4\0\0" + bytes(len(frames) >> shift & 0x7F for shift in (21, 14, 7, 0)) + frames


def in_chunk(tag: bytes) -> bytes:
    return b"id3 " + len(tag).to_bytes(4, "little") + tag + bytes(len(tag) % 2)


def with_chunk(wav: bytes, chunk: bytes) -> bytes:
    return wav[:4] + (len(wav) + len(chunk) - 8).to_bytes(4, "little") + wav[8:36] + chunk + wav[36:]


def ape(count: int) -> bytes:
    items = b"".join(struct.pack("<II", 1, 0) + b"K%06x\0v" % n for n in range(count))
    return items + b"APETAGEX" + struct.pack("<IIII", 2000, len(items) + 32, count, 0) + bytes(8)


def comments(count: int) -> bytes:
    return struct.pack("<II", 0, count) + b"".join(struct.pack("<I", 8) + b"%06x=v" % n for n in range(count))


def steps(byte: int) -> int:
    value = byte << 24
    for _ in range(8):
        value = (value << 1 ^ 0x04C11DB7 if value >> 31 else value << 1) & 0xFFFFFFFF
    return value


STEPS = [steps(byte) for byte in range(256)]


def checksum(page: bytes) -> int:
    value = 0
    for byte in page:
        value = value << 8 & 0xFFFFFFFF ^ STEPS[value >> 24 ^ byte]
    return value


def ogg(packets: list[bytes]) -> bytes:
    """Return packets as pages, each of which begins a page; the checksums as the standard describes them."""
    pages = []
    for number, packet in enumerate(packets):
        table = b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255])
        for at in range(0, len(table), 255):
            part = table[at : at + 255]
            flags = (2 if not number else 0) | (1 if at else 0)
            head = b"OggS\0" + bytes([flags]) + struct.pack("<qII", 0, 1, len(pages))
            body = bytes([len(part)]) + part + packet[at * 255 : at * 255 + sum(part)]
            pages.append(head + checksum(head + bytes(4) + body).to_bytes(4, "little") + body)
    return b"".join(pages)


def opus(listed: bytes) -> bytes:
    return ogg([b"OpusHead\1\1" + struct.pack("<HIhB", 312, 48000, 0, 0), b"OpusTags" + listed, b"\xfc\xff\xfe"])


def seconds_to_open(data: bytes, demuxer: str) -> float:
    return processor_seconds(lambda: av.open(io.BytesIO(data), format=demuxer).close(), tries=1)


def assert_costs_little(work: Callable[[], object], unguarded: float) -> None:
    assert processor_seconds(work, enough=unguarded / 3) < unguarded / 3


@pytest.fixture(scope="module")
def matroska():
    return clip(5, container="matroska", sound=True)


@pytest.mark.parametrize(
    ("extra", "what"), [(simple_tags(8000), "tags"), (chapters(20_000), "chapters"), (cues(80_000), "cues")]
)
def test_long_lists_of_matroska_are_refused(extra, what, matroska):
    def refuse(facts):
        with pytest.raises(SourceError, match=f"far more {what} than"):
            facts(data, POLICY)

    unguarded = 0.0
    for data in (with_element(matroska, extra), pointed_to(matroska, extra)):
        if what != "cues" or data.endswith(matroska[-50:]):  # cues that come later are left alone
            unguarded = seconds_to_open(data, "matroska")
        for facts in (video_facts, audio_facts):
            assert_costs_little(lambda facts=facts: refuse(facts), unguarded)


@pytest.mark.parametrize("mark", ["1254C367", "1043A770", "1C53BB6B"])
def test_a_mark_that_stands_by_chance_in_a_large_picture_is_no_list(mark, matroska):
    noise = np.random.default_rng(0).bytes(20 << 20)
    for size in (b"\x11\0\0\0", b"\x01" + b"\xff" * 7):
        data = matroska + bytes.fromhex(mark) + size + noise
        assert without_tag_lists(data, MATROSKA) is data


def test_lists_of_very_many_elements_that_mean_nothing_are_refused(matroska):
    for mark in ("1254C367", "1043A770", "1C53BB6B"):
        with pytest.raises(SourceError, match="far more"):
            without_tag_lists(with_element(matroska, element(mark, small("EC", b"") * 70_000)), MATROSKA)


def test_lists_within_lists_of_matroska_are_counted_once_and_not_without_end(matroska):
    nested = b"".join(b"\x12\x54\xc3\x67\x01" + b"\xff" * 7 for _ in range(10))
    data = with_element(matroska, nested + simple_tags(2000))
    assert without_tag_lists(data, MATROSKA) is data
    with pytest.raises(SourceError, match="far more lists"):
        without_tag_lists(data + nested, WEBM)


@pytest.mark.parametrize("chunk", [info(9000), in_chunk(id3(4000))])
def test_tags_of_wav_are_left_out(chunk):
    sound = written(tone(16000, 440), 16000, "WAV", "PCM_16")
    data = with_chunk(sound, chunk)
    assert_costs_little(lambda: AvReader(data, WAV, POLICY).close(), seconds_to_open(data, "wav"))
    reader = AvReader(data, WAV, POLICY)
    samples = np.concatenate(list(reader.blocks(Watch(POLICY, "the sound"))))
    reader.close()
    assert np.array_equal(samples, soundfile.read(io.BytesIO(sound), dtype="float32", always_2d=True)[0])


def test_tags_of_avi_are_left_out():
    video = clip(5, container="avi", codec="mpeg4")
    at = video.rindex(b"LIST", 0, video.index(b"movi"))
    data = video[:at] + info(12_000) + video[at:]
    assert_costs_little(lambda: video_frames(data, POLICY, count=5), seconds_to_open(data, "avi"))
    with_tags = video_frames(data, POLICY, count=5)
    without = video_frames(video, POLICY, count=5)
    assert all(np.array_equal(one.image, other.image) for one, other in zip(with_tags, without, strict=True))


def test_tags_between_and_after_aac_frames_are_left_out():
    sound = encoded(tone(44100, 440), 44100, "adts", "aac", "mono")
    wanted = decode_audio(sound + sound, POLICY)
    for data in (sound + id3(4000) + sound, sound + id3(4000) + sound + id3(3)):
        assert_costs_little(lambda data=data: audio_facts(data, POLICY), seconds_to_open(data, "aac"))
        assert audio_facts(data, POLICY).rate == 44100
        assert np.array_equal(decode_audio(data, POLICY).samples, wanted.samples)


def test_ape_tags_after_aac_are_not_read():
    sound = encoded(tone(44100, 440), 44100, "adts", "aac", "mono")
    data = sound + ape(10_000)
    assert_costs_little(lambda: audio_facts(data, POLICY), seconds_to_open(data, "aac"))
    assert audio_facts(data, POLICY).rate == 44100
    wanted = decode_audio(sound, POLICY).samples
    assert np.array_equal(decode_audio(data, POLICY).samples[: len(wanted)], wanted)


def test_many_comments_of_ogg_are_refused():
    data = opus(comments(7000))

    def refuse():
        with pytest.raises(SourceError, match="far more comments"):
            AvReader(data, OGG, POLICY)

    assert_costs_little(refuse, seconds_to_open(data, "ogg"))
    for listed in (comments(1000), comments(0) + bytes(100), struct.pack("<II", 0, 1) + b"\0\0\3\0=" + bytes(3 << 16)):
        usual = opus(listed)
        assert without_tag_lists(usual, OGG) is usual


def test_comments_are_counted_over_all_pages_and_streams():
    first = b"\x7fFLAC\1\0\0\0fLaC" + bytes(38)
    lists = [b"\4" + bytes(3) + comments(500) for _ in range(18)]
    with pytest.raises(SourceError, match="far more comments"):
        without_tag_lists(ogg([first, *lists]), OGG)
    speex = ogg([b"Speex   " + bytes(72), comments(7000)])
    with pytest.raises(SourceError, match="far more comments"):
        without_tag_lists(b"junk" + speex, OGG)


def test_pages_with_wrong_checksums_cost_no_more_than_the_file():
    page = b"OggS\0\0" + bytes(20) + b"\xff"
    with pytest.raises(SourceError, match="damaged pages"):
        without_tag_lists(page * 20_000 + b"\xff" * 70_000, OGG)


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
    with pytest.raises(PolicyError, match=r"the sound takes longer than timeout \(0.05 s\)"):
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


MARKS = [
    b"OggS\0\2", b"\x12\x54\xc3\x67", b"\x10\x43\xa7\x70", b"\x1c\x53\xbb\x6b\x01", b"LIST\4\0\0\0INFO", b"\xff" * 27,
    b"id3 \0\0\0\0ID3", b"OpusTags", bytes(9),
]  # fmt: skip


@given(
    st.lists(st.one_of(st.binary(max_size=20), st.sampled_from(MARKS)), max_size=12),
    st.sampled_from([WAV, AVI, OGG, MATROSKA, WEBM]),
)
def test_any_bytes_pass_or_are_refused_in_our_words(pieces, kind):
    data = b"".join(pieces)
    try:
        assert len(without_tag_lists(data, kind)) == len(data)
    except MMPromptError as error:
        assert "far more" in str(error)  # either is right


@given(st.data())
def test_damaged_ogg_pages_pass_or_are_refused(data):
    whole = bytearray(opus(comments(40)))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    assert without_tag_lists(bytes(whole), OGG) == whole
