"""Small picture files that would keep a decoder at work for long. Each bait is first shown to work on bare Pillow."""

from __future__ import annotations

import io
import re
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from image_files import chunk, gif, png, saved
from PIL import Image
from time_taken import processor_seconds

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.image.reading import check_image, decode_image, image_facts

POLICY = MediaPolicy()
ALL = (image_facts, decode_image, check_image)


def seconds_of(work):
    return processor_seconds(work, tries=1)


def bare(data):
    return Image.open(io.BytesIO(data))


def scans_of(data):
    return len(re.findall(rb"\xff\xda", data))


def with_scans(count, side, mode="L"):
    """A progressive JPEG whose last scan is repeated until there are ``count``."""
    data = saved(Image.new(mode, (side, side)), "JPEG", progressive=True)
    last = data[data.rindex(b"\xff\xda") : -2]
    return data[:-2] + last * (count - scans_of(data)) + data[-2:]


def test_the_scans_of_a_jpeg_are_held_against_its_pixels():
    data = with_scans(90, 1000)
    assert len(data) < 10_000
    assert seconds_of(bare(data).load) > 2 * processor_seconds(lambda: bare(with_scans(10, 1000)).load())
    for function in ALL:
        with pytest.raises(PolicyError, match="90 scans of 1000 x 1000 pixels, more than 18 times max_pixels"):
            function(data, MediaPolicy(max_pixels=4_999_999))
        function(data, MediaPolicy(max_pixels=5_000_000))


def test_exif_in_very_many_segments_is_refused():
    plain = saved(Image.new("L", (8, 8)), "JPEG")
    segment = b"\xff\xe1\xff\xff" + b"Exif\0\0" + bytes(0xFFFF - 8)

    def with_exif(count):
        return plain[:2] + segment * count + plain[2:]

    few, many = with_exif(64), with_exif(400)
    # what is there is copied for each
    assert seconds_of(lambda: bare(many)) > 9 * processor_seconds(lambda: bare(few))
    for function in ALL:
        function(few, POLICY)
        with pytest.raises(SourceError, match="more than 64 segments of EXIF"):
            function(many, POLICY)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_what_encoders_write_passes_at_the_largest_size(mode):
    data = saved(Image.new(mode, (300, 300)), "JPEG", progressive=True, subsampling=0)
    for function in ALL:
        function(data, MediaPolicy(max_pixels=90_000))


def test_scans_are_counted_in_the_picture_and_not_behind_it():
    """A film behind a photo holds the mark by chance; a comment between scans that looks like the end hides nothing."""
    film = saved(Image.new("L", (64, 64)), "JPEG") + b"\xff\xda\0" * 500
    for function in ALL:
        function(film, POLICY)
    data = with_scans(101, 64)
    second = data.index(b"\xff\xda", data.index(b"\xff\xda") + 2)
    hidden = data[:second] + b"\xff\xfe\0\4\xff\xd9\xff\xd3\xff" + data[second:]
    bare(hidden).load()
    for function in ALL:
        with pytest.raises(SourceError, match="101 scans, more than 100"):
            function(hidden, POLICY)
    many = data[:second] + b"\xff\xfe\0\2" * 12_000 + data[second:]
    with pytest.raises(SourceError, match="too much between its scans"):
        image_facts(many, POLICY)


def test_many_colour_profiles_in_a_png_are_refused():
    profile = chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(1 << 20), 9))
    one, many = (png(1, 1, 8, 0, [b"\0"], *[profile] * count) for count in (1, 60))
    assert len(many) < 100_000
    assert seconds_of(lambda: bare(many)) > 10 * processor_seconds(lambda: bare(one))  # each is unpacked
    for function in ALL:
        function(one, POLICY)
        with pytest.raises(SourceError, match="more than 10 colour profiles"):
            function(many, POLICY)


def segment(code, body):
    return b"\xff" + bytes([code]) + (len(body) + 2).to_bytes(2, "big") + body


@pytest.mark.parametrize("code", [0xC0, 0xC2, 0xDE])
def test_frame_headers_of_a_jpeg_that_pillow_makes_objects_of_are_refused(code):
    plain = saved(Image.new("RGB", (8, 8)), "JPEG")
    header = segment(code, b"\x08\0\x08\0\x08\x03" + b"\1\x11\0" * 21_000)
    tracemalloc.start()
    try:
        bare(plain[:2] + header * 5 + plain[2:])
        assert tracemalloc.get_traced_memory()[1] > 10 * len(header) * 5
    finally:
        tracemalloc.stop()
    for function in ALL:
        with pytest.raises(SourceError, match="too much before its picture"):
            function(plain[:2] + header * 5 + plain[2:], POLICY)


def test_very_many_tables_of_a_jpeg_are_refused():
    plain = saved(Image.new("RGB", (8, 8)), "JPEG")
    tables = segment(0xDB, (b"\0" + bytes(range(1, 65))) * 1000)
    some, many = (plain[:2] + tables * count + plain[2:] for count in (1, 60))
    assert seconds_of(lambda: bare(many)) > 10 * processor_seconds(lambda: bare(plain))
    for function in ALL:
        function(some, POLICY)
        with pytest.raises(SourceError, match="too much before its picture"):
            function(many, POLICY)


def test_long_comments_of_a_gif_are_refused():
    """Releases of Pillow before 12 copy, for each block, what came before: 32 MB take half a minute."""
    plain = gif(1, 1, [(0, 0, 1, 1)])
    block = b"\xff" + b"x" * 255

    def with_comments(comments):
        return plain[:19] + comments + plain[19:]

    for some, many in (
        (b"!\xfe" + block * 4000 + b"\0", b"!\xfe" + block * 4200 + b"\0"),
        ((b"!\xfe" + block + b"\0") * 4000, (b"!\xfe" + block + b"\0") * 4200),
    ):
        for function in ALL:
            function(with_comments(some), POLICY)
            with pytest.raises(SourceError, match="more than 1048576 bytes of comments"):
                function(with_comments(many), POLICY)


def test_a_second_animation_header_behind_the_pixels_of_a_png_warns_of_nothing():
    plain = png(1, 1, 8, 0, [b"\0"])
    once, twice = (plain[:-12] + chunk(b"acTL", struct.pack(">II", 2, 0)) * count + plain[-12:] for count in (1, 2))
    with pytest.warns(UserWarning, match="Invalid APNG"):
        bare(twice).load()
    for function in ALL:
        function(once, POLICY)
        with pytest.raises(SourceError, match="broken animation header"):
            function(twice, POLICY)


def test_the_time_is_looked_at_between_the_frames_of_an_animation():
    """A WebP reads its file but once, before its first frame."""
    frames = [Image.new("RGB", (200, 200), (n, 0, 0)) for n in range(100)]
    data = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True, quality=0, method=0)
    assert check_image(data, POLICY).frames == 100
    assert decode_image(data, POLICY, 99).getpixel((0, 0)) == (99, 0, 0)
    for function in (check_image, lambda file, policy: decode_image(file, policy, 99)):
        with pytest.raises(PolicyError, match="the WEBP takes longer than timeout"):
            function(data, MediaPolicy(timeout=0.001))


def run_length_coded(width, height, body):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, 8, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 2000, 0, 0, 1078) + head + bytes(1024) + body


def test_a_large_run_length_coded_bmp_is_refused():
    row = b"\1\1\0\0"  # one pixel and the end of the line
    small, large = (run_length_coded(10_000, high, row * high + b"\0\1") for high in (10, 100))
    assert seconds_of(bare(large).load) > 4 * processor_seconds(lambda: bare(small).load())  # pixel by pixel, in Python
    for function in ALL:
        function(small, POLICY)
        with pytest.raises(SourceError, match="10000 x 1001 pixels, more than 10000000"):
            function(run_length_coded(10_000, 1001, row * 1001 + b"\0\1"), POLICY)


def tiff(side, tile, *more):
    """A grey TIFF of one packed tile; ``more`` tags stand behind its own."""
    body = zlib.compress(bytes(tile * tile), 9)
    tags = [(256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (277, 3, 1, 1)]
    at = 14 + 12 * (10 + len(more))
    tags += [(322, 4, 1, tile), (323, 4, 1, tile), (324, 4, 1, at), (325, 4, 1, len(body)), *more]
    head = b"II*\0" + struct.pack("<IH", 8, len(tags))
    return head + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4) + body


def test_a_tiff_is_measured_by_its_tiles():
    small, large = tiff(64, 64), tiff(64, 4096)
    assert len(large) < 20_000
    assert seconds_of(bare(large).load) > 4 * processor_seconds(lambda: bare(small).load())
    policy = MediaPolicy(max_pixels=1_000_000, read_also=("tiff",))
    for function in ALL:
        function(small, policy)
        with pytest.raises(PolicyError, match="the tiles of the TIFF have 4096 x 4096 pixels together"):
            function(large, policy)


def test_tags_of_a_tiff_that_share_their_bytes_are_refused():
    blob = tiff(64, 64, *[(40_000 + n, 7, 100_000, 8) for n in range(200)]) + bytes(100_000)
    for function in ALL:
        with pytest.raises(SourceError, match="hold more than its file"):
            function(blob, MediaPolicy(read_also="tiff"))


@pytest.mark.parametrize("name", ["JPEG", "PNG", "GIF"])
def test_the_time_of_a_decode_is_bounded_wherever_a_reader_asks_for_more(name):
    noise = np.random.default_rng(3).integers(0, 256, (900, 1200), dtype=np.uint8)
    data = saved(Image.fromarray(noise), name)
    decode_image(data, POLICY)
    with pytest.raises(PolicyError, match=f"the {name} takes longer than timeout \\(0.001 s\\); raise timeout"):
        decode_image(data, MediaPolicy(timeout=0.001))
