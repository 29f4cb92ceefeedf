"""The forms of a template, checked and compiled once: a string, a dialogue, or one of these for each label.

A dialogue has ``begin``, ``round`` and ``end``. The template class compiles what a role says, text or content parts;
this module asks only that it can be rendered for a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypedDict, TypeGuard, Union, cast

from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.messages import text_of
from mmprompt.templates.jinja_text import is_jinja
from mmprompt.templates.prompt_list import (
    PromptItem,
    PromptList,
    RoleDict,
    RoleItem,
    Section,
    TextItem,
    copied,
    text_item,
)
from mmprompt.templates.role_text import Examples, RoleContent, TextContent, Tokens
from mmprompt.templates.sample_view import SampleView

DIALOGUE_KEYS = frozenset({"begin", "round", "end"})
ROLE_KEYS = frozenset(
    {
        "role", "fallback_role", "prompt", "prompt_mm", "begin", "end", "generate", "api_role", "name", "tool_calls",
        "tool_call_id",
    }
)  # fmt: skip

_KEY_TYPES: Mapping[str, tuple[type, ...]] = {
    "role": (str,),
    "fallback_role": (str,),
    "api_role": (str,),
    "name": (str,),
    "tool_call_id": (str,),
    "generate": (bool,),
    "tool_calls": (list, tuple),
    "begin": (str, int, list, tuple),
    "end": (str, int, list, tuple),
}


class DialogueDict(TypedDict, total=False):
    """A dialogue, as a template has it."""

    begin: PromptItem | Sequence[PromptItem]
    round: Sequence[PromptItem]
    end: PromptItem | Sequence[PromptItem]


class RoleLine(NamedTuple):
    """One role dict of a template.

    ``keys`` go into each item as they are; ``content`` is what the role says, None if the template leaves that to the
    meta template. ``nested``: some of the keys hold lists or dicts, which each item needs a copy of.
    """

    keys: RoleDict
    content: RoleContent | None
    nested: bool


class LooseLine(NamedTuple):
    """A string of begin or end, or the place of the examples between turns."""

    content: TextContent


Line = Union[RoleLine, LooseLine]


class Dialogue(NamedTuple):
    """A compiled dialogue: its lines by section. ``has_marker``: the examples have a place in it."""

    sections: tuple[tuple[Section, tuple[Line, ...]], ...]
    round: tuple[Line, ...]
    has_marker: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names in braces, in order."""
        return tuple(name for content in self._contents() for name in content.names)

    @property
    def media_names(self) -> tuple[str, ...]:
        """The names in braces in media parts, in order."""
        return tuple(name for content in self._contents() for name in content.media_names)

    def _contents(self) -> list[RoleContent]:
        return [line.content for _, lines in self.sections for line in lines if line.content is not None]

    @property
    def text_names(self) -> tuple[str, ...]:
        """The columns of the slots in texts, in order."""
        return tuple(name for content in self._contents() for name in content.text_names)


class Labels(NamedTuple):
    """A template for each label."""

    forms: dict[object, TextContent | Dialogue]


Form = Union[TextContent, Dialogue, Labels]
"""A compiled template: a text, a dialogue, or one of these for each label"""


class Compilers(NamedTuple):
    """What makes the contents of a template.

    ``role`` takes a role dict and its place in the template, ``text`` a text and its place.
    """

    role: Callable[[RoleDict, str], RoleContent | None]
    text: Callable[[Union[str, Mapping[str, str]], str], TextContent]
    tokens: Tokens


def is_dialogue(template: object) -> TypeGuard[DialogueDict]:
    """Return True for a dialogue: a dict whose keys are all among begin, round and end."""
    return isinstance(template, Mapping) and set(template) <= DIALOGUE_KEYS


def compile_form(template: object, compilers: Compilers) -> Form:
    """Return a template of any form compiled.

    Raises:
        TemplateError: with the place in the template as ``where.template``.
    """
    if not isinstance(template, (str, Mapping)):
        what = f"a template is a string or a dict, not {type(template).__name__}"
        raise TemplateError(what, "give template= a string, a dialogue or labels")
    if isinstance(template, str) or is_jinja(template) or is_dialogue(template):
        return _compiled_form(template, compilers, "template")
    forms: dict[object, TextContent | Dialogue] = {}
    for label, value in template.items():
        place = f"template[{label!r}]"
        if not isinstance(value, str) and not is_jinja(value) and not is_dialogue(value):
            hint = "give each label a string, or a dialogue of begin, round and end"
            if label in DIALOGUE_KEYS or isinstance(value, list):
                strange = next(key for key in template if key not in DIALOGUE_KEYS)
                hint = f"remove {shown(strange)}: a dialogue has the keys begin, round and end, and no others"
            what = f"the template of label {shown(label)} is neither a string nor a dialogue"
            raise TemplateError(what, hint).located(template=place)
        forms[label] = _compiled_form(value, compilers, place)
    return Labels(forms)


def _compiled_form(
    template: str | Mapping[str, str] | DialogueDict, compilers: Compilers, place: str
) -> TextContent | Dialogue:
    if not isinstance(template, str) and not is_jinja(template):
        return _compiled_dialogue(cast("DialogueDict", template), compilers, place)
    text, token = compilers.text(template, place), compilers.tokens.ice
    if token and not text.has_marker:
        what = f"the ice_token {shown(token)} does not occur in the text"
        raise TemplateError(what, "put it where the examples go, or leave ice_token out").located(template=place)
    return text


def _compiled_dialogue(template: DialogueDict, compilers: Compilers, place: str) -> Dialogue:
    if "round" not in template:
        raise TemplateError("a dialogue has no round", "give 'round', a list of role dicts").located(template=place)
    sections = []
    for name in ("begin", "round", "end"):
        value: object = template.get(name, ())
        if name != "round" and isinstance(value, (str, Mapping)):
            value = [value]
        if not isinstance(value, (list, tuple)):
            what = f"'{name}' is {type(value).__name__}"
            raise TemplateError(what, "give a list of role dicts").located(template=f"{place}.{name}")
        lines = tuple(
            _compiled_line(item, compilers, f"{place}.{name}[{index}]", in_round=name == "round")
            for index, item in enumerate(value)
        )
        sections.append((Section(name), lines))
    if not sections[1][1]:
        raise TemplateError("the round is empty", "give at least one role dict").located(template=f"{place}.round")
    contents = [line.content for _, lines in sections for line in lines]
    marked = any(content is not None and content.has_marker for content in contents)
    return Dialogue(tuple(s for s in sections if s[1]), sections[1][1], marked)


def _compiled_line(item: object, compilers: Compilers, place: str, *, in_round: bool) -> Line:
    if isinstance(item, str):
        token = compilers.tokens.ice
        if in_round and not (token and token in item):
            hint = "give role dicts; a string in a round may only be the place of the examples"
            raise TemplateError(f"the string {shown(item)} in a round", hint).located(template=place)
        return LooseLine(compilers.text(item, place))
    if is_jinja(item) and not in_round:
        return LooseLine(compilers.text(item, place))
    if not isinstance(item, Mapping):
        raise TemplateError(f"{type(item).__name__} in a dialogue", "give a role dict").located(template=place)
    for key in item:
        if key not in ROLE_KEYS:
            what = f"unknown key {shown(key)} in a role dict"
            raise TemplateError(what, nearest(key, ROLE_KEYS)).located(template=place)
    if "role" not in item:
        raise TemplateError("a role dict without a role", "give 'role', such as HUMAN").located(template=place)
    for key, kinds in _KEY_TYPES.items():
        if item.get(key) is not None and not isinstance(item[key], kinds):
            names = " or ".join(k.__name__ for k in kinds)
            raise TemplateError(f"'{key}' is {type(item[key]).__name__}", f"give {names}").located(template=place)
    keys = {k: v for k, v in item.items() if k not in {"prompt", "prompt_mm"}}
    nested = any(isinstance(v, (list, Mapping)) for v in keys.values())
    return RoleLine(cast("RoleDict", copied(keys)), compilers.role(cast("RoleDict", item), place), nested)


def render_dialogue(dialogue: Dialogue, view: SampleView, examples: Examples) -> PromptList:
    """Return the whole dialogue for a sample, with the examples at their place."""
    if not isinstance(examples, list):
        return PromptList(
            [render_line(line, view, examples, section) for section, lines in dialogue.sections for line in lines]
        )
    out = PromptList()
    for section, lines in dialogue.sections:
        out.extend(render_section(lines, view, examples, section))
    return out


def render_section(
    lines: Sequence[Line], view: SampleView, examples: Examples, section: Section
) -> list[PromptItem | RoleItem]:
    """Return the items of a section; dialogue examples take the place of their token in a string."""
    out: list[PromptItem | RoleItem] = []
    for line in lines:
        if isinstance(examples, list) and isinstance(line, LooseLine) and line.content.has_marker:
            out.extend(splice(line.content.around_examples(view), examples, section))
        else:
            out.append(render_line(line, view, examples, section))
    return out


def render_example(dialogue: Dialogue, view: SampleView) -> PromptList:
    """Return the round alone, as one in-context example."""
    section = Section("ice")
    return PromptList(
        [
            render_line(line, view, None, section)
            for line in dialogue.round
            if not (isinstance(line, LooseLine) and line.content.has_marker)
        ]
    )


def render_line(line: Line, view: SampleView, examples: Examples, section: Section) -> RoleItem | TextItem:
    """Return the item of one line, with the examples inside what it says."""
    if type(line) is LooseLine:
        return text_item(text_of(line.content.render(view, examples)), section)
    keys, content, nested = cast("RoleLine", line)
    item = RoleItem(copied(keys) if nested else keys)  # items share nothing with the template
    item.section = section
    if content is not None:
        item["prompt"] = content.render(view, examples)
    return item


def splice(texts: Sequence[str], examples: Sequence[PromptItem], section: Section) -> list[PromptItem | RoleItem]:
    """Return items: the texts that are not empty, with all examples between each two of them."""
    out: list[PromptItem | RoleItem] = []
    for number, text in enumerate(texts):
        out += examples if number else ()
        out += [text_item(text, section)] if text else []
    return out
