"""MedMCQA: ``question``, the choices ``opa`` to ``opd``, and ``cop``, the number of the right one from 0.

Rows of its test split have -1 in ``cop``, so they have no answer.
"""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, has, text_of, with_columns
from mmprompt.datasets.sample import Sample

_CHOICES = ("opa", "opb", "opc", "opd")


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    number = columns.get("cop", columns.get("answer"))
    new = {
        "question": text_of(sample, "question"),
        "options": [columns[name] for name in _CHOICES],
        "answer": None if number in (-1, "-1") else number,
    }
    return with_columns(sample, new, renamed=(*_CHOICES, "cop"))


LAYOUT = Layout("medmcqa", ("question", *_CHOICES), has("question", *_CHOICES), _read)
