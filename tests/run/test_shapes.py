"""``builtin:shapes`` over ``fixtures/shapes``: it looks at the picture, knows two questions, and says so of others."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from readme_blocks import ROOT

from mmprompt import MediaPolicy, Message, SourceError, TextPart, load_task
from mmprompt.errors import ServerError
from mmprompt.run.shapes.model import QUESTIONS, ShapesModel
from mmprompt.run.shapes.network import weights

SHAPES = ROOT / "fixtures/shapes"
ROWS = [json.loads(line) for line in (SHAPES / "shapes.jsonl").read_text(encoding="utf-8").splitlines()]
TASK = {"infer_cfg": yaml.safe_load((SHAPES / "task.yaml").read_text(encoding="utf-8"))["infer_cfg"]}


@pytest.fixture(scope="module")
def model() -> Any:
    with closing(ShapesModel()) as shapes:
        yield shapes


def asked(model: ShapesModel, rows: list[dict[str, Any]], **more: Any) -> list[Any]:
    """The answers to rows of the dataset, changed or not."""
    task = load_task({**TASK, "dataset": {"rows": rows}, **more}, policy=MediaPolicy(SHAPES))
    return [answer for request in task.requests() for answer in model.ask([request], {})]


def right(rows: list[dict[str, Any]], answers: list[Any]) -> dict[str, float]:
    """The share of right answers to each question."""
    counts = Counter(row["category"] for row in rows)
    hits = Counter(row["category"] for row, given in zip(rows, answers, strict=True) if given.reply == row["answer"])
    return {name: hits[name] / count for name, count in counts.items()}


@pytest.mark.parametrize("task", ["task.yaml", "few_shot.yaml"])
def test_it_names_the_colour_or_shape_in_the_last_picture(model: ShapesModel, task: str) -> None:
    answers = [model.ask([request], {})[0] for request in load_task(SHAPES / task).requests()]
    found = right(ROWS, answers)
    assert set(found) == {"colour", "shape"}
    assert min(found.values()) >= 0.95


def test_two_pictures_swapped_swap_their_answers(model: ShapesModel) -> None:
    one, other = [next(row for row in ROWS if row["answer"] == colour) for colour in ("red", "blue")]
    assert [given.reply for given in asked(model, [one, other])] == ["red", "blue"]
    swapped = [{**one, "image": other["image"]}, {**other, "image": one["image"]}]
    assert [given.reply for given in asked(model, swapped)] == ["blue", "red"]


def test_without_its_picture_it_is_right_by_chance(model: ShapesModel) -> None:
    blind = {"infer_cfg": {"prompt_template": "{question}"}}
    assert right(ROWS, asked(model, ROWS, **blind)) == {"colour": 1 / 6, "shape": 1 / 5}


@pytest.mark.parametrize(
    "text",
    ["Describe the picture.", "", "What colour is the shape of it?", "Which shape is this? What is it for?"[22:]],
)
def test_another_question_is_refused_by_name(model: ShapesModel, text: str) -> None:
    with pytest.raises(ServerError, match="two questions only: 'What colour is the shape") as caught:
        model.reply([Message("user", text)], {})
    assert caught.value.hint == "ask one of them, or another model"


def test_the_last_question_counts_whatever_is_written_around_it(model: ShapesModel) -> None:
    text = "Which shape is this? star\nWHAT COLOUR IS THE SHAPE? Answer in one word."
    reply = model.reply([Message("user", text), Message("assistant", "I think")], {})
    assert reply in QUESTIONS[0].answers
    assert (reply.finish_reason, reply.usage["completion_tokens"]) == ("stop", 1)
    assert reply.usage["prompt_tokens"] == 16


def test_a_damaged_picture_is_an_error_of_its_request(model: ShapesModel, tmp_path: Path) -> None:
    data = (SHAPES / ROWS[0]["image"]).read_bytes()
    (tmp_path / "cut.png").write_bytes(data[: len(data) // 2])
    task = load_task(
        {**TASK, "dataset": {"rows": [{**ROWS[0], "image": "cut.png"}, ROWS[1]]}}, policy=MediaPolicy(tmp_path)
    )
    shutil.copytree(SHAPES / "media", tmp_path / "media")
    cut, sound = model.ask(list(task.requests()), {})
    assert isinstance(cut.error, SourceError)
    assert cut.reply is None
    assert sound.reply == ROWS[1]["answer"]


def test_a_picture_that_is_only_named_is_refused(model: ShapesModel) -> None:
    request = next(load_task(SHAPES / "task.yaml").requests(media="file"))
    [answer] = model.ask([request], {})
    assert isinstance(answer.error, ServerError)
    assert "--media inline" in answer.error.hint


# ---- perplexities


def labelled(rows: list[dict[str, Any]], labels: tuple[str, ...]) -> Any:
    template = {
        label: {
            "round": [
                {
                    "role": "HUMAN",
                    "prompt_mm": {
                        "image": {"type": "image_url", "image_url": {"url": "file://{image}"}},
                        "text": {"type": "text", "text": "{question}"},
                    },
                },
                {"role": "BOT", "prompt": label},
            ]
        }
        for label in labels
    }
    infer = {
        "prompt_template": {"type": "MMPromptTemplate", "template": template},
        "inferencer": {"type": "PPLInferencer"},
    }
    return load_task({"dataset": {"rows": rows}, "infer_cfg": infer}, policy=MediaPolicy(SHAPES)).requests()


def test_the_lowest_perplexity_is_that_of_the_reply_and_all_together_are_certain(model: ShapesModel) -> None:
    for question in QUESTIONS:
        rows = [row for row in ROWS if row["question"] == question.text][:4]
        found = model.perplexities(list(labelled(rows, question.answers)))
        assert not [given.error for given in found if given.error]
        by_row = [found[start : start + len(question.answers)] for start in range(0, len(found), len(question.answers))]
        for of_row, given in zip(by_row, asked(model, rows), strict=True):
            perplexities = [answer.perplexity or 0.0 for answer in of_row]
            assert question.answers[perplexities.index(min(perplexities))] == given.reply
            assert math.isclose(sum(1 / value for value in perplexities), 1, rel_tol=1e-3)


def test_a_label_that_is_no_answer_has_no_perplexity(model: ShapesModel) -> None:
    colour = next(row for row in ROWS if row["category"] == "colour")
    red, ruby, star = model.perplexities(list(labelled([colour], ("red", "coloured", "star"))))
    assert red.perplexity >= 1
    for refused in (ruby, star):
        assert isinstance(refused.error, ServerError)
        assert "red, orange, yellow" in refused.error.hint


def test_without_a_picture_all_labels_are_equally_likely(model: ShapesModel) -> None:
    talk = [Message("user", [TextPart(QUESTIONS[1].text)]), Message("assistant", "Star.")]
    assert model.perplexity(talk) == 5


# ---- the files


def test_the_weights_are_few() -> None:
    assert 25_000 < sum(values.size for values in weights().values()) < 27_000


def test_the_classes_are_balanced_and_no_name_tells_the_answer() -> None:
    assert set(Counter(row["answer"] for row in ROWS if row["category"] == "colour").values()) == {5}
    assert set(Counter(row["answer"] for row in ROWS if row["category"] == "shape").values()) == {6}
    assert len({(SHAPES / row["image"]).read_bytes() for row in ROWS}) == 60
    train = [json.loads(line) for line in (SHAPES / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["answer"] for row in train} == {row["answer"] for row in ROWS}
    for row in [*ROWS, *train]:
        assert row["id"] in row["image"]
        assert not [word for word in (*QUESTIONS[0].answers, *QUESTIONS[1].answers) if word in row["image"]]


def test_the_script_draws_these_pictures_and_rows(tmp_path: Path) -> None:
    """Libraries of other versions may scale a little otherwise, so pixels are compared with some room."""
    import numpy as np
    from PIL import Image

    (tmp_path / "draw.py").write_bytes((SHAPES / "draw.py").read_bytes())
    subprocess.run([sys.executable, tmp_path / "draw.py"], check=True, timeout=60)
    for name in ("shapes.jsonl", "train.jsonl"):
        assert (tmp_path / name).read_bytes() == (SHAPES / name).read_bytes()
    for drawn in (tmp_path / "media").iterdir():
        kept, again = (
            np.asarray(Image.open(path).convert("RGB"), float) for path in (SHAPES / "media" / drawn.name, drawn)
        )
        assert np.abs(kept - again).mean() < 2, drawn.name


def test_threads_may_share_it(model: ShapesModel) -> None:
    requests = list(load_task(SHAPES / "task.yaml").requests())[::12]
    alone = [model.ask([request], {})[0].reply for request in requests]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda request: model.ask([request], {})[0].reply, requests))
    assert together == alone
