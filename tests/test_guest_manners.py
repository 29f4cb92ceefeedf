"""A guest of its host: nothing printed, nothing configured, nothing left behind, and values that travel."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mmprompt
from mmprompt import dataset_task, errors
from mmprompt.render.renderer import Renderer

PATIENCE = 60
"""Seconds for another process; a fork of one with threads may stand still, and must not hold up the tests."""

DATASETS = ("tour.jsonl", "tour.csv", "tour_columns.jsonl", "tour_mm_custom.jsonl", "tour_chat.jsonl", "tour.json")

# ---- import


def python(code: str, environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_import_is_silent_light_and_configures_nothing(command_environment: dict[str, str]) -> None:
    code = """
import locale, logging, signal, sys, threading
before = [h for h in map(signal.getsignal, signal.valid_signals())], locale.setlocale(locale.LC_ALL)
import mmprompt
for name in mmprompt.__all__: getattr(mmprompt, name)
assert before == ([h for h in map(signal.getsignal, signal.valid_signals())], locale.setlocale(locale.LC_ALL))
heavy = {"PIL", "av", "soundfile", "numpy", "requests", "transformers", "torch", "yaml", "tqdm"} & set(sys.modules)
assert not heavy, heavy
assert not logging.getLogger().handlers
assert [type(h).__name__ for h in logging.getLogger("mmprompt").handlers] in ([], ["NullHandler"])
assert logging.getLogger("mmprompt").level == 0 and logging.getLogger("mmprompt").propagate
assert threading.active_count() == 1
"""
    done = python(code, command_environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_logger_has_a_null_handler_only() -> None:
    import mmprompt._log

    assert [type(h) for h in mmprompt._log.log.handlers] == [logging.NullHandler]
    assert mmprompt._log.log.name == "mmprompt"


def test_a_runner_s_plugin_prints_and_configures_nothing_where_the_runner_does_not_log(
    command_environment: dict[str, str],
) -> None:
    code = """
import logging, mmprompt.plugins.aisbench
from mmprompt._log import log
assert [type(handler) for handler in log.handlers] == [logging.NullHandler], log.handlers
log.warning("a note")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=command_environment, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# ---- after a run

MANNERS = """
import contextlib, csv, decimal, gc, io, json, locale, logging, os, random, signal, socket, sys, tempfile, threading, warnings
import numpy
from PIL import Image, ImageFile

def globals_of_the_process():
    return {
        "pixels": Image.MAX_IMAGE_PIXELS,
        "truncated": ImageFile.LOAD_TRUNCATED_IMAGES,
        "csv": csv.field_size_limit(),
        "dialects": csv.list_dialects(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": [signal.getsignal(s) for s in signal.valid_signals()],
        "socket": socket.getdefaulttimeout(),
        "socket class": socket.socket,
        "threads": [t.name for t in threading.enumerate()],
        "files": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "argv": list(sys.argv),
        "hooks": (sys.excepthook, threading.excepthook, sys.displayhook, sys.unraisablehook),
        "switch": (sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()),
        "warnings": list(warnings.filters),
        "root log": (logging.getLogger().handlers[:], logging.getLogger().level, logging.root.manager.disable),
        "random": (random.getstate(), numpy.random.get_state()[1].tobytes()),
        "decimal": str(decimal.getcontext()),
        "gc": (gc.isenabled(), gc.get_threshold()),
        "streams": (sys.stdout, sys.stderr, sys.stdin),
        "temporary": sorted(os.listdir(os.environ["TMPDIR"])),
    }

before = globals_of_the_process()
"""
RUN = (
    MANNERS
    + """
from mmprompt.cli import main
tour, broken, out = sys.argv[1:]
for name in sorted(os.listdir(tour)) + ["../broken/broken.jsonl"]:
    if os.path.isfile(os.path.join(tour, name)):
        for workers in "1", "4":
            with contextlib.redirect_stderr(io.StringIO()):
                main(["render", os.path.join(tour, name), "-o", out, "--workers", workers, "--media-root", tour])
wide = os.path.join(os.path.dirname(out), "wide.csv")
with open(wide, "w") as file:
    file.write("question,b\\n" + "x" * 300_000 + ",1\\nshort,2\\n")
assert main(["render", wide, "-o", out]) == 0
assert main(["render", wide, "-o", out, "--limit", "1"]) == 0
gc.collect()
after = globals_of_the_process()
for key, value in before.items():
    assert after[key] == value, key
"""
)


@pytest.fixture
def own_environment(command_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir()
    return {**command_environment, "TMPDIR": str(tmp_path / "tmp")}


def test_rendering_leaves_every_global_thread_and_file_as_it_was(
    own_environment: dict[str, str], tour: Path, broken: Path, tmp_path: Path
) -> None:
    done = python(RUN, own_environment, tour, broken, tmp_path / "out.jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    assert len(re.findall("^mmprompt: .* 0 left out", done.stderr, re.MULTILINE)) == 2


def test_an_iteration_that_is_given_up_leaves_nothing_open(own_environment: dict[str, str], tour: Path) -> None:
    code = (
        MANNERS
        + """
from mmprompt import dataset_task
for name in ("tour.jsonl", "tour.csv", "tour.json"):
    rows = dataset_task(os.path.join(sys.argv[1], name)).messages()
    next(rows)
    rows.close()
del rows
gc.collect()
after = globals_of_the_process()
for key, value in before.items():
    assert after[key] == value, key
"""
    )
    done = python(code, own_environment, tour)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---- values that travel


TEMPLATE = {
    "begin": "Look.",
    "round": [{"role": "HUMAN", "prompt": "Q: {question}"}, {"role": "BOT", "prompt": "{answer}"}],
}
META = {"round": [{"role": "HUMAN", "begin": "<H>"}, {"role": "BOT", "begin": "<B>", "generate": True}]}
MM = {
    "round": [
        {
            "role": "HUMAN",
            "prompt_mm": {
                "text": {"type": "text", "text": "Q: {question}"},
                "image": {"type": "image_url", "image_url": {"url": "file://{image}"}},
            },
        }
    ]
}
ROW = {"id": 1, "question": "What?", "answer": "A"}
TAGGED = {"id": 1, "content": "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>What?<AIS_CONTENT_TAG>"}


def a_task() -> Any:
    config = {
        "dataset": {"rows": [ROW]},
        "infer_cfg": {"prompt_template": {"template": TEMPLATE}},
        "model": {"meta_template": META},
    }
    return mmprompt.load_task(config)


def values() -> dict[str, Any]:
    where = mmprompt.Where("a.jsonl", 3, "question", 7, "q-1", "round[0]")
    return {
        "message": mmprompt.Message("HUMAN", [mmprompt.TextPart("t"), mmprompt.MediaRef("image", "a.jpg", options=(("detail", "low"),))], name="n"),
        "part": mmprompt.MediaPart("image", "image/png", b"\x89PNG", findings=("f",)),
        "segment": mmprompt.Segment("image", "a.jpg", 3, 8),
        "policy": mmprompt.MediaPolicy(["."], ["example.com"], max_bytes=5),
        "prompt list": mmprompt.PromptTemplate(TEMPLATE).generate_item(ROW),
        **{name: getattr(errors, name)("what", "hint", where) for name in dir(errors) if name.endswith("Error")},
    }  # fmt: skip


def echo(value: Any) -> Any:
    return value


def behaviour(which: str, value: Any) -> Any:
    """Return what an object does, for those that do not compare."""
    if which == "task":
        return repr([list(value.prompts()), list(value.strings()), list(value.messages())])
    if which == "dataset task":
        return repr([id_ for id_, _ in value.messages()])
    if which == "template":
        return repr(value.generate_item(ROW, "answer"))
    if which == "multimodal template":
        return repr(value.generate_item(TAGGED))
    if which == "meta template":
        prompt = mmprompt.PromptTemplate(TEMPLATE).generate_item(ROW, "answer")
        return repr([value.to_string(prompt, "gen"), value.to_messages(prompt, "gen")])
    if which == "renderer":
        task = a_task()
        return [b"".join(value.render(sample).chunks) for sample in task.samples()]
    raise KeyError(which)


def objects(tour: Path) -> dict[str, Any]:
    return {
        "task": a_task(),
        "dataset task": dataset_task(tour / "tour.csv"),
        "template": mmprompt.PromptTemplate(TEMPLATE),
        "multimodal template": mmprompt.MMPromptTemplate(MM),
        "meta template": mmprompt.MetaTemplate(META),
        "renderer": Renderer(a_task()),
    }


def test_values_and_objects_pickle(tour: Path) -> None:
    for name, value in values().items():
        back = pickle.loads(pickle.dumps(value))
        assert type(back) is type(value)
        assert (str(back), repr(back)) == (str(value), repr(value)), name
    for name, value in objects(tour).items():
        back = pickle.loads(pickle.dumps(value))
        assert behaviour(name, back) == behaviour(name, value)
        assert pickle.loads(pickle.dumps(back)).__class__ is value.__class__


@pytest.mark.parametrize("method", [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_values_and_objects_go_to_another_process_and_back(method: str, tour: Path) -> None:
    with multiprocessing.get_context(method).Pool(1) as pool:
        sent = values()
        back = dict(zip(sent, pool.map_async(echo, sent.values()).get(PATIENCE), strict=True))
        for name, value in sent.items():
            assert (type(back[name]), str(back[name])) == (type(value), str(value)), name
        assert back["TagError"].where == sent["TagError"].where
        assert back["message"] == sent["message"]
        assert back["policy"] == sent["policy"]
        made = objects(tour)
        there = dict(zip(made, pool.starmap_async(behaviour, made.items()).get(PATIENCE), strict=True))
        pool.close()
        pool.join()
    assert there == {name: behaviour(name, value) for name, value in made.items()}


def test_policies_messages_parts_and_templates_cannot_be_changed() -> None:
    fields = {"message": "role", "part": "data", "policy": "roots"}
    for value, field in [
        *[(values()[name], field) for name, field in fields.items()],
        (mmprompt.PromptTemplate(TEMPLATE), "prompt_type"),
    ]:
        with pytest.raises(AttributeError):
            setattr(value, field, "other")


# ---- threads


@pytest.mark.parametrize("dataset", DATASETS)
def test_four_threads_at_once_render_what_one_does(dataset: str, tour: Path) -> None:
    task = dataset_task(tour / dataset)
    renderer = Renderer(task)

    def all_rows(_: int) -> list[bytes]:
        return [b"".join(renderer.render(sample).chunks or ()) for sample in task.samples()]

    one = all_rows(0)
    before = set(threading.enumerate())
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(all_rows, range(4))) == [one] * 4
    assert not set(threading.enumerate()) - before
    assert all(one)


def test_four_threads_at_once_share_a_task_and_its_templates() -> None:
    rows = [{"id": n, "question": f"q{n}", "answer": "a"} for n in range(200)]
    task = mmprompt.load_task(
        {
            "dataset": {"rows": rows},
            "infer_cfg": {"prompt_template": {"template": TEMPLATE}},
            "model": {"meta_template": META},
        }
    )
    one = [list(task.prompts()), list(task.strings()), list(task.messages())]
    with ThreadPoolExecutor(4) as pool:
        given = pool.map(lambda _: [list(task.prompts()), list(task.strings()), list(task.messages())], range(8))
        assert all(each == one for each in given)
