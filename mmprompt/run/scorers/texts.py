"""How scorers compare texts: what an answer is as a text, and where a text holds another as whole words."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache

from mmprompt.targets.json_values import JSONValue

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of scripts that put no blanks between words."""

_LETTER = rf"[^\W{_UNSPACED}]"


def text_of(answer: JSONValue) -> str:
    """Return an answer as a text; of an object such as ``{"answer": "yes"}`` that of its key ``answer``."""
    if isinstance(answer, dict) and "answer" in answer:
        return text_of(answer["answer"])
    if isinstance(answer, (str, bool)):
        return str(answer)
    return json.dumps(answer, ensure_ascii=False)


def normalised(text: str) -> str:
    """Return a text in the form NFC, without blanks at its ends, without case and without one closing full stop.

    >>> normalised(" Paris. ")
    'paris'
    """
    text = unicodedata.normalize("NFC", text).strip().casefold()
    return text[:-1].rstrip() if text.endswith((".", "。")) else text


@lru_cache(maxsize=1024)
def whole_words(text: str) -> re.Pattern[str]:
    """Return a pattern that finds a text where no word and no number goes on before or after it.

    Scripts without blanks between words have no such bounds.

    >>> bool(whole_words("3").search("about 3.5")), bool(whole_words("3").search("it is 3."))
    (False, True)
    """
    before = rf"(?<!{_LETTER})" if re.match(_LETTER, text) else ""
    after = rf"(?!{_LETTER})" if re.search(_LETTER + r"\Z", text) else ""
    before += r"(?<!\d[.,])" if text[:1].isdigit() else ""
    after += r"(?![.,]\d)" if text[-1:].isdigit() else ""
    return re.compile(before + re.escape(text) + after)
