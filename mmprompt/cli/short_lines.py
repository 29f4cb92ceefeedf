"""Lines for a person at a terminal: each medium is shown in short."""

from __future__ import annotations

import re
from typing import Any

from mmprompt.targets.wire_json import record_chunks
from mmprompt.viewer.short_json import short_value

_UNSAFE = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON leaves as they are and that move a terminal's cursor or turn the direction of its text."""


def short_chunks(record: dict[str, Any], *, newline: bool = False) -> list[bytes]:
    """Return the JSON of a record as ``record_chunks`` does, with the first bytes of each medium and its size.

    Raises:
        TargetError: as ``record_chunks``.
    """
    text = b"".join(record_chunks(short_value(record), newline=newline)).decode("utf-8")
    return [_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode("utf-8")]
