"""Task files: YAML, TOML, JSON and Python say the same; a fault is one line with its place."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mmprompt import MMPromptError, load_task
from mmprompt.cli import main
from mmprompt.tasks.files import is_task_file

YAML = """\
dataset: {path: data.jsonl}
reader_cfg:
  input_columns: [question, 问题]
  output_column: answer
infer_cfg:
  prompt_template:
    type: MMPromptTemplate
    template:
      begin:
        - {role: SYSTEM, fallback_role: HUMAN, prompt: 看图回答。}
      round:
        - role: HUMAN
          prompt_mm:
            text: {type: text, text: "Q: {question}\\n{问题}"}
            image: {type: image_url, image_url: {url: "file://{image}", detail: low}}
        - {role: BOT, prompt: "{answer}"}
  inferencer: {type: GenInferencer, max_out_len: 64}
"""
TOML = """\
[dataset]
path = "data.jsonl"
[reader_cfg]
input_columns = ["question", "问题"]
output_column = "answer"
[infer_cfg.prompt_template]
type = "MMPromptTemplate"
[[infer_cfg.prompt_template.template.begin]]
role = "SYSTEM"
fallback_role = "HUMAN"
prompt = "看图回答。"
[[infer_cfg.prompt_template.template.round]]
role = "HUMAN"
[infer_cfg.prompt_template.template.round.prompt_mm]
text = { type = "text", text = "Q: {question}\\n{问题}" }
image = { type = "image_url", image_url = { url = "file://{image}", detail = "low" } }
[[infer_cfg.prompt_template.template.round]]
role = "BOT"
prompt = "{answer}"
[infer_cfg.inferencer]
type = "GenInferencer"
max_out_len = 64
"""
PYTHON = """\
from mmprompt import MMPromptTemplate

text = {"type": "text", "text": "Q: {question}\\n{问题}"}
image = {"type": "image_url", "image_url": {"url": "file://{image}", "detail": "low"}}
dataset = dict(path="data.jsonl")
reader_cfg = dict(input_columns="question 问题", output_column="answer")
infer_cfg = dict(
    prompt_template=dict(
        type=MMPromptTemplate,
        template=dict(
            begin=[dict(role="SYSTEM", fallback_role="HUMAN", prompt="看图回答。")],
            round=[dict(role="HUMAN", prompt_mm=dict(text=text, image=image)), dict(role="BOT", prompt="{answer}")],
        ),
    ),
    inferencer=dict(type="GenInferencer", max_out_len=64),
)
"""
TEXT = {"type": "text", "text": "Q: {question}\n{问题}"}
IMAGE = {"type": "image_url", "image_url": {"url": "file://{image}", "detail": "low"}}
MAPPING: dict[str, Any] = {
    "dataset": {"path": "data.jsonl"},
    "reader_cfg": {"input_columns": ["question", "问题"], "output_column": "answer"},
    "infer_cfg": {
        "prompt_template": {
            "type": "MMPromptTemplate",
            "template": {
                "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "看图回答。"}],
                "round": [
                    {"role": "HUMAN", "prompt_mm": {"text": TEXT, "image": IMAGE}},
                    {"role": "BOT", "prompt": "{answer}"},
                ],
            },
        },
        "inferencer": {"type": "GenInferencer", "max_out_len": 64},
    },
}
FILES = {
    "task.yaml": YAML,
    "task.yml": "\ufeff" + YAML,
    "task.toml": TOML,
    "task.py": PYTHON,
    "task.json": json.dumps(MAPPING),
}
TAGGED = "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>这是什么？<AIS_CONTENT_TAG>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    row = {"id": 7, "question": TAGGED, "问题": "{question}", "answer": "杯子"}
    (tmp_path / "data.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_file_gives_the_same_prompts(name: str, folder: Path) -> None:
    (folder / name).write_text(FILES[name], encoding="utf-8")
    task = load_task(folder / name)
    assert list(task.prompts()) == [
        (
            7,
            [
                {"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "看图回答。"},
                {
                    "role": "HUMAN",
                    "prompt": [
                        {"type": "image_url", "image_url": {"url": "a.jpg", "detail": "low"}},
                        {"type": "text", "text": "Q: 这是什么？\n{question}"},
                    ],
                },
                {"role": "BOT", "prompt": ""},
            ],
        )
    ]
    same = load_task({**MAPPING, "dataset": {"path": str(folder / "data.jsonl")}})
    assert list(task.messages()) == list(same.messages())


def test_paths_in_a_task_file_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "task.yaml").write_text("dataset: data.jsonl\nmedia: {roots: [pictures]}\n")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    task = load_task("../task.yaml")
    assert [id_ for id_, _ in task.messages()] == [7]
    assert [Path(root).resolve() for root in task.media["roots"]] == [folder.resolve() / "pictures"]


def message_of(path: Path) -> str:
    with pytest.raises(MMPromptError) as error:
        load_task(path)
    text = str(error.value)
    assert "\n" not in text
    assert error.value.hint
    return text


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("task.yaml", "dataset: data.jsonl\nreader_cfg: [\n", "task.yaml:3"),
        ("task.yaml", "a: 1\nb: !!python/object/apply:os.system ['exit 1']\n", "task.yaml:2"),
        ("task.yaml", "!!python/object:subprocess.Popen {}\n", "task.yaml:1"),
        ("task.yaml", "- 1\n- 2\n", "holds a list; give rows as JSON or CSV; for a task write a mapping of dataset"),
        ("task.yaml", "dataset: d.jsonl\nmodel: {a: &x [*x]}\n", "task.yaml:2: malformed YAML at column 12: found un"),
        ("task.yaml", "media: &x\n  roots: *x\n", "write the value out: it holds itself"),
        ("task.yaml", "", "holds nothing; write a mapping of dataset, reader_cfg"),
        ("task.yaml", "a: [1\nb: 2\n", "task.yaml:2: malformed YAML at column 2: expected ',' or ']', but got ':'"),
        ("task.yaml", "a: [1\nb: 2\n", "that begins at line 1, column 4; close it"),
        ("task.yaml", "a: b: c\n", "task.yaml:1: malformed YAML at column 5: mapping values are not allowed here; put"),
        ("task.yaml", "a:\n\t- b\n", "task.yaml:2: malformed YAML at column 1: found character '\\t'"),
        ("task.yaml", "a:\n\t- b\n", "indent with blanks"),
        ("task.yaml", "a: 1\ntext: {question} is\n", "task.yaml:2: malformed YAML at column 18: "),
        ("task.yaml", "a: 1\ntext: {question} is\n", "put the whole text in quotes: it begins with a quote or a brace"),
        ("task.yaml", "a: 1\nb: {question}\n", "task.yaml:2: malformed YAML at column 4: {question} without quotes is"),
        ("task.yaml", "a: {type: text, text: {question}}\n", 'a mapping; write "{question}"'),
        ("task.yaml", "a: 1\nb: @x\n", "task.yaml:2: malformed YAML at column 4: found character '@'"),
        ("task.yaml", "a: 1\nb: *x\n", "task.yaml:2: malformed YAML at column 4: found undefined alias 'x'"),
        ("task.yaml", "a: 1\nb: 2026-13-45\n", "task.yaml:2: malformed YAML at column 4: month must be in 1..12"),
        ("task.yaml", "a: 1\nb: \x01\n", "task.yaml:2: malformed YAML at column 4: special characters are not allowed"),
        ("task.yaml", "a: 1\nb: 2\na: 3\n", "task.yaml:3: the key 'a' is given again, after line 1; keep one"),
        ("task.yaml", "a:\n  Yes: 1\n", "task.yaml:2: YAML reads the unquoted label Yes as true; put"),
        ("task.toml", "a = 1\nb = \n", "task.toml:2: malformed TOML at column 5: Invalid value; correct"),
        ("task.toml", "a = [1", "task.toml: malformed TOML: Unclosed array (at end of document); correct"),
        ("task.json", '{"dataset":' + "[" * 100_000, "nested too deeply"),
        ("task.yaml", "a: " + "[" * 3000, "nested too deeply"),
        ("task.json", '{"dataset": ' + "9" * 5000 + "}", "task.json: a number that Python refuses to read"),
        ("task.json", '{"infer_cfg": {"a": 1, "b": 2, "a": 3}}', "task.json: the key 'a' is given twice in one object"),
        ("task.json", '{"dataset": "x",\n "a": }', "task.json:2: malformed JSON at column 7: Expecting value; correct"),
        ("task.py", "x = 1\nraise ValueError('no luck')\n", "task.py:2: malformed: ValueError: no luck"),
        ("task.py", "def f():\n    return 1 / 0\n\nf()\n", "task.py:2: malformed: ZeroDivisionError"),
        ("task.py", "import nowhere_at_all\n", "task.py:1: the file imports 'nowhere_at_all', which is not installed"),
        ("task.py", "x = (\n", "task.py:1"),
        ("task.py", "import sys\nsys.exit(0)\n", "task.py:2: malformed: SystemExit"),
        ("task.py", "datasett = dict(path='x')\n", "did you mean 'dataset'?"),
        ("task.py", "x_cfg = dict(reader_cfg={}, infer_cfg={})\n", "sets no variable of a task"),
        ("task.ini", "x", "unknown suffix '.ini'"),
    ],
)
def test_a_fault_is_one_line_with_its_place(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert words in message_of(tmp_path / name)


def test_a_fault_in_a_module_that_a_python_task_imports_is_told_at_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_part_of_task.py").write_text("\n\n\n\nx = (\n")
    (tmp_path / "task.py").write_text("a = 1\nimport faulty_part_of_task\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "task.py:2" in message_of(tmp_path / "task.py")


@pytest.mark.parametrize("each_has", [(5, 5), (600, 100)])
def test_mappings_that_merge_others_are_read(each_has: tuple[int, int], tmp_path: Path) -> None:
    with pytest.raises(MMPromptError, match="unknown key 'b'"):
        load_task(merging(tmp_path, *each_has))


def test_a_mapping_that_is_merged_too_often_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MMPromptError, match=r"merges \(<<\) give more than 262144 keys; merge fewer mappings"):
        load_task(merging(tmp_path, 600, 600))


def merging(folder: Path, keys: int, times: int) -> Path:
    """Write a task of a mapping of so many keys, and so many that merge it."""
    path = folder / "task.yaml"
    own = ", ".join(f"k{number}: 1" for number in range(keys))
    path.write_text("\n".join([f"b: &b {{{own}}}", *(f"m{number}: {{<<: *b}}" for number in range(times))]))
    return path


def test_mappings_that_merge_each_other_end_soon(tmp_path: Path) -> None:
    """PyYAML doubles the keys with each line before 6.0.4, and from then on merges a key once."""
    merged = [f"b{n}: &b{n} {{<<: [*b{n - 1}, *b{n - 1}]}}" for n in range(1, 40)]
    path = tmp_path / "task.yaml"
    path.write_text("\n".join(["b0: &b0 {x: 1}", *merged]))
    with pytest.raises(MMPromptError, match=r"unknown key 'b0'|give more than 262144 keys"):
        load_task(path)


def test_no_tag_of_yaml_runs_code(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(f"dataset: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n")
    message_of(tmp_path / "task.yaml")
    assert not (tmp_path / "made").exists()


def test_a_file_that_is_missing_or_no_utf8_is_told(tmp_path: Path) -> None:
    for name in ("task.yaml", "task.toml", "task.json", "task.py"):
        assert "no such file" in message_of(tmp_path / name).lower()
    (tmp_path / "task.yaml").write_bytes(b"dataset: \xff\n")
    assert "not UTF-8 at byte 9" in message_of(tmp_path / "task.yaml")


def test_a_python_task_that_raises_is_one_line_on_the_command_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "task.py"
    task.write_text("x = 1\n\nraise RuntimeError('first\\nsecond')\n")
    assert main(["render", str(task)]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"{task}:3" in err
    assert "RuntimeError: first" in err


def test_a_python_task_may_hold_rows_and_functions(tmp_path: Path) -> None:
    task = tmp_path / "task.py"
    task.write_text(
        "def rows():\n    for n in range(3):\n        yield {'id': n, 'q': n * n}\n\n"
        "dataset = {'rows': rows()}\ninfer_cfg = {'prompt_template': {'template': 'n is {q}'}}\n"
    )
    before = dict(sys.modules)
    assert list(load_task(task).prompts()) == [(0, "n is 0"), (1, "n is 1"), (2, "n is 4")]
    assert sys.modules["__main__"] is before["__main__"]


def test_an_unknown_key_in_a_file_comes_with_the_nearest_known(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text("dataset: {rows: []}\ninfer_cgf: {}\n")
    assert "did you mean 'infer_cfg'?" in message_of(tmp_path / "task.yaml")


def test_a_json_task_with_a_fault_is_a_task_all_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "task.json").write_text('{"dataset": "data.jsonl",\n "infer_cfg": {}}}')
    assert main(["render", str(tmp_path / "task.json")]) == 2
    assert "task.json:2: MM602 malformed JSON at column 18: Extra data" in capfd.readouterr().err


def test_a_key_of_a_merged_mapping_may_be_given_again(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        "dataset: {rows: []}\nmodel:\n  generation:\n    all: &all {top_p: 1, seed: 1}\n    mine: {<<: *all, seed: 2}\n"
    )
    assert load_task(tmp_path / "task.yaml").config.generation["mine"] == {"top_p": 1, "seed": 2}


def test_a_large_dataset_is_not_read_whole_to_see_that_it_is_no_task(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"question": "What?"}\n' * 900_000)
    tracemalloc.start()
    try:
        assert not is_task_file(str(path))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["max_out_len", "max_seq_len"])
@pytest.mark.parametrize(("value", "shown"), [("'64'", "64"), ("0", "0"), ("true", "True"), ("1.5", "1.5")])
def test_a_length_that_is_no_number_is_told(name: str, value: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        f"infer_cfg: {{prompt_template: {{template: x}}, inferencer: {{type: GenInferencer, {name}: {value}}}}}\n"
    )
    assert f"infer_cfg.inferencer: {name} is '{shown}'; give a whole number" in message_of(tmp_path / "task.yaml")


def test_a_missing_dataset_is_told_as_missing_with_the_nearest_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text('{"question": "q"}\n', encoding="utf-8")
    with pytest.raises(MMPromptError, match=r"no such file: 'row.jsonl'; did you mean 'rows.jsonl'\?$"):
        load_task("row.jsonl")


def test_the_config_of_another_tool_is_no_task_and_the_error_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("description: d\nprompts: ['{{q}}']\nproviders: [x]\ntests: [{vars: {q: 1}}]\n")
    with pytest.raises(MMPromptError) as caught:
        load_task(path)
    assert caught.value.what == "unknown key 'description' in the task"
    known = "known: dataset, eval_cfg, infer_cfg, media, model, reader_cfg"
    assert caught.value.hint == f"{known}; run mmprompt init DATASET to write a task"
