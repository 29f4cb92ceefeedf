"""The same sample gives the same bytes: on 1 and 4 workers, with any cache, in child processes, beside a killed run."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmprompt import dataset_task, to_anthropic, to_gemini, to_openai
from mmprompt.media.changes import Changes
from mmprompt.media.engine import MediaEngine
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import read_messages
from mmprompt.messages import MediaPart, Message
from mmprompt.targets.hf import HFWriter
from mmprompt.targets.limits import limits, target_room

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL, and decoders in child processes")

TARGETS = ("vllm", "openai", "anthropic", "gemini", "hf")
CHANGES = Changes(fit=True, frames=4, max_side=200, audio_rate=16000)
OPTIONS = ("--fit", "--frames", "4", "--max-side", "200", "--audio-rate", "16000")


THREADS = """
import sys
from mmprompt.render import parallel as ahead
ahead._ALONE, ahead._GAIN = 0.0, 1e9  # threads from the second row on, however little there is to gain
from mmprompt.cli import main
code = main()
sys.exit(code if "concurrent.futures.thread" in sys.modules else "no threads")
"""


def rendered(command: Any, data: Path, *options: object) -> tuple[bytes, bytes]:
    """Return the lines and the reports of one run."""
    done = command("render", data, *OPTIONS, *options)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def by_threads(command_environment: dict[str, str]) -> Any:
    """Render on four workers, as ``rendered`` does, but in threads at once: a short run would try none."""

    def run(data: Path, *options: object) -> tuple[bytes, bytes]:
        words = [sys.executable, "-c", THREADS, "render", data, *OPTIONS, "--workers", "4", *options]
        done = subprocess.run(
            list(map(str, words)), env=command_environment, capture_output=True, timeout=60, check=False
        )
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout, done.stderr
        return done.stdout, done.stderr

    return run


@pytest.fixture(scope="module")
def plain(command: Any, tour: Path) -> Any:
    """What one worker gives for a target, here and without a folder for a cache."""
    return cache(lambda target: rendered(command, tour / "tour.jsonl", "--target", target))


def payloads(value: Any) -> list[bytes]:
    """Return the media of a line."""
    if isinstance(value, dict):
        own = [base64.b64decode(value["data"])] if isinstance(value.get("data"), str) else []
        return own + [data for v in value.values() for data in payloads(v)]
    if isinstance(value, list):
        return [data for v in value for data in payloads(v)]
    if isinstance(value, str) and value.startswith("data:"):
        return [base64.b64decode(piece) for piece in value.partition(";base64,")[2].split(",")]
    return []


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_compared_below_was_changed(target: str, plain: Any) -> None:
    lines = [json.loads(line) for line in plain(target)[0].splitlines()]
    assert len(lines) == (20 if target == "anthropic" else 25)
    media = [data for line in lines for data in payloads(line)]
    pictures = [data for data in media if data.startswith((b"\xff\xd8", b"\x89PNG")) or data[8:12] == b"WEBP"]
    sides = [max(Image.open(io.BytesIO(data)).size) for data in pictures]
    assert len(sides) >= 25
    assert max(sides) == 200


@pytest.mark.parametrize("target", ["vllm", *(pytest.param(name, marks=pytest.mark.slow) for name in TARGETS[1:])])
def test_four_workers_and_their_child_processes_change_no_byte(
    target: str, plain: Any, by_threads: Any, tour: Path, tmp_path: Path
) -> None:
    data = (tour / "tour.jsonl", "--target", target, "--media-cache", tmp_path / "cache")
    assert by_threads(*data, "--policy", "hostile") == plain(target)


def test_one_worker_and_its_child_process_change_no_byte(plain: Any, command: Any, tour: Path) -> None:
    data = (tour / "tour.jsonl", "--target", "openai")
    assert rendered(command, *data, "--policy", "hostile") == plain("openai")


def test_a_cache_cold_or_warm_changes_no_byte(
    plain: Any, command: Any, by_threads: Any, tour: Path, tmp_path: Path
) -> None:
    cached = (tour / "tour.jsonl", "--media-cache", tmp_path / "cache")
    assert rendered(command, *cached) == plain("vllm")
    entries = {path: path.read_bytes() for path in (tmp_path / "cache").iterdir()}
    assert len(entries) > 20
    assert rendered(command, *cached) == plain("vllm")
    assert by_threads(*cached) == plain("vllm")
    assert {path: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == entries


@pytest.mark.slow
def test_a_long_run_on_four_workers_is_that_on_one(plain: Any, command_environment: dict[str, str], tour: Path) -> None:
    rows = (tour / "tour.jsonl").read_bytes().splitlines(keepends=True)
    words = [sys.executable, "-m", "mmprompt", "render", "-", "--media-root", str(tour), *OPTIONS, "--workers", "4"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=command_environment, **pipes) as process:
        process.stdin.write(b"".join(rows[:3]))
        process.stdin.flush()
        time.sleep(1)  # by now threads are tried
        assert process.communicate(b"".join(rows[3:]), timeout=30)[0] == plain("vllm")[0]


def read_and_changed(target: str, message: Message, engine: MediaEngine, root: Path) -> Message:
    taken = limits(target).modalities
    as_images = "video" not in taken or "video/jpeg" not in taken["video"].formats

    def changed(part: Any) -> Any:
        if type(part) is not MediaPart:
            return part
        modality = "image" if part.modality == "video" and as_images else part.modality
        return engine.change(part, target_room(target, modality) if modality in taken else None)

    [read] = read_messages([message], MediaPolicy([root]))
    return read._replace(parts=tuple(map(changed, read.parts)))


@pytest.fixture(scope="module")
def engine() -> Iterator[MediaEngine]:
    with MediaEngine(MediaPolicy(), CHANGES) as changing:
        yield changing


@pytest.mark.parametrize("target", TARGETS)
def test_a_line_is_what_the_engine_gives_for_its_media(
    target: str, plain: Any, engine: MediaEngine, tour: Path
) -> None:
    writers = {"anthropic": to_anthropic, "gemini": to_gemini, "hf": HFWriter("hf").write}
    by_id = {}
    for sample_id, messages in dataset_task(tour / "tour.jsonl").messages():
        by_id[sample_id] = [read_and_changed(target, message, engine, tour) for message in messages]
    lines = [json.loads(line) for line in plain(target)[0].splitlines()]
    for line in lines:
        write = writers.get(target) or (lambda messages: to_openai(messages, target=target))
        wire = write(by_id[line["id"]])
        expected = wire if isinstance(wire, dict) else {"messages": wire}
        assert {key: line[key] for key in expected} == json.loads(json.dumps(expected))


# ---- a cache on disk that is damaged, or shared with a run that is killed


def noise(folder: Path, count: int) -> Path:
    """Return a dataset of so many different pictures."""
    draw = random.Random(7)
    rows = []
    for number in range(count):
        name = f"{number}.jpg"
        Image.frombytes("RGB", (240, 240), draw.randbytes(240 * 240 * 3)).save(folder / name, quality=50)
        rows.append(json.dumps({"id": number, "image": name, "question": "What is it?"}))
    data = folder / "data.jsonl"
    data.write_text("\n".join(rows) + "\n")
    return data


def damaged(whole: bytes, way: int) -> bytes:
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    return (b"", whole[:middle], flipped, whole + b"more", b"\xff\xd8\xff no entry", whole[:40])[way % 6]


@pytest.mark.slow
def test_a_damaged_cache_is_made_again_and_changes_no_byte(
    plain: Any, command: Any, by_threads: Any, tour: Path, tmp_path: Path
) -> None:
    cached = (tour / "tour.jsonl", "--target", "gemini", "--media-cache", tmp_path / "cache")
    assert rendered(command, *cached) == plain("gemini")
    entries = {path: path.read_bytes() for path in sorted((tmp_path / "cache").iterdir())}
    assert len(entries) > 20
    for way, (path, whole) in enumerate(entries.items()):
        path.write_bytes(damaged(whole, way))
    paths = list(entries)
    paths[0].write_bytes(entries[paths[-1]])  # whole, but another's
    assert by_threads(*cached) == plain("gemini")
    assert {path: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == entries


@pytest.mark.slow
def test_a_run_that_shares_its_cache_with_one_that_is_killed_gives_the_same(
    command: Any, command_environment: dict[str, str], tmp_path: Path
) -> None:
    data, folder = noise(tmp_path, 40), tmp_path / "cache"
    alone = rendered(command, data)
    words = [sys.executable, "-m", "mmprompt", "render", *OPTIONS, "--media-cache", str(folder)]
    here = {"env": command_environment, "cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # rows come to it through a pipe that stays open: it is at work, or waits for more, when it is killed
    killed = subprocess.Popen([*words, "-", "--media-root", "."], stdin=subprocess.PIPE, **here)
    other = subprocess.Popen([sys.executable, "-c", THREADS, *words[3:], data, "--workers", "4"], **here)
    try:
        killed.stdin.write(data.read_bytes())
        killed.stdin.flush()
        deadline = time.monotonic() + 20
        while not folder.is_dir() or len(os.listdir(folder)) < 5:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        assert killed.poll() is None
        killed.send_signal(signal.SIGKILL)
        assert killed.wait(20) == -signal.SIGKILL
        given = other.communicate(timeout=30)
    finally:
        for process in (killed, other):
            process.kill()
            process.communicate()
    assert given == alone
    assert rendered(command, data, "--media-cache", folder) == alone
