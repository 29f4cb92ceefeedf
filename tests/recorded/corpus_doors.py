"""What comes out of a case by each door: lines, errors, notes and how it ended. Public functions alone are called."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from corpus_values import Made

import mmprompt
from mmprompt import (
    MediaPart,
    MediaRef,
    Message,
    MetaTemplate,
    MMPromptError,
    Task,
    TextPart,
    check_dataset,
    converse,
    load_task,
    register_target,
    render_file,
    view_html,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from command_line import run_here

OUT, FAULTS = "out.jsonl", "faults.jsonl"
_PUBLIC = (Message, TextPart, MediaRef, MediaPart)

Record = dict[str, Any]
"""``lines``, ``errors`` and ``notes``, a list each, and ``end``."""


def record(case: Made, door: str) -> Record:
    """Return what comes out of a case by a door, in the current folder, which holds the files of the case."""
    name, *words = door.split()
    register_target("few", like="vllm", max_count={"image": 2}, schemes=["https"])  # a test forgets it
    found: Record = {"lines": [], "errors": [], "notes": [], "end": None}
    for path in (OUT, FAULTS):
        Path(path).unlink(missing_ok=True)
    if name == "command":
        _command(case, found, *words)
    else:
        if words[-1:] in (["batch"], ["string"]) or name == "strings":
            case = _with_model(case)
        try:
            found["end"] = _CALLS[name](case, found, *words)
        except MMPromptError as error:
            found["end"] = fault(error)
        except Exception as error:  # a fault of the package, which is recorded as it is
            found["end"] = f"raised {type(error).__name__}: {error}"
    return _settled(found)


def _settled(found: Record) -> Record:
    """Return a record without what differs from run to run: the current folder, and addresses of objects.

    If a text holds several placeholders, the package once named any of them. Python 3.10 words one error in its own way.
    """
    text = json.dumps(found).replace(json.dumps(os.getcwd())[1:-1], "/here").replace("(4300 digits)", "(4300)")
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(
        r"the text contains '[^']*', which is a media placeholder", "the text contains a media placeholder", text
    )
    settled: Record = json.loads(text)
    return settled


def text_of(data: bytes) -> str:
    """Return bytes as text, without loss."""
    return data.decode("utf-8", "surrogateescape")


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a file, each with its end."""
    return [text_of(line) for line in data.splitlines(keepends=True)]


def fault(error: MMPromptError) -> list[Any]:
    """Return an error as its class, code, words and place."""
    where = {key: value for key, value in error.where._asdict().items() if value is not None}
    return [type(error).__name__, error.code, str(error), where]


def _loaded(case: Made) -> Task:
    return load_task(case.source, case.dataset, tokenizer=(lambda text: len(text.split())) if case.counts else None)


def _with_model(case: Made) -> Made:
    """Return a dataset as a task that names a model, without which there are no batch lines and no strings of media."""
    if any(name.startswith(("task.", "config.py", "some.")) for name in case.files):
        return case
    given = {"dataset": case.source} if isinstance(case.source, str) else case.source
    model = {"model": "some-model", "media_placeholder": {"image": "<image>", "audio": "[audio]", "video": "<video>"}}
    return case._replace(source={**given, "model": model})


def _notes(task: Task) -> list[list[str]]:
    return [[note.code, str(note)] for note in task.notes()]


def _render(case: Made, found: Record, target: str, emit: str) -> Any:
    def on_error(error: MMPromptError) -> None:
        found["errors"].append(fault(error))

    def on_note(note: Any) -> None:
        found["notes"].append([note.code, str(note)])

    source: Any = _loaded(case) if case.dataset or case.counts else case.source
    try:
        report = render_file(source, OUT, emit=emit, target=target, on_error=on_error, on_note=on_note)
    finally:
        if os.path.exists(OUT):
            found["lines"] = lines_of(Path(OUT).read_bytes())
    return repr(report)


def _command(case: Made, found: Record, target: str, emit: str) -> None:
    """Run ``mmprompt render``; without ``-o`` for the target openai. What the command says is recorded as notes."""
    words = (case.source,) if case.words is None else case.words
    output = () if target == "openai" else ("-o", OUT)
    done = run_here("render", *words, "--target", target, "--emit", emit, "--errors", FAULTS, *output)
    lines = Path(OUT).read_bytes() if os.path.exists(OUT) else done.stdout
    found["lines"] = lines_of(lines)
    found["notes"] = lines_of(done.stderr)
    found["errors"] = lines_of(Path(FAULTS).read_bytes()) if os.path.exists(FAULTS) else []
    found["end"] = done.returncode


def _requests(case: Made, found: Record, target: str) -> None:
    task = _loaded(case)
    for request in task.requests(target, on_error=lambda error: found["errors"].append(fault(error))):
        one = {
            "id": plain(request.id), "turn": request.turn, "label": plain(request.label), "answers": plain(request.answers), "choices": plain(request.choices),
            "where": str(request.where), "dropped": request.dropped, "notes": [[n.code, str(n)] for n in request.notes], "shown": repr(request),
            "media": [repr(medium) for medium in request.media], "mapping": plain(dict(request)), "generation": plain(request.generation),
        }  # fmt: skip
        one["body"] = plain(_or_fault(request.body, model="a-model"))
        one["digest"] = _or_fault(request.digest)
        found["lines"].append(one)
    found["notes"] = _notes(task)


def _or_fault(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return call(*arguments, **options)
    except MMPromptError as error:
        return fault(error)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"


def _first(case: Made, found: Record, target: str) -> None:
    """Iterate without ``on_error``: the first error is raised, and ends the record."""
    for request in _loaded(case).requests(target):
        found["lines"].append([plain(request.id), len(request.media), request.answers != ()])


def _stages(name: str) -> Callable[[Made, Record], None]:
    def call(case: Made, found: Record) -> None:
        task = _loaded(case)
        rows: Iterator[Any] = getattr(task, name)(on_error=lambda error: found["errors"].append(fault(error)))
        found["lines"] = [[plain(row_id), _shown(value)] for row_id, value in rows]
        found["notes"] = _notes(task)

    return call


def _shown(value: Any) -> Any:
    """Return a prompt, a string or messages as plain data; of what is a text, that text and the media beside it."""
    if isinstance(value, str):
        return [str(value), plain(getattr(value, "media", ()))]
    if isinstance(value, Mapping):
        return [[plain(key), _shown(item)] for key, item in value.items()]
    return [str(value), plain([*value])] if type(value).__name__ == "PromptList" else plain(value)


def plain(value: Any) -> Any:
    """Return a value as JSON that tells its types: named tuples of ours by name, other objects by ``repr``."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, _PUBLIC):
        names = next(cls.__name__ for cls in _PUBLIC if isinstance(value, cls))
        return [names, *map(plain, value)]
    if isinstance(value, Mapping):
        return {"{}": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [*map(plain, value)] if isinstance(value, list) else {"()": [*map(plain, value)]}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": text_of(bytes(value))}
    return {type(value).__name__: repr(value)}


def _samples(case: Made, found: Record) -> None:
    """The rows as they are read."""
    task = _loaded(case)
    for row in task.samples():
        if isinstance(row, MMPromptError):
            found["errors"].append(fault(row))
        else:
            found["lines"].append([plain(row.id), row.file, row.line, plain(dict(row.columns))])
    found["notes"] = _notes(task)


def _config(case: Made) -> Mapping[str, Any]:
    """Return a task as a mapping; that of a dataset alone, and of another runner's config, is empty."""
    if isinstance(case.source, Mapping):
        return case.source
    return next((json.loads(data) for name, data in case.files.items() if name.startswith("task.")), {})


def _built(given: Any) -> Any:
    """Return a template as the public class of its type."""
    arguments = dict(given) if isinstance(given, Mapping) and "jinja" not in given else {"template": given}
    return getattr(mmprompt, arguments.pop("type", "PromptTemplate"))(**arguments)


def _template(case: Made, found: Record) -> None:
    """The methods of the template and the meta template, called with the columns of each row."""
    config = _config(case)
    infer, model = config.get("infer_cfg", {}), config.get("model", {})
    if "prompt_template" not in infer:
        return
    template, meta = _built(infer["prompt_template"]), MetaTemplate(model.get("meta_template"))
    shown = _built(infer["ice_template"]) if "ice_template" in infer else None
    label = next(iter(getattr(template, "labels", ())), None)
    ice: Any = None
    for row in _loaded(case).samples():
        if isinstance(row, MMPromptError):
            continue
        made = _or_fault(template.generate_item, row.columns, output_field="answer", ice=ice)
        one = [
            _shown(made),
            *(
                _shown(_or_fault(template.generate_label_prompt_item, row.columns, ice, label))
                for _ in range(label is not None)
            ),
        ]
        for mode in ("gen", "ppl"):
            one.append(_shown(_or_fault(meta.to_string, made, mode, media_placeholder=model.get("media_placeholder"))))
            one.append(plain(_or_fault(meta.to_messages, made, mode)))
        if shown is not None:
            ice = _or_fault(shown.generate_ice_item, row.columns, label)
            one.append(_shown(ice))
            ice = None if isinstance(ice, list) and type(ice) is list else ice
        found["lines"].append(one)
    found["end"] = [template.prompt_type, repr(template)]


def _converse(case: Made, found: Record) -> None:
    """A model that answers each turn, with words that look like slots and tags."""
    config = _config(case)
    template, meta = _built(config["infer_cfg"]["prompt_template"]), MetaTemplate(config["model"].get("meta_template"))
    for row in _loaded(case).samples():
        for mode in ("every", "last") if not isinstance(row, MMPromptError) else ():
            call = partial(
                converse, template, row.columns, _reply, infer_mode=mode, meta_template=meta, output_field="answer"
            )
            found["lines"].append(
                plain(_or_fault(lambda call=call: [[r.turn, plain(r.messages), r.reply] for r in call()]))
            )


def _reply(messages: list[Message]) -> str:
    return f"reply to {len(messages)} {{answer}} <AIS_TEXT_START> <image>"


def _check(case: Made, found: Record, target: str) -> None:
    source: Any = _loaded(case) if case.dataset or case.counts else case.source
    found["lines"] = [plain(list(finding)) for finding in check_dataset(source, target=target, decode=False)]


def _page(case: Made, found: Record) -> None:
    """What the page of the viewer shows of the first rows: requests with the origin of each text, prompts, errors."""
    source: Any = _loaded(case) if case.dataset or case.counts else case.source
    view_html(source, "page.html", limit=24, check=False, decode=False)
    for packed in re.findall(
        r'<script type="text/plain" id="rows-[^"]*">([^<]*)<', Path("page.html").read_text(encoding="utf-8")
    ):
        for row in json.loads(gzip.decompress(base64.b64decode(packed))):
            found["lines"].append({key: row.get(key) for key in ("error", "segments", "requests", "prompts")})


_CALLS: dict[str, Callable[..., Any]] = {
    "render": _render,
    "requests": _requests,
    "first": _first,
    "samples": _samples,
    "template": _template,
    "converse": _converse,
    "check": _check,
    "page": _page,
    **{name: _stages(name) for name in ("prompts", "strings", "messages")},
}
