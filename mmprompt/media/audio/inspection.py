"""What a sound holds, from its header and its samples."""

from __future__ import annotations

from mmprompt.media.audio.reading import facts_and_measures
from mmprompt.media.inspection import AudioContent
from mmprompt.media.policy import MediaPolicy


def inspect_audio(data: bytes, policy: MediaPolicy) -> AudioContent:
    """Decode a sound, block by block, and return what it holds; see ``inspect``."""
    facts, found = facts_and_measures(data, policy)
    return AudioContent(
        facts.container, facts.codec, facts.rate, facts.channels, found.seconds, facts.seconds, found.peak,
        found.clipped, found.has_nan, found.silent_channels, found.broken,
    )  # fmt: skip
