"""ARC, and datasets of its form such as CommonsenseQA: ``choices`` with ``text`` and ``label``, and ``answerKey``.

Some rows have the labels ``1`` to ``4``. The choices are sent as ``A``, ``B`` …, so the answer is such a letter too. In
AI2's own files ``question`` holds the text as ``stem``, beside its ``choices``.
"""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.choices import Choices, letters_of
from mmprompt.datasets.layouts.layout import Layout, with_columns
from mmprompt.datasets.sample import Sample, column_error
from mmprompt.errors import shown

_KEY = "answerKey"


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    question = columns["question"]
    asked = question.get("stem") if isinstance(question, Mapping) else question
    choices = question.get("choices") if isinstance(question, Mapping) else columns.get("choices")
    if not isinstance(asked, str):
        raise column_error("question", "the row has no question", "give a text, or drop the row", "MM700")
    labels, texts = _labelled(choices)
    letters = letters_of(Choices(texts, ("choices",)))
    key = columns.get(_KEY, columns.get("answer"))
    answer = None
    if key not in (None, ""):
        if str(key) not in labels:
            what = f"the answer {shown(key)} is not one of the labels {', '.join(labels)}"
            raise column_error(_KEY, what, "give the label of a choice", "MM702")
        answer = letters[labels.index(str(key))]
    return with_columns(sample, {"question": asked, "choices": list(texts), "answer": answer}, renamed=(_KEY,))


def _labelled(choices: object) -> tuple[list[str], tuple[str, ...]]:
    """Return the labels and the texts of choices: two lists, or a list of pairs."""
    if isinstance(choices, (list, tuple)):
        pairs = [choice if isinstance(choice, Mapping) else {} for choice in choices]
        choices = {name: [pair.get(name) for pair in pairs] for name in ("label", "text")}
    labels = choices.get("label") if isinstance(choices, Mapping) else None
    texts = choices.get("text") if isinstance(choices, Mapping) else None
    if not isinstance(labels, (list, tuple)) or not isinstance(texts, (list, tuple)) or not texts:
        raise column_error("choices", "the row has no choices", "give 'choices' with lists text and label", "MM006")
    if len(labels) != len(texts) or len({*map(str, labels)}) != len(labels):
        raise column_error("choices", "the choices have not one label each", "give each its own", "MM703")
    return [*map(str, labels)], tuple(["" if text is None else str(text) for text in texts])


def _recognises(columns: Mapping[str, object]) -> bool:
    asked = columns.get("question")
    choices = columns.get("choices")
    labelled = isinstance(choices, Mapping) and {"text", "label"} <= choices.keys()
    return _KEY in columns and (labelled or (isinstance(asked, Mapping) and "stem" in asked))


LAYOUT = Layout("arc", ("question",), _recognises, _read)
