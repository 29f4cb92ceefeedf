"""Opens sound files with soundfile (WAV, FLAC, Ogg) or PyAV (all others, and files that soundfile refuses).

A reader has the facts of the header and yields the samples in blocks. It gets bytes, never a name: each decoder sees a
nameless buffer and one container, chosen by our own check of the first bytes; it has no protocol to open anything else.
soundfile never reads MP3, because its libmpg123 writes about damaged files to the standard error of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Union

from mmprompt.errors import SourceError
from mmprompt.media.audio.av_reader import AvReader
from mmprompt.media.audio.facts import AudioFacts, check_form
from mmprompt.media.audio.wav import declared_frames
from mmprompt.media.ffmpeg import TimedFile, Watch
from mmprompt.media.media_types import FLAC, OGG, WAV, Kind
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.type_check import known_kind

if TYPE_CHECKING:
    from mmprompt.media.audio.facts import Samples

BLOCK = 65536
"""Frames that are read at a time."""

_UNKNOWN_LENGTH = 1 << 62
"""libsndfile reports a number from here on if a header leaves the length open."""


def open_sound(data: bytes, policy: MediaPolicy) -> SoundReader:
    """Return a reader of the sound in ``data``; close it after use.

    Raises:
        SourceError: the bytes are not sound, no decoder reads them, or rate or channels are impossible.
        PolicyError: the time is over.
    """
    kind = known_kind(data, "audio", "give a sound file")
    if not kind.demuxers:
        raise SourceError(f"the sound source is {kind.name}, not a sound", "name a sound file", code="MM213")
    found = _by_soundfile(data, kind, policy) if kind in (WAV, FLAC, OGG) else None
    reader = found or AvReader(data, kind, policy)
    try:
        check_form(reader.facts.rate, reader.facts.channels)
    except SourceError:
        reader.close()
        raise
    return reader


_SOUNDFILE_NAMES = {"mpeg_layer_iii": "mp3", "double": "float_64", "pcm_s8": "pcm_8", "pcm_u8": "pcm_8"}


def _by_soundfile(data: bytes, kind: Kind, policy: MediaPolicy) -> SoundFileReader | None:
    """Return soundfile's reader; None for files that PyAV has to read.

    These are files that libsndfile refuses, whose length it does not know (reading them ends in an error), or that it
    would give to libmpg123.
    """
    import soundfile  # noqa: PLC0415  # heavy

    file = TimedFile(data, policy, "the sound")
    try:
        opened = soundfile.SoundFile(file)
    except soundfile.SoundFileError:
        file.check_time()
        return None
    if opened.subtype.startswith("MPEG") or opened.frames >= _UNKNOWN_LENGTH:
        opened.close()
        return None
    return SoundFileReader(file, kind, policy, opened)


class SoundFileReader:
    """Reads with soundfile. After damage that stops soundfile, PyAV reads the rest.

    ``broken`` counts the places that could not be decoded.
    """

    def __init__(self, file: TimedFile, kind: Kind, policy: MediaPolicy, opened: Any) -> None:
        self.broken = 0
        self._file = file
        self._kind = kind
        self._policy = policy
        self._opened = opened
        rate, subtype = opened.samplerate, opened.subtype.lower()
        frames = declared_frames(file.getvalue()) if kind is WAV else opened.frames
        seconds = None if frames is None else frames / rate
        codec = "flac" if kind is FLAC else _SOUNDFILE_NAMES.get(subtype, subtype)
        self.facts = AudioFacts(kind.name, codec, rate, opened.channels, seconds)

    def blocks(self, watch: Watch) -> Iterator[Samples]:
        """Yield the samples from the beginning, float32 (frames, channels), at most ``BLOCK`` frames at a time."""
        import soundfile  # noqa: PLC0415  # heavy

        given = 0
        while True:
            watch.check_time()
            try:
                block = self._opened.read(BLOCK, dtype="float32", always_2d=True)
            except soundfile.SoundFileError:
                block = None
            self._file.check_time()  # libsndfile takes the end of the time for that of the file
            if block is None:
                break
            if not len(block):
                return
            given += len(block)
            yield block
        self.broken = 1
        yield from self._after(given, watch)

    def _after(self, given: int, watch: Watch) -> Iterator[Samples]:
        """Yield the frames that PyAV can read after the first ``given`` ones."""
        try:
            other = AvReader(self._file.getvalue(), self._kind, self._policy)
        except SourceError:
            return
        with closing(other):
            if other.facts[2:4] != self.facts[2:4]:
                return
            for block in other.blocks(watch):
                skipped = min(given, len(block))
                given -= skipped
                if skipped < len(block):
                    yield block[skipped:]
            self.broken = max(1, other.broken)

    def close(self) -> None:
        """Close the decoder."""
        self._opened.close()


SoundReader = Union[SoundFileReader, AvReader]
