"""``EmptyPrompter``: the input alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mmprompt.errors import PromptError
from mmprompt.prompters.draft import PromptDraft
from mmprompt.prompters.instruction import DividedInput, Halves, Instruction, Pieces, instruction_of, pieces_of
from mmprompt.prompters.prompter import History, Prompter
from mmprompt.prompters.rules import SeedRules

_TEMPLATE = pieces_of("{input}")


class EmptyPrompter(Prompter):
    """A prompt that is the input itself: a string as it is, or the user's message.

    Messages may have a history, tools and a system text too. A string has no place for them and refuses them, but a
    label follows it. ``dialect="lazyllm"`` leaves all four out.

    Args:
        tools: the tools of every call, or a function of ``query`` and/or ``history`` that returns them.
        history: turns before those of each call, as pairs or messages.
        system: a system message; none by default.
        markers: accepted, but not used in this form.
        dialect: ``"lazyllm"`` for the behaviour of LazyLLM 1.4.

    Source: LazyLLM, Prompter.

    Raises:
        TemplateError: an argument that is not of these forms.
        PromptError: a malformed history.
    """

    has_instruction = False

    def __init__(
        self,
        *,
        tools: Sequence[Mapping[str, Any]] | Callable[..., object] | None = None,
        history: History = None,
        system: str = "",
        markers: Mapping[str, str | None] | None = None,
        dialect: str | None = None,
    ) -> None:
        super().__init__(tools=tools, history=history, system=system, markers=markers, dialect=dialect)

    def _compiled(self, rules: SeedRules, halves: Halves, extra: Pieces) -> Instruction:  # noqa: ARG002  # there is no instruction
        return instruction_of((), ())

    def _template(self) -> Pieces:
        return _TEMPLATE

    def _check(self, draft: PromptDraft, divided: DividedInput, *, as_string: bool) -> PromptDraft:  # noqa: ARG002  # any input is accepted
        if self._rules.empty_drops_the_rest:
            return draft._replace(system="", history=(), tools=[])
        for name, given in (("history", draft.history), ("tools", draft.tools), ("system", draft.system)):
            if as_string and given:
                raise PromptError(f"the string of an EmptyPrompter has no place for {name}", "give return_dict=True")
        return draft
