"""Rules on the files and headers of pictures: how they are stored, their sizes and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from mmprompt.check.rule import CheckedMedium, Hit, medium_rule
from mmprompt.media.inspection import ImageContent

TINY = 10
"""Pixels of a side. Icons have 16, the smallest digits of data sets 28; below 10 is a tracking pixel or a spacer."""

EXTREME = 20
"""Times that one side is longer than the other. Lines of text reach 15; beyond, scaling leaves nothing to see."""

_AFTER = 64
"""Bytes after the end. Editors and cameras leave a few, which do no harm."""

_TURNS = {
    2: "mirrored",
    3: "upside down",
    4: "upside down and mirrored",
    5: "on its side and mirrored",
    6: "on its left side",
    7: "on its side and mirrored",
    8: "on its right side",
}
"""How pixels stand as they are stored, by EXIF orientation (CIPA DC-008, 4.6.4)."""


def picture(medium: CheckedMedium) -> ImageContent:
    """Return what a picture holds. A rule on images is called only for those that were decoded."""
    return cast(ImageContent, medium.content)


@medium_rule("MM303", "image")
def rotated(medium: CheckedMedium) -> Iterator[Hit]:
    """The pixels are stored turned, and only EXIF says so."""
    turn = picture(medium).orientation
    if turn != 1:
        what = f"{medium.name} is stored {_TURNS[turn]} (EXIF orientation {turn}), and not all models turn it"
        yield Hit(what, "save it upright, or set 'upright: true' below 'media' in a task file")


@medium_rule("MM304", "image")
def cmyk(medium: CheckedMedium) -> Iterator[Hit]:
    """The colours are for print."""
    if picture(medium).mode == "CMYK":
        yield Hit(f"{medium.name} has CMYK colours, which many servers refuse or invert", "save it as RGB")


@medium_rule("MM305", "image")
def sixteen_bit(medium: CheckedMedium) -> Iterator[Hit]:
    """The samples have more than 8 bits."""
    bits = picture(medium).bits
    if bits > 8:
        what = f"{medium.name} has {bits} bits a sample, which many servers cut off at 255: it turns white"
        yield Hit(what, "scale it to 8 bits")


@medium_rule("MM306", "image")
def animated(medium: CheckedMedium) -> Iterator[Hit]:
    """The file holds several pictures, of which models see the first."""
    held = picture(medium)
    if held.frames != 1:
        what = "several pages" if held.frames is None else f"{held.frames} frames"
        hint = "save the one that is asked about, or give a video"
        yield Hit(f"{medium.name} has {what}, and most models see the first alone", hint)


@medium_rule("MM308", "image")
def tiny(medium: CheckedMedium) -> Iterator[Hit]:
    """A picture too small to show anything."""
    held = picture(medium)
    if min(held.width, held.height) < TINY and not _is_extreme(held):
        what = f"{medium.name} has {held.width} x {held.height} pixels"
        yield Hit(what, "put the real picture in its place, or drop the row")


@medium_rule("MM309", "image")
def extreme_shape(medium: CheckedMedium) -> Iterator[Hit]:
    """One side is many times as long as the other."""
    held = picture(medium)
    if _is_extreme(held):
        times = max(held.width, held.height) // min(held.width, held.height)
        what = f"{medium.name} has {held.width} x {held.height} pixels: one side is {times} times as long as the other"
        yield Hit(what, "cut it into pieces, or put the real picture in its place")


def _is_extreme(held: ImageContent) -> bool:
    return max(held.width, held.height) > EXTREME * min(held.width, held.height)


@medium_rule("MM310", "image")
def transparent(medium: CheckedMedium) -> Iterator[Hit]:
    """Some pixels may be transparent, and models differ in the ground that they put behind them."""
    if picture(medium).has_alpha:
        what = f"{medium.name} has transparency, and models put different colours behind it"
        yield Hit(what, "save it on a ground of your choice")


@medium_rule("MM311", "image")
def bytes_after_image(medium: CheckedMedium) -> Iterator[Hit]:
    """The file goes on after its picture."""
    after = picture(medium).after
    if after >= _AFTER:
        what = f"{medium.name} has {after} bytes after the end of its picture"
        yield Hit(what, "look at what they are, or save the picture again")


@medium_rule("MM313", "image")
def colour_profile(medium: CheckedMedium) -> Iterator[Hit]:
    """The colours are meant in another space than sRGB."""
    profile = picture(medium).profile
    if profile:
        what = f"{medium.name} has the colour profile {profile!r}, which models ignore"
        yield Hit(what, "convert it to sRGB")
