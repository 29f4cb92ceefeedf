"""Messages on their way to a server that somebody else calls: media read under a policy, then written for a target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mmprompt.errors import TargetError, TaskError
from mmprompt.messages import MediaRef, Message, Part
from mmprompt.targets.limits import limits
from mmprompt.targets.part_writer import text_payload
from mmprompt.targets.records import writer_for
from mmprompt.tasks.load import load_task
from mmprompt.tasks.media import TaskMedia, UnreadError
from mmprompt.tasks.task import Task


class MessageWriter:
    """Reads what prompts name and writes it in OpenAI's form; safe to share between threads.

    Args:
        media: a task, whose ``media`` section and datasets say what may be read; or such a section alone.
        target: ``"vllm"``, ``"openai"`` or a user's own of that form.
        opener: the name of a runner that would open paths on their way, so that none may go by name.

    Raises:
        TaskError: an unknown key, or a change where media go by name.
        TargetError: an unknown target, or one of another form.
        PolicyError: a root that is no directory.
    """

    def __init__(
        self, media: Task | Mapping[str, Any] | None = None, target: str = "vllm", *, opener: str = ""
    ) -> None:
        if limits(target).wire != "openai":
            raise TargetError(f"the runner sends OpenAI's form, and {target} has another", "use vllm or openai")
        task = media if isinstance(media, Task) else load_task({"media": dict(media or {})})
        self._media = TaskMedia(task, target)
        if opener and self._media.reader.mode in ("file", "keep"):
            what = f"media mode '{self._media.reader.mode}', and {opener} opens paths itself"
            raise TaskError(what, "use 'inline' or 'url'")
        self._write = writer_for(target, text_payload, self._media.read)

    def read(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts with their media read; what goes by name keeps its name.

        Raises:
            MMPromptError: a medium that cannot be read, or that the policy does not allow.
        """
        try:
            return [self._media.read(part) if type(part) is MediaRef else part for part in parts]
        except UnreadError as unread:
            raise unread.error from None

    def received(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages of a chat row with the media that came with their bytes checked; see ``TaskMedia``."""
        return self._media.received(tuple(messages))

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


class CountedMessage(dict[str, Any]):
    """A message as plain data whose ``str()`` is its text, so that a runner that counts its tokens counts no base64."""

    def __str__(self) -> str:
        """Return the texts joined without a separator."""
        content = self.get("content") or ""
        if isinstance(content, str):
            return content
        return "".join([part["text"] for part in content if part.get("type") == "text"])


def refuse_dropped(
    messages: list[dict[str, Any]], runner: str, roles: Collection[str], part_keys: Mapping[str, Collection[str]]
) -> list[dict[str, Any]]:
    """Return the messages, or refuse what a runner's own client would leave out of them.

    ``roles`` are those it sends, ``part_keys`` what it keeps of the content parts of a type, where it drops keys.

    Raises:
        TargetError: a role or key that it does not send.
    """
    for number, message in enumerate(messages, start=1):
        if message["role"] not in roles:
            what = f"message {number}: {runner} sends no role '{message['role']}'"
            raise TargetError(what, f"it sends {', '.join(roles)}")
        for part in message["content"] if isinstance(message["content"], list) else ():
            for key in part:
                if key not in part_keys.get(part["type"], part):
                    what = f"message {number}: {runner} drops '{key}' of a {part['type']} part"
                    raise TargetError(what, "leave it out, or use another runner")
    return messages
