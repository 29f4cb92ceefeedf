"""Pictures changed: pixels against arrays worked out by hand and against ffmpeg, sizes, records, and fitting a target."""

from __future__ import annotations

import functools
import io
import pathlib
import shutil
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import animation, chunk, png, saved
from PIL import Image, ImageCms, features

from mmprompt.errors import MMPromptError, PolicyError, SourceError, TargetError
from mmprompt.media import MediaPolicy
from mmprompt.media.changes import Changes, TargetRoom
from mmprompt.media.engine import MediaEngine
from mmprompt.media.image.changes import change_image
from mmprompt.media.image.fit import LOWEST_SIDE, change_to_fit, fit_image
from mmprompt.media.image.headers import orientation_exif
from mmprompt.media.image.pixels import encoded, resized, size_within, turned
from mmprompt.media.image.reading import check_image, decode_image, image_facts
from mmprompt.media.media_types import sniff
from mmprompt.messages import MediaPart
from mmprompt.targets.limits import check_media, limits, target_room

MEDIA = pathlib.Path(__file__).parents[2] / "fixtures" / "tour" / "media"
POLICY = MediaPolicy()
MORE = MediaPolicy(read_also=("tiff", "avif"))
RNG = np.random.default_rng(11)  # for what stands here alone: each test draws from its own
NOISE = RNG.integers(0, 256, (40, 60, 3), dtype=np.uint8)
ffmpeg_only = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="needs ffmpeg")


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def part_of(data):
    return MediaPart("image", sniff(data).image, data)


def fixture(name):
    return part_of((MEDIA / name).read_bytes())


def changed(data, **changes):
    """Change a file and return the part; what it holds must be sound, and of the type it says."""
    part = change_image(part_of(data), Changes(**changes), POLICY)
    assert part.media_type == check_image(part.data, POLICY).media_type
    return part


def pixels(part):
    return np.asarray(decode_image(part.data, POLICY))


def by_ffmpeg(data, layout, shape):
    """Decode a picture with ffmpeg, which turns it as its EXIF says, to ``layout`` and ``shape``."""
    command = ["ffmpeg", "-v", "error", "-i", "-", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", layout, "-"]
    out = subprocess.run(command, input=data, capture_output=True, check=True, timeout=60).stdout
    return np.frombuffer(out, np.uint8).reshape(shape)


def oriented(orientation, image, name, **options):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(image, name, exif=exif, **options)


# EXIF 2.3, 4.6.4: what the 0th row and the 0th column of the stored picture are of the one to be seen
STORED = {
    1: lambda seen: seen,  # top, left
    2: lambda seen: seen[:, ::-1],  # top, right
    3: lambda seen: seen[::-1, ::-1],  # bottom, right
    4: lambda seen: seen[::-1],  # bottom, left
    5: lambda seen: seen.swapaxes(0, 1),  # left, top
    6: lambda seen: seen[:, ::-1].swapaxes(0, 1),  # right, top
    7: lambda seen: seen[::-1, ::-1].swapaxes(0, 1),  # right, bottom
    8: lambda seen: seen[::-1].swapaxes(0, 1),  # left, bottom
}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright_gives_the_picture_that_exif_means_pixel_by_pixel(orientation):
    data = oriented(orientation, Image.fromarray(np.ascontiguousarray(STORED[orientation](NOISE))), "PNG")
    part = changed(data, upright=True)
    assert np.array_equal(pixels(part), NOISE)
    facts = image_facts(part.data, POLICY)
    assert (facts.width, facts.height, facts.orientation) == (60, 40, 1)
    assert b"eXIf" not in part.data or orientation == 1
    assert change_image(part, Changes(upright=True), POLICY) is part  # never turned twice
    if orientation == 1:
        assert part.changes == ()
    else:
        assert part.changes == (f"turned upright from EXIF orientation {orientation}", "PNG encoded anew, lossless")


@ffmpeg_only
def test_upright_agrees_with_ffmpeg(tmp_path):
    seen = np.full((48, 80), 40, np.uint8)
    seen[:16, :16], seen[:16, -16:], seen[-16:, :16], seen[-16:, -16:] = 250, 190, 130, 90
    words = ["ffmpeg", "-v", "error", "-nostdin"]
    for orientation, stored in STORED.items():
        picture = Image.fromarray(np.ascontiguousarray(stored(seen)))
        (tmp_path / f"{orientation}.jpg").write_bytes(oriented(orientation, picture, "JPEG", quality=95))
        words += ["-i", f"{orientation}.jpg"]
    for at, orientation in enumerate(STORED):
        words += ["-map", str(at), "-f", "rawvideo", "-pix_fmt", "gray", f"{orientation}.raw"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)  # once for all: to start takes it the longest
    for orientation in STORED:
        data = (tmp_path / f"{orientation}.jpg").read_bytes()
        raw = (tmp_path / f"{orientation}.raw").read_bytes()
        theirs = np.frombuffer(raw, np.uint8).reshape(48, 80).astype(int)
        assert abs(theirs - seen).max() <= 6  # ffmpeg turned it
        for ours in (changed(data, upright=True, image_format="png"), changed(data, upright=True, quality=95)):
            assert abs(pixels(ours).astype(int) - theirs).max() <= 6, orientation


@pytest.mark.parametrize("name", ["JPEG", "PNG", "WEBP"])
def test_an_orientation_that_is_not_applied_stays_in_every_format(name):
    data = oriented(6, Image.fromarray(NOISE), name)
    for target in ("jpeg", "png", "webp"):
        part = changed(data, image_format=target, max_side=30)
        facts = image_facts(part.data, POLICY)
        assert (facts.width, facts.height, facts.orientation) == (30, 20, 6)
    both = changed(data, upright=True, max_side=30)
    assert image_facts(both.data, POLICY)[2:6] == (20, 30, "RGB", 1)
    assert [note.partition(" (")[0] for note in both.changes[:2]] == [
        "turned upright from EXIF orientation 6",
        "40x60 to 20x30",
    ]


# modes


def test_cmyk_becomes_rgb_by_the_formula_and_only_where_asked():
    inks = np.zeros((16, 16 * 6, 4), np.uint8)
    for n, ink in enumerate(
        [(0, 0, 0, 0), (255, 0, 0, 0), (0, 255, 0, 0), (0, 0, 255, 0), (0, 0, 0, 255), (64, 128, 32, 100)]
    ):
        inks[:, 16 * n : 16 * n + 16] = ink
    data = saved(
        Image.frombytes("CMYK", (96, 16), inks.tobytes()),
        "JPEG",
        quality=100,
    )
    assert image_facts(data, POLICY).mode == "CMYK"
    assert b"Adobe" in data  # and so stored inverted
    part = changed(data, mode="RGB", image_format="png")
    expected = (255 - inks[:, :, :3].astype(float)) * (255 - inks[:, :, 3:].astype(float)) / 255
    assert abs(pixels(part) - expected).max() <= 4  # JPEG's own loss
    assert part.changes == ("mode CMYK to RGB", "JPEG to PNG, lossless")
    exact = np.asarray(decode_image(data, POLICY)).astype(float)
    formula = np.round((255 - exact[:, :, :3]) * (255 - exact[:, :, 3:]) / 255)
    assert abs(pixels(part) - formula).max() <= 1
    kept = changed(data, max_side=48)
    assert image_facts(kept.data, POLICY).mode == "CMYK"
    assert abs(np.asarray(decode_image(kept.data, POLICY))[4, 4].astype(int) - inks[0, 0]).max() <= 4
    if shutil.which("ffmpeg"):
        assert abs(by_ffmpeg(data, "rgb24", (16, 96, 3)) - expected)[:, 4::16].max() <= 8


def test_sixteen_bits_are_scaled_not_clipped():
    values = np.array([0, 1, 128, 129, 255, 256, 257, 385, 386, 1000, 32767, 32768, 65406, 65407, 65535], ">u2")
    data = png(len(values), 1, 16, 0, [values.tobytes()])
    clipped = np.asarray(Image.open(io.BytesIO(data)).convert("L"))[0]
    assert clipped[4] == clipped[-1] == 255  # what bare Pillow does
    expected = np.floor(values.astype(float) * 255 / 65535 + 0.5)
    for changes in ({"mode": "L"}, {"image_format": "webp", "mode": "L", "quality": 100}):
        part = changed(data, **changes)
        assert "16 bits to 8" in part.changes
        if "image_format" not in changes:
            assert np.array_equal(pixels(part)[0], expected)
    rgb = pixels(changed(data, mode="RGB"))[0]
    assert np.array_equal(rgb, np.stack([expected] * 3, axis=1))
    jpeg = pixels(changed(png(64, 64, 16, 0, [struct.pack(">H", 40_000) * 64] * 64), image_format="jpeg"))
    assert abs(jpeg.astype(int) - 156).max() <= 1


@ffmpeg_only
def test_sixteen_bits_agree_with_ffmpeg(rng):
    wide = rng.integers(0, 65536, (32, 32)).astype(">u2")
    data = png(32, 32, 16, 0, [row.tobytes() for row in wide])
    theirs = by_ffmpeg(data, "gray", (32, 32)).astype(int)
    assert abs(pixels(changed(data, mode="L")).astype(int) - theirs).max() <= 1
    colours = rng.integers(0, 65536, (32, 96)).astype(">u2")
    data = png(32, 32, 16, 2, [row.tobytes() for row in colours])
    ours = pixels(changed(data, mode="RGB")).astype(int)
    assert abs(ours - by_ffmpeg(data, "rgb24", (32, 32, 3))).max() <= 1
    assert abs(ours.reshape(32, 96) - colours / 257).max() <= 1


def test_sixteen_bits_stay_where_only_the_size_is_asked():
    wide = np.full((40, 40), 40_000, ">u2")
    part = changed(png(40, 40, 16, 0, [row.tobytes() for row in wide]), max_side=10)
    assert image_facts(part.data, POLICY)[2:5] + image_facts(part.data, POLICY)[8:] == (10, 10, "I;16", 16)
    assert pixels(part).tolist() == [[40_000] * 10] * 10


def laid(colour, alpha, background):
    """The mean of colour and background by alpha, rounded."""
    alpha = alpha[..., None].astype(float)
    return np.floor((colour * alpha + np.array(background, float) * (255 - alpha)) / 255 + 0.5)


@pytest.mark.parametrize("background", [(255, 255, 255), (0, 0, 0), (10, 200, 77)])
def test_alpha_is_laid_on_the_background(background, rng):
    colour, alpha = NOISE, rng.integers(0, 256, (40, 60), dtype=np.uint8)
    rgba = saved(Image.fromarray(np.dstack([colour, alpha])), "PNG")
    part = changed(rgba, mode="RGB", background=background)
    assert np.array_equal(pixels(part), laid(colour, alpha, background))
    assert part.changes[:2] == ("mode RGBA to RGB", f"alpha laid on {background}")

    grey = saved(Image.fromarray(np.dstack([colour[:, :, 0], alpha])), "PNG")
    assert image_facts(grey, POLICY).mode == "LA"
    expected = laid(colour[:, :, :1], alpha, background)
    assert np.array_equal(pixels(changed(grey, mode="RGB", background=background)), expected)
    jpeg = changed(grey, image_format="jpeg", background=background, quality=100)
    assert image_facts(jpeg.data, POLICY).mode == ("L" if len(set(background)) == 1 else "RGB")
    if background == (0, 0, 0):
        assert np.array_equal(pixels(changed(grey, mode="L", background=background)), expected[:, :, 0])

    indices = rng.integers(0, 8, (40, 60), dtype=np.uint8)
    palette, clear = (
        rng.integers(0, 256, (8, 3), dtype=np.uint8),
        np.array([0, 50, 100, 200, 255, 255, 255, 255], np.uint8),
    )
    data = png(
        60,
        40,
        8,
        3,
        [r.tobytes() for r in indices],
        chunk(b"PLTE", palette.tobytes()),
        chunk(b"tRNS", clear[:4].tobytes()),
    )
    facts = image_facts(data, POLICY)
    assert (facts.mode, facts.has_alpha) == ("P", True)
    part = changed(data, mode="RGB", background=background)
    assert np.array_equal(pixels(part), laid(palette[indices], clear[indices], background))
    assert part.changes[:2] == ("mode P to RGB", f"alpha laid on {background}")


CLEAR_GREYS = {  # bits, row, tRNS, the greys, and which of them are clear (PNG 3, 11.3.2.1)
    "1 bit": (1, b"\xa0", 1, [255, 0, 255, 0], [1, 0, 1, 0]),
    "2 bits": (2, b"\x1b", 2, [0, 85, 170, 255], [0, 0, 1, 0]),
    "4 bits": (4, b"\x0f\x3c", 3, [0, 255, 51, 204], [0, 0, 1, 0]),
    "8 bits": (8, b"\x00\x40\x80\xff", 128, [0, 64, 128, 255], [0, 0, 1, 0]),
    "16 bits": (16, struct.pack(">4H", 0, 0x8000, 0x80FF, 65535), 0x8000, [0, 128, 128, 255], [0, 1, 0, 0]),
}


@pytest.mark.parametrize("name", CLEAR_GREYS)
def test_a_grey_that_stands_for_clear_is_found_at_every_depth(name):
    bits, row, clear, greys, gone = CLEAR_GREYS[name]
    data = png(4, 1, bits, 0, [row], chunk(b"tRNS", struct.pack(">H", clear)))
    part = changed(data, mode="RGB", background=(9, 99, 200))
    expected = [(9, 99, 200) if is_gone else (grey,) * 3 for grey, is_gone in zip(greys, gone, strict=True)]
    assert pixels(part)[0].tolist() == [list(colour) for colour in expected]
    assert "alpha laid on (9, 99, 200)" in part.changes


CLEAR_COLOURS = {  # bits, colour type, row, tRNS
    "rgb 8": (8, 2, b"\1\2\3\xff\0\0\x10\x20\x30\0\0\0", b"\0\x10\0\x20\0\x30"),
    "rgb 16": (16, 2, struct.pack(">12H", *range(0, 60000, 5000)), struct.pack(">3H", 15000, 20000, 25000)),
    "palette": (8, 3, b"\0\1\2\3", b"\xff\x80\0"),
}


@ffmpeg_only
@pytest.mark.parametrize("name", CLEAR_COLOURS)
def test_a_colour_that_stands_for_clear_agrees_with_ffmpeg(name):
    bits, colour, row, clear = CLEAR_COLOURS[name]
    more = [chunk(b"PLTE", bytes(range(10, 130, 10)))] if colour == 3 else []
    data = png(4, 1, bits, colour, [row], *more, chunk(b"tRNS", clear))
    theirs = by_ffmpeg(data, "rgba", (1, 4, 4))
    assert 0 in theirs[:, :, 3]
    part = changed(data, mode="RGB", background=(9, 99, 200))
    assert "alpha laid on (9, 99, 200)" in part.changes
    assert abs(pixels(part) - laid(theirs[:, :, :3], theirs[:, :, 3], (9, 99, 200))).max() <= 1


def test_single_bits_and_palettes_are_mixed_as_samples():
    board = np.indices((32, 32)).sum(axis=0) % 2 * 255
    bits = saved(Image.fromarray(board.astype(np.uint8)).convert("1"), "PNG")
    assert image_facts(bits, POLICY)[4:9:4] == ("1", 1)
    part = changed(bits, max_side=8)
    assert (image_facts(part.data, POLICY).mode, part.changes[1]) == ("L", "mode 1 to L")
    assert abs(pixels(part).astype(int)[2:-2, 2:-2] - 127).max() <= 8  # grey, not dots
    palette = saved(Image.fromarray(board.astype(np.uint8)).convert("P"), "GIF")
    part = changed(palette, max_side=8)
    assert part.media_type == "image/png"
    assert abs(pixels(part).astype(int)[2:-2, 2:-2] - 127).max() <= 8
    assert np.array_equal(pixels(changed(bits, mode="L")), board)


def test_what_is_clear_does_not_shine_through_when_scaled():
    image = np.zeros((40, 40, 4), np.uint8)
    image[:, :20] = (0, 0, 255, 255)
    image[:, 20:] = (255, 255, 0, 0)  # yellow, but clear
    part = changed(saved(Image.fromarray(image), "PNG"), max_side=10)
    seen = pixels(part)[pixels(part)[:, :, 3] > 8]
    assert seen[:, 0].max() <= 4


def test_grey_is_the_luma_of_bt601():
    data = saved(Image.fromarray(NOISE), "PNG")
    expected = NOISE.astype(float) @ [0.299, 0.587, 0.114]
    assert abs(pixels(changed(data, mode="L")) - expected).max() <= 0.51


# sizes


@settings(deadline=None, max_examples=3 * settings().max_examples)
@given(
    st.integers(1, 70_000), st.integers(1, 70_000), st.none() | st.integers(1, 9000), st.none() | st.integers(1, 10**8)
)
def test_a_size_keeps_both_limits_and_the_aspect(width, height, max_side, max_pixels):
    new = size_within(width, height, max_side, max_pixels)
    assert 1 <= new[0] <= width
    assert 1 <= new[1] <= height
    assert max_side is None or max(new) <= max_side
    assert max_pixels is None or new[0] * new[1] <= max_pixels
    scale = max(new[0] / width, new[1] / height)
    if min(new) > 1:
        assert abs(new[0] - width * scale) <= 1 + width / height
        assert abs(new[1] - height * scale) <= 1 + height / width
    if (max_side is None or max(width, height) <= max_side) and (max_pixels is None or width * height <= max_pixels):
        assert new == (width, height)


def test_scaling_is_lanczos_over_the_whole_area():
    ramp = np.tile(np.linspace(0, 255, 512), (128, 1)).astype(np.uint8)
    ours = pixels(changed(saved(Image.fromarray(ramp), "PNG"), max_side=128)).astype(float)
    means = ramp.reshape(32, 4, 128, 4).mean(axis=(1, 3))
    assert ours.shape == (32, 128)
    assert abs(ours - means)[:, 2:-2].max() <= 1


@ffmpeg_only
def test_scaling_agrees_with_ffmpegs_lanczos():
    data = (MEDIA / "coffee.jpg").read_bytes()
    grey = changed(data, mode="L", image_format="png")
    ours = pixels(changed(grey.data, max_side=256)).astype(float)
    filters = ["-vf", "scale=256:171:flags=lanczos+accurate_rnd"]
    command = ["ffmpeg", "-v", "error", "-i", "-", *filters, "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    out = subprocess.run(command, input=grey.data, capture_output=True, check=True, timeout=60).stdout
    theirs = np.frombuffer(out, np.uint8).reshape(171, 256)
    assert ours.shape == (171, 256)
    assert abs(ours - theirs).mean() < 0.6


def test_the_format_stays_where_only_the_size_is_asked():
    for name in ("coffee.jpg", "alpha.png", "cat.webp"):
        part = fixture(name)
        after = change_image(part, Changes(max_side=64), POLICY)
        assert after.media_type == part.media_type
        assert max(image_facts(after.data, POLICY)[2:4]) == 64
    coffee = fixture("coffee.jpg")
    low, high = (change_image(coffee, Changes(max_side=300, quality=q), POLICY) for q in (40, 95))
    assert len(low.data) < len(high.data)
    assert low.changes == ("512x341 to 300x200 (max_side 300)", "JPEG encoded anew, quality 40")
    lossless = saved(Image.fromarray(NOISE), "WEBP", lossless=True)
    assert changed(lossless, max_side=59).changes[-1] == "WebP encoded anew, lossless"
    assert changed(lossless, max_side=59, image_format="webp").changes[-1] == "WebP encoded anew, quality 85"
    assert changed(saved(Image.fromarray(NOISE), "BMP"), max_side=59).changes[-1] == "BMP to PNG, lossless"


def test_nothing_to_do_gives_the_same_part():
    for name in ("coffee.jpg", "alpha.png", "cat.webp", "spinner.gif", "depth16.png"):
        part = fixture(name)
        for changes in (Changes(), Changes(upright=True, max_side=9000, max_pixels=10**9), Changes(quality=3)):
            assert change_image(part, changes, POLICY) is part
    assert change_image(fixture("coffee.jpg"), Changes(mode="RGB", image_format="jpeg"), POLICY).changes == ()
    sound = MediaPart("audio", "audio/wav", b"RIFF")
    assert change_image(sound, Changes(max_side=1), POLICY) is sound


def test_what_was_said_before_stays_and_the_rest_of_the_part():
    part = fixture("coffee.jpg")._replace(
        changes=("fetched",), findings=("odd",), options=(("detail", "low"),), origin="x"
    )
    after = change_image(part, Changes(max_side=10), POLICY)
    assert after.changes[0] == "fetched"
    assert (after.findings, after.options, after.origin) == (("odd",), (("detail", "low"),), "x")


def test_the_same_change_gives_the_same_bytes_in_any_thread():
    part, changes = fixture("coffee.jpg"), Changes(max_side=200, image_format="webp")
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: change_image(part, changes, POLICY).data, range(8)))
    assert len(set(made)) == 1


def test_a_colour_profile_stays_only_where_it_is_of_the_mode():
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    photo = Image.fromarray(NOISE)
    for name in ("JPEG", "PNG", "WEBP"):
        data = saved(photo, name, icc_profile=srgb)
        for target in ("jpeg", "png", "webp"):
            kept = decode_image(changed(data, max_side=30, image_format=target).data, POLICY)
            assert kept.info["icc_profile"] == srgb
        grey = decode_image(changed(data, mode="L", image_format="png").data, POLICY)
        assert "icc_profile" not in grey.info
    cmyk = saved(photo.convert("CMYK"), "JPEG", icc_profile=srgb[:16] + b"CMYK" + srgb[20:])
    assert "icc_profile" not in decode_image(changed(cmyk, mode="RGB").data, POLICY).info
    assert "icc_profile" in decode_image(changed(cmyk, max_side=30).data, POLICY).info
    huge = saved(photo, "JPEG", icc_profile=srgb + bytes(2 << 20))
    assert len(changed(huge, max_side=30).data) < 10_000


def test_no_other_metadata_is_carried_over():
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 8, "where it was taken"
    data = saved(Image.fromarray(NOISE), "JPEG", exif=exif, comment=b"private note", xmp=b"<x>tiff:Orientation=3</x>")
    for target in ("jpeg", "png", "webp"):
        part = changed(data, max_side=30, image_format=target)
        for word in (b"where it was", b"private", b"<x>", b"tiff:"):
            assert word in data
            assert word not in part.data


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_stays_and_that_is_said(name):
    part = changed(animation(name, 4), max_side=32)
    assert part.changes[0] == "4 frames to the first"
    assert part.findings == ("of 4 frames the first is kept",)
    assert changed(animation(name, 1), max_side=32).findings == ()
    facts = check_image(part.data, POLICY)
    assert (facts.frames, facts.width) == (1, 32)


def test_odd_pictures_are_changed_too():
    for size in ((1, 1), (1, 5000), (5000, 1), (3, 2)):
        for name in ("JPEG", "PNG", "WEBP", "GIF", "BMP"):
            data = saved(Image.new("L", size, 77), name)
            for changes in ({"max_pixels": 1}, {"max_side": 1}, {"mode": "RGB", "image_format": "jpeg"}):
                facts = image_facts(changed(data, **changes).data, POLICY)
                assert facts.width * facts.height == (1 if "mode" not in changes else size[0] * size[1])


def test_what_cannot_be_made_is_an_error():
    part = fixture("coffee.jpg")
    long = saved(Image.new("1", (20_000, 1)), "PNG")
    with pytest.raises(SourceError, match="more than a WEBP has a side; scale it down"):
        change_image(part_of(long), Changes(image_format="webp"), POLICY)
    with pytest.raises(PolicyError, match="max_pixels"):
        change_image(part, Changes(max_side=9), MediaPolicy(max_pixels=1000))
    with pytest.raises(SourceError, match="cut or damaged"):
        change_image(part._replace(data=part.data[:9000]), Changes(max_side=9), POLICY)


# frames


def test_frames_of_a_video_are_scaled_one_by_one_and_small_ones_kept():
    small, large = saved(Image.fromarray(NOISE), "JPEG"), saved(Image.new("RGB", (640, 480)), "JPEG")
    part = MediaPart("video", "video/jpeg", b"", (large, small, large))
    after = change_image(part, Changes(max_side=320), POLICY)
    assert [decode_image(f, POLICY).size for f in after.frames] == [(320, 240), (60, 40), (320, 240)]
    assert after.frames[1] is small
    assert after.changes == ("2 of 3 frames: 640x480 to 320x240 (max_side 320), quality 85",)
    assert change_image(part, Changes(max_side=640, mode="L"), POLICY) is part
    room = TargetRoom("t", frozenset(["video/jpeg"]), max_pixels=5000)
    fitted = fit_image(part, room, POLICY)
    assert all(image_facts(f, POLICY).width <= 81 for f in fitted.frames)
    assert "2 of 3 frames: 640x480 to 81x60 (fit: t takes max_pixels 5000)" in fitted.changes[0]


def likeness(one, other):
    """Return the peak signal-to-noise ratio of two pictures in decibels."""
    difference = np.asarray(one, dtype=float) - np.asarray(other, dtype=float)
    return 10 * np.log10(255**2 / (difference**2).mean())


@functools.cache
def photograph(width, height):
    """Return a JPEG whose details are the fainter the finer they are, as in photographs, down to single pixels."""
    rng = np.random.default_rng(11)
    pixels = np.full((height, width, 3), 128.0)
    for octave in range(9):
        noise = rng.normal(size=(4 << octave, 5 << octave, 3)) * 40 / 2 ** (octave / 2 if octave < 4 else octave - 2)
        for channel in range(3):
            layer = Image.fromarray(noise[:, :, channel].astype(np.float32))
            pixels[:, :, channel] += layer.resize((width, height), Image.Resampling.BICUBIC)
    return encoded(Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), "JPEG", 95)


@pytest.mark.parametrize(("side", "decoded"), [(60, 101), (66, 201), (133, 201), (190, 402), (267, 402), (268, 803)])
def test_a_jpeg_scaled_down_looks_as_if_all_its_pixels_had_been_decoded(side, decoded):
    data = photograph(803, 605)
    stored = changed(data, max_side=side, image_format="png")
    made = Image.open(io.BytesIO(stored.data))
    assert decode_image(data, POLICY, size=made.size).width == decoded
    exact = resized(decode_image(data, POLICY), made.size)
    assert (
        exact.tobytes() == made.tobytes() if decoded == 803 else likeness(made, exact) >= 48
    )  # quality 85 costs more: 26 to 33 dB
    for orientation, sizes in ((1, ("803x605", side, exact.height)), (6, ("605x803", exact.height, side))):
        exif = orientation_exif(orientation)
        lying = data[:2] + struct.pack(">2sH", b"\xff\xe1", len(exif) + 2) + exif + data[2:]
        upright = changed(lying, max_side=side, upright=True, image_format="png")
        assert Image.open(io.BytesIO(upright.data)).tobytes() == turned(made, orientation).tobytes()
        assert upright.changes[-2] == "{} to {}x{} (max_side {})".format(*sizes, side)


# fit

ANY = frozenset(["image/jpeg", "image/png", "image/webp", "image/gif"])
BIG = Image.fromarray(np.kron(RNG.integers(0, 256, (60, 80, 3), dtype=np.uint8), np.ones((10, 10, 1), np.uint8)))


def fitted(data, **room):
    room = TargetRoom("t", **{"formats": ANY, **room})
    part = fit_image(part_of(data), room, POLICY)
    facts = check_image(part.data, POLICY)
    assert part.media_type == facts.media_type in room.formats
    assert room.max_bytes is None or len(part.data) <= room.max_bytes
    assert facts.frames == 1 or facts.media_type not in room.still
    return part


def test_what_fits_stays_as_it_is():
    for name in ("coffee.jpg", "alpha.png", "cat.webp", "spinner.gif", "rotated.jpg"):
        part = fixture(name)
        room = TargetRoom("t", ANY, frozenset(), len(part.data), max(image_facts(part.data, POLICY)[2:4]))
        assert fit_image(part, room, POLICY) is part


@pytest.mark.parametrize(
    ("name", "formats", "becomes"),
    [
        ("cat.webp", ("jpeg", "png"), "jpeg"),
        ("alpha.png", ("jpeg", "webp"), "webp"),
        ("alpha.png", ("jpeg",), "jpeg"),
        ("chart.png", ("jpeg", "webp"), "webp"),
        ("coffee.jpg", ("png", "webp"), "webp"),
        ("coffee.jpg", ("png", "gif"), "png"),
        ("spinner.gif", ("png", "jpeg"), "png"),
        ("spinner.gif", ("jpeg",), "jpeg"),
    ],
)
def test_a_format_that_is_not_taken_becomes_the_one_that_loses_least(name, formats, becomes):
    part = fitted((MEDIA / name).read_bytes(), formats=frozenset(f"image/{f}" for f in formats))
    assert part.media_type == f"image/{becomes}"
    assert part.changes[-1].endswith(f" (fit: t takes {', '.join(sorted(f'image/{f}' for f in formats))})")
    if becomes != "jpeg" and name != "coffee.jpg":  # nothing was lost
        before = decode_image((MEDIA / name).read_bytes(), POLICY).convert("RGBA")
        assert decode_image(part.data, POLICY).convert("RGBA").tobytes() == before.tobytes()


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_an_animation_becomes_its_first_frame_where_none_is_taken(name):
    data, still = animation(name, 3), frozenset((f"image/{name.lower()}",))
    part = fitted(data, still=still)
    assert part.changes[0] == "3 frames to the first (fit: t takes one frame)"
    assert part.findings == ("of 3 frames the first is kept",)
    assert fitted(data).changes == ()
    assert fitted(animation(name, 1), still=still).changes == ()


@pytest.mark.parametrize("target", ["openai", "hf", "vllm"])
@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_fit_changes_the_animations_that_the_target_refuses_and_no_others(name, target):
    part = part_of(animation(name, 3))
    fits = fit_image(part, target_room(target, "image"), POLICY)
    if target == "vllm" or (target == "openai" and name != "GIF"):
        check_media(part, limits(target))
        assert fits is part
        return
    with pytest.raises(TargetError, match=f"takes no animated {name}; send a single frame, or pass --fit"):
        check_media(part, limits(target))
    check_media(fits, limits(target))
    first = decode_image(fits.data, POLICY).convert("RGB").getpixel((0, 0))
    assert np.abs(np.array(first) - (0, 255, 90)).max() < 12


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "I;16", "P"])
def test_a_tiff_that_may_be_read_becomes_a_png_without_loss(mode):
    image = Image.fromarray(NOISE).convert("L" if mode == "I;16" else mode)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image).astype("<u2") * 200)
    part = part_of(saved(image, "TIFF", compression="tiff_adobe_deflate"))
    fits = fit_image(part, target_room("vllm", "image"), MORE)
    assert fits.changes[-1].startswith("TIFF to PNG, lossless (fit: vllm takes image/bmp")
    theirs = image.convert("RGB") if mode == "CMYK" else image
    assert np.array_equal(pixels(fits), np.asarray(theirs))
    assert change_image(part, Changes(max_side=30), MORE).media_type == "image/png"
    with pytest.raises(SourceError, match="TIFF, which mmprompt does not read"):
        fit_image(part, target_room("vllm", "image"), POLICY)


def test_of_a_tiff_of_pages_the_first_is_kept_and_that_is_said():
    page = Image.fromarray(NOISE)
    data = saved(page, "TIFF", save_all=True, append_images=[Image.new("RGB", (60, 40))])
    fits = fit_image(part_of(data), target_room("vllm", "image"), MORE)
    assert (fits.changes[0], fits.findings) == ("several pages to the first", ("of several pages the first is kept",))
    assert np.array_equal(pixels(fits), NOISE)


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
def test_an_avif_that_may_be_read_becomes_what_its_pixels_need():
    for image, becomes in ((Image.fromarray(NOISE), "image/jpeg"), (Image.new("RGBA", (9, 9)), "image/png")):
        fits = fit_image(part_of(saved(image, "AVIF")), target_room("vllm", "image"), MORE)
        assert fits.media_type == becomes
        assert check_image(fits.data, POLICY)[2:4] == image.size


def test_bytes_are_met_by_the_highest_quality_then_by_the_size():
    data = saved(BIG, "JPEG", quality=95)
    image = decode_image(data, POLICY)
    sizes = {q: len(saved(image, "JPEG", quality=q)) for q in range(50, 86, 5)}
    for quality in (85, 80, 65, 50):
        part = fitted(data, max_bytes=sizes[quality])
        assert part.changes == (
            f"JPEG encoded anew, quality {quality}"
            + (f" (fit: t takes max_bytes {sizes[quality]})" if quality < 85 else ""),
        )
        assert image_facts(part.data, POLICY)[2:4] == BIG.size
    smaller = fitted(data, max_bytes=sizes[50] - 1)
    width, height = image_facts(smaller.data, POLICY)[2:4]
    assert BIG.width * 0.8 < width < BIG.width
    assert abs(width / height - 4 / 3) < 0.01
    assert smaller.changes[-1].startswith("JPEG encoded anew, quality 50")
    least = fit_to_least(data)
    assert max(image_facts(least.data, POLICY)[2:4]) >= LOWEST_SIDE
    with pytest.raises(TargetError) as caught:
        fitted(data, max_bytes=1000)
    assert "1000 bytes that t takes, even at quality 50 and 256 pixels a side" in str(caught.value)


def fit_to_least(data):
    """Return what fits into the fewest bytes, found by halving."""
    low, high, best = 1, len(data), None
    while high - low > 200:
        middle = (low + high) // 2
        try:
            best, high = fitted(data, max_bytes=middle), middle
        except TargetError:
            low = middle
    return best


def test_a_small_picture_is_never_scaled_for_bytes(rng):
    data = saved(Image.fromarray(rng.integers(0, 256, (200, 256, 3), dtype=np.uint8)), "JPEG", quality=95)
    with pytest.raises(TargetError, match="quality 50 and 256 pixels a side"):
        fitted(data, max_bytes=5000)


def test_what_has_no_loss_takes_one_only_for_bytes():
    data = saved(BIG, "PNG", compress_level=0)
    assert fitted(data, max_bytes=len(data) - 1).changes == ("PNG encoded anew, lossless",)
    part = fitted(saved(Image.effect_noise((400, 300), 90).convert("RGB"), "PNG"), max_bytes=60_000)
    assert part.media_type == "image/jpeg"
    noise = np.asarray(Image.effect_noise((400, 300), 90).convert("RGBA")).copy()
    noise[:, :200, 3] = 0
    clear = fitted(saved(Image.fromarray(noise), "PNG"), max_bytes=60_000)
    assert (clear.media_type, image_facts(clear.data, POLICY).has_alpha) == ("image/webp", True)
    only_png = frozenset(["image/png"])
    assert (
        max(
            image_facts(fitted(saved(Image.fromarray(noise), "PNG"), formats=only_png, max_bytes=150_000).data, POLICY)[
                2:4
            ]
        )
        < 400
    )


def test_sides_and_pixels_are_met_together_with_bytes():
    part = fitted(saved(BIG, "JPEG", quality=95), max_side=500, max_pixels=100_000, max_bytes=30_000)
    facts = image_facts(part.data, POLICY)
    assert max(facts.width, facts.height) <= 500
    assert facts.width * facts.height <= 100_000
    assert part.changes[0].endswith("(fit: t takes max_side 500, max_pixels 100000)")


def test_what_no_format_can_carry_is_an_error():
    with pytest.raises(TargetError, match="t takes image/avif, and none that is written"):
        fitted((MEDIA / "coffee.jpg").read_bytes(), formats=frozenset(["image/avif"]))
    long = saved(Image.new("1", (65_530, 1)), "PNG")
    with pytest.raises(TargetError, match="can hold this PNG"):
        fitted(long, formats=frozenset(["image/jpeg", "image/webp"]))
    assert fitted(long, formats=frozenset(["image/jpeg"]), max_side=2000).media_type == "image/jpeg"


def test_a_webp_without_loss_stays_one_whatever_stands_before_its_pixels():
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    long = srgb + bytes(6000)
    data = saved(Image.fromarray(NOISE), "WEBP", lossless=True, icc_profile=long)
    assert data.index(b"VP8L") > 4096
    assert changed(data, max_side=30).changes[-1] == "WebP encoded anew, lossless"
    fake = saved(Image.fromarray(NOISE), "WEBP", icc_profile=srgb + b"VP8L" + bytes(6000))
    assert changed(fake, max_side=30).changes[-1] == "WebP encoded anew, quality 85"
    frames = [Image.fromarray(NOISE), Image.fromarray(NOISE[::-1])]
    for lossless, how in ((True, "lossless"), (False, "quality 85")):
        moving = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=lossless, icc_profile=long)
        assert changed(moving, max_side=30).changes[-1] == f"WebP encoded anew, {how}"


def test_the_quality_asked_is_the_first_that_fit_tries():
    data = saved(BIG, "JPEG", quality=95)
    image = decode_image(data, POLICY)
    best, low = len(saved(image, "JPEG", quality=93)), len(saved(image, "JPEG", quality=30))

    def how(quality, **room):
        part = fit_image(part_of(data), TargetRoom("t", ANY, **room), POLICY, quality=quality)
        assert len(part.data) <= room.get("max_bytes", len(part.data))
        return part.changes[-1]

    assert how(93, max_bytes=best) == "JPEG encoded anew, quality 93"
    assert how(93, max_bytes=best - 1) == f"JPEG encoded anew, quality 90 (fit: t takes max_bytes {best - 1})"
    assert how(60, max_side=300) == "JPEG encoded anew, quality 60"
    assert how(30, max_bytes=low) == "JPEG encoded anew, quality 30"
    assert how(30, max_bytes=low - 1) == "JPEG encoded anew, quality 30"  # and scaled down


def test_what_is_changed_to_fit_is_decoded_scaled_and_encoded_once():
    noise = Image.effect_noise((400, 300), 60)
    small, bytes_ = Changes(max_side=200), 9000
    for data in (saved(noise, "JPEG", quality=98), saved(noise, "PNG")):
        part = change_to_fit(part_of(data), small, POLICY, TargetRoom("t", ANY, max_bytes=bytes_))
        once = fit_image(part_of(data), TargetRoom("t", ANY, max_side=200, max_bytes=bytes_), POLICY)
        twice = fit_image(change_image(part_of(data), small, POLICY), TargetRoom("t", ANY, max_bytes=bytes_), POLICY)
        assert part.data == once.data
        assert (part.data == twice.data) == data.startswith(b"\x89PNG")  # a JPEG of a JPEG is another picture
        assert part.changes == ("400x300 to 200x150 (max_side 200)", once.changes[-1])
        assert len(twice.changes) == 3


@pytest.mark.parametrize(
    ("name", "changes", "room", "said"),
    [
        ("coffee.jpg", {"max_side": 100}, {}, ("512x341 to 100x67 (max_side 100)", "JPEG encoded anew, quality 85")),
        ("coffee.jpg", {"max_side": 100}, {"max_side": 50}, ("512x341 to 50x33 (fit: t takes max_side 50)", "JPEG encoded anew, quality 85")),
        ("coffee.jpg", {"image_format": "webp"}, {"formats": frozenset(("image/png", "image/jpeg"))}, ("JPEG encoded anew, quality 85 (fit: t takes image/jpeg, image/png)",)),
        ("rotated.jpg", {"upright": True}, {"max_side": 100}, ("turned upright from EXIF orientation 6", "336x448 to 75x100 (fit: t takes max_side 100)", "JPEG encoded anew, quality 85")),
        ("alpha.png", {"mode": "RGB"}, {"formats": frozenset(("image/jpeg", "image/webp"))}, ("mode RGBA to RGB", "alpha laid on (255, 255, 255)", "PNG to WebP, lossless (fit: t takes image/jpeg, image/webp)")),
        ("spinner.gif", {"max_side": 40}, {"still": frozenset(("image/gif",))}, ("8 frames to the first", "96x96 to 40x40 (max_side 40)", "mode P to RGB", "GIF to PNG, lossless")),
        ("cat.webp", {"max_side": 1000, "quality": 60}, {"max_side": 120}, ("240x160 to 120x80 (fit: t takes max_side 120)", "WebP encoded anew, quality 60")),
    ],
)  # fmt: skip
def test_changes_and_fit_together_say_all_that_was_done(name, changes, room, said):
    part, room = fixture(name), TargetRoom("t", **{"formats": ANY, **room})
    with MediaEngine(POLICY, Changes(fit=True, **changes)) as engine:
        made = engine.change(part, room)
    assert made.changes == said
    assert made.media_type == check_image(made.data, POLICY).media_type in room.formats
    assert fit_image(made, room, POLICY) is made


def test_frames_that_go_as_images_are_each_kept_within_the_bytes_of_one():
    large, small = saved(BIG, "JPEG", quality=95), saved(Image.fromarray(NOISE), "JPEG")
    part = MediaPart("video", "video/jpeg", b"", (large, small, large))
    after = fit_image(part, TargetRoom("t", ANY, max_bytes=40_000), POLICY)
    assert [len(frame) <= 40_000 for frame in after.frames] == [True] * 3
    assert after.frames[1] is small
    assert after.media_type == "video/jpeg"
    assert len(after.changes) == 1
    assert after.changes[0].startswith("2 of 3 frames: ")
    assert after.changes[0].endswith("(fit: t takes max_bytes 40000)")
    assert fit_image(after, TargetRoom("t", ANY, max_bytes=40_000), POLICY) is after
    sized = fit_image(part, TargetRoom("t", ANY, max_side=200), POLICY, quality=60)
    assert sized.changes[0].endswith("JPEG encoded anew, quality 60")
    with pytest.raises(TargetError, match="more than the 1000 bytes"):
        fit_image(part, TargetRoom("t", ANY, max_bytes=1000), POLICY)
    # the bytes of a video are those of its frames together, which no single frame answers for
    assert fit_image(part, TargetRoom("t", frozenset(["video/jpeg"]), max_bytes=1000), POLICY) is part


def test_fitting_is_deterministic_and_fits_at_once():
    data = saved(BIG, "JPEG", quality=95)
    once = fitted(data, max_bytes=25_000)
    assert fitted(data, max_bytes=25_000) == once
    assert fit_image(once, TargetRoom("t", ANY, max_bytes=25_000), POLICY) is once


@settings(deadline=None, max_examples=settings().max_examples // 4)
@given(
    st.sampled_from(["L", "LA", "P", "RGB", "RGBA", "1", "CMYK", "I;16"]),
    st.integers(1, 40),
    st.integers(1, 40),
    st.builds(
        Changes,
        upright=st.booleans(),
        max_pixels=st.none() | st.integers(1, 900),
        max_side=st.none() | st.integers(1, 50),
        mode=st.sampled_from([None, "RGB", "L"]),
        background=st.tuples(*[st.integers(0, 255)] * 3),
        image_format=st.sampled_from([None, "jpeg", "png", "webp"]),
        quality=st.integers(1, 100),
    ),
)
def test_every_mode_takes_every_change(mode, width, height, changes):
    name = "JPEG" if mode == "CMYK" else "PNG"
    part = part_of(oriented(6, Image.new(mode, (width, height)), name))
    after = change_image(part, changes, POLICY)
    facts = check_image(after.data, POLICY)
    assert (after is part) == (after.changes == ())
    assert facts.media_type == after.media_type
    if changes.mode:
        assert not facts.has_alpha
        assert facts.mode == changes.mode or (facts.format == "WEBP" and facts.mode == "RGB")
    assert facts.orientation == (1 if changes.upright else 6)
    again = change_image(after._replace(changes=()), changes, POLICY)
    assert again.changes == () or (facts.format == "WEBP" and changes.mode == "L")


def test_mutated_pictures_are_changed_or_refused(rng):
    refused = 0
    for name in ("rotated.jpg", "chart.png", "cat.webp", "spinner.gif", "depth16.png"):
        seed = np.frombuffer((MEDIA / name).read_bytes(), np.uint8)
        for number in range(20):
            data = seed.copy()
            reach = min(len(data), (80, 1 << 20)[number % 2])
            data[rng.integers(0, reach, 2)] = rng.integers(0, 256, 2)
            part = MediaPart("image", "image/jpeg", data.tobytes())
            try:
                change_image(part, Changes(upright=True, max_side=40, mode="RGB"), MediaPolicy(max_pixels=400_000))
                fit_image(
                    part, TargetRoom("t", ANY, frozenset({"image/gif"}), 4000, 300), MediaPolicy(max_pixels=400_000)
                )
            except MMPromptError:
                refused += 1
    assert refused > 10
