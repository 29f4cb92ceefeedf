"""jinja2's immutable sandbox for Jinja texts, with bounds on the work and on the size of results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, wraps
from threading import local
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.choices import is_null
from mmprompt.errors import TemplateError

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

LARGEST_OUTPUT = 4 << 20
"""The most characters of one text, and of the result of one operation."""

MOST_STEPS = 100_000
"""The most numbers that all calls of ``range`` in one text may give together."""

_MOST_ELEMENTS = 1 << 20
"""The most elements, those of elements included, of a value that a filter takes."""

_MOST_INDENT = 8

FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What an expression of a text may raise beside the errors of jinja2."""

MOST_WORK = 32 << 20
"""The most characters and elements that all operations of one text may handle together."""

_TOO_MANY = "it takes too many steps"
_STEP, _CALL = 32, 512  # what a step of a loop and a call count as
_PADDING = frozenset(("center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "translate"))
"""Methods of text that can make gigabytes of a few characters."""

_NO_FILTERS = ("center", "format", "indent", "pprint", "random", "slice", "batch", "wordwrap", "xmlattr")
_COUNTED, _JOINED = "counted by mmprompt", "joined by mmprompt"  # filters that no template can name


class _Work(local):
    """What is left of ``MOST_WORK`` for the text that this thread fills; 0 outside of a text."""

    left = 0


_work = _Work()


def begin_text() -> None:
    """Give the next text of this thread its share of work."""
    _work.left = MOST_WORK


def bounded_range() -> Callable[..., range]:
    """Return ``range`` for one text: all its calls together give at most ``MOST_STEPS`` numbers."""
    left = MOST_STEPS

    def bounded(*arguments: int) -> range:
        nonlocal left
        made = range(*arguments)
        left -= len(made) + 1
        if left < 0:
            raise ValueError(f"range gives more than {MOST_STEPS} numbers")
        return made

    return bounded


def filled_text(pieces: Iterable[str]) -> str:
    """Return the pieces of a text joined.

    Raises:
        TemplateError: it is too long.
    """
    found: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST_OUTPUT:
            raise TemplateError(f"the Jinja text has more than {LARGEST_OUTPUT} characters", "shorten its loop")
        found.append(piece)
    return "".join(found)


@lru_cache(maxsize=1)
def environment() -> SandboxedEnvironment:
    """Return the sandbox, which all texts share."""
    from jinja2 import StrictUndefined, nodes  # noqa: PLC0415  # 20 ms, only for Jinja texts
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415  # 20 ms, only for Jinja texts
    from jinja2.visitor import NodeTransformer  # noqa: PLC0415  # 20 ms, only for Jinja texts

    class Bounded(NodeTransformer):
        """Puts filters that count around what loops go over and ``~`` joins."""

        def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  # jinja2's name
            self.generic_visit(node)
            node.iter = nodes.Filter(node.iter, _COUNTED, [], [], None, None, lineno=node.lineno)
            return node

        def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802  # jinja2's name
            self.generic_visit(node)
            parts = nodes.List(node.nodes, lineno=node.lineno)
            return nodes.Filter(parts, _JOINED, [], [], None, None, lineno=node.lineno)

    class Environment(ImmutableSandboxedEnvironment):
        """The sandbox, with bounds on what an expression can make."""

        intercepted_binops = frozenset(("+", "*", "**", "%"))

        def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
            tree: nodes.Template = Bounded().visit(super()._parse(source, name, filename))
            return tree

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            _check_operation(operator, left, right)
            return super().call_binop(context, operator, left, right)

        def call(self, context: Any, called: Any, /, *arguments: Any, **named: Any) -> Any:
            called, arguments = _bounded_call(called, arguments)
            return super().call(context, called, *arguments, **named)

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            if isinstance(obj, bytes) and attr in _METHODS:
                return False
            return attr not in _PADDING and super().is_safe_attribute(obj, attr, value)

        def wrap_str_format(self, value: Any) -> None:
            """Refuse ``format``, which jinja2 would allow: ``{:>1000000000}`` makes a gigabyte."""

    made = Environment(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_printed)
    made.globals = {name: made.globals[name] for name in ("namespace", "dict", "cycler", "joiner")}
    made.filters = _bounded_filters(made.filters)
    made.policies["json.dumps_function"] = _json_text
    return made


def _bounded_filters(filters: dict[str, Any]) -> dict[str, Any]:
    """Return the filters that a text may use, each with its bounds."""
    bounded = {name: _bounded_filter(call) for name, call in filters.items() if name not in _NO_FILTERS}
    own = {_COUNTED: _counted, _JOINED: _joined, "replace": _replaced, "string": _text_of}
    return {**bounded, "join": _bounded_join(filters["join"]), **own}


def _check_operation(operator: str, left: Any, right: Any) -> None:
    if operator == "%" and isinstance(left, str):
        raise ValueError("% on a text is not allowed; join texts with ~")
    if operator == "+":
        _check_size(_size(left) + _size(right))
    elif operator == "**":
        _check_size(_bits(left) * abs(right))
    elif operator == "*":
        _check_size(_size(left) * right if not isinstance(left, (int, float)) else _size(right) * left)


def _bounded_call(called: Any, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the function to call in place of a macro, a function or a method, and its arguments."""
    _spend(_CALL + sum(map(_size, arguments)))
    owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
    if isinstance(owner, str) and name in _METHODS:
        return _METHODS[name], (owner, *arguments)
    if isinstance(owner, (str, bytes)):
        _spend(len(owner))
    return called, arguments


def _bounded_filter(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that counts the size of its input."""

    @wraps(call)
    def bounded(*arguments: Any, **named: Any) -> Any:
        _spend(_STEP + max([_deep_size(value) for value in arguments], default=0))
        return call(*arguments, **named)

    return bounded


def _bounded_join(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def bounded(context: Any, values: Iterable[object], separator: object = "", attribute: Any = None) -> Any:
        found = list(values)
        _check_size(sum(map(_deep_size, found)) + len(_text_of(separator)) * len(found))
        return call(context, found, separator, attribute)

    return bounded


def _counted(values: Iterable[object]) -> Iterator[object]:
    """Yield what a loop goes over, each step counted."""
    for value in values:
        _spend(_STEP)
        yield value


def _joined(values: Iterable[object]) -> str:
    texts = [_text_of(value) for value in values]
    _check_size(sum(map(len, texts)))
    return "".join(texts)


def _json_text(value: object, *, indent: object = None, **options: Any) -> str:
    """Return a value as JSON, for the filter ``tojson``; the characters of its indents are counted before."""
    if indent is not None:
        if type(indent) is not int or not 0 <= indent <= _MOST_INDENT:
            raise ValueError(f"tojson takes an indent from 0 to {_MOST_INDENT}")
        level, held, levels = 0, [value], 0
        while held:
            level += 1
            held = [inner for outer in held for inner in _items(outer)]
            levels += level * len(held)
        _check_size(levels * max(indent, 1))
    return json.dumps(value, indent=indent, **options)


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _join_method(separator: str, values: Iterable[str]) -> str:
    texts = list(values)
    _check_size(sum(map(_size, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _replaced(text: object, old: object, new: object, count: int = -1) -> str:
    held, wanted, put = _text_of(text), _text_of(old), _text_of(new)
    found = held.count(wanted)
    _check_size(len(held) + (found if count < 0 else min(found, count)) * len(put))
    return held.replace(wanted, put, count)


_METHODS = {"join": _join_method, "replace": _replaced}
"""Methods of text that are bounded."""


def _text_of(value: object) -> str:
    if not isinstance(value, str):
        _check_size(_deep_size(value))
    return str(value)


def _printed(value: object) -> object:
    """Return the text of a value that is printed."""
    if is_null(value):
        raise ValueError("it prints a null value; test it with {% if … %}")
    return _text_of(value)


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, bytes, list, tuple)) else 1


def _deep_size(value: object) -> int:
    """Return the size of a value and all its elements, repeats counted; the count stops soon after ``MOST_WORK``.

    Raises:
        ValueError: it has too many elements.
    """
    if type(value) not in {list, tuple, dict}:
        return _size(value)
    pending, size = [value], 0
    for _ in range(_MOST_ELEMENTS):
        if not pending or size > MOST_WORK:
            return size
        held = pending.pop()
        size += _size(held)
        if isinstance(held, (list, tuple)):
            pending.extend(held)
        elif type(held) is dict:
            pending.extend(held)
            pending.extend(held.values())
    raise ValueError(_TOO_MANY)


def _bits(value: object) -> int:
    return value.bit_length() if isinstance(value, int) else 1


def _check_size(size: float) -> None:
    if size > LARGEST_OUTPUT:
        raise ValueError(f"it would make more than {LARGEST_OUTPUT} characters")
    _spend(size)


def _spend(work: float) -> None:
    _work.left -= int(work)
    if _work.left < 0:
        raise ValueError(_TOO_MANY)
