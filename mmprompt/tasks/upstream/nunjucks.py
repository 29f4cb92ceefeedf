"""Texts of Nunjucks, promptfoo's template language, as far as Jinja reads them in the same way.

What Jinja lacks is an error that names it. A value that a text prints is marked, so that a chat written as JSON is
read before the values go in: no value can end a string, begin a message or name a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import TaskError, TemplateError, shown
from mmprompt.templates.jinja_bounds import (
    COUNTED,
    FAULTS,
    LARGEST_OUTPUT,
    begin_text,
    bounded_environment,
    bounded_filter,
    bounded_range,
    counted,
    filled_text,
    text_of,
)

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

_VALUES = "values of mmprompt"  # a variable that no text can name
_MARK = re.compile("\ue000([0-9]+)\ue001")

_OPERATORS = {"===": "==", "!==": "!=", "&&": "and", "||": "or"}
_JAVASCRIPT = {
    "length": "| length", "toUpperCase": "| upper", "toLowerCase": "| lower", "trim": "| trim", "slice": "[a:b]",
    "includes": "in", "indexOf": "in", "push": "+", "concat": "+", "map": "a loop", "filter": "a loop",
    "forEach": "a loop", "reduce": "a loop", "substring": "[a:b]", "substr": "[a:b]", "toString": "| string",
    "toFixed": "| round", "stringify": "| dump", "parse": "the value itself", "charAt": "[0]", "match": "in",
    "toLocaleString": "| string", "replaceAll": "| replace", "padStart": "the text as it should be",
}  # fmt: skip
"""Names that JavaScript's values have and Python's do not, each with what to write instead."""

_OUTSIDE = {
    "env": "write the value into the config, or list it under 'env'",
    "_conversation": "write the turns into the prompt: no model replies while prompts are rendered",
}


class Medium(NamedTuple):
    """A medium that a variable names or holds."""

    source: object

    def __str__(self) -> str:
        return shown(self.source)


class Values(list[object]):
    """The printed values of one text, together bounded in size."""

    size = 0

    def mark(self, value: object) -> str:
        """Keep a value and return its mark."""
        self.size += len(value) if isinstance(value, str) else 1
        if self.size > LARGEST_OUTPUT:
            raise ValueError(f"it prints more than {LARGEST_OUTPUT} characters")
        self.append(value)
        return f"\ue000{len(self) - 1}\ue001"


class Filled(NamedTuple):
    """A filled text, with a mark for each printed value."""

    text: str
    values: Values

    def plain(self, text: str | None = None) -> str:
        """Return the text, or a piece of it, with its values.

        Raises:
            TemplateError: a value is a medium, which a text cannot hold.
        """

        def put(mark: re.Match[str]) -> str:
            value = self.values[int(mark[1])]
            if isinstance(value, Medium):
                what = f"the medium {value} stands in a text"
                raise TemplateError(what, "write the prompt as a chat in JSON, with a part of type image_url")
            return str(value)

        return _MARK.sub(put, self.text if text is None else text)

    def put_in(self, value: Any) -> Any:
        """Return what was read from the text as JSON or YAML, with the values in its strings."""
        if isinstance(value, Mapping):
            return {self.plain(key) if isinstance(key, str) else key: self.put_in(v) for key, v in value.items()}
        if isinstance(value, list):
            return [self.put_in(item) for item in value]
        if not isinstance(value, str):
            return value
        source = value.rpartition(";base64,")[2] if value.startswith("data:") else value
        alone = _MARK.fullmatch(source.strip())
        if alone and isinstance(medium := self.values[int(alone[1])], Medium):
            return medium
        return self.plain(value)


class NunjucksText:
    """A compiled text.

    Raises:
        TaskError: Jinja does not read it, or not in the same way.
    """

    __slots__ = ("_known", "_render", "_source")

    def __init__(self, source: str, known: Iterable[str] = ()) -> None:
        from jinja2 import TemplateSyntaxError  # noqa: PLC0415  # 20 ms, only for Jinja texts

        self._source = source
        self._known = tuple(known)
        try:
            _check(_environment().parse(source), known)
            self._render: Callable[..., Iterator[str]] = _environment().from_string(source).generate
        except TemplateSyntaxError as error:
            operator = next((found for found in _OPERATORS if found in source), None)
            hint = f"write {_OPERATORS[operator]} for {operator}" if operator else "write it as Jinja has it"
            raise TaskError(f"Jinja does not read line {error.lineno}: {error.message}", hint) from None

    def __reduce__(self) -> tuple[type[NunjucksText], tuple[str, tuple[str, ...]]]:
        """Pickle the source, since what jinja2 compiles cannot be pickled."""
        return NunjucksText, (self._source, self._known)

    def fill(self, variables: Mapping[str, object]) -> Filled:
        """Return the text for these variables.

        Raises:
            TemplateError: it prints a variable that is missing, or an expression fails.
        """
        from jinja2 import TemplateError as JinjaError  # noqa: PLC0415  # loaded already
        from jinja2 import UndefinedError  # noqa: PLC0415  # loaded already

        values = Values()
        begin_text()
        try:
            pieces = self._render({"range": bounded_range(), **variables, _VALUES: values})
            return Filled(filled_text(pieces, "the text"), values)
        except UndefinedError as error:
            hint = "give it under vars, or test it with {% if NAME %}"
            raise TemplateError(f"the prompt fails: {error.message}", hint, code="MM603") from None
        except (JinjaError, *FAULTS) as error:
            what = f"the prompt fails: {type(error).__name__}: {error}"
            raise TemplateError(what, "correct the expression") from None


def _check(tree: Any, known: Iterable[str]) -> None:
    """Refuse what Jinja parses and then reads in another way than Nunjucks, or what only promptfoo can know."""
    from jinja2 import meta, nodes  # noqa: PLC0415  # loaded already

    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        what = f"line {node.lineno} takes another template ({type(node).__name__.lower()})"
        raise TaskError(what, "write its text into the prompt")
    for node in tree.find_all(nodes.Getattr):
        if node.attr in _JAVASCRIPT:
            what = f"line {node.lineno} uses JavaScript's .{node.attr}, which Jinja lacks"
            raise TaskError(what, f"write {_JAVASCRIPT[node.attr]}")
    for name in sorted(meta.find_undeclared_variables(tree) & _OUTSIDE.keys() - set(known)):
        raise TaskError(f"the text uses '{name}', which a config of data does not have", _OUTSIDE[name])


class _Raw(str):
    """Text that stands in the prompt as it is: JSON from the filter ``dump``."""

    __slots__ = ()


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined, Undefined, pass_context  # noqa: PLC0415  # 20 ms, only for Jinja texts

    class Missing(StrictUndefined):
        """A missing variable is false, as in Nunjucks; to print it is an error."""

        __slots__ = ()
        __bool__ = Undefined.__bool__  # type: ignore[assignment]  # StrictUndefined replaces it
        __eq__ = Undefined.__eq__  # type: ignore[assignment]
        __ne__ = Undefined.__ne__  # type: ignore[assignment]
        __hash__ = Undefined.__hash__  # type: ignore[assignment]

    @pass_context
    def printed(context: Any, value: object) -> str:
        if isinstance(value, _Raw):
            return value
        mark: str = context.parent[_VALUES].mark(value if isinstance(value, Medium) else _javascript_text(value))
        return mark

    @pass_context
    def dump(context: Any, value: object, indent: int = 0) -> _Raw:
        if isinstance(value, Undefined):
            str(value)  # its own error, which names the variable
        filled = Filled("", context.parent[_VALUES])
        return _Raw(json.dumps(filled.put_in(value), ensure_ascii=False, indent=min(int(indent), 8) or None))

    made = bounded_environment(Missing, printed)
    made.filters.update(dump=bounded_filter(dump), load=bounded_filter(json.loads))
    made.filters[COUNTED] = lambda values: counted(values.items() if isinstance(values, Mapping) else values)
    made.globals["null"] = None
    return made


def _javascript_text(value: object) -> str:
    """Return a value as Nunjucks prints it."""
    if value is None:
        raise ValueError("it prints a null value; test it with {% if … %}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (list, tuple)):
        text_of(value)  # refuses a list that is too long
        return ",".join(map(_javascript_text, value))
    if isinstance(value, Mapping):
        raise ValueError("it prints an object; write {{ NAME | dump }}")  # noqa: TRY004  # one of the faults of a text
    return str(value)
