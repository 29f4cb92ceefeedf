"""Whatever a server answers costs the row that was asked, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hostile_answers import BODIES, CHUNKS, FRAMES, MARK, TYPICAL, Hostile, said, serving, sized
from time_taken import GENEROUS

from mmprompt import Message, ServerError
from mmprompt.run import flight
from mmprompt.run.client import ChatClient
from mmprompt.run.plain_answer import _Continued

ANSWERS = {**FRAMES, **{name: Hostile(answer) for name, answer in BODIES.items()}}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(flight, "LONGEST_PAUSE", 0.001)


def run(
    command: Callable[..., Any], folder: Path, texts: list[str], answer: Hostile
) -> tuple[Any, list[dict[str, Any]]]:
    """Ask one row after the other, and return what the command said and the journal's last line of each row."""
    rows = [json.dumps({"id": number, "question": text}) + "\n" for number, text in enumerate(texts)]
    (folder / "rows.jsonl").write_text("".join(rows))
    how = ["--model", "m", "--concurrency", 1, "--timeout", answer.timeout, "-o", "j.jsonl", "--errors", "e.jsonl"]
    with serving(answer) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        done = command("run", "rows.jsonl", "--base-url", url, *how, cwd=folder)
    lines = (folder / "j.jsonl").read_text().splitlines()
    last = {line["row"]: line for line in (json.loads(text, parse_constant=pytest.fail) for text in lines)}
    return done, [last.get(number, {}) for number in range(len(texts))]


FIRST = {"a chunk of a negative size", "gzip that is none", "nothing, and a reset", "noise"}
PLACES = [
    pytest.param(name, place, marks=() if name in (TYPICAL if place else FIRST) else pytest.mark.slow)
    for name in ANSWERS
    for place in (0, 2)
    if place or b"HTTP/1.1 30" not in ANSWERS[name].data  # a server whose first answer leads elsewhere is the wrong one
]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_hostile_answer_costs_its_own_row(
    name: str, place: int, tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == 0:  # the others are asked meanwhile, as in the pauses of a real run
        monkeypatch.setattr(flight, "pause_before", lambda attempt, *_: 0.1 if attempt == 1 else 0.001)
    texts = ["a?", "b?"]
    texts.insert(place, MARK.decode())
    done, lines = run(command, tmp_path, texts, ANSWERS[name])
    told = done.stderr.decode()
    assert (done.returncode, "Traceback" in told) == (1, False), told
    assert [line.get("prediction") for line in lines] == [None if n == place else "A cat." for n in range(3)]
    assert lines[place]["error"].startswith("MM901 ")
    [error] = [json.loads(text) for text in (tmp_path / "e.jsonl").read_text().splitlines()]
    assert error["row"] == place


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("body", "prediction"),
    [
        (said("A cat.", usage={"total_tokens": float("nan")}), "A cat."),
        (said("A cat.", usage={"total_tokens": 10**400}), "A cat."),
        (said("A cat.", usage={"\ud800": 1}), "A cat."),
        (said("A cat.", usage=["x"]), "A cat."),
        *[(said("A cat.", usage=nested(depth)), "A cat.") for depth in (200, 300, 600, 900)],
        (said("A \ud83d cat.\0"), "A \ufffd cat.\0"),
        (said("A cat.", usage=nested(300)).replace(b"A cat.", b"\\ud83d"), "\ufffd"),
        (said("A cat.").replace(b'"stop"', json.dumps(nested(900)).encode()), "A cat."),
        (said("A cat.").decode().encode("utf-16"), "A cat."),
    ],
)
def test_what_stands_beside_a_reply_cannot_cost_it(
    body: bytes, prediction: str, tmp_path: Path, command: Callable[..., Any]
) -> None:
    done, lines = run(command, tmp_path, ["a?", MARK.decode(), "b?"], Hostile(sized(body)))
    assert done.returncode == 0, done.stderr.decode()
    assert [line["prediction"] for line in lines] == ["A cat.", prediction, "A cat."]
    again = command(
        "run", "rows.jsonl", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "-o", "j.jsonl", cwd=tmp_path
    )
    assert again.returncode == 0, "the journal holds a line that cannot be read"


@pytest.mark.parametrize("name", ["nothing, and a reset", "noise", "a greeting of SSH", "gzip that is none"])
def test_a_server_whose_every_answer_is_hostile_is_given_up_soon(
    name: str, tmp_path: Path, command: Callable[..., Any]
) -> None:
    done, lines = run(command, tmp_path, [f"{MARK.decode()} {number}" for number in range(40)], ANSWERS[name])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not any(lines)


@pytest.mark.parametrize("head", [CHUNKS + b"-1\r\n", b"HTTP/1.1 200 OK\r\nX: y\r\nX: z\r\n\r\n"])
def test_of_an_answer_without_an_end_no_more_is_read_than_a_bound(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Continued, "most", 1 << 20)
    with serving(Hostile(head, "repeat", (bytes(1 << 16),))) as server:
        client = ChatClient(f"http://127.0.0.1:{server.port}/v1", "m", timeout=GENEROUS, attempts=1)
        with closing(client), pytest.raises(ServerError, match="broke off its answer"):
            client.ask([Message("HUMAN", MARK.decode())])


def test_there_are_about_a_hundred_hostile_answers() -> None:
    assert len(ANSWERS) > 140
    assert set(ANSWERS) > TYPICAL
