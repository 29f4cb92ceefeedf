"""Paths that begin at a folder of their own: the media of examples, whose file may lie beside another dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mmprompt.media.sources import classify_or_path
from mmprompt.templates.prompt_list import PromptList, in_section, section_of


class RootedPath(str):
    """A path as its sample wrote it, which begins at ``root``."""

    __slots__ = ("root",)
    root: str

    def __new__(cls, path: str, root: str) -> RootedPath:
        """Make the path; see the class."""
        self = super().__new__(cls, path)
        self.root = root
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the root."""
        return (RootedPath, (str(self), self.root))

    def full(self, path: str) -> str:
        """Return ``path``, this one as classified, from its root."""
        return os.path.join(os.path.abspath(self.root), str(path))  # a plain string, where it is absolute too


def rooted_items(prompt: list[Any], root: str) -> PromptList:
    """Return a prompt whose media paths begin at ``root``; what is no relative path stays as it is."""
    out = PromptList()
    for item in prompt:
        key = "content" if isinstance(item, Mapping) and "content" in item else "prompt"
        said = item.get(key) if isinstance(item, Mapping) else None
        if isinstance(said, list):
            out.append(in_section({**item, key: [_rooted(part, root) for part in said]}, section_of(item)))
        else:
            out.append(item)
    return out


def _rooted(value: Any, root: str) -> Any:
    """Return a content part whose source has the root."""
    if not isinstance(value, Mapping):
        return RootedPath(value, root) if type(value) is str and classify_or_path(value) in ("path", "file") else value
    keys = (value.get("type"), "url", "data", "path")
    return {k: v if k not in keys or k == "text" else _rooted(v, root) for k, v in value.items()}
