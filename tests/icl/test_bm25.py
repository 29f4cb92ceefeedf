import math
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import mmprompt
from mmprompt import TaskError
from mmprompt.datasets.sample import Sample
from mmprompt.icl.bm25 import BM25Retriever, tokens


def rows(texts, file="train.jsonl"):
    return [Sample({"q": text, "a": f"answer {n}"}, n, file, n + 1, n, True) for n, text in enumerate(texts)]


def query(text, **more):
    return Sample({"q": text, "a": ""} | more, "query", "test.jsonl", 1, 0, True)


def test_words_are_lower_cased_and_normalised():
    assert tokens("The CAT, the hat_2!") == ["the", "cat", "the", "hat_2"]
    assert tokens("ＡＢ ①") == ["ab", "1"]
    assert tokens("cafe\u0301") == tokens("café") == ["café"]
    assert tokens(" ?! ") == []


def test_cjk_characters_and_their_pairs_are_tokens():
    assert tokens("北京2024年 is") == ["北", "京", "北京", "2024", "年", "is"]
    assert tokens("ネコ한국") == ["ネ", "コ", "한", "국", "ネコ", "コ한", "한국"]


def test_without_bm25s_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(TaskError, match=r"pip install 'mmprompt\[bm25\]'"):
        BM25Retriever().bind(rows(["a"]), input_columns=["q"])


TEXTS = [
    "the cat sat on the mat",
    "dogs and cats living together",
    "the the the the",
    "a completely different sentence about trains",
    "the cat and the other cat",
    "",
]


def by_hand(texts, question, k1=1.5, b=0.75):
    """BM25 as Lucene has it, written out."""
    docs = [Counter(tokens(t)) for t in texts]
    lengths = [sum(d.values()) for d in docs]
    mean = sum(lengths) / len(lengths)
    scores = []
    for doc, length in zip(docs, lengths, strict=True):
        score = 0.0
        for token in tokens(question):
            df = sum(token in d for d in docs)
            if df and token in doc:
                idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
                score += idf * doc[token] / (doc[token] + k1 * (1 - b + b * length / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("question", ["where is the cat", "trains", "a cat and a dog and a train", "THE the"])
def test_the_highest_score_comes_first_as_computed_by_hand(question):
    pytest.importorskip("bm25s")
    bound = BM25Retriever(6).bind(rows(TEXTS), input_columns=["q"])
    scores = by_hand(TEXTS, question)
    assert bound.ids(query(question)) == sorted(range(6), key=lambda n: (-scores[n], n))


def test_the_text_of_content_is_the_question_that_is_listed_and_its_media_are_none():
    pytest.importorskip("bm25s")
    texts = [f"<AIS_IMAGE_START>cat.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>{text}" for text in TEXTS]
    index = [Sample({"content": text}, n, None, None, n, scanned=True) for n, text in enumerate(texts)]
    bound = BM25Retriever(6).bind(index, input_columns=["question", "image"])
    plain = BM25Retriever(6).bind(rows(TEXTS), input_columns=["q"])
    assert bound.ids(index[2]._replace(columns={"content": "where is the cat"}, id="x", row=9), 9) == plain.ids(
        query("where is the cat")
    )


def test_chinese_texts_are_compared():
    pytest.importorskip("bm25s")
    bound = BM25Retriever(1).bind(rows(["今天天气很好", "北京有多少人口", "猫坐在垫子上"]), input_columns=["q"])
    assert [bound.ids(query(t)) for t in ("明天天气怎么样", "上海的人口", "小猫")] == [[0], [1], [2]]


def test_equal_scores_come_in_the_order_of_the_rows():
    pytest.importorskip("bm25s")
    bound = BM25Retriever(4).bind(rows(["x y", "b", "c", "y x"]), input_columns=["q"])
    assert bound.ids(query("y")) == [0, 3, 1, 2]
    assert bound.ids(query("unknown words")) == bound.ids(query("")) == [0, 1, 2, 3]


def test_rows_without_any_word_come_in_their_order():
    pytest.importorskip("bm25s")
    assert BM25Retriever(2).bind(rows(["", "?!", ""]), input_columns=["q"]).ids(query("cat")) == [0, 1]


def test_the_sample_itself_and_its_copies_are_never_picked():
    pytest.importorskip("bm25s")
    index = rows(TEXTS)
    bound = BM25Retriever(2).bind(index, input_columns=["q"])
    assert bound.ids(index[0]) == [4, 2]
    assert 0 not in bound.ids(query(TEXTS[0], a="answer 0"))
    assert bound.ids(query(TEXTS[0], a="other"))[0] == 0


def test_the_answer_is_never_compared_even_when_listed():
    pytest.importorskip("bm25s")
    bound = BM25Retriever(1).bind(rows(["a", "b"]), input_columns=["q", "a"], output_column="a")
    assert bound.ids(query("b", a="answer 0")) == [1]


def test_more_examples_than_rows_are_refused():
    with pytest.raises(TaskError, match="ice_num=3 asks for more"):
        BM25Retriever(3).bind(rows(["a", "b"]), input_columns=["q"])


def test_a_bound_retriever_pickles_and_shows_no_progress(capfd):
    pytest.importorskip("bm25s")
    bound = BM25Retriever(2).bind(rows(TEXTS), input_columns=["q"])
    assert pickle.loads(pickle.dumps(bound)).ids(query("the cat")) == bound.ids(query("the cat"))
    assert capfd.readouterr() == ("", "")


def test_the_picks_are_the_same_in_every_process():
    pytest.importorskip("bm25s")
    code = (
        "from mmprompt.datasets.sample import Sample\n"
        "from mmprompt.icl.bm25 import BM25Retriever\n"
        "rows = [Sample({'q': f'w{n % 7} w{n % 5} w{n % 3} w{n % 11}'}, n, 'train', n, n, True) for n in range(300)]\n"
        "bound = BM25Retriever(20).bind(rows, input_columns=['q'])\n"
        "print([bound.ids(Sample({'q': f'w{n} w{n + 1} w{n + 2} w{n + 3}'}, n, 'test', n, n, True)) for n in range(9)])"
    )
    environments = [
        {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(mmprompt.__file__).parent.parent)} for seed in ("0", "1")
    ]
    outputs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=e).stdout
        for e in environments
    ]
    assert outputs[0] == outputs[1] != b""
