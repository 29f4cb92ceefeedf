"""Header facts, decoding and the integrity walk; hostile pictures. Each bait is first shown to work on bare Pillow."""

from __future__ import annotations

import io
import pathlib
import pickle
import struct
import subprocess
import sys
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
from image_files import animation, chunk, flat_png, flipped, gif, png, saved
from PIL import Image, ImageFile, UnidentifiedImageError, features
from time_taken import processor_seconds

from mmprompt.errors import MMPromptError, PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.changes import Changes
from mmprompt.media.image.changes import change_image
from mmprompt.media.image.headers import picture_size
from mmprompt.media.image.reading import FORMATS, check_image, decode_image, image_facts
from mmprompt.messages import MediaPart

MEDIA = pathlib.Path(__file__).parents[2] / "fixtures" / "tour" / "media"
COFFEE = (MEDIA / "coffee.jpg").read_bytes()
POLICY = MediaPolicy()
SMALL = MediaPolicy(max_pixels=10_000)
MORE = MediaPolicy(read_also=("tiff", "avif"))
PHOTO = Image.open(io.BytesIO(COFFEE)).resize((96, 64))
ALL = (image_facts, decode_image, check_image)


def bare(data):
    return Image.open(io.BytesIO(data))


def refusal(function, data, policy=POLICY, kind=SourceError, **more):
    with pytest.raises(kind) as caught:
        function(data, policy, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("coffee.jpg", ("JPEG", "image/jpeg", 512, 341, "RGB", 1, 1, False, 8)),
        ("rotated.jpg", ("JPEG", "image/jpeg", 448, 336, "RGB", 6, 1, False, 8)),
        ("camera.jpg", ("JPEG", "image/jpeg", 448, 448, "L", 1, 1, False, 8)),
        ("alpha.png", ("PNG", "image/png", 128, 128, "RGBA", 1, 1, True, 8)),
        ("depth16.png", ("PNG", "image/png", 96, 64, "I;16", 1, 1, False, 16)),
        ("cat.webp", ("WEBP", "image/webp", 240, 160, "RGB", 1, 1, False, 8)),
        ("spinner.gif", ("GIF", "image/gif", 96, 96, "P", 1, 8, False, 8)),
    ],
)
def test_facts_are_those_of_the_header_and_of_the_whole_file(name, facts):
    data = (MEDIA / name).read_bytes()
    assert image_facts(data, POLICY) == facts
    assert check_image(data, POLICY) == facts
    image = decode_image(data, POLICY)
    assert (image.width, image.height, image.mode) == facts[2:5]


@pytest.mark.parametrize("name", ["PNG", "WEBP", "GIF"])
def test_frames_are_counted_from_the_header(name):
    data = animation(name)
    assert image_facts(data, POLICY).frames == 5 == check_image(data, POLICY).frames
    assert decode_image(data, POLICY).convert("RGB").getpixel((3, 3))[0] < 8


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True, "comment": b"\xff\xc0\x00\x11\x08\x00\x01\x00\x01"}),
        ("PNG", {}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"icc_profile": bytes(6001)}),
        ("GIF", {}),
        ("BMP", {}),
    ],
)
def test_a_size_read_without_a_decoder_is_that_of_the_facts(name, options):
    for size in ((1, 1), (300, 7), (5, 1025)):
        data = saved(Image.new("RGB", size, "red"), name, **options)
        assert picture_size(data) == size == image_facts(data, POLICY)[2:4]
        for length in range(40):
            try:
                picture_size(data[:length])
            except SourceError:
                continue


def test_a_size_is_found_in_odd_headers_too():
    wide = gif(4, 4, [(0, 0, 9, 6)])
    assert picture_size(wide) == image_facts(wide, POLICY)[2:4] == (9, 6)
    flip = bytearray(saved(Image.new("RGB", (5, 3)), "BMP"))
    flip[22:26] = struct.pack("<i", -3)
    assert picture_size(bytes(flip)) == image_facts(bytes(flip), POLICY)[2:4] == (5, 3)
    for name in ("JPEG", "WEBP", "PNG", "GIF"):
        with pytest.raises(SourceError):
            picture_size(saved(Image.new("RGB", (5, 3)), name)[:15])
    with pytest.raises(SourceError):
        picture_size(saved(Image.new("RGB", (5, 3)), "TIFF"))


def test_facts_decode_no_pixel():
    whole = saved(Image.new("RGB", (5000, 5000)), "PNG")
    cut = whole[: whole.index(b"IDAT") + 20]
    assert image_facts(cut, POLICY)[:4] == ("PNG", "image/png", 5000, 5000)
    assert "cut or damaged" in refusal(check_image, cut)


def test_orientation_is_found_wherever_exif_may_stand():
    exif = Image.Exif()
    exif[0x0112] = 7
    block = exif.tobytes()[6:]
    for data in (
        saved(PHOTO, "JPEG", exif=exif),
        saved(PHOTO, "WEBP", exif=exif),
        saved(PHOTO, "PNG", exif=exif),
        png(2, 1, 8, 0, [b"\0\xff"])[:-12] + chunk(b"eXIf", block) + chunk(b"IEND", b""),  # after the pixels
        png(2, 1, 8, 0, [b"\0\xff"], chunk(b"tEXt", b"Raw profile type exif\0\nexif\n 20\n" + block.hex().encode())),
    ):
        assert image_facts(data, POLICY).orientation == 7
    little = b"II*\0" + struct.pack("<IHHHIHH", 8, 1, 0x0112, 3, 1, 5, 0)
    assert image_facts(png(2, 1, 8, 0, [b"\0\xff"], chunk(b"eXIf", little)), POLICY).orientation == 5
    for broken in (little[:-4], little.replace(b"\5\0", b"\x09\0"), b"II*\0\xff\xff\xff\xff", b"junk", b""):
        assert image_facts(png(2, 1, 8, 0, [b"\0\xff"], chunk(b"eXIf", broken)), POLICY).orientation == 1


def test_a_decoded_image_is_plain_holds_its_exif_and_pickles():
    image = decode_image((MEDIA / "rotated.jpg").read_bytes(), POLICY)
    assert type(image) is Image.Image
    assert image.getexif()[0x0112] == 6
    assert pickle.loads(pickle.dumps(image)).tobytes() == image.tobytes()


def test_pixels_are_those_of_bare_pillow():
    for path in sorted(MEDIA.iterdir()):
        if path.suffix in (".jpg", ".png", ".webp", ".gif"):
            with Image.open(path) as image:
                assert decode_image(path.read_bytes(), POLICY).tobytes() == image.tobytes()


# the bombs


def test_a_bomb_that_pillow_only_warns_of_is_refused_from_its_header():
    data = flat_png(13_000, 13_700)
    assert len(data) < 200_000
    limit = Image.MAX_IMAGE_PIXELS
    with pytest.warns(Image.DecompressionBombWarning):
        assert bare(data).size == (13_000, 13_700)  # 178 megapixels, and load() would decode them

    def refuse():
        for function in ALL:
            assert "more than max_pixels (50000000); make it smaller" in refusal(function, data, kind=PolicyError)

    assert processor_seconds(refuse, enough=2) < 2
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("size", [(65_536, 1), (1, 65_536), (50_000_000, 1)])
def test_a_side_longer_than_the_policy_allows_is_refused_from_the_header(size):
    width, height = size
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"no pixels") + chunk(b"IEND", b"")
    for policy in (POLICY, MediaPolicy.preset("trusted"), MediaPolicy.preset("hostile", max_pixels=50_000_000)):
        for function in ALL:
            message = refusal(function, data, policy, PolicyError)
            assert f"{width} x {height} pixels, more than max_side_pixels (65535) on a side" in message
    assert image_facts(data, MediaPolicy(max_side_pixels=max(size))).width == width
    assert image_facts(flat_png(65_535, 1), POLICY).width == 65_535


def test_the_longest_side_of_a_jpeg_is_the_one_that_its_encoder_writes():
    for side, fits in ((65_500, True), (65_501, False)):
        part = MediaPart("image", "image/png", flat_png(side, 1))
        if fits:
            assert change_image(part, Changes(image_format="jpeg"), POLICY).media_type == "image/jpeg"
            continue
        with pytest.raises(SourceError, match="65501 x 1 pixels are more than a JPEG has a side"):
            change_image(part, Changes(image_format="jpeg"), POLICY)


_SCALED = """
import sys
from mmprompt.media.changes import Changes
from mmprompt.media.image.changes import change_image
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart
def peak():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
for name in sys.argv[1:]:
    part = MediaPart("image", "image/png", open(name, "rb").read())
    before = peak()
    change_image(part, Changes(max_side=512), MediaPolicy(isolate=False))
    print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is asked of /proc")
def test_scaling_a_picture_takes_a_bounded_number_of_bytes_for_each_pixel(tmp_path, command_environment):
    width, height = 65_500, 100
    ramp = Image.linear_gradient("L").resize((width, height))
    clear = Image.merge("LA", (ramp, ramp))
    pictures = {
        "warm.png": saved(ramp.resize((8, 8)), "PNG"),  # Pillow itself
        "grey.png": saved(ramp, "PNG"),
        "scans.jpg": saved(Image.merge("CMYK", [ramp] * 4), "JPEG", progressive=True),
        "palette.png": saved(ramp.convert("P"), "PNG", transparency=3),
        "clear.png": saved(clear.convert("RGBA"), "PNG", compress_level=1),
        "clear.webp": saved(clear.convert("RGBA").resize((2560, 2560)), "WEBP", method=0),
    }
    for name, data in pictures.items():
        (tmp_path / name).write_bytes(data)
    for name in list(pictures)[1:]:  # each in a process of its own: a peak never falls
        command = [sys.executable, "-c", _SCALED, tmp_path / "warm.png", tmp_path / name]
        said = subprocess.check_output(command, env=command_environment, timeout=60)
        taken = int(said.split()[1])
        assert taken < 20 * width * height + (8 << 20), f"{name}: {taken / width / height:.1f} bytes a pixel"


def test_a_large_picture_that_the_policy_allows_is_opened_though_pillow_refuses_it():
    data = flat_png(16_000, 12_000)
    with pytest.raises(Image.DecompressionBombError):
        bare(data)
    assert image_facts(data, MediaPolicy.preset("trusted")).width == 16_000


@pytest.mark.parametrize("name", FORMATS)
def test_max_pixels_holds_to_the_pixel_in_every_format(name):
    image = Image.new("RGB", (100, 100))
    assert check_image(saved(image, name), SMALL).format == name
    wider = saved(Image.new("RGB", (101, 100)), name)
    for function in ALL:
        assert "101 x 100" in refusal(function, wider, SMALL, PolicyError)


def test_an_animation_of_dots_on_a_large_canvas_is_refused():
    data = gif(7000, 7000, [(0, 0, 1, 1)] * 30)
    assert len(data) < 1000
    with bare(data) as image:  # 49 megapixels a frame, from 20 bytes each
        image.seek(1)
        image.load()
        assert image.size == (7000, 7000)
    assert processor_seconds(lambda: refusal(check_image, data, kind=PolicyError), enough=2) < 2
    assert "30 frames of the GIF" in refusal(check_image, data, kind=PolicyError)
    assert image_facts(data, POLICY).frames == 30


@pytest.mark.parametrize("name", ["PNG", "WEBP", "GIF"])
def test_the_budget_of_an_animation_holds_in_every_format(name):
    data = animation(name, count=12)
    assert bare(data).n_frames == 12
    tight = MediaPolicy(max_pixels=64 * 48)
    assert "more than 10 times max_pixels" in refusal(check_image, data, tight, PolicyError)
    assert decode_image(data, tight).size == (64, 48)
    few = MediaPolicy(max_frames=11)
    assert "more than max_frames (11); raise max_frames" in refusal(check_image, data, few, PolicyError)
    assert image_facts(data, few).frames == 12
    assert image_facts(data, MediaPolicy(max_frames=3)).frames == 4  # one past the limit, and no further


def test_a_gif_of_very_many_frames_is_counted_to_the_limit_only():
    data = gif(1, 1, [(0, 0, 1, 1)] * 20_000)
    begin = time.process_time()
    with bare(data) as image:
        assert image.n_frames == 20_000  # Pillow counts them all, however many
    taken = time.process_time() - begin
    policy = MediaPolicy(max_frames=100)
    ours = processor_seconds(lambda: refusal(check_image, data, policy, PolicyError), enough=taken / 4)
    assert ours < taken / 4


def test_a_gif_frame_larger_than_its_screen_is_measured_before_pillow_enlarges_the_picture():
    data = gif(10, 10, [(0, 0, 10_000, 10_000)])
    with pytest.warns(Image.DecompressionBombWarning):
        assert bare(data).size == (10_000, 10_000)
    later = gif(10, 10, [(0, 0, 1, 1), (0, 0, 60_000, 60_000)])
    with bare(later) as image, pytest.raises(Image.DecompressionBombError):
        image.seek(1)
    for function in ALL:
        assert "10000 x 10000" in refusal(function, data, kind=PolicyError)
        assert "60000 x 60000" in refusal(function, later, kind=PolicyError)
    trusted = MediaPolicy.preset("trusted")
    assert "more than Pillow takes" in refusal(check_image, data, trusted, PolicyError)


def test_an_animation_header_that_lies_is_an_error():
    apng = animation("PNG")
    at = apng.index(b"acTL")
    lie = apng[: at - 4] + chunk(b"acTL", struct.pack(">II", 1000, 0)) + apng[at + 16 :]
    with bare(lie) as image:
        assert image.n_frames == 1000
        with pytest.raises((EOFError, OSError)):
            image.seek(999)
    assert "cut or damaged" in refusal(check_image, lie)
    none = apng[: at - 4] + chunk(b"acTL", bytes(8)) + apng[at + 16 :]
    with pytest.warns(UserWarning, match="Invalid APNG"):
        bare(none)
    for function in ALL:
        assert "broken animation header" in refusal(function, none)


def slow_on_bare_pillow(data, attribute="size"):
    begin = time.process_time()
    getattr(bare(data), attribute)
    return time.process_time() - begin


def test_more_chunks_or_blocks_than_any_encoder_writes_are_refused():
    """Pillow walks them one by one in Python."""
    chunks = png(1, 1, 8, 0, [b"\0"], *[chunk(b"tESt", b"")] * 50_001)
    for function in ALL:
        assert "more than 50000 chunks" in refusal(function, chunks)
    few, many = (gif(1, 1, [(0, 0, 1, 1)], b"!\xfe" + b"\1x" * count + b"\0;") for count in (500, 50_000))
    times = []
    for file in (few, many):
        assert bare(file).n_frames == 1
        times.append(min(slow_on_bare_pillow(file, "n_frames") for _ in range(5)))
    assert times[1] > 10 * times[0]
    blocks = many[:-2] + b"\1x" * 450_100 + many[-2:]
    assert "more than 500000 blocks" in refusal(check_image, blocks)


# the readers


def test_only_the_allowed_readers_are_called():
    """Whatever Pillow writes and reads again, and the two that it reads only."""
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
    card = "{:<80}".format
    fits = "".join(
        map(card, ["SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 3", "NAXIS2  = 2", "END"])
    ).encode().ljust(2880) + bytes(2880)  # fmt: skip
    files = {"EPS": eps, "FITS": fits}
    Image.init()
    for name in sorted(set(Image.SAVE) & set(Image.OPEN) - set(FORMATS)):
        for mode in ("RGB", "P", "1", "L"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # some are deprecated
                    files[name] = saved(Image.new(mode, (64, 64)), name)
                break
            except (OSError, ValueError, KeyError, SystemError):
                continue
    opened = set()
    for name, data in files.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                opened.add(bare(data).format)
            except (UnidentifiedImageError, OSError):
                continue
        for function in ALL:
            if name in ("DIB", "MPO"):  # another name for BMP without its head; a JPEG with more behind it
                continue
            refusal(function, data)
    assert {"EPS", "FITS", "TIFF", "PPM", "ICO", "TGA", "PCX", "SGI", "IM"} <= opened


def test_eps_is_never_given_to_ghostscript():
    data = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
    assert bare(data).format == "EPS"
    for policy in (POLICY, MORE):
        assert "not an image" in refusal(check_image, data, policy)


def test_tiff_is_read_by_choice_and_its_first_page_only():
    pages = [Image.new("L", (9, 7), n % 256) for n in range(300)]
    data = saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    assert bare(data).n_frames == 300  # Pillow walks them all
    for function in ALL:
        assert "TIFF, which mmprompt does not read; convert it to PNG" in refusal(function, data)
    assert image_facts(data, MORE) == ("TIFF", "image/tiff", 9, 7, "L", 1, None, False, 8)
    assert decode_image(data, MORE).getpixel((0, 0)) == 0
    exif = Image.Exif()
    exif[0x0112] = 3
    turned = saved(Image.new("I;16", (9, 7)), "TIFF", exif=exif)
    assert image_facts(turned, MORE)[5:] == (3, 1, False, 16)


@pytest.mark.parametrize("compression", [None, "tiff_lzw"])
def test_a_tiff_is_turned_no_more_than_other_pictures(compression):
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = np.arange(63, dtype=np.uint8).reshape(7, 9)
    data = saved(Image.fromarray(stored), "TIFF", exif=exif, compression=compression)
    assert np.asarray(bare(data)).shape == (9, 7)  # Pillow turns it, as it turns no other
    assert np.array_equal(np.asarray(decode_image(data, MORE)), stored)
    assert image_facts(data, MORE).orientation == 6


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
def test_avif_is_read_by_choice():
    data = saved(PHOTO, "AVIF")
    for function in ALL:
        assert "AVIF, which mmprompt does not read" in refusal(function, data)
    assert image_facts(data, MORE)[:7] == ("AVIF", "image/avif", 96, 64, "RGB", 1, 1)
    difference = np.asarray(decode_image(data, MORE)).astype(int) - np.asarray(PHOTO)
    assert abs(difference).mean() < 6


def test_an_svg_a_page_and_text_are_refused_by_name():
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    with pytest.raises(UnidentifiedImageError):
        bare(svg)
    assert "an SVG drawing, not an image; convert it to PNG" in refusal(check_image, svg)
    assert "HTML page" in refusal(check_image, b"<!DOCTYPE html><html></html>")
    assert "WAV, not an image" in refusal(check_image, b"RIFF\x24\0\0\0WAVEfmt " + bytes(20))
    assert "empty" in refusal(check_image, b"")


def test_a_jpeg_with_pictures_behind_it_is_a_jpeg():
    data = saved(PHOTO, "MPO", save_all=True, append_images=[PHOTO.rotate(180)])
    assert (bare(data).format, bare(data).n_frames) == ("MPO", 2)
    assert check_image(data, POLICY)[:7] == ("JPEG", "image/jpeg", 96, 64, "RGB", 1, 1)


# damage


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 100, "subsampling": 0}])
def test_a_cut_jpeg_is_an_error_at_every_length(options):
    data = saved(PHOTO, "JPEG", **options)
    bare(data[: len(data) // 2]).verify()  # says nothing
    for length in [*range(3, len(data), 97), len(data) - 2, len(data) - 1]:
        assert refusal(check_image, data[:length])
        assert refusal(decode_image, data[:length])
    assert check_image(data, POLICY)


def test_a_cut_or_damaged_png_is_an_error():
    data = saved(PHOTO, "PNG")
    at = data.index(b"IDAT")
    for length in [*range(8, len(data), 499), len(data) - 13]:
        assert refusal(check_image, data[:length])
    wrong_sum = flipped(data, len(data) - 13)  # the last byte of the IDAT's check sum
    bare(wrong_sum).load()  # says nothing
    assert "cut or damaged" in refusal(check_image, wrong_sum)
    short = png(8, 8, 8, 0, [bytes(8)] * 4)  # half of the rows, and every check sum right
    bare(short).verify()  # says nothing, nor does this:
    bare(short).load()
    assert "cut or damaged" in refusal(check_image, short)
    for bit in range(0, 8 * (len(data) - at - 20), 1501):
        assert refusal(check_image, flipped(data, at + bit // 8, bit % 8))


def test_a_process_that_takes_cut_pictures_does_not_make_us_take_them(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    jpeg = saved(PHOTO, "JPEG")
    head, body = (plain := png(90, 90, 8, 0, [bytes(range(90))] * 90)).split(b"IDAT")
    short = head[:-4] + chunk(b"IDAT", body[: len(body) // 3]) + plain[-12:]
    for data in (jpeg[: len(jpeg) // 2], short, saved(PHOTO, "PNG")[:-2000]):
        bare(data).load()  # grey where the rest was
        assert "cut or damaged" in refusal(check_image, data)
        assert "cut or damaged" in refusal(decode_image, data)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_damage_inside_a_scan_that_leaves_it_decodable_is_not_seen():
    """The limit that check_image states; a test that fails here is good news."""
    data = flipped(COFFEE, len(COFFEE) // 2, 3)
    assert bare(data).tobytes() != bare(COFFEE).tobytes()
    check_image(data, POLICY)


def test_a_scan_that_is_overwritten_is_mostly_an_error():
    rng = np.random.default_rng(3)
    refused = 0
    for at in range(4000, len(COFFEE) - 1200, 1800):
        data = COFFEE[:at] + rng.bytes(1000) + COFFEE[at + 1000 :]
        bare(data).verify()  # says nothing
        try:
            check_image(data, POLICY)
        except SourceError:
            refused += 1
    assert refused >= 15  # of 21; noise that happens to hold no marker decodes


@pytest.mark.parametrize("name", ["GIF", "WEBP", "BMP"])
def test_other_formats_cut_are_errors(name):
    data = animation(name) if name != "BMP" else saved(PHOTO, name)
    for length in (10, 20, 40, len(data) // 2, len(data) - 30, len(data) - 1):
        assert refusal(check_image, data[:length])


def test_a_tiff_whose_tags_are_cut_is_an_error_and_no_warning():
    exif = Image.Exif()
    exif[0x010F] = "maker" * 9
    data = saved(PHOTO, "TIFF", exif=exif)
    at = data.index(b"makermaker")
    assert image_facts(data, MORE).format == "TIFF"
    for cut in (data[:60], data[:8], data[:4] + len(data).to_bytes(4, "little") + data[8:]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for function in ALL:
                with pytest.raises(SourceError, match="the TIFF is cut or damaged;"):
                    function(cut, MORE)
    moved = data.replace(at.to_bytes(4, "little"), (len(data) - 20).to_bytes(4, "little"))
    with pytest.warns(UserWarning, match="orrupt EXIF|runcated"), suppress(UnidentifiedImageError):
        bare(moved)
    for function in ALL:
        with pytest.raises(SourceError, match="the TIFF is cut or damaged;"):
            function(moved, MORE)


def test_damaged_exif_is_no_warning():
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "maker" * 9
    data = (
        saved(PHOTO, "JPEG", exif=exif)
        .replace(b"MM\0*\0\0\0\x08\0\x02", b"MM\0*\0\0\0\x08\0\xff")
        .replace(b"II*\0\x08\0\0\0\x02\0", b"II*\0\x08\0\0\0\xff\0")
    )
    with pytest.warns(UserWarning, match="Corrupt EXIF"):
        bare(data)
    assert check_image(data, POLICY).orientation == 6


def test_a_text_chunk_that_swells_is_an_error():
    import zlib

    swollen = chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(80 << 20), 9))
    data = png(1, 1, 8, 0, [b"\0"], swollen)
    assert len(data) < 100_000
    with pytest.raises(ValueError, match="too large"):
        bare(data)
    assert "cut or damaged" in refusal(check_image, data)


@pytest.mark.parametrize("image_format", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_mutated_files_give_our_errors_only(image_format):
    rng = np.random.default_rng(5)
    seed = saved(PHOTO, "BMP") if image_format == "BMP" else (
        saved(PHOTO, "JPEG", progressive=True) if image_format == "JPEG" else animation(image_format)
    )  # fmt: skip
    refused = 0
    for number in range(200):
        data = np.frombuffer(seed, np.uint8).copy()
        reach = min(len(data), (64, 600, 1 << 20)[number % 3])
        data[rng.integers(0, reach, 3)] = rng.integers(0, 256, 3)
        for function in (check_image, decode_image):
            try:
                function(data.tobytes(), MediaPolicy(max_pixels=1_000_000))
            except MMPromptError as error:
                refused += 1
                assert "0x" not in str(error)
                assert error.__cause__ is None
    assert refused > 20
