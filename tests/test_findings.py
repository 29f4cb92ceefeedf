"""Errors and notes have the code of a rule, keep it on every way, and read as one line."""

from __future__ import annotations

import ast
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from house import syntax_tree

import mmprompt
from mmprompt import errors
from mmprompt.cli import main
from mmprompt.cli.report import logged
from mmprompt.errors import MMPromptError, SourceError, Where
from mmprompt.errors.findings import Finding, Note
from mmprompt.errors.rules import RULES, page_of
from mmprompt.media.cache.cache import MediaCache
from mmprompt.media.cache.entry import CacheEntry
from mmprompt.media.policy import MediaPolicy
from mmprompt.tasks.load import load_task

PACKAGE = Path(mmprompt.__file__).parent
DEFAULTS = {
    "MMPromptError": "MM900", "TagError": "MM100", "TemplateError": "MM600", "PromptError": "MM601",
    "MediaError": "MM200", "SourceError": "MM200", "PolicyError": "MM210", "TargetError": "MM800",
    "DatasetError": "MM000", "RowError": "MM001", "TaskError": "MM602", "ServerError": "MM901",
}  # fmt: skip
CLASSES = [getattr(errors, name) for name in DEFAULTS]


def trees() -> list[tuple[Path, ast.Module]]:
    """Return the syntax tree of each module of the package."""
    return [(path, syntax_tree(path)) for path in sorted(PACKAGE.rglob("*.py"))]


# ---- the table, and the code of the package


def test_the_table_names_each_rule_once() -> None:
    assert all(re.fullmatch(r"MM\d{3}", code) and code == rule.code for code, rule in RULES.items())
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    assert {rule.severity for rule in RULES.values()} == {"error", "warning", "info"}
    assert all(re.fullmatch(r"[a-z0-9-]+", rule.name) for rule in RULES.values())


def test_each_class_has_a_rule_of_its_own_kind() -> None:
    assert {kind.__name__: kind("what").code for kind in CLASSES} == DEFAULTS
    assert all(RULES[kind.code].severity == "error" for kind in CLASSES)
    assert {c.__name__ for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Exception)} == {
        *DEFAULTS
    }


def test_every_code_in_the_package_is_in_the_table() -> None:
    found = {
        node.value
        for path, tree in trees()
        if path.name != "rules.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"MM\d{3}", node.value)
    }
    assert found <= RULES.keys()
    assert len(found) > 90


def constructions() -> Iterator[tuple[str, ast.Call]]:
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {*DEFAULTS, "type(error)"}:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node


def test_an_error_about_a_row_that_takes_the_words_of_another_keeps_its_code() -> None:
    wrapped = {
        place: node
        for place, node in constructions()
        if ".what" in ast.unparse(node.args[0]) and ast.unparse(node.func) not in {"TaskError", "ServerError"}
    }
    assert len(wrapped) > 8
    given = {p: [ast.unparse(k.value) for k in n.keywords if k.arg == "code"] for p, n in wrapped.items()}
    given = {p: codes + [ast.unparse(a) for a in wrapped[p].args[3:]] for p, codes in given.items()}
    assert [place for place, codes in given.items() if not codes and not place.startswith("cli/")] == []


# ---- an error


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_keeps_its_code(kind: type[MMPromptError]) -> None:
    error = kind("what", "hint", Where("a.jsonl", 3), "MM204")
    copies = [
        error.located(line=9, column="q"),
        pickle.loads(pickle.dumps(error)),
        type(error)(error.what, error.hint, error.where, error.code),
    ]
    assert [(type(e), e.code, str(e.where)) for e in copies] == [
        (kind, "MM204", "a.jsonl:3 q"), (kind, "MM204", "a.jsonl:3"), (kind, "MM204", "a.jsonl:3")
    ]  # fmt: skip
    assert kind("what").located(line=9).code == DEFAULTS[kind.__name__]
    assert kind.code == DEFAULTS[kind.__name__]


def rows_of(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("preset", ["trusted", "default"])
def test_an_error_and_a_note_keep_their_codes_through_the_sandbox(tmp_path: Path, tour: Path, preset: str) -> None:
    picture = (tour / "media/coffee.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(picture[:9000])
    (tmp_path / "moving.gif").write_bytes((tour / "media/spinner.gif").read_bytes())
    task = load_task({}, rows_of(tmp_path, {"image": "cut.jpg"}, {"image": "moving.gif"}))
    found: list[MMPromptError] = []
    policy = MediaPolicy.preset(preset, roots=[tmp_path])
    [request] = task.requests(policy=policy, changes={"max_side": 40}, on_error=found.append)
    assert [(error.code, type(error)) for error in found] == [("MM301", SourceError)]
    assert [(type(note), note.code) for note in request.notes] == [(Note, "MM306")]


# ---- a note


def test_a_note_is_a_text_with_parts() -> None:
    note = Note("MM204", "bytes are PNG", "rename it", Where("a.jsonl", 3), "a.jpg")
    assert (note, len(note)) == ("a.jsonl:3: a.jpg: bytes are PNG; rename it", len(str(note)))
    again = pickle.loads(pickle.dumps(note))
    assert (again, type(again), vars(again)) == (note, Note, vars(note))
    assert note.located(Where(line=7)) == "row 7: a.jpg: bytes are PNG; rename it"
    assert note.finding == Finding.at("MM204", "a.jpg: bytes are PNG", "rename it", Where("a.jsonl", 3))


def test_what_was_accepted_is_no_error() -> None:
    assert Note("MM206", "media keep their names").finding.severity == "warning"
    assert Note("MM025", "joined").finding.severity == "info"
    assert Finding.of(MMPromptError("what", code="MM102")).severity == "error"


def test_each_note_of_a_task_and_of_a_request_has_a_code_of_the_table(tmp_path: Path, broken: Path) -> None:
    template = {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt": "{question} {nane}"}]}}
    data = rows_of(
        tmp_path,
        {"question": "q", "image": "a.jpg", "score": float("nan"), "name": "n"},
        {"question": "q", "big": 1 << 70},
    )
    data.write_bytes(b"\xef\xbb\xbf" + data.read_bytes())
    task = load_task({"reader_cfg": {"missing": "keep"}, "infer_cfg": {"prompt_template": template}}, data)
    list(task.requests())
    assert all(type(note) is Note and note.code in RULES for note in task.notes())
    assert {note.code for note in task.notes()} == {"MM004", "MM018", "MM021", "MM605", "MM609"}
    assert task.dataset is not None
    assert [note.code for note in task.dataset.notes] == ["MM004", "MM018", "MM021"]
    requests = load_task({}, broken / "broken.jsonl").requests(on_error=lambda _: None)
    told = {request.where.line: (type(note), note.code) for request in requests for note in request.notes}
    assert told == {25: (Note, "MM204"), 27: (Note, "MM219")}


def test_a_warning_in_the_log_is_a_note_with_its_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[Note] = []
    with logged(told.append):
        MediaCache(folder=tmp_path / "file").get_or_make("0" * 64, lambda: CacheEntry("image/png", b"x"))
    assert [(type(note), note.code) for note in told] == [(Note, "MM904")]


# ---- the line


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (Where(), "MM201 no file; check it"),
        (Where("a.jsonl"), "a.jsonl: MM201 no file; check it"),
        (Where("a.jsonl", 3), "a.jsonl:3: MM201 no file; check it"),
        (Where(line=3, sample="q"), "row 3: MM201 no file; check it (sample q)"),
        (Where("a.jsonl", 3, "image", 17, "q"), "a.jsonl:3: MM201 no file; check it (image @17, sample q)"),
        (Where("a.jsonl", 3, offset=17), "a.jsonl:3: MM201 no file; check it (@17)"),
        (Where("a.jsonl", 3, "image", message=2, part=3), "a.jsonl:3: MM201 no file; check it (image)"),
        (Where("a.jsonl", 3, message=2, part=3), "a.jsonl:3: MM201 message 2: no file; check it (part 3)"),
        (
            Where("a.jsonl", 3, template="round[0]", message=2),
            "a.jsonl:3: MM201 in round[0]: message 2: no file; check it",
        ),
    ],
)
def test_the_line_of_an_error(where: Where, line: str) -> None:
    error = SourceError("no file", "check it", where, "MM201")
    assert str(Finding.of(error)) == line
    for value in (error.what, error.hint, where.file, where.sample, where.column):
        assert value is None or value in line
    assert str(Note("MM201", "no file", "check it", where).finding) == line


def test_a_mendable_finding_is_marked() -> None:
    finding = Finding.at("MM204", "bytes are PNG", "", Where("a.jsonl", 3))
    assert str(finding._replace(fixable=True)) == "a.jsonl:3: MM204 [*] bytes are PNG"
    assert (finding.url, finding.fixable) == (page_of("MM204"), False)


def test_a_note_in_a_list_of_a_command_keeps_place_and_hint(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = rows_of(tmp_path, {"question": "q", "photo": "a.jpg"})
    assert main(["render", str(data), "-o", str(tmp_path / "out.jsonl"), "--drop-last-assistant"]) == 0
    hint = "add --map photo=image, or use a task with a template"
    assert capfd.readouterr().err.splitlines()[:2] == [
        f"note: MM605 the row: only text is sent, but 'photo' looks like image; {hint}",
        "note: MM701 no chat ends with a message of the assistant, so drop_last_assistant takes no answer",
    ]
