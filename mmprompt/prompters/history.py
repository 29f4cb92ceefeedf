"""The turns before the current one: read from pairs or messages, written as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mmprompt.errors import PromptError, nearest, shown
from mmprompt.messages import PARTS, ROLES, Message, Pairs
from mmprompt.prompters.content import PromptContent, content_of, joined, kept, wire_content
from mmprompt.targets.json_values import JSONObject, JSONValue, plain

KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_SHAPES = "give pairs of user and assistant, or messages of role and content"


class HistoryTurn(NamedTuple):
    """One turn. ``content`` is None if the assistant only calls tools. ``more`` are the message's further keys."""

    role: str
    content: PromptContent | None
    more: Pairs = ()


def turns_of(history: object, *, tuples: bool = True) -> tuple[HistoryTurn, ...]:
    """Return a history as turns. It may mix pairs ``[user, assistant]`` and messages.

    One side of a pair may be missing or None. ``tuples`` allows a pair to be a tuple.
    """
    if history is None:
        return ()
    if not isinstance(history, (list, tuple)) or isinstance(history, (Message, *PARTS)):
        raise PromptError(f"history is {type(history).__name__}, not a list", _SHAPES)
    turns: list[HistoryTurn] = []
    for number, item in enumerate(history):
        where = f"history[{number}]"
        if isinstance(item, (Message, Mapping)):
            turns.append(turn_of(item, where))
        elif isinstance(item, list) or (tuples and isinstance(item, tuple) and not isinstance(item, PARTS)):
            turns.extend(_pair(item, where))
        else:
            raise PromptError(f"{where} is {type(item).__name__}", _SHAPES)
    return tuple(turns)


def _pair(pair: list[object] | tuple[object, ...], where: str) -> list[HistoryTurn]:
    if len(pair) > 2:
        raise PromptError(f"{where} has {len(pair)} texts", "give two: the user's and the assistant's")
    sides = zip(("user", "assistant"), pair, strict=False)
    return [HistoryTurn(role, content_of(said, f"{where}, {role}")) for role, said in sides if said is not None]


def is_message(value: object) -> bool:
    """Return whether ``value`` is a message: a mapping with a role, or a ``Message``."""
    return isinstance(value, Message) or (isinstance(value, Mapping) and isinstance(value.get("role"), str))


def turn_of(message: Message | Mapping[str, JSONValue], where: str) -> HistoryTurn:
    """Return a message as a turn."""
    if isinstance(message, Message):
        fields = {"name": message.name, "tool_calls": list(message.tool_calls), "tool_call_id": message.tool_call_id}
        calls_only = bool(message.tool_calls) and not message.parts
        content = None if calls_only else joined(*[content_of(part, where) for part in message.parts])
        return HistoryTurn(message.role, content, tuple([(k, v) for k, v in fields.items() if v]))
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise PromptError(f"{where} has no role", f"give one of {', '.join(KNOWN_ROLES)}")
    role = ROLES.get(role, role)
    if role not in KNOWN_ROLES:
        raise PromptError(f"{where} has the unknown role {shown(role)}", nearest(role, KNOWN_ROLES))
    more = tuple([(key, value) for key, value in message.items() if key not in ("role", "content")])
    said = message.get("content")
    if said is None and role == "assistant" and message.get("tool_calls"):
        return HistoryTurn(role, None, more)
    return HistoryTurn(role, content_of(said, f"{where}, content"), more)


def kept_turns(turns: Iterable[HistoryTurn]) -> tuple[HistoryTurn, ...]:
    """Return copies of the turns that share nothing mutable with the caller's values."""
    return tuple([t._replace(content=None if t.content is None else kept(t.content), more=_more(t)) for t in turns])


def _more(turn: HistoryTurn) -> tuple[tuple[str, JSONValue], ...]:
    return tuple([(key, plain(value)) for key, value in turn.more])


def wire_turn(turn: HistoryTurn) -> JSONObject:
    """Return a turn as a new message of OpenAI's chat form."""
    content = None if turn.content is None else wire_content(turn.content)
    return {"role": turn.role, "content": content, **dict(_more(turn))}


def calls_of(turn: HistoryTurn) -> list[Mapping[str, JSONValue]]:
    """Return the functions that a turn calls, each as a mapping of ``name`` and ``arguments``."""
    calls: Any = dict(turn.more).get("tool_calls") or ()
    functions = []
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise PromptError("a tool call of the history names no function", "give {'function': {'name': …}}")
        functions.append(function)
    return functions
