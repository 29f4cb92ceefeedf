"""The text of a row, for retrievers that compare rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, RowError, SourceError, TaskError, nearest
from mmprompt.media.sources import classify
from mmprompt.templates.sample_view import CONTENT, CONTENT_SLOTS, SampleView, held_by_content

_HEAD = 64


class RowText:
    """Turns rows into the text that retrievers compare: the values of ``input_columns``, one on each line.

    A tagged or structured column gives its text segments. Media inside a value (bytes, data URIs, bare base64) are left
    out, but a path or URL counts as text. ``output_column`` is never compared.
    """

    def __init__(
        self, input_columns: Iterable[str], output_column: str | None, tagged_columns: Iterable[str] | None
    ) -> None:
        names = input_columns.split() if isinstance(input_columns, str) else input_columns
        self._columns = tuple([name for name in names if name != output_column])
        self._tagged = None if tagged_columns is None else frozenset(tagged_columns)
        if not self._columns:
            raise TaskError("the retriever has no columns to compare", "list them in reader_cfg.input_columns")

    def __call__(self, row: Sample) -> str:
        """Return the text of a row."""
        entry = SampleView(row.columns, scanned=row.scanned, tagged=self._tagged)
        try:
            return "\n".join([text for column in self._columns if (text := _column_text(entry, column))])
        except MMPromptError as error:
            raise error.located(file=row.file, line=row.line, sample=str(row.id)) from None


def _column_text(entry: SampleView, column: str) -> str:
    if column not in entry.columns and held_by_content(column, entry.columns):
        return _column_text(entry, CONTENT) if column == CONTENT_SLOTS[0] else ""
    if column not in entry.columns:
        raise RowError(f"no column '{column}', which input_columns lists", nearest(column, entry.columns), code="MM006")
    segments = entry.segments(column)
    if segments is None:
        return _value_text(entry.columns[column])
    return "\n".join([str(s.value) for s in segments if s.modality == "text"])


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return "" if _is_payload(value) else value
    if isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return ""
    return "\n".join([text for item in value if (text := _value_text(item))])


def _is_payload(text: str) -> bool:
    """Return whether a text is a medium itself: a data URI or bare base64."""
    if text[:5].lower() == "data:":
        return True
    if len(text) < _HEAD or any(map(str.isspace, text[:_HEAD])):
        return False
    try:
        return classify(text).kind == "base64"
    except SourceError:
        return False
