"""The media of a task: what may be read, and each medium read, then changed as the task or its caller asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mmprompt.errors import MMPromptError, TaskError
from mmprompt.media.cache import MediaCache
from mmprompt.media.changes import Changes, Room, changes_of
from mmprompt.media.engine import MediaEngine
from mmprompt.media.media_types import VIDEO_FRAMES
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.read import MediaReader
from mmprompt.parts import MediaPart, MediaRef, Message
from mmprompt.targets.limits import limits, room_of
from mmprompt.task_config import POLICY_KEYS
from mmprompt.tasks import Task

_NOTHING = Changes()
_CHOICES = ("frames", "fps", "key_frames", "times")
"""The changes that make a video into frames."""
_INSTEAD = {"fps": ("key_frames", "times"), "frames": ("times",)}
"""What cannot stand beside a choice of frames, so that the caller's choice takes its place."""
KEPT = 64 << 20
"""How much of what was made is kept in memory by default: pictures that come again, not the whole run."""


class UnreadError(Exception):
    """A medium that could not be read or changed: its source, and the error to tell."""

    def __init__(self, source: object, error: MMPromptError) -> None:
        super().__init__(str(error))
        self.source = source
        self.error = error


class TaskMedia:
    """Reads media for one target, and changes them as asked. Safe to share between threads.

    Args:
        task: its ``media`` section says the mode, the policy and the changes, where they are not given here.
        target: what the media have to fit, if ``fit`` is asked for.
        mode: as in ``MediaReader``.
        policy: what may be read.
        changes: what is asked for.
        cache: keeps what was made; by default some of it in memory.

    Raises:
        TaskError: a change in a mode in which media go by name.
        TargetError: an unknown target.
        PolicyError: a root that is no directory.
    """

    def __init__(
        self,
        task: Task,
        target: str,
        *,
        mode: str | None = None,
        policy: MediaPolicy | None = None,
        changes: Changes | None = None,
        cache: MediaCache | None = None,
    ) -> None:
        self.reader = MediaReader(policy or task_policy(task), mode or task.media.get("mode", "inline"))
        asked = task_changes(task) if changes is None else changes
        if self.reader.policy.fetch and self.reader.mode != "inline":
            raise TaskError(f"fetching with media mode {self.reader.mode}", "what is fetched goes inline")
        self._engine: MediaEngine | None = None
        self._rooms: dict[str, Room] = {}
        self._frames_room: Room | None = None  # where the frames of a video go as pictures
        self._takes_frames = any(getattr(asked, name) for name in _CHOICES)
        if asked == _NOTHING:
            return
        if self.reader.mode != "inline":
            raise TaskError(
                f"{_named(asked)} with media mode {self.reader.mode}",
                "media that go by name cannot be changed; send them inline, or ask for no change",
            )
        self._engine = MediaEngine(self.reader.policy, asked, MediaCache(KEPT) if cache is None else cache)
        if asked.fit:
            self._rooms = {modality: room_of(target, modality) for modality in limits(target).modalities}
            video = self._rooms.get("video")
            if "image" in self._rooms and (video is None or VIDEO_FRAMES not in video.formats):
                self._frames_room = self._rooms["image"]

    @property
    def reading(self) -> Callable[[MediaRef], MediaPart | MediaRef]:
        """What reads: ``read``, or the reader itself where a medium can be read again at no cost but time."""
        return self.reader.read if self._engine is None and not self.reader.policy.fetch else self.read

    def read(self, ref: MediaRef) -> MediaPart | MediaRef:
        """Return a medium read and changed, or with the name that goes on the wire.

        Raises:
            UnreadError: it cannot be; with its source, so that it need not be read again to find where it stands.
        """
        try:
            part = self.reader.read(ref)
            return part if self._engine is None or type(part) is not MediaPart else self._changed(part)
        except MMPromptError as error:
            raise UnreadError(ref.source, error) from None

    def received(self, messages: tuple[Message, ...], *, change: bool = True) -> list[Message]:
        """Return the messages of a chat row with the media that came with their bytes checked, and changed as asked.

        Without ``change`` they are checked only.

        Raises:
            PolicyError: one is longer than ``max_bytes``.
            MMPromptError: one cannot be changed.
        """
        self.reader.check_size(messages)
        if self._engine is None or not change:
            return list(messages)
        return [
            message._replace(parts=tuple([self._changed(p) if type(p) is MediaPart else p for p in message.parts]))
            for message in messages
        ]

    def _changed(self, part: MediaPart) -> MediaPart:
        if self._engine is None:
            return part
        room = self._rooms.get(part.modality)
        if part.modality == "video" and (part.frames or self._takes_frames):
            room = self._frames_room or room
        return self._engine.change(part, room)

    def close(self) -> None:
        """End the child processes of an isolating policy."""
        if self._engine is not None:
            self._engine.close()


def _named(asked: Changes) -> str:
    """Return the names of the changes that are asked for, as a task file writes them."""
    names = [name for name, value in asked._asdict().items() if value != getattr(_NOTHING, name)]
    return ", ".join("image_mode" if name == "mode" else name for name in names)


def task_changes(task: Task, **given: Any) -> Changes:
    """Return the changes that a task asks for; those ``given`` that are not None take the place of its own.

    A ``given`` way of choosing frames takes the place of the task's ways that do not go with it.

    Raises:
        TaskError: as ``changes_of``.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    replaced = {own for name in wanted for own in _INSTEAD.get(name, ())}
    asked: Mapping[str, Any] = task.media.get("changes", {})
    return changes_of({**{name: value for name, value in asked.items() if name not in replaced}, **wanted})


def task_policy(
    task: Task,
    *,
    preset: str | None = None,
    roots: Iterable[str] = (),
    fetch: bool = False,
    allow_domains: Iterable[str] = (),
) -> MediaPolicy:
    """Return the policy of a task: its dataset's directory, what the task's ``media`` says, and what is given here.

    Raises:
        TaskError: fetching is asked for but no host is allowed, or the reverse.
        PolicyError: a preset, host, root or limit that is none.
    """
    own = [d.root for d in (task.dataset, task.train) if d is not None and d.root is not None]
    named = task.media.get("roots") or ()
    options = {key: task.media[key] for key in POLICY_KEYS if key in task.media}
    hosts = [*task.media.get("allow_domains", ()), *allow_domains]
    fetch = fetch or task.media.get("fetch", False)
    if fetch and not hosts:
        raise TaskError(
            "fetching is asked for, but no host is allowed", "name each with --allow-domain HOST (allow_domains)"
        )
    if hosts and not fetch:
        raise TaskError("hosts are allowed, but fetching is not asked for", "add --fetch (fetch: true)")
    folders = [*dict.fromkeys(own), *([named] if isinstance(named, str) else named), *roots]
    name = (task.media.get("policy") or "default") if preset is None else preset
    return MediaPolicy.preset(name, folders, allow_domains=hosts, fetch=fetch, **options)
