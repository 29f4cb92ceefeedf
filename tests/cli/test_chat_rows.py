"""Rows that are chats, on the command line: batch files written again, and the closing message taken as the answer."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from closing_line import closing

from mmprompt import check_dataset, load_task
from mmprompt.cli import main
from mmprompt.datasets.sample import Sample

MEDIA = Path(__file__).parents[2] / "fixtures" / "shapes" / "media"
USER, ASSISTANT = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}
PARAMETERS = {
    "model": "gpt-x",
    "temperature": 0.2,
    "max_completion_tokens": 7,
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "metadata": {"big": 12345678901234567890123, "none": None},
    "vendor_key": [1, 2.5, "杯"],
}


def batch_row(name: object, *messages: Any, url: str = "/v1/chat/completions", **parameters: Any) -> dict[str, Any]:
    return {"custom_id": name, "method": "POST", "url": url, "body": {**parameters, "messages": list(messages)}}


@pytest.fixture
def render(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """Render rows with options, or a task with them; return the exit code, the lines and what is told."""

    def run(rows: list[Any], *options: str, task: Any = None, name: str = "data.jsonl") -> tuple[int, list[Any], str]:
        data = tmp_path / name
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        data.write_text(json.dumps(rows) if name.endswith(".json") else lines, encoding="utf-8")
        if task is not None:
            (tmp_path / "task.json").write_text(json.dumps({"dataset": name, **task}))
            data = tmp_path / "task.json"
        code = main(["render", str(data), *options])
        out, err = capfd.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], closing(err).told if code < 2 else err

    return run


# ---- batch files


def test_a_batch_file_is_written_again_with_all_its_parameters(render: Any) -> None:
    rows = [
        batch_row("a", USER, **PARAMETERS),
        batch_row("b", {"role": "system", "content": "s"}, USER, url="/v4/chat/completions", model="m"),
    ]
    code, lines, told = render(rows, "--emit", "batch")
    assert (code, lines) == (0, rows)
    assert [line.rpartition(": ")[2] for line in told.splitlines()] == [
        "MM021 an integer over 64 bits, kept exactly (body)"
    ]


def test_the_tasks_settings_fill_in_what_a_batch_line_does_not_say(render: Any) -> None:
    task = {"model": {"model": "task-model", "generation": {"temperature": 1, "seed": 5, "max_tokens": 9}}}
    rows = [batch_row("a", USER, **PARAMETERS), batch_row("b", USER, temperature=0)]
    code, [first, second], _ = render(rows, "--emit", "batch", task=task)
    assert code == 0
    assert first["body"] == {**PARAMETERS, "seed": 5, "messages": [USER]}  # one length
    assert second["body"] == {
        "model": "task-model", "temperature": 0, "seed": 5, "max_tokens": 9, "messages": [USER],
    }  # fmt: skip


def test_the_length_of_a_batch_line_stands_in_place_of_the_inferencers(render: Any) -> None:
    template = {"template": {"round": [{"role": "HUMAN", "prompt": "{custom_id}?"}]}}
    infer = {"prompt_template": template, "inferencer": {"type": "GenInferencer", "max_out_len": 64}}
    rows = [batch_row("a", USER, model="m", max_completion_tokens=3), batch_row("b", USER, model="m")]
    code, [first, second], _ = render(rows, "--emit", "batch", task={"infer_cfg": infer})
    asked = [{"role": "user", "content": "a?"}]
    assert code == 0
    assert first["body"] == {"model": "m", "max_completion_tokens": 3, "messages": asked}
    assert second["body"]["max_tokens"] == 64


def test_a_batch_line_that_nobody_gives_a_model_is_left_out(render: Any) -> None:
    rows = [batch_row("a", USER), batch_row("b", USER, model="m"), batch_row("c", USER)]
    code, lines, told = render(rows, "--emit", "batch")
    assert (code, [line["custom_id"] for line in lines]) == (1, ["b"])
    assert told.count("a batch line needs the name of a model; give model: {model: NAME} in a task file") == 2
    code, lines, told = render([{"question": "q"}], "--emit", "batch")
    assert (code, lines) == (2, [])
    assert "a batch line needs the name of a model" in told


def test_a_row_with_a_body_that_is_no_batch_line_gives_it_to_nobody(render: Any) -> None:
    task = {"model": {"model": "m"}}
    code, [line], _ = render([{"question": "q", "body": {"temperature": 2}, "url": "x"}], "--emit", "batch", task=task)
    assert (code, line["url"], line["body"].keys()) == (0, "/v1/chat/completions", {"model", "messages"})


# ---- the closing message as the answer


@pytest.mark.parametrize("name", ["data.jsonl", "data.json"])
def test_the_closing_assistant_message_is_the_answer(name: str, render: Any) -> None:
    rows = [
        {"id": 1, "messages": [USER, ASSISTANT]},
        {"id": 2, "messages": [USER, ASSISTANT, USER, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]},
        {"id": 3, "messages": [USER]},
    ]  # fmt: skip
    code, lines, told = render(rows, "--drop-last-assistant", name=name)
    assert (code, told) == (0, "")
    assert lines == [
        {"id": 1, "messages": [USER], "answer": "hello"},
        {"id": 2, "messages": [USER, ASSISTANT, USER], "answer": "b"},
        {"id": 3, "messages": [USER]},
    ]


def test_without_the_option_the_message_is_sent_and_the_note_names_the_option(render: Any) -> None:
    code, [line], told = render([{"id": 1, "messages": [USER, ASSISTANT]}])
    assert (code, line) == (0, {"id": 1, "messages": [USER, ASSISTANT]})
    assert "the last message is the assistant's" in told
    assert "pass --drop-last-assistant" in told


def test_the_answer_goes_to_the_tasks_output_column_and_to_no_batch_line(render: Any) -> None:
    task = {"reader_cfg": {"output_column": "gold"}, "model": {"model": "m"}}
    rows = [batch_row("a", USER, ASSISTANT)]
    assert render(rows, "--drop-last-assistant", task=task)[1] == [{"id": "a", "messages": [USER], "answer": "hello"}]
    code, [line], _ = render(rows, "--drop-last-assistant", "--emit", "batch", task=task)
    assert (code, line["body"]) == (0, {"model": "m", "messages": [USER]})


@pytest.mark.parametrize(
    ("row", "code", "words"),
    [
        ({"messages": [ASSISTANT]}, "MM700", "the only message is the assistant's; add the user's message before it"),
        ({"messages": [USER, ASSISTANT], "answer": "bye"}, "MM710", "the row has another 'answer' than its closing message"),
        (
            {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]},
            "MM007",
            "the closing assistant message holds more than text",
        ),
    ],
)  # fmt: skip
def test_a_closing_message_that_cannot_be_the_answer_is_the_rows_error(
    row: dict[str, Any], code: str, words: str, render: Any
) -> None:
    found, lines, told = render([{"id": 1, **row}, {"id": 2, "messages": [USER]}], "--drop-last-assistant")
    assert (found, [line["id"] for line in lines]) == (1, [2])
    assert f"data.jsonl:1: {code} {words}" in told
    assert told.splitlines()[0].endswith(" (messages, sample 1)")


def test_an_answer_that_says_the_same_is_no_conflict(render: Any) -> None:
    row = {"id": 1, "messages": [USER, ASSISTANT], "answer": "hello"}
    assert render([row], "--drop-last-assistant")[1] == [{"id": 1, "messages": [USER], "answer": "hello"}]


def test_an_option_that_changes_nothing_is_noted(render: Any) -> None:
    code, _, told = render([{"question": "q"}], "--drop-last-assistant")
    assert (code, told) == (
        0,
        "note: MM701 no chat ends with a message of the assistant, so drop_last_assistant takes no answer\n",
    )


# ---- other commands take the closing message as the answer too


@pytest.fixture
def dialogues(tmp_path: Path) -> Path:
    """Chats on two drawn shapes, whose last message is the right answer."""
    rows = []
    for number, colour in ((2, "orange"), (4, "purple")):
        picture = base64.b64encode((MEDIA / f"shapes-{number:02}.png").read_bytes()).decode()
        content = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
            {"type": "text", "text": "What colour is the shape?"},
        ]
        rows.append({"id": number, "messages": [{"role": "user", "content": content}, _reply(colour)]})
    data = tmp_path / "dialogues.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


def _reply(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize("engine", [[], ["--engine", "local", "--workers", "1"]])
def test_a_run_keeps_the_closing_message_from_the_model_and_scores_by_it(
    dialogues: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], engine: list[str]
) -> None:
    journal = tmp_path / "journal.jsonl"
    asked = ["run", str(dialogues), "--model", "builtin:shapes", "-o", str(journal), "--drop-last-assistant"]
    assert main([*asked, *engine]) == 0
    assert re.search(r"^all +2 +2 +1\.0000 ", capfd.readouterr().out, re.MULTILINE)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sorted((line["prediction"], line["answer"]) for line in lines) == [
        ("orange", "orange"),
        ("purple", "purple"),
    ]


def test_check_takes_the_option_that_its_finding_names(dialogues: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(dialogues)]) == 1
    assert "if it is the answer, pass --drop-last-assistant" in capfd.readouterr().out
    assert main(["check", str(dialogues), "--drop-last-assistant"]) == 0
    assert capfd.readouterr().out == "All checks passed!\n"


def test_check_compares_two_sets_without_their_closing_messages(
    dialogues: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train = tmp_path / "train.jsonl"
    train.write_text(dialogues.read_text().replace('"orange"', '"a deep orange"'))
    assert main(["check", str(dialogues), "--drop-last-assistant", "--against", str(train), "--select", "MM711"]) == 1
    assert [line.split()[1] for line in capfd.readouterr().out.splitlines()] == ["MM711", "MM711"]


def test_view_and_stats_show_the_closing_message_as_the_answer(
    dialogues: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(dialogues), "-n", "--drop-last-assistant"]) == 0
    shown = capfd.readouterr().out
    assert "answer  orange" in shown
    assert "assistant" not in shown
    assert main(["stats", str(dialogues), "--drop-last-assistant"]) == 0
    assert "answers: 2 distinct" in capfd.readouterr().out


def test_convert_writes_the_closing_message_as_the_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, out = tmp_path / "chats.jsonl", tmp_path / "rows.csv"
    data.write_text(json.dumps({"id": 1, "messages": [USER, ASSISTANT]}) + "\n")
    asked = ["convert", str(data), str(out), "--to"]
    for form in ("csv", "llava"):
        assert main([*asked, form]) == 1
        assert "take the closing message as the answer with --drop-last-assistant, or" in capfd.readouterr().err
    assert main([*asked, "csv", "--drop-last-assistant"]) == 0
    assert out.read_text() == "id,question,answer\n1,hi,hello\n"
    assert main([*asked, "openai", "--drop-last-assistant"]) == 0
    assert json.loads(out.read_text()) == {"id": 1, "messages": [USER], "answer": "hello"}
    assert "MM701" not in capfd.readouterr().err
    data.write_text(json.dumps({"id": 1, "messages": [USER]}) + "\n")
    assert main([*asked, "csv", "--drop-last-assistant"]) == 0
    assert "MM701 no chat ends with" in capfd.readouterr().err


def test_a_task_file_takes_the_closing_messages_as_answers(render: Any) -> None:
    rows = [{"id": 1, "messages": [USER, ASSISTANT]}]
    task = {"dataset": {"path": "data.jsonl", "drop_last_assistant": True}, "reader_cfg": {"output_column": "gold"}}
    assert render(rows, task=task)[:2] == (0, [{"id": 1, "messages": [USER], "answer": "hello"}])
    assert "MM701 no chat ends with" in render([{"id": 1, "messages": [USER]}], task=task)[2]
    task["dataset"] = {"path": "data.jsonl", "drop_last_assistant": "yes"}
    code, _, told = render(rows, task=task)
    assert (code, "dataset.drop_last_assistant is 'yes'; give true or false" in told) == (2, True)


def test_a_mapping_takes_the_closing_messages_of_both_sets_as_answers() -> None:
    row = {"messages": [USER, ASSISTANT]}
    task = load_task({"dataset": {"rows": [row], "train_rows": [row], "drop_last_assistant": True}})
    [request] = task.requests()
    assert (request.messages, request.answers) == ([USER], ("hello",))
    assert task.train is not None
    assert [sample.columns["answer"] for sample in task.train if isinstance(sample, Sample)] == ["hello"]


def test_check_in_python_compares_two_sets_as_the_task_reads_them(dialogues: Path, tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    train.write_text(dialogues.read_text().replace('"orange"', '"a deep orange"'))
    task = load_task({"dataset": {"path": str(dialogues), "drop_last_assistant": True}})
    assert [finding.code for finding in check_dataset(task, against=train, select="MM711")] == ["MM711", "MM711"]


def test_init_shows_the_prompt_without_the_closing_message_and_the_command_that_sends_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data, task = tmp_path / "chats.jsonl", tmp_path / "task.yaml"
    data.write_text(json.dumps({"id": 1, "messages": [USER, ASSISTANT]}) + "\n")
    assert main(["init", str(data), "-o", str(task), "--drop-last-assistant"]) == 0
    shown, told = capfd.readouterr()
    assert json.loads(shown) == {"id": 1, "messages": [USER]}
    assert "  drop_last_assistant: true\n" in task.read_text()
    command = told.rpartition("next: mmprompt ")[2].split()
    assert main(command) == 0
    assert json.loads(capfd.readouterr().out) == {"id": 1, "messages": [USER], "answer": "hello"}
