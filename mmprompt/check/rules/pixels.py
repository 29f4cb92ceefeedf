"""Rules on the pixels of pictures: those that show nothing, or too little, and sizes that stand out."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import CheckedMedium, Hit, dataset_rule, medium_rule
from mmprompt.check.rules.images import EXTREME, TINY, picture
from mmprompt.check.store import Store
from mmprompt.media.inspection import ImageContent

DARK = 0.16
"""The level (0 to 1) that no area of a dark picture reaches. Of 1,000 photos the darkest reaches 0.30, and a terminal
with small letters on black 0.19."""

LIGHT = 0.88
"""The level that all areas of a light picture are above. A page with a few lines of text has areas below 0.8."""

NEARLY_ALL = 0.995
"""The share of a picture that is about equally light when it shows hardly anything. Of 1,000 photos, 300 charts and 200
formulas none is above 0.98."""

BLURRED = 0.08
"""The sharpness of a picture without edges. Of 1,000 photos the softest has 0.12; blurred by a 40th of its shorter side
a photo has 0.04, by a 100th 0.33."""

_ODD, _SPREADS = 25, 4
"""A picture stands out by size if it has 25 times fewer or more pixels than half of the pictures have, and lies beyond
4 times the spread of the middle half of them."""

_FEW = 50
"""Pictures, below which no size stands out."""

_NAMES = {(0, 0, 0): "are black", (255, 255, 255): "are white"}


@medium_rule("MM307", "image")
def blank(medium: CheckedMedium) -> Iterator[Hit]:
    """All pixels have one colour."""
    held = picture(medium)
    if held.colour is None or held.width * held.height == 1:
        return
    what = f"all pixels of {medium.name} {_NAMES.get(held.colour, 'have one colour')}"
    if held.has_alpha:
        what += " once its transparency is taken away"
    yield Hit(what, "put the real picture in its place, or drop the row")


@medium_rule("MM312", "image")
def low_information(medium: CheckedMedium) -> Iterator[Hit]:
    """Nearly all pixels have one colour."""
    held = picture(medium)
    if held.commonest > NEARLY_ALL and held.colour is None and not _is_dark(held) and not _is_light(held):
        what = f"{held.commonest:.1%} of {medium.name} are of one lightness"
        yield Hit(what, "look whether it shows anything, or drop the row")


@medium_rule("MM314", "image")
def dark(medium: CheckedMedium) -> Iterator[Hit]:
    """The picture is nearly black."""
    held = picture(medium)
    if held.colour is None and _is_dark(held):
        what = f"nothing in {medium.name} is lighter than {held.lightest:.0%} of white"
        yield Hit(what, "give a lighter one, or drop the row")


@medium_rule("MM315", "image")
def light(medium: CheckedMedium) -> Iterator[Hit]:
    """The picture is nearly white."""
    held = picture(medium)
    if held.colour is None and _is_light(held):
        what = f"nothing in {medium.name} is darker than {held.darkest:.0%} of white"
        yield Hit(what, "give a darker one, or drop the row")


def _is_dark(held: ImageContent) -> bool:
    return held.lightest < DARK


def _is_light(held: ImageContent) -> bool:
    return held.darkest > LIGHT


@medium_rule("MM316", "image")
def blurry(medium: CheckedMedium) -> Iterator[Hit]:
    """The picture has no edges, even scaled down."""
    held = picture(medium)
    if held.sharpness is not None and held.sharpness < BLURRED and held.commonest <= NEARLY_ALL:
        what = f"{medium.name} is blurred: its sharpness is {held.sharpness:.2f}, and photos have 0.12 or more"
        yield Hit(what, "give a sharp one, or drop the row")


@dataset_rule("MM317")
def odd_size(store: Store) -> Iterator[Hit]:
    """A picture with far more or fewer pixels than the others, unless MM308 or MM309 is about it."""
    (count,) = next(store.query("SELECT COUNT(DISTINCT digest) FROM media WHERE pixels IS NOT NULL"))
    if count < _FEW:
        return
    ordered = "SELECT pixels FROM media WHERE pixels IS NOT NULL GROUP BY digest ORDER BY pixels LIMIT 1 OFFSET ?"
    low, middle, high = [next(store.query(ordered, count * quarter // 4))[0] for quarter in (1, 2, 3)]
    times = max(_ODD, (high / low) ** _SPREADS)
    odd = store.query(
        "SELECT MIN(rowid), row, name, column_name, offset, pixels FROM media WHERE (pixels < ? OR pixels > ?)"
        " AND MIN(width, height) >= ? AND MAX(width, height) <= ? * MIN(width, height) GROUP BY digest ORDER BY 1",
        middle / times,
        middle * times,
        TINY,
        EXTREME,
    )
    for _, row, name, column, offset, pixels in odd:
        what = f"{name} has {pixels} pixels, and half of the pictures have {middle} or more"
        yield Hit(what, "look whether it is the right one", column, offset, row)


@medium_rule("MM318", "image")
def grey(medium: CheckedMedium) -> Iterator[Hit]:
    """The picture has no colour."""
    held = picture(medium)
    if held.grey and held.colour is None:
        yield Hit(f"{medium.name} has no colour", "give the picture in colour if the question asks about colours")
