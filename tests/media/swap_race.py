"""A race against the guard of files: ``python tests/media/swap_race.py [SECONDS]`` (60 by default).

One thread reads while two others swap what it reads: a file for a link to a file outside the root, and a folder for a
link to a folder outside. No read may return what lies outside. Exits with 1 if one does.
"""

from __future__ import annotations

import ctypes  # noqa: F401  # without it files are judged only, see ``judged``
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from image_files import saved
from PIL import Image

from mmprompt import load_task
from mmprompt.errors import MMPromptError
from mmprompt.media import MediaPolicy
from mmprompt.media.base64_text import decode
from mmprompt.media.files import GuardedFiles
from mmprompt.render.renderer import Renderer
from mmprompt.render.wire_request import RenderedRow

INSIDE, OUTSIDE = (saved(Image.new("RGB", (4, 4), colour), "PNG") for colour in ("green", "red"))
PATHS = ("file.png", "folder/file.png")

Read = Callable[[str], bytes]


class Outcome(NamedTuple):
    """How many reads gave the file inside, were refused, and gave what lies outside."""

    given: int
    refused: int
    leaked: int


def guarded(root: Path) -> Read:
    return GuardedFiles(MediaPolicy([root])).read


def judged(root: Path) -> Read:
    """Return a reader that asks the kernel for the real path of each file, also where files are opened without links."""
    files = GuardedFiles(MediaPolicy([root]))
    files._linkless = None
    files._judged = 1 << 20
    return files.read


def formed(root: Path) -> Read:
    """Return a reader that renders a row by its form, and gives what its line holds."""
    rows = [{"id": str(n), "image": path, "question": "What?"} for n, path in enumerate(PATHS * 6)]
    form = {"image": {"type": "image_url", "image_url": "{image}"}, "text": {"type": "text", "text": "{question}"}}
    template = {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt_mm": form}]}}
    infer = {"prompt_template": template, "inferencer": {"type": "GenInferencer"}}
    task = load_task({"dataset": {"rows": rows}, "infer_cfg": infer, "media": {"roots": [str(root)]}})
    renderer = Renderer(task)
    samples = dict(zip(PATHS, list(task.samples())[-2:], strict=True))
    for row in task.samples():  # before the race, to make the form
        renderer.render(row)
    assert type(renderer.prepare(samples[PATHS[0]])) is tuple  # it has a form

    def read(path: str) -> bytes:
        rendered = renderer.render(samples[path])
        if not isinstance(rendered, RenderedRow):
            raise rendered.error
        line = json.loads(b"".join(rendered.chunks))
        return decode(line["messages"][0]["content"][0]["image_url"]["url"].partition(",")[2])[0]

    return read


def careless(root: Path) -> Read:
    """Return a reader that asks after the open where the path leads, instead of what was opened."""

    def read(path: str) -> bytes:
        try:
            with open(root / path, "rb") as file:
                if not os.path.realpath(root / path).startswith(f"{os.path.realpath(root)}/"):
                    raise MMPromptError("outside", "")
                return file.read()
        except OSError:
            raise MMPromptError("no such file", "") from None

    return read


def race(folder: Path, reader: Callable[[Path], Read], seconds: float, *, until_leak: bool = False) -> Outcome:
    """Read for so many seconds, or until the first leak, while two threads swap what is read."""
    root, outside = folder / "root", folder / "outside"
    for place, data in ((root, INSIDE), (root / "folder", INSIDE), (outside, OUTSIDE)):
        place.mkdir()
        (place / "file.png").write_bytes(data)
    read, done = reader(root), threading.Event()
    swappers = [threading.Thread(target=swap, args=(root / path.split("/")[0], outside, done)) for path in PATHS]
    counts = {INSIDE: 0, OUTSIDE: 0, b"": 0}
    for thread in swappers:
        thread.start()
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until_leak and counts[OUTSIDE]):
            for path in PATHS:
                try:
                    data = read(path)
                except MMPromptError:
                    data = b""
                counts[data] += 1
    finally:
        done.set()
        for thread in swappers:
            thread.join()
    return Outcome(counts[INSIDE], counts[b""], counts[OUTSIDE])


def swap(place: Path, outside: Path, done: threading.Event) -> None:
    """Put a link in the place of a file or folder and take it away again, until told to stop."""
    kept, link = place.with_name(f"kept-{place.name}"), place.with_name(f"link-{place.name}")
    link.symlink_to(outside if place.is_dir() else outside / place.name)
    while not done.is_set():
        place.rename(kept)
        link.rename(place)
        place.rename(link)
        kept.rename(place)


if __name__ == "__main__":
    leaked = 0
    for reader in (guarded, judged, formed):
        with tempfile.TemporaryDirectory() as name:
            outcome = race(Path(name), reader, float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
        print(reader.__name__, outcome)
        leaked += outcome.leaked
    sys.exit(leaked > 0)
