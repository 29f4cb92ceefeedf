"""One prompt, filled but not yet written: ``PromptDraft``, and its form as a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mmprompt.errors import PromptError, shown
from mmprompt.prompters.content import PromptContent, content_of, joined, wire_content
from mmprompt.prompters.history import HistoryTurn, is_message, turn_of, wire_turn
from mmprompt.prompters.instruction import DividedInput
from mmprompt.prompters.rules import SeedRules
from mmprompt.prompters.tools import ToolList, tool_list
from mmprompt.targets.json_values import JSONObject, JSONValue


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

        Raises:
            PromptError: a medium that JSON cannot name.
            TargetError: a key of a part or message that JSON cannot hold.
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
