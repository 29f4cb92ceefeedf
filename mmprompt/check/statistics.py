"""What a dataset is like, in numbers: rows, texts, answers, and the sizes, formats and lengths of its media."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

from mmprompt.check.store import Store
from mmprompt.targets.limits import target_names
from mmprompt.targets.media_tokens import MEDIA_TOKENS

_BINS = 12
_WIDE = 50.0
"""Values that differ by a greater factor are binned by their logarithms."""

_SHOWN_ANSWERS = 10
_LONGEST = 60


class Bin(NamedTuple):
    """Values from ``low`` to below ``high``; of the last bin ``high`` is among them."""

    low: float
    high: float
    values: int


class Distribution(NamedTuple):
    """Numbers of one kind, such as the bytes of pictures. ``unit`` is what they count."""

    name: str
    unit: str
    values: int
    least: float
    median: float
    most: float
    total: float
    bins: tuple[Bin, ...]


class TokenCount(NamedTuple):
    """The tokens that a target counts for the media of a dataset, by modality.

    ``models`` are those whose published formula it is. ``uncounted`` is the number of media without a formula, or
    of an unknown size.
    """

    models: str
    media: dict[str, int]
    uncounted: int


class Statistics(NamedTuple):
    """A dataset in numbers. ``answers`` are the most frequent ones, as JSON texts in short; ``formats`` media types.

    ``tokens`` are by target; None where they depend on the model.
    """

    rows: int
    media: dict[str, int]
    distinct_media: dict[str, int]
    formats: dict[str, int]
    answers: dict[str, int]
    distinct_answers: int
    distributions: tuple[Distribution, ...]
    tokens: dict[str, TokenCount | None]

    @property
    def data(self) -> dict[str, object]:
        """The numbers as JSON has them."""
        distributions = [
            {**each._asdict(), "bins": [one._asdict() for one in each.bins]} for each in self.distributions
        ]
        tokens = {name: None if count is None else count._asdict() for name, count in self.tokens.items()}
        return {**self._asdict(), "distributions": distributions, "tokens": tokens}


_VALUES = {
    ("length of the question", "characters"): "SELECT length AS value FROM samples WHERE length IS NOT NULL",
    ("media of a row", "media"): "SELECT COUNT(media.row) AS value FROM samples LEFT JOIN media USING (row)"
    " GROUP BY samples.row HAVING EXISTS (SELECT 1 FROM media)",
    ("size of an image", "bytes"): "SELECT size AS value FROM media WHERE modality = 'image' AND size > 0",
    ("width of an image", "pixels"): "SELECT width AS value FROM media WHERE modality = 'image' AND width IS NOT NULL",
    (
        "height of an image",
        "pixels",
    ): "SELECT height AS value FROM media WHERE modality = 'image' AND height IS NOT NULL",
    ("size of a sound", "bytes"): "SELECT size AS value FROM media WHERE modality = 'audio' AND size > 0",
    ("length of a sound", "seconds"): "SELECT seconds AS value FROM media"
    " WHERE modality = 'audio' AND seconds IS NOT NULL",
    ("size of a video", "bytes"): "SELECT size AS value FROM media WHERE modality = 'video' AND size > 0",
    ("length of a video", "seconds"): "SELECT seconds AS value FROM media"
    " WHERE modality = 'video' AND seconds IS NOT NULL",
}
"""Where the store has the values of each distribution, by its name and unit."""


def statistics_of(store: Store) -> Statistics:
    """Return the numbers of the rows that a store has."""
    answers: dict[str, int] = {}
    grouped = "SELECT answer, COUNT(*) FROM samples WHERE answer IS NOT NULL GROUP BY answer ORDER BY 2 DESC, 1 LIMIT ?"
    for answer, count in store.query(grouped, _SHOWN_ANSWERS):
        name = _in_short(answer)
        answers[name] = answers.get(name, 0) + count
    distinct = "SELECT modality, COUNT(DISTINCT digest) FROM media WHERE size > 0 GROUP BY modality"
    of_type = "SELECT media_type, COUNT(*) FROM media WHERE media_type IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
    return Statistics(
        store.progress.rows,
        dict(store.query("SELECT modality, COUNT(*) FROM media GROUP BY modality ORDER BY modality")),
        dict(store.query(distinct)),
        dict(store.query(of_type)),
        answers,
        next(store.query("SELECT COUNT(DISTINCT answer) FROM samples"))[0],
        tuple(_distributions(store)),
        {target: _token_count(store, target) for target in target_names()},
    )


def _token_count(store: Store, target: str) -> TokenCount | None:
    formulas = MEDIA_TOKENS.get(target)
    if formulas is None:
        return None
    media: dict[str, int] = {}
    uncounted = 0
    alike = "SELECT modality, width, height, seconds, COUNT(*) FROM media GROUP BY 1, 2, 3, 4 ORDER BY 1"
    for modality, width, height, seconds, count in store.query(alike):
        tokens = formulas.of(modality, width, height, seconds)
        if tokens is None:
            uncounted += count
        else:
            media[modality] = media.get(modality, 0) + tokens * count
    return TokenCount(formulas.models, media, uncounted)


def _distributions(store: Store) -> Iterator[Distribution]:
    for (name, unit), values in _VALUES.items():
        ends = f"SELECT COUNT(*), MIN(value), MAX(value), SUM(value) FROM ({values})"  # noqa: S608  # no part is data
        count, least, most, total = next(store.query(ends))
        if not count:
            continue
        middle = f"SELECT value FROM ({values}) ORDER BY value LIMIT 1 OFFSET ?"  # noqa: S608  # no part is data
        median = next(store.query(middle, (count - 1) // 2))[0]
        bins = _bins((value for (value,) in store.query(values)), least, most)
        yield Distribution(name, unit, count, least, median, most, total, bins)


def _bins(values: Iterator[float], least: float, most: float) -> tuple[Bin, ...]:
    if least == most:
        return (Bin(least, most, sum(1 for _ in values)),)
    wide = least > 0 and most / least > _WIDE
    scale, back = (math.log, math.exp) if wide else (float, float)
    low, high = scale(least), scale(most)
    step = (high - low) / _BINS
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int((scale(value) - low) / step))] += 1
    edges = [least, *[back(low + step * number) for number in range(1, _BINS)], most]
    return tuple([Bin(edges[number], edges[number + 1], count) for number, count in enumerate(counts)])


def _in_short(answer: str) -> str:
    """Return an answer, which is JSON, as people read it."""
    value = json.loads(answer)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
