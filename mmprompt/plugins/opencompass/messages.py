"""Prompts as messages for OpenCompass. A message that OpenCompass's models would drop in part is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from mmprompt.errors import TargetError, TaskError
from mmprompt.icl.types import Template
from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.plugins.bridge.opencompass_family import ConfigMeta, ConfigTemplate
from mmprompt.plugins.bridge.row_faults import all_told, told
from mmprompt.plugins.bridge.runner_builder import MediaSection, RunnerBuilder
from mmprompt.plugins.bridge.runner_log import warnings_to
from mmprompt.plugins.bridge.section_marks import RunnerItem, RunnerPrompt
from mmprompt.plugins.bridge.table_rows import TableRow, entry_of_row
from mmprompt.plugins.opencompass.models import AskedModel
from mmprompt.targets.json_values import JSONObject, JSONValue
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.prompt_list import PromptList
from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.raw_messages import MessageDict, RawMessages, is_ready
from mmprompt.templates.role_text import Examples
from mmprompt.templates.text import PromptTemplate

if TYPE_CHECKING:
    from logging import Logger

NAME = "OpenCompass"
WIRES = ("openai", "anthropic")
_ROLES = ("system", "user", "assistant")
_KEPT_KEYS: dict[str, Collection[str]] = {"text": ("type", "text"), "image_url": ("type", "image_url")}
"""What OpenCompass's models keep of a content part; parts of other types stay whole."""


def opencompass_logger() -> Logger:
    """Return OpenCompass's logger. OpenCompass writes no other to its log."""
    from opencompass.utils import get_logger  # noqa: PLC0415  # loads PyTorch, which takes seconds

    logger: Logger = get_logger()
    return logger


class MMPromptMessages:
    """A template of mmprompt for OpenCompass; it gives the messages that are sent.

    Args:
        template: a dialogue, as in ``mmprompt.MMPromptTemplate``, or a text, as in ``mmprompt.PromptTemplate``.
        ice_token: where the in-context examples go.
        sep_token: a text that is removed.
        messages: in place of ``template``: messages, as in ``mmprompt.RawPromptTemplate``.
        meta_template: as in ``mmprompt.MetaTemplate``. If the model's config has a list of messages as its own meta
            template, that list goes before these messages.
        media: what may be read and how, as the ``media`` section of a task file. For examples, the section of
            ``prompt_template`` counts.
        target: what the server accepts, ``"vllm"`` or ``"openai"``; ``"anthropic"`` for ``ClaudeSDK``.
        options: further arguments of our template.
    """

    prompt_type = "raw_messages"
    template = None

    @told
    def __init__(
        self,
        template: ConfigTemplate | None = None,
        ice_token: str | None = None,
        sep_token: str | None = None,
        *,
        messages: Sequence[str | MessageDict] | None = None,
        meta_template: ConfigMeta = None,
        media: MediaSection | None = None,
        target: str = "vllm",
        **options: Any,
    ) -> None:
        if (template is None) == (messages is None):
            raise TaskError("a template takes either 'template' or 'messages'", "give one of them")
        if messages is not None:
            self._core: Template = RawPromptTemplate(messages, ice_token=ice_token or "</E>", **options)
        else:
            core: Callable[..., Template] = PromptTemplate if isinstance(template, str) else MMPromptTemplate
            self._core = core(template, ice_token, sep_token, **options)
        if self._core.labels:
            raise TaskError("a template of labels, which OpenCompass compares as text", "use MMPromptText")
        self._meta = MetaTemplate(meta_template)
        self._builder = RunnerBuilder(media, target, opens_paths=NAME, wires=WIRES)
        self._model = AskedModel(target)
        self.ice_token = self._core.ice_token or ""  # with None OpenCompass refuses an ice_template alone
        self.sep_token = sep_token

    @all_told
    @warnings_to(opencompass_logger)
    def generate_item(
        self,
        entry: TableRow,
        output_field: str | None = None,
        output_field_replace_token: str = "",
        ice_field_replace_token: RunnerPrompt = "",
    ) -> list[CountedMessage]:
        """Return the messages of a test row; its answer reads as ``output_field_replace_token``."""
        with entry_of_row(entry, output_field, output_field_replace_token) as row:
            prompt = self._core.generate_item(row, None, _examples(ice_field_replace_token))
            return kept_whole(self._builder.messages(self._meta.to_messages(prompt)), self._model)

    @told
    def generate_ice_item(self, entry: TableRow, label: JSONValue) -> list[RunnerItem]:
        """Return a row as an example: items of a prompt. Their media are read with the prompt they go into."""
        with entry_of_row(entry) as row:
            example = self._core.generate_ice_item(row, label)
        return [example] if isinstance(example, str) else list(example)

    def generate_label_prompt_item(self, *_: RunnerPrompt | TableRow, **__: RunnerPrompt | TableRow) -> NoReturn:
        """Refuse: OpenCompass compares labels as text."""
        raise TaskError("OpenCompass compares texts, and MMPromptMessages gives messages", "use MMPromptText")


class CountedMessage(JSONObject):
    """A message whose ``str()`` is its text. OpenCompass counts the tokens of that, and so counts no base64."""

    def __str__(self) -> str:
        content = self.get("content") or ""
        if not isinstance(content, list):
            return str(content)
        return "".join([str(part["text"]) for part in content if isinstance(part, dict) and part.get("type") == "text"])


def kept_whole(messages: list[JSONObject], model: AskedModel) -> list[CountedMessage]:
    """Return messages for one of OpenCompass's models."""
    model.check(messages)
    for number, message in enumerate(messages, start=1):
        if message["role"] not in _ROLES:
            what = f"message {number}: {NAME} sends no role '{message['role']}'"
            raise TargetError(what, f"use one of {', '.join(_ROLES)}")
        parts: Any = message["content"]
        for part in parts if isinstance(parts, list) else ():
            for key in part:
                if key not in _KEPT_KEYS.get(part["type"], (key,)):
                    what = f"message {number}: {NAME} drops '{key}' of a {part['type']} part"
                    raise TargetError(what, "leave it out, or use another runner")
    return [CountedMessage(message) for message in messages]


def _examples(ice: RunnerPrompt) -> Examples:
    """Return the examples that OpenCompass collected as our templates take them."""
    if not ice or isinstance(ice, str):
        return ice if isinstance(ice, str) and ice else None
    return RawMessages(ice) if is_ready(ice) else PromptList(ice)
