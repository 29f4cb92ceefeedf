"""Files that a stranger may send to harm a decoder: each makes bare FFmpeg, Pillow or libsndfile crash, swell or hang.

Nothing in the package knows them. ``BAITS`` gives each by a name: its modality and a function that makes it. Some are
harmless to a newer release of a library.
"""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import av
from clips import clip
from image_files import chunk as png_chunk
from image_files import gif, saved
from image_files import png as png_file
from iso_files import (
    EMPTY,
    FTYP,
    MVHD,
    TREX,
    box,
    fragment,
    full,
    hdlr,
    movie,
    packed,
    picture,
    sound,
    stbl,
    tkhd,
    trak,
    u,
)
from PIL import Image
from sound_files import encoded, tone, written

MANY = 400_000_000

SYNC = full(b"sgpd", b"sync", u(1, 1), b"\x15", version=1)
TENC = box(
    b"sinf", box(b"frma", b"avc1"), full(b"schm", b"cenc", u(65536)),
    box(b"schi", full(b"tenc", b"\0\0\1\0" + bytes(16) + b"\x08" + bytes(8))),
)  # fmt: skip
LISTED = full(b"stsz", u(0, 10_000), u(*[1] * 10_000))


def tracks_without_content(count: int) -> list[bytes]:
    return [box(b"trak", tkhd(number + 1)) for number in range(count)]


def fragments(base: int, count: int) -> bytes:
    return full(b"sidx", u(1, 1000, 0, base), struct.pack(">HH", 0, count), u(17, 10, 0) * count)


def keys(count: int, *names: bytes) -> bytes:
    return box(b"meta", hdlr(b"mdta"), full(b"keys", u(count), *names))


def element(name: str, body: bytes) -> bytes:
    return bytes.fromhex(name) + (1 << 56 | len(body)).to_bytes(8, "big") + body


def small(name: str, body: bytes) -> bytes:
    return bytes.fromhex(name) + bytes([0x80 | len(body)]) + body


def simple_tags(count: int) -> bytes:
    tags = (small("67C8", small("45A3", b"%06x" % n) + small("4487", b"v")) for n in range(count))
    return element("1254C367", element("7373", small("63C0", b"") + b"".join(tags)))


def chapters(count: int) -> bytes:
    """Chapters whose numbers run backwards, so that FFmpeg looks for each among all."""
    atoms = (
        small("B6", small("73C4", (count - n).to_bytes(3, "big")) + small("91", n.to_bytes(4, "big")))
        for n in range(count)
    )
    return element("1043A770", element("45B9", b"".join(atoms)))


def cues(count: int) -> bytes:
    """Places in the file, the last one first."""
    points = (
        small("BB", small("B3", (count - n).to_bytes(3, "big")) + small("B7", small("F7", b"\1") + small("F1", b"\1")))
        for n in range(count)
    )
    return element("1C53BB6B", b"".join(points))


def with_element(matroska: bytes, extra: bytes) -> bytes:
    """Return a file with an element of the segment before its first cluster."""
    at = matroska.index(b"\x1f\x43\xb6\x75")
    start = matroska.index(b"\x18\x53\x80\x67") + 4
    return matroska[:start] + b"\x01" + b"\xff" * 7 + matroska[start + 8 : at] + extra + matroska[at:]


def pointed_to(matroska: bytes, extra: bytes) -> bytes:
    """Return a file with an element at its end, to which its first element leads."""
    start = matroska.index(b"\x18\x53\x80\x67") + 12
    end = len(matroska) - start + 33
    seek = small("4DBB", small("53AB", extra[:4]) + small("53AC", end.to_bytes(8, "big")))
    head = small("114D9B74", seek + small("EC", bytes(33 - 7 - len(seek))))
    return matroska[: start - 8] + b"\x01" + b"\xff" * 7 + head + matroska[start:] + extra


def info(count: int) -> bytes:
    names = product(range(33, 123), repeat=4)
    body = b"INFO" + b"".join(bytes(name) + b"\1\0\0\0v\0" for name, _ in zip(names, range(count), strict=False))
    return b"LIST" + len(body).to_bytes(4, "little") + body


def id3(count: int) -> bytes:
    frames = b"".join(b"TXXX\0\0\0\x0b\0\0\3K%07d\0v" % n for n in range(count))
    return b"ID3\4\0\0" + bytes(len(frames) >> shift & 0x7F for shift in (21, 14, 7, 0)) + frames


def in_chunk(tag: bytes) -> bytes:
    return b"id3 " + len(tag).to_bytes(4, "little") + tag + bytes(len(tag) % 2)


def with_chunk(wav: bytes, chunk: bytes) -> bytes:
    return wav[:4] + (len(wav) + len(chunk) - 8).to_bytes(4, "little") + wav[8:36] + chunk + wav[36:]


def ape(count: int) -> bytes:
    items = b"".join(struct.pack("<II", 1, 0) + b"K%06x\0v" % n for n in range(count))
    return items + b"APETAGEX" + struct.pack("<IIII", 2000, len(items) + 32, count, 0) + bytes(8)


def comments(count: int) -> bytes:
    return struct.pack("<II", 0, count) + b"".join(struct.pack("<I", 8) + b"%06x=v" % n for n in range(count))


def steps(byte: int) -> int:
    value = byte << 24
    for _ in range(8):
        value = (value << 1 ^ 0x04C11DB7 if value >> 31 else value << 1) & 0xFFFFFFFF
    return value


STEPS = [steps(byte) for byte in range(256)]


def checksum(page: bytes) -> int:
    value = 0
    for byte in page:
        value = value << 8 & 0xFFFFFFFF ^ STEPS[value >> 24 ^ byte]
    return value


def ogg(packets: list[bytes]) -> bytes:
    """Return packets as pages, each of which begins a page; the checksums as the standard describes them."""
    pages = []
    for number, packet in enumerate(packets):
        table = b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255])
        for at in range(0, len(table), 255):
            part = table[at : at + 255]
            flags = (2 if not number else 0) | (1 if at else 0)
            head = b"OggS\0" + bytes([flags]) + struct.pack("<qII", 0, 1, len(pages))
            body = bytes([len(part)]) + part + packet[at * 255 : at * 255 + sum(part)]
            pages.append(head + checksum(head + bytes(4) + body).to_bytes(4, "little") + body)
    return b"".join(pages)


def opus(listed: bytes) -> bytes:
    return ogg([b"OpusHead\1\1" + struct.pack("<HIhB", 312, 48000, 0, 0), b"OpusTags" + listed, b"\xfc\xff\xfe"])


def crc(table: bytes) -> bytes:
    value = 0xFFFFFFFF
    for byte in table:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ 0x04C11DB7) & 0xFFFFFFFF if value >> 31 else value << 1 & 0xFFFFFFFF
    return value.to_bytes(4, "big")


def section(table: int, version: int, body: bytes) -> bytes:
    head = bytes([table]) + struct.pack(">HHBBB", 0xB000 | len(body) + 9, 1, 0xC1 | version << 1, 0, 0) + body
    return head + crc(head)


def packets(stream: int, body: bytes) -> bytes:
    """A table in packets, the first of which begins it; the number that counts them is left at 0."""
    pieces = [body[at : at + 184] for at in range(0, len(body), 184)]
    heads = [(0x4000 * (not number) | stream).to_bytes(2, "big") for number in range(len(pieces))]
    return b"".join(
        b"G" + head + b"\x10" + piece.ljust(184, b"\xff") for head, piece in zip(heads, pieces, strict=True)
    )


def programs(numbers: range, version: int = 0) -> bytes:
    body = b"".join(struct.pack(">HH", 1 + n % 65000, 0xE020 + n % 8000) for n in numbers)
    return packets(0, b"\0" + section(0, version, body))


def program_names(numbers: range, version: int = 0) -> bytes:
    body = b"\0\1\xff" + b"".join(struct.pack(">HBH", 1 + n % 65000, 0xFC, 0xF000) for n in numbers)
    return packets(0x11, b"\0" + section(0x42, version, body))


IDENTITY = b"\x01vorbis" + struct.pack("<IBIIIIBB", 0, 1, 16000, 0, 0, 0, 0xB8, 1)
COMMENT = b"\x03vorbis" + bytes(8) + b"\x01"
BOOK = (0x564342, 24)


def bits(*fields: tuple[int, int]) -> bytes:
    """Return numbers in so many bits each, the lowest first."""
    whole = size = 0
    for number, bits in fields:
        whole |= number << size
        size += bits
    return whole.to_bytes(-(-size // 8), "little")


def book(bits: int) -> list[tuple[int, int]]:
    """Return a codebook whose words all have so many bits, in order, and stand for nothing."""
    return [BOOK, (1, 16), (1 << bits, 24), (1, 1), (bits - 1, 5), (1 << bits, bits + 1), (0, 4)]


def song(*books: list[tuple[int, int]]) -> bytes:
    """Return an Ogg file with these codebooks and the least that a Vorbis header holds beside them."""
    fields = [field for one in books for field in one]
    floor = [(0, 6), (1, 16), (0, 5), (0, 2), (8, 4)]
    residue = [(0, 6), (0, 16), (0, 24), (128, 24), (31, 24), (0, 6), (0, 8), (0, 3), (0, 1)]
    mapping = [(0, 6), (0, 16), (0, 1), (0, 1), (0, 2), (0, 24)]
    mode = [(0, 6), (0, 1), (0, 16), (0, 16), (0, 8), (1, 1)]
    setup = bits((len(books) - 1, 8), *fields, (0, 6), (0, 16), *floor, *residue, *mapping, *mode)
    return ogg([IDENTITY, COMMENT, b"\x05vorbis" + setup, *[b"\0\0"] * 5])


SIDE = 64
HEAD = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
PIXELS = zlib.compress((b"\0" + bytes(range(3 * SIDE))) * SIDE)


def video_of(
    packets: list[bytes], codec: str, side: int = SIDE, pixel_format: str = "rgb24", container: str = "mov"
) -> bytes:
    """Return a QuickTime file, or another, of these packets, whatever they hold."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container) as out:
        stream = out.add_stream(codec, rate=10)
        stream.width = stream.height = side
        stream.pix_fmt = pixel_format
        stream.codec_context.open()
        for number, data in enumerate(packets):
            packet = av.Packet(data)
            packet.stream, packet.time_base = stream, Fraction(1, 10)
            packet.pts = packet.dts = number
            packet.is_keyframe = not number
            out.mux(packet)
    return buffer.getvalue()


# of libaom, 64 x 64 pixels of one grey: what describes the sequence, its first frame, and the next
SEQUENCE = bytes.fromhex("0a0a00000002afff9b532008")
FIRST = bytes.fromhex("321210012000104104400010c1b4b7d3c59090af")
NEXT = bytes.fromhex("321230070101fbf00d8000b2cb2c502094009530")


def av1_video(*packets: bytes) -> bytes:
    """Return a Matroska file of packets of AV1."""
    picture = small("B0", bytes([SIDE])) + small("BA", bytes([SIDE]))
    private = bytes.fromhex("81000c00") + SEQUENCE
    track = small("D7", b"\1") + small("73C5", b"\1") + small("83", b"\1") + small("86", b"V_AV1")
    tracks = element("1654AE6B", element("AE", track + small("63A2", private) + small("E0", picture)))
    blocks = b"".join(
        element("A3", b"\x81" + struct.pack(">hB", 100 * number, 0 if number else 0x80) + packet)
        for number, packet in enumerate(packets)
    )
    header = small("1A45DFA3", small("4282", b"matroska"))
    return header + element("18538067", tracks + element("1F43B675", small("E7", b"\0") + blocks))


def run_length_coded(width, height, body):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, 8, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 2000, 0, 0, 1078) + head + bytes(1024) + body


def tiff(side, tile, *more):
    """A grey TIFF of one packed tile; ``more`` tags stand behind its own."""
    body = zlib.compress(bytes(tile * tile), 9)
    tags = [(256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (277, 3, 1, 1)]
    at = 14 + 12 * (10 + len(more))
    tags += [(322, 4, 1, tile), (323, 4, 1, tile), (324, 4, 1, at), (325, 4, 1, len(body)), *more]
    head = b"II*\0" + struct.pack("<IH", 8, len(tags))
    return head + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4) + body


def of_tags(count: int) -> bytes:
    """ID3 tags between two sounds, which FFmpeg reads in time that grows with the square of their number."""
    aac = encoded(tone(44100, 440), 44100, "adts", "aac", "mono")
    return aac + id3(count) + aac


def wave(chunks: bytes) -> bytes:
    return with_chunk(written(tone(16000, 440), 16000, "WAV", "PCM_16"), chunks)


def commented_flac(listed: bytes) -> bytes:
    flac = written(tone(16000, 440), 16000, "FLAC", "PCM_16")
    block = b"\4" + len(listed).to_bytes(3, "big") + listed
    return flac[:4] + bytes([flac[4] & 0x7F]) + flac[5:42] + block + flac[42:]


def matroska(extra: bytes) -> bytes:
    return with_element(clip(5, container="matroska", sound=True), extra)


def additions(count: int) -> bytes:
    block = b"\xa1\x85\x81\0\0\0x" + element("75A1", small("A6", b"") * count)
    return element("1F43B675", small("E7", b"\0") + element("A0", block))


def avi(extra: bytes) -> bytes:
    video = clip(5, container="avi", codec="mpeg4")
    at = video.rindex(b"LIST", 0, video.index(b"movi"))
    return video[:at] + extra + video[at:]


def stream(tables: bytes) -> bytes:
    return tables + clip(5, container="mpegts", codec="mpeg2video", sound=True)


def nested(depth: int) -> bytes:
    """Boxes that each say they hold all the rest of the file."""
    return FTYP + b"".join(u(8 * (depth - number)) + b"udta" for number in range(depth))


def names_of_its_own(count: int) -> bytes:
    names = [
        box(b"----", full(b"mean", b"x"), full(b"name", b"k%06d" % n), full(b"data", u(1), b"value"))
        for n in range(count)
    ]
    return box(b"udta", full(b"meta", hdlr(b"mdir"), box(b"ilst", *names)))


def edits(count: int) -> bytes:
    return box(b"edts", full(b"elst", u(count), u(400_000, 0, 65536) * count))


def with_scans(picture: Image.Image, count: int) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    data = saved(picture, "JPEG", progressive=True)
    scan = data.rindex(b"\xff\xda")
    return data[:-2] + data[scan:-2] * count + data[-2:]


def before_jpeg(segment: bytes, count: int) -> bytes:
    """A small JPEG with so many of a segment before its picture."""
    plain = saved(Image.new("RGB", (8, 8)), "JPEG")
    return plain[:2] + segment * count + plain[2:]


def segment(code: int, body: bytes) -> bytes:
    return b"\xff" + bytes([code]) + (len(body) + 2).to_bytes(2, "big") + body


def commented_gif(blocks: int) -> bytes:
    dot = gif(1, 1, [(0, 0, 1, 1)])
    return dot[:19] + b"!\xfe" + (b"\xff" + b"x" * 255) * blocks + b"\0" + dot[19:]


def png_video(*more: bytes) -> bytes:
    return video_of([png_file(SIDE, SIDE, 8, 2, [bytes(range(3 * SIDE))] * SIDE, *more)], "png")


def packed_chunk(name: bytes, size: int) -> bytes:
    return png_chunk(name, b"k\0\0" + zlib.compress(bytes(size), 1))


LYING_AVIF = zlib.decompress(base64.b85decode(
    "c-muNU{FXasVqn=%S>Yc0uY^>nP!-qnV9D5Xy^nKdYzkElE?r7iWw<6MNl?FL1uCZ0~+8f$SlbPvlxL`E;A=T8N_h`@fjhajKT~I+;4zvjm*"
    "rvG`LzRASaax%1bOWFm%q($p_n&m03_!0HnP$3zGAJv`A)gK`PX~6et!b$gIc&2{3bTZ~!Tu#4<zYMtL5PkZ^K-PElTRP6g0pUIw-XppbZGK"
    "`zWsK!>p~GBvXRUG*h5C9y<^fs0%IdtLp{zl)fpcsY!2i3_MHA3pT%<+53c$q5V$QRh!-9-ksNWx|U`(&-m|H5i6Jp4uutW0%PBWr2a|a~uV"
    "jPPjatAnW!t^ZeddFVgx<-s{ybKjXS%cir<gBm4i;*#tQiR!DfQ2)0O8;Log>$-30&|LG@FKJH~|`Vn{jluNWjb<C#Fi__CnR#zQ)n&E!*yj"
    "sZ8`Iaa7et0If9=o`A_1`kFvX6V2eOEo-G1KTplkAe(1!bCR3i?gtzpEQ(UArP7cuY6I@STSi-*<Cw1IasQ*%+MXe|a)ths^_8n;%1}`92wn"
    "Hw)f%22EMKYf1d^Ynv`Huj9JCDPMH@(H{;fb&Dp=UwA9KYW>6;?I~$1mJapM84dl>&>s!`(a;|a{n5}L4gJy3Cnog6XySU-A4APtngsF+0Jq"
    "XY%K"
))  # fmt: skip
"""An AVIF whose header says 100 x 100 pixels, and whose picture has 16,000 x 16,000."""

PCM = sound(b"agsm", version=1, extra=u(160, 33, 33, 2))
ROW = b"\1\1\0\0"
"""Of a run-length coded BMP: one pixel and the end of the line."""

SOUNDS: dict[str, Callable[[], bytes]] = {
    "MP4: samples of one size": lambda: movie(trak(1, b"soun", stbl(sound(), MANY))),
    "MP4: PCM": lambda: movie(trak(1, b"soun", stbl(PCM, 1 << 30, run=1))),
    "MP4: a packed header": lambda: packed(MVHD + trak(1, b"soun", stbl(sound(), MANY))),
    "MP4: a header that unpacks to 500 MB": lambda: packed(MVHD + box(b"free", bytes(500 << 20))),
    "MP4: a hidden header": lambda: (
        FTYP + box(b"free", MVHD + trak(1, b"soun", stbl(sound(), MANY))) + box(b"mdat", bytes(2000))
    ),
    "MP4: a run of a fragment": lambda: movie(
        trak(1, b"soun", EMPTY), box(b"mvex", TREX), after=fragment(full(b"trun", u(MANY)))
    ),
    "MP4: names of keys": lambda: movie(trak(1, b"soun", stbl(sound(), 9)), keys(MANY)),
    "MP3: tags before it": lambda: id3(60_000) + encoded(tone(44100, 440), 44100, "mp3", "libmp3lame", "mono"),
    "AAC: tags in its midst": lambda: of_tags(60_000),
    "AAC: tags behind it": lambda: encoded(tone(44100, 440), 44100, "adts", "aac", "mono") + ape(60_000),
    "FLAC: comments": lambda: commented_flac(comments(60_000)),
    "WAV: chunks": lambda: wave(b"junk\0\0\0\0" * 4_000_000),
    "WAV: tags": lambda: wave(info(60_000)),
    "WAV: tags of ID3": lambda: wave(in_chunk(id3(60_000))),
    "Ogg: comments": lambda: opus(comments(40_000)),
    "Ogg: damaged pages": lambda: written(tone(16000, 440), 16000, "OGG", "VORBIS") + b"OggS" * 600_000,
    "Vorbis: a codebook that overflows the stack": lambda: song(book(22)),
}

VIDEOS: dict[str, Callable[[], bytes]] = {
    "MP4: frames of one size": lambda: movie(
        trak(1, b"vide", stbl(picture(), MANY, full(b"ctts", u(1, MANY, 5))))
    ),
    "MP4: times of HEVC": lambda: movie(
        trak(1, b"vide", stbl(
            picture(b"hev1"), 9, SYNC, full(b"sbgp", b"sync", u(1, 1, 1)), full(b"ctts", u(1, MANY, 5))
        ))
    ),
    "MP4: descriptions of groups": lambda: movie(
        trak(1, b"vide", stbl(picture(), 9, full(b"sgpd", b"sync", u(1, 100_000_000), version=1)))
    ),
    "MP4: encrypted samples": lambda: movie(
        trak(1, b"vide", stbl(picture(b"encv", TENC), 9, full(b"senc", u(MANY))))
    ),
    "MP4: a list of pictures": lambda: movie(
        trak(1, b"vide", stbl(picture(), 9)), full(b"meta", hdlr(b"pict"), full(b"iinf", u(MANY), version=1))
    ),
    "MP4: edits times samples": lambda: movie(
        trak(1, b"vide", stbl(picture(), 10_000, full(b"stss", u(1, 1)), sizes=LISTED), edits(5000))
    ),
    "MP4: tracks times fragments": lambda: movie(
        *tracks_without_content(500), box(b"mvex", TREX), after=fragments(0, 60_000) + fragment(full(b"trun", u(9)))
    ),
    "MP4: tables longer than their boxes": lambda: movie(
        trak(1, b"vide", stbl(picture(), 9, *[full(b"stss", u(500_000))] * 400)), after=box(b"mdat", bytes(2_100_000))
    ),
    "MP4: headers of encryption": lambda: movie(
        trak(1, b"vide", stbl(picture(), 9)), *[full(b"pssh", bytes(16), u(0))] * 20_000
    ),
    "MP4: names of its own": lambda: movie(trak(1, b"soun", stbl(sound(), 9)), names_of_its_own(20_000)),
    "MP4: tracks of fragments": lambda: movie(
        trak(1, b"soun", EMPTY), box(b"mvex", full(b"trex", u(9, 1, 20, 1, 0)) * 20_000, TREX),
        after=box(b"moof", full(b"mfhd", u(1)), box(b"traf", full(b"tfhd", u(1), flags=0x20000)) * 100_000),
    ),
    "MP4: fragments out of order": lambda: movie(
        trak(1, b"soun", EMPTY), box(b"mvex", TREX),
        after=b"".join(fragments((9 - n) * 20 * 60_000, 60_000) for n in range(9)) + fragment(full(b"trun", u(2))),
    ),
    "MP4: runs times fragments": lambda: movie(
        trak(1, b"soun", EMPTY), box(b"mvex", TREX),
        after=fragments(0, 60_000) + fragment(*[full(b"trun", u(2))] * 60_000),
    ),
    "MP4: tracks times samples": lambda: movie(
        trak(999, b"vide", stbl(picture(), 9)),
        *(trak(n, b"sbtl", stbl(box(b"text", bytes(6), b"\0\1", bytes(43)), 1000)) for n in range(1, 901)),
    ),
    "MP4: boxes in boxes": lambda: nested(100_000),
    "Matroska: tags": lambda: matroska(simple_tags(60_000)),
    "Matroska: tags that its index leads to": lambda: pointed_to(
        clip(5, container="matroska", sound=True), simple_tags(60_000)
    ),
    "Matroska: chapters": lambda: matroska(chapters(200_000)),
    "Matroska: cues": lambda: matroska(cues(400_000)),
    "Matroska: attachments": lambda: matroska(element("1941A469", small("61A7", b"") * 3_000_000)),
    "Matroska: additions to a frame": lambda: matroska(additions(3_000_000)),
    "Matroska: blocks without frames": lambda: matroska(
        element("1F43B675", small("E7", b"\0") + b"\xa3\x85\x81\0\0\x84\xff" * 900_000)
    ),
    "AVI: tags": lambda: avi(info(60_000)),
    "MPEG-TS: programs": lambda: stream(b"".join(programs(range(40 * n, 40 * n + 40), n % 32) for n in range(400))),
    "MPEG-TS: names of programs": lambda: stream(
        b"".join(program_names(range(30 * n, 30 * n + 30)) for n in range(300))
    ),
    "AV1: frames in one packet": lambda: av1_video(SEQUENCE + FIRST + NEXT * 200_000),
    "JPEG in a video: scans": lambda: video_of(
        [with_scans(Image.new("L", (512, 512), 90), 20_000)], "mjpeg", 512, "yuvj420p"
    ),
    "PNG in a video: a text": lambda: png_video(packed_chunk(b"zTXt", 900 << 20)),
    "PNG in a video: a profile": lambda: png_video(packed_chunk(b"iCCP", 999)),
    "PNG in a video: chunks": lambda: png_video(png_chunk(b"tEXt", b"k\0v") * 600_000),
}  # fmt: skip

PICTURES: dict[str, Callable[[], bytes]] = {
    "JPEG: scans": lambda: with_scans(Image.new("L", (4000, 4000)), 1000),
    "JPEG: segments of EXIF": lambda: before_jpeg(segment(0xE1, b"Exif\0\0" + bytes(0xFFFF - 8)), 1000),
    "JPEG: frame headers": lambda: before_jpeg(segment(0xC0, b"\x08\0\x08\0\x08\x03" + b"\1\x11\0" * 21_000), 200),
    "JPEG: comments": lambda: before_jpeg(segment(0xFE, b""), 2_000_000),
    "JPEG: bytes between its segments": lambda: before_jpeg(bytes(4096), 2000),
    "JPEG: tables": lambda: before_jpeg(segment(0xDB, (b"\0" + bytes(range(1, 65))) * 1000), 400),
    "PNG: profiles": lambda: png_file(1, 1, 8, 0, [b"\0"], *[packed_chunk(b"iCCP", 1 << 20)] * 4000),
    "GIF: comments": lambda: commented_gif(20_000),
    "BMP: run-length coded": lambda: run_length_coded(10_000, 4000, ROW * 4000 + b"\0\1"),
    "BMP: run-length coded, of one skip": lambda: run_length_coded(40_000_000, 1, b"\0\2\0\xff\0\1"),
    "TIFF: tags that share their bytes": lambda: (
        tiff(64, 64, *[(40_000 + n, 7, 100_000, 8) for n in range(20_000)]) + bytes(100_000)
    ),
    "AVIF: a picture larger than its header": lambda: LYING_AVIF,
}

BAITS = {"audio": SOUNDS, "video": VIDEOS, "image": PICTURES}

COSTLY = frozenset({
    "MP4: a header that unpacks to 500 MB",
    "MP3: tags before it",
    "AAC: tags in its midst",
    "WAV: chunks",
    "WAV: tags",
    "Ogg: comments",
    "Ogg: damaged pages",
    "MP4: times of HEVC",
    "MP4: edits times samples",
    "MP4: tracks times fragments",
    "MP4: tables longer than their boxes",
    "MP4: headers of encryption",
    "MP4: names of its own",
    "MP4: tracks of fragments",
    "MP4: fragments out of order",
    "MP4: runs times fragments",
    "MP4: tracks times samples",
    "Matroska: tags",
    "Matroska: tags that its index leads to",
    "Matroska: chapters",
    "Matroska: cues",
    "Matroska: blocks without frames",
    "MPEG-TS: programs",
    "AV1: frames in one packet",
    "JPEG in a video: scans",
    "PNG in a video: a text",
    "JPEG: scans",
    "JPEG: segments of EXIF",
    "JPEG: comments",
    "JPEG: tables",
    "PNG: profiles",
    "BMP: run-length coded",
    "TIFF: tags that share their bytes",
})  # fmt: skip
"""Baits that keep a decoder busy until its time is over, or are long to make; one of each modality is not listed."""
