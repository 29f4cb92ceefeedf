"""The templates, with the methods that AISBench calls. They take and return its ``PromptList``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from logging import Logger, getLogger
from typing import Any, SupportsIndex

from mmprompt.errors import TaskError
from mmprompt.plugins.bridge.opencompass_family import MarkedTemplate
from mmprompt.plugins.bridge.row_faults import all_told
from mmprompt.plugins.bridge.section_marks import ListClass, RunnerItem, RunnerPrompt, from_marked
from mmprompt.plugins.bridge.table_rows import TableRow, entry_of_row
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.multiturn import MultiTurnPromptTemplate
from mmprompt.templates.prompt_list import PromptList


def runner_logger() -> Logger:
    """Return AISBench's logger. AISBench writes no other to its log."""
    return getLogger("ais_bench")


def runner_list(items: Iterable[RunnerItem]) -> list[RunnerItem]:
    """Return AISBench's ``PromptList`` of these items."""
    from ais_bench.benchmark.utils.prompt import PromptList as RunnerList  # noqa: PLC0415  # the runner is there now

    made: list[RunnerItem] = RunnerList(items)
    return made


@lru_cache(maxsize=1)
def _dialogue_class() -> ListClass:
    list_class: Any = type(runner_list([]))

    class Dialogue(list_class):  # type: ignore[misc]  # the runner has no types
        """A ``PromptList`` whose slices are ``Dialogue`` too.

        For ``infer_mode`` last, AISBench adds a ``PromptList`` to a slice. With a plain list that never ends.
        """

        def __getitem__(self, key: SupportsIndex | slice) -> RunnerItem | Dialogue:
            found: RunnerItem = super().__getitem__(key)
            return Dialogue(found) if isinstance(key, slice) else found

        def __reduce__(self) -> tuple[ListClass, tuple[list[RunnerItem]]]:
            return (dialogue, (list(self),))

    return Dialogue


def dialogue(items: Iterable[RunnerItem]) -> list[RunnerItem]:
    """Return a ``PromptList`` of these items that AISBench's inferencer can cut into turns in each of its modes."""
    return _dialogue_class()(items)


class MMPromptText(MarkedTemplate):
    """``PromptTemplate`` of mmprompt for AISBench; the arguments are those of ``MarkedTemplate``."""

    list_class = staticmethod(runner_list)


class MMPromptMultimodal(MMPromptText):
    """``MMPromptTemplate`` of mmprompt for AISBench; see ``MarkedTemplate`` for ``media`` and ``target``."""

    core = MMPromptTemplate


class MMPromptMultiTurn(MMPromptText):
    """``MultiTurnPromptTemplate`` of mmprompt for AISBench's ``MultiTurnGenInferencer``, in each of its modes.

    The runner asks at each item whose role is BOT, with all that stands before it.
    """

    core = MultiTurnPromptTemplate
    _core: MultiTurnPromptTemplate
    list_class = staticmethod(dialogue)

    @all_told
    def generate_item(
        self,
        entry: TableRow,
        output_field: str | None = None,
        output_field_replace_token: str = "",  # noqa: ARG002  # the answers are cut off, not replaced
        ice_field_replace_token: RunnerPrompt = "",
    ) -> RunnerPrompt:
        """Return the whole dialogue of a row, with its answers in the BOT items and nowhere else.

        Raises:
            TaskError: AISBench cannot cut the dialogue into turns: no role is BOT, a BOT item holds media, or text
                stands without a role.
        """
        with entry_of_row(entry) as row:
            made = self._core.expand(row, output_field, from_marked(ice_field_replace_token) or None)
            prompt = self._marked(PromptList([*made.begin, *made.items, *made.end]))
        if not made.exchanges:
            raise TaskError("no item of the round has the role BOT", "call the model's role BOT")
        for item in prompt:
            if isinstance(item, str):
                raise TaskError("text without a role, which AISBench cannot cut into turns", "give it a role")
            if item.get("role") == "BOT" and "prompt_mm" in item:
                raise TaskError("a reply with media, which AISBench cannot replace", "give BOT a 'prompt' of text")
        return prompt
