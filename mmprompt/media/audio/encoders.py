"""Converts samples and writes files: resampling, mixing, 16 bits, MP3.

One resampler everywhere, so that the same sound gives the same bytes whatever else is installed: that of FFmpeg, with
a longer filter than its own default, which lets through a fifth of what lies just above the new band.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

from mmprompt.media.audio.readers import BLOCK

if TYPE_CHECKING:
    import numpy as np
    from av.audio.frame import AudioFrame

    from mmprompt.media.audio.facts import Samples

    Whole = np.ndarray[Any, np.dtype[np.int16]]

_LAYOUTS = ("mono", "stereo", "3.0", "4.0", "5.0", "5.1", "6.1", "7.1")
_FILTER = "filter_size=96:cutoff=0.95:filter_type=kaiser:kaiser_beta=11:linear_interp=1"
"""Flat to 0.9 of the narrower band, and 110 dB down from 1.05 of it."""

MP3_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
MP3_CHANNELS = 2


def to_mono(samples: Samples) -> Samples:
    """Return the mean of the channels, (frames, 1)."""
    channels = samples.shape[1]
    mean: Samples = samples[:, :1].copy()
    for channel in range(1, channels):  # ten times as fast as the mean along so short an axis
        mean += samples[:, channel : channel + 1]
    mean /= channels
    return mean


def resample(samples: Samples, rate: int, to: int) -> Samples:
    """Return samples (frames, channels) of ``rate`` at the rate ``to``: frames x to / rate frames, rounded."""
    import av  # noqa: PLC0415  # heavy
    import av.filter  # noqa: PLC0415  # heavy
    import numpy as np  # noqa: PLC0415  # heavy

    frames, channels = samples.shape
    wanted = round(Fraction(frames * to, rate))
    graph = av.filter.Graph()
    source = graph.add_abuffer(
        sample_rate=rate, format="flt", layout=_LAYOUTS[channels - 1], time_base=Fraction(1, rate)
    )
    sink = graph.add("abuffersink")
    graph.link_nodes(source, graph.add("aresample", f"{to}:{_FILTER}"), graph.add("aformat", "sample_fmts=flt"), sink)
    graph.configure()
    out = np.zeros((wanted, channels), np.float32)
    at = 0
    for frame in chain(_frames(samples, rate), (None,)):
        source.push(frame)
        for piece in _pulled(sink, channels):
            end = min(wanted, at + len(piece))
            out[at:end] = piece[: end - at]
            at = end
    return out


def _pulled(
    sink: Any, channels: int
) -> Iterator[np.ndarray[Any, Any]]:  # a filter of PyAV, whose types say less than it has
    import av  # noqa: PLC0415  # heavy

    while True:
        try:
            yield sink.pull().to_ndarray().reshape(-1, channels)
        except (av.error.BlockingIOError, av.error.EOFError):
            return


def _frames(samples: Samples | Whole, rate: int) -> Iterator[AudioFrame]:
    """Yield the samples as frames of PyAV, a block each; interleaved, for PyAV fails on 8 planes."""
    import av  # noqa: PLC0415  # heavy
    import numpy as np  # noqa: PLC0415  # heavy

    form, layout = "flt" if samples.dtype.kind == "f" else "s16", _LAYOUTS[samples.shape[1] - 1]
    for at in range(0, len(samples), BLOCK):
        row: Any = np.ascontiguousarray(samples[at : at + BLOCK]).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(row, format=form, layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, at, Fraction(1, rate)
        yield frame


def clip(samples: Samples) -> int:
    """Clip finite samples to full scale, in place, and return how many lay beyond it."""
    import numpy as np  # noqa: PLC0415  # heavy

    clipped = 0
    for at in range(0, len(samples), BLOCK):
        block = samples[at : at + BLOCK]
        clipped += int(np.count_nonzero(np.abs(block) > 1))
        np.clip(block, -1, 1, out=block)
    return clipped


def to_16_bits(samples: Samples) -> Whole:
    """Return samples as int16, full scale at 32768, rounded to nearest."""
    import numpy as np  # noqa: PLC0415  # heavy

    out = np.empty(samples.shape, np.int16)
    for at in range(0, len(samples), BLOCK):
        out[at : at + BLOCK] = np.clip(np.rint(samples[at : at + BLOCK] * np.float32(32768)), -32768, 32767)
    return out


def mp3_rate(rate: int) -> int:
    """Return the rate of MP3 that holds all of ``rate``, or the highest."""
    return next((r for r in MP3_RATES if r >= rate), MP3_RATES[-1])


def mp3_bits(rate: int, kbits: int) -> int:
    """Return ``kbits`` (kbit/s) as far as MP3 has it at a rate: up to 64 below 16 kHz, 160 below 32 kHz, 320."""
    return min(kbits, 64 if rate < 16000 else 160 if rate < 32000 else 320)


def mp3_file(samples: Whole, rate: int, kbits: int) -> bytes:
    """Return samples (frames, 1 or 2 channels) as MP3 of a constant bit rate; the same samples give the same bytes.

    Args:
        samples: int16; on floats far beyond full scale LAME ends the process.
        rate: one of ``MP3_RATES``.
        kbits: kbit/s, as ``mp3_bits`` gives them.
    """
    import av  # noqa: PLC0415  # heavy

    buffer = io.BytesIO()
    # the header keeps the delay of the encoder, so that a decoder gives as many samples as went in
    with av.open(buffer, "w", format="mp3", options={"id3v2_version": "0", "fflags": "+bitexact"}) as container:
        stream: Any = container.add_stream("libmp3lame", rate=rate)
        stream.bit_rate = kbits * 1000
        stream.layout = _LAYOUTS[samples.shape[1] - 1]
        stream.format = "s16p"
        for frame in chain(_frames(samples, rate), (None,)):
            container.mux(stream.encode(frame))
    return buffer.getvalue()
