"""``ChatPrompter``: a conversation."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.prompters.instruction import Halves, Instruction, Pieces
from mmprompt.prompters.prompter import Prompter
from mmprompt.prompters.rules import SeedRules


class ChatPrompter(Prompter):
    r"""A prompt in the form of a chat: an instruction, earlier turns and the user's turn.

    The string is ``{sos}{system}{instruction}{tools}{eos}\n\n{history}\n{soh}\n{user}{input}\n{eoh}{soa}\n``. As
    messages, system and instruction are the two lines of the system message.

    Args:
        instruction: text with slots ``{name}``, of letters, digits and ``_``; other braces are text. Or a dict of
            ``system`` and ``user``, two such texts. The second stands before the user's turn.
        extra_keys: names of further slots. Each is shown under its own heading.
        tools: the tools of every call, or a function of ``query`` and/or ``history`` that returns them.
        history: turns before those of each call, as pairs or messages.
        system: the text before everything; the default is the documentation's, ``""`` leaves it out.
        markers: the texts around the turns of a string: ``sos`` and ``eos`` around system, ``soh`` and ``eoh``
            around human, ``soa`` and ``eoa`` around assistant, ``soe`` and ``eoe`` around the results of tools, and
            ``tool_start_token``, ``tool_args_token``, ``tool_end_token``.
        dialect: ``"lazyllm"`` for the output of LazyLLM 1.4 where it differs from its documentation.

    Source: LazyLLM, Prompter.

    Raises:
        TemplateError: an argument that cannot be compiled.
        PromptError: a malformed history.
    """

    def _compiled(self, rules: SeedRules, halves: Halves, extra: Pieces) -> Instruction:
        return rules.chat(halves, extra)

    def _template(self) -> Pieces:
        return self._rules.chat_template

    def _splitter(self, markers: Mapping[str, str]) -> str:
        return f"{markers['soa']}\n" if markers["soa"] else ""
