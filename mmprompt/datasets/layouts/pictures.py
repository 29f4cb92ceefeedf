"""Benchmarks of pictures: DocVQA, TextVQA, ScienceQA, MathVista and MMMU."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.layouts.layout import Layout, beside, choice_list, has, required_choices, text_of, with_columns
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import holds_no_medium
from mmprompt.datasets.placeholders import MediaQueue
from mmprompt.datasets.sample import Sample, column_error
from mmprompt.errors import RowError
from mmprompt.messages import MediaRef, Message, Part, TextPart


def _docvqa(sample: Sample) -> Sample:
    """The list ``data`` with ``questionId``, ``question``, ``image`` (a path, or the page itself), ``answers``."""
    page = sample.columns["image"]
    if page is None or page == "":
        raise column_error("image", "the row names no page", "give 'image'", "MM715")
    new = {"image": page, "question": text_of(sample, "question"), "answer": sample.columns.get("answers")}
    return with_columns(sample, new, renamed=("answers",))


DOCVQA = Layout("docvqa", ("question", "image"), has("questionId", "question", "docId"), _docvqa)


def _textvqa(sample: Sample) -> Sample:
    """The list ``data``; ``image_id`` names a file of ``train_images/`` or ``test_images/``; ten ``answers``."""
    columns = sample.columns
    picture = columns.get("image")  # in parquet files the picture itself
    if picture is None:
        folder = "test_images" if columns.get("set_name") == "test" else "train_images"
        picture = beside(sample, f"{text_of(sample, 'image_id')}.jpg", folder)
    new = {"image": picture, "question": text_of(sample, "question"), "answer": columns.get("answers")}
    return with_columns(sample, new, renamed=("answers",))


_OF_TEXTVQA = has("question", "question_id", "image_id", "image_classes")
TEXTVQA = Layout("textvqa", ("question", "image_id"), _OF_TEXTVQA, _textvqa)


def _scienceqa(sample: Sample) -> Sample:
    """``question``, ``choices``, ``hint``, an index as ``answer``, and a picture in some rows.

    In ``problems.json`` the keys of the object are the ids, and ``image`` is the name of a file below
    ``images/SPLIT/ID/``.
    """
    picture = sample.columns.get("image")
    if isinstance(picture, str) and picture and "/" not in picture:
        split = sample.columns.get("split")
        if not isinstance(split, str):
            what = "the row names a picture, but not the split whose folder holds it"
            raise column_error("split", what, "give 'split'", "MM006")
        picture = beside(sample, f"{split}/{sample.id}/{picture}", "images")
    choices = required_choices(sample, "choices")
    hint = sample.columns.get("hint") or None
    new = {"image": picture or None, "hint": hint, "question": text_of(sample, "question"), "choices": choices}
    return with_columns(sample, new, drop=("image", "hint"))


_OF_SCIENCEQA = has("question", "choices", "lecture", "solution")
SCIENCEQA = Layout("scienceqa", ("question", "choices", "answer", "hint"), _OF_SCIENCEQA, _scienceqa)


def _mathvista(sample: Sample) -> Sample:
    """``query`` holds hint, question and choices as the benchmark asks them; without it ``question`` does."""
    columns = sample.columns
    picture = columns.get("decoded_image") or columns.get("image")
    if picture is None or picture == "":
        raise column_error("image", "the row has no picture", "give 'image' or 'decoded_image'", "MM715")
    new = {"image": picture, "question": text_of(sample, "question"), "options": choice_list(sample, "choices")}
    changed = with_columns(sample, new, drop=("decoded_image",))
    if columns.get("query") in (None, ""):
        return changed
    content: list[Part] = [MediaRef("image", picture), TextPart(text_of(sample, "query"))]
    changed = with_columns(changed, {"content": content})
    sent = frozenset(("content", "query", "question", "image", "choices", "options"))
    return changed._replace(messages=(Message("user", content),), sent=sent)


_OF_MATHVISTA = has("pid", "question", "choices", "question_type")
MATHVISTA = Layout("mathvista", ("question", "image", "choices"), _OF_MATHVISTA, _mathvista)


def _mathvision(sample: Sample) -> Sample:
    """``decoded_image`` holds the picture, whose name among the owners' files is ``image``."""
    columns = sample.columns
    picture = columns["decoded_image"] or columns.get("image")
    new = {"image": picture, "question": text_of(sample, "question"), "options": choice_list(sample, "options")}
    return with_columns(sample, new, drop=("decoded_image", "options"))


_OF_MATHVISION = ("question", "options", "decoded_image")
MATHVISION = Layout("mathvision", _OF_MATHVISION, has(*_OF_MATHVISION), _mathvision)

_MOST = 7


def _mmmu(sample: Sample) -> Sample:
    """``question`` and ``options`` with marks ``<image 1>``, and the pictures in ``image_1`` to ``image_7``.

    The answer of a question with options is a letter, else one text or several. ``options`` and several answers are
    lists written as Python text. MMMU-Pro has no ``question_type``.
    """
    columns = sample.columns
    names = [f"image_{number}" for number in range(1, _MOST + 1)]
    pictures = [columns.get(name) for name in names]
    queue = MediaQueue({"image": [None if holds_no_medium(picture) else picture for picture in pictures]})
    content = _placed(queue, text_of(sample, "question"), "question")
    choices = choice_list(sample, "options")
    if choices is None and columns.get("question_type") == "multiple-choice":
        what = "a multiple-choice question has no options"
        raise column_error("options", what, "give a list of choices", "MM006")
    asked = list(content)
    for number, choice in enumerate(choices or ()):
        head = ("\n" if asked and isinstance(asked[-1], TextPart) else "") + f"{chr(ord('A') + number)}. "
        asked += [TextPart(head), *_placed(queue, str(choice), "options")]
    queue.close("question")
    answer = columns.get("answer") if choices else _answers(columns.get("answer"))
    new = {"content": content, "question": columns["question"], "options": choices, "answer": answer}
    changed = with_columns(sample, new)
    sent = frozenset(("content", "question", "options", "question_type", *names))
    return changed._replace(messages=(Message("user", _joined_texts(asked)),), sent=sent)


def _answers(answer: object) -> object:
    """Return the texts of an answer such as ``"['24', 'twenty-four']"``; any other as it is."""
    texts = list_of_cell(answer, cells=True)
    return texts if len(texts) > 1 and all(isinstance(text, str) for text in texts) else answer


def _placed(queue: MediaQueue, text: str, column: str) -> list[Part]:
    try:
        return [*queue.place(text)]
    except RowError as error:
        raise error.located(column=column) from None


def _joined_texts(parts: list[Part]) -> list[Part]:
    """Return parts with neighbouring texts joined."""
    joined: list[Part] = []
    for part in parts:
        if joined and isinstance(part, TextPart) and isinstance(joined[-1], TextPart):
            joined[-1] = TextPart(joined[-1].text + part.text)
        else:
            joined.append(part)
    return joined


def _is_mmmu(columns: Mapping[str, object]) -> bool:
    """Its columns of pictures are numbered as its marks are."""
    if not columns.keys() >= _OF_MMMU:
        return False
    return "question_type" in columns or "<image 1>" in f"{columns['question']} {columns['options']}"


_OF_MMMU = frozenset(("question", "options", "image_1"))
MMMU = Layout("mmmu", ("question", "options", "image_1"), _is_mmmu, _mmmu)
