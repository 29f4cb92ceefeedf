"""The corpus: cases by name, and the doors through which each goes.

A case is a dataset or a task of some dozen rows. It is drawn from its name alone, so each case can be made by itself,
and is the same in every run, process and version of Python.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random

import corpus_chats
import corpus_rows
import corpus_settings
import corpus_tasks
from corpus_media import media_files
from corpus_values import Made

KINDS = {**corpus_rows.KINDS, **corpus_chats.KINDS, **corpus_tasks.KINDS, **corpus_settings.KINDS}
"""From the name of a kind of cases to the function that makes its n-th case."""

CASES = 8
"""Cases of each kind."""

TARGETS = ("vllm", "openai", "anthropic", "gemini", "hf")
EMITS = ("messages", "prompt", "string", "batch")
PAIRS = tuple((target, emit) for target in TARGETS for emit in EMITS)


def names() -> list[str]:
    """Return the names of all cases, such as ``tags/3``."""
    return [f"{kind}/{number}" for kind in KINDS for number in range(CASES)]


def made(name: str) -> Made:
    """Return a case."""
    kind, _, number = name.partition("/")
    return KINDS[kind](Random(name), int(number))


def can_run(case: Made) -> bool:
    """Return whether the libraries that a case needs are there."""
    return (not case.needs or find_spec(case.needs) is not None) and (
        not case.parquet or find_spec("pyarrow") is not None
    )


def doors(name: str, case: Made) -> list[str]:
    """Return the doors of a case: words such as ``render openai batch``.

    The cases of a kind share all pairs of a target and an emit among them.
    """
    kind, _, text = name.partition("/")
    number, turn = int(text), int(text) + list(KINDS).index(kind)
    found = [f"render {target} messages" for target in TARGETS]
    found += [
        f"render {TARGETS[turn % 2]} batch",
        f"render {TARGETS[turn % 5]} prompt",
        f"render {TARGETS[(turn + 2) % 5]} string",
    ]
    found += [f"render {target} batch" for at, target in enumerate(TARGETS[2:]) if number == at]
    found += [
        f"requests {TARGETS[(turn + 1) % 5]}",
        f"requests {TARGETS[(turn + 3) % 5]}",
        "messages",
        ("prompts", "strings")[turn % 2],
    ]
    found += [
        (f"first {TARGETS[turn % 5]}", "samples", f"check {TARGETS[turn % 5]}", "render few messages")[number % 4]
    ]
    if kind in corpus_tasks.KINDS or kind in corpus_settings.KINDS:
        found += [("template", "page", "requests few", "template")[number % 4]]
    if kind == "turns":
        found += ["converse"]
    if case.words != ():
        found += [f"command {' '.join(PAIRS[(3 * turn + 7 * at) % len(PAIRS)])}" for at in range(2)]
    return list(dict.fromkeys(found[::3] if case.decodes else found))


def put(case: Made, folder: Path) -> None:
    """Write the files of a case and the media into a folder, in which nothing else stands then."""
    media = {path.partition("/")[0] for path in media_files()}
    for path in folder.iterdir():
        if path.is_dir() and path.name not in media:
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    missing = {} if (folder / "media").exists() else media_files()
    for name, data in {**missing, **case.files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    if case.parquet:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(case.parquet), folder / "rows.parquet", row_group_size=16)


@contextmanager
def work_folder() -> Iterator[Path]:
    """Give a new folder, which is the current one meanwhile.

    Its path is short and always as long: messages cut long names, and the command tells the size of its output.
    """
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="mm-", dir="/tmp" if os.access("/tmp", os.W_OK) else None) as folder:
        path = Path(folder).resolve()
        os.chdir(path)
        try:
            yield path
        finally:
            os.chdir(before)
