"""AudioBench: ``context`` holds the sound, ``instruction`` the question, ``answer`` its text."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.layouts.layout import Layout, with_columns
from mmprompt.datasets.media_columns import modality_of
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError, shown


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    context = columns["context"]
    sound = context.get("audio") if isinstance(context, Mapping) and "audio" in context else context
    if modality_of(sound) != "audio":
        raise RowError("the context holds no sound", "give an audio feature", code="MM715").located(column="context")
    question = _text(columns["instruction"], "instruction")
    if columns.get("choices"):
        question = f"{question}\n{_text(columns['choices'], 'choices')}"
    new = {"audio": sound, "question": question, "answer": _text(columns["answer"], "answer")}
    return with_columns(sample, new, drop=("context", "choices"), renamed=("instruction",))


def _text(value: object, column: str) -> str:
    """Return a text, or the ``text`` of a struct of text and sound."""
    text = value.get("text") if isinstance(value, Mapping) else value
    if not isinstance(text, str) or not text:
        raise RowError(f"column '{column}' holds no text: {shown(text)}", "give a text", code="MM007").located(
            column=column
        )
    return text


def _recognises(columns: Mapping[str, object]) -> bool:
    return {"context", "instruction", "answer"} <= columns.keys() and isinstance(columns["context"], Mapping)


LAYOUT = Layout("audiobench", ("context", "instruction", "answer"), _recognises, _read)
