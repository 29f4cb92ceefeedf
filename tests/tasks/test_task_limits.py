"""Task files from strangers: size, depth and numbers are bounded, and every fault is a TaskError."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from time_taken import processor_seconds

from mmprompt import TaskError, load_task
from mmprompt.cli import main
from mmprompt.tasks.files import is_task_file

DIGITS = "9" * 5000


def test_a_repeated_key_among_many_is_found_in_one_pass(tmp_path: Path) -> None:
    """Looking for it key by key took 81 s for 80,000 keys."""
    path = tmp_path / "data.json"
    keys = ",".join(f'"{number}":0' for number in range(80_000))
    path.write_text(f'{{{keys},"79999":0}}')
    assert processor_seconds(lambda: is_task_file(str(path)), enough=1) < 2

    def load() -> None:
        with pytest.raises(TaskError, match="the key '79999' is given twice"):
            load_task(path, [])

    assert processor_seconds(load, enough=1) < 2


def test_a_json_task_with_a_repeated_key_is_a_task(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    path.write_text(f'{{"media": {{}}, {" " * 5000} "media": {{}}, "dataset": {{"path": "rows.jsonl"}}}}')
    assert is_task_file(str(path))
    with pytest.raises(TaskError, match="the key 'media' is given twice in one object"):
        load_task(path)


@pytest.mark.parametrize("name", ["task.yaml", "task.toml", "task.json"])
def test_a_task_file_of_data_has_at_most_one_mebibyte(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for size in (1 << 20, (1 << 20) + 1):
        text = {"task.yaml": "media: {fit: true}\n#", "task.toml": "[media]\nfit = true\n#"}.get(name, '{"media":{}}')
        path.write_text(text + (" " if name == "task.json" else "-") * (size - len(text)))
        if size == 1 << 20:
            load_task(path, {"rows": []})
    with pytest.raises(TaskError, match="at most 1 MiB"):
        load_task(path, {"rows": []})


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 40_000) + " = 1",
        f"[{'.'.join('a' * 40_000)}]",
        "x = {y = 1, " + ' . "" . '.join("a" * 20_000) + " = 1}",
        'x = {y = """"q""", ' + ".".join("a" * 40_000) + ' = "z"}',
        "x = ''''q''\n''' # '\n" + ".".join(["''"] * 40_000) + " = 1",
    ],
)
def test_a_key_of_toml_has_at_most_a_hundred_dots(text: str, tmp_path: Path) -> None:
    """The parser took 6.1 GiB for 40,000 of them."""
    path = tmp_path / "task.toml"
    path.write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(TaskError, match="more than 100 dots"):
            load_task(path)
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


def test_dots_in_strings_comments_and_lists_of_toml_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    dots = "a." * 200
    numbers = ", ".join(["1.5"] * 200)
    path.write_text(
        f"# {dots}\nmodel.media_placeholder.image = '{dots}'\n[model.generation]\nstops = [{numbers}]\n"
        f'user = """{dots}"\n{dots}"""\nname = "{dots}\\"{dots}"\nmore = \'\'\'{dots}\n\'{dots}\'\'\'\n'
    )
    assert load_task(path, {"rows": []}).config.media_placeholder == {"image": dots}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("task.yaml", f"media: {{timeout: {DIGITS}}}"),
        ("task.yaml", f"media: {{timeout: 0x{DIGITS}}}"),
        ("task.yaml", "media: {timeout: " + ":".join(["1"] * 500) + ".5}"),
        ("task.yaml", "media: {timeout: " + ":".join(["1"] * 200_000) + "}"),
        ("task.yaml", f"reader_cfg: {{test_range: {DIGITS[:30]}}}"),
        ("task.yaml", f"media: &again {{max_bytes: {DIGITS[:400]}}}\nmodel: {{generation: *again}}"),
        ("task.yaml", "model: {generation: {temperature: .nan}}"),
        ("task.toml", "model.generation.temperature = -inf"),
        ("task.toml", f"media.max_bytes = {DIGITS}"),
        ("task.toml", f"media.timeout = 0x{DIGITS}"),
        ("task.toml", f"media.timeout = {DIGITS[:400]}"),
        ("task.json", f'{{"media": {{"max_bytes": {DIGITS}}}}}'),
        ("task.json", f'{{"media": {{"times": [{DIGITS[:400]}]}}}}'),
    ],
)
def test_a_number_beyond_measure_is_a_fault_of_the_task(
    name: str, text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)

    def load() -> None:
        with pytest.raises(TaskError):
            load_task(path, {"rows": [{"question": "?"}]})

    assert processor_seconds(load, enough=1) < 2
    (tmp_path / "rows.jsonl").write_text('{"question": "?"}\n')
    if name != "task.json":
        assert main(["render", str(path), "--dataset", str(tmp_path / "rows.jsonl")]) == 2
        assert capfd.readouterr().err.startswith(f"mmprompt: {path}")


def test_parts_that_repeat_each_other_are_not_followed_without_end(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    lines = ["model: {generation: {a0: &a0 [1, 1]}}"]
    path.write_text("\n".join([*lines, *[f"b{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]]))

    def load() -> None:
        with pytest.raises(TaskError, match="the aliases of the YAML stand for more than 4 MiB"):
            load_task(path)

    assert processor_seconds(load, enough=1) < 2


BOMB = "- &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
"""A list of a thousand million values, in nine lines."""

TEXT = f"- &a0 {'x' * 100_000}\n- [{', '.join(['*a0'] * 100)}]\n"
"""A hundred texts of a hundred thousand characters, in two lines."""

KEYS = f"- &a0 {{{'x' * 1_000}: 1}}\n- [{', '.join(['*a0'] * 10_000)}]\n"


@pytest.mark.parametrize("bomb", [BOMB, TEXT, KEYS], ids=["values", "text", "keys"])
@pytest.mark.parametrize(
    "before",
    [
        "dataset:\n  rows:\n  - question:\n    ",
        "model:\n  generation:\n    x:\n    ",
        "infer_cfg:\n  prompt_template:\n    template:\n    ",
        "doc_to_text: x\nmetadata:\n    ",
    ],
)
def test_aliases_that_stand_for_too_much_are_refused(before: str, bomb: str, tmp_path: Path) -> None:
    """Rows of such a list were written as text without end, and a template of it took a minute and 1.7 GB."""
    path = tmp_path / "task.yaml"
    path.write_text(before + bomb.replace("\n", "\n    "))

    def load() -> None:
        with pytest.raises(TaskError, match="the aliases of the YAML stand for more than 4 MiB; write fewer of them"):
            load_task(path, [])

    assert processor_seconds(load, enough=1) < 3


def test_aliases_that_stand_for_less_are_read(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    rows = "  - {question: &a0 " + "x" * 100_000 + "}\n" + "  - {question: *a0}\n" * 39
    path.write_text(f"dataset:\n  rows:\n{rows}")
    assert len(list(load_task(path).messages())) == 40
