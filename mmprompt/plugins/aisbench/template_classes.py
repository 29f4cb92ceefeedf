"""The templates, as AISBench calls them: duck-typed, with its ``PromptList`` going in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mmprompt.errors import MMPromptError
from mmprompt.outgoing import Outgoing
from mmprompt.plugins.aisbench.prompts import from_runner, to_runner
from mmprompt.tables import TaskRows, entry_of_row
from mmprompt.tasks import at
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.text import PromptTemplate


class MMPromptText:
    """``PromptTemplate`` of mmprompt for AISBench.

    Args:
        template: as in ``mmprompt.PromptTemplate``.
        ice_token: where the in-context examples go.
        sep_token: a text that is removed.
        media: what may be read and how, as the ``media`` section of a task file: ``roots``, ``mode``, ``max_side`` …
        target: what the server takes, ``"vllm"`` or ``"openai"``.
        options: further arguments of the core's template, such as ``column_token_map``.
    """

    core: ClassVar[type[PromptTemplate]] = PromptTemplate

    def __init__(
        self,
        template: Any,
        ice_token: str | None = None,
        sep_token: str | None = None,
        *,
        media: Mapping[str, Any] | None = None,
        target: str = "vllm",
        **options: Any,
    ) -> None:
        self._core = self.core(template, ice_token, sep_token, **options)
        self._outgoing = Outgoing(media, target)
        self.ice_token = ice_token
        self.sep_token = sep_token
        # AISBench takes the keys of a dict for labels, whatever they are, and joins examples unless they are "meta".
        self.template = template if self._core.labels or isinstance(template, str) else repr(template)
        self.prompt_type = "origin" if isinstance(template, str) else "meta"

    def generate_item(
        self,
        entry: Mapping[str, Any],
        output_field: str | None = None,
        output_field_replace_token: str = "",
        ice_field_replace_token: Any = "",
    ) -> Any:
        """Return the prompt of a test row; its answer reads as ``output_field_replace_token``, ``""`` by default."""
        row = entry_of_row(entry, output_field, output_field_replace_token)
        prompt = self._core.generate_item(row, None, from_runner(ice_field_replace_token) or None)
        return to_runner(prompt, self._outgoing)

    def generate_ice_item(self, entry: Mapping[str, Any], label: object) -> Any:
        """Return a row as an example, its media read."""
        return to_runner(self._core.generate_ice_item(entry_of_row(entry), label), self._outgoing, written=False)

    def generate_label_prompt_item(self, entry: Mapping[str, Any], ice: Any, label: object, _sep: bool = False) -> Any:
        """Return the prompt of one label."""
        prompt = self._core.generate_label_prompt_item(entry_of_row(entry), from_runner(ice) or None, label)
        return to_runner(prompt, self._outgoing)


class MMPromptMultimodal(MMPromptText):
    """``MMPromptTemplate`` of mmprompt for AISBench; see ``MMPromptText`` for ``media`` and ``target``."""

    core = MMPromptTemplate


class MMPromptTask:
    """A whole task of mmprompt as a template; its rows are those of ``MMPromptDataset`` of the same task.

    The task's own retriever picks the examples, so the config has AISBench's ``ZeroRetriever``.

    Args:
        task: a task file.
        abbr: chooses among the datasets of a runner's config.
        target: what the server takes, ``"vllm"`` or ``"openai"``.
    """

    template = ""
    ice_token: str | None = None
    sep_token: str | None = None
    prompt_type = "meta"

    def __init__(self, task: str, abbr: str | None = None, target: str = "vllm", template: Any = None) -> None:
        del template  # AISBench's configs may hold the key
        self._rows = TaskRows(task, abbr, target)

    def generate_item(self, entry: Mapping[str, Any], *_: Any, **__: Any) -> Any:
        """Return the prompt of a row.

        Raises:
            TaskError: a row of another dataset, or a task that makes several prompts of a row.
            MMPromptError: the row cannot be rendered, with its place.
        """
        sample = self._rows.sample(entry)
        try:
            return to_runner(self._rows.prompt(sample), self._rows.outgoing)
        except MMPromptError as error:
            raise at(error, sample) from None
