"""Sound files opened by soundfile (WAV, FLAC, Ogg) or PyAV (all others, and what soundfile refuses).

A reader knows what the header says and gives the samples in blocks. It gets bytes, never a name: each decoder sees a
buffer without a name, one container that our own look at the first bytes chose, and no protocol to open anything else.
MP3 is never left to soundfile, whose libmpg123 writes about damaged files on the standard error of the process.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from mmprompt.errors import SourceError
from mmprompt.media.audio.tag_lists import without_tags
from mmprompt.media.audio.wav import declared_frames
from mmprompt.media.container.av_files import open_bytes
from mmprompt.media.container.index import check_index
from mmprompt.media.container.matroska import first_tick
from mmprompt.media.container.watch import Watch
from mmprompt.media.media_types import (
    AAC,
    AVI,
    FLAC,
    M4A,
    MATROSKA,
    MP3,
    MP4,
    MPEG,
    MPEG_TS,
    OGG,
    QUICKTIME,
    WAV,
    WEBM,
    Kind,
    describe_unknown,
    mend_unknown,
    sniff,
)
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    import numpy as np
    from av.audio.frame import AudioFrame
    from av.container import InputContainer

    Samples = np.ndarray[Any, np.dtype[np.float32]]

LOWEST_RATE, HIGHEST_RATE = 4000, 384_000
MOST_CHANNELS = 8
BLOCK = 65536
"""Frames that are read at a time."""

_UNKNOWN_LENGTH = 1 << 62
"""libsndfile gives numbers from here on where a header leaves the length open."""

_DEMUXERS = {
    WAV: "wav", FLAC: "flac", MP3: "mp3", AAC: "aac", OGG: "ogg", M4A: "mov", MP4: "mov", QUICKTIME: "mov",
    WEBM: "matroska", MATROSKA: "matroska", AVI: "avi", MPEG: "mpeg", MPEG_TS: "mpegts",
}  # fmt: skip
_NO_LENGTH = (AAC, MPEG, MPEG_TS)
"""Containers whose header states no length: what a decoder says of it is a guess from the bit rate."""

_CODECS = frozenset((
    "aac", "ac3", "alac", "eac3", "flac", "libopus", "libvorbis", "mp2", "mp2float", "mp3", "mp3float", "opus",
    "vorbis", "adpcm_ima_wav", "adpcm_ms", "pcm_alaw", "pcm_mulaw", "pcm_u8", "pcm_f32le", "pcm_f64le", "pcm_f32be",
    "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_s16be", "pcm_s24be", "pcm_s32be",
))  # fmt: skip
_OPTIONS = {"protocol_whitelist": "", "codec_whitelist": ",".join(sorted(_CODECS))}


class AudioFacts(NamedTuple):
    """What the header of a sound file says.

    ``container`` is the name of its kind (``WAV``, ``FLAC``, ``MP3``, ``Ogg``, ``M4A``, …), ``codec`` that of the
    coding (``pcm_16``, ``pcm_24``, ``float``, ``flac``, ``mp3``, ``vorbis``, ``opus``, ``aac``, …), ``rate`` counts
    samples a second, ``seconds`` is the length that the header declares, None where it does not.
    """

    container: str
    codec: str
    rate: int
    channels: int
    seconds: float | None


def open_sound(data: bytes, policy: MediaPolicy) -> SoundReader:
    """Return a reader of the sound in ``data``; close it after use.

    Raises:
        SourceError: the bytes are no sound, no decoder takes them, or the header says what no sound has.
        PolicyError: the index of the file would take more than the policy allows.
    """
    kind = sniff(data)
    if kind is None:
        name = describe_unknown(data)
        raise SourceError(f"the sound is {name}", mend_unknown(name) or "give a sound file")
    if kind not in _DEMUXERS:
        raise SourceError(f"the sound is {kind.name}, which holds none", "name a sound file")
    if _DEMUXERS[kind] == "mov":
        check_index(data, policy)
    found = _by_soundfile(data, kind) if kind in (WAV, FLAC, OGG) else None
    reader = found or AvReader(data, kind)
    try:
        _judge(reader.facts.rate, reader.facts.channels)
    except SourceError:
        reader.close()
        raise
    return reader


def _judge(rate: int, channels: int) -> None:
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise SourceError(f"the header says {rate} Hz", f"sound has {LOWEST_RATE} to {HIGHEST_RATE} Hz")
    if not 1 <= channels <= MOST_CHANNELS:
        raise SourceError(f"the header says {channels} channels", f"sound has 1 to {MOST_CHANNELS} channels")


_SOUNDFILE_NAMES = {"mpeg_layer_iii": "mp3", "double": "float_64", "pcm_s8": "pcm_8", "pcm_u8": "pcm_8"}


def _by_soundfile(data: bytes, kind: Kind) -> SoundFileReader | None:
    """Return soundfile's reader, None where it would not read the file well.

    That is what libsndfile does not take, what it cannot tell the length of (reading it ends in an error), and what it
    would leave to libmpg123.
    """
    import soundfile  # noqa: PLC0415  # heavy

    try:
        opened = soundfile.SoundFile(io.BytesIO(data))
    except soundfile.SoundFileError:
        return None
    if opened.subtype.startswith("MPEG") or opened.frames >= _UNKNOWN_LENGTH:
        opened.close()
        return None
    return SoundFileReader(data, kind, opened)


class SoundFileReader:
    """Reads with soundfile; where that stumbles over damage, PyAV goes on.

    ``broken`` counts the places that could not be decoded.
    """

    def __init__(self, data: bytes, kind: Kind, opened: Any) -> None:
        self.broken = 0
        self._data = data
        self._kind = kind
        self._opened = opened
        rate, subtype = opened.samplerate, opened.subtype.lower()
        frames = declared_frames(data) if kind is WAV else opened.frames
        seconds = None if frames is None else frames / rate
        codec = "flac" if kind is FLAC else _SOUNDFILE_NAMES.get(subtype, subtype)
        self.facts = AudioFacts(kind.name, codec, rate, opened.channels, seconds)

    def blocks(self, watch: Watch) -> Iterator[Samples]:
        """Yield the samples from the beginning, float32 (frames, channels), at most ``BLOCK`` frames at a time.

        Raises:
            PolicyError: the time is over.
        """
        import soundfile  # noqa: PLC0415  # heavy

        given = 0
        while True:
            watch.check_time()
            try:
                block = self._opened.read(BLOCK, dtype="float32", always_2d=True)
            except soundfile.SoundFileError:
                break
            if not len(block):
                return
            given += len(block)
            yield block
        self.broken = 1
        yield from self._after(given, watch)

    def _after(self, given: int, watch: Watch) -> Iterator[Samples]:
        """Yield what PyAV can read behind the first ``given`` frames."""
        try:
            other = AvReader(self._data, self._kind)
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


class AvReader:
    """Reads with PyAV. What its decoder refuses is left out and counted in ``broken``, as players do.

    What an encoder put around the sound is left out where the file tells: before it, the samples that prime a decoder
    (FFmpeg does so for MP4, since 8.1 for Matroska too), and those that fill the last frame of an MP4 file (it does
    since 9).
    """

    def __init__(self, data: bytes, kind: Kind) -> None:
        import av  # noqa: PLC0415  # heavy

        self.broken = 0
        demuxer = _DEMUXERS[kind]
        try:
            options = {**_OPTIONS, "format_whitelist": av.ContainerFormat(demuxer, "r").name}
            self._container: InputContainer = open_bytes(without_tags(data, kind), kind, options, demuxer)
        except (av.FFmpegError, ValueError) as error:
            raise _unreadable(kind, error) from None
        try:
            self._stream = self._container.streams.audio[0]
            context = self._stream.codec_context
            codec, rate, channels = context.name, context.sample_rate, context.layout.nb_channels
        except (IndexError, AttributeError, ValueError) as error:
            self.close()
            what = "holds no sound" if isinstance(error, IndexError) else "has a sound that no decoder knows"
            raise SourceError(f"the {kind.name} file {what}", "name another file") from None
        if codec not in _CODECS:
            self.close()
            raise SourceError(f"the {kind.name} file has sound of codec {codec}, which is not read", "convert it")
        self.facts = AudioFacts(kind.name, _CODEC_NAMES.get(codec, codec), rate, channels, self._seconds(data, kind))
        self._primed = int(context.delay)
        self._fills = demuxer == "mov"

    def _seconds(self, data: bytes, kind: Kind) -> float | None:
        """Return the length that the header declares."""
        if kind in _NO_LENGTH or (kind is MP3 and not _has_xing(data)) or (kind is FLAC and not _flac_frames(data)):
            return None
        if kind is WAV:
            frames = declared_frames(data)
            return frames / self._stream.codec_context.sample_rate if frames is not None else None
        duration, base = self._stream.duration, self._stream.time_base
        if duration is not None and base:  # an unset base is None, or 0 from PyAV 19 on
            return max(0.0, float((duration - first_tick(data)) * base))
        if self._container.duration is None:
            return None
        # Matroska counts from 0, wherever the sound begins
        return max(0.0, self._container.duration / 1e6 - float(first_tick(data) * (base or 0)))

    def blocks(self, watch: Watch) -> Iterator[Samples]:
        """Yield the samples from the beginning, float32 (frames, channels).

        Raises:
            PolicyError: the time is over, also where nothing comes out of the packets.
            SourceError: rate or channels change in the middle.
        """
        frames = self._frames(watch)
        first = next(frames, None)
        if first is None:
            return
        shape = (first.sample_rate, first.layout.nb_channels)
        if shape != self.facts[2:4]:  # a decoder may find the true rate in the first frame: AAC with SBR
            _judge(*shape)
            self.facts = self.facts._replace(rate=shape[0], channels=shape[1])
        lead = self._primed if first.pts is not None and first.pts < 0 else 0
        yield from self._unpadded(self._arrays(itertools.chain((first,), frames)), lead)

    def _unpadded(self, blocks: Iterator[Samples], lead: int) -> Iterator[Samples]:
        """Yield the blocks without the first ``lead`` frames and without those that fill the last block."""
        end = round((self.facts.seconds or 0) * self.facts.rate)
        given, held = 0, next(blocks, None)
        while held is not None:
            following = next(blocks, None)
            left_out = min(lead, len(held))
            lead -= left_out
            held = held[left_out:]
            if following is None and self._fills and given < end:  # an end before the last block is not believed
                held = held[: end - given]
            if len(held):
                yield held
            given += len(held)
            held = following

    def _arrays(self, frames: Iterable[AudioFrame]) -> Iterator[Samples]:
        for frame in frames:
            if (frame.sample_rate, frame.layout.nb_channels) != self.facts[2:4]:
                raise SourceError("the sound changes its rate or channels in the middle", "convert it to WAV")
            yield from map(_floats, _safe(frame))

    def _frames(self, watch: Watch) -> Iterator[AudioFrame]:
        import av  # noqa: PLC0415  # heavy

        packets = self._container.demux(self._stream)
        while True:
            watch.check_time()
            try:
                packet = next(packets, None)
                frames = [] if packet is None else packet.decode()
            except (av.error.InvalidDataError, av.error.PatchWelcomeError):
                self.broken += 1
                continue
            except (av.FFmpegError, IndexError):  # the latter where a stream turns up that the header did not name
                self.broken += 1
                return
            if packet is None:
                return
            yield from (frame for frame in frames if frame.samples)

    def close(self) -> None:
        """Close the decoder."""
        self._container.close()


SoundReader = Union[SoundFileReader, AvReader]

_CODEC_NAMES = {
    "libopus": "opus", "libvorbis": "vorbis", "mp2float": "mp2", "mp3float": "mp3", "pcm_alaw": "alaw",
    "pcm_mulaw": "ulaw", "pcm_u8": "pcm_8", "pcm_f32le": "float", "pcm_f32be": "float", "pcm_f64le": "float_64",
    "pcm_s16le": "pcm_16", "pcm_s16be": "pcm_16", "pcm_s24le": "pcm_24", "pcm_s24be": "pcm_24", "pcm_s32le": "pcm_32",
    "pcm_s32be": "pcm_32",
}  # fmt: skip


def _unreadable(kind: Kind, error: Exception) -> SourceError:
    return SourceError(f"the {kind.name} file cannot be opened ({type(error).__name__})", "encode it again")


def _has_xing(data: bytes) -> bool:
    """Tell whether an MP3 file declares its length: its first frame is then no sound but a table."""
    start = 0
    if data.startswith(b"ID3"):
        start = 10 + (data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9])
    head = data[start : start + 256]
    return any(mark in head for mark in (b"Xing", b"Info", b"VBRI"))


def _flac_frames(data: bytes) -> int:
    """Return how many frames the first block of a FLAC file declares, 0 where it leaves that open (RFC 9639, 8.2)."""
    return int.from_bytes(data[21:26], "big") & (1 << 36) - 1 if data.startswith(b"fLaC") else 0


def _safe(frame: AudioFrame) -> list[AudioFrame]:
    """Return a frame as such of which PyAV can make an array: of 8 planes it reads more, and the process dies."""
    import av  # noqa: PLC0415  # heavy

    if not frame.format.is_planar or frame.layout.nb_channels < MOST_CHANNELS:
        return [frame]
    # a new one each time, for it refuses a frame whose layout is not that of the frame before
    return av.AudioResampler(format="flt").resample(frame)


def _floats(frame: AudioFrame) -> Samples:
    """Return a decoded frame as float32 (frames, channels), full scale at 1."""
    import numpy as np  # noqa: PLC0415  # heavy

    array: Any = frame.to_ndarray()
    array = array.T if frame.format.is_planar else array.reshape(-1, frame.layout.nb_channels)
    if array.dtype.kind == "f":
        floats: Samples = array.astype(np.float32, copy=False)
    elif array.dtype == np.uint8:
        floats = (array.astype(np.float32) - 128) / 128
    else:
        floats = (array / float(1 << 8 * array.dtype.itemsize - 1)).astype(np.float32)
    return floats
