"""AISBench's own command over the tour: what the server got, and what AISBench wrote of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import SKELETONS, Run, reply, run_config, with_examples
from runner_present import need
from test_tour_over_http import arrived, expected

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

ADDED = {"model", "stream", "max_tokens", "temperature"}
"""Keys of a request that AISBench adds beside the messages; it adds none to a message."""
WARM_UP = 1
"""Requests that AISBench sends before those of a process: its first row once more."""
# batch_size: AISBench ends a run, rows unasked, where more than five times as many events wait for its counter as that;
# a row has four, and on a busy machine the counter comes late
HEAD = """
from ais_bench.benchmark.openicl.icl_evaluator import AccEvaluator
from ais_bench.benchmark.openicl.icl_inferencer import GenInferencer
from ais_bench.benchmark.openicl.icl_retriever import ZeroRetriever
from ais_bench.benchmark.partitioners import NaivePartitioner
from ais_bench.benchmark.runners import LocalRunner
from ais_bench.benchmark.summarizers import DefaultSummarizer
from ais_bench.benchmark.tasks import OpenICLApiInferTask, OpenICLEvalTask
from mmprompt.plugins.aisbench import MMPromptChat, MMPromptDataset, MMPromptTask

def dataset(abbr, path, template, retriever=dict(type=ZeroRetriever), ice=None, kind=MMPromptDataset,
            inferencer=dict(type=GenInferencer), **options):
    infer = dict(prompt_template=template, retriever=retriever, inferencer=inferencer)
    if ice:
        infer["ice_template"] = ice
    return dict(abbr=abbr, type=kind, path=path, infer_cfg=infer, eval_cfg=dict(evaluator=dict(type=AccEvaluator)),
                reader_cfg=dict(input_columns=["id"], output_column="answer"), **options)

def model(kind, abbr):
    return dict(attr="service", type=kind, abbr=abbr, path="", model="recorder", host_ip="127.0.0.1", host_port=PORT,
                max_out_len=16, batch_size=32, request_rate=0, retry=1, generation_kwargs=dict(temperature=0))

summarizer = dict(attr="accuracy", type=DefaultSummarizer)
work_dir = "out"
eval = dict(partitioner=dict(type=NaivePartitioner, n=9), runner=dict(type=LocalRunner, task=dict(type=OpenICLEvalTask)))
"""
IN_ONE_PROCESS = """
infer = dict(partitioner=dict(type=NaivePartitioner, n=9), runner=dict(type=LocalRunner, task=dict(type=OpenICLApiInferTask)))
"""
"""All datasets, which must have the same inferencer, with one start of AISBench."""
CONFIG = """
SKELETONS = {skeletons!r}
ROUND = [dict(role="HUMAN", prompt_mm=SKELETONS), dict(role="BOT", prompt="{{answer}}")]
SYSTEM = dict(role="SYSTEM", fallback_role="HUMAN", prompt="Answer in a few words.")
MEDIA = dict(roots={tour!r})
datasets = [
    dataset("task", {task!r}, dict(type=MMPromptTask, task={task!r})),
    dataset("chats", {chats!r}, dict(type="MMPromptTask", task={chats!r}), kind="MMPromptDataset"),
    dataset("short-names", {rows!r},
            dict(type="MMPromptMultimodal", template=dict(begin=[SYSTEM, "</E>"], round=ROUND), ice_token="</E>", media=MEDIA),
            ice=dict(type="MMPromptMultimodal", template=dict(round=ROUND), media=MEDIA),
            retriever=dict(type="MMPromptRetriever", kind="FixKRetriever", arguments=dict(fix_id_list=[0, 3])),
            kind="MMPromptDataset"),
]
models = [model("MMPromptChat", "ours")]
del dataset, model  # the runner writes the config down and reads it again, without its functions
"""
RENDERED_AS = {"task": "task", "chats": "chats", "short-names": "shots"}


@pytest.fixture(scope="module")
def run(tour: Path, tasks: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = (
        HEAD
        + IN_ONE_PROCESS
        + CONFIG.format(tour=str(tour), rows=str(tour / "tour.jsonl"), skeletons=SKELETONS, **tasks)
    )
    return run_config(tmp_path_factory.mktemp("run"), "ais_bench", config, "--mode", "all", "--debug", reply=reply)


def sent(run: Run, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The requests of these lines: AISBench asks for many rows at once, of all datasets."""
    return [
        next(
            body
            for body in run.bodies
            if body["messages"][-1] == line["messages"][-1] and len(body["messages"]) == len(line["messages"])
        )
        for line in lines
    ]


def predictions(run: Run, model: str, dataset: str) -> list[dict[str, Any]]:
    file = run.found(f"out/*/predictions/{model}/{dataset}.jsonl")
    return sorted(map(json.loads, file.read_text(encoding="utf-8").splitlines()), key=lambda line: line["id"])


def test_the_command_ends_well_and_sends_each_row_once(run: Run, rendered: dict[str, Any]) -> None:
    assert run.code == 0, run.log[-3000:]
    wanted = sum(len(rendered[task]) for task in RENDERED_AS.values())
    assert len(run.bodies) == wanted + WARM_UP, run.log[-3000:]


@pytest.mark.parametrize("dataset", RENDERED_AS)
def test_the_messages_are_those_of_mmprompt_render(run: Run, rendered: dict[str, Any], dataset: str) -> None:
    bodies = sent(run, rendered[RENDERED_AS[dataset]])
    for body, line in zip(bodies, rendered[RENDERED_AS[dataset]], strict=True):
        assert body["messages"] == line["messages"], line["id"]
        assert set(body) - {"messages"} == ADDED


@pytest.mark.parametrize(("dataset", "shown"), [("task", ()), ("short-names", (0, 3))])
def test_each_medium_has_the_bytes_of_its_file_and_its_place(
    run: Run, rendered: dict[str, Any], tour: Path, dataset: str, shown: tuple[int, ...]
) -> None:
    bodies = sent(run, rendered[RENDERED_AS[dataset]])
    for body, (id_, messages) in zip(bodies, with_examples(expected("tour.jsonl", tour), shown), strict=True):
        assert arrived(body) == messages, id_


@pytest.mark.parametrize("dataset", RENDERED_AS)
def test_aisbench_s_own_files_hold_the_replies_and_the_score(run: Run, rendered: dict[str, Any], dataset: str) -> None:
    lines = rendered[RENDERED_AS[dataset]]
    replies = [reply(line) for line in lines]
    kept = predictions(run, "ours", dataset)
    assert [line["prediction"] for line in kept] == replies
    assert [line["gold"] for line in kept] == [line["answer"] for line in lines]
    score = json.loads(run.found(f"out/*/results/ours/{dataset}.json").read_text(encoding="utf-8"))
    right = sum(line["answer"] == said for line, said in zip(lines, replies, strict=True))
    assert score == {"accuracy": 100 * right / len(lines)}
