"""DocVQA: the list ``data`` with ``questionId``, ``question``, ``image`` (a path, or the page itself), ``answers``."""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, has, text_of, with_columns
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError


def _read(sample: Sample) -> Sample:
    page = sample.columns["image"]
    if page is None or page == "":
        raise RowError("the row names no page", "give 'image'", code="MM715").located(column="image")
    new = {"image": page, "question": text_of(sample, "question"), "answer": sample.columns.get("answers")}
    return with_columns(sample, new, renamed=("answers",))


LAYOUT = Layout("docvqa", ("question", "image"), has("questionId", "question", "docId"), _read)
