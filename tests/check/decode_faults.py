"""What tests have run in the decoding process in place of a decoder: it fails as the end of a file says."""

from __future__ import annotations

import os
import time

from mmprompt.media.inspection import Content, ImageContent, inspect
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart


def inspect_or_fail(part: MediaPart, policy: MediaPolicy) -> Content:
    """Look inside a medium; crash, hang or swell if its bytes end so."""
    if part.data.endswith(b"crash"):
        os.abort()
    if part.data.endswith(b"hang"):
        time.sleep(60)
    if part.data.endswith(b"swell"):
        bytearray(1 << 40)
    return inspect(part, policy)


def inspect_now(part: MediaPart, policy: MediaPolicy) -> Content:
    """Look inside a picture; in place of its cells return the time."""
    content = inspect(part, policy)
    return content._replace(cells=str(time.monotonic_ns()).encode()) if isinstance(content, ImageContent) else content
