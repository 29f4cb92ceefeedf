"""What stands for a value of a row: it can be put into texts, is asked questions, and gives itself away for all else."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

from mmprompt.datasets.choices import Choices, is_empty, option_lines
from mmprompt.messages import Pieces, Trace, Value, ask, blank, computed, is_blank, joined_text, text_of
from mmprompt.segments import begins_tagged, scan


@pytest.fixture
def trace() -> Trace:
    return Trace()


def value(real: object, trace: Trace) -> Any:
    return Value(real, ("column",), trace)


def test_a_stand_in_has_the_type_of_its_value(trace: Trace) -> None:
    assert isinstance(value("x", trace), str)
    assert isinstance(value(5, trace), int)
    assert isinstance(value({"a": 1}, trace), dict)
    assert isinstance(joined_text(["a", value("x", trace)]), str)
    assert trace.is_plain
    assert trace.asked == []


def test_texts_are_joined_around_stand_ins(trace: Trace) -> None:
    x, n = value("x", trace), value(7, trace)
    made: Any = joined_text(["a", text_of(x), text_of(n)], "-")
    assert type(made) is Pieces
    assert made.pieces == ("a", "-", x, "-", n) or [type(p) for p in made.pieces] == [str, str, Value, str, Value]
    assert trace.is_plain
    assert made.itself() == "a-x-7"
    assert joined_text(["a", "b"], "-") == "a-b"
    assert joined_text([x]) is x


def test_texts_are_added_on_both_sides(trace: Trace) -> None:
    x = value("x", trace)
    assert ("a" + x + "b").itself() == "axb"


def test_questions_are_written_down_once(trace: Trace) -> None:
    x = value(" ", trace)
    assert is_blank(x)
    assert is_empty(x)
    assert ask(x, len) == 1
    assert [(one.place, one.question, one.answer) for one in trace.asked] == [
        (("column",), blank, True),
        (("column",), len, 1),
    ]
    assert trace.is_plain


def test_a_text_that_is_not_blank_is_true_without_another_question(trace: Trace) -> None:
    assert bool(value("x", trace))
    assert [one.question for one in trace.asked] == [blank]
    assert bool(joined_text(["", value(0, trace)])), "a number is a text of at least one digit"


def test_segments_of_a_stand_in_are_stand_ins(trace: Trace) -> None:
    text = "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START> <AIS_CONTENT_TAG>"
    tagged = value(text, trace)
    assert begins_tagged(tagged)
    spans = scan(tagged)
    assert [(modality, found.real, found.place) for modality, found, _, _ in spans] == [  # type: ignore[attr-defined]
        ("image", "a.jpg", ("column", None, 0)), ("text", " ", ("column", None, 1)),
    ]  # fmt: skip
    assert is_blank(spans[1][1])
    assert len(trace.asked) == 2, "that a segment is blank follows from the kinds of segments"


def test_choices_of_stand_ins_are_lettered_without_being_read(trace: Trace) -> None:
    lines: Any = option_lines(Choices((value("cat", trace), "dog"), ("A", "B")))
    assert trace.is_plain
    assert lines.itself() == "A. cat\nB. dog"


USES: dict[str, Callable[[Any], object]] = {
    "str": str, "repr": repr, "equal": lambda x: x == "x", "unequal": lambda x: x != "y", "hash": hash, "len": len,
    "in": lambda x: "x" in x, "iter": list, "index": lambda x: x[0], "format": lambda x: f"{x}", "percent": lambda x: "%s" % x,  # noqa: UP031  # meant
    "strip": lambda x: x.strip(), "less": lambda x: x < "y", "times": lambda x: x * 2, "split": lambda x: x.split(),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_any_other_use_gives_the_value_itself_and_is_remembered(use: str, trace: Trace) -> None:
    assert USES[use](value("x", trace)) == USES[use]("x")
    assert not trace.is_plain
    other = Trace()
    assert USES[use](joined_text([value("x", other), ""], "")) == USES[use]("x")
    assert not other.is_plain


@pytest.mark.parametrize(
    "use", [lambda x: re.match("x", x), lambda x: "".join([x]), bytes, lambda x: "x" + "".join(("", x))]
)
def test_what_python_does_inside_refuses_a_stand_in(use: Callable[[Any], object], trace: Trace) -> None:
    with pytest.raises(TypeError):
        use(value("x", trace))


def test_an_attribute_that_no_text_has_is_missing_whatever_the_value(trace: Trace) -> None:
    assert not hasattr(value("x", trace), "shape")
    assert trace.is_plain


def test_a_computed_text_is_one_value_and_names_what_it_read(trace: Trace) -> None:
    columns = {"a": value("x", trace), "b": [value("y", trace)], "c": 1}
    made: Any = computed(lambda real: f"{real['a']}{real['b'][0]}{real['c']}", columns, ("a", "b"))
    assert (made.real, made.place[1:]) == ("xy1", ("a", "b"))
    assert not trace.is_plain
    assert computed(lambda real: str(real["a"]), {"a": 1}, ("a",)) == "1"


def test_stand_ins_stay_where_they_are(trace: Trace) -> None:
    for one in (value("x", trace), joined_text([value("x", trace), "y"])):
        with pytest.raises(TypeError):
            pickle.dumps(one)
