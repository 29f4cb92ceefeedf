"""One prompt, filled but not yet written: ``PromptDraft``, its tools, and its form as a request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple, Union

from mmprompt.errors import MMPromptError, PromptError, TemplateError, shown
from mmprompt.prompters.content import PromptContent, content_of, joined, wire_content
from mmprompt.prompters.history import HistoryTurn, is_message, turn_of, wire_turn
from mmprompt.prompters.instruction import DividedInput
from mmprompt.prompters.rules import SeedRules
from mmprompt.targets.json_values import JSONObject, JSONValue, plain


class PromptDraft(NamedTuple):
    """One prompt before it is written.

    ``instruction`` and ``user`` are the filled halves of the instruction. ``rest`` is the user's turn, or ``last`` if
    the input held messages. ``one_text`` is true if the input was one text, which filled the only slot.
    """

    system: str
    instruction: PromptContent
    user: PromptContent
    rest: PromptContent
    last: tuple[HistoryTurn, ...]
    history: tuple[HistoryTurn, ...]
    tools: ToolList
    one_text: bool

    def request(self, form: str, *, empty_system: bool) -> JSONObject:
        """Return the messages, and the tools if there are any, for ``"openai"`` or ``"anthropic"``.

        ``empty_system`` keeps a system message without text.
        """
        both = self.system and self.instruction
        system = joined(self.system, "\n" if both else "", self.instruction)
        turns = [*self.history, *(self.last or (HistoryTurn("user", self.rest),))]
        if self.user:
            turns[-1] = turns[-1]._replace(content=joined(self.user, turns[-1].content or ""))
        request: JSONObject = {}
        if form == "anthropic":  # its system turns join the system text
            said = [turn.content or "" for turn in turns if turn.role == "system"]
            request["messages"] = [wire_turn(turn) for turn in turns if turn.role != "system"]
            if system or empty_system or said:
                request["system"] = wire_content(joined(system, *[c for text in said for c in ("\n", text)]))
        else:
            messages: list[JSONValue] = [wire_turn(turn) for turn in turns]
            if system or empty_system:
                messages.insert(0, {"role": "system", "content": wire_content(system)})
            request["messages"] = messages
        if self.tools:
            request["tools"] = [*tool_list(self.tools)]
        return request

    def input_of_string(self, rules: SeedRules, markers: Mapping[str, str]) -> tuple[PromptContent, str, str]:
        """Return the user's turn for a string prompt, and the markers around it.

        Raises:
            PromptError: the input holds a message of the assistant or the system.
        """
        if not self.last:
            return self.rest, markers["soh"], markers["eoh"]
        lines: list[PromptContent] = []
        for turn in self.last:
            if turn.role not in ("user", "tool", "function"):
                raise PromptError(f"the input of a string holds a message of {turn.role}", "give it as history")
            lines += ["\n", turn.content or ""] if lines else [turn.content or ""]
        results = any(turn.role != "user" for turn in self.last)
        begin, end = rules.result_marks(markers) if results else (markers["soh"], markers["eoh"])
        return joined(*lines), begin, end


def user_turn(divided: DividedInput) -> tuple[PromptContent, tuple[HistoryTurn, ...]]:
    """Return the rest of an input as the user's turn: content, or messages."""
    rest = divided.rest
    if isinstance(rest, str):
        return rest, ()
    place = "the input" if divided.key is None else f"input {shown(divided.key)}"
    if is_message(rest):
        return "", (turn_of(rest, place),)
    if isinstance(rest, (list, tuple)) and rest and all(is_message(item) for item in rest):
        return "", tuple([turn_of(item, f"{place}[{number}]") for number, item in enumerate(rest)])
    return joined(content_of(rest, place)), ()


ToolList = list[JSONObject]
"""Descriptions of functions, as OpenAI's API has them."""


class ToolSource(NamedTuple):
    """A function that returns the tools of a call, and which of ``query`` and ``history`` are its arguments."""

    function: Callable[..., object]
    parameters: tuple[str, ...]

    def tools(self, query: object, history: object) -> ToolList:
        """Return the tools for one call."""
        known = {"query": query, "history": history}
        return tool_list(self.function(**{name: known[name] for name in self.parameters}))


def source_of(tools: object) -> Union[ToolList, ToolSource]:
    """Return the tools of the construction: a copy of the list, or the function."""
    if not callable(tools):
        return tool_list(tools)
    names = inspect.signature(tools).parameters
    return ToolSource(tools, tuple([name for name in ("query", "history") if name in names]))


def tool_list(tools: object) -> ToolList:
    """Return a copy of a list of tools. ``None`` becomes an empty list.

    Raises:
        TemplateError: not a list of mappings, or a tool that JSON cannot hold.
    """
    if tools is None:
        return []
    if not isinstance(tools, (list, tuple)) or not all(isinstance(tool, Mapping) for tool in tools):
        raise TemplateError("tools are not a list of mappings", "give [{'type': 'function', 'function': {'name': …}}]")
    try:
        return plain(tools)  # type: ignore[return-value]  # a list of mappings gives a list of dicts
    except MMPromptError as error:
        raise TemplateError(error.what, error.hint, error.where, code=error.code).located(template="tools") from None
