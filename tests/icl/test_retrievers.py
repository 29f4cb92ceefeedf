import hashlib
import json
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmprompt
from mmprompt import PromptList, PromptTemplate, TaskError, TemplateError
from mmprompt.datasets.sample import Sample
from mmprompt.icl.retrievers import (
    FixKRetriever,
    RandomRetriever,
    SlidingWindowRetriever,
    ZeroRetriever,
    join_examples,
)


def sample(row=0, file="test.jsonl", **columns):
    name = columns.pop("id", None)
    return Sample(columns or {"question": f"{file} {row}"}, row if name is None else name, file, row + 1, row, True)


def rows(count, file="train.jsonl"):
    return [sample(row, file) for row in range(count)]


RETRIEVERS = [ZeroRetriever(), FixKRetriever([1, 0]), RandomRetriever(2), SlidingWindowRetriever(2)]


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=lambda r: type(r).__name__)
def test_every_retriever_stores_how_examples_are_joined(retriever):
    assert (retriever.ice_separator, retriever.ice_eos_token) == ("\n", "\n")
    changed = type(retriever)(**{**vars(retriever), "ice_separator": "|", "ice_eos_token": "", "ice_num": 3})
    assert (changed.ice_separator, changed.ice_eos_token, changed.ice_num) == ("|", "", 3)
    assert ZeroRetriever().ice_num == FixKRetriever([0]).ice_num == RandomRetriever().ice_num == 1


@pytest.mark.parametrize("retriever", RETRIEVERS, ids=lambda r: type(r).__name__)
def test_retrievers_are_immutable_and_pickle_bound_and_unbound(retriever):
    with pytest.raises(AttributeError):
        retriever.ice_num = 5
    assert pickle.loads(pickle.dumps(retriever)) == retriever
    bound = retriever.bind(rows(5))
    again = pickle.loads(pickle.dumps(bound))
    assert again.ids(sample(3), 3) == bound.ids(sample(3), 3)


def test_zero_retriever_gives_no_ids_even_of_an_empty_index_set():
    assert ZeroRetriever().bind([]).ids(sample()) == []


def test_fix_k_gives_the_ids_as_told_in_their_order_with_repeats():
    index = rows(3)
    bound = FixKRetriever([2, 0, 2]).bind(index)
    assert bound.ids(sample()) == [2, 0, 2]
    assert bound.examples(sample()) == [index[2], index[0], index[2]]
    assert FixKRetriever(fix_id_list=[]).bind(index).ids(sample()) == []


def test_fix_k_picks_the_test_sample_itself_if_told_so():
    index = rows(3)
    assert FixKRetriever([1]).bind(index).ids(index[1]) == [1]


@pytest.mark.parametrize("wrong", [-1, 3, 99])
def test_fix_k_refuses_an_id_outside_the_index_set_with_the_range(wrong):
    with pytest.raises(TaskError, match=f"fix_id_list holds {wrong}, and the index set has the ids 0 to 2"):
        FixKRetriever([0, wrong]).bind(rows(3))
    with pytest.raises(TaskError, match="the index set is empty"):
        FixKRetriever([0]).bind([])


@pytest.mark.parametrize("wrong", [None, 3, "01", ["0"], [0.0], [True]])
def test_fix_k_refuses_what_is_no_list_of_row_numbers(wrong):
    with pytest.raises(TaskError, match="give a list of row numbers"):
        FixKRetriever(wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomRetriever(-1),
        lambda: RandomRetriever("2"),
        lambda: RandomRetriever(2, seed="x"),
        lambda: SlidingWindowRetriever(-1),
        lambda: SlidingWindowRetriever(True),
        lambda: ZeroRetriever(ice_separator=None),
    ],
)
def test_arguments_of_the_wrong_type_or_range_are_refused(make):
    with pytest.raises(TaskError):
        make()


def test_random_draws_stay_the_same_for_ever():
    """Numbers of the first release: whoever resumes a run, on any Python, gets them again."""
    bound = RandomRetriever(4).bind(rows(10))
    assert bound.ids(sample(0, id="q-1")) == [8, 0, 3, 6]
    assert bound.ids(sample(0, id=7)) == [9, 6, 8, 5]
    assert bound.ids(sample(0, id="7")) == [6, 9, 0, 2]
    assert RandomRetriever(4, 44).bind(rows(10)).ids(sample(0, id="q-1")) == [8, 6, 1, 3]


@pytest.mark.parametrize("name", ["q-1", 7, "问", [1, "a"], 1.0, True])
def test_random_draws_by_the_documented_rule(name):
    places = list(range(10))
    for draw in range(4):
        word = hashlib.sha256(f"{json.dumps([43, name])}#{draw}".encode()).hexdigest()
        at = draw + int(word, 16) % (10 - draw)
        places[draw], places[at] = places[at], places[draw]
    assert RandomRetriever(4).bind(rows(10)).ids(sample(0, id=name)) == places[:4]


def test_random_draws_depend_on_seed_and_id_alone():
    bound = RandomRetriever(3).bind(rows(20))
    one = bound.ids(sample(0, id="a"), 0)
    others = [bound.ids(sample(n, id=f"b{n}"), n) for n in range(50)]
    assert bound.ids(sample(17, "other.jsonl", id="a", question="changed"), 99) == one
    assert len({tuple(ids) for ids in others}) > 40
    assert all(len(set(ids)) == 3 and set(ids) <= set(range(20)) for ids in others)
    assert {n for ids in others for n in ids} == set(range(20))
    assert bound.ids(sample(0, id=1)) != bound.ids(sample(0, id="1"))


def test_random_draws_of_a_sample_without_an_id_depend_on_its_row_number():
    bound = RandomRetriever(3).bind(rows(20))
    assert (
        bound.ids(Sample({"q": "x"}, None, "t", 6, 5, True), 0) == bound.ids(sample(5), 2) == bound.ids(sample(0, id=5))
    )


def test_random_draws_are_the_same_in_every_process():
    code = (
        "from mmprompt.datasets.sample import Sample\n"
        "from mmprompt.icl.retrievers import RandomRetriever\n"
        "rows = [Sample({'q': str(n)}, n, 'train', n, n, True) for n in range(100)]\n"
        "bound = RandomRetriever(3).bind(rows)\n"
        "print([bound.ids(Sample({'q': 'x'}, f'q{n}', 'test', n, n, True)) for n in range(20)])"
    )
    environments = [
        {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(mmprompt.__file__).parent.parent)} for seed in ("0", "1")
    ]
    outputs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=e).stdout
        for e in environments
    ]
    assert outputs[0] == outputs[1] != b""


def test_random_leaves_the_state_of_the_global_generators_alone():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    RandomRetriever(3).bind(rows(9)).ids(sample())
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


@given(count=st.integers(1, 40), wanted=st.integers(0, 40), name=st.one_of(st.text(), st.integers(), st.none()))
def test_random_draws_without_replacement(count, wanted, name):
    if wanted > count:
        with pytest.raises(
            TaskError, match=rf"ice_num={wanted} asks for more examples than the index set has rows \({count}\)"
        ):
            RandomRetriever(wanted).bind(rows(count))
        return
    ids = RandomRetriever(wanted).bind(rows(count)).ids(sample(0, id=name))
    assert len(ids) == wanted == len(set(ids))
    assert set(ids) <= set(range(count))


def test_sliding_window_gives_the_rows_before_and_fills_from_the_end():
    """As OpenCompass: the last rows of the index set stand before the first ones."""
    bound = SlidingWindowRetriever(3).bind(rows(10), test_count=10)
    assert bound.ids(sample(0), 0) == [7, 8, 9]
    assert bound.ids(sample(1), 1) == [8, 9, 0]
    assert bound.ids(sample(3), 3) == [0, 1, 2]
    assert bound.ids(sample(9), 9) == [6, 7, 8]
    assert bound.ids(sample(10), 10) == [7, 8, 9]


def test_sliding_window_takes_the_position_and_else_the_row_number():
    bound = SlidingWindowRetriever(k=1).bind(rows(10))
    assert bound.ids(sample(7)) == [6]
    assert bound.ids(sample(7), 2) == [1]


def test_sliding_window_beyond_the_index_set_is_an_error_with_the_range():
    with pytest.raises(TaskError, match="test position 11 leaves the index set, whose ids are 0 to 9"):
        SlidingWindowRetriever(2).bind(rows(10)).ids(sample(11), 11)
    with pytest.raises(TaskError, match="test position 29"):
        SlidingWindowRetriever(2).bind(rows(10), test_count=30)
    with pytest.raises(TaskError, match="k=11 asks for more"):
        SlidingWindowRetriever(11).bind(rows(10))


def test_no_row_of_the_same_file_is_its_own_example():
    index = rows(6)
    for position, row in enumerate(index):
        for retriever in (RandomRetriever(5), SlidingWindowRetriever(5)):
            ids = retriever.bind(index).ids(row, position)
            assert len(ids) == 5
            assert position not in ids
        assert len(RandomRetriever(6).bind(index).ids(row)) == 5


def test_a_row_of_equal_content_is_not_picked_whatever_its_file_and_id():
    index = [
        sample(n, "train.jsonl", id=f"t{n}", question=f"q{n}", answer=n, score=float("nan"), id_column=1)
        for n in range(4)
    ]
    twin = sample(9, "test.jsonl", id="q9", question="q2", answer=2, score=float("nan"), id_column=1)
    named = Sample({**twin.columns, "id": "q9"}, "q9", "test.jsonl", 10, 9, True)
    for test in (twin, named):
        assert 2 not in RandomRetriever(4).bind(index).ids(test)
        assert 2 not in SlidingWindowRetriever(3).bind(index).ids(test, 3)
    other_answer = sample(9, question="q2", answer=3, score=float("nan"), id_column=1)
    assert 2 in RandomRetriever(4).bind(index).ids(other_answer)


def test_rows_given_in_python_are_the_same_sample_by_content_not_by_number():
    index = [Sample({"q": str(n)}, n, None, n + 1, n, True) for n in range(3)]
    assert 0 in RandomRetriever(3).bind(index).ids(Sample({"q": "new"}, 0, None, 1, 0, True))
    assert 0 not in RandomRetriever(3).bind(index).ids(Sample({"q": "0"}, 0, None, 1, 0, True))


def test_rows_that_have_nothing_but_ids_compare_by_them():
    index = [Sample({"id": n}, n, "a", n + 1, n, True) for n in range(3)]
    assert set(RandomRetriever(3).bind(index).ids(Sample({"id": 1}, 1, "b", 1, 0, True))) == {0, 2}


def test_arrays_and_images_in_columns_are_compared_as_a_whole():
    from PIL import Image

    def row(n, value):
        return Sample(
            {"image": Image.new("RGB", (2, 2), (value, 0, 0)), "sound": np.full(3, value), "l": [np.full(2, value)]},
            n,
            None,
            n,
            n,
            True,
        )

    assert RandomRetriever(2).bind([row(0, 1), row(1, 2)]).ids(row(5, 2)) == [0]
    mixed = Sample({"image": 1, "sound": [2, 2, 2], "l": 2}, 5, None, 5, 5, True)
    assert len(RandomRetriever(2).bind([row(0, 1), row(1, 2)]).ids(mixed)) == 2


STRINGS = PromptTemplate("Q: {q}\nA: {a}")
DIALOGUE = PromptTemplate({"round": [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "{a}"}]})
ENTRIES = [{"q": "1+1", "a": "2"}, {"q": "2+2", "a": "4"}]


def test_string_examples_are_joined_and_closed_and_nothing_is_nothing():
    examples = [STRINGS.generate_ice_item(e) for e in ENTRIES]
    assert join_examples(examples, ZeroRetriever(), dialogue=False) == "Q: 1+1\nA: 2\nQ: 2+2\nA: 4\n"
    assert (
        join_examples(examples, FixKRetriever([0], ice_separator="\n\n", ice_eos_token="###"), dialogue=False)
        == "Q: 1+1\nA: 2\n\nQ: 2+2\nA: 4###"
    )
    assert join_examples([], FixKRetriever([]), dialogue=False) == ""


def test_dialogue_examples_are_put_in_a_row_each_a_section_of_its_own():
    from mmprompt.templates.prompt_list import section_of

    examples = [DIALOGUE.generate_ice_item(e) for e in ENTRIES]
    joined = join_examples(examples, ZeroRetriever(), dialogue=True)
    assert isinstance(joined, PromptList)
    assert joined == [*examples[0], *examples[1]]
    assert len({id(section_of(item)) for item in joined}) == 2
    assert join_examples([], ZeroRetriever(), dialogue=True) == []
    assert join_examples(["x", examples[0]], ZeroRetriever(), dialogue=True) == ["x", *examples[0]]


def test_a_dialogue_among_string_examples_is_refused():
    with pytest.raises(TemplateError, match="a text template has a dialogue among its examples"):
        join_examples(["x", DIALOGUE.generate_ice_item(ENTRIES[0])], ZeroRetriever(), dialogue=False)
