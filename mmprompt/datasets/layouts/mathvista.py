"""MathVista: ``query`` holds hint, question and choices as the benchmark asks them; without it ``question`` does."""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, choice_list, has, text_of, with_columns
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError
from mmprompt.messages import MediaRef, Message, Part, TextPart


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    picture = columns.get("decoded_image") or columns.get("image")
    if picture is None or picture == "":
        raise RowError("the row has no picture", "give 'image' or 'decoded_image'", code="MM715").located(
            column="image"
        )
    new = {"image": picture, "question": text_of(sample, "question"), "options": choice_list(sample, "choices")}
    changed = with_columns(sample, new, drop=("decoded_image",))
    if columns.get("query") in (None, ""):
        return changed
    query = text_of(sample, "query")
    content: list[Part] = [MediaRef("image", picture), TextPart(query)]
    changed = with_columns(changed, {"content": content})
    return changed._replace(messages=(Message("user", content),), sent=_SENT)


_SENT = frozenset(("content", "query", "question", "image", "choices", "options"))
"""The columns that a query holds."""


_OWN = has("pid", "question", "choices", "question_type")
LAYOUT = Layout("mathvista", ("question", "image", "choices"), _OWN, _read)
