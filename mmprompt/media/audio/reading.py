"""Reads sound within a policy: facts from the header, samples, and measures of the samples.

The declared length is checked before anything is decoded, and decoded samples are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.audio.facts import AudioFacts
from mmprompt.media.audio.readers import BLOCK, SoundReader, open_sound
from mmprompt.media.ffmpeg import Watch
from mmprompt.media.inspection import AudioContent
from mmprompt.media.policy import MediaPolicy, limit_error

if TYPE_CHECKING:
    import numpy as np

    from mmprompt.media.audio.facts import Samples

DECODED = 8
"""Decoded sound may take this many times ``max_bytes``: 512 MiB by default, 25 minutes of stereo at 44.1 kHz."""


def check_decoded(samples: int, policy: MediaPolicy) -> None:
    """Refuse more samples, of all channels together, than decoded sound may have. A sample takes four bytes."""
    if samples * 4 > DECODED * policy.max_bytes:
        raise PolicyError(
            f"the decoded sound takes more than {DECODED} x max_bytes ({policy.max_bytes})",
            "raise max_bytes to allow it, or keep fewer seconds",
            code="MM211",
        )


FULL_SCALE = 32767 / 32768
"""From here on a sample is at full scale: the highest of 16 bits."""

SILENCE = 1e-4
"""A sound that stays below this, -80 dB of full scale, is silent."""


class Sound(NamedTuple):
    """Decoded sound: float32 samples (frames, channels), full scale at 1, and samples a second.

    The samples may hold NaN or infinity where a float file does. ``broken`` counts the places that could not be
    decoded; ``more`` is true if the file goes on after the samples.
    """

    samples: Samples
    rate: int
    broken: int = 0
    more: bool = False


def audio_facts(data: bytes, policy: MediaPolicy) -> AudioFacts:
    """Return the facts of a sound file from its header; no sample is decoded.

    The sound of a video file (MP4, WebM, Matroska, QuickTime, AVI, MPEG) is that of its first sound track.

    Raises:
        SourceError: the bytes are not sound, no decoder reads them, or they declare a rate outside 4 to 384 kHz or
            more than 8 channels.
        PolicyError: more than ``max_bytes``, or declared to last longer than ``max_seconds``.
    """
    with closing(_open(data, policy)) as reader:
        return reader.facts


def decode_audio(data: bytes, policy: MediaPolicy, *, start: float = 0.0, seconds: float | None = None) -> Sound:
    """Return the samples of a sound file.

    Args:
        data: the bytes of the file.
        policy: its ``max_bytes``, ``max_seconds`` and ``timeout`` hold; the samples may take 8 times ``max_bytes``.
        start: seconds to leave out at the beginning, rounded to the nearest frame.
        seconds: the most seconds to keep, rounded the same way; all by default.

    Raises:
        SourceError: as ``audio_facts``, nothing can be decoded, or nothing is left after ``start``.
        PolicyError: a limit of the policy; see ``policy``.
    """
    with closing(_open(data, policy)) as reader:
        facts = reader.facts
        room = _Room(policy, start, seconds)
        room.expect(facts)
        for block in _walk(reader, policy):
            if reader.facts is not facts:  # the true rate came with the first block
                facts = reader.facts
                room.expect(facts)
            if room.add(block):
                break
        broken = reader.broken
    if not room.passed:
        raise SourceError(f"nothing of the {facts.container} sound can be decoded", "encode it again", code="MM400")
    if not room.count:
        raise SourceError(f"nothing is left of the sound after {start:g} s", "choose an earlier start", code="MM402")
    return Sound(room.samples[: room.count], facts.rate, broken, room.more)


def inspect_audio(data: bytes, policy: MediaPolicy) -> AudioContent:
    """Decode a sound, block by block, and return what it holds; see ``inspect``."""
    with closing(_open(data, policy)) as reader:
        frames, clipped, has_nan, peaks = _measured(_walk(reader, policy))
        container, codec, rate, channels, declared = reader.facts  # the true rate may come with the first block
        silent = tuple([int(at) + 1 for at in (peaks < SILENCE).nonzero()[0]])
        return AudioContent(
            container, codec, rate, channels, frames / rate, declared,
            float(peaks.max(initial=0.0)), clipped, has_nan, silent, reader.broken,
        )  # fmt: skip


def _open(data: bytes, policy: MediaPolicy) -> SoundReader:
    if len(data) > policy.max_bytes:
        raise limit_error(
            f"the sound has {len(data)} bytes, more than max_bytes ({policy.max_bytes})", "max_bytes", "MM211"
        )
    reader = open_sound(data, policy)
    declared = reader.facts.seconds
    if declared is not None and policy.max_seconds is not None and declared > policy.max_seconds:
        reader.close()
        raise _too_long(policy)
    return reader


def _too_long(policy: MediaPolicy) -> PolicyError:
    return limit_error(f"the sound lasts longer than max_seconds ({policy.max_seconds:g})", "max_seconds", "MM405")


def _walk(reader: SoundReader, policy: MediaPolicy) -> Iterator[Samples]:
    """Yield the blocks of a reader; raise an error when they exceed the policy."""
    count = 0
    for block in reader.blocks(Watch(policy, "the sound")):
        count += len(block)
        if policy.max_seconds is None:
            check_decoded(count * reader.facts.channels, policy)
        elif count > policy.max_seconds * reader.facts.rate:
            raise _too_long(policy)
        yield block


class _Room:
    """Memory for the kept samples: as large as the header declares, larger only when more samples come."""

    samples: Samples

    def __init__(self, policy: MediaPolicy, start: float, seconds: float | None) -> None:
        self.passed = self.count = 0
        self.more = False
        self._start, self._seconds = start, seconds
        self._skip, self._most = 0, None if seconds is None else 0
        self._policy = policy

    def expect(self, facts: AudioFacts) -> None:
        """Make room for the wanted part of the declared samples, or refuse it."""
        import numpy as np  # noqa: PLC0415  # heavy

        self._skip = round(self._start * facts.rate)
        expected = BLOCK if facts.seconds is None else max(0, round(facts.seconds * facts.rate) - self._skip)
        if self._seconds is not None:
            self._most = round(self._seconds * facts.rate)
            expected = min(expected, self._most)
        check_decoded(expected * facts.channels, self._policy)
        self.samples = np.empty((expected, facts.channels), np.float32)

    def add(self, block: Samples) -> bool:
        """Keep the wanted part of the next block; return True if nothing after it is wanted."""
        import numpy as np  # noqa: PLC0415  # heavy

        left_out = min(len(block), max(0, self._skip - self.passed))
        self.passed += len(block)
        block = block[left_out:]
        if self._most is not None and self.count + len(block) > self._most:
            block = block[: self._most - self.count]
            self.more = True
        end = self.count + len(block)
        if end > len(self.samples):
            check_decoded(end * block.shape[1], self._policy)
            larger = np.empty((max(end, 2 * len(self.samples)), block.shape[1]), np.float32)
            larger[: self.count] = self.samples[: self.count]
            self.samples = larger
        self.samples[self.count : end] = block
        self.count = end
        return self.more


def _in_tops(full: np.ndarray[Any, Any]) -> int:
    """Return how many samples stand in tops that are cut off: three or more at full scale, one after the other.

    The peaks of a wave that only reaches full scale are shorter.
    """
    middle = full[:-2] & full[1:-1] & full[2:]
    tops = full & False
    for at in range(3):
        tops[at : len(middle) + at] |= middle
    return int(tops.sum())


def _measured(blocks: Iterable[Samples]) -> tuple[int, float, bool, np.ndarray[Any, Any]]:
    """Return the number of frames, the share of clipped samples, whether any is not finite, and each channel's peak."""
    import numpy as np  # noqa: PLC0415  # heavy

    frames = samples = clipped = 0
    peaks, has_nan = np.zeros(0, np.float32), False
    for block in blocks:
        frames += len(block)
        samples += block.size
        levels = np.abs(block)
        highest = float(levels.max(initial=0.0))
        if not np.isfinite(highest):
            has_nan = True
            levels = np.where(np.isfinite(levels), levels, 0)
            highest = float(levels.max(initial=0.0))
        of_block = levels.max(axis=0, initial=0.0)
        peaks = np.maximum(peaks, of_block) if len(peaks) else of_block
        if highest >= FULL_SCALE:
            clipped += _in_tops(levels >= FULL_SCALE)
    return frames, clipped / samples if samples else 0.0, has_nan, peaks
