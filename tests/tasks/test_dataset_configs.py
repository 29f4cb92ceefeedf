"""Dataset configs of OpenCompass and AISBench: read without them, chosen by abbr, faults told with file and line."""

import builtins
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmprompt import MMPromptTemplate, MultiTurnPromptTemplate, PromptTemplate, TaskError, load_task
from mmprompt.tasks.upstream.dataset_configs import choose_dataset, find_datasets, upstream_task
from mmprompt.tasks.upstream.execute import run_config
from mmprompt.tasks.upstream.stubs import PACKAGES, RunnerStub
from mmprompt.templates.raw import RawPromptTemplate

CONFIGS = Path(__file__).parents[2] / "fixtures" / "upstream_configs"


@pytest.fixture(autouse=True)
def no_runner_is_left_behind():
    before = builtins.__import__
    yield
    assert not [name for name in sys.modules if name.split(".")[0] in PACKAGES]
    assert builtins.__import__ is before


def read_upstream(path, abbr=None):
    variables, stub_texts = run_config(path)
    try:
        return upstream_task(choose_dataset(find_datasets(variables), abbr), stub_texts)
    except TaskError as error:
        raise error.located(file=path) from None


def config(name, abbr=None):
    return read_upstream(str(CONFIGS / name), abbr)


def written(tmp_path, text, name="made.py"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def fault(path, abbr=None):
    with pytest.raises(TaskError) as caught:
        read_upstream(path, abbr)
    return caught.value


def test_a_few_shot_dialogue_becomes_plain_data():
    task = config("sums_few_shot.py")
    assert task.abbr == "sums"
    assert task.reader_cfg == {
        "input_columns": ["question"], "output_column": "answer", "train_split": "dev", "test_range": "[0:2]",
    }  # fmt: skip
    assert task.infer_cfg["retriever"] == {"type": "FixKRetriever", "fix_id_list": [0, 1]}
    assert task.infer_cfg["inferencer"] == {"type": "GenInferencer", "max_out_len": 16}
    assert task.infer_cfg["prompt_template"]["template"]["begin"][0]["prompt"] == "Add the two numbers."
    assert task.unused == ("type", "path", "eval_cfg")
    for key in ("ice_template", "prompt_template"):
        arguments = dict(task.infer_cfg[key])
        assert arguments.pop("type") == "PromptTemplate"
        PromptTemplate(**arguments)


def test_a_label_dict_by_comprehension_is_chosen_by_abbr():
    task = config("choices_ppl.py", "choices_rivers")
    template = task.infer_cfg["prompt_template"]["template"]
    assert template["B"] == "Questions about rivers.\n\n</E>{input}\nA. {A}\nB. {B}\nAnswer: B"
    assert task.infer_cfg["inferencer"] == {"type": "PPLInferencer"}
    assert task.unused == ("type", "path", "name", "eval_cfg", "reader_cfg.type")


@pytest.mark.parametrize(
    ("name", "cls", "type_"),
    [
        ("pictures.py", MMPromptTemplate, "MMPromptTemplate"),
        ("mm_custom.py", MMPromptTemplate, "MMPromptTemplate"),
        ("interview.py", MultiTurnPromptTemplate, "MultiTurnPromptTemplate"),
        ("chat_raw.py", RawPromptTemplate, "RawPromptTemplate"),
    ],
)
def test_each_kind_of_template_is_built_from_its_config(name, cls, type_):
    arguments = dict(config(name).infer_cfg["prompt_template"])
    assert arguments.pop("type") == type_
    cls(**arguments)


def test_aisbench_s_own_multimodal_config_renders_its_own_kind_of_rows(tmp_path):
    rows = [{"type": "image", "path": ["a.jpg"], "question": "?", "answer": "b"}, {"content": "<AIS_TEXT_START>?"}]
    for row, types in zip(rows, (["image_url", "text"], ["text"]), strict=True):
        (tmp_path / "rows.jsonl").write_text(json.dumps(row))
        [(_, prompt)] = load_task(CONFIGS / "mm_custom.py", str(tmp_path / "rows.jsonl")).prompts()
        assert [part["type"] for part in prompt[0]["prompt"]] == types


@pytest.mark.parametrize("listed", [["question", "max_out_len", "timestamp"], "question max_out_len timestamp"])
def test_settings_of_a_row_that_aisbench_lists_as_input_columns_are_none(tmp_path, listed):
    infer = "dict(prompt_template=dict(type='PromptTemplate', template='{question}'))"
    path = written(
        tmp_path, f"x_datasets = [dict(abbr='x', reader_cfg=dict(input_columns={listed!r}), infer_cfg={infer})]"
    )
    task = load_task(path, {"rows": [{"question": "q"}]})
    assert list(task.prompts()) == [(0, "q")]
    unused = "reader_cfg.input_columns.max_out_len, reader_cfg.input_columns.timestamp"
    assert task.notes() == [f"of x these keys are not used: {unused}"]
    with pytest.raises(TaskError, match=r"reader_cfg\.input_columns is not a list of column names"):
        load_task(
            written(tmp_path, "x_datasets = [dict(abbr='x', reader_cfg=dict(input_columns=3), infer_cfg={})]"),
            {"rows": []},
        )


def test_a_multimodal_config_keeps_its_skeletons_and_tells_what_is_not_used():
    task = config("mm_custom.py")
    item = task.infer_cfg["prompt_template"]["template"]["round"][0]
    assert item["prompt_mm"]["audio"] == {"type": "audio_url", "audio_url": {"url": "file://{audio}"}}
    assert task.unused == ("type", "path", "mm_type", "num_frames", "eval_cfg")


def test_base_files_are_followed_and_a_dataset_listed_twice_is_one():
    variables, _ = run_config(str(CONFIGS / "collections" / "everything.py"))
    found = find_datasets(variables)
    assert sorted(d.abbr for d in found) == ["chat", "chat-longer", "choices_birds", "choices_rivers", "sums"]
    longer = upstream_task(choose_dataset(found, "chat-longer"))
    assert longer.infer_cfg["inferencer"] == {"type": "GenInferencer", "max_out_len": 4096}
    assert upstream_task(choose_dataset(found, "chat")).infer_cfg["inferencer"] == {"type": "GenInferencer"}


def test_the_choice_among_several_datasets_lists_them():
    path = str(CONFIGS / "choices_ppl.py")
    assert "choices_birds, choices_rivers" in str(fault(path))
    assert "did you mean 'choices_rivers'" in str(fault(path, "choices_river"))
    with pytest.raises(TaskError, match="^" + re.escape(path)):
        load_task(path)
    assert "lists no dataset" in str(fault(str(CONFIGS / "sums_settings.py")))


def test_a_type_that_we_lack_keeps_its_name(tmp_path):
    path = written(
        tmp_path,
        "from opencompass.openicl.icl_inferencer import ToTInferencer as Thinker\n"
        "x_datasets = [dict(abbr='x', infer_cfg=dict(inferencer=dict(type=Thinker)))]",
    )
    assert read_upstream(path).infer_cfg == {"inferencer": {"type": "ToTInferencer"}}


def test_names_of_a_runner_may_be_used_in_every_way_that_configs_use_them(tmp_path):
    path = written(
        tmp_path,
        """
import opencompass
import opencompass.datasets.squad as squad
from ais_bench.benchmark.registry import EVALUATORS
from opencompass.datasets import *
from opencompass.utils import LIMIT, first_option, Base, PROMPT
import math, os.path

@EVALUATORS.register_module()
class Mine(Base[int]):
    pass

def evaluate(pred, kind=LIMIT | None):
    from opencompass.later import never
    return never(pred)

print('to standard error')
made = first_option('ABC')['x'].y(1, k=2) + 1
label = f'{PROMPT}-{LIMIT:>3}'
if LIMIT and not (LIMIT and False):
    x_datasets = [dict(
        abbr=f'x-{math.floor(2.5)}-{LIMIT}', type=squad.Data, path=os.path.join('a', 'b'),
        infer_cfg=dict(retriever=dict(type=opencompass.openicl.ZeroRetriever)),
        eval_cfg=dict(evaluator=Mine, made=made, label=label, call=evaluate('x')))]
""",
    )
    task = read_upstream(path)
    assert task.infer_cfg == {"retriever": {"type": "ZeroRetriever"}}
    assert task.abbr.startswith("x-2-")


@pytest.mark.parametrize(
    ("prompt", "place"),
    [
        ("PROMPT", "x_datasets[0].infer_cfg.prompt_template.template"),
        ("f'{PROMPT} {{q}}'", "x_datasets[0].infer_cfg.prompt_template.template"),
        ("'%s' % PROMPT", "x_datasets[0].infer_cfg.prompt_template.template"),
        ("'Q: ' + PROMPT.text", "x_datasets[0].infer_cfg.prompt_template.template"),
        ("{'A': [PROMPT]}", "x_datasets[0].infer_cfg.prompt_template.template.A[0]"),
    ],
)
def test_a_prompt_whose_text_only_the_runner_knows_is_an_error(tmp_path, prompt, place):
    path = written(
        tmp_path,
        "from opencompass.datasets.grader import PROMPT\n"
        f"x_datasets = [dict(abbr='x', infer_cfg=dict(prompt_template=dict(template={prompt})))]",
    )
    error = fault(path)
    assert "opencompass.datasets.grader.PROMPT" in str(error)
    assert error.where.template == place


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\nx_datasets = [dict(", 2, "malformed"),
        ("x = 1\n\nx_datasets = [y]", 3, "NameError: name 'y' is not defined"),
        ("import sys\nsys.exit(3)", 2, "SystemExit: 3"),
        ("from opencompass.datasets import SETS\n\nfor s in SETS: pass", 3, "cannot be iterated over"),
        ("from opencompass.datasets import SETS\nn = len(SETS)", 2, "cannot be measured"),
        ("import no_such_library_at_all", 1, "imports 'no_such_library_at_all', which is not installed"),
        ("\nfrom .absent import x_datasets", 2, "cannot import '.absent'"),
        ("\nfrom . import absent", 2, "cannot import '.absent'"),
        ("from opencompass.datasets import *\nx = SquadDataset", 2, "name 'SquadDataset' is not defined"),
        ("def f(): return f()\nf()", 1, "RecursionError"),
        ("raise ValueError('a\\nb' * 1000)", 1, "ValueError"),
        (b"x = '\xff'", 1, "malformed"),
        (b"x = 1\0", None, "malformed"),
        ("x_datasets = 3", None, "lists no dataset"),
        ("x_datasets = [dict(abbr='x')]", None, "has no infer_cfg"),
        ("x_datasets = [dict(abbr='x', infer_cfg=3)]", None, "has int as infer_cfg"),
        ("a = {}\na['a'] = a\nx_datasets = [dict(abbr='x', infer_cfg=a)]", None, "nested too deeply"),
        ("x_datasets = [dict(abbr='x', infer_cfg={}), dict(abbr='x', infer_cfg=dict(a=1))]", None, "lists 2 datasets"),
    ],
)
def test_what_is_no_config_is_told_with_file_and_line(tmp_path, text, line, message):
    path = written(tmp_path, text)
    error = fault(path)
    assert message in str(error)
    assert (error.where.file, error.where.line) == (path, line) or (line == 1 and error.where.line in (None, 1))
    assert len(str(error)) < 1000


def test_a_fault_in_a_base_file_is_told_there(tmp_path):
    inner = written(tmp_path, "a = 1\nb = a / 0", "inner/base.py")
    outer = written(tmp_path, "from mmengine.config import read_base\nwith read_base():\n    from .inner.base import b")
    error = fault(outer)
    assert (error.where.file, error.where.line) == (inner, 2)
    missing = written(tmp_path, "\n\nfrom .inner.fine import amount", "missing.py")
    written(tmp_path, "amounts = 3", "inner/fine.py")
    assert "did you mean 'amounts'" in str(fault(missing))
    assert (fault(missing).where.file, fault(missing).where.line) == (missing, 3)


def test_imports_in_a_circle_and_without_end_are_refused(tmp_path):
    written(tmp_path, "from .b import x", "a.py")
    assert "imports itself" in str(fault(written(tmp_path, "from .a import x", "b.py")))
    for number in range(30):
        written(tmp_path, f"from .n{number + 1} import x", f"n{number}.py")
    assert "nest deeper" in str(fault(str(tmp_path / "n0.py")))


def test_a_config_named_from_its_package_is_found_in_its_own_folder_tree(tmp_path):
    text = "x_datasets = [dict(abbr='x', infer_cfg=dict(retriever=1))]"
    written(tmp_path, text, "opencompass/configs/datasets/x/x_gen.py")
    user = "from opencompass.configs.datasets.x.x_gen import x_datasets as all_datasets"
    assert read_upstream(written(tmp_path, user, "opencompass/configs/y.py")).infer_cfg == {"retriever": 1}
    assert "no folder 'opencompass' above this file" in str(fault(written(tmp_path, user, "elsewhere/y.py")))


def test_star_imports_and_packages_of_configs_work(tmp_path):
    written(tmp_path, "x_datasets = [dict(abbr='x', infer_cfg=dict(retriever=1))]\n_hidden = 1", "group/__init__.py")
    assert read_upstream(written(tmp_path, "from .group import *")).infer_cfg == {"retriever": 1}
    written(tmp_path, "y_datasets = []", "group/more.py")
    text = "from .group import more\nfrom . import group\nx_datasets = group.x_datasets + more.y_datasets"
    assert read_upstream(written(tmp_path, text, "other.py")).abbr == "x"


def test_only_the_named_file_and_its_own_imports_are_executed(tmp_path):
    written(tmp_path, "raise SystemError('executed')", "bystander.py")
    written(tmp_path, "raise SystemError('executed')", "__init__.py")
    assert read_upstream(written(tmp_path, "x_datasets = [dict(abbr='x', infer_cfg={})]")).abbr == "x"


@pytest.mark.parametrize("path", ["no/such/file.py", "", "a\0b.py", "."])
def test_a_file_that_cannot_be_read_is_told(path):
    assert "cannot read" in str(fault(path))


def test_what_a_config_prints_stays_off_standard_output(tmp_path):
    path = written(
        tmp_path, "print('noise')\ninfer_cfg = {'prompt_template': {'type': 'PromptTemplate', 'template': 'x'}}"
    )
    code = "import sys, mmprompt; mmprompt.load_task(sys.argv[1], {'rows': []})"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "noise\n")


def test_a_runner_that_is_installed_is_not_imported(tmp_path, monkeypatch):
    written(tmp_path, "raise SystemError('imported')", "opencompass/__init__.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "from opencompass import X\nx_datasets = [dict(abbr='x', infer_cfg=dict(retriever=dict(type=X)))]"
    assert read_upstream(written(tmp_path, text)).infer_cfg == {"retriever": {"type": "X"}}


def test_tasks_pickle_and_names_too():
    task = config("chat_raw.py")
    assert pickle.loads(pickle.dumps(task)) == task
    assert pickle.loads(pickle.dumps(RunnerStub("opencompass.X", set()))).short == "X"


def test_a_runners_config_is_a_task_whose_rows_the_caller_gives(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "3+3=?", "answer": "6"}\n{"question": "4+4=?", "answer": "8"}\n')
    config = tmp_path / "sums.py"
    config.write_text(
        "from opencompass.openicl.icl_prompt_template import PromptTemplate\n"
        "from opencompass.openicl.icl_retriever import FixKRetriever\n"
        "from opencompass.openicl.icl_inferencer import GenInferencer\n"
        "from opencompass.datasets import SumsDataset\n"
        "sums_datasets = [dict(abbr='sums', type=SumsDataset, path='nowhere', eval_cfg={},\n"
        "  reader_cfg=dict(input_columns=['question'], output_column='answer', test_range='[0:1]'),\n"
        "  infer_cfg=dict(ice_template=dict(type=PromptTemplate, template='</E>{question} {answer}', ice_token='</E>'),\n"
        "    retriever=dict(type=FixKRetriever, fix_id_list=[1]), inferencer=dict(type=GenInferencer)))]\n"
    )
    with pytest.raises(TaskError, match="not in its config; give them: dataset=, or --dataset FILE"):
        load_task(config)
    task = load_task(config, {"path": str(rows), "train": str(rows)})
    assert list(task.prompts()) == [(0, "4+4=? 8\n3+3=? ")]
    assert "keys are not used: type, path, eval_cfg" in task.notes()[0]
    command = [
        sys.executable,
        "-m",
        "mmprompt",
        "render",
        str(config),
        "--dataset",
        str(rows),
        "--train",
        str(rows),
        "--emit",
        "prompt",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"id": 0, "prompt": "4+4=? 8\n3+3=? ", "answer": "6"}


OWN_NAMES = """
from ais_bench.benchmark.openicl.icl_prompt_template import PromptTemplate
from ais_bench.benchmark.openicl.icl_inferencer import GenInferencer
reader_cfg = dict(input_columns=['question'], output_column='gold')
infer_cfg = dict(prompt_template=dict(type=PromptTemplate, template='Q: {question}'), inferencer=dict(type=GenInferencer))
"""


@pytest.mark.parametrize(
    "more",
    [
        "",
        "media = dict(fit=True)\nmodel = dict(type='M', abbr='m')\nmodels = [model]\n",
        "for dataset in datasets:\n    dataset.setdefault('path')\n",
    ],
)
def test_a_runners_config_may_call_its_variables_as_a_task_does(tmp_path: Path, more: str) -> None:
    listed = "datasets = [dict(abbr='x', path='x', reader_cfg=reader_cfg, infer_cfg=infer_cfg)]\n"
    path = written(tmp_path, f"{OWN_NAMES}{listed}{more}")
    task = load_task(path, {"rows": [{"question": "1+1", "gold": "2"}]})
    assert (list(task.prompts()), task.output_column) == ([(0, "Q: 1+1")], "gold")
    assert task.notes() == ["of x these keys are not used: path" + (", media" if "media" in more else "")]


def test_a_task_in_python_may_name_the_classes_of_a_runner(tmp_path: Path) -> None:
    task = load_task(written(tmp_path, f"{OWN_NAMES}dataset = dict(rows=[dict(question='1+1', gold='2')])\n"))
    assert (list(task.prompts()), task.output_column) == ([(0, "Q: 1+1")], "gold")


# ---- settings of inferencers, numbers of datasets, chats


def infer(tmp_path, inferencer, template="dict(type='PromptTemplate', template='Q: {q}')", more="", output="'a'"):
    text = (
        f"x_datasets = [dict(abbr='x', reader_cfg=dict(input_columns=['q'], output_column={output}),"
        f" infer_cfg=dict(prompt_template={template}, inferencer=dict({inferencer}){more}))]"
    )
    return written(tmp_path, text)


ROWS = {"rows": [{"q": "1+1", "a": "2"}]}


def test_max_seq_len_without_examples_needs_no_tokenizer(tmp_path):
    task = load_task(infer(tmp_path, "type='GenInferencer', max_seq_len=4096"), ROWS)
    assert list(task.prompts()) == [(0, "Q: 1+1")]
    assert next(load_task({"infer_cfg": {**task.config.infer_cfg}, "dataset": ROWS}).requests()).messages


def test_settings_of_the_reply_reach_the_request(tmp_path):
    path = infer(
        tmp_path, "type='GenInferencer', temperature=0.5, do_sample=True, save_every=1", more=", max_out_len=50"
    )
    task = load_task(path, ROWS)
    [request] = task.requests()
    assert (request["temperature"], request["max_tokens"]) == (0.5, 50)
    unused = "infer_cfg.inferencer.do_sample, infer_cfg.inferencer.save_every"
    assert task.notes() == [f"of x these keys are not used: {unused}"]
    own = load_task(
        infer(tmp_path, "type='GenInferencer', max_out_len=7, labels=['A', 'B']", more=", max_out_len=50"), ROWS
    )
    assert next(own.requests())["max_tokens"] == 7
    assert own.notes() == ["of x these keys are not used: infer_cfg.max_out_len, infer_cfg.inferencer.labels"]


def test_the_labels_of_a_config_choose_the_labels_and_their_order(tmp_path):
    labels = "dict(type='PromptTemplate', template={'A': '{q} A', 'B': '{q} B', 'C': '{q} C'})"
    path = infer(tmp_path, "type='PPLInferencer', labels=['C', 'A'], max_out_len=5", labels)
    task = load_task(path, ROWS)
    assert [list(prompt.items()) for _, prompt in task.prompts()] == [[("C", "1+1 C"), ("A", "1+1 A")]]
    assert task.notes() == ["of x these keys are not used: infer_cfg.inferencer.max_out_len"]


@pytest.mark.parametrize("argument", ["multiround=True", "min_out_len=5", "gen_field_replace_token='?'"])
def test_what_would_change_the_run_is_refused_by_name(tmp_path, argument):
    with pytest.raises(TaskError, match=f"GenInferencer with {argument.partition('=')[0]}=.* changes what the model"):
        load_task(infer(tmp_path, f"type='GenInferencer', {argument}"), ROWS)
    load_task(infer(tmp_path, "type='GenInferencer', multiround=False"), ROWS)


def test_two_datasets_of_one_abbr_are_chosen_by_number(tmp_path):
    one = "dict(abbr='x', infer_cfg=dict(prompt_template='{n} {{q}}'))"
    listed = ", ".join(one.replace("{n}", str(n)).replace("{{q}}", "{q}") for n in (1, 2))
    path = written(tmp_path, f"x_datasets = [{listed}, dict(abbr='3', infer_cfg=dict(prompt_template='3 {{q}}'))]")
    assert "choose one by its number: 1 (x_datasets[0]), 2 (x_datasets[1])" in str(fault(path, "x"))
    for abbr, prompt in (("1", "1 1+1"), ("2", "2 1+1"), ("3", "3 1+1")):
        assert list(load_task(path, ROWS, abbr=abbr).prompts()) == [(0, prompt)]
    for abbr in ("0", "4", "9" * 5000):
        assert "lists no dataset" in str(fault(path, abbr))


def test_an_import_that_is_missing_is_told_as_such(tmp_path):
    path = written(tmp_path, "x = 1\nimport no_such_library.part")
    assert str(fault(path)) == (
        f"{path}:2: the file imports 'no_such_library', which is not installed; install it, or remove the import"
    )


def test_a_variable_called_dataset_that_is_no_dataset_of_a_task_is_the_configs_own(tmp_path):
    for own in ("None", "3", "dict(abbr='y', infer_cfg={})"):
        path = infer(tmp_path, "type='GenInferencer'")
        Path(path).write_text(Path(path).read_text() + f"\ndataset = {own}\n")
        assert list(load_task(path, ROWS).prompts()) == [(0, "Q: 1+1")]


@pytest.mark.parametrize(
    "template",
    ["dict(type='PromptTemplate', template='{q}')", "'{q}'", "None",
     "dict(type='PromptTemplate', template=dict(round=[dict(role='HUMAN', prompt='{q}')]))",
     "dict(type='PromptTemplate', template=dict(round=[dict(role='HUMAN', prompt='{q}'), dict(role='BOT', prompt='{a}')]))"],
)  # fmt: skip
def test_a_chat_inferencer_asks_turn_by_turn(tmp_path, template):
    rows = [
        {"q": ["1+1", "2+2"], "a": ["2", "4"]},
        {"q": "3+3", "a": "6"},
        {
            "q": [
                {"role": "user", "content": "4"},
                {"role": "assistant", "content": "5"},
                {"role": "user", "content": "6"},
            ]
        },
        {"q": [{"role": "system", "content": "S"}, {"role": "user", "content": "7"}]},
    ]
    said = {
        "last": [["1+1", "2", "2+2"], ["3+3"], ["4"], ["S", "7"]],
        "every": [["1+1"], ["3+3"], ["4"], ["S", "7"]],
        "every_with_gt": [["1+1"], ["1+1", "2", "2+2"], ["3+3"], ["4"], ["S", "7"]],
    }
    for mode, texts in said.items():
        chosen = "" if mode == "last" else f", infer_mode='{mode}'"
        task = load_task(infer(tmp_path, f"type='ChatInferencer'{chosen}", template), {"rows": rows})
        assert [[m["content"] for m in request.messages] for request in task.requests()] == texts


def test_a_chat_inferencer_without_an_output_column_lets_the_model_speak(tmp_path):
    path = infer(tmp_path, "type='ChatInferencer', infer_mode='every', max_out_len=4096", "'{q}'", output="None")
    [request] = load_task(path, {"rows": [{"q": ["1+1", "2+2"]}]}).requests()
    assert ([m["content"] for m in request.messages], request["max_tokens"]) == (["1+1"], 4096)


def test_a_prompt_template_may_be_a_text():
    for name in ("prompt_template", "ice_template"):
        task = load_task({"infer_cfg": {name: "Q: {q}"}, "dataset": ROWS})
        assert list(task.prompts()) == [(0, "Q: 1+1")]


def test_datasets_in_a_list_of_another_name_are_found(tmp_path):
    path = infer(tmp_path, "type='GenInferencer'")
    text = Path(path).read_text()
    Path(path).write_text(text.replace("x_datasets", "x_Datasets") + "\nmodels = [dict(abbr='m')]\n")
    assert list(load_task(path, ROWS).prompts()) == [(0, "Q: 1+1")]


def test_rows_of_a_runners_config_keep_their_columns_though_they_look_published(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        "infer_cfg = dict(prompt_template=dict(type='PromptTemplate', template='{question} {choices}'),"
        " retriever=dict(type='ZeroRetriever'), inferencer=dict(type='GenInferencer'))\n"
        "reader_cfg = dict(input_columns=['question', 'choices'], output_column='answerKey')\n"
        "arc = [dict(abbr='arc', type='ARCDataset', path='./arc', reader_cfg=reader_cfg, infer_cfg=infer_cfg)]\n",
    )
    rows = tmp_path / "arc.jsonl"
    row = {"id": "a", "question": "Why?", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"}
    rows.write_text(json.dumps(row) + "\n")
    (made,) = load_task(config, dataset=str(rows)).samples()
    assert made.columns == row
