"""Each published format, from file to messages, compared part by part; media by their SHA-256."""

from __future__ import annotations

import json
from pathlib import Path

import published
import pytest
from published import CASES, Sent

from mmprompt import MediaPolicy, MediaRef, dataset_task
from mmprompt.datasets.read import open_dataset
from mmprompt.tasks.starter import starter_task


def sent_rows(task, roots) -> list[Sent]:
    policy = MediaPolicy(roots=[root for root in (task.dataset.root, *map(str, roots)) if root is not None])
    rows = []
    for (name, messages), request in zip(task.messages(), task.requests(policy=policy), strict=True):
        hashes = iter(request.media)
        shown = [
            (
                message.role,
                [
                    (p.modality, next(hashes).sha256) if isinstance(p, MediaRef) else ("text", p.text)
                    for p in message.parts
                ],
            )
            for message in messages
        ]
        assert next(hashes, None) is None
        rows.append(Sent(name, shown, request.answers))
    return rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_published_format_gives_the_messages_written_by_hand(case, tmp_path: Path):
    made = case(tmp_path)
    task = dataset_task(made.path, **made.options)
    assert task.dataset.format == made.format
    assert sent_rows(task, made.roots) == made.rows
    assert [row.id for row in task.samples()] == [row.id for row in made.rows]


def test_questions_of_vqav2_without_annotations_name_their_pictures(tmp_path: Path):
    question = {"image_id": 262144, "question": "What?", "question_id": 262144000}
    for subset, named in (("test-dev2015", "test2015"), ("test2015", "test2015"), ("train2014", "train2014")):
        path = tmp_path / f"v2_OpenEnded_mscoco_{subset}_questions.json"
        path.write_text(json.dumps({"data_type": "mscoco", "data_subtype": subset, "questions": [question]}), "utf-8")
        task = dataset_task(path)
        (row,) = task.samples()
        assert row.columns["image"] == f"COCO_{named}_000000262144.jpg"
        assert "answer" not in row.columns
        assert any("no file of annotations lies beside it" in note for note in task.notes())


@pytest.mark.parametrize(
    ("case", "scorer"),
    [
        (published.mmmu, "choice"), (published.scienceqa, "choice"), (published.mathvista, "choice"),
        (published.videomme, "choice"), (published.vqav2, "vqa"), (published.textvqa, "vqa"),
        (published.docvqa, "anls"), (published.llava, "exact"),
    ],
)  # fmt: skip
def test_a_starter_task_names_the_scorer_of_the_benchmark(case, scorer, tmp_path: Path):
    made = case(tmp_path)
    text, _ = starter_task(open_dataset(made.path), {"path": str(made.path)})
    assert f"eval_cfg: {{scorer: {scorer}}}" in text
