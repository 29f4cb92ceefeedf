"""Lines for a person at a terminal: each medium is shown in short."""

from __future__ import annotations

import re
from typing import Any

from mmprompt.media.base64_text import encode
from mmprompt.targets.part_writer import Payload
from mmprompt.targets.wire_json import record_chunks

_BYTES = 12
_LONG = 200
_BASE64 = re.compile(r"[\w+/=-]+", re.ASCII)
_UNSAFE = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON leaves as they are and that move a terminal's cursor or turn the direction of its text."""


def short_chunks(record: dict[str, Any], *, newline: bool = False) -> list[bytes]:
    """Return the JSON of a record as ``record_chunks`` does, with the first bytes of each medium and its size.

    Raises:
        TargetError: as ``record_chunks``.
    """
    text = b"".join(record_chunks(_short(record), newline=newline)).decode("utf-8")
    return [_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode("utf-8")]


def _short(value: Any) -> Any:
    if isinstance(value, Payload):
        first = (value.part.frames or (value.part.data,))[0]
        size = sum(map(len, value.part.frames)) or len(value.part.data)
        return f"{value.prefix}{encode(first[:_BYTES]).decode('ascii')}… ({size:,} bytes)"
    if isinstance(value, str) and len(value) > _LONG:
        head, comma, data = value.partition(",") if value.startswith("data:") else ("", "", value)
        if comma or _BASE64.fullmatch(value):
            return f"{head}{comma}{data[: _BYTES * 4 // 3]}… ({len(data):,} characters)"
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, (list, tuple)) else value
