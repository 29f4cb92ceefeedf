"""MP4 files built box by box, honest or not."""

from __future__ import annotations

import struct
import zlib


def u(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return u(len(body) + 8) + kind + body


def full(kind: bytes, *parts: bytes, version: int = 0, flags: int = 0) -> bytes:
    return box(kind, u(version << 24 | flags), *parts)


FTYP = box(b"ftyp", b"isom", u(512), b"isommp41")
MATRIX = u(65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
MVHD = full(b"mvhd", u(0, 0, 1000, 1000, 65536), b"\1\0" + bytes(10), MATRIX, bytes(24), u(2))
TREX = full(b"trex", u(1, 1, 20, 1, 0))


def tkhd(track: int) -> bytes:
    return full(b"tkhd", u(0, 0, track, 0, 1000), bytes(16), MATRIX, u(64 << 16, 64 << 16), flags=3)


def hdlr(kind: bytes) -> bytes:
    return full(b"hdlr", u(0), kind, bytes(12), b"x\0")


def sound(code: bytes = b"samr", rate: int = 8000, version: int = 0, extra: bytes = b"") -> bytes:
    return box(code, bytes(6) + b"\0\1" + struct.pack(">HHIHHI", version, 0, 0, 1, 16, 0), u(rate << 16), extra)


def picture(code: bytes = b"avc1", extra: bytes = b"") -> bytes:
    return box(
        code, bytes(6) + b"\0\1" + bytes(16) + struct.pack(">HH", 64, 64), u(72 << 16, 72 << 16, 0), b"\0\1",
        bytes(32), b"\0\x18\xff\xff", extra,
    )  # fmt: skip


def stbl(
    entry: bytes, count: int, *more: bytes, sizes: bytes = b"", run: int = 20, chunks: tuple[int, ...] = (48,)
) -> bytes:
    """Tables of ``count`` samples in one chunk: of one byte each, unless ``sizes`` is another table of sizes."""
    return box(
        b"stbl", full(b"stsd", u(1), entry), full(b"stts", u(1, 1 if run == 1 else count, run)), full(b"stsc", u(1, 1, count, 1)),
        sizes or full(b"stsz", u(1, count)), full(b"stco", u(len(chunks), *chunks)), *more,
    )  # fmt: skip


EMPTY = box(
    b"stbl", full(b"stsd", u(1), sound()), full(b"stts", u(0)), full(b"stsc", u(0)), full(b"stsz", u(0, 0)),
    full(b"stco", u(0)),
)  # fmt: skip


def trak(track: int, kind: bytes, tables: bytes, *more: bytes) -> bytes:
    dinf = box(b"dinf", full(b"dref", u(1), full(b"url ", flags=1)))
    mdhd = full(b"mdhd", u(0, 0, 1000, 1000), b"\x55\xc4\0\0")
    return box(b"trak", tkhd(track), *more, box(b"mdia", mdhd, hdlr(kind), box(b"minf", dinf, tables)))


def movie(*parts: bytes, after: bytes = b"") -> bytes:
    return FTYP + box(b"moov", MVHD, *parts) + after + box(b"mdat", bytes(2000))


def fragment(*runs: bytes) -> bytes:
    tfhd = full(b"tfhd", u(1), flags=0x20000)
    return box(b"moof", full(b"mfhd", u(1)), box(b"traf", tfhd, full(b"tfdt", u(0)), *runs))


def packed(header: bytes) -> bytes:
    """A file whose header is packed (QuickTime's cmov)."""
    cmvd = box(b"cmvd", u(len(header)), zlib.compress(header))
    return FTYP + box(b"moov", box(b"cmov", box(b"dcom", b"zlib"), cmvd)) + box(b"mdat", bytes(2000))
