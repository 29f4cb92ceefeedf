"""Rows of an index set compared: from scores to ids, the best first, and whether a row is the test sample itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.sample import ID_COLUMNS, Sample
from mmprompt.errors import MMPromptError, RowError, SourceError, TaskError, nearest
from mmprompt.media.sources import classify
from mmprompt.templates.sample_view import CONTENT, CONTENT_SLOTS, SampleView, held_by_content

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Places = NDArray[np.intp]

_FIRST = 16
_SLACK = 1e-9


def best_first(scores: Array, exact: Callable[[Places], Array] | None = None) -> Iterator[int]:
    """Yield the places of ``scores``, the highest first, equal scores in their order.

    Only as many are sorted as are asked for. If ``scores`` are exact to 1e-9 of the largest only, ``exact`` returns the
    exact scores of an array of places, so that equal rows have equal scores.
    """
    import numpy as np  # noqa: PLC0415  # only where rows are compared

    count = len(scores)
    slack = _SLACK * float(np.abs(scores).max(initial=0.0)) if exact is not None else 0.0
    done, width = 0, min(_FIRST, count)
    while done < count:
        if width < count:
            bar = np.partition(scores, count - width)[count - width]
            near = np.flatnonzero(scores >= bar - slack)
        else:
            near = np.arange(count)
        order = np.argsort(-(scores[near] if exact is None else exact(near)), kind="stable")
        yield from near[order[done:width]].tolist()
        done, width = width, min(width * 8, count)


def is_same_sample(row: Sample, sample: Sample) -> bool:
    """Return whether a row is the sample itself: the same row of the same file, or equal in all but the id columns."""
    if row is sample or (row.file is not None and row.file == sample.file and row.row == sample.row):
        return True
    theirs = sample.columns
    equal = 0
    for name, value in row.columns.items():
        if name not in ID_COLUMNS:
            if name not in theirs or not _equal(value, theirs[name]):
                return False
            equal += 1
    others = sum([name not in ID_COLUMNS for name in theirs])
    return equal == others if equal or others else _equal(row.columns, theirs)


def _equal(a: Any, b: Any) -> bool:
    """Return whether two values of a column are equal. NaN equals NaN, arrays compare as a whole."""
    if a is b:
        return True
    if isinstance(a, (str, int)):
        return bool(a == b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(key in b and _equal(value, b[key]) for key, value in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return getattr(a, "shape", None) == getattr(b, "shape", None) and bool((a == b).all())
    if isinstance(a, float) and isinstance(b, float) and a != a and b != b:  # noqa: PLR0124  # both are NaN
        return True
    return bool(a == b)


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
