"""``task.messages()`` of a task with a template, with and without fixed examples, against rows without a task."""

from __future__ import annotations

import os
from collections import deque

import inputs
from timing import Row, interleaved

from mmprompt import Task, dataset_task, load_task

BAR, SHOT_BAR = 2.0, 3.0
SHOTS = 4

_PARTS = {
    "image": {"type": "image_url", "image_url": "{image}"},
    "text": {"type": "text", "text": "{question}"},
}
_ASKED = {"role": "HUMAN", "prompt_mm": _PARTS}
_ROUND = {"round": [_ASKED, {"role": "BOT", "prompt": "{answer}"}]}
_PLAIN = {"prompt_template": {"type": "MMPromptTemplate", "template": {"round": [_ASKED]}}}
_FEW_SHOT = {
    "ice_template": {"type": "MMPromptTemplate", "template": _ROUND},
    "prompt_template": {"type": "MMPromptTemplate", "template": {"begin": ["</E>"], **_ROUND}, "ice_token": "</E>"},
    "retriever": {"type": "FixKRetriever", "fix_id_list": list(range(SHOTS))},
}


def messages(folder: str, *, count: int = 5000, repetitions: int = 25) -> list[Row]:
    """Make the messages of rows with an address and a question; no medium is read."""
    samples = inputs.samples(inputs.urls(count), count)
    tagged = dataset_task(inputs.write_rows(os.path.join(folder, "tagged.jsonl"), samples))
    rows = [sample._asdict() for sample in samples]
    plain = load_task({"dataset": {"rows": rows}, "infer_cfg": _PLAIN})
    few_shot = load_task({"dataset": {"rows": rows, "train_rows": rows[:SHOTS]}, "infer_cfg": _FEW_SHOT})
    timed = interleaved(
        {"tagged": lambda: _all(tagged), "plain": lambda: _all(plain), "shots": lambda: _all(few_shot)}, repetitions
    )
    base = timed["tagged"].best_cpu
    made = []
    for name, what, bar in (
        ("plain", "an MMPromptTemplate task", BAR),
        ("shots", f"the same with {SHOTS} fixed examples", SHOT_BAR),
    ):
        times = timed[name].best_cpu / base
        figures = f"{times:.2f} ({timed[name].best_cpu / count * 1e6:.1f} us, {base / count * 1e6:.1f} us)"
        made.append(Row(f"messages(), {what}, time over a row without a task", figures, f"<= {bar}", times <= bar))
    return made


def _all(task: Task) -> None:
    deque(task.messages(), 0)
