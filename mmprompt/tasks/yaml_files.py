"""Reading YAML: plain values only, each key once, and each fault with its line, its column and how to mend it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mmprompt.errors import TaskError, malformed, shown

if TYPE_CHECKING:
    import yaml

_HINT = "mend what stands there"
_MOST_KEYS = 1 << 18
_MENDS = (
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
"""Words of PyYAML's problems, and what to do; the first that is found."""


def load_yaml(text: str) -> Any:
    """Return what a YAML text holds.

    Raises:
        TaskError: it is malformed, has a key twice, or one that YAML reads as true or false.
    """
    import yaml  # noqa: PLC0415  # 8 ms, only where a YAML file is read

    try:
        return yaml.load(text, _loader())  # noqa: S506  # a safe loader
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = error.position - before.rfind("\n")
        raise malformed("YAML", error.reason, "remove the character", before.count("\n") + 1, column) from None
    except yaml.MarkedYAMLError as error:
        raise _marked(error) from None


def _marked(error: yaml.MarkedYAMLError) -> TaskError:
    """Return an error of PyYAML's as one of ours."""
    begun, mark = error.context_mark, error.problem_mark
    problem = error.problem or ""
    hint = next((hint for words, hint in _MENDS if words in problem), _HINT)
    if begun is not None and error.context:
        problem += f", {error.context} that begins at line {begun.line + 1}, column {begun.column + 1}"
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    return malformed("YAML", problem, hint, line, column)


@lru_cache(maxsize=1)
def _loader() -> type[yaml.SafeLoader]:
    """Return a safe loader that refuses what YAML would take in silence, or raise without a place."""
    import yaml  # noqa: PLC0415  # as above

    class Loader(yaml.SafeLoader):
        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            if len(node.value) > _MOST_KEYS:  # forty lines can merge each other to a million million keys
                mark = node.start_mark
                raise malformed("YAML", f"more than {_MOST_KEYS} keys, merged", _HINT, mark.line + 1, mark.column + 1)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            _check_keys(keys)
            if node.flow_style and len(keys) == len(node.value) == 1 and node.value[0][1].value == "":
                raise _slot(keys[0].value, node.start_mark)
            made: dict[Any, Any] = super().construct_mapping(node, deep)
            return made

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ARG002  # see below
            try:
                return super().construct_object(node, deep=True)  # at once, so that what holds itself is refused
            except ValueError as error:  # a date or number that there is none of
                mark = node.start_mark
                hint = "put the text in quotes"
                raise malformed("YAML", str(error), hint, mark.line + 1, mark.column + 1) from None

    return Loader


def _slot(name: str, mark: yaml.Mark) -> TaskError:
    """Return the error of a slot without quotes, which YAML reads as a mapping of a key to nothing."""
    what = f"{{{name}}} without quotes is a mapping"
    return malformed("YAML", what, f'write "{{{name}}}"', mark.line + 1, mark.column + 1)


def _check_keys(keys: list[yaml.ScalarNode]) -> None:
    """Refuse a key given twice, and one that YAML turns into true or false: labels such as Yes and No need quotes.

    Raises:
        TaskError: there is one.
    """
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
