"""OpenAI's Batch API: shards with a manifest go out, and its result and error files come back as a journal."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from answering import answering, text_of
from command_line import run_here

from mmprompt import TaskError, load_task, run_task, score_journal
from mmprompt.run.batch import BatchResults

TASK = {
    "reader_cfg": {"input_columns": ["question"], "output_column": "answer"},
    "infer_cfg": {
        "prompt_template": {
            "type": "PromptTemplate",
            "template": {"round": [{"role": "HUMAN", "prompt": "{question}"}]},
        }
    },
    "model": {"model": "gpt-5-mini"},
}
ROWS = [{"id": n if n % 2 else f"q-{n}", "question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(20)]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    (tmp_path / "task.json").write_text(json.dumps({"dataset": "rows.jsonl", **TASK}), encoding="utf-8")
    return tmp_path / "task.json"


def render(task: Path, *arguments: object) -> Any:
    return run_here("render", task.name, "--target", "openai", "--emit", "batch", *arguments, cwd=task.parent)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def result(request: dict[str, Any], text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    body = {
        "object": "chat.completion",
        "model": "gpt-5-mini-2025-08-07",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }
    return {
        "id": "batch_req_1",
        "custom_id": request["custom_id"],
        "response": {"status_code": 200, "request_id": "r", "body": body},
        "error": None,
    }


def refusal(request: dict[str, Any]) -> dict[str, Any]:
    body = {"error": {"message": "Invalid image.", "type": "invalid_request_error", "code": "invalid_image"}}
    return {"id": "b", "custom_id": request["custom_id"], "response": {"status_code": 400, "body": body}, "error": None}


def expiry(request: dict[str, Any]) -> dict[str, Any]:
    error = {
        "code": "batch_expired",
        "message": "This request could not be executed before the completion window expired.",
    }
    return {"id": "b", "custom_id": request["custom_id"], "response": None, "error": error}


def write(path: Path, records: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def answered(task: Path) -> tuple[str, str]:
    """Results in reverse order: one wrong reply, one refusal, one that expired, and one without any result."""
    render(task, "-o", "batch.jsonl")
    requests = lines_of(task.parent / "batch.jsonl")
    replies = [
        result(request, "7" if n == 5 else str(2 * n)) for n, request in enumerate(requests) if n not in (3, 8, 11)
    ]
    out = write(task.parent / "out.jsonl", replies[::-1])
    return out, write(task.parent / "errors.jsonl", [refusal(requests[3]), expiry(requests[8])])


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        (("--shard-rows", 8), [8, 8, 4]),
        (("--shard-bytes", 1500), None),
        (("--shard-rows", 20), [20]),
        (("--shard-bytes", 10), [1] * 20),
    ],
)
def test_shards_hold_all_requests_in_order_within_their_limits(
    task: Path, arguments: tuple[object, ...], sizes: list[int] | None
) -> None:
    done = render(task, "-o", "batch.jsonl", *arguments)
    assert done.returncode == 0
    manifest = json.loads((task.parent / "batch.manifest.json").read_text(encoding="utf-8"))
    shards = [task.parent / record["file"] for record in manifest["shards"]]
    assert [path.name for path in shards] == [f"batch-{n:05d}.jsonl" for n in range(1, len(shards) + 1)]
    for path, record in zip(shards, manifest["shards"], strict=True):
        data = path.read_bytes()
        assert record["sha256"] == sha256(data).hexdigest()
        assert (record["bytes"], record["requests"]) == (len(data), data.count(b"\n"))
        assert len(data) <= 1500 or sizes is not None
    assert sizes is None or [record["requests"] for record in manifest["shards"]] == sizes
    assert (manifest["requests"], manifest["model"]) == (20, "gpt-5-mini")
    render(task, "-o", "whole.jsonl")
    assert b"".join(path.read_bytes() for path in shards) == (task.parent / "whole.jsonl").read_bytes()


def test_shards_of_an_earlier_run_and_rows_that_are_too_large_are_told(task: Path) -> None:
    render(task, "-o", "batch.jsonl", "--shard-rows", 4)
    said = render(task, "-o", "batch.jsonl", "--shard-rows", 8).stderr.decode()
    assert "'batch-00004.jsonl' and the shards after it are of an earlier run" in said
    assert "20 of 20 rows written to 3 shards (batch.manifest.json)" in said
    assert (
        "rows larger than 10 bytes: 20, each has a shard of its own"
        in render(task, "-o", "b.jsonl", "--shard-bytes", 10).stderr.decode()
    )


def test_no_shard_is_left_of_a_run_that_stops(task: Path) -> None:
    with (task.parent / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    done = render(task, "-o", "batch.jsonl", "--shard-rows", 4, "--strict")
    assert done.returncode == 1
    assert "nothing was written" in done.stderr.decode()
    assert sorted(path.name for path in task.parent.iterdir()) == ["rows.jsonl", "task.json"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--shard-rows", 5), "shards need a name"),
        (("--shard-rows", 5, "-o", "x.jsonl", "--emit", "messages"), "add --emit batch"),
        (("--shard-rows", 0, "-o", "x.jsonl"), "not a whole number from 1"),
        (("--shard-rows", 5, "-o", "none/x.jsonl"), "does not exist"),
    ],
)
def test_shards_of_nothing_are_refused(task: Path, arguments: tuple[object, ...], said: str) -> None:
    done = render(task, *arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_a_shard_that_is_read_is_not_overwritten(task: Path) -> None:
    render(task, "-o", "batch.jsonl", "--shard-rows", 8)
    words = ("render", "batch-00002.jsonl", "--emit", "batch", "-o", "batch.jsonl", "--shard-rows", "2")
    done = run_here(*words, cwd=task.parent)
    assert done.returncode == 2
    assert "'batch-00002.jsonl' is also an input or output" in done.stderr.decode()


def test_results_become_a_journal_with_rows_answers_and_errors(task: Path) -> None:
    results = BatchResults(answered(task), "gpt-5-mini")
    report = run_task(task, results, task.parent / "journal.jsonl")
    assert (report.answered, report.failed) == (17, 3)
    lines = {line["row"]: line for line in lines_of(task.parent / "journal.jsonl")}
    assert [lines[row]["id"] for row in (4, 5)] == ["q-4", 5]
    assert (lines[4]["prediction"], lines[4]["answer"], lines[4]["usage"]["total_tokens"]) == ("8", "8", 10)
    assert "the batch answered 400: 'Invalid image.'" in lines[3]["error"]
    assert "the batch answered batch_expired: 'This request could not be" in lines[8]["error"]
    assert "the batch has no result for this row" in lines[11]["error"]
    assert results.unused() == []
    total = score_journal(task.parent / "journal.jsonl").total
    assert (total.rows, total.answered, total.score) == (20, 17, 0.8)


def test_a_collected_journal_goes_on_with_the_results_of_a_second_batch(task: Path) -> None:
    first = answered(task)
    run_task(task, BatchResults(first, "gpt-5-mini"), task.parent / "journal.jsonl")
    requests = lines_of(task.parent / "batch.jsonl")
    again = write(task.parent / "again.jsonl", [result(requests[n], str(2 * n)) for n in (3, 8, 11)])
    report = run_task(task, BatchResults([again], "gpt-5-mini"), task.parent / "journal.jsonl")
    assert (report.answered, report.kept, report.failed) == (20, 17, 0)
    assert len(lines_of(task.parent / "journal.jsonl")) == 23


def test_a_reply_counts_over_an_error_and_the_model_is_that_of_the_results(task: Path) -> None:
    render(task, "-o", "batch.jsonl")
    requests = lines_of(task.parent / "batch.jsonl")
    good = write(task.parent / "good.jsonl", [result(requests[0], "0"), result({"custom_id": "other"}, "x")])
    bad = write(task.parent / "bad.jsonl", [refusal(requests[0])])
    for paths in ([good, bad], [bad, good]):
        results = BatchResults(paths)
        assert (results.name, len(results)) == ("gpt-5-mini-2025-08-07", 2)
        request = next(load_task(task).requests("openai"))
        reply = results.ask([request], {})[0].reply
        assert (reply, reply and reply.finish_reason) == ("0", "stop")
        assert results.unused() == ["other"]


def test_a_file_of_something_else_is_refused(task: Path) -> None:
    render(task, "-o", "batch.jsonl")
    with pytest.raises(TaskError, match="holds no results of a batch"):
        BatchResults([str(task.parent / "batch.jsonl")])


def test_the_command_collects_results_and_goes_on_with_a_server(task: Path) -> None:
    out, errors = answered(task)
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps(result({"custom_id": "of another batch"}, "x")) + "\n")
    words = ("run", "task.json", "--collect", out, errors, "-o", "journal.jsonl")
    done = run_here(*words, cwd=task.parent)
    said = done.stderr.decode()
    assert done.returncode == 1
    assert "results that belong to no request of the task: 1, the first has the custom_id 'of another batch'" in said
    assert "17 of 20 rows answered in journal.jsonl; 3 failed" in said
    assert done.stdout.decode().splitlines()[2].split()[:4] == ["all", "20", "17", "0.8000"]
    with answering(lambda body: str(2 * int(text_of(body).split()[0]))) as server:
        words = ("run", "task.json", "--base-url", server.base_url, "--target", "openai", "-o", "journal.jsonl")
        done = run_here(*words, cwd=task.parent)
        assert sorted(server.texts()) == ["11 + 11?", "3 + 3?", "8 + 8?"]
    assert "20 of 20 rows answered in journal.jsonl; 17 of them before this run" in done.stderr.decode()
    assert done.stdout.decode().splitlines()[2].split()[:4] == ["all", "20", "20", "0.9500"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--base-url", "http://127.0.0.1:1/v1"), "--collect asks no server; leave out --base-url"),
        (("--repeats", "2"), "--collect has one reply to each request; leave out --repeats"),
        (("-o", "out.jsonl"), "'out.jsonl' is also an input or output"),
        (
            ("--collect", "rows.jsonl"),
            "'rows.jsonl' holds no results of a batch; give the output file and the error file",
        ),
    ],
)
def test_results_of_nothing_are_refused(task: Path, arguments: tuple[str, ...], said: str) -> None:
    answered(task)
    done = run_here("run", "task.json", "--collect", "out.jsonl", *arguments, cwd=task.parent)
    assert done.returncode == 2
    assert said in done.stderr.decode()
