"""The shape of a row: what a plan asks of its columns, and the marks that stand for its values while a plan is made."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import orjson

from mmprompt.datasets.choices import choices_in
from mmprompt.errors import TagError
from mmprompt.segments import START_TAGS, TERMINATOR, begins_tagged, scan
from mmprompt.templates.sample_view import CONTENT

if TYPE_CHECKING:
    from mmprompt.datasets.sample import Sample
    from mmprompt.icl.assembly import Assembly
    from mmprompt.tasks.config import TaskConfig

_BREAK = "\x7f"
"""Stands between the columns of a row while they are matched as text, and nowhere else."""

_BLANK = "|".join(filter(str.isspace, map(chr, (0x85, 0xA0, 0x1680, *range(0x2000, 0x2060), 0x3000))))
_WIDE = rf"(?!{_BLANK})[^\x00-\x7f]"
"""A character beyond ASCII that is no blank, in text and in JSON. JSON is bytes, where ``\\s`` knows ASCII alone."""

_FILLED = rf"(?:[!-;=-\[\]-~]|{_WIDE})"
_BEGIN = rf"(?:[!#-&)-;=-Z\]-z|-~]|{_WIDE})"
"""How a text begins that no template takes for tags, for a list or for a lettered choice."""

_TEXT, _UNTAGGED = rf"({_BEGIN}[^\x7f]*)", rf"({_BEGIN}[^<\x7f]*)"
_UNLETTERED = r"(?![A-Z][.):])"
_CHOICE = rf"({_UNLETTERED}{_BEGIN}[^\x7f]*)"
"""A choice that does not begin with a letter of its own, as ``A. cat`` does: such letters are left out."""

_SEGMENT, _SOURCE = rf"([ \n]*{_FILLED}[^<]*)", rf"({_FILLED}[^<]*)"
_INTEGER = "(-?[0-9]+)"

_ESCAPED = r'\\["\\bfnrt]'
"""The escapes that every writer of JSON uses."""


def _json(plain: str) -> str:
    """Return the pattern of the rest of a text in JSON. A repeated group costs much, so it comes after an escape."""
    return rf"{plain}*(?:{_ESCAPED}{plain}*(?:{_ESCAPED}{plain}*)*|)"


_JSON, _JSON_UNTAGGED = _json(r"[ !#-\[\]-~\x80-\xff]"), _json(r"[ !#-;=-\[\]-~\x80-\xff]")
_JSON_FILLED = rf"[!#-;=-\[\]-~]|{_WIDE}"
_IN_JSON = {
    _TEXT: rf"({_BEGIN}{_JSON})",
    _CHOICE: rf"({_UNLETTERED}{_BEGIN}{_JSON})",
    _UNTAGGED: rf"({_BEGIN}{_JSON_UNTAGGED})",
    _SEGMENT: rf"((?:{_JSON_FILLED}|(?: |\\n)+(?:{_JSON_FILLED})){_JSON_UNTAGGED})",
    _SOURCE: rf"((?:{_JSON_FILLED}){_JSON_UNTAGGED})",
    _INTEGER: "(0|-?[1-9][0-9]{0,17})",
}
"""From pattern of a value in a row to its pattern in the row as JSON, where a value means one thing only."""

_URL_REST = r"[/?#][!#-;=?-\[\]-~]*"
_URL = rf"(%s://[A-Za-z0-9.-]+(?:{_URL_REST}|:[0-9]{{1,5}}(?:{_URL_REST})?|))"
"""An address that every parser reads alike and that JSON does not escape; ``is_plain_url`` takes more."""

_PATH = r"([A-Za-z0-9_/][A-Za-z0-9_/-]*\.[A-Za-z0-9_/-]+(?:(?:\.[A-Za-z0-9_/-]+)+|))"
"""A path that nothing else can be taken for, if it is short, and that JSON does not escape."""

_ODD = " <b>\n{0} {} %s \"' \\ ]\u00e9\u4e16 \n "
_TAG_OF = {modality: tag for tag, modality in START_TAGS.items()}
_NONCE = f"{int.from_bytes(os.urandom(8), 'big') % 10**15:015}"
"""No dataset can hold it, so no value is taken for a mark."""


class Unplannable(Exception):  # noqa: N818  # no error: such rows go the long way
    """Rows of this shape have no plan."""


class _Column(NamedTuple):
    """A column of a shape: the type of its value, and the patterns of the texts that a row puts there.

    A value that all rows have is ``fixed``, and has no pattern. ``segments`` are the modalities of tagged text.
    """

    type: type
    patterns: tuple[str, ...] = ()
    fixed: object = None
    segments: tuple[str, ...] = ()

    def holding(self, texts: Iterable[str]) -> str:
        """Return the column as text with these texts in the places of its values."""
        if self.segments:
            return "".join([f"{_TAG_OF[m]}{text}{TERMINATOR}" for m, text in zip(self.segments, texts, strict=True)])
        return next(iter(texts), str(self.fixed))

    def as_json(self, patterns: Sequence[str]) -> str:
        """Return the pattern of the column as JSON, with these in the places of its values."""
        if not patterns:
            return orjson.dumps(self.fixed).decode()
        return f'"{self.holding(patterns)}"' if self.type is str else self.holding(patterns)


class Shape:
    """What rows of one shape have in common: their columns, the type of each, and the segments of tagged text.

    Args:
        columns: those of a row of this shape.
        tagged: columns that are tagged whatever they hold.
        scanned: whether texts may hold AIS tags.
        choices: columns that hold a choice each.

    Raises:
        Unplannable: a value is of a kind by which templates may decide.
    """

    def __init__(
        self, columns: Mapping[str, object], tagged: Collection[object], *, scanned: bool, choices: Collection[str] = ()
    ) -> None:
        self.names = tuple(columns)
        self._columns = [
            _choice(value) if name in choices else _column(value, scanned and name in tagged, scanned)
            for name, value in columns.items()
        ]
        self._types = tuple([column.type for column in self._columns])
        self._is_text = set(self._types) == {str}
        self._breaks = len(self._types) - 1
        self._pattern = re.compile(self._pattern_of([column.patterns for column in self._columns]) + r"\Z")
        if self.values(columns) is None:
            raise Unplannable

    @property
    def whole_texts(self) -> dict[str, int]:
        """The columns whose texts are a value as a whole, and the number of that value."""
        found: dict[str, int] = {}
        number = 0
        for name, column in zip(self.names, self._columns, strict=True):
            if column.type is str and not column.segments:
                found[name] = number
            number += len(column.patterns)
        return found

    def _pattern_of(self, patterns: Iterable[Iterable[str]]) -> str:
        columns = zip(self._columns, patterns, strict=True)
        return _BREAK.join([column.holding(own) for column, own in columns])

    def joined(self, columns: Mapping[str, object]) -> str | None:
        """Return the columns of a row as one text, to be matched; None if a value is of another type.

        A subclass of ``str`` is another type: it may have its own root, or say something else as text.
        """
        values = columns.values()
        if tuple(map(type, values)) != self._types:
            return None
        try:
            text = _BREAK.join(values if self._is_text else map(str, values))  # type: ignore[arg-type]  # texts
        except (ValueError, MemoryError):  # an integer of too many digits
            return None
        return text if text.count(_BREAK) == self._breaks else None

    def values(self, columns: Mapping[str, object]) -> tuple[str, ...] | None:
        """Return the values of a row with these columns as texts; None if it is of another shape."""
        text = self.joined(columns)
        match = None if text is None else self._pattern.match(text)
        return None if match is None else match.groups()

    def as_json(self, columns: Mapping[str, object]) -> bytes | None:
        """Return the columns of a row as JSON; None if a value is of another type, or JSON cannot hold a text."""
        if tuple(map(type, columns.values())) != self._types:
            return None
        try:
            return orjson.dumps(columns)
        except (TypeError, ValueError, MemoryError):  # a lone surrogate, an integer of too many digits
            return None

    def with_urls(self, sources: Collection[int], schemes: Collection[str]) -> re.Pattern[bytes]:
        """Return the pattern of rows as JSON whose ``sources`` are plain URLs."""
        return self._as_json_with(_URL % f"(?:{'|'.join(schemes)})", sources)

    def with_paths(self, sources: Collection[int]) -> re.Pattern[bytes]:
        """Return the pattern of rows as JSON whose ``sources`` are plain paths."""
        return self._as_json_with(_PATH, sources)

    def _as_json_with(self, source: str, sources: Collection[int]) -> re.Pattern[bytes]:
        """Return the pattern of rows as JSON, and of lines of JSON, with ``source`` for the values of that kind."""
        number = 0
        members = []
        for name, column in zip(self.names, self._columns, strict=True):
            numbers = range(number, number + len(column.patterns))
            own = [source if n in sources else _IN_JSON[p] for n, p in zip(numbers, column.patterns, strict=True)]
            members.append(f"{re.escape(orjson.dumps(name).decode())}: ?{column.as_json(own)}")
            number = numbers.stop
        return re.compile(f"{{{', ?'.join(members)}}}\\r?\\n?\\Z".encode())

    def marks(self, *, odd: bool = False, sources: Collection[int] = ()) -> tuple[str, ...]:
        """Return a mark for each value.

        An ``odd`` mark begins like a text and goes on with all that a template could take for something else; not so
        those of ``sources``, which name media.
        """
        marks: list[str] = []
        for column in self._columns:
            for _ in column.patterns:
                number = len(marks)
                if column.type is int:
                    marks.append(f"{7 + odd}{_NONCE}{number:03}")
                else:
                    odds = _ODD if odd and number not in sources else ""
                    marks.append(f"mm{7 + odd}{_NONCE}q{number}q{odds}")
        return tuple(marks)

    def marked(self, marks: Iterable[str]) -> dict[str, object]:
        """Return a row of this shape with marks in the place of its values."""
        left = iter(marks)
        row: dict[str, object] = {}
        for name, column in zip(self.names, self._columns, strict=True):
            own = [next(left) for _ in column.patterns]
            row[name] = column.type(column.holding(own)) if own else column.fixed
        return row


def has_shapes(assembly: Assembly | None) -> bool:
    """Return whether the rows of a task have shapes: one request each, in which values stand as they are."""
    return assembly is None or (
        assembly.mode == "gen"
        and _puts_values_in(assembly.template)
        and assembly.arguments.get("max_seq_len") is None
        and assembly.same_examples
    )


def _puts_values_in(template: object) -> bool:
    """Return whether a template puts values in as they are. Others, as in Jinja, may choose what to send by a value."""
    from mmprompt.templates.multimodal import MMPromptTemplate  # noqa: PLC0415  # a task without a template has none
    from mmprompt.templates.text import PromptTemplate  # noqa: PLC0415  # a task without a template has none

    return type(template) in {PromptTemplate, MMPromptTemplate}


def shape_of(row: Sample, assembly: Assembly | None, config: TaskConfig) -> Shape:
    """Return the shape of a row of a task.

    Raises:
        Unplannable: it has none.
    """
    choices = choices_in(row.columns).columns
    template = None if assembly is None else assembly.template
    outright = getattr(template, "column", None)  # of an MMPromptTemplate
    by_rule = {CONTENT, outright, *(config.tagged_columns or ())}
    return Shape(row.columns, by_rule, scanned=row.scanned, choices=choices)


def _choice(value: object) -> _Column:
    """Return the kind of a column with one choice."""
    if type(value) is not str:  # such as a list of all of them
        raise Unplannable
    return _Column(str, (_CHOICE,))


def _column(value: object, by_rule: bool, scanned: bool) -> _Column:
    """Return the kind of a column with this value; see ``Shape``."""
    if value is None or isinstance(value, bool):
        return _Column(type(value), (), value)
    if type(value) is int:
        return _Column(int, (_INTEGER,))
    if type(value) is not str:
        raise Unplannable
    if not (scanned and begins_tagged(value)):
        return _Column(str, (_UNTAGGED if by_rule else _TEXT,))
    try:
        segments = tuple([modality for modality, *_ in scan(value)])
    except TagError:
        raise Unplannable from None
    return _Column(str, tuple([_SEGMENT if m == "text" else _SOURCE for m in segments]), None, segments)


def address_of(medium: int) -> str:
    """Return the address that stands for a medium while a plan is made."""
    return f"https://mm{_NONCE}.invalid/{medium}q"
