"""Which text came from the row, which from the template and which from an example."""

from __future__ import annotations

from typing import Any

import pytest

from mmprompt import load_task
from mmprompt.viewer.row_view import RowViews


def spans(task: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the origin and text of all spans of the last row of a task."""
    loaded = load_task(task)
    views = RowViews(loaded, targets=())
    view = [views.view(row) for row in loaded.samples()][-1]
    assert view.error is None, view.error
    return [
        (span.origin, span.text)
        for request in view.requests
        for message in request.messages
        for part in message.parts
        for span in part.spans
    ]


def task(template: object, *rows: dict[str, Any], **infer: Any) -> dict[str, Any]:
    return {
        "dataset": {"rows": list(rows)},
        "reader_cfg": {"output_column": "answer", **infer.pop("reader_cfg", {})},
        "infer_cfg": {"prompt_template": template, **infer},
    }


def test_slots_are_told_from_the_text_around_them() -> None:
    template = {"type": "PromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt": "Q: {question} A:"}]}}
    assert spans(task(template, {"question": "Q: A: {question}"})) == [
        ("template", "Q: "),
        ("row", "Q: A: {question}"),
        ("template", " A:"),
    ]


def test_numbers_and_characters_beyond_the_first_plane_come_from_the_row() -> None:
    template = {"type": "PromptTemplate", "template": "{n}, {text}!"}
    assert spans(task(template, {"n": 1.5, "text": "a😀\U000f0041"})) == [
        ("row", "1.5"),
        ("template", ", "),
        ("row", "a😀\U000f0041"),
        ("template", "!"),
    ]


def test_text_segments_come_from_the_row_and_tags_from_nobody() -> None:
    template = {
        "type": "MMPromptTemplate",
        "template": {"round": [{"role": "HUMAN", "prompt_mm": {"text": {"type": "text", "text": "Say: {question}"}}}]},
    }
    content = "<AIS_TEXT_START>one<AIS_CONTENT_TAG><AIS_TEXT_START>two<AIS_CONTENT_TAG>"
    found = spans({**task(template, {"content": content}), "reader_cfg": {"tagged_columns": ["content"]}})
    assert found == [("template", "Say: "), ("row", "one"), ("template", "Say: "), ("row", "two")]


def test_examples_are_told_from_row_and_template() -> None:
    config = task(
        {"type": "PromptTemplate", "template": "</E>Q: {question}", "ice_token": "</E>"},
        {"question": "new", "answer": "x"},
        ice_template={"type": "PromptTemplate", "template": "Q: {question} A: {answer}"},
        retriever={"type": "FixKRetriever", "fix_id_list": [0]},
    )
    config["dataset"]["train_rows"] = [{"question": "old", "answer": "yes"}]
    assert spans(config) == [("example", "Q: old A: yes\n"), ("template", "Q: "), ("row", "new")]


def test_dialogue_examples_are_told_from_the_row() -> None:
    turns = [{"role": "HUMAN", "prompt": "{question}"}, {"role": "BOT", "prompt": "{answer}"}]
    config = task(
        {"type": "PromptTemplate", "template": {"begin": ["</E>"], "round": turns}, "ice_token": "</E>"},
        {"question": "same", "answer": "x"},
        ice_template={"type": "PromptTemplate", "template": {"round": turns}},
        retriever={"type": "FixKRetriever", "fix_id_list": [0]},
    )
    config["dataset"]["train_rows"] = [{"question": "same", "answer": "yes"}]
    assert spans(config) == [("example", "same"), ("example", "yes"), ("row", "same")]


def test_the_examples_of_a_row_stay_the_same_ones() -> None:
    pytest.importorskip("bm25s", reason="needs bm25s")
    config = task(
        {"type": "PromptTemplate", "template": "</E>{question}", "ice_token": "</E>"},
        {"question": "a blue ball", "answer": "x"},
        ice_template={"type": "PromptTemplate", "template": "{question}"},
        retriever={"type": "BM25Retriever", "ice_num": 1},
        reader_cfg={"input_columns": ["question"]},
    )
    config["dataset"]["train_rows"] = [
        {"question": "red cars", "answer": "1"},
        {"question": "blue ball", "answer": "2"},
    ]
    assert spans(config) == [("example", "blue ball\n"), ("row", "a blue ball")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{% if hint %}Hint: {{ hint }} {% endif %}{{ question }}", ("Hint: h q", ("hint", "question"))),
        ("{{ n + 1 }}{{ question }}", ("3q", ("n", "question"))),
        ("{% for c in choices %}{{ c.letter }}. {{ c.text }} {% endfor %}", ("A. x B. y ", ())),
    ],
)
def test_a_jinja_text_is_computed_and_names_the_columns_that_it_reads(
    text: str, expected: tuple[str, tuple[str, ...]]
) -> None:
    template = {"type": "PromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt": {"jinja": text}}]}}
    row = {"question": "q", "hint": "h", "n": 2, "options": ["x", "y"]}
    views = RowViews(load_task(task(template, row)), targets=())
    [view] = [views.view(row) for row in views.task.samples()]
    [span] = view.requests[0].messages[0].parts[0].spans
    assert span == ("computed", *expected)


def test_labels_come_from_the_template_and_choices_from_the_row() -> None:
    template = {
        "type": "PromptTemplate",
        "template": {"A": "{question}\n{options}\nA", "B": "{question}\n{options}\nB"},
    }
    config = task(template, {"question": "q", "A": "x", "B": "y", "answer": "A"}, inferencer={"type": "PPLInferencer"})
    one = [("row", "q"), ("template", "\nA. "), ("row", "x"), ("template", "\nB. "), ("row", "y")]
    assert spans(config) == [*one, ("template", "\nA"), *one, ("template", "\nB")]


def test_a_row_without_a_template_is_all_its_own_but_for_the_letters() -> None:
    loaded = {"dataset": {"rows": [{"question": "q", "A": "x", "B": "y"}]}}
    assert spans(loaded) == [("row", "q"), ("template", "\nA. "), ("row", "x"), ("template", "\nB. "), ("row", "y")]


def test_the_meta_template_counts_as_template() -> None:
    template = {"type": "PromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt": "{question}"}]}}
    config = task(template, {"question": "q"})
    config["model"] = {
        "meta_template": {"begin": "Hello", "round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}]}
    }
    found = spans(config)
    assert ("row", "q") in found
    assert next(text for origin, text in found if origin == "template").startswith("Hello")
