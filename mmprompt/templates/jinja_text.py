"""``{"jinja": "…"}`` in place of a text: optional sentences and loops, in jinja2's immutable sandbox.

The row's columns are the variables, and ``row`` holds all of them, for names such as ``row["Question Text"]``.
``choices`` is a list of ``letter`` and ``text``. A variable that the row lacks is an error. The result is data like any
other text: its braces and tags are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeGuard, Union

from mmprompt.datasets.choices import OPTIONS, choices_in, letters_of
from mmprompt.errors import TemplateError
from mmprompt.messages import computed
from mmprompt.templates.jinja_bounds import FAULTS, begin_text, bounded_range, environment, filled_text
from mmprompt.templates.slots import SlotText

JINJA = "jinja"
_LONGEST = 1 << 16
"""Characters of a text: jinja2 takes two seconds to compile as many."""


def is_jinja(value: object) -> TypeGuard[Mapping[str, str]]:
    """Return whether a template writes a text as ``{"jinja": "…"}``."""
    return isinstance(value, Mapping) and list(value) == [JINJA] and isinstance(value[JINJA], str)


class JinjaText:
    """A compiled Jinja text, with the methods of a ``SlotText``. It has no place for in-context examples.

    With ``as_columns`` the variable ``choices`` is the row's column of this name, as other Jinja users have it.

    Raises:
        TemplateError: the text is not valid Jinja, or too long or too deeply nested.
    """

    __slots__ = ("_as_columns", "_has_choices", "_render", "_source", "columns")
    pieces = ("",)
    literal = None
    markers = ()
    has_marker = False

    def __init__(self, source: str, *, as_columns: bool = False) -> None:
        from jinja2 import TemplateSyntaxError, meta  # noqa: PLC0415  # 20 ms, only for Jinja texts

        if len(source) > _LONGEST:
            raise TemplateError(f"a Jinja text of {len(source)} characters", f"shorten it to at most {_LONGEST}")
        self._source = source
        self._as_columns = as_columns
        try:
            names = meta.find_undeclared_variables(environment().parse(source))
            self._render: Callable[..., Any] = environment().from_string(source).generate
        except TemplateSyntaxError as error:
            what = f"malformed Jinja in line {error.lineno}: {error.message}"
            raise TemplateError(what, "correct the text there") from None
        except (RecursionError, SyntaxError):
            raise TemplateError("the Jinja text is nested too deeply", "split it into shorter steps") from None
        self._has_choices = "choices" in names and not as_columns
        self.columns = tuple(sorted(names - {"range", "row", *(() if as_columns else ("choices",))}))

    def __reduce__(self) -> tuple[Callable[..., JinjaText], tuple[str, bool]]:
        """Pickle the source, since what jinja2 compiles cannot be pickled."""
        return _compiled, (self._source, self._as_columns)

    @property
    def slots(self) -> tuple[str, ...]:
        """The columns: like a text with slots, this one differs from row to row."""
        return (*self.columns, JINJA)

    def fill(self, columns: Mapping[str, object], masked: str | None = None, examples: str = "") -> str:  # noqa: ARG002  # examples have no place in it
        """Return the text for a row; the column ``masked`` reads as ``""``."""
        return computed(partial(self._filled, masked), columns, self.columns)

    def _filled(self, masked: str | None, columns: Mapping[str, object]) -> str:
        from jinja2 import TemplateError as JinjaError  # noqa: PLC0415  # loaded already
        from jinja2 import UndefinedError  # noqa: PLC0415  # loaded already

        shown = dict(columns)
        if masked is not None:
            shown[masked] = ""
        choices = _choices(columns) if self._has_choices else {}
        variables = {"row": shown, **shown, **choices, "range": bounded_range()}
        begin_text()
        try:
            return filled_text(self._render(variables))
        except UndefinedError as error:
            hint = "test it with {% if NAME is defined %}, or set reader_cfg.optional_columns: [NAME]"
            if OPTIONS in self.columns and OPTIONS not in shown and choices_in(columns).texts:
                hint = "write the choices with {% for c in choices %}{{ c.letter }}. {{ c.text }}{% endfor %}"
            raise TemplateError(f"the Jinja text fails: {error.message}", hint) from None
        except (JinjaError, *FAULTS) as error:
            what = f"the Jinja text fails: {type(error).__name__}: {error}"
            raise TemplateError(what, "correct the expression") from None

    def around_examples(self, columns: Mapping[str, object], masked: str | None = None) -> list[str]:
        """Return the text alone, since the examples have no place in it."""
        return [self.fill(columns, masked)]


def _compiled(source: str, as_columns: bool) -> JinjaText:
    return JinjaText(source, as_columns=as_columns)


Text = Union[SlotText, JinjaText]
"""A compiled text: with slots, or Jinja."""


def slot_columns(text: Text) -> tuple[str, ...]:
    """Return the columns of a text's slots; a Jinja text has none."""
    return text.columns if isinstance(text, SlotText) else ()


def _choices(columns: Mapping[str, object]) -> dict[str, object]:
    choices = choices_in(columns)
    letters = letters_of(choices)
    items = [{"letter": a, "text": b} for a, b in zip(letters, choices.texts, strict=True)]
    return {"choices": items} if items else {}
