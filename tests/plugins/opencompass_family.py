"""What the tests of AISBench and OpenCompass share: the tasks they run, and their own commands as a user starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from recording_server import recording_server

from mmprompt import load_task

COMMAND_SECONDS = 600
FEW_SHOT = {
    "infer_cfg": {
        "ice_template": {
            "type": "MMPromptTemplate",
            "template": {
                "round": [
                    {"role": "HUMAN", "prompt_mm": "SKELETONS"},
                    {"role": "BOT", "prompt": "{answer}"},
                ]
            },
        },
        "prompt_template": {
            "type": "MMPromptTemplate",
            "ice_token": "</E>",
            "template": {
                "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Answer in a few words."}, "</E>"],
                "round": [{"role": "HUMAN", "prompt_mm": "SKELETONS"}, {"role": "BOT", "prompt": "{answer}"}],
            },
        },
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0, 3]},
    }
}
SKELETONS = {
    "text": {"type": "text", "text": "{question}"},
    **{m: {"type": f"{m}_url", f"{m}_url": {"url": f"file://{{{m}}}"}} for m in ("image", "audio", "video")},
}


def few_shot(tour: Path) -> dict[str, Any]:
    """A task whose examples hold a picture and a sound."""
    task: dict[str, Any] = json.loads(json.dumps(FEW_SHOT).replace('"SKELETONS"', json.dumps(SKELETONS)))
    path = str(tour / "tour.jsonl")
    return {"dataset": {"path": path, "train": path}, "reader_cfg": {"output_column": "answer"}, **task}


def reply(body: dict[str, Any]) -> str:
    """Answer the first row of the tour rightly, and tell the others how many messages came."""
    said = json.dumps(body["messages"][-1])
    return "coffee" if "What drink is in the cup?" in said else f"{len(body['messages'])} messages"


def sent(run: Run, rendered: dict[str, Any], datasets: Iterable[str], dataset: str) -> list[Any]:
    """The requests of one dataset in the order of its rows: OpenCompass keeps the order of datasets and of rows."""
    at = 0
    for name in datasets:
        if name == dataset:
            return run.bodies[at : at + len(rendered[name])]
        at += len(rendered[name])
    raise AssertionError(dataset)


def with_examples(wanted: list[Any], shown: tuple[int, ...]) -> list[tuple[str, list[Any]]]:
    """Each row's id and what must arrive: the system's word, the rows ``shown`` as examples, and its own message."""
    examples: list[Any] = [("system", [("text", "Answer in a few words.")])]
    for number in shown:
        _, answer, messages = wanted[number]
        examples += [*messages, ("assistant", [("text", answer)])]
    return [(id_, [*examples, *messages]) for id_, _, messages in wanted]


class Run(NamedTuple):
    """One run of a runner's command: ``console`` is what it printed, ``log`` that and the files of its processes."""

    code: int
    console: str
    log: str
    bodies: list[dict[str, Any]]
    folder: Path

    def found(self, pattern: str) -> Path:
        """The one file below the folder that matches."""
        [file] = self.folder.glob(pattern)
        return file


def run_config(folder: Path, command: str, config: str, *arguments: str, reply: Callable[[dict[str, Any]], str]) -> Run:
    """Run a config, in which PORT stands for the server's port, by the runner's own command."""
    with recording_server(reply) as server:
        (folder / "cfg.py").write_text(config.replace("PORT", str(server.port)), encoding="utf-8")
        program = shutil.which(command, path=str(Path(sys.executable).parent))
        assert program, f"{command} is not beside {sys.executable}"
        paths = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [program, "cfg.py", *arguments],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": paths,
                "HF_HUB_OFFLINE": "1",
                "PYTHONWARNINGS": "ignore",
                "no_proxy": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        logs = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("out/**/*.out")))
        console = done.stdout + done.stderr
        return Run(done.returncode, console, console + logs, list(server.bodies), folder)


RETRIEVERS = {
    "ZeroRetriever": {},
    "FixKRetriever": {"fix_id_list": [2, 0]},
    "RandomRetriever": {"ice_num": 2, "seed": 7},
    "SlidingWindowRetriever": {"k": 2},
    "BM25Retriever": {"ice_num": 2},
    "TopkRetriever": {"ice_num": 2, "embed": lambda texts: [[text.count(c) for c in "abcdelr"] for text in texts]},
}
WORDS = ("a red cup", "a blue ball", "a red ball", "one cat", "a cup of tea")
TEXT = "Q: {question}\nA: {answer}"


def retrieved(tmp_path: Path, kind: str, retriever: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    """The examples of a runner's retriever and those of the core's task: ids and joined text, row by row.

    ``retriever`` makes the runner's from the path of the rows, its kind and its arguments.
    """
    path = tmp_path / "rows.jsonl"
    rows = [{"id": f"r{n}", "question": words, "answer": str(n)} for n, words in enumerate(WORDS)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = load_task({
        "dataset": {"path": str(path), "train": str(path)},
        "reader_cfg": {"input_columns": ["question"], "output_column": "answer"},
        "infer_cfg": {
            "ice_template": {"template": TEXT},
            "prompt_template": {"template": "</E>", "ice_token": "</E>"},
            "retriever": {"type": kind, **RETRIEVERS[kind]},
        },
    })  # fmt: skip
    made = [task.assembled(sample)[0] for sample in task.samples()]
    theirs = retriever(str(path), kind, RETRIEVERS[kind])
    ids = theirs.retrieve()
    return [(i, theirs.generate_ice(i)) for i in ids], [(list(m.example_ids), m.prompt) for m in made]


def task_with_a_slot_of_no_column(folder: Path) -> str:
    """A task whose template misspells its column, so that mmprompt has something to say."""
    (folder / "rows.jsonl").write_text('{"question": "1+1=?", "answer": "2"}', encoding="utf-8")
    infer = {"prompt_template": {"template": "Solve: {quesion}"}}
    task = {"dataset": "rows.jsonl", "reader_cfg": {"missing": "keep"}, "infer_cfg": infer}
    (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
    return str(folder / "task.json")
