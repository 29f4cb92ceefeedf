"""What the tests of forms share: the lines of a task with and without forms, and how many rows have one."""

from __future__ import annotations

import io
from typing import Any

from mmprompt.errors import MMPromptError, RowError
from mmprompt.errors.findings import Note
from mmprompt.render.builder import FailedRow, PreparedRow, RequestBuilder
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter
from mmprompt.targets.wire_json import EncodedJSON


def lines_of(task: Any, target: str, *, formed: bool, **options: Any) -> tuple[bytes, list[str], list[str], list[str]]:
    """Return the lines of a task's rows, their errors, their notes and the task's notes."""
    errors: list[str] = []
    notes: list[str] = []

    def on_error(failed: FailedRow, number: int | None) -> None:
        errors.append(f"{number} {failed.error}")

    def on_note(note: Note) -> None:
        notes.append(f"{note} {note.where}")

    buffer = io.BytesIO()
    renderer = Renderer(task, target=target, formed=formed, **options)
    with ChunkWriter(buffer) as writer:
        render(renderer, task.samples(), writer, on_error=on_error, on_note=on_note)
    renderer.close()
    return buffer.getvalue(), errors, notes, [str(note) for note in task.notes()]


def messages_of(task: Any, *, formed: bool) -> tuple[list[Any], list[str]]:
    """Return the messages of a task with a template, with the types of their parts, and the errors of its rows."""
    found: list[tuple[object, Any]] = []
    errors: list[MMPromptError] = []
    if formed:
        found = [*task.messages(on_error=errors.append)]
    else:
        for row in task.samples():
            try:
                if isinstance(row, RowError):
                    raise row
                found += [(row.id, task.messages_of(made)) for made in task.assembled(row)]
            except MMPromptError as error:
                errors.append(error if isinstance(row, RowError) else row.located(error))
    types = [[type(p[0]) for m in messages for p in m.parts] for _, messages in found]
    return [repr(one) for one in found] + [found, types], [str(error) for error in errors]


def by_form(task: Any, target: str = "vllm") -> int:
    """Return how many rows of a task have a form."""
    builder = RequestBuilder(task, target)
    made = [builder.prepare(row) for row in task.samples()]
    found = [m.requests[0].wire for m in made if isinstance(m, PreparedRow)]
    return sum(any(type(v) is EncodedJSON for v in (w.values() if isinstance(w, dict) else [w])) for w in found)


def template(kind: str, form: Any, **more: Any) -> dict[str, Any]:
    return {"prompt_template": {"type": kind, "template": form}, "inferencer": {"type": "GenInferencer"}, **more}
