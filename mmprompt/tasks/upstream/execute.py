"""Executes a Python config that the caller names, without the runner that it was written for.

Imports from ``opencompass``, ``ais_bench`` and ``mmengine`` give ``RunnerStub``s. Relative imports, such as those under
``with read_base():``, execute the file beside the config. Only the executed files see the ``__import__`` that does
this: ``sys.modules`` never holds a name of a runner.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import traceback
import types
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.media.outputs import opened_input
from mmprompt.tasks.upstream.stubs import PACKAGES, RunnerStub, as_config

DEPTH = 20
"""How deep the imports of configs may nest."""
_SHOWN = 300


class Execution:
    """The execution of one config and of the files that it imports. Each file is executed once.

    ``stub_texts`` are the texts that stubs were formatted as.
    """

    def __init__(self) -> None:
        self.stub_texts: set[str] = set()
        self._done: dict[str, dict[str, Any]] = {}
        self._open: list[str] = []

    def run(self, path: str) -> dict[str, Any]:
        """Execute a file and return its variables.

        Raises:
            OSError: it cannot be read.
            TaskError: it is not Python, or raises an error; with file and line.
        """
        key = os.path.realpath(path)
        if key in self._done:
            return self._done[key]
        if key in self._open:
            raise TaskError(f"{shown(path)} imports itself", "break the circle of imports")
        if len(self._open) >= DEPTH:
            raise TaskError(f"the imports of configs nest deeper than {DEPTH}", "name the config itself")
        variables = {"__name__": "mmprompt_config", "__file__": path, "__builtins__": self._builtins(path)}
        with opened_input(path) as file:
            source = file.read()
        self._open.append(key)
        try:
            exec(_compiled(source, path), variables)  # noqa: S102  # the caller named this file to be executed
            if len(self._open) > 1:  # another config imports it
                seen: dict[int, Any] = {id(variables): variables}
                variables.update({k: as_config(v, seen) for k, v in own_names(variables).items()})
        except TaskError as error:
            raise error.located(file=path, line=_line_in(path, error)) from None
        except ModuleNotFoundError as error:
            what = f"the file imports {shown(error.name)}, which is not installed"
            raise TaskError(what, "install it, or remove the import").located(
                file=path, line=_line_in(path, error)
            ) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001  # any error of the user's code is a fault of the file
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise _malformed(path, what[:_SHOWN], _line_in(path, error)) from None
        finally:
            self._open.pop()
        self._done[key] = variables
        return variables

    def _builtins(self, path: str) -> dict[str, Any]:
        """Return the builtins of one file: its own ``__import__``, and a ``print`` to standard error."""
        own_import = functools.partial(self._import, path)
        return {**vars(builtins), "__import__": own_import, "print": functools.partial(print, file=sys.stderr)}

    def _import(  # noqa: PLR0917  # Python's own signature
        self,
        path: str,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level:
            return self._relative(path, name, fromlist or (), level)
        package = name.partition(".")[0]
        if package not in PACKAGES:
            return builtins.__import__(name, globals_, locals_, tuple(fromlist or ()), 0)
        if ".configs." in name and fromlist:
            return self._names_in(_absolute(path, name), fromlist, name)
        if "*" in (fromlist or ()):  # only the runner knows the names; using one is a NameError
            return types.ModuleType(name)
        return RunnerStub(name if fromlist else package, self.stub_texts)

    def _relative(self, path: str, name: str, fromlist: Sequence[str], level: int) -> types.ModuleType:
        folder = os.path.dirname(path)
        for _ in range(level - 1):
            folder = os.path.join(folder, os.pardir)
        written = "." * level + name
        if not name:  # from . import a: each name is a file
            module = types.ModuleType(written)
            for wanted in fromlist:
                setattr(module, wanted, self._module(os.path.join(folder, wanted), written + wanted))
            return module
        return self._names_in(os.path.join(folder, *name.split(".")), fromlist, written)

    def _names_in(self, stem: str, fromlist: Sequence[str], written: str) -> types.ModuleType:
        """Return the module of a config, with the names of ``fromlist`` in it."""
        module = self._module(stem, written)
        for wanted in fromlist:
            if wanted == "*" or hasattr(module, wanted):
                continue
            if not _file_of(os.path.join(stem, wanted)):
                names = [n for n in vars(module) if not n.startswith("_")]
                raise TaskError(f"{shown(written)} has no '{wanted}'", nearest(wanted, names))
            setattr(module, wanted, self._module(os.path.join(stem, wanted), f"{written}.{wanted}"))
        return module

    def _module(self, stem: str, written: str) -> types.ModuleType:
        """Execute the file of a config and return its variables as a module of their own."""
        stem = os.path.normpath(stem)
        found = _file_of(stem)
        module = types.ModuleType(written)
        if found is None:
            if os.path.isdir(stem):
                return module
            raise TaskError(f"cannot import {shown(written)}: {shown(stem + '.py')} does not exist", "check the name")
        try:
            variables = self.run(found)
        except OSError as error:
            raise TaskError(f"cannot read {shown(found)}: {error.strerror}", "check the file") from None
        vars(module).update(own_names(variables))
        return module


def run_config(path: str) -> tuple[dict[str, Any], frozenset[str]]:
    """Execute a Python config and return its variables and the texts that stubs were formatted as.

    Only this file and the files it imports relative to itself are executed.

    Raises:
        TaskError: it cannot be read, is not Python, or raises an error; with file and line.
    """
    execution = Execution()
    try:
        variables = execution.run(path)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "not a file name"
        raise TaskError(f"cannot read {shown(path)}: {problem}", "check the path") from None
    return own_names(variables), frozenset(execution.stub_texts)


def own_names(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that a file sets."""
    return {k: v for k, v in variables.items() if isinstance(k, str) and not (k.startswith("__") and k.endswith("__"))}


def _compiled(source: bytes, path: str) -> types.CodeType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # prompts of other people are full of stray backslashes
            return compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _malformed(path, error.msg, error.lineno) from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise _malformed(path, str(error) or type(error).__name__, None) from None


def _file_of(stem: str) -> str | None:
    candidates = (f"{stem}.py", os.path.join(stem, "__init__.py"))
    return next((c for c in candidates if os.path.isfile(c)), None)


def _absolute(path: str, name: str) -> str:
    """Return the path, without suffix, of a config that is imported from the root of its package."""
    package, *rest = name.split(".")
    folder, real = os.path.dirname(path), os.path.dirname(os.path.abspath(path))
    while os.path.basename(real) != package or not _is_there(os.path.join(real, *rest)):
        if os.path.dirname(real) == real:
            what = f"cannot import {shown(name)}: no folder '{package}' above this file holds it"
            raise TaskError(what, "keep the config in its folder tree, or use a relative import")
        folder, real = os.path.join(folder, os.pardir), os.path.dirname(real)
    return os.path.join(folder, *rest)


def _is_there(stem: str) -> bool:
    return _file_of(stem) is not None or os.path.isdir(stem)


def _line_in(path: str, error: BaseException) -> int | None:
    """Return the line of the file at which an error passed through it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


def _malformed(path: str, problem: str, line: int | None) -> TaskError:
    return TaskError(f"malformed: {problem}", "correct the file").located(file=path, line=line)
