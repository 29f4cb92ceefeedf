"""The sound of a video, alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.objects import _wav as wav_file
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video import OpenVideo, Watch, check_whole, open_video

if TYPE_CHECKING:
    import numpy as np
    from av.audio.frame import AudioFrame
    from av.audio.resampler import AudioResampler

    Samples = np.ndarray[Any, np.dtype[np.int16]]

_CODECS = (
    "aac", "ac3", "adpcm_ima_wav", "adpcm_ms", "alac", "amrnb", "amrwb", "dca", "eac3", "flac", "libopus", "libvorbis",
    "mp1", "mp2", "mp3", "opus", "pcm_", "vorbis", "wmav1", "wmav2",
)  # fmt: skip
"""How the names of the decoders begin that may be used."""

_MOST_CHANNELS = 8
_LOWEST_RATE, _HIGHEST_RATE = 4000, 384_000


def sound_track(data: bytes, policy: MediaPolicy) -> bytes:
    """Return the first sound of a video as a WAV file: 16 bits, the rate and channels it has, from its first sample.

    Raises:
        SourceError: no video, one without sound, or a sound that is damaged, cut, or of an odd rate.
        PolicyError: more seconds or time than the policy allows, or a WAV file of more than ``max_bytes``.
    """
    import numpy as np  # noqa: PLC0415  # heavy

    with open_video(data, policy) as video:
        if not video.container.streams.audio:
            raise SourceError(f"the {video.kind.name} file has no sound", "ask for frames alone")
        pieces: list[Samples] = []
        samples = 0
        rate = channels = 0
        for frame in _sounds(video, policy):
            block: Any = frame.to_ndarray()  # of several types, says PyAV; of this format always int16
            piece = block.reshape(-1, frame.layout.nb_channels)
            rate, channels = frame.sample_rate, frame.layout.nb_channels
            _judge(rate, channels)
            samples += len(piece)
            _check_length(samples, rate, channels, policy)
            pieces.append(piece)
        if not samples:
            raise SourceError(f"the {video.kind.name} file has no sound that can be decoded", "encode it again")
        stream = video.container.streams.audio[0]
        if stream.duration is not None and stream.time_base is not None:
            check_whole(samples / rate, float(stream.duration * stream.time_base))
    return wav_file(np.concatenate(pieces), rate, channels)[0]


def _sounds(video: OpenVideo, policy: MediaPolicy) -> Iterator[AudioFrame]:
    """Yield the sound in 16 bits, channels interleaved."""
    import av  # noqa: PLC0415  # heavy

    watch = Watch(policy)
    stream = video.container.streams.audio[0]
    # the stream of a codec that FFmpeg does not know has no context, whatever the types say
    context = getattr(stream, "codec_context", None)
    if context is None or not context.name.startswith(_CODECS):
        name = context.name if context is not None else "unknown"
        raise SourceError(f"the {video.kind.name} file has sound of codec {name}", "convert it to AAC in MP4")
    resampler: AudioResampler | None = None
    try:
        for packet in video.container.demux():
            watch.check_time()
            if packet.stream_index != stream.index:
                continue
            for frame in context.decode(packet):
                if resampler is None:
                    resampler = av.AudioResampler("s16", frame.layout, frame.sample_rate)
                yield from resampler.resample(frame)
        if resampler is not None:
            yield from resampler.resample(None)
    except (av.FFmpegError, ValueError) as error:
        raise SourceError(
            f"the sound of the {video.kind.name} file cannot be decoded ({type(error).__name__})",
            "fetch the file again, or encode it anew",
        ) from None


def _judge(rate: int, channels: int) -> None:
    if not 1 <= channels <= _MOST_CHANNELS or not _LOWEST_RATE <= rate <= _HIGHEST_RATE:
        raise SourceError(f"the sound has {channels} channels at {rate} Hz", "encode it again, at 4 to 384 kHz")


def _check_length(samples: int, rate: int, channels: int, policy: MediaPolicy) -> None:
    if policy.max_seconds is not None and samples / rate > policy.max_seconds:
        raise PolicyError(f"the sound lasts more than {policy.max_seconds:g} s", "raise max_seconds to allow it")
    if samples * channels * 2 > policy.max_bytes:
        raise PolicyError(f"the sound as WAV has more than max_bytes ({policy.max_bytes})", "raise max_bytes")
