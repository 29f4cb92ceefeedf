"""Messages that a runner has assembled itself: their media read and written in OpenAI's form, as in ``render``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mmprompt.datasets.sample import Sample
from mmprompt.errors import TargetError, TaskError
from mmprompt.messages import MediaRef, Message, Part
from mmprompt.render.builder import FailedRow, RequestBuilder
from mmprompt.targets.limits import require_chat_target
from mmprompt.targets.wire_json import with_text
from mmprompt.tasks.load import load_task
from mmprompt.tasks.task import Task


class MessageWriter:
    """Reads the media that prompts name, and writes OpenAI's form. Safe to share between threads.

    Args:
        media: a task, or the ``media`` section of one alone: what may be read and how.
        target: ``"vllm"``, ``"openai"`` or a user's own of that form.
        runner_opens_paths: the name of a runner that would open paths itself, so that no medium may go by its path.

    Raises:
        TaskError: an unknown key, or a change of media that go by name.
        TargetError: an unknown target, or one of another form.
        PolicyError: a root is no folder.
    """

    def __init__(
        self, media: Task | Mapping[str, Any] | None = None, target: str = "vllm", *, runner_opens_paths: str = ""
    ) -> None:
        require_chat_target(target, "the runner")
        task = media if isinstance(media, Task) else load_task({"media": dict(media or {})})
        self.builder = RequestBuilder(task, target, bounded=False)
        mode = self.builder.media.reader.mode
        if runner_opens_paths and mode in ("file", "keep"):
            what = f"media mode '{mode}', and {runner_opens_paths} opens paths itself"
            raise TaskError(what, "use 'inline' or 'url'")

    def read(self, parts: Iterable[Part]) -> list[Part]:
        """Return the parts with their media read; what goes by name keeps its name.

        Raises:
            MMPromptError: a medium cannot be read, or the policy does not allow it.
        """
        return [self.builder.media.read(part) if type(part) is MediaRef else part for part in parts]

    def messages(self, messages: Iterable[Message]) -> Any:
        """Return the messages as plain data.

        Raises:
            MMPromptError: a medium cannot be read, or the target does not take it.
        """
        written: Any = with_text(self.builder.write(list(messages)))
        return written

    def content(self, parts: Iterable[Part]) -> str | list[dict[str, Any]]:
        """Return the content of one message: text where it is one text alone, else content parts in order."""
        content: str | list[dict[str, Any]] = self.messages([Message("user", parts)])[0]["content"]
        return content

    def requests(self, sample: Sample) -> Any:
        """Return the messages of each request of a sample of the task.

        Raises:
            MMPromptError: the row cannot be sent, with its place.
        """
        made = self.builder.prepare(sample)
        if isinstance(made, FailedRow):
            raise made.error
        written: Any = [with_text(request.wire) for request in made.requests]
        return written


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
