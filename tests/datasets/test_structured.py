from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmprompt import dataset_task
from mmprompt.datasets.read import open_dataset, rows_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError
from mmprompt.messages import MediaRef, Message, TextPart
from mmprompt.segments import Segment

TOUR = Path(__file__).parents[2] / "fixtures" / "tour"


def written(tmp_path: Path, *rows: object) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return str(path)


def test_mm_custom_rows_are_media_in_order_then_the_question():
    dataset = open_dataset(TOUR / "tour_mm_custom.jsonl")
    rows = list(dataset)
    assert dataset.format == "mm_custom"
    assert [row.id for row in rows] == list(range(7))
    assert rows[1].columns["content"] == [
        Segment("image", "media/chelsea.jpg"),
        Segment("image", "media/cat.webp"),
        Segment("text", "Do both pictures show the same cat?"),
    ]
    assert rows[3].columns["content"][0].modality == "video"
    assert rows[1].columns["answer"] == "yes"
    assert not any(row.scanned for row in rows)


def test_mm_custom_text_is_never_scanned_for_tags(tmp_path):
    question = "<AIS_IMAGE_START>/etc/passwd<AIS_CONTENT_TAG>"
    (row,) = open_dataset(written(tmp_path, {"type": "image", "path": "a.jpg", "question": question}))
    assert row.columns["content"] == [Segment("image", "a.jpg"), Segment("text", question)]


@pytest.mark.parametrize(
    ("fault", "column"),
    [
        ({"type": "picture"}, "type"),
        ({"type": None}, "type"),
        ({"path": 3}, "path"),
        ({"path": ["a.jpg", 3]}, "path"),
    ],
)
def test_a_bad_mm_custom_row_is_an_error_and_reading_goes_on(tmp_path, fault, column):
    good = {"type": "image", "path": "a.jpg", "question": "q"}
    path = written(tmp_path, good, {**good, **fault}, good)
    first, bad, last = open_dataset(path)
    assert isinstance(bad, RowError)
    assert bad.where[:3] == (path, 2, column)
    assert (first.line, last.line, last.id) == (1, 3, 2)


@pytest.mark.parametrize("nothing", [None, [], " ", [None, ""], float("nan")])
def test_an_mm_custom_row_without_a_path_is_sent_without_media(tmp_path, nothing):
    good = {"type": "image", "path": "a.jpg", "question": "q"}
    path = written(
        tmp_path, good, {**good, "path": nothing}, {**good, "path": [nothing, "b.jpg"]}, {**good, "path": nothing}
    )
    dataset = open_dataset(path)
    contents = [[s.value for s in row.columns["content"]] for row in dataset]
    assert contents == [["a.jpg", "q"], ["q"], ["b.jpg", "q"], ["q"]]
    assert (
        f"{path}:2 path: it is missing, null or blank, so the row is sent without media (and 1 more)" in dataset.notes
    )


def test_a_null_question_is_left_to_whoever_uses_it(tmp_path):
    null, missing = open_dataset(
        written(tmp_path, {"type": "audio", "path": "a.wav", "question": None}, {"type": "audio", "path": ["a.wav"]})
    )
    assert null.columns["content"] == [Segment("audio", "a.wav"), Segment("text", None)]
    assert missing.columns["content"] == [Segment("audio", "a.wav")]


def test_chat_rows_carry_messages():
    dataset = open_dataset(TOUR / "tour_chat.jsonl")
    rows = list(dataset)
    assert dataset.format == "openai"
    assert [row.id for row in rows] == [f"chat-{n}" for n in range(1, 9)]
    assert rows[7].messages == (Message("user", "What is the square of 12?"),)
    assert [message.role for message in rows[2].messages] == ["user", "assistant", "user", "assistant", "user"]
    image, text = rows[0].messages[0].parts
    assert isinstance(image, MediaRef)
    assert (image.modality, image.source) == ("image", "media/coffee.jpg")
    assert text == TextPart("What is beside the cup on the saucer?")
    assert rows[0].columns["answer"] == "a spoon"
    assert not rows[0].scanned


def test_chat_rows_of_an_array_and_of_python_carry_messages_too(tmp_path):
    chats = [
        {"id": 7, "messages": [{"role": "user", "content": "<AIS_TEXT_START>a"}]},
        {"custom_id": "r-1", "body": {"messages": [{"role": "user", "content": "b"}]}},
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([3, *chats, {"messages": 3}]), encoding="utf-8")
    given = [3, *chats, {"messages": 3}]
    for rows in (open_dataset(path), rows_dataset(given), rows_dataset(iter(given))):
        bad, one, other, worse = rows
        assert (one.id, one.messages, one.scanned) == (7, (Message("user", "<AIS_TEXT_START>a"),), False)
        assert (other.id, other.messages) == ("r-1", (Message("user", "b"),))
        assert isinstance(bad, RowError)
        assert "no list of messages" in worse.what
    plain, chat = rows_dataset([{"question": "q"}, chats[0]])
    assert (plain.messages, chat.messages, chat.scanned) == (None, None, True)


def test_batch_lines_take_their_id_and_messages_from_the_request(tmp_path):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    dataset = open_dataset(written(tmp_path, {"custom_id": "r-1", "method": "POST", "url": "/v1", "body": body}))
    (row,) = dataset
    assert dataset.format == "openai"
    assert (row.id, row.messages) == ("r-1", (Message("user", "hi"),))
    assert row.columns["messages"] == body["messages"]


@pytest.mark.parametrize(
    "messages",
    [None, "text", {}, [{"role": "user", "content": [{"type": "hologram"}]}], [3], [{"content": "no role"}]],
)
def test_a_bad_chat_row_is_an_error_and_reading_goes_on(tmp_path, messages):
    good = {"messages": [{"role": "user", "content": "hi"}]}
    path = written(tmp_path, good, {"id": "x", "messages": messages}, good)
    first, bad, last = open_dataset(path)
    assert isinstance(bad, RowError)
    assert (bad.where.file, bad.where.line, bad.where.sample) == (path, 2, "x")
    assert isinstance(first, Sample)
    assert last.row == 2


@pytest.mark.parametrize(
    ("held", "total", "lacks"),
    [
        ((0, 2), 3, "test-00001-of-00003.jsonl"),
        ((1, 3), 3, "test-00002-of-00003.jsonl"),
        ((0,), 3, "test-00001-of-00003.jsonl, test-00002-of-00003.jsonl"),
        ((0, 1, 2), 3, ""),
        ((1, 2, 3), 3, ""),
    ],
)
def test_shards_that_are_missing_from_a_set_are_told(tmp_path, held, total, lacks):
    files = [tmp_path / f"test-{number:05}-of-{total:05}.jsonl" for number in held]
    for number, file in enumerate(files):
        file.write_text(json.dumps({"question": f"q{number}"}) + "\n", "utf-8")
    for path in (tmp_path, tmp_path / "*.jsonl"):
        dataset = open_dataset(path)
        assert len(list(dataset)) == len(held)
        what = f"{files[0]}: the set of shards lacks {lacks}, so their rows are missing too; add the files"
        assert dataset.notes == ([what] if lacks else [])
        assert [note.code for note in dataset.notes] == ["MM023"] * bool(lacks)
        task = dataset_task(path)
        assert len(list(task.requests())) == len(held)
        assert task.notes() == dataset.notes
    alone = open_dataset(files[0])
    assert (len(list(alone)), alone.notes) == (1, [])
