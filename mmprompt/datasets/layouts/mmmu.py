"""MMMU: ``question`` and ``options`` with marks ``<image 1>``, and the pictures in ``image_1`` to ``image_7``.

The answer of a question with options is a letter. ``options`` is a list written as Python text.
"""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, choice_list, has, text_of, with_columns
from mmprompt.datasets.placeholders import MediaQueue
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError
from mmprompt.messages import Message, Part, TextPart

_MOST = 7


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    names = [f"image_{number}" for number in range(1, _MOST + 1)]
    queue = MediaQueue({"image": [columns.get(name) for name in names]})
    content = _placed(queue, text_of(sample, "question"), "question")
    choices = choice_list(sample, "options")
    if choices is None and columns.get("question_type") == "multiple-choice":
        raise RowError("a multiple-choice question has no options", "give a list of choices", code="MM006").located(
            column="options"
        )
    asked = list(content)
    for number, choice in enumerate(choices or ()):
        head = ("\n" if asked and isinstance(asked[-1], TextPart) else "") + f"{chr(ord('A') + number)}. "
        asked += [TextPart(head), *_placed(queue, str(choice), "options")]
    queue.close("question")
    changed = with_columns(sample, {"content": content, "question": columns["question"], "options": choices})
    sent = frozenset(("content", "question", "options", "question_type", *names))
    return changed._replace(messages=(Message("user", joined_texts(asked)),), sent=sent)


def _placed(queue: MediaQueue, text: str, column: str) -> list[Part]:
    try:
        return queue.place(text)
    except RowError as error:
        raise error.located(column=column) from None


def joined_texts(parts: list[Part]) -> list[Part]:
    """Return parts with neighbouring texts joined."""
    joined: list[Part] = []
    for part in parts:
        if joined and isinstance(part, TextPart) and isinstance(joined[-1], TextPart):
            joined[-1] = TextPart(joined[-1].text + part.text)
        else:
            joined.append(part)
    return joined


_OWN = has("question", "options", "image_1", "question_type")
LAYOUT = Layout("mmmu", ("question", "options", "image_1"), _OWN, _read)
