"""The output of LazyLLM 1.4 where it differs from its documentation.

Its texts and choices are followed, its bugs are not: values are never expanded, braces that are not slots stay text,
and an error with the names replaces each ``assert``. A system turn of a history appears in messages only.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence

from mmprompt.errors import TemplateError
from mmprompt.prompters.content import PromptContent, joined
from mmprompt.prompters.history import HistoryTurn
from mmprompt.prompters.instruction import Halves, Instruction, Pieces, instruction_of, pieces_of
from mmprompt.prompters.rules import MARKERS, PARAGRAPH, RESPONSE, TOOL_TOKENS, SeedRules, Tools
from mmprompt.targets.json_values import JSONValue

_ESCAPES = str.maketrans({
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\0": "\\0",
    **{chr(code): f"\\u{code:04x}" for code in (*range(1, 8), *range(14, 32), 0x2028, 0x2029)},
})  # fmt: skip
_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl")
_RESERVED_WORDS = (
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if implements import in instanceof interface let new null package private protected public return static "
    "super switch this throw true try typeof var void while with yield"
)
_RESERVED = frozenset(_RESERVED_WORDS.split())
_SPOKEN = frozenset(("user", "assistant", "tool"))


class LazyLLMRules(SeedRules):
    """The output of LazyLLM 1.4."""

    name = "lazyllm"
    heading = "\n\n### Instruction:\n"
    alpaca_template = pieces_of("{system}\n{instruction}\n{tools}\n{user}" + RESPONSE)
    markers: Mapping[str, str] = dict.fromkeys(MARKERS, "")
    formats = ("openai", "anthropic")
    takes_other_keys = True
    takes_fractions = False
    takes_tuples = False
    takes_tools_twice = True
    keeps_empty_system = True
    empty_drops_the_rest = True

    def alpaca(self, halves: Halves, extra: Pieces) -> Instruction:
        """Compile the instruction of an Alpaca prompt."""
        head = (PARAGRAPH + self.heading, *halves.system)
        if halves.user is None:
            return _with_braces_for_one_text((*head, "\n\n", *extra), ())
        return _with_braces_for_one_text(head, (*halves.user, *(("\n\n", *extra) if extra else ())))

    def chat(self, halves: Halves, extra: Pieces) -> Instruction:
        """Compile the instruction of a chat prompt. An empty one loses its extra keys."""
        if halves.user is not None:
            return _with_braces_for_one_text(halves.system, (*halves.user, *extra))
        return _with_braces_for_one_text((*halves.system, "\n", *extra, "\n") if halves.system else (), ())

    def data_text(self, data: object) -> str:
        """Return plain data as JSON5. Its keys have no quotes if they are identifiers."""
        return json5_text(data)

    def with_guide(
        self, filled: PromptContent, tools: Tools, markers: Mapping[str, str], halves: Halves, *, one_text: bool
    ) -> PromptContent:
        """Return the filled system half, followed by how to call functions unless the instruction is a dict."""
        missing = [token for token in TOOL_TOKENS if not markers[token]]
        if missing:
            raise TemplateError(
                f"tools in a string need the markers {', '.join(missing)}", "give them in markers, or return_dict=True"
            )
        return filled if halves.user is not None else joined(filled, "\n\n", _how_to(tools, markers, one_text=one_text))

    def history_text(self, turns: Sequence[HistoryTurn], markers: Mapping[str, str]) -> PromptContent:
        """Return the turns of a history, those of user, assistant and tool."""
        return super().history_text([_shown_result(t) for t in turns if t.role in _SPOKEN], markers)

    def marks(self, role: str, markers: Mapping[str, str]) -> tuple[str, str]:
        """Return the markers before and after a turn of ``role``."""
        return (markers["soe"], markers["eoe"]) if role == "tool" else super().marks(role, markers)

    def call_text(self, function: Mapping[str, JSONValue], markers: Mapping[str, str]) -> str:
        """Return a tool call of a history: name and arguments, or its ``str()`` if the marker of arguments is empty."""
        said = str(dict(function))
        if markers["tool_args_token"]:
            said = f"{function['name']}{markers['tool_args_token']}{json5_text(function.get('arguments'))}"
        return f"{markers['tool_start_token']}\n{said}{markers['tool_end_token']}\n"

    def finished(self, text: str) -> str:
        """Return the string prompt without line ends at its beginning."""
        return text.lstrip("\n")


def _with_braces_for_one_text(system: Pieces, user: Pieces) -> Instruction:
    """Return an instruction whose doubled braces become single if one text fills its only slot."""
    made = instruction_of(system, user)
    return made._replace(for_one_text=(_single_braces(made.system), _single_braces(made.user)))


def _single_braces(pieces: Pieces) -> Pieces:
    return tuple([p.replace("{{", "{").replace("}}", "}") if isinstance(p, str) else p for p in pieces])


def _how_to(tools: Tools, markers: Mapping[str, str], *, one_text: bool) -> str:
    start, arguments, end = [markers[token] for token in TOOL_TOKENS]
    names = json5_text([_name(tool) for tool in tools])
    example = "{'input': 'hello world', 'num_beams': 5}"
    return (
        f"{start}tool name (one of {names})\n"
        f"{arguments}the input to the tool, in a JSON format representing the kwargs. Can only return json.\n"
        f"{end}end of tool.\n"
        f"(e.g. {start}tool_name\n{arguments}{example if one_text else f'{{{example}}}'}\n{end}).\n"
    )


def _name(tool: Mapping[str, JSONValue]) -> str:
    function = tool.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise TemplateError("a tool names no function", "give {'type': 'function', 'function': {'name': …}}")
    return str(function["name"])


def _shown_result(turn: HistoryTurn) -> HistoryTurn:
    """Return a tool's result. If it is JSON it becomes the ``str()`` of its value."""
    if turn.role != "tool" or not isinstance(turn.content, str):
        return turn
    try:
        return turn._replace(content=str(json.loads(turn.content)))
    except (ValueError, RecursionError):
        return turn


def json5_text(value: object) -> str:
    """Return plain data as JSON5 on one line."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join([f"{_key(key)}: {json5_text(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([json5_text(item) for item in value]) + "]"
    raise TemplateError(f"a value of type {type(value).__name__} cannot be written as JSON5", "use plain data")


def _key(key: object) -> str:
    if not isinstance(key, str):
        return f'"{json5_text(key)}"'
    return key if _is_identifier(key) and key not in _RESERVED else json5_text(key)


def _is_identifier(key: str) -> bool:
    if key.isascii():
        return re.fullmatch(r"[A-Za-z_$][\w$]*", key, re.ASCII) is not None
    kinds = [unicodedata.category(c) if c not in "$_" else "Lu" for c in key]
    return kinds[0] in _LETTERS and all(kind in (*_LETTERS, "Nd", "Mn", "Mc", "Pc") for kind in kinds[1:])
