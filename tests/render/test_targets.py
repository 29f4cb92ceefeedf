"""Rows to lines in the form of each target, and to OpenAI's batch files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from mmprompt import MediaPolicy, TargetError, TaskError, load_task, read_messages, register_target
from mmprompt.errors.findings import Note
from mmprompt.render.builder import FailedRow
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.anthropic import to_anthropic
from mmprompt.targets.chunk_writer import ChunkWriter
from mmprompt.targets.gemini import to_gemini
from mmprompt.tasks.media import task_policy

SYSTEM = {"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Be brief."}
ASK = {"role": "HUMAN", "prompt": "{question}"}


def task_of(rows, template=None, kind="PromptTemplate", inferencer="GenInferencer", **more):
    infer = {"prompt_template": {"type": kind, "template": template}, "inferencer": {"type": inferencer, **more.pop("infer", {})}}  # fmt: skip
    return load_task({**({} if template is None else {"infer_cfg": infer}), **more}, {"rows": rows})


def lines(task, **options):
    renderer = Renderer(task, **options)
    out = []
    for row in task.samples():
        done = renderer.render(row)
        if isinstance(done, FailedRow):
            raise done.error
        out += [json.loads(line) for line in b"".join(done.chunks).splitlines()]
    return out


@pytest.mark.parametrize(("target", "write"), [("anthropic", to_anthropic), ("gemini", to_gemini)])
def test_a_line_holds_what_the_function_gives(target, write, tour):
    task = load_task(tour / "task.yaml")
    renderer = Renderer(task, target=target)
    written = 0
    for row, (_, messages) in zip(task.samples(), task.messages(), strict=True):
        done = renderer.render(row)
        try:
            wire = write(read_messages(messages, task_policy(task)))
        except TargetError as error:
            assert done.error.what == error.what
        else:
            assert json.loads(b"".join(done.chunks)) == {"id": row.id, **wire, "answer": row.columns["answer"]}
            written += 1
    assert written > 15


def test_the_keys_of_a_line():
    task = task_of([{"id": 7, "question": "q", "answer": "a"}], {"begin": [SYSTEM], "round": [ASK]})
    user = {"role": "user", "content": "q"}
    assert lines(task, target="anthropic") == [{"id": 7, "messages": [user], "system": "Be brief.", "answer": "a"}]
    assert lines(task, target="gemini") == [
        {
            "id": 7,
            "contents": [{"role": "user", "parts": [{"text": "q"}]}],
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "answer": "a",
        }
    ]


def test_labels_stand_under_each_key():
    template = {
        "A": {"begin": [SYSTEM], "round": [ASK, {"role": "BOT", "prompt": "A"}]},
        "B": {"round": [ASK, {"role": "BOT", "prompt": "B"}]},
    }
    [line] = lines(task_of([{"question": "q"}], template, inferencer="PPLInferencer"), target="anthropic")
    assert line == {
        "id": 0,
        "messages": {
            label: [{"role": "user", "content": "q"}, {"role": "assistant", "content": label}] for label in "AB"
        },
        "system": {"A": "Be brief."},
    }


def test_the_media_of_a_string_are_parts_of_the_target(tour):
    coffee = (tour / "media" / "coffee.jpg").read_bytes()
    template = {"round": [{"role": "HUMAN", "prompt_mm": {"text": {"type": "text", "text": "{question}"}, "image": {"type": "image_url", "image_url": {"url": "{image}"}}}}]}  # fmt: skip
    task = task_of([{"question": "q", "image": coffee}], template, "MMPromptTemplate", model={"media_placeholder": {"image": "<image>"}})  # fmt: skip
    [line] = lines(task, target="anthropic", emit="string")
    assert [part["type"] for part in line["media"]] == ["image"]
    assert line["media"][0]["source"]["media_type"] == "image/jpeg"
    [line] = lines(task, target="gemini", emit="string")
    assert [list(part) for part in line["media"]] == [["inline_data"]]


def test_the_media_of_the_strings_of_labels_stand_under_each_label(tour):
    row = {"question": "q", "image": (tour / "media" / "coffee.jpg").read_bytes()}
    ask = {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "{image}"}}, "text": {"type": "text", "text": "{question}"}}}  # fmt: skip
    template = {
        "A": {"round": [ask, {"role": "BOT", "prompt": "A"}]},
        "B": {"round": [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "B"}]},
    }
    model = {"media_placeholder": {"image": "<image>"}}
    task = task_of([row], template, "MMPromptTemplate", "PPLInferencer", model=model)
    [line] = lines(task, target="anthropic", emit="string")
    assert line["string"] == {"A": "<image>q\nA", "B": "q\nB"}
    assert [(label, [part["type"] for part in parts]) for label, parts in line["media"].items()] == [("A", ["image"])]


def test_examples_over_the_images_of_a_target_are_dropped_from_strings_as_from_messages(tour):
    register_target("test-two", max_count={"image": 2})
    coffee = (tour / "media" / "coffee.jpg").read_bytes()
    ask = {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "{image}"}}}}
    kind = {"type": "MMPromptTemplate", "ice_token": "</E>"}
    infer = {
        "ice_template": {**kind, "template": {"round": [ask]}},
        "prompt_template": {**kind, "template": {"begin": ["</E>"], "round": [ask]}},
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0, 1]},
    }
    rows = {"rows": [{"image": coffee}], "train_rows": [{"image": coffee}] * 2}
    task = load_task({"infer_cfg": infer, "model": {"media_placeholder": {"image": "<i>"}}}, rows)
    [sent] = lines(task, target="test-two")
    [string] = lines(task, target="test-two", emit="string")
    assert sent["dropped_examples"] == string["dropped_examples"] == 1
    assert string["string"].count("<i>") == len(string["media"]) == 2


def test_a_target_of_ones_own_is_rendered():
    register_target("test-claude", like="anthropic", max_count={"image": 1})
    assert lines(task_of([{"question": "q"}]), target="test-claude")[0]["messages"] == [
        {"role": "user", "content": "q"}
    ]


def test_a_refused_medium_is_placed_in_its_column(tour):
    rows = [{"question": "q", "sound": str(tour / "media" / "train.wav")}]
    task = load_task(
        {"infer_cfg": {"prompt_template": {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt_mm": {"text": {"type": "text", "text": "{question}"}, "audio": {"type": "audio_url", "audio_url": {"url": "{sound}"}}}}]}}}},
        {"rows": rows},
    )  # fmt: skip
    done = Renderer(task, target="anthropic", policy=MediaPolicy([str(tour)])).render(next(task.samples()))
    assert done.error.where.column == "sound"
    assert "anthropic takes no audio" in done.error.what


MODEL = {"model": "m-1", "generation": {"temperature": 0, "max_tokens": 5}}


class TestBatch:
    def test_a_line(self):
        rows = [
            {"id": "a", "question": "q", "answer": "x"},
            {"id": 3, "question": "r"},
            {"id": [1, "ü"], "question": "s"},
        ]
        found = lines(task_of(rows, model=MODEL), emit="batch", target="openai")
        assert found[0] == {
            "custom_id": "a",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"temperature": 0, "max_tokens": 5, "model": "m-1", "messages": [{"role": "user", "content": "q"}]},
        }
        assert [line["custom_id"] for line in found] == ["a", "3", '[1, "ü"]']

    def test_ids_that_become_one_are_told(self, command, tmp_path):
        (tmp_path / "data.jsonl").write_text('{"id": 2, "question": "q"}\n{"id": "2", "question": "r"}\n')
        (tmp_path / "task.json").write_text(json.dumps({"dataset": "data.jsonl", "model": MODEL}))
        assert command("render", tmp_path / "task.json").returncode == 0
        done = command("render", tmp_path / "task.json", "--emit", "batch")
        assert done.returncode == 1
        assert b"data.jsonl:2: MM808 the same id stands in line 1" in done.stderr

    def test_through_a_template_with_media(self, tour):
        task = load_task(tour / "task.yaml")
        with pytest.raises(TaskError, match="needs the name of a model; give model"):
            Renderer(task, emit="batch")
        config = {**_yaml(tour / "task.yaml"), "model": MODEL}
        task = load_task(config, str(tour / "tour.jsonl"))
        first = lines(task, emit="batch")[0]
        assert first["body"]["messages"][0] == {"role": "system", "content": "Answer in a few words."}
        assert first["body"]["messages"][1]["content"][0]["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/")

    @pytest.mark.parametrize(
        ("generation", "body"),
        [
            ({}, {"max_tokens": 64}),
            ({"max_tokens": 5}, {"max_tokens": 5}),
            ({"max_completion_tokens": 5}, {"max_completion_tokens": 5}),
        ],
    )
    def test_the_length_of_the_reply_goes_along(self, generation: dict[str, int], body: dict[str, int]):
        model = {"model": "m", "generation": generation}
        task = task_of([{"question": "q"}], {"round": [ASK]}, infer={"max_out_len": 64}, model=model)
        found = lines(task, emit="batch")[0]["body"]
        assert {key: value for key, value in found.items() if key not in ("model", "messages")} == body

    def test_examples_that_found_no_room_are_a_note_since_a_line_has_no_key_for_them(self):
        kind = {"type": "PromptTemplate", "ice_token": "</E>"}
        infer = {
            "ice_template": {"type": "PromptTemplate", "template": "{q}"},
            "prompt_template": {**kind, "template": "</E>{q}"},
            "retriever": {"type": "FixKRetriever", "fix_id_list": [0, 1]},
            "inferencer": {"type": "GenInferencer", "max_seq_len": 8},
        }
        rows = {"rows": [{"id": n, "q": "x" * n} for n in (1, 5, 8)], "train_rows": [{"q": "a"}, {"q": "b"}]}
        task = load_task({"infer_cfg": infer, "model": MODEL}, rows, tokenizer=len)
        counts = [line.get("dropped_examples", 0) for line in lines(task)]
        assert counts == [0, 1, 2]
        assert {*lines(task, emit="batch")[2]} == {"custom_id", "method", "url", "body"}
        notes: list[Note] = []
        render(Renderer(task, emit="batch"), task.samples(), ChunkWriter(io.BytesIO()), on_note=notes.append)
        assert [(note.code, note) for note in notes] == [
            ("MM613", "row 2 (sample 5): no room for 1 of the in-context examples"),
            ("MM613", "row 3 (sample 8): no room for 2 of the in-context examples"),
        ]

    def test_it_is_openais_and_asks_for_replies(self):
        with pytest.raises(TargetError, match="a batch file needs OpenAI's chat form, and anthropic has another"):
            Renderer(task_of([], model=MODEL), emit="batch", target="anthropic")
        template = {"A": {"round": [ASK]}, "B": {"round": [ASK]}}
        with pytest.raises(TaskError, match="this task compares labels"):
            Renderer(task_of([], template, inferencer="PPLInferencer", model=MODEL), emit="batch")

    def test_the_lines_are_read_back_as_a_dataset(self, tmp_path: Path):
        rows = [{"id": f"r{n}", "question": f"q{n}"} for n in range(3)]
        task = task_of(rows, model=MODEL)
        file = tmp_path / "batch.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines(task, emit="batch")), encoding="utf-8")
        again = load_task({}, str(file))
        assert [(id_, messages[0].text) for id_, messages in again.messages()] == [(f"r{n}", f"q{n}") for n in range(3)]


def _yaml(path: Path) -> dict[str, object]:
    import yaml

    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_on_the_command_line(command, tour):
    done = command("render", tour / "tour.jsonl", "--target", "gemini", "--limit", "1")
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)) == ["id", "contents", "answer"]
    assert b"anthropic" in command("render", "--help").stdout
    unknown = command("render", tour / "tour.jsonl", "--target", "antropic")
    assert unknown.returncode == 2
    assert b"did you mean 'anthropic'" in unknown.stderr
