"""What a picture holds, from its header and its pixels."""

from __future__ import annotations

from mmprompt.media.image.reading import decode_image, image_facts
from mmprompt.media.inspection import ImageContent
from mmprompt.media.policy import MediaPolicy


def inspect_image(data: bytes, policy: MediaPolicy) -> ImageContent:
    """Decode a picture and return what it holds; see ``inspect``."""
    facts = image_facts(data, policy)
    decode_image(data, policy)
    return ImageContent(facts.format, facts.width, facts.height, facts.mode)
