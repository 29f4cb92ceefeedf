"""Rules on the pixels of pictures: those that show nothing, or too little."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import CheckedMedium, Hit, medium_rule
from mmprompt.check.rules.images import picture

_NAMES = {(0, 0, 0): "black", (255, 255, 255): "white"}


@medium_rule("MM307", "image")
def blank(medium: CheckedMedium) -> Iterator[Hit]:
    """All pixels have one colour."""
    held = picture(medium)
    if held.colour is None or held.width * held.height == 1:
        return
    colour = "#{:02x}{:02x}{:02x}".format(*held.colour)
    what = f"all pixels of {medium.name} are {_NAMES.get(held.colour, colour)}"
    if held.has_alpha:
        what += " once its transparency is taken away"
    yield Hit(what, "give the picture itself, or drop the row")


@medium_rule("MM318", "image")
def grey(medium: CheckedMedium) -> Iterator[Hit]:
    """The picture has no colour."""
    held = picture(medium)
    if held.grey and held.colour is None:
        yield Hit(f"{medium.name} has no colour", "give the picture in colour if the question asks about colours")
