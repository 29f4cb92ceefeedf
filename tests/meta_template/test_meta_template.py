import logging
import pickle

import pytest

from mmprompt import (
    MediaPart,
    MediaRef,
    Message,
    MetaTemplate,
    PromptError,
    PromptList,
    PromptTemplate,
    TemplateError,
    TextPart,
)
from mmprompt.meta_template.meta_template import role_dict
from mmprompt.tasks.prompt_items import shown_item

PLAIN = {
    "round": [
        {"role": "HUMAN", "begin": "<H>", "end": "</H>\n"},
        {"role": "BOT", "begin": "<B>", "end": "</B>\n", "generate": True},
    ]
}
WITH_SYSTEM = {**PLAIN, "reserved_roles": [{"role": "SYSTEM", "begin": "<S>", "end": "</S>\n"}]}
API = {"round": [{"role": "HUMAN", "api_role": "HUMAN"}, {"role": "BOT", "api_role": "BOT", "generate": True}]}
DEFAULTS = {
    "round": [
        {"role": "HUMAN", "begin": "H:", "end": "\n"},
        {"role": "THOUGHTS", "begin": "T:", "end": "\n", "prompt": "None"},
        {"role": "BOT", "begin": "B:", "end": "\n", "generate": True},
    ]
}


def h(prompt, **more):
    return {"role": "HUMAN", "prompt": prompt, **more}


def b(prompt, **more):
    return {"role": "BOT", "prompt": prompt, **more}


def s(prompt, **more):
    return {"role": "SYSTEM", "prompt": prompt, "fallback_role": "HUMAN", **more}


def image(url):
    return {"type": "image_url", "image_url": {"url": url}}


def text(value):
    return {"type": "text", "text": value}


def messages(meta, prompt, mode="gen"):
    return [(m.role, m.text) for m in MetaTemplate(meta).to_messages(prompt, mode)]


TWO_TURNS = [h("1+1=?"), b("2"), h("2+2=?"), b("4")]


def test_generation_ends_with_the_begin_of_the_generating_role():
    assert MetaTemplate(PLAIN).to_string(TWO_TURNS) == "<H>1+1=?</H>\n<B>2</B>\n<H>2+2=?</H>\n<B>"
    assert MetaTemplate(PLAIN).to_string(TWO_TURNS, "ppl") == "<H>1+1=?</H>\n<B>2</B>\n<H>2+2=?</H>\n<B>4</B>\n"


def test_a_turn_shows_every_role_in_the_order_of_the_meta_round():
    assert MetaTemplate(PLAIN).to_string([h("a"), h("b"), b("c")], "ppl") == "<H>a</H>\n<B></B>\n<H>b</H>\n<B>c</B>\n"
    assert MetaTemplate(DEFAULTS).to_string([h("a"), b("c")], "ppl") == "H:a\nT:None\nB:c\n"
    assert MetaTemplate(DEFAULTS).to_string([h("a")]) == "H:a\nT:None\nB:"


def test_strings_of_the_meta_round_are_put_in_place_each_turn():
    meta = {
        "round": [
            "### ",
            {"role": "HUMAN", "begin": "U:", "end": "|"},
            " ~ ",
            {"role": "BOT", "begin": "A:", "end": "|"},
        ]
    }
    assert MetaTemplate(meta).to_string(TWO_TURNS, "ppl") == "### U:1+1=?| ~ A:2|### U:2+2=?| ~ A:4|"


def test_token_ids_stand_as_meta_tokens_or_go_through_the_tokenizer():
    class Tokenizer:
        def decode(self, ids):
            return f"[{ids[0]}]"

    meta = MetaTemplate({"round": [{"role": "HUMAN", "begin": ["<H>", 5], "end": 7}], "eos_token_id": 9})
    assert meta.to_string([h("a")]) == "<H><META_TOKEN_5>a<META_TOKEN_7>"
    assert meta.to_string([h("a")], tokenizer=Tokenizer()) == "<H>[5]a[7]"
    assert meta.eos_token_id == 9


def test_the_datasets_values_win_over_the_models():
    assert MetaTemplate(PLAIN).to_string([h("a", begin="<<", end=">>"), b("c", end="!")], "ppl") == "<<a>><B>c!"
    assert messages(API, [h("a", api_role="SYSTEM"), b("c")], "ppl") == [("system", "a"), ("assistant", "c")]


def test_without_a_round_items_are_rendered_in_order():
    assert MetaTemplate({"begin": "x "}).to_string([h("a", end="\n"), {"role": "ANY", "prompt": "b"}]) == "x a\nb"


def test_without_a_meta_template_items_are_lines_and_nothing_is_cut():
    none = MetaTemplate(None)
    assert none.to_string(TWO_TURNS) == "1+1=?\n2\n2+2=?\n4"
    assert none.to_string(["", h("a", begin="[", end="]"), b("")]) == "\n[a]"
    assert messages(None, [s("be brief"), h("q"), b("Answer: ")]) == [("system", "be brief"), ("user", "q")]


def test_an_unknown_role_is_named_with_the_known_ones():
    with pytest.raises(PromptError, match=r"unknown role 'HUMAM' .*did you mean 'HUMAN'.*has HUMAN, BOT, SYSTEM"):
        MetaTemplate(WITH_SYSTEM).to_string([{"role": "HUMAM", "prompt": "x"}])


def test_a_reserved_role_in_a_round_stands_where_it_is_and_ends_no_turn():
    meta = MetaTemplate(WITH_SYSTEM)
    assert (
        meta.to_string([{"role": "SYSTEM", "prompt": "s"}, h("a"), b("c")], "ppl") == "<S>s</S>\n<H>a</H>\n<B>c</B>\n"
    )
    assert (
        meta.to_string([h("a"), {"role": "SYSTEM", "prompt": "s"}, b("c")], "ppl") == "<H>a</H>\n<S>s</S>\n<B>c</B>\n"
    )
    assert meta.to_string([h("a"), {"role": "SYSTEM", "prompt": "s"}]) == "<H>a</H>\n<S>s</S>\n<B>"


def test_a_role_that_falls_back_before_a_turn_is_rendered_alone():
    assert MetaTemplate(PLAIN).to_string([s("s"), h("a"), b("c")], "ppl") == "<H>s</H>\n<H>a</H>\n<B>c</B>\n"
    assert (
        MetaTemplate(PLAIN).to_string([h("a"), b("c"), s("s"), h("d")]) == "<H>a</H>\n<B>c</B>\n<H>s</H>\n<H>d</H>\n<B>"
    )


def test_a_role_that_falls_back_inside_a_turn_counts_as_its_fallback_role():
    assert (
        MetaTemplate(PLAIN).to_string([h("a"), {"role": "X", "prompt": "x", "fallback_role": "BOT"}], "ppl")
        == "<H>a</H>\n<B>x</B>\n"
    )
    assert MetaTemplate(PLAIN).to_string([s("s"), b("c")], "ppl") == "<H>s</H>\n<B>c</B>\n"


def test_only_the_last_turn_of_the_round_generates_not_an_example():
    template = PromptTemplate({"begin": "</E>", "round": [h("{q}"), b("{a}")]}, ice_token="</E>")
    example = template.generate_ice_item({"q": "e", "a": "1"})
    prompt = template.generate_item(
        {"q": "x", "a": "2"}, "a", example + template.generate_ice_item({"q": "f", "a": "3"})
    )
    assert MetaTemplate(PLAIN).to_string(prompt) == "<H>e</H>\n<B>1</B>\n<H>f</H>\n<B>3</B>\n<H>x</H>\n<B>"


def test_examples_side_by_side_keep_their_turns_apart():
    first = PromptTemplate({"round": [h("q")]}).generate_ice_item({})
    second = PromptTemplate({"round": [b("a")]}).generate_ice_item({})
    assert MetaTemplate(PLAIN).to_string(first + second, "ppl") == "<H>q</H>\n<B></B>\n<H></H>\n<B>a</B>\n"


def test_a_role_without_item_and_default_gives_no_message():
    assert messages(API, [b("hi"), h("a")], "ppl") == [("assistant", "hi"), ("user", "a")]


def test_a_prompt_whose_only_text_is_empty_gives_no_message():
    """The token of the examples leaves an empty text where there are none; the model speaks first."""
    prompt = PromptTemplate({"begin": ["</E>"], "round": [{"role": "BOT", "prompt": "{a}"}]}, ice_token="</E>")
    with pytest.raises(PromptError, match="the prompt gives no message"):
        MetaTemplate(None).to_messages(prompt.generate_item({}))


def test_neighbours_of_one_role_merge_with_a_line_break_between_texts():
    assert messages(API, [s("be brief"), h("a"), h("b")]) == [("user", "be brief\na\nb")]


def test_neighbours_with_media_merge_into_one_part_list():
    [message] = MetaTemplate(API).to_messages(
        [s("be brief"), h([text("t"), image("a.jpg")]), h([image("b.jpg"), text("u")]), h("v")]
    )
    assert message == Message(
        "user", [TextPart("be brief\nt"), MediaRef("image", "a.jpg"), MediaRef("image", "b.jpg"), TextPart("u\nv")]
    )


def test_begin_and_end_of_a_role_touch_its_text_or_stand_beside_its_media():
    meta = MetaTemplate({"round": [{"role": "HUMAN", "begin": "[", "end": "]"}]})
    assert meta.to_messages([h([image("a.jpg"), text("t")])])[0].parts == (
        TextPart("["),
        MediaRef("image", "a.jpg"),
        TextPart("t]"),
    )


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({**API, "begin": "Meta."}, [("user", "Meta.\nq"), ("assistant", "r")]),
        (
            {**API, "begin": "Meta.", "reserved_roles": [{"role": "SYSTEM"}]},
            [("system", "Meta."), ("user", "q"), ("assistant", "r")],
        ),
        (
            {**API, "begin": {"role": "SYSTEM", "prompt": "Own."}},
            [("system", "Own."), ("user", "q"), ("assistant", "r")],
        ),
        ({**API, "end": "Bye."}, [("user", "q"), ("assistant", "r"), ("user", "Bye.")]),
        (
            {**API, "end": "Bye.", "reserved_roles": [{"role": "SYSTEM"}]},
            [("user", "q"), ("assistant", "r"), ("system", "Bye.")],
        ),
    ],
)
def test_the_metas_own_begin_and_end_find_their_message(meta, expected):
    assert messages(meta, [h("q"), b("r")], "ppl") == expected


def test_the_metas_end_is_left_out_where_a_role_generates():
    assert messages({**API, "end": "Bye."}, [h("q"), b("r")]) == [("user", "q")]
    assert MetaTemplate({**PLAIN, "end": "Bye."}).to_string([h("q")]) == "<H>q</H>\n<B>"
    assert (
        MetaTemplate({**PLAIN, "begin": "Hi. ", "end": "Bye."}).to_string([h("q"), b("r")], "ppl")
        == "Hi. <H>q</H>\n<B>r</B>\nBye."
    )


def test_a_loose_string_joins_the_message_after_it_or_else_before_it(caplog):
    meta = MetaTemplate(API)
    with caplog.at_level(logging.WARNING, "mmprompt"):
        assert [m.text for m in meta.to_messages(["loose", h("q"), b("r"), "tail"], "ppl")] == ["loose\nq", "r\ntail"]
        meta.to_messages(["again", h("q")])
    assert len(caplog.records) == 1


def test_name_and_tool_calls_survive_and_are_not_merged_away():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    prompt = [
        h("q", name="bob"),
        b("", tool_calls=[call]),
        {"role": "TOOL", "prompt": "42", "tool_call_id": "1"},
        b("done"),
    ]
    assert MetaTemplate(None).to_messages(prompt, "ppl") == [
        Message("user", "q", "bob"),
        Message("assistant", "", None, [call]),
        Message("tool", "42", None, (), "1"),
        Message("assistant", "done"),
    ]


CALL = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
RESULT = {"role": "TOOL", "prompt": "42", "tool_call_id": "1"}
WITH_TOOL = {**PLAIN, "reserved_roles": [{"role": "TOOL", "begin": "<T>", "end": "\n", "api_role": "tool"}]}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([b("c", tool_calls=CALL)], "<B>c</B>\n<B>"),
        ([b("c", tool_calls=CALL), RESULT], "<B>c</B>\n<T>42\n<B>"),
        ([b("c", tool_calls=CALL), RESULT, b("gold")], "<B>c</B>\n<T>42\n<B>"),
        ([b("c", tool_calls=CALL), RESULT, b("d", tool_calls=CALL), RESULT], "<B>c</B>\n<T>42\n<B>d</B>\n<T>42\n<B>"),
        ([b("c", tool_calls=CALL), RESULT, h("r"), b("gold")], "<B>c</B>\n<T>42\n<H>r</H>\n<B>"),
        ([b("c", tool_calls=CALL), RESULT, b("d"), b("gold")], "<B>c</B>\n<T>42\n<B>d</B>\n<H></H>\n<B>"),
    ],
)
def test_a_turn_that_calls_a_tool_is_said_and_the_model_speaks_after_it(items, expected):
    prompt = [h("q"), *items]
    assert MetaTemplate(WITH_TOOL).to_string(prompt) == f"<H>q</H>\n{expected}"
    said = [item for item in items if item["prompt"] != "gold"]
    found = MetaTemplate(WITH_TOOL).to_messages(prompt)
    assert [(m.role, bool(m.tool_calls)) for m in found[1:]] == [
        ({"HUMAN": "user", "BOT": "assistant", "TOOL": "tool"}[item["role"]], "tool_calls" in item) for item in said
    ]


def test_a_role_of_tools_in_the_round_continues_the_turn_that_called_them():
    meta = {"round": [*PLAIN["round"], {"role": "TOOL", "begin": "<T>", "end": "\n"}]}
    assert MetaTemplate(meta).to_string([h("q"), b("c", tool_calls=CALL), RESULT]) == "<H>q</H>\n<B>c</B>\n<T>42\n<B>"
    assert (
        MetaTemplate(meta).to_string([h("q"), b("c", tool_calls=CALL), RESULT, b("gold")])
        == "<H>q</H>\n<B>c</B>\n<T>42\n<B>"
    )


@pytest.mark.parametrize(("after", "expected"), [([], "q|c|42|"), ([b("gold", generate=True)], "q|c|42|")])
def test_a_tool_call_does_not_end_a_prompt_under_a_meta_template_without_a_round(after, expected):
    roles = [{"role": role, "end": "|"} for role in ("HUMAN", "BOT", "TOOL")]
    prompt = [h("q"), b("c", generate=True, tool_calls=CALL), RESULT, *after]
    assert MetaTemplate({"reserved_roles": roles}).to_string(prompt) == expected
    assert [m.role for m in MetaTemplate({"reserved_roles": roles}).to_messages(prompt)] == [
        "user",
        "assistant",
        "TOOL",
    ]


def test_a_string_model_gets_placeholders_and_the_media_beside():
    prompt = [h([image("a.jpg"), text("t")])]
    string = MetaTemplate(PLAIN).to_string(prompt, media_placeholder={"image": "<image>"})
    assert string == "<H><image>t</H>\n<B>"
    assert string.media == (MediaRef("image", "a.jpg"),)
    assert pickle.loads(pickle.dumps(string)).media == string.media
    with pytest.raises(
        PromptError, match=r"holds image, which a string cannot carry; .*model: \{media_placeholder: \{image: '…'\}\}"
    ):
        MetaTemplate(PLAIN).to_string(prompt)


def test_text_that_contains_the_placeholder_is_refused():
    with pytest.raises(PromptError, match="contains '<image>', which is a media placeholder"):
        MetaTemplate(PLAIN).to_string([h("an <image> here")], media_placeholder={"image": "<image>"})


def test_of_several_placeholders_in_a_text_the_first_that_is_given_is_named_in_every_process():
    placeholders = {f"kind {number}": f"<{number}>" for number in range(20)}
    with pytest.raises(PromptError, match="contains '<0>', which is a media placeholder"):
        MetaTemplate(PLAIN).to_string([h("".join(reversed(placeholders.values())))], media_placeholder=placeholders)


def test_strings_are_prompts_and_plain_lists_of_prompts_are_batches():
    meta = MetaTemplate(PLAIN)
    assert meta.to_string("as is") == "as is"
    assert meta.to_string(["a", "b"]) == ["a", "b"]
    assert MetaTemplate(API).to_messages([PromptList([h("a")]), PromptList([h("b")])]) == [
        [Message("user", "a")],
        [Message("user", "b")],
    ]


def test_the_end_section_is_rendered_in_ppl_and_where_nothing_generates():
    prompt = PromptTemplate({"round": [h("q"), b("r")], "end": ["tail"]}).generate_item({})
    assert MetaTemplate(PLAIN).to_string(prompt, "ppl") == "<H>q</H>\n<B>r</B>\ntail"
    assert MetaTemplate(PLAIN).to_string(prompt) == "<H>q</H>\n<B>"
    silent = {"round": [{"role": "HUMAN"}, {"role": "BOT"}]}
    assert MetaTemplate(silent).to_string(prompt) == "qrtail"


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ([], "is a dict, not list"),
        ({"rounds": []}, "unknown key 'rounds'; did you mean 'round'"),
        ({"round": [{"role": "A"}, {"role": "A"}]}, r"in meta_template\.round\[1\]: role 'A' twice"),
        ({"round": [{"begin": "x"}]}, "give a dict with 'role'"),
        ({"round": [{"role": "A", "begn": "x"}]}, "did you mean 'begin'"),
        ({"round": [{"role": "A", "begin": 1.5}]}, "begin holds float"),
        ({"begin": 1.5}, r"in meta_template\.begin: begin holds float"),
    ],
)
def test_faults_of_a_meta_template_are_found_at_construction(meta, message):
    with pytest.raises(TemplateError, match=message):
        MetaTemplate(meta)


def test_an_unknown_mode_is_refused():
    with pytest.raises(PromptError, match="unknown mode 'generate'"):
        MetaTemplate(None).to_string("x", "generate")


def test_meta_templates_pickle():
    assert pickle.loads(pickle.dumps(MetaTemplate(PLAIN))).to_string(TWO_TURNS) == MetaTemplate(PLAIN).to_string(
        TWO_TURNS
    )


MESSAGES = [
    [Message("user", "q")],
    [Message("system", "s"), Message("user", [MediaRef("image", "a.jpg"), TextPart("q")]), Message("assistant", "a")],
    [
        Message(
            "user",
            [MediaRef("image", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", "image_url", (("detail", "low"),))],
        )
    ],
    [Message("user", [TextPart("t", (("cache_control", {"type": "ephemeral"}),)), TextPart("u")], "ann")],
    [Message("user", [MediaPart("image", "image/png", b"x"), MediaRef("audio", "s.wav", "input_audio", (), (), "n")])],
    [Message("assistant", "", tool_calls=[{"id": "1"}]), Message("tool", "r", tool_call_id="1"), Message("user", "q")],
    [Message("user", "a"), Message("user"), Message("user", "b"), Message("assistant")],
    [Message("developer", "d"), Message("user", "q")],
    [],
]


@pytest.mark.parametrize("given", MESSAGES)
@pytest.mark.parametrize("mode", ["gen", "ppl"])
@pytest.mark.parametrize(
    "meta",
    [
        None, PLAIN, WITH_SYSTEM, API, DEFAULTS, {"begin": "x ", "end": "y"}, {**WITH_SYSTEM, "begin": ["b", 5], "end": "e"},
        [{"role": "system", "content": "own"}, {"role": "user", "content": "first"}],
    ],
)  # fmt: skip
def test_messages_are_merged_as_the_prompt_of_their_roles_is(given, mode, meta):
    def item(message):
        read = any(isinstance(part, MediaPart) for part in message.parts)  # as a dict it would be media to be read
        return role_dict(message) if read else shown_item(role_dict(message))

    def outcome(make):
        try:
            return make()
        except PromptError as error:
            return str(error)

    template = MetaTemplate(meta)
    by_items = outcome(lambda: template.to_messages(PromptList(map(item, given)), mode))
    assert outcome(lambda: template.merge_messages(given, mode)) == by_items
