"""The templates, as AISBench calls them: duck-typed, with its ``PromptList`` going in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from logging import Logger, getLogger
from typing import Any

from mmprompt.errors import TaskError
from mmprompt.plugins.bridge.opencompass_family import MarkedTemplate
from mmprompt.plugins.bridge.runner_log import told_in
from mmprompt.plugins.bridge.section_marks import from_marked, to_marked
from mmprompt.plugins.bridge.table_rows import entry_of_row
from mmprompt.plugins.bridge.task_rows import TaskRows
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.multiturn import MultiTurnPromptTemplate
from mmprompt.templates.prompt_list import PromptList


def runner_logger() -> Logger:
    """Return AISBench's logger, the only one that it listens to."""
    return getLogger("ais_bench")


def runner_list(items: Iterable[Any]) -> Any:
    """Return AISBench's ``PromptList`` of these items."""
    from ais_bench.benchmark.utils.prompt import PromptList as RunnerList  # noqa: PLC0415  # the runner is there now

    return RunnerList(items)


@lru_cache(maxsize=1)
def _dialogue_class() -> Any:
    list_class = type(runner_list([]))

    class Dialogue(list_class):  # type: ignore[misc,valid-type]  # the runner has no types
        """A ``PromptList`` whose slices are such: for ``last`` the runner adds one to a slice, which never ends."""

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            return Dialogue(found) if isinstance(key, slice) else found

        def __reduce__(self) -> tuple[object, ...]:
            return (dialogue, (list(self),))

    return Dialogue


def dialogue(items: Iterable[Any]) -> Any:
    """Return AISBench's ``PromptList`` of these items, which its inferencer can cut into turns in each of its modes."""
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
    list_class = staticmethod(dialogue)

    def generate_item(
        self,
        entry: Mapping[str, Any],
        output_field: str | None = None,
        output_field_replace_token: str = "",  # noqa: ARG002  # the answers are cut off, not replaced
        ice_field_replace_token: Any = "",
    ) -> Any:
        """Return the whole dialogue of a row with its answers in the BOT items, and nowhere else.

        Raises:
            TaskError: what the runner cannot cut into turns: nobody of the role BOT, a BOT that says media, loose text.
        """
        with entry_of_row(entry) as row:
            said = self._core.expand(row, output_field, from_marked(ice_field_replace_token) or None)
            prompt = self._marked(PromptList([*said.begin, *said.items, *said.end]))
        if not said.exchanges:
            raise TaskError("nobody of the role BOT speaks in the round", "call the model's role BOT")
        for item in prompt:
            if isinstance(item, str):
                raise TaskError("text without a role, which AISBench cannot cut into turns", "give it a role")
            if item.get("role") == "BOT" and "prompt_mm" in item:
                raise TaskError("a reply with media, which AISBench cannot replace", "give BOT a 'prompt' of text")
        return prompt


class MMPromptTask:
    """A whole task of mmprompt as a template; its rows are those of ``MMPromptDataset`` of the same task.

    The task's own retriever picks the examples, so the config has AISBench's ``ZeroRetriever``. It goes with
    ``GenInferencer``, and a task of labels with ``PPLInferencer``.

    Args:
        task: a task file.
        abbr: chooses among the datasets of a runner's config.
        target: what the server takes, ``"vllm"`` or ``"openai"``.
    """

    ice_token: str | None = None
    sep_token: str | None = None
    prompt_type = "meta"

    def __init__(self, task: str, abbr: str | None = None, target: str = "vllm", template: Any = None) -> None:
        del template  # AISBench's configs may hold the key
        self._rows = TaskRows(task, abbr, target)
        self.template: Any = dict.fromkeys(self._rows.labels, "") or ""

    @told_in(runner_logger)
    def generate_item(self, entry: Mapping[str, Any], *_: Any, **__: Any) -> Any:
        """Return the prompt of a row.

        Raises:
            TaskError: a row of another dataset, or a task that does not ask for one reply a row.
            MMPromptError: the row cannot be rendered, with its place.
        """
        with self._rows.sample_of(entry) as sample:
            return to_marked(self._rows.prompt(sample), self._rows.outgoing, runner_list)

    @told_in(runner_logger)
    def generate_label_prompt_item(self, entry: Mapping[str, Any], _ice: Any, label: object, *_: Any) -> Any:
        """Return the prompt of one label; raises as ``generate_item``."""
        with self._rows.sample_of(entry) as sample:
            return to_marked(self._rows.label_prompt(sample, label), self._rows.outgoing, runner_list)
