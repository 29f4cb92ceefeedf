"""``mmprompt.testing``: what would be sent, and assertions on it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mmprompt.testing
from mmprompt import MediaRef, Message, PolicyError, PromptError, RowError, TargetError, load_task
from mmprompt.testing import assert_sends, assistant, audio, image, sent, sent_by, system, user, video


def stub(file: Path) -> str:
    data = file.read_bytes()
    return f"<{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}>"


def test_sent_shows_a_request_with_its_media_as_stubs(tour: Path) -> None:
    file = tour / "media" / "coffee.jpg"
    request = sent([system("Be brief."), user("What?", image="media/coffee.jpg"), assistant("A cup.")], base=tour)
    url = f"data:image/jpeg;base64,{stub(file)}"
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What?"}]
    assert request == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": content},
            {"role": "assistant", "content": "A cup."},
        ]
    }
    assert sent(user("What?", image=file)) == {"messages": [{"role": "user", "content": content}]}


def test_sent_writes_for_a_target(tour: Path) -> None:
    request = sent([system("Be brief."), user("?", image="media/coffee.jpg")], target="anthropic", base=tour)
    assert request["system"] == "Be brief."
    assert request["messages"][0]["content"][0]["source"]["data"] == stub(tour / "media" / "coffee.jpg")
    with pytest.raises(TargetError):
        sent(user("?", audio="media/train.wav"), target="anthropic", base=tour)


def test_sent_by_gives_each_sample_of_a_dataset(tour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tour)
    requests = sent_by("tour.jsonl")
    assert len(requests) == 25
    assert requests["tour-01"] == sent(user("What drink is in the cup?", image="media/coffee.jpg"))
    assert requests["tour-10"] == sent(user("中国的首都是哪座城市？"))
    assert requests["tour-15"]["messages"][0]["content"][0]["image_url"]["url"] == "https://example.com/photos/cat.jpg"
    assert sent_by(Path("tour.jsonl"), only=["tour-02"]) == {"tour-02": requests["tour-02"]}


def test_a_dataset_that_sends_what_is_expected(tour: Path) -> None:
    look = "Look at the cup, listen to the announcement, watch the clip."
    name = "Name the colour of the saucer, the time at which the train leaves, and the colour of the square."
    mixed = user(look, image("media/coffee.jpg"), audio("media/train.mp3"), video("media/short.mp4"), name)
    coffee = user("What drink is in the cup?", image=tour / "media/coffee.jpg")
    assert_sends(tour / "tour.jsonl", {"tour-01": coffee, "tour-08": [mixed]})
    assert_sends(tour / "task.yaml", {"tour-01": [system("Answer in a few words."), coffee]}, target="anthropic")
    assert_sends(tour / "tour.jsonl", {"tour-01": user(coffee.parts[0], "What drink is in the cup?")}, base="/")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (
            {"tour-01": user("What drink is in the cup?", image="media/chelsea.jpg")},
            r"sample 'tour-01' is not sent as expected, at messages\[0\]\.content\[0\]\.image_url\.url\n  expected: 'data:image/jpeg;base64,<27255 bytes, sha256 4d01.*\n      sent: 'data:image/jpeg;base64,<42121 bytes, sha256 a16a",
        ),
        (
            {"tour-01": user("What?", image="media/coffee.jpg")},
            r"at messages\[0\]\.content\[1\]\.text\n  expected: 'What\?'\n      sent: 'What drink is in the cup\?'",
        ),
        (
            {"tour-01": user(image("media/coffee.jpg"), "What drink is in the cup?", "More")},
            r"content\[2\]\n  expected: .*More.*\n      sent: nothing",
        ),
        ({"tour-01": user(image("media/coffee.jpg"))}, r"content\[1\]\n  expected: nothing\n"),
        (
            {"tour-01": user(image("media/coffee.jpg", detail="low"), "What drink is in the cup?")},
            r"image_url\.detail\n  expected: 'low'\n      sent: nothing",
        ),
        ({"tour-01": assistant(image("media/coffee.jpg"), "What drink is in the cup?")}, r"at messages\[0\]\.role\n"),
        ({"tour-01": []}, r"at messages\n"),
        ({"tour-1": user("x")}, "no sample has the id 'tour-1'; did you mean 'tour-"),
        ({1: user("x")}, "no sample has the id '1'; "),
    ],
)  # fmt: skip
def test_what_differs_is_said(tour: Path, expected: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_sends(tour / "tour.jsonl", expected)


def test_an_id_of_another_type_is_told(tmp_path: Path) -> None:
    source = {"dataset": {"rows": [{"id": 7, "question": "q"}]}}
    with pytest.raises(AssertionError, match=r"^no sample has the id '7'; the id is int: write 7$"):
        assert_sends(source, {"7": user("q")})
    (tmp_path / "a.csv").write_text("id,question\n7,q\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"^no sample has the id '7'; the id is str: write '7'$"):
        assert_sends(tmp_path / "a.csv", {7: user("q")})


def test_expected_messages_without_their_ids_are_refused(tour: Path) -> None:
    messages: Any = [user("x")]
    with pytest.raises(PromptError, match=r"^'expected' is list; give a mapping from ids to messages$"):
        assert_sends(tour / "tour.jsonl", messages)


def test_order_matters(tour: Path) -> None:
    swapped = user("What drink is in the cup?", image("media/coffee.jpg"))
    with pytest.raises(AssertionError, match=r"content\[0\]"):
        assert_sends(tour / "tour.jsonl", {"tour-01": swapped})


def test_a_sample_that_cannot_be_sent_fails_the_assertion_and_others_are_not_looked_at(
    tour: Path, broken: Path
) -> None:
    with pytest.raises(
        AssertionError, match=r"a sample cannot be sent: .*tour\.jsonl:4: MM804 anthropic takes no audio"
    ):
        assert_sends(tour / "tour.jsonl", {"tour-04": user("x")}, target="anthropic")
    with pytest.raises(AssertionError, match=r"MM206 .* is outside the media roots; .*sample b-14\)"):
        assert_sends(broken / "broken.jsonl", {"b-14": user("x")})
    assert set(sent_by(broken / "broken.jsonl", only=["b-01"])) <= {"b-01"}
    with pytest.raises(mmprompt.MMPromptError):
        sent_by(broken / "broken.jsonl")


def test_tasks_mappings_turns_and_labels(tmp_path: Path) -> None:
    rows = [{"id": [1, 2], "q": "1+1", "answer": "2"}, {"id": 7, "q": "2+2", "answer": "4"}]
    template = {"round": [{"role": "HUMAN", "prompt": "{q}="}, {"role": "BOT", "prompt": "{answer}"}]}
    config = {
        "dataset": {"rows": rows},
        "infer_cfg": {"prompt_template": {"type": "PromptTemplate", "template": template}},
    }
    assert_sends(config, {7: user("2+2="), "[1, 2]": [user("1+1=")]})
    assert_sends(load_task(config), {7: [user("2+2=")]})
    labels = {
        "A": {"round": [{"role": "HUMAN", "prompt": "{q}=a"}]},
        "B": {"round": [{"role": "HUMAN", "prompt": "{q}=b"}]},
    }
    ppl = {
        "dataset": {"rows": rows},
        "infer_cfg": {
            "prompt_template": {"type": "PromptTemplate", "template": labels},
            "inferencer": {"type": "PPLInferencer"},
        },
    }
    assert_sends(ppl, {7: {"A": [user("2+2=a")], "B": [user("2+2=b")]}})
    with pytest.raises(AssertionError, match=r"messages\.B\[0\]\.content"):
        assert_sends(ppl, {7: {"A": [user("2+2=a")], "B": [user("2+2=c")]}})


def test_a_row_that_is_none_ends_sent_by_and_not_assert_sends(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": 1, "question": "a"}\n{broken\n{"id": 2, "question": "b"}\n')
    assert_sends(file, {2: user("b")})
    with pytest.raises(RowError):
        sent_by(file)


def test_media_that_a_sample_names_need_a_policy(tour: Path) -> None:
    message = Message("user", [MediaRef("image", str(tour / "media" / "coffee.jpg"))])
    with pytest.raises(PolicyError):
        sent(message)
    assert sent(message, policy=mmprompt.MediaPolicy([tour])) == sent(user(image=tour / "media" / "coffee.jpg"))


def test_rows_alone_are_no_source() -> None:
    rows: Any = [{"id": 1, "question": "q"}]
    with pytest.raises(PromptError, match=r"the source is list; give a file, a Task, or a mapping: \{'dataset'"):
        assert_sends(rows, {1: user("q")})


def test_the_types_of_vlm_and_its_replies_are_there_and_load_when_asked_for() -> None:
    code = """
import sys, mmprompt.testing as t
print("mmprompt.run.conversation" in sys.modules)
print(t.Asker.ask.__annotations__["return"], t.Conversation.__name__, t.Reply("A cat.").upper())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["False", "Reply Conversation A CAT."]
    assert isinstance(mmprompt.testing.Reply("x"), str)
    with pytest.raises(AttributeError, match=r"^module 'mmprompt.testing' has no attribute 'asks'$"):
        mmprompt.testing.asks  # noqa: B018


def test_the_documented_names_are_there() -> None:
    assert sorted(mmprompt.testing.__all__) == mmprompt.testing.__all__
    code = "import sys, mmprompt.testing as t; assert all(getattr(t, n) for n in t.__all__); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"requests", "PIL", "numpy", "av", "transformers", "pytest"} & set(loaded)
    assert json.dumps(sent(user("a"))) == '{"messages": [{"role": "user", "content": "a"}]}'
