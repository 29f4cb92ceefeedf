"""The fixture ``vlm`` in a project of its own, run by the ``pytest`` command against a recording server."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pytest_command import pytest_here, pytest_process

sys.path.insert(0, str(Path(__file__).parent))
from recording_server import RecordingServer, recording_server  # beside this file

from mmprompt import from_openai

pytestmark = pytest.mark.runners
Run = Callable[..., "subprocess.CompletedProcess[str]"]

PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\nvlm_base_url = "BASE_URL"\nvlm_model = "recorder"\n',
    "conftest.py": """\
import pytest

PICTURES = {"coffee.jpg": "cup", "chelsea.jpg": "cat", "rocket.jpg": "rocket"}

@pytest.fixture(params=sorted(PICTURES))
def picture(request):
    return f"media/{request.param}", PICTURES[request.param]

@pytest.fixture
def examiner(vlm):
    return vlm.conversation(system="Answer in a few words.")
""",
    "tests/test_pictures.py": """\
import pytest

def test_each_picture(vlm, picture):
    file, word = picture
    assert word in vlm.ask("What is this?", image=file, temperature=0)

@pytest.mark.parametrize("file", ["media/coffee.jpg", "media/rocket.jpg"])
def test_there_is_a_cat(vlm, file):
    assert "cat" in vlm.ask("Is there a cat?", image=["media/chelsea.jpg", file], system="Say what you see.")
""",
    "tests/test_talk.py": """\
from pathlib import Path
from mmprompt import MediaPolicy, load_task
from mmprompt.testing import assistant, audio, image, user
from PIL import Image

HERE = Path(__file__).parent

def test_several_turns(examiner):
    assert examiner.ask("What is this?", image="media/chelsea.jpg") == "cat"
    assert examiner.ask("And this?", image="media/coffee.jpg") == "cup"
    assert examiner.ask("Which came first?") == "turn 3"

def test_audio_video_bytes_and_pictures(vlm):
    vlm.ask("Compare.", audio="media/train.wav", video="media/clip.mp4")
    vlm.ask(image("media/rocket.jpg"), "then", audio("media/train.mp3"), "?")
    vlm.ask("?", image=[(HERE / "media/coffee.jpg").read_bytes(), Image.new("RGB", (8, 8)), HERE / "media/cat.webp"])
    vlm.ask("?", image="https://example.com/cat.jpg")

def test_the_rows_of_a_task(vlm):
    rows = load_task({"dataset": {"rows": [{"id": 1, "image": "media/chelsea.jpg", "question": "What?"}]}})
    for _, messages in rows.messages():
        assert vlm.send(messages, policy=MediaPolicy([HERE])) == "cat"

def test_messages_of_our_own(vlm):
    reply = vlm.send([user("Hi."), assistant("Hello."), user("?", image="media/chelsea.jpg")], max_tokens=3)
    assert (reply, reply.finish_reason) == ("cat", "stop")
""",
    "tests/test_dataset.py": """\
from mmprompt.testing import assert_sends, user

def test_the_dataset_sends_the_picture(request):
    rows = request.path.parent / "rows.jsonl"
    rows.write_text('{"id": "q-1", "image": "media/coffee.jpg", "question": "What is this?"}')
    assert_sends(rows, {"q-1": user("What is this?", image="media/coffee.jpg")})
""",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _runner() -> None:
    """The plugin is found by its entry point, which needs the metadata of an installed package."""
    if not any(e.name == "mmprompt" for e in importlib.metadata.entry_points(group="pytest11")):
        reason = "the entry point of pytest11 is not installed: pip install ."
        if os.environ.get("CI") == "true" and os.environ.get("MMPROMPT_RUNNER") == "pytest":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture
def project(tmp_path: Path, tour: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copytree(tour / "media", tmp_path / "tests" / "media")
    return tmp_path


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def arrived(body: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """The roles, texts and digests of media of a request, in order."""
    return [
        (m.role, [getattr(p, "text", None) or (sha(p.data) if hasattr(p, "data") else str(p.source)) for p in m.parts])  # type: ignore[union-attr]
        for m in from_openai(body["messages"])
    ]


@pytest.fixture
def server(tour: Path) -> Iterator[RecordingServer]:
    known = {
        sha((tour / "media" / f).read_bytes()): w
        for f, w in (("coffee.jpg", "cup"), ("chelsea.jpg", "cat"), ("rocket.jpg", "dog\x1b[31m"))
    }

    def reply(body: dict[str, Any]) -> str:
        turns = [parts for role, parts in arrived(body) if role == "user"]
        return next((known[part] for part in reversed(turns[-1]) if part in known), f"turn {len(turns)}")

    with recording_server(reply) as running:
        yield running


@pytest.fixture
def run(project: Path) -> Run:
    return partial(pytest_here, project)


def test_a_project_of_five_files(project: Path, server: RecordingServer) -> None:
    ini = project / "pyproject.toml"
    ini.write_text(ini.read_text().replace("BASE_URL", server.base_url))
    done = pytest_process(project, "-W", "error")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 failed, 7 passed" in done.stdout
    media = project / "tests" / "media"
    digest = {file.name: sha(file.read_bytes()) for file in media.iterdir()}

    # what the model was asked
    requests = [arrived(body) for body in server.bodies]
    for name in ("coffee.jpg", "chelsea.jpg", "rocket.jpg"):
        assert [("user", [digest[name], "What is this?"])] in requests
        pair = [("system", ["Say what you see."]), ("user", [digest["chelsea.jpg"], digest[name], "Is there a cat?"])]
        assert (pair in requests) == (name != "chelsea.jpg")
    first, second = (("user", [digest["chelsea.jpg"], "What is this?"]), ("user", [digest["coffee.jpg"], "And this?"]))
    turns = [("system", ["Answer in a few words."]), first, ("assistant", ["cat"]), second, ("assistant", ["cup"])]
    for count in (2, 4):
        assert turns[:count] in requests
    assert [*turns, ("user", ["Which came first?"])] in requests
    assert [("user", [digest["train.wav"], digest["clip.mp4"], "Compare."])] in requests
    assert [("user", [digest["rocket.jpg"], "then", digest["train.mp3"], "?"])] in requests
    assert [("user", ["https://example.com/cat.jpg", "?"])] in requests
    [objects] = [r[0][1] for r in requests if len(r[0][1]) == 4 and r[0][1][0] == digest["coffee.jpg"]]
    assert (objects[2], objects[3]) == (digest["cat.webp"], "?")
    bodies = {str(b["messages"][-1]["content"])[-30:]: b for b in server.bodies}
    assert {b["model"] for b in bodies.values()} == {"recorder"}
    assert {b.get("temperature") for b in server.bodies} == {0, None}

    # what the reports of the failed tests show
    size = f"{(media / 'rocket.jpg').stat().st_size:,}"
    assert "_ test_each_picture[rocket.jpg] _" in done.stdout
    assert f"user: [image/jpeg, {size} bytes, rocket.jpg]\n      What is this?\nreply: dog\\x1b[31m\n" in done.stdout
    assert re.search(
        r"-+ vlm -+\nsystem: Say what you see\.\n"
        rf"user: \[image/jpeg, 27,255 bytes, chelsea\.jpg\]\n      \[image/jpeg, {size} bytes, rocket\.jpg\]\n"
        r"      Is there a cat\?\nreply: dog",
        done.stdout,
    )
    assert "\x1b" not in done.stdout
    assert "base64" not in done.stdout


def test_the_command_line_goes_before_the_environment_and_that_before_the_ini_file(
    project: Path, server: RecordingServer, run: Run
) -> None:
    one = "tests/test_pictures.py::test_each_picture[coffee.jpg]"
    by_environment = {"MMPROMPT_BASE_URL": server.base_url, "MMPROMPT_MODEL": "b"}
    assert (
        run(one, f"--vlm-base-url={server.base_url}", "--vlm-model=a", MMPROMPT_BASE_URL="http://h/v1").returncode == 0
    )
    assert run(one, **by_environment).returncode == 0
    assert [body["model"] for body in server.bodies] == ["a", "b"]


KEY = "sk-very-secret"
CAT = ("tests/test_pictures.py", "-k", "there_is_a_cat")


def telling_all(server: RecordingServer) -> tuple[str, ...]:
    """Return options under which pytest tells all it knows of tests that fail."""
    return f"--vlm-base-url={server.base_url}", "--showlocals", "--full-trace", "-vv", *CAT


def test_the_key_goes_to_the_server_and_into_no_report(project: Path, server: RecordingServer, run: Run) -> None:
    key, at = KEY, telling_all(server)
    for arguments, environment in (
        ([], {"MMPROMPT_API_KEY": key}),
        (["--vlm-api-key-env=LAB"], {"LAB": key}),
        ([], {"OPENAI_API_KEY": key}),
    ):
        done = run(*at, "--log-level=DEBUG", *arguments, **environment)
        assert "2 failed" in done.stdout
        assert key not in done.stdout + done.stderr
    sent = [headers.get("Authorization") for _, headers, _ in server.requests]
    assert set(sent) == {f"Bearer {key}", None}
    assert sent.count(None) * 3 == len(sent)


@pytest.mark.slow
def test_a_key_that_cannot_be_sent_is_in_no_report(project: Path, server: RecordingServer, run: Run) -> None:
    key, at = KEY, telling_all(server)
    gone = run(f"--vlm-base-url=http://127.0.0.1:{server.port}1/v1", "-k", "turns", "-vv", "-l", MMPROMPT_API_KEY=key)
    assert key not in gone.stdout + gone.stderr
    named = run(*at, "--vlm-api-key-env=OPENAI_API_KEY", OPENAI_API_KEY=key)
    assert "OPENAI_API_KEY goes to https://api.openai.com only" in named.stdout
    assert key not in named.stdout + named.stderr
    unfit = run(*at, MMPROMPT_API_KEY=f"{key} and more")
    assert "MMPROMPT_API_KEY holds characters that an HTTP header cannot carry" in unfit.stdout
    assert key not in unfit.stdout + unfit.stderr


def test_without_a_server_a_test_that_asks_fails_and_says_how_to_name_one(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    done = run("tests/test_talk.py", "tests/test_dataset.py")
    assert done.returncode == 1
    assert "1 passed, 4 errors" in done.stdout
    how = "vlm has no server: give --vlm-base-url, set MMPROMPT_BASE_URL, or write vlm_base_url under [tool.pytest.ini_opt"
    assert how in done.stdout
    assert "Traceback" not in done.stdout
    done = run("tests/test_talk.py", "--vlm-base-url=http://127.0.0.1:9/v1")
    assert "vlm has no model: give --vlm-model" in done.stdout
    done = run("tests/test_talk.py", "--vlm-base-url=127.0.0.1:9", "--vlm-model=m")
    assert "vlm: MM901 127.0.0.1:9 is not the address of an API; write http://HOST:PORT/v1" in done.stdout
    assert "During handling" not in done.stdout
    done = run("tests/test_talk.py", "--vlm-base-url=http://h/v1", "--vlm-model=m", "--vlm-timeout=soon")
    assert "vlm: the timeout 'soon' is not a number of seconds" in done.stdout


def test_a_medium_that_cannot_be_read_is_told_at_the_line_of_the_test(
    project: Path, server: RecordingServer, run: Run
) -> None:
    (project / "tests" / "test_dog.py").write_text('def test_dog(vlm):\n    vlm.ask("What?", image="dog.jpg")\n')
    done = run("tests/test_dog.py", f"--vlm-base-url={server.base_url}")
    assert "\ntests/test_dog.py:2: SourceError\n" in done.stdout
    assert f"no such file: 'dog.jpg'; check the path: it was looked for in {project / 'tests'}\n" in done.stdout
    assert "mmprompt/run/builders.py" not in done.stdout
    assert "user: [image, dog.jpg]\n      What?\nreply: (none)" in done.stdout
    assert (
        "mmprompt/run/builders.py"
        in run("tests/test_dog.py", f"--vlm-base-url={server.base_url}", "--full-trace").stdout
    )


def test_errors_that_led_to_another_subtests_and_fixtures_at_their_end_show_what_was_asked(
    project: Path, server: RecordingServer, run: Run
) -> None:
    (project / "tests" / "test_dog.py").write_text("""\
import pytest

def test_chain(vlm):
    try:
        vlm.ask("What?", image="dog.jpg")
    except Exception as error:
        raise ValueError("mine") from error

def test_parts(vlm, subtests):
    with subtests.test("one"):
        assert vlm.ask("First?") == "no"

@pytest.fixture
def later(vlm):
    yield
    assert vlm.ask("At the end?") == "no"

def test_end(later):
    pass
""")
    at = f"--vlm-base-url={server.base_url}"
    done = run("tests/test_dog.py", at)
    assert "no such file: 'dog.jpg'" in done.stdout
    assert "ValueError: mine" in done.stdout
    assert "mmprompt/run/builders.py" not in done.stdout
    assert "user: At the end?\nreply: turn 1" in done.stdout
    if int(pytest.__version__.partition(".")[0]) >= 9:  # subtests came with it
        assert "user: First?\nreply: turn 1" in done.stdout


@pytest.mark.slow
def test_in_several_processes(project: Path, server: RecordingServer) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    done = pytest_process(project, "-n", "2", f"--vlm-base-url={server.base_url}")
    assert "3 failed, 7 passed" in done.stdout
    assert "user: [image/jpeg" in done.stdout


def test_the_example_of_plugins_init_runs(tmp_path: Path, command: Any, server: RecordingServer, run: Run) -> None:
    server.reply = lambda body: "A green triangle."
    assert command("plugins", "--init", "pytest", tmp_path / "mine").returncode == 0
    done = run(str(tmp_path / "mine"), f"--vlm-base-url={server.base_url}", "--vlm-model=m")
    assert "3 passed" in done.stdout
    triangle = (tmp_path / "mine" / "triangle.png").read_bytes()
    assert sha(triangle) in arrived(server.bodies[0])[-1][1]


def test_a_project_without_vlm_meets_nothing_of_it(tmp_path: Path, project: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "test_bare.py").write_text(
        "import sys\n"
        "def test_bare():\n"
        "    ours = {m for m in sys.modules if m.partition('.')[0] == 'mmprompt'}\n"
        "    assert ours <= {'mmprompt', 'mmprompt.plugins', 'mmprompt.plugins.pytest_files', 'mmprompt.plugins.pytest_plugin', 'mmprompt.plugins.pytest_rows'}, ours\n"
        "    assert not {'requests', 'numpy', 'PIL', 'av', 'yaml', 'orjson'} & set(sys.modules)\n"
    )
    (bare / "rows.jsonl").write_text("{}\n")
    done = pytest_process(project, str(bare), "-W", "error")
    assert "collected 1 item" in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    off = pytest_process(project, "-p", "no:mmprompt", "tests/test_dataset.py", "tests/test_talk.py", "-o", "addopts=")
    assert "fixture 'vlm' not found" in off.stdout
