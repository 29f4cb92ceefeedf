"""What OpenCompass and AISBench, a fork of it, have in common: templates, and classes that inherit from theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Union

from mmprompt.errors import TaskError
from mmprompt.icl.assembly import Prompt
from mmprompt.icl.retrievers import join_examples
from mmprompt.icl.types import build_retriever
from mmprompt.meta_template.roles import MetaDict
from mmprompt.plugins.bridge.row_faults import all_told, told
from mmprompt.plugins.bridge.runner_builder import MediaSection, RunnerBuilder
from mmprompt.plugins.bridge.runner_log import RunnerLogger, warnings_to
from mmprompt.plugins.bridge.section_marks import ListClass, RunnerItem, RunnerPrompt, from_marked, to_marked
from mmprompt.plugins.bridge.table_rows import TableRow, arrow_table, entry_of_row, sample_of_row, tables
from mmprompt.targets.json_values import JSONValue
from mmprompt.templates.raw_messages import MessageDict
from mmprompt.templates.text import PromptTemplate

if TYPE_CHECKING:
    from datasets import DatasetDict

ConfigTemplate = Union[str, Mapping[str, JSONValue], Mapping[int, JSONValue]]
"""A template as a config holds it: text, a dialogue, or one of these for each label."""


ConfigMeta = Union[MetaDict, Sequence[MessageDict], None]
"""A meta template as a config holds it."""


class ExampleTemplate(Protocol):
    """What a runner's retriever calls on the template of the examples: one of ours, or the runner's own."""

    def generate_ice_item(self, entry: TableRow, label: JSONValue) -> RunnerPrompt:
        """Return a row as an example."""
        ...


class MarkedTemplate(ABC):
    """A template of ours with the methods that these runners call. It takes and returns their ``PromptList``.

    Args:
        template: as in our template of the same kind.
        ice_token: where the in-context examples go.
        sep_token: a text that is removed.
        media: what may be read and how, as the ``media`` section of a task file: ``roots``, ``mode``, ``max_side`` …
        target: what the server accepts, ``"vllm"`` or ``"openai"``.
        options: further arguments of our template, such as ``column_token_map``.
    """

    core: ClassVar[type[PromptTemplate]] = PromptTemplate

    @staticmethod
    @abstractmethod
    def list_class(items: Iterable[RunnerItem]) -> list[RunnerItem]:
        """Return the runner's own ``PromptList`` of these items."""

    @told
    def __init__(
        self,
        template: ConfigTemplate,
        ice_token: str | None = None,
        sep_token: str | None = None,
        *,
        media: MediaSection | None = None,
        target: str = "vllm",
        **options: Any,
    ) -> None:
        self._core = self.core(template, ice_token, sep_token, **options)
        self._builder = RunnerBuilder(media, target)
        self.ice_token = ice_token or ""  # a runner refuses an ice_template alone, which needs no token, if it is None
        self.sep_token = sep_token
        # The runners take the keys of a dict for labels, whatever they are, and join examples unless they are "meta".
        self.template = template if self._core.labels or isinstance(template, str) else repr(template)
        self.prompt_type = "origin" if isinstance(template, str) else "meta"

    @all_told
    def generate_item(
        self,
        entry: TableRow,
        output_field: str | None = None,
        output_field_replace_token: str = "",
        ice_field_replace_token: RunnerPrompt = "",
    ) -> RunnerPrompt:
        """Return the prompt of a test row; its answer reads as ``output_field_replace_token``, ``""`` by default."""
        with entry_of_row(entry, output_field, output_field_replace_token) as row:
            return self._marked(self._core.generate_item(row, None, from_marked(ice_field_replace_token) or None))

    @told
    def generate_ice_item(self, entry: TableRow, label: JSONValue) -> RunnerPrompt:
        """Return a row as an example, its media read."""
        with entry_of_row(entry) as row:
            return self._marked(self._core.generate_ice_item(row, label))

    @all_told
    def generate_label_prompt_item(
        self, entry: TableRow, ice: RunnerPrompt, label: JSONValue, _sep: bool = False
    ) -> RunnerPrompt:
        """Return the prompt of one label."""
        with entry_of_row(entry) as row:
            return self._marked(self._core.generate_label_prompt_item(row, from_marked(ice) or None, label))

    def _marked(self, prompt: Prompt) -> RunnerPrompt:
        return to_marked(prompt, self._builder, self.list_class)


@cache
def dataset_class(module: str, logger: RunnerLogger) -> Any:
    """Return a class over the ``BaseDataset`` of a runner's module, whose rows are those of ``table_rows.tables``.

    The module is imported here. That loads PyTorch, which takes seconds.
    """
    from datasets import Dataset, DatasetDict  # noqa: PLC0415  # as slow

    base: Any = import_module(module).BaseDataset

    class Rows(base):  # type: ignore[misc]  # the runner has no types
        @staticmethod
        @told
        @warnings_to(logger)
        def load(path: str, **options: Any) -> DatasetDict:
            made = tables(path, **options).items()
            return DatasetDict({split: Dataset.from_dict(arrow_table(rows)) for split, rows in made})

    return Rows


@cache
def retriever_class(module: str, list_class: ListClass) -> Any:
    """Return a class over the ``BaseRetriever`` of a runner's module. It picks and joins examples as ours do."""
    base: Any = import_module(module).BaseRetriever

    class Retriever(base):  # type: ignore[misc]  # the runner has no types
        def __init__(self, kind: str = "ZeroRetriever", arguments: Mapping[str, Any] | None = None, **options: Any):
            super().__init__(**options)
            self._core = build_retriever({"type": kind, **(arguments or {})}, "retriever")

        def retrieve(self) -> list[list[int]]:
            reader = self.dataset_reader
            bound = self._core.bind(
                [sample_of_row(row, number) for number, row in enumerate(self.index_ds)],
                input_columns=tuple(reader.input_columns),
                output_column=reader.output_column,
            )
            return [bound.ids(sample_of_row(row, number), number) for number, row in enumerate(self.test_ds)]

        def generate_ice(self, idx_list: Sequence[int], ice_template: ExampleTemplate | None = None) -> RunnerPrompt:
            template: ExampleTemplate | None = ice_template or getattr(self, "ice_template", None)
            if idx_list and getattr(template, "prompt_type", "") == "raw_messages":
                joined_by_runner: RunnerPrompt = super().generate_ice(idx_list, template)
                return joined_by_runner
            column = self.dataset_reader.output_column
            made = []
            for item in [self.index_ds[number] for number in idx_list]:
                if template is None:
                    raise TaskError("examples without ice_template", "give the template of the examples")
                made.append(from_marked(template.generate_ice_item(item, item[column])))
            dialogue = any(isinstance(example, list) for example in made)
            joined = join_examples(made, self._core, dialogue)
            return joined if isinstance(joined, str) else list_class(joined)

    return Retriever
