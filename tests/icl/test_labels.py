"""``PPLInferencer`` with ``labels_column``: each row lists the labels that are compared."""

from __future__ import annotations

import pytest

from mmprompt import TaskError, load_task
from mmprompt.errors import TemplateError

TASK = {
    "infer_cfg": {
        "prompt_template": {
            "template": {"round": [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "It is {answer}."}]}
        },
        "inferencer": {"type": "PPLInferencer", "labels_column": "names"},
    }
}


def made(row: dict[str, object]) -> dict[object, list[str]]:
    ((_, by_label),) = load_task(TASK, {"rows": [row]}).messages()
    return {label: [m.text for m in messages] for label, messages in by_label.items()}  # type: ignore[union-attr]


def test_each_label_of_a_row_reads_as_its_answer() -> None:
    assert made({"q": "Who?", "names": ["Ann", 2], "answer": "Ann"}) == {
        "Ann": ["Who?", "It is Ann."],
        "2": ["Who?", "It is 2."],
    }


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "the row has no list of labels"),
        ("Ann", "the row has no list of labels"),
        (["1", 1], "the label '1' is listed twice"),
    ],
)
def test_a_row_without_different_labels_is_an_error_that_names_the_column(names: object, says: str) -> None:
    with pytest.raises(TemplateError, match=says) as caught:
        made({"q": "Who?", "names": names, "answer": "Ann"})
    assert caught.value.where.column == "names"


def test_labels_and_their_column_are_not_needed_both() -> None:
    infer = {**TASK["infer_cfg"], "inferencer": {"type": "PPLInferencer"}}
    with pytest.raises(TaskError, match="give the inferencer 'labels' or 'labels_column'"):
        load_task({"infer_cfg": infer}, {"rows": [{"q": "Who?"}]})
