"""Requests with their media in short, as JSON for people."""

from __future__ import annotations

import json
import re
from typing import Any

from mmprompt.media.base64_text import encode
from mmprompt.targets.part_writer import Payload
from mmprompt.targets.wire_json import record_chunks

_BYTES = 12
_LONG = 200
_BASE64 = re.compile(r"[\w+/=-]+", re.ASCII)


def short_value(value: Any) -> Any:
    """Return a request with the first bytes of each medium and its size in the place of its base64."""
    if isinstance(value, Payload):
        first = (value.part.frames or (value.part.data,))[0]
        size = sum(map(len, value.part.frames)) or len(value.part.data)
        return f"{value.prefix}{encode(first[:_BYTES]).decode('ascii')}… ({size:,} bytes)"
    if isinstance(value, str) and len(value) > _LONG:
        head, comma, data = value.partition(",") if value.startswith("data:") else ("", "", value)
        if comma or _BASE64.fullmatch(value):
            return f"{head}{comma}{data[: _BYTES * 4 // 3]}… ({len(data):,} characters)"
    if isinstance(value, dict):
        return {key: short_value(item) for key, item in value.items()}
    return [short_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def pretty_json(record: dict[str, Any]) -> str:
    """Return a request as indented JSON with its media in short; integers of any size are exact.

    Raises:
        TargetError: as ``record_chunks``.
    """
    text = b"".join(record_chunks(short_value(record)))
    return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
