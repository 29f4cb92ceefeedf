"""One packet of a video that a decoder would work on for hours, or that would swell to gigabytes, is refused first."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from fractions import Fraction

import av
import numpy as np
import pytest
from clips import clip
from PIL import Image
from test_metadata_costs import element, small

from mmprompt.errors import SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.video.frames import video_frames
from mmprompt.media.video.packets import MOST_FRAMES, prepare
from mmprompt.media.video.reading import video_facts

POLICY = MediaPolicy()
SIDE = 64
HEAD = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
PIXELS = zlib.compress((b"\0" + bytes(range(3 * SIDE))) * SIDE)


def video_of(packets: list[bytes], codec: str, side: int = SIDE, pixel_format: str = "rgb24") -> bytes:
    """Return a QuickTime file of these packets, whatever they hold."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mov") as out:
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


def decoded(data: bytes) -> list[av.VideoFrame]:
    with av.open(io.BytesIO(data)) as container:
        return list(container.decode(video=0))


def refused(data: bytes, what: str) -> None:
    for work in (lambda: video_facts(data, POLICY), lambda: video_frames(data, POLICY, count=1)):
        with pytest.raises(SourceError, match=what):
            work()


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


def test_a_packet_of_very_many_av1_frames_is_refused():
    bomb = SEQUENCE + FIRST + NEXT * 300
    decoder = av.CodecContext.create("libdav1d", "r")
    frames = [frame for packet in (bomb, NEXT) for frame in decoder.decode(av.Packet(packet))]
    assert len(frames + decoder.decode(None)) == 302  # at once, and of 75 MB each for the largest allowed
    refused(av1_video(bomb), f"more frames than {MOST_FRAMES}")
    assert len(video_frames(av1_video(SEQUENCE + FIRST, NEXT), POLICY, count=2)) == 2


def test_a_packet_of_very_many_av1_units_is_refused():
    empty = b"\x7a\x00" * 20_000  # padding
    with pytest.raises(SourceError, match="more units"):
        prepare(av.Packet(empty), "libdav1d")
    prepare(av.Packet(b"\x7a\x80"), "libdav1d")  # a size that is cut


def jpeg(side: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (side, side), 90).save(buffer, "JPEG", progressive=True)
    return buffer.getvalue()


@pytest.mark.parametrize("mark", [b"\xff\xda", b"\xff\xc2"], ids=["scans", "frame-headers"])
def test_a_jpeg_of_very_many_passes_is_no_frame_of_a_video(mark):
    side = 512
    whole = jpeg(side)
    start = whole.rindex(mark) if mark == b"\xff\xda" else whole.index(mark)
    end = len(whole) - 2 if mark == b"\xff\xda" else whole.index(b"\xff", start + 2)
    end = end if mark == b"\xff\xda" else start + 2 + int.from_bytes(whole[start + 2 : start + 4], "big")
    bomb = video_of([whole[:start] + whole[start:end] * 200 + whole[end:]], "mjpeg", side, "yuvj420p")
    assert len(decoded(bomb)) == 1  # each of them is worked through
    refused(bomb, "more scans")
    assert video_frames(video_of([whole], "mjpeg", side, "yuvj420p"), POLICY, count=1)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(*more: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", HEAD) + b"".join(more) + chunk(b"IDAT", PIXELS) + chunk(b"IEND", b"")


def with_text(name: bytes, size: int) -> bytes:
    return video_of([png(chunk(name, b"k\0\0" + zlib.compress(bytes(size))))], "png")


def megabytes(work: Callable[[], object]) -> float:
    """Return by how much the most memory that a process has had grows with ``work``."""
    ends = os.pipe()
    child = os.fork()
    if not child:
        try:
            work()
            with open("/proc/self/status") as status:
                os.write(ends[1], next(line for line in status if line.startswith("VmHWM")).split()[1].encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    most = int(os.read(ends[0], 99))
    for end in ends:
        os.close(end)
    return most / 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")
def test_what_a_png_in_a_video_holds_beside_its_picture_is_not_unpacked():
    bomb = with_text(b"zTXt", 64 << 20)
    assert len(bomb) < 1 << 17
    none = megabytes(lambda: None)
    if av.library_versions["libavcodec"][0] < 63:  # that of FFmpeg 9, which has a limit of its own
        assert megabytes(lambda: decoded(bomb)) > none + 64
    assert megabytes(lambda: video_frames(bomb, POLICY, count=1)) < none + 48
    assert np.array_equal(
        video_frames(with_text(b"zTXt", 99), POLICY, count=1)[0].image,
        video_frames(video_of([png()], "png"), POLICY, count=1)[0].image,
    )


def test_the_profile_of_a_png_in_a_video_does_not_end_the_process(tmp_path):
    """PyAV frees the name of a profile twice: once with the frame, and once with what it shows of it."""
    (tmp_path / "clip.mov").write_bytes(with_text(b"iCCP", 999))
    begin = "import gc, os, sys, av\nname = sys.argv[1]\n"
    seen = (
        "with av.open(name) as file:\n    frame = next(file.decode(video=0))\n"
        "    print(frame.side_data[0].type.name, flush=True)\n    os._exit(0)"
    )
    ours = (
        "from mmprompt.media import MediaPolicy\nfrom mmprompt.media.video.frames import video_frames\n"
        "print(len(video_frames(open(name, 'rb').read(), MediaPolicy(), count=2)))\ngc.collect()"
    )
    for code, said in ((seen, "ICC_PROFILE"), (ours, "1")):
        done = subprocess.run(
            [sys.executable, "-c", begin + code, str(tmp_path / "clip.mov")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr


def test_a_png_of_very_many_chunks_is_no_frame_of_a_video():
    refused(video_of([png(chunk(b"tEXt", b"k\0v") * 60_000)], "png"), "more chunks")


def test_a_frame_that_comes_out_but_once_is_an_error_of_its_video():
    """A packet of HEVC with two frames: decoded a second time, as where packets and frames differ, it gives fewer."""
    buffer = io.BytesIO()
    source = clip(3, codec="libx265", x265_params="log-level=none:bframes=0")
    with av.open(io.BytesIO(source)) as read, av.open(buffer, "w", format="mp4") as out:
        stream = out.add_stream_from_template(read.streams.video[0])
        first, *others = [packet for packet in read.demux(video=0) if packet.size]
        double = av.Packet(bytes(first) + bytes(others[0]))
        double.pts, double.dts, double.time_base = first.pts, first.dts, first.time_base
        double.is_keyframe = True
        for packet in (double, *others):
            packet.stream = stream
            out.mux(packet)
    with contextlib.suppress(SourceError):  # by FFmpeg 8 and 9; others may give the frames
        assert len(video_frames(buffer.getvalue(), POLICY, count=3)) == 3


@pytest.mark.parametrize("matrix", [3, 8, 10, 14])
def test_colours_that_are_not_converted_are_an_error_of_their_video(matrix):
    data = bytearray(clip(2, codec="prores_ks", container="mov", pixel_format="yuv422p10le"))
    at = data.find(b"icpf")
    while at >= 0:
        data[at + 20] = matrix
        at = data.find(b"icpf", at + 1)
    frame = decoded(bytes(data))[0]
    assert int(frame.colorspace) == matrix
    try:
        frame.reformat(format="rgb24")
    except (av.FFmpegError, ValueError):  # FFmpeg 8 and 9
        with pytest.raises(SourceError, match=f"colours of the form yuv422p10le, matrix {matrix}"):
            video_frames(bytes(data), POLICY, count=1)
    else:
        assert video_frames(bytes(data), POLICY, count=1)
