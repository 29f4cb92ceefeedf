"""``mmprompt check`` on pictures, against a loop that only opens and draft-walks the same files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import inputs
import numpy as np
from PIL import Image
from timing import Row

BAR = 1.5
COUNT = 1000
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Modules are compiled once, as for users."""

_LOOP = """
import sys
from PIL import Image
for name in sys.stdin.read().split("\\n"):
    with Image.open(name) as image:
        image.draft("RGB", (image.width // 8, image.height // 8))
        image.load()
"""


def pictures(folder: str, *, repetitions: int = 15) -> list[Row]:
    """Check 1,000 different JPEGs of 100 to 250 KiB by the command, its sandbox and its start included."""
    place = os.path.join(folder, "check")
    names = inputs.write_jpegs(place, COUNT)
    for number, name in enumerate(names):
        _tell_apart(os.path.join(place, name), number)
    rows = [
        {"id": number, "question": f"What is in picture {number}?", "image": name, "answer": "a thing"}
        for number, name in enumerate(names)
    ]
    data = os.path.join(place, "data.jsonl")
    with open(data, "w", encoding="utf-8") as file:
        file.writelines([json.dumps(row) + "\n" for row in rows])
    return [ratio("mmprompt check of 1,000 JPEGs", data, [os.path.join(place, name) for name in names], repetitions)]


def ratio(what: str, data: str, files: list[str], repetitions: int) -> Row:
    """Return the row of ``mmprompt check data`` against the loop over ``files``, in CPU seconds of all processes."""
    check, loop = [], []
    for _ in range(repetitions):
        loop.append(_cpu([sys.executable, "-c", _LOOP], "\n".join(files)))
        check.append(_cpu([sys.executable, "-m", "mmprompt", "check", "--exit-zero", data], ""))
    found = min(check) / min(loop)
    each = f"{min(check) / len(files) * 1000:.2f} of {min(loop) / len(files) * 1000:.2f} ms a picture"
    return Row(what, f"{found:.2f} times the CPU time of open and draft-walk; {each}", f"<= {BAR}", found <= BAR)


def _cpu(command: list[str], text: str) -> float:
    """Return the CPU seconds of a command and of the processes that it started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.DEVNULL, env=_ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _tell_apart(path: str, number: int) -> None:
    """Lay blots of light and shade over a JPEG: pictures that look the same would each have a finding."""
    draw = np.random.default_rng(number)
    with Image.open(path) as picture:
        blots = Image.fromarray(draw.integers(0, 256, (9, 10, 3), dtype=np.uint8))
        Image.blend(picture, blots.resize(picture.size, Image.Resampling.BICUBIC), 0.4).save(path, quality=92)
