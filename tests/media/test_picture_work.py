"""Pictures whose decoding is bounded by their header or by the time."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from baits import tiff
from image_files import chunk, png, saved
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


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_what_encoders_write_passes_at_the_largest_size(mode):
    data = saved(Image.new(mode, (300, 300)), "JPEG", progressive=True, subsampling=0)
    for function in ALL:
        function(data, MediaPolicy(max_pixels=90_000))


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
    with pytest.raises(PolicyError, match="the WEBP takes longer than timeout"):
        check_image(data, MediaPolicy(timeout=0.001))


def test_a_tiff_is_measured_by_its_tiles():
    small, large = tiff(64, 64), tiff(64, 4096)
    assert len(large) < 20_000
    assert seconds_of(bare(large).load) > 4 * processor_seconds(lambda: bare(small).load())
    policy = MediaPolicy(max_pixels=1_000_000, read_also=("tiff",))
    for function in ALL:
        function(small, policy)
        with pytest.raises(PolicyError, match="the tiles of the TIFF have 4096 x 4096 pixels together"):
            function(large, policy)


@pytest.mark.parametrize("name", ["JPEG", "PNG", "GIF"])
def test_the_time_of_a_decode_is_bounded_wherever_a_reader_asks_for_more(name):
    noise = np.random.default_rng(3).integers(0, 256, (900, 1200), dtype=np.uint8)
    data = saved(Image.fromarray(noise), name)
    decode_image(data, POLICY)
    with pytest.raises(PolicyError, match=f"the {name} takes longer than timeout \\(0.001 s\\); raise timeout"):
        decode_image(data, MediaPolicy(timeout=0.001))
