"""The three ways to ask: once, turn after turn, and by comparing labels; with models of one request and of batches."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from answering import answering
from time_taken import GENEROUS

from mmprompt import ServerError, TaskError, load_task, run_task
from mmprompt.render.request import Request
from mmprompt.run.journal import JournalLine, read_journal
from mmprompt.run.model import Answer
from mmprompt.run.reply import Reply
from mmprompt.run.runner import RunSettings
from mmprompt.run.task_run import Hooks, Plan, RunReport, ask_task

TURNS = {
    "type": "MultiTurnPromptTemplate",
    "template": {"round": [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "{answer}"}]},
}
DIALOGUES = [
    {"id": "d-0", "question": ["one", "two", "three"], "answer": ["a0", "a1", "a2"]},
    {"id": "d-1", "question": ["four", "five"], "answer": ["b0", "b1"]},
]


def dialogues(mode: str, rows: list[dict[str, Any]] = DIALOGUES) -> dict[str, Any]:
    return {
        "dataset": {"rows": rows},
        "infer_cfg": {
            "prompt_template": TURNS,
            "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": mode, "max_out_len": 8},
        },
    }


def labels(rows: int = 4) -> dict[str, Any]:
    template = {label: {"round": [{"role": "HUMAN", "prompt": "{question} " + label}]} for label in ("yes", "no", "?")}
    return {
        "dataset": {"rows": [{"id": n, "question": f"q{n}", "answer": "no"} for n in range(rows)]},
        "infer_cfg": {
            "prompt_template": {"type": "PromptTemplate", "template": template},
            "inferencer": {"type": "PPLInferencer"},
        },
    }


class Echo:
    """A model in this process: its reply is how many messages came and the last one's text."""

    name = "echo"
    target = "vllm"

    def __init__(self, batch: int = 1, concurrency: int = 2, seconds: float = 0.0) -> None:
        self.batch = batch
        self.concurrency = concurrency
        self.seconds = seconds
        self.calls: list[list[str]] = []
        self.options: list[Mapping[str, Any]] = []
        self.worth: dict[str, float] = {}
        self.failing: set[str] = set()
        self.passing: list[str] = []
        self._lock = threading.Lock()

    def ask(self, requests: Sequence[Request], options: Mapping[str, Any]) -> list[Answer]:
        time.sleep(self.seconds)
        texts = [str((request.messages or [{}])[-1]["content"]) for request in requests]
        with self._lock:
            self.calls.append(texts)
            self.options.append(options)
        return [self._answer(text, len(request.messages or [])) for text, request in zip(texts, requests, strict=True)]

    def _answer(self, text: str, messages: int) -> Answer:
        if text in self.passing:
            self.passing.remove(text)
            return Answer(error=ServerError("busy"), passing=True)
        if text in self.failing:
            return Answer(error=ServerError("no reply"))
        return Answer(Reply(f"{messages}:{text}", "stop"), seconds=0.5)

    def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
        texts = [str((request.messages or [{}])[-1]["content"]) for request in requests]
        with self._lock:
            self.calls.append(texts)
        return [
            self._answer(text, 1)
            if text in self.passing
            else Answer(perplexity=self.worth[text.split()[1]], seconds=0.5)
            for text in texts
        ]

    def close(self) -> None:
        pass


def journal(path: Path) -> list[JournalLine]:
    return sorted(read_journal(str(path)), key=lambda line: (line.row, line.turn or 0, str(line.label)))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


EVERY = [
    ("d-0", 0, "1:one", "a0"), ("d-0", 1, "3:two", "a1"), ("d-0", 2, "5:three", "a2"),
    ("d-1", 0, "1:four", "b0"), ("d-1", 1, "3:five", "b1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("every", EVERY), ("every_with_gt", EVERY), ("last", [EVERY[2], EVERY[4]])],
)
def test_each_turn_has_its_reply_and_its_own_answer(mode: str, expected: list[Any], out: Path) -> None:
    report = run_task(dialogues(mode), Echo(), out)
    assert (report.answered, report.failed) == (2, 0)
    assert [(line.id, line.turn, line.prediction, line.answer) for line in journal(out)] == expected


def test_the_replies_or_the_answers_stand_in_the_turns_after_them(out: Path) -> None:
    said: dict[str, list[str]] = {}

    def reply(body: dict[str, Any]) -> str:
        messages = body["messages"]
        said.setdefault(body["model"], []).append(" ".join(m["content"] for m in messages))
        return f"r{len(messages) // 2}"

    with answering(reply) as server:
        for mode in ("every", "every_with_gt"):
            path = out.with_name(f"{mode}.jsonl")
            run_task(dialogues(mode, DIALOGUES[:1]), mode, path, base_url=server.base_url, concurrency=1)
    assert said["every"] == ["one", "one r0 two", "one r0 two r1 three"]
    assert sorted(said["every_with_gt"]) == ["one", "one a0 two", "one a0 two a1 three"]


def test_the_lines_of_a_dialogue_stand_together(out: Path) -> None:
    rows = [{"id": n, "question": [f"{n} one", f"{n} two"], "answer": ["x", "y"]} for n in range(20)]
    run_task(dialogues("every", rows), Echo(concurrency=6, seconds=0.002), out)
    lines = [json.loads(text) for text in out.read_text("utf-8").splitlines()]
    assert len(lines) == 40
    assert all(lines[n]["id"] == lines[n + 1]["id"] and lines[n]["turn"] == 0 for n in range(0, 40, 2))


def test_a_dialogue_ends_at_a_turn_without_a_reply_and_goes_on_there(out: Path) -> None:
    model = Echo()
    model.failing = {"two"}
    report = run_task(dialogues("every"), model, out)
    assert (report.answered, report.failed) == (1, 1)
    assert [(line.turn, line.prediction is None) for line in journal(out) if line.row == 0] == [(0, False), (1, True)]
    model.failing.clear()
    model.calls.clear()
    report = run_task(dialogues("every"), model, out)
    assert (report.answered, report.kept, report.failed) == (2, 1, 0)
    assert model.calls == [["two"], ["three"]]
    assert [(line.id, line.turn, line.prediction, line.answer) for line in journal(out)] == EVERY


def asked_again(task: dict[str, Any], model: Echo, out: Path) -> RunReport:
    """Run with one attempt a request, so that only the second pass asks again."""
    return ask_task(load_task(task), model, str(out), RunSettings(attempts=1), Plan(), Hooks())


def test_a_dialogue_whose_error_may_pass_goes_on_in_the_second_pass(out: Path) -> None:
    model = Echo(concurrency=1)
    model.passing = ["two"]
    report = asked_again(dialogues("every"), model, out)
    assert (report.answered, report.failed) == (2, 0)
    assert model.calls == [["one"], ["four"], ["two"], ["five"], ["two"], ["three"]]
    assert [(line.id, line.turn, line.prediction, line.answer) for line in journal(out)] == EVERY


def test_labels_are_compared_again_in_the_second_pass(out: Path) -> None:
    model = Echo(concurrency=1)
    model.worth = {"yes": 3.0, "no": 1.5, "?": 9.0}
    model.passing = ["q1 no"]
    report = asked_again(labels(2), model, out)
    assert (report.answered, report.failed) == (2, 0)
    assert len(model.calls) == 9
    assert [line.prediction for line in journal(out) if line.label is None] == ["no", "no"]


def test_of_several_turns_only_the_failed_one_is_asked_again(out: Path) -> None:
    model = Echo(concurrency=1)
    model.passing = ["two"]
    report = asked_again(dialogues("every_with_gt"), model, out)
    assert (report.answered, report.failed) == (2, 0)
    assert [texts[0] for texts in model.calls] == ["one", "two", "three", "four", "five", "two"]
    assert [(line.id, line.turn, line.prediction, line.answer) for line in journal(out)] == EVERY


def test_a_dialogue_whose_first_turn_changed_is_asked_anew(out: Path) -> None:
    run_task(dialogues("every"), Echo(), out)
    changed = [{**DIALOGUES[0], "question": ["uno", "two", "three"]}, DIALOGUES[1]]
    model = Echo()
    report = run_task(dialogues("every", changed), model, out)
    assert (report.kept, report.stale) == (1, 0)
    assert model.calls == [["uno"], ["two"], ["three"]]
    changed[0]["question"] = ["uno", "two", "drei"]
    model = Echo()
    run_task(dialogues("every", changed), model, out)
    assert model.calls == [["drei"]]


def test_the_label_of_the_lowest_perplexity_is_the_prediction(out: Path) -> None:
    model = Echo()
    model.worth = {"yes": 3.0, "no": 1.5, "?": 9.0}
    report = run_task(labels(), model, out)
    assert (report.answered, report.failed) == (4, 0)
    lines = journal(out)
    rows = [line for line in lines if line.label is None]
    assert [(line.prediction, line.answer, line.perplexity) for line in rows] == [("no", "no", None)] * 4
    of_first = {line.label: (line.perplexity, line.prediction) for line in lines if line.row == 0 and line.label}
    assert of_first == {"yes": (3.0, None), "no": (1.5, None), "?": (9.0, None)}
    texts = [json.loads(text) for text in out.read_text("utf-8").splitlines()]
    assert [line["label"] for line in texts[:4]] == ["yes", "no", "?", None]
    assert not {"error", "prediction"} & texts[0].keys()


def test_of_equal_perplexities_the_first_label_wins(out: Path) -> None:
    model = Echo()
    model.worth = {"yes": 2.0, "no": 2.0, "?": 2.0}
    run_task(labels(1), model, out)
    assert [line.prediction for line in journal(out) if line.label is None] == ["yes"]


def test_of_labels_with_the_same_prompt_one_without_a_perplexity_hides_no_other(out: Path) -> None:
    class OnceNothing(Echo):
        def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
            found = super().perplexities(requests)
            return found if len(self.calls) > 1 else [answer._replace(perplexity=math.nan) for answer in found]

    task = labels(1)
    templates = task["infer_cfg"]["prompt_template"]["template"]
    task["infer_cfg"]["prompt_template"]["template"] = {"first": templates["yes"], **templates}
    model = OnceNothing(concurrency=1)
    model.worth = {"yes": 2.0, "no": 3.0, "?": 3.0}
    run_task(task, model, out)
    assert [line.prediction for line in journal(out) if line.label is None] == ["first"]


def test_of_labels_with_the_same_prompt_the_first_wins_whatever_the_last_digits(out: Path) -> None:
    class Rounding(Echo):
        def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
            return [
                answer._replace(perplexity=answer.perplexity - len(self.calls) * 1e-9)
                for answer in super().perplexities(requests)
                if answer.perplexity is not None
            ]

    task = labels(3)
    templates = task["infer_cfg"]["prompt_template"]["template"]
    templates["no again"] = templates["no"]
    model = Rounding(concurrency=1)
    model.worth = {"yes": 3.0, "no": 2.0, "?": 2.5}
    run_task(task, model, out)
    assert [line.prediction for line in journal(out) if line.label is None] == ["no"] * 3


@pytest.mark.parametrize("kind", ["every", "every_with_gt", "last", "ppl"])
def test_corrected_answers_are_taken_over_without_asking(kind: str, out: Path) -> None:
    model = Echo()
    model.worth = {"yes": 3.0, "no": 1.5, "?": 9.0}
    task = labels(2) if kind == "ppl" else dialogues(kind, [{**row, "category": "a"} for row in DIALOGUES])
    run_task(task, model, out)
    model.calls.clear()
    before = journal(out)
    for row in task["dataset"]["rows"]:
        row["category"] = "b"
        if kind != "every_with_gt":  # whose answers are asked with
            row["answer"] = "yes" if kind == "ppl" else [*row["answer"][:-1], "new"]
    report = run_task(task, model, out)
    assert (report.answered, report.kept, report.stale, model.calls) == (2, 2, 0, [])
    assert [line.prediction for line in journal(out)] == [line.prediction for line in before]
    assert all(line.groups["category"] == "b" for line in journal(out) if line.label is None)
    last = {line.id: line.answer for line in journal(out) if line.label is None}
    assert set(last.values()) == ({"a2", "b1"} if kind == "every_with_gt" else {"yes" if kind == "ppl" else "new"})


def test_compared_labels_are_kept(out: Path) -> None:
    model = Echo()
    model.worth = {"yes": 3.0, "no": 1.5, "?": 9.0}
    run_task(labels(2), model, out)
    model.calls.clear()
    report = run_task(labels(4), model, out, overwrite=False)
    assert (report.answered, report.kept, report.stale) == (4, 2, 0)
    assert len(model.calls) == 6


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_an_interrupted_dialogue_keeps_its_turns_and_goes_on_after_them(out: Path) -> None:
    class Interrupted(Echo):
        def _answer(self, text: str, messages: int) -> Answer:
            if text == "two":
                os.kill(os.getpid(), signal.SIGINT)
                assert stopped.wait(GENEROUS)
            return super()._answer(text, messages)

    stopped = threading.Event()
    hooks = Hooks(on_stop=stopped.set)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        task, model = load_task(dialogues("every")), Interrupted(concurrency=1)
        report = ask_task(task, model, str(out), RunSettings(), Plan(), hooks)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert (report.interrupted, report.answered, report.scores) == (True, 0, None)
    kept = [(line.turn, line.prediction) for line in journal(out) if line.row == 0]
    assert kept == [(0, "1:one"), (1, "3:two")]
    model = Echo()
    assert run_task(dialogues("every"), model, out).answered == 2
    assert ["one"] not in model.calls
    assert ["three"] in model.calls
    assert [(line.id, line.turn, line.prediction, line.answer) for line in journal(out)] == EVERY


def test_a_model_without_log_probabilities_is_asked_once(out: Path) -> None:
    class Without(Echo):
        def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
            super().ask(requests, {})
            raise ServerError("no log-probabilities")

    model = Without(concurrency=8)
    with pytest.raises(ServerError, match="no log-probabilities"):
        run_task(labels(), model, out)
    assert len(model.calls) == 1


def test_a_model_gets_as_many_requests_in_a_call_as_it_takes(out: Path) -> None:
    rows = [{"id": n, "question": f"q{n}"} for n in range(10)]
    model = Echo(batch=4, concurrency=1, seconds=0.01)
    report = run_task({"dataset": {"rows": rows}}, model, out)
    assert report.answered == 10
    assert max(map(len, model.calls)) == 4
    assert [line.prediction for line in journal(out)] == [f"1:q{n}" for n in range(10)]


def test_each_repeat_has_its_own_seed(out: Path) -> None:
    model = Echo(batch=4, concurrency=1)
    task = {"dataset": {"rows": [{"id": 0, "question": "q"}]}}
    run_task(task, model, out, repeats=3, options={"seed": 7})
    assert sorted(options["seed"] for options in model.options) == [7, 8, 9]


def test_the_end_token_of_the_meta_template_reaches_the_model(out: Path) -> None:
    model = Echo()
    task = {"dataset": {"rows": [{"question": "q"}]}, "model": {"meta_template": {"round": [
        {"role": "HUMAN"}, {"role": "BOT", "generate": True}], "eos_token_id": 2}}}  # fmt: skip
    run_task(task, model, out)
    assert model.options == [{"stop_token_ids": [2]}]


def rows_in_flight(model: Echo) -> Iterator[dict[str, Any]]:
    """Rows without end; each must be taken only when there is room for it."""
    for number in range(10_000):
        taken = sum(map(len, model.calls))
        assert number - taken <= 4 * model.concurrency * model.batch + 2, "rows are read ahead of the model"
        yield {"id": number, "question": f"q{number}"}


def test_rows_are_read_as_the_model_takes_them(out: Path) -> None:
    model = Echo(concurrency=4)
    report = run_task({"dataset": {"rows": rows_in_flight(model)}}, model, out, limit=300)
    assert report.answered == 300


def test_an_answer_that_is_not_json_costs_its_row_before_it_is_asked(out: Path) -> None:
    model = Echo()
    rows = [{"id": 0, "question": "q0", "answer": b"\xff"}, {"id": 1, "question": "q1", "answer": float("nan")}]
    report = run_task({"dataset": {"rows": rows}}, model, out)
    assert (report.answered, report.failed) == (1, 1)
    assert model.calls == [["q1"]]
    assert [line.answer for line in journal(out)] == ["NaN"]


def test_half_a_character_in_a_reply_is_replaced(out: Path) -> None:
    class Half(Echo):
        def _answer(self, text: str, messages: int) -> Answer:
            return Answer(Reply("a\ud83d", usage={"note": "b\udc00", "cost": float("inf")}))

    assert run_task({"dataset": {"rows": [{"question": "q"}]}}, Half(), out).answered == 1
    assert [line.prediction for line in journal(out)] == ["a\ufffd"]


def test_a_task_without_a_model_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="--model"):
        run_task({"dataset": {"rows": [{"question": "q"}]}}, output=tmp_path / "out.jsonl")


def test_a_task_names_its_server_and_model(out: Path) -> None:
    with answering(lambda body: body["model"]) as server:
        task = {"dataset": {"rows": [{"question": "q"}]}, "model": {"base_url": server.base_url, "model": "mine"}}
        run_task(task, output=out)
        assert [line.prediction for line in journal(out)] == ["mine"]
        assert load_task(task).config.base_url == server.base_url
