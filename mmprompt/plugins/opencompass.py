"""OpenCompass: templates whose prompts are messages, and a dataset, for its configs by class or ``custom_imports``.

It has no entry points: a config imports this module, and the classes register themselves in its registries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from opencompass.registry import ICL_PROMPT_TEMPLATES, LOAD_DATASET

from mmprompt.errors import MMPromptError, TaskError
from mmprompt.meta_template import MetaTemplate
from mmprompt.outgoing import CountedMessage, Outgoing, refuse_dropped
from mmprompt.parts import Message
from mmprompt.prompt_list import PromptList
from mmprompt.raw_messages import RawMessages, is_ready
from mmprompt.tables import TaskRows, entry_of_row, tables
from mmprompt.tasks import at
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.text import PromptTemplate

_NAME = "OpenCompass"
_ROLES = ("system", "user", "assistant")
_KEPT_KEYS = {"text": {"type", "text"}, "image_url": {"type", "image_url"}}
"""What OpenCompass's models keep of a part; parts of other types stay whole."""


@ICL_PROMPT_TEMPLATES.register_module()
class MMPromptMessages:
    """A template of mmprompt for OpenCompass; it gives the messages that are sent.

    Args:
        template: a dialogue, as in ``mmprompt.MMPromptTemplate``, or a text, as in ``mmprompt.PromptTemplate``.
        ice_token: where the in-context examples go.
        sep_token: a text that is removed.
        messages: in place of ``template``: messages, as in ``mmprompt.RawPromptTemplate``.
        meta_template: as in ``mmprompt.MetaTemplate``; one in the model's config that is a list is put before these.
        media: what may be read and how, as the ``media`` section of a task file; that of ``prompt_template`` counts.
        target: what the server takes, ``"vllm"`` or ``"openai"``.
        options: further arguments of the core's template.
    """

    prompt_type = "raw_messages"

    def __init__(
        self,
        template: Any = None,
        ice_token: str | None = None,
        sep_token: str | None = None,
        *,
        messages: Sequence[Any] | None = None,
        meta_template: Any = None,
        media: Mapping[str, Any] | None = None,
        target: str = "vllm",
        **options: Any,
    ) -> None:
        if (template is None) == (messages is None):
            raise TaskError("a template takes either 'template' or 'messages'", "give one of them")
        if messages is not None:
            self._core: Any = RawPromptTemplate(messages, ice_token=ice_token or "</E>", **options)
        else:
            core = PromptTemplate if isinstance(template, str) else MMPromptTemplate
            self._core = core(template, ice_token, sep_token, **options)
        self._meta = MetaTemplate(meta_template)
        self._outgoing = Outgoing(media, target, opener=_NAME)
        self.template = template if self._core.labels else None
        self.ice_token = self._core.ice_token
        self.sep_token = sep_token

    def generate_item(
        self,
        entry: Mapping[str, Any],
        output_field: str | None = None,
        output_field_replace_token: str = "",
        ice_field_replace_token: Any = "",
    ) -> list[dict[str, Any]]:
        """Return the messages of a test row; its answer reads as ``output_field_replace_token``."""
        row = entry_of_row(entry, output_field, output_field_replace_token)
        prompt = self._core.generate_item(row, None, _examples(ice_field_replace_token))
        return sent(self._outgoing, self._meta.to_messages(prompt))

    def generate_ice_item(self, entry: Mapping[str, Any], label: object) -> list[Any]:
        """Return a row as an example: items of a prompt, whose media are read when they are part of one."""
        example = self._core.generate_ice_item(entry_of_row(entry), label)
        return [example] if isinstance(example, str) else list(example)


@ICL_PROMPT_TEMPLATES.register_module()
class MMPromptTask:
    """A whole task of mmprompt as a template; its rows are those of ``MMPromptDataset`` with the same ``path``.

    The task's own retriever picks the examples, so the config has OpenCompass's ``ZeroRetriever``. The arguments are
    those of ``mmprompt.tables.TaskRows``.
    """

    prompt_type = "raw_messages"
    template = ice_token = sep_token = None

    def __init__(self, task: str, abbr: str | None = None, target: str = "vllm") -> None:
        self._rows = TaskRows(task, abbr, target, opener=_NAME)

    def generate_item(self, entry: Mapping[str, Any], *_: Any, **__: Any) -> list[dict[str, Any]]:
        """Return the messages of a row; its errors have the row's place."""
        sample = self._rows.sample(entry)
        try:
            return sent(self._rows.outgoing, self._rows.messages(sample))
        except MMPromptError as error:
            raise at(error, sample) from None


@LOAD_DATASET.register_module()
class MMPromptDataset:
    """The rows of a dataset or a task, for OpenCompass: ``id``, the output column, and one for our templates.

    The arguments are those of ``mmprompt.tables.tables`` and OpenCompass's own, such as ``reader_cfg`` and ``abbr``.
    A row that cannot be read ends the run before it begins.
    """

    def __new__(cls, **options: Any) -> Any:
        """Return an instance of a class that is made when OpenCompass is there to inherit from."""
        return _dataset_class()(**options)


@lru_cache(maxsize=1)
def _dataset_class() -> Any:
    from datasets import Dataset, DatasetDict  # noqa: PLC0415  # seconds of PyTorch, paid where rows are loaded
    from opencompass.datasets.base import BaseDataset  # noqa: PLC0415  # likewise

    class Rows(BaseDataset):  # type: ignore[misc]  # the runner has no types
        @staticmethod
        def load(path: str, **options: Any) -> Any:
            return DatasetDict({split: Dataset.from_dict(rows) for split, rows in tables(path, **options).items()})

    return Rows


def sent(outgoing: Outgoing, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as OpenCompass's models send them; refuse what they would drop. Base64 is not counted."""
    return [CountedMessage(m) for m in refuse_dropped(outgoing.messages(messages), _NAME, _ROLES, _KEPT_KEYS)]


def _examples(ice: Any) -> Any:
    """Return what OpenCompass collected of examples as the core takes them."""
    return (RawMessages(ice) if is_ready(ice) else PromptList(ice)) if isinstance(ice, list) and ice else ice or None
