"""The media of in-context examples: their paths begin in the folder of the examples, not in that of the test set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmprompt.media.sources import RootedPath, classify_or_path
from mmprompt.templates.prompt_list import PromptList, in_section, section_of


def rooted_items(prompt: list[Any], root: str) -> PromptList:
    """Return a prompt with its media paths relative to ``root``. Other media stay as they are."""
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
    """Return a content part with the root put at its source."""
    if not isinstance(value, Mapping):
        return RootedPath(value, root) if type(value) is str and classify_or_path(value) in ("path", "file") else value
    keys = (value.get("type"), "url", "data", "path")
    return {k: v if k not in keys or k == "text" else _rooted(v, root) for k, v in value.items()}
