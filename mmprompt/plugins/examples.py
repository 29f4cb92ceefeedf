"""Writes an example for a runner. Each runner has a folder in ``examples/``; there ``.txt`` hides a file from tools."""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib import resources

from mmprompt.datasets.output import output
from mmprompt.errors import TaskError, shown
from mmprompt.plugins.runners import runner_named


def write_example(name: str, folder: str) -> list[str]:
    """Write the example of a runner into ``folder`` and return the names of its files. Creates the folder if needed.

    Raises:
        TaskError: the runner is unknown, or the folder has a file of that name; then nothing is written.
        OSError: the folder cannot be written.
    """
    source = resources.files("mmprompt.plugins") / "examples" / runner_named(name).name
    files = {entry.name.removesuffix(".txt"): entry.read_bytes() for entry in source.iterdir() if entry.is_file()}
    paths = {os.path.join(folder, file): data for file, data in sorted(files.items())}
    for path in paths:
        if os.path.lexists(path):
            raise TaskError(f"{shown(folder)} has a {os.path.basename(path)} already", "name an empty folder")
    os.makedirs(folder, exist_ok=True)
    with ExitStack() as outputs:  # all of them get their names, or none
        for path, data in paths.items():
            outputs.enter_context(output(path)).write([data])
    return list(paths)
