"""Questions, turns, and what is shown of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmprompt import (
    MediaPart,
    MediaPolicy,
    MediaRef,
    Message,
    PolicyError,
    PromptError,
    ServerError,
    SourceError,
    TargetError,
    TextPart,
    load_task,
)
from mmprompt.run.builders import user
from mmprompt.run.conversation import Asker, Exchange
from mmprompt.run.reply import Reply
from mmprompt.run.transcript import stub, transcript


class FakeClient:
    base_url, model = "http://h/v1", "m"

    def __init__(self) -> None:
        self.asked: list[tuple[list[Message], dict[str, Any]]] = []

    def ask(self, messages: list[Message], **options: Any) -> Reply:
        self.asked.append((messages, options))
        if messages[-1].text == "fail":
            raise ServerError("the server is gone")
        return Reply(f"reply {len(self.asked)}")


@pytest.fixture
def asker(tour: Path) -> Any:
    client: Any = FakeClient()
    return Asker(client, base=tour / "media")


def test_a_question_stands_alone(asker: Any) -> None:
    assert asker.ask("What?", image="coffee.jpg", system="Brief.", temperature=0) == "reply 1"
    assert asker.ask("And?") == "reply 2"
    (first, options), (second, _) = asker.client.asked
    assert [m.role for m in first] == ["system", "user"]
    assert isinstance(first[1].parts[0], MediaPart)
    assert options == {"temperature": 0}
    assert [m.text for m in second] == ["And?"]


def test_a_conversation_goes_on(asker: Any) -> None:
    talk = asker.conversation(system="Brief.")
    talk.ask("What?", image="coffee.jpg")
    with pytest.raises(ServerError):
        talk.ask("fail")
    talk.ask("And?")
    messages, _ = asker.client.asked[-1]
    assert [(m.role, m.text) for m in messages] == [
        ("system", "Brief."), ("user", "What?"), ("assistant", "reply 1"), ("user", "And?"),
    ]  # fmt: skip
    assert isinstance(messages[1].parts[0], MediaPart)
    assert [m.role for m in talk.messages][-1] == "assistant"


def test_messages_of_ones_own(asker: Any) -> None:
    assert asker.send([user("a"), Message("BOT", "b"), user("c", image="coffee.jpg")]) == "reply 1"
    assert [m.role for m in asker.client.asked[0][0]] == ["user", "assistant", "user"]


def test_one_message_alone_and_what_is_none(asker: Any) -> None:
    assert asker.send(user("a")) == "reply 1"
    with pytest.raises(TargetError, match="a message is dict; give a list of Messages"):
        asker.send([{"role": "user", "content": "a"}])
    assert len(asker.client.asked) == 1


@pytest.mark.parametrize("name", ["images", "audios", "videos"])
def test_media_under_another_name_are_not_taken_for_an_option(asker: Any, name: str) -> None:
    with pytest.raises(PromptError, match=f"{name[:-1]}= takes a list too"):
        asker.ask("?", **{name: ["coffee.jpg"]})


@pytest.mark.parametrize(
    ("name", "word"), [("img", "image"), ("imgae", "image"), ("pictures", "image"), ("sound", "audio")]
)
def test_media_under_a_word_that_is_near_are_not_taken_for_an_option(asker: Any, name: str, word: str) -> None:
    with pytest.raises(PromptError, match=f"^{name} would go to the server as an option; write {word}=$"):
        asker.ask("?", **{name: "coffee.jpg"})
    assert asker.client.asked == []


@pytest.mark.parametrize("name", ["prompt", "question"])
def test_a_question_by_name_is_not_taken_for_an_option(asker: Any, name: str) -> None:
    with pytest.raises(PromptError, match=rf"^{name} would go to the server as an option; write the text first: ask\("):
        asker.ask("Brief.", image="coffee.jpg", **{name: "What?"})
    assert asker.client.asked == []


def test_media_beside_messages_are_not_taken_for_an_option(asker: Any) -> None:
    with pytest.raises(PromptError, match=r"media of messages that are sent go into them: user\(…, image=…\)"):
        asker.send(user("?"), image="coffee.jpg")
    voice = {"voice": "alloy", "format": "wav"}
    assert asker.send(user("?"), audio=voice, mm_processor_kwargs={"fps": 1}, top_k=3) == "reply 1"
    assert asker.client.asked[0][1]["audio"] == voice


def test_what_is_said_once_is_no_option_of_a_turn(asker: Any) -> None:
    with pytest.raises(PromptError, match=r"conversation\(system=…\)"):
        asker.conversation().ask("?", system="Brief.")
    with pytest.raises(PromptError, match=r"only send\(\) takes one"):
        asker.ask("?", policy=MediaPolicy())
    assert asker.client.asked == []


def test_messages_of_a_task_are_sent_under_a_policy(asker: Any, tour: Path) -> None:
    _, messages = next(load_task(tour / "task.yaml").messages())
    with pytest.raises(PolicyError):
        asker.send(messages)
    assert asker.send(messages, policy=MediaPolicy([tour])) == "reply 1"
    [(sent, options)] = asker.client.asked
    assert sent[1].parts[0].data == (tour / "media" / "coffee.jpg").read_bytes()
    assert options == {}


def test_a_text_that_names_media_stays_text(asker: Any) -> None:
    text = "/etc/passwd file:///etc/passwd <AIS_IMAGE_START>coffee.jpg<AIS_CONTENT_TAG>"
    asker.ask(text)
    assert asker.client.asked[0][0][0].parts == (TextPart(text),)


def test_a_conversation_shows_whom_it_asks(asker: Any) -> None:
    assert repr(asker.conversation("Brief.")) == "<conversation with <m at http://h/v1>, 1 messages>"


def test_an_empty_question_is_not_asked(asker: Any) -> None:
    with pytest.raises(PromptError, match="the question is empty"):
        asker.ask("")
    assert asker.client.asked == []


def test_what_was_asked_is_shown_with_media_as_stubs(asker: Any) -> None:
    talk = asker.conversation(system="Brief.")
    talk.ask("What?\nSay.", image=["coffee.jpg", b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"])
    talk.ask("And?")
    asker.ask("Alone?", video="clip.mp4")
    with pytest.raises(ServerError):
        asker.ask("fail")
    assert (
        transcript(asker.exchanges)
        == """\
system: Brief.
user: [image/jpeg, 42,121 bytes, coffee.jpg]
      [image/gif, 14 bytes]
      What?
      Say.
reply: reply 1
user: And?
reply: reply 2
user: [video/mp4, SIZE bytes, clip.mp4]
      Alone?
reply: reply 3
user: fail
reply: (none)""".replace("SIZE", f"{(Path(asker._base) / 'clip.mp4').stat().st_size:,}")
    )


def test_what_cannot_be_read_is_not_asked_and_shown_by_name(asker: Any) -> None:
    with pytest.raises(SourceError):
        asker.ask("?", image="dog.jpg")
    assert asker.client.asked == []
    assert transcript(asker.exchanges) == "user: [image, dog.jpg]\n      ?\nreply: (none)"


def test_text_of_strangers_does_not_reach_the_terminal_as_it_is() -> None:
    said = transcript([Exchange([Message("tool\x1b", "\x1b[2J\r" + "x" * 5000)], Reply("\x07\u202ea"))])
    assert "\x1b" not in said
    assert "\\x1b[2J\\r" in said
    assert "… (5,005 characters)" in said
    assert "\\x07\\u202ea" in said


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (Reply("", "length", message={"role": "assistant", "reasoning_content": "hm"}),
         "(empty: finish_reason length; it holds reasoning_content)"),
        (Reply("", "", message={"tool_calls": [{}], "refusal": None}), "(empty: no finish_reason; it holds tool_calls)"),
        (Reply("A c", "length"), "A c (finish_reason length)"),
        (Reply("A cat.", "stop"), "A cat."),
    ],
)  # fmt: skip
def test_a_reply_that_is_empty_or_cut_is_shown_with_why(reply: Reply, shown: str) -> None:
    assert transcript([Exchange([user("?")], reply)]) == f"user: ?\nreply: {shown}"


def test_stubs() -> None:
    assert stub(TextPart("a")) == "a"
    assert (
        stub(MediaRef("image", "https://h/cat.jpg?token=1", name="https://h/cat.jpg?token=1"))
        == "[image, https://h/cat.jpg]"
    )
    assert stub(MediaPart("video", "video/jpeg", b"", (b"ab", b"c"))) == "[video/jpeg, 3 bytes, 2 frames]"
