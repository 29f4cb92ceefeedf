"""Retrievers: which rows of the index set are the in-context examples of a test sample.

A retriever is configuration, immutable and small. ``bind`` gives it an index set once; the bound retriever then
answers sample by sample, in any order, so that test samples can stream.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mmprompt.errors import TaskError, TemplateError, shown
from mmprompt.icl.index_rows import IndexRow, is_same_sample
from mmprompt.templates.prompt_list import PromptList

Candidates = Callable[[IndexRow, int], Iterable[int]]
"""Gives the ids that may be picked for a sample and its position in the test set, the best first."""


class BoundRetriever:
    """A retriever over one index set; made by ``bind``.

    ``retriever`` is the retriever, ``index_rows`` the index set; ``always`` are the ids where every sample gets the
    same, its own included. Calls do not depend on each other.
    """

    def __init__(
        self,
        retriever: Retriever,
        index_rows: Sequence[IndexRow],
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

    def ids(self, sample: IndexRow, position: int | None = None) -> list[int]:
        """Return the ids of the examples of ``sample``, in the order in which they are shown.

        ``position`` is the 0-based place of the sample in the test set, by default its row number. There are fewer
        ids than asked for only where the index set holds no more rows besides the sample itself.

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

    def examples(self, sample: IndexRow, position: int | None = None) -> list[IndexRow]:
        """Return the rows of ``ids``."""
        return [self.index_rows[number] for number in self.ids(sample, position)]


@dataclass(frozen=True, kw_only=True)
class Retriever(ABC):
    """What all retrievers have: how many examples, and how string examples are joined and closed.

    Raises:
        TaskError: an argument of the wrong type or range.
    """

    ice_num: int = 1
    ice_separator: str = "\n"
    ice_eos_token: str = "\n"  # noqa: S105  # no password

    def __post_init__(self) -> None:
        _check_count("ice_num", self.ice_num)
        for name in ("ice_separator", "ice_eos_token"):
            if not isinstance(getattr(self, name), str):
                raise TaskError(f"{name} is {type(getattr(self, name)).__name__}", "give text")

    @abstractmethod
    def bind(
        self,
        index_rows: Sequence[IndexRow],
        *,
        test_count: int | None = None,
        input_columns: Iterable[str] = (),
        output_column: str | None = None,
        tagged_columns: Iterable[str] | None = None,
    ) -> BoundRetriever:
        """Return the retriever over an index set, kept by reference.

        Args:
            index_rows: the rows of the index set; an id is a place in it.
            test_count: how many test samples there are, if that is known: faults then show before the first sample.
            input_columns: the columns that are compared.
            output_column: the answer, never compared.
            tagged_columns: the columns that hold AIS tags, as in ``reader_cfg``.

        Raises:
            TaskError: ids outside the index set, more examples than it has rows, or nothing to compare.
            RowError: a row lacks a column that is compared.
            TagError: a tagged column that is compared cannot be parsed.
            TemplateError: a tagged column that is compared is null.
        """

    def _check_enough(self, count: int, index_rows: Sequence[IndexRow], name: str = "ice_num") -> None:
        if count > len(index_rows):
            what = f"{name}={count} asks for more examples than the index set has rows ({len(index_rows)})"
            raise TaskError(what, f"give a smaller {name}, or more rows in 'train'")


@dataclass(frozen=True)
class ZeroRetriever(Retriever):
    """No examples.

    Source: OpenCompass, In-context Learning.
    """

    def bind(self, index_rows: Sequence[IndexRow], **_: Any) -> BoundRetriever:
        """Return the retriever; the index set may be empty."""
        return BoundRetriever(self, index_rows, _nothing, 0, always=())


@dataclass(frozen=True)
class FixKRetriever(Retriever):
    """The same rows for every sample, as told: also where one of them is the sample itself.

    Source: OpenCompass, In-context Learning.
    """

    fix_id_list: tuple[int, ...] = ()

    def __init__(self, fix_id_list: Iterable[int], **options: Any) -> None:
        super().__init__(**options)
        ids = None if isinstance(fix_id_list, (str, bytes)) or not isinstance(fix_id_list, Iterable) else [*fix_id_list]
        if ids is None or not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            raise TaskError(f"fix_id_list is {shown(fix_id_list)}", "give a list of row numbers, from 0")
        object.__setattr__(self, "fix_id_list", tuple(ids))

    def bind(self, index_rows: Sequence[IndexRow], **_: Any) -> BoundRetriever:
        """Return the retriever over an index set.

        Raises:
            TaskError: an id outside the index set.
        """
        for number in self.fix_id_list:
            _check_id(number, len(index_rows), "fix_id_list")
        return BoundRetriever(self, index_rows, _nothing, 0, always=self.fix_id_list)


@dataclass(frozen=True)
class RandomRetriever(Retriever):
    """``ice_num`` rows drawn without replacement; the draw depends on ``seed`` and the sample's id alone.

    So it is the same in any order of the samples, process, Python version and resumed run. Draw number j (from 0) of n
    rows is place j + (SHA-256 of ``key + "#" + j``, read as a big-endian number, modulo n - j) of a list 0…n-1 in which
    the draws before swapped their place with theirs (Fisher and Yates); ``key`` is the JSON of ``[seed, id]``, where 1
    and "1" differ. A draw that is the sample itself is passed over.

    Source: OpenCompass, In-context Learning; the draws are our own.
    """

    ice_num: int = 1
    seed: int = 43

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.seed, int) or isinstance(self.seed, bool):
            raise TaskError(f"seed is {shown(self.seed)}", "give a whole number")

    def bind(self, index_rows: Sequence[IndexRow], **_: Any) -> BoundRetriever:
        """Return the retriever over an index set.

        Raises:
            TaskError: more examples than the index set has rows.
        """
        self._check_enough(self.ice_num, index_rows)
        return BoundRetriever(self, index_rows, partial(_drawn, self.seed, len(index_rows)), self.ice_num)


@dataclass(frozen=True)
class SlidingWindowRetriever(Retriever):
    """The ``k`` rows before the sample's position in the test set, in their order.

    Where there are fewer than ``k`` before it the window begins at the end of the index set: position 1 of rows 0 to 9
    with ``k=3`` has 8, 9, 0. A row that is the sample itself is passed over, and the window reaches further back.

    Source: OpenCompass, In-context Learning.
    """

    k: int = 1

    def __init__(self, k: int, **options: Any) -> None:
        super().__init__(**options)
        _check_count("k", k)
        object.__setattr__(self, "k", k)

    def bind(self, index_rows: Sequence[IndexRow], *, test_count: int | None = None, **_: Any) -> BoundRetriever:
        """Return the retriever over an index set.

        Raises:
            TaskError: ``k`` is larger than the index set, or the test set reaches beyond it.
        """
        self._check_enough(self.k, index_rows, "k")
        if test_count and self.k:
            _check_window(test_count - 1, len(index_rows))
        return BoundRetriever(self, index_rows, partial(_backwards, len(index_rows)), self.k, best_last=True)


def _check_id(number: int, count: int, name: str) -> None:
    """Refuse an id outside an index set of ``count`` rows.

    Raises:
        TaskError: naming the range.
    """
    if not 0 <= number < count:
        known = f"0 to {count - 1}" if count else "none: it is empty"
        raise TaskError(f"{name} holds {number}; the ids of the index set are {known}", "give ids of that range")


def join_examples(examples: Sequence[str | list[Any]], retriever: Retriever, dialogue: bool) -> str | PromptList:
    """Return rendered examples as one: strings joined and closed by the retriever's texts, dialogues put in a row.

    Without examples it is ``""``, or an empty PromptList for a dialogue. A string among dialogue examples is a loose
    text of its own.

    Raises:
        TemplateError: a dialogue example where strings were to be joined.
    """
    if dialogue:
        joined = PromptList()
        for example in examples:
            joined += example
        return joined
    texts = [example for example in examples if isinstance(example, str)]
    if len(texts) < len(examples):
        raise TemplateError("a dialogue among the in-context examples of a text template", "make all of one form")
    return retriever.ice_separator.join(texts) + retriever.ice_eos_token if texts else ""


def _nothing(_sample: IndexRow, _position: int) -> Iterable[int]:
    return ()


def _drawn(seed: int, count: int, sample: IndexRow, _position: int) -> Iterator[int]:
    name = sample.row if sample.id is None else sample.id
    key = json.dumps([seed, name], default=str).encode("ascii")
    moved: dict[int, int] = {}
    for draw in range(count):
        word = int.from_bytes(hashlib.sha256(b"%b#%d" % (key, draw)).digest(), "big")
        place = draw + word % (count - draw)
        picked = moved.get(place, place)
        moved[place] = moved.get(draw, draw)
        yield picked


def _backwards(count: int, _sample: IndexRow, position: int) -> Iterator[int]:
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
