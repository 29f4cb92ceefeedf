"""Labels that each row has of its own, such as its choices: ``PPLInferencer`` with ``labels_column``."""

from __future__ import annotations

from collections import Counter

from mmprompt.errors import TemplateError, shown
from mmprompt.templates.sample_view import SampleView


def label_views(entry: SampleView, column: str, output: str) -> dict[str, SampleView]:
    """Return a row's view for each of its own labels, which ``column`` lists: its answer is the label.

    Raises:
        TemplateError: the column does not hold a list of different texts.
    """
    labels = entry.raw.get(column)
    if not isinstance(labels, (list, tuple)) or not labels:
        raise TemplateError("the row has no list of labels", "give the column a list").located(column=column)
    texts = [str(label) for label in labels]
    if alike := [text for text, count in Counter(texts).items() if count > 1]:
        raise TemplateError(
            f"the label {shown(alike[0])} is listed twice", "list each label once", code="MM703"
        ).located(column=column)
    return {text: entry.with_columns({output: text}) for text in texts}
