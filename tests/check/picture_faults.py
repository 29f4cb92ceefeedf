"""Pictures, sound ones and ones with a fault, for the tests of the rules on pictures."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from media.image_files import flat_png, flipped, saved
from PIL import Image, ImageCms
from PIL.ImageFilter import GaussianBlur

from mmprompt.media.image.headers import orientation_exif


@functools.cache
def scene(number: int, width: int = 320, height: int = 240) -> Image.Image:
    """Return a picture like a photo: soft light, hard-edged things of many sizes, and noise; each number another one."""
    draw = np.random.default_rng([7, number])
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.empty((height, width, 3), np.float32)
    slope = draw.uniform(-1, 1, (3, 2))
    for channel in range(3):
        pixels[..., channel] = 128 + 60 * (
            slope[channel, 0] * (x / width - 0.5) + slope[channel, 1] * (y / height - 0.5)
        )
    for _ in range(int(draw.integers(12, 40))):
        at_x, at_y = draw.uniform(0, width), draw.uniform(0, height)
        wide, high = width * draw.uniform(0.02, 0.35), height * draw.uniform(0.02, 0.35)
        turn = draw.uniform(0, np.pi)
        u = (x - at_x) * np.cos(turn) + (y - at_y) * np.sin(turn)
        v = (y - at_y) * np.cos(turn) - (x - at_x) * np.sin(turn)
        inside = (u / wide) ** 2 + (v / high) ** 2 < 1 if draw.random() < 0.5 else (abs(u) < wide) & (abs(v) < high)
        pixels[inside] = draw.uniform(0, 255, 3) * 0.8 + pixels[inside] * 0.2
    pixels += draw.normal(0, 4, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def jpeg(image: Image.Image, **options: object) -> bytes:
    """Return the picture as a JPEG."""
    return saved(image, "JPEG", **{"quality": 90, **options})


def png_of(image: Image.Image) -> bytes:
    """Return the picture as a PNG."""
    return saved(image, "PNG")


def profiled() -> bytes:
    """Return a JPEG with a colour profile other than sRGB."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    return jpeg(scene(8), icc_profile=profile)


def with_hole() -> Image.Image:
    """Return a picture with a transparent square."""
    image = scene(5).convert("RGBA")
    image.paste((0, 0, 0, 0), (20, 20, 60, 60))
    return image


def deep() -> Image.Image:
    """Return a grey picture of 16 bits."""
    return Image.fromarray(np.asarray(scene(5).convert("L")).astype(np.uint16) * 257)


def nearly_empty() -> Image.Image:
    """Return a white page with a number."""
    page = Image.new("RGB", (600, 800), "white")
    page.paste("black", (300, 760, 308, 772))
    return page


def letters_on_nothing() -> bytes:
    """Return black strokes on a transparent ground, whose colour is black as well."""
    pixels = np.zeros((120, 160, 4), np.uint8)
    pixels[40:50, 20:140, 3] = pixels[20:100, 60:70, 3] = 255
    return png_of(Image.fromarray(pixels))


def good() -> dict[str, bytes]:
    """Return files of sound pictures by their names."""
    return {f"good{number}.jpg": jpeg(scene(number)) for number in range(3)}


def usual() -> Image.Image:
    """Return the picture that most faults are put into."""
    return scene(5)


def moving() -> bytes:
    """Return a GIF of three frames."""
    frames = [scene(number).quantize(method=Image.Quantize.FASTOCTREE) for number in (5, 6, 7)]
    return saved(frames[0], "GIF", save_all=True, append_images=frames[1:])


FAULTS: dict[str, tuple[str, Callable[[], bytes]]] = {
    # by the code that finds it: a file name, and what makes its bytes
    "MM300": ("damaged.png", lambda: flipped(png_of(usual()), 30_000)),
    "MM301": ("cut.jpg", lambda: jpeg(usual())[:-4000]),
    "MM302": ("bomb.png", lambda: flat_png(30000, 30000)),
    "MM303": ("turned.jpg", lambda: jpeg(usual(), exif=orientation_exif(6))),
    "MM304": ("print.jpg", lambda: jpeg(usual().convert("CMYK"))),
    "MM305": ("deep.png", lambda: png_of(deep())),
    "MM306": ("moving.gif", moving),
    "MM307": ("black.jpg", lambda: jpeg(Image.new("RGB", (320, 240)))),
    "MM308": ("dot.png", lambda: png_of(scene(3, 6, 6))),
    "MM309": ("line.png", lambda: png_of(scene(3, 1, 2000))),
    "MM310": ("clear.png", lambda: png_of(with_hole())),
    "MM311": ("more.jpg", lambda: jpeg(usual()) + b"PK\3\4" + bytes(range(1, 200))),
    "MM312": ("empty_page.jpg", lambda: jpeg(nearly_empty())),
    "MM313": ("lab.jpg", profiled),
    "MM314": ("dark.jpg", lambda: jpeg(usual().point(lambda level: level // 8))),
    "MM315": ("light.jpg", lambda: jpeg(usual().point(lambda level: 240 + level // 17))),
    "MM316": ("blurred.jpg", lambda: jpeg(usual().filter(GaussianBlur(8)))),
    "MM318": ("grey.jpg", lambda: jpeg(usual().convert("L"))),
}
