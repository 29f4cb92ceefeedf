"""The tokens of media, held against the examples that the makers of targets print."""

from __future__ import annotations

import pytest

from mmprompt.targets.media_tokens import MEDIA_TOKENS


@pytest.mark.parametrize(
    ("target", "width", "height", "tokens"),
    [
        ("openai", 1024, 1024, 765),
        ("openai", 2048, 4096, 1105),
        ("openai", 512, 512, 255),
        ("openai", 513, 513, 765),
        ("anthropic", 200, 200, 64),
        ("anthropic", 1092, 1092, 1521),
        ("anthropic", 3000, 2000, 1568),
        ("anthropic", 8000, 8, 56),
        ("gemini", 384, 384, 258),
        ("gemini", 960, 540, 258 * 6),
        ("gemini", 4000, 3000, 258 * 24),
    ],
)
def test_a_picture_has_the_tokens_of_the_published_formula(target: str, width: int, height: int, tokens: int) -> None:
    assert MEDIA_TOKENS[target].of("image", width, height, None) == tokens


def test_what_has_no_formula_or_no_size_has_no_count() -> None:
    assert MEDIA_TOKENS["openai"].of("audio", None, None, 3.0) is None
    assert MEDIA_TOKENS["gemini"].of("image", None, None, None) is None
    assert MEDIA_TOKENS["gemini"].of("video", 640, 480, 10.0) == 2630
