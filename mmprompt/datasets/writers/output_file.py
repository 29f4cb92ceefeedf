"""The files that a conversion creates: the output and the media beside it. Only the caller names them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO, cast

from mmprompt.datasets.output import is_stream, put_output, working_folder
from mmprompt.datasets.side_files import opened_side, side_output
from mmprompt.datasets.store_url import StoreURL, as_named
from mmprompt.datasets.whole_file import faults_of, put
from mmprompt.errors import DatasetError, TaskError, shown
from mmprompt.media.outputs import replacing


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
    """Write a medium to a new file below a folder."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)


def keep_medium(folder: str, name: str, data: bytes) -> None:
    """Write a medium to a file in a folder where it may be already, whole or not at all.

    Raises:
        TaskError: there is another file of this name.
        OSError: it cannot be written.
    """
    path = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    if not _is_kept(path, data):
        with side_output(path, cleans=False) as writer:
            writer.write([data])


def _is_kept(path: str, data: bytes) -> bool:
    """Return whether a file holds a medium; False if there is no such file.

    Raises:
        TaskError: it holds something else, which is not ours to replace.
    """
    try:
        with opened_side(path) as file:
            same = file.read(len(data) + 1) == data
    except FileNotFoundError:
        return False
    if not same:
        raise TaskError(f"{shown(path)} is there, and holds something else", "move it away")
    return True


@contextmanager
def new_output(output: str, *, folder: bool) -> Iterator[str]:
    """Give the path to write to; beside it media may go to a folder. All gets its name when it is complete.

    Raises:
        DatasetError: the output is a folder that holds something, its folder does not exist, or it cannot have media
            beside it.
        TaskError: the output is a medium, or is also read.
    """
    parent, base = os.path.split(os.path.realpath(output))
    plain = not (is_stream(output) or isinstance(as_named(output), StoreURL))
    if plain and not os.path.isdir(parent):
        raise DatasetError(f"the folder of the output {shown(output)} does not exist", "create it")
    if os.path.isdir(output) and (not folder or os.listdir(output)):
        hint = "name a new folder" if folder else "name a file in it"
        raise DatasetError(f"the output {shown(output)} is a folder that exists", hint)
    if folder and not plain:
        raise DatasetError(f"{shown(output)} holds no folder", "name a new folder")
    with faults_of(output), replacing(output), working_folder(output) as working:
        path = os.path.join(working, base)
        if folder:
            os.mkdir(path)
        yield path
        for name in os.listdir(working):
            if name != base:
                if not plain:
                    raise DatasetError(f"{shown(output)} has no place for media beside it", "use --store embed")
                _put_media(os.path.join(working, name), os.path.join(parent, name))
        if os.path.isdir(output):
            os.rmdir(output)
        put_output(path, output)


def _put_media(made: str, folder: str) -> None:
    """Move media, whose names are digests of what they hold, to the folder where they stay.

    Raises:
        DatasetError: the folder is a link.
        TaskError: a file there has the name of a medium, and holds something else; no medium is moved then.
    """
    if os.path.islink(folder):
        raise DatasetError(f"the folder of the media {shown(folder)} is a link", "move it away")
    os.makedirs(folder, exist_ok=True)
    new = []
    for name in os.listdir(made):
        with open(os.path.join(made, name), "rb") as file:
            if not _is_kept(os.path.join(folder, name), file.read()):
                new.append(name)
    for name in new:
        put(os.path.join(made, name), os.path.join(folder, name), synced=False)
