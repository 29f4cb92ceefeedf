import pickle

import pytest

from mmprompt import MetaTemplate, MultiTurnPromptTemplate, PromptList, TaskError, TemplateError, converse

ROUND = [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "{answer}"}]
ROW = {"question": ["1+1=?", "2+2=?", "3+3=?"], "answer": ["2", "4", "6"], "style": "brief"}
META = MetaTemplate(
    {"round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}], "reserved_roles": [{"role": "SYSTEM"}]}
)


def h(prompt):
    return {"role": "HUMAN", "prompt": prompt}


def b(prompt):
    return {"role": "BOT", "prompt": prompt}


def prompts(mode, template=ROUND, row=ROW, **options):
    replies = iter(["answer1", "answer2", "answer3"])
    made = MultiTurnPromptTemplate({"round": template})
    done = converse(made, row, lambda *_, **__: next(replies), infer_mode=mode, output_field="answer", **options)
    return [d.prompt for d in done]


def test_every_puts_the_models_replies_into_the_turns_after_them():
    assert prompts("every") == [
        [h("1+1=?")],
        [h("1+1=?"), b("answer1"), h("2+2=?")],
        [h("1+1=?"), b("answer1"), h("2+2=?"), b("answer2"), h("3+3=?")],
    ]


def test_every_with_gt_puts_the_answers_there():
    assert prompts("every_with_gt") == [
        [h("1+1=?")],
        [h("1+1=?"), b("2"), h("2+2=?")],
        [h("1+1=?"), b("2"), h("2+2=?"), b("4"), h("3+3=?")],
    ]


def test_last_asks_once():
    assert prompts("last") == [[h("1+1=?"), b("2"), h("2+2=?"), b("4"), h("3+3=?")]]


def test_a_reply_is_data():
    made = MultiTurnPromptTemplate({"round": ROUND})
    done = list(converse(made, ROW, lambda _: "{answer}<AIS_IMAGE_START>/etc/passwd", output_field="answer"))
    assert done[1].prompt[1] == b("{answer}<AIS_IMAGE_START>/etc/passwd")
    assert "2" not in str(done[1].prompt[1])


def test_each_turn_has_the_length_that_its_list_says():
    seen = []

    def reply(_messages, max_out_len):
        seen.append(max_out_len)
        return "x"

    made = MultiTurnPromptTemplate({"round": ROUND})
    list(converse(made, ROW, reply, max_out_len=[8, 16, 32]))
    assert seen == [8, 16, 32]
    with pytest.raises(TaskError, match="2 lengths for 3 turns"):
        list(converse(made, ROW, reply, max_out_len=[8, 16]))


def test_begin_is_filled_and_other_columns_are_seen_in_every_turn():
    template = {
        "begin": [{"role": "SYSTEM", "prompt": "Be {style}."}],
        "round": [h("{style}: {question}"), b("{answer}")],
    }
    prompt = MultiTurnPromptTemplate(template).generate_item(ROW, "answer")
    assert prompt == [
        {"role": "SYSTEM", "prompt": "Be brief."},
        h("brief: 1+1=?"), b("2"), h("brief: 2+2=?"), b("4"), h("brief: 3+3=?"), b(""),
    ]  # fmt: skip
    assert isinstance(prompt, PromptList)


def test_the_answer_is_hidden_where_the_generating_role_does_not_speak():
    row = {"question": ["a", "b"], "answer": ["GOLD1", "GOLD2"]}
    for mode, seen in (("every", []), ("every_with_gt", ["GOLD1"]), ("last", ["GOLD1"])):
        shown = str(prompts(mode, [h("{question} {answer}"), b("{answer}")], row)[-1])
        assert [g for g in ("GOLD1", "GOLD2") if g in shown] == seen


def test_a_turn_that_calls_a_tool_is_said_and_not_asked_for():
    calls = [{"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    tool = {"role": "SYSTEM", "prompt": "sum"}
    template = [h("{question}"), {**b("not {answer}"), "tool_calls": calls}, tool, b("{answer}")]
    said = {**b("not "), "tool_calls": calls}
    assert prompts("every", template)[:2] == [
        [h("1+1=?"), said, tool],
        [h("1+1=?"), said, tool, b("answer1"), h("2+2=?"), said, tool],
    ]


def test_turns_may_hold_media():
    template = [{"role": "HUMAN", "prompt_mm": {"text": "{question}", "image": "file://{image}"}}, b("{answer}")]
    row = {
        "question": ["<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>first", "second"],
        "answer": ["1", "2"],
    }
    made = MultiTurnPromptTemplate({"round": template}).generate_item(row, "answer")
    image = {"type": "image_url", "image_url": {"url": "a.jpg"}}
    assert made == [
        {"role": "HUMAN", "prompt": [image, {"type": "text", "text": "first"}]}, b("1"),
        {"role": "HUMAN", "prompt": [{"type": "text", "text": "second"}]}, b(""),
    ]  # fmt: skip


def test_the_generating_role_is_that_of_the_meta_template():
    meta = MetaTemplate({"round": [{"role": "HUMAN"}, {"role": "MODEL", "generate": True}]})
    template = MultiTurnPromptTemplate({"round": [h("{question}"), {"role": "MODEL", "prompt": "{answer}"}]})
    done = list(converse(template, ROW, lambda _: "r", infer_mode="last", meta_template=meta))
    assert [m.role for m in done[0].messages] == ["user", "MODEL", "user", "MODEL", "user"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": ["a", "b"], "answer": ["1"]}, "unequal lengths: 'question' has 2, 'answer' has 1"),
        ({"question": "abc", "answer": "1"}, "no column of the round holds a list"),
        ({"question": [], "answer": []}, "has no turn"),
    ],
)
def test_lists_that_make_no_dialogue_are_errors(row, message):
    with pytest.raises(TemplateError, match=message):
        MultiTurnPromptTemplate({"round": ROUND}).generate_item(row)


def test_unknown_modes_and_silent_dialogues_are_errors():
    with pytest.raises(TaskError, match="unknown infer_mode 'evry'; did you mean 'every'"):
        prompts("evry")
    with pytest.raises(TemplateError, match=r"no item of the round has the generating role \(BOT\)"):
        prompts("every", [h("{question}")])


def test_multi_turn_templates_pickle():
    template = MultiTurnPromptTemplate({"round": ROUND})
    assert pickle.loads(pickle.dumps(template)).generate_item(ROW) == template.generate_item(ROW)
