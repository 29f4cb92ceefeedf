"""``LocalModel`` over the LLaVA of ``fixtures/llava``, and over models of other kinds made on the spot."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from mmprompt import (
    MediaPart,
    MediaPolicy,
    Message,
    MMPromptError,
    ServerError,
    TargetError,
    TextPart,
    load_task,
    run_task,
)

torch = pytest.importorskip("torch")
import drawn  # noqa: E402  # after the skip
import tiny_models as tiny  # noqa: E402

from mmprompt.run.local_model import LocalModel  # noqa: E402

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def llava():
    model = LocalModel(drawn.FIXTURE)
    yield model
    model.close()


def requests(folder: Path, rows: list[dict[str, Any]], infer: dict[str, Any] | None = None, **task: Any) -> list[Any]:
    return list(load_task(drawn.written(folder, rows, infer, **task)).requests("hf"))


def said(answers: list[Any]) -> list[Any]:
    return [answer.error or str(answer.reply) for answer in answers]


def test_pictures_are_seen(llava, tmp_path):
    rows = drawn.single(tmp_path, 40)
    made = requests(tmp_path, rows)
    answers = [answer for at in range(0, 40, 8) for answer in llava.ask(made[at : at + 8], drawn.SHORT)]
    assert said(answers) == [row["answer"] for row in rows]
    assert {(a.reply.finish_reason, a.attempts, a.error) for a in answers} == {("stop", 1, None)}


def test_two_pictures_are_seen_in_their_order(llava, tmp_path):
    rows = drawn.pairs(tmp_path, 12)
    swapped = [{**row, "image": row["image"][::-1]} for row in rows]
    expected = [row["answer"] for row in rows]
    turned = [" then ".join(answer.split(" then ")[::-1]) for answer in expected]
    assert expected != turned
    assert said(llava.ask(requests(tmp_path, rows), drawn.SHORT)) == expected
    assert said(llava.ask(requests(tmp_path, swapped), drawn.SHORT)) == turned


def test_a_later_turn_sees_the_reply_before_it(llava, tmp_path):
    rows = drawn.dialogues(tmp_path, 12)
    asked = requests(tmp_path, rows, drawn.dialogue("every_with_gt"))
    expected = [word for row in rows for word in (row["true"], row["answer"][0])]
    assert sum(row["true"] != row["answer"][0] for row in rows) == 6
    assert said(llava.ask(asked, drawn.SHORT)) == expected


def test_a_batch_gives_what_each_request_gives_alone(llava, tmp_path):
    rows = [*drawn.single(tmp_path, 3), *drawn.pairs(tmp_path, 2)]
    for row in rows[1::2]:
        row["question"] = row["question"] + " " * len(row["id"])  # padding of other lengths
    made = requests(tmp_path, rows)
    together = llava.ask(made, drawn.SHORT)
    alone = [llava.ask([request], drawn.SHORT)[0] for request in made]
    assert said(together) == said(alone)
    assert [a.reply.usage for a in together] == [a.reply.usage for a in alone]
    assert {a.reply.usage["total_tokens"] - a.reply.usage["prompt_tokens"] for a in together} >= {2}


def test_what_fails_in_a_batch_costs_no_other_request(llava, tmp_path):
    rows = drawn.single(tmp_path, 5)
    rows[2]["question"] = "What is <image> here?"  # one placeholder more than there are pictures
    (tmp_path / rows[3]["image"]).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    answers = llava.ask(requests(tmp_path, rows), drawn.SHORT)
    assert [a.error is None for a in answers] == [True, True, False, False, True]
    assert "the model failed" in answers[2].error.what
    assert answers[3].error.code.startswith("MM3")
    assert not any(a.passing for a in answers)


def test_a_prompt_that_the_model_has_no_room_for_is_refused(llava, tmp_path):
    rows = drawn.single(tmp_path, 3)
    rows[1]["question"] = "red " * 600
    made = requests(tmp_path, rows)
    for answers in (llava.ask(made, drawn.SHORT), llava.perplexities(made)):
        assert [a.error is None for a in answers] == [True, False, True]
        assert "tokens, and the model takes 512; leave out examples" in str(answers[1].error)


def test_a_picture_is_turned_as_its_file_asks(llava):
    upright = drawn.picture("red", "left", 2**41)
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 3
    upright.rotate(180).save(buffer, "PNG", exif=exif)
    question = [Message("user", (MediaPart("image", "image/png", buffer.getvalue()), TextPart(drawn.SIDE)))]
    assert llava.reply(question, drawn.SHORT) == "left"


def test_the_task_and_the_caller_set_the_length_and_the_end(llava, tmp_path):
    rows = drawn.pairs(tmp_path, 1)
    [plain] = requests(tmp_path, rows)
    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": {"round": [drawn.ASKED]}}}
    short = {"inferencer": {"type": "GenInferencer", "max_out_len": 1, "stopping_criteria": ["zzz"]}}
    [one] = requests(tmp_path, rows, {**infer, **short})
    assert one.generation == {"max_tokens": 1, "stop": ["zzz"]}
    first, _, _ = rows[0]["answer"].split()
    cut = llava.ask([one], {})[0].reply
    assert (first.startswith(cut), cut.finish_reason, cut.usage["completion_tokens"]) == (True, "length", 1)
    assert said(llava.ask([one], {"max_tokens": 8})) == [rows[0]["answer"]]
    stopped = llava.ask([plain], {"stop": [" then"]})[0].reply
    assert (stopped, stopped.finish_reason) == (first, "stop")
    ids = llava._tokenizer(" then")["input_ids"]
    assert len(ids) == 1
    assert llava.ask([plain], {"stop_token_ids": ids})[0].reply == first


def test_the_end_token_of_the_meta_template_ends_a_reply(llava, tmp_path):
    [end] = llava._tokenizer(" then")["input_ids"]
    rows = drawn.pairs(tmp_path, 3)
    meta = {"round": [{"role": "HUMAN", "api_role": "HUMAN"}, {"role": "BOT", "api_role": "BOT"}], "eos_token_id": end}
    report = run_task(drawn.written(tmp_path, rows, model={"meta_template": meta}), llava, tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert {line["id"]: line["prediction"] for line in lines} == {row["id"]: row["answer"].split()[0] for row in rows}
    assert report.answered == 3


def test_requests_with_other_settings_are_not_mixed(llava, tmp_path):
    turns = drawn.dialogues(tmp_path, 2)
    infer = drawn.dialogue("every_with_gt")
    infer["inferencer"]["max_out_len"] = [1, 8]
    answers = llava.ask(requests(tmp_path, turns, infer), {})
    assert [a.reply.usage["completion_tokens"] <= 1 for a in answers] == [True, False, True, False]


def test_drawn_tokens_depend_on_the_seed_alone(llava, tmp_path):
    made = requests(tmp_path, drawn.single(tmp_path, 4))
    hot = {"temperature": 30.0, "max_tokens": 6}
    before = torch.random.get_rng_state()
    together = said(llava.ask(made, {**hot, "seed": 5}))
    assert said(llava.ask(made[::-1], {**hot, "seed": 5})) == together[::-1]
    assert said(llava.ask(made, {**hot, "seed": 6})) != together
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guided_choice": ["a"]}, "has no setting 'guided_choice'; leave it out"),
        ({"temperature": "hot"}, "temperature is 'hot'; give a number from 0"),
        ({"max_tokens": 0}, "max_tokens is '0'; give a whole number from 1"),
        ({"stop": [1]}, "give a list of texts"),
        ({"n": 2}, "has no setting 'n'"),
    ],
)
def test_settings_that_a_local_model_does_not_have_are_refused(llava, tmp_path, options, words):
    [answer] = llava.ask(requests(tmp_path, drawn.single(tmp_path, 1)), options)
    assert isinstance(answer.error, TargetError)
    assert words in str(answer.error)


def test_settings_without_effect_are_taken(llava, tmp_path):
    options = {**drawn.SHORT, "n": 1, "user": "me", "presence_penalty": 0, "top_p": 1, "seed": 3, "stop": None}
    [answer] = llava.ask(requests(tmp_path, drawn.single(tmp_path, 1)), options)
    assert answer.error is None


def test_nothing_is_printed_or_left_changed(llava, tmp_path, capfd):
    made = requests(tmp_path, drawn.pairs(tmp_path, 3))
    capfd.readouterr()
    again = LocalModel(str(drawn.FIXTURE))
    assert len(again.ask(made, {**drawn.SHORT, "stop": "zzz"})) == 3
    again.perplexities(made)
    again.close()
    assert capfd.readouterr() == ("", "")
    from transformers.utils import logging

    assert logging.is_progress_bar_enabled()


# ---- models of other kinds


def saved(folder: Path, made: Any, template: str | None = None) -> Path:
    made.model.save_pretrained(folder)
    if template is not None:
        made.processor.chat_template = template
    made.processor.save_pretrained(folder)
    return folder


@pytest.fixture
def text_model(tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    own = tiny.tokenizer([])
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**tiny._text_sizes(len(own)), pad_token_id=0, bos_token_id=1, eos_token_id=2))
    template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}\n{% endfor %}{% if add_generation_prompt %}A:{% endif %}"
    return saved(tmp_path / "text", tiny.Tiny(model, own), template)


def test_a_model_of_text_alone_takes_text_and_no_media(text_model, tmp_path):
    model = LocalModel(text_model)
    rows = [{"question": "What colour is it?"}, {"question": "red green blue " * 5}]
    answers = model.ask(requests(tmp_path, rows), {"max_tokens": 3, "min_tokens": 3})
    assert [a.reply.usage["completion_tokens"] for a in answers] == [3, 3]
    alone = [model.ask([each], {"max_tokens": 3, "min_tokens": 3})[0] for each in requests(tmp_path, rows)]
    assert said(alone) == said(answers)
    [refused] = model.ask(requests(tmp_path, drawn.single(tmp_path, 1)), {})
    assert "takes no image" in str(refused.error)


def test_a_model_that_hears_gets_the_sound(tmp_path):
    model = LocalModel(saved(tmp_path / "hearing", tiny.qwen2_audio()))
    assert "Qwen2Audio" in repr(model)
    for number, hertz in enumerate((300, 2000)):
        wave = 0.4 * np.sin(2 * np.pi * hertz * np.arange(48000) / 48000)  # of another rate than the model's
        soundfile.write(tmp_path / f"{number}.wav", wave.astype("float32"), 48000, subtype="PCM_16")
    rows = [{"audio": f"{n}.wav", "question": "What do you hear?"} for n in (0, 1, 0)]
    heard = [a.perplexity for a in model.perplexities(requests(tmp_path, rows))]
    assert heard[0] == pytest.approx(heard[2], rel=1e-5)
    assert heard[0] != pytest.approx(heard[1], rel=1e-5)
    answers = model.ask(requests(tmp_path, rows), {"max_tokens": 4, "min_tokens": 4})
    assert [a.error for a in answers] == [None] * 3


# ---- what is loaded, and what is not


@pytest.mark.parametrize("name", ["no/such/folder", "bert-base-uncased", "https://example.com/model"])
def test_only_a_folder_is_loaded(name):
    with pytest.raises(ServerError, match="is not a folder; give the folder of a model; nothing is downloaded"):
        LocalModel(name)


def broken(tmp_path: Path) -> Path:
    folder = tmp_path / "broken"
    shutil.copytree(drawn.FIXTURE, folder)
    return folder


def test_weights_that_may_hold_code_are_refused(tmp_path):
    from safetensors.torch import load_file

    folder = broken(tmp_path)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ServerError, match=r"cannot be loaded: .*safetensors"):
        LocalModel(folder)


def test_code_beside_the_weights_is_not_run(tmp_path):
    folder = broken(tmp_path)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine", "AutoModelForCausalLM": "mine.Mine"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n", encoding="utf-8")
    with pytest.raises(ServerError, match="cannot be loaded"):
        LocalModel(folder)
    assert not (tmp_path / "ran").exists()


def test_a_package_that_a_model_asks_for_is_named(tmp_path):
    if importlib.util.find_spec("bitsandbytes"):
        pytest.skip("bitsandbytes is installed")
    folder = broken(tmp_path)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ServerError, match=r"cannot be loaded: .*bitsandbytes.*; install what it asks for"):
        LocalModel(folder)


def test_a_model_with_missing_weights_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = broken(tmp_path)
    weights = load_file(folder / "model.safetensors")
    gone = next(name for name in sorted(weights) if "layers.1" in name)
    del weights[gone]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ServerError, match="not whole: 1 weights are missing"):
        LocalModel(folder)


def test_a_model_without_a_chat_template_is_refused(tmp_path):
    folder = broken(tmp_path)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ServerError, match=r"has no chat template; put chat_template\.jinja beside it"):
        LocalModel(folder)


def test_a_device_that_is_not_there_is_told():
    with pytest.raises(ServerError, match=r"the device 'nowhere' cannot be used: .*; give cpu, cuda or cuda:N"):
        LocalModel(drawn.FIXTURE, device="nowhere")


def test_a_template_that_refuses_the_messages_costs_these_alone(tmp_path):
    folder = broken(tmp_path)
    template = (folder / "chat_template.jinja").read_text("utf-8")
    refusal = "{% for m in messages if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endfor %}"
    (folder / "chat_template.jinja").write_text(refusal + template, encoding="utf-8")
    with pytest.raises(MMPromptError, match="the chat template refuses the messages: 'no system'"):
        LocalModel(folder).reply([Message("system", "Be brief."), Message("user", "?")], {})


def run(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_no_connection_is_made_and_no_name_is_looked_up():
    code = f"""
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event in ("socket.connect", "socket.getaddrinfo") else None)
from mmprompt import Message
from mmprompt.run.local_model import LocalModel
LocalModel({str(drawn.FIXTURE)!r}).reply([Message("user", "Hello")], {{"max_tokens": 2}})
print(seen)
"""
    done = run(code)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_without_torch_the_extra_is_named():
    code = f"""
import sys
sys.modules["torch"] = None
from mmprompt.run.local_model import LocalModel
try:
    LocalModel({str(drawn.FIXTURE)!r})
except Exception as error:
    print(error.code, error)
"""
    done = run(code)
    assert done.stdout == "MM903 local models need PyTorch; pip install 'mmprompt[local]'\n", done.stderr


def test_importing_the_module_loads_neither_torch_nor_transformers():
    done = run(
        "import sys, mmprompt.run.local_model; print({'torch', 'transformers', 'numpy', 'PIL'} & set(sys.modules))"
    )
    assert done.stdout == "set()\n", done.stderr


def test_a_picture_that_is_only_named_is_not_fetched(llava):
    row = {"image": "https://example.com/cat.png", "question": drawn.COLOUR}
    [request] = load_task({"dataset": {"rows": [row]}, "media": {"mode": "keep"}}).requests("hf")
    [answer] = llava.ask([request], {})
    assert "a local model fetches no image; leave out media: keep" in str(answer.error)


def test_the_policy_bounds_the_pictures(tmp_path):
    model = LocalModel(drawn.FIXTURE, policy=MediaPolicy(max_pixels=64))
    [answer] = model.ask(requests(tmp_path, drawn.single(tmp_path, 1)), {})
    assert answer.error.code == "MM302"
