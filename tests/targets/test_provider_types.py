"""What the targets write is what the providers' own Python packages take, key by key.

``openai`` comes with the extra ``test``; ``anthropic`` and ``google-genai`` with the extra ``sdk``.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from sample_messages import FLAC, FRAMES, GIF, JPEG, MP3, MP4, PNG, TEXT, WAV, WEBP

from mmprompt import MediaReader, load_task, read_messages, to_anthropic, to_gemini, to_openai
from mmprompt.errors import TargetError
from mmprompt.messages import MediaRef, Message, TextPart
from mmprompt.targets.openai import OpenAIWriter
from mmprompt.tasks.media import task_policy

TOUR = ["tour.jsonl", "tour_chat.jsonl", "tour_columns.jsonl", "tour.csv", "tour.json", "tour_mm_custom.jsonl"]


def spelled_out(value: object) -> object:
    """A validated value with its lazy parts read; what a type does not know has been dropped from it."""
    if isinstance(value, Mapping):
        return {key: spelled_out(item) for key, item in value.items()}
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return value
    return [spelled_out(item) for item in value]


@cache
def taken(package: str) -> Any:
    """What a provider's package takes; the test is skipped where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages' own making
        if package == "google-genai":
            return pytest.importorskip("google.genai.types")
        if package == "openai":
            types = pytest.importorskip("openai.types.chat")
            form: Any = list[types.ChatCompletionMessageParam]
        else:
            form = pytest.importorskip("anthropic.types.message_create_params").MessageCreateParamsNonStreaming
        return pytest.importorskip("pydantic").TypeAdapter(form)


def check_anthropic(request: Mapping[str, object]) -> None:
    whole = {"model": "m", "max_tokens": 1, **request}
    assert spelled_out(taken("anthropic").validate_python(whole)) == whole


def check_gemini(request: Mapping[str, object]) -> None:
    types = taken("google-genai")
    assert types.Content.model_config["extra"] == "forbid"
    for content in request["contents"]:
        types.Content.model_validate(content)
    if "system_instruction" in request:
        types.GenerateContentConfig(system_instruction=types.Content.model_validate(request["system_instruction"]))


def check_openai(messages: list[dict[str, object]]) -> None:
    assert spelled_out(taken("openai").validate_python(messages)) == messages


WRITERS = {
    "anthropic": (to_anthropic, check_anthropic),
    "gemini": (to_gemini, check_gemini),
    "openai": (lambda messages: to_openai(messages, "openai"), check_openai),
}


def tour_messages(tour, name: str) -> Iterator[list[Message]]:
    task = load_task(tour / name) if name == "task.yaml" else load_task({}, str(tour / name))
    for _, messages in task.messages():
        yield read_messages(messages, task_policy(task))


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("name", [*TOUR, "task.yaml"])
def test_the_tour_is_what_the_provider_takes(target, name, tour):
    write, check = WRITERS[target]
    written = refused = 0
    for messages in tour_messages(tour, name):
        try:
            request = write(messages)
        except TargetError as error:
            refused += 1
            assert "takes" in str(error)
        else:
            written += 1
            check(request)
    assert written + refused > 2
    assert written


def test_the_checks_can_fail():
    with pytest.raises(AssertionError):
        check_anthropic({"messages": [{"role": "user", "content": "a", "name": "x"}]})
    with pytest.raises(Exception, match="image_url"):
        check_anthropic({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]})
    with pytest.raises(Exception, match="Extra inputs"):
        check_gemini({"contents": [{"role": "user", "parts": [{"type": "text", "text": "a"}]}]})
    with pytest.raises(Exception, match="video_url"):
        check_openai([{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "x"}}]}])


FILLED = TEXT.map(lambda text: f"{text}.")
HINTS = st.sampled_from([(), (("detail", "low"),)])
CACHED = st.sampled_from([(), (("cache_control", {"type": "ephemeral"}),)])
TEXTS = st.builds(TextPart, FILLED, st.just(()))


def tiny(part, form):
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2)).save(buffer, form)
    return part._replace(data=buffer.getvalue())


HEADS = [part._replace(data=part.data[:64]) for part in (WAV, MP3, FLAC, MP4)]
HEADS += [tiny(JPEG, "JPEG"), tiny(PNG, "PNG"), tiny(WEBP, "WEBP"), tiny(GIF, "GIF")]
HEADS.append(FRAMES._replace(frames=(tiny(JPEG, "JPEG").data, tiny(PNG, "PNG").data)))
MEDIA = st.builds(
    lambda part, options: part._replace(options=options) if part.modality == "image" else part,
    st.sampled_from([*HEADS, MediaRef("image", "https://h.org/a.jpg?x=1")]),
    HINTS,
)
CALLS = st.lists(
    st.builds(
        lambda number, arguments: {"id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": arguments}},
        st.integers(0, 9),
        st.sampled_from(["{}", '{"a": [1, null, "x"]}', ""]),
    ),
    max_size=2,
)  # fmt: skip
TURNS = st.one_of(
    st.lists(TEXTS | MEDIA, min_size=1, max_size=4).map(lambda parts: Message("HUMAN", parts)),
    st.builds(lambda text, calls: Message("BOT", text, tool_calls=calls), FILLED, CALLS),
    (FILLED | st.just("")).map(lambda text: Message("tool", text, tool_call_id="call_0")),
)
CONVERSATIONS = st.builds(
    lambda system, turns: [Message("SYSTEM", system)] * bool(system) + turns,
    st.lists(TEXTS, max_size=2),
    st.lists(TURNS, min_size=1, max_size=5),
)


@pytest.mark.parametrize("target", WRITERS)
def test_whatever_is_written_is_what_the_provider_takes(target):
    write, check = WRITERS[target]
    written = []

    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(CONVERSATIONS)
    def run(messages):
        try:
            request = write(messages)
        except TargetError:
            return
        check(request)
        written.append(request)

    run()
    assert len(written) > settings().max_examples // 5


@given(st.lists(CACHED, min_size=1, max_size=3))
@settings(max_examples=settings().max_examples // 5, deadline=None)
def test_cache_control_is_what_anthropic_takes(extras):
    parts = [TextPart("a", extra) for extra in extras]
    check_anthropic(
        to_anthropic([Message("SYSTEM", parts), Message("HUMAN", [*parts, JPEG._replace(extra=extras[0])])])
    )


def test_a_later_system_message_is_what_anthropic_takes():
    messages = [Message("HUMAN", "a"), Message("SYSTEM", "be brief"), Message("BOT", "b"), Message("HUMAN", "c")]
    check_anthropic(to_anthropic(messages))


def test_a_reader_makes_no_difference(tour):
    task = load_task({}, str(tour / "tour.jsonl"))
    reader = MediaReader(task_policy(task))
    writer = OpenAIWriter("openai", read=reader.read)
    _, messages = next(iter(task.messages()))
    assert writer.write(messages) == to_openai(read_messages(messages, task_policy(task)), "openai")
