"""The rows that OpenCompass's ``ChatInferencer`` takes: lists with a text for each turn, one turn of texts, a chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.raw_messages import RawMessages
from mmprompt.templates.sample_view import SampleView


def one_turn(entry: SampleView, columns: tuple[str, ...]) -> SampleView:
    """Return the view in which columns that hold texts hold lists of one turn, unless one of them holds a list."""
    values = {name: entry.raw[name] for name in columns if name in entry.raw}
    if any(isinstance(value, (list, tuple)) for value in values.values()):
        return entry
    return entry.with_columns({name: [value] for name, value in values.items()})


def chat_prompts(
    entry: SampleView, columns: tuple[str, ...], infer_mode: str, replies: Sequence[str] = ()
) -> list[tuple[int, RawMessages]] | None:
    """Return the prompts of a row whose only input column is a chat, by turn; None for other rows.

    Each message of the assistant is a turn, whose prompt is what comes before it. A chat without one is one prompt.
    Under ``every`` the ``replies`` stand in the place of the first messages of the assistant.

    Raises:
        TemplateError: the column holds something that is not a message.
    """
    if len(columns) != 1 or not _is_chat(chat := entry.raw.get(columns[0])):
        return None
    turns = [number for number, message in enumerate(chat) if message.get("role") == "assistant"] or [len(chat)]
    said = len(replies)
    chosen = {"every": turns[said : said + 1], "last": turns[-1:]}.get(infer_mode, turns)
    if said:
        chat = list(chat)
        for number, reply in zip(turns, replies, strict=False):
            chat[number : number + 1] = [{"role": "assistant", "content": reply}]
    template = RawPromptTemplate([{"expand_column": columns[0]}])
    prompts = [template.generate_item(entry.with_columns({columns[0]: chat[:end]})) for end in chosen]
    return [(turns.index(end), prompt) for end, prompt in zip(chosen, prompts, strict=True)]


def _is_chat(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(m, Mapping) and "role" in m for m in value)
