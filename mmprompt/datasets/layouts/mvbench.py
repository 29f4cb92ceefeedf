"""MVBench: ``video``, ``question``, ``candidates``, and as ``answer`` the text of one of them."""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, choice_list, has, text_of, with_columns
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError
from mmprompt.targets.exact_json import Remark

_CLIPPED = Remark(
    "clip", "start", "the row names a part of its video (start, end), and the whole video is sent", "MM606"
)


def _read(sample: Sample) -> Sample:
    choices = choice_list(sample, "candidates")
    if choices is None:
        raise RowError("the row has no candidates", "give a list of choices", code="MM006").located(column="candidates")
    new = {"video": text_of(sample, "video"), "question": text_of(sample, "question"), "candidates": choices}
    changed = with_columns(sample, new)
    clipped = any(sample.columns.get(name) is not None for name in ("start", "end"))
    return changed._replace(remarks=(*sample.remarks, _CLIPPED)) if clipped else changed


LAYOUT = Layout("mvbench", ("video", "question", "candidates"), has("video", "question", "candidates", "answer"), _read)
