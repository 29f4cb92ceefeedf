"""``Prompter``: the base class of Alpaca, chat and empty prompters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any, NoReturn, Union

from mmprompt.errors import PromptError, TemplateError, nearest, shown
from mmprompt.messages import Part
from mmprompt.prompters.content import PromptContent, StringWriter, joined
from mmprompt.prompters.draft import PromptDraft, ToolList, ToolSource, source_of, tool_list, user_turn
from mmprompt.prompters.history import HistoryTurn, kept_turns, turns_of
from mmprompt.prompters.instruction import (
    DividedInput,
    Halves,
    Instruction,
    Pieces,
    divide_input,
    extra_pieces,
    halves_of,
)
from mmprompt.prompters.lazyllm_rules import LazyLLMRules
from mmprompt.prompters.rules import DEFAULT_SYSTEM, SeedRules, merged_markers
from mmprompt.templates.slots import Slot

RULES: Mapping[object, SeedRules] = {None: SeedRules(), "lazyllm": LazyLLMRules()}
"""The dialects by name."""

_LABEL = Slot("label", "{label}")

Input = Union[str, Part, Mapping[str, Any], Sequence[Any], int, float, None]
History = Union[Sequence[Any], None]


class Prompter(ABC):
    """An instruction with its tools, history and markers, compiled at construction. Immutable and picklable.

    The subclasses ``AlpacaPrompter``, ``ChatPrompter`` and ``EmptyPrompter`` lay out the prompt.
    """

    takes_history = True
    has_instruction = True
    _rules: SeedRules
    _halves: Halves
    _instruction: Instruction
    _tools: ToolList | ToolSource
    _tools_text: str
    _history: tuple[HistoryTurn, ...]
    _system: str
    _markers: Mapping[str, str]

    def __init__(
        self,
        instruction: str | Mapping[str, str] | None = None,
        extra_keys: str | Sequence[str] | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | Callable[..., object] | None = None,
        history: History = None,
        system: str | None = None,
        markers: Mapping[str, str | None] | None = None,
        dialect: str | None = None,
    ) -> None:
        rules = RULES.get(dialect) if dialect is None or isinstance(dialect, str) else None
        if rules is None:
            raise TemplateError(f"unknown dialect {shown(dialect)}", nearest(dialect, [d for d in RULES if d]))
        source = source_of(tools)
        halves = halves_of(instruction, other_keys=rules.takes_other_keys)
        self.__dict__.update(
            _rules=rules,
            _halves=halves,
            _instruction=self._compiled(rules, halves, extra_pieces(extra_keys)),
            _tools=source,
            _tools_text=rules.tools_text(source) if source and not isinstance(source, ToolSource) else "",
            _history=kept_turns(self._turns(rules, history)),
            _system=DEFAULT_SYSTEM if system is None else _text(system, "system"),
            _markers=merged_markers(rules.markers, markers),
        )

    @abstractmethod
    def _compiled(self, rules: SeedRules, halves: Halves, extra: Pieces) -> Instruction:
        """Return the compiled instruction in the layout of this prompter."""

    @abstractmethod
    def _template(self) -> Pieces:
        """Return the layout of the string."""

    def _check(self, draft: PromptDraft, divided: DividedInput, *, as_string: bool) -> PromptDraft:  # noqa: ARG002  # for subclasses
        """Return the draft, or raise an error if this prompter has no place for a part of it."""
        return draft

    def _splitter(self, markers: Mapping[str, str]) -> str:  # noqa: ARG002  # for subclasses
        """Return the text that a model's reply follows in prompt and reply together, or ``""`` if there is none."""
        return ""

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots, in order."""
        return self._instruction.slots

    def generate_prompt(
        self,
        input: Input = None,  # noqa: A002  # the name of the interface
        history: History = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        label: str | float | None = None,
        *,
        return_dict: bool = False,
        format: str | None = None,  # noqa: A002  # the name of the interface
        markers: Mapping[str, str | None] | None = None,
        system: str | None = None,
        media_placeholder: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the prompt: a string, or with ``return_dict`` the messages (and tools) for a chat API.

        Args:
            input: a mapping from slots to values. The value of one further key is the user's turn. Or one text, or a
                list of content parts, which fills the only slot or is the user's turn. The user's turn may be a
                message or a list of messages, such as the results of tools. Values are text, numbers or content
                parts.
            history: further earlier turns, after those of the construction: pairs or messages.
            tools: the tools, if none were given at construction.
            label: the expected reply. It ends the string; messages leave it out.
            return_dict: return ``{"messages": […]}`` as new, plain data, with ``"tools"`` if there are any.
            format: ``"openai"`` is the same as ``return_dict``. ``dialect="lazyllm"`` also has ``"anthropic"``.
            markers: replace those of the construction.
            system: replaces that of the construction. ``""`` leaves it out.
            media_placeholder: maps a modality to the text that stands for its media in a string. The string then has
                the media as its attribute ``media``.

        Raises:
            TemplateError: slots without a value, keys that are not slots, values that are not content, or tools twice.
            PromptError: a malformed history, a medium in a string without a placeholder, or a text that contains one.
        """
        form = self._form(format, return_dict=return_dict)
        divided = divide_input(self._instruction, self._checked(input))
        draft = PromptDraft(
            self._system if system is None else _text(system, "system"),
            *self._instruction.filled(divided.values, one_text=divided.one_text),
            *user_turn(divided),
            (*self._history, *self._turns(self._rules, history)) if history is not None else self._history,
            self._tools_for(tools, input, history),
            divided.one_text,
        )
        draft = self._check(draft, divided, as_string=not form)
        if form:
            return draft.request(form, empty_system=self._rules.keeps_empty_system and self.has_instruction)
        return self._string(draft, merged_markers(self._markers, markers), label, media_placeholder)

    def get_response(
        self,
        output: str,
        input: str | None = None,  # noqa: A002  # the name of the interface
        *,
        markers: Mapping[str, str | None] | None = None,
    ) -> str:
        """Return the model's reply from its output, which may begin with the prompt.

        If ``output`` begins with ``input``, the string prompt, the reply is the text after it. Otherwise it is the text
        after the last mark of a reply (Alpaca's ``### Response:``, the chat's ``soa``), or all of it without a mark.
        """
        text = _text(output, "output")
        if input and text.startswith(input):
            return text[len(input) :]
        splitter = self._splitter(merged_markers(self._markers, markers))
        return text.rpartition(splitter)[2] if splitter else text

    def _turns(self, rules: SeedRules, history: History) -> tuple[HistoryTurn, ...]:
        turns = turns_of(history, tuples=rules.takes_tuples)
        if turns and not self.takes_history:
            raise PromptError(f"{type(self).__name__} takes no history", "use ChatPrompter")
        return turns

    def _checked(self, given: object) -> object:
        if isinstance(given, Number) and not isinstance(given, int) and not self._rules.takes_fractions:
            what = f"the input is {type(given).__name__}, which LazyLLM refuses"
            raise TemplateError(what, "give it as text, or leave dialect out")
        return given

    def _form(self, name: str | None, *, return_dict: bool) -> str | None:
        if name is not None and name not in self._rules.formats:
            hint = nearest(name, self._rules.formats)
            if name == "anthropic":
                hint = "give return_dict=True, and its messages to from_openai and to_anthropic"
            raise TemplateError(f"unknown format {shown(name)}", hint)
        return name or ("openai" if return_dict else None)

    def _tools_for(self, tools: object, query: object, history: object) -> ToolList:
        own = self._tools
        given = tool_list(tools)
        if given and self._rules.takes_tools_twice:
            return given
        if not own:
            return given
        if tools is not None and not self._rules.takes_tools_twice:
            raise TemplateError("tools are given at construction and at the call", "remove them from one of the two")
        return own.tools(query, history) if isinstance(own, ToolSource) else own

    def _string(
        self,
        draft: PromptDraft,
        markers: Mapping[str, str],
        label: str | float | None,
        media_placeholder: Mapping[str, str] | None,
    ) -> str:
        rules = self._rules
        instruction, user = draft.instruction, joined(draft.user, self._instruction.closing)
        if draft.tools:
            instruction = rules.with_guide(instruction, draft.tools, markers, self._halves, one_text=draft.one_text)
        rest, begin, end = draft.input_of_string(rules, markers)
        fields: dict[str, PromptContent] = {
            **markers,
            "soh": begin,
            "eoh": end,
            "system": draft.system,
            "instruction": instruction,
            "tools": self._tools_written(draft.tools),
            "history": rules.history_text(draft.history, markers) if draft.history else "",
            "user": user,
            "input": rest,
            "label": "" if rules.empty_drops_the_rest and not self.has_instruction else _label(label),
        }
        writer = StringWriter(media_placeholder)
        writer.lay_out((*self._template(), _LABEL), fields)
        return writer.result(rules.finished if self.has_instruction else str)

    def _tools_written(self, tools: ToolList) -> str:
        if not tools:
            return ""
        return self._tools_text if tools is self._tools else self._rules.tools_text(tools)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; make a new one")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(slots={list(self.slots)}, dialect={self._rules.name!r})"


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise TemplateError(f"{name} is {type(value).__name__}", "give text; '' leaves it out")
    return value


def _label(label: object) -> str:
    if label is None or isinstance(label, str):
        return label or ""
    if isinstance(label, Number):
        return str(label)
    raise TemplateError(f"the label is {type(label).__name__}", "give text or a number")
