"""The errors of mmprompt, one tree.

    MMPromptError
    ├── TagError         AIS tags do not pair, or a value cannot be tagged
    ├── TemplateError    a template, meta template or slot cannot be compiled or filled
    ├── PromptError      the meta template cannot render a prompt
    ├── MediaError       a medium cannot become a content part
    │   ├── SourceError      its source is wrong, or the medium is missing or damaged
    │   └── PolicyError      the policy does not allow reading it
    ├── TargetError      the target cannot carry a message
    ├── DatasetError     a dataset cannot be read
    │   └── RowError         one of its rows cannot be read
    ├── TaskError        a task file or a setting is wrong
    └── ServerError      the model server cannot be reached or returned no usable reply

A message says where the fault is (``vqa.jsonl:14 question @57``), what it is, and how to mend it. The attributes
``where``, ``what`` and ``hint`` hold the same three, so that no program has to parse the text. ``code`` names the rule
that the data breaks, such as ``MM201``: ``RULES`` lists them, and ``mmprompt check --explain MM201`` describes one.
Errors are immutable by convention: ``located`` returns a copy. They pickle.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, TypeVar

_E = TypeVar("_E", bound="MMPromptError")

SHOWN = 80
"""Most characters of a dataset's value in a message."""

_COMPARED, _LISTED = 1000, 100
"""Most names among which the nearest is sought, and most names that a message lists."""


class Where(NamedTuple):
    """A place in the user's data: file, 1-based line, column of the row, 0-based character offset in its value.

    ``setting`` names the setting at fault where the fault lies in the task or the command, so that other rows have it
    too. ``message`` and ``part`` are the 1-based numbers of a message of the request and of its content part.
    ``medium`` is the name of a missing file, as the sample gives it.
    """

    file: str | None = None
    line: int | None = None
    column: str | None = None
    offset: int | None = None
    sample: str | None = None
    template: str | None = None
    setting: str | None = None
    message: int | None = None
    part: int | None = None
    medium: str | None = None

    def __str__(self) -> str:
        """Return ``vqa.jsonl:14 question @57 in round[0].prompt (sample q-14)``, leaving out what is unknown.

        Where no column is known, the numbers of message and part follow:

        >>> str(Where("vqa.jsonl", 14, message=2, part=3))
        'vqa.jsonl:14: message 2, part 3'
        """
        words = []
        if self.file is not None:
            words.append(self.file if self.line is None else f"{self.file}:{self.line}")
        elif self.line is not None:
            words.append(f"row {self.line}")
        if self.column is not None:
            words.append(short_name(self.column))
        if self.offset is not None:
            words.append(f"@{self.offset}")
        if self.template is not None:
            words.append(f"in {self.template}")
        if self.sample is not None:
            words.append(f"(sample {short_name(self.sample)})")
        place = " ".join(words)
        if self.column is not None or self.message is None:
            return place
        number = f"message {self.message}" if self.part is None else f"message {self.message}, part {self.part}"
        return f"{place}: {number}" if place else number


NO_COLUMN = "columns"
"""The ``setting`` of an error of a row that lacks a column; the task or the command may name a wrong one."""


class MMPromptError(Exception):
    """The root of all errors that mmprompt raises on purpose.

    ``what`` says what is wrong, ``hint`` what to do about it, and ``where`` the place as far as it is known. ``code``
    is that of the rule in ``errors.rules``; each class has a code of its own for errors that no other rule names.
    """

    code = "MM900"

    def __init__(self, what: str, hint: str = "", where: Where | None = None, code: str | None = None) -> None:
        super().__init__(what, hint, where, code)
        self.what = what
        self.hint = hint
        self.where = where or Where()
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        """Return the whole message on one line."""
        place = str(self.where)
        text = f"{place}: {self.what}" if place else self.what
        return f"{text}; {self.hint}" if self.hint else text

    def located(self: _E, **place: str | int | None) -> _E:
        """Return a copy with these fields of ``where`` filled in; a field that is known already keeps its value."""
        missing = {key: value for key, value in place.items() if getattr(self.where, key) is None}
        where = self.where._replace(**missing)  # type: ignore[arg-type]  # typed by name above
        return type(self)(self.what, self.hint, where, self.code)


class TagError(MMPromptError):
    """AIS tags do not pair, or a value cannot be put between tags."""

    code = "MM100"


class TemplateError(MMPromptError):
    """A template cannot be compiled, or cannot be filled with this sample."""

    code = "MM600"


class PromptError(MMPromptError):
    """A meta template cannot render a prompt."""

    code = "MM601"


class MediaError(MMPromptError):
    """A medium cannot become a content part."""

    code = "MM200"


class SourceError(MediaError):
    """A source names or encodes a medium wrongly, or the medium is missing or damaged."""

    code = "MM200"


class PolicyError(MediaError):
    """The policy does not allow reading a medium."""

    code = "MM210"


class TargetError(MMPromptError):
    """The target cannot carry a message."""

    code = "MM800"


class DatasetError(MMPromptError):
    """A dataset cannot be read."""

    code = "MM000"


class RowError(DatasetError):
    """One row cannot be read; the rows after it can."""

    code = "MM001"


class TaskError(MMPromptError):
    """A task file, a mapping or a setting is wrong."""

    code = "MM602"


class ServerError(MMPromptError):
    """The model server cannot be reached or returned no usable reply."""

    code = "MM901"


def shown(value: object, limit: int = SHOWN) -> str:
    """Return ``value`` quoted for a message: at most ``limit`` characters, with control characters escaped.

    Of a long path both ends are shown: its last name says which file it is.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    text = value if isinstance(value, str) else str(value)
    cut = text
    if len(text) > limit:
        half = limit // 2
        cut = f"{text[:half]}…{text[-half:]}" if "/" in text[-half:] else text[:limit] + "…"
    quoted = cut
    if not cut.isprintable():
        quoted = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return f"'{quoted}'" if len(text) <= limit else f"'{quoted}' ({len(text)} characters)"


def expect(
    value: object, kind: type | tuple[type, ...], place: str, hint: str, error: type[MMPromptError] = TaskError
) -> None:
    """Refuse an argument of another type than ``kind``, with the message ``<place> is <type>; <hint>``."""
    if not isinstance(value, kind):
        raise error(f"{place} is {'None' if value is None else type(value).__name__}", hint)


def malformed(kind: str, problem: str, hint: str, line: int | None, column: int | None) -> TaskError:
    """Return the error of a task file that cannot be parsed. Line and column are 1-based."""
    place = f" at column {column}" if column else ""
    return TaskError(f"malformed {kind}{place}: {problem}", hint, Where(line=line))


def nearest(name: object, known: Iterable[object]) -> str:
    """Return ``did you mean 'x'?`` if a known name is near, else the list of the known names."""
    names = sorted({short_name(k) for k in islice(known, _COMPARED)})
    import difflib  # noqa: PLC0415  # only for a fault

    close = difflib.get_close_matches(short_name(name), names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {names_in_short(names)}" if names else "none are known"


def names_in_short(names: Iterable[object]) -> str:
    """Return at most 100 names for a message, each of at most 80 characters."""
    first = [short_name(name) for name in islice(names, _LISTED + 1)]
    return ", ".join(first[:_LISTED]) + (", …" if len(first) > _LISTED else "")


def short_name(name: object) -> str:
    """Return a name for a message, cut after 80 characters."""
    text = name if isinstance(name, str) else str(name)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
