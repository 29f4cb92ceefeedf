"""Changes media as the user asked and the target needs, through a cache and in the sandbox.

A table names the functions of each modality. They are imported when the first medium of that modality is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Union, cast

from mmprompt.errors import SourceError
from mmprompt.media.cache.cache import MediaCache, cache_key
from mmprompt.media.cache.entry import CacheEntry, is_well_formed
from mmprompt.media.changes import Changes, TargetRoom, changes_of
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.decoders import HINT, decoder
from mmprompt.media.sandbox.jobs import function_named
from mmprompt.messages import MediaPart


class Changers(NamedTuple):
    """The functions of one modality, each as ``module:name``.

    They are called as ``change(part, changes, policy)`` and ``fit(part, room, policy)`` and return a part; ``fit`` gets
    the quality as a fourth argument if the user asked for one. ``asked`` names the fields of ``Changes`` that concern
    the modality. ``both(part, changes, policy, room)``, if there is one, changes and fits in one go.
    """

    change: str
    fit: str
    asked: tuple[str, ...]
    both: str = ""


Steps = tuple[tuple[str, Union[Changes, TargetRoom], tuple[Union[int, TargetRoom], ...]], ...]
"""Functions by name, their second argument, and further arguments after the policy."""

_PICTURE = ("upright", "max_pixels", "max_side", "mode", "background", "image_format", "quality")
CHANGERS = {
    "image": Changers(
        "mmprompt.media.image.changes:change_image",
        "mmprompt.media.image.fit:fit_image",
        _PICTURE,
        "mmprompt.media.image.fit:change_to_fit",
    ),
    "audio": Changers(
        "mmprompt.media.audio.changes:change_audio",
        "mmprompt.media.audio.changes:fit_audio",
        ("audio_format", "audio_rate", "mono", "start", "seconds"),
    ),
    "video": Changers(
        "mmprompt.media.video.changes:change_video",
        "mmprompt.media.image.fit:fit_image",  # of single frames; a file is sent as it is
        (*_PICTURE, "frames", "fps", "key_frames", "times", "sound_track"),
    ),
}
_UNASKED = Changes()


class MediaEngine:
    """Changes media under one policy. Threads may share it; it survives a fork; it pickles.

    Cache, child processes and threads do not change the result. Close it to end its child processes; it can be used
    again afterwards.

    Args:
        policy: its limits hold for decoding; ``isolate`` decides where that is done.
        changes: the changes that the user asked for.
        cache: keeps results; without one, nothing is kept.
        memory_bytes: the most memory of a child process, see ``IsolatedDecoder``.
    """

    __slots__ = ("_cache", "_decoder", "_limits", "changes", "policy")

    def __init__(
        self,
        policy: MediaPolicy,
        changes: Changes = _UNASKED,
        cache: MediaCache | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        self.policy = policy
        self.changes = changes_of(changes._asdict())  # checked here once, however they were made
        self._cache = cache
        self._decoder = decoder(policy, memory_bytes)
        # a result under other limits might be an error under these
        names = ("max_bytes", "max_pixels", "max_side_pixels", "max_seconds", "max_frames", "read_also")
        self._limits = tuple(getattr(policy, name) for name in names)

    def __enter__(self) -> MediaEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the idle child processes."""
        self._decoder.close()

    def change(self, part: MediaPart, room: TargetRoom | None = None) -> MediaPart:
        """Return ``part`` changed as asked and, with ``changes.fit``, made to fit ``room``; itself if nothing changes.

        Changes and findings are added to those of the part; form, options, extra keys and origin stay.

        Raises:
            SourceError: the media cannot be decoded, or the decoder crashed or took too much memory or time.
            PolicyError: the media are larger or longer than the policy allows.
            TargetError: they cannot be made to fit.
        """
        changers = CHANGERS.get(part.modality)
        if changers is None:
            return part
        asked = _UNASKED._replace(**{name: getattr(self.changes, name) for name in changers.asked})
        wanted = room if self.changes.fit else None
        if asked == _UNASKED and (wanted is None or surely_fits(part, wanted)):
            return part
        steps = _steps(changers, asked, wanted)
        # the content alone, without what the sample says beside it: the cache knows media by their content
        bare = MediaPart(part.modality, part.media_type, part.data, part.frames)

        def make() -> CacheEntry:
            made = self._decoder.run(make_changes, bare, steps, self.policy)
            if not is_well_formed(made):
                raise SourceError("the decoder returned something that is not a medium", HINT, code="MM902")
            return made

        if self._cache is None:
            return with_kept(part, make())
        return with_kept(part, self._cache.get_or_make(cache_key(bare, steps, self._limits), make))


def _steps(changers: Changers, asked: Changes, room: TargetRoom | None) -> Steps:
    change: Steps = () if asked == _UNASKED else ((changers.change, asked, ()),)
    if room is None:
        return change
    if change and changers.both:
        return ((changers.both, asked, (room,)),)
    quality = () if asked.quality == _UNASKED.quality else (asked.quality,)
    return (*change, (changers.fit, room, quality))


def make_changes(part: MediaPart, steps: Steps, policy: MediaPolicy) -> CacheEntry:
    """Return what the named functions make of ``part``, one after the other. It has no changes or findings yet."""
    made = part
    for name, wanted, more in steps:
        change = cast(Callable[..., MediaPart], function_named(name))
        made = change(made, wanted, policy, *more)
    if made is part:
        return CacheEntry(unchanged=True)
    if (made.media_type, made.data, made.frames) == (part.media_type, part.data, part.frames):
        return CacheEntry(changes=made.changes, findings=made.findings, unchanged=True)
    return CacheEntry(made.media_type, made.data, made.frames, made.changes, made.findings)


def with_kept(part: MediaPart, kept: CacheEntry) -> MediaPart:
    """Return ``part`` with the result of its changes; itself if they changed nothing."""
    changes, findings = part.changes + kept.changes, part.findings + kept.findings
    if not kept.unchanged:
        data, frames = kept.data, kept.frames
        return part._replace(media_type=kept.media_type, data=data, frames=frames, changes=changes, findings=findings)
    if not kept.changes and not kept.findings:
        return part
    return part._replace(changes=changes, findings=findings)


def surely_fits(part: MediaPart, room: TargetRoom) -> bool:
    """True if type and length alone show that ``part`` fits; false if it has to be opened."""
    if part.modality == "video" and not part.frames:
        return True
    if room.max_side is not None or room.max_pixels is not None or part.frames:
        return False
    if part.media_type in room.still:
        return False
    return part.media_type in room.formats and (room.max_bytes is None or len(part.data) <= room.max_bytes)
