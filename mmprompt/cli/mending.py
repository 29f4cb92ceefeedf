"""What ``mmprompt check --fix`` and ``--diff`` write."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from mmprompt.check.mending import MendedFile, difference, require_mendable
from mmprompt.check.reports.report import Write
from mmprompt.check.store import Store
from mmprompt.cli import say
from mmprompt.datasets.output import output
from mmprompt.datasets.read import Dataset
from mmprompt.errors import TaskError, shown
from mmprompt.media.outputs import require_apart


class Mending:
    """Writes datasets with their findings mended. ``count`` is the number of findings that are gone."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._files: dict[int, list[str]] = {}
        self.count = 0

    def require(self, paths: Sequence[str], dataset: Dataset) -> None:
        """Refuse a dataset that cannot be mended.

        Raises:
            TaskError: its format is another one, or there are several files for ``-o``.
        """
        named = [dataset.path or "the dataset"] if dataset.path not in paths else list(paths)
        for path in named:
            require_mendable(path, dataset.format, self._arguments.encoding)
        self._files[id(dataset)] = named
        files = [path for each in self._files.values() for path in each]
        if self._arguments.output is not None and len(files) > 1:
            raise TaskError(f"-o names one file, and there are {len(files)} datasets", "leave out -o, or name one")
        arguments = self._arguments
        for path in files:
            target = self._target(path)
            require_apart(target, arguments.output_file, arguments.baseline if arguments.write_baseline else None)
            if arguments.fix and not arguments.diff and arguments.output is None and os.path.lexists(target):
                raise TaskError(f"{shown(target)} is there already", "remove it, or name another file: -o FILE")

    def mend(self, dataset: Dataset, store: Store, write: Write) -> None:
        """Write the files of a dataset mended, or their differences to ``write``."""
        for path in self._files[id(dataset)]:
            file = MendedFile(path, dataset.format, store, unsafe=self._arguments.unsafe_fixes)
            target = self._target(path)
            if self._arguments.diff:
                for chunk in difference(path, target, file.records()):
                    write(chunk.decode("utf-8", "replace"))
            else:
                with output(target) as writer:
                    for record in file.records():
                        writer.write([record.new])
                    writer.flush()
                    writer.discarded = not file.count
                what = f"{file.count} finding{'s' * (file.count != 1)} mended in {target}" if file.count else ""
                say(f"mmprompt: {what or f'nothing to mend in {path}'}")
            self.count += file.count

    def _target(self, path: str) -> str:
        if self._arguments.output is not None:
            return str(self._arguments.output)
        stem, suffix = os.path.splitext(path)
        return f"{stem}.fixed{suffix}"
