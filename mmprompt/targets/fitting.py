"""Media changed as the caller asks, and to fit a target: frames of a video, smaller pictures, other formats."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

from mmprompt.errors import MMPromptError
from mmprompt.media.cache.cache import MediaCache
from mmprompt.media.changes import Changes, TargetRoom, changes_of
from mmprompt.media.engine import MediaEngine
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart, Message, Part, checked
from mmprompt.targets.limits import limits, target_room

CACHE_BYTES = 64 << 20
"""How many bytes of changed media are kept in memory by default: pictures that come again, not the whole run."""

_FRAME_CHOICES = ("frames", "fps", "key_frames", "times")
"""The changes that turn a video into frames."""


class MediaChanger:
    """Changes media that were read. Safe to share between threads.

    With the change ``fit`` every medium is also made to fit the target. Without a ``cache``, ``CACHE_BYTES`` of changed
    media stay in memory.
    """

    def __init__(self, policy: MediaPolicy, asked: Changes, target: str, cache: MediaCache | None = None) -> None:
        self._engine = MediaEngine(policy, asked, MediaCache(CACHE_BYTES) if cache is None else cache)
        self._takes_frames = any(getattr(asked, name) for name in _FRAME_CHOICES)
        self._takes_sound = asked.sound_track
        self._frames_room: TargetRoom | None = None  # where the frames of a video go as pictures
        known = limits(target)
        self._rooms = {modality: target_room(target, modality) for modality in known.modalities if asked.fit}
        if known.frames_as_images:
            self._frames_room = self._rooms.get("image")

    def change(self, part: MediaPart) -> MediaPart:
        """Return the changed part; see ``MediaEngine.change``.

        A video whose sound track is asked for becomes an audio part without ``form``, ``options`` and ``extra``, which
        the sample gave for the video.
        """
        if part.modality == "video" and self._takes_sound:
            sound = self._engine.change(part)
            part = sound._replace(modality="audio", form="", options=(), extra=())
        room = self._rooms.get(part.modality)
        if part.modality == "video" and (part.frames or self._takes_frames):
            room = self._frames_room or room
        return self._engine.change(part, room)

    def change_all(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages with every ``MediaPart`` changed. A ``MediaRef`` stays as it is.

        Raises:
            MMPromptError: a part cannot be changed. ``where`` has the numbers of its message and part.
        """
        changed = []
        for number, message in enumerate(messages, 1):
            parts: list[Part] = []
            for place, part in enumerate(checked(message).parts, 1):
                try:
                    parts.append(self.change(part) if type(part) is MediaPart else part)
                except MMPromptError as error:
                    raise error.located(message=number, part=place) from None
            changed.append(message._replace(parts=tuple(parts)))
        return changed

    def close(self) -> None:
        """End the child processes of an isolating policy."""
        self._engine.close()


def change_messages(
    messages: Iterable[Message], policy: MediaPolicy | None = None, *, target: str = "vllm", **changes: Any
) -> list[Message]:
    """Return the messages with every ``MediaPart`` changed as asked. A ``MediaRef`` stays as it is.

    Args:
        messages: as ``read_messages`` returns them.
        policy: the limits of decoding, and whether it runs in child processes (``isolate``).
        target: the target that the media have to fit under ``fit=True``.
        changes: the fields of ``Changes`` by name, such as ``max_side=1024``, ``frames=8`` or ``audio_rate=16000``.

    Raises:
        TaskError: an unknown change, or a value that the change does not take.
        MediaError: a medium cannot be decoded, or is larger or longer than the policy allows.
        TargetError: an unknown target, a medium that cannot be made to fit, or something else than a message.
    """
    with closing(MediaChanger(policy or MediaPolicy(), changes_of(changes), target)) as changer:
        return changer.change_all(messages)
