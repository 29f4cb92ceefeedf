"""VLMEvalKit's TSV (MMBench and others): ``index``, ``image`` as base64, ``question``, ``hint``, ``A`` …, ``answer``.

``image`` may be a list of base64 texts, or the index of the row that holds the picture. ``image_path`` names files.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase

from mmprompt.datasets.layouts.layout import Layout, text_of, with_columns
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.sample import Sample, column_error

_LETTERS = frozenset(ascii_uppercase)
_LONGEST_INDEX = 64
"""Characters; VLMEvalKit takes a shorter text in ``image`` for the index of another row."""


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    choices = [name for name in _LETTERS.intersection(columns) if columns[name] not in (None, "")]
    if choices and max(choices) != ascii_uppercase[len(choices) - 1]:
        name = min(_LETTERS.difference(choices))
        raise column_error(name, f"choice '{name}' is empty, and a later one is not", "give it a text", "MM714")
    cell = columns["image"] if columns.get("image") not in (None, "") else columns.get("image_path")
    pictures = [] if cell is None else [item for item in list_of_cell(cell, cells=True) if item not in (None, "")]
    if not pictures and not columns.keys().isdisjoint(("image", "image_path")):
        raise column_error("image", "the row has no picture", "fill 'image' or 'image_path'", "MM715")
    new = {
        "image": pictures[0] if len(pictures) == 1 else pictures or None,
        "hint": columns.get("hint") or None,
        "question": text_of(sample, "question"),
    }
    return with_columns(sample, new, drop=("image_path",))


def image_index(columns: Mapping[str, object]) -> str | None:
    """Return the index of the row that holds this row's picture; None if the row holds it itself."""
    picture = columns.get("image")
    short = isinstance(picture, str) and 0 < len(picture) <= _LONGEST_INDEX
    return str(picture) if short and str(picture).isdecimal() else None


_SHORTEST = 1000
"""Characters of a picture as base64, by which its column is recognised."""


def _recognises(columns: Mapping[str, object]) -> bool:
    """Its rows come from a file of text, so their index is text too."""
    if not isinstance(columns.get("index"), str) or "question" not in columns:
        return False
    return "image_path" in columns or "A" in columns or len(str(columns.get("image", ""))) >= _SHORTEST


LAYOUT = Layout("vlmevalkit", ("index", "question"), _recognises, _read)
