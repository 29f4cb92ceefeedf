"""``MultiTurnPromptTemplate``: dialogues whose columns hold lists, one element a turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from mmprompt.errors import TemplateError, shown
from mmprompt.templates.dialogue import Dialogue, Line, LooseLine, RoleLine, render_line, render_section
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.prompt_list import (
    PromptItem,
    PromptList,
    RoleItem,
    Section,
    TextItem,
    copy_of,
    in_section,
    section_of,
)
from mmprompt.templates.role_text import Examples
from mmprompt.templates.sample_view import SampleView, view_of

INFER_MODES = ("every", "every_with_gt", "last")
BOT = frozenset({"BOT"})


class Exchange(NamedTuple):
    """One place of a dialogue where the model speaks.

    ``before`` is how many items of the round come before it; ``hidden`` is its item without the answer.
    """

    turn: int
    before: int
    hidden: RoleItem | TextItem


class Expanded(NamedTuple):
    """A sample's dialogue: the items of begin, of all turns and of end, and the places where the model speaks."""

    begin: list[PromptItem | RoleItem]
    items: list[PromptItem | RoleItem]
    end: list[PromptItem | RoleItem]
    exchanges: list[Exchange]

    def prompt(self, exchange: Exchange, replies: Mapping[int, str] | None = None) -> PromptList:
        """Return the prompt of an exchange; ``replies``, turn to text, replace the model's words in earlier turns.

        A reply is data and goes in unchanged. No two prompts share items.
        """
        items = self.items[: exchange.before]
        for earlier in self.exchanges[: exchange.turn]:
            if replies is not None and earlier.turn in replies:
                items[earlier.before] = _with_prompt(items[earlier.before], replies[earlier.turn])
        return copy_of([*self.begin, *items, *self.end])


class MultiTurnPromptTemplate(MMPromptTemplate):
    """A template of dialogues with several turns, checked and compiled at construction; immutable.

    The round is repeated for each turn. The columns that its slots name hold lists, one element a turn; other columns
    read the same in every turn. Turns may hold media as in ``MMPromptTemplate``, whose arguments it takes.

    Source: AISBench, Prompt Template, on dialogues of several turns.

    Raises:
        TemplateError: with the place in the template as ``where.template``.
    """

    def generate_item(
        self, entry: Mapping[str, object] | SampleView, output_field: str | None = None, ice: Examples = None
    ) -> PromptList:
        """Return the whole dialogue with all answers; with ``output_field``, the last answer reads as ``""``.

        Raises:
            TemplateError: the lists are of unequal lengths, or no column holds one.
        """
        expanded = self.expand(entry, output_field, ice)
        items = list(expanded.items)
        if output_field is not None and expanded.exchanges:
            last = expanded.exchanges[-1]
            items[last.before] = last.hidden
        return PromptList([*expanded.begin, *items, *expanded.end])

    def expand(
        self,
        entry: Mapping[str, object] | SampleView,
        output_field: str | None = None,
        ice: Examples = None,
        generating: Collection[str] = BOT,
    ) -> Expanded:
        """Return the dialogue of a sample; the model speaks where a role of ``generating`` has an item.

        The column ``output_field`` holds the answers: items of those roles show them, elsewhere it reads as ``""``.

        Raises:
            TemplateError: the lists are of unequal lengths, or no column holds one; examples without a place.
        """
        dialogue = self._dialogue()
        self._check_examples(dialogue, ice)
        whole = view_of(entry, None, self._column)
        turns = self._turns(whole)
        section = Section("round")
        items: list[PromptItem | RoleItem] = []
        exchanges: list[Exchange] = []
        for number, turn in enumerate(turns):
            masked = view_of(turn, output_field)
            for line in dialogue.round:
                if isinstance(line, LooseLine):
                    if number == 0:
                        items.extend(render_section([line], masked, ice, section))
                    continue
                generates = _is_asked(line, generating)
                if generates:
                    exchanges.append(Exchange(len(exchanges), len(items), render_line(line, masked, None, section)))
                items.append(render_line(line, turn if generates else masked, None, section))
        hidden = view_of(whole, output_field)
        outer = {s.kind: render_section(lines, hidden, ice, s) for s, lines in dialogue.sections if s.kind != "round"}
        return Expanded(outer.get("begin", []), items, outer.get("end", []), exchanges)

    def times_asked(self, generating: Collection[str] = BOT) -> int:
        """Return how often the model speaks in each turn: where a role of ``generating`` has an item."""
        return sum(_is_asked(line, generating) for line in self._dialogue().round)

    def _dialogue(self) -> Dialogue:
        form = self._form
        if not isinstance(form, Dialogue):
            raise TemplateError("a multi-turn template is one dialogue, not labels", "give a dict with 'round'")
        return form

    def _turns(self, entry: SampleView) -> list[SampleView]:
        """Return one view for each turn, in which the list columns of the round read as their element."""
        contents = [line.content for line in self._dialogue().round if line.content is not None]
        names = dict.fromkeys(name for content in contents for name in content.names)
        lists = {n: v for n in names if isinstance(v := entry.raw.get(n), (list, tuple))}
        if not lists:
            columns = ", ".join(names) or "none"
            raise TemplateError(
                f"no column of the round holds a list (its columns: {columns})",
                "give a list with one element a turn",
                code="MM007",
            )
        lengths = {name: len(value) for name, value in lists.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
            raise TemplateError(
                f"the turns are of unequal lengths: {listed}", "give each column one element a turn", code="MM007"
            )
        count = next(iter(lengths.values()))
        if not count:
            raise TemplateError(
                "the dialogue has no turn: its lists are empty",
                "give one element a turn, or drop the row",
                code="MM700",
            )
        return [entry.with_columns({n: v[turn] for n, v in lists.items()}) for turn in range(count)]


def _is_asked(line: Line, generating: Collection[str]) -> bool:
    """Return True for an item of a generating role, unless it calls a tool, which the model is not asked for."""
    return isinstance(line, RoleLine) and line.keys["role"] in generating and not line.keys.get("tool_calls")


def _with_prompt(item: PromptItem | RoleItem, text: str) -> RoleItem | TextItem:
    """Return a copy of a role dict that says ``text``."""
    if not isinstance(text, str):
        raise TemplateError(f"a reply is {type(text).__name__}: {shown(text)}", "reply with text")
    copy = in_section(item, section_of(item))
    if isinstance(copy, RoleItem):
        copy["prompt"] = text
    return copy
