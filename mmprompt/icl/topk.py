"""``TopkRetriever``: picks the rows whose vectors are nearest to the sample's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.sample import Sample
from mmprompt.errors import TaskError, nearest, shown
from mmprompt.icl.ranking import RowText, best_first
from mmprompt.icl.retrievers import BoundRetriever, IndexSet, Retriever

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

METRICS = ("cosine", "inner_product")
VectorOf = Callable[[Sample, int], "Array"]


@dataclass(frozen=True, eq=False)
class TopkRetriever(Retriever):
    """Picks the ``ice_num`` rows with the nearest vectors, the nearest first, equal ones in the order of the rows.

    The sample itself is never picked. Give either ``vectors`` or ``embed``.

    Args:
        ice_num: the number of examples.
        vectors: a pair. The first is an array of shape (rows, dimension) for the index set. The second, for the test
            samples, is an array with a row for each position in the test set, or a callable from a sample to its
            vector.
        embed: a callable from a list of texts, those of ``input_columns``, to an array of shape (texts, dimension).
            It is called once for the index set, then with one text for each sample.
        metric: ``"cosine"`` (a zero vector has the cosine 0 with all others) or ``"inner_product"``.

    Source: OpenCompass, In-context Learning; the vectors are the user's.
    """

    ice_num: int = 1
    vectors: tuple[Any, Any] | None = None
    embed: Callable[[list[str]], ArrayLike] | None = None
    metric: str = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.vectors is None) == (self.embed is None):
            raise TaskError("TopkRetriever takes either vectors or embed", "give one of them")
        if self.embed is not None and not callable(self.embed):
            raise TaskError(f"embed is {type(self.embed).__name__}", "give a callable from texts to vectors")
        if self.vectors is not None and not (isinstance(self.vectors, (tuple, list)) and len(self.vectors) == 2):
            raise TaskError("vectors is not a pair", "give (vectors of the index set, vectors of the test samples)")
        if self.metric not in METRICS:
            raise TaskError(f"unknown metric {shown(self.metric)}", nearest(self.metric, METRICS))

    def _bound(self, index: IndexSet) -> BoundRetriever:
        self._check_enough(self.ice_num, index)
        vector_of: VectorOf
        rows: ArrayLike
        if self.embed is not None:
            text_of = RowText(index.input_columns, index.output_column, index.tagged_columns)
            rows = self.embed([text_of(row) for row in index.rows]) if index.rows else [[]]
            vector_of = partial(_embedded, self.embed, text_of)
        else:
            rows, test = self.vectors or ((), ())
            whose = "of the test samples"
            vector_of = (
                partial(_called, test) if callable(test) else partial(_listed, _matrix(test, whose, index.test_count))
            )
        matrix = _matrix(rows, "of the index set", len(index.rows) or None)
        nearness = _Nearness(matrix, vector_of, cosine=self.metric == "cosine")
        return BoundRetriever(self, index.rows, nearness, self.ice_num)


def _embedded(embed: Callable[[list[str]], ArrayLike], text_of: RowText, sample: Sample, _position: int) -> Array:
    """Return the vector of a sample's text from ``embed``."""
    vector: Array = _matrix(embed([text_of(sample)]), "of one text", 1)[0]
    return vector


def _called(vector_of: Callable[[Sample], ArrayLike], sample: Sample, _position: int) -> Array:
    """Return the vector of a sample from the user's callable."""
    vector: Array = _matrix([vector_of(sample)], "of a test sample", 1)[0]
    return vector


def _listed(matrix: Array, _sample: Sample, position: int) -> Array:
    """Return the vector of a position in the test set."""
    if not 0 <= position < len(matrix):
        what = f"no vector for test position {position}: there are vectors for 0 to {len(matrix) - 1}"
        raise TaskError(what, "give a vector for each test sample")
    vector: Array = matrix[position]
    return vector


class _Nearness:
    """Yields the ids of the index set for a sample, the nearest first."""

    def __init__(self, matrix: Array, vector_of: VectorOf, *, cosine: bool) -> None:
        self._matrix = _unit(matrix) if cosine else matrix
        self._vector_of = vector_of
        self._cosine = cosine

    def __call__(self, sample: Sample, position: int) -> Iterator[int]:
        vector = self._vector_of(sample, position)
        if vector.shape[0] != self._matrix.shape[1]:
            what = f"a test vector has {vector.shape[0]} dimensions, the index set {self._matrix.shape[1]}"
            raise TaskError(what, "give vectors of one dimension")
        if self._cosine:
            vector = _unit(vector[None])[0]
        matrix = self._matrix
        # the product rounds equal rows differently, depending on their place; a sum along a row does not
        return best_first(matrix @ vector, lambda near: (matrix[near] * vector).sum(axis=1))


def _matrix(vectors: ArrayLike | list[ArrayLike], whose: str, count: int | None) -> Array:
    import numpy as np  # noqa: PLC0415  # only where rows are compared

    try:
        matrix = np.ascontiguousarray(vectors, dtype=np.float64)
    except (TypeError, ValueError):
        raise TaskError(f"the vectors {whose} are not an array of numbers", "give rows of one length") from None
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        what = f"the vectors {whose} have {matrix.ndim} axes" if matrix.ndim != 2 else f"a vector {whose} is not finite"
        raise TaskError(what, "give an array of shape (rows, dimension) of finite numbers")
    if count is not None and len(matrix) != count:
        raise TaskError(f"{len(matrix)} vectors {whose} for {count} rows", "give one vector for each row")
    return matrix


def _unit(matrix: Array) -> Array:
    """Return the rows scaled to length 1. A zero row stays zero."""
    import numpy as np  # noqa: PLC0415  # only where rows are compared

    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    scaled = matrix / np.where(largest == 0, 1, largest)  # the squares then neither vanish nor overflow
    length = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    unit: Array = scaled / np.where(length == 0, 1, length)
    return unit
