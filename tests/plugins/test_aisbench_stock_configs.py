"""AISBench's shipped configs with nothing but the template swapped: the server gets the media themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from runner_present import need
from stock_configs import Sent, Stock, fault, run_both, sha, table, type_of

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

CONFIGS = ("mmstar", "vocalsound", "textvqa", "docvqa", "mmmu", "ocrbench", "videobench", "mm_custom")
Both = tuple[dict[str, Stock], dict[str, list[Sent]], dict[str, list[Sent]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stock")


@pytest.fixture(scope="module")
def both(folder: Path) -> Both:
    found = run_both(folder)
    print(table(*found, folder))
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_the_shipped_template_sends_names_and_ours_the_bytes_of_these_files_in_the_same_order(
    both: Both, folder: Path, name: str
) -> None:
    stock, shipped, ours = both
    for media, before, after in zip(stock[name].media, shipped[name], ours[name], strict=True):
        names = iter(media)
        wanted = []
        for kind, value in before:
            if kind == "text":
                wanted.append((kind, value))
                continue
            file = next(names)
            assert value in (f"file://{folder / name / file}", f"file://{file}")
            assert fault(value)
            wanted.append((type_of(file), sha((folder / name / file).read_bytes())))
        assert next(names, None) is None
        assert after == wanted


def test_a_question_keeps_its_braces_marks_and_scripts_in_both(both: Both) -> None:
    _, shipped, ours = both
    for name in set(CONFIGS) - {"vocalsound"}:  # it asks the same question of every file
        for sent in (*shipped[name], *ours[name]):
            assert 'What does it say? "{answer}" <b>\u4f60\u597d' in sent[-1][1]


def test_the_script_finds_its_modules_without_pytest() -> None:
    words = [sys.executable, "-c", "import stock_configs"]
    done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
