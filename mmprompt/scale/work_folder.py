"""The folder in which shards lie until they are merged: their outputs, their reports, and what the run is about."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, BinaryIO

from mmprompt._version import __version__
from mmprompt.datasets.side_files import opened_side, side_bytes, side_output
from mmprompt.datasets.span import Shard
from mmprompt.errors import TaskError, shown
from mmprompt.scale.reports import DONE, HINT
from mmprompt.targets.chunk_writer import ChunkWriter
from mmprompt.targets.json_files import ANY, COUNT, FILE, FLAG, TEXT, Form, checked_json

VERSION = 1
_PLAN = "plan.json"
_SHARD: Form = {
    "file": (FILE, None),
    **dict.fromkeys(("part", "start", "line", "row", "first"), COUNT),
    **dict.fromkeys(("end", "rows"), (COUNT, None)),
    "chats": FLAG,
}
_UNSAID = {"file": None, "end": None, "rows": None}
"""What a shard of a plan may leave out."""

_FORM: Form = {"version": COUNT, "mmprompt": TEXT, "about": {...: ANY}, "shards": [_SHARD]}
_BLOCK = 1 << 20
_OWN = re.compile(
    r"\.?(?:plan\.json|seeded|\d{5,}\.(?:lines|events|ids|report|row|store|seed)|\d{5,}\.journal(?:\.lock|\.manifest\.json)?"
    r"|\d+\.(?:met|stop))(?:\.[0-9a-f]{12}\.part)?(?:-journal)?"
)
"""The names of the files in a work folder, complete or not. No other file is read or removed."""


class WorkFolder:
    """The files of a run in shards. ``NNNNN.report`` is written last: a shard that has one is done.

    ``is_kept`` is set where an error ends the run that is not of its rows: the shards that are done are right.

    Args:
        path: the folder.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_kept = False

    @property
    def done(self) -> int:
        """How many shards have a report."""
        return sum(name.endswith(".report") for name in os.listdir(self.path))

    @property
    def is_empty(self) -> bool:
        """Whether no shard is done or in progress."""
        return not any(name.endswith((".report", ".row")) for name in os.listdir(self.path))

    def file(self, number: int, kind: str) -> str:
        """Return the name of a file of a shard."""
        return os.path.join(self.path, f"{number:05d}.{kind}")

    def opened(self, number: int, kind: str) -> BinaryIO:
        """Open a file of a shard that is done."""
        return opened_side(self.file(number, kind))

    @contextmanager
    def written(self, number: int, kind: str) -> Iterator[ChunkWriter]:
        """Open a file of a shard. It appears under its name when it is complete."""
        with side_output(self.file(number, kind), cleans=False) as writer:
            yield writer

    @contextmanager
    def named(self, number: int, kind: str) -> Iterator[str]:
        """Give the name under which to write a file of a shard. It gets its own name when the block ends well."""
        path = self.file(number, kind)
        temporary = f"{path}.{os.urandom(6).hex()}.part"
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def report(self, number: int, form: Form = DONE) -> dict[str, Any] | None:
        """Return the report of a shard, if the shard is done and its files hold the bytes that they held then."""
        path = self.file(number, "report")
        try:
            report: dict[str, Any] = checked_json(side_bytes(path), form, path, HINT)
            right = all(self._content(number, kind) == content for kind, content in report["files"].items())
        except (OSError, TaskError, ValueError):  # ValueError: a kind holds a NUL
            return None
        return report if right and report.get("number") == number else None

    def has_report(self, number: int) -> bool:
        """Return whether a shard has a report, right or not."""
        return os.path.exists(self.file(number, "report"))

    def save_report(self, number: int, report: Mapping[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
        """Write the report of a shard whose files ``kinds`` are complete, and return it."""
        contents = {kind: self._content(number, kind) for kind in kinds}
        full = {**report, "number": number, "files": contents}
        with self.written(number, "report") as writer:
            writer.write([json.dumps(full).encode()])
        return full

    def _content(self, number: int, kind: str) -> list[Any]:
        """Return the size and the SHA-256 of a file of a shard."""
        with self.opened(number, kind) as file:
            digest = sha256()
            while block := file.read(_BLOCK):
                digest.update(block)
            return [file.tell(), digest.hexdigest()]

    def begin(self, about: Mapping[str, Any], shards: Sequence[Shard]) -> None:
        """Make the folder, and write down what the run is about."""
        os.makedirs(self.path, exist_ok=True)
        self._names()
        plan = {"version": VERSION, "mmprompt": __version__, "about": about, "shards": shards}
        with side_output(os.path.join(self.path, _PLAN), cleans=False) as writer:
            writer.write([json.dumps(plan).encode()])

    def resumed(self, about: Mapping[str, Any]) -> list[Shard] | None:
        """Return the shards of the run that was begun here; None if there is none.

        Raises:
            TaskError: the folder is that of another run, or no folder of a run.
        """
        if not os.path.lexists(self.path):
            return None
        self._names()
        try:
            path = os.path.join(self.path, _PLAN)
            plan = checked_json(side_bytes(path), _FORM, path, HINT)
            before, shards, made_by = plan["about"], plan["shards"], (plan["version"], plan["mmprompt"])
        except FileNotFoundError:
            names = [name for name in self._names() if not name.endswith(".part")]
            if not names:
                return None
            if _PLAN in names:  # another process has begun the run just now
                return self.resumed(about)
            raise self._foreign() from None
        except (OSError, ValueError, KeyError, TypeError):
            raise self._foreign() from None
        changed = [n for n in dict.fromkeys([*before, *about]) if _given(before.get(n)) != _given(about.get(n))]
        if made_by != (VERSION, __version__):
            changed.insert(0, f"mmprompt ({made_by[1]}, now {__version__})")
        if changed:
            what = f"{shown(self.path)} was begun with another {', '.join(changed)}"
            raise TaskError(what, "go on as before, or remove that folder to begin anew")
        found: list[Any] = [{**_UNSAID, **shard} for shard in shards]
        return found

    def remove(self) -> None:
        """Remove our files and the folder: what is of the whole run first, so that after a kill the run can go on.

        The plan goes last. A folder that holds anything else stays.
        """
        with suppress(OSError):
            names = [] if os.path.islink(self.path) else filter(_OWN.fullmatch, os.listdir(self.path))
            for name in sorted(names, key=lambda name: (name == _PLAN, name[:1].isdigit())):
                os.unlink(os.path.join(self.path, name))
            os.rmdir(self.path)

    def _names(self) -> list[str]:
        """Return the names of the files in the folder.

        Raises:
            TaskError: it is a link or no folder, or one of our names is that of a link or a pipe.
        """
        if os.path.islink(self.path) or not os.path.isdir(self.path):
            raise self._foreign()
        names = os.listdir(self.path)
        for name in filter(_OWN.fullmatch, names):
            with suppress(FileNotFoundError):  # another process has renamed or removed it just now
                if not stat.S_ISREG(os.lstat(os.path.join(self.path, name)).st_mode):
                    raise self._foreign()
        return names

    def _foreign(self) -> TaskError:
        return TaskError(f"{shown(self.path)} is there, and holds no run in shards", "move it away")


def _given(value: object) -> object:
    """Return what an option holds; None if it is not given, as one that the version before lacked."""
    return value if value or type(value) in (int, float) else None
