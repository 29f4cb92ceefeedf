"""The errors of mmprompt, one tree.

    MMPromptError
    ├── TagError         AIS tags that do not pair, or a value that cannot be tagged
    ├── TemplateError    a template, meta template or slot that cannot be compiled or filled
    ├── PromptError      a prompt that the meta template cannot render
    ├── MediaError       media that cannot become a content part
    │   ├── SourceError      a source that names or encodes media wrongly, or whose media are missing or damaged
    │   └── PolicyError      media that exists but that the policy does not let us read
    ├── TargetError      a message that the chosen target cannot carry
    ├── DatasetError     a dataset that cannot be read at all
    │   └── RowError         one row of it
    ├── TaskError        a task file that is not one
    └── ServerError      a model's server that cannot be asked, or whose answer is none

A message says where (``vqa.jsonl:14 question @57``), what, and how to mend it. The three are attributes too, so a
program need not take the text apart. Errors are values: ``located`` returns a copy, and they pickle.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, TypeVar

_E = TypeVar("_E", bound="MMPromptError")

SHOWN = 80
"""How many characters of a value from a dataset a message shows at most."""


_COMPARED, _LISTED = 1000, 100
"""Among how many known names the nearest is looked for, and how many a message lists: a dataset may have any number."""


class Where(NamedTuple):
    """A place in the user's data: file, 1-based line, column of the row, 0-based character offset in its value.

    ``setting`` is set where the fault is not one of the row but of the task or the command: what would have to be said
    there. Other rows have the same fault then. ``message`` and ``part`` are the 1-based numbers of a message of the
    request and of a content part of that message.
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
            words.append(_cut(self.column))
        if self.offset is not None:
            words.append(f"@{self.offset}")
        if self.template is not None:
            words.append(f"in {self.template}")
        if self.sample is not None:
            words.append(f"(sample {_cut(self.sample)})")
        place = " ".join(words)
        if self.column is not None or self.message is None:
            return place
        number = f"message {self.message}" if self.part is None else f"message {self.message}, part {self.part}"
        return f"{place}: {number}" if place else number


class MMPromptError(Exception):
    """The root of all errors that mmprompt raises on purpose.

    ``what`` says what is wrong, ``hint`` how to put it right, ``where`` the place as far as it is known.
    """

    def __init__(self, what: str, hint: str = "", where: Where | None = None) -> None:
        super().__init__(what, hint, where)
        self.what = what
        self.hint = hint
        self.where = where or Where()

    def __str__(self) -> str:
        """Return the whole message on one line."""
        place = str(self.where)
        text = f"{place}: {self.what}" if place else self.what
        return f"{text}; {self.hint}" if self.hint else text

    def located(self: _E, **place: str | int | None) -> _E:
        """Return a copy with these fields of ``where`` filled in; a field that is known already keeps its value."""
        missing = {key: value for key, value in place.items() if getattr(self.where, key) is None}
        return type(self)(self.what, self.hint, self.where._replace(**missing))  # type: ignore[arg-type]  # typed by name above


class TagError(MMPromptError):
    """AIS tags that do not pair, or a value that cannot be put between tags."""


class TemplateError(MMPromptError):
    """A template that cannot be compiled, or cannot be filled with this sample."""


class PromptError(MMPromptError):
    """A prompt that a meta template cannot render."""


class MediaError(MMPromptError):
    """Media that cannot become a content part."""


class SourceError(MediaError):
    """A source that names or encodes media wrongly, or whose media are missing or damaged."""


class PolicyError(MediaError):
    """Media that the policy does not let us read."""


class TargetError(MMPromptError):
    """A message that the chosen target cannot carry."""


class DatasetError(MMPromptError):
    """A dataset that cannot be read."""


class RowError(DatasetError):
    """One row that cannot be read; the rows after it can."""


class TaskError(MMPromptError):
    """A task file or mapping that is not a task."""


class ServerError(MMPromptError):
    """A model's server that cannot be asked, or whose answer is none."""


def shown(value: object, limit: int = SHOWN) -> str:
    """Return ``value`` quoted for a message: at most ``limit`` characters, control characters escaped."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value)} bytes"
    text = value if isinstance(value, str) else str(value)
    cut = text[:limit]
    quoted = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return f"'{quoted}'" if len(text) <= limit else f"'{quoted}…' ({len(text)} characters)"


def expect(
    value: object, kind: type | tuple[type, ...], place: str, hint: str, error: type[MMPromptError] = TaskError
) -> None:
    """Refuse an argument of the wrong type, which only a Python caller can pass.

    Args:
        value: the argument.
        kind: the types it may have.
        place: what the message calls it, such as ``"the policy"``.
        hint: what to give instead.
        error: the class of the error.

    Raises:
        MMPromptError: ``<place> is <type>; <hint>``, as an ``error``.
    """
    if not isinstance(value, kind):
        raise error(f"{place} is {'None' if value is None else type(value).__name__}", hint)


def malformed(kind: str, problem: str, hint: str, line: int | None, column: int | None) -> TaskError:
    """Return the error of a task file that cannot be parsed; line and column are 1-based."""
    place = f" at column {column}" if column else ""
    return TaskError(f"malformed {kind}{place}: {problem}", hint, Where(line=line))


def nearest(name: object, known: Iterable[object]) -> str:
    """Return ``did you mean 'x'?`` where a known name is near, else the list of the known names."""
    names = sorted({_cut(k) for k in islice(known, _COMPARED)})
    close = difflib.get_close_matches(_cut(name), names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {names_in_short(names)}" if names else "none are known"


def names_in_short(names: Iterable[object]) -> str:
    """Return names, which may be a dataset's, for a message: so many as can be read, each in short."""
    first = [_cut(name) for name in islice(names, _LISTED + 1)]
    return ", ".join(first[:_LISTED]) + (", …" if len(first) > _LISTED else "")


def _cut(name: object) -> str:
    text = name if isinstance(name, str) else str(name)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
