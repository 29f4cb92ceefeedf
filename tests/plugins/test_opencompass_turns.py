"""OpenCompass's own command over the last turns of dialogues."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import run_config
from runner_present import need
from test_opencompass_run import HEAD, tokenizer

need("opencompass", "opencompass")
pytestmark = [pytest.mark.runners, pytest.mark.filterwarnings("ignore")]  # OpenCompass warns where it is imported

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from datasets import Dataset

    from mmprompt.plugins.opencompass import MMPromptMessages

__all__ = ["tokenizer"]

ROWS = [
    {"id": "a", "question": ["1+1=?", "2+2=?", "3+3=?"], "answer": ["2", "4", "6"]},
    {"id": "b", "question": ["4+4=?", "5+5=?"], "answer": ["8", "10"]},
]
ROUND = [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "{answer}"}]
CONFIG = """
datasets = [dataset("last", {task!r}, dict(type=MMPromptTask, task={task!r}))]
del dataset
"""


def right_answer(body: dict[str, Any]) -> str:
    last = body["messages"][-1]["content"]
    return next(
        said for row in ROWS for question, said in zip(row["question"], row["answer"], strict=True) if question in last
    )


def test_a_table_of_rows_of_several_kinds_goes_through_a_template() -> None:
    rows = [
        {"content": "<AIS_IMAGE_START>https://h/a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>look"},
        {"question": "see", "image": ["https://h/b.jpg", "https://h/c.jpg"]},
        {"question": "think"},
        {"question": "read", "image": []},
    ]
    keys = ("content", "question", "image")
    table = Dataset.from_list([{key: row.get(key) for key in keys} for row in rows])
    assert [list(row) for row in table] == [list(keys)] * 4
    image = {"type": "image_url", "image_url": {"url": "{image}"}}
    template = MMPromptMessages({"round": [{"role": "HUMAN", "prompt_mm": {"image": image, "text": "{question}"}}]})
    found = [template.generate_item(row)[0]["content"] for row in table]
    assert [content if isinstance(content, str) else [part["type"] for part in content] for content in found] == [
        ["image_url", "text"],
        ["image_url", "image_url", "text"],
        "think",
        "read",
    ]


def test_right_replies_to_the_last_turns_are_all_right(tokenizer: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    infer = {
        "prompt_template": {"type": "MultiTurnPromptTemplate", "template": {"round": ROUND}},
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": "last"},
    }
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"dataset": "rows.jsonl", "infer_cfg": infer}), encoding="utf-8")
    config = HEAD.format(tokenizer=tokenizer) + CONFIG.format(task=str(task))
    run = run_config(tmp_path, "opencompass", config, "--debug", reply=right_answer)
    assert run.code == 0, run.log[-3000:]
    assert [len(body["messages"]) for body in run.bodies] == [5, 3]
    score = json.loads(run.found("out/*/results/m/last.json").read_text(encoding="utf-8"))
    assert score["accuracy"] == 100.0
