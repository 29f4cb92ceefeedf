"""What the wire forms with turns share: a separate system prompt, joined neighbours, tool calls as content parts."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mmprompt.errors import MMPromptError, TargetError, Where, shown
from mmprompt.messages import Message, TextPart, checked, is_blank
from mmprompt.targets.json_values import JSONValue, plain
from mmprompt.targets.part_writer import PartWriter, Tally, Wire

_ROLES = {"user": "user", "assistant": "assistant", "tool": "user", "system": "system", "developer": "system"}
"""A message's role to the side whose turn it joins."""

_CALL_KEYS = ("id", "type", "index", "function", "name", "arguments")


class Turn(NamedTuple):
    """Everything one side says before the other does: its content parts, and the number of its first message."""

    role: str
    parts: list[Wire]
    number: int


class Call(NamedTuple):
    """A model's call of a function."""

    id: str | None
    name: str
    arguments: dict[str, JSONValue]


class TurnWriter(PartWriter):
    """Writes messages as turns. A subclass writes calls of functions and their results."""

    __slots__ = ()

    def _turns(self, messages: Iterable[Message]) -> tuple[list[Wire], list[Turn]]:
        """Return the parts of the system prompt, and the turns after it. Neighbours of one role become one turn.

        System messages before all others are the system prompt. A later one is a turn of the role ``system``.
        """
        tally = Tally() if self._tallied else None
        system: list[Wire] = []
        turns: list[Turn] = []
        functions: dict[str, str] = {}
        for number, message in enumerate(messages, 1):
            try:
                role = self._role(checked(message))
                parts = self._message(message, tally, functions)
            except MMPromptError as error:
                raise error.located(message=number) from None
            if role == "system" and not turns:
                system += parts
            elif turns and turns[-1].role == role:
                turns[-1].parts.extend(parts)
            else:
                turns.append(Turn(role, parts, number))
        if tally is not None:
            tally.check(self._known)
        if not turns:
            raise TargetError(f"{self._known.name} takes no request without a message", "add a message of the user")
        return system, turns

    def _role(self, message: Message) -> str:
        """Return whose turn the message joins, having checked the fields beside its content."""
        role, parts, name, calls, call_id = message
        turn = _ROLES.get(role)
        if turn is None:
            raise TargetError(f"unknown role {shown(role)}", f"use one of {', '.join(_ROLES)}", code="MM607")
        if name is not None and role != "tool":
            what = f"{self._known.name} does not take the name {shown(name)} beside a message"
            raise TargetError(what, "remove the name, or write it into the text")
        if calls and role != "assistant":
            raise TargetError(f"the role {role} has tool calls", "move them to a message of the assistant")
        if call_id is not None and role != "tool":
            raise TargetError(f"the role {role} has a tool_call_id", "remove it, or use the role tool")
        if turn == "system" and not all(isinstance(part, TextPart) for part in parts):
            what = f"{self._known.name} takes text alone as a system message"
            raise TargetError(what, "move the media to a user message")
        return turn

    def _message(self, message: Message, tally: Tally | None, functions: dict[str, str]) -> list[Wire]:
        """Return the parts of a message, and add the functions that it calls to ``functions``: call id to name."""
        for number, part in enumerate(message.parts, 1):
            if isinstance(part, TextPart) and message.role != "tool" and is_blank(part.text):
                self._refuse_blank(number)
        parts = self._content(message.parts, tally)
        if message.role == "tool":
            return [self._result(message, parts, functions)]
        for value in message.tool_calls:
            call = call_of(value)
            if call.id is not None:
                functions[call.id] = call.name
            parts.append(self._call(call))
        return parts

    def _refuse_blank(self, number: int) -> None:
        """Raise a TargetError for the part of this number, a text of white space alone, if the target takes none."""

    def _check_filled(self, turn: Turn) -> None:
        """Raise a TargetError for a turn without content."""
        if not turn.parts:
            what = f"{self._known.name} takes no message without content"
            raise TargetError(what, "give it a text, or remove it", Where(message=turn.number))

    @abstractmethod
    def _call(self, call: Call) -> Wire:
        """Return the part of a call."""

    @abstractmethod
    def _result(self, message: Message, parts: list[Wire], functions: Mapping[str, str]) -> Wire:
        """Return the part of a call's result. ``parts`` is the result's content."""


def call_of(value: object) -> Call:
    """Return a call from OpenAI's chat form: ``id``, and ``function`` with ``name`` and ``arguments``.

    The arguments are JSON text or a mapping. An empty text means no arguments.
    """
    call = plain(value)
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or call.get("type", "function") != "function":
        raise TargetError("a tool call does not call a function", "give it an id and a function, as OpenAI's API does")
    name, arguments, own_id = function.get("name"), function.get("arguments"), call.get("id")
    unknown = [key for key in (*call, *function) if key not in _CALL_KEYS]
    if unknown:
        raise TargetError(f"a tool call has the unknown key {shown(unknown[0])}", "remove it")
    if not isinstance(name, str) or not name:
        raise TargetError("a tool call has no function name", "give function.name")
    if not isinstance(own_id, (str, type(None))):
        raise TargetError(f"the id of a tool call is {type(own_id).__name__}", "write it as a string")
    if isinstance(arguments, str):
        try:
            arguments = plain(json.loads(arguments)) if arguments.strip() else {}
        except (ValueError, RecursionError):
            raise TargetError(
                f"the arguments of the call of {shown(name)} are not JSON", "give a JSON object"
            ) from None
    if not isinstance(arguments, (dict, type(None))):
        raise TargetError(f"the arguments of the call of {shown(name)} are not a JSON object", "give an object")
    return Call(own_id, name, arguments or {})
