"""Rules on texts that a model's chat template would read: placeholders of media, and special tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mmprompt.check.rule import CheckedRow, Hit, row_rule
from mmprompt.datasets.placeholders import MARKUP
from mmprompt.errors import shown

_KINDS = "image|img|picture|video|audio|vision|speech|sound"
_PLACEHOLDER = re.compile(
    rf"<(?:image|video|audio)(?:[ _]?\d{{1,3}})? ?>|<img [^<>]{{0,200}}src=[^<>]{{1,500}}>"
    rf"|<(?:{_KINDS})_?(?:placeholder|token|pad|soft_token)>"
    rf"|<\|(?:{_KINDS})(?:_(?:pad|start|end|sentinel|token|bos|eos)|_?\d{{1,3}})?\|>|<\|vision_(?:start|end)\|>"
    rf"|\[(?:IMG|img|IMAGE)(?:_(?:BREAK|END))?\]|<(?:start|end)_of_image>|<IMG_CONTEXT>|</?img>|<AUDIO>"
)
"""The marks of LLaVA, Qwen, InternVL, Phi, Pixtral, Gemma and MMMU."""

_SPECIAL = re.compile(
    r"<\|[A-Za-z][A-Za-z0-9_ ]{1,30}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos)>"
    r"|<[|\uff5c][A-Za-z▁]{2,30}[|\uff5c]>"
)
"""What begins and ends turns in the chat templates of Qwen, Llama, Mistral, Gemma, Phi and DeepSeek."""


@row_rule("MM107")
def placeholder_without_medium(row: CheckedRow) -> Iterator[Hit]:
    """A placeholder of a medium that is sent as text."""
    for text in row.texts:
        if ("<" in text.text or "[" in text.text) and (found := _PLACEHOLDER.search(text.text)):
            prose = _is_prose(text.text, found) and (not row.media or re.search(MARKUP, text.text))
            if prose or _is_code(text.text, found):
                continue
            what = f"the text holds {shown(found[0])}, which is sent as text and stands for no medium"
            hint = "remove it" if row.media else "remove it, and name the medium in a column, such as 'image'"
            if "conversations" in row.columns:
                hint = "remove it, or name a format that reads placeholders: --format llava"
            yield Hit(what, hint, text.column, text.at(found.start()))


def _is_prose(text: str, found: re.Match[str]) -> bool:
    """Return whether a text speaks of an element of HTML or SVG: it stands once, with words before and after it."""
    if not found[0].startswith(("<image>", "<video>", "<audio>", "<img")) or _PLACEHOLDER.search(text, found.end()):
        return False
    before, after = text[: found.start()].rpartition("\n")[2], text[found.end() :].partition("\n")[0]
    return bool(before.strip()) and bool(after.strip())


def _is_code(text: str, found: re.Match[str]) -> bool:
    """Return whether an element ``<img …>``, which no model takes for a picture, stands between backticks."""
    return found[0].startswith("<img ") and text.count("`", 0, found.start()) % 2 == 1


@row_rule("MM109")
def special_token_in_text(row: CheckedRow) -> Iterator[Hit]:
    """A special token of a chat template."""
    for text in row.texts:
        for found in _SPECIAL.finditer(text.text) if "<" in text.text or "[" in text.text else ():
            if not _PLACEHOLDER.fullmatch(found[0]):
                what = f"the text holds {shown(found[0])}, which begins or ends a turn for some models"
                yield Hit(
                    what, "remove it: chat templates add such tokens themselves", text.column, text.at(found.start())
                )
                break
