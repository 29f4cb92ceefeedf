"""``{"jinja": "…"}`` in place of a text: optional sentences and loops, in jinja2's immutable sandbox.

The row's columns are the variables, and ``row`` holds all of them, for names such as ``row["Question Text"]``.
``choices`` is a list of ``letter`` and ``text``. A variable that the row lacks is an error. The result is data like any
other text: braces and tags in it mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isnan
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, TypeGuard, Union

from mmprompt.datasets.choices import OPTIONS, choices_in
from mmprompt.errors import TemplateError
from mmprompt.templates.slots import SlotText

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

JINJA = "jinja"
LARGEST_OUTPUT = 4 << 20
"""Characters that one text may become, and that ``*`` and ``**`` may give."""

MOST_STEPS = 100_000
"""How many numbers all ``range`` of one text may give."""

_PADDING = frozenset(("center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map"))
"""Methods of text that can make gigabytes of a few characters."""

_NO_FILTERS = ("center", "format", "indent", "pprint", "random", "slice", "batch", "wordwrap", "xmlattr")
_FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def is_jinja(value: object) -> TypeGuard[Mapping[str, str]]:
    """Return whether a template writes a text as ``{"jinja": "…"}``."""
    return isinstance(value, Mapping) and list(value) == [JINJA] and isinstance(value[JINJA], str)


class JinjaText:
    """A compiled Jinja text; it has what a ``SlotText`` has. The in-context examples have no place in it.

    Raises:
        TemplateError: the text is no Jinja.
    """

    __slots__ = ("_render", "columns")
    pieces = ("",)
    literal = None
    markers = ()
    has_marker = False

    def __init__(self, source: str) -> None:
        from jinja2 import TemplateSyntaxError, meta  # noqa: PLC0415  # 20 ms, only for Jinja texts

        environment = _environment()
        try:
            names = meta.find_undeclared_variables(environment.parse(source))
            self._render: Callable[..., Any] = environment.from_string(source).generate
        except TemplateSyntaxError as error:
            what = f"malformed Jinja in line {error.lineno}: {error.message}"
            raise TemplateError(what, "correct the text there") from None
        self.columns = tuple(sorted(names - {"choices", "range", "row"}))

    @property
    def slots(self) -> tuple[str, ...]:
        """The columns: like a text with slots, this one differs from row to row."""
        return (*self.columns, JINJA)

    def fill(self, columns: Mapping[str, object], masked: str | None = None, examples: str = "") -> str:  # noqa: ARG002  # examples have no place in it
        """Return the text for a row; the column ``masked`` reads as ``""``."""
        from jinja2 import TemplateError as JinjaError  # noqa: PLC0415  # loaded already
        from jinja2 import UndefinedError  # noqa: PLC0415  # loaded already

        shown = dict(columns)
        if masked is not None and masked in columns:
            shown[masked] = ""
        variables = {"row": shown, **shown, **_choices(columns), "range": _bounded_range()}
        out: list[str] = []
        size = 0
        try:
            for chunk in self._render(variables):
                size += len(chunk)
                if size > LARGEST_OUTPUT:
                    raise TemplateError(f"the Jinja text has more than {LARGEST_OUTPUT} characters", "shorten its loop")
                out.append(chunk)
        except UndefinedError as error:
            hint = "test it with {% if NAME is defined %}, or set reader_cfg.optional_columns: [NAME]"
            if OPTIONS in self.columns and OPTIONS not in shown and "choices" in variables:
                hint = "write the choices with {% for c in choices %}{{ c.letter }}. {{ c.text }}{% endfor %}"
            raise TemplateError(f"the Jinja text fails: {error.message}", hint) from None
        except (JinjaError, *_FAULTS) as error:
            what = f"the Jinja text fails: {type(error).__name__}: {error}"
            raise TemplateError(what, "correct the expression") from None
        return "".join(out)

    def around_examples(self, columns: Mapping[str, object], masked: str | None = None) -> list[str]:
        """Return the text alone, since the examples have no place in it."""
        return [self.fill(columns, masked)]


Text = Union[SlotText, JinjaText]
"""A compiled text: with slots, or Jinja"""


def slot_columns(text: Text) -> tuple[str, ...]:
    """Return the columns of a text's slots; a Jinja text has none."""
    return text.columns if isinstance(text, SlotText) else ()


def _choices(columns: Mapping[str, object]) -> dict[str, object]:
    texts = choices_in(columns).texts
    letters = zip(ascii_uppercase, texts, strict=False)
    return {"choices": [{"letter": letter, "text": text} for letter, text in letters]} if texts else {}


def _bounded_range() -> Callable[..., range]:
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


def _printed(value: object) -> object:
    """Return a value that the text prints."""
    if value is None or (type(value) is float and isnan(value)):
        raise ValueError("it prints a null value; test it with {% if … %}")
    return value


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined  # noqa: PLC0415  # 20 ms, only for Jinja texts
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415  # 20 ms, only for Jinja texts

    class Environment(ImmutableSandboxedEnvironment):
        """The sandbox, with bounds on what an expression can make."""

        intercepted_binops = frozenset(("*", "**", "%"))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "%" and isinstance(left, str):
                raise ValueError("% on a text is not allowed; join texts with ~")
            if operator == "**":
                _check_size(_bits(left) * abs(right))
            elif operator == "*":
                _check_size(_size(left) * right if not isinstance(left, (int, float)) else _size(right) * left)
            return super().call_binop(context, operator, left, right)

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            return attr not in _PADDING and super().is_safe_attribute(obj, attr, value)

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_printed)
    environment.globals = {name: environment.globals[name] for name in ("namespace", "dict", "cycler", "joiner")}
    for name in _NO_FILTERS:
        del environment.filters[name]
    return environment


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, bytes, list, tuple)) else 1


def _bits(value: object) -> int:
    return value.bit_length() if isinstance(value, int) else 1


def _check_size(size: float) -> None:
    if size > LARGEST_OUTPUT:
        raise ValueError(f"it would make more than {LARGEST_OUTPUT} characters")
