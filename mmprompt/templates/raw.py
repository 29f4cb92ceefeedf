"""``RawPromptTemplate``: a template written as OpenAI messages, whose contents have slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union, cast

from mmprompt._log import warn
from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.messages import ROLES as ROLE_NAMES
from mmprompt.templates.jinja_text import is_jinja
from mmprompt.templates.part_compiler import skeletons_of_list
from mmprompt.templates.prompt_list import copied
from mmprompt.templates.raw_messages import (
    ROLES,
    MessageDict,
    RawMessages,
    example_messages,
    messages_in,
    shown_content,
)
from mmprompt.templates.role_parts import PartsContent, PartsOptions
from mmprompt.templates.role_text import Examples, RoleContent, TextContent, Tokens
from mmprompt.templates.sample_view import SampleView, view_of

KEYS = ("role", "content", "name", "tool_calls", "tool_call_id")
EXPAND = "expand_column"


_NO_TOKENS = Tokens(None, None, {})


class MessageLine(NamedTuple):
    """One message of a template: its keys, and its content (``constant`` as it is, ``filled`` for each sample)."""

    keys: MessageDict
    constant: str | list[object] | None
    filled: RoleContent | None


class ColumnPlace(NamedTuple):
    """The place of the messages that a column holds."""

    column: str


class ExamplesPlace(NamedTuple):
    """The place of the in-context examples."""


_Element = Union[MessageLine, ColumnPlace, ExamplesPlace]


class RawPromptTemplate:
    """A template of messages, checked and compiled at construction; immutable.

    Args:
        messages: a list of message dicts, places for columns and places for examples. A message has ``role`` (system,
            user, assistant) and ``content``: a text, or a list of content parts, with slots. The messages in a column
            replace ``{"expand_column": name}``; the examples replace a string equal to ``ice_token``.
        format_variables: True fills the slots; False leaves the contents as written.
        ice_token: the string that the in-context examples replace.

    ``prompt_type`` is ``"raw_messages"``; the prompts are ``RawMessages``.

    Source: OpenCompass 0.5, ``RawPromptTemplate``.

    Raises:
        TemplateError: with the place in the template as ``where.template``.
    """

    prompt_type = "raw_messages"
    sep_token = None
    labels: tuple[object, ...] = ()

    def __init__(
        self,
        messages: Sequence[Any],
        format_variables: bool = True,
        ice_token: str | None = "</E>",  # noqa: S107  # a token of text, no password
    ) -> None:
        if format_variables not in (True, False):
            what = f"format_variables is {type(format_variables).__name__}"
            raise TemplateError(what, "give True or False")
        if ice_token is not None and not isinstance(ice_token, str):
            raise TemplateError(f"ice_token is {type(ice_token).__name__}", "give a literal text, or None")
        self._messages = copied(_checked_list(messages))
        self._formats = bool(format_variables)
        self._ice_token = ice_token
        self._warned: list[bool] = []
        self._elements = tuple([self._compile(e, f"messages[{n}]") for n, e in enumerate(self._messages)])

    def _compile(self, element: object, place: str) -> _Element:
        if isinstance(element, str):
            if element != self._ice_token:
                hint = f"give a message, or {shown(self._ice_token)} for the examples"
                raise TemplateError(f"the string {shown(element)} is not a message", hint).located(template=place)
            return ExamplesPlace()
        if not isinstance(element, Mapping):
            what = f"a message is {type(element).__name__}"
            raise TemplateError(what, 'give {"role": …, "content": …}').located(template=place)
        if EXPAND in element:
            return _column_place(element, place)
        _check_message(cast("MessageDict", element), place)
        keys = cast("MessageDict", {k: v for k, v in element.items() if k != "content"})
        content = element["content"]
        if not self._formats or content is None:
            return MessageLine(keys, shown_content(content), None)
        return MessageLine(keys, None, self._compiled_content(content, f"{place}.content"))

    def _compiled_content(self, content: str | Mapping[str, str] | Sequence[object], place: str) -> RoleContent:
        if not isinstance(content, (str, Mapping)):
            return PartsContent(skeletons_of_list(content, _NO_TOKENS, place), place, PartsOptions(is_list=True))
        if isinstance(content, str) and self._ice_token and self._ice_token in content:
            what = f"the ice_token {shown(self._ice_token)} stands inside a text"
            hint = "make it a separate element: the examples are messages"
            raise TemplateError(what, hint).located(template=place)
        return TextContent(_NO_TOKENS.compile_any(content, place), place)

    @property
    def template(self) -> list[Any]:
        """A copy of the messages as given."""
        return copied(self._messages)

    @property
    def messages(self) -> list[Any]:
        """A copy of the messages as given."""
        return self.template

    @property
    def format_variables(self) -> bool:
        """True if slots are filled."""
        return self._formats

    @property
    def ice_token(self) -> str | None:
        """The token of the examples, as given."""
        return self._ice_token

    @property
    def has_place(self) -> bool:
        """True if the examples have a place."""
        return any(isinstance(e, ExamplesPlace) for e in self._elements)

    def _filled(self) -> list[RoleContent]:
        return [e.filled for e in self._elements if isinstance(e, MessageLine) and e.filled is not None]

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The names in braces, in order; those that name a column of the sample are slots."""
        return tuple(dict.fromkeys(name for content in self._filled() for name in content.names))

    @property
    def text_slots(self) -> tuple[str, ...]:
        """The columns of the slots in texts, in order."""
        return tuple(dict.fromkeys(name for content in self._filled() for name in content.text_names))

    @property
    def media_slots(self) -> tuple[str, ...]:
        """The columns of the slots in media, in order."""
        return tuple(dict.fromkeys(name for content in self._filled() for name in content.media_names))

    def generate_item(
        self, entry: Mapping[str, object] | SampleView, output_field: str | None = None, ice: Examples = None
    ) -> RawMessages:
        """Return the messages for a test sample; ``output_field``, its answer column, reads as ``""``.

        ``ice`` are the examples: messages, or a PromptList of role dicts. Examples that are text, and examples for a
        template without a place, are left out with one warning, as in OpenCompass; see ``check_examples``.

        Raises:
            TemplateError: the sample cannot fill the template.
        """
        return self._render(view_of(entry, output_field), self._examples(ice))

    def generate_ice_item(self, entry: Mapping[str, object] | SampleView, label: object = None) -> RawMessages:  # noqa: ARG002  # all labels have the same messages
        """Return a sample as an in-context example: all messages, with its answer."""
        return self._render(view_of(entry), [])

    def generate_label_prompt_item(
        self,
        entry: Mapping[str, object] | SampleView,
        ice: Examples = None,
        label: object = None,  # noqa: ARG002  # all labels have the same messages
    ) -> RawMessages:
        """Return the messages with nothing masked; every label has the same."""
        return self._render(view_of(entry), self._examples(ice))

    def check_examples(self, ice: Examples) -> None:
        """Refuse examples that have no place in this template.

        Raises:
            TemplateError: they are text, or the template has no place for them.
        """
        if not ice:
            return
        if not isinstance(ice, list):
            what = "the in-context examples are text and the template is messages"
            hint = "give ice_template as messages too, or as a dialogue"
            raise TemplateError(what, hint).located(template="messages")
        if not self.has_place:
            what = "there are in-context examples and the template has no place for them"
            hint = f"put {shown(self._ice_token)} between the messages" if self._ice_token else "give ice_token"
            raise TemplateError(what, hint).located(template="messages")

    def _examples(self, ice: Examples) -> list[MessageDict]:
        if ice is not None and not isinstance(ice, (str, list)):
            raise TemplateError(f"in-context examples are {type(ice).__name__}", "give messages, or a PromptList")
        try:
            self.check_examples(ice)
        except TemplateError as error:
            if not self._warned:
                self._warned.append(True)
                warn(error.code, "%s; they are left out", error)
            return []
        return example_messages(ice) if isinstance(ice, list) else []

    def _render(self, view: SampleView, examples: list[MessageDict]) -> RawMessages:
        out = RawMessages()
        for element in self._elements:
            if type(element) is MessageLine:
                message = copied(element.keys)
                filled = element.filled
                message["content"] = copied(element.constant) if filled is None else filled.render(view, None)
                out.append(message)
            elif type(element) is ColumnPlace:
                out.extend(messages_in(element.column, view))
            else:
                out.extend(copied(examples))
        return out

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._messages, self._formats, self._ice_token))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._messages!r})"


def _checked_list(messages: object) -> list[object]:
    if not isinstance(messages, (list, tuple)):
        hint = 'give a list of {"role": …, "content": …}'
        raise TemplateError(f"messages is {type(messages).__name__}", hint).located(template="messages")
    if not messages:
        raise TemplateError("the list of messages is empty", "give at least one").located(template="messages")
    return list(messages)


def _column_place(element: Mapping[object, object], place: str) -> ColumnPlace:
    for key in element:
        if key != EXPAND:
            what = f"unknown key {shown(key)} beside {EXPAND}"
            raise TemplateError(what, "remove it: the messages of the column have their own keys").located(
                template=place
            )
    column = element[EXPAND]
    if not isinstance(column, str):
        what = f"{EXPAND} is {type(column).__name__}"
        raise TemplateError(what, "give the name of a column").located(template=place)
    return ColumnPlace(column)


def _check_message(message: MessageDict, place: str) -> None:
    for key in message:
        if key not in KEYS:
            what = f"unknown key {shown(key)} in a message"
            raise TemplateError(what, nearest(key, (*KEYS, EXPAND))).located(template=place)
    for key in ("role", "content"):
        if key not in message:
            raise TemplateError(f"a message without {key}", f"give '{key}'").located(template=place)
    role = message["role"]
    if role not in ROLES:
        meant = ROLE_NAMES.get(role) if isinstance(role, str) else None
        hint = f"write '{meant}'" if meant else nearest(role, ROLES)
        raise TemplateError(f"unknown role {shown(role)} of a message", hint, code="MM607").located(template=place)
    for key, kind in (("name", str), ("tool_call_id", str), ("tool_calls", list)):
        value: object = message.get(key)
        if value is not None and not isinstance(value, kind):
            what = f"'{key}' is {type(value).__name__}"
            raise TemplateError(what, f"give {kind.__name__}").located(template=place)
    content = message["content"]
    if content is None and message.get("tool_calls"):
        return
    if not isinstance(content, (str, list, tuple)) and not is_jinja(content):
        what = f"the content is {type(content).__name__}"
        raise TemplateError(what, "give text, or a list of content parts").located(template=f"{place}.content")
