"""Messages to Anthropic's form."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest
from hypothesis import given, settings
from sample_messages import BMP, FRAMES, GIF, JPEG, MESSAGES, MP4, PNG, WAV, user

from mmprompt.errors import TargetError, Where
from mmprompt.messages import MediaRef, Message, TextPart
from mmprompt.targets.anthropic import AnthropicWriter, to_anthropic
from mmprompt.targets.limits import register_target

CACHE = (("cache_control", {"type": "ephemeral"}),)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def block(part: object) -> object:
    [found] = to_anthropic(user(part))["messages"][0]["content"]
    return found


def call(call_id: str = "c1", arguments: object = '{"x": 1}', **more: object) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": "add", "arguments": arguments}, **more}


class TestContent:
    def test_one_text_is_a_string(self):
        assert to_anthropic(user(TextPart("hi"))) == {"messages": [{"role": "user", "content": "hi"}]}

    def test_a_text_with_cache_control_is_a_block(self):
        assert block(TextPart("a", CACHE)) == {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}

    def test_an_image_is_a_base64_source_of_its_real_type(self):
        assert block(PNG._replace(extra=CACHE)) == {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": b64(PNG.data)},
            "cache_control": {"type": "ephemeral"},
        }

    def test_an_https_url_is_a_url_source(self):
        assert block(MediaRef("image", "https://h.org/a.jpg")) == {
            "type": "image",
            "source": {"type": "url", "url": "https://h.org/a.jpg"},
        }

    @pytest.mark.parametrize(
        "ref",
        [
            MediaRef("image", "http://h.org/a.jpg"),
            MediaRef("image", "gs://b/a.jpg"),
            MediaRef("image", "a.jpg", name="file:///data/a.jpg"),
            MediaRef("image", "a.jpg", name="a.jpg"),
            MediaRef("image", "data:image/png;base64,AAAA", name="data:image/png;base64,AAAA"),
        ],
        ids=lambda ref: ref.source[:12],
    )
    def test_other_names_are_refused(self, ref):
        with pytest.raises(TargetError, match=r"message 1, part 1: .*anthropic takes names with https"):
            to_anthropic(user(ref))

    def test_frames_are_images(self):
        content = to_anthropic(user(FRAMES, TextPart("x")))["messages"][0]["content"]
        assert content == [block(JPEG), block(JPEG), {"type": "text", "text": "x"}]

    @pytest.mark.parametrize(
        ("part", "words"),
        [
            (WAV, "takes no audio"),
            (MP4, "takes no video; .*--frames N"),
            (BMP, "takes image as gif, jpeg, png, webp, not image/bmp; .*--fit"),
            (MediaRef("audio", "https://h.org/a.wav"), "takes no audio"),
            (MediaRef("image", "a.jpg"), "has not been read"),
            (JPEG._replace(data=bytes(7_864_321)), "7864321 bytes, anthropic takes 7864320; .*--fit"),
        ],
        ids=lambda value: None,
    )
    def test_what_it_does_not_take_is_an_error(self, part, words):
        with pytest.raises(TargetError, match=f"message 1, part 2: .*{words}"):
            to_anthropic(user(TextPart("a"), part))

    def test_an_animated_gif_passes(self):
        assert block(GIF)["source"]["media_type"] == "image/gif"

    def test_a_hint_of_other_forms_is_left_out_and_other_keys_are_named(self):
        assert block(JPEG._replace(options=(("detail", "low"),))) == block(JPEG)
        with pytest.raises(
            TargetError, match=r"part 1: anthropic does not accept the key 'min_pixels' in this part .*cache_control"
        ):
            to_anthropic(user(JPEG._replace(extra=(("min_pixels", 3),))))
        with pytest.raises(TargetError, match="anthropic does not accept the key 'format' in this part"):
            to_anthropic(user(JPEG._replace(options=(("format", "x"),))))

    def test_white_space_alone_is_refused(self):
        with pytest.raises(TargetError, match="message 1, part 2: anthropic takes no text of white space alone"):
            to_anthropic(user(JPEG, TextPart("\n")))


class TestTurns:
    def test_neighbours_of_one_role_become_one_message(self):
        messages = [Message("HUMAN", "a"), Message("HUMAN", [JPEG]), Message("BOT", "b"), Message("BOT", "c")]
        assert to_anthropic(messages)["messages"] == [
            {"role": "user", "content": [{"type": "text", "text": "a"}, block(JPEG)]},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
        ]

    def test_the_system_prompt_stands_apart(self):
        assert to_anthropic([Message("SYSTEM", "s"), *user(TextPart("a"))])["system"] == "s"
        several = [Message("SYSTEM", "s"), Message("developer", [TextPart("t", CACHE)]), Message("HUMAN", "a")]
        assert to_anthropic(several) == {
            "messages": [{"role": "user", "content": "a"}],
            "system": [{"type": "text", "text": "s"}, {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}],
        }  # fmt: skip

    def test_a_later_system_message_stays_where_the_api_takes_it(self):
        messages = [Message("HUMAN", "a"), Message("SYSTEM", "s"), Message("SYSTEM", "t")]
        joined = [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}]
        assert to_anthropic(messages)["messages"][1:] == [{"role": "system", "content": joined}]
        assert [m["role"] for m in to_anthropic([*messages, Message("BOT", "b")])["messages"]] == [
            "user", "system", "assistant",
        ]  # fmt: skip

    @pytest.mark.parametrize("roles", ["HUMAN SYSTEM HUMAN", "HUMAN BOT SYSTEM HUMAN", "BOT SYSTEM"])
    def test_it_is_never_moved(self, roles):
        words = r"^message \d: anthropic takes a later system message only after a user message"
        with pytest.raises(TargetError, match=words) as raised:
            to_anthropic([Message(role, "x") for role in roles.split()])
        assert raised.value.where == Where(message=roles.split().index("SYSTEM") + 1)

    def test_a_system_message_is_text(self):
        with pytest.raises(TargetError, match="message 1: anthropic takes text alone as a system message"):
            to_anthropic([Message("SYSTEM", [JPEG]), Message("HUMAN", "a")])

    def test_empty_messages(self):
        with pytest.raises(TargetError, match=r"^message 2: anthropic takes no message without content"):
            to_anthropic([Message("SYSTEM", "s"), Message("HUMAN"), Message("BOT", "b")])
        for none in ([], [Message("SYSTEM", "s")]):
            with pytest.raises(TargetError, match="no request without a message"):
                to_anthropic(none)
        assert to_anthropic([Message("HUMAN", "a"), Message("BOT")])["messages"][1] == {
            "role": "assistant",
            "content": "",
        }
        assert to_anthropic([Message("HUMAN"), Message("HUMAN", "a")])["messages"] == [{"role": "user", "content": "a"}]

    def test_a_reply_to_be_continued_may_not_end_in_white_space(self):
        with pytest.raises(TargetError, match="ends in white space"):
            to_anthropic([Message("HUMAN", "a"), Message("BOT", "Answer: ")])
        assert to_anthropic([Message("HUMAN", "a"), Message("BOT", "b "), Message("HUMAN", "c ")])

    def test_other_roles_and_names_are_refused(self):
        with pytest.raises(TargetError, match=r"^message 1: unknown role 'API'; use one of user, assistant, tool"):
            to_anthropic([Message("API", "x")])
        with pytest.raises(TargetError, match=r"^message 1: anthropic does not take the name 'Ann'"):
            to_anthropic([Message("HUMAN", "x", name="Ann")])
        with pytest.raises(TargetError, match=r"^message 1: the role user has a tool_call_id"):
            to_anthropic([Message("HUMAN", "x", tool_call_id="c")])
        with pytest.raises(TargetError, match="a message is dict"):
            to_anthropic([{"role": "user", "content": "x"}])


class TestTools:
    def test_calls_and_their_results(self):
        messages = [
            Message("HUMAN", "1+1 and 2+2?"),
            Message("BOT", "I add.", tool_calls=[call("c1"), call("c2", {"x": 2})]),
            Message("tool", "2", tool_call_id="c1", name="add"),
            Message("tool", [TextPart("4"), JPEG], tool_call_id="c2"),
            Message("HUMAN", "And?"),
        ]
        assert to_anthropic(messages)["messages"][1:] == [
            {"role": "assistant", "content": [
                {"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "c1", "name": "add", "input": {"x": 1}},
                {"type": "tool_use", "id": "c2", "name": "add", "input": {"x": 2}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "2"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "4"}, block(JPEG)]},
                {"type": "text", "text": "And?"},
            ]},
        ]  # fmt: skip

    def test_no_arguments_and_no_result(self):
        messages = [Message("BOT", tool_calls=[call(arguments="")]), Message("tool", tool_call_id="c1")]
        out = to_anthropic(messages)["messages"]
        assert out[0]["content"] == [{"type": "tool_use", "id": "c1", "name": "add", "input": {}}]
        assert out[1]["content"] == [{"type": "tool_result", "tool_use_id": "c1"}]

    @pytest.mark.parametrize(
        ("bad", "words"),
        [
            (call(arguments="{"), "the arguments of the call of 'add' are not JSON"),
            (call(arguments="[1]"), "are not a JSON object"),
            (call(arguments='{"x": NaN}'), "the number nan"),
            (call(arguments='{"x": ' + "[" * 5000 + "]" * 5000 + "}"), "are not JSON|nested over"),
            (call("a b"), "the id 'a b'"),
            (call(None), "no id"),
            (call(extra=1), "the unknown key 'extra'"),
            (call(type="custom"), "does not call a function"),
            ({"id": "1"}, "does not call a function"),
            ({"id": "1", "function": {"arguments": "{}"}}, "no function name"),
            ("add(1)", "does not call a function"),
        ],
        ids=lambda value: None,
    )
    def test_a_call_that_cannot_be_sent(self, bad, words):
        with pytest.raises(TargetError, match=f"message 1: .*({words})"):
            to_anthropic([Message("BOT", "x", tool_calls=[bad])])

    def test_a_result_needs_its_call(self):
        with pytest.raises(TargetError, match="message 1: a tool call or result has no id"):
            to_anthropic([Message("tool", "2")])
        with pytest.raises(TargetError, match=r"^message 1: the role user has tool calls"):
            to_anthropic([Message("HUMAN", "x", tool_calls=[call()])])


class TestRequests:
    def test_too_many_images(self):
        ref = MediaRef("image", "https://h.org/a.jpg")
        assert to_anthropic(user(*[ref] * 600))
        with pytest.raises(TargetError, match="a request holds 601 parts of image, anthropic takes 600"):
            to_anthropic(user(*[ref] * 601))

    def test_frames_count_as_images(self):
        register_target("test-few", like="anthropic", max_count={"image": 2})
        assert to_anthropic(user(FRAMES), "test-few")
        with pytest.raises(TargetError, match="a request holds 3 parts of image, test-few takes 2"):
            to_anthropic([*user(FRAMES), Message("BOT", "x"), *user(JPEG)], "test-few")

    def test_too_many_bytes(self):
        part = JPEG._replace(data=JPEG.data.ljust(6_500_000, b"\0"))  # 8.67 million as base64
        writer = AnthropicWriter("anthropic", payload=lambda prefix, part: "")
        assert writer.write(user(part, part, part))
        with pytest.raises(TargetError, match="34666672 bytes, anthropic takes requests of 33554432"):
            writer.write(user(part, part, part, part))

    def test_texts_count_as_the_bytes_that_are_sent(self):
        most = 33_554_432
        text = "é" * (most // 4)  # half of the limit, in bytes
        writer = AnthropicWriter("anthropic", payload=lambda prefix, part: "")
        assert writer.write([Message("SYSTEM", text), Message("HUMAN", text)])
        with pytest.raises(TargetError, match=f"the texts and media of a request have {most + 1} bytes"):
            writer.write([Message("SYSTEM", text), Message("HUMAN", text + "x")])
        part = JPEG._replace(data=JPEG.data.ljust(6_500_000, b"\0"))
        with pytest.raises(TargetError, match=r"the texts and media of a request have 34\d{6} bytes"):
            writer.write(user(TextPart(text), part, part))

    def test_payloads_are_left_to_the_caller(self):
        writer = AnthropicWriter("anthropic", payload=lambda prefix, part: (prefix, part))
        [made] = writer.write(user(JPEG))["messages"][0]["content"]
        assert made["source"]["data"] == ("", JPEG)

    def test_what_is_named_is_read_by_the_reader(self):
        writer = AnthropicWriter("anthropic", read=lambda ref: JPEG)
        assert writer.write(user(MediaRef("image", "a.jpg")))["messages"][0]["content"] == [block(JPEG)]

    def test_it_is_no_target_of_another_form(self):
        with pytest.raises(TargetError, match="use to_openai"):
            to_anthropic([], "openai")

    def test_what_is_returned_shares_nothing_with_the_message(self):
        given_call = call(arguments={"x": [1]})
        message = Message("BOT", [TextPart("a", CACHE)], tool_calls=[given_call])
        content = to_anthropic([message])["messages"][0]["content"]
        content[0]["cache_control"]["type"] = content[1]["input"]["x"][0] = "changed"
        assert given_call["function"]["arguments"] == {"x": [1]}
        assert message.parts[0].extra == (("cache_control", {"type": "ephemeral"}),)

    @given(MESSAGES)
    @settings(deadline=None)
    def test_any_messages_are_written_or_refused(self, messages):
        try:
            request = AnthropicWriter("anthropic", payload=lambda prefix, part: "x").write(messages)
        except TargetError:
            return
        roles = [message["role"] for message in request["messages"]]
        assert all(one != other for one, other in pairwise(roles))
        assert all(message["content"] for message in request["messages"][:-1])
