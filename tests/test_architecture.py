"""The house rules that can be read from the source: who imports whom, who opens files, what is public."""

import ast
import functools
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from house import AGAINST_THE_ORDER, ORDER, syntax_tree

import mmprompt

PACKAGE = Path(mmprompt.__file__).parent

HEAVY = {"transformers", "av", "soundfile", "numpy", "PIL", "requests", "yaml", "tqdm", "torch"}


@functools.cache
def modules():
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(p, p.relative_to(PACKAGE).with_suffix("").parts, syntax_tree(p)) for p in paths]


@functools.cache
def imported(tree):
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return found


@functools.cache
def called(tree):
    """The functions that are called, as they are written."""
    return frozenset(ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_imports_go_down_the_list_only():
    wrong = []
    for path, parts, tree in modules():
        if parts == ("__init__",):
            continue
        for name in imported(tree):
            if name.startswith("mmprompt."):
                target = name.split(".")[1]
                if (
                    ORDER.index(target) > ORDER.index(parts[0])
                    and (".".join(("mmprompt", *parts)), target) not in AGAINST_THE_ORDER
                ):
                    wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_every_module_has_its_place_in_the_order():
    assert {parts[0] for _, parts, _ in modules()} - {"__init__"} == set(ORDER)


def test_heavy_libraries_are_imported_inside_functions_only():
    wrong = []
    for path, _, tree in modules():
        top = ast.Module([n for n in tree.body if not isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.If))], [])
        wrong += [f"{path.relative_to(PACKAGE)}: {name}" for name in imported(top) if name.split(".")[0] in HEAVY]
    assert not wrong


def test_only_the_media_package_opens_what_a_sample_names():
    """Files are opened in few places: media under a policy; datasets, task files and outputs that the caller names."""
    openers = set()
    for path, _, tree in modules():
        for name in called(tree):
            if name in {
                "open",
                "os.open",
                "_system_call",  # openat2
                "io.open",
                "codecs.open",
                "Image.open",
                "av.open",
                "soundfile.read",
                "runpy.run_path",
                "urlopen",
            }:
                openers.add(path.relative_to(PACKAGE).as_posix())
            if name.split(".")[-1] in {"read_text", "read_bytes", "memmap", "fromfile"} or name.split(".")[0] in {
                "requests",
                "urllib3",
            }:
                openers.add(path.relative_to(PACKAGE).as_posix())
    allowed = {
        "media/files.py",
        "media/openat2.py",
        "media/ffmpeg.py",  # bytes in memory, without a name
        "media/audio/encoders.py",  # bytes in memory, to be written
        "media/cache/folder.py",
        "media/sandbox/memory.py",  # how much memory this process has, as the system says
        "media/fetch/fetcher.py",
        "datasets/dataset_file.py",
        "datasets/writers/output_file.py",  # what the caller of a conversion names
        "tasks/files.py",
        "tasks/upstream/execute.py",
        "tasks/upstream/includes.py",  # what a task of lm-eval includes from its own folder
        "targets/limits.py",
        "check/baseline.py",  # what the caller of a check names
        "check/configuration.py",  # the pyproject.toml of the current folder
        "check/explanation.py",  # our own pages
        "check/mending.py",  # the dataset again
        "check/store.py",  # the state of a check, beside its report
        "viewer/html_page.py",  # our own template, styles and scripts
        "cli/__init__.py",
        "cli/init.py",  # writes the task file that it makes
        "media/outputs.py",  # what the caller names, and what a task names
        "datasets/output.py",  # what the caller names to be written
        "datasets/whole_file.py",  # the same
        "datasets/side_files.py",  # manifests, plans, locks and states beside it
        "plugins/bridge/console.py",  # the output of the runner's own command
        "run/batch.py",  # the results that the caller names
        "run/client.py",
        "run/connections.py",  # the session of the client
        "run/shapes/network.py",  # our own weights
        "run/journal.py",  # the journal that the caller names
        "run/journal_file.py",  # the same
        "run/manifest.py",  # the manifest beside it
        "run/side_lock.py",  # the lock beside it
        "viewer/replies.py",  # the journal that the caller names
        "scale/work_folder.py",  # outputs of shards, beside the output that the caller names
        "datasets/crash_record.py",  # the number of the row in hand, beside the output
        "scale/journals.py",  # the journals of shards, beside the output
        "scale/ray_engine.py",  # a log of its own
        "plugins/examples.py",  # our own files, into the folder that the caller names
    }
    assert openers <= allowed
    assert {"media/files.py", "media/openat2.py"} <= openers


ASSEMBLES = {"writer_for", "OpenAIWriter", "AnthropicWriter", "GeminiWriter", "to_openai", "to_anthropic", "to_gemini"}
"""Functions and classes that write messages in a target's form."""
PROMPTS_OF_A_TASK = {"assembled", "plain_messages", "messages_of"}
"""Methods that make a task's prompts and messages."""
NO_REQUESTS = {
    "tasks/task.py": "Task.prompts, strings and messages show the stages before a request",
    "tasks/prompt_items.py": "shows a medium that was read as a content part of a prompt",
    "tasks/convert.py": "writes the messages of rows in another dataset format",
    "prompters/content.py": "shows a medium that was read as a content part of a prompt",
    "run/client.py": "sends messages that the caller wrote by hand or read from a task",
    "check/row_check.py": "names the media of a row's requests, which render then writes",
    "viewer/provenance.py": "makes prompts in disguise, to tell the texts of the row from those of the template",
    "viewer/row_view.py": "shows the prompts before the meta template beside the requests that render makes",
    "viewer/unsent_requests.py": "shows the messages of rows that render refuses",
    "testing.py": "shows messages that the caller wrote by hand",
    "plugins/inspect_ai/messages.py": "to_inspect converts messages of the caller",
    "plugins/bridge/task_rows.py": "AISBench takes prompts, before its model's own meta template",
}
"""Modules that call these outside ``render/``, and why what they make is not a request of a task."""


def test_only_render_assembles_requests():
    """``targets/`` is left out: it defines the writers and knows no task."""
    callers = set()
    for path, parts, tree in modules():
        names = {name.rpartition(".")[2] for name in called(tree)}
        if parts[0] not in {"render", "targets"} and names & (ASSEMBLES | PROMPTS_OF_A_TASK):
            callers.add(path.relative_to(PACKAGE).as_posix())
    assert callers == set(NO_REQUESTS)


def test_nothing_else_both_makes_a_tasks_prompts_and_writes_a_targets_form():
    for path, parts, tree in modules():
        names = {name.rpartition(".")[2] for name in called(tree)}
        if names & ASSEMBLES and names & PROMPTS_OF_A_TASK:
            assert parts[0] == "render", path


def test_pictures_are_decoded_in_one_place_only():
    """Pillow's readers are called in one file, and nothing goes through ``Image.open``, which warns for the process."""
    readers = set()
    for path, _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "PIL":
                names = {alias.name for alias in node.names}
                if names & {"GifImagePlugin", "BmpImagePlugin", "TiffImagePlugin", "AvifImagePlugin"}:
                    readers.add(path.relative_to(PACKAGE).as_posix())
        for name in called(tree):
            assert not name.endswith(("ImageFile", "Image.open", "pillow.open", "PIL.open")), path
    assert readers == {"media/image/readers.py"}


def test_only_the_fetcher_and_the_client_use_the_network():
    network = {"requests", "urllib3", "socket", "http.client", "http.server", "urllib.request", "ftplib", "asyncio"}
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path, _, tree in modules()
        for name in imported(tree)
        if name in network or name.split(".")[0] in {"requests", "urllib3"}
    }
    assert users == {
        "media/fetch/connections.py",
        "media/fetch/fetcher.py",
        "media/fetch/hosts.py",
        "plugins/aisbench/retries.py",  # waits between the requests of the session of AISBench
        "run/client.py",
        "run/connections.py",
        "run/plain_answer.py",  # reads what the connections received
        "run/server.py",  # answers on the loopback address, and asks nobody
        "viewer/server.py",  # answers on the loopback address, and asks nobody
    }


def test_base64_is_used_in_one_file_only():
    users = {
        p.relative_to(PACKAGE).as_posix()
        for p, _, tree in modules()
        for name in imported(tree)
        if name in {"base64", "pybase64", "binascii"}
    }
    assert users == {"media/base64_text.py"}


RUNNERS = {
    "ais_bench",
    "opencompass",
    "mmengine",
    "inspect_ai",
    "pytest",
    "_pytest",
    "lm_eval",
    "lmms_eval",
    "evalscope",
    "deepeval",
    "lighteval",
    "helm",
}


def test_only_plugins_name_a_runner():
    wrong = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path, parts, tree in modules()
        for name in imported(tree)
        if name.split(".")[0] in RUNNERS and parts[0] != "plugins"
    ]
    assert not wrong


def test_each_file_of_a_runners_plugin_has_at_most_150_lines():
    runners = (path for path in (PACKAGE / "plugins").rglob("*.py") if path.parent.name != "bridge")
    long = [path.name for path in runners if len(path.read_text("utf-8").split("\n")) > 151]
    assert not long


@pytest.mark.parametrize("statement", ["import mmprompt", "import mmprompt.plugins", "from mmprompt import *"])
def test_importing_the_package_or_its_plugins_asks_for_no_runner(statement):
    """A hook sees every name that is looked for, whether the runner is there or not."""
    code = f"""
import sys
class Hook:
    seen = []
    def find_spec(self, name, path=None, target=None):
        self.seen.append(name)
sys.meta_path.insert(0, Hook())
{statement}
assert "mmprompt" in Hook.seen
print(" ".join(Hook.seen))
"""
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {name.split(".")[0] for name in seen} & RUNNERS


def test_no_drawer_is_called_utils():
    names = {part for _, parts, _ in modules() for part in parts}
    assert not names & {"utils", "util", "helpers", "common", "base", "misc"}


def test_the_package_holds_no_assert_and_no_print_outside_the_command_line():
    for path, parts, tree in modules():
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)], path
        assert "print" not in called(tree) or parts[0] == "cli", path


def test_the_public_names_are_what_is_importable():
    for name in mmprompt.__all__:
        assert getattr(mmprompt, name) is not None
    assert dir(mmprompt) == sorted(mmprompt.__all__)
    assert set(mmprompt._HOME_OF) == set(mmprompt.__all__)
    declared = next(n for n in ast.parse((PACKAGE / "__init__.py").read_text()).body if isinstance(n, ast.If))
    assert {a.name for n in declared.body if isinstance(n, ast.ImportFrom) for a in n.names} == set(mmprompt.__all__)


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, mmprompt; from mmprompt import parse_segments, PromptTemplate, MetaTemplate, to_openai; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & HEAVY
    bare = subprocess.run(
        [sys.executable, "-c", "import sys, mmprompt; print(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {m for m in bare.stdout.split() if m.startswith("mmprompt")} == {"mmprompt"}


def test_the_classes_of_the_prompt_system_name_their_source():
    named = [getattr(mmprompt, name) for name in mmprompt.__all__]
    ends = ("Template", "Retriever", "Prompter", "PromptList")
    classes = [c for c in named if isinstance(c, type) and c.__name__.endswith(ends)]
    assert len(classes) == 16
    assert not [c.__name__ for c in classes if "\nSource: " not in (inspect.getdoc(c) or "")]
