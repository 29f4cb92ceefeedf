"""OpenAI chat: rows with ``messages``, or lines of the Batch API with ``body.messages``.

Datasets for TRL are chats too. Their media may stand in columns (see ``chat_media``). ``prompt`` may hold the messages
that are sent, and ``completion`` the answer to them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mmprompt.datasets import jsonl
from mmprompt.datasets.chat_media import with_media
from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample, column_error, each
from mmprompt.errors import MMPromptError, RowError, shown
from mmprompt.messages import TextPart

if TYPE_CHECKING:
    from mmprompt.messages import Message
    from mmprompt.targets.part_writer import Wire

_PROMPT, _COMPLETION = "prompt", "completion"
BATCH_KEYS = frozenset(("custom_id", "method", "url", "body"))
"""The keys of a line of the Batch API."""


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` with ``messages`` for each line. The text is not scanned for AIS tags.

    The id of a Batch line is its ``custom_id``. Its messages, and those in ``prompt``, also become the column
    ``messages``.
    """
    return chats(jsonl.read(source, notes, thorough, scanned=False))


def of_rows(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield rows of another format; if the first sample is a chat, all of them as ``read`` yields them."""
    for row in rows:
        if isinstance(row, RowError):
            yield row
        elif row.messages is None and recognises(row.columns):
            yield from chats(itertools.chain((row,), rows))
        else:
            yield row
            yield from rows


def chats(rows: Iterable[Row]) -> Iterator[Row]:
    """Return the rows of a format that holds chats with their messages."""
    from mmprompt.targets.openai import from_openai  # noqa: PLC0415  # only chat rows need the targets

    def with_messages(row: Sample) -> Sample:
        try:
            return _with_messages(row, from_openai)
        except MMPromptError as error:
            raise error.located(column=_PROMPT if _is_prompt(row.columns) else "messages") from None

    return each(rows, with_messages)


def _with_messages(sample: Sample, from_openai: Callable[..., Sequence[Message]]) -> Sample:
    columns = sample.columns
    wire = columns.get("messages")
    if "messages" not in columns and isinstance(body := columns.get("body"), dict):
        wire = body.get("messages")
        columns = {**columns, "messages": wire}
        sample = sample._replace(columns=columns, id=columns.get("custom_id", sample.id))
    elif _is_prompt(columns):
        sample = _with_completion(sample, from_openai)
        wire = sample.columns["messages"]
    if wire == []:
        raise RowError("the list of messages is empty", "give at least one message, or remove the row", code="MM700")
    if not isinstance(wire, list):
        raise RowError("the row has no list of messages", 'give "messages": [{"role": …, "content": …}]', code="MM007")
    sample = with_media(sample)
    return sample._replace(messages=tuple(from_openai(sample.columns["messages"])), scanned=False)


def _is_prompt(columns: Mapping[str, object]) -> bool:
    """Return whether a row has its messages in ``prompt``, as datasets for TRL may."""
    messages = columns.get(_PROMPT)
    return "messages" not in columns and isinstance(messages, list) and bool(messages) and _are_messages(messages)


def _with_completion(sample: Sample, from_openai: Callable[..., Sequence[Message]]) -> Sample:
    """Return a row of ``prompt`` with its column ``messages``, and with its ``completion`` as the answer."""
    columns = {**sample.columns, "messages": sample.columns[_PROMPT]}
    completion = columns.get(_COMPLETION)
    if isinstance(completion, list):
        try:
            said = from_openai(completion)
        except MMPromptError as error:
            raise error.located(column=_COMPLETION) from None
        if len(said) != 1 or said[0].tool_calls or any(not isinstance(part, TextPart) for part in said[0].parts):
            what = "the completion is not one message of text, so it is no answer"
            raise column_error(_COMPLETION, what, "give one text, or rename the column", "MM007")
        completion = said[0].text
    if completion is not None:
        columns.setdefault("answer", completion)
    return sample._replace(columns=columns, sent=sample.sent | {_PROMPT, _COMPLETION})


def own_settings(sample: Sample) -> Wire | None:
    """Return what a line of the Batch API says beside its messages, such as its model; None for another row."""
    body = sample.columns.get("body")
    if sample.messages is None or not isinstance(body, dict) or "messages" not in body:
        return None
    return {key: value for key, value in body.items() if key != "messages"}


class LastAssistant:
    """Takes the closing assistant message of each chat as its answer: ``--drop-last-assistant``.

    ``taken`` counts the answers. A row stays as it is if it is not a chat, or if its last message is not the
    assistant's.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.taken = 0

    def __call__(self, row: Row) -> Row:
        """Return a row without that message, which is its answer then."""
        if isinstance(row, RowError) or not row.messages or row.messages[-1].role != "assistant":
            return row
        *before, last = row.messages
        if not before:
            return _refused(row, "MM700", "the only message is the assistant's", "add the user's message before it")
        if last.tool_calls or any(not isinstance(part, TextPart) for part in last.parts):
            return _refused(
                row, "MM007", "the closing assistant message holds more than text", "leave out --drop-last-assistant"
            )
        text = last.text
        if row.columns.get(self.column) not in (None, text):
            return _refused(
                row, "MM710", f"the row has another {shown(self.column)} than its closing message", "remove one"
            )
        self.taken += 1
        wire = row.columns["messages"]
        columns = {**row.columns, self.column: text, "messages": wire[:-1] if isinstance(wire, list) else wire}
        return row._replace(messages=tuple(before), columns=columns)


def _refused(row: Sample, code: str, what: str, hint: str) -> RowError:
    return row.located(RowError(what, hint, code=code)).located(column="messages")


def recognises(columns: Mapping[str, object]) -> bool:
    """Return whether a first row has this format."""
    body = columns.get("body")
    holder = columns if "messages" in columns else body if isinstance(body, dict) else {}
    messages = holder.get("messages")
    return _is_prompt(columns) or (isinstance(messages, list) and _are_messages(messages))


def _are_messages(messages: Iterable[object]) -> bool:
    return all(isinstance(message, dict) and "role" in message for message in messages)
