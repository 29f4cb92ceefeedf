"""Notes on values of rows that are sent or scored and may not be meant so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mmprompt.datasets.choices import FROM_1, MISSING, Choices, choices_in
from mmprompt.datasets.placeholders import MARKUP
from mmprompt.errors import shown

RowNote = tuple[str, str, str]
"""The code of a note on a row, what was found, and what to do about it."""

_MARK = r"<(image|video|audio)[ _]?\d{0,3}>"


def odd_texts(question: object, hint: object, choices: Choices, media: bool) -> Iterator[RowNote]:
    """Yield notes on texts that are sent: a mark beside media, and what a program wrote for a missing value."""
    text = question if media and isinstance(question, str) and "<" in question else ""
    if text and (mark := re.search(_MARK, text)) and not re.search(MARKUP, text):
        what = f"the question holds a mark such as <{mark[1]}>, which is sent as text and stands for no medium"
        yield "MM107", what, "remove it: media are sent before the text"
    sent = (hint.strip() if isinstance(hint, str) else "", *choices.texts)
    if missing := next((text for text in sent if text in MISSING), None):
        what = f"the hint or a choice is {shown(missing)}, which is sent as text"
        yield "MM010", what, "leave it empty: a program wrote it for a missing value"


def number_note(columns: Mapping[str, object], output_column: str) -> RowNote | None:
    """Return a note if the answer is a number, and the columns of the choices are numbered from 1."""
    if FROM_1.isdisjoint(columns) or not str(columns.get(output_column)).isdecimal():
        return None
    first = next(iter(choices_in(columns).columns), None)
    what = "the answer is a number, which counts from 0, and the choices count from 1"
    hint = "set eval_cfg.index_base to 1 in the task, or pass --index-base 1 to mmprompt score"
    return ("MM718", f"{what} ({shown(first)})", hint) if first in FROM_1 else None
