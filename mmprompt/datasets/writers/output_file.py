"""The files that a conversion creates: the output and the media beside it. Only the caller names them."""

from __future__ import annotations

import gzip
import os
from typing import BinaryIO, TextIO, cast

from mmprompt.errors import DatasetError


def create_text(path: str) -> TextIO:
    """Create a text file, compressed if its name ends in ``.gz`` or ``.zst``."""
    if path.endswith(".gz"):
        return cast("TextIO", gzip.open(path, "wt", encoding="utf-8", newline=""))
    if path.endswith(".zst"):
        try:
            import zstandard  # noqa: PLC0415  # only where such a file is written
        except ImportError:
            raise DatasetError(
                "writing .zst files needs zstandard", "pip install zstandard, or write .gz", code="MM903"
            ) from None
        return cast("TextIO", zstandard.open(path, "wt", encoding="utf-8", newline=""))
    return open(path, "w", encoding="utf-8", newline="")


def create_bytes(path: str) -> BinaryIO:
    """Create a binary file."""
    return open(path, "wb")


def write_medium(folder: str, name: str, data: bytes) -> None:
    """Write a medium to a file below a folder."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
