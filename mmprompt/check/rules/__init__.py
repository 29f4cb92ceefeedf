"""The rules by family: importing a module registers its rules."""

from __future__ import annotations

from mmprompt.check.rules import (
    answers,
    characters,
    columns,
    duplicates,
    file_names,
    images,
    pixels,
    placeholders,
    questions,
    similar_media,
    sounds,
    tags,
    targets,
    templates,
    videos,
)

__all__ = [
    "answers",
    "characters",
    "columns",
    "duplicates",
    "file_names",
    "images",
    "pixels",
    "placeholders",
    "questions",
    "similar_media",
    "sounds",
    "tags",
    "targets",
    "templates",
    "videos",
]
