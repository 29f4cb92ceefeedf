"""A benchmark as a new user runs it: a TSV like MMBench's, one command, no task file, killed, resumed, compared."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import Answering, answering, text_of
from PIL import Image
from time_taken import GENEROUS, wait_until

COLOURS = {"red": (220, 20, 20), "green": (20, 160, 20), "blue": (30, 30, 220), "white": (250, 250, 250)}
QUESTION = "Which colour is the square?"


def benchmark(folder: Path, count: int) -> Path:
    """Rows as MMBench has them: a picture in base64, four choices, a letter, a category."""
    draw = random.Random(5)
    lines = ["index\timage\tquestion\tA\tB\tC\tD\tanswer\tcategory\tl2-category"]
    for number in range(count):
        choices = draw.sample(sorted(COLOURS), 4)
        letter = draw.choice("ABCD")
        picture = Image.new("RGB", (24, 24), (0, 0, 0))
        picture.paste(COLOURS[choices["ABCD".index(letter)]], (4, 4, 20, 20))
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        image = base64.b64encode(stream.getvalue()).decode()
        group = ("easy", "hard")[number % 2]
        lines.append("\t".join([str(number), image, QUESTION, *choices, letter, group, f"level-{number % 3}"]))
    path = folder / "MMBench_DRAWN.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def looks(body: dict[str, Any]) -> str:
    """The colour in the picture's middle, as the letter of its choice; ``dim`` knows no blue."""
    (picture,) = [part for part in body["messages"][-1]["content"] if part["type"] == "image_url"]
    data = base64.b64decode(picture["image_url"]["url"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as image:
        pixel = image.convert("RGB").getpixel((12, 12))
    colour = next(name for name, value in COLOURS.items() if value == pixel)
    if body["model"] == "dim" and colour == "blue":
        colour = "green"
    line = next(line for line in text_of(body).splitlines() if line.endswith(f". {colour}"))
    return f"The answer is {line[0]}."


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering(looks) as served:
        yield served


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
@pytest.mark.slow
@pytest.mark.parametrize("count", [40, 500])
def test_a_benchmark_is_scored_killed_resumed_and_compared(
    count: int, server: Answering, tmp_path: Path, interrupted_environment: dict[str, str]
) -> None:
    data = benchmark(tmp_path, count)

    def begin(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "mmprompt", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=tmp_path, env=interrupted_environment, **pipes)

    run = ["run", data.name, "--base-url", server.base_url, "--model"]
    killed = begin(*run, "bright", "--concurrency", "4")
    assert wait_until(lambda: len(server.bodies) > count // 3)
    killed.kill()
    killed.communicate(timeout=GENEROUS)
    assert killed.returncode == -signal.SIGKILL

    table, said = begin(*run, "bright").communicate(timeout=60)
    assert f"{count} of {count} rows answered" in said.decode()
    assert "before this run" in said.decode()
    lines = {line.split()[0]: line.split()[1:] for line in table.decode().splitlines()[1:]}
    assert lines["all"][:3] == [str(count), str(count), "1.0000"]
    assert lines["easy"][0] == str(count // 2)
    assert {"hard", "level-0", "category", "l2-category"} <= lines.keys()
    ids = [json.loads(line)["id"] for line in (tmp_path / "MMBench_DRAWN-bright.jsonl").read_text().splitlines()]
    assert len(ids) == len(set(ids)) == count

    begin(*run, "dim").communicate(timeout=60)
    told, said = begin("compare", "MMBench_DRAWN-bright.jsonl", "MMBench_DRAWN-dim.jsonl").communicate(timeout=60)
    cells = [line.split("\t") for line in data.read_text("utf-8").splitlines()[1:]]
    blue = sum(row[3 + "ABCD".index(row[7])] == "blue" for row in cells)
    assert f"better: 0, worse: {blue}; p = " in told.decode(), said
