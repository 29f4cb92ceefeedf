"""ScienceQA: ``question``, ``choices``, ``hint``, an index as ``answer``, and a picture in some rows.

In ``problems.json`` the keys of the object are the ids, and ``image`` is the name of a file below ``images/SPLIT/ID/``.
"""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, beside, choice_list, has, text_of, with_columns
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError


def _read(sample: Sample) -> Sample:
    picture = sample.columns.get("image")
    if isinstance(picture, str) and picture and "/" not in picture:
        split = sample.columns.get("split")
        if not isinstance(split, str):
            raise RowError(
                "the row names a picture, but not the split whose folder holds it", "give 'split'", code="MM006"
            ).located(column="split")
        picture = beside(sample, f"{split}/{sample.id}/{picture}", "images")
    choices = choice_list(sample, "choices")
    if choices is None:
        raise RowError("the row has no choices", "give a list of choices", code="MM006").located(column="choices")
    hint = sample.columns.get("hint") or None
    new = {"image": picture or None, "hint": hint, "question": text_of(sample, "question"), "choices": choices}
    return with_columns(sample, new, drop=("image", "hint"))


_OWN = has("question", "choices", "lecture", "solution")
LAYOUT = Layout("scienceqa", ("question", "choices", "answer", "hint"), _OWN, _read)
