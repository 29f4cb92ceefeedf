"""``Record``, which writers receive for each row, and ``RowSink``, the file they write to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mmprompt.errors import RowError
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart

Medium = MediaRef | MediaPart


class Record(NamedTuple):
    """A row: its id (None if no column holds one), its prompt, its answer (None without one), and its other columns.

    ``question``, ``hint`` and ``choices`` are those of a row that has them in columns; in ``messages`` they stand in
    the text. ``question`` is None for a row that is given as content or chat. ``batch`` holds the other keys of a row
    that is a line of OpenAI's Batch API, its ``body`` without the messages. ``row`` is the row's 0-based number.
    """

    id: object
    messages: tuple[Message, ...]
    answer: object
    question: str | None
    hint: str | None
    choices: tuple[str, ...]
    others: Mapping[str, object]
    batch: Mapping[str, object] | None = None
    row: int = 0


class RowSink(Protocol):
    """A file that rows are written to."""

    def write(self, row: dict[str, object]) -> None:
        """Write a row.

        Raises:
            RowError: the file cannot hold it.
        """

    def close(self) -> None:
        """Finish the file."""


def other_form(record: Record) -> str:
    """Return how to write a chat that another format cannot hold."""
    closes = len(record.messages) > 1 and record.messages[-1].role == "assistant"
    first = "take the closing message as the answer with --drop-last-assistant, or " if closes else ""
    return f"{first}write --to openai"


def not_held(what: str, other: str) -> RowError:
    """Return the error of a row that the format cannot hold, and the ``other`` can."""
    return RowError(what, f"write --to {other}", code="MM800")


def only_user_message(record: Record, name: str) -> Message:
    """Return the one message of a row.

    Raises:
        RowError: the row is a chat of several messages, or of another role than the user.
    """
    if len(record.messages) != 1 or record.messages[0].role != "user":
        roles = ", ".join(message.role for message in record.messages)
        raise RowError(
            f"{name} holds one message of the user, and the row has: {roles}", other_form(record), code="MM800"
        )
    return record.messages[0]


def media_then_text(record: Record, name: str) -> tuple[list[Medium], str]:
    """Return the media of a row, and its text, which follows them.

    Raises:
        RowError: a text stands before a medium, or the row is a chat.
    """
    parts = only_user_message(record, name).parts
    media = [part for part in parts if not isinstance(part, TextPart)]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if len(texts) > 1 or (texts and not isinstance(parts[-1], TextPart)):
        raise not_held(f"{name} holds media before one text, and the row has another order", "llava")
    return media, texts[0] if texts else ""
