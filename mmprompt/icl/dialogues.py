"""Multi-turn dialogues: the prompts of a sample's turns, and ``converse``, which asks a model turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from mmprompt.errors import TaskError, TemplateError, nearest, shown
from mmprompt.messages import Message
from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.templates.multiturn import INFER_MODES, Expanded, MultiTurnPromptTemplate
from mmprompt.templates.prompt_list import PromptList
from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.raw_messages import RawMessages
from mmprompt.templates.role_text import Examples
from mmprompt.templates.sample_view import SampleView


class Replied(NamedTuple):
    """One request of a dialogue and its reply. ``max_out_len`` is the turn's length limit if one was given."""

    turn: int
    prompt: PromptList
    messages: list[Message]
    reply: str
    max_out_len: int | None


def converse(
    template: MultiTurnPromptTemplate,
    entry: Mapping[str, object] | SampleView,
    reply: Callable[..., str],
    *,
    infer_mode: str = "every",
    meta_template: MetaTemplate | None = None,
    output_field: str | None = None,
    ice: Examples = None,
    max_out_len: int | Sequence[int] | None = None,
) -> Iterator[Replied]:
    """Let a model answer the turns of a sample, and yield each request with its reply.

    Args:
        template: the template of the dialogue.
        entry: the sample's columns.
        reply: called as ``reply(messages)``, or as ``reply(messages, max_out_len=n)`` if a length is given. Returns the
            model's text. An exception from it ends the dialogue.
        infer_mode: ``"every"`` puts the model's replies into the turns after them, ``"every_with_gt"`` the sample's
            answers. ``"last"`` asks once, for the last turn.
        meta_template: turns prompts into messages.
        output_field: the answer's column, hidden in the prompts.
        ice: the in-context examples.
        max_out_len: one length for all turns, or a list with one for each turn.

    Raises:
        TaskError: an unknown mode, a list of lengths for another number of turns, or a reply that is not text.
        TemplateError: the sample cannot fill the template, or no item of the round has the generating role.
    """
    meta = meta_template or MetaTemplate(None)
    check_mode(infer_mode)
    expanded = expand(template, entry, meta, output_field, ice)
    chosen = expanded.exchanges[-1:] if infer_mode == "last" else expanded.exchanges
    lengths = _lengths(max_out_len, len(chosen))
    replies: dict[int, str] = {}
    for exchange, length in zip(chosen, lengths, strict=True):
        prompt = expanded.prompt(exchange, replies if infer_mode == "every" else None)
        messages = meta.to_messages(prompt)
        text = reply(messages) if length is None else reply(messages, max_out_len=length)
        if not isinstance(text, str):
            raise TaskError(f"the reply to turn {exchange.turn} is {type(text).__name__}", "reply with text")
        replies[exchange.turn] = text
        yield Replied(exchange.turn, prompt, messages, text, length)


def turn_prompts(  # noqa: PLR0917  # what an assembly holds, in its order
    template: MultiTurnPromptTemplate,
    entry: SampleView,
    infer_mode: str,
    meta: MetaTemplate,
    hidden: str | None,
    ice: Examples,
    replies: Sequence[str] = (),
) -> list[tuple[int, PromptList]]:
    """Return the turns of a sample that need no reply, with their prompts.

    Under ``every`` that is the turn after those to which the model has given ``replies``; none after the last.
    """
    expanded = expand(template, entry, meta, hidden, ice)
    exchanges, said = expanded.exchanges, len(replies)
    chosen = {"every": exchanges[said : said + 1], "every_with_gt": exchanges, "last": exchanges[-1:]}[infer_mode]
    return [(exchange.turn, expanded.prompt(exchange, dict(enumerate(replies)))) for exchange in chosen]


def expand(
    template: MultiTurnPromptTemplate,
    entry: Mapping[str, object] | SampleView,
    meta: MetaTemplate,
    hidden: str | None,
    ice: Examples,
) -> Expanded:
    """Return the dialogue of a sample.

    Raises:
        TemplateError: no item of the round has a generating role of the meta template.
    """
    expanded = template.expand(entry, hidden, ice, meta.generating_roles)
    if not expanded.exchanges:
        roles = ", ".join(sorted(meta.generating_roles))
        raise TemplateError(f"no item of the round has the generating role ({roles})", "add one for the model's words")
    return expanded


def check_mode(infer_mode: str) -> str:
    """Return ``infer_mode``, or raise a TaskError if it is unknown."""
    if infer_mode not in INFER_MODES:
        raise TaskError(f"unknown infer_mode {shown(infer_mode)}", nearest(infer_mode, INFER_MODES))
    return str(infer_mode)


def _lengths(max_out_len: int | Sequence[int] | None, turns: int) -> list[int | None]:
    if max_out_len is None or isinstance(max_out_len, int):
        return [max_out_len] * turns
    if len(max_out_len) != turns:
        raise TaskError(
            f"max_out_len has {len(max_out_len)} lengths for {turns} turns", "give one for each turn, or one for all"
        )
    return list(max_out_len)


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
