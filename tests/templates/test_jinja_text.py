"""Texts written as Jinja: optional sentences and loops, in a sandbox."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from mmprompt import (
    MMPromptError,
    MMPromptTemplate,
    MultiTurnPromptTemplate,
    PromptTemplate,
    RawPromptTemplate,
    load_task,
)
from mmprompt.errors import TemplateError

HINT = "{% if hint %}Hint: {{ hint }}\n{% endif %}{{ question }}"
LETTERS = "{{ question }}{% for c in choices %}\n({{ c.letter }}) {{ c.text }}{% endfor %}"


def filled(source: str, **row: object) -> str:
    return str(PromptTemplate({"jinja": source}).generate_item(row))


@pytest.mark.parametrize(("hint", "text"), [("It purrs.", "Hint: It purrs.\nWhat?"), ("", "What?"), (None, "What?")])
def test_an_optional_sentence(hint: str | None, text: str) -> None:
    assert filled(HINT, hint=hint, question="What?") == text


def test_the_choices_are_a_list_of_letter_and_text() -> None:
    row = {"question": "Which?", "A": "{B}", "B": "{{ question }}", "C": ""}
    assert filled(LETTERS, **row) == "Which?\n(A) {B}\n(B) {{ question }}"


def test_a_column_whose_name_is_no_variable_is_read_from_row() -> None:
    assert filled("{{ row['Question Text'] }}", **{"Question Text": "What?"}) == "What?"


@pytest.mark.parametrize(
    "template",
    [
        {"jinja": HINT},
        {"round": [{"role": "HUMAN", "prompt": {"jinja": HINT}}]},
        {"begin": {"jinja": HINT}, "round": [{"role": "HUMAN", "prompt": "x"}]},
        {"begin": "x", "round": [{"role": "HUMAN", "prompt": "x"}], "end": [{"jinja": HINT}]},
        {"yes": {"jinja": HINT}, "no": "no"},
    ],
)
def test_jinja_stands_wherever_a_text_stands(template: Any) -> None:
    for made in (PromptTemplate(template), pickle.loads(pickle.dumps(PromptTemplate(template)))):
        assert "Hint: h\nq" in str(made.generate_item({"hint": "h", "question": "q"}))


def test_jinja_in_content_parts_is_filled_for_each_text_segment() -> None:
    part = {"text": {"type": "text", "text": {"jinja": "Q: {{ question|upper }}"}}, "image": "{image}"}
    template = MMPromptTemplate({"round": [{"role": "HUMAN", "prompt_mm": part}]})
    content = "<AIS_TEXT_START>a<AIS_CONTENT_TAG><AIS_IMAGE_START>x.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>b"
    [item] = template.generate_item({"content": content})
    assert [p.get("text") for p in item["prompt"]] == ["Q: A", None, "Q: B"]  # type: ignore[index]


def test_jinja_in_raw_messages_and_in_turns() -> None:
    raw = RawPromptTemplate([{"role": "user", "content": {"jinja": HINT}}])
    assert raw.generate_item({"hint": "", "question": "q"}) == [{"role": "user", "content": "q"}]
    turns = MultiTurnPromptTemplate(
        {"round": [{"role": "HUMAN", "prompt": {"jinja": "{{ q }}!"}}, {"role": "BOT", "prompt": "{a}"}]}
    )
    assert [i["prompt"] for i in turns.generate_item({"q": ["x", "y"], "a": ["1", "2"]})] == ["x!", "1", "y!", "2"]  # type: ignore[index]


def test_the_answer_is_hidden_and_values_are_never_read_as_jinja() -> None:
    template = PromptTemplate({"jinja": "{{ question }}{{ answer }}"})
    assert (
        template.generate_item({"question": "{{ answer }}{answer}", "answer": "gold"}, "answer")
        == "{{ answer }}{answer}"
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{{ questoin }}", "'questoin' is undefined"),
        ("{{ none_here.x }}", "undefined"),
        ("{{ null }}", "null"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ 'a' * 99999999 }}", "more than 4194304 characters"),
        ("{{ 10 ** 99999999 }}", "more than 4194304 characters"),
        ("{% for i in range(999999) %}{% endfor %}", "range gives more than"),
        ("{% for i in range(999) %}{% for j in range(999) %}{% endfor %}{% endfor %}", "range gives more than"),
        ("{% for i in range(9999) %}{{ 'abcdefgh' * 99 }}{% endfor %}", "more than 4194304 characters"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ 'x'.center(9) }}", "unsafe"),
        ("{{ '%9s' % 'x' }}", "not allowed"),
        ("{{ question.append(1) }}", "unsafe|no attribute"),
        ("{% include '/etc/passwd' %}", "fails"),
        ("{{ cycler.__init__.__globals__ }}", "unsafe"),
    ],
)
def test_what_fails_is_the_rows_error(source: str, says: str) -> None:
    with pytest.raises(TemplateError, match=says):
        filled(source, question=["q"], null=None)


def test_the_slot_of_the_choices_is_a_list_in_jinja() -> None:
    with pytest.raises(TemplateError) as caught:
        filled("{{ options }}", A="cat", B="dog")
    loop = "{% for c in choices %}{{ c.letter }}. {{ c.text }}{% endfor %}"
    assert caught.value.hint == f"write the choices with {loop}"
    assert filled(loop, A="cat", B="dog") == "A. catB. dog"


@pytest.mark.parametrize("source", ["{% if %}", "{{ a", "{% for x in y %}", "{{ x|center }}", "{{ x|nosuch }}"])
def test_malformed_jinja_is_found_at_construction(source: str) -> None:
    with pytest.raises(TemplateError, match="malformed Jinja in line 1") as caught:
        PromptTemplate({"round": [{"role": "HUMAN", "prompt": {"jinja": source}}]})
    assert caught.value.where.template == "template.round[0].prompt"


def test_in_a_task_an_optional_column_may_be_missing() -> None:
    rows = [{"question": "a", "hint": "h"}, {"question": "b"}, {"question": "c", "hint": None}]
    config = {"dataset": {"rows": rows}, "infer_cfg": {"prompt_template": {"template": {"jinja": HINT}}}}
    task = load_task({**config, "reader_cfg": {"optional_columns": ["hint"]}})
    assert [prompt for _, prompt in task.prompts()] == ["Hint: h\na", "b", "c"]
    errors: list[MMPromptError] = []
    assert len(list(load_task(config).prompts(on_error=errors.append))) == 2
    assert "'hint' is undefined" in str(errors[0])
    assert "optional_columns" in str(errors[0])
