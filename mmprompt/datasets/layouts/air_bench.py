"""AIR-Bench: ``path`` lies in the folder ``TASK_DATASET``; ``choice_a`` …, ``answer_gt`` and ``uniq_id``."""

from __future__ import annotations

from string import ascii_lowercase

from mmprompt.datasets.layouts.layout import Layout, has, text_of, with_columns
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError

_GROUNDING = "Audio_Grounding"


def _read(sample: Sample) -> Sample:
    columns = sample.columns
    task, name = text_of(sample, "task_name"), text_of(sample, "path")
    if task == _GROUNDING and name.endswith(".wav"):  # published as FLAC, under the names of the WAV files
        name = f"{name[:-4]}.flac"
    choices = [columns.get(f"choice_{letter}") for letter in ascii_lowercase[:4]]
    while choices and choices[-1] in (None, ""):
        choices.pop()
    if None in choices or "" in choices:
        column = f"choice_{ascii_lowercase[min(choices.index(c) for c in (None, '') if c in choices)]}"
        raise RowError(f"'{column}' is empty, and a later choice is not", "give it a text", code="MM714").located(
            column=column
        )
    new = {
        "audio": f"{task}_{text_of(sample, 'dataset_name')}/{name}",
        "question": text_of(sample, "question"),
        "options": choices or None,
        "answer": columns["answer_gt"],
    }
    drop = ("answer_gt", *(f"choice_{letter}" for letter in ascii_lowercase[:4]))
    changed = with_columns(sample, new, drop=drop)
    return changed._replace(id=columns.get("uniq_id", sample.id))


_NAMES = ("path", "question", "task_name", "dataset_name", "answer_gt")
LAYOUT = Layout("air-bench", _NAMES, has(*_NAMES), _read)
