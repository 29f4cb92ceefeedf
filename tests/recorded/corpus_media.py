"""Small media, made without a library that could write other bytes tomorrow, and the names by which rows call them."""

from __future__ import annotations

import base64
import struct
import zlib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

PICTURES = 24
"""How many pictures there are of each of PNG and JPEG. Each differs from the others, some in length too."""

_TOUR = Path(__file__).resolve().parents[2] / "fixtures" / "tour" / "media"

_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////"
    "////////////wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AR//Z"
)
_WEBP = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
_GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def png(number: int, scale: int = 1) -> bytes:
    """Return a picture of one colour; its sides grow with the number. Nothing is compressed."""
    wide, high = scale * (1 + number % 7), scale * (1 + number % 3)
    rows = b"".join(b"\0" + bytes((number * 9 % 256, 255 - number, number)) * wide for _ in range(high))
    stored = (
        b"\x78\x01\x01"
        + struct.pack("<HH", len(rows), 0xFFFF ^ len(rows))
        + rows
        + struct.pack(">I", zlib.adler32(rows))
    )
    header = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", stored), (b"IEND", b""))
    packed = [struct.pack(">I", len(b)) + t + b + struct.pack(">I", zlib.crc32(t + b)) for t, b in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def jpeg(number: int) -> bytes:
    """Return a grey picture with a comment that differs in length, so that its base64 ends in any of three ways."""
    comment = b"picture %d" % number + b"." * (number % 5)
    return _JPEG[:20] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + _JPEG[20:]


def wav(number: int) -> bytes:
    """Return a sound of some samples."""
    samples = bytes((number * 31 + at) % 256 for at in range(2 * (8 + number)))
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body) + 8) + kind + body


def mp4(number: int) -> bytes:
    """Return the head of a video: it says what it is, and holds no frame."""
    handler = _box(b"hdlr", bytes(8) + b"vide" + bytes(12) + b"\0")
    movie = _box(b"moov", _box(b"mvhd", bytes(100)) + _box(b"trak", _box(b"tkhd", bytes(84)) + _box(b"mdia", handler)))
    return _box(b"ftyp", b"isom\0\0\2\0isomiso2") + movie + _box(b"free", bytes(number))


@cache
def media_files() -> dict[str, bytes]:
    """Return the files that stand beside all datasets, by name."""
    files = {f"media/p{n}.png": png(n) for n in range(PICTURES)}
    files |= {f"media/p{n}.jpg": jpeg(n) for n in range(PICTURES)}
    files |= {f"media/s{n}.wav": wav(n) for n in range(8)} | {f"media/v{n}.mp4": mp4(n) for n in range(4)}
    files |= {
        "media/a b #1.png": png(3), "media/图 é.jpg": jpeg(4), "media/same.png": png(1), "media/wrong.jpg": png(5),
        "media/really.png": jpeg(6), "media/none": png(7), "media/dot.gif": _GIF, "media/dot.webp": _WEBP, "media/p%201.png": png(9),
        "media/empty.jpg": b"", "media/notes.jpg": b"These are notes.\n", "media/page.png": b"<!DOCTYPE html><p>gone</p>",
        "media/drawing.png": b'<svg xmlns="http://www.w3.org/2000/svg"/>', "media/{image}.png": png(8), "media/sound.png": wav(1),
        "media/lfs.png": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "media/cut.jpg": _JPEG[:60],
        "media/moving.gif": _GIF[:-1] + _GIF[19:], "deep/down/p1.png": png(1), **{f"deep/down/p{n}.png": png(n + 30) for n in range(PICTURES)}, "media/picture.wav": png(2), "media/head.wav": wav(0)[:30],
    }  # fmt: skip
    return files


def photographs() -> dict[str, bytes]:
    """Return the larger media that changes are asked of."""
    names = ("cat.webp", "rotated.jpg", "alpha.png", "spinner.gif", "train.wav", "short.mp4")
    return {f"photos/{name}": (_TOUR / name).read_bytes() for name in names}


def data_uri(data: bytes, kind: str) -> str:
    """Return bytes as a data URI."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def repaired(draw: Random) -> str:
    """Return base64 that is mended as it is read, in a data URI that names another type: there are two notes on it."""
    text = base64.b64encode(jpeg(draw.randrange(PICTURES))).decode()
    ways = (
        text.rstrip("="),
        text.replace("+", "-").replace("/", "_"),
        text[:40] + "\n" + text[40:],
        text + "\n",
        " " + text,
    )
    return draw.choice(("data:image/png;base64,", "data:image/jpeg;base64,", "")) + draw.choice(ways)


URLS = (
    "https://example.com/p{n}.png", "https://example.com/photos/{n}/cat.jpg?size=large&id={n}", "http://example.com/{n}.png",
    "https://EXAMPLE.com:8443/a%20b/{n}.webp#top", "https://example.com/图/{n}.png", "https://example.com/a'b,{n}.png",
    "HTTPS://example.com/{n}", "https://例え.jp/{n}.png", "https://example.com/{{n}}.png?x=<y>&z='",
)  # fmt: skip
ODD_SOURCES: tuple[Any, ...] = (
    "media/missing.png", "media/notes.jpg", "media/empty.jpg", "media/wrong.jpg", "media/really.png", "media/none", "media/a b #1.png",
    "file://media/a%20b%20%231.png", "media/图 é.jpg", "file://media/%E5%9B%BE%20%C3%A9.jpg", "media/p%201.png", "media/same.png",
    "media/dot.gif", "media/dot.webp", "media/moving.gif", "media/page.png", "media/drawing.png", "media/lfs.png", "media/cut.jpg",
    "media/sound.png", "media/{image}.png", "media", "./media/p1.png", "deep/../media/p2.png", "deep/down/p1.png", "../outside.png", "/etc/hosts",
    "file:///etc/hosts", "file://localhost/etc/hosts", "file://elsewhere/media/p1.png", "media/p1.png?x=1", "media\\p1.png", " media/p1.png",
    "media/p1.png\n", "s3://bucket/p1.png", "gs://bucket/p1.png", "ftp://example.com/p1.png", "javascript:alert(1)", 'https://example.com/a b"c".png', "https://example.com/a\\b.png", "https://user:secret@example.com/p.jpg", "https://", "https:///p",
    "http://[::1", "data:image/png;base64,", "data:image/png,plain", "data:;base64,iVBORw0KGgo=", "data:image/jpeg;base64,not base64!",
    "data:text/plain;base64,aGVsbG8=", "iVBORw0KGgo", "/9j/4AAQ", "", " ", None, float("nan"), [], {}, 7, True, "x" * 5000, "\ud800.png", "a\x00b.png",
    "NaN", "null", "[]", "{question}", "<AIS_IMAGE_START>", ["media/p1.png", None, ""], {"url": "media/p1.png"}, {"path": "media/p1.png", "bytes": None},
)  # fmt: skip


def source(draw: Random, modality: str = "image", odd: float = 0.0) -> Any:
    """Return what a row may say to name a medium; odd with this chance, else one that can be sent."""
    if draw.random() < odd:
        return repaired(draw) if draw.random() < 0.15 else draw.choice(ODD_SOURCES)
    n = draw.randrange(PICTURES)
    if modality == "audio":
        sound = f"media/s{n % 8}.wav"
        return draw.choice(
            (sound, sound, f"file://{sound}", data_uri(wav(n), "audio/wav"), f"https://example.com/{n}.wav")
        )
    if modality == "video":
        video = f"media/v{n % 4}.mp4"
        return draw.choice(
            (video, video, f"file://{video}", data_uri(mp4(n), "video/mp4"), f"https://example.com/{n}.mp4")
        )
    return picture(
        draw, n, draw.choice(("jpg", "jpg", "png", "png", "file", "url", "url", "data", "base64", "declared"))
    )


def picture(draw: Random, n: int, how: str) -> str:
    """Return one way to name a picture."""
    if how in ("jpg", "png"):
        return f"media/p{n}.{how}"
    if how == "file":
        return f"file://media/p{n}.png"
    if how == "url":
        return draw.choice(URLS).replace("{n}", str(n))
    if how == "base64":
        return base64.b64encode(draw.choice((png(n), jpeg(n)))).decode()
    return data_uri(jpeg(n) if how == "data" else png(n), "image/jpeg")


def pictures(draw: Random, how: str) -> Any:
    """Return a maker of names of one kind: ``jpg``, ``png``, ``file``, ``url``, ``data`` or ``base64``."""
    return lambda: picture(draw, draw.randrange(PICTURES), how)
