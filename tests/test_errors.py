"""An error's place is a value, and its text names the place in a fixed order."""

from __future__ import annotations

import pytest

from mmprompt.errors import PolicyError, TargetError, TaskError, Where, expect, shown


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (Where(), ""),
        (Where("a.jsonl", 3), "a.jsonl:3"),
        (Where(message=2), "message 2"),
        (Where(message=2, part=3), "message 2, part 3"),
        (Where("a.jsonl", 3, sample="q", message=2, part=3), "a.jsonl:3 (sample q): message 2, part 3"),
        (Where("a.jsonl", 3, "image", sample="q", message=2, part=3), "a.jsonl:3 image (sample q)"),
    ],
)
def test_the_text_of_a_place(where: Where, text: str) -> None:
    assert str(where) == text
    assert str(TargetError("too large", where=where)) == (f"{text}: too large" if text else "too large")


def test_a_known_number_keeps_its_value() -> None:
    error = TargetError("too large", "shrink it").located(part=3).located(message=2, part=9)
    assert error.where == Where(message=2, part=3)
    assert str(error) == "message 2, part 3: too large; shrink it"


def test_an_argument_of_the_wrong_type_is_named_with_its_type() -> None:
    expect("a", str, "the name", "give text")
    expect([], (list, tuple), "the names", "give a list", PolicyError)
    with pytest.raises(TaskError, match=r"^the name is int; give text$"):
        expect(3, str, "the name", "give text")
    with pytest.raises(PolicyError, match=r"^the names is None; give a list$"):
        expect(None, (list, tuple), "the names", "give a list", PolicyError)


def test_of_a_long_path_the_last_name_is_shown() -> None:
    path = "/data/" + "/".join(f"folder-{number:03}" for number in range(20)) + "/the-picture.jpg"
    quoted = shown(path)
    assert quoted.startswith("'/data/folder-000/")
    assert quoted.endswith(f"/the-picture.jpg' ({len(path)} characters)")
    assert len(quoted) == 80 + len("'…' (241 characters)")
    assert shown("x" * 81) == f"'{'x' * 80}…' (81 characters)"
