"""OpenCompass's own command comparing labels, and its retrievers' place taken by ours."""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import RETRIEVERS, TEXT, Run, retrieved, run_config, task_with_a_slot_of_no_column
from runner_present import need

from mmprompt.errors import TaskError

need("opencompass", "opencompass")
pytestmark = [pytest.mark.runners, pytest.mark.filterwarnings("ignore")]  # OpenCompass warns where it is imported

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from mmprompt.plugins.opencompass import (
        MMPromptDataset,
        MMPromptMessages,
        MMPromptRetriever,
        MMPromptTask,
        MMPromptText,
    )

ROWS = [{"id": n, "question": f"{n}+{n}=?", "answer": "AB"[n % 2]} for n in range(4)]
LABELS = {
    label: {
        "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Choose."}, "</E>"],
        "round": [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": said}],
    }
    for label, said in (("A", "a long answer"), ("B", "short"))
}
RANDOM = {"ice_num": 2, "seed": 7}
CONFIG = """
from mmprompt.plugins.opencompass import MMPromptDataset, MMPromptRetriever, MMPromptTask, MMPromptText
from opencompass.openicl.icl_evaluator import AccEvaluator
from opencompass.openicl.icl_inferencer import PPLInferencer
from opencompass.openicl.icl_retriever import ZeroRetriever
from opencompass_scorer import Scorer

LABELS = dict(type=MMPromptText, template={labels!r}, ice_token="</E>")

def dataset(abbr, **infer):
    return dict(abbr=abbr, type=MMPromptDataset, path={task!r}, infer_cfg=dict(inferencer=dict(type=PPLInferencer), **infer),
                eval_cfg=dict(evaluator=dict(type=AccEvaluator)),
                reader_cfg=dict(input_columns=["id"], output_column="answer"))

datasets = [
    dataset("task", prompt_template=dict(type=MMPromptTask, task={task!r}), retriever=dict(type=ZeroRetriever)),
    dataset("templates", prompt_template=LABELS, ice_template=LABELS,
            retriever=dict(type=MMPromptRetriever, kind="RandomRetriever", arguments={random!r})),
]
models = [dict(type=Scorer, abbr="m", batch_size=1, max_out_len=16, run_cfg=dict(num_gpus=0))]
work_dir = "out"
del dataset
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("task")
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    template = {"template": LABELS, "ice_token": "</E>"}
    made = {
        "dataset": {"path": "rows.jsonl", "train": "rows.jsonl"},
        "infer_cfg": {
            "ice_template": template,
            "prompt_template": template,
            "retriever": {"type": "RandomRetriever", **RANDOM},
            "inferencer": {"type": "PPLInferencer"},
        },
    }
    (folder / "task.json").write_text(json.dumps(made), encoding="utf-8")
    return str(folder / "task.json")


@pytest.fixture(scope="module")
def run(task: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = CONFIG.format(labels=LABELS, task=task, random=RANDOM)
    return run_config(tmp_path_factory.mktemp("run"), "opencompass", config, "--debug", reply=lambda _: "")


@pytest.mark.parametrize("dataset", ["task", "templates"])
def test_the_texts_compared_are_those_of_mmprompt_render(run: Run, task: str, command: Any, dataset: str) -> None:
    assert run.code == 0, run.log[-3000:]
    kept = json.loads(run.found(f"out/*/predictions/m/{dataset}.json").read_text(encoding="utf-8"))
    lines = command("render", task, "--emit", "string").stdout.splitlines()
    for row, line in zip(kept.values(), map(json.loads, lines), strict=True):
        assert {label: row[f"label: {label}"]["prompt"] for label in LABELS} == line["string"]
        assert row["prediction"] == "B"
    score = json.loads(run.found(f"out/*/results/m/{dataset}.json").read_text(encoding="utf-8"))
    assert score["accuracy"] == 50


def test_what_gives_messages_refuses_to_be_compared_by_name(tour: Path, task: str) -> None:
    with pytest.raises(TaskError, match="use MMPromptText"):
        MMPromptMessages("{question}").generate_label_prompt_item({"question": "?"}, "", "A")
    with pytest.raises(TaskError, match="use MMPromptText"):
        MMPromptMessages(LABELS)
    asked = str(tour / "task.yaml")
    with pytest.raises(TaskError, match="asks for a reply; use the runner's GenInferencer"):
        MMPromptTask(asked).generate_label_prompt_item(first_row(asked), "", "A")
    with pytest.raises(TaskError, match="compares labels; use the runner's PPLInferencer"):
        MMPromptTask(task).generate_item(first_row(task))
    with pytest.raises(TaskError, match="no label 'C'"):
        MMPromptTask(task).generate_label_prompt_item(first_row(task), "", "C")
    assert list(MMPromptText(LABELS).template) == ["A", "B"]


def first_row(task: str) -> dict[str, Any]:
    from mmprompt.plugins.bridge.table_rows import tables

    return {name: column[0] for name, column in tables(task)["test"].items()}


@pytest.mark.parametrize("kind", RETRIEVERS)
def test_a_retriever_picks_and_joins_as_the_core_does(tmp_path: Path, kind: str) -> None:
    template = MMPromptText(TEXT)

    def retriever(path: str, kind: str, arguments: dict[str, Any]) -> Any:
        dataset = MMPromptDataset(path=path, reader_cfg={"input_columns": ["question"], "output_column": "answer"})
        made = MMPromptRetriever(dataset=dataset, kind=kind, arguments=arguments)
        made.generate_ice = partial(made.generate_ice, ice_template=template)
        return made

    theirs, core = retrieved(tmp_path, kind, retriever)
    assert theirs == core


# ---- side by side, on OpenCompass's own classes


def test_an_end_section_under_a_meta_template() -> None:
    from opencompass.models.base import LMTemplateParser
    from opencompass.openicl.icl_prompt_template import PromptTemplate as Stock

    template = {**LABELS["A"], "end": [{"role": "HUMAN", "prompt": "Be brief."}]}
    parser = LMTemplateParser({"round": [{"role": "HUMAN", "begin": "H:"}, {"role": "BOT", "begin": "B:"}]})
    with pytest.raises(IndexError):
        parser.parse_template(Stock(template, ice_token="</E>").generate_item({"question": "?"}), "ppl")
    ours = MMPromptText(template, ice_token="</E>").generate_item({"question": "?"})
    assert parser.parse_template(ours, "ppl") == "H:Choose.H:?B:a long answerH:Be brief."


def test_the_separator_of_an_example_and_a_slot_in_a_value() -> None:
    from opencompass.openicl.icl_prompt_template import PromptTemplate as Stock

    options = {"template": "</E>Q: {q}</S>{a}", "ice_token": "</E>", "sep_token": "</S>"}
    row = {"q": "What is {a}?", "a": "Good."}
    assert Stock(**options).generate_ice_item(row, None) == "Q: What is Good.?</S>Good."
    assert MMPromptText(**options).generate_ice_item(row, None) == "Q: What is {a}?Good."


def test_the_documented_ice_template_alone_without_examples(task: str) -> None:
    from opencompass.openicl.icl_prompt_template import PromptTemplate as Stock
    from opencompass.openicl.icl_retriever import ZeroRetriever

    dataset = MMPromptDataset(path=task, reader_cfg={"input_columns": ["id"], "output_column": "answer"})
    retriever = ZeroRetriever(dataset)
    with pytest.raises(NotImplementedError, match="ice_token"):
        retriever.generate_prompt_for_generate_task(0, "", ice_template=Stock(TEXT))
    ours = retriever.generate_prompt_for_generate_task(0, "", ice_template=MMPromptText(TEXT))
    assert ours == "Q: 0+0=?\nA: "


def test_what_mmprompt_warns_of_is_in_opencompass_s_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from opencompass.utils import get_logger

    task = task_with_a_slot_of_no_column(tmp_path)
    row = first_row(task)
    get_logger().addHandler(caplog.handler)
    try:
        MMPromptTask(task).generate_item(row)
    finally:
        get_logger().removeHandler(caplog.handler)
    said = [record.getMessage() for record in caplog.records if record.name == "OpenCompass"]
    assert ["{quesion} in a template names no column" in text for text in said] == [True]
