"""A task file to start from: written for the columns of a dataset, with comments."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.datasets.choices import LISTS, choices_in, is_empty, unread_choices
from mmprompt.datasets.column_roles import COLUMNS
from mmprompt.datasets.media_columns import looks_like
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import ID_COLUMNS, Sample
from mmprompt.errors import TaskError, names_in_short, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.messages import MODALITIES
from mmprompt.segments import scan
from mmprompt.tasks.default_prompt import SYSTEM
from mmprompt.tasks.unsent import LIKE_ANSWERS
from mmprompt.templates.sample_view import CONTENT

_QUESTIONS = ("question", "query", "prompt", "instruction", "problem", "text", "input", "caption")
_ANSWERS = ("answer", "answers", *LIKE_ANSWERS)
_HINTS = ("hint", "context", "passage", "lecture")
_JINJA_LINE = "{{% if {name} %}}{{{{ {name} }}}}\n{{% endif %}}"
_JINJA_CHOICES = (
    "{% if choices is defined %}{% for c in choices %}\n{{ c.letter }}. {{ c.text }}{% endfor %}{% endif %}"
)
_SCORERS = {"vqav2": "vqa", "textvqa": "vqa", "docvqa": "anls"}
"""The scorers of benchmarks, by format. Rows with choices have the scorer ``choice``, all others ``exact``."""

_LOOKED_AT = 50
"""Rows that are read to see what a column holds."""


class FoundColumns(NamedTuple):
    """What the columns of a dataset hold.

    ``is_whole``: each row is a chat or a list of parts, which needs no template; of the rest only ``choices`` is then
    known. ``content`` are the modalities of a tagged ``content``. ``media`` maps a column to its modality.
    ``optional`` are columns that some rows lack, and ``others`` those that no prompt needs. ``choices`` is "all" or
    "some" if rows have choices. ``system`` is True if a column has the role of a system message. ``listed`` is a column
    that holds choices as one text, and ``unread`` are columns that look like choices and are not.
    """

    is_whole: bool = False
    content: frozenset[str] = frozenset()
    media: Mapping[str, str] = {}
    question: str | None = None
    hint: str | None = None
    choices: str = ""
    answer: str | None = None
    optional: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    system: bool = False
    listed: str | None = None
    unread: tuple[str, ...] = ()


def starter_task(dataset: Dataset, section: Mapping[str, Any], roots: Sequence[str] = ()) -> tuple[str, list[Note]]:
    """Return the text of a YAML task file for a dataset, and notes on it.

    ``section`` is the section ``dataset`` of the task file. The first 50 rows show what the columns of the dataset
    hold; where ``section`` gives them roles, the template uses the roles. ``roots`` are folders of media below that of
    the task file.

    Raises:
        TaskError: the dataset has no rows, no column with a question or media, or not one that has a role.
        RowError: none of these rows can be read.
        DatasetError: it cannot be read.
    """
    path = section["path"]
    read = list(itertools.islice(dataset, _LOOKED_AT))
    rows = [row for row in read if isinstance(row, Sample)]
    if not rows:
        raise read[0] if read else TaskError(f"{path} has no row", "give a dataset with at least one row")  # type: ignore[misc]
    found = found_columns(rows, section.get("columns", {}), cells=dataset.format in {"csv", "tsv"})
    lines = [
        f"# A task for {os.path.basename(path)}: which rows, how they become prompts, and how answers are scored.",
        "dataset:",
        *[f"  {name}: {_quoted(value)}" for name, value in section.items()],
    ]
    if not found.is_whole:
        lines += [*_reader_lines(found), *_template_lines(found)]
    media = "# media: {fit: true}  # scale or re-encode media that the target would refuse"
    if roots:
        media = f"media: {{roots: {_quoted(list(roots))}}}  # where names of media begin, beside the dataset's folder"
    lines += [
        media,
        f"eval_cfg: {{scorer: {'choice' if found.choices else _SCORERS.get(dataset.format, 'exact')}}}",
    ]
    return "\n".join(lines) + "\n", _notes(found)


def _notes(found: FoundColumns) -> list[Note]:
    """Return a note if the prompt lacks choices that columns could give, or has no text."""
    if found.unread:
        what = f"the prompt leaves out the choices in {names_in_short(map(shown, found.unread))}"
        return [Note("MM606", what, "rename the columns to A, B, …, and run mmprompt init again")]
    if found.is_whole or "text" in found.content or found.question or found.hint or found.choices:
        return []
    what = "no column looks like the question, so the prompt holds media alone"
    text, beside = "YOUR QUESTION", ""
    if found.others:
        text, beside = "{COLUMN}", f" (columns: {names_in_short(found.others)})"
    return [Note("MM606", what, f'write text: "{text}" beside them{beside}')]


def found_columns(rows: Sequence[Sample], roles: Mapping[str, str], *, cells: bool) -> FoundColumns:
    """Return what the columns of these rows hold. With ``cells`` a cell may be a list written as text.

    ``roles`` maps columns to roles. Such a column also stands under the name of its role, and counts under that alone.

    Raises:
        TaskError: no column holds a question or media, or no row has a column of ``roles``.
    """
    _check_columns(roles, rows)
    columns: dict[str, list[object]] = {}
    count = multiple = 0
    choices: set[str] = set()
    tagged: set[str] = set()
    for row in rows:
        content = row.columns.get(CONTENT)
        if row.messages is not None or isinstance(content, (list, tuple)):
            return FoundColumns(is_whole=True, choices="some" if any(choices_in(r.columns).texts for r in rows) else "")
        count += 1
        if names := choices_in(row.columns).columns:
            choices.update(names)
            multiple += 1
        for name, value in row.columns.items():
            if not is_empty(value):
                columns.setdefault(name, []).append(value)
        if isinstance(content, str) and row.scanned:
            tagged.update(span[0] for span in scan(content, lenient=True))
    own = [name for name in columns if name not in roles or name == COLUMNS.get(roles[name], roles[name])]
    free = [name for name in own if name not in choices and "{" not in name and "}" not in name]
    answer, question, hint = (_first(free, names) for names in (_ANSWERS, _QUESTIONS, _HINTS))
    system = SYSTEM if SYSTEM in roles.values() else None
    beside = [name for name in free if name not in {answer, question, hint, system, *ID_COLUMNS, *rows[0].sent}]
    media = {} if tagged else _media(columns, beside, roles, cells)
    if not (tagged or media or question):
        hint_ = f"write a task file by hand (columns: {names_in_short(columns)})"
        raise TaskError("no column holds a question or media", hint_)
    listed, unread = (None, ()) if choices else _unread({name: columns[name][0] for name in beside})
    sent = [name for name in (question, hint, system, listed) if name is not None]
    optional = tuple([name for name in sent if len(columns.get(name, ())) < count])
    others = tuple([name for name in beside if name not in media and name not in {CONTENT, listed}])
    chosen = "" if not choices else "all" if multiple == count else "some"
    return FoundColumns(
        False, frozenset(tagged), media, question, hint, chosen, answer, optional, others, system is not None,
        listed, unread,
    )  # fmt: skip


def _unread(columns: Mapping[str, object]) -> tuple[str | None, tuple[str, ...]]:
    """Return the column that holds choices as one text, else the columns that look like choices."""
    found = unread_choices(columns)
    return (found[0], ()) if found and found[0] in LISTS else (None, tuple(found))


def _check_columns(roles: Mapping[str, str], rows: Sequence[Sample]) -> None:
    every = dict.fromkeys(name for row in rows for name in row.columns)
    for column, role in roles.items():
        if column not in every:
            raise TaskError(f"no column {shown(column)}, which has the role {role}", nearest(column, every))


def _reader_lines(found: FoundColumns) -> list[str]:
    said = "hidden from prompts, and what replies are scored against"
    lines = [f"  output_column: {_quoted(found.answer)}  # {said}"] if found.answer else []
    if found.optional:
        names = ", ".join(map(_quoted, found.optional))
        lines.append(f"  optional_columns: [{names}]  # rows without a value leave it empty")
    unnamed = "# reader_cfg: {output_column: NAME}  # name the column of the answers, if there is one"
    return [*([] if found.answer else [unnamed]), *(["reader_cfg:", *lines] if lines else [])]


def _template_lines(found: FoundColumns) -> list[str]:
    text = _text(found)
    modalities = [m for m in MODALITIES if m in found.content]
    parts = [f"{name}: {_quoted(f'{{{name}}}')}" for name in modalities]
    lines = ["infer_cfg:", "  prompt_template:"]
    if found.others:
        lines.insert(1, f"  # columns that this prompt does not use: {names_in_short(found.others)}")
    begin = ["      begin:", '        - {role: SYSTEM, prompt: "{system}"}'] if found.system else []
    if not (parts or found.media or begin):
        return [*lines, f"    template: {text}"]
    if not (parts or found.media):
        return [*lines, "    template:", *begin, "      round:", f"        - {{role: HUMAN, prompt: {text}}}"]
    by_modality: dict[str, list[str]] = {}
    for name, modality in found.media.items():
        by_modality.setdefault(modality, []).append(name)
    if any(len(names) > 1 for names in by_modality.values()):  # prompt_mm has one part for each modality
        content = [_part(modality, name) for name, modality in found.media.items()]
        content += [f"{{type: text, text: {text}}}"] if text != '""' else []
        system = ['      - {role: system, content: "{system}"}'] if found.system else []
        lines += ["    type: RawPromptTemplate", "    messages:", *system, "      - role: user", "        content:"]
        return [*lines, *[f"          - {part}" for part in content]]
    parts += [f"{modality}: {_quoted(f'{{{names[0]}}}')}" for modality, names in by_modality.items()]
    parts += [f"text: {text}"] if text != '""' else []
    lines += ["    type: MMPromptTemplate", "    template:", *begin, "      round:", "        - role: HUMAN"]
    return [*lines, "          prompt_mm:", *[f"            {part}" for part in parts]]


def _part(modality: str, name: str) -> str:
    kind = f"{modality}_url"
    return f"{{type: {kind}, {kind}: {{url: {_quoted(f'{{{name}}}')}}}}}"


def _text(found: FoundColumns) -> str:
    """Return the text of the prompt as a YAML value: hint, question and choices on lines of their own."""
    question = found.question or ("question" if "text" in found.content else None)
    names = [name for name in (found.hint, question) if name is not None]
    if found.choices != "some" and not {found.hint}.intersection(found.optional):
        last = ["options"] if found.choices else [found.listed] if found.listed else []
        slots = [f"{{{name}}}" for name in [*names, *last]]
        return _quoted("\n".join(slots))
    variables = [name if name.isidentifier() else f"row[{name!r}]" for name in names]
    hints = "".join([_JINJA_LINE.format(name=name) for name in variables[:-1]])
    asked = f"{{{{ {variables[-1]} }}}}" if variables else ""
    choices = _JINJA_CHOICES if found.choices else f"\n{{{{ {found.listed} }}}}" if found.listed else ""
    return f"{{jinja: {_quoted(hints + asked + choices)}}}"


def _first(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """Return the first of the wanted names among the columns, in upper or lower case."""
    known = {name.lower(): name for name in reversed(list(names))}
    return next((known[name] for name in wanted if name in known), None)


def _media(
    columns: Mapping[str, Sequence[object]], names: Iterable[str], roles: Mapping[str, str], cells: bool
) -> dict[str, str]:
    """Return the media columns and their modalities: those that have such a role, and those that their values show."""
    mapped = {modality: modality for modality in MODALITIES if modality in roles.values()}
    return {n: m for n in names if (m := mapped.get(n) or _modality(columns[n], cells))} | mapped


def _modality(values: Iterable[object], cells: bool) -> str | None:
    """Return the modality of a column, if each of its values is a medium or clearly names one."""
    kinds = {looks_like(value, cells) for value in values}
    return kinds.pop() if len(kinds) == 1 else None


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
