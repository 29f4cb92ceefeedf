"""inspect-ai with our plugin: its own console command on the tour, against a server that records.

Only ``detail: auto`` on pictures, which its stock provider adds, may differ from what ``mmprompt render`` writes.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from loopback import serving
from recording_server import MODEL, recording_server
from runner_present import need

pytestmark = pytest.mark.runners
need("inspect-ai", "inspect_ai")

OURS, STOCK = f"mmprompt/local/{MODEL}", f"openai-api/local/{MODEL}"
SEGMENT = re.compile(r"<AIS_(TEXT|IMAGE|AUDIO|VIDEO)_START>(.*?)(?:<AIS_CONTENT_TAG>|\Z)", re.DOTALL)
HUMAN = """
      - role: HUMAN
        prompt_mm:
          text: {type: text, text: "{question}"}
          image: {type: image_url, image_url: {url: "file://{image}", detail: high}}
          audio: {type: input_audio, input_audio: {data: "{audio}"}}
          video: {type: video_url, video_url: {url: "file://{video}", fps: 2}}
      - {role: BOT, prompt: "{answer}"}
"""
FEW_SHOT = f"""
dataset: {{path: TOUR, train: TOUR}}
reader_cfg: {{output_column: answer, test_range: "[0:12]", train_range: "[0:11]"}}
infer_cfg:
  ice_template:
    type: MMPromptTemplate
    template:
      round: {HUMAN}
  prompt_template:
    type: MMPromptTemplate
    ice_token: </E>
    template:
      begin:
      - {{role: SYSTEM, prompt: "请简短回答。"}}
      - </E>
      round: {HUMAN}
  retriever: {{type: FixKRetriever, fix_id_list: [10, 3, 6]}}
  inferencer: {{type: GenInferencer, max_out_len: 32}}
model: {{generation: {{temperature: 0, top_k: 5}}}}
eval_cfg: {{scorer: contains}}
"""


@pytest.fixture(scope="module")
def few_shot(tour, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("few_shot") / "task.yaml"
    path.write_text(FEW_SHOT.replace("TOUR", json.dumps(str(tour / "tour.jsonl"))), encoding="utf-8")
    return path


def inspect(folder: Path, base_url: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the runner's console command as its users do."""
    keys = {"LOCAL_BASE_URL": base_url, "LOCAL_API_KEY": "x", "XDG_DATA_HOME": str(folder), "NO_COLOR": "1"}
    environment = {**os.environ, **keys, "HF_HUB_OFFLINE": "1", "COLUMNS": "1000"}
    words = [str(Path(sys.executable).with_name("inspect")), *map(str, arguments)]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


def evaluate(
    folder: Path, base_url: str, model: str, *arguments: object, limits: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    values = [word for argument in arguments for word in ("-T", argument)]
    options = ("--display", "plain", "--log-dir", "logs", "--log-format", "json", *limits)
    return inspect(folder, base_url, "eval", "mmprompt/task", *values, "--model", model, *options)


def rendered(command: Any, *arguments: object) -> dict[object, dict[str, Any]]:
    return {line["id"]: line for line in map(json.loads, command("render", *arguments).stdout.splitlines())}


def key(messages: list[dict[str, Any]], added: bool = False) -> str:
    """Return messages to be compared; ``added`` leaves out what the stock provider adds."""
    if added:
        messages = json.loads(json.dumps(messages))
        for part in (p for m in messages if isinstance(m["content"], list) for p in m["content"]):
            if part["type"] == "image_url" and part["image_url"].get("detail") == "auto":
                del part["image_url"]["detail"]
    return json.dumps(messages, sort_keys=True)


def run(folder: Path, model: str, lines: dict[object, dict[str, Any]], *arguments: object) -> list[dict[str, Any]]:
    """Run a task, hold what the server was asked and what the log says against ``lines``; return the bodies."""
    stock = model == STOCK
    of_key = {key(line["messages"]): line for line in lines.values()}
    assert len(of_key) == len(lines)
    right = {sample_id for number, sample_id in enumerate(lines) if number % 3 != 2}

    def reply(body: dict[str, Any]) -> str:
        line = of_key[key(body["messages"], stock)]
        return f"I say: {line['answer']} ({line['id']})" if line["id"] in right else f"no idea ({line['id']})"

    with recording_server(reply) as server:
        done = evaluate(folder, server.base_url, model, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = (folder / "logs").glob("*.json")
    log = json.loads(path.read_text(encoding="utf-8"))
    assert log["status"] == "success"
    assert sorted(key(body["messages"], stock) for body in server.bodies) == sorted(of_key)
    assert {sample["id"] for sample in log["samples"]} == set(lines)
    for sample in log["samples"]:
        said = sample["output"]["choices"][0]["message"]["content"]
        assert said.endswith(f"({sample['id']})")
        assert sample["scores"]["score"]["value"] == ("C" if sample["id"] in right else "I")
    [score] = log["results"]["scores"]
    assert score["metrics"]["accuracy"]["value"] == pytest.approx(len(right) / len(lines))
    return server.bodies


def facts(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the parts of a message: kind and text, or kind and SHA-256 of the media."""
    if isinstance(message["content"], str):
        return [("text", message["content"])]
    found = []
    for part in message["content"]:
        body = part[part["type"]]
        source = body if part["type"] == "text" else body.get("data") or body["url"]
        kind = part["type"].replace("_url", "").replace("input_", "")
        if kind != "text" and not source.startswith("http"):
            source = hashlib.sha256(base64.b64decode(source.rpartition(",")[2])).hexdigest()
        found.append((kind, source))
    return found


def expected(content: str, root: Path) -> list[tuple[str, str]]:
    """Return what a tagged column should become, by a naive reader that shares nothing with the package."""
    found = []
    for tag, value in SEGMENT.findall(content) or [("TEXT", content)]:
        if tag != "TEXT" and not value.startswith("http"):
            if value.startswith("data:"):
                data = base64.b64decode(value.partition(",")[2])
            elif value.startswith("/9j/"):
                data = base64.b64decode(value)
            else:
                data = (root / (unquote(value[7:]) if value.startswith("file://") else value)).read_bytes()
            found.append((tag.lower(), hashlib.sha256(data).hexdigest()))
        else:
            found.append((tag.lower(), value))
    return found


def test_few_shot_examples_keep_their_media(few_shot, tmp_path, command, tour):
    lines = rendered(command, few_shot)
    assert len(lines) == 12
    bodies = run(tmp_path, OURS, lines, f"path={few_shot}")
    rows = [json.loads(line) for line in (tour / "tour.jsonl").read_text(encoding="utf-8").splitlines()]
    shown = [expected(rows[n]["content"], tour) for n in (10, 3, 6)]
    for body in bodies:
        assert [message["role"] for message in body["messages"]] == ["system", *["user", "assistant"] * 3, "user"]
        assert [facts(message) for message in body["messages"][1:-1:2]] == shown
        assert body["messages"][2]["content"] == rows[10]["answer"]
        assert (body["temperature"], body["top_k"], body["max_tokens"]) == (0, 5, 32)


@pytest.mark.parametrize("name", ["tour_chat.jsonl", "task.yaml"])
def test_chats_and_task_files_are_what_render_writes(name, tour, tmp_path, command):
    run(tmp_path, OURS, rendered(command, tour / name), f"path={tour / name}", "scorer=contains")


def test_the_stock_provider_sends_what_it_can_carry(tour, tmp_path, command):
    path = tour / "tour.jsonl"
    lines = rendered(command, path, "--target", "openai")
    del lines["tour-15"]  # a URL, which the runner would fetch
    assert len(lines) == 19
    run(tmp_path, STOCK, lines, f"path={path}", "scorer=contains", "target=openai", "skip_bad=true")


def test_what_the_stock_provider_cannot_carry_is_refused_before_the_run(tour, tmp_path):
    with recording_server() as server:
        done = evaluate(tmp_path, server.base_url, STOCK, f"path={tour / 'tour.jsonl'}")
    assert done.returncode != 0
    assert not server.requests
    assert not list(tmp_path.glob("logs/*.json"))
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert "5 requests cannot be made" in said
    for sample, lost in {
        "tour-05": "message 1, part 1: the model provider openai-api cannot carry audio as audio/flac",
        "tour-07": "message 1, part 1: the model provider openai-api cannot carry video",
        "tour-08": "message 1, part 4: the model provider openai-api cannot carry video",
        "tour-15": "message 1, part 1: the model provider openai-api cannot carry image as the URL 'https://example.com/photos/cat.jpg' unread",
        "tour-25": "message 1, part 1: the model provider openai-api cannot carry audio as audio/flac",
    }.items():
        assert f"MM800 {lost}; use --model mmprompt/SERVICE/MODEL (sample {sample})" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scorer=anl"], "unknown scorer 'anl'; did you mean 'anls'?"),
        (["fetc=true"], "unknown argument 'fetc'; did you mean 'fetch'?"),
        (["target=gemini"], "this runner needs OpenAI's chat form, and gemini has another"),
        (["dataset=x.jsonl"], "dataset and train are for a task file"),
        (["path=a[/b]gone.jsonl"], "a[/b]gone.jsonl"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments, said, tour, tmp_path):
    done = evaluate(tmp_path, "http://127.0.0.1:9/v1", OURS, f"path={tour / 'tour.jsonl'}", *arguments)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("limits", "address", "setting"),
    [
        ((), "http://127.0.0.1:9/v1", "LOCAL_BASE_URL"),
        (("--model-base-url", "http://127.0.0.1:7/v1"), "http://127.0.0.1:7/v1", "--model-base-url"),
    ],
)
def test_a_dead_server_is_told_before_the_first_request(limits, address, setting, tour, tmp_path):
    done = evaluate(tmp_path, "http://127.0.0.1:9/v1", OURS, f"path={tour / 'tour.jsonl'}", limits=limits)
    assert done.returncode != 0
    said = f"mmprompt: MM901 the server at {address} cannot be reached; start the server, or correct {setting}\n"
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_what_may_be_fetched_is_an_argument(tour, tmp_path):
    picture = (tour / "media/coffee.jpg").read_bytes()

    class Pictures(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "image/jpeg")
            self.send_header("Content-Length", str(len(picture)))
            self.end_headers()
            self.wfile.write(picture)

        def log_message(self, *_):
            """Print nothing."""

    with serving(Pictures) as port, recording_server() as server:
        row = {"image": f"http://127.0.0.1:{port}/cup.jpg", "question": "?"}
        (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
        words = ("path=rows.jsonl", "fetch=true", f"allow_domain=b.example,127.0.0.1:{port}")
        done = evaluate(tmp_path, server.base_url, OURS, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    [body] = server.bodies
    assert facts(body["messages"][0]) == [("image", hashlib.sha256(picture).hexdigest()), ("text", "?")]


TURNS = """
dataset: {path: rows.jsonl}
infer_cfg:
  prompt_template:
    type: MultiTurnPromptTemplate
    template:
      begin: [{role: SYSTEM, fallback_role: HUMAN, prompt: Be brief.}]
      round: [{role: HUMAN, prompt: "{q}"}, {role: BOT, prompt: "{answer}"}]
  inferencer: {type: MultiTurnGenInferencer, infer_mode: every_with_gt}
eval_cfg: {scorer: contains}
"""


def test_turns_epochs_a_limit_and_a_stream(tmp_path, command):
    rows = [{"id": name, "q": [f"{name}1", f"{name}2"], "answer": ["one", "two"]} for name in "ab"]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "task.yaml").write_text(TURNS, encoding="utf-8")
    lines = [json.loads(line) for line in command("render", tmp_path / "task.yaml").stdout.splitlines()]
    assert [(line["id"], line["turn"]) for line in lines] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    words = [
        "eval",
        "mmprompt/task",
        "-T",
        "path=task.yaml",
        "--model",
        OURS,
        "--log-dir",
        "logs",
        "--log-format",
        "json",
    ]
    with recording_server(lambda body: "one") as server:
        done = inspect(tmp_path, server.base_url, *words, "--epochs", 2, "--limit", 3, "-M", "stream=true")
    assert done.returncode == 0, done.stdout + done.stderr
    asked = sorted(key(body["messages"]) for body in server.bodies)
    assert asked == sorted(key(line["messages"]) for line in lines[:3] * 2)
    assert all(body["stream"] for body in server.bodies)
    [path] = (tmp_path / "logs").glob("*.json")
    samples = json.loads(path.read_text(encoding="utf-8"))["samples"]
    assert sorted((sample["id"], sample["epoch"], sample["target"]) for sample in samples) == [
        (name, epoch, answer) for name, answer in (("a#0", "one"), ("a#1", "two"), ("b#0", "one")) for epoch in (1, 2)
    ]


@pytest.mark.parametrize(("mode", "asked"), [("every_with_gt", 5), ("last", 2)])
def test_right_replies_to_each_turn_are_all_right(mode, asked, tmp_path):
    rows = [
        {"id": name, "q": [f"{name}{n}" for n in range(count)], "answer": [f"<{name}{n}>" for n in range(count)]}
        for name, count in (("a", 3), ("b", 2))
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "task.yaml").write_text(TURNS.replace("every_with_gt", mode), encoding="utf-8")
    with recording_server(lambda body: f"<{body['messages'][-1]['content']}>") as server:
        done = evaluate(tmp_path, server.base_url, OURS, "path=task.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(server.bodies) == asked
    [path] = (tmp_path / "logs").glob("*.json")
    [score] = json.loads(path.read_text(encoding="utf-8"))["results"]["scores"]
    assert score["metrics"]["accuracy"]["value"] == 1


def test_a_reply_that_calls_a_tool_ends_its_sample(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "?"}\n', encoding="utf-8")
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    with recording_server(lambda body: {"role": "assistant", "content": "", "tool_calls": [call]}) as server:
        done = evaluate(tmp_path, server.base_url, OURS, "path=rows.jsonl", limits=("--message-limit", "9"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (OURS, [], "mmprompt: MM602 no task file or dataset is given; name a task file or dataset: -T path=FILE"),
        ("mmprompt/qwen", ["-T", "path=rows.jsonl"], "mmprompt: the model lacks its server; write --model mmprompt/SERVICE/MODEL"),
        (OURS, ["-T", "path=rows.jsonl", "-M", "responses_api=true"], "mmprompt: responses_api has no form for all parts"),
    ],
)  # fmt: skip
def test_a_command_that_lacks_something_is_told_without_a_traceback(model, options, said, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "?"}\n', encoding="utf-8")
    done = inspect(tmp_path, "http://127.0.0.1:9/v1", "eval", "mmprompt/task", "--model", model, *options)
    assert done.returncode != 0
    assert said in re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert "Traceback" not in done.stdout + done.stderr


def test_the_task_is_listed(tmp_path):
    folder = Path(importlib.util.find_spec("mmprompt").origin).parent / "plugins"
    (tmp_path / "plugins").symlink_to(folder)
    assert "inspect_ai/task.py@task" in inspect(tmp_path, "", "list", "tasks", "plugins").stdout
