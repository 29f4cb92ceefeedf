"""The files that a runner's YAML names: only those in its own folder, or below folders that the caller allows."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Mapping, Sequence

from mmprompt.errors import TaskError, shown
from mmprompt.media.outputs import opened_input
from mmprompt.tasks.grants import is_inside
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.yaml_text import load_yaml

_LARGEST = 1 << 20
"""Most bytes of one such file."""

_MOST_FILES = 10_000
_MOST_VALUES = 1 << 20
"""Most values in a YAML text, with those that aliases repeat: a few lines of aliases can stand for 10 billion."""

_WILD = re.compile(r"[*?\[]")


class ConfigFolder:
    """The folder of a config. ``path`` is the config, ``roots`` are further folders that the caller allows."""

    def __init__(self, path: str, roots: Sequence[str] = ()) -> None:
        self.path = path
        self.folder = os.path.dirname(path)
        self._allowed = (self.folder or os.curdir, *roots)

    def beside(self, path: str) -> ConfigFolder:
        """Return the folder of a file that this config includes. It may take no more files than this one."""
        return ConfigFolder(path, self._allowed)

    def file(self, name: str, key: str) -> str:
        """Return the path of a file that the config names under ``key``.

        Raises:
            TaskError: it lies elsewhere.
        """
        path = os.path.join(self.folder, name)
        if not is_inside(path, self._allowed):
            folder = os.path.normpath(os.path.dirname(path) or os.curdir)
            what = f"{key}: {shown(name)} lies outside the folder of {shown(self.path)}"
            raise TaskError(
                what, f"pass --media-root {shlex.quote(folder)}, or move it; in Python give policy="
            ).located(setting=key)
        return path

    def files(self, name: str, key: str) -> list[str]:
        """Return the paths that a pattern such as ``tests/*.yaml`` matches, in order; a plain name is itself.

        Raises:
            TaskError: no file matches, or one of them lies elsewhere.
        """
        if not _WILD.search(name):
            return [self.file(name, key)]
        found = sorted(glob.glob(os.path.join(self.folder, name), recursive=True))
        if not found or len(found) > _MOST_FILES:
            what = f"{key}: {len(found) or 'no'} files match {shown(name)}"
            hint = "check the pattern" if not found else f"name at most {_MOST_FILES}"
            raise TaskError(what, hint).located(setting=key)
        return [self.file(os.path.relpath(path, self.folder or os.curdir), key) for path in found]

    def text(self, path: str, key: str) -> str:
        """Return the text of a file from ``file`` or ``files``.

        Raises:
            TaskError: it cannot be read, is too large, or is not UTF-8.
        """
        try:
            with opened_input(path) as file:
                data = file.read(_LARGEST + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a file name"
            what = f"{key}: cannot read {shown(path)}: {reason}"
            raise TaskError(what, "check the path").located(setting=key) from None
        if len(data) > _LARGEST:
            what = f"{key}: {shown(path)} is larger than 1 MiB"
            raise TaskError(what, "give a smaller file").located(setting=key)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            what = f"{key}: {shown(path)} is not UTF-8 at byte {error.start}"
            raise TaskError(what, "save it as UTF-8").located(setting=key) from None


def line_of(text: str, key: str) -> int | None:
    """Return the line of a key at the left margin of a YAML text; None if it has none."""
    found = re.search(rf"^[\"']?{re.escape(key)}[\"']?\s*:", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None


def upstream_yaml(text: str, *, functions: bool = False) -> ConfigValue:
    """Return what a runner's YAML text holds, see ``load_yaml``.

    Raises:
        TaskError: it is not YAML, or its aliases stand for too many values.
    """
    value = load_yaml(text, functions=functions)
    pending: list[ConfigValue] = [value]
    for _ in range(_MOST_VALUES):
        if not pending:
            return value
        held = pending.pop()
        if isinstance(held, Mapping):
            pending.extend(held.values())
        elif isinstance(held, list):
            pending.extend(held)
    raise TaskError(f"the aliases of the YAML stand for more than {_MOST_VALUES} values", "write fewer of them")
