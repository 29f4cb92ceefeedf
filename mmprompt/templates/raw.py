"""``RawPromptTemplate``: a template that is OpenAI messages already, whose contents have slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from mmprompt._log import log
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.errors import MMPromptError, TemplateError, nearest, shown
from mmprompt.messages import ROLES as ROLE_NAMES
from mmprompt.templates.part_list import PartList, normalised
from mmprompt.templates.prompt_list import copied
from mmprompt.templates.raw_messages import ROLES, RawMessages
from mmprompt.templates.role_text import Examples, Speech, TextSpeech, Tokens
from mmprompt.templates.sample_view import SampleView, entry_of, null_column

KEYS = ("role", "content", "name", "tool_calls", "tool_call_id")
EXPAND = "expand_column"


class _Line(NamedTuple):
    """One message of a template: its keys, and its content (a constant, or a speech that is filled)."""

    keys: dict[str, Any]
    content: Any
    speech: Speech | None


class _Expand(NamedTuple):
    """The place of the messages that a column holds."""

    column: str


class _Place(NamedTuple):
    """The place of the in-context examples."""


_Element = Union[_Line, _Expand, _Place]


class RawPromptTemplate:
    """A template of messages, compiled and validated at construction; immutable.

    Args:
        messages: message dicts of ``role`` (system, user, assistant) and ``content``, a text with slots or a list of
            content parts whose strings have slots; ``{"expand_column": name}``, where the messages that the column
            holds are put in as they are; and strings equal to ``ice_token``, where the examples go.
        format_variables: whether slots are filled; if not, contents stay as written.
        ice_token: the string that stands for the examples.

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
        self._told: list[bool] = []
        self._elements = tuple([self._compile(e, f"messages[{n}]") for n, e in enumerate(self._messages)])

    def _compile(self, element: object, place: str) -> _Element:
        if isinstance(element, str):
            if element != self._ice_token:
                hint = f"give a message, or {shown(self._ice_token)} for the examples"
                raise TemplateError(f"the string {shown(element)} is no message", hint).located(template=place)
            return _Place()
        if not isinstance(element, Mapping):
            what = f"a message is {type(element).__name__}"
            raise TemplateError(what, 'give {"role": …, "content": …}').located(template=place)
        if EXPAND in element:
            return _compiled_expand(element, place)
        _check_message(element, place)
        keys = {k: v for k, v in element.items() if k != "content"}
        content = element["content"]
        if not self._formats or content is None:
            return _Line(keys, normalised(content), None)
        return _Line(keys, None, self._speech(content, f"{place}.content"))

    def _speech(self, content: Any, place: str) -> Speech:
        tokens = Tokens(None, None, {})
        if not isinstance(content, str):
            return PartList(content, tokens, place)
        if self._ice_token and self._ice_token in content:
            what = f"the ice_token {shown(self._ice_token)} stands inside a text"
            hint = "make it an element of its own: the examples are messages"
            raise TemplateError(what, hint).located(template=place)
        return TextSpeech(tokens.compile(content), place)

    @property
    def template(self) -> list[Any]:
        """A copy of the messages as given."""
        messages: list[Any] = copied(self._messages)
        return messages

    @property
    def messages(self) -> list[Any]:
        """A copy of the messages as given."""
        return self.template

    @property
    def format_variables(self) -> bool:
        """Whether slots are filled."""
        return self._formats

    @property
    def ice_token(self) -> str | None:
        """The token of the examples, as given."""
        return self._ice_token

    @property
    def has_place(self) -> bool:
        """Whether the examples have a place."""
        return any(isinstance(e, _Place) for e in self._elements)

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The names in braces, in order; those that name a column of the sample are slots."""
        speeches = [e.speech for e in self._elements if isinstance(e, _Line) and e.speech is not None]
        return tuple(dict.fromkeys(name for speech in speeches for name in speech.names))

    def generate_item(
        self, entry: Mapping[str, object] | SampleView, output_field: str | None = None, ice: Examples = None
    ) -> RawMessages:
        """Return the messages for a test sample; ``output_field``, its answer column, reads as ``""``.

        ``ice`` are the examples: messages, or a PromptList of role dicts. Examples that are text, and examples for a
        template without a place, are left out as in OpenCompass, with one warning; see ``check_examples``.

        Raises:
            TemplateError: the sample cannot fill the template.
        """
        return self._render(entry_of(entry, output_field), self._examples(ice))

    def generate_ice_item(self, entry: Mapping[str, object] | SampleView, label: object = None) -> RawMessages:  # noqa: ARG002  # all labels have the same messages
        """Return a sample as an in-context example: all messages, with its answer."""
        return self._render(entry_of(entry), [])

    def generate_label_prompt_item(
        self,
        entry: Mapping[str, object] | SampleView,
        ice: Examples = None,
        label: object = None,  # noqa: ARG002  # all labels have the same messages
    ) -> RawMessages:
        """Return the messages with nothing masked; every label has the same."""
        return self._render(entry_of(entry), self._examples(ice))

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

    def _examples(self, ice: Examples) -> list[dict[str, Any]]:
        if ice is not None and not isinstance(ice, (str, list)):
            raise TemplateError(f"in-context examples are {type(ice).__name__}", "give messages, or a PromptList")
        try:
            self.check_examples(ice)
        except TemplateError as error:
            if not self._told:
                self._told.append(True)
                log.warning("%s; they are left out", error)
            return []
        if not isinstance(ice, list):
            return []
        examples = [_example(item) for item in ice]
        return [e for e in examples if e is not None]

    def _render(self, entry: SampleView, examples: list[dict[str, Any]]) -> RawMessages:
        out = RawMessages()
        for element in self._elements:
            if type(element) is _Line:
                keys, content, speech = element
                message = copied(keys)
                message["content"] = copied(content) if speech is None else speech.render(entry, None)
                out.append(message)
            elif type(element) is _Expand:
                out.extend(_expanded(element.column, entry))
            else:
                out.extend(copied(examples))
        return out

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the arguments."""
        return (type(self), (self._messages, self._formats, self._ice_token))

    def __repr__(self) -> str:
        """Show the class and the messages."""
        return f"{type(self).__name__}({self._messages!r})"


def _checked_list(messages: Any) -> list[Any]:
    if not isinstance(messages, (list, tuple)):
        hint = 'give a list of {"role": …, "content": …}'
        raise TemplateError(f"messages is {type(messages).__name__}", hint).located(template="messages")
    if not messages:
        raise TemplateError("there are no messages", "give at least one").located(template="messages")
    return list(messages)


def _compiled_expand(element: Mapping[str, Any], place: str) -> _Expand:
    for key in element:
        if key != EXPAND:
            what = f"unknown key {shown(key)} beside {EXPAND}"
            raise TemplateError(what, "the messages of the column have their own keys").located(template=place)
    if not isinstance(element[EXPAND], str):
        what = f"{EXPAND} is {type(element[EXPAND]).__name__}"
        raise TemplateError(what, "give the name of a column").located(template=place)
    return _Expand(element[EXPAND])


def _check_message(message: Mapping[str, Any], place: str) -> None:
    for key in message:
        if key not in KEYS:
            raise TemplateError(f"unknown key {shown(key)} in a message", nearest(key, (*KEYS, EXPAND))).located(
                template=place
            )
    for key in ("role", "content"):
        if key not in message:
            raise TemplateError(f"a message without {key}", f"give '{key}'").located(template=place)
    role = message["role"]
    if role not in ROLES:
        meant = ROLE_NAMES.get(role) if isinstance(role, str) else None
        hint = f"write '{meant}'" if meant else nearest(role, ROLES)
        raise TemplateError(f"unknown role {shown(role)} of a message", hint).located(template=place)
    for key, kind in (("name", str), ("tool_call_id", str), ("tool_calls", list)):
        if message.get(key) is not None and not isinstance(message[key], kind):
            what = f"'{key}' is {type(message[key]).__name__}"
            raise TemplateError(what, f"give {kind.__name__}").located(template=place)
    content = message["content"]
    if content is None and message.get("tool_calls"):
        return
    if not isinstance(content, (str, list, tuple)):
        what = f"the content is {type(content).__name__}"
        raise TemplateError(what, "give text, or a list of content parts").located(template=f"{place}.content")


def _expanded(column: str, entry: SampleView) -> list[dict[str, Any]]:
    """Return the messages that a column holds, as data: nothing in them is a slot.

    Raises:
        TemplateError: there is no such column, or it holds no list of messages.
    """
    if column == entry.hidden:
        return []
    if column not in entry.raw:
        raise TemplateError(f"the sample has no column '{column}'", nearest(column, entry.raw))
    value = entry.raw[column]
    if value is None:
        raise null_column(column)
    messages = list_of_cell(value, cells=True) if entry.list_cells else value
    if not isinstance(messages, (list, tuple)):
        what = f"column '{column}' holds {type(value).__name__}"
        raise TemplateError(what, "give a list of messages").located(column=column)
    return [_message_in(column, number, item) for number, item in enumerate(messages)]


def _message_in(column: str, number: int, item: object) -> dict[str, Any]:
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str) or "content" not in item:
        what = f"element {number} of column '{column}' is no message"
        raise TemplateError(what, 'give {"role": …, "content": …}').located(column=column)
    try:
        return {**copied(item), "content": normalised(item["content"])}
    except MMPromptError as error:
        raise error.located(column=column) from None


def _example(item: object) -> dict[str, Any] | None:
    """Return an item of the examples as a message: it is one, or a role dict of a dialogue; blank text is nothing."""
    if isinstance(item, str) and not item.strip():
        return None
    if not isinstance(item, Mapping):
        what = f"the examples hold {shown(item) if isinstance(item, str) else type(item).__name__}, which has no role"
        raise TemplateError(what, "give messages, or role dicts")
    if "content" in item:
        return {**copied(item), "content": normalised(item["content"])}
    role, said = item.get("role"), item.get("prompt")
    begin, end = item.get("begin") or "", item.get("end") or ""
    if begin or end:
        if not all(isinstance(piece, str) for piece in (begin, said or "", end)):
            raise TemplateError(f"role {shown(role)} of an example has begin or end that is no text", "leave them out")
        said = f"{begin}{said or ''}{end}"
    kept = {k: copied(item[k]) for k in ("name", "tool_calls", "tool_call_id") if k in item}
    return {"role": ROLE_NAMES.get(str(role), str(role)), "content": copied(said or ""), **kept}
