"""Small media files of each kind, and mutations of them: the same for the same seed."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from PIL import features

KINDS = ("jpeg", "png", "webp", "gif", "wav", "flac", "mp3", "mp4")
MODALITY = {"jpeg": "image", "png": "image", "webp": "image", "gif": "image", "avif": "image", "mp4": "video"}
_EXTREMES = (b"\x00", b"\xff", b"\x7f", b"\x80", b"\x01")


def originals() -> dict[str, list[bytes]]:
    """Return sound files of each kind, a few kilobytes each."""
    return {
        "jpeg": [_picture("JPEG", "RGB"), _picture("JPEG", "L", progressive=True), _picture("JPEG", "CMYK")],
        "png": [_picture("PNG", "RGBA"), _picture("PNG", "P"), _picture("PNG", "I;16"), _animation("PNG")],
        "webp": [_picture("WEBP", "RGB"), _picture("WEBP", "RGBA", lossless=True), _animation("WEBP")],
        "gif": [_picture("GIF", "P"), _animation("GIF")],
        "wav": [_sound("WAV", "PCM_16"), _sound("WAV", "FLOAT"), _sound("WAV", "PCM_24")],
        "flac": [_sound("FLAC", "PCM_16"), _sound("FLAC", "PCM_24")],
        "mp3": [_sound("MP3", "MPEG_LAYER_III")],
        "mp4": [_film("mpeg4"), _film("libx264")],
        **({"avif": [_picture("AVIF", "RGB"), _picture("AVIF", "RGBA")]} if features.check("avif") else {}),
    }


def mutated(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Return the file changed in one to six places; headers are hit more often than bodies."""
    body = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        draw.choice(_MUTATORS)(body, draw, others)
        if not body:
            return bytes(data[:1])
    return bytes(body)


def _place(body: bytearray, draw: random.Random) -> int:
    return draw.randrange(min(len(body), draw.choice((32, 256, len(body))))) if body else 0


def _flip(body: bytearray, draw: random.Random, _: list[bytes]) -> None:
    if body:
        body[_place(body, draw)] ^= 1 << draw.randrange(8)


def _overwrite(body: bytearray, draw: random.Random, _: list[bytes]) -> None:
    at, size = _place(body, draw), draw.choice((1, 2, 4, 8))
    body[at : at + size] = draw.choice(_EXTREMES) * size


def _cut(body: bytearray, draw: random.Random, _: list[bytes]) -> None:
    del body[_place(body, draw) :]


def _remove(body: bytearray, draw: random.Random, _: list[bytes]) -> None:
    at = _place(body, draw)
    del body[at : at + draw.randrange(1, 64)]


def _repeat(body: bytearray, draw: random.Random, _: list[bytes]) -> None:
    at = _place(body, draw)
    body[at:at] = body[at : at + draw.randrange(1, 512)] * draw.randrange(1, 4)


def _insert(body: bytearray, draw: random.Random, _: list[bytes]) -> None:
    at = _place(body, draw)
    body[at:at] = draw.randbytes(draw.randrange(1, 64))


def _splice(body: bytearray, draw: random.Random, others: list[bytes]) -> None:
    other = draw.choice(others)
    at = _place(body, draw)
    body[at:] = other[min(at, len(other)) :]


_MUTATORS: tuple[Callable[[bytearray, random.Random, list[bytes]], None], ...] = (
    _flip, _flip, _overwrite, _overwrite, _cut, _remove, _repeat, _insert, _splice,
)  # fmt: skip


def _pixels(number: int = 0) -> np.ndarray:
    ramp = np.arange(48 * 40 * 4, dtype=np.uint32).reshape(40, 48, 4)
    return ((ramp * 7 + number * 31) % 256).astype(np.uint8)


def _picture(form: str, mode: str, **options: object) -> bytes:
    from PIL import Image

    if mode == "I;16":
        image = Image.fromarray(_pixels()[:, :, 0].astype(np.uint16) * 257)
    else:
        image = Image.fromarray(_pixels(), "CMYK" if mode == "CMYK" else None).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def _animation(form: str) -> bytes:
    from PIL import Image

    frames = [Image.fromarray(_pixels(n)[:, :, :3]) for n in range(3)]
    buffer = io.BytesIO()
    frames[0].save(buffer, form, save_all=True, append_images=frames[1:], duration=50)
    return buffer.getvalue()


def _sound(form: str, subtype: str) -> bytes:
    import soundfile

    rate = 16000
    wave = np.sin(np.arange(rate // 5) / 9.0).astype(np.float32) * 0.5
    buffer = io.BytesIO()
    soundfile.write(buffer, np.stack([wave, wave * 0.5], axis=1), rate, format=form, subtype=subtype)
    return buffer.getvalue()


def _film(codec: str) -> bytes:
    import av

    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream(codec, rate=Fraction(10))
        stream.width, stream.height, stream.pix_fmt = 48, 40, "yuv420p"
        for number in range(8):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(_pixels(number)[:, :, :3].copy(), format="rgb24")))
        container.mux(stream.encode())
    return buffer.getvalue()
