"""Layouts of published datasets, in any file format: a function for each, and a row of ``LAYOUTS``.

A layout names the columns that mmprompt sends (``image``, ``audio``, ``video``, ``question``, ``hint``, ``options``,
``answer``), or the messages of a row that marks the places of its media.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from mmprompt.datasets.layouts import arc, conversations, inspect_samples, medmcqa, pictures, recordings, vlmevalkit
from mmprompt.datasets.layouts.layout import Layout
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample, each, no_column
from mmprompt.errors import MMPromptError, RowError

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        *conversations.LAYOUTS,
        pictures.MMMU,
        pictures.MATHVISTA,
        pictures.MATHVISION,
        pictures.SCIENCEQA,
        pictures.TEXTVQA,
        pictures.DOCVQA,
        recordings.VIDEOMME,
        recordings.MVBENCH,
        arc.LAYOUT,
        medmcqa.LAYOUT,
        recordings.AIR_BENCH,
        recordings.AUDIOBENCH,
        inspect_samples.LAYOUT,
        vlmevalkit.LAYOUT,
    )
}
"""From format to layout. The first that recognises a row counts."""


def layout_of(columns: Mapping[str, object]) -> Layout | None:
    """Return the layout that a first row has, or None."""
    return next((layout for layout in LAYOUTS.values() if layout.recognises(columns)), None)


def laid_out(rows: Iterable[Row], layout: Layout, notes: Notes) -> Iterator[Row]:
    """Return rows of a layout; a row that does not fit it becomes a ``RowError`` that names the column."""
    return each(rows, partial(_fitted, layout=layout, notes=notes))


def recognised(rows: Iterator[Row], notes: Notes) -> Iterator[Row]:
    """Yield rows; if the first one has a layout, all of them as ``laid_out`` yields them."""
    for row in rows:
        if isinstance(row, RowError):
            yield row
            continue
        every = itertools.chain((row,), rows)
        layout = layout_of(row.columns)
        yield from every if layout is None else laid_out(every, layout, notes)


def _fitted(row: Sample, layout: Layout, notes: Notes) -> Sample:
    for name in layout.columns:
        if name not in row.columns:
            raise no_column(name, f"no column '{name}', which {layout.name} has", row.columns)
    try:
        fitted = layout.read(row)
    except MMPromptError as error:
        where = error.where._replace(message=None, part=None)
        raise RowError(error.what, error.hint, where, code=error.code) from None
    if fitted.remarks:
        notes.add(fitted.remarks, row.file, row.line)
    return fitted
