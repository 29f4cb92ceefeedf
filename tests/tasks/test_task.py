"""Tasks: what a mapping says, compiled, and the prompts, strings and messages it gives."""

from __future__ import annotations

import base64
import copy
import itertools
import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mmprompt import (
    DatasetError,
    MediaPart,
    MediaRef,
    Message,
    MMPromptError,
    MMPromptTemplate,
    PromptList,
    PromptTemplate,
    RowError,
    TaskError,
    TemplateError,
    TextPart,
    dataset_task,
    load_task,
)
from mmprompt.render.renderer import Renderer

ROWS = [{"id": 1, "q": "1+1=?", "answer": "2"}, {"id": "b", "q": "2+2=?", "answer": "4"}]
DIALOGUE = {"round": [{"role": "HUMAN", "prompt": "Q: {q}"}, {"role": "BOT", "prompt": "A: {answer}"}]}
META = {
    "round": [
        {"role": "HUMAN", "begin": "<H>", "end": "\n"},
        {"role": "BOT", "begin": "<B>", "end": "\n", "generate": True},
    ]
}


def task_of(template: Any = "{q} {answer}", rows: Any = ROWS, **sections: Any) -> Any:
    infer = {"prompt_template": {"type": "PromptTemplate", "template": template}}
    return load_task({"dataset": {"rows": rows}, "infer_cfg": infer, **sections})


# ---- the three forms


def test_prompts_stand_before_the_meta_template_strings_and_messages_after_it() -> None:
    task = task_of(DIALOGUE, reader_cfg={"output_column": "answer"}, model={"meta_template": META})
    assert list(task.prompts()) == [
        (1, [{"role": "HUMAN", "prompt": "Q: 1+1=?"}, {"role": "BOT", "prompt": "A: "}]),
        ("b", [{"role": "HUMAN", "prompt": "Q: 2+2=?"}, {"role": "BOT", "prompt": "A: "}]),
    ]
    assert all(isinstance(prompt, PromptList) for _, prompt in task.prompts())
    assert list(task.strings()) == [(1, "<H>Q: 1+1=?\n<B>"), ("b", "<H>Q: 2+2=?\n<B>")]
    assert [[(m.role, m.text) for m in messages] for _, messages in task.messages()] == [
        [("user", "<H>Q: 1+1=?\n")],
        [("user", "<H>Q: 2+2=?\n")],
    ]


def test_labels_give_a_dict_in_each_form() -> None:
    template = {"yes": {"round": [{"role": "HUMAN", "prompt": "{q} yes"}]}, "no": "{q} no"}
    infer = {"prompt_template": {"template": template}, "inferencer": {"type": "PPLInferencer"}}
    task = load_task({"dataset": {"rows": ROWS[:1]}, "infer_cfg": infer})
    assert list(task.prompts()) == [(1, {"yes": [{"role": "HUMAN", "prompt": "1+1=? yes"}], "no": "1+1=? no"})]
    assert list(task.strings()) == [(1, {"yes": "1+1=? yes", "no": "1+1=? no"})]
    ((_, messages),) = task.messages()
    assert messages == {"yes": [Message("user", "1+1=? yes")], "no": [Message("user", "1+1=? no")]}
    assert task.mode == "ppl"


@pytest.mark.parametrize("labels", [{1: "one", "1": "text"}, {True: "yes", "True": "text"}])
def test_labels_that_read_alike_are_refused(labels: dict[object, str]) -> None:
    infer = {"prompt_template": {"template": labels}, "inferencer": {"type": "PPLInferencer"}}
    with pytest.raises(TaskError, match="several labels have the same text: "):
        load_task({"dataset": {"rows": [{"q": "x"}]}, "infer_cfg": infer})


def test_labels_need_the_ppl_inferencer_and_it_needs_labels() -> None:
    with pytest.raises(TaskError, match="GenInferencer cannot use a template of labels"):
        task_of({"A": "a", "B": "b"})
    with pytest.raises(TaskError, match="PPLInferencer needs labels"):
        load_task({"infer_cfg": {"prompt_template": {"template": "x"}, "inferencer": {"type": "PPLInferencer"}}})


def test_the_output_column_reads_as_nothing_when_generating() -> None:
    assert [p for _, p in task_of(reader_cfg={"output_column": "answer"}).prompts()] == ["1+1=? ", "2+2=? "]


def test_the_column_answer_is_masked_unless_the_task_says_that_it_has_no_output_column() -> None:
    assert [p for _, p in task_of().prompts()] == ["1+1=? ", "2+2=? "]
    assert [p for _, p in task_of(reader_cfg={"output_column": None}).prompts()] == ["1+1=? 2", "2+2=? 4"]


def test_label_prompts_keep_the_output_column() -> None:
    infer = {"prompt_template": {"template": {"A": "{q} {answer}"}}, "inferencer": "PPLInferencer"}
    task = load_task({"dataset": {"rows": ROWS}, "reader_cfg": {"output_column": "answer"}, "infer_cfg": infer})
    assert next(task.prompts()) == (1, {"A": "1+1=? 2"})


def test_an_ice_template_alone_is_the_prompt_template_too() -> None:
    task = load_task({"dataset": {"rows": ROWS}, "infer_cfg": {"ice_template": {"template": "Q {q}"}}})
    assert [p for _, p in task.prompts()] == ["Q 1+1=?", "Q 2+2=?"]


def test_a_template_object_serves_as_well_as_its_config() -> None:
    infer = {"prompt_template": PromptTemplate("Q {q}")}
    assert [p for _, p in load_task({"dataset": {"rows": ROWS}, "infer_cfg": infer}).prompts()] == [
        "Q 1+1=?",
        "Q 2+2=?",
    ]


def test_types_go_by_class_name_or_path() -> None:
    for named in (PromptTemplate, "PromptTemplate", "opencompass.openicl.icl_prompt_template.PromptTemplate"):
        task = load_task(
            {"dataset": {"rows": ROWS}, "infer_cfg": {"prompt_template": {"type": named, "template": "{q}"}}}
        )
        assert next(task.prompts()) == (1, "1+1=?")


def test_without_infer_cfg_a_row_gives_the_default_message() -> None:
    task = load_task({"dataset": {"rows": [{"image": "a.jpg", "question": "What?"}]}})
    ref, text = MediaRef("image", "a.jpg"), TextPart("What?")
    assert list(task.messages()) == [(0, [Message("user", [ref, text])])]
    assert list(task.prompts()) == [
        (
            0,
            [
                {
                    "role": "HUMAN",
                    "prompt": [
                        {"type": "image_url", "image_url": {"url": "a.jpg"}},
                        {"type": "text", "text": "What?"},
                    ],
                }
            ],
        )
    ]


# ---- tagged columns


TAGGED = "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What?<AIS_CONTENT_TAG>"
MM = {
    "type": "MMPromptTemplate",
    "template": {
        "round": [
            {
                "role": "HUMAN",
                "prompt_mm": {
                    "text": {"type": "text", "text": "Q: {q}"},
                    "image": {"type": "image_url", "image_url": {"url": "file://{image}"}},
                },
            }
        ]
    },
}


def messages_of(reader: dict[str, Any], value: str = TAGGED) -> list[Message]:
    task = load_task({"dataset": {"rows": [{"q": value}]}, "reader_cfg": reader, "infer_cfg": {"prompt_template": MM}})
    _, messages = next(task.messages())
    return messages


def test_a_value_that_begins_with_a_tag_is_tagged_where_the_key_is_absent() -> None:
    (message,) = messages_of({})
    assert [type(p).__name__ for p in message.parts] == ["MediaRef", "TextPart"]
    assert message.parts[0].source == "a.jpg"  # type: ignore[union-attr]


def test_tagged_columns_names_the_scanned_columns_and_no_other_is() -> None:
    assert len(messages_of({"tagged_columns": ["q"]}, "first " + TAGGED)[0].parts) == 3
    (message,) = messages_of({"tagged_columns": ["other"]})
    assert message.parts == (TextPart("Q: " + TAGGED),)


# ---- input_columns


@pytest.mark.parametrize("columns", [["q", "answer"], "q answer", " q  answer ", ("q",), "q", [], ""])
def test_input_columns_are_a_list_or_names_between_blanks(columns: Any) -> None:
    assert len(list(task_of(reader_cfg={"input_columns": columns}).prompts())) == 2


def test_input_columns_do_not_restrict_slots() -> None:
    cfg = {"input_columns": ["q"], "output_column": None}
    assert next(task_of(reader_cfg=cfg).prompts()) == (1, "1+1=? 2")


def test_a_listed_column_that_a_row_lacks_is_an_error_of_the_row() -> None:
    rows = [{"id": 1, "question": "x"}, {"id": 2, "question": "x", "context": "y"}]
    task = task_of("{question}", rows, reader_cfg={"input_columns": "question contxt context"})
    errors: list[MMPromptError] = []
    assert list(task.prompts(on_error=errors.append)) == []
    task = task_of("{question}", rows, reader_cfg={"input_columns": "question context"})
    assert list(task.prompts(on_error=errors.append)) == [(2, "x")]
    assert [type(e) for e in errors] == [RowError] * 3
    assert "no column 'contxt'" in str(errors[1])
    assert "did you mean 'context'?" in str(errors[1])
    assert "no column 'context'" in str(errors[2])
    assert (errors[2].where.line, errors[2].where.sample) == (1, "1")


@pytest.mark.parametrize("lacking", ["question", "image", "audio", "video"])
def test_a_listed_column_may_be_a_kind_of_segments_of_content(lacking: str) -> None:
    """AISBench's own configs list what a tagged ``content`` may hold, which differs from row to row."""
    rows = [{"id": 1, "content": "<AIS_TEXT_START>q"}, {"id": 2, "text": "q"}]
    errors: list[MMPromptError] = []
    task = task_of("Q", rows, reader_cfg={"input_columns": [lacking]})
    assert [name for name, _ in task.prompts(on_error=errors.append)] == [1]
    assert [e.what for e in errors] == [f"no column '{lacking}', which input_columns lists"]
    task = task_of("Q", rows[:1], reader_cfg={"input_columns": ["content", "label"]})
    assert list(task.prompts(on_error=errors.append)) == []


# ---- errors of rows


def test_a_row_error_ends_the_iteration_or_goes_to_on_error() -> None:
    rows: list[Any] = [{"q": "a"}, 5, {1: "x"}, {"q": "b"}]
    task = task_of("{q}", rows)
    given = task.prompts()
    assert next(given) == (0, "a")
    with pytest.raises(RowError, match="a row must be a mapping"):
        next(given)
    errors: list[MMPromptError] = []
    assert list(task.prompts(on_error=errors.append)) == [(0, "a"), (3, "b")]
    assert [e.where.line for e in errors] == [2, 3]


def test_a_file_s_row_error_names_file_line_and_sample(tmp_path: Any) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"id": "x", "content": null}\n')
    with pytest.raises(TemplateError) as error:
        list(load_task({"dataset": str(data)}).messages())
    assert str(error.value).startswith(f"{data}:1 content (sample x): ")


# ---- laziness


def endless() -> Iterator[dict[str, object]]:
    for number in itertools.count():
        yield {"id": number, "q": f"{number} " + "x" * 1000, "answer": "a"}


@pytest.mark.parametrize("form", ["prompts", "strings", "messages"])
def test_endless_rows_are_taken_one_by_one(form: str) -> None:
    taken = 0

    def counted() -> Iterator[dict[str, object]]:
        nonlocal taken
        for row in endless():
            taken += 1
            yield row

    given = getattr(task_of(DIALOGUE, counted(), model={"meta_template": META}), form)()
    assert taken == 0
    assert [id_ for id_, _ in itertools.islice(given, 3)] == [0, 1, 2]
    assert taken <= 4


@pytest.mark.slow
@pytest.mark.parametrize("form", ["prompts", "strings", "messages"])
def test_memory_does_not_grow_with_the_rows(form: str) -> None:
    given = getattr(task_of(DIALOGUE, endless(), model={"meta_template": META}), form)()
    tracemalloc.start()
    try:
        for _ in itertools.islice(given, 2500):  # the interpreter keeps up to 2,000 freed tuples
            pass
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in itertools.islice(given, 2500):
            pass
        grown = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert grown < 50_000  # 2,500 rows hold 2.5 MB


def test_rows_of_a_list_can_be_read_again_and_those_of_an_iterator_say_so() -> None:
    task = task_of()
    assert list(task.prompts()) == list(task.prompts())
    task = task_of(rows=iter(ROWS))
    assert len(list(task.prompts())) == 2
    with pytest.raises(MMPromptError, match="only once"):
        list(task.prompts())


def test_nothing_of_the_callers_changes() -> None:
    rows = [{"q": ["a", {"b": 1}], "answer": "x"}]
    config = {
        "dataset": {"rows": rows},
        "reader_cfg": {"output_column": "answer"},
        "infer_cfg": {"prompt_template": {"template": DIALOGUE}},
        "model": {"meta_template": META},
    }
    before = repr(config)
    task = load_task(config)
    list(task.prompts()), list(task.strings()), list(task.messages())
    assert repr(config) == before


def test_a_task_does_not_follow_later_changes_of_its_config() -> None:
    config = copy.deepcopy(
        {
            "dataset": {"rows": ROWS},
            "infer_cfg": {"prompt_template": {"template": DIALOGUE}},
            "model": {"meta_template": META},
        }
    )
    task = load_task(config)
    before = list(task.strings())
    config["infer_cfg"]["prompt_template"]["template"]["round"][0]["prompt"] = "changed"  # type: ignore[index]
    config["model"]["meta_template"]["round"][0]["begin"] = "changed"  # type: ignore[index]
    assert list(task.strings()) == before


# ---- faults of the task


@pytest.mark.parametrize(
    ("config", "unknown", "near"),
    [
        ({"dataste": {}}, "dataste", "dataset"),
        ({"infer_config": {}}, "infer_config", "infer_cfg"),
        ({"dataset": {"rowz": []}}, "rowz", "rows"),
        ({"reader_cfg": {"input_column": "q"}}, "input_column", "input_columns"),
        ({"infer_cfg": {"prompt_tmplate": {}}}, "prompt_tmplate", "prompt_template"),
        ({"infer_cfg": {"prompt_template": {"type": "PromptTemplat", "template": "x"}}}, "PromptTemplat", "PromptTemplate"),
        ({"infer_cfg": {"prompt_template": {"template": "x", "ice_tokn": "y"}}}, "ice_tokn", "ice_token"),
        ({"infer_cfg": {"prompt_template": {"template": {"round": [{"rol": "HUMAN"}]}}}}, "rol", "role"),
        ({"infer_cfg": {"prompt_template": {"template": "x"}, "retriever": {"type": "ZeroRetriver"}}}, "ZeroRetriver", "ZeroRetriever"),
        ({"infer_cfg": {"prompt_template": {"template": "x"}, "inferencer": {"type": "GenInferncer"}}}, "GenInferncer", "GenInferencer"),
        ({"media": {"rots": []}}, "rots", "roots"),
        ({"model": {"meta_templat": {}}}, "meta_templat", "meta_template"),
        ({"model": {"meta_template": {"rond": []}}}, "rond", "round"),
        ({"eval_cfg": {"scorr": "exact"}}, "scorr", "scorer"),
    ],
)  # fmt: skip
def test_an_unknown_name_comes_with_the_nearest_known(config: Any, unknown: str, near: str) -> None:
    with pytest.raises(MMPromptError) as error:
        load_task(config)
    assert f"'{unknown}'" in str(error.value)
    assert f"did you mean '{near}'?" in str(error.value)


@pytest.mark.parametrize(
    "config",
    [
        {"dataset": 5},
        {"dataset": {}},
        {"dataset": {"path": 5}},
        {"dataset": {"rows": {"a": 1}}},
        {"dataset": {"rows": 5}},
        {"infer_cfg": 5},
        {"infer_cfg": {}},
        {"infer_cfg": {"prompt_template": ["x"]}},
        {"infer_cfg": {"prompt_template": {"type": "PromptTemplate"}}},
        {"infer_cfg": {"prompt_template": {"template": 5}}},
        {"reader_cfg": []},
        {"reader_cfg": {"input_columns": 5}},
        {"reader_cfg": {"input_columns": [5]}},
        {"reader_cfg": {"tagged_columns": {"a": None, 5: None}}},
        {"reader_cfg": {"output_column": ["answer"]}},
        {"model": 5},
        {"model": {"generation": {"stream": True}}},
        {"model": {"generation": {"messages": []}}},
        {"media": 5},
        {"media": {"roots": 5}},
        {"media": {"roots": [5]}},
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_with_a_mend(config: Any) -> None:
    if isinstance(config.get("reader_cfg"), list):
        config = {"reader_cfg": [1]}  # an empty one says nothing
    with pytest.raises(MMPromptError) as error:
        load_task(config)
    assert error.value.hint


def test_a_task_without_a_dataset_says_so_when_rows_are_asked_for() -> None:
    task = load_task({"infer_cfg": {"prompt_template": {"template": "{q}"}}})
    with pytest.raises(TaskError, match="names no dataset"):
        list(task.prompts())


def test_a_dataset_given_beside_takes_the_place_of_the_tasks_own() -> None:
    config = {"dataset": {"path": "nowhere.jsonl"}, "infer_cfg": {"prompt_template": {"template": "{q}"}}}
    assert list(load_task(config, {"rows": ROWS}).prompts()) == [(1, "1+1=?"), ("b", "2+2=?")]


def test_a_multimodal_template_object_is_taken_too() -> None:
    template = MMPromptTemplate(MM["template"])
    task = load_task({"dataset": {"rows": [{"q": TAGGED}]}, "infer_cfg": {"prompt_template": template}})
    ((_, (message,)),) = task.messages()
    assert [getattr(p, "source", None) or p.text for p in message.parts] == ["a.jpg", "Q: What?"]  # type: ignore[union-attr]


def test_a_slot_that_names_no_column_is_noted_once() -> None:
    task = task_of("{q} {questoin}", reader_cfg={"missing": "keep"})
    list(task.prompts())
    assert task.notes() == [
        "all 2 rows: {questoin} in a template names no column, so it stays as it is; known: answer, id, q"
    ]


def test_test_set_and_examples_are_not_both_standard_input() -> None:
    with pytest.raises(TaskError, match="path and train on standard input"):
        load_task({}, {"path": "-", "train": "-"})


def test_max_bytes_holds_for_the_media_inside_chat_rows(tmp_path, tour):
    url = "data:image/jpeg;base64," + base64.b64encode((tour / "media" / "coffee.jpg").read_bytes()).decode()
    row = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")

    def errors(**media):
        task = load_task({"dataset": {"path": str(path)}, "media": media})
        return [getattr(Renderer(task).render(sample), "error", None) for sample in task.samples()]

    [error] = errors(max_bytes=1000)
    assert "more than max_bytes (1000)" in str(error)
    assert errors() == [None]


def test_prompts_of_chat_rows_are_plain_data_and_their_messages_hold_the_media_read(tmp_path, tour):
    url = "data:image/jpeg;base64," + base64.b64encode((tour / "media" / "coffee.jpg").read_bytes()).decode()
    part = {"type": "image_url", "image_url": {"url": url}}
    config = {"model": {"meta_template": {"round": [{"role": "HUMAN"}, {"role": "BOT", "generate": True}]}}}
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"id": 1, "messages": [{"role": "user", "content": [part]}]}) + "\n", encoding="utf-8")
    task = load_task(config, str(path))
    assert list(task.prompts()) == [(1, [{"role": "HUMAN", "prompt": [part]}])]
    [(_, [message])] = task.messages()
    assert [type(p) for p in message.parts] == [MediaPart]


@pytest.mark.parametrize(
    ("row", "unsent"),
    [
        ({"id": "a", "image": "a.png", "prompt": "What is it?", "answer": "x", "n": 3}, ["'prompt'"]),
        ({"image": "a.png", "caption": "c", "audio": "b.wav", "prompt": "p"}, ["'caption', 'prompt'"]),
        ({"image": "a.png", "question": "What is it?", "topic": "t"}, []),
        ({"id": "a", "image": "a.png"}, []),
    ],
)
def test_texts_that_stay_at_home_beside_media_are_a_note(row: dict[str, object], unsent: list[str]) -> None:
    task = load_task({"dataset": {"rows": [row, row]}})
    assert len(list(task.messages())) == 2
    hint = "name the text with --map COLUMN=question, or use a task with a template"
    left = [note for note in task.notes() if "not sent" not in note]
    assert left == [f"all 2 rows: only media are sent, but not the text of {names}; {hint}" for names in unsent]


@pytest.mark.parametrize(
    ("infer", "train", "unused"),
    [
        ({"ice_template": {"template": "{q}"}, "prompt_template": {"template": "{q}"}}, False, ["ice_template"]),
        ({"prompt_template": {"template": "{q}"}}, True, ["dataset.train"]),
        ({"ice_template": {"template": "{q}"}}, False, []),
        (
            {
                "ice_template": {"template": "{q}"},
                "prompt_template": {"template": "{q}"},
                "retriever": {"type": "ZeroRetriever"},
            },
            False,
            [],
        ),
        (
            {
                "ice_template": {"template": "{q}"},
                "prompt_template": {"template": "</E>{q}", "ice_token": "</E>"},
                "retriever": {"type": "FixKRetriever", "fix_id_list": [0]},
            },
            True,
            [],
        ),
    ],
)
def test_examples_that_no_retriever_takes_are_a_note(infer: dict[str, object], train: bool, unused: list[str]) -> None:
    rows = {"rows": [{"q": "a"}], **({"train_rows": [{"q": "b"}]} if train else {})}
    task = load_task({"dataset": rows, "infer_cfg": infer})
    assert len(list(task.prompts())) == 1
    hint = "is not used: no retriever takes examples; name one, such as FixKRetriever"
    assert task.notes() == [f"{name} {hint}" for name in unused]


def test_rows_without_their_key_are_refused() -> None:
    rows: Any = [{"question": "q"}]
    with pytest.raises(TaskError, match=r"^dataset is list; give a file, or a mapping with path or rows, such as "):
        load_task({}, rows)


@pytest.mark.parametrize("make", [dataset_task, load_task, lambda rows: load_task({}, rows)])
def test_rows_in_the_place_of_a_name_are_told_where_they_belong(make: Callable[[Any], object]) -> None:
    with pytest.raises(MMPromptError, match=r'{"rows": rows}'):
        make([{"question": "q"}])


@pytest.mark.parametrize("path", [5, None, [3], {"question": "q"}])
def test_a_dataset_that_is_no_path_is_an_error_that_says_so(path: Any) -> None:
    with pytest.raises(DatasetError, match=r"the dataset is \w+; give a file, a folder"):
        dataset_task(path)


def test_rows_as_a_key_of_the_task_are_told_where_they_belong() -> None:
    with pytest.raises(TaskError, match=r"unknown key 'rows' in the task; write it under dataset: dataset: {rows: …}"):
        load_task({"rows": [{"question": "q"}]})


def test_a_task_shows_its_dataset() -> None:
    assert repr(load_task("fixtures/tour/tour.jsonl")) == "Task(Dataset('fixtures/tour/tour.jsonl', format='jsonl'))"
    assert repr(load_task({})) == "Task(None)"
