"""``AlpacaPrompter``: one instruction, one answer."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.prompters.content import cut_before_media, joined
from mmprompt.prompters.draft import PromptDraft
from mmprompt.prompters.instruction import DividedInput, Halves, Instruction, Pieces
from mmprompt.prompters.prompter import Prompter
from mmprompt.prompters.rules import RESPONSE, SeedRules


class AlpacaPrompter(Prompter):
    r"""A prompt in Alpaca's form, without a history. The whole input goes into slots.

    The string is ``{system}\n{instruction}\n{tools}{user}### Response:\n``. As messages, the instruction is the system
    message, and the user half, which may be empty, is the user's. A system message holds no media: from the first
    medium on, the instruction stands in the user's message.

    Args:
        instruction: text with slots ``{name}``, of letters, digits and ``_``; other braces are text. Or a dict of
            ``system`` and ``user``, two such texts. An empty line follows the second.
        extra_keys: names of further slots. Each is shown under its own heading.
        tools: the tools of every call, or a function of ``query`` and/or ``history`` that returns them.
        history: must be empty.
        system: the text before everything; the default is the documentation's, ``""`` leaves it out.
        markers: accepted, but not used in this form.
        dialect: ``"lazyllm"`` for the output of LazyLLM 1.4 where it differs from its documentation.

    Source: LazyLLM, Prompter.

    Raises:
        TemplateError: an argument that cannot be compiled.
        PromptError: a history is given.
    """

    takes_history = False

    def _compiled(self, rules: SeedRules, halves: Halves, extra: Pieces) -> Instruction:
        return rules.alpaca(halves, extra)

    def _template(self) -> Pieces:
        return self._rules.alpaca_template

    def _splitter(self, markers: Mapping[str, str]) -> str:  # noqa: ARG002  # its mark is fixed
        return RESPONSE

    def _check(self, draft: PromptDraft, divided: DividedInput, *, as_string: bool) -> PromptDraft:
        if not draft.rest and not draft.last:
            return draft if as_string else _with_media_for_the_user(draft)
        if divided.key is None:
            raise TemplateError(
                "the instruction has no slot for the input", "put {input} in it, or name it in extra_keys"
            )
        raise TemplateError(
            f"the input has a key that is not a slot: {shown(divided.key)}", nearest(divided.key, self.slots)
        )


def _with_media_for_the_user(draft: PromptDraft) -> PromptDraft:
    """Return the draft with the instruction, from its first medium on, before the user half."""
    system, rest = cut_before_media(draft.instruction)
    between = "\n" if rest and draft.user else ""
    return draft._replace(instruction=system, user=joined(rest, between, draft.user))
