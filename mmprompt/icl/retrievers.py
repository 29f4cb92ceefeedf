"""Retrievers: which rows of the index set are the in-context examples of a test sample.

A retriever is immutable configuration. ``bind`` gives it an index set once. The bound retriever then answers sample by
sample, in any order, so that test samples can stream.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Union

from mmprompt.datasets.sample import Sample
from mmprompt.errors import TaskError, TemplateError, shown
from mmprompt.icl.ranking import is_same_sample
from mmprompt.templates.prompt_list import PromptList
from mmprompt.templates.raw_messages import RawMessages

Candidates = Callable[[Sample, int], Iterable[int]]
"""Returns the ids that may be picked for a sample and its position in the test set, the best first."""


Example = Union[str, PromptList, RawMessages]
"""A rendered in-context example."""


class IndexSet(NamedTuple):
    """The arguments of ``Retriever.bind``."""

    rows: Sequence[Sample]
    test_count: int | None
    input_columns: Iterable[str]
    output_column: str | None
    tagged_columns: Iterable[str] | None


class BoundRetriever:
    """A retriever over one index set, made by ``Retriever.bind``. Calls do not depend on each other.

    ``retriever`` is the retriever, ``index_rows`` the index set. ``always`` are the ids of every sample where all get
    the same, even the sample itself.
    """

    def __init__(
        self,
        retriever: Retriever,
        index_rows: Sequence[Sample],
        candidates: Candidates,
        count: int,
        *,
        always: tuple[int, ...] | None = None,
        best_last: bool = False,
    ) -> None:
        self.retriever = retriever
        self.always = always
        self.index_rows = index_rows
        self._candidates = candidates
        self._count = count
        self._best_last = best_last

    def ids(self, sample: Sample, position: int | None = None) -> list[int]:
        """Return the ids of the examples of ``sample``, in the order in which they are shown.

        ``position`` is the 0-based place of the sample in the test set, by default its row number. There are fewer
        ids than asked for only if the index set has no more rows besides the sample itself.

        Raises:
            TaskError: an id outside the index set.
            RowError: the sample lacks a column that is compared.
            TagError: a tagged column that is compared cannot be parsed.
        """
        if self.always is not None:
            return list(self.always)
        if not self._count:
            return []
        ids: list[int] = []
        for number in self._candidates(sample, sample.row if position is None else position):
            if not is_same_sample(self.index_rows[number], sample):
                ids.append(number)
                if len(ids) == self._count:
                    break
        return ids[::-1] if self._best_last else ids

    def examples(self, sample: Sample, position: int | None = None) -> list[Sample]:
        """Return the rows of ``ids``."""
        return [self.index_rows[number] for number in self.ids(sample, position)]


@dataclass(frozen=True, kw_only=True)
class Retriever(ABC):
    """What all retrievers have: the number of examples, and the texts that join and close string examples."""

    ice_num: int = 1
    ice_separator: str = "\n"
    ice_eos_token: str = "\n"  # noqa: S105  # not a password

    def __post_init__(self) -> None:
        _check_count("ice_num", self.ice_num)
        for name in ("ice_separator", "ice_eos_token"):
            if not isinstance(getattr(self, name), str):
                raise TaskError(f"{name} is {type(getattr(self, name)).__name__}", "give text")

    def bind(
        self,
        index_rows: Sequence[Sample],
        *,
        test_count: int | None = None,
        input_columns: Iterable[str] = (),
        output_column: str | None = None,
        tagged_columns: Iterable[str] | None = None,
    ) -> BoundRetriever:
        """Return the retriever over an index set.

        Args:
            index_rows: the rows of the index set, kept by reference. The id of a row is its place in them.
            test_count: the number of test samples if it is known, so that errors show before the first sample.
            input_columns: the columns that BM25 and top-k compare.
            output_column: the answer. It is never compared.
            tagged_columns: the columns that hold AIS tags, as in ``reader_cfg``.

        Raises:
            TaskError: ids outside the index set, more examples than it has rows, nothing to compare, or a package of
                the retriever is not installed.
            RowError: a row lacks a column that is compared.
            TagError: a tagged column that is compared cannot be parsed.
            TemplateError: a tagged column that is compared is null.
        """
        return self._bound(IndexSet(index_rows, test_count, input_columns, output_column, tagged_columns))

    @abstractmethod
    def _bound(self, index: IndexSet) -> BoundRetriever:
        """Return the retriever over an index set; see ``bind``."""

    def _check_enough(self, count: int, index: IndexSet, name: str = "ice_num") -> None:
        if count > len(index.rows):
            what = f"{name}={count} asks for more examples than the index set has rows ({len(index.rows)})"
            raise TaskError(what, f"give a smaller {name}, or more rows in 'train'")


@dataclass(frozen=True)
class ZeroRetriever(Retriever):
    """Returns no examples.

    Source: OpenCompass, In-context Learning.
    """

    def _bound(self, index: IndexSet) -> BoundRetriever:
        return BoundRetriever(self, index.rows, _nothing, 0, always=())


@dataclass(frozen=True)
class FixKRetriever(Retriever):
    """Returns the configured rows for every sample, even if one of them is the sample itself.

    Source: OpenCompass, In-context Learning.
    """

    fix_id_list: Iterable[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.fix_id_list
        ids = None if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) else tuple(given)
        if ids is None or not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            raise TaskError(f"fix_id_list is {shown(given)}", "give a list of row numbers, from 0")
        object.__setattr__(self, "fix_id_list", ids)

    def _bound(self, index: IndexSet) -> BoundRetriever:
        for number in self.fix_id_list:
            _check_id(number, len(index.rows), "fix_id_list")
        return BoundRetriever(self, index.rows, _nothing, 0, always=tuple(self.fix_id_list))


@dataclass(frozen=True)
class RandomRetriever(Retriever):
    """Draws ``ice_num`` rows without replacement. The draw depends on ``seed`` and the sample's id alone.

    It is the same in any order of the samples, process, Python version and resumed run. Draw number j (from 0) of n
    rows is place j + (SHA-256 of ``key + "#" + j``, read as a big-endian number, modulo n - j) of a list 0…n-1 in which
    each earlier draw swapped its place with the drawn one (Fisher and Yates). ``key`` is the JSON of ``[seed, id]``,
    where 1 and "1" differ. A draw that is the sample itself is skipped.

    Source: OpenCompass, In-context Learning; the draws are our own.
    """

    ice_num: int = 1
    seed: int = 43

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.seed, int) or isinstance(self.seed, bool):
            raise TaskError(f"seed is {shown(self.seed)}", "give a whole number")

    def _bound(self, index: IndexSet) -> BoundRetriever:
        self._check_enough(self.ice_num, index)
        return BoundRetriever(self, index.rows, partial(_drawn, self.seed, len(index.rows)), self.ice_num)


@dataclass(frozen=True)
class SlidingWindowRetriever(Retriever):
    """Returns the ``k`` rows before the sample's position in the test set, in their order.

    With fewer than ``k`` rows before it, the window begins at the end of the index set: position 1 of rows 0 to 9 with
    ``k=3`` has 8, 9, 0. A row that is the sample itself is skipped, and the window reaches one row further back.

    Source: OpenCompass, In-context Learning.
    """

    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count("k", self.k)

    def _bound(self, index: IndexSet) -> BoundRetriever:
        self._check_enough(self.k, index, "k")
        count = len(index.rows)
        if index.test_count and self.k:
            _check_window(index.test_count - 1, count)
        return BoundRetriever(self, index.rows, partial(_backwards, count), self.k, best_last=True)


def _check_id(number: int, count: int, name: str) -> None:
    """Raise a TaskError for an id outside an index set of ``count`` rows."""
    if not 0 <= number < count:
        known = f"has the ids 0 to {count - 1}" if count else "is empty"
        raise TaskError(f"{name} holds {number}, and the index set {known}", "give ids of the index set")


def join_examples(examples: Sequence[Example], retriever: Retriever, dialogue: bool) -> str | PromptList:
    """Return rendered examples as one: dialogues in a row, or strings joined and closed by the retriever's texts.

    Without examples it is ``""``, or an empty PromptList for a dialogue. A string among dialogue examples becomes a
    loose text.
    """
    if dialogue:
        joined = PromptList()
        for example in examples:
            joined += example
        return joined
    texts = [example for example in examples if isinstance(example, str)]
    if len(texts) < len(examples):
        raise TemplateError("a text template has a dialogue among its examples", "give all examples one form")
    return retriever.ice_separator.join(texts) + retriever.ice_eos_token if texts else ""


def _nothing(_sample: Sample, _position: int) -> Iterable[int]:
    return ()


def _drawn(seed: int, count: int, sample: Sample, _position: int) -> Iterator[int]:
    name = sample.row if sample.id is None else sample.id
    key = json.dumps([seed, name], default=str).encode("ascii")
    moved: dict[int, int] = {}
    for draw in range(count):
        word = int.from_bytes(hashlib.sha256(b"%b#%d" % (key, draw)).digest(), "big")
        place = draw + word % (count - draw)
        picked = moved.get(place, place)
        moved[place] = moved.get(draw, draw)
        yield picked


def _backwards(count: int, _sample: Sample, position: int) -> Iterator[int]:
    _check_window(position, count)
    yield from range(position - 1, -1, -1)
    yield from range(count - 1, position - 1, -1)


def _check_window(position: int, count: int) -> None:
    if not 0 <= position <= count:
        what = f"the window before test position {position} leaves the index set, whose ids are 0 to {count - 1}"
        raise TaskError(what, "give an index set as long as the test set, or use another retriever")


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TaskError(f"{name} is {shown(value)}", "give a whole number, 0 or more")
