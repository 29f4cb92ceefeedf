"""``BM25Retriever``: picks the rows whose words are most like the sample's."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.sample import Sample
from mmprompt.errors import TaskError
from mmprompt.icl.ranking import RowText, best_first
from mmprompt.icl.retrievers import BoundRetriever, IndexSet, Retriever

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CJK = (
    "\u3005\u3007\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff"  # iteration mark, zero, Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
)
_TOKENS = re.compile(f"([{_CJK}]+)|([^\\W{_CJK}]+)")


@dataclass(frozen=True)
class BM25Retriever(Retriever):
    r"""Picks the ``ice_num`` rows with the highest BM25 scores, the highest first, equal ones in the order of the rows.

    It compares the ``tokens`` of the texts in ``input_columns``, see ``RowText``. The scores are those of ``bm25s``
    with its defaults (Lucene's variant, k1 = 1.5, b = 0.75). The sample itself is never picked.

    Source: OpenCompass, In-context Learning; the scores are those of bm25s.
    """

    ice_num: int = 1

    def _bound(self, index: IndexSet) -> BoundRetriever:
        self._check_enough(self.ice_num, index)
        text_of = RowText(index.input_columns, index.output_column, index.tagged_columns)
        return BoundRetriever(self, index.rows, _Index(index.rows, text_of), self.ice_num)


def tokens(text: str) -> list[str]:
    r"""Return the tokens of a text, normalised to NFKC and lower case.

    A word (``\w+``) is a token. In Chinese, Japanese and Korean, which inflect words or put no blanks between them,
    each character and each pair of neighbours is a token.
    """
    out: list[str] = []
    for run, word in _TOKENS.findall(unicodedata.normalize("NFKC", text).lower()):
        if word:
            out.append(word)
        else:
            out.extend(run)
            out.extend([a + b for a, b in pairwise(run)])
    return out


class _Index:
    """The index of all rows. Called with a sample it returns the ids, the best first."""

    def __init__(self, index_rows: Sequence[Sample], text_of: RowText) -> None:
        try:
            import bm25s  # noqa: PLC0415  # an optional dependency
        except ImportError:
            raise TaskError("BM25Retriever needs bm25s", "pip install 'mmprompt[bm25]'", code="MM903") from None
        self._text_of = text_of
        self._count = len(index_rows)
        self._vocabulary: dict[str, int] = {}  # numbered in the order of the rows: bm25s would number by string hash
        number = self._vocabulary.setdefault
        corpus = [[number(t, len(self._vocabulary)) for t in tokens(text_of(row))] for row in index_rows]
        self._bm25: Any = bm25s.BM25(dtype="float64")
        if self._vocabulary:
            self._bm25.index((corpus, dict(self._vocabulary)), show_progress=False)  # it adds a token

    def __call__(self, sample: Sample, _position: int) -> Iterator[int]:
        return best_first(self._scores(self._text_of(sample)))

    def _scores(self, text: str) -> NDArray[np.float64]:
        known = [self._vocabulary[t] for t in tokens(text) if t in self._vocabulary]
        if not known:
            import numpy as np  # noqa: PLC0415  # only where rows are compared

            return np.zeros(self._count)
        scores: NDArray[np.float64] = self._bm25.get_scores_from_ids(known)
        return scores
