"""The tour datasets, rendered by the console command and posted to a real server: what arrives is what was meant.

The expectation is made here, by a naive reader of the fixture rows that shares nothing with the package.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import http.client
import json
import os
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from closing_line import closing
from loopback import serving

DATASETS = ("tour.jsonl", "tour.csv", "tour_columns.jsonl", "tour_mm_custom.jsonl", "tour_chat.jsonl", "tour.json")
ROWS = {
    "tour.jsonl": 25,
    "tour.csv": 6,
    "tour_columns.jsonl": 9,
    "tour_mm_custom.jsonl": 7,
    "tour_chat.jsonl": 8,
    "tour.json": 3,
}
TYPES = {
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "gif": "image/gif",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
}
EMBEDDED = {"tour-13": "image/png", "tour-14": "image/jpeg"}
SEGMENT = re.compile(r"<AIS_(TEXT|IMAGE|AUDIO|VIDEO)_START>(.*?)(?:<AIS_CONTENT_TAG>|\Z)", re.DOTALL)


# ---- the server


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        answer = b'{"choices": [{"message": {"role": "assistant", "content": "ok"}}]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def post_lines(lines: list[bytes]) -> list[dict[str, Any]]:
    """Post the messages of each line and return the requests as the server read them."""
    bodies: list[bytes] = []
    with serving(type("Bound", (Recorder,), {"bodies": bodies})) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for line in lines:
            messages = json.loads(line)["messages"]
            body = json.dumps({"model": "a-model", "messages": messages}, ensure_ascii=False).encode("utf-8")
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            assert connection.getresponse().read()
        connection.close()
    return [json.loads(body) for body in bodies]


# ---- what the rows say, read naively


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def medium(modality: str, source: str, folder: Path, name: object = None) -> tuple[str, ...]:
    if source.startswith("https://"):
        return (modality, "url", source)
    if source.startswith("data:"):
        head, _, payload = source.partition(",")
        return (modality, head[5:].removesuffix(";base64"), sha(base64.b64decode(payload)))
    if len(source) > 300:
        return (modality, EMBEDDED[str(name)], sha(base64.b64decode(source)))
    path = unquote(source[len("file://") :]) if source.startswith("file://") else source
    return (modality, TYPES[path.rpartition(".")[2]], sha((folder / path).read_bytes()))


def tagged(row: dict[str, Any], folder: Path) -> list[tuple[str, ...]]:
    found = SEGMENT.findall(row["content"])
    if not found:
        return [("text", row["content"])]
    return [
        ("text", value) if kind == "TEXT" else medium(kind.lower(), value, folder, row["id"]) for kind, value in found
    ]


def in_columns(row: dict[str, Any], folder: Path) -> list[tuple[str, ...]]:
    parts: list[tuple[str, ...]] = []
    for column, value in row.items():
        if column not in ("image", "images", "audio", "video"):
            continue
        cell = isinstance(value, str) and value.startswith("[")
        listed = json.loads(value) if cell else value
        sources = listed if isinstance(listed, list) else [listed]
        parts += [medium(column.removesuffix("s"), source, folder) for source in sources]
    return [*parts, ("text", row["question"])]


def custom(row: dict[str, Any], folder: Path) -> list[tuple[str, ...]]:
    return [*[medium(row["type"], path, folder) for path in row["path"]], ("text", row["question"])]


def chat_part(part: dict[str, Any], folder: Path) -> tuple[str, ...]:
    kind = part["type"]
    if kind == "text":
        return ("text", part["text"])
    if kind == "input_audio":
        name = {"wav": "audio/wav", "mp3": "audio/mpeg"}[part[kind]["format"]]
        return ("audio", name, sha(base64.b64decode(part[kind]["data"])))
    return medium(kind.removesuffix("_url"), part[kind]["url"], folder)


def chat(messages: list[dict[str, Any]], folder: Path) -> list[tuple[str, list[tuple[str, ...]]]]:
    out = []
    for message in messages:
        content = message["content"]
        parts = [("text", content)] if isinstance(content, str) else [chat_part(p, folder) for p in content]
        out.append((message["role"], parts))
    return out


def expected(name: str, folder: Path) -> list[tuple[object, object, Any]]:
    """Return id, answer and messages (role, parts) of each row."""
    text = (folder / name).read_text(encoding="utf-8")
    rows: list[dict[str, Any]]
    if name.endswith(".csv"):
        rows = list(csv.DictReader(text.splitlines(keepends=True)))
    elif name.endswith(".json"):
        rows = json.loads(text)
    else:
        rows = [json.loads(line) for line in text.splitlines()]
    out: list[tuple[object, object, Any]] = []
    for number, row in enumerate(rows):
        id_ = row.get("id", row.get("index", number))
        if "messages" in row:
            messages = chat(row["messages"], folder)
        elif "content" in row:
            messages = [("user", tagged(row, folder))]
        else:
            messages = [("user", custom(row, folder) if "path" in row else in_columns(row, folder))]
        out.append((id_, row["answer"], messages))
    return out


# ---- what arrived


def arrived_part(part: dict[str, Any]) -> tuple[str, ...]:
    kind = part["type"]
    if kind == "text":
        return ("text", part["text"])
    if kind == "input_audio":
        name = {"wav": "audio/wav", "mp3": "audio/mpeg"}[part[kind]["format"]]
        return ("audio", name, sha(base64.b64decode(part[kind]["data"], validate=True)))
    modality = kind.removesuffix("_url")
    url = part[kind]["url"]
    if not url.startswith("data:"):
        return (modality, "url", url)
    head, _, payload = url.partition(",")
    media_type, _, coding = head[5:].partition(";")
    assert coding == "base64"
    return (modality, media_type, sha(base64.b64decode(payload, validate=True)))


def arrived(request: dict[str, Any]) -> Any:
    out = []
    for message in request["messages"]:
        content = message["content"]
        parts = [("text", content)] if isinstance(content, str) else [arrived_part(p) for p in content]
        out.append((message["role"], parts))
    return out


Tour = tuple[str, list[dict[str, Any]], list[dict[str, Any]], list[tuple[object, object, Any]]]


@pytest.fixture(scope="module", params=DATASETS)
def journey(request: pytest.FixtureRequest, command: Any, tour: Path) -> Tour:
    name = request.param
    done = command("render", tour / name)
    assert (done.returncode, closing(done.stderr.decode()).left_out) == (0, 0)
    lines = done.stdout.splitlines()
    return name, [json.loads(line) for line in lines], post_lines(lines), expected(name, tour)


def test_every_row_arrives_with_its_roles_texts_media_types_and_bytes_in_order(journey: Tour) -> None:
    name, _, requests, wanted = journey
    assert len(requests) == ROWS[name] == len(wanted)
    for request, (id_, _, messages) in zip(requests, wanted, strict=True):
        assert arrived(request) == messages, id_


def test_every_line_has_the_id_and_the_answer_of_its_row(journey: Tour) -> None:
    _, records, _, wanted = journey
    assert [(r["id"], r["answer"]) for r in records] == [(id_, answer) for id_, answer, _ in wanted]
    assert [type(r["id"]) for r in records] == [type(id_) for id_, _, _ in wanted]


def test_the_expectation_covers_each_medium_of_the_tour(tour: Path) -> None:
    seen = {
        part for name in DATASETS for _, _, messages in expected(name, tour) for _, parts in messages for part in parts
    }
    files = {sha(file.read_bytes()) for file in (tour / "media").iterdir()}
    assert {part[2] for part in seen if part[0] != "text"} >= files
    assert ("image", "url", "https://example.com/photos/cat.jpg") in seen


def test_keys_beside_a_source_arrive_too(command: Any, tour: Path) -> None:
    done = command("render", tour / "tour_chat.jsonl")
    records = {r["id"]: r for r in map(json.loads, done.stdout.splitlines())}
    part = records["chat-2"]["messages"][1]["content"][1]
    assert part["image_url"]["detail"] == "low"


def test_the_openai_target_changes_the_form_of_audio_and_leaves_out_video(command: Any, tour: Path) -> None:
    done = command("render", tour / "tour_columns.jsonl", "--target", "openai")
    assert done.returncode == 1  # video
    wanted = {id_: messages for id_, _, messages in expected("tour_columns.jsonl", tour)}
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["id"] for r in records] == [1, 2, 3, 5, 6, 8, 10]
    for record in records:
        assert arrived(record) == wanted[record["id"]]
        kinds = {part["type"] for part in record["messages"][0]["content"] if isinstance(part, dict)}
        assert kinds <= {"text", "image_url", "input_audio"}
    told = [
        line.removeprefix(os.fsencode(tour / "tour_columns.jsonl"))
        for line in closing(done.stderr.decode()).told.encode().splitlines()
        if not line.startswith(b"note: ")
    ]
    assert [line.partition(b" ")[0] for line in told] == [b":4:", b":7:"]
