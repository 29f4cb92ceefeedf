"""Video-MME: ``videoID`` names a file ``videoID.mp4``; ``options`` begin with their letters, the answer is one."""

from __future__ import annotations

from mmprompt.datasets.layouts.layout import Layout, beside, choice_list, has, text_of, with_columns
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError


def _read(sample: Sample) -> Sample:
    choices = choice_list(sample, "options")
    if choices is None:
        raise RowError("the row has no options", "give a list of choices", code="MM006").located(column="options")
    video = beside(sample, f"{text_of(sample, 'videoID')}.mp4", "data", "video", "videos")
    return with_columns(sample, {"video": video, "question": text_of(sample, "question"), "options": choices})


LAYOUT = Layout("videomme", ("videoID", "question", "options"), has("videoID", "question", "options"), _read)
