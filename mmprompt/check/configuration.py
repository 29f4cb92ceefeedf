"""The settings of a project: ``[tool.mmprompt]`` of the ``pyproject.toml`` in the current folder or above it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import NamedTuple

from mmprompt.check.selection import covers, known_prefix
from mmprompt.datasets.side_files import require_regular
from mmprompt.errors import TaskError, nearest, shown
from mmprompt.errors.findings import Finding
from mmprompt.tasks.files import read_toml

_LISTS = ("select", "ignore", "extend-select")
_TEXTS = ("target", "baseline")
_NUMBERS = ("workers",)
_KEYS = (*_LISTS, *_TEXTS, *_NUMBERS)


class IgnoredCodes(NamedTuple):
    """Codes that are not reported for some files, or of one sample of them. ``file`` is a pattern as of a shell."""

    file: str
    sample: str | None
    codes: Sequence[str]

    def hides(self, finding: Finding, path: str) -> bool:
        """Return whether a finding is left out of the report; ``path`` is its file's, from the project's folder on."""
        if not covers(self.codes, finding.code):
            return False
        if self.sample is not None and (finding.id is None or str(finding.id) != self.sample):
            return False
        return fnmatchcase(path, self.file) or fnmatchcase(os.path.basename(path), self.file)


class Configuration(NamedTuple):
    """The settings of a project. ``root`` is its folder; ``baseline`` begins there.

    ``rules`` are the keys that choose what is found and told.
    """

    root: str = ""
    rules: Sequence[str] = ()
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    extend_select: Sequence[str] = ()
    target: str | None = None
    baseline: str | None = None
    workers: int | None = None
    ignored: Sequence[IgnoredCodes] = ()

    @property
    def file(self) -> str:
        """The file that holds the settings."""
        return os.path.join(self.root, "pyproject.toml")

    def lies_with(self, paths: Iterable[str]) -> bool:
        """Return whether one of the paths lies in the project's folder or below it: the file may be a stranger's."""
        return any(_is_below(path, self.root) for path in paths)

    def own_baseline(self) -> str | None:
        """Return the baseline.

        Raises:
            TaskError: it lies outside the project's folder, which takes the caller's word.
        """
        if self.baseline is not None and not _is_below(self.baseline, self.root):
            what = f"the baseline {shown(os.path.relpath(self.baseline, self.root))} lies outside this folder"
            raise TaskError(what, "name it with --baseline FILE").located(file=self.file)
        if self.baseline is not None:
            require_regular(self.baseline)
        return self.baseline

    def hides(self, finding: Finding) -> bool:
        """Return whether ``[tool.mmprompt.ignore]`` names the finding."""
        if not self.ignored:
            return False
        path = os.path.relpath(os.path.abspath(finding.file or ""), self.root).replace(os.sep, "/")
        return any(ignored.hides(finding, path) for ignored in self.ignored)


def project_configuration(folder: str = "") -> Configuration:
    """Return the settings of the project that a folder (by default the current one) lies in.

    Raises:
        TaskError: its ``pyproject.toml`` is malformed, or a setting is unknown or of the wrong type.
    """
    for path in _project_files(os.path.abspath(folder)):
        try:
            section = _section(path)
            if section is not None:
                return _configuration(section, os.path.dirname(path))
        except TaskError as error:
            raise error.located(file=path) from None
    return Configuration()


def _project_files(folder: str) -> Iterator[str]:
    while True:
        path = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(path):
            yield path
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _section(path: str) -> Mapping[str, object] | None:
    """Return the table ``[tool.mmprompt]`` of a file; None if it has none."""
    table: Mapping[str, object] = read_toml(path)
    for place in ("tool", "tool.mmprompt"):
        below = table.get(place.removeprefix("tool."))
        if below is None:
            return None
        if not isinstance(below, dict):
            raise TaskError(f"{place} is not a table", "write [tool.mmprompt]")
        table = below
    return table


def _configuration(section: Mapping[str, object], root: str) -> Configuration:
    for key in section:
        if key not in _KEYS:
            raise TaskError(f"unknown key {shown(key)} in [tool.mmprompt]", nearest(key, _KEYS))
    by_file = section.get("ignore")
    ignored = list(_ignored(by_file)) if isinstance(by_file, dict) else []
    lists = {key: [] if key == "ignore" and ignored else _codes(key, section.get(key, [])) for key in _LISTS}
    for key in _TEXTS:
        if not isinstance(section.get(key, ""), str):
            raise TaskError(f"{key} is {shown(section[key])}", "give a text")
    baseline, workers = section.get("baseline"), section.get("workers")
    if workers is not None and (type(workers) is not int or workers < 1):
        raise TaskError(f"workers is {shown(workers)}", "give a whole number from 1")
    return Configuration(
        root,
        rules=[key for key in section if key not in _NUMBERS],
        select=lists["select"],
        ignore=lists["ignore"],
        extend_select=lists["extend-select"],
        target=section.get("target"),  # type: ignore[arg-type]  # a text or missing, as checked above
        baseline=os.path.join(root, baseline) if isinstance(baseline, str) else None,
        workers=workers,
        ignored=ignored,
    )


def _ignored(by_file: Mapping[str, object]) -> Iterator[IgnoredCodes]:
    for key, codes in by_file.items():
        chosen, pattern = _codes(f"ignore.{key}", codes), key.removeprefix("./")
        yield IgnoredCodes(pattern, None, chosen)
        file, mark, sample = pattern.partition("#")
        if mark:
            yield IgnoredCodes(file, sample, chosen)


def _codes(key: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise TaskError(f"{key} is {shown(value)}", 'give a list of codes: ["MM204"]')
    return [known_prefix(code) for code in value]


def _is_below(path: str, folder: str) -> bool:
    """Return whether a path leads to a place in a folder or below it, links followed. One with a NUL leads nowhere."""
    return "\0" not in path and PurePath(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
