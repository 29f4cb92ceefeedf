"""Small video clips made on the spot, whose pictures carry their number, so that a test knows which frame it got."""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
import pytest

WIDTH, HEIGHT = 96, 64
BITS = 9
needs_ffmpeg = pytest.mark.skipif(
    not (shutil.which("ffmpeg") and shutil.which("ffprobe")), reason="ffmpeg and ffprobe are not installed"
)


def picture(number: int, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Return a picture that shows ``number``: its bits as black and white bars above, a coloured field below."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    bar = width // BITS
    for bit in range(BITS):
        pixels[: height // 2, bit * bar : (bit + 1) * bar] = 235 if number >> bit & 1 else 20
    pixels[height // 2 :] = (40 + number * 5 % 180, 200 - number * 3 % 150, 90)
    return pixels


def number_in(pixels: np.ndarray) -> int:
    """Return the number that a picture shows."""
    bar = pixels.shape[1] // BITS
    rows = pixels[4 : pixels.shape[0] // 2 - 4].mean(axis=(0, 2))
    return sum(1 << bit for bit in range(BITS) if rows[bit * bar + 2 : (bit + 1) * bar - 2].mean() > 128)


def _frame(pixels: np.ndarray, pixel_format: str) -> av.VideoFrame:
    """Return a frame of the pixels; older scalers fill the last chroma of an odd side with what lies beyond it."""
    height, width = pixels.shape[:2]
    even = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    frame = av.VideoFrame.from_ndarray(even, format="rgb24")
    if even.shape == pixels.shape:
        return frame
    odd = av.VideoFrame(width, height, pixel_format)
    for whole, part in zip(frame.reformat(format=pixel_format).planes, odd.planes, strict=True):
        lines = np.frombuffer(whole, np.uint8).reshape(-1, whole.line_size)
        into = np.frombuffer(part, np.uint8).reshape(-1, part.line_size)
        into[: part.height, : part.width] = lines[: part.height, : part.width]
    return odd


@functools.cache
def clip(
    count: int = 50,
    *,
    codec: str = "libx264",
    container: str = "mp4",
    rate: int = 25,
    ticks: tuple[int, ...] = (),
    clock: Fraction | None = None,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    pixel_format: str = "yuv420p",
    sound: bool = False,
    movflags: str = "",
    paint: Callable[[int, int, int], np.ndarray] = picture,
    **options: str,
) -> bytes:
    """Return a clip of ``count`` frames that ``paint`` makes, at ``rate`` or at the given ``ticks`` of a ``clock``."""
    file = tempfile.NamedTemporaryFile(suffix=".clip")  # noqa: SIM115  # faststart reads back what was written
    with (
        file,
        av.open(file.name, "w", format=container, container_options={"movflags": movflags} if movflags else {}) as out,
    ):
        stream = out.add_stream(codec, rate=rate, options={key.replace("_", "-"): v for key, v in options.items()})
        stream.width, stream.height = size
        stream.pix_fmt = pixel_format
        base = clock or Fraction(1, rate)
        stream.codec_context.time_base = base
        audio = (
            out.add_stream("aac" if container in ("mp4", "mov", "matroska") else "mp2", rate=44100) if sound else None
        )
        for number in range(count):
            frame = _frame(paint(number, *size), pixel_format)
            frame.pts = ticks[number] if ticks else number
            frame.time_base = base
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
        if audio is not None:
            tone = (np.sin(np.arange(44100 * count // rate) / 20) * 9000).astype(np.int16).repeat(2)
            block = av.AudioFrame.from_ndarray(tone[None, :], format="s16", layout="stereo")
            block.sample_rate, block.pts = 44100, 0
            out.mux(audio.encode(block))
            out.mux(audio.encode())
        out.close()
        return Path(file.name).read_bytes()


def turned(data: bytes, matrix: tuple[int, int, int, int]) -> bytes:
    """Return an MP4 whose track header says to turn the picture: (x, y) is shown at (a x + c y, b x + d y)."""
    at = data.index(b"tkhd") + 4 + 40
    a, b, c, d = (value << 16 for value in matrix)
    return data[:at] + struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30) + data[at + 36 :]


def ffmpeg(*arguments: object, stdin: bytes = b"") -> bytes:
    """Run ffmpeg, quietly, and return what it writes to its standard output."""
    words = ["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, arguments)]
    return subprocess.run(words, input=stdin, capture_output=True, timeout=60, check=True).stdout


def probed(path: Path, entries: str) -> list[list[str]]:
    """Return what ffprobe prints of the first video stream: one row for each frame or packet."""
    words = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", entries, "-of", "csv=p=0", str(path)]
    lines = subprocess.run(words, capture_output=True, timeout=60, check=True, text=True).stdout.split()
    return [line.rstrip(",").split(",") for line in lines]


class ProbedFrame(NamedTuple):
    """When a frame is shown, in seconds from the first, or None where ffprobe does not know; whether it is a key frame."""

    seconds: float | None
    key: bool


def probed_frames(path: Path) -> list[ProbedFrame]:
    """Return the frames in the order in which they are shown, by ffprobe."""
    rows = probed(path, "stream=time_base:frame=key_frame,best_effort_timestamp")
    *_, base = bases = [row for row in rows if "/" in row[0]]
    stated = [row for row in rows if row not in bases]
    first = int(stated[0][1])
    return [
        ProbedFrame(None if tick == "N/A" else float((int(tick) - first) * Fraction(base[0])), key == "1")
        for key, tick, *_ in stated
    ]
