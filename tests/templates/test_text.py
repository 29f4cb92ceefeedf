import pickle

import pytest

from mmprompt import PromptTemplate, TemplateError

DIALOGUE = {
    "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Solve."}, "</E>"],
    "round": [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "{answer}"}],
}
ROW = {"question": "1+1=?", "answer": "2"}


def test_the_answer_reads_as_nothing_in_generation_and_stays_in_examples_and_labels():
    template = PromptTemplate("Q: {question}\nA: {answer}")
    assert template.generate_item(ROW, "answer") == "Q: 1+1=?\nA: "
    assert template.generate_ice_item(ROW) == "Q: 1+1=?\nA: 2"
    assert template.generate_label_prompt_item(ROW) == "Q: 1+1=?\nA: 2"


@pytest.mark.parametrize("text", ["{question} {answer}|", {"jinja": "{{ question }} {{ answer }}|"}])
def test_the_hidden_answer_reads_as_nothing_where_the_sample_has_none(text):
    """As in OpenCompass and AISBench: rows of a test set often have no answers."""
    assert PromptTemplate(text).generate_item({"question": "1+1=?"}, "answer") == "1+1=? |"
    (said,) = PromptTemplate({"round": [{"role": "HUMAN", "prompt": text}]}).generate_item({"question": "x"}, "answer")
    assert said["prompt"] == "x |"


def test_a_token_of_the_hidden_answer_reads_as_nothing_where_the_sample_has_none():
    template = PromptTemplate("{question} <a>", column_token_map={"answer": "<a>"})
    assert template.generate_item({"question": "1+1=?"}, "answer") == "1+1=? "


def test_a_question_that_names_the_answer_slot_does_not_get_it():
    row = {"question": "{answer}", "answer": "SECRET"}
    for template in (PromptTemplate("{question} {answer}"), PromptTemplate(DIALOGUE, ice_token="</E>")):
        assert "SECRET" not in str(template.generate_item(row, "answer"))
    assert PromptTemplate("{question}|").generate_ice_item(row) == "{answer}|"


def test_examples_are_spliced_where_the_token_stands():
    template = PromptTemplate(DIALOGUE, ice_token="</E>")
    example = PromptTemplate({"round": DIALOGUE["round"]}).generate_ice_item({"question": "2+2=?", "answer": "4"})
    assert template.generate_item(ROW, "answer", example) == [
        {"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Solve."},
        {"role": "HUMAN", "prompt": "2+2=?"},
        {"role": "BOT", "prompt": "4"},
        {"role": "HUMAN", "prompt": "1+1=?"},
        {"role": "BOT", "prompt": ""},
    ]


def test_inserted_examples_are_not_formatted_again():
    template = PromptTemplate("</E>{question}", ice_token="</E>")
    assert template.generate_item(ROW, "answer", "{question} {answer} </E>\n") == "{question} {answer} </E>\n1+1=?"


def test_examples_for_a_template_without_a_token_are_an_error():
    with pytest.raises(TemplateError, match="no place for them; give ice_token"):
        PromptTemplate("{question}").generate_item(ROW, "answer", "example\n")


def test_dialogue_examples_inside_a_text_keep_their_texts_and_media():
    template = PromptTemplate({"round": [{"role": "HUMAN", "prompt": "See:\n</E>Now {question}"}]}, ice_token="</E>")
    picture = {"type": "image_url", "image_url": {"url": "a.jpg"}}
    examples = [
        {"role": "HUMAN", "prompt": [{"type": "text", "text": "ex "}, picture]},
        {"role": "BOT", "prompt": "4\n"},
    ]
    assert template.generate_item(ROW, "answer", examples) == [
        {
            "role": "HUMAN",
            "prompt": [{"type": "text", "text": "See:\nex "}, picture, {"type": "text", "text": "4\nNow 1+1=?"}],
        }
    ]


def test_labels_choose_their_template_and_an_unknown_one_is_named():
    template = PromptTemplate(
        {"yes": "{question} yes", "no": {"round": [{"role": "HUMAN", "prompt": "{question} no"}]}}
    )
    assert template.labels == ("yes", "no")
    assert template.prompt_type == "origin"
    assert template.generate_label_prompt_item(ROW, None, "yes") == "1+1=? yes"
    assert template.generate_label_prompt_item(ROW, None, "no") == [{"role": "HUMAN", "prompt": "1+1=? no"}]
    with pytest.raises(TemplateError, match="no template for label 'yess'; did you mean 'yes'"):
        template.generate_label_prompt_item(ROW, None, "yess")


def test_the_separator_is_removed_from_prompts_and_examples():
    template = PromptTemplate("Q: {question}</S>{answer}", sep_token="</S>")
    assert template.generate_item(ROW, "answer") == "Q: 1+1=?"
    assert template.generate_ice_item(ROW) == "Q: 1+1=?2"


def test_column_tokens_work_in_roles_and_in_begin():
    template = PromptTemplate(
        {"begin": "On </topic>:", "round": [{"role": "HUMAN", "prompt": "</input> {input}"}]},
        column_token_map={"input": "</input>", "topic": "</topic>"},
    )
    row = {"input": "</topic>", "topic": "tea"}
    assert template.generate_item(row) == ["On tea:", {"role": "HUMAN", "prompt": "</topic> </topic>"}]
    with pytest.raises(TemplateError, match="column 'topic' of column_token_map is not in the sample"):
        template.generate_item({"input": "x"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"template": 3}, "not int"),
        ({"template": {"begin": "a"}}, "in template: a dialogue has no round"),
        ({"template": {"round": []}}, r"in template\.round: the round is empty"),
        ({"template": {"round": {"role": "HUMAN"}}}, "give a list of role dicts"),
        (
            {"template": {"round": [{"role": "HUMAN", "promt": "x"}]}},
            r"in template\.round\[0\]: unknown key 'promt' .* did you mean 'prompt'",
        ),
        ({"template": {"round": [{"prompt": "x"}]}}, "without a role"),
        (
            {"template": {"round": [{"role": "HUMAN", "prompt": 3}]}},
            r"in template\.round\[0\]\.prompt: a prompt is text, not int",
        ),
        ({"template": {"round": ["loose"]}}, "the string 'loose' in a round"),
        ({"template": {"round": [{"role": "HUMAN", "prompt_mm": {}}]}}, "use MMPromptTemplate"),
        ({"template": {"A": 3}}, r"in template\['A'\].*give each label a string"),
        ({"template": {"begin": [], "rounds": []}}, "remove 'rounds': a dialogue has the keys begin, round and end"),
        ({"template": {"rounds": []}}, "remove 'rounds': a dialogue has the keys begin, round and end"),
        ({"template": "no token", "ice_token": "</E>"}, "does not occur"),
        ({"template": "</a>", "column_token_map": {"a": "</a>", "b": "</a>"}}, "the same token"),
        ({"template": "</E>", "ice_token": "</E>", "column_token_map": {"a": "</E>"}}, "is the ice_token"),
    ],
)
def test_faults_are_found_at_construction_with_their_place(arguments, message):
    with pytest.raises(TemplateError, match=message):
        PromptTemplate(**arguments)


def test_a_template_is_unmoved_by_what_callers_do():
    source = {"round": [{"role": "BOT", "prompt": "{q}", "tool_calls": [{"id": "1"}]}]}
    template = PromptTemplate(source)
    source["round"][0]["prompt"] = "changed"
    first = template.generate_item({"q": "x"})
    first[0]["tool_calls"][0]["id"] = "2"
    first[0]["prompt"] = "y"
    assert template.generate_item({"q": "x"}) == [{"role": "BOT", "prompt": "x", "tool_calls": [{"id": "1"}]}]


def test_templates_pickle():
    template = PromptTemplate(DIALOGUE, ice_token="</E>", sep_token="</S>", column_token_map={"q": "</q>"})
    again = pickle.loads(pickle.dumps(template))
    assert again.generate_item({**ROW, "q": 1}, "answer") == template.generate_item({**ROW, "q": 1}, "answer")
    assert (again.ice_token, again.sep_token) == ("</E>", "</S>")


def test_a_text_template_leaves_a_tagged_value_as_the_text_it_is():
    tagged = "<AIS_TEXT_START>a<AIS_CONTENT_TAG>"
    assert PromptTemplate("{question}").generate_item({"question": tagged}) == tagged
