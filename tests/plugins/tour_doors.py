"""The runners' own commands over a task file or dataset: how each is started, as its page says, and what it wrote."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from readme_blocks import blocks_of_runner
from recording_server import MODEL

TOUR = "fixtures/tour/tour.jsonl"
SERVER = "http://127.0.0.1:8000/v1"
FLAC = ("tour-05", "tour-25")
_NO_SOUND = ("tour-04", "tour-05", "tour-06", "tour-08", "tour-25")


class Ask(NamedTuple):
    """One run: its folder, what is asked of which server, and the options that the runner's user gives."""

    folder: Path
    path: Path
    url: str
    model: str = MODEL
    options: Mapping[str, Any] = {}

    def filled(self, text: str) -> str:
        """An example of a page with this server, model and file in the place of its own."""
        return text.replace(SERVER, self.url).replace("qwen", self.model).replace(TOUR, str(self.path))

    def words(self, text: str) -> list[object]:
        """The words of a page's command."""
        return [*shlex.split(self.filled(text))]

    def given(self, form: str, *, joint: str = " ", text: Callable[[Any], str] = json.dumps) -> str:
        """The options, each in a form such as ``-T {name}={value}``."""
        return joint.join(form.format(name=name, value=text(value)) for name, value in self.options.items())


class Results(NamedTuple):
    """What a runner's own files say: the score, and which rows were right, by id or in order; None if they do not."""

    score: float
    right: dict[str, bool] | list[bool] | None


class Door(NamedTuple):
    """A runner, and how our tasks go into it.

    ``refused`` holds the rows of the tour that it cannot carry, and what it says of each. ``mend`` and ``skip`` are
    what its errors say about a folder that is not allowed and about leaving rows out, ``told`` how five faults begin.
    A runner without ``skip`` leaves no rows out. ``warm_up`` is the number of requests before the run, ``adds`` the
    keys that it writes beside the messages and the model, ``fails`` whether wrong replies end the command with an
    error, ``stops`` whether faulty rows do. ``in_one_process`` makes the command start no process for a part of its work,
    which would import all of the runner again; faulty rows then end it otherwise.
    """

    runner: str
    module: str
    command: Callable[[Ask], list[object]]
    results: Callable[[Path], Results]
    mend: str = ""
    skip: str = ""
    told: str = "5 requests cannot be made"
    refused: Mapping[str, str] = {}
    as_sent: Callable[[Any], Any] = lambda messages: messages
    warm_up: int = 0
    adds: frozenset[str] = frozenset()
    fails: bool = False
    stops: bool = True
    variables: Callable[[str], dict[str, str]] = lambda url: {}
    in_one_process: tuple[str, ...] = ()


def _page(document: str, runner: str) -> list[str]:
    return [block.text for block in blocks_of_runner(document, runner)]


def _plain(value: Any) -> str:
    return json.dumps(value).strip('"')


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


# ---- lm-eval


def _lm_eval(ask: Ask) -> list[object]:
    text = _page("mmprompt/plugins/lm_eval/README.md", "lm-eval")[0]
    return ask.words(text.replace(TOUR, f"{TOUR} {ask.given('{name}={value}', text=_plain)}"))


def _harness(folder: Path, scores: str, samples: str, task: str) -> Results:
    [file], [kept] = folder.glob(scores), folder.glob(samples)
    assert not any("base64" in file.read_text(encoding="utf-8") for file in folder.glob("out/*/*"))
    lines = sorted(_lines(kept), key=lambda line: line["doc_id"])
    score = json.loads(file.read_text(encoding="utf-8"))["results"][task]["score,none"]
    return Results(score, [bool(line["score"]) for line in lines])


# ---- lmms-eval


def _lmms_eval(ask: Ask) -> list[object]:
    task, guide = _page("mmprompt/plugins/lmms_eval/README.md", "lmms-eval")
    (ask.folder / "tasks").mkdir()
    text = task.replace(TOUR, TOUR + ask.given(", {name}: {value}", joint=""))
    (ask.folder / "tasks/tour.yaml").write_text(ask.filled(text), encoding="utf-8")
    return ask.words(guide)


# ---- evalscope


def _evalscope(ask: Ask) -> list[object]:
    text = _page("mmprompt/plugins/evalscope/README.md", "evalscope")[0]
    text = text.replace('{"audio_format": "wav"}', json.dumps(dict(ask.options)))
    return [*ask.words(text), "--work-dir", "out", "--no-timestamp"]


def evalscope_messages(messages: Any) -> Any:
    """Messages as evalscope's client writes them."""
    messages = json.loads(json.dumps(messages))
    for part in (p for m in messages if isinstance(m["content"], list) for p in m["content"]):
        if part["type"] == "image_url":
            part["image_url"].setdefault("detail", "auto")
        if part["type"] == "audio_url":
            head, _, data = part.pop("audio_url")["url"].partition(",")
            form = "wav" if "wav" in head else "mp3"
            part |= {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    return messages


def evalscope_results(folder: Path) -> Results:
    """The score of evalscope's report, and which of its reviews are right."""
    [report] = folder.glob("out/reports/*/mmprompt.json")
    [kept] = folder.glob("out/reviews/*/mmprompt_default.jsonl")
    [metric] = json.loads(report.read_text(encoding="utf-8"))["metrics"]
    scores = [line["sample_score"] for line in _lines(kept)]
    return Results(
        metric["score"],
        {str(one["sample_metadata"]["id"]): bool(one["score"]["value"]["acc"]) for one in scores},
    )


# ---- deepeval


def _deepeval(ask: Ask) -> list[object]:
    [guide] = [text for text in _page("mmprompt/plugins/deepeval/README.md", "deepeval") if "import pytest" in text]
    text = guide.replace(", skip_bad=True", ask.given(", {name}={value}", joint="", text=repr))
    (ask.folder / "test_tour.py").write_text(ask.filled(text), encoding="utf-8")
    return ["deepeval", "test", "run", "test_tour.py"]


def deepeval_results(folder: Path) -> Results:
    """Whether each case passed, as deepeval's own file says."""
    kept = json.loads((folder / ".deepeval/.latest_test_run.json").read_text(encoding="utf-8"))
    cases = {case["name"]: case["success"] for case in kept.get("testRunData", kept)["testCases"]}
    return Results(sum(cases.values()) / len(cases), cases)


# ---- inspect-ai


def _inspect_ai(ask: Ask) -> list[object]:
    text = (
        _page("mmprompt/plugins/inspect_ai/README.md", "inspect-ai")[0]
        .splitlines()[1]
        .replace(" -T scorer=contains", "")
    )
    options = shlex.split(ask.given("-T {name}={value}", text=_plain))
    return [*ask.words(text), *options, "--display", "plain", "--log-dir", "logs", "--log-format", "json"]


def inspect_ai_results(folder: Path) -> Results:
    """The score of inspect-ai's log, and which of its samples are right."""
    [file] = folder.glob("logs/*.json")
    log = json.loads(file.read_text(encoding="utf-8"))
    assert log["status"] == "success"
    [score] = log["results"]["scores"]
    right = {str(sample["id"]): sample["scores"]["score"]["value"] == "C" for sample in log["samples"]}
    return Results(score["metrics"]["accuracy"]["value"], right)


# ---- pytest


def _pytest(ask: Ask) -> list[object]:
    _, command, *_, rows = _page("mmprompt/plugins/PYTEST.md", "pytest")
    named = '"fixtures/shapes/task.yaml"'
    text = rows.replace(named, f'"{TOUR}"' + ask.given(", {name}={value}", joint="", text=repr))
    (ask.folder / "test_tour.py").write_text(ask.filled(text), encoding="utf-8")
    words = ask.words(command.replace("builtin:shapes", ask.model).replace("test_pictures.py", "test_tour.py"))
    own = ["-p", "mmprompt.plugins.pytest_plugin", "-p", "no:mmprompt", "-p", "no:cacheprovider"]
    return [*words, *own, "--rootdir", ".", "-c", "/dev/null", "--junitxml", "out.xml"]


def _pytest_results(folder: Path) -> Results:
    cases = ET.parse(folder / "out.xml").getroot().iter("testcase")  # pytest wrote it
    right = {case.attrib["name"].partition("[")[2][:-1]: case.find("failure") is None for case in cases}
    return Results(sum(right.values()) / len(right), right)


_FLAC_REFUSED = 'evalscope cannot carry audio as audio/flac; convert it: "extra_params": {"audio_format": "wav"}'
DOORS = (
    Door(
        "inspect-ai", "inspect_ai", _inspect_ai, inspect_ai_results,
        mend="-T media_root=DIR", skip="-T skip_bad=true",
        variables=lambda url: {"LOCAL_BASE_URL": url, "LOCAL_API_KEY": "none"},
    ),
    Door("pytest", "pytest", _pytest, _pytest_results, mend='media_root="DIR"', skip="skip_bad=True", fails=True),
    Door(
        "lm-eval", "lm_eval", _lm_eval,
        lambda folder: _harness(folder, "out/*/results_*.json", "out/*/samples_mmprompt_*.jsonl", "mmprompt"),
        mend="--metadata media_root=DIR", skip="--metadata skip_bad=true",
        adds=frozenset(("max_tokens", "temperature", "seed")),
    ),
    Door(
        "lmms-eval", "lmms_eval", _lmms_eval,
        lambda folder: _harness(folder, "out/*/*_results.json", "out/*/*_samples_tour.jsonl", "tour"),
        mend="dataset_kwargs: {media_root: DIR}", skip="dataset_kwargs: {skip_bad: true}",
    ),
    Door(
        "evalscope", "evalscope", _evalscope, evalscope_results,
        mend='"extra_params": {"media_root": "DIR"}', skip='"extra_params": {"skip_bad": true}',
        refused=dict.fromkeys(FLAC, _FLAC_REFUSED), as_sent=evalscope_messages,
        adds=frozenset(("temperature",)),
    ),
    Door(
        "deepeval", "deepeval", _deepeval, deepeval_results,
        mend='media_root="DIR"', skip="skip_bad=True", fails=True,
        refused={
            **dict.fromkeys(_NO_SOUND, "deepeval cannot carry audio; leave the row out"),
            "tour-07": "deepeval cannot carry video; leave the row out",
            "tour-15": "deepeval would fetch the image that goes by its URL; leave the row out",
        },
    ),
)  # fmt: skip
