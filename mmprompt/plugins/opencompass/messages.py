"""OpenCompass: prompts as messages, and what its models would not send of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mmprompt.errors import TaskError
from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.plugins.bridge.message_writer import CountedMessage, MessageWriter, refuse_dropped
from mmprompt.plugins.bridge.runner_log import told_in
from mmprompt.plugins.bridge.table_rows import entry_of_row
from mmprompt.templates.multimodal import MMPromptTemplate
from mmprompt.templates.prompt_list import PromptList
from mmprompt.templates.raw import RawPromptTemplate
from mmprompt.templates.raw_messages import RawMessages, is_ready
from mmprompt.templates.text import PromptTemplate

NAME = "OpenCompass"
_ROLES = ("system", "user", "assistant")
_KEPT_KEYS = {"text": {"type", "text"}, "image_url": {"type", "image_url"}}
"""What OpenCompass's models keep of a part; parts of other types stay whole."""


def opencompass_logger() -> Any:
    """Return OpenCompass's logger, the only one that it listens to."""
    from opencompass.utils import get_logger  # noqa: PLC0415  # seconds of PyTorch, paid on use

    return get_logger()


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
    template = None

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
        if self._core.labels:
            raise TaskError("a template of labels, which OpenCompass compares as text", "use MMPromptText")
        self._meta = MetaTemplate(meta_template)
        self._outgoing = MessageWriter(media, target, runner_opens_paths=NAME)
        self.ice_token = self._core.ice_token or ""  # with None OpenCompass refuses an ice_template alone
        self.sep_token = sep_token

    @told_in(opencompass_logger)
    def generate_item(
        self,
        entry: Mapping[str, Any],
        output_field: str | None = None,
        output_field_replace_token: str = "",
        ice_field_replace_token: Any = "",
    ) -> list[dict[str, Any]]:
        """Return the messages of a test row; its answer reads as ``output_field_replace_token``."""
        with entry_of_row(entry, output_field, output_field_replace_token) as row:
            prompt = self._core.generate_item(row, None, _examples(ice_field_replace_token))
            return kept_whole(self._outgoing.messages(self._meta.to_messages(prompt)))

    def generate_ice_item(self, entry: Mapping[str, Any], label: object) -> list[Any]:
        """Return a row as an example: items of a prompt, whose media are read when they are part of one."""
        with entry_of_row(entry) as row:
            example = self._core.generate_ice_item(row, label)
        return [example] if isinstance(example, str) else list(example)

    def generate_label_prompt_item(self, *_: Any, **__: Any) -> Any:
        """Refuse: what OpenCompass compares is text.

        Raises:
            TaskError: always.
        """
        raise TaskError("OpenCompass compares texts, and MMPromptMessages gives messages", "use MMPromptText")


def kept_whole(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as OpenCompass's models send them; refuse what they would drop. Base64 is not counted."""
    return [CountedMessage(message) for message in refuse_dropped(messages, NAME, _ROLES, _KEPT_KEYS)]


def _examples(ice: Any) -> Any:
    """Return what OpenCompass collected of examples as the core takes them."""
    return (RawMessages(ice) if is_ready(ice) else PromptList(ice)) if isinstance(ice, list) and ice else ice or None
