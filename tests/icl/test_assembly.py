"""Examples, dialogues and labels through ``load_task``: what an ``infer_cfg`` makes of a sample."""

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from closing_line import closing
from hypothesis import given, settings
from hypothesis import strategies as st

from mmprompt import TaskError, TemplateError, load_task, read_messages, to_openai
from mmprompt.media.policy import MediaPolicy
from mmprompt.render.renderer import Renderer

TOUR = Path(__file__).parent.parent.parent / "fixtures" / "tour"
TRAIN = [{"id": f"t{n}", "q": f"{n}+{n}=?", "answer": str(2 * n)} for n in range(5)]
TEXT = {"template": "Q: {q}\nA: {answer}"}
WITH_ICE = {"template": "Solve.\n</E>Q: {q}\nA: {answer}", "ice_token": "</E>"}
ROUND = [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "{answer}"}]
IMAGE = {"type": "image_url", "image_url": {"url": "file://{image}"}}
MM_ROUND = [
    {"role": "HUMAN", "prompt_mm": {"image": IMAGE, "text": {"type": "text", "text": "{question}"}}},
    {"role": "BOT", "prompt": "{answer}"},
]


def task(infer, rows=({"q": "9+9=?", "answer": "18"},), train=TRAIN, **more):
    return load_task({"dataset": {"rows": list(rows), "train_rows": train}, "infer_cfg": infer}, **more)


def prompts(infer, **more):
    return [p for _, p in task(infer, **more).prompts()]


def fixk(*ids):
    return {"type": "FixKRetriever", "fix_id_list": list(ids)}


def test_string_examples_are_joined_and_closed():
    assert prompts({"ice_template": TEXT, "prompt_template": WITH_ICE, "retriever": fixk(1, 2)}) == [
        "Solve.\nQ: 1+1=?\nA: 2\nQ: 2+2=?\nA: 4\nQ: 9+9=?\nA: "
    ]


def test_separators_are_the_retrievers():
    retriever = {**fixk(1, 2), "ice_separator": " | ", "ice_eos_token": " || "}
    assert prompts({"ice_template": {"template": "{q}"}, "prompt_template": WITH_ICE, "retriever": retriever}) == [
        "Solve.\n1+1=? | 2+2=? || Q: 9+9=?\nA: "
    ]


def test_only_an_ice_template_serves_as_both():
    ice = {"template": "</E>Q: {q}\nA: {answer}", "ice_token": "</E>"}
    assert prompts({"ice_template": ice, "retriever": fixk(1)}) == ["Q: 1+1=?\nA: 2\nQ: 9+9=?\nA: "]
    assert prompts({"ice_template": TEXT}) == ["Q: 9+9=?\nA: "]


def test_examples_without_a_place_without_rows_or_without_a_template_are_errors():
    with pytest.raises(TemplateError, match="no place for them"):
        prompts({"ice_template": TEXT, "prompt_template": TEXT, "retriever": fixk(1)})
    with pytest.raises(TaskError, match="examples; give dataset"):
        load_task({"dataset": {"rows": []}, "infer_cfg": {"ice_template": WITH_ICE, "retriever": fixk(1)}})
    with pytest.raises(TaskError, match="FixKRetriever needs ice_template"):
        prompts({"prompt_template": WITH_ICE, "retriever": fixk(1)})
    with pytest.raises(TaskError, match=r"7.*0.*4"):
        prompts({"ice_template": WITH_ICE, "retriever": fixk(7)})


def test_an_example_that_is_shown_twice_is_shown_twice_in_rounds_of_its_own():
    backwards = {"template": {"round": [{"role": "BOT", "prompt": "{answer}"}, {"role": "HUMAN", "prompt": "{q}"}]}}
    asked = {"template": {"begin": ["</E>"], "round": [{"role": "HUMAN", "prompt": "{q}"}]}, "ice_token": "</E>"}
    meta = {"round": [{"role": "HUMAN", "begin": "<H>"}, {"role": "BOT", "begin": "<B>", "generate": True}]}
    infer = {"ice_template": backwards, "prompt_template": asked, "retriever": fixk(1, 1)}
    dataset = {"rows": [{"q": "9+9=?", "answer": "18"}], "train_rows": TRAIN}
    ((_, string),) = load_task({"dataset": dataset, "infer_cfg": infer, "model": {"meta_template": meta}}).strings()
    assert string == "<H><B>2<H>1+1=?<B>" * 2 + "<H>9+9=?<B>"


def test_a_label_dict_of_examples_takes_the_label_of_the_examples_answer():
    ice = {"template": {"2": "{q} is two", "4": "{q} is four"}}
    infer = {"ice_template": ice, "prompt_template": WITH_ICE, "retriever": fixk(1, 2)}
    assert prompts(infer, train=[{**r, "answer": int(r["answer"])} for r in TRAIN]) == [
        "Solve.\n1+1=? is two\n2+2=? is four\nQ: 9+9=?\nA: "
    ]


def test_labels_all_get_the_same_examples_as_many_as_fit_the_longest():
    template = {"short": "</E>{q}", "long": "</E>{q} " + "word " * 10}
    infer = {
        "ice_template": {"template": "{q}"},
        "prompt_template": {"template": template, "ice_token": "</E>"},
        "retriever": fixk(0, 1, 2, 3),
        "inferencer": {"type": "PPLInferencer", "max_seq_len": 13},
    }
    made = task(infer, tokenizer=lambda text: len(text.split()))
    (sample,) = made.samples()
    (assembled,) = made.assembled(sample)
    assert (assembled.example_ids, assembled.dropped) == ((0, 1), 2)
    assert assembled.prompt["short"] == "0+0=?\n1+1=?\n9+9=?"


def test_max_seq_len_without_a_tokenizer_is_an_error():
    with pytest.raises(TaskError, match="max_seq_len needs the model's tokenizer"):
        task(
            {
                "ice_template": {"template": "</E>{q}", "ice_token": "</E>"},
                "retriever": fixk(1),
                "inferencer": {"type": "GenInferencer", "max_seq_len": 5},
            }
        )


def test_no_prompt_shares_items_with_another():
    infer = {
        "ice_template": {"template": {"round": ROUND}},
        "prompt_template": {"template": {"begin": "</E>", "round": ROUND}, "ice_token": "</E>"},
        "retriever": fixk(1),
    }
    first, second = prompts(infer, rows=[{"q": "a", "answer": "1"}, {"q": "b", "answer": "2"}])
    first[0]["prompt"] = "changed"
    assert second[0]["prompt"] == "1+1=?"


def few_shot_with_images(tmp_path):
    """A test set and a set of examples in folders of their own, in which one name stands for different pictures."""
    for folder, pictures in (("test", ("coffee", "clock")), ("train", ("chelsea", "rocket"))):
        (tmp_path / folder / "media").mkdir(parents=True)
        for name, picture in zip(("a.jpg", "b.jpg"), pictures, strict=True):
            shutil.copy(TOUR / "media" / f"{picture}.jpg", tmp_path / folder / "media" / name)
        rows = [
            {"id": n, "image": f"media/{n}.jpg", "question": f"{folder} {n}?", "answer": f"gold {folder} {n}"}
            for n in "ab"
        ]
        (tmp_path / folder / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    config = {
        "dataset": {"path": "test/rows.jsonl", "train": "train/rows.jsonl"},
        "model": {"media_placeholder": {"image": "<image>"}},
        "infer_cfg": {
            "ice_template": {"type": "MMPromptTemplate", "template": {"round": MM_ROUND}},
            "prompt_template": {
                "type": "MMPromptTemplate",
                "template": {"begin": "</E>", "round": MM_ROUND},
                "ice_token": "</E>",
            },
            "retriever": fixk(0, 1),
        },
    }
    (tmp_path / "task.json").write_text(json.dumps(config))
    return tmp_path / "task.json"


def digests(content):
    return [
        hashlib.sha256(b64decode(p["image_url"]["url"].partition(",")[2])).hexdigest()
        for p in content
        if p["type"] == "image_url"
    ]


def of_file(*parts):
    return hashlib.sha256(Path(*parts).read_bytes()).hexdigest()


@pytest.mark.parametrize("target", ["openai", "vllm"])
def test_few_shot_with_images_sends_each_its_own_picture_and_hides_only_the_querys_answer(tmp_path, target):
    task_file = few_shot_with_images(tmp_path)
    out = tmp_path / "out.jsonl"
    run = [sys.executable, "-m", "mmprompt", "render", str(task_file), "--target", target, "-o", str(out)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, closing(done.stderr).told) == (0, "")
    for name, line in zip("ab", out.read_text().splitlines(), strict=True):
        messages = json.loads(line)["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant", "user"]
        train = tmp_path / "train" / "media"
        assert digests(messages[0]["content"]) == [of_file(train, "a.jpg")]
        assert digests(messages[2]["content"]) == [of_file(train, "b.jpg")]
        assert digests(messages[4]["content"]) == [of_file(tmp_path, "test", "media", f"{name}.jpg")]
        assert [p["type"] for p in messages[4]["content"]] == ["image_url", "text"]
        assert (messages[1]["content"], messages[3]["content"]) == ("gold train a", "gold train b")
        assert "gold test" not in json.dumps(messages)


def test_few_shot_with_images_as_a_string_has_its_media_beside(tmp_path):
    made = load_task(few_shot_with_images(tmp_path))
    _, string = next(made.strings())
    assert string.count("<image>") == 3
    assert "gold train b" in string
    assert "gold test" not in string
    [message] = read_messages([to_message(string.media)], MediaPolicy([tmp_path / "test", tmp_path / "train"]))
    pictures = digests(to_openai([message])[0]["content"])
    assert pictures == [
        of_file(tmp_path, *p)
        for p in (("train", "media", "a.jpg"), ("train", "media", "b.jpg"), ("test", "media", "a.jpg"))
    ]


def to_message(media):
    from mmprompt import Message

    return Message("user", media)


def test_dialogues_render_a_line_a_turn_and_every_says_that_it_needs_replies(tmp_path):
    def lines(mode):
        rows = [{"id": 1, "q": ["a", "b"], "answer": ["1", "2"]}]
        config = {
            "dataset": {"rows": rows},
            "infer_cfg": {
                "prompt_template": {"type": "MultiTurnPromptTemplate", "template": {"round": ROUND}},
                "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": mode},
            },
        }
        made = load_task(config)
        messages = [[(m.role, m.text) for m in ms] for _, ms in made.messages()]
        assert made.notes(replied=True) == []
        return messages, made.notes()

    first, last = [("user", "a")], [("user", "a"), ("assistant", "1"), ("user", "b")]
    assert lines("every_with_gt") == ([first, last], [])
    assert lines("last") == ([last], [])
    messages, (note,) = lines("every")
    assert messages == [first]
    assert "only turn 0" in note


def test_the_same_seed_and_sample_draw_the_same_examples_in_any_order_and_process():
    code = """
import json, sys
from mmprompt import load_task
rows = [{"id": i, "q": f"q{i}", "answer": "x"} for i in json.loads(sys.argv[1])]
train = [{"id": f"t{n}", "q": f"{n}", "answer": "y"} for n in range(50)]
infer = {"ice_template": {"template": "{q}"}, "prompt_template": {"template": "</E>{q}", "ice_token": "</E>"},
         "retriever": {"type": "RandomRetriever", "ice_num": 3}}
task = load_task({"dataset": {"rows": rows, "train_rows": train}, "infer_cfg": infer})
print(json.dumps([(i, p) for i, p in task.prompts()]))
"""

    def drawn(order, seed):
        run = subprocess.run(
            [sys.executable, "-c", code, json.dumps(order)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        )
        return dict(json.loads(run.stdout))

    whole = drawn([1, 2, 3, 4], "1")
    assert drawn([4, 3, 2, 1], "2") == whole
    assert drawn([3, 4], "3") == {k: whole[k] for k in (3, 4)}  # as after a resume
    assert len({p.rpartition("\n")[0] for p in whole.values()}) > 1


def test_a_task_with_examples_pickles():
    infer = {"ice_template": TEXT, "prompt_template": WITH_ICE, "retriever": fixk(1)}
    made = task(infer)
    assert list(pickle.loads(pickle.dumps(made)).prompts()) == list(made.prompts())


GOLD = "GOLD\ue000ANSWER"
values = st.lists(st.sampled_from([*"ab{}<>/E\n ", "answer"]), max_size=8).map("".join) | st.sampled_from(
    ["{answer}", "{{answer}}", "</E>", "<AIS_TEXT_START>x", "HUMAN", "BOT", "{q}", "{a}{nswer}"]
)
templates = st.lists(
    st.sampled_from(["{q}", "{answer}", "{hint}", " ", "text", "</E>", "{", "}", "{none}"]), min_size=1, max_size=6
).map("".join)


@settings(deadline=None)
@given(q=values, hint=values, human=templates, bot=templates, begin=templates, meta=st.booleans())
def test_the_answer_of_the_test_sample_is_in_no_prompt_whatever_the_values_hold(q, hint, human, bot, begin, meta):
    row = {"q": q, "hint": hint, "answer": GOLD}
    template = {"begin": begin, "round": [{"role": "HUMAN", "prompt": human}, {"role": "BOT", "prompt": bot}]}
    infer = {
        "ice_template": {"template": {"round": ROUND}},
        "prompt_template": {"template": template, "ice_token": "</E>"},
        "retriever": fixk(1),
    }
    config = {"dataset": {"rows": [row], "train_rows": TRAIN}, "infer_cfg": infer}
    if meta:
        config["model"] = {
            "meta_template": {"round": [{"role": "HUMAN", "begin": "H:"}, {"role": "BOT", "begin": "B:"}]}
        }
    made = load_task(config)
    try:
        shown = [str(p) for _, p in made.prompts()] + [s for _, s in made.strings()]
        shown += [m.text for _, ms in made.messages() for m in ms]
    except TemplateError:
        return  # no place for the examples
    assert not any(GOLD in text for text in shown)


tagged = st.lists(
    st.sampled_from(["text {answer}", "</E>", "a.jpg", "{q}", "{{answer}}", "HUMAN"]), min_size=1, max_size=4
).map(lambda texts: "".join(f"<AIS_TEXT_START>{t}<AIS_CONTENT_TAG>" for t in texts))


@settings(deadline=None)
@given(q=values, hint=values, text=templates, bot=templates, content=tagged, image=st.booleans())
def test_the_answer_is_in_no_content_part_whatever_the_values_hold(q, hint, text, bot, content, image):
    """Neither where it is masked nor where a slot of the skeleton, a tag or a value could bring it in."""
    if image:
        content += "<AIS_IMAGE_START>pictures/a.jpg<AIS_CONTENT_TAG>"
    row = {"content": content, "q": q, "hint": hint, "answer": GOLD}
    said = {"text": {"type": "text", "text": text}, "image": {"type": "image_url", "image_url": {"url": "{image}"}}}
    template = {"begin": "</E>", "round": [{"role": "HUMAN", "prompt_mm": said}, {"role": "BOT", "prompt": bot}]}
    infer = {
        "ice_template": {"template": {"round": ROUND}},
        "prompt_template": {"type": "MMPromptTemplate", "template": template, "ice_token": "</E>"},
        "retriever": fixk(1),
    }
    made = load_task({"dataset": {"rows": [row], "train_rows": TRAIN}, "infer_cfg": infer})
    try:
        shown = [repr(list(p)) for _, p in made.prompts()] + [repr(ms) for _, ms in made.messages()]
    except TemplateError:
        return  # a text segment that no slot receives
    assert not any(GOLD in text for text in shown)


@given(q=values, hint=values, human=templates, bot=templates)
def test_the_answer_is_in_no_label_prompt_whose_template_does_not_ask_for_it(q, hint, human, bot):
    row = {"q": q, "hint": hint, "answer": GOLD}
    says = [{"role": "HUMAN", "prompt": human.replace("{answer}", "")}, {"role": "BOT", "prompt": "{label}"}]
    labels = {"A": {"round": says}, "B": bot.replace("{answer}", "")}
    infer = {"prompt_template": {"template": labels}, "inferencer": {"type": "PPLInferencer"}}
    reader = {"missing": "keep"}
    for _, by_label in load_task({"dataset": {"rows": [row]}, "reader_cfg": reader, "infer_cfg": infer}).prompts():
        assert not any(GOLD in str(prompt) for prompt in by_label.values())


def test_examples_of_two_prompts_share_no_tool_calls():
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    turns = [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "{answer}", "tool_calls": calls}]
    task = load_task(
        {
            "dataset": {"rows": [{"q": "1", "answer": "2"}] * 2, "train_rows": [{"q": "a", "answer": "b"}]},
            "infer_cfg": {
                "ice_template": {"template": {"round": turns}},
                "prompt_template": {"template": {"begin": ["</E>"], "round": turns}, "ice_token": "</E>"},
                "retriever": {"type": "FixKRetriever", "fix_id_list": [0]},
            },
        }
    )
    first, second = (prompt for _, prompt in task.prompts())
    first[1]["tool_calls"][0]["id"] = "changed"
    assert second[1]["tool_calls"] == calls


def test_prompts_of_two_labels_share_no_items():
    labels = {
        name: {"begin": ["</E>"], "round": [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": name}]}
        for name in ("yes", "no")
    }
    infer = {
        "ice_template": {"template": {"round": ROUND}},
        "prompt_template": {"template": labels, "ice_token": "</E>"},
        "retriever": fixk(1),
        "inferencer": {"type": "PPLInferencer"},
    }
    [by_label] = prompts(infer)
    by_label["yes"][0]["prompt"] = "changed"
    assert by_label["no"][0]["prompt"] == "1+1=?"


def test_prompts_of_two_turns_share_no_items():
    infer = {
        "prompt_template": {
            "type": "MultiTurnPromptTemplate",
            "template": {"begin": [{"role": "SYSTEM", "prompt": "Add."}], "round": ROUND},
        },
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": "every_with_gt"},
    }
    first, second = prompts(infer, rows=[{"q": ["1+1=?", "2+2=?"], "answer": ["2", "4"]}])
    first[0]["prompt"] = first[1]["prompt"] = "changed"
    assert [item["prompt"] for item in second] == ["Add.", "1+1=?", "2", "2+2=?"]


def test_a_fault_in_the_picture_of_an_example_shows_it_as_its_row_does(tmp_path):
    path = few_shot_with_images(tmp_path)
    (tmp_path / "train" / "media" / "a.jpg").write_bytes(b"no picture")
    task = load_task(path)
    renderer = Renderer(task)
    [first, _] = [renderer.render(sample) for sample in task.samples()]
    assert "in an example: 'media/a.jpg' is plain text" in str(first.error)
    assert str(tmp_path / "train") not in str(first.error)
    assert first.error.where.column is None


def test_a_template_may_be_its_text_alone():
    assert prompts({"prompt_template": "Q: {q} {0}"}) == ["Q: 9+9=? {0}"]
    infer = {"ice_template": "{q} {answer}", "prompt_template": WITH_ICE, "retriever": fixk(1)}
    assert prompts(infer) == ["Solve.\n1+1=? 2\nQ: 9+9=?\nA: "]
    with pytest.raises(TaskError, match="prompt_template has no template"):
        task({"prompt_template": "MMPromptTemplate"})
