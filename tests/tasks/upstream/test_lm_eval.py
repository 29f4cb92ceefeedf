"""Task YAML of lm-eval and lmms-eval as tasks; the expected prompts are those of lm-eval 0.4.13."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from mmprompt import TaskError, load_task
from mmprompt.errors import MMPromptError, RowError
from mmprompt.messages import MediaRef, Message

FIXTURES = Path(__file__).parents[3] / "fixtures" / "upstream_yaml"
ROWS = {"rows": [{"question": "1+1", "answer": "2"}]}


def plain(messages: Any) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def prompts(folder: Path, yaml: str, rows: Any, **more: Any) -> list[Any]:
    path = folder / "task.yaml"
    path.write_text(yaml, encoding="utf-8")
    return [made for _, made in load_task(path, {"rows": rows, **more}).messages()]


def refused(folder: Path, yaml: str, rows: Any = None) -> TaskError:
    path = folder / "task.yaml"
    path.write_text(yaml, encoding="utf-8")
    with pytest.raises(TaskError) as caught:
        load_task(path, rows)
    return caught.value


QUESTION = """
doc_to_text: "Q: {{question}}\\nA:"
doc_to_target: answer
"""


def test_a_prompt_is_the_description_the_examples_and_the_question(tmp_path: Path) -> None:
    yaml = (
        QUESTION
        + """
description: "About {{topic}}."
num_fewshot: 2
fewshot_split: dev
fewshot_config: {sampler: first_n}
"""
    )
    rows = [{"question": "1+1", "answer": "2", "topic": "sums"}]
    train = [{"question": f"{n}+0", "answer": n, "topic": "x"} for n in range(3)]
    assert plain(prompts(tmp_path, yaml, rows, train_rows=train)[0]) == [
        ("system", "About sums."),
        ("user", "Q: 0+0\nA:"),
        ("assistant", "0"),
        ("user", "Q: 1+0\nA:"),
        ("assistant", "1"),
        ("user", "Q: 1+1\nA:"),
    ]


def test_the_examples_may_stand_in_the_task_and_have_templates_of_their_own(tmp_path: Path) -> None:
    yaml = (
        QUESTION
        + """
num_fewshot: 1
fewshot_config:
  sampler: first_n
  doc_to_text: "Example: {{question}}"
  doc_to_target: ""
  samples: [{question: "2+2", answer: "4"}]
"""
    )
    assert plain(prompts(tmp_path, yaml, ROWS["rows"])[0]) == [
        ("user", "Example: 2+2"),
        ("user", "Q: 1+1\nA:"),
    ]


def test_of_several_right_answers_an_example_shows_the_first_and_the_row_keeps_all(tmp_path: Path) -> None:
    yaml = QUESTION + "num_fewshot: 1\nfewshot_split: dev\nfewshot_config: {sampler: first_n}\n"
    path = tmp_path / "task.yaml"
    path.write_text(yaml)
    row = {"question": "1+1", "answer": ["2", "two"]}
    (request,) = load_task(path, {"rows": [row], "train_rows": [row]}).requests()
    assert [message["content"] for message in request["messages"]] == ["Q: 1+1\nA:", "2", "Q: 1+1\nA:"]
    assert request.answers == ("2", "two")


@pytest.mark.parametrize(
    ("choice", "target", "answer"),
    [
        ("choices", "label", "no"),
        ("[yes it is, 'no']", "1", "no"),
        ("{a: yes it is, b: 'no'}", "'{{label}}'", "no"),
        ("'{{[choices[0], choices[1]]}}'", "'{{choices[label]}}'", "no"),
        ("choices", "'{{[0, label]}}'", ["yes it is", "no"]),
    ],
)
def test_the_choices_of_each_row_are_compared_and_an_index_names_the_right_one(
    choice: str, target: str, answer: object, tmp_path: Path
) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(
        f"doc_to_text: question\noutput_type: multiple_choice\ndoc_to_choice: {choice}\ndoc_to_target: {target}\n"
    )
    task = load_task(path, {"rows": [{"question": "Red?", "choices": ["yes it is", "no"], "label": 1}]})
    ((_, made),) = task.messages()
    assert {label: plain(messages) for label, messages in made.items()} == {  # type: ignore[union-attr]  # by label
        "yes it is": [("user", "Red?"), ("assistant", "yes it is")],
        "no": [("user", "Red?"), ("assistant", "no")],
    }
    first = next(iter(task.requests()))
    assert first.choices == ("yes it is", "no")
    assert first.answers == (tuple(answer) if isinstance(answer, list) else (answer,))


def test_rows_may_have_different_numbers_of_choices(tmp_path: Path) -> None:
    yaml = "doc_to_text: q\noutput_type: multiple_choice\ndoc_to_choice: choices\ndoc_to_target: label"
    rows = [{"q": "1", "choices": ["a", "b"], "label": 0}, {"q": "2", "choices": ["c", "d", "e"], "label": 0}]
    assert [list(made) for made in prompts(tmp_path, yaml, rows)] == [["a", "b"], ["c", "d", "e"]]


def test_what_the_answer_begins_with_is_the_last_message_and_stands_before_each_choice(tmp_path: Path) -> None:
    yaml = QUESTION + "gen_prefix: 'The answer is'\n"
    assert plain(prompts(tmp_path, yaml, ROWS["rows"])[0])[1:] == [("assistant", "The answer is")]
    yaml += "output_type: multiple_choice\ndoc_to_choice: ['2', '3']\n"
    assert plain(prompts(tmp_path, yaml, ROWS["rows"])[0]["2"])[1:] == [("assistant", "The answer is 2")]


def test_media_stand_at_their_marks_or_before_a_text_without_marks(tmp_path: Path) -> None:
    def parts(yaml: str, row: dict[str, object]) -> list[object]:
        ((message,),) = prompts(tmp_path, yaml + "\ndoc_to_target: a", [{**row, "a": "x"}])
        assert isinstance(message, Message)
        return [part.source if isinstance(part, MediaRef) else part.text for part in message.parts]

    two = {"first": "1.png", "second": "2.png", "q": "Which?"}
    assert parts("doc_to_image: [first, second]\ndoc_to_text: '<image> or <image>: {{q}}'", two) == [
        "1.png", " or ", "2.png", ": Which?",
    ]  # fmt: skip
    assert parts("doc_to_visual: first\ndoc_to_text: q", two) == ["1.png", "Which?"]
    assert parts("doc_to_audio: s\ndoc_to_text: q", {"s": ["a.wav", None], "q": "Who?"}) == ["a.wav", "Who?"]
    with pytest.raises(RowError, match="1 image has no mark <image> in the text"):
        parts("doc_to_image: [first, second]\ndoc_to_text: '<image>{{q}}'", two)


def test_an_included_file_is_laid_under_this_one(tmp_path: Path) -> None:
    (tmp_path / "_base").write_text(
        "doc_to_text: 'base {{question}}'\ndoc_to_target: answer\nprocess_docs: !function u.f\n"
    )
    made = prompts(tmp_path, "include: _base\nprocess_docs: null\ndoc_to_text: 'own {{question}}'\n", ROWS["rows"])
    assert plain(made[0]) == [("user", "own 1+1")]
    error = refused(tmp_path, "include: _base\n", ROWS)
    assert (error.where.file, error.where.line) == (str(tmp_path / "_base"), 3)


def test_a_file_outside_the_folder_is_included_only_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "_base").write_text(QUESTION)
    (tmp_path / "own").mkdir()
    assert f"pass --media-root {tmp_path}" in refused(tmp_path / "own", "include: ../_base\n", ROWS).hint


@pytest.mark.parametrize(
    ("yaml", "says", "line"),
    [
        (QUESTION + "process_docs: !function utils.f", "process_docs is the Python function 'utils.f'", 4),
        ("doc_to_target: a\ndoc_to_text: !function utils.f", "doc_to_text is the Python function 'utils.f'", 2),
        (QUESTION + "fewshot_config: {samples: !function u.f}\nnum_fewshot: 1", "fewshot_config.samples is the", 4),
        (QUESTION + "use_prompt: 'promptsource:*'", "use_prompt is not supported", 4),
        (QUESTION + "doc_to_txt: x", "unknown key 'doc_to_txt' in a task of lm-eval; did you mean 'doc_to_text'", 4),
        (QUESTION + "output_type: loglikelihood", "output_type loglikelihood scores a text", 4),
        (QUESTION + "output_type: multiple_choice", "multiple_choice without doc_to_choice", 4),
        ("group: g\ntask: [a, b]", "the file is a group of 2 tasks (a, b); give the file of one of them", 2),
        ("doc_to_text: '{{ x | regex_replace(1) }}'", "No filter named 'regex_replace'", 1),
        (QUESTION + "num_fewshot: 2\nfewshot_config: {sampler: balanced}", "fewshot_config.sampler is 'balanced'", 5),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name_and_line(yaml: str, says: str, line: int, tmp_path: Path) -> None:
    error = refused(tmp_path, yaml, ROWS)
    assert says in str(error)
    assert error.hint
    assert (error.where.file, error.where.line) == (str(tmp_path / "task.yaml"), line)


def test_a_function_that_only_scores_is_noted_with_the_other_keys_that_no_prompt_uses(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(QUESTION + "process_results: !function u.f\nmetric_list: [{metric: acc}]\n")
    (note,) = load_task(tmp_path / "task.yaml", ROWS).notes()
    assert note == "these keys do not change the prompts and are not used: process_results, metric_list"


def test_a_function_in_a_task_of_our_own_stays_an_error(tmp_path: Path) -> None:
    assert "leave the tag out" in refused(tmp_path, "dataset: rows.jsonl\ninfer_cfg: !function u.f\n").hint


@pytest.mark.parametrize(
    ("yaml", "row", "says"),
    [
        (QUESTION, {"questoin": "x", "answer": "y"}, "doc_to_text: the Jinja text fails: 'question' is undefined"),
        ("doc_to_text: question", {"questoin": "x"}, "doc_to_text: no column 'question'; did you mean 'questoin'?"),
        (QUESTION, {"question": None, "answer": "y"}, "it prints a null value"),
        ("doc_to_text: '{{ q * 10**9 }}'", {"q": "x"}, "it would make more than"),
        (
            "doc_to_text: q\ndoc_to_choice: c\noutput_type: multiple_choice",
            {"q": "a", "c": "b"},
            "doc_to_choice gives 'b'",
        ),
        (
            "doc_to_text: q\ndoc_to_choice: [a, b]\ndoc_to_target: 2",
            {"q": "a"},
            "doc_to_target is 2, and the row has 2 choices",
        ),
        (
            "doc_to_text: q\ndoc_to_choice: [a, a]\noutput_type: multiple_choice",
            {"q": "x"},
            "the label 'a' is listed twice",
        ),
        ("doc_to_text: '{{n}}'\ndoc_to_choice: [a, b]", {"n": 1}, "each choice is a question of its own"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error_of_the_row(
    yaml: str, row: dict[str, object], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(yaml)
    errors: list[MMPromptError] = []
    task = load_task(path, {"rows": [row, row]})
    assert list(task.messages(on_error=errors.append)) == []
    assert [says in str(error) for error in errors] == [True, True], errors
    assert errors[1].where.line == 2


def test_rows_keep_their_columns_although_another_format_has_the_same(tmp_path: Path) -> None:
    rows = [{"input": "I", "question": "Q", "target": "T"}]  # inspect-ai's names
    yaml = "doc_to_text: '{{input}} {{question}}'\ndoc_to_target: target"
    assert plain(prompts(tmp_path, yaml, rows)[0]) == [("user", "I Q")]


def test_the_variable_choices_is_the_column(tmp_path: Path) -> None:
    assert plain(prompts(tmp_path, "doc_to_text: '{{choices[1]}}'", [{"choices": ["a", "b"]}])[0]) == [("user", "b")]


def test_generation_settings_become_settings_of_the_request(tmp_path: Path) -> None:
    def body(yaml: str) -> dict[str, Any]:
        (tmp_path / "task.yaml").write_text(QUESTION + yaml)
        body: dict[str, Any] = json.loads(next(iter(load_task(tmp_path / "task.yaml", ROWS).requests())).body("m"))
        return {key: value for key, value in body.items() if key not in ("messages", "model")}

    given = "generation_kwargs: {until: ['x', ''], max_gen_toks: 5, temperature: 0.5, do_sample: true}"
    assert body(given) == {"temperature": 0.5, "max_tokens": 5, "stop": ["x"]}
    assert body("") == {"temperature": 0, "stop": ["\n\n"]}  # lm-eval's defaults


def test_rows_on_a_hub_are_asked_for_and_a_folder_has_the_splits_of_the_task(tmp_path: Path) -> None:
    yaml = QUESTION + "dataset_path: owner/sums\ntest_split: test\nfewshot_split: train\nnum_fewshot: 1\n"
    error = refused(tmp_path, yaml)
    assert "the task's rows lie in dataset 'owner/sums'" in str(error)
    assert "--dataset FILE --train FILE" in error.hint
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "test.jsonl").write_text('{"question": "1+1", "answer": "2"}\n')
    (folder / "train.jsonl").write_text('{"question": "3+3", "answer": "6"}\n')
    task = load_task(tmp_path / "task.yaml", str(folder))
    ((_, messages),) = task.messages()
    assert [text for _, text in plain(messages)] == ["Q: 3+3\nA:", "6", "Q: 1+1\nA:"]
    assert "drawn for each row by its id" in task.notes()[0]


def test_the_fixture_of_choices_takes_the_keys_of_the_file_it_includes() -> None:
    ((_, made),) = load_task(FIXTURES / "choices.yaml").messages()
    assert {label: plain(messages)[-1] for label, messages in made.items()} == {  # type: ignore[union-attr]  # by label
        "Lyon": ("assistant", "Lyon"),
        "Paris": ("assistant", "Paris"),
    }


def test_the_fixture_of_pictures_sends_them() -> None:
    rows = FIXTURES.parent / "tour" / "tour_columns.jsonl"
    errors: list[MMPromptError] = []
    first, *_ = load_task(FIXTURES / "pictures.yaml", str(rows)).requests(on_error=errors.append)
    assert [(m.modality, m.origin) for m in first.media] == [("image", "media/coffee.jpg")]
    assert first.answers == ("wood",)
    assert {error.what for error in errors} == {"doc_to_image: no column 'image'"}


@pytest.mark.parametrize("name", ["capitals.yaml", "choices.yaml"])
def test_a_task_can_be_pickled(name: str) -> None:
    task = load_task(FIXTURES / name)
    made = list(pickle.loads(pickle.dumps(task)).messages())
    assert made == list(task.messages())
    assert made


def test_examples_of_the_split_that_is_asked_are_other_rows_of_it(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(QUESTION + "test_split: test\nfewshot_split: test\nnum_fewshot: 1\n")
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"question": "{n}", "answer": "{n}"}}\n' for n in range(2)))
    made = [messages for _, messages in load_task(tmp_path / "task.yaml", str(tmp_path / "rows.jsonl")).messages()]
    assert [[text for _, text in plain(messages)] for messages in made] == [
        ["Q: 1\nA:", "1", "Q: 0\nA:"],
        ["Q: 0\nA:", "0", "Q: 1\nA:"],
    ]


def test_files_of_another_split_are_not_taken_for_the_rows(tmp_path: Path) -> None:
    yaml = QUESTION + "test_split: test\ndataset_path: json\ndataset_kwargs: {data_files: {train: t.jsonl}}\n"
    assert "data_files names no file on this machine for the split test" in str(refused(tmp_path, yaml))
    assert plain(prompts(tmp_path, yaml, ROWS["rows"])[0]) == [("user", "Q: 1+1\nA:")]


@pytest.mark.parametrize(("files", "path"), [("rows.jsonl", "json"), ("{test: [rows.jsonl]}", "json"), ("", "rows")])
def test_rows_in_files_begin_at_the_task(files: str, path: str, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    for file in (tmp_path / "rows.jsonl", folder / "test.jsonl"):
        file.write_text('{"question": "5+5", "answer": "10"}\n')
    kwargs = f"dataset_kwargs: {{data_files: {files}}}\n" if files else ""
    (tmp_path / "task.yaml").write_text(f"{QUESTION}test_split: test\ndataset_path: {path}\n{kwargs}")
    ((_, messages),) = load_task(tmp_path / "task.yaml").messages()
    assert plain(messages) == [("user", "Q: 5+5\nA:")]
