"""A runner's YAML laid over the files that it includes, each of which is read once.

They lie in the folder of the config, or below folders that the caller allows.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mmprompt.errors import TaskError, shown
from mmprompt.media.outputs import opened_input
from mmprompt.tasks.config import Section
from mmprompt.tasks.grants import is_inside
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.yaml_text import load_yaml

_MOST = 100
"""Most files that a config includes, with those that they include."""

_LARGEST = 1 << 20
"""Most bytes of these files together."""


class Merged(NamedTuple):
    """The keys of a file with those it includes, and for each key the path and the text of the file that sets it."""

    keys: dict[str, ConfigValue]
    origins: dict[str, tuple[str, str]]

    def place(self, key: str | None) -> tuple[str | None, int | None]:
        """Return the file and the line of a key; None for what is not known."""
        if key not in self.origins:
            return None, None
        path, text = self.origins[key]
        found = re.search(rf"^[\"']?{re.escape(key)}[\"']?\s*:", text, re.MULTILINE)
        return path, text.count("\n", 0, found.start()) + 1 if found else None


class Includes:
    """The files that the config ``path`` includes. ``roots`` are further folders that the caller allows."""

    def __init__(self, path: str, roots: Sequence[str]) -> None:
        self._allowed = (os.path.dirname(path) or os.curdir, *roots)
        self._merged: dict[str, Merged | None] = {}  # by real path; None while the file is read
        self._left = _MOST
        self._bytes = _LARGEST

    def merged(self, path: str, text: str, config: Section) -> Merged:
        """Return the keys of a file, whose text holds ``config``, laid over those of the files that it includes.

        Raises:
            TaskError: a file lies elsewhere, cannot be read, is no mapping or includes itself; or there are too many.
        """
        real = os.path.realpath(path)
        self._merged[real] = None
        made = Merged({}, {})
        try:
            for name in _names(config.get("include")):
                other = self._included(path, name)
                made.keys.update(other.keys)
                made.origins.update(other.origins)
        except TaskError as error:
            raise error.located(file=path) from None
        own = {str(key): value for key, value in config.items() if key != "include"}
        made.keys.update(own)
        made.origins.update(dict.fromkeys(own, (path, text)))
        self._merged[real] = made
        return made

    def _included(self, base: str, name: str) -> Merged:
        self._left -= 1
        if self._left < 0:
            raise _error(f"the task includes more than {_MOST} files", "write their keys into fewer files")
        path = os.path.join(os.path.dirname(base), name)
        if not is_inside(path, self._allowed):
            folder = os.path.normpath(os.path.dirname(path) or os.curdir)
            hint = f"pass --media-root {shlex.quote(folder)}, or move it; in Python give policy="
            raise _error(f"include: {shown(name)} lies outside the folder of {shown(base)}", hint)
        real = os.path.realpath(path)
        if real not in self._merged:
            text = self._text(path, name)
            config = load_yaml(text, functions=True)
            if not isinstance(config, Mapping):
                raise _error(f"{shown(name)} holds {type(config).__name__}", "include a mapping")
            return self.merged(path, text, config)
        if (known := self._merged[real]) is None:
            raise _error(f"{shown(name)} includes itself, with the files between", "break the circle of 'include'")
        return known

    def _text(self, path: str, name: str) -> str:
        if os.path.exists(path) and not os.path.isfile(path):  # a FIFO would be waited for
            raise _error(f"include: {shown(name)} is no file", "include a file of YAML")
        try:
            with opened_input(path) as file:
                data = file.read(self._bytes + 1)
        except OSError as error:
            raise _error(f"include: cannot read {shown(name)}: {error.strerror}", "check the path") from None
        self._bytes -= len(data)
        if self._bytes < 0:
            raise _error("the included files are larger than 1 MiB together", "include smaller files")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            what = f"include: {shown(name)} is not UTF-8 at byte {error.start}"
            raise _error(what, "save it as UTF-8") from None


def _names(include: ConfigValue) -> list[str]:
    listed = [include] if isinstance(include, str) else include or []
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise _error("include is not the name of a file", "give a file, or a list of files")
    return listed


def _error(what: str, hint: str) -> TaskError:
    return TaskError(what, hint).located(setting="include")
