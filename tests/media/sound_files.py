"""Sounds and sound files for the tests, made on the spot; and FFmpeg's own programs to hold ours against."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="FFmpeg's own program is not installed")


def ffmpeg(*arguments: object) -> bytes:
    command = ["ffmpeg", "-v", "error", "-nostdin", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


def sweep(rate: int, top: float, seconds: float = 2.0, channels: int = 1) -> np.ndarray:
    """A sine that climbs from 50 Hz to ``top``, faded in and out, each channel softer than the one before."""
    at = np.arange(round(rate * seconds)) / rate
    fade = np.minimum(1, np.minimum(at, seconds - at) / 0.1)
    wave = 0.5 * fade * np.sin(2 * np.pi * (50 * at + (top - 50) / (2 * seconds) * at * at))
    return np.stack([wave / (n + 1) for n in range(channels)], axis=1).astype(np.float32)


def tone(rate: int, hertz: float, seconds: float = 1.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)).astype(np.float32)[:, None]


def snr(got: np.ndarray, wanted: np.ndarray) -> float:
    """The signal-to-noise ratio in dB, over the whole length, which must be the same."""
    assert got.shape == wanted.shape
    wanted = wanted.astype(np.float64)
    noise = ((got.astype(np.float64) - wanted) ** 2).sum()
    return 10 * np.log10((wanted**2).sum() / max(noise, 1e-30))


def level(samples: np.ndarray) -> float:
    """The level of the middle of a sound in dB beside a sine of amplitude 0.5."""
    middle = samples[len(samples) // 4 : -len(samples) // 4].astype(np.float64)
    return 20 * np.log10(np.sqrt((middle**2).mean()) / (0.5 / np.sqrt(2)) + 1e-12)


def written(samples: np.ndarray, rate: int, container: str = "WAV", subtype: str | None = None) -> bytes:
    """A file that libsndfile wrote."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=container, subtype=subtype)
    return buffer.getvalue()


def encoded(
    samples: np.ndarray, rate: int, container: str, codec: str, layout: str, options: Mapping[str, str] | None = None
) -> bytes:
    """A file that PyAV wrote."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container, options=dict(options or {})) as file:
        stream = file.add_stream(codec, rate=rate)
        stream.layout = layout
        row = np.ascontiguousarray(samples, dtype=np.float32).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(row, format="flt", layout=layout)
        frame.sample_rate, frame.pts = rate, 0
        for piece in (frame, None):
            file.mux(stream.encode(piece))
    return buffer.getvalue()


def wav_header(rate: int, channels: int, body: bytes = bytes(4000)) -> bytes:
    """A 16-bit WAV file whose header says what it likes."""
    frame = channels * 2
    fields = (36 + len(body), b"WAVE", b"fmt ", 16, 1, channels, rate, rate * frame & 0xFFFFFFFF, frame, 16)
    return struct.pack("<4sI4s4sIHHIIHH", b"RIFF", *fields) + struct.pack("<4sI", b"data", len(body)) + body


def decoded_by_ffmpeg(file: Path, channels: int, *arguments: object) -> np.ndarray:
    raw = ffmpeg("-i", file, "-map", "0:a:0", *arguments, "-f", "f32le", "-")
    return np.frombuffer(raw, "<f4").reshape(-1, channels)


def decoded_together(files: Sequence[Path], channels: int) -> list[np.ndarray]:
    """What ``decoded_by_ffmpeg`` gives for each file, by one run of the program: to start takes it the longest."""
    raw = [file.with_name(f"{file.name}.raw") for file in files]
    read = (word for file in files for word in ("-i", file))
    write = (word for at, out in enumerate(raw) for word in ("-map", f"{at}:a:0", "-f", "f32le", out))
    ffmpeg(*read, *write)
    return [np.frombuffer(out.read_bytes(), "<f4").reshape(-1, channels) for out in raw]


def late_streams() -> bytes:
    """An MPEG transport stream that names four more sound tracks only in its middle."""
    whole = encoded(sweep(44100, 9000, channels=2), 44100, "mpegts", "aac", "stereo")
    packets = [whole[at : at + 188] for at in range(0, len(whole), 188)]
    first, later = _program_map(range(0x100, 0x101), 0), _program_map(range(0x100, 0x105), 1)
    return b"".join([*packets[:2], first, *packets[3:30], later, *packets[30:]])


def _program_map(tracks: range, version: int) -> bytes:
    """A packet with a program map of AAC tracks (ISO 13818-1, 2.4.4.8)."""
    streams = b"".join(b"\x0f" + (0xE000 | track).to_bytes(2, "big") + b"\xf0\0" for track in tracks)
    body = (
        b"\0\1" + bytes([0xC1 | version << 1]) + b"\0\0" + (0xE000 | tracks[0]).to_bytes(2, "big") + b"\xf0\0" + streams
    )
    section = b"\2" + (0xB000 | len(body) + 4).to_bytes(2, "big") + body
    check = 0xFFFFFFFF
    for byte in section:
        check ^= byte << 24
        for _ in range(8):
            check = (check << 1 ^ 0x04C11DB7 if check >> 31 else check << 1) & 0xFFFFFFFF
    return (b"\x47\x50\0\x10\0" + section + check.to_bytes(4, "big")).ljust(188, b"\xff")
