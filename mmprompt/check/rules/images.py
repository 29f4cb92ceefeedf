"""Rules on pictures."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import CheckedMedium, Hit, medium_rule
from mmprompt.media.inspection import ImageContent

_TINY = 10


@medium_rule("MM308", "image")
def tiny(medium: CheckedMedium) -> Iterator[Hit]:
    """A picture too small to show anything."""
    content = medium.content
    if isinstance(content, ImageContent) and min(content.width, content.height) < _TINY:
        what = f"{medium.name} has {content.width} x {content.height} pixels"
        yield Hit(what, "give the picture itself, or drop the row")
