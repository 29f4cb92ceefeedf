"""Examples that run, one folder a runner beside this file; a file that others must not take for code ends in .txt."""

from __future__ import annotations

import os
from importlib import resources

from mmprompt.errors import TaskError, shown
from mmprompt.plugins.catalog import runner_named


def write_example(name: str, folder: str) -> list[str]:
    """Write the example of a runner into ``folder``, which is made if need be, and return the names of its files.

    Raises:
        TaskError: no such runner, or a file of that name is there already: then nothing is written.
        OSError: the folder cannot be written.
    """
    source = resources.files("mmprompt.plugins") / "examples" / runner_named(name).name
    files = {entry.name.removesuffix(".txt"): entry.read_bytes() for entry in source.iterdir() if entry.is_file()}
    paths = {os.path.join(folder, file): data for file, data in sorted(files.items())}
    for path in paths:
        if os.path.lexists(path):
            raise TaskError(f"{shown(folder)} has a {os.path.basename(path)} already", "name an empty folder")
    os.makedirs(folder, exist_ok=True)
    for path, data in paths.items():
        with open(path, "xb") as file:
            file.write(data)
    return list(paths)
