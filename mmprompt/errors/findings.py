"""Errors and notes as data: a rule's code, its severity, the place and the words."""

from __future__ import annotations

from typing import NamedTuple

from mmprompt.errors import MMPromptError, Where, short_name
from mmprompt.errors.rules import RULES, page_of


class Note(str):  # noqa: SLOT000  # each note has a few attributes, and there are few notes
    """What was accepted but is odd. It is a text like that of an error, and has the parts of one as attributes.

    ``medium`` is the name of the medium that it is about, if any.

    >>> note = Note("MM204", "declared image/jpeg, bytes are PNG", where=Where("vqa.jsonl", 14))
    >>> note, note.code, note.what
    ('vqa.jsonl:14: declared image/jpeg, bytes are PNG', 'MM204', 'declared image/jpeg, bytes are PNG')
    """

    code: str
    what: str
    hint: str
    where: Where
    medium: str

    def __new__(cls, code: str, what: str, hint: str = "", where: Where | None = None, medium: str = "") -> Note:
        """Return the note, whose text has place, medium, words and hint."""
        text = ": ".join(filter(None, ("" if where is None else str(where), medium, what)))
        note = super().__new__(cls, f"{text}; {hint}" if hint else text)
        note.code, note.what, note.hint, note.where, note.medium = code, what, hint, where or Where(), medium
        return note

    def __getnewargs__(self) -> tuple[str, str, str, Where, str]:  # type: ignore[override]  # str has one argument
        return self.code, self.what, self.hint, self.where, self.medium

    def __repr__(self) -> str:
        return repr(str(self))

    def located(self, where: Where) -> Note:
        """Return a copy with this place."""
        return Note(self.code, self.what, self.hint, where, self.medium)

    @property
    def finding(self) -> Finding:
        """The note as data. It is a warning also where its rule is an error: what it is about was accepted."""
        what = f"{self.medium}: {self.what}" if self.medium else self.what
        finding = Finding.at(self.code, what, self.hint, self.where)
        return finding._replace(severity="warning") if finding.severity == "error" else finding


class Finding(NamedTuple):
    """An error or a note as data: one line of ``--errors FILE`` and of ``mmprompt check --output-format jsonl``.

    ``line`` counts from 1, ``row`` and ``offset`` from 0; ``part`` is the 1-based number of a content part of the
    request. What is unknown is None. ``fixable`` is True if ``mmprompt check --fix`` mends it. ``url`` names the page
    of the rule. ``medium`` is the name of a missing file, as the sample gives it.
    """

    code: str
    severity: str
    message: str
    hint: str
    file: str | None = None
    line: int | None = None
    row: int | None = None
    id: object = None
    column: str | None = None
    offset: int | None = None
    part: int | None = None
    fixable: bool = False
    url: str = ""
    medium: str | None = None

    @classmethod
    def at(  # noqa: PLR0917  # the words, then the place
        cls, code: str, message: str, hint: str, where: Where, row: int | None = None, name: object = None
    ) -> Finding:
        """Return the finding of a rule at a place; ``row`` is the number of its row, and ``name`` the row's id."""
        number = None if where.column is not None else where.message
        what = message if number is None else f"message {number}: {message}"
        what = what if where.template is None else f"in {where.template}: {what}"
        name = where.sample if name is None else name
        severity, url = RULES[code].severity, page_of(code)
        place = (where.file, where.line, row, name, where.column, where.offset, where.part)
        return cls(code, severity, what, hint, *place, False, url, where.medium)

    @classmethod
    def of(cls, error: MMPromptError, row: int | None = None, name: object = None) -> Finding:
        """Return the finding of an error. It is an error also where its rule is a warning: the row is left out."""
        return cls.at(error.code, error.what, error.hint, error.where, row, name)._replace(severity="error")

    @property
    def place(self) -> str:
        """The file with the line, or with the row where the file has no lines; empty if both are unknown."""
        if self.line is not None:
            return f"{self.file}:{self.line}" if self.file else f"row {self.line}"
        return f"{self.file}, row {self.row}" if self.file and self.row is not None else self.file or ""

    def __str__(self) -> str:
        """Return a line in ruff's style.

        >>> str(Finding.at("MM204", "declared image/jpeg, bytes are PNG", "rename it", Where("vqa.jsonl", 14, "image")))
        'vqa.jsonl:14: MM204 declared image/jpeg, bytes are PNG; rename it (image)'

        A row of a file without lines has its 0-based number:

        >>> str(Finding.at("MM700", "the row asks nothing", "", Where("vqa.parquet"), 13, "q-14"))
        'vqa.parquet, row 13: MM700 the row asks nothing (sample q-14)'
        """
        place = self.place
        inside = [] if self.column is None else [short_name(self.column)]
        if self.offset is not None:
            inside = [" ".join([*inside, f"@{self.offset}"])]
        if self.id is not None:
            inside.append(f"sample {short_name(self.id)}")
        if self.part is not None and self.column is None:
            inside.append(f"part {self.part}")
        text = " ".join(filter(None, (self.code, "[*]" if self.fixable else "", self.message)))
        text = "; ".join(filter(None, (text, self.hint)))
        text = f"{text} ({', '.join(inside)})" if inside else text
        return f"{place}: {text}" if place else text
