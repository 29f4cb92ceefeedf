"""OpenCompass's own command over the tour: what the server got, and what OpenCompass wrote of it."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import SKELETONS, Run, reply, run_config, sent, with_examples
from runner_present import need
from test_tour_over_http import arrived, expected

from mmprompt.plugins.examples import write_example

need("opencompass", "opencompass")
pytestmark = pytest.mark.runners

ADDED = {"model", "max_tokens", "n", "logprobs", "top_logprobs", "stop", "temperature"}
"""Keys of a request that OpenCompass adds beside the messages; it adds none to a message."""
HEAD = """
from opencompass.models import OpenAI
from opencompass.openicl.icl_evaluator import AccEvaluator
from opencompass.openicl.icl_inferencer import GenInferencer
from opencompass.openicl.icl_retriever import FixKRetriever, ZeroRetriever
from opencompass.partitioners import NaivePartitioner
from opencompass.runners import LocalRunner
from opencompass.tasks import OpenICLEvalTask
from mmprompt.plugins.opencompass import MMPromptDataset, MMPromptTask

def dataset(abbr, path, template, retriever=dict(type=ZeroRetriever), ice=None, kind=MMPromptDataset,
            inferencer=dict(type=GenInferencer, max_out_len=16), **options):
    infer = dict(prompt_template=template, retriever=retriever, inferencer=inferencer)
    if ice:
        infer["ice_template"] = ice
    return dict(abbr=abbr, type=kind, path=path, infer_cfg=infer, eval_cfg=dict(evaluator=dict(type=AccEvaluator)),
                reader_cfg=dict(input_columns=["id"], output_column="answer"), **options)

models = [dict(type=OpenAI, abbr="m", path="recorder", key="x", tokenizer_path={tokenizer!r}, query_per_second=100,
               openai_api_base="http://127.0.0.1:PORT/v1/chat/completions", batch_size=1, max_out_len=16,
               max_seq_len=4096, temperature=0)]
work_dir = "out"
eval = dict(partitioner=dict(type=NaivePartitioner, n=9), runner=dict(type=LocalRunner, task=dict(type=OpenICLEvalTask)))
"""
CONFIG = """
custom_imports = dict(imports=["mmprompt.plugins.opencompass"], allow_failed_imports=False)
SKELETONS = {skeletons!r}
ROUND = [dict(role="HUMAN", prompt_mm=SKELETONS), dict(role="BOT", prompt="{{answer}}")]
SYSTEM = dict(role="SYSTEM", prompt="Answer in a few words.")
CONTENT = "{{content}}"
MEDIA = dict(roots={tour!r})
datasets = [
    dataset("task", {task!r}, dict(type=MMPromptTask, task={task!r})),
    dataset("chats", {chats!r}, dict(type="mmprompt.plugins.opencompass.MMPromptTask", task={chats!r})),
    dataset("shots", {rows!r},
            dict(type="MMPromptMessages", template=dict(begin=[SYSTEM, "</E>"], round=ROUND), ice_token="</E>", media=MEDIA),
            ice=dict(type="MMPromptMessages", template=dict(round=ROUND)),
            retriever=dict(type=FixKRetriever, fix_id_list=[0, 3])),
]
del dataset  # the runner writes the config down and reads it again, without its functions
"""
DATASETS = ("task", "chats", "shots")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tokenizer of one word: OpenCompass's models count tokens before they send."""
    folder = tmp_path_factory.mktemp("tokenizer")
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None}
    whole |= {"pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None, "model": words}
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind), encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def run(tour: Path, tasks: dict[str, str], tokenizer: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in worker processes, to which the config goes as the runner dumped it."""
    config = HEAD.format(tokenizer=tokenizer) + CONFIG.format(
        tour=str(tour), rows=str(tour / "tour.jsonl"), skeletons=SKELETONS, **tasks
    )
    folder = tmp_path_factory.mktemp("run")
    return run_config(folder, "opencompass", config, "--max-num-workers", "1", reply=reply)


def test_the_command_ends_well_and_sends_each_row_once(run: Run, rendered: dict[str, Any]) -> None:
    assert run.code == 0, run.log[-3000:]
    assert len(run.bodies) == sum(len(lines) for lines in rendered.values()), run.log[-3000:]


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_messages_are_those_of_mmprompt_render(run: Run, rendered: dict[str, Any], dataset: str) -> None:
    for body, line in zip(sent(run, rendered, DATASETS, dataset), rendered[dataset], strict=True):
        assert body["messages"] == line["messages"], line["id"]
        assert set(body) - {"messages"} == ADDED


@pytest.mark.parametrize(("dataset", "shown"), [("task", ()), ("shots", (0, 3))])
def test_each_medium_has_the_bytes_of_its_file_and_its_place(
    run: Run, rendered: dict[str, Any], tour: Path, dataset: str, shown: tuple[int, ...]
) -> None:
    bodies = sent(run, rendered, DATASETS, dataset)
    for body, (id_, messages) in zip(bodies, with_examples(expected("tour.jsonl", tour), shown), strict=True):
        assert arrived(body) == messages, id_


@pytest.mark.parametrize("dataset", DATASETS)
def test_opencompass_s_own_files_hold_the_replies_and_the_score(
    run: Run, rendered: dict[str, Any], dataset: str
) -> None:
    lines = rendered[dataset]
    replies = [reply(line) for line in lines]
    kept = json.loads(run.found(f"out/*/predictions/m/{dataset}.json").read_text(encoding="utf-8"))
    assert [kept[str(number)]["prediction"] for number in range(len(kept))] == replies
    assert [kept[str(number)]["gold"] for number in range(len(kept))] == [line["answer"] for line in lines]
    score = json.loads(run.found(f"out/*/results/m/{dataset}.json").read_text(encoding="utf-8"))
    right = sum(line["answer"] == said for line, said in zip(lines, replies, strict=True))
    assert score["accuracy"] == 100 * right / len(lines)


def test_what_opencompass_would_drop_ends_the_run_before_the_first_request(tmp_path: Path, tokenizer: str) -> None:
    row = {
        "id": "r",
        "messages": [{"role": "user", "content": "?"}, {"role": "tool", "content": "4", "tool_call_id": "c"}],
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (tmp_path / "task.json").write_text('{"dataset": "rows.jsonl"}', encoding="utf-8")
    task = os.fspath(tmp_path / "task.json")
    config = HEAD.format(tokenizer=tokenizer)
    config += 'custom_imports = dict(imports=["mmprompt.plugins.opencompass"], allow_failed_imports=False)\n'
    config += (
        f"datasets = [dataset('bad', {task!r}, dict(type='MMPromptTask', task={task!r}), kind='MMPromptDataset')]\n"
    )
    config += "del dataset\n"
    run = run_config(tmp_path, "opencompass", config, "--mode", "infer", "--debug", reply=reply)
    assert run.bodies == []
    assert "rows.jsonl:1: MM800 message 2: OpenCompass sends no role 'tool'" in run.log, run.log[-3000:]


def test_the_example_that_mmprompt_writes_runs_without_a_network(tmp_path: Path) -> None:
    [config] = [path for path in write_example("opencompass", str(tmp_path / "mine")) if path.endswith(".py")]
    text = Path(config).read_text(encoding="utf-8").replace(":8000/", ":PORT/")
    run = run_config(tmp_path / "mine", "opencompass", text, "--debug", reply=reply)
    assert (run.code, len(run.bodies)) == (0, 2), run.log[-3000:]


# ---- side by side, on OpenCompass's own classes


def test_the_stock_route_loses_media_and_ours_keeps_them(tour: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opencompass.models.base_api import APITemplateParser
        from opencompass.openicl.icl_prompt_template import PromptTemplate as Stock

        from mmprompt.plugins.opencompass import MMPromptMessages
    template = {"round": [{"role": "HUMAN", "prompt_mm": SKELETONS}]}
    row = {
        "content": "<AIS_IMAGE_START>media/coffee.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?",
        "answer": "a cup",
    }
    meta = {"round": [{"role": "HUMAN", "api_role": "HUMAN"}, {"role": "BOT", "api_role": "BOT", "generate": True}]}
    parser = APITemplateParser(meta)
    assert parser.parse_template(Stock(template).generate_item(row), "gen") == [{"role": "HUMAN", "prompt": ""}]
    ours = MMPromptMessages(template, media={"roots": [str(tour)]}).generate_item(row, "answer")
    [message] = parser.parse_template(ours, "gen")
    assert [part["type"] for part in message["content"]] == ["image_url", "text"]


def test_what_is_counted_is_the_text_so_that_examples_with_media_stay(tour: Path) -> None:
    from opencompass.models.base_api import BaseAPIModel

    from mmprompt.plugins.opencompass import MMPromptMessages

    row = {"content": "<AIS_IMAGE_START>media/coffee.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?"}
    template = MMPromptMessages({"round": [{"role": "HUMAN", "prompt_mm": SKELETONS}]}, media={"roots": [str(tour)]})
    sent = template.generate_item(row)
    plain = [dict(message) for message in sent]
    model = BaseAPIModel("m")
    assert sum(model.get_token_len_from_template(plain, "gen")) > 1000
    assert model.get_token_len_from_template(sent, "gen") == [3]


def test_slots_in_the_parts_of_raw_messages(tour: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opencompass.openicl.icl_raw_prompt_template import RawPromptTemplate as Stock

        from mmprompt.plugins.opencompass import MMPromptMessages
    parts = [{"type": "text", "text": "{question}"}, {"type": "image_url", "image_url": {"url": "{picture}"}}]
    messages = [{"role": "user", "content": parts}]
    row = {"question": "What is it?", "picture": "media/coffee.jpg"}
    assert Stock(messages).generate_item(row)[0]["content"] == parts
    [message] = MMPromptMessages(messages=messages, media={"roots": [str(tour)]}).generate_item(row)
    assert message["content"][0] == {"type": "text", "text": "What is it?"}
    assert message["content"][1]["image_url"]["url"].startswith("data:image/jpeg;base64,")


def test_media_that_would_go_by_name_are_refused_by_name(tour: Path) -> None:
    from mmprompt.errors import TaskError
    from mmprompt.plugins.opencompass import MMPromptMessages

    with pytest.raises(TaskError, match="OpenCompass opens paths itself"):
        MMPromptMessages("{question}", media={"roots": [str(tour)], "mode": "file"})


def test_a_config_comes_with_its_keys_sorted_and_a_task_file_keeps_their_order(tour: Path, tmp_path: Path) -> None:
    from mmengine.config import Config

    from mmprompt.plugins.bridge.table_rows import tables
    from mmprompt.plugins.opencompass import MMPromptMessages, MMPromptTask

    template = {"round": [{"role": "HUMAN", "prompt_mm": {key: SKELETONS[key] for key in ("text", "image")}}]}
    row = {"question": "What is it?", "image": str(tour / "media" / "coffee.jpg")}
    dumped = Config.fromstring(Config({"template": template}).dump(), ".py").template
    [message] = MMPromptMessages(dumped, media={"roots": [str(tour)]}).generate_item(row)
    assert [part["type"] for part in message["content"]] == ["image_url", "text"]

    (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    prompt = {"type": "MMPromptTemplate", "template": template}
    task = {"dataset": "rows.jsonl", "media": {"roots": [str(tour)]}, "infer_cfg": {"prompt_template": prompt}}
    (tmp_path / "task.json").write_text(json.dumps(task), encoding="utf-8")
    path = str(tmp_path / "task.json")
    entry = {name: column[0] for name, column in tables(path, media_root=str(tour))["test"].items()}
    [message] = MMPromptTask(path, media_root=str(tour)).generate_item(entry)
    assert [part["type"] for part in message["content"]] == ["text", "image_url"]
