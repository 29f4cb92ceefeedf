"""The request builder for runners that assemble messages themselves, with what a runner needs beyond ``render``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mmprompt.errors import TaskError
from mmprompt.messages import Message
from mmprompt.render.builder import RequestBuilder
from mmprompt.targets.json_values import JSONObject, JSONValue
from mmprompt.targets.limits import require_chat_target
from mmprompt.targets.wire_json import with_text
from mmprompt.tasks.load import load_task
from mmprompt.tasks.media import task_policy
from mmprompt.tasks.task import Task

MediaSection = Mapping[str, JSONValue]
"""The ``media`` section of a task file: ``roots``, ``mode``, ``max_side`` …"""


class RunnerBuilder(RequestBuilder):
    """Builds requests in OpenAI's form for a runner. It never drops in-context examples: the runner counts them.

    ``media`` is a task, or only its ``media`` section. ``roots`` are further folders that media may lie in.
    ``opens_paths`` is the name of a runner that opens paths itself;
    media must not go to it by path.
    """

    def __init__(
        self,
        media: Task | MediaSection | None = None,
        target: str = "vllm",
        *,
        roots: Sequence[str] = (),
        opens_paths: str = "",
    ) -> None:
        require_chat_target(target, "the runner")
        task = media if isinstance(media, Task) else load_task({"media": dict(media or {})})
        super().__init__(task, target, policy=task_policy(task, roots=roots) if roots else None, bounded=False)
        mode = self.media.reader.mode
        if opens_paths and mode in ("file", "keep"):
            raise TaskError(f"media mode '{mode}', and {opens_paths} opens paths itself", "use 'inline' or 'url'")

    def messages(self, messages: Iterable[Message]) -> list[JSONObject]:
        """Return messages as plain data, their media read and changed."""
        return [{key: with_text(value) for key, value in wire.items()} for wire in self.write(list(messages))]
