"""Reads a task written in YAML: plain values only, nothing ambiguous, and every fault with its place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import TaskError, malformed, shown
from mmprompt.tasks.section_values import ConfigValue

if TYPE_CHECKING:
    import yaml

_HINT = "correct the text there"
_MOST_KEYS = 1 << 18
_VALUE, _MOST_REPEATED = 4, 1 << 22
"""Bytes that a value counts beside its text, and the most of a file: without aliases it cannot have as many."""

_LONGEST_NUMBER = 4300
"""Characters of a number. Python refuses longer ones by itself, but not those of base 60 such as 1:30:00."""

_YAML_HINTS = (
    ("\\t", "indent with blanks, not with tabs"),
    ("mapping values", "put a text with ': ' in it in quotes, or check the indentation"),
    ("token", "put the text in quotes"),
    ("<scalar>", "put the whole text in quotes: it begins with a quote or a brace"),
    ("mapping keys", "put the whole text in quotes: it begins with a brace"),
    ("<block end>", "check the indentation"),
    ("expected ','", "close it, or put the text in quotes"),
    ("end of stream", "close the quotes"),
    ("alias", "give the value it repeats before it as &NAME, or put the text in quotes"),
    ("recursive", "write the value out: it holds itself"),
    ("tag", "leave the tag out: a task holds plain values"),
)
"""Words in PyYAML's errors, and the hint for each. The first that occurs counts."""


class FunctionName(NamedTuple):
    """A Python function that a YAML text names with ``!function``, and the line of the tag."""

    name: str
    line: int


def load_yaml(text: str, *, functions: bool = False) -> ConfigValue:
    """Return what a YAML text holds. With ``functions``, the tag ``!function`` gives a ``FunctionName``.

    Raises:
        TaskError: it is not YAML, or is ambiguous, with line and column; or its aliases stand for too much.
    """
    import yaml  # noqa: PLC0415  # 8 ms, only where a YAML file is read

    try:
        value: ConfigValue = yaml.load(text, _loader(functions))  # noqa: S506  # a safe loader
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = error.position - before.rfind("\n")
        raise malformed("YAML", error.reason, "remove the character", before.count("\n") + 1, column) from None
    except yaml.MarkedYAMLError as error:
        raise _marked(error) from None
    except (OverflowError, ValueError):  # "\UFFFFFFFF"
        raise malformed("YAML", "an escape names no character", _HINT, None, None) from None
    if "*" in text:
        _check_aliases(value)
    return value


def _check_aliases(value: ConfigValue) -> None:
    """Refuse aliases that repeat too much: a few lines of them can stand for a thousand million values."""
    pending: list[ConfigValue] = [value]
    size = 0
    while pending:
        held = pending.pop()
        size += _VALUE
        if isinstance(held, str):
            size += len(held)
        elif isinstance(held, Mapping):
            pending += [*held, *held.values()]
        elif isinstance(held, list):
            pending += held
        if size > _MOST_REPEATED:
            raise TaskError("the aliases of the YAML stand for more than 4 MiB", "write fewer of them")


def _marked(error: yaml.MarkedYAMLError) -> TaskError:
    """Return PyYAML's error as a TaskError with a hint."""
    begun, mark = error.context_mark, error.problem_mark
    problem = error.problem or ""
    hint = next((hint for words, hint in _YAML_HINTS if words in problem), _HINT)
    if begun is not None and error.context:
        problem += f", {error.context} that begins at line {begun.line + 1}, column {begun.column + 1}"
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    return malformed("YAML", problem, hint, line, column)


@lru_cache(maxsize=2)
def _loader(functions: bool) -> type[yaml.SafeLoader]:
    """Return a safe loader that refuses ambiguous YAML, and whose errors have a place."""
    import yaml  # noqa: PLC0415  # 8 ms, only where a YAML file is read

    class Loader(yaml.SafeLoader):
        merged = 0

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            before = len(node.value)
            super().flatten_mapping(node)
            self.merged += len(node.value) - before
            if self.merged > _MOST_KEYS:  # a few lines can merge each other to a million million keys
                what, mark = f"merges (<<) give more than {_MOST_KEYS} keys", node.start_mark
                raise malformed("YAML", what, "merge fewer mappings", mark.line + 1, mark.column + 1)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, ConfigValue]:
            keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            _check_keys(keys)
            if node.flow_style and len(keys) == len(node.value) == 1 and node.value[0][1].value == "":
                raise _slot(keys[0].value, node.start_mark)
            made: dict[Hashable, ConfigValue] = super().construct_mapping(node, deep)
            return made

        def construct_object(self, node: yaml.Node, deep: bool = False) -> ConfigValue:  # noqa: ARG002  # see below
            mark = node.start_mark
            if node.tag.endswith((":int", ":float")) and len(node.value) > _LONGEST_NUMBER:
                what = f"a number of {len(node.value)} characters"
                raise malformed("YAML", what, "put the text in quotes", mark.line + 1, mark.column + 1)
            try:
                made: ConfigValue = super().construct_object(
                    node, deep=True
                )  # at once: a list that holds itself is refused
            except (
                ValueError,
                OverflowError,
                AttributeError,
                LookupError,
            ) as error:  # a date such as the 31st of February, a number too large, "!!bool x"
                hint, kind = "put the text in quotes", node.tag.rpartition(":")[2]
                what = str(error) if isinstance(error, ValueError) else f"{shown(node.value)} cannot be read as {kind}"
                raise malformed("YAML", what, hint, mark.line + 1, mark.column + 1) from None
            return made

        def function_name(self, node: yaml.ScalarNode) -> FunctionName:
            return FunctionName(str(node.value), node.start_mark.line + 1)

    if functions:
        Loader.add_constructor("!function", Loader.function_name)
    return Loader


def _slot(name: str, mark: yaml.Mark) -> TaskError:
    """Return the error of an unquoted slot, which YAML reads as a mapping from the slot's name to null."""
    what = f"{{{name}}} without quotes is a mapping"
    return malformed("YAML", what, f'write "{{{name}}}"', mark.line + 1, mark.column + 1)


def _check_keys(keys: list[yaml.ScalarNode]) -> None:
    """Refuse repeated keys, and keys that YAML turns into true or false: labels such as Yes and No need quotes."""
    lines: dict[tuple[str, str], int] = {}
    for key in keys:
        line, name = key.start_mark.line + 1, (key.tag, key.value)
        if key.tag.endswith(":bool"):
            meant = "true" if key.value.lower() in ("yes", "on", "true") else "false"
            what = f"YAML reads the unquoted label {key.value} as {meant}"
            raise TaskError(what, "put Yes, No, On, Off, true and false in quotes").located(line=line)
        if name in lines:
            what = f"the key {shown(key.value)} is given again, after line {lines[name]}"
            raise TaskError(what, "keep one of the two").located(line=line)
        lines[name] = line
