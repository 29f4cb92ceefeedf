"""The journal of a run: one JSON object per line, one line per request, in the order in which they finished.

A line may come again later: a request that failed is asked again. The last line with the same row, id, turn, label and
repeat counts, unless it says that its row is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from itertools import count, islice
from typing import Any, BinaryIO, NamedTuple, cast

from mmprompt.datasets.sample import LONGEST_ROW
from mmprompt.datasets.side_files import opened_side
from mmprompt.errors import MMPromptError, TaskError, shown
from mmprompt.targets import exact_json
from mmprompt.targets.json_files import ANY, COUNT, FLAG, NUMBER, OBJECT, TEXT, TEXTS, Fields, Kind, or_null
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.wire_json import record_chunks

_KEY_BYTES = 7
"""Two among a million lines have the same key with a chance of 1 in 100,000."""


_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("row", "attempts"), COUNT),
    **dict.fromkeys(("turn", "repeat"), or_null(COUNT)),
    **dict.fromkeys(("label", "request", "prediction", "error"), or_null(TEXT)),
    **dict.fromkeys(("groups", "usage"), OBJECT),
    "perplexity": or_null(NUMBER),
    "seconds": NUMBER,
    "finish_reason": TEXT,
    "choices": or_null(TEXTS),
    "gone": FLAG,
}
"""What a line may hold; its other values may be anything."""


class JournalLine(NamedTuple):
    """One line: what was asked, and the ``prediction`` or the ``error``.

    ``turn`` is the 0-based turn of a dialogue. ``label`` stands on the lines of ``PPLInferencer`` that hold the
    ``perplexity`` of one label; the line of the row has None there, and its ``prediction`` is the chosen label.
    ``repeat`` counts from 0 where each row is asked several times. ``request`` is a SHA-256 of the request with its
    media as bytes.
    ``answer`` and ``choices`` are the row's own, and ``groups`` holds the columns by which scores are grouped. ``gone``
    says that the dataset has no such row any more: the line counts nowhere.
    """

    row: int
    id: JSONValue
    turn: int | None = None
    label: str | None = None
    repeat: int | None = None
    request: str | None = None
    prediction: str | None = None
    error: str | None = None
    perplexity: float | None = None
    answer: JSONValue = None
    choices: tuple[str, ...] = ()
    groups: Mapping[str, JSONValue] = {}
    usage: Mapping[str, JSONValue] = {}
    seconds: float = 0.0
    attempts: int = 0
    finish_reason: str = ""
    gone: bool = False

    @property
    def key(self) -> int:
        """What is equal for lines of which only the last counts."""
        return line_key(self.row, self.id, self.turn, self.label, self.repeat)

    def to_json(self) -> bytes:
        """Return the line as JSON in UTF-8, with its newline."""
        record: dict[str, JSONValue] = {"row": self.row, "id": self.id, "turn": self.turn, "label": self.label}
        if self.repeat is not None:
            record["repeat"] = self.repeat
        record["request"] = self.request
        record |= {"error": self.error} if self.prediction is None else {"prediction": self.prediction}
        if self.perplexity is not None:
            del record["error"]
            record["perplexity"] = self.perplexity
        record |= {"answer": self.answer, "choices": list(self.choices)}
        if self.groups:
            record["groups"] = dict(self.groups)
        record |= {"usage": dict(self.usage), "seconds": self.seconds, "attempts": self.attempts}
        record["finish_reason"] = self.finish_reason
        if self.gone:
            record["gone"] = True
        return b"".join(record_chunks(record, newline=True))

    @classmethod
    def of(cls, value: Any) -> JournalLine | None:
        """Return the line of a parsed JSON value; None if it is no line of a journal."""
        found = _FORM.values(value)
        if (
            found is None
            or "id" not in value
            or not ("prediction" in value or "error" in value or "perplexity" in value)
        ):
            return None
        found[_CHOICES] = tuple(found[_CHOICES] or ())
        return cls._make(found)


_FORM = Fields({n: _KINDS.get(n, ANY) for n in JournalLine._fields}, {**JournalLine._field_defaults, "choices": None})
_CHOICES = JournalLine._fields.index("choices")


def line_key(row: int, name: JSONValue, turn: int | None, label: str | None, repeat: int | None) -> int:
    """Return a hash of what a line is about."""
    about = (row, turn, label, repeat or 0)
    text = repr((name, about)).encode() if type(name) in (str, int) else exact_json.dumps([name, *about])
    return int.from_bytes(blake2b(text, digest_size=_KEY_BYTES).digest(), "big")


def read_journal(path: str, on_torn: Callable[[int], object] | None = None) -> Iterator[JournalLine]:
    """Yield the lines of a journal that count, in order; otherwise as ``placed_lines``."""
    for _, line in placed_lines(path, on_torn):
        yield line


def placed_lines(path: str, on_torn: Callable[[int], object] | None = None) -> Iterator[tuple[int, JournalLine]]:
    """Yield where each line that counts begins, in bytes, and the line. The memory for a line is about 100 bytes.

    Args:
        path: the journal. A run may be writing it: a last line without its newline is left out.
        on_torn: receives the number of each other line that is no line of a journal; it is left out too.

    Raises:
        TaskError: the file is not a journal.
        OSError: it cannot be read.
    """
    with opened_side(path, typed=True) as file:
        seen: set[int] = set()
        last: dict[int, int] = {}
        lines = 0
        for lines, line in journal_lines(file, path):
            if line is None:
                continue
            if (key := line.key) in seen:
                last[key] = lines
            seen.add(key)
        del seen
        place = file.seek(0)
        for number, line in islice(journal_lines(file, path), lines):
            if line is None:
                if on_torn is not None:
                    on_torn(number)
            elif not line.gone and (not last or last.get(line.key, number) <= number):
                yield place, line
            place = file.tell()


def journal_lines(file: BinaryIO, path: str) -> Iterator[tuple[int, JournalLine | None]]:
    """Yield the number of each complete line, from 1, with the line; None for a torn one.

    Raises:
        TaskError: no line is one of a journal, or one is longer than any row.
    """
    good = False
    for number in count(1):
        text = file.readline(LONGEST_ROW)
        if not text.endswith(b"\n"):
            if len(text) == LONGEST_ROW:
                raise TaskError(f"line {number} of {shown(path)} is too long for a journal", "name another file")
            break
        line = parsed_line(text)
        good = good or line is not None
        yield number, line
    if number > 1 and not good:
        raise TaskError(f"{shown(path)} is not a journal of mmprompt run", "name another file")


def parsed_line(text: bytes) -> JournalLine | None:
    """Return the line of its JSON; None if it is torn or something else."""
    try:
        return JournalLine.of(cast("JSONValue", exact_json.loads(text)))
    except (MMPromptError, ValueError, TypeError):
        return None
