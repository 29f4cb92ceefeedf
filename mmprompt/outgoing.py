"""Messages on their way to a server that somebody else calls: media read under a policy, then written for a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mmprompt.errors import TargetError
from mmprompt.parts import MediaRef, Message, Part
from mmprompt.targets.limits import limits
from mmprompt.targets.part_writer import text_payload
from mmprompt.targets.records import writer_for
from mmprompt.task_media import TaskMedia, UnreadError
from mmprompt.tasks import Task, load_task


class Outgoing:
    """Reads what prompts name and writes it in OpenAI's form; safe to share between threads.

    Args:
        media: a task, whose ``media`` section and datasets say what may be read; or such a section alone.
        target: ``"vllm"``, ``"openai"`` or a user's own of that form.

    Raises:
        TaskError: an unknown key, or a change where media go by name.
        TargetError: an unknown target, or one of another form.
        PolicyError: a root that is no directory.
    """

    def __init__(self, media: Task | Mapping[str, Any] | None = None, target: str = "vllm") -> None:
        if limits(target).wire != "openai":
            raise TargetError(f"the runner sends OpenAI's form, and {target} has another", "use vllm or openai")
        task = media if isinstance(media, Task) else load_task({"media": dict(media or {})})
        self._media = TaskMedia(task, target)
        self._write = writer_for(target, text_payload, self._media.read)

    @property
    def mode(self) -> str:
        """How media go: ``inline``, ``file``, ``url`` or ``keep``."""
        return self._media.reader.mode

    def read(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts with their media read; what goes by name keeps its name.

        Raises:
            MMPromptError: a medium that cannot be read, or that the policy does not allow.
        """
        try:
            return [self._media.read(part) if type(part) is MediaRef else part for part in parts]
        except UnreadError as unread:
            raise unread.error from None

    def messages(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return the messages as plain data.

        Raises:
            MMPromptError: a medium that cannot be read, or that the target does not take.
        """
        try:
            written: list[dict[str, Any]] = self._write(messages)
        except UnreadError as unread:
            raise unread.error from None
        return written

    def content(self, parts: Iterable[Part]) -> str | list[dict[str, Any]]:
        """Return the content of one message: text where it is one text alone, else content parts in order."""
        content: str | list[dict[str, Any]] = self.messages([Message("user", parts)])[0]["content"]
        return content
