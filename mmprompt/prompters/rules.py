"""How a prompter writes: the layouts, headings and markers of the documentation.

``SeedRules`` is the default. A dialect is a subclass with the differences. Rules hold no state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.prompters.content import PromptContent, joined
from mmprompt.prompters.history import HistoryTurn, calls_of
from mmprompt.prompters.instruction import Halves, Instruction, Pieces, instruction_of, pieces_of
from mmprompt.targets.json_values import JSONValue

DEFAULT_SYSTEM = "You are an AI-Agent developed by LazyLLM."
PARAGRAPH = (
    "Below is an instruction that describes a task, paired with extra messages such as input that provides further "
    "context if possible. Write a response that appropriately completes the request."
)
RESPONSE = "### Response:\n"
TOOLS_HEADING = "### Function-call Tools. \n\n"

SENTENCE_MARKERS = ("sos", "eos", "soh", "eoh", "soa", "eoa")
TOOL_TOKENS = ("tool_start_token", "tool_args_token", "tool_end_token")
MARKERS = (*SENTENCE_MARKERS, "soe", "eoe", *TOOL_TOKENS)
"""Start and end of system, human, assistant and environment (tool results), and the texts around tool calls."""

Tools = Sequence[Mapping[str, JSONValue]]


class SeedRules:
    """The output that the documentation prints."""

    name: str | None = None
    heading = "\n\n ### Instruction:\n"
    alpaca_template = pieces_of("{system}\n{instruction}\n{tools}{user}" + RESPONSE)
    chat_template = pieces_of("{sos}{system}{instruction}{tools}{eos}\n\n{history}\n{soh}\n{user}{input}\n{eoh}{soa}\n")
    markers: Mapping[str, str] = {
        **dict.fromkeys(MARKERS, ""),
        "sos": "<|start_system|>",
        "eos": "<|end_system|>",
        "soh": "<|Human|>:",
        "soa": "<|Assistant|>:",
    }
    formats: tuple[str, ...] = ("openai",)
    takes_other_keys = False  # accepts other keys in a dict instruction
    takes_fractions = True  # accepts fractions as an input
    takes_tuples = True  # accepts tuples as pairs of a history
    takes_tools_twice = False  # accepts tools at construction and call; the call's win
    keeps_empty_system = False  # writes a system message without text
    empty_drops_the_rest = False  # an EmptyPrompter drops its history, tools, system and label

    def alpaca(self, halves: Halves, extra: Pieces) -> Instruction:
        """Compile the instruction of an Alpaca prompt; the extra keys join the user half of a dict."""
        head = (PARAGRAPH + self.heading, *halves.system)
        if halves.user is None:
            return instruction_of((*head, "\n\n", *extra), ())
        if extra:
            return instruction_of(head, (*halves.user, "\n\n", *extra))
        return instruction_of(head, halves.user, "\n\n")

    def chat(self, halves: Halves, extra: Pieces) -> Instruction:
        """Compile the instruction of a chat prompt; the extra keys join the user half of a dict."""
        if halves.user is not None:
            return instruction_of(halves.system, (*halves.user, *_line_end(halves.user if extra else ()), *extra))
        body = (*halves.system, *_line_end(halves.system), *extra)
        return instruction_of((*body, *_line_end(body)), ())

    def tools_text(self, tools: Tools) -> str:
        """Return the tools as a string prompt shows them."""
        return f"{TOOLS_HEADING}{self.data_text(tools)}\n\n"

    def data_text(self, data: object) -> str:
        """Return plain data as text."""
        try:
            return json.dumps(data, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise TemplateError(f"the data cannot be written as JSON: {error}", "use plain data") from None

    def with_guide(
        self,
        filled: PromptContent,
        tools: Tools,  # noqa: ARG002  # for a dialect
        markers: Mapping[str, str],  # noqa: ARG002  # for a dialect
        halves: Halves,  # noqa: ARG002  # for a dialect
        *,
        one_text: bool,  # noqa: ARG002  # for a dialect
    ) -> PromptContent:
        """Return the filled system half. A dialect may add how to call tools."""
        return filled

    def history_text(self, turns: Sequence[HistoryTurn], markers: Mapping[str, str]) -> PromptContent:
        """Return the turns of a history as a string prompt shows them."""
        out: list[PromptContent] = []
        for turn in turns:
            begin, end = self.marks(turn.role, markers)
            calls = [self.call_text(function, markers) for function in calls_of(turn)] if turn.more else []
            out += [begin, "" if turn.content is None else turn.content, *calls, end]
        return joined(*out)

    def marks(self, role: str, markers: Mapping[str, str]) -> tuple[str, str]:
        """Return the markers before and after a turn of ``role``."""
        if role == "assistant":
            return markers["soa"], markers["eoa"]
        if role in ("system", "developer"):
            return markers["sos"], markers["eos"]
        return self.result_marks(markers) if role in ("tool", "function") else (markers["soh"], markers["eoh"])

    def result_marks(self, markers: Mapping[str, str]) -> tuple[str, str]:
        """Return the markers before and after a tool's result, by default those of the human."""
        if markers["soe"] or markers["eoe"]:
            return markers["soe"], markers["eoe"]
        return markers["soh"], markers["eoh"]

    def call_text(self, function: Mapping[str, JSONValue], markers: Mapping[str, str]) -> str:
        """Return a tool call of a history as a string prompt shows it."""
        said = self.data_text({"name": function["name"], "arguments": function.get("arguments")})
        if markers["tool_args_token"]:
            arguments = function.get("arguments")
            written = arguments if isinstance(arguments, str) else self.data_text(arguments)
            said = f"{function['name']}{markers['tool_args_token']}{written}"
        return f"{markers['tool_start_token']}\n{said}{markers['tool_end_token']}\n"

    def finished(self, text: str) -> str:
        """Return the finished string prompt."""
        return text


def _line_end(pieces: Pieces) -> Pieces:
    return ("\n",) if pieces else ()


def merged_markers(markers: Mapping[str, str], given: Mapping[str, str | None] | None) -> Mapping[str, str]:
    """Return ``markers`` with the ``given`` ones replaced. ``None`` leaves a marker as it is."""
    if not given:
        return markers
    if not isinstance(given, Mapping):
        raise TemplateError(f"markers is {type(given).__name__}", "give a mapping such as {'sos': '<s>'}")
    for name, marker in given.items():
        if name not in markers:
            raise TemplateError(f"unknown marker {shown(name)}", nearest(name, markers))
        if marker is not None and not isinstance(marker, str):
            raise TemplateError(f"the marker {name} is {type(marker).__name__}", "give text")
    return {**markers, **{name: marker for name, marker in given.items() if marker is not None}}
