"""The header of Vorbis sound: a codebook that would end the process is refused, and real headers are read to their end."""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pytest
from sound_files import written
from test_metadata_costs import ogg

from mmprompt.errors import SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.ffmpeg.tag_lists import ogg_streams
from mmprompt.media.ffmpeg.vorbis import MOST_ENTRIES, MOST_IN_ALL, check_codebooks

POLICY = MediaPolicy()
IDENTITY = b"\x01vorbis" + struct.pack("<IBIIIIBB", 0, 1, 16000, 0, 0, 0, 0xB8, 1)
COMMENT = b"\x03vorbis" + bytes(8) + b"\x01"
SYNC = (0x564342, 24)


def packed(*fields: tuple[int, int]) -> bytes:
    """Return numbers in so many bits each, the lowest first."""
    whole = size = 0
    for number, bits in fields:
        whole |= number << size
        size += bits
    return whole.to_bytes(-(-size // 8), "little")


def book(bits: int) -> list[tuple[int, int]]:
    """Return a codebook whose words all have so many bits, in order, and stand for nothing."""
    return [SYNC, (1, 16), (1 << bits, 24), (1, 1), (bits - 1, 5), (1 << bits, bits + 1), (0, 4)]


def song(*books: list[tuple[int, int]]) -> bytes:
    """Return an Ogg file with these codebooks and the least that a Vorbis header holds beside them."""
    fields = [field for one in books for field in one]
    floor = [(0, 6), (1, 16), (0, 5), (0, 2), (8, 4)]
    residue = [(0, 6), (0, 16), (0, 24), (128, 24), (31, 24), (0, 6), (0, 8), (0, 3), (0, 1)]
    mapping = [(0, 6), (0, 16), (0, 1), (0, 1), (0, 2), (0, 24)]
    mode = [(0, 6), (0, 1), (0, 16), (0, 16), (0, 8), (1, 1)]
    setup = packed((len(books) - 1, 8), *fields, (0, 6), (0, 16), *floor, *residue, *mapping, *mode)
    return ogg([IDENTITY, COMMENT, b"\x05vorbis" + setup, *[b"\0\0"] * 5])


def test_a_codebook_that_overflows_the_stack_is_refused(tmp_path):
    bomb = song(book(22))
    assert len(bomb) < 400
    (tmp_path / "song.ogg").write_bytes(bomb)
    code = (
        "import resource, sys, soundfile\n"
        "resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))\n"
        "soundfile.SoundFile(sys.argv[1])"
    )
    if sys.platform == "linux":
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "song.ogg")], capture_output=True, check=False
        )
        assert done.returncode < 0
    for work in (audio_facts, decode_audio):
        with pytest.raises(SourceError, match="a codebook of 4194304 x 1 values"):
            work(bomb, POLICY)
    with pytest.raises(SourceError, match="a codebook"):  # wherever it stands among the others
        audio_facts(song(book(8), book(15), book(16)), POLICY)


def with_values(form: int) -> list[tuple[int, int]]:
    size = 3 if form == 1 else 16  # the cube root of 8, rounded down, or each of 8 x 2
    count = 2 if form == 1 else size
    return [
        SYNC,
        (3 if form == 1 else 2, 16),
        (8, 24),
        (0, 2),
        *[(2, 5)] * 8,
        (form, 4),
        (0, 64),
        (7, 5),
        (0, 8 * count),
    ]


@pytest.mark.parametrize(
    "first",
    [
        book(4),
        [SYNC, (1, 16), (4, 24), (0, 1), (1, 1), (0, 1), (3, 6), (0, 1), (3, 6), (0, 4)],
        with_values(1),
        with_values(2),
    ],
    ids=["ordered", "sparse", "lattice", "values"],
)
def test_the_codebook_behind_another_is_found(first):
    huge = [SYNC, (1, 16), (MOST_ENTRIES + 1, 24)]
    with pytest.raises(SourceError, match=f"{MOST_ENTRIES + 1} x 1"):
        check_codebooks([b"\x05vorbis" + packed((1, 8), *first, *huge)])


def test_codebooks_are_counted_in_all():
    books = b"\x05vorbis" + packed((63, 8), *book(15) * 64)
    assert MOST_IN_ALL == 64 << 15
    check_codebooks([books])
    with pytest.raises(SourceError, match="codebooks of more"):
        check_codebooks([books, books])


def test_a_header_that_is_cut_or_none_is_left_to_the_decoder():
    setup = b"\x05vorbis" + packed((1, 8), *book(4), *book(4))
    for end in range(len(setup)):
        check_codebooks([setup[:end]])
    check_codebooks(
        [b"\x05vorbis" * 9, b"\x05vorbis" + packed((0, 8), SYNC, (0, 16), (9, 24), (0, 2), (0, 45), (1, 4))]
    )


@pytest.mark.parametrize("rate", [8000, 44100])
@pytest.mark.parametrize("channels", [1, 2])
def test_real_vorbis_is_read_as_before(rate, channels):
    noise = np.random.default_rng(1).standard_normal((rate // 4, channels)).astype(np.float32) / 9
    data = written(noise, rate, "OGG", "VORBIS")
    assert b"\x05vorbis" in b"".join(ogg_streams(data))
    assert len(decode_audio(data, POLICY).samples) == rate // 4
