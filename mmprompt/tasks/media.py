"""The media of a task: which may be read, how they are read, and the changes that the task or its caller asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, SourceError, TargetError, TaskError
from mmprompt.media.changes import Changes, changes_of
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader
from mmprompt.media.request_reader import RequestReader
from mmprompt.media.sources import in_folder
from mmprompt.messages import MediaPart, MediaRef, Message, Part, TextPart
from mmprompt.targets.limits import limits
from mmprompt.tasks.grants import Grants, is_tighter
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    from mmprompt.media.cache.cache import MediaCache
    from mmprompt.targets.fitting import MediaChanger

_NOTHING = Changes()
_INSTEAD = {"fps": ("key_frames", "times", "sound_track"), "frames": ("times", "sound_track")}
"""The task's settings that a caller's ``fps`` or ``frames`` replaces, because they exclude each other."""


class TaskMedia:
    """Reads media for one target, and changes them as asked. Safe to share between threads.

    The ``media`` section of the task sets the mode, the policy and the changes that are not given here. The arguments
    are those of ``MediaReader`` and ``MediaChanger``.
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
        self.reader = MediaReader(policy or task.policy or task_policy(task), mode or task.media["mode"])
        asked = task_changes(task) if changes is None else changes
        if self.reader.policy.fetch and self.reader.mode != "inline":
            raise TaskError(
                f"fetching with media mode {self.reader.mode}", "use --media inline: fetched media go inline"
            )
        self._splits = limits(target).frames_as_images
        self._changer: MediaChanger | None = None
        if asked == _NOTHING:
            return
        if self.reader.mode != "inline":
            raise TaskError(
                f"{_named(asked)} with media mode {self.reader.mode}",
                "pass --media inline, or ask for no change: media that go by name cannot be changed",
            )
        from mmprompt.targets.fitting import MediaChanger  # noqa: PLC0415  # loads with the first change

        self._changer = MediaChanger(self.reader.policy, asked, target, cache)

    @property
    def decodes(self) -> bool:
        """Whether media are changed, and therefore decoded."""
        return self._changer is not None

    @property
    def reading(self) -> Callable[[MediaRef], MediaPart | MediaRef]:
        """The function that reads a medium: ``read``, or that of the reader if nothing is changed."""
        return self.reader.read if self._changer is None else self.read

    def read(self, ref: MediaRef) -> MediaPart | MediaRef:
        """Return a medium, read and changed, or with the name that is sent."""
        part = self.reader.read(ref)
        return part if self._changer is None or type(part) is not MediaPart else self._changer.change(part)

    def in_place(self, messages: Iterable[Message]) -> list[Message]:
        """Return messages with their media read, for a string that has one placeholder for each.

        Raises:
            MMPromptError: a medium cannot be read or changed, or is a video that would be sent as frames or sound, for
                which the string has no placeholder; with the numbers of message and part.
        """
        request = self.reader.request(self.read)
        placed = []
        for number, message in enumerate(messages, 1):
            parts: list[Part] = []
            for place, part in enumerate(message.parts, 1):
                try:
                    parts.append(self._placed(part, request))
                except MMPromptError as error:
                    raise error.located(message=number, part=place) from None
            placed.append(message._replace(parts=tuple(parts)))
        return placed

    def _placed(self, part: Part, request: RequestReader) -> Part:
        read = request.part(part)
        if isinstance(read, TextPart) or isinstance(part, TextPart):
            return part
        sent = "images" if isinstance(read, MediaPart) and read.frames and self._splits else read.modality
        if sent != part.modality:
            what = f"the string holds a placeholder of {part.modality}, and {sent} would go in its place"
            raise TargetError(what, "use --emit messages")
        return read

    def received(self, messages: tuple[Message, ...], *, change: bool = True) -> tuple[Message, ...]:
        """Return the messages of a chat row with the media that came with their bytes checked, and changed as asked.

        Without ``change`` they are checked only.

        Raises:
            SourceError: the mode sends names, and such a medium has none.
            PolicyError: a medium is longer than ``max_bytes``.
            MMPromptError: a medium cannot be changed.
        """
        held = [part for message in messages for part in message.parts if type(part) is MediaPart]
        if held:
            self.reader.check_size(held)
            if self.reader.mode in ("file", "url"):
                what = f"the chat holds {held[0].modality} as bytes, and media mode {self.reader.mode} sends names"
                raise SourceError(what, "use --media inline or keep, or name a file")
        return messages if self._changer is None or not change else tuple(self._changer.change_all(messages))

    def close(self) -> None:
        """End the child processes of an isolating policy."""
        if self._changer is not None:
            self._changer.close()


def in_own_folder(messages: list[Message], sample: Sample) -> list[Message]:
    """Return messages whose paths begin at the folder of the sample, if it has its own."""
    folder = sample.folder
    if folder is None:
        return messages

    def placed(part: Part) -> Part:
        return part._replace(source=in_folder(part.source, folder)) if isinstance(part, MediaRef) else part

    return [message._replace(parts=tuple(map(placed, message.parts))) for message in messages]


def _named(asked: Changes) -> str:
    """Return the names of the changes that are asked for, as in a task file."""
    names = [name for name, value in asked._asdict().items() if value != getattr(_NOTHING, name)]
    return ", ".join("image_mode" if name == "mode" else name for name in names)


def task_changes(task: Task, **given: object) -> Changes:
    """Return the changes that a task asks for; those ``given`` that are not None replace them.

    A ``given`` way of choosing frames takes the place of the task's ways that do not go with it.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    replaced = {own for name in wanted for own in _INSTEAD.get(name, ())}
    return changes_of({**{k: v for k, v in task.media["changes"].items() if k not in replaced}, **wanted})


def granted_policy(task: Task, grants: Grants) -> MediaPolicy:
    """Return the policy of a task with what the caller grants; errors as in ``task_policy``."""
    preset, roots, fetch, domains, formats = grants[:5]
    return task_policy(task, preset=preset, roots=roots, fetch=fetch, allow_domains=domains, read_also=formats)


def task_policy(
    task: Task,
    *,
    preset: str | None = None,
    roots: Iterable[str] = (),
    fetch: bool = False,
    allow_domains: Iterable[str] = (),
    read_also: Iterable[str] = (),
) -> MediaPolicy:
    """Return the policy of a task: its dataset's folder, what its ``media`` section says, and what is given here.

    A ``preset`` given here replaces the task's, and the task's ``read_also`` does not count. The task can then only
    tighten limits; under ``trusted`` it can also loosen those that the preset leaves at their default.

    Raises:
        TaskError: fetching is asked for but no host is allowed, or the reverse.
        PolicyError: an unknown preset, or a host, root or limit that is not valid.
    """
    media = task.media
    hosts = [*media["allow_domains"], *allow_domains]
    fetch = fetch or media["fetch"]
    if fetch and not hosts:
        raise TaskError(
            "fetching is asked for, but no host is allowed", "name each with --allow-domain HOST (allow_domains)"
        )
    if hosts and not fetch:
        raise TaskError("hosts are allowed, but fetching is not asked for", "add --fetch (fetch: true)")
    examples = task.train if task.assembly is not None and task.assembly.needs_examples else None
    own = [root for d in (task.dataset, examples) if d is not None for root in d.roots]
    folders = [*dict.fromkeys(own), *media["roots"], *roots]
    if preset is None:
        name, formats, limits_set = media["policy"], [*media["read_also"], *read_also], media["limits"]
    else:
        most, least = MediaPolicy.preset(preset), MediaPolicy()
        name, formats = preset, list(read_also)
        free = [k for k in media["limits"] if preset == "trusted" and getattr(most, k) == getattr(least, k)]
        limits_set = {k: v for k, v in media["limits"].items() if k in free or is_tighter(k, v, getattr(most, k))}
    return MediaPolicy.preset(
        name, folders, allow_domains=hosts, fetch=fetch, read_also=dict.fromkeys(formats), **limits_set
    )
