"""The table of types, the names of what is no media, and base64."""

from __future__ import annotations

import base64
import io
import pathlib
import struct
import subprocess
import sys

import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, features

from mmprompt.errors import SourceError
from mmprompt.media.base64_text import clean_head, decode, encode
from mmprompt.media.media_types import (
    KINDS,
    agree,
    any_type,
    media_type_for,
    normal_type,
    sniff,
    suffix_type,
)
from mmprompt.media.type_check import not_media

TOUR = pathlib.Path(__file__).parents[2] / "fixtures" / "tour" / "media"
BROKEN = pathlib.Path(__file__).parents[2] / "fixtures" / "broken" / "media"


@pytest.mark.parametrize("path", sorted(TOUR.iterdir()), ids=lambda p: p.name)
def test_every_sound_file_is_known_and_agrees_with_its_suffix(path):
    data = path.read_bytes()
    kind = sniff(data)
    assert kind is not None
    assert path.name.endswith(kind.suffixes)
    assert agree(suffix_type(path.name), any_type(kind))
    assert sniff(data[:64]) is kind


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("JPEG", "JPEG"),
        ("PNG", "PNG"),
        ("GIF", "GIF"),
        ("WEBP", "WebP"),
        ("BMP", "BMP"),
        ("TIFF", "TIFF"),
        ("AVIF", "AVIF"),
    ],
)
def test_what_pillow_writes_is_known(form, name):
    if form == "AVIF" and not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(buffer, form)
    assert sniff(buffer.getvalue()).name == name


@pytest.mark.parametrize(
    ("form", "subtype", "name"),
    [
        ("WAV", "PCM_16", "WAV"),
        ("FLAC", "PCM_16", "FLAC"),
        ("OGG", "VORBIS", "Ogg"),
        ("OGG", "OPUS", "Ogg"),
        ("MP3", "MPEG_LAYER_III", "MP3"),
        ("RF64", "PCM_16", "WAV"),
    ],
)
def test_what_soundfile_writes_is_known(form, subtype, name):
    buffer = io.BytesIO()
    soundfile.write(buffer, [0.0] * 16000, 16000, format=form, subtype=subtype)
    assert sniff(buffer.getvalue()).name == name


@pytest.mark.parametrize(
    ("form", "codec", "name"),
    [
        ("mp4", "mpeg4", "MP4"),
        ("mov", "mpeg4", "QuickTime"),
        ("webm", "libvpx", "WebM"),
        ("matroska", "mpeg4", "Matroska"),
        ("avi", "mpeg4", "AVI"),
        ("mpeg", "mpeg2video", "MPEG"),
        ("mpegts", "mpeg2video", "MPEG-TS"),
    ],
)
def test_what_pyav_writes_is_known(form, codec, name):
    av = pytest.importorskip("av")
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=form) as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame.from_image(Image.new("RGB", (64, 48)))))
        container.mux(stream.encode())
    kind = sniff(buffer.getvalue())
    assert kind.name == name
    assert media_type_for(kind, "video")
    assert media_type_for(kind, "image") is None


def test_sound_in_matroska_is_audio_where_it_is_tagged_so():
    av = pytest.importorskip("av")
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="matroska") as container:
        container.add_stream("flac", rate=16000)
        container.start_encoding()
    kind = sniff(buffer.getvalue())
    assert media_type_for(kind, "audio") == suffix_type("a.mka") == normal_type("audio/matroska") == "audio/x-matroska"
    assert media_type_for(kind, "video") == suffix_type("a.mkv") == "video/x-matroska"


@pytest.mark.parametrize(("form", "name"), [("adts", "AAC"), ("ipod", "M4A")])
def test_aac_is_known_in_both_containers(form, name):
    av = pytest.importorskip("av")
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=form) as container:
        stream = container.add_stream("aac", rate=16000)
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.sample_rate = 16000
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        for _ in range(8):
            frame.pts = None
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    kind = sniff(buffer.getvalue())
    assert kind.name == name
    assert media_type_for(kind, "audio")
    assert media_type_for(kind, "video") is None


@pytest.mark.parametrize(
    "data",
    [
        b"", b"x", b"BM and other words of a text file", b"ID3 is a tag", b"RIFF1234ACON", b"GIF8 is a text",
        "<html>".encode("utf-16"), '{"a": 1}'.encode("utf-16"), b"\xff\xfb\x90\x64" + b"a" * 2000, b"\xff\xf1text is not aac, not at all",
        b"\x1aE\xdf\xa3 some EBML", b"\x89PNGnot", b"G" + b"o" * 400,
    ],
)  # fmt: skip
def test_a_mark_alone_makes_no_medium(data):
    assert sniff(data) is None


def test_a_tag_before_flac_is_flac():
    assert sniff(b"ID3\x04\x00\x00\x00\x00\x00\x04abcdfLaC" + bytes(40)).name == "FLAC"


def test_a_container_has_a_type_per_modality():
    kinds = {k.name: k for k in KINDS}
    assert media_type_for(kinds["MP4"], "audio") == "audio/mp4"
    assert media_type_for(kinds["MP4"], "video") == "video/mp4"
    assert media_type_for(kinds["WebM"], "audio") == "audio/webm"
    assert media_type_for(kinds["Ogg"], "video") == "video/ogg"
    assert media_type_for(kinds["JPEG"], "audio") is None
    assert media_type_for(kinds["WAV"], "image") is None


def test_heic_and_avif_are_told_apart_by_all_their_brands():
    avif = struct.pack(">I", 32) + b"ftypmif1\0\0\0\0mif1avifmiaf1234"
    heic = struct.pack(">I", 28) + b"ftypmif1\0\0\0\0mif1heic" + b"1234"
    assert (sniff(avif).name, sniff(heic).name) == ("AVIF", "HEIC")


def test_types_have_one_normal_name():
    assert normal_type("image/jpg") == "image/jpeg"
    assert normal_type(" Audio/X-WAV; rate=16000") == "audio/wav"
    assert normal_type("audio/mp3") == "audio/mpeg"
    assert suffix_type("A.B.JPG") == "image/jpeg"
    assert suffix_type("noext") is None
    assert suffix_type("x.ogg") == "audio/ogg"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        ((BROKEN / "lfs.jpg").read_bytes(), "Git LFS"),
        ((BROKEN / "error.jpg").read_bytes(), "HTML"),
        ((BROKEN / "drawing.svg").read_bytes(), "SVG"),
        (b'<?xml version="1.0"?><!-- x --><svg xmlns="a">', "SVG"),
        ((BROKEN / "movie.mp4").read_bytes(), "HLS"),
        (b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\n", "SDP"),
        (b"ffconcat version 1.0\nfile '/etc/passwd'\n", "concat"),
        (b"file '/etc/passwd'\n", "concat"),
        (b'{"error": "no"}', "JSON"),
        (b"\xef\xbb\xbfhello", "plain text"),
        ("杯子".encode() * 400, "plain text"),
        (b"PK\x03\x04...", "ZIP"),
        (b"%PDF-1.7", "PDF"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"%!PS-Adobe", "PostScript"),
        (b"II+\0\x08\0\0\0", "BigTIFF"),
        (b"\x80\x81\x82\x83", "unknown bytes"),
        (bytes(100), "unknown bytes"),
    ],
)
def test_what_is_no_media_is_named(data, word):
    assert sniff(data) is None
    assert word in not_media(data).name


HEADS = [b"RIFF", b"RF64", b"GIF8", b"9a", b"ftyp", b"avif", b"M4A ", b"isom", b"WAVE", b"WEBP", b"AVI ", b"\0\0\0\x20"]


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_without_an_error(data):
    assert sniff(data) is None or sniff(data) in KINDS
    assert not_media(data).name


@given(st.binary(min_size=1, max_size=200))
def test_base64_comes_back_and_is_what_the_library_gives(data):
    text = encode(data).decode()
    assert text == base64.b64encode(data).decode()
    assert decode(text) == (data, ())
    assert decode(base64.urlsafe_b64encode(data).decode())[0] == data
    assert decode(text.rstrip("="))[0] == data
    assert decode("\n".join(text[i : i + 8] for i in range(0, len(text), 8)) + "\n")[0] == data


def test_each_repair_is_a_finding():
    assert decode("_-8=") == (b"\xff\xef", ("base64 in the URL-safe alphabet",))
    assert decode("QUI") == (b"AB", ("base64 with wrong padding",))
    assert decode("QUI==") == (b"AB", ("base64 with wrong padding",))
    assert decode(" QU\r\nJD\t") == (b"ABC", ("base64 with blanks or line breaks",))
    assert len(decode("_- 8")[1]) == 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("QUJ*", "'*' at character 3"),
        ("Q U\n!J", "'!' at character 4"),
        ("QQ==QQ==", "'=' at character 2"),
        ("QUJé", "'é' at character 3"),
        ("QU\u3000JD", "at character 2"),
        ("QUJD\x00", "at character 4"),
    ],
)
def test_junk_is_refused_with_its_place(text, shown):
    with pytest.raises(SourceError, match="at character") as caught:
        decode(text)
    assert shown in str(caught.value)


@pytest.mark.parametrize("text", ["", "  ", "====", "Q", "QUJDQ"])
def test_empty_and_cut_base64_is_refused(text):
    with pytest.raises(SourceError):
        decode(text)


def test_the_length_is_capped_before_decoding():
    assert decode("QUJD", 3)[0] == b"ABC"
    assert decode("QU\n" * 1 + "JD" + "\n" * 50, 3)[0] == b"ABC"
    with pytest.raises(SourceError, match="more than 3 bytes"):
        decode("*" * 5, 3)  # junk too, but the length is judged first


def test_a_head_is_decoded_alone():
    assert clean_head("/9j/4AAQ") == b"\xff\xd8\xff\xe0\x00\x10"
    assert clean_head("_9j_") == b"\xff\xd8\xff"
    assert clean_head("a.jpg") is None
    assert clean_head("é") is None


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_without_pybase64_the_standard_library_gives_the_same():
    code = """
import sys
if {blocked}: sys.modules["pybase64"] = None
from mmprompt.errors import SourceError
from mmprompt.media.base64_text import clean_head, decode, encode, encode_text
print(encode(b"\\xff\\xef").decode(), encode_text(b"\\xff\\xef"), clean_head("/9j/4AAQ"))
for text in ("QUJD", "_-8", "QU I", "QQ==QQ==", "QUJ*", "Q", "", "QR=="):
    try: print(decode(text))
    except SourceError as error: print(error)
"""
    assert run(code.format(blocked=True)) == run(code.format(blocked=False))


def test_importing_the_package_loads_no_heavy_library():
    heavy = {"PIL", "numpy", "av", "soundfile", "requests", "transformers"}
    loaded = run("import sys, mmprompt.media; print(*{m.partition('.')[0] for m in sys.modules})")
    assert not heavy & set(loaded.split())
