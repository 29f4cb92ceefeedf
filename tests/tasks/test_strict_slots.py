"""Slots in task files: each names a column of the row; nothing is guessed and nothing goes out in braces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmprompt import MMPromptError, Task, TaskError, load_task

MM: dict[str, Any] = {
    "type": "MMPromptTemplate",
    "template": {"round": [{"role": "HUMAN", "prompt_mm": {"text": "{question}", "image": "{image}"}}]},
}


def task_of(template: Any, rows: list[dict[str, Any]], **reader: Any) -> Task:
    infer = {
        "prompt_template": template if isinstance(template, dict) and "type" in template else {"template": template}
    }
    return load_task({"dataset": {"rows": rows}, "reader_cfg": reader, "infer_cfg": infer})


def run(task: Task) -> tuple[list[Any], list[MMPromptError]]:
    errors: list[MMPromptError] = []
    return [prompt for _, prompt in task.prompts(on_error=errors.append)], errors


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"questoin": "q"}, "no column 'question' for the slot {question}; did you mean 'questoin'?"),
        (
            {"q": "q"},
            "optional_columns: [question] to leave it empty, or literal_slots: [question] if {question} is text",
        ),
        ({"question": None}, "column 'question' is null, and the slot {question} needs it"),
        ({"question": float("nan")}, "column 'question' is null"),
    ],
)
def test_a_slot_without_a_value_is_an_error_of_its_row(row: dict[str, Any], says: str) -> None:
    prompts, errors = run(task_of("Q: {question}", [{"question": "a"}, row, {"question": "b"}]))
    assert prompts == ["Q: a", "Q: b"]
    assert says in str(errors[0])
    assert (errors[0].where.line, errors[0].where.column) == (2, "question")


def test_optional_columns_read_as_nothing_and_literal_slots_are_text() -> None:
    rows = [{"q": "x", "hint": "h", "a": 1}, {"q": "y"}, {"q": "z", "hint": None}]
    prompts, errors = run(task_of(r"{hint}|{q} \frac{a}{b}", rows, optional_columns=["hint"], literal_slots="a b"))
    assert not errors
    assert prompts == [r"h|x \frac{a}{b}", r"|y \frac{a}{b}", r"|z \frac{a}{b}"]


@pytest.mark.parametrize(
    ("template", "row"),
    [
        ("{hint}{q}", {"q": "x"}),
        ({"jinja": "{% if hint %}{{ hint }}{% endif %}{{ q }}"}, {"q": "x"}),
        ("{q} {options}", {"q": "x", "A": "cat", "B": "dog"}),
        ("{q} {answer}", {"q": "x"}),
        ("{q} {missing}", {"q": "x"}),
    ],
)
def test_no_note_says_that_a_slot_stays_where_it_is_filled_or_an_error(template: Any, row: dict[str, Any]) -> None:
    task = task_of(template, [row], optional_columns=["hint"])
    run(task)
    assert not [note for note in task.notes() if "stays as it is" in note]


@pytest.mark.parametrize("reader", [{}, {"missing": "keep"}])
def test_a_masked_answer_that_no_column_has_is_said_to_be_empty(reader: dict[str, Any]) -> None:
    task = task_of("{q} A: {answer}", [{"q": "x"}], **reader)
    assert run(task) == (["x A: "], [])
    assert task.notes() == ["the row: {answer} in a template names no column, so it is empty; known: q"]


def test_braces_that_are_no_slot_and_unknown_jinja_variables_are_noted() -> None:
    text = {"jinja": "{% if hnit is defined %}x{% endif %}{{ q }}"}
    for template, said in (
        (r"{q} {a} {hint?}", "{hint?} in a template names no column, so it stays as it is"),
        (text, "{hnit} in a template names no column, so it is undefined in a Jinja text"),
    ):
        task = task_of(template, [{"q": "x"}], literal_slots="a")
        run(task)
        assert task.notes() == [f"the row: {said}; known: q"]


def test_missing_keep_is_the_rule_of_the_template_classes() -> None:
    assert run(task_of("{q} {hint} {n}", [{"q": "x", "n": None}], missing="keep")) == (["x {hint} None"], [])
    with pytest.raises(TaskError, match="did you mean 'keep'"):
        task_of("{q}", [], missing="kepp")


def test_a_runners_own_config_keeps_unknown_slots(tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text(
        "d_datasets = [dict(abbr='d', reader_cfg=dict(input_columns=['q'], output_column='a'), infer_cfg=dict("
        "prompt_template=dict(type='PromptTemplate', template='{q} {hint}'), retriever=dict(type='ZeroRetriever'), "
        "inferencer=dict(type='GenInferencer')))]\n"
    )
    task = load_task(config, {"rows": [{"q": "x", "a": "y"}]})
    assert run(task) == (["x {hint}"], [])
    assert any("{hint}" in note for note in task.notes())


@pytest.mark.parametrize("text", ["{0}", "{a.b}", "{ a }", "{a!r}", '{"list": 1}', "{}", "{2x}"])
def test_braces_that_do_not_read_like_a_name_are_text(text: str) -> None:
    assert run(task_of(text + " {q}", [{"q": "x"}])) == ([text + " x"], [])


@pytest.mark.parametrize("row", [{"q": "x"}, {"q": "x", "answer": None}, {"q": "x", "answer": "gold"}])
def test_the_answer_may_be_missing_where_it_is_hidden(row: dict[str, Any]) -> None:
    assert run(task_of("{q} A: {answer}", [row])) == (["x A: "], [])


def test_examples_follow_the_rule_and_name_their_row() -> None:
    infer = {
        "ice_template": {"template": "{q}={answer}"},
        "prompt_template": {"template": "</E>{q}=", "ice_token": "</E>"},
        "retriever": {"type": "FixKRetriever", "fix_id_list": [1]},
    }
    train = [{"q": "1", "answer": "1"}, {"q": "2", "answer": None}]
    task = load_task({"dataset": {"rows": [{"q": "3"}], "train_rows": train}, "infer_cfg": infer})
    prompts, [error] = run(task)
    assert not prompts
    assert "column 'answer' is null" in str(error)


def test_the_text_of_content_fills_question_in_a_multimodal_template_alone() -> None:
    row = {"content": "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What?<AIS_CONTENT_TAG>"}
    assert not run(task_of(MM, [row]))[1]
    assert "no column 'question'" in str(run(task_of("{question}", [row]))[1][0])


@pytest.mark.parametrize(
    ("row", "lines"),
    [
        ({"A": "cat", "B": "dog", "C": ""}, "A. cat\nB. dog"),
        ({"options": ["cat", "dog"]}, "A. cat\nB. dog"),
        ({"choices": '["cat", "dog"]'}, "A. cat\nB. dog"),
        ({"options": "cat or dog"}, "cat or dog"),
    ],
)
def test_options_reads_as_lettered_lines(row: dict[str, Any], lines: str) -> None:
    assert run(task_of("{q}\n{options}", [{"q": "Which?", **row}])) == (["Which?\n" + lines], [])


def test_an_empty_choice_before_the_last_is_an_error_where_options_are_sent() -> None:
    row = {"q": "Which?", "A": "cat", "B": None, "C": "dog"}
    assert "choice B is empty" in str(run(task_of("{q}\n{options}", [row]))[1][0])
    assert run(task_of("{q} {A} {C}", [row])) == (["Which? cat dog"], [])


def test_options_stay_as_they_are_under_the_rule_of_the_template_classes() -> None:
    assert run(task_of("{options}", [{"options": ["cat", "dog"]}], missing="keep"))[0] == ["['cat', 'dog']"]


def test_a_media_slot_with_a_near_name_is_an_error_at_once() -> None:
    with pytest.raises(
        TaskError, match="the first row has no column 'image', which a media slot names; did you mean 'imgae'"
    ):
        run(task_of(MM, [{"question": "q", "imgae": "a.jpg"}]))


def test_a_near_name_that_another_slot_names_is_no_misspelling() -> None:
    content = [{"type": "image_url", "image_url": {"url": f"{{{name}}}"}} for name in ("image", "images")]
    template = {"type": "RawPromptTemplate", "messages": [{"role": "user", "content": content}]}
    assert not run(task_of(template, [{"image": "a.jpg"}, {"images": ["b.jpg"]}]))[1]


def test_a_media_slot_that_no_row_fills_is_an_error_at_the_end() -> None:
    prompts, [error] = run(task_of(MM, [{"question": "q", "picture": "a.jpg"}] * 3))
    assert len(prompts) == 3
    assert "no row has the column 'image', which a media slot names" in str(error)
    assert "picture" in str(error)


@pytest.mark.parametrize(
    "rows", [[{"question": "q"}, {"question": "q", "image": "a.jpg"}], [{"question": "q", "image": None}]]
)
def test_a_row_may_have_no_media(rows: list[dict[str, Any]]) -> None:
    assert not run(task_of(MM, rows))[1]


TAGGED = "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>this"


def test_tags_inside_a_text_fill_a_media_slot() -> None:
    assert not run(task_of(MM, [{"question": f"see {TAGGED}"}], tagged_columns=["question"]))[1]


def test_tags_in_the_turns_of_a_dialogue_fill_a_media_slot() -> None:
    turns = {"round": [*MM["template"]["round"], {"role": "BOT"}]}
    infer = {
        "prompt_template": {"type": "MultiTurnPromptTemplate", "template": turns},
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": "last"},
    }
    assert not run(load_task({"dataset": {"rows": [{"question": [TAGGED, "why?"]}]}, "infer_cfg": infer}))[1]
