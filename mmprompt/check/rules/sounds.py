"""Rules on sounds."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import CheckedMedium, Hit, medium_rule
from mmprompt.media.audio.reading import SILENCE
from mmprompt.media.inspection import AudioContent

_CUT_SECONDS = 0.5
"""Encoders pad sound by some milliseconds, and headers round: a shorter difference means nothing."""

_SHORT_SECONDS = 0.1
"""A spoken syllable takes longer."""

_LOW_RATE = 8000
"""Samples a second: the telephone's. Speech models are trained on 16,000."""

_CLIPPED = 0.001
"""The share of samples in tops cut off from which on clipping is heard. A loud recording has some now and then."""


def _sound(medium: CheckedMedium) -> AudioContent | None:
    return medium.content if isinstance(medium.content, AudioContent) else None


@medium_rule("MM401", "audio")
def truncated(medium: CheckedMedium) -> Iterator[Hit]:
    """The header declares more sound than there is, or places cannot be decoded."""
    sound = _sound(medium)
    if sound is None:
        return
    if sound.broken:
        what = f"{medium.name} has {sound.broken} damaged place{'s' * (sound.broken > 1)}"
        yield Hit(f"{what} that cannot be decoded", "fetch or encode it again")
    if sound.declared is not None and sound.declared - sound.seconds > _CUT_SECONDS:
        what = f"the header of {medium.name} declares {sound.declared:.2f} s, and {sound.seconds:.2f} s are there"
        yield Hit(what, "fetch it again: it may be cut")


@medium_rule("MM402", "audio")
def empty(medium: CheckedMedium) -> Iterator[Hit]:
    """The file has a header and no sample."""
    sound = _sound(medium)
    if sound is not None and sound.seconds == 0:
        yield Hit(f"{medium.name} has no samples", "give the sound itself, or drop the row")


@medium_rule("MM403", "audio")
def silent(medium: CheckedMedium) -> Iterator[Hit]:
    """Nothing can be heard."""
    sound = _sound(medium)
    if sound is not None and sound.seconds and sound.peak < SILENCE and not sound.has_nan:
        yield Hit(f"{medium.name} is silent: {sound.seconds:.1f} s below -80 dB", "record it again, or drop the row")


@medium_rule("MM404", "audio")
def clipped(medium: CheckedMedium) -> Iterator[Hit]:
    """Many samples are at full scale: the recording was too loud."""
    sound = _sound(medium)
    if sound is not None and sound.clipped > _CLIPPED:
        yield Hit(f"{medium.name} is clipped: {sound.clipped:.1%} of its samples are at full scale", "record it lower")


@medium_rule("MM407", "audio")
def very_short(medium: CheckedMedium) -> Iterator[Hit]:
    """The sound ends before anything can be heard."""
    sound = _sound(medium)
    if sound is not None and 0 < sound.seconds < _SHORT_SECONDS:
        yield Hit(f"{medium.name} lasts {sound.seconds * 1000:.0f} ms", "give the whole sound, or drop the row")


@medium_rule("MM408", "audio")
def low_rate(medium: CheckedMedium) -> Iterator[Hit]:
    """Fewer samples a second than the telephone has."""
    sound = _sound(medium)
    if sound is not None and sound.rate < _LOW_RATE:
        yield Hit(f"{medium.name} has {sound.rate} samples a second", f"give at least {_LOW_RATE}")


@medium_rule("MM409", "audio")
def silent_channel(medium: CheckedMedium) -> Iterator[Hit]:
    """One channel has nothing; mixing to mono halves the other."""
    sound = _sound(medium)
    if sound is not None and 0 < len(sound.silent_channels) < sound.channels:
        numbers = ", ".join(map(str, sound.silent_channels))
        what = f"channel {numbers} of the {sound.channels} channels of {medium.name} is silent"
        yield Hit(what, "keep the other channels only")


@medium_rule("MM410", "audio")
def not_finite(medium: CheckedMedium) -> Iterator[Hit]:
    """A float file holds NaN or infinity."""
    sound = _sound(medium)
    if sound is not None and sound.has_nan:
        yield Hit(f"{medium.name} holds samples that are not finite", "put 0 in their place")
