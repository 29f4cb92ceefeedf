"""The request builder for runners that assemble messages themselves, with what a runner needs beyond ``render``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.messages import Message
from mmprompt.plugins.bridge.requests import MediaRoot, folders_of
from mmprompt.render.builder import RequestBuilder
from mmprompt.targets.json_values import JSONObject, JSONValue
from mmprompt.targets.limits import limits, require_chat_target
from mmprompt.targets.wire_json import with_text
from mmprompt.tasks.config import CHANGE_KEYS
from mmprompt.tasks.grants import Grants
from mmprompt.tasks.load import load_task
from mmprompt.tasks.media import granted_policy, task_changes
from mmprompt.tasks.task import Task

MediaSection = Mapping[str, JSONValue]
"""The ``media`` section of a task file: ``roots``, ``mode``, ``max_side`` …"""

_GRANTS = ("roots", "policy", "fetch", "allow_domains", "read_also")


def config_grants(media: MediaSection | None, media_root: MediaRoot = None) -> Grants:
    """Return what a runner's config allows a task file, by ``media=dict(…)`` and ``media_root=``.

    Raises:
        TaskError: a key of ``media`` is the task file's own.
    """
    given = dict(media or {})
    for key in given.keys() - {*_GRANTS, *CHANGE_KEYS}:
        hint = nearest(key, (*_GRANTS, *CHANGE_KEYS))
        raise TaskError(f"media of a task file takes no {shown(key)} from a config", hint)
    checked = load_task({"media": given}).media
    roots = (*checked["roots"], *folders_of(media_root))
    preset = checked["policy"] if "policy" in given else None
    return Grants(preset, roots, checked["fetch"], tuple(checked["allow_domains"]), tuple(checked["read_also"]))


class RunnerBuilder(RequestBuilder):
    """Builds requests in OpenAI's form for a runner. It never drops in-context examples: the runner counts them.

    ``media`` is a task, or only its ``media`` section. ``grants`` is what a config allows a task file, and ``changes``
    are the config's changes of its media. ``opens_paths`` is the name of a runner that opens paths itself; media must
    not go to it by path. ``wires`` are the wire forms that the runner's models take.
    """

    def __init__(
        self,
        media: Task | MediaSection | None = None,
        target: str = "vllm",
        *,
        grants: Grants | None = None,
        changes: MediaSection | None = None,
        opens_paths: str = "",
        wires: Collection[str] = ("openai",),
    ) -> None:
        if limits(target).wire not in wires:
            require_chat_target(target, "the runner")
        task = media if isinstance(media, Task) else load_task({"media": dict(media or {})})
        policy = None if grants is None else granted_policy(task, grants)
        wanted = {CHANGE_KEYS[key]: value for key, value in (changes or {}).items() if key in CHANGE_KEYS}
        super().__init__(
            task, target, policy=policy, changes=task_changes(task, **wanted) if wanted else None, bounded=False
        )
        mode = self.media.reader.mode
        if opens_paths and mode in ("file", "keep"):
            raise TaskError(f"media mode '{mode}', and {opens_paths} opens paths itself", "use 'inline' or 'url'")

    def messages(self, messages: Iterable[Message]) -> list[JSONObject]:
        """Return messages as plain data, their media read and changed."""
        return listed(self.write(list(messages)))


def listed(wire: Any) -> list[JSONObject]:
    """Return what a target writes as a list of messages, a system prompt of Anthropic's as the first."""
    written = wire
    if isinstance(wire, Mapping):
        system = wire.get("system") or []
        texts = [system] if isinstance(system, str) else [block["text"] for block in system]
        written = [*([{"role": "system", "content": "\n".join(texts)}] if texts else ()), *wire["messages"]]
    return [{key: with_text(value) for key, value in message.items()} for message in written]
