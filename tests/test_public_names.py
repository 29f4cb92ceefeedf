"""The names and signatures that users write in code, configs and on the command line: none may go or change.

Names and parameters may be added. A new parameter comes last or is keyword-only, and has a default.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import mmprompt

PACKAGE = Path(mmprompt.__file__).parent

PUBLIC = {
    "mmprompt": """
        AlpacaPrompter BM25Retriever ChatPrompter ChatTemplate DatasetError EmptyPrompter FixKRetriever HFRequest
        MMPromptError MMPromptTemplate MediaError MediaPart MediaPolicy MediaReader MediaRef Message MetaTemplate
        MultiTurnPromptTemplate PolicyError PromptError PromptList PromptTemplate RandomRetriever RawPromptTemplate
        RowError RunReport Segment ServerError SlidingWindowRetriever SourceError TagError TargetError Task TaskError
        TemplateError TextPart TopkRetriever Where ZeroRetriever __version__ change_messages
        check_dataset compare_journals converse convert_dataset dataset_task
        from_openai join_segments load_task parse_segments read_messages register_target render_file run_task score_journal to_anthropic to_gemini to_hf
        to_openai view_html
    """,
    "mmprompt.testing": """
        Asker Conversation Reply assert_sends assistant audio check_dataset image sent sent_by system user video
    """,
    "mmprompt.prompters": "AlpacaPrompter ChatPrompter EmptyPrompter",
    "mmprompt.errors": """
        DatasetError MMPromptError MediaError PolicyError PromptError RowError ServerError SourceError TagError
        TargetError TaskError TemplateError Where
    """,
    "mmprompt.cli": "main",
}

DIALOGUE_TEMPLATE = "(template, ice_token=None, sep_token=None, column_token_map=None)"
MEDIA_TEMPLATE = "(template, ice_token=None, sep_token=None, column_token_map=None, *, column=None, order='sample', repeat_text=True)"
PROMPTER = "(instruction=None, extra_keys=None, *, tools=None, history=None, system=None, markers=None, dialect=None)"
PROMPT = (
    "(self, input=None, history=None, tools=None, label=None, *, return_dict=False, format=None, markers=None, "
    "system=None, media_placeholder=None)"
)
RESPONSE = "(self, output, input=None, *, markers=None)"
ERROR = "(what, hint='', where=None)"
BIND = "(self, index_rows, *, test_count=None, input_columns=(), output_column=None, tagged_columns=None)"

SIGNATURES = {
    "mmprompt": {
        **dict.fromkeys(("AlpacaPrompter", "ChatPrompter"), PROMPTER),
        "EmptyPrompter": "(*, tools=None, history=None, system='', markers=None, dialect=None)",
        **{f"{kind}Prompter.generate_prompt": PROMPT for kind in ("Alpaca", "Chat", "Empty")},
        **{f"{kind}Prompter.get_response": RESPONSE for kind in ("Alpaca", "Chat", "Empty")},
        "ZeroRetriever": "(*, ice_num=1, ice_separator='\\n', ice_eos_token='\\n')",
        "FixKRetriever": "(fix_id_list, *, ice_num=1, ice_separator='\\n', ice_eos_token='\\n')",
        "SlidingWindowRetriever": "(k, *, ice_num=1, ice_separator='\\n', ice_eos_token='\\n')",
        "RandomRetriever": "(ice_num=1, seed=43, *, ice_separator='\\n', ice_eos_token='\\n')",
        "BM25Retriever": "(ice_num=1, *, ice_separator='\\n', ice_eos_token='\\n')",
        "TopkRetriever": (
            "(ice_num=1, vectors=None, embed=None, metric='cosine', *, ice_separator='\\n', ice_eos_token='\\n')"
        ),
        "ZeroRetriever.bind": "(self, index_rows, *, test_count=None, input_columns=(), output_column=None, tagged_columns=None)",
        "FixKRetriever.bind": "(self, index_rows, *, test_count=None, input_columns=(), output_column=None, tagged_columns=None)",
        "SlidingWindowRetriever.bind": "(self, index_rows, *, test_count=None, input_columns=(), output_column=None, tagged_columns=None)",
        "RandomRetriever.bind": "(self, index_rows, *, test_count=None, input_columns=(), output_column=None, tagged_columns=None)",
        "BM25Retriever.bind": BIND,
        "TopkRetriever.bind": BIND,
        "PromptTemplate": DIALOGUE_TEMPLATE,
        "MMPromptTemplate": MEDIA_TEMPLATE,
        "MultiTurnPromptTemplate": MEDIA_TEMPLATE,
        "RawPromptTemplate": "(messages, format_variables=True, ice_token='</E>')",
        **{
            f"{kind}Template.{method}": signature
            for kind in ("Prompt", "MMPrompt", "MultiTurnPrompt", "RawPrompt")
            for method, signature in (
                ("generate_item", "(self, entry, output_field=None, ice=None)"),
                ("generate_ice_item", "(self, entry, label=None)"),
                ("generate_label_prompt_item", "(self, entry, ice=None, label=None)"),
            )
        },
        "MultiTurnPromptTemplate.expand": "(self, entry, output_field=None, ice=None, generating=frozenset({'BOT'}))",
        "PromptList": "(iterable=(), /)",
        "PromptList.format": "(self, mapping=None, /, **columns)",
        "PromptList.replace": "(self, src, dst)",
        "PromptList.copy": "(self)",
        "MetaTemplate": "(meta=None)",
        "MetaTemplate.to_string": "(self, prompt, mode='gen', *, media_placeholder=None, tokenizer=None)",
        "MetaTemplate.to_messages": "(self, prompt, mode='gen')",
        "ChatTemplate": "(tokenizer_or_processor, *, special_tokens='refuse', variables=None)",
        "ChatTemplate.to_messages": "(self, prompt, mode='gen')",
        "ChatTemplate.to_string": "(self, prompt, mode='gen')",
        "Segment": "(modality, value, start=0, end=0)",
        "TextPart": "(text, extra=())",
        "MediaRef": "(modality, source, form='', options=(), extra=(), name=None)",
        "MediaPart": (
            "(modality, media_type, data, frames=(), form='', options=(), extra=(), origin='', changes=(), findings=())"
        ),
        "Message": "(role, parts=(), name=None, tool_calls=(), tool_call_id=None)",
        "HFRequest": "(messages, images, audios, sampling_rates, videos, notes)",
        "MediaPolicy": (
            "(roots=(), allow_domains=(), *, max_bytes=67108864, max_pixels=50000000, max_seconds=3600.0, "
            "max_frames=100000, timeout=30.0, fetch=False, isolate=True, read_also=(), files=())"
        ),
        "MediaPolicy.preset": "(name, roots=(), **changes)",
        "MediaPolicy.with_files": "(self, *paths)",
        "MediaReader": "(policy, mode='inline')",
        "MediaReader.read": "(self, ref)",
        "Where": "(file=None, line=None, column=None, offset=None, sample=None, template=None, setting=None)",
        **{
            f"{kind}Error": ERROR
            for kind in (
                *("MMPrompt", "Dataset", "Media", "Policy", "Prompt", "Row"),
                *("Server", "Source", "Tag", "Target", "Task", "Template"),
            )
        },
        "MMPromptError.located": "(self, **place)",
        "Task.samples": "(self)",  # Task itself is made by load_task and dataset_task
        "Task.notes": "(self)",
        "Task.prompts": "(self, *, on_error=None)",
        "Task.strings": "(self, *, on_error=None)",
        "Task.messages": "(self, *, on_error=None)",
        "change_messages": "(messages, policy=None, *, target='vllm', **changes)",
        "compare_journals": "(before, after, scorer=None, *, index_base=None)",
        "score_journal": "(path, scorer=None, *, group_by=(), index_base=None)",
        "converse": (
            "(template, entry, reply, *, infer_mode='every', meta_template=None, output_field=None, ice=None, "
            "max_out_len=None)"
        ),
        "run_task": (
            "(task, model=None, output=None, *, base_url=None, options=None, limit=None, repeats=1, scorer=None, "
            "group_by=(), concurrency=None, rpm=None, timeout=None, retry_errors=False, overwrite=False, policy=None, "
            "on_error=None)"
        ),
        "convert_dataset": "(source, output, *, to, store=None, format=None, map_columns=None, key=None, join=(), split=None, encoding=None, media_roots=(), policy=None, on_error=None)",
        "dataset_task": "(path, *, format=None, map_columns=None)",
        "from_openai": "(messages)",
        "join_segments": "(segments)",
        "load_task": "(task, dataset=None, *, tokenizer=None, abbr=None)",
        "parse_segments": "(text, *, lenient=False)",
        "read_messages": "(messages, policy=None, media='inline')",
        "register_target": (
            "(name, *, like='vllm', schemes=None, formats=None, max_bytes=None, max_count=None, max_side=None, "
            "source='')"
        ),
        "to_anthropic": "(messages, target='anthropic')",
        "to_gemini": "(messages, target='gemini')",
        "to_hf": (
            "(messages, target='hf', *, policy=None, sampling_rate=None, frames_as_images=False, content='parts')"
        ),
        "to_openai": "(messages, target='vllm', *, content='auto')",
    },
    "mmprompt.testing": {
        "Asker.ask": "(self, *content, image=None, audio=None, video=None, system='', **options)",
        "Asker.send": "(self, messages, *, policy=None, **options)",
        "Asker.conversation": "(self, system='')",
        "Conversation.ask": "(self, *content, image=None, audio=None, video=None, **options)",
        "Reply": "(text, finish_reason='', usage=None, message=None)",
        "assert_sends": "(source, expected, *, target='vllm', base=None, policy=None)",
        "assistant": "(*content, image=None, audio=None, video=None)",
        "audio": "(source, **options)",
        "check_dataset": "(source, *, select=(), ignore=(), target=None, policy=None, decode=True)",
        "image": "(source, **options)",
        "sent": "(messages, *, target='vllm', base='', policy=None)",
        "sent_by": "(source, *, target='vllm', policy=None, only=None)",
        "system": "(*content)",
        "user": "(*content, image=None, audio=None, video=None)",
        "video": "(source, **options)",
    },
    "mmprompt.cli": {"main": "(argv=None)"},
}

ATTRIBUTES = {
    "PromptTemplate": "template ice_token sep_token prompt_type labels",
    "MMPromptTemplate": "template ice_token sep_token prompt_type labels",
    "MultiTurnPromptTemplate": "template ice_token sep_token prompt_type labels",
    "RawPromptTemplate": "template messages format_variables ice_token sep_token prompt_type labels",
    "MetaTemplate": "meta generating_roles eos_token_id",
    "Message": "text",
    "Task": "output_column media mode",
}

# the modules that need their runner to be imported, with what configs and programs take from them;
# where the parameters are ours alone, their signature
PLUGINS = {
    "mmprompt.plugins.aisbench": {
        "MMPromptChat": None,
        "MMPromptDataset": None,
        "MMPromptMultiTurn": None,
        "MMPromptMultimodal": None,
        "MMPromptRetriever": None,
        "MMPromptTask": "(self, task, abbr=None, target='vllm', template=None)",
        "MMPromptText": "(self, template, ice_token=None, sep_token=None, *, media=None, target='vllm', **options)",
    },
    "mmprompt.plugins.aisbench.calculators": {},
    "mmprompt.plugins.opencompass": {
        "MMPromptDataset": None,
        "MMPromptMessages": (
            "(self, template=None, ice_token=None, sep_token=None, *, messages=None, meta_template=None, media=None, "
            "target='vllm', **options)"
        ),
        "MMPromptRetriever": None,
        "MMPromptTask": "(self, task, abbr=None, target='vllm')",
        "MMPromptText": "(self, template, ice_token=None, sep_token=None, *, media=None, target='vllm', **options)",
    },
    "mmprompt.plugins.inspect_ai": {
        "dataset": ("(path, *, dataset=None, train=None, target='vllm', media_root=None, skip_bad=False)"),
        "from_inspect": "(messages)",
        "mmprompt_task": (
            "(path='', *, dataset=None, train=None, target='vllm', scorer=None, media_root=None, skip_bad=False)"
        ),
        "provider": "()",
        "to_inspect": "(messages, target='vllm')",
        "whole": "()",
    },
    "mmprompt.plugins.pytest_plugin": {"pytest_addoption": "(parser)", "vlm": "(request)"},
}

ENTRY_POINTS = {
    "ais_bench.benchmark_plugins": {"mmprompt": "mmprompt.plugins.aisbench"},
    "inspect_ai": {"mmprompt": "mmprompt.plugins.inspect_ai"},
    "pytest11": {"mmprompt": "mmprompt.plugins.pytest_plugin"},
}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_can_be_imported(module: str) -> None:
    loaded = importlib.import_module(module)
    names = PUBLIC[module].split()
    assert not [name for name in names if getattr(loaded, name, None) is None]
    assert module == "mmprompt.cli" or set(names) <= set(getattr(loaded, "__all__", dir(loaded)))


def test_the_errors_say_what_where_and_a_way_out() -> None:
    error = mmprompt.TaskError("no rows", "give some", mmprompt.Where("vqa.jsonl", 3))
    assert (error.what, error.where.file, error.where.line) == ("no rows", "vqa.jsonl", 3)
    assert error.hint == "give some"
    assert all(word in str(error) for word in ("vqa.jsonl:3", "no rows", "give some"))


def test_every_error_is_an_mmprompt_error() -> None:
    names = [name for name in PUBLIC["mmprompt"].split() if name.endswith("Error")]
    assert not [name for name in names if not issubclass(getattr(mmprompt, name), mmprompt.MMPromptError)]


@pytest.mark.parametrize("owner", ATTRIBUTES)
def test_the_attributes_of_public_classes_remain(owner: str) -> None:
    there = dir(getattr(mmprompt, owner))
    assert not [name for name in ATTRIBUTES[owner].split() if name not in there]


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in SIGNATURES.items() for name in names])
def test_a_public_signature_takes_what_it_took(module: str, name: str) -> None:
    found: Any = importlib.import_module(module)
    for step in name.split("."):
        found = getattr(found, step)
    signature = inspect.signature(found)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    now = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    assert not lost(SIGNATURES[module][name], now), f"{name} is now {now}"


@pytest.mark.parametrize("module", PLUGINS)
def test_a_plugin_module_stands_where_configs_name_it(module: str) -> None:
    assert source_of(module).is_file()
    for name, signature in PLUGINS[module].items():
        node = definition(module, name)
        assert node is not None, f"{module} has no {name}"
        if signature is not None:
            now = signature_of(node)
            assert now is not None, f"{module}.{name} has no signature"
            assert not lost(signature, now), f"{module}.{name} is now {now}"


def test_the_short_names_of_aisbench_are_registered_in_calculators() -> None:
    source = source_of("mmprompt.plugins.aisbench.calculators").read_text(encoding="utf-8")
    assert not [name for name in PLUGINS["mmprompt.plugins.aisbench"] if name not in source]
    registries = {"ICL_PROMPT_TEMPLATES", "ICL_RETRIEVERS", "LOAD_DATASET", "MODELS"}
    assert {
        line.split(".register_module")[0].strip() for line in source.splitlines() if ".register" in line
    } == registries


def test_the_entry_points_remain() -> None:
    toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = toml.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"mmprompt": "mmprompt.cli:main"}
    assert {group: project["entry-points"].get(group) for group in ENTRY_POINTS} == ENTRY_POINTS


# ---- how signatures are compared


def lost(before: str, now: str) -> list[str]:
    """Return what a call that was right before could miss in the present signature."""
    old, new = arguments(before), arguments(now)
    missing = []
    for index, (name, default) in enumerate(old["positional"]):
        there = new["positional"][index] if index < len(new["positional"]) else None
        if there != (name, default):
            missing.append(name)
    by_name = {**dict(new["positional"]), **dict(new["keyword"])}
    missing += [name for name, default in old["keyword"] if by_name.get(name, ...) != default]
    added = new["positional"][len(old["positional"]) :] + new["keyword"]
    missing += [name for name, default in added if default is None and (name, default) not in old["keyword"]]
    return missing + [star for star in old["stars"] if star not in new["stars"]]


def arguments(signature: str) -> dict[str, list[Any]]:
    """Take a signature apart: (name, default's text or None) by kind, and the stars."""
    node = ast.parse(f"def f{signature}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + [ast.unparse(d) for d in given.defaults]
    keyword = [None if d is None else ast.unparse(d) for d in given.kw_defaults]
    stars = [star for star, argument in (("*", given.vararg), ("**", given.kwarg)) if argument is not None]
    return {
        "positional": [(a.arg, d) for a, d in zip(positional, defaults, strict=True)],
        "keyword": [(a.arg, d) for a, d in zip(given.kwonlyargs, keyword, strict=True)],
        "stars": stars,
    }


@pytest.mark.parametrize(
    ("now", "what"),
    [
        ("(b, a=1, *, c=2)", ["a", "b"]),
        ("(a, b=2, *, c=2)", ["b"]),
        ("(a, b=1)", ["c"]),
        ("(a, b=1, *, c=2, d)", ["d"]),
        ("(a, b=1, d=4, *, c=2, e=5)", []),
        ("(a, b=1, c=2)", []),
    ],
)
def test_the_comparison_sees_each_kind_of_change(now: str, what: list[str]) -> None:
    assert lost("(a, b=1, *, c=2)", now) == what


def source_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def definition(module: str, name: str) -> tuple[str, ast.stmt] | None:
    """Return the module that defines a name, and the definition; imports from our own modules are followed."""
    for _ in range(5):
        step: tuple[str, str] | None = None
        for node in ast.parse(source_of(module).read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                return module, node
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mmprompt."):
                step = next(((node.module or "", a.name) for a in node.names if (a.asname or a.name) == name), step)
        if step is None:
            return None
        module, name = step
    return None


def signature_of(found: tuple[str, ast.stmt]) -> str | None:
    """Return the parameters of a function, or of the constructor that a class has or inherits from one of ours."""
    module, node = found
    if isinstance(node, ast.ClassDef):
        makers = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        if not makers:
            bases = [definition(module, base.id) for base in node.bases if isinstance(base, ast.Name)]
            return next((signature_of(base) for base in bases if base is not None), None)
        node = makers[0]
    if not isinstance(node, ast.FunctionDef):
        return None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return f"({ast.unparse(node.args)})"
