"""How many tokens targets count for a medium, by the formulas that their makers publish.

They are estimates of one family of models each, which ``MediaTokens.models`` names. What a served or local model counts
depends on that model.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple


class MediaTokens(NamedTuple):
    """The formulas of a target: for a picture by width and height, and for a second of sound and of video.

    A rate of 0 says that the maker publishes none.
    """

    models: str
    image: Callable[[int, int], int]
    audio: int = 0
    video: int = 0
    source: str = ""

    def of(self, modality: str, width: int | None, height: int | None, seconds: float | None) -> int | None:
        """Return the tokens of a medium; None if the target publishes no formula, or a figure is unknown."""
        if modality == "image":
            return self.image(width, height) if width and height else None
        rate = self.audio if modality == "audio" else self.video
        return ceil(rate * seconds) if rate and seconds is not None else None


def _openai(width: int, height: int) -> int:
    """Count squares of 512 pixels, once the picture fits into 2048 x 2048 and its shorter side has 768 at most."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return 85 + 170 * ceil(round(width * scale, 3) / 512) * ceil(round(height * scale, 3) / 512)


def _anthropic(width: int, height: int) -> int:
    """Count squares of 28 pixels; a picture of more than 1568 of them, or with a longer side, is scaled down."""
    most = 1568
    low, high = 0.0, min(1.0, most / max(width, height))
    if _squares(width, height, high) <= most:
        return _squares(width, height, high)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _squares(width, height, middle) <= most else (low, middle)
    return _squares(width, height, low)


def _squares(width: int, height: int, scale: float) -> int:
    return ceil(max(1, int(width * scale)) / 28) * ceil(max(1, int(height * scale)) / 28)


def _gemini(width: int, height: int) -> int:
    """Count tiles. Their side is two thirds of the shorter side, from 256 to 768; a small picture is one tile."""
    if max(width, height) <= 384:
        return 258
    side = max(256, min(768, int(min(width, height) / 1.5)))
    return 258 * ceil(width / side) * ceil(height / side)


MEDIA_TOKENS = {
    "openai": MediaTokens(
        "gpt-4o and gpt-4.1 at detail high",
        _openai,
        source="OpenAI, Images and vision <https://platform.openai.com/docs/guides/images-vision>",
    ),
    "anthropic": MediaTokens(
        "Claude models that see 1568 pixels a side",
        _anthropic,
        source="Claude, Vision <https://platform.claude.com/docs/en/build-with-claude/vision>",
    ),
    "gemini": MediaTokens(
        "Gemini 2.0 and 2.5",
        _gemini,
        audio=32,
        video=263,
        source="Gemini API, Understand and count tokens <https://ai.google.dev/gemini-api/docs/tokens>",
    ),
}
"""The formulas by target. A target that is not here takes models of any maker."""
