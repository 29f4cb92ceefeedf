"""Labels chosen by perplexity, against log-likelihoods computed here from the logits of the model itself."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmprompt import load_task, run_task

torch = pytest.importorskip("torch")
import drawn  # noqa: E402  # after the skip

from mmprompt.run.local_model import LocalModel  # noqa: E402

pytestmark = pytest.mark.models
TEXTS = ["What colour is it?", "Where is the cat", "Say red", "1 + 1 =", "black or white", "left, right"]


@pytest.fixture(scope="module")
def llava():
    model = LocalModel(drawn.FIXTURE)
    yield model
    model.close()


@pytest.fixture(scope="module")
def by_hand():
    """exp of the mean negative log-likelihood of the tokens after the first that are not ``<image>``, token by token."""
    from transformers import AutoProcessor, LlavaForConditionalGeneration

    processor = AutoProcessor.from_pretrained(drawn.FIXTURE)
    model = LlavaForConditionalGeneration.from_pretrained(drawn.FIXTURE, use_safetensors=True).eval()
    image_token = processor.tokenizer.convert_tokens_to_ids("<image>")

    def perplexity(question: str, label: str, pictures: list[Path]) -> float:
        text = f"<|user|>{'<image>' * len(pictures)}{question}<|end|><|assistant|>{label}<|end|>"
        images = [Image.open(file) for file in pictures] or None
        inputs = processor(text=text, images=images, return_tensors="pt")
        with torch.no_grad():
            likely = model(**inputs).logits[0].double().log_softmax(-1)
        ids = inputs["input_ids"][0].tolist()
        losses = [-likely[at - 1, token].item() for at, token in enumerate(ids) if at and token != image_token]
        return math.exp(sum(losses) / len(losses))

    return perplexity


def samples(folder: Path, *, image: bool) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Twenty-five rows, and the labels that are compared."""
    names = [*drawn.COLOURS, *drawn.SIDES, "red then blue", "no idea at all"]
    if image:
        rows = [*drawn.single(folder, 17), *drawn.pairs(folder, 8)]
    else:
        rows = [{"id": n, "question": f"{TEXTS[n % 6]} {n}", "answer": ""} for n in range(25)]
    return rows, drawn.labels("", names, image=image)


@pytest.mark.parametrize("image", [False, True], ids=["text", "image"])
def test_the_label_is_that_of_the_greatest_likelihood(llava, by_hand, tmp_path, image):
    rows, infer = samples(tmp_path, image=image)
    made = list(load_task(drawn.written(tmp_path, rows, infer)).requests("hf"))
    answers = [answer for at in range(0, len(made), 8) for answer in llava.perplexities(made[at : at + 8])]
    ours: dict[object, dict[object, float]] = {}
    hand: dict[object, dict[object, float]] = {}
    for request, answer in zip(made, answers, strict=True):
        row = next(row for row in rows if row["id"] == request.id)
        named = row.get("image", [])
        pictures = [tmp_path / file for file in (named if isinstance(named, list) else [named])]
        ours.setdefault(request.id, {})[request.label] = answer.perplexity
        hand.setdefault(request.id, {})[request.label] = by_hand(row["question"], request.label, pictures)
    assert len(ours) == 25
    assert all(ours[row] == pytest.approx(hand[row], rel=1e-4) for row in hand)
    chosen = {row: min(values, key=values.__getitem__) for row, values in ours.items()}
    assert chosen == {row: min(values, key=values.__getitem__) for row, values in hand.items()}
    if image:
        assert sum(chosen[row["id"]] == row["answer"] for row in rows[:17]) == 17
        assert len(set(chosen.values())) > 5


def journal(tmp_path: Path, model: Any, rows: list[dict[str, Any]], infer: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the rows of a run, in order."""
    report = run_task(drawn.written(tmp_path, rows, infer), model, tmp_path / "out.jsonl", overwrite=True)
    assert (report.answered, report.failed) == (len(rows), 0)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    return sorted((line for line in lines if line["label"] is None), key=lambda line: line["row"])


def test_a_run_compares_the_labels_by_their_perplexity(llava, tmp_path):
    rows = drawn.single(tmp_path, 12)
    names = [*drawn.COLOURS, *drawn.SIDES]
    for order in (names, names[::-1]):
        lines = journal(tmp_path, llava, rows, drawn.labels("", order, image=True))
        assert [line["prediction"] for line in lines] == [row["answer"] for row in rows]


@pytest.mark.parametrize("image", [False, True], ids=["text", "image"])
def test_of_labels_that_tie_the_first_is_chosen(llava, tmp_path, image):
    rows, infer = samples(tmp_path, image=image)
    templates = infer["prompt_template"]["template"]
    likely, unlikely = templates["left"], templates["no idea at all"]
    infer["prompt_template"]["template"] = {"n": unlikely, "b": likely, "a": likely, "c": likely}
    assert {line["prediction"] for line in journal(tmp_path, llava, rows, infer)} == {"b"}
    infer["prompt_template"]["template"] = {"a": likely, "n": unlikely, "b": likely}
    assert {line["prediction"] for line in journal(tmp_path, llava, rows, infer)} == {"a"}


def test_the_tokens_of_pictures_are_left_out(llava, tmp_path):
    rows, infer = samples(tmp_path, image=True)
    [request] = list(load_task(drawn.written(tmp_path, rows[:1], infer)).requests("hf"))[:1]
    left_out = llava.perplexities([request])[0].perplexity
    llava._media_ids, kept = frozenset(), llava._media_ids
    try:
        assert llava.perplexities([request])[0].perplexity != pytest.approx(left_out, rel=0.1)
    finally:
        llava._media_ids = kept


def test_a_row_that_fails_has_an_error_and_no_perplexity(llava, tmp_path):
    rows = drawn.single(tmp_path, 2)
    rows[0]["question"] = "<image>"
    made = list(load_task(drawn.written(tmp_path, rows, drawn.labels("", ["red"], image=True))).requests("hf"))
    broken, sound = llava.perplexities(made)
    assert (broken.perplexity, sound.error) == (None, None)
    assert "the model failed" in str(broken.error)
    assert json.dumps(sound.perplexity)
