"""Rules on the question of a row: missing, swapped with another column, or giving its answer away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mmprompt.check.answer_forms import choice_of
from mmprompt.check.rule import CheckedMedium, CheckedRow, Hit, dataset_rule, row_rule
from mmprompt.check.store import Store
from mmprompt.datasets.choices import is_empty, without_letters
from mmprompt.errors import shown
from mmprompt.media.media_types import suffix_type
from mmprompt.media.sources import classify_or_path

_LONGEST_QUESTION = 500
"""Characters. A longer text is often a passage in which the answer is to be found."""

_LONGEST_NAME = 256
"""Characters of the name of a file that a file system takes, and one more."""

_LONG_ANSWER = 4
"""Words. A shorter answer may well stand in its question by chance."""

_LONGEST_ANSWER = 1000
"""Characters. A question hardly repeats a longer answer, and to look for it takes time."""

_LEAST_WORDS = 3
_MARKS = frozenset("?？。，")  # noqa: RUF001  # Chinese has no blanks between words
_LEAST_LETTERS = 3
_ANSWERS = (
    r"(?:\b(?:answer|ans|correct (?:answer|option|choice)|solution|label)\s*(?:(?:is|are)\b\s*:?|[:=])"
    "|(?:答案|正解|答え)\\s*(?:[是为は]\\s*[:\uff1a]?|[:\uff1a]))\\s*[(\"'\uff08]?"
)
_NO_MORE = "(?!\\w|[)\"'\uff09]?\\s*(?:[,/\u3001\uff0c]|\\bor\\b))"
"""What may not follow: the question would list answers to choose from."""

_PLAIN = frozenset((
    "yes", "no", "true", "false", "none", "not", "and", "the", "image", "images", "img", "photo", "picture", "frame",
    "page", "figure", "train", "val", "test",
))  # fmt: skip
"""Words of file names that tell nothing, although they may be answers: ``COCO_train2014_25.jpg`` may show a train."""

_FAR = 20
_LONG = 4000
"""Characters, and how many times the median: a text beyond both stands out."""


@dataset_rule("MM700")
def empty_question(store: Store) -> Iterator[Hit]:
    """Rows that send media without a text, where other rows have a text."""
    asked = "FROM samples WHERE length > 0"
    if not next(store.query(f"SELECT COUNT(*) {asked}"))[0]:
        return
    for row, shape in store.query("SELECT row, shape FROM samples WHERE length = 0 ORDER BY row"):
        column = next((name for name in ("question", "content") if f'"{name}"' in shape), None)
        what = "the row has no question" if column is None else "the row asks nothing: its text is blank"
        yield Hit(what, "write the question, or drop the row", column, row=row)


@row_rule("MM706", explains=("MM201", "MM212"))
def swapped_columns(row: CheckedRow) -> Iterator[Hit]:
    """A text is the name of a file, and the name of a file is a sentence."""
    for medium in row.media:
        source = medium.source.get("path") if isinstance(medium.source, Mapping) else medium.source
        if medium.part is not None or not isinstance(source, str) or not _is_sentence(source):
            continue
        text = next((text for text in row.texts if _is_file_name(text.text)), None)
        if text is None:
            return
        other = "another segment" if text.column == medium.column else f"'{text.column}'"
        what = f"the {medium.modality} is {shown(source)}, and {other} is {shown(text.text)}: they look swapped"
        hint = "swap the two, or their names in the header if all rows are so"
        yield Hit(what, hint, medium.column, medium.offset, part=medium.number)


def _is_sentence(text: str) -> bool:
    is_long = len(text.split()) >= _LEAST_WORDS or not _MARKS.isdisjoint(text)
    return is_long and suffix_type(text) is None and classify_or_path(text) == "path"


def _is_file_name(text: str) -> bool:
    """Return whether the first line of a text is the name of a file; choices may follow."""
    name = text.strip().partition("\n")[0]
    return len(name) < _LONGEST_NAME and suffix_type(name) is not None and len(name.split()) == 1


@row_rule("MM704")
def answer_in_question(row: CheckedRow) -> Iterator[Hit]:
    """The question says its answer."""
    question = row.question
    if not isinstance(row.answer, str) or len(row.answer.strip()) > min(len(question), _LONGEST_ANSWER):
        return
    if is_empty(row.answer):
        return
    given = _given_away(row, row.answer.strip())
    if given is not None:
        hint = "remove the answer from the question, or drop the row"
        column = next((text.column for text in row.texts if given in text.text), None)
        yield Hit(f"the question says the answer: {shown(given)}", hint, column)


def _given_away(row: CheckedRow, answer: str) -> str | None:
    """Return the words of the question that give the answer; None if none do."""
    if row.question.isascii() and answer.isascii() and answer.lower() not in row.question.lower():
        return None  # most rows; an expression for each answer takes time to compile
    told = re.search(_ANSWERS + re.escape(answer) + _NO_MORE, row.question, re.IGNORECASE)
    if told:
        return told[0]
    if row.choices or not row.media or len(answer.split()) < _LONG_ANSWER or len(row.question) > _LONGEST_QUESTION:
        return None
    if re.search(r"\bor\b", row.question):  # it lists answers to choose from
        return None
    found = re.search(re.escape(answer), row.question, re.IGNORECASE)
    return found[0] if found else None


@row_rule("MM705")
def answer_in_file_name(row: CheckedRow) -> Iterator[Hit]:
    """The name of a medium says the answer, and not the folder, too: files are often laid out by their labels."""
    words = _words(_answer_text(row))
    if not words or sum(map(len, words)) < _LEAST_LETTERS or _PLAIN.issuperset(words):
        return
    for medium in row.media:
        if medium.part is None and _is_sentence(_path(medium)):
            continue
        named = _words(_base_name(medium))
        if words[0] not in named or _words(_path(medium).rpartition("/")[0].rpartition("/")[2]) == words:
            continue
        if any(named[at : at + len(words)] == words for at in range(len(named))):
            what = f"the name {shown(_base_name(medium))} says the answer {shown(_answer_text(row))}"
            yield Hit(
                what, "give the file another name, if the model or a rater may see it", medium.column, medium.offset
            )


def _answer_text(row: CheckedRow) -> str:
    if not isinstance(row.answer, str):
        return ""
    number = choice_of(row.answer, row.choices, row.task.config.index_base) if row.choices else -1
    return str(without_letters(row.choices)[number]) if number >= 0 else row.answer


def _base_name(medium: CheckedMedium) -> str:
    name = _path(medium).rpartition("/")[2]
    return name if len(name) < _LONGEST_NAME else ""


def _path(medium: CheckedMedium) -> str:
    """Return the path of a file or URL; empty for media of another kind."""
    source = medium.source
    if not isinstance(source, str) or classify_or_path(source) not in ("path", "file", "url"):
        return ""
    return re.split(r"[?#]", source, maxsplit=1)[0].replace("\\", "/")


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case, without numbers."""
    return re.findall(r"[^\W\d_]+", text.casefold())


@dataset_rule("MM716")
def long_text(store: Store) -> Iterator[Hit]:
    """A question many times longer than the others."""
    asked = "FROM samples WHERE length > 0"
    count = next(store.query(f"SELECT COUNT(*) {asked}"))[0]
    if not count:
        return
    median = next(store.query(f"SELECT length {asked} ORDER BY length LIMIT 1 OFFSET {count // 2}"))[0]
    most = max(_LONG, _FAR * median)
    for row, length in store.query(f"SELECT row, length {asked} AND length > {most} ORDER BY row"):
        what = f"the text has {length} characters, and half of the texts have at most {median}"
        yield Hit(what, "look whether it is one question", row=row)
