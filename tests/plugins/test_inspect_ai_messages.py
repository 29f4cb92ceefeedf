"""Messages of ours and of inspect-ai, both ways; what its model providers would lose; its scorers for ours."""
# ruff: noqa: E402  # the runner is asked for first

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest
from runner_present import need

pytestmark = [
    pytest.mark.runners,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # the runner's own
]
need("inspect-ai", "inspect_ai")

from inspect_ai import model as runner
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import get_model
from inspect_ai.tool import ToolCall

from mmprompt import (
    MediaPolicy,
    MediaRef,
    Message,
    TargetError,
    TaskError,
    TextPart,
    from_openai,
    load_task,
    read_messages,
    to_openai,
)
from mmprompt.plugins.inspect_ai import dataset, from_inspect, mmprompt_task, row_score, to_inspect, whole
from mmprompt.plugins.inspect_ai.messages import wire_of
from mmprompt.plugins.inspect_ai.model import check_loss, settings_of
from mmprompt.plugins.inspect_ai.task import _sample

PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize("name", ["tour.jsonl", "tour_chat.jsonl", "tour_columns.jsonl", "tour.json"])
def test_what_goes_to_the_runner_comes_back(name, tour):
    for _, messages in load_task({}, str(tour / name)).messages():
        read = read_messages(messages, MediaPolicy(roots=[tour]))
        made = to_inspect(read)
        wires = to_openai(read)
        assert [wire_of(message) for message in made] == wires
        assert from_inspect(made) == from_openai(wires)


def test_the_runner_holds_media_in_its_own_types(tour):
    refs = [
        MediaRef("image", "media/coffee.jpg", options=(("detail", "low"),)),
        MediaRef("audio", "media/train.wav"),
        MediaRef("audio", "media/train.mp3", "input_audio"),
        MediaRef("audio", "media/weather.flac"),
        MediaRef("video", "media/clip.mp4", extra=(("fps", 2),)),
        MediaRef("image", "https://example.com/cat.jpg"),
        TextPart("?", (("cache_control", {"type": "ephemeral"}),)),
    ]
    read = read_messages([Message("HUMAN", refs)], MediaPolicy(roots=[tour]))
    [message] = to_inspect(read)
    assert [content.type for content in message.content] == ["image", "audio", "audio", "data", "video", "data", "text"]
    image, wav, mp3, flac, clip, url, _ = message.content
    assert image.detail == "low"
    assert image.image.startswith("data:image/jpeg;base64,/9j/")
    assert wav.audio.startswith("data:audio/wav;base64,UklGR")
    assert mp3.audio.startswith("data:audio/mpeg;base64,")
    assert (wav.format, mp3.format, clip.format) == ("wav", "mp3", "mp4")
    assert flac.data["mmprompt"]["audio_url"]["url"].startswith("data:audio/flac;base64,")
    assert url.data["mmprompt"] == {"type": "image_url", "image_url": {"url": "https://example.com/cat.jpg"}}
    assert [wire_of(message)] == to_openai(read)
    again = type(message).model_validate_json(message.model_dump_json())
    assert [wire_of(again)] == to_openai(read)


def test_names_tools_and_their_calls_come_back():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    wires = [
        {"role": "user", "content": "?", "name": "Ann"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "1", "tool_call_id": "c"},
    ]
    made = to_inspect(from_openai(wires))
    assert made[1].tool_calls == [ToolCall(id="c", function="f", arguments={"x": 1})]
    assert made[2].tool_call_id == "c"
    assert [wire_of(message) for message in made] == wires


def test_messages_of_other_tasks_are_written_in_openai_form():
    parts = [
        runner.ContentImage(image=PNG, detail="low"),
        runner.ContentImage(image=PNG),
        runner.ContentAudio(audio="data:audio/wav;base64,UklGRg==", format="wav"),
        runner.ContentVideo(video="data:video/mp4;base64,AAAA", format="mp4"),
    ]
    assert wire_of(runner.ChatMessageUser(content=parts))["content"] == [
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
    ]
    calls = [ToolCall(id="c", function="f", arguments={"x": "é"})]
    assert wire_of(runner.ChatMessageAssistant(content="", tool_calls=calls))["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": "é"}'}}
    ]
    assert wire_of(runner.ChatMessageTool(content="1", tool_call_id="c")) == {
        "role": "tool",
        "content": "1",
        "tool_call_id": "c",
    }


def test_media_that_were_not_read_and_parts_without_form_are_refused():
    for content in (
        runner.ContentImage(image="cat.jpg"),
        runner.ContentVideo(video="https://example.com/a.mp4", format="mp4"),
        runner.ContentReasoning(reasoning="hm"),
        runner.ContentData(data={"x": 1}),
    ):
        with pytest.raises(TargetError, match=f"a part of type {content.type}"):
            from_inspect([runner.ChatMessageUser(content=[content])])
    with pytest.raises(TargetError, match="no role 'developer'"):
        to_inspect([Message("developer", "be brief")])


def test_what_a_reply_holds_is_never_ours():
    part = {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}
    said = [
        runner.ContentText(text="hi", internal={"mmprompt": part}),
        runner.ContentData(data={"mmprompt": part}),
    ]
    reply = runner.ChatMessageAssistant(content=said[:1], source="generate")
    assert wire_of(reply)["content"] == [{"type": "text", "text": "hi"}]
    with pytest.raises(TargetError, match="a part of type data"):
        wire_of(runner.ChatMessageAssistant(content=said[1:], source="generate"))


def test_our_provider_leaves_to_the_runner_what_has_no_form(monkeypatch):
    monkeypatch.setenv("LOCAL_API_KEY", "x")
    monkeypatch.setenv("LOCAL_BASE_URL", "http://127.0.0.1:9/v1")
    api = get_model("mmprompt/local/a/b", memoize=False).api
    assert api.service_model_name() == "a/b"
    thought = runner.ChatMessageAssistant(
        content=[runner.ContentReasoning(reasoning="hm"), runner.ContentText(text="hi")]
    )
    video = runner.ChatMessageUser(content=[runner.ContentVideo(video="data:video/mp4;base64,AAAA", format="mp4")])
    first, second = asyncio.run(api.messages_to_openai([thought, video]))
    assert "hm" in first["content"]
    assert second["content"] == [{"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}]


def user(*parts: dict[str, object], **beside: object):
    return {"role": "user", "content": list(parts), **beside}


TEXT = {"type": "text", "text": "?"}


@pytest.mark.parametrize(
    ("wire", "provider", "lost"),
    [
        (user(TEXT, name="Ann"), "openai-api", "message 1: the model provider openai-api drops 'name' of a message"),
        ({"role": "system", "content": [TEXT, TEXT]}, "openai-api", "part 1: .* joins the parts of a message of role system"),
        ({"role": "assistant", "content": [TEXT, TEXT]}, "google", "joins the parts of a message of role assistant"),
        (user(TEXT, {"type": "image_url", "image_url": {"url": PNG, "detail": "original"}}), "openai", "part 2: .* detail 'high' for 'original'"),
        (user({"type": "image_url", "image_url": {"url": PNG}, "min_pixels": 9}), "vllm", "drops the key 'min_pixels'"),
        (user({**TEXT, "cache_control": {}}), "anthropic", "drops the key 'cache_control'"),
        (user({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAAGGZ0eXBtcDQyAAAAAG1wNDJpc29t"}}), "vllm", "cannot carry video"),
        (user({"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZFZm10IA==", "format": "wav"}}), "anthropic", "cannot carry audio"),
        (user({"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZFZm10IA==", "format": "wav"}}), "sagemaker", "cannot carry audio"),
        (user(TEXT, {"type": "image_url", "image_url": {"url": PNG}}), "vllm-completions", "part 2: .* cannot carry image"),
    ],
)  # fmt: skip
def test_what_a_stock_provider_would_lose_is_named(wire, provider, lost):
    made = to_inspect(from_openai([wire]))
    with pytest.raises(TargetError, match=lost):
        check_loss(made, provider)
    for sends_all_or_nothing in ("mmprompt", "mockllm", "none"):
        check_loss(made, sends_all_or_nothing)


@pytest.mark.parametrize("provider", ["openai-api", "google", "anthropic", "none"])
def test_what_a_stock_provider_carries_is_not_refused(provider):
    wires = [
        {"role": "system", "content": "Be brief."},
        user(TEXT, {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}),
    ]
    check_loss(to_inspect(from_openai(wires)), provider)


def test_a_task_made_before_its_model_is_known_refuses_before_sending(tour, monkeypatch):
    monkeypatch.delenv("INSPECT_EVAL_MODEL", raising=False)
    made = mmprompt_task(str(tour / "tour.jsonl"), scorer="exact")
    assert len(made.dataset) == 25
    clip = made.dataset[6]

    def state(api: str) -> SimpleNamespace:
        return SimpleNamespace(messages=clip.input, model=SimpleNamespace(api=api))

    assert asyncio.run(whole()(state("mmprompt"), None)).messages == clip.input
    with pytest.raises(TargetError, match="cannot carry video"):
        asyncio.run(whole()(state("openai-api"), None))


def test_a_row_without_an_answer_is_told_where_there_is_a_score(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "?", "answer": "yes"}\n{"question": "!"}\n', encoding="utf-8")
    with pytest.raises(PrerequisiteError) as caught:
        mmprompt_task(str(path))
    assert str(caught.value.message).count("no answer to score against; give 'answer'") == 1
    assert len(dataset(str(path))) == 2  # a task of one's own has a scorer of its own
    path.write_text('{"question": "?"}\n', encoding="utf-8")
    assert mmprompt_task(str(path)).scorer is None


def test_settings_reach_the_provider_or_are_refused():
    rows = {"rows": [{"question": "?"}]}
    opened = load_task({"model": {"generation": {"temperature": 0, "top_k": 5}}}, rows)
    ours, google = (settings_of(opened, provider) for provider in ("mmprompt", "google"))
    assert (ours.temperature, ours.top_k, ours.extra_body) == (0, None, {"top_k": 5})
    assert (google.temperature, google.top_k, google.extra_body) == (0, 5, None)
    opened = load_task({"model": {"generation": {"min_p": 0.1}}}, rows)
    assert settings_of(opened, "openai-api").extra_body == {"min_p": 0.1}
    with pytest.raises(TaskError, match=r"provider google drops 'min_p' of model\.generation; leave it out, or use"):
        settings_of(opened, "google")


def test_a_choice_needs_choices(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"question": "?", "options": ["a dog", "a cat"], "answer": "B"}, {"question": "!", "answer": "B"}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(PrerequisiteError) as caught:
        mmprompt_task(str(path), scorer="choice")
    assert "rows.jsonl:2: MM702 the row has no choices to score by; give a column" in str(caught.value.message)
    assert "rows.jsonl:1" not in str(caught.value.message)


@pytest.mark.parametrize(
    ("name", "row", "reply", "value"),
    [
        ("exact", {"answer": "4"}, " 4.", "C"),
        ("exact", {"answer": 4}, "five", "I"),
        ("contains", {"answer": "cat"}, "a category", "I"),
        ("choice", {"options": ["a dog", "a cat"], "answer": "B"}, "It is a cat.", "C"),
        ("choice", {"options": ["a dog", "a cat"], "answer": 0}, "(A)", "C"),
        (None, {"options": ["a dog", "a cat"], "answer": "B"}, "Answer: A", "I"),
        ("anls", {"answer": ["coffee"]}, "cofee", pytest.approx(5 / 6)),
        ("vqa", {"answer": ["red"] * 10}, "red", 1.0),
        ("number", {"answer": 3.5}, "about 3.50", "C"),
    ],
)
def test_the_scorer_is_that_of_mmprompt_score(name, row, reply, value):
    [request] = load_task({"dataset": {"rows": [{"id": 1, "question": "?", **row}]}}).requests()
    sample = _sample(request)
    state = SimpleNamespace(metadata=sample.metadata, output=SimpleNamespace(completion=reply))
    assert asyncio.run(row_score(name)(state, None)).value == value


def test_the_scorer_leaves_samples_of_others_alone():
    with pytest.raises(TaskError, match="the sample is not of mmprompt's rows"):
        asyncio.run(row_score()(SimpleNamespace(metadata={}, output=SimpleNamespace(completion="x")), None))


def test_the_dataset_is_one_of_the_runner(tour):
    rows = dataset(str(tour / "tour_columns.jsonl"))
    assert (len(rows), rows[0].id, rows[0].target) == (9, 1, "wood")
    assert [content.type for content in rows[0].input[0].content] == ["image", "text"]
