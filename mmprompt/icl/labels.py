"""Labels that each row has of its own, such as its choices: ``PPLInferencer`` with ``labels_column``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mmprompt.errors import TemplateError, shown
from mmprompt.templates.sample_view import SampleView


def label_views(
    entry: SampleView, labels: Sequence[object], column: str | None, output: str
) -> Mapping[object, SampleView]:
    """Return the row as each label's prompt sees it.

    ``labels`` are those of the task. With ``column`` the row lists its own there, and ``output`` reads as the label.

    Raises:
        TemplateError: the column does not hold a list of different texts.
    """
    if column is None:
        return dict.fromkeys(labels, entry)
    own = entry.raw.get(column)
    if not isinstance(own, (list, tuple)) or not own:
        raise TemplateError("the row has no list of labels", "give the column a list").located(column=column)
    texts = [str(label) for label in own]
    if alike := [text for text, count in Counter(texts).items() if count > 1]:
        what = f"the label {shown(alike[0])} is listed twice"
        raise TemplateError(what, "list each label once", code="MM703").located(column=column)
    return {text: entry.with_columns({output: text}) for text in texts}
