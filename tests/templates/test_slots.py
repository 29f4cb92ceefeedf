import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmprompt import TemplateError
from mmprompt.templates.slots import compile_text


def fill(text, columns, **options):
    return compile_text(text, **options).fill(columns)


def test_a_slot_without_a_column_stays_as_it_is():
    assert fill("{anything} {question}", {"question": "q"}) == "{anything} q"


def test_double_braces_keep_the_outer_pair():
    assert fill("{{q}} {{{q}}}", {"q": "x"}) == "{x} {{x}}"


@pytest.mark.parametrize(
    "name", ["a.b", "0", " a ", "a!r", "", "Question Text", "self", "input_str", "问题", "a:b", "x y"]
)
def test_any_text_without_braces_can_be_a_column(name):
    assert fill(f"<{{{name}}}>", {name: "v"}) == "<v>"
    assert fill(f"<{{{name}}}>", {"other": 1}) == f"<{{{name}}}>"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "None"), (10**30, "1" + "0" * 30), (1.10, "1.1"), (True, "True"), ([1, "a"], "[1, 'a']")]
)
def test_values_print_as_python_prints_them(value, text):
    assert fill("{v}", {"v": value}) == text
    assert fill("{v}, {v}", {"v": value}) == f"{text}, {text}"


def test_a_value_is_never_searched_for_slots():
    assert fill("{q}|{answer}", {"q": "leak {answer}", "answer": "S"}) == "leak {answer}|S"


def test_percent_signs_and_values_with_braces_or_percent_signs_are_text():
    assert fill("100% of {a}, %s and %({b})d", {"a": "{b} %s", "b": "5%"}) == "100% of {b} %s, %s and %(5%)d"


def test_one_slot_of_several_without_a_column_stays_as_it_is():
    assert fill("{a} {b}%", {"a": 1}) == "1 {b}%"


def test_a_masked_column_reads_as_nothing():
    assert compile_text("A: {answer}").fill({"answer": "42"}, masked="answer") == "A: "


def test_tokens_are_replaced_in_the_same_pass_and_longer_ones_first():
    assert (
        fill("</A></AB>{x}", {"a": "</AB>", "ab": "{x}", "x": "1"}, tokens={"</A>": "a", "</AB>": "ab"}) == "</AB>{x}1"
    )


def test_a_token_needs_its_column():
    with pytest.raises(TemplateError, match="column 'a' of column_token_map is not in the sample"):
        fill("</A>", {}, tokens={"</A>": "a"})


def test_the_separator_token_is_left_out():
    assert fill("q</S>{a}</S>", {"a": "</S>"}, sep_token="</S>") == "q</S>"


def test_a_token_inside_braces_is_a_token():
    assert fill(r"\boxed{<t>} {q<t>}", {"a": "{q}", "q": "no"}, tokens={"<t>": "a"}) == r"\boxed{{q}} {q{q}}"


def test_a_separator_inside_braces_leaves_the_slot():
    assert fill("{x</S>} {</S>y}", {"x": "1"}, sep_token="</S>") == "1 {y}"


def test_examples_inside_braces_have_a_place():
    text = compile_text('{"list": "</E>"}', ice_token="</E>")
    assert text.fill({}, examples="{q}") == '{"list": "{q}"}'
    assert text.around_examples({}) == ['{"list": "', '"}']


names = st.text(st.characters(blacklist_characters="{}"), max_size=5)


@given(
    st.dictionaries(names, st.text(max_size=10), max_size=4),
    st.lists(st.one_of(names, st.sampled_from(["{", "}", "{a}", "{{a}}"])), max_size=8),
)
def test_filling_never_expands_a_value(columns, pieces):
    template = "".join(pieces) + "".join(f"{{{n}}}" for n in columns)
    marked = {n: f"\ue000{i}\ue001" for i, n in enumerate(columns)}
    expected = compile_text(template).fill(marked)
    for i, value in enumerate(columns.values()):
        expected = expected.replace(f"\ue000{i}\ue001", f"\ue002{i}\ue003{value}")
    expected = "".join(part.partition("\ue003")[2] if k else part for k, part in enumerate(expected.split("\ue002")))
    assert compile_text(template).fill(columns) == expected
