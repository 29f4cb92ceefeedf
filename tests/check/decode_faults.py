"""What tests have run in the decoding process in place of a decoder: it fails as the end of a file says."""

from __future__ import annotations

import os
import time

from mmprompt.media.inspection import Content, ImageContent, inspect
from mmprompt.media.policy import MediaPolicy


def inspect_or_fail(modality: str, data: bytes, frames: tuple[bytes, ...], policy: MediaPolicy) -> Content:
    """Look inside a medium; crash, hang or swell if its bytes end so."""
    if data.endswith(b"crash"):
        os.abort()
    if data.endswith(b"hang"):
        time.sleep(60)
    if data.endswith(b"swell"):
        bytearray(1 << 40)
    return inspect(modality, data, frames, policy)


def inspect_now(modality: str, data: bytes, frames: tuple[bytes, ...], policy: MediaPolicy) -> Content:
    """Look inside a picture; in place of its cells return the time."""
    content = inspect(modality, data, frames, policy)
    return content._replace(cells=str(time.monotonic_ns()).encode()) if isinstance(content, ImageContent) else content
