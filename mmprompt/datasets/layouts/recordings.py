"""Benchmarks of videos and of sounds: Video-MME, MVBench, AIR-Bench and AudioBench."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase

from mmprompt.datasets.layouts.layout import Layout, beside, has, required_choices, text_of, with_columns
from mmprompt.datasets.media_columns import modality_of
from mmprompt.datasets.sample import Sample, column_error
from mmprompt.errors import shown
from mmprompt.targets.exact_json import Remark


def _videomme(sample: Sample) -> Sample:
    """``videoID`` names a file ``videoID.mp4``; ``options`` begin with their letters, the answer is one."""
    choices = required_choices(sample, "options")
    video = beside(sample, f"{text_of(sample, 'videoID')}.mp4", "data", "video", "videos")
    return with_columns(sample, {"video": video, "question": text_of(sample, "question"), "options": choices})


_OF_VIDEOMME = ("videoID", "question", "options")
VIDEOMME = Layout("videomme", _OF_VIDEOMME, has(*_OF_VIDEOMME), _videomme)

_CLIPPED = Remark(
    "clip", "start", "the row names a part of its video (start, end), and the whole video is sent", "MM606"
)


def _mvbench(sample: Sample) -> Sample:
    """``video``, ``question``, ``candidates``, and as ``answer`` the text of one of them."""
    choices = required_choices(sample, "candidates")
    new = {"video": text_of(sample, "video"), "question": text_of(sample, "question"), "candidates": choices}
    changed = with_columns(sample, new)
    clipped = any(sample.columns.get(name) is not None for name in ("start", "end"))
    return changed._replace(remarks=(*sample.remarks, _CLIPPED)) if clipped else changed


_OF_MVBENCH = ("video", "question", "candidates")
MVBENCH = Layout("mvbench", _OF_MVBENCH, has(*_OF_MVBENCH, "answer"), _mvbench)

_LETTERED = tuple([f"choice_{letter}" for letter in ascii_lowercase[:4]])


def _air_bench(sample: Sample) -> Sample:
    """``path`` lies in the folder ``TASK_DATASET``; ``choice_a`` …, ``answer_gt`` and ``uniq_id``."""
    columns = sample.columns
    task, name = text_of(sample, "task_name"), text_of(sample, "path")
    if task == "Audio_Grounding" and name.endswith(".wav"):  # published as FLAC, under the names of the WAV files
        name = f"{name[:-4]}.flac"
    choices = [columns.get(column) for column in _LETTERED]
    while choices and choices[-1] in (None, ""):
        choices.pop()
    for column, choice in zip(_LETTERED, choices, strict=False):
        if choice in (None, ""):
            what = f"'{column}' is empty, and a later choice is not"
            raise column_error(column, what, "give it a text", "MM714")
    new = {
        "audio": f"{task}_{text_of(sample, 'dataset_name')}/{name}",
        "question": text_of(sample, "question"),
        "options": choices or None,
        "answer": columns["answer_gt"],
    }
    changed = with_columns(sample, new, drop=("answer_gt", *_LETTERED))
    return changed._replace(id=columns.get("uniq_id", sample.id))


_OF_AIR_BENCH = ("path", "question", "task_name", "dataset_name", "answer_gt")
AIR_BENCH = Layout("air-bench", _OF_AIR_BENCH, has(*_OF_AIR_BENCH), _air_bench)


def _audiobench(sample: Sample) -> Sample:
    """``context`` holds the sound, ``instruction`` the question, ``answer`` its text."""
    columns = sample.columns
    context = columns["context"]
    sound = context.get("audio") if isinstance(context, Mapping) and "audio" in context else context
    if modality_of(sound) != "audio":
        raise column_error("context", "the context holds no sound", "give an audio feature", "MM715")
    question = _text(columns["instruction"], "instruction")
    if columns.get("choices"):
        question = f"{question}\n{_text(columns['choices'], 'choices')}"
    new = {"audio": sound, "question": question, "answer": _text(columns["answer"], "answer")}
    return with_columns(sample, new, drop=("context", "choices"), renamed=("instruction",))


def _text(value: object, column: str) -> str:
    """Return a text, or the ``text`` of a struct of text and sound."""
    text = value.get("text") if isinstance(value, Mapping) else value
    if not isinstance(text, str) or not text:
        raise column_error(column, f"column '{column}' holds no text: {shown(text)}", "give a text", "MM007")
    return text


_OF_AUDIOBENCH = ("context", "instruction", "answer")


def _is_audiobench(columns: Mapping[str, object]) -> bool:
    return columns.keys() >= {*_OF_AUDIOBENCH} and isinstance(columns["context"], Mapping)


AUDIOBENCH = Layout("audiobench", _OF_AUDIOBENCH, _is_audiobench, _audiobench)
