"""Picture files made for the tests, by hand where no encoder writes them."""

from __future__ import annotations

import functools
import io
import struct
import zlib

from PIL import Image


def saved(image, image_format, **options):
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, bits, colour, rows, *more):
    """A PNG of these rows (bytes, without filter); ``more`` chunks stand before the pixels."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 9))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + pixels + chunk(b"IEND", b"")


@functools.cache
def flat_png(width, height):
    """A black PNG of one bit a pixel: few bytes for any number of pixels."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    body = b"".join([packer.compress(row * 1000) for _ in range(height // 1000)])
    body += packer.compress(row * (height % 1000)) + packer.flush()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def gif(width, height, frames, end=b";"):
    """A GIF whose frames are dots, each ``(left, top, width, height)`` as its head says."""
    data = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(3) + b"\xff\xff\xff"
    for left, top, wide, high in frames:
        data += b"!\xf9\x04" + bytes([8]) + struct.pack("<H", 4) + b"\0\0"
        data += b"," + struct.pack("<HHHHB", left, top, wide, high, 0) + b"\x02\x02\x44\x01\0"
    return data + end


def animation(image_format, count=5, size=(64, 48)):
    frames = [Image.new("RGB", size, (20 * n, 255 - 20 * n, 90)) for n in range(count)]
    return saved(frames[0], image_format, save_all=True, append_images=frames[1:])


def flipped(data, at, bit=0):
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)
