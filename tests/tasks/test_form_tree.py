"""The tree of forms: what its questions are and how many forms it keeps; messages by forms are those of a walk."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmprompt import load_task
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError
from mmprompt.messages import Message, Trace, Value, blank
from mmprompt.tasks import forms
from mmprompt.tasks.forms import NOT_YET, FormTree, getter, key_of, kinds_in, stand_ins, text_getter

Row = dict[str, Any]


def sample(**columns: object) -> Sample:
    return Sample(columns, 1, None, 1, 0, scanned=True)


def kept(tree: FormTree[str], form: str, columns: Row, *questions: tuple[tuple[Any, ...], Any]) -> None:
    """Keep a form behind the answers of a row to questions."""
    row, trace = sample(**columns), Trace()
    for place, question in questions:
        trace.ask(place, question, getter(place)(columns, {}))
    tree.keep(row, key_of(row), trace.asked, form)


def found(tree: FormTree[str], **columns: object) -> Any:
    return tree.find(tree.roots.get(key_of(sample(**columns)), NOT_YET), columns, {})


def test_a_row_takes_the_form_that_its_answers_lead_to() -> None:
    tree: FormTree[str] = FormTree()
    kept(tree, "short", {"a": "x", "b": "y"}, (("a",), blank), (("b",), len))
    kept(tree, "blank", {"a": " ", "b": "y"}, (("a",), blank))
    kept(tree, "long", {"a": "x", "b": "yy"}, (("a",), blank), (("b",), len))
    kept(tree, "list", {"a": "x", "b": ["y"]}, (("b",), kinds_in))
    assert found(tree, a="other", b="z") == "short"
    assert found(tree, a="", b="any") == "blank"
    assert found(tree, a="?", b="zz") == "long"
    assert found(tree, a="?", b=["z"]) == "list"
    assert found(tree, a="?", b="zzz") is NOT_YET
    assert found(tree, a="?", b=["z", "z"]) is NOT_YET
    assert found(tree, a=1, b="z") is NOT_YET, "a column of another type"
    assert found(tree, b="z", a="other") is NOT_YET, "another order of columns"
    assert len(tree) == 4


def test_several_blank_texts_are_one_question() -> None:
    tree: FormTree[str] = FormTree()
    names = ("a", "b", "c")
    for form, columns in ("none", {"a": "x", "b": "y", "c": "z"}), ("middle", {"a": "x", "b": "", "c": "z"}):
        kept(tree, form, columns, *[((name,), blank) for name in names])
    assert found(tree, a="1", b="2", c="3") == "none"
    assert found(tree, a="1", b="\u2003", c="3") == "middle"
    assert found(tree, a="", b="2", c="3") is NOT_YET


def test_a_row_that_is_walked_is_no_row_without_a_form() -> None:
    tree: FormTree[str] = FormTree()
    row = sample(a="x")
    tree.keep(row, key_of(row), [], None)
    assert found(tree, a="y") is None


def test_a_tree_begins_anew_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MOST_FORMS", 5)
    tree: FormTree[str] = FormTree()
    for length in range(23):
        kept(tree, str(length), {"a": "x" * length}, (("a",), len))
        assert len(tree) <= 5
        assert found(tree, a="y" * length) == str(length)
    assert found(tree, a="") is NOT_YET


def test_a_tree_pickles_empty() -> None:
    tree: FormTree[str] = FormTree()
    kept(tree, "x", {"a": "x"}, (("a",), len))
    again = pickle.loads(pickle.dumps(tree))
    assert (len(again), again.roots) == (0, {})


def test_threads_that_keep_the_same_forms_find_them() -> None:
    tree: FormTree[str] = FormTree()

    def work(number: int) -> Any:
        length = number % 7
        kept(tree, str(length), {"a": "x" * length, "b": " "}, (("b",), blank), (("a",), len))
        return found(tree, a="y" * length, b="") == str(length)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))


def test_lists_stay_lists_of_stand_ins_whose_types_are_asked() -> None:
    trace = Trace()
    columns: Row = {"a": ["x", " ", 1, None, ["y"], True], "b": None, "n": float("nan"), "m": {"k": "v"}}
    made: Any = stand_ins(columns, trace)
    first, space, number, none, (deep,), true = made["a"]
    assert [type(one) for one in (first, space, number, deep, made["m"])] == [Value] * 5
    assert (first.place, deep.place) == (("a", 0), ("a", 4, 0))
    assert (none, true, made["b"]) == (None, True, None)
    assert type(made["n"]) is float
    count = len(trace.asked)
    assert space.asked(blank)
    assert not first.asked(blank)
    assert len(trace.asked) == count, "that an element is blank follows from the types"
    assert trace.is_plain


def test_a_subclass_of_text_makes_its_row_a_walked_one() -> None:
    class Loud(str):
        __slots__ = ()

    trace = Trace()
    stand_ins({"a": Loud("x")}, trace)
    assert not trace.is_plain


def test_what_stands_for_a_text_is_filled_from_a_row() -> None:
    trace = Trace()
    made: Any = stand_ins({"a": "x", "n": 1, "l": ["p", "q"]}, trace)
    fill = text_getter("<" + made["a"] + " " + made["n"] + ">" + made["l"][1])
    assert fill({"a": "other", "n": 2.5, "l": ["r", "s"]}, {}) == "<other 2.5>s"
    with pytest.raises(TypeError):
        text_getter("no stand-in")


# ---- messages of tasks

texts = st.one_of(
    st.sampled_from(["What?", "cat", "", " ", "\u2003", "{hint}", "A. cat", "B. dog", "<image>", "a < b", "</E>", "[1]", "100%"]),
    st.text(max_size=5),
)  # fmt: skip
names = ("question", "hint", "image", "options", "content", "A", "B", "note")
tagged = st.lists(st.tuples(st.sampled_from(["TEXT", "IMAGE"]), texts), max_size=3).map(
    lambda pairs: "".join([f"<AIS_{kind}_START>{text}<AIS_CONTENT_TAG>" for kind, text in pairs])
)
odd = st.one_of(
    texts, tagged, st.none(), st.booleans(), st.integers(), st.floats(), st.lists(texts, max_size=3),
    st.lists(st.one_of(texts, st.integers(), st.none()), max_size=3), st.dictionaries(st.sampled_from("AB"), texts, max_size=2),
)  # fmt: skip
usual = st.fixed_dictionaries(
    {"question": texts, "hint": texts, "image": texts, "options": st.lists(texts, max_size=3)}
)
with_content = st.fixed_dictionaries({"content": tagged, "hint": texts, "A": texts, "B": texts})
strange = st.dictionaries(st.sampled_from(names), odd, max_size=5)
rows = st.lists(st.one_of(usual, usual, with_content, with_content, strange), min_size=2, max_size=14)

slots = st.sampled_from([*[f"{{{name}}}" for name in names], "{answer}", "{missing}", "Q: ", "\n", " ", "100%", ""])
written = st.lists(slots, min_size=1, max_size=4).map("".join)
jinja = st.sampled_from(["{{ question }}", "{% if hint %}{{ hint }}{% endif %}!", "{{ row.note }}"])
says = st.one_of(written, written, written, jinja.map(lambda text: {"jinja": text}))
parts = st.fixed_dictionaries(
    {
        "image": st.sampled_from(["{image}", "file://{image}", "media/{image}", "{note}"]).map(
            lambda url: {"type": "image_url", "image_url": url}
        ),
        "text": written.map(lambda text: {"type": "text", "text": text}),
    }
)
spoken = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["HUMAN", "BOT"]), "prompt": says}),
    st.fixed_dictionaries({"role": st.just("HUMAN"), "prompt_mm": parts}),
)
plainly = st.fixed_dictionaries({"role": st.sampled_from(["HUMAN", "BOT"]), "prompt": says})
templates = st.one_of(
    written.map(lambda text: {"type": "PromptTemplate", "template": text}),
    st.lists(plainly, min_size=1, max_size=3).map(
        lambda turns: {"type": "PromptTemplate", "template": {"round": turns}}
    ),
    st.builds(
        lambda turns, more: {"type": "MMPromptTemplate", "template": {"round": turns}, **more},
        st.lists(spoken, min_size=1, max_size=2),
        st.sampled_from([{}, {}, {"order": "template"}, {"repeat_text": False}, {"column": "note"}]),
    ),
)
readers = st.sampled_from([{}, {"tagged_columns": ["note"]}, {"output_column": "note"}, {"optional_columns": ["hint"]}])


def outcome(make: Any) -> Any:
    try:
        return make()
    except MMPromptError as error:
        return type(error), str(error), error.where


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=rows, template=templates, reader=readers)
def test_messages_by_forms_are_those_of_a_walk(rows: list[Row], template: Row, reader: Row) -> None:
    infer = {"prompt_template": template, "inferencer": {"type": "GenInferencer"}}
    task = load_task(
        {"dataset": {"rows": rows}, "infer_cfg": infer, "reader_cfg": {"missing": "keep", **reader}},
    )
    made = forms.MessageForms(task._all_messages, usable=True)
    given = [row for row in task.samples() if isinstance(row, Sample)]
    for row in [*given, *given]:
        by_form, walked = outcome(lambda row=row: made.of(row)), outcome(lambda row=row: task._all_messages(row))
        assert by_form == walked
        assert list(types_in(by_form)) == list(types_in(walked)), "no stand-in is left"


def types_in(value: Any) -> Iterator[type]:
    """Yield the types of all that messages hold."""
    yield type(value)
    if isinstance(value, (Message, tuple, list)):
        for item in value:
            yield from types_in(item)
