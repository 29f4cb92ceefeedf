"""``run_task``: each row asked once, its reply in the journal; what stands there is gone on with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import Answering, answering, text_of

from mmprompt import MMPromptError, ServerError, TaskError, load_task, run_task
from mmprompt.run.journal import read_journal

ROWS = [{"id": f"q-{n}", "question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(12)]


def sum_of(body: dict[str, Any]) -> str:
    words = text_of(body).rstrip("?").split()
    return str(int(words[2]) + int(words[4]))


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering(sum_of) as served:
        yield served


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "sums.jsonl", ROWS)


def test_each_row_is_asked_once_and_its_reply_is_a_line(server: Answering, data: Path, tmp_path: Path) -> None:
    report = run_task(data, "m", tmp_path / "out.jsonl", base_url=server.base_url)
    assert (report.answered, report.kept, report.failed) == (12, 0, 0)
    lines = sorted(lines_of(tmp_path / "out.jsonl"), key=lambda line: line["row"])
    assert [(line["row"], line["id"], line["prediction"]) for line in lines] == [
        (n, f"q-{n}", str(n + 1)) for n in range(12)
    ]
    assert list(lines[0]) == [
        *("row", "id", "turn", "label", "request", "prediction", "answer", "choices"),
        *("usage", "seconds", "attempts", "finish_reason"),
    ]
    assert lines[0]["usage"] == {"total_tokens": 3}
    assert len(server.bodies) == 12


def test_the_hash_of_a_request_is_that_of_its_body(server: Answering, data: Path, tmp_path: Path) -> None:
    from hashlib import sha256

    run_task(data, "m", tmp_path / "out.jsonl", base_url=server.base_url)
    bodies = [request.body("m") for request in load_task(data).requests()]
    lines = sorted(read_journal(str(tmp_path / "out.jsonl")), key=lambda line: line.row)
    assert [line.request for line in lines] == [sha256(body).hexdigest() for body in bodies]


def test_a_run_goes_on_where_it_ended(server: Answering, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    first = run_task(data, "m", out, base_url=server.base_url, limit=5)
    assert (first.answered, first.kept) == (5, 0)
    second = run_task(data, "m", out, base_url=server.base_url)
    assert (second.answered, second.kept, second.stale) == (12, 5, 0)
    assert len(server.bodies) == 12
    assert len(lines_of(out)) == 12


def test_a_corrected_answer_is_scored_without_asking_again(server: Answering, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    wrong = [{**row, "answer": "?"} if row["id"] == "q-3" else row for row in ROWS]
    first = run_task(write(data, wrong), "m", out, base_url=server.base_url)
    assert first.scores is not None
    assert first.scores.total.score == 11 / 12
    write(data, [{**row, "size": "large"} for row in ROWS])
    second = run_task(data, "m", out, base_url=server.base_url, group_by=["size"])
    assert second.scores is not None
    assert (second.answered, second.kept, second.scores.total.score) == (12, 12, 1.0)
    assert second.scores.groups["size"]["large"].rows == 12
    assert len(server.bodies) == 12
    size = out.stat().st_size
    run_task(data, "m", out, base_url=server.base_url)
    assert out.stat().st_size == size


def test_errors_are_asked_again_and_only_the_prediction_counts(data: Path, tmp_path: Path) -> None:
    broken = {"What is 3 + 1?", "What is 7 + 1?"}

    def reply(body: dict[str, Any]) -> Any:
        return (400, {"error": {"message": "no"}}) if text_of(body) in broken else sum_of(body)

    out = tmp_path / "out.jsonl"
    errors: list[MMPromptError] = []
    with answering(reply) as server:
        report = run_task(data, "m", out, base_url=server.base_url, on_error=errors.append)
        assert (report.answered, report.failed) == (10, 2)
        assert sorted(str(error.where.sample) for error in errors) == ["q-3", "q-7"]
        assert {line["id"] for line in lines_of(out) if "error" in line} == {"q-3", "q-7"}
        assert all("prediction" not in line for line in lines_of(out) if "error" in line)

        run_task(data, "m", out, base_url=server.base_url)
        assert len(lines_of(out)) == 12  # the same error is not written again

        broken.clear()
        asked = len(server.bodies)
        report = run_task(data, "m", out, base_url=server.base_url, retry_errors=True)
        assert (report.answered, report.failed) == (2, 0)
        assert sorted(server.texts()[asked:]) == ["What is 3 + 1?", "What is 7 + 1?"]
    assert len(lines_of(out)) == 14
    counting = list(read_journal(str(out)))
    assert sorted(line.row for line in counting) == list(range(12))
    assert not [line for line in counting if line.error]


def test_errors_that_pass_are_asked_once_more_at_the_end(data: Path, tmp_path: Path) -> None:
    """Without further attempts, which take pauses, the second pass alone asks again."""
    failing = [0]

    def reply(body: dict[str, Any]) -> Any:
        if text_of(body) == "What is 2 + 1?" and not failing[0]:
            failing[0] = 1
            return 500, {"error": "busy"}
        return sum_of(body)

    from mmprompt.run.runner import RunSettings
    from mmprompt.run.server_model import ServerModel
    from mmprompt.run.task_run import Hooks, Plan, ask_task

    out = tmp_path / "out.jsonl"
    with answering(reply) as server:
        task = load_task(data)
        report = ask_task(task, ServerModel(server.base_url, "m"), str(out), RunSettings(attempts=1), Plan(), Hooks())
        assert (report.answered, report.failed) == (12, 0)
        assert server.texts()[-1] == "What is 2 + 1?"
    assert len(lines_of(out)) == 13
    assert not [line for line in read_journal(str(out)) if line.error]


def test_a_row_that_cannot_be_sent_has_its_error_in_the_journal(server: Answering, tmp_path: Path) -> None:
    rows = [*ROWS[:2], {"id": "bad", "question": "", "answer": "1"}, {"id": "pic", "question": "?", "image": "no.png"}]
    data = write(tmp_path / "rows.jsonl", rows)
    out = tmp_path / "out.jsonl"
    for _ in range(2):
        report = run_task(data, "m", out, base_url=server.base_url)
        assert (report.answered, report.failed) == (2, 2)
        errors = {line["id"]: line["error"] for line in lines_of(out) if "error" in line}
        assert errors["bad"].startswith("MM700")
        assert errors["pic"].startswith("MM201")
        assert len(lines_of(out)) == 4
    assert len(server.bodies) == 2


def test_a_changed_row_is_asked_again_and_a_removed_one_is_told(server: Answering, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_task(data, "m", out, base_url=server.base_url)
    write(data, [{**ROWS[0], "question": "What is 40 + 2?"}, *ROWS[1:11]])
    report = run_task(data, "m", out, base_url=server.base_url)
    assert (report.answered, report.kept, report.stale) == (11, 10, 1)
    assert {line.id: line.prediction for line in read_journal(str(out))}["q-0"] == "42"


def test_a_removed_row_is_not_scored_until_it_comes_back(server: Answering, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_task(data, "m", out, base_url=server.base_url)
    write(data, ROWS[:10])
    for _ in range(2):
        report = run_task(data, "m", out, base_url=server.base_url)
        assert (report.answered, report.stale) == (10, 2)
        assert report.scores is not None
        assert report.scores.total.rows == 10
        assert len(lines_of(out)) == 14
    write(data, ROWS)
    report = run_task(data, "m", out, base_url=server.base_url)
    assert (report.answered, report.kept, report.stale) == (12, 12, 0)
    assert report.scores is not None
    assert report.scores.total.rows == 12
    assert len(server.bodies) == 12


def test_an_error_that_may_pass_is_told_where_the_dataset_cannot_be_read_again(data: Path, tmp_path: Path) -> None:
    from mmprompt.run.runner import FailedRow, RunSettings
    from mmprompt.run.server_model import ServerModel
    from mmprompt.run.task_run import Hooks, Plan, ask_task

    def reply(body: dict[str, Any]) -> Any:
        data.unlink(missing_ok=True)
        return (500, {"error": "busy"}) if text_of(body) == "What is 2 + 1?" else sum_of(body)

    told: list[tuple[int | None, FailedRow]] = []
    with answering(reply) as server:
        hooks = Hooks(lambda failed, number: told.append((number, failed)))
        model = ServerModel(server.base_url, "m")
        report = ask_task(load_task(data), model, str(tmp_path / "o.jsonl"), RunSettings(attempts=1), Plan(), hooks)
    assert (report.answered, report.failed) == (11, 1)
    ((number, failed),) = told
    assert (number, failed.error.code, failed.error.where.sample) == (2, "MM901", "q-2")
    assert str(failed.error).startswith(f"{data}:3 (sample q-2): ")
    assert "busy" in failed.error.what


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rpm": float("nan")}, "rpm is 'nan'; give rpm a number above 0"),
        ({"rpm": 0}, "rpm is '0'"),
        ({"limit": 0}, "limit is '0'; give limit a whole number from 1"),
        ({"repeats": 1.5}, "repeats is '1.5'"),
        ({"concurrency": True}, "concurrency is 'True'"),
        ({"timeout": float("nan")}, "timeout nan"),
    ],
)
def test_numbers_are_those_that_the_command_takes(
    server: Answering, data: Path, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(MMPromptError, match=said):
        run_task(data, "m", tmp_path / "out.jsonl", base_url=server.base_url, **options)
    assert not server.bodies


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"options": {"temperature": 0.5}}, "temperature unset, now 0.5"),
        ({"model": "other"}, "model 'm', now 'other'"),
        ({"scorer": "contains"}, "scorer unset, now 'contains'"),
    ],
)
def test_a_journal_begun_otherwise_is_refused(
    server: Answering, data: Path, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    out = tmp_path / "out.jsonl"
    run_task(data, "m", out, base_url=server.base_url, limit=1)
    given: dict[str, Any] = {"model": "m", "base_url": server.base_url, **changed}
    with pytest.raises(TaskError) as refused:
        run_task(data, output=out, **given)
    assert said in refused.value.what
    assert "-o" in refused.value.hint
    assert "--overwrite" in refused.value.hint
    report = run_task(data, output=out, overwrite=True, **given)
    assert (report.answered, report.kept) == (12, 0)
    assert len(lines_of(out)) == 12


def test_another_dataset_is_refused_but_a_moved_one_is_not(server: Answering, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run_task(data, "m", out, base_url=server.base_url)
    moved = data.rename(tmp_path / "moved.jsonl")
    assert run_task(moved, "m", out, base_url=server.base_url).kept == 12
    other = write(tmp_path / "other.jsonl", ROWS[3:5])
    with pytest.raises(TaskError, match="another dataset"):
        run_task(other, "m", out, base_url=server.base_url)


def test_repeats_ask_each_row_several_times(server: Answering, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    report = run_task(data, "m", out, base_url=server.base_url, limit=3, repeats=2)
    assert report.answered == 6
    assert sorted((line["row"], line["repeat"]) for line in lines_of(out)) == [
        (row, n) for row in range(3) for n in range(2)
    ]
    report = run_task(data, "m", out, base_url=server.base_url, limit=3, repeats=3)
    assert (report.answered, report.kept) == (9, 6)


def test_at_most_so_many_requests_are_in_flight(tmp_path: Path) -> None:
    import time

    def slow(body: dict[str, Any]) -> str:
        time.sleep(0.02)
        return sum_of(body)

    data = write(tmp_path / "d.jsonl", ROWS)
    with answering(slow) as server:
        run_task(data, "m", tmp_path / "out.jsonl", base_url=server.base_url, concurrency=3)
    assert 1 < server.most <= 3


def test_a_refused_key_ends_the_run_with_the_servers_words(data: Path, tmp_path: Path) -> None:
    with answering(lambda _: (401, {"error": {"message": "bad key"}})) as server:
        with pytest.raises(ServerError, match="bad key"):
            run_task(data, "m", tmp_path / "out.jsonl", base_url=server.base_url, concurrency=2)
        assert len(server.bodies) <= 4


def test_options_go_out_with_each_request(server: Answering, data: Path, tmp_path: Path) -> None:
    run_task(data, "m", tmp_path / "o.jsonl", base_url=server.base_url, limit=2, options={"temperature": 0, "top_k": 5})
    assert all(body["temperature"] == 0 and body["top_k"] == 5 for body in server.bodies)


def test_groups_are_the_columns_by_which_scores_are_grouped(server: Answering, tmp_path: Path) -> None:
    rows = [{**row, "category": "sums", "level": n} for n, row in enumerate(ROWS[:2])]
    data = write(tmp_path / "d.jsonl", rows)
    run_task(data, "m", tmp_path / "out.jsonl", base_url=server.base_url, group_by=["level"])
    found = sorted((line.row, dict(line.groups)) for line in read_journal(str(tmp_path / "out.jsonl")))
    assert found == [(n, {"level": n, "category": "sums"}) for n in range(2)]


def test_a_dataset_is_named_by_its_files(server: Answering, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data.parent)
    report = run_task("sums.jsonl", "org/model:7b", base_url=server.base_url, limit=1)
    assert report.journal == "sums-org_model_7b.jsonl"
    assert Path(report.journal).is_file()
