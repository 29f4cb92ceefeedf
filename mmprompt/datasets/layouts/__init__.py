"""Layouts of published datasets, in any file format: one file for each layout, and one row of ``LAYOUTS``.

A layout names the columns that mmprompt sends (``image``, ``audio``, ``video``, ``question``, ``hint``, ``options``,
``answer``), or the messages of a row that marks the places of its media.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from mmprompt.datasets.layouts import (
    air_bench,
    arc,
    audiobench,
    conversations,
    docvqa,
    inspect_samples,
    llamafactory,
    mathvista,
    mmmu,
    mvbench,
    qwen_vl,
    scienceqa,
    textvqa,
    videomme,
    vlmevalkit,
)  # fmt: skip
from mmprompt.datasets.layouts.layout import Layout
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import NO_COLUMN, MMPromptError, RowError, Where, nearest

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        llamafactory.LAYOUT,
        qwen_vl.LAYOUT,
        *conversations.LAYOUTS,
        mmmu.LAYOUT,
        mathvista.LAYOUT,
        scienceqa.LAYOUT,
        textvqa.LAYOUT,
        docvqa.LAYOUT,
        videomme.LAYOUT,
        mvbench.LAYOUT,
        arc.LAYOUT,
        air_bench.LAYOUT,
        audiobench.LAYOUT,
        inspect_samples.LAYOUT,
        vlmevalkit.LAYOUT,
    )
}
"""From format to layout. The first that recognises a row counts."""


def layout_of(columns: Mapping[str, object]) -> Layout | None:
    """Return the layout that a first row has, or None."""
    return next((layout for layout in LAYOUTS.values() if layout.recognises(columns)), None)


def laid_out(rows: Iterable[Row], layout: Layout, notes: Notes) -> Iterator[Row]:
    """Yield rows of a layout; a row that does not fit it becomes a ``RowError`` that names the column."""
    for row in rows:
        if isinstance(row, RowError):
            yield row
            continue
        try:
            fitted = _fitted(row, layout)
            if fitted.remarks:
                notes.add(fitted.remarks, row.file, row.line)
            yield fitted
        except MMPromptError as error:
            yield row.located(
                RowError(error.what, error.hint, error.where._replace(message=None, part=None), code=error.code)
            )


def recognised(rows: Iterator[Row], notes: Notes) -> Iterator[Row]:
    """Yield rows; if the first one has a layout, all of them as ``laid_out`` yields them."""
    for row in rows:
        if isinstance(row, RowError):
            yield row
            continue
        every = itertools.chain((row,), rows)
        layout = layout_of(row.columns)
        yield from every if layout is None else laid_out(every, layout, notes)


def _fitted(row: Sample, layout: Layout) -> Sample:
    for name in layout.columns:
        if name not in row.columns:
            what = f"no column '{name}', which {layout.name} has"
            where = Where(column=name, setting=NO_COLUMN)
            raise RowError(what, nearest(name, row.columns), where, "MM006")
    return layout.read(row)
