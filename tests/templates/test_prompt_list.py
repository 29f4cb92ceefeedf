import copy
import pickle

import pytest

from mmprompt import MediaRef, PromptError, PromptList, PromptTemplate, TextPart
from mmprompt.templates.prompt_list import section_of

ITEMS = ["hi {a}", {"role": "HUMAN", "prompt": "{b}!"}, {"role": "BOT"}]


def test_a_prompt_list_equals_the_plain_list_of_its_items():
    assert PromptList(ITEMS) == ITEMS
    assert PromptList(ITEMS) == ITEMS


def test_lists_and_strings_add_on_either_side():
    pl = PromptList(["b"])
    assert ["a"] + pl == ["a", "b"]
    assert "a" + pl == ["a", "b"]
    assert pl + ["c"] == ["b", "c"]
    assert pl + "c" == ["b", "c"]
    assert pl + None == ["b"]
    assert pl + "" == ["b"]
    for result in (["a"] + pl, "a" + pl, pl + ["c"], pl[0:1], pl.copy()):
        assert isinstance(result, PromptList)
    left = ["a"]
    left += pl
    assert left == ["a", "b"]


def test_str_joins_texts_without_separator_and_without_json():
    assert str(PromptList(["a", {"role": "HUMAN", "prompt": '问"'}, {"role": "BOT"}])) == 'a问"'
    assert (
        str(PromptList([{"prompt": [{"type": "text", "text": "t"}, {"type": "image_url", "image_url": {"url": "x"}}]}]))
        == "t"
    )


def test_str_holds_the_texts_of_parts_that_are_objects_and_refuses_what_is_no_part():
    parts = [TextPart("a"), MediaRef("image", "x.png"), {"type": "text", "text": "b"}]
    assert str(PromptList([{"role": "HUMAN", "prompt": parts}])) == "ab"
    with pytest.raises(PromptError, match="a prompt holds str"):
        str(PromptList([{"role": "HUMAN", "prompt": ["a"]}]))


@pytest.mark.parametrize("column", ["self", "input_str", "mapping", "Question Text"])
def test_format_takes_any_column_name(column):
    assert PromptList([f"{{{column}}}"]).format({column: "v"}) == ["v"]


def test_format_fills_keywords_and_does_not_search_values():
    assert PromptList(ITEMS).format(a="{b}", b=2) == ["hi {b}", {"role": "HUMAN", "prompt": "2!"}, {"role": "BOT"}]


def test_replace_with_a_list_takes_the_place_of_loose_text():
    pl = PromptList(["x</E>y", {"role": "HUMAN", "prompt": "q"}])
    assert pl.replace("</E>", [{"role": "BOT", "prompt": "e"}]) == [
        "x",
        {"role": "BOT", "prompt": "e"},
        "y",
        {"role": "HUMAN", "prompt": "q"},
    ]
    assert pl.replace("q", "z") == ["x</E>y", {"role": "HUMAN", "prompt": "z"}]


def test_replace_with_a_list_inside_a_role_prompt_is_an_error():
    with pytest.raises(PromptError, match="stands inside the prompt of role HUMAN"):
        PromptList([{"role": "HUMAN", "prompt": "a</E>"}]).replace("</E>", ["x"])


def test_sections_survive_slices_sums_copies_and_pickles():
    template = PromptTemplate({"begin": ["start"], "round": [{"role": "HUMAN", "prompt": "{q}"}], "end": ["over"]})
    prompt = template.generate_item({"q": "1"})
    for same in (
        prompt[:],
        [] + prompt,
        prompt.copy(),
        copy.deepcopy(prompt),
        pickle.loads(pickle.dumps(prompt)),
        prompt.format(q=1),
    ):
        assert [section_of(i).kind for i in same] == ["begin", "round", "end"]


def test_nothing_of_the_caller_changes():
    original = copy.deepcopy(ITEMS)
    pl = PromptList(ITEMS)
    pl.format(a=1, b=2)
    pl.replace("hi", "ho")
    pl + ["x"]
    assert pl == original == ITEMS


def test_a_foreign_item_is_named_by_its_type():
    with pytest.raises(PromptError, match="a prompt holds int"):
        str(PromptList([3]))
