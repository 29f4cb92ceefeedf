"""The first Qwen-VL: ``conversations`` whose texts name pictures themselves, as ``<img>path</img>``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mmprompt.datasets.layouts.conversations import dialogue, turns_of
from mmprompt.datasets.layouts.layout import Layout
from mmprompt.datasets.placeholders import holds_mark
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError

_PICTURE = re.compile(r"<img>(.*?)</img>", re.DOTALL)


def _read(sample: Sample) -> Sample:
    turns = turns_of(sample, "conversations", "from", "value")
    pictures: list[object] = []
    marked = []
    for number, (role, text) in enumerate(turns, 1):
        if holds_mark(text):
            what = f"turn {number} holds a mark such as <image>, which qwen-vl does not have"
            raise RowError(what, "name the format: --format llava", code="MM107").located(column="conversations")
        found = _PICTURE.findall(text)
        if text.count("<img>") != len(found) or any(not path.strip() for path in found):
            what = f"turn {number} has an <img> without a path or without </img>"
            raise RowError(what, "write <img>path</img>", code="MM715").located(column="conversations")
        pictures += found
        marked.append((role, _PICTURE.sub("<image>", text)))
    return dialogue(sample, marked, {"image": pictures})


def _recognises(columns: Mapping[str, object]) -> bool:
    turns = columns.get("conversations")
    if not isinstance(turns, (list, tuple)) or "image" in columns or "images" in columns:
        return False
    return any(isinstance(t, Mapping) and "<img>" in str(t.get("value")) for t in turns)


LAYOUT = Layout("qwen-vl", ("conversations",), _recognises, _read)
