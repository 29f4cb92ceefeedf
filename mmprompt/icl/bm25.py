"""``BM25Retriever``: the rows whose words are most like the sample's."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mmprompt.errors import TaskError
from mmprompt.icl.index_rows import IndexRow
from mmprompt.icl.ranking import best_first
from mmprompt.icl.retrievers import BoundRetriever, Retriever
from mmprompt.icl.row_text import RowText

if TYPE_CHECKING:
    import numpy as np

_CJK = (
    "\u3005\u3007\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff"  # iteration mark, zero, Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
)
_TOKENS = re.compile(f"([{_CJK}]+)|([^\\W{_CJK}]+)")


@dataclass(frozen=True)
class BM25Retriever(Retriever):
    r"""The ``ice_num`` rows with the highest BM25 score, the highest first; equal scores in the order of the rows.

    Compared are the texts of ``input_columns``, see ``RowText``, as ``tokens``. The scores are those of ``bm25s`` with
    its defaults (Lucene's variant, k1 = 1.5, b = 0.75). The sample itself is never picked.

    Source: OpenCompass, In-context Learning; the scores are those of bm25s.
    """

    ice_num: int = 1

    def bind(
        self,
        index_rows: Sequence[IndexRow],
        *,
        test_count: int | None = None,  # noqa: ARG002  # says nothing here
        input_columns: Iterable[str] = (),
        output_column: str | None = None,
        tagged_columns: Iterable[str] | None = None,
    ) -> BoundRetriever:
        """Return the retriever over an index set, all of whose texts are indexed now.

        Raises:
            TaskError: ``bm25s`` is not installed, nothing to compare, or more examples than the index set has rows.
            RowError: a row lacks a column.
            TagError: a tagged column cannot be parsed.
            TemplateError: a tagged column is null.
        """
        self._check_enough(self.ice_num, index_rows)
        text_of = RowText(input_columns, output_column, tagged_columns)
        return BoundRetriever(self, index_rows, _Index(index_rows, text_of), self.ice_num)


def tokens(text: str) -> list[str]:
    r"""Return the tokens of a text, of which NFKC and lower case are taken.

    A word (``\w+``) is a token. In Chinese, Japanese and Korean, which put no blanks between words or inflect them,
    each character and each pair of neighbours is one.
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
    """The index of all rows; called with a sample it gives the ids, the best first."""

    def __init__(self, index_rows: Sequence[IndexRow], text_of: RowText) -> None:
        try:
            import bm25s  # noqa: PLC0415  # an extra
        except ImportError:
            raise TaskError("BM25Retriever needs bm25s", "pip install 'mmprompt[bm25]'") from None
        self._text_of = text_of
        self._count = len(index_rows)
        self._vocabulary: dict[str, int] = {}  # in the order of the rows: bm25s itself would number by string hash
        number = self._vocabulary.setdefault
        corpus = [[number(t, len(self._vocabulary)) for t in tokens(text_of(row))] for row in index_rows]
        self._bm25: Any = bm25s.BM25(dtype="float64")
        if self._vocabulary:
            self._bm25.index((corpus, dict(self._vocabulary)), show_progress=False)  # it adds a token

    def __call__(self, sample: IndexRow, _position: int) -> Iterator[int]:
        return best_first(self._scores(self._text_of(sample)))

    def _scores(self, text: str) -> np.ndarray[Any, Any]:
        known = [self._vocabulary[t] for t in tokens(text) if t in self._vocabulary]
        if not known:
            import numpy as np  # noqa: PLC0415  # only where rows are compared

            return np.zeros(self._count)
        scores: np.ndarray[Any, Any] = self._bm25.get_scores_from_ids(known)
        return scores
