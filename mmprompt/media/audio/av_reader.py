"""Reads sound with PyAV: MP3, AAC, the sound of video files, and files that soundfile refuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mmprompt.errors import SourceError
from mmprompt.media.audio.facts import MOST_CHANNELS, AudioFacts, check_form
from mmprompt.media.audio.wav import declared_frames
from mmprompt.media.ffmpeg import Watch, first_tick, open_bytes
from mmprompt.media.media_types import AAC, FLAC, MP3, MPEG, MPEG_TS, WAV, Kind
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.container import InputContainer

    from mmprompt.media.audio.facts import Samples

_NO_LENGTH = (AAC, MPEG, MPEG_TS)
"""Containers whose header states no length; a decoder only guesses it from the bit rate."""

_CODECS = frozenset((
    "aac", "ac3", "alac", "eac3", "flac", "libopus", "libvorbis", "mp2", "mp2float", "mp3", "mp3float", "opus",
    "vorbis", "adpcm_ima_wav", "adpcm_ms", "pcm_alaw", "pcm_mulaw", "pcm_u8", "pcm_f32le", "pcm_f64le", "pcm_f32be",
    "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_s16be", "pcm_s24be", "pcm_s32be",
))  # fmt: skip
_OPTIONS = {"protocol_whitelist": "", "codec_whitelist": ",".join(sorted(_CODECS))}


class AvReader:
    """Reads with PyAV. Packets that its decoder refuses are skipped, as players do, and counted in ``broken``.

    Padding that an encoder declares is removed: the samples before the sound that prime a decoder (FFmpeg removes them
    for MP4, since 8.1 for Matroska too), and those that fill the last frame of an MP4 file (FFmpeg does since 9).
    """

    def __init__(self, data: bytes, kind: Kind, policy: MediaPolicy) -> None:
        import av  # noqa: PLC0415  # heavy

        self.broken = 0
        demuxer = kind.demuxers.partition(",")[0]
        try:
            options = {**_OPTIONS, "format_whitelist": av.ContainerFormat(demuxer, "r").name}
            self._container: InputContainer = open_bytes(data, kind, options, policy, demuxer)
        except (av.FFmpegError, ValueError):
            raise _unreadable(kind) from None
        try:
            self._stream = self._container.streams.audio[0]
            context = self._stream.codec_context
            codec, rate, channels = context.name, context.sample_rate, context.layout.nb_channels
        except (IndexError, AttributeError, ValueError) as error:
            self.close()
            what = "holds no sound" if isinstance(error, IndexError) else "has a sound that no decoder knows"
            raise SourceError(f"the {kind.name} file {what}", "name another file", code="MM406") from None
        if codec not in _CODECS:
            self.close()
            raise SourceError(
                f"the {kind.name} file has sound of codec {codec}, which is not read", "convert it", code="MM406"
            )
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
            check_form(*shape)
            self.facts = self.facts._replace(rate=shape[0], channels=shape[1])
        lead = self._primed if first.pts is not None and first.pts < 0 else 0
        yield from self._unpadded(self._arrays(itertools.chain((first,), frames)), lead)

    def _unpadded(self, blocks: Iterator[Samples], lead: int) -> Iterator[Samples]:
        """Yield the blocks without the first ``lead`` frames and without the padding of the last block."""
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
                raise SourceError(
                    "the sound changes its rate or channels in the middle", "convert it to WAV", code="MM406"
                )
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


_CODEC_NAMES = {
    "libopus": "opus", "libvorbis": "vorbis", "mp2float": "mp2", "mp3float": "mp3", "pcm_alaw": "alaw",
    "pcm_mulaw": "ulaw", "pcm_u8": "pcm_8", "pcm_f32le": "float", "pcm_f32be": "float", "pcm_f64le": "float_64",
    "pcm_s16le": "pcm_16", "pcm_s16be": "pcm_16", "pcm_s24le": "pcm_24", "pcm_s24be": "pcm_24", "pcm_s32le": "pcm_32",
    "pcm_s32be": "pcm_32",
}  # fmt: skip


def _unreadable(kind: Kind) -> SourceError:
    return SourceError(f"the {kind.name} file cannot be opened", "encode it again", code="MM400")


def _has_xing(data: bytes) -> bool:
    """True if an MP3 file declares its length: its first frame is then a table instead of sound."""
    start = 0
    if data.startswith(b"ID3"):
        start = 10 + (data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9])
    head = data[start : start + 256]
    return any(mark in head for mark in (b"Xing", b"Info", b"VBRI"))


def _flac_frames(data: bytes) -> int:
    """Return how many frames the first block of a FLAC file declares; 0 if it leaves that open (RFC 9639, 8.2)."""
    return int.from_bytes(data[21:26], "big") & (1 << 36) - 1 if data.startswith(b"fLaC") else 0


def _safe(frame: AudioFrame) -> list[AudioFrame]:
    """Return a frame in a form that PyAV can make an array of. With 8 planes it reads past the end and crashes."""
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
        with np.errstate(over="ignore", invalid="ignore"):  # what single precision cannot hold is infinite
            floats: Samples = array.astype(np.float32, copy=False)
    elif array.dtype == np.uint8:
        floats = (array.astype(np.float32) - 128) / 128
    else:
        floats = (array / float(1 << 8 * array.dtype.itemsize - 1)).astype(np.float32)
    return floats
