import pickle

import numpy as np
import pytest

from mmprompt import RowError, TaskError
from mmprompt.datasets.sample import Sample
from mmprompt.icl.topk import TopkRetriever


def rows(texts, file="train.jsonl"):
    return [Sample({"q": text, "a": str(n)}, n, file, n + 1, n, True) for n, text in enumerate(texts)]


INDEX = rows(["a", "b", "c", "d"])
VECTORS = [[1, 0], [0, 1], [2, 2], [-1, 0]]
TEST = rows(["x", "y"], "test.jsonl")


def test_the_nearest_by_cosine_come_first():
    bound = TopkRetriever(3, vectors=(VECTORS, [[1, 0.1], [0, 5]])).bind(INDEX)
    assert bound.ids(TEST[0], 0) == [0, 2, 1]
    assert bound.ids(TEST[1], 1) == [1, 2, 0]


def test_inner_product_counts_length():
    bound = TopkRetriever(2, vectors=(VECTORS, [[1, 0.1]]), metric="inner_product").bind(INDEX)
    assert bound.ids(TEST[0], 0) == [2, 0]


def test_test_vectors_may_come_from_a_callable():
    bound = TopkRetriever(
        1, vectors=(np.array(VECTORS, dtype=np.float32), lambda s: [0, 1] if s.columns["q"] == "y" else [1, 0])
    ).bind(INDEX)
    assert [bound.ids(s) for s in TEST] == [[0], [1]]


def letters(texts):
    return np.array([[text.count(c) for c in "abcdefgh"] for text in texts])


def test_embed_gets_the_input_columns_and_never_the_answer():
    seen = []

    def embed(texts):
        seen.append(texts)
        return letters(texts)

    index = [
        Sample({"q": q, "hint": "h", "a": "SECRET"}, n, "train", 1, n, True)
        for n, q in enumerate(["aab", "bbb", "ccc"])
    ]
    bound = TopkRetriever(2, embed=embed).bind(index, input_columns=["q", "hint", "a"], output_column="a")
    assert bound.ids(Sample({"q": "bb", "hint": "h", "a": "SECRET"}, 0, "test", 1, 0, True)) == [1, 0]
    assert seen == [["aab\nh", "bbb\nh", "ccc\nh"], ["bb\nh"]]


def test_equal_scores_come_in_the_order_of_the_rows_wherever_the_rows_stand():
    """A matrix product rounds equal rows differently in its last block: 1003 equal rows must still count as equal."""
    rng = np.random.default_rng(0)
    vector = rng.normal(size=77)
    index = rows([str(n) for n in range(1003)])
    for metric in ("cosine", "inner_product"):
        bound = TopkRetriever(1003, vectors=(np.tile(vector, (1003, 1)), [rng.normal(size=77)]), metric=metric).bind(
            index
        )
        assert bound.ids(TEST[0], 0) == list(range(1003))


def test_as_many_as_asked_for_are_those_of_a_full_sort():
    rng = np.random.default_rng(1)
    vectors, query = rng.integers(-2, 3, size=(500, 3)), rng.integers(-2, 3, size=(20, 3))
    index = rows([str(n) for n in range(500)])
    for wanted in (1, 16, 17, 200, 500):
        bound = TopkRetriever(wanted, vectors=(vectors, query), metric="inner_product").bind(index)
        for position, one in enumerate(query):
            expected = sorted(range(500), key=lambda n: (-int(vectors[n] @ one), n))[:wanted]
            assert bound.ids(TEST[0], position) == expected


def test_the_sample_itself_and_its_copies_are_never_picked():
    bound = TopkRetriever(2, vectors=(VECTORS, lambda s: VECTORS[s.row])).bind(INDEX)
    assert bound.ids(INDEX[0]) == [2, 1]
    copy = Sample({"q": "c", "a": "2"}, "c2", "test.jsonl", 3, 2, True)
    assert bound.ids(copy) == [0, 1]


def test_zero_and_huge_vectors_have_a_cosine():
    bound = TopkRetriever(4, vectors=([[0, 0], [1e200, 0], [1e-200, 1e-200], [-1, 0]], [[1e-300, 0], [0, 0]])).bind(
        INDEX
    )
    assert bound.ids(TEST[0], 0) == [1, 2, 0, 3]
    assert bound.ids(TEST[1], 1) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (([[1, 0]] * 3, [[1, 0]] * 2), "3 vectors of the index set for 4 rows"),
        ((VECTORS, [1, 0]), "of the test samples have 1 axes"),
        (([[1, 0], [1], [1, 0], [1, 0]], [[1, 0]] * 2), "not an array of numbers"),
        (([[1, float("nan")]] * 4, [[1, 0]] * 2), "a vector of the index set is not finite"),
        ((VECTORS, [[1, 0]]), "1 vectors of the test samples for 2 rows"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_before_the_first_sample(vectors, message):
    with pytest.raises(TaskError, match=message):
        TopkRetriever(vectors=vectors).bind(INDEX, test_count=2)


def test_a_test_vector_of_another_dimension_or_position_is_refused():
    bound = TopkRetriever(vectors=(VECTORS, [[1, 0, 0]])).bind(INDEX)
    with pytest.raises(TaskError, match="3 dimensions, the index set 2"):
        bound.ids(TEST[0], 0)
    with pytest.raises(TaskError, match="no vector for test position 1: there are vectors for 0 to 0"):
        bound.ids(TEST[1], 1)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"vectors": (1, 2), "embed": letters},
        {"embed": "model"},
        {"vectors": VECTORS},
        {"embed": letters, "metric": "l2"},
    ],
)
def test_wrong_arguments_are_refused_at_construction(arguments):
    with pytest.raises(TaskError):
        TopkRetriever(1, **arguments)


def test_embed_needs_columns_that_the_rows_have():
    with pytest.raises(TaskError, match="no columns to compare"):
        TopkRetriever(embed=letters).bind(INDEX, input_columns=["a"], output_column="a")
    with pytest.raises(RowError, match=r"train.jsonl:1 .*no column 'question'") as caught:
        TopkRetriever(embed=letters).bind(INDEX, input_columns=["question"])
    assert caught.value.where.line == 1


def test_more_examples_than_rows_are_refused():
    with pytest.raises(TaskError, match="ice_num=5"):
        TopkRetriever(5, vectors=(VECTORS, [[1, 0]])).bind(INDEX)


def test_a_bound_retriever_pickles():
    bound = TopkRetriever(2, embed=letters).bind(INDEX, input_columns=["q"])
    assert pickle.loads(pickle.dumps(bound)).ids(TEST[0]) == bound.ids(TEST[0])
