"""The prompts of a promptfoo config: texts, and chats written as JSON or YAML, filled with the variables of a test."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from mmprompt.errors import MMPromptError, RowError, TaskError, names_in_short, shown
from mmprompt.messages import MediaRef, Message
from mmprompt.targets.openai_reading import from_openai
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream.config_folder import ConfigFolder, upstream_yaml
from mmprompt.tasks.upstream.nunjucks import Filled, Medium, NunjucksText

FILE = "file://"
_TEXTS = (".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml", ".csv")
_SCRIPTS = (".py", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".sh", ".bash", ".rb", ".pl", ".go", ".prompty")
_SERVICES = ("langfuse://", "portkey://", "helicone://", "exec:", "http://", "https://", "pf://", "package:")
_ANTHROPIC = ("image", "video", "audio")
_LOOKS_LIKE_JSON = re.compile(r"\s*(\{\s*[\"'}]|\[\s*[\[{\"\]])")
_KEYS = ("id", "label", "raw", "display", "prompt", "config", "file", "function")


class Held(dict[str, object]):
    """The media of one chat, by the names that stand for them until the chat is read."""


class Prompt(NamedTuple):
    """One prompt. ``text`` is a compiled text, or what JSON or YAML gave, with compiled texts in place of strings."""

    label: str
    text: Any

    def messages(self, variables: Mapping[str, object], prefix: str = "", suffix: str = "") -> tuple[Message, ...]:
        """Return the messages for these variables; ``prefix`` and ``suffix``, filled already, stand around a text.

        Raises:
            RowError: the filled prompt is not a chat that can be sent.
            TemplateError: a variable is missing.
        """
        held = Held()
        if isinstance(self.text, NunjucksText):
            filled = self.text.fill(variables)
            read = _read_chat(filled)
            wire = [_message_of(f"{prefix}{filled.plain()}{suffix}")] if read is None else _chat(read, held)
        else:
            read = _filled(self.text, variables)
            wire = _chat(read, held)
        if (prefix or suffix) and (read is not None):
            raise RowError("a prefix or suffix stands around a chat", "write it into a message")
        try:
            return tuple([_with_media(message, held) for message in from_openai(wire)])
        except MMPromptError as error:
            raise RowError(error.what, error.hint, error.where, error.code) from None


def prompts_of(value: ConfigValue, folder: ConfigFolder, known: Collection[str]) -> list[Prompt]:
    """Return the prompts under the key ``prompts``; ``known`` are the variables that the config itself gives.

    Raises:
        TaskError: a prompt is made by code or kept by a service, a file is missing, or Jinja does not read a text.
    """
    if isinstance(value, Mapping):
        value = [{"id": name, "label": label} for name, label in value.items()]
    found: list[tuple[str, str, bool]] = []
    for entry in [value] if isinstance(value, str) else value or ["{{prompt}}"]:  # type: ignore[union-attr]  # checked
        found += _sources(entry, folder)
    prompts = []
    for number, (label, source, is_file) in enumerate(found, 1):
        name = label or f"prompt {number}"
        try:
            prompts.append(Prompt(name, _compiled(source, known)))
        except TaskError as error:
            place = f"prompts: {name}" if not is_file else f"prompts: {label}"
            raise TaskError(f"{place}: {error.what}", error.hint).located(setting="prompts") from None
    return prompts


def _sources(entry: ConfigValue, folder: ConfigFolder) -> Iterator[tuple[str, str, bool]]:
    """Yield label and source of the prompts that one entry gives, and whether the source is a file's."""
    label = ""
    if isinstance(entry, Mapping):
        if unknown := [key for key in entry if key not in _KEYS]:
            raise _error(f"a prompt has the key {shown(unknown[0])}", f"give {', '.join(_KEYS[:3])}")
        label = str(entry.get("label") or entry.get("display") or "")
        entry = entry.get("raw") or entry.get("prompt") or entry.get("file") or entry.get("id")
    if not isinstance(entry, str):
        raise _error(f"a prompt is {type(entry).__name__}", "give a text, a file, or {id: file://…, label: …}")
    if entry.startswith(_SERVICES):
        raise _error(f"the prompt {shown(entry)} is kept by a service or made by a program", "save it as a text file")
    name = entry.removeprefix(FILE)
    stem, suffix = os.path.splitext(name.partition(":")[0])
    if suffix in _SCRIPTS and "\n" not in entry and not entry.count(" "):
        raise _error(f"the prompt {shown(name)} is code, and a config of data is not run", "write it as a text")
    if entry.startswith(FILE) or ("\n" not in entry and "{{" not in entry and suffix in _TEXTS and stem):
        for path in folder.files(name, "prompts"):
            for number, source in enumerate(texts := list(_in_file(path, folder)), 1):
                own = label or os.path.relpath(path, folder.folder or os.curdir)
                yield (f"{own} {number}" if len(texts) > 1 else own), source, True
    else:
        yield label, entry, False


def _in_file(path: str, folder: ConfigFolder) -> list[str]:
    """Return the prompts in a file."""
    text = folder.text(path, "prompts")
    suffix = os.path.splitext(path)[1]
    if suffix == ".txt":
        pieces = re.split(r"^[^\S\n]*---[^\S\n]*$", text.replace("\r\n", "\n"), flags=re.MULTILINE)
        return [piece.strip() for piece in pieces if piece.strip()]
    if suffix == ".jsonl":
        return [line for line in text.splitlines() if line]
    if suffix in (".yaml", ".yml"):
        return [json.dumps(upstream_yaml(text), ensure_ascii=False, default=str)]
    if suffix == ".csv":
        if "," not in text:
            lines = [line for line in text.splitlines() if line.strip()]
            return lines[1:] if lines and lines[0].strip().lower() == "prompt" else lines
        return [row["prompt"].strip() for row in csv.DictReader(io.StringIO(text)) if row.get("prompt")]
    if suffix not in _TEXTS:
        raise _error(f"the prompt file {shown(path)} is of an unknown kind", f"give one of {', '.join(_TEXTS)}")
    return [text]


def _compiled(source: str, known: Collection[str]) -> Any:
    try:
        structure = json.loads(source)
    except (ValueError, RecursionError):
        return NunjucksText(source, known)
    return _compiled_in(structure, known) if isinstance(structure, (list, dict)) else NunjucksText(source, known)


def _compiled_in(value: Any, known: Collection[str]) -> Any:
    if isinstance(value, str):
        return NunjucksText(value, known)
    if isinstance(value, list):
        return [_compiled_in(item, known) for item in value]
    return {key: _compiled_in(v, known) for key, v in value.items()} if isinstance(value, dict) else value


def _filled(value: Any, variables: Mapping[str, object]) -> Any:
    if isinstance(value, NunjucksText):
        filled = value.fill(variables)
        return filled.put_in(filled.text)
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    return {key: _filled(v, variables) for key, v in value.items()} if isinstance(value, dict) else value


def _read_chat(filled: Filled) -> Any:
    """Return the chat that a filled text is, None for a text."""
    text = filled.text.strip()
    try:
        if text.startswith("- role:"):
            return filled.put_in(upstream_yaml(text))
        if _LOOKS_LIKE_JSON.match(text) and text.endswith(("]", "}")):
            return filled.put_in(json.loads(text))
    except RecursionError:
        raise RowError("the prompt is nested too deeply", "flatten it") from None
    except ValueError as error:
        what = f"the prompt looks like JSON and is not: {error}"
        raise RowError(what, "put values in with {{ NAME | dump }}, without quotes around it") from None
    except TaskError as error:
        raise RowError(f"the prompt: {error.what}", error.hint, code=error.code) from None
    return None


def _chat(read: Any, held: Held) -> list[dict[str, Any]]:
    """Return the messages of a chat in the forms of OpenAI and Anthropic; media go to ``held`` under a name."""
    system: list[dict[str, Any]] = []
    if isinstance(read, Mapping) and isinstance(read.get("messages"), list):
        if isinstance(read.get("system"), str):
            system = [{"role": "system", "content": read["system"]}]
        if unknown := [key for key in read if key not in ("messages", "system")]:
            raise RowError(f"the prompt has {names_in_short(unknown)} beside messages", "remove them")
        read = read["messages"]
    elif isinstance(read, Mapping) and "role" in read:
        read = [read]
    if not isinstance(read, list) or not all(isinstance(item, Mapping) and "role" in item for item in read):
        what = "the prompt is JSON, but not a list of messages"
        raise RowError(what, 'write [{"role": "user", "content": …}], or a text that does not begin with { or [')
    if not read:
        raise RowError("the list of messages is empty", "give at least one message")
    return system + [_message(item, held) for item in read]


def _message(item: Mapping[str, Any], held: Held) -> dict[str, Any]:
    content = item.get("content")
    if isinstance(content, list):
        content = [_part(part, held) for part in content]
    elif isinstance(content, Medium):
        raise RowError(f"the medium {content} is the whole content", "put it into a part of type image_url")
    return {**item, "content": content}


def _part(part: Any, held: Held) -> Any:
    """Return a content part as OpenAI writes it, with a name in place of each medium."""
    if not isinstance(part, Mapping):
        return part
    source = part.get("source")
    if isinstance(source, Mapping) and part.get("type") in _ANTHROPIC:
        kind = f"{part['type']}_url"
        url = source.get("data", source.get("url"))
        if isinstance(url, str) and source.get("type") == "base64" and not url.startswith("data:"):
            url = f"data:{source.get('media_type', '')};base64,{url}"
        return {"type": kind, kind: {"url": _named(url, held)}}
    return {key: _named(value, held) for key, value in part.items()}


def _named(value: Any, held: Held) -> Any:
    """Return a value of a part in which each medium is a name of ``held``."""
    if isinstance(value, Medium):
        name = f"medium {len(held)}"
        held[name] = value.source
        return name
    return {key: _named(v, held) for key, v in value.items()} if isinstance(value, Mapping) else value


def _with_media(message: Message, held: Held) -> Message:
    """Return a message with its media in place of their names."""
    if not held:
        return message
    parts = [
        part._replace(source=held[part.source])
        if isinstance(part, MediaRef) and isinstance(part.source, str) and part.source in held
        else part
        for part in message.parts
    ]
    return message._replace(parts=tuple(parts))


def _message_of(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _error(what: str, hint: str) -> TaskError:
    return TaskError(what, hint).located(setting="prompts")
