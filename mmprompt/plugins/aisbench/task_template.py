"""A whole task as a template, with the methods that AISBench calls."""

from __future__ import annotations

from mmprompt.plugins.aisbench.template_classes import runner_list, runner_logger
from mmprompt.plugins.bridge.requests import MediaRoot
from mmprompt.plugins.bridge.row_faults import all_told, told
from mmprompt.plugins.bridge.runner_builder import MediaSection
from mmprompt.plugins.bridge.runner_log import warnings_to
from mmprompt.plugins.bridge.section_marks import RunnerPrompt, to_marked
from mmprompt.plugins.bridge.table_rows import TableRow
from mmprompt.plugins.bridge.task_rows import TaskRows
from mmprompt.targets.json_values import JSONValue


class MMPromptTask:
    """A whole task of mmprompt as a template; its rows are those of ``MMPromptDataset`` of the same task.

    The task's own retriever picks the examples, so the config names AISBench's ``ZeroRetriever``. It goes with
    ``GenInferencer``; a task that compares labels goes with ``PPLInferencer``.

    Args:
        task: a task file.
        abbr: chooses one of the datasets of a runner's config.
        target: what the server accepts, ``"vllm"`` or ``"openai"``.
        media_root: folders that media may lie in, and that the task file may name; also for ``MMPromptDataset``.
        media: what else the task file may read, and changes of its media; also for ``MMPromptDataset``.
    """

    ice_token: str | None = None
    sep_token: str | None = None
    prompt_type = "meta"

    @told
    def __init__(  # noqa: PLR0917  # all of them by name, from a config
        self,
        task: str,
        abbr: str | None = None,
        target: str = "vllm",
        template: object = None,
        media_root: MediaRoot = None,
        media: MediaSection | None = None,
    ) -> None:
        del template  # AISBench's configs may hold the key
        self._rows = TaskRows(task, abbr, target, media_root=media_root, media=media)
        self.template = dict.fromkeys(self._rows.labels, "") or ""

    @all_told
    @warnings_to(runner_logger)
    def generate_item(self, entry: TableRow, *_: RunnerPrompt | None, **__: RunnerPrompt | None) -> RunnerPrompt:
        """Return the prompt of a row."""
        with self._rows.sample_of(entry) as sample:
            return to_marked(self._rows.prompt(sample), self._rows.builder, runner_list)

    @all_told
    @warnings_to(runner_logger)
    def generate_label_prompt_item(
        self, entry: TableRow, _ice: RunnerPrompt, label: JSONValue, *_: JSONValue
    ) -> RunnerPrompt:
        """Return the prompt of one label; raises as ``generate_item``."""
        with self._rows.sample_of(entry) as sample:
            return to_marked(self._rows.label_prompt(sample, label), self._rows.builder, runner_list)
