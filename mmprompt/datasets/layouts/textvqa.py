"""TextVQA: the list ``data``; ``image_id`` names a file of ``train_images/`` or ``test_images/``; ten ``answers``."""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, beside, has, text_of, with_columns
from mmprompt.datasets.sample import Sample


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    picture = columns.get("image")  # in parquet files the picture itself
    if picture is None:
        folder = "test_images" if columns.get("set_name") == "test" else "train_images"
        picture = beside(sample, f"{text_of(sample, 'image_id')}.jpg", folder)
    new = {"image": picture, "question": text_of(sample, "question"), "answer": columns.get("answers")}
    return with_columns(sample, new, renamed=("answers",))


LAYOUT = Layout("textvqa", ("question", "image_id"), has("question", "question_id", "image_id", "image_classes"), _read)
