"""The programs that an MPEG transport stream announces (ISO 13818-1, 2.4.4.3; EN 300 468, 5.2.3), counted.

FFmpeg makes an object of each and looks through all for each of a changed table: 7 MB of ever new ones take hours.
"""

from __future__ import annotations

import re

from mmprompt.errors import SourceError

_PACKET = 188
# wherever FFmpeg may find the begin of a packet: its mark, then flags and the number of the stream that holds tables
_TABLE_PACKET = re.compile(rb"G[\x00\x20\x40\x60\x80\xa0\xc0\xe0]([\x00\x11])", re.DOTALL)
_BEGINS, _HAS_FIELD, _FILL = 0x40, 0x20, 0xFF
_LISTS = {b"\x00": (0x00, 2048), b"\x11": (0x42, 8192)}
"""By the stream: the table that lists programs in it, and how many there may be of four bytes, repeats not counted.

The first is the list of programs, the second that of their names, some ten times longer.
"""


def check_programs(data: bytes) -> None:
    """Refuse a transport stream that announces far more programs than any does.

    Raises:
        SourceError: it does.
    """
    left: dict[bytes, bytes | None] = {}
    seen: set[bytes] = set()
    counts = dict.fromkeys(_LISTS, 0)
    for found in _TABLE_PACKET.finditer(data):
        stream = found[1]
        table, most = _LISTS[stream]
        for body, again in _pieces(data[found.start() : found.start() + _PACKET]):
            begun = b"" if again else left.get(stream, b"")
            sections, left[stream] = ([], None) if begun is None else _sections(begun + body)
            new = {section for section in sections if section[0] == table} - seen
            seen |= new
            counts[stream] += sum(map(len, new)) // 4
        if counts[stream] > most:
            raise SourceError("the file has far more programs than any file has", "write it anew without them")


def _pieces(packet: bytes) -> list[tuple[bytes, bool]]:
    """Return what a packet holds of tables, and whether it begins one or goes on with the one before."""
    field = 1 + packet[4] if len(packet) > 4 and packet[3] & _HAS_FIELD else 0
    body = packet[4 + field :]
    if not packet[1] & _BEGINS or not body:
        return [(body, False)]
    begin = 1 + body[0]
    return [(body[1:begin], False), (body[begin:], True)]


def _sections(body: bytes) -> tuple[list[bytes], bytes | None]:
    """Return the whole tables in ``body``, and what is left for the next packet: None where they have ended."""
    whole: list[bytes] = []
    while body and body[0] != _FILL:
        size = 3 + (int.from_bytes(body[1:3], "big") & 0xFFF)
        if len(body) < max(3, size):
            return whole, body
        whole.append(body[:size])
        body = body[size:]
    return whole, None if body else b""
