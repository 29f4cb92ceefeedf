"""AISBench's own command over dialogues of several turns and over labels, with media where it can carry them."""

from __future__ import annotations

import json
import shutil
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import SKELETONS, Run, run_config
from runner_present import need
from test_aisbench_run import HEAD

from mmprompt.errors import MMPromptError

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ais_bench.benchmark.openicl.icl_prompt_template import MultiTurnPromptTemplate as Stock
    from ais_bench.benchmark.utils.prompt import PromptList as RunnerList
    from ais_bench.benchmark.utils.prompt.prompt import get_round_index

    from mmprompt.plugins.aisbench import MMPromptMultiTurn

CUP = "<AIS_IMAGE_START>media/coffee.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What drink is it?"
ROWS = [
    {"id": "a", "question": [CUP, "Is it hot?"], "answer": ["coffee", "yes"]},
    {"id": "b", "question": ["1+1=?", "2+2=?", "3+3=?"], "answer": ["2", "4", "6"]},
]
TURNS = {
    "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Be brief."}],
    "round": [{"role": "HUMAN", "prompt_mm": SKELETONS}, {"role": "BOT", "prompt": "{answer}"}],
}
LABELS = {
    label: {"round": [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": said}]}
    for label, said in (("A", "a long answer"), ("B", "short"))
}
MODES = ("every", "every_with_gt", "last")
NAMES = {**{mode: mode for mode in MODES}, "labels": "labels", "label-task": "labels"}
"""The datasets of the run, and the tasks that they are rendered from."""
CONFIG = """
from ais_bench.benchmark.openicl.icl_inferencer import MultiTurnGenInferencer, PPLInferencer

def turns(mode):
    return dataset(mode, {rows!r}, dict(type="MMPromptMultiTurn", template={template!r}, media=dict(roots=[{tour!r}])),
                   inferencer=dict(type=MultiTurnGenInferencer, infer_mode=mode))

def labels(abbr, template):
    return dataset(abbr, {labels!r}, template, inferencer=dict(type=PPLInferencer))

datasets = [
    *[turns(mode) for mode in {modes!r}],
    labels("labels", dict(type="MMPromptText", template={label_template!r})),
    labels("label-task", dict(type="MMPromptTask", task={labels!r})),
]
models = [model("MMPromptChat", "ours")]
del dataset, model, turns, labels
"""


def answer(body: dict[str, Any]) -> str:
    return f"reply {sum(m['role'] == 'assistant' for m in body['messages']) + 1}"


@pytest.fixture(scope="module")
def tasks(tour: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tasks")
    shutil.copytree(tour / "media", folder / "media")
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    prompt = {"type": "MultiTurnPromptTemplate", "template": TURNS}
    made = {
        mode: {
            "dataset": {"path": "rows.jsonl"},
            "infer_cfg": {
                "prompt_template": prompt,
                "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": mode},
            },
        }
        for mode in MODES
    }
    question = {"question": "Which?", "answer": "B"}
    made["labels"] = {
        "dataset": {"path": "labels.jsonl"},
        "infer_cfg": {"prompt_template": {"template": LABELS}, "inferencer": {"type": "PPLInferencer"}},
    }
    (folder / "labels.jsonl").write_text(json.dumps(question), encoding="utf-8")
    for name, task in made.items():
        (folder / f"{name}.json").write_text(json.dumps(task), encoding="utf-8")
    return {"rows": str(folder / "rows.jsonl"), **{name: str(folder / f"{name}.json") for name in made}}


@pytest.fixture(scope="module")
def run(tour: Path, tasks: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = HEAD + CONFIG.format(
        tour=str(tour), template=TURNS, label_template=LABELS, modes=MODES, rows=tasks["rows"], labels=tasks["labels"]
    )
    return run_config(tmp_path_factory.mktemp("run"), "ais_bench", config, "--mode", "infer", "--debug", reply=answer)


@pytest.fixture(scope="module")
def wanted(tasks: dict[str, str], command: Any) -> dict[str, list[list[dict[str, Any]]]]:
    """The messages of each turn or label as ``mmprompt render`` writes them; under ``every`` with the replies in."""
    lines = {}
    for name in ("every_with_gt", "last", "labels"):
        done = command("render", tasks[name])
        assert done.returncode == 0, done.stderr
        lines[name] = [json.loads(line)["messages"] for line in done.stdout.splitlines()]
    [by_label] = lines.pop("labels")
    return {"every": [replied(m) for m in lines["every_with_gt"]], **lines, "labels": list(by_label.values())}


def replied(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the model's replies in place of the answers."""
    replies = (f"reply {number}" for number in range(1, len(messages)))
    return [{**m, "content": next(replies)} if m["role"] == "assistant" else m for m in messages]


def test_each_turn_and_label_is_asked_as_mmprompt_render_writes_it(run: Run, wanted: dict[str, Any]) -> None:
    assert run.code == 0, run.log[-3000:]
    first_row = {"every": 2, "every_with_gt": 2, "last": 1, "labels": 2, "label-task": 2}  # sent once more, to warm up
    asked = {name: wanted[NAMES[name]][:n] + wanted[NAMES[name]] for name, n in first_row.items()}
    assert len(run.bodies) == sum(map(len, asked.values())), run.log[-3000:]
    bodies = iter(run.bodies)
    for name, messages in asked.items():  # rows are asked at once, so that their turns come in any order
        sent = [body["messages"] for body in islice(bodies, len(messages))]
        assert sorted(map(in_order, sent)) == sorted(map(in_order, messages)), name


def in_order(messages: list[dict[str, Any]]) -> str:
    return json.dumps(messages, sort_keys=True)


def test_aisbench_s_own_files_hold_the_replies_of_the_turns_and_the_label_that_scores_best(run: Run) -> None:
    said = {name: [line["prediction"] for line in written(run, name)] for name in NAMES}
    turns = ["reply 1", "reply 2", "reply 1", "reply 2", "reply 3"]
    assert said == {
        "every": turns,
        "every_with_gt": turns,
        "last": ["reply 2", "reply 3"],
        "labels": ["B"],
        "label-task": ["B"],
    }


def written(run: Run, dataset: str) -> list[dict[str, Any]]:
    file = run.found(f"out/*/predictions/ours/{dataset}.jsonl")
    return sorted(map(json.loads, file.read_text(encoding="utf-8").splitlines()), key=lambda line: line["id"])


SCORED = """
from ais_bench.benchmark.openicl.icl_inferencer import MultiTurnGenInferencer

def turns(mode, path, **options):
    return dataset(mode + "-" + path[-5:], path,
                   dict(type="MMPromptMultiTurn", template={template!r}, media=dict(roots=[{tour!r}])),
                   inferencer=dict(type=MultiTurnGenInferencer, infer_mode=mode), **options)

datasets = [
    dataset("last-task", {last!r}, dict(type=MMPromptTask, task={last!r})),
    turns("last", {last!r}),
    turns("every_with_gt", {every_with_gt!r}),
    turns("every", {every!r}),
    turns("last", {rows!r}, infer_mode="last"),
]
models = [model("MMPromptChat", "ours")]
del dataset, model, turns
"""
RIGHT = {question: said for row in ROWS for question, said in zip(row["question"], row["answer"], strict=True)}


def right_answer(body: dict[str, Any]) -> str:
    return next(said for question, said in RIGHT.items() if question[-10:] in json.dumps(body["messages"][-1]))


def test_right_replies_to_the_turns_that_aisbench_scores_are_all_right(
    tour: Path, tasks: dict[str, str], tmp_path: Path
) -> None:
    config = HEAD + SCORED.format(tour=str(tour), template=TURNS, **tasks)
    run = run_config(tmp_path, "ais_bench", config, "--mode", "all", "--debug", reply=right_answer)
    assert run.code == 0, run.log[-3000:]
    scores = {
        path.stem: json.loads(path.read_text())["accuracy"] for path in run.folder.glob("out/*/results/ours/*.json")
    }
    names = ("last-task", "last-.json", "every_with_gt-.json", "every-.json", "last-jsonl")
    assert scores == dict.fromkeys(names, 100.0)


SPOKEN = {"text": {"type": "text", "text": "{shown}"}, "image": SKELETONS["image"]}


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ({"round": [{"role": "HUMAN", "prompt": "{question}"}]}, "no item of the round has the role BOT"),
        ({"begin": "Be brief.", **LABELS["A"]}, "text without a role"),
        ({"round": [LABELS["A"]["round"][0], {"role": "BOT", "prompt_mm": SPOKEN}]}, "a reply with media"),
    ],
)
def test_a_dialogue_that_aisbench_cannot_cut_into_turns_is_refused(template: Any, what: str) -> None:
    row = {"question": ["a"], "answer": ["1"], "shown": ["<AIS_IMAGE_START>https://example.com/a.jpg"]}
    with pytest.raises(MMPromptError, match=what):
        MMPromptMultiTurn(template).generate_item(row, "answer")


def test_the_stock_template_shows_all_turns_the_answer_in_a_question_and_fails_at_the_last_turn_alone() -> None:
    template = {
        "round": [{"role": "HUMAN", "prompt": "{question} not {answer}"}, {"role": "BOT", "prompt": "{answer}"}]
    }
    row = {"question": ["a", "b"], "answer": ["1", "2"]}
    for kind, said in ((Stock, "a not 1"), (MMPromptMultiTurn, "a not ")):
        prompt = kind(template).generate_item(row, "answer")
        assert next(item["prompt"] for item in prompt if "role" in item) == said
    left, right = get_round_index(stock := Stock(template).generate_item(row))
    with pytest.raises(RecursionError):
        stock[:left] + RunnerList(stock[left:right])
    ours = MMPromptMultiTurn(template).generate_item(row, "answer")
    assert [item.get("prompt") for item in ours[:left] + RunnerList(ours[left:right])][1:3] == ["a not ", "1"]
